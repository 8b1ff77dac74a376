//! Ethernet frames with an 802.1Q tag, and their check sequence.

use std::fmt;

use rack::NodeId;

use super::FCS;
use crate::packet::{PRIORITIES, Packet};

/// Bytes of a frame before its check sequence, at least (IEEE 802.3 §4.4.2: 64 with it).
const LEAST: usize = 60;
/// The type of an 802.1Q tag.
const TAGGED: [u8; 2] = [0x81, 0x00];
/// Bytes of the addresses, and of addresses, tag and type.
const ADDRESSES: usize = 12;
const HEADER: usize = ADDRESSES + 4 + 2;

/// The type of local experiments (IEEE 802 §9.2.3.4), for what is not IPv4.
pub const LOCAL: u16 = 0x88B5;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Address(pub [u8; 6]);

impl Address {
    /// The address of a host or switch: locally administered (IEEE 802 §8.4), its number in the last bytes (our
    /// choice).
    #[must_use]
    pub const fn of(node: NodeId) -> Self {
        let [a, b, c, d] = node.get().to_be_bytes();
        Self([0x02, 0, a, b, c, d])
    }

    /// Whose address it is; `None`: nobody's.
    #[must_use]
    pub const fn node(self) -> Option<NodeId> {
        match self.0 {
            [0x02, 0, a, b, c, d] => Some(NodeId::new(u32::from_be_bytes([a, b, c, d]))),
            _ => None,
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The priority of a packet by the code point of its tag, and the code point by the priority: ours count from the
/// most urgent, 802.1Q's to it.
#[must_use]
pub const fn priority_of(code_point: u8) -> u8 {
    (PRIORITIES - 1).saturating_sub(code_point)
}

/// Begins a frame: addresses, the tag with the packet's priority, the type of what follows.
pub fn open_ethernet(packet: &Packet, kind: u16, frame: &mut Vec<u8>) {
    frame.extend(Address::of(packet.dst).0);
    frame.extend(Address::of(packet.src).0);
    frame.extend(TAGGED);
    frame.extend([priority_of(packet.priority) << 5, 0]);
    frame.extend(kind.to_be_bytes());
}

/// What the header of a frame tells of its packet, the type of what follows, and what does.
#[must_use]
pub fn read_ethernet(frame: &[u8]) -> Option<(Packet, u16, &[u8])> {
    let (header, body) = frame.split_first_chunk::<HEADER>()?;
    let address = |at: usize| Address(std::array::from_fn(|byte| header[at + byte])).node();
    let [.., tag_high, tag_low, high, low, kind_high, kind_low] = *header;
    if [tag_high, tag_low] != TAGGED || high & 0x1F != 0 || low != 0 {
        return None;
    }
    let (dst, src, priority) = (address(0)?, address(6)?, priority_of(high >> 5));
    let packet = Packet { src, dst, priority, ..Packet::default() };
    Some((packet, u16::from_be_bytes([kind_high, kind_low]), body))
}

/// Fills a frame up to the least that Ethernet has, with zeros.
pub(super) fn close_real(frame: &mut Vec<u8>) {
    frame.resize(frame.len().max(LEAST), 0);
}

/// The check sequence of a frame (IEEE 802.3 §3.2.9), which may be in parts: CRC-32, least significant byte first.
#[must_use]
pub fn sequence(parts: &[&[u8]]) -> [u8; FCS] {
    let mut sum = crc32fast::Hasher::new();
    parts.iter().for_each(|part| sum.update(part));
    sum.finalize().to_le_bytes()
}

/// Appends the check sequence.
pub(super) fn seal(frame: &mut Vec<u8>) {
    let sequence = sequence(&[frame]);
    frame.extend(sequence);
}
