//! What of a packet its real frame does not tell.
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

macro_rules! fields {
    ($($name:literal $bytes:literal $get:expr, |$packet:ident, $value:ident| $set:expr;)*) => {
        const FIELDS: &[Field] = &[$(Field {
            name: $name,
            bytes: $bytes,
            get: $get,
            set: |$packet, $value| $set.is_some(),
        }),*];
    };
}

fields! {
    "seq" 8 |packet| packet.seq, |packet, value| Some(packet.seq = value);
    "ack" 8 |packet| packet.ack, |packet, value| Some(packet.ack = value);
    "word" 8 |packet| packet.word, |packet, value| Some(packet.word = value);
    "stamp" 8 |packet| packet.stamp.as_ps(),
        |packet, value| Some(packet.stamp = Time::from_ps(value));
    "flow" 4 |packet| packet.flow.get().into(),
        |packet, value| FlowKey::of_word(value as u32).map(|flow| packet.flow = flow);
    "src" 4 |packet| packet.src.get().into(),
        |packet, value| Some(packet.src = NodeId::new(value as u32));
    "dst" 4 |packet| packet.dst.get().into(),
        |packet, value| Some(packet.dst = NodeId::new(value as u32));
    "entropy" 2 |packet| packet.entropy.into(), |packet, value| Some(packet.entropy = value as u16);
    "path" 2 |packet| packet.path.into(), |packet, value| Some(packet.path = value as u16);
    "wire" 2 |packet| packet.wire.into(), |packet, value| Some(packet.wire = value as u16);
    "payload" 2 |packet| packet.payload.into(), |packet, value| Some(packet.payload = value as u16);
    "kind" 1 |packet| packet.kind.get().into(),
        |packet, value| Kind::of_number(value as u8).map(|kind| packet.kind = kind);
    "priority" 1 |packet| packet.priority.into(),
        |packet, value| Some(value as u8).filter(|&p| p < PRIORITIES).map(|p| packet.priority = p);
    "marks" 1 |packet| packet.marks.bits().into(),
        |packet, value| Marks::from_bits(value as u8).map(|marks| packet.marks = marks);
    "hops" 1 |packet| packet.hops.into(), |packet, value| Some(packet.hops = value as u8);
}

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
