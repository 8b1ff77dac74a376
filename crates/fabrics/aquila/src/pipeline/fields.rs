//! What a frame's headers say.

use std::net::IpAddr;

use etherparse::{LaxNetSlice, LaxSlicedPacket};
use kernel::mix64;
use packets::wire::{UDP, checksum};
use thiserror::Error;

use super::plan::EthernetAddress;

/// The type of ARP (RFC 826).
pub const ARP: u16 = 0x0806;
/// The types of IPv4 and IPv6.
pub const IP_V4: u16 = 0x0800;
/// The same of IPv6 (RFC 2464).
pub const IP_V6: u16 = 0x86DD;
/// The number of TCP in IP, and of others that begin with two ports: UDP, SCTP, UDP-Lite.
const WITH_PORTS: [u8; 4] = [6, UDP, 132, 136];
/// The number of ICMP in IPv4 (RFC 792).
pub const ICMP_V4: u8 = 1;
/// The number of ICMPv6 (RFC 4443).
pub const ICMP_V6: u8 = 58;

/// Why bytes are no frame that a router takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Malformed {
    /// They are too few for Ethernet's header.
    #[error("{0} bytes; expected 14 at least, an Ethernet header")]
    Frame(usize),
    /// What should be an IP header is none.
    #[error("type {0:#06x}, but no such header follows")]
    Header(u16),
    /// Bits of the IPv4 header were flipped.
    #[error("the checksum of the IPv4 header is wrong")]
    Checksum,
}

/// The headers of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields {
    /// Whom the frame is for.
    pub to: EthernetAddress,
    /// Who sent it.
    pub from: EthernetAddress,
    /// The type of what is in it, behind tags.
    pub ether_type: u16,
    /// Its IP header, if it has one.
    pub ip: Option<Ip>,
    /// Where what is in it begins. Unit: bytes.
    pub at: usize,
}

/// The header of an IP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip {
    /// Who sent it.
    pub source: IpAddr,
    /// Whom it is for.
    pub destination: IpAddr,
    /// The number of what is in it, behind extension headers.
    pub protocol: u8,
    /// The ports that it is from and to: none where the protocol has none, and in fragments, so that all fragments of a
    /// packet go one way.
    pub ports: Option<(u16, u16)>,
    /// Time to live, or hop limit.
    pub hops_left: u8,
    /// The field for differentiated services (RFC 2474): 6 bits.
    pub service: u8,
    /// Explicit congestion notification (RFC 3168): 2 bits.
    pub ecn: u8,
    /// The whole packet, by its header. Unit: bytes.
    pub length: usize,
    /// Whether all of it is here.
    pub is_whole: bool,
    /// Whether it is a part of an IPv4 packet but not the first one.
    pub is_later_fragment: bool,
}

impl Fields {
    /// Whether all of an IP packet is here.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.ip.is_none_or(|ip| ip.is_whole)
    }
}

impl Ip {
    /// Class of service: the class selector (RFC 2474 §4.2.2), the three upper bits of the service. 0 to 7, 7 the most
    /// urgent (our choice).
    #[must_use]
    pub const fn class_of_service(&self) -> u8 {
        self.service >> 3
    }

    /// A hash of its flow: of addresses, protocol and ports (M404).
    #[must_use]
    pub fn hash(&self, seed: u64) -> u64 {
        let words = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => address.into(),
        };
        let (from, to) = self.ports.unwrap_or_default();
        let rest = u64::from(self.protocol) << 32 | u64::from(from) << 16 | u64::from(to);
        let (source, destination) = (words(self.source), words(self.destination));
        [source as u64, (source >> 64) as u64, destination as u64, (destination >> 64) as u64, rest]
            .into_iter()
            .fold(mix64(seed), |hash, word| mix64(hash.rotate_left(23) ^ word))
    }
}

/// The headers of these bytes.
///
/// # Errors
/// What is wrong with them.
pub fn parse(frame: &[u8]) -> Result<Fields, Malformed> {
    let short = Malformed::Frame(frame.len());
    let packet = LaxSlicedPacket::from_ethernet(frame).map_err(|_| short)?;
    let [to, from] = match frame.first_chunk::<12>() {
        Some(addresses) => [0, 6].map(|at| std::array::from_fn(|byte| addresses[at + byte])),
        None => return Err(short),
    };
    let ether_type = packet.ether_payload().map_or(0, |payload| payload.ether_type.0);
    let at = 14 + packet.link_exts.iter().map(|ext| ext.header_len()).sum::<usize>();
    let ip = match &packet.net {
        Some(LaxNetSlice::Ipv4(slice)) => {
            let header = slice.header();
            if checksum([header.slice()]) != 0 {
                return Err(Malformed::Checksum);
            }
            let payload = slice.payload();
            Some(Ip {
                source: header.source_addr().into(),
                destination: header.destination_addr().into(),
                protocol: payload.ip_number.0,
                ports: ports(payload.ip_number.0, payload.fragmented, payload.payload),
                hops_left: header.ttl(),
                service: header.dcp().value(),
                ecn: header.ecn().value(),
                length: header.total_len().into(),
                is_whole: !payload.incomplete
                    && usize::from(header.total_len()) <= frame.len() - at,
                is_later_fragment: header.fragments_offset().value() > 0,
            })
        }
        Some(LaxNetSlice::Ipv6(slice)) => {
            let (header, payload) = (slice.header(), slice.payload());
            let length = header.slice().len() + usize::from(header.payload_length());
            Some(Ip {
                source: header.source_addr().into(),
                destination: header.destination_addr().into(),
                protocol: payload.ip_number.0,
                ports: ports(payload.ip_number.0, payload.fragmented, payload.payload),
                hops_left: header.hop_limit(),
                service: header.dscp().value(),
                ecn: header.ecn().value(),
                length,
                is_whole: !payload.incomplete && length <= frame.len() - at,
                is_later_fragment: false,
            })
        }
        _ if matches!(ether_type, IP_V4 | IP_V6) => return Err(Malformed::Header(ether_type)),
        _ => None,
    };
    Ok(Fields { to, from, ether_type, ip, at })
}

/// The ports at the beginning of what is in a packet.
fn ports(protocol: u8, is_fragment: bool, payload: &[u8]) -> Option<(u16, u16)> {
    let first = payload.first_chunk::<4>()?;
    let [a, b, c, d] = *first;
    let has_ports = WITH_PORTS.contains(&protocol) && !is_fragment;
    has_ports.then(|| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}
