//! Addresses of the control plane's ends, and what headers of IP say.
//!
//! Models: Aquila §4.2, §4.4 (M615): a control processor has an address of IPv4 and one of IPv6.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use aquila::pipeline::Interface;
use aquila::pipeline::plan::{Plan, Version};
use serde::{Deserialize, Serialize};

/// Numbers of TCP and UDP in headers (IANA).
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Over which versions of IP the controller has its sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Versions {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
    /// IPv6, and IPv4 after a call that nobody answered, in turns.
    Both,
}

impl Versions {
    /// Their names on the command line.
    const NAMES: [(Self, &str); 3] = [(Self::V4, "v4"), (Self::V6, "v6"), (Self::Both, "both")];

    /// The version of the first call.
    #[must_use]
    pub const fn first(self) -> Version {
        match self {
            Self::V4 => Version::V4,
            Self::V6 | Self::Both => Version::V6,
        }
    }

    /// The version of the call after one that nobody answered.
    #[must_use]
    pub const fn after(self, last: Version) -> Version {
        match (self, last) {
            (Self::Both, Version::V6) => Version::V4,
            _ => self.first(),
        }
    }

    /// The addresses of a TiN's control processor.
    ///
    /// # Panics
    /// Never: a plan has addresses of both versions.
    #[must_use]
    pub fn addresses(self, plan: &Plan, tin: u16) -> Addresses {
        let of = |version| plan.ip(tin, Interface::Control, version);
        match (of(Version::V4), of(Version::V6)) {
            (IpAddr::V4(v4), IpAddr::V6(v6)) => Addresses { v4, v6: self.has_v6().then_some(v6) },
            _ => unreachable!("each is of its version"),
        }
    }

    /// Whether sessions over IPv6 are among them.
    #[must_use]
    pub const fn has_v6(self) -> bool {
        !matches!(self, Self::V4)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(known, _)| known == self).map_or("", |named| named.1);
        f.pad(name)
    }
}

impl FromStr for Versions {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|named| named.0).ok_or_else(|| format!("{name:?}; expected v4, v6 or both"))
    }
}

/// The addresses of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Of IPv4, which DHCP gives.
    pub v4: Ipv4Addr,
    /// Of IPv6, if it has one.
    pub v6: Option<Ipv6Addr>,
}

impl Addresses {
    /// That of a version.
    #[must_use]
    pub fn of(self, version: Version) -> Option<IpAddr> {
        match version {
            Version::V4 => Some(self.v4.into()),
            Version::V6 => self.v6.map(IpAddr::V6),
        }
    }

    /// Whether it is one of them.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        Plan::VERSIONS.into_iter().any(|version| self.of(version) == Some(address))
    }
}

impl From<Ipv4Addr> for Addresses {
    fn from(v4: Ipv4Addr) -> Self {
        Self { v4, v6: None }
    }
}

/// Whose a packet is, and to whom; `None`: it has no header of IP.
#[must_use]
pub fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => {
            let (from, rest) = packet.get(12..)?.split_first_chunk::<4>()?;
            let to = rest.first_chunk::<4>()?;
            Some((IpAddr::from(*from), IpAddr::from(*to)))
        }
        6 => {
            let (from, rest) = packet.get(8..)?.split_first_chunk::<16>()?;
            let to = rest.first_chunk::<16>()?;
            Some((IpAddr::from(*from), IpAddr::from(*to)))
        }
        _ => None,
    }
}

