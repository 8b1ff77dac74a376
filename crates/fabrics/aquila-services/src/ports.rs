//! Ports for servers that are killed and come back to the port they had.
//!
//! Not those that the system gives to connections: a peer's connection could have the port of a server that is not there
//! just now, and would keep it for as long as it lasts.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where the next are looked for: from anywhere on at first, so that two programs that begin at once look at others; then
/// behind those that were found, which their servers may not listen at yet.
static NEXT: LazyLock<AtomicUsize> =
    LazyLock::new(|| AtomicUsize::new(RandomState::new().hash_one(0) as u16 as usize));

/// The lowest that is looked at: below are ports of well-known services.
const LEAST: u16 = 10_000;

/// Fewer are not worth looking at: other programs have some of them.
const FEW: u16 = 1_000;

/// So many ports that nobody has, each held until its listener is dropped.
///
/// # Errors
/// Nobody can listen at that address, or no port is left.
pub fn hold(bind: IpAddr, count: usize) -> std::io::Result<Vec<TcpListener>> {
    let listen = |port| TcpListener::bind(SocketAddr::new(bind, port));
    let quiet = quiet(&connections(Path::new("/proc/sys/net/ipv4/ip_local_port_range")));
    let looked_at = quiet.clone().map(|_| {
        let at = NEXT.fetch_add(1, Ordering::Relaxed) % quiet.len();
        quiet.start + at as u16
    });
    let mut held: Vec<TcpListener> =
        looked_at.filter_map(|port| listen(port).ok()).take(count).collect();
    while held.len() < count {
        held.push(listen(0)?);
    }
    Ok(held)
}

/// The ports that the system gives to connections, as Linux says; where nothing is said, any.
fn connections(file: &Path) -> Range<u16> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut bounds = text.split_whitespace().map(str::parse::<u16>);
    match (bounds.next(), bounds.next()) {
        (Some(Ok(first)), Some(Ok(last))) => first..last.saturating_add(1),
        _ => 0..u16::MAX,
    }
}

/// The longer range of ports below and above those of connections; none if both are short.
fn quiet(connections: &Range<u16>) -> Range<u16> {
    let below = LEAST..connections.start.max(LEAST);
    let above = connections.end.max(LEAST)..u16::MAX;
    let longer = if below.len() < above.len() { above } else { below };
    if longer.len() < usize::from(FEW) { 0..0 } else { longer }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_are_the_same_and_none_is_a_connections() {
        let held = hold([127, 0, 0, 1].into(), 100).unwrap();
        let ports: BTreeSet<u16> =
            held.iter().map(|held| held.local_addr().unwrap().port()).collect();
        assert_eq!(ports.len(), 100);
        let file = Path::new("/proc/sys/net/ipv4/ip_local_port_range");
        let connections = connections(file);
        if !quiet(&connections).is_empty() {
            assert!(ports.iter().all(|port| !connections.contains(port)), "{ports:?}");
        }
    }

    #[test]
    fn the_longer_range_beside_connections_is_taken() {
        assert_eq!(quiet(&(32_768..61_000)), 10_000..32_768);
        assert_eq!(quiet(&(1_024..40_000)), 40_000..u16::MAX);
        assert_eq!(quiet(&(1_024..u16::MAX)), 0..0);
        assert_eq!(quiet(&(0..u16::MAX)), 0..0);
    }

    #[test]
    fn a_range_is_read_as_linux_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("range");
        std::fs::write(&file, "32768\t60999\n").unwrap();
        assert_eq!(connections(&file), 32_768..61_000);
        std::fs::write(&file, "many\n").unwrap();
        assert_eq!(connections(&file), 0..u16::MAX);
        assert_eq!(connections(&folder.path().join("nothing")), 0..u16::MAX);
    }
}
