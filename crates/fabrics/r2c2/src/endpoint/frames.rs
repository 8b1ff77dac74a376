//! Packets as bytes ([`crate::wire`]), and bytes as the network's packets carry them.
//!
//! What a node tells a neighbour stands in the network's packet as its bytes are: the first 8 in `ack`,
//! then in `word`, `seq` and `stamp`, big endian, as many as [`Packet::wire`] says. The port by which it
//! came is no part of it: a node knows that of its own (`entropy`, among the ports of the sender). Nor is how
//! often a copy was put off for lack of room (`path`), which here rides along and spares nodes a list.
//!
//! A controller's message is one packet (§5.2), however many rates it has. Here it may take several, and those
//! after the first have its head again: [`Packet::wire`] does not count that.
//!
//! R2C2's links are its own (§4.1), and [`Packet::wire`] counts its bytes alone. For drivers and captures each packet
//! goes in an Ethernet frame (**our choice**): the type of local experiments, 16 bits with the length of the packet,
//! which filling up would hide, and the packet.

use kernel::Time;
use packets::wire::{Codec, LOCAL, open_ethernet, read_ethernet};
use packets::{FlowKey, Kind, Marks, Packet};
use rack::NodeId;
use rack::topology::{Topology, Vertex};

use crate::endpoint::kinds;
use crate::routing::Route;
use crate::wire::{self, Answer, Data, Message, NODES_MAX, Word, central, data};

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
        wire: bytes.len() as u16 - uncounted(&all),
        ..Packet::default()
    }
}

/// Bytes that [`Packet::wire`] does not count.
fn uncounted(all: &[u8; CARRIED_MAX]) -> u16 {
    if central::is_later_part(all) { central::HEADER_BYTES as u16 } else { 0 }
}

/// The bytes that a packet for a neighbour carries, and how many of them are meant ([`Packet::wire`]); none if it
/// says that there are more than fit.
pub(super) fn carried(packet: &Packet) -> Option<([u8; CARRIED_MAX], usize)> {
    let mut all = [0; CARRIED_MAX];
    let words = [packet.ack, packet.word, packet.seq, packet.stamp.as_ps()];
    for (at, word) in (0..).step_by(8).zip(words) {
        all[at..at + 8].copy_from_slice(&word.to_be_bytes());
    }
    let length = usize::from(packet.wire) + usize::from(uncounted(&all));
    (length <= CARRIED_MAX).then_some((all, length))
}

/// Frames of a rack.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    topology: Topology,
}

impl Frames {
    pub(super) fn new(topology: &Topology) -> Self {
        Self { topology: topology.clone() }
    }

    /// Hops that are done before a packet is at the first switch or node after its source: none where nodes pass
    /// packets on, for a packet then comes by its own node first.
    fn done_before(&self, src: NodeId) -> u8 {
        let is_node = src.get() < self.topology.hosts();
        let has_switches = self.topology.vertices() > self.topology.hosts();
        (has_switches && is_node && self.topology.degree(Vertex::new(src.get())) == 1).into()
    }

    /// The route of a packet, which tells its hops and not where they end: that is where it is at its destination
    /// and no hops follow. One that leads elsewhere ends behind its last hop that is no zero.
    fn route_of(&self, packet: &Packet) -> Route {
        let bits = u128::from(packet.word) << 64 | u128::from(packet.ack);
        let mut at = Vertex::new(packet.src.get());
        for hop in 0..=packets::ROUTE_HOPS_MAX {
            let rest = bits.checked_shr(packets::ROUTE_HOP_BITS * hop).unwrap_or(0);
            if rest == 0 && at.get() == packet.dst.get() {
                return Route::from_bits(bits, hop).unwrap_or(Route::EMPTY);
            }
            let is_known = at.get() < self.topology.vertices();
            let port = usize::from(packet.hop_of_route(hop));
            let port = if is_known { self.topology.ports_of(at).nth(port) } else { None };
            let Some(port) = port else { break };
            at = self.topology.port(port).peer;
        }
        let length = (u128::BITS - bits.leading_zeros()).div_ceil(packets::ROUTE_HOP_BITS);
        Route::from_bits(bits, length).unwrap_or(Route::EMPTY)
    }

