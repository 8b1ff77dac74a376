//! What this machine has to offer.

use std::fs;
use std::path::{Path, PathBuf};

use kernel::Bytes;
use scenario::Registry;

/// Every fabric of this build, none of which may take more memory than this machine has to spare now.
#[must_use]
pub fn registry() -> Registry {
    let registry = Registry::standard();
    memory_available().map_or(registry, |memory| registry.with_memory(memory))
}

/// Memory that a process may still take: what the system has available, or what is left of the limit of
/// its control group if that is less. `None` where the system does not tell.
#[must_use]
pub fn memory_available() -> Option<Bytes> {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    [system(&meminfo), group(&groups, root)].into_iter().flatten().min()
}

/// `MemAvailable`, of /proc/meminfo (proc_meminfo(5)).
fn system(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(Bytes::new(kibibytes.checked_mul(1024)?))
}

/// What is left below the tightest limit of the process's control group and those above it. `groups` is
/// /proc/self/cgroup, whose line of version 2 begins with `0::` (cgroups(7)).
fn group(groups: &str, root: &Path) -> Option<Bytes> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own: PathBuf = root.join(path);
    own.ancestors().take_while(|folder| folder.starts_with(root)).filter_map(left_in).min()
}

/// What is left in one control group: its limit less what cannot be given back.
fn left_in(folder: &Path) -> Option<Bytes> {
    let limit: u64 = fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse().ok()?;
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let held = stat.lines().find_map(|line| line.strip_prefix("anon "));
    let held: u64 = held.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    Some(Bytes::new(limit.saturating_sub(held)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_own_words_are_read() {
        let meminfo = "MemTotal:       24675000 kB\nMemAvailable:    1000 kB\n";
        assert_eq!(system(meminfo), Some(Bytes::new(1_024_000)));
        assert_eq!(system(""), None);
    }

    #[test]
    fn the_tightest_limit_on_the_way_up_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(group("0::/a/b\n", root.path()), None);
        fs::write(root.path().join("a/memory.max"), "1000000\n").unwrap();
        fs::write(root.path().join("a/memory.stat"), "anon 400000\nfile 300000\n").unwrap();
        assert_eq!(group("1:cpu:/x\n0::/a/b\n", root.path()), Some(Bytes::new(600_000)));
        fs::write(inner.join("memory.max"), "5000\n").unwrap();
        assert_eq!(group("0::/a/b\n", root.path()), Some(Bytes::new(5_000)));
    }
}
