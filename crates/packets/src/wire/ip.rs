//! IPv4 and UDP in Ethernet frames.
//!
//! Models: RFC 791 (header, checksum), RFC 2474 (the class selector of the packet's priority), RFC 3168 (ECN),
//! RFC 6864 (no packet is fragmented, so that any identification will do: the low bits of the sequence number),
//! RFC 768 (UDP). **Our choices**: host `n` is 10.0.0.0 + n + 1; the time to live begins at 255, so that it holds
//! any count of hops; ports name the flow ([`Ports`]).

use rack::NodeId;

use super::ether::{open_ethernet, read_ethernet};
use crate::packet::{FlowKey, Marks, Packet};

/// The type of IPv4 in Ethernet.
const IPV4: u16 = 0x0800;
/// Bytes of its header, without options.
const HEADER: usize = 20;
/// The number of UDP in IPv4 (RFC 768).
pub const UDP: u8 = 17;
/// Bytes of its header.
const UDP_HEADER: usize = 8;
/// Time to live of what was just sent.
const TTL: u8 = 255;
/// The flag of what is not to be fragmented.
const DONT_FRAGMENT: u8 = 0x40;
/// ECN (RFC 3168 §5): capable, and congestion seen.
const ECT0: u8 = 0b10;
const CE: u8 = 0b11;

/// What is in an IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// What Ethernet's header and IPv4's tell of the packet; [`Packet::wire`] is IPv4's length.
    pub packet: Packet,
    /// The number of what follows.
    pub protocol: u8,
    /// The header.
    pub header: [u8; HEADER],
    /// What follows, without padding.
    pub body: &'a [u8],
}

/// The Internet checksum (RFC 1071): the complement of the one's complement sum of all 16-bit words. Parts but
/// the last have an even number of bytes.
#[must_use]
pub fn checksum<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        let (words, rest) = part.as_chunks::<2>();
        sum += words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum::<u64>();
        sum += rest.iter().map(|&byte| u64::from(byte) << 8).sum::<u64>();
    }
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    !(sum as u16)
}

/// The address of a host.
fn address(node: NodeId) -> [u8; 4] {
    let [_, a, b, c] = node.get().wrapping_add(1).to_be_bytes();
    [10, a, b, c]
}

/// What TCP and UDP put before their header for its checksum (RFC 9293 §3.1): addresses, protocol, length.
#[must_use]
pub fn sum_of_pseudo(packet: &Packet, protocol: u8, length: usize) -> [u8; 12] {
    let [a, b, c, d] = address(packet.src);
    let [e, f, g, h] = address(packet.dst);
    let [high, low] = (length as u16).to_be_bytes();
    [a, b, c, d, e, f, g, h, 0, protocol, high, low]
}

/// Appends a packet of IPv4 with this behind its header, in its Ethernet frame.
pub fn write_ip(packet: &Packet, protocol: u8, body: &[u8], frame: &mut Vec<u8>) {
    open_ethernet(packet, IPV4, frame);
    let ecn = match (packet.marks.contains(Marks::CE), packet.marks.contains(Marks::ECT)) {
        (true, _) => CE,
        (false, true) => ECT0,
        (false, false) => 0,
    };
    let class = super::priority_of(packet.priority) << 5;
    let mut header = [0; HEADER];
    (header[0], header[1]) = (0x45, class | ecn);
    header[2..4].copy_from_slice(&((HEADER + body.len()) as u16).to_be_bytes());
    header[4..6].copy_from_slice(&(packet.seq as u16).to_be_bytes());
    (header[6], header[8], header[9]) = (DONT_FRAGMENT, TTL - packet.hops, protocol);
    header[12..16].copy_from_slice(&address(packet.src));
    header[16..20].copy_from_slice(&address(packet.dst));
    let sum = checksum([&header[..]]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    frame.extend(body);
}

/// Reads a frame with IPv4.
#[must_use]
pub fn read_ip(frame: &[u8]) -> Option<Datagram<'_>> {
    let (packet, kind, rest) = read_ethernet(frame)?;
    let (header, rest) = rest.split_first_chunk::<HEADER>()?;
    let length = u16::from_be_bytes([header[2], header[3]]);
    let body = rest.get(..usize::from(length).checked_sub(HEADER)?)?;
    if kind != IPV4 || header[0] != 0x45 {
        return None;
    }
    let marks = match header[1] & 0b11 {
        0 => Marks::empty(),
        CE => Marks::ECT | Marks::CE,
        _ => Marks::ECT,
    };
    let packet = Packet { marks, hops: TTL - header[8], wire: length, ..packet };
    Some(Datagram { packet, protocol: header[9], header: *header, body })
}