    /// The bytes of data, or of an answer to its source; none of what is neither. Payload is all zeros.
    fn of_flow(&self, packet: &Packet) -> Vec<u8> {
        let Packet { src, dst, seq, payload, kind, hops, .. } = *packet;
        let route = self.route_of(packet);
        let done = hops.saturating_add(self.done_before(src)).min(route.length() as u8);
        let flow = packet.flow.place();
        let word = match kind {
            _ if src.get().max(dst.get()) >= NODES_MAX => return Vec::new(),
            Kind::DATA => {
                let is_last = packet.marks.contains(Marks::LAST);
                let sequence = seq as u32;
                let header =
                    Data { route, done, flow, source: src, destination: dst, sequence, is_last };
                return Message::Data(header, &vec![0; usize::from(payload)]).encode();
            }
            kinds::ACK => Word::All,
            kinds::NACK => Word::Missing { first: seq as u32, there: (seq >> 32) as u32 },
            _ => return Vec::new(),
        };
        Answer { route, done, flow, from: src, to: dst, word }.encode()
    }

    /// What bytes say of a packet of which the frame says this.
    fn told(&self, bytes: &[u8], packet: Packet) -> Option<Packet> {
        let packet = Packet { wire: bytes.len() as u16, ..packet };
        let hops = |done: u8| done.saturating_sub(self.done_before(packet.src));
        match wire::decode(bytes, NODES_MAX) {
            Ok(Message::Data(data, payload)) => {
                let packet = Packet {
                    flow: FlowKey::of_number(data.flow, false)?,
                    kind: Kind::DATA,
                    seq: data.sequence.into(),
                    payload: payload.len() as u16,
                    marks: if data.is_last { Marks::LAST } else { Marks::empty() },
                    hops: hops(data.done),
                    ..packet
                };
                Some(packet.with_route(data.route.bits()))
            }
            Ok(Message::Answer(answer)) => {
                let (kind, seq) = match answer.word {
                    Word::All => (kinds::ACK, 0),
                    Word::Missing { first, there } => {
                        (kinds::NACK, u64::from(first) | u64::from(there) << 32)
                    }
                };
                let flow = FlowKey::of_number(answer.flow, true)?;
                let packet = Packet { flow, kind, seq, hops: hops(answer.done), ..packet };
                Some(packet.with_route(answer.route.bits()))
            }
            // What neighbours tell each other; its reader looks at the rest.
            _ if bytes.len() <= CARRIED_MAX => {
                let Packet { src, dst, priority, .. } = packet;
                let kind = kinds::of_bytes(bytes)?;
                Some(Packet { src, dst, priority, kind, ..carry(bytes) })
            }
            _ => None,
        }
    }
}

impl Codec for Frames {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        let bytes = match carried(packet) {
            _ if packet.flow != FlowKey::NEIGHBOURS => self.of_flow(packet),
            Some((bytes, length)) => bytes[..length].to_vec(),
            None => Vec::new(),
        };
        open_ethernet(packet, LOCAL, frame);
        frame.extend((bytes.len() as u16).to_be_bytes());
        frame.extend(bytes);
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        let (packet, kind, rest) = read_ethernet(frame)?;
        let (length, bytes) = rest.split_first_chunk()?;
        let bytes = bytes.get(..u16::from_be_bytes(*length).into())?;
        if kind == LOCAL { self.told(bytes, packet) } else { None }
    }
}

/// Bytes of an answer on the wire.
pub(super) fn answer_bytes(kind: Kind) -> u16 {
    let behind = if kind == kinds::NACK { data::MISSING_BYTES } else { 0 };
    (data::HEADER_BYTES + behind) as u16
}
