//! Data: a header of 36 bytes, and what it carries.
//!
//! Models: R2C2 §3.5, §4.2, Fig. 6 (claims M34, M35, I12), which name all fields but the guard, and
//! of the widths those of the nodes and the route. None holds the flow's size: a bit that was spare marks
//! its last packet, by which the destination knows when all is there. What the destination says where packets
//! get lost, that it has all or what it misses, is not in the paper either: it goes back in the same header,
//! of which another value of those bits tells (**our choice**), with no more than four bytes behind it.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0 | kind, and in the upper half 1 for the flow's last packet, 2 for an answer that all is there, 3 for one that asks for packets (**our choice**) |
//! | 1 | hops of the route |
//! | 2 | index into the route: hops done |
//! | 3 | the index's complement, its guard (**our choice**) |
//! | 4 to 7 | flow |
//! | 8, 9 | source |
//! | 10, 11 | destination |
//! | 12 to 15 | sequence number; the first packet that is asked for |
//! | 16, 17 | checksum of header and payload, as if the index and its guard were zero |
//! | 18, 19 | bytes of payload |
//! | 20 to 35 | route, three bits a hop, the first hop lowest |

use rack::NodeId;

use super::read::{Reader, assemble, node_bytes};
use super::{Kind, WireError, checksum};
use crate::routing::Route;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 36;
/// Most bytes of payload: what its length field holds.
pub const PAYLOAD_MAX: usize = u16::MAX as usize;
/// Where the index into the route stands.
const INDEX: usize = 2;
/// In the upper half of the first byte: the last packet of a flow, ...
const LAST: u8 = 1;
/// ... the answer that all is there, ...
const ALL: u8 = 2;
/// ... and the answer that asks for packets.
const MISSING: u8 = 3;
/// Bytes behind the header of an answer that asks for packets.
pub const MISSING_BYTES: usize = 4;

/// The header of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// The way from source to destination.
    pub route: Route,
    /// How many hops of it are done.
    pub done: u8,
    /// The flow.
    pub flow: u32,
    /// Who sends it.
    pub source: NodeId,
    /// Who receives it.
    pub destination: NodeId,
    /// Its place in the flow.
    pub sequence: u32,
    /// Whether no other of the flow has a higher one.
    pub is_last: bool,
}

impl Data {
    /// The bytes of the header in front of this payload.
    ///
    /// # Panics
    /// If more hops are done than the route has, a node's number is not below 65,536, or the payload
    /// is longer than [`PAYLOAD_MAX`].
    #[must_use]
    pub fn encode(&self, payload: &[u8]) -> [u8; HEADER_BYTES] {
        self.encode_as(if self.is_last { LAST } else { 0 }, payload)
    }

    /// The same with `mark` in the upper half of the first byte.
    fn encode_as(&self, mark: u8, payload: &[u8]) -> [u8; HEADER_BYTES] {
        let length = self.route.length() as u8;
        assert!(self.done <= length, "{} hops done of {length}", self.done);
        assert!(payload.len() <= PAYLOAD_MAX, "{} bytes of payload", payload.len());
        let mut header: [u8; HEADER_BYTES] = assemble(&[
            &[Kind::Data as u8 | mark << 4, length, self.done, !self.done],
            &self.flow.to_be_bytes(),
            &node_bytes(self.source),
            &node_bytes(self.destination),
            &self.sequence.to_be_bytes(),
            &[0; 2],
            &(payload.len() as u16).to_be_bytes(),
            &self.route.bits().to_be_bytes(),
        ]);
        // The header has an even number of bytes: the sum goes on with the payload's.
        let of_header = checksum::of_packet(Kind::Data, &header);
        let right = checksum::checksum([&(!of_header).to_be_bytes()[..], payload]);
        let place = checksum::place(Kind::Data);
        header[place..place + 2].copy_from_slice(&right.to_be_bytes());
        header
    }
}

/// What the destination of a flow says to its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The way from the destination to the source.
    pub route: Route,
    /// How many hops of it are done.
    pub done: u8,
    /// The flow.
    pub flow: u32,
    /// Who says it: the flow's destination.
    pub from: NodeId,
    /// The flow's source.
    pub to: NodeId,
    /// What it says.
    pub word: Word,
}

/// What an answer says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// All of the flow is there.
    All,
    /// Packets are missing.
    Missing {
        /// The first of them.
        first: u32,
        /// A bit for each of the 32 behind it, the next lowest: whether it is there.
        there: u32,
    },
}

