//! Packets as bytes ([`crate::wire`]), and bytes as the network's packets carry them.
//!
//! What a node tells a neighbour stands in the network's packet as its bytes are: the first 8 in `ack`,
//! then in `word`, `seq` and `stamp`, big endian, as many as [`Packet::wire`] says. The port by which it
//! came is no part of it: a node knows that of its own (`entropy`, among the ports of the sender). Nor is how
//! often a copy was put off for lack of room (`path`), which here rides along and spares nodes a list.
//!
//! Data and what its destination answers stand in the packet's fields, as the network forwards them by
//! their route; where a run goes through bytes they are written and read back once at their source, so
//! that nothing is in them that their header has no place for.

use kernel::Time;
use packets::{FlowKey, Kind, Marks, Packet};

use crate::config::DATA_PRIORITY;
use crate::endpoint::kinds;
use crate::routing::Route;
use crate::wire::{self, Answer, Data, Message, WireError, Word, data};

/// Most bytes that a packet for a neighbour carries.
pub(crate) const CARRIED_MAX: usize = 32;

/// A packet for a neighbour with these bytes.
///
/// # Panics
/// If there are more than fit.
pub(super) fn carry(bytes: &[u8]) -> Packet {
    let mut all = [0; CARRIED_MAX];
    all[..bytes.len()].copy_from_slice(bytes);
    let word = |at: usize| u64::from_be_bytes(all[at..at + 8].try_into().expect("eight bytes"));
    Packet {
        flow: FlowKey::NEIGHBOURS,
        ack: word(0),
        word: word(8),
        seq: word(16),
        stamp: Time::from_ps(word(24)),
        wire: bytes.len() as u16,
        ..Packet::default()
    }
}

/// The bytes that a packet for a neighbour carries, of which [`Packet::wire`] are meant; none if it says
/// that there are more than fit.
pub(super) fn carried(packet: &Packet) -> Option<([u8; CARRIED_MAX], usize)> {
    let length = usize::from(packet.wire);
    let mut all = [0; CARRIED_MAX];
    let words = [packet.ack, packet.word, packet.seq, packet.stamp.as_ps()];
    for (at, word) in (0..).step_by(8).zip(words) {
        all[at..at + 8].copy_from_slice(&word.to_be_bytes());
    }
    (length <= CARRIED_MAX).then_some((all, length))
}

/// The bytes of data, or of an answer to its source, that goes this way. Payload is all zeros.
///
/// # Panics
/// If it is another packet.
pub(super) fn encode(packet: &Packet, route: Route) -> Vec<u8> {
    let Packet { src, dst, seq, payload, kind, .. } = *packet;
    let (done, flow) = (0, packet.flow.get());
    let word = match kind {
        Kind::DATA => {
            let is_last = packet.marks.contains(Marks::LAST);
            let sequence = u32::try_from(seq).expect("sequence numbers have 32 bits");
            let header =
                Data { route, done, flow, source: src, destination: dst, sequence, is_last };
            return Message::Data(header, &vec![0; usize::from(payload)]).encode();
        }
        kinds::ACK => Word::All,
        kinds::NACK => Word::Missing { first: seq as u32, there: (seq >> 32) as u32 },
        other => panic!("{other:?} has no bytes of its own"),
    };
    Answer { route, done, flow, from: src, to: dst, word }.encode()
}

/// The packet that these bytes are, in a rack of `nodes` nodes.
///
/// # Errors
/// If they are neither data nor an answer to its source.
pub(super) fn decode(bytes: &[u8], nodes: u32) -> Result<Packet, WireError> {
    let wire = bytes.len() as u16;
    let common = Packet { wire, priority: DATA_PRIORITY, ..Packet::default() };
    match wire::decode(bytes, nodes)? {
        Message::Data(data, payload) => {
            let packet = Packet {
                flow: FlowKey::new(data.flow),
                src: data.source,
                dst: data.destination,
                kind: Kind::DATA,
                seq: data.sequence.into(),
                payload: payload.len() as u16,
                marks: if data.is_last { Marks::LAST } else { Marks::empty() },
                ..common
            };
            Ok(packet.with_route(data.route.bits()))
        }
        Message::Answer(answer) => {
            let (kind, seq) = match answer.word {
                Word::All => (kinds::ACK, 0),
                Word::Missing { first, there } => {
                    (kinds::NACK, u64::from(first) | u64::from(there) << 32)
                }
            };
            let flow = FlowKey::new(answer.flow);
            let packet = Packet { flow, src: answer.from, dst: answer.to, kind, seq, ..common };
            Ok(packet.with_route(answer.route.bits()))
        }
        _ => Err(WireError::Kind(bytes[0])),
    }
}

/// A packet as its bytes have it.
#[cold]
pub(super) fn through_bytes(packet: &Packet, route: Route, nodes: u32) -> Packet {
    decode(&encode(packet, route), nodes).expect("what was written can be read")
}

/// Bytes of an answer on the wire.
pub(super) fn answer_bytes(kind: Kind) -> u16 {
    let behind = if kind == kinds::NACK { data::MISSING_BYTES } else { 0 };
    (data::HEADER_BYTES + behind) as u16
}