/// Ports that name a flow by its number: both together have its 29 bits. The port of the flow's source is among
/// the dynamic ones (RFC 6335 §6), that of its destination below them: so they tell who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Of the host that sends.
    pub from: u16,
    /// Of the host that it is for.
    pub to: u16,
}

impl Ports {
    /// The first of the dynamic ports, and how many bits of the number are above it.
    const DYNAMIC: u16 = 0xC000;
    const LOW_BITS: u32 = 14;
    /// The first port of destinations: above the well-known.
    const SERVICES: u16 = 0x0400;

    /// The ports of a packet's flow.
    #[must_use]
    pub const fn of(packet: &Packet) -> Self {
        let number = packet.flow.place();
        let source = Self::DYNAMIC | (number & !(u32::MAX << Self::LOW_BITS)) as u16;
        let destination = Self::SERVICES + (number >> Self::LOW_BITS) as u16;
        match packet.flow.is_receivers() {
            true => Self { from: destination, to: source },
            false => Self { from: source, to: destination },
        }
    }

    /// The flow that they name, and on which side of it the sender is.
    #[must_use]
    pub fn flow(self) -> Option<FlowKey> {
        let is_receivers = self.to >= Self::DYNAMIC;
        let (source, destination) =
            if is_receivers { (self.to, self.from) } else { (self.from, self.to) };
        let low = source.checked_sub(Self::DYNAMIC)?;
        let high = destination.checked_sub(Self::SERVICES)?;
        let number = u32::from(high) << Self::LOW_BITS | u32::from(low);
        FlowKey::of_number(number, is_receivers)
    }

    /// The ports in the first bytes of TCP's header, of UDP's and of whatever begins as they do.
    #[must_use]
    pub fn read(header: &[u8]) -> Option<Self> {
        let [a, b, c, d] = *header.first_chunk()?;
        Some(Self { from: u16::from_be_bytes([a, b]), to: u16::from_be_bytes([c, d]) })
    }
}

/// Appends a UDP datagram in IPv4, with these bytes in it.
pub fn write_udp(packet: &Packet, ports: Ports, body: &[u8], frame: &mut Vec<u8>) {
    let length = UDP_HEADER + body.len();
    let mut datagram = Vec::with_capacity(length);
    datagram.extend(ports.from.to_be_bytes());
    datagram.extend(ports.to.to_be_bytes());
    datagram.extend((length as u16).to_be_bytes());
    datagram.extend([0; 2]);
    datagram.extend(body);
    let sum = match checksum([&sum_of_pseudo(packet, UDP, length)[..], &datagram]) {
        // Zero says that there is none (RFC 768).
        0 => u16::MAX,
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    write_ip(packet, UDP, &datagram, frame);
}

/// Reads a frame with a UDP datagram: what the headers tell, the ports, and what is in it.
#[must_use]
pub fn read_udp(frame: &[u8]) -> Option<(Packet, Ports, &[u8])> {
    let Datagram { packet, protocol, body, .. } = read_ip(frame)?;
    let ports = Ports::read(body)?;
    let body = body.get(UDP_HEADER..)?;
    (protocol == UDP).then_some((packet, ports, body))
}