/// The same with the ports of TCP or UDP, of which a header of extensions may not stand in between.
#[must_use]
pub fn ends(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let (from, to) = addresses(packet)?;
    let (length, protocol) = match from {
        IpAddr::V4(_) => (4 * usize::from(packet[0] & 0xF), packet[9]),
        IpAddr::V6(_) => (40, packet[6]),
    };
    let &[a, b, c, d] = packet.get(length..)?.first_chunk()?;
    let port = |high, low| u16::from_be_bytes([high, low]);
    let has_ports = length >= 20 && matches!(protocol, TCP | UDP);
    has_ports.then(|| (SocketAddr::new(from, port(a, b)), SocketAddr::new(to, port(c, d))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smoltcp::wire::{
        IpProtocol, Ipv4Packet, Ipv4Repr, Ipv6Packet, Ipv6Repr, UdpPacket, UdpRepr,
    };

    use super::*;

    /// A datagram as `smoltcp` has it.
    fn datagram(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
        let udp = UdpRepr { src_port: from.port(), dst_port: to.port() };
        let payload_len = udp.header_len() + 3;
        let mut bytes = vec![0; 60 + payload_len];
        let header = match (from.ip(), to.ip()) {
            (IpAddr::V4(src_addr), IpAddr::V4(dst_addr)) => {
                let next_header = IpProtocol::Udp;
                let repr = Ipv4Repr { src_addr, dst_addr, next_header, payload_len, hop_limit: 9 };
                let mut packet = Ipv4Packet::new_unchecked(&mut bytes[..]);
                repr.emit(&mut packet, &Default::default());
                repr.buffer_len()
            }
            (IpAddr::V6(src_addr), IpAddr::V6(dst_addr)) => {
                let next_header = IpProtocol::Udp;
                let repr = Ipv6Repr { src_addr, dst_addr, next_header, payload_len, hop_limit: 9 };
                repr.emit(&mut Ipv6Packet::new_unchecked(&mut bytes[..]));
                repr.buffer_len()
            }
            _ => unreachable!("both are of a version"),
        };
        let mut packet = UdpPacket::new_unchecked(&mut bytes[header..header + payload_len]);
        let (from, to) = (from.ip().into(), to.ip().into());
        udp.emit(&mut packet, &from, &to, 3, |payload| payload.fill(7), &Default::default());
        bytes.truncate(header + payload_len);
        bytes
    }

    fn end() -> impl Strategy<Value = (SocketAddr, SocketAddr)> {
        let v4 = any::<(Ipv4Addr, u16, Ipv4Addr, u16)>();
        let v6 = any::<(Ipv6Addr, u16, Ipv6Addr, u16)>();
        prop_oneof![
            v4.prop_map(|(a, b, c, d)| (
                SocketAddr::new(a.into(), b),
                SocketAddr::new(c.into(), d)
            )),
            v6.prop_map(|(a, b, c, d)| (
                SocketAddr::new(a.into(), b),
                SocketAddr::new(c.into(), d)
            )),
        ]
    }

    proptest! {
        #[test]
        fn m615_ends_are_those_that_another_stack_has_written((from, to) in end()) {
            // `smoltcp` takes a port of zero for a mistake.
            prop_assume!(from.port() != 0 && to.port() != 0);
            let bytes = datagram(from, to);
            prop_assert_eq!(addresses(&bytes), Some((from.ip(), to.ip())));
            prop_assert_eq!(ends(&bytes), Some((from, to)));
            // Cut anywhere before its ports' end it has none.
            let ports_end = if from.is_ipv4() { 24 } else { 44 };
            for length in 0..ports_end {
                prop_assert_eq!(ends(&bytes[..length]), None);
            }
        }

        #[test]
        fn any_bytes_are_looked_at(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if ends(&bytes).is_some() {
                prop_assert!(addresses(&bytes).is_some());
            }
        }
    }

    #[test]
    fn m615_both_versions_are_called_in_turns() {
        let calls = |versions: Versions| {
            let next = |&last: &Version| Some(versions.after(last));
            std::iter::successors(Some(versions.first()), next).take(4).collect::<Vec<_>>()
        };
        use Version::{V4, V6};
        assert_eq!(calls(Versions::V4), [V4; 4]);
        assert_eq!(calls(Versions::V6), [V6; 4]);
        assert_eq!(calls(Versions::Both), [V6, V4, V6, V4]);
    }
}
