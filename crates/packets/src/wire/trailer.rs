//! The fields of a packet that its real frame does not carry.
//!
//! From its start: the values of those fields that the real frame does not tell as they are, big endian, in the
//! order of the table below; then, in 16 bits, which fields these are, bit `i` for row `i`; then `RL`.
//!
//! | row | field | bytes | in |
//! | --- | --- | --- | --- |
//! | 0 | sequence number | 8 | packets, or as its transport counts |
//! | 1 | acknowledgment | 8 | the same |
//! | 2 | word of the transport's own | 8 | |
//! | 3 | stamp | 8 | picoseconds |
//! | 4 | flow: its number, who sends (bit 31), which of two transports (bit 30) | 4 | |
//! | 5 | source | 4 | |
//! | 6 | destination | 4 | |
//! | 7 | what routes hash | 2 | |
//! | 8 | path | 2 | |
//! | 9 | bytes on the wire, as counted | 2 | bytes |
//! | 10 | payload | 2 | bytes |
//! | 11 | kind | 1 | |
//! | 12 | priority | 1 | |
//! | 13 | marks | 1 | bits of [`Marks`] |
//! | 14 | hops | 1 | |

use kernel::Time;
use rack::NodeId;

use super::WireError;
use crate::packet::{FlowKey, Kind, Marks, PRIORITIES, Packet};

/// The last bytes.
const MAGIC: [u8; 2] = *b"RL";
/// Bytes behind the values.
const FOOT: usize = 4;

/// A field of a packet.
struct Field {
    name: &'static str,
    bytes: usize,
    get: fn(&Packet) -> u64,
    /// False: it cannot hold this value.
    set: fn(&mut Packet, u64) -> bool,
}

/// A field that can hold any value of its size: its name, its bytes, what it is, and how that is set.
macro_rules! any {
    ($name:literal $bytes:literal $packet:ident.$field:ident $(.$get:ident())?, $value:ident => $set:expr) => {
        Field {
            name: $name,
            bytes: $bytes,
            get: |$packet| $packet.$field$(.$get())?.into(),
            set: |$packet, $value| {
                $packet.$field = $set;
                true
            },
        }
    };
}

/// A field that cannot: values that mean nothing leave it as it is.
macro_rules! some {
    ($name:literal $bytes:literal $packet:ident.$field:ident $(.$get:ident())?, $value:ident => $set:expr) => {
        Field {
            name: $name,
            bytes: $bytes,
            get: |$packet| $packet.$field$(.$get())?.into(),
            set: |$packet, $value| {
                let found = $set;
                $packet.$field = found.unwrap_or($packet.$field);
                found.is_some()
            },
        }
    };
}

const FIELDS: [Field; 15] = [
    any!("seq" 8 packet.seq, value => value),
    any!("ack" 8 packet.ack, value => value),
    any!("word" 8 packet.word, value => value),
    any!("stamp" 8 packet.stamp.as_ps(), value => Time::from_ps(value)),
    some!("flow" 4 packet.flow.get(), value => FlowKey::of_word(value as u32)),
    any!("src" 4 packet.src.get(), value => NodeId::new(value as u32)),
    any!("dst" 4 packet.dst.get(), value => NodeId::new(value as u32)),
    any!("entropy" 2 packet.entropy, value => value as u16),
    any!("path" 2 packet.path, value => value as u16),
    any!("wire" 2 packet.wire, value => value as u16),
    any!("payload" 2 packet.payload, value => value as u16),
    some!("kind" 1 packet.kind.get(), value => Kind::of_number(value as u8)),
    some!("priority" 1 packet.priority, value => Some(value as u8).filter(|&p| p < PRIORITIES)),
    some!("marks" 1 packet.marks.bits(), value => Marks::from_bits(value as u8)),
    any!("hops" 1 packet.hops, value => value as u8),
];

/// The fields that a map names.
fn named(map: u16) -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().enumerate().filter(move |(row, _)| map >> row & 1 == 1).map(|(_, field)| field)
}

/// The names of fields in which a packet differs from what its real frame tells.
pub(super) fn rides(packet: &Packet, told: &Packet) -> Vec<&'static str> {
    let differs = |field: &&Field| (field.get)(packet) != (field.get)(told);
    FIELDS.iter().filter(differs).map(|field| field.name).collect()
}

/// Appends the trailer of a packet of which the real frame tells this.
pub(super) fn write(packet: &Packet, told: &Packet, frame: &mut Vec<u8>) {
    let mut map = 0u16;
    for (row, field) in FIELDS.iter().enumerate() {
        let value = (field.get)(packet);
        if value != (field.get)(told) {
            map |= 1 << row;
            frame.extend(&value.to_be_bytes()[8 - field.bytes..]);
        }
    }
    frame.extend(map.to_be_bytes());
    frame.extend(MAGIC);
}

/// How many bytes the trailer of a frame has, its check sequence apart; `None`: it has none.
pub(super) fn length(frame: &[u8]) -> Option<usize> {
    let [high, low, magic @ ..] = *frame.last_chunk::<FOOT>()?;
    let map = u16::from_be_bytes([high, low]);
    let is_known = magic == MAGIC && map >> FIELDS.len() == 0;
    is_known.then(|| FOOT + named(map).map(|field| field.bytes).sum::<usize>())
}

/// Puts into a packet what a trailer says.
pub(super) fn read(trailer: &[u8], packet: &mut Packet) -> Result<(), WireError> {
    let wrong = WireError::Length(trailer.len());
    let (mut values, foot) = trailer.split_last_chunk::<FOOT>().ok_or(wrong)?;
    for field in named(u16::from_be_bytes([foot[0], foot[1]])) {
        let (value, rest) = values.split_at_checked(field.bytes).ok_or(wrong)?;
        values = rest;
        let value = value.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        if !(field.set)(packet, value) {
            return Err(WireError::Field(field.name));
        }
    }
    if values.is_empty() { Ok(()) } else { Err(wrong) }
}