impl Word {
    /// Bytes behind the header.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::All => 0,
            Self::Missing { .. } => MISSING_BYTES,
        }
    }
}

impl Answer {
    /// The bytes.
    ///
    /// # Panics
    /// As [`Data::encode`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { route, done, flow, from, to, word } = *self;
        let (mark, sequence, there) = match word {
            Word::All => (ALL, 0, None),
            Word::Missing { first, there } => (MISSING, first, Some(there.to_be_bytes())),
        };
        let payload = there.as_ref().map_or(&[][..], |there| &there[..]);
        let (source, destination, is_last) = (from, to, false);
        let header = Data { route, done, flow, source, destination, sequence, is_last };
        [&header.encode_as(mark, payload)[..], payload].concat()
    }
}

/// Whether the upper half of the first byte is that of an answer.
pub(super) fn is_answer(mark: u8) -> bool {
    mark == ALL || mark == MISSING
}

pub(super) fn decode_answer(read: &mut Reader<'_>) -> Result<Answer, WireError> {
    let mark = read.number();
    let (header, payload) = decode_header(read, false)?;
    let Data { route, done, flow, source: from, destination: to, sequence, .. } = header;
    let word = match (mark, <[u8; MISSING_BYTES]>::try_from(payload)) {
        (ALL, _) if !payload.is_empty() => {
            return Err(WireError::Field { field: "payload length", value: payload.len() as u32 });
        }
        (ALL, _) if sequence != 0 => {
            return Err(WireError::Field { field: "spare", value: sequence });
        }
        (ALL, _) => Word::All,
        (_, Ok(there)) => Word::Missing { first: sequence, there: u32::from_be_bytes(there) },
        (_, Err(_)) => {
            return Err(WireError::Field { field: "payload length", value: payload.len() as u32 });
        }
    };
    Ok(Answer { route, done, flow, from, to, word })
}

pub(super) fn decode<'a>(read: &mut Reader<'a>) -> Result<(Data, &'a [u8]), WireError> {
    let is_last = match read.number() {
        0 => false,
        LAST => true,
        more => return Err(WireError::Field { field: "spare", value: more.into() }),
    };
    decode_header(read, is_last)
}

fn decode_header<'a>(read: &mut Reader<'a>, is_last: bool) -> Result<(Data, &'a [u8]), WireError> {
    let [length, done, guard] = read.take()?;
    if done != !guard {
        return Err(WireError::Corrupted);
    }
    let flow = read.word()?;
    let source = read.node("source")?;
    let destination = read.peer(source)?;
    let sequence = read.word()?;
    read.checksum()?;
    let payload = usize::from(read.short()?);
    let bits = u128::from_be_bytes(read.take()?);
    let wrong = |field, value: u8| WireError::Field { field, value: u32::from(value) };
    let route = Route::from_bits(bits, u32::from(length)).ok_or(wrong("route length", length))?;
    if done > length {
        return Err(wrong("route index", done));
    }
    let payload = read.last(payload)?;
    Ok((Data { route, done, flow, source, destination, sequence, is_last }, payload))
}

/// What a node does with data that passes (§3.5): the port that its route names next, and the index
/// moved on by one; `None` if it has arrived. Looks at nothing else, and needs no new checksum.
///
/// # Errors
/// If the bytes are no data, or index or length of the route are damaged.
pub fn forward(packet: &mut [u8]) -> Result<Option<u8>, WireError> {
    let found = packet.len();
    let Some(header) = packet.first_chunk_mut::<HEADER_BYTES>() else {
        return Err(WireError::Length { expected: HEADER_BYTES, found });
    };
    let [kind, length, done, guard, ..] = *header;
    if Kind::of(kind) != Some(Kind::Data) {
        return Err(WireError::Kind(kind));
    }
    if done != !guard {
        return Err(WireError::Corrupted);
    }
    let (_, bits) = header.split_last_chunk::<16>().expect("a header is longer than its route");
    let wrong = |field, value: u8| WireError::Field { field, value: u32::from(value) };
    let route = Route::from_bits(u128::from_be_bytes(*bits), u32::from(length));
    let route = route.ok_or(wrong("route length", length))?;
    if done > length {
        return Err(wrong("route index", done));
    }
    if done == length {
        return Ok(None);
    }
    (header[INDEX], header[INDEX + 1]) = (done + 1, !(done + 1));
    Ok(Some(route.hop(u32::from(done))))
}
