//! The header of a packet on its way between a node and the switch, as bytes.
//!
//! The paper leaves it open (E21). Ours has what receivers need: both ports, the length, the flow as its
//! source counts its flows, the packet's number in it and whether it is the last; and, for measurements,
//! when the source had the flow and when the first bit came to the switch. 36 bytes, the lowest first, the
//! last four a CRC-32 (IEEE 802.3) over those before it; real ones have narrower fields, so what a packet
//! takes of the line is `fabric.header`.

use kernel::Bytes;
use switching::{Packet, Ticks};

/// Bytes of a header.
pub const HEADER: usize = 36;
const CHECKED: usize = HEADER - 4;

/// Of a packet's tag: it is its flow's last. The rest is the flow's number at its source.
pub(super) const LAST: u32 = 1 << 31;

/// The bytes of a packet's header.
#[must_use]
pub fn encode(packet: &Packet) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[0..2].copy_from_slice(&packet.source.to_le_bytes());
    bytes[2..4].copy_from_slice(&packet.destination.to_le_bytes());
    bytes[4..8].copy_from_slice(&(packet.size().get() as u32).to_le_bytes());
    bytes[8..12].copy_from_slice(&packet.sequence.to_le_bytes());
    bytes[12..16].copy_from_slice(&packet.tag.to_le_bytes());
    bytes[16..24].copy_from_slice(&packet.born.get().to_le_bytes());
    bytes[24..32].copy_from_slice(&packet.entered.get().to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..CHECKED]);
    bytes[CHECKED..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The packet whose header these bytes are, between two of so many nodes; `None` if there is none.
#[must_use]
pub fn decode(bytes: &[u8], nodes: u32) -> Option<Packet> {
    let bytes: &[u8; HEADER] = bytes.try_into().ok()?;
    let (fields, checksum) = bytes.split_at(CHECKED);
    if crc32fast::hash(fields).to_le_bytes() != checksum {
        return None;
    }
    let short = |at: usize| u16::from_le_bytes([fields[at], fields[at + 1]]);
    let word = |at: usize| u32::from(short(at)) | u32::from(short(at + 2)) << 16;
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let (source, destination, size) = (short(0), short(2), word(4));
    let is_sound = u32::from(source) < nodes
        && u32::from(destination) < nodes
        && (1..=u32::from(u16::MAX)).contains(&size);
    is_sound.then(|| {
        let (from, to) = (source.into(), destination.into());
        let mut packet = Packet::new(from, to, Bytes::new(size.into()), Ticks::new(long(16)));
        packet.sequence = word(8);
        packet.tag = word(12);
        packet.entered = Ticks::new(long(24));
        packet
    })
}

/// Which bytes of an application a packet carries: those of the flow with this number at this node, from
/// `offset` on. Nothing travels in a simulation; with this a driver finds the bytes that belong to a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Payload {
    /// The node that sends them.
    pub source: u32,
    /// The flow's number there.
    pub flow: u32,
    /// The first of them, in the flow.
    pub offset: Bytes,
    /// How many.
    pub length: Bytes,
}

/// What a packet carries where full ones carry `full` bytes behind a header of `header`.
#[must_use]
pub fn payload(packet: &Packet, full: Bytes, header: Bytes) -> Payload {
    Payload {
        source: packet.source.into(),
        flow: packet.tag & !LAST,
        offset: full * u64::from(packet.sequence),
        length: packet.size() - header,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_comes_back_whole_and_damaged_ones_are_refused(
            (source, destination) in (0usize..4096, 0usize..4096),
            size in 1u64..=65_535,
            (sequence, tag, born, entered) in any::<(u32, u32, u64, u64)>(),
            flip in 0..HEADER * 8,
        ) {
            let mut packet =
                Packet::new(source, destination, Bytes::new(size), Ticks::new(born));
            (packet.sequence, packet.tag) = (sequence, tag);
            packet.entered = Ticks::new(entered);
            let mut bytes = encode(&packet);
            prop_assert_eq!(decode(&bytes, 4096), Some(packet));
            let most = source.max(destination) as u32;
            prop_assert_eq!(decode(&bytes, most), None);
            bytes[flip / 8] ^= 1 << (flip % 8);
            prop_assert_eq!(decode(&bytes, 4096), None);
            prop_assert_eq!(decode(&bytes[1..], 4096), None);
        }
    }
}
