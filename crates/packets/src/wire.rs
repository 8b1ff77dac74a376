//! A packet's header as bytes: all that a [`Packet`] holds, so that what is read is what was written.
//!
//! Big endian, 60 bytes, the last four a CRC-32 (IEEE 802.3) over those before it. The header is the
//! network's own: transports put their fields into the same places, each as its file says. It is longer
//! than what [`Packet::wire`] counts for some of them, whose real headers have narrower fields.

use kernel::Time;
use rack::NodeId;

use crate::packet::{FlowKey, Kind, Marks, PRIORITIES, Packet};

/// Bytes of a header.
pub const HEADER: usize = 60;
const CHECKED: usize = HEADER - 4;

/// Why bytes are no header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// Another number of bytes than [`HEADER`].
    Length(usize),
    /// The checksum is wrong.
    Checksum,
    /// A field holds what means nothing: its name.
    Field(&'static str),
}

/// The bytes of a packet's header.
#[must_use]
pub fn encode(packet: &Packet) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    let mut at = 0;
    let mut put = |field: &[u8]| {
        bytes[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    };
    for word in [packet.seq, packet.ack, packet.word, packet.stamp.as_ps()] {
        put(&word.to_be_bytes());
    }
    for word in [packet.flow.get(), packet.src.get(), packet.dst.get()] {
        put(&word.to_be_bytes());
    }
    for word in [packet.entropy, packet.path, packet.wire, packet.payload] {
        put(&word.to_be_bytes());
    }
    put(&[packet.kind.get(), packet.priority, packet.marks.bits(), packet.hops]);
    let checksum = crc32fast::hash(&bytes[..CHECKED]);
    bytes[CHECKED..].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// The packet whose header these bytes are.
///
/// # Errors
/// If [`encode`] writes them for no packet.
pub fn decode(bytes: &[u8]) -> Result<Packet, WireError> {
    let bytes: &[u8; HEADER] = bytes.try_into().map_err(|_| WireError::Length(bytes.len()))?;
    let (fields, checksum) = bytes.split_at(CHECKED);
    if crc32fast::hash(fields).to_be_bytes() != checksum {
        return Err(WireError::Checksum);
    }
    let long = |at: usize| u64::from_be_bytes(fields[at..at + 8].try_into().expect("eight bytes"));
    let word = |at: usize| u32::from_be_bytes(fields[at..at + 4].try_into().expect("four bytes"));
    let short = |at: usize| u16::from_be_bytes(fields[at..at + 2].try_into().expect("two bytes"));
    let [kind, priority, marks, hops] = [52, 53, 54, 55].map(|at| fields[at]);
    if priority >= PRIORITIES {
        return Err(WireError::Field("priority"));
    }
    Ok(Packet {
        seq: long(0),
        ack: long(8),
        word: long(16),
        stamp: Time::from_ps(long(24)),
        flow: FlowKey::of_word(word(32)).ok_or(WireError::Field("flow"))?,
        src: NodeId::new(word(36)),
        dst: NodeId::new(word(40)),
        entropy: short(44),
        path: short(46),
        wire: short(48),
        payload: short(50),
        kind: Kind::of_number(kind).ok_or(WireError::Field("kind"))?,
        priority,
        marks: Marks::from_bits(marks).ok_or(WireError::Field("marks"))?,
        hops,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets() -> impl Strategy<Value = Packet> {
        let long = (any::<[u64; 4]>(), 0u32..1 << 29, any::<[u32; 2]>(), any::<[u16; 4]>());
        (long, any::<[bool; 2]>(), any::<u8>(), 0..PRIORITIES, any::<[u8; 2]>()).prop_map(
            |(
                (longs, number, [src, dst], shorts),
                [back, second],
                kind,
                priority,
                [marks, hops],
            )| {
                let flow = if back { FlowKey::receivers(number) } else { FlowKey::new(number) };
                Packet {
                    seq: longs[0],
                    ack: longs[1],
                    word: longs[2],
                    stamp: Time::from_ps(longs[3]),
                    flow: if second { flow.of_second() } else { flow },
                    src: NodeId::new(src),
                    dst: NodeId::new(dst),
                    entropy: shorts[0],
                    path: shorts[1],
                    wire: shorts[2],
                    payload: shorts[3],
                    kind: Kind::of_number(kind).unwrap_or(Kind::DATA),
                    priority,
                    marks: Marks::from_bits_truncate(marks),
                    hops,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(packet in packets()) {
            prop_assert_eq!(decode(&encode(&packet)), Ok(packet));
        }

        #[test]
        fn one_or_two_wrong_bits_are_found(packet in packets(), a in 0..HEADER * 8, b in 0..HEADER * 8) {
            let mut bytes = encode(&packet);
            bytes[a / 8] ^= 1 << (a % 8);
            prop_assert_eq!(decode(&bytes), Err(WireError::Checksum));
            if a != b {
                bytes[b / 8] ^= 1 << (b % 8);
                prop_assert_eq!(decode(&bytes), Err(WireError::Checksum));
            }
        }

        /// What is read without an error is written as it was.
        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..80), seals: bool) {
            let mut bytes = bytes;
            if seals && bytes.len() >= HEADER {
                bytes.truncate(HEADER);
                let checksum = crc32fast::hash(&bytes[..CHECKED]).to_be_bytes();
                bytes[CHECKED..].copy_from_slice(&checksum);
            }
            if let Ok(packet) = decode(&bytes) {
                prop_assert_eq!(&encode(&packet)[..], &bytes[..]);
            }
        }
    }
}
