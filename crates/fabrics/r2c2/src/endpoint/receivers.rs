//! Destinations of flows: packets come by many ways and out of order (§5.2).

use kernel::{Bytes, Histogram};
use packets::{FlowKey, Framing, Kind, Marks, Outbox, Packet};
use rack::NodeId;
use transports::arrivals::{Arrivals, bytes_between};

use crate::config::DATA_PRIORITY;

use super::frames::answer_bytes;

/// The size of a flow of which the last packet has not come.
const UNKNOWN: Bytes = Bytes::new(u64::MAX);

/// A flow at its destination.
#[derive(Clone, Debug)]
struct Receiver {
    src: NodeId,
    dst: NodeId,
    /// What its last packet told, or [`UNKNOWN`].
    size: Bytes,
    arrivals: Arrivals,
    /// The last of the packets that have come.
    newest: u64,
    /// Most packets held because others before them were missing.
    held_max: u64,
    /// The last packet that was asked for.
    asked: Option<u64>,
}

/// What a packet brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// It was the last that was missing.
    Last,
    /// It was there before.
    Again,
    /// It was the last that was asked for, and others are still missing before ones that came.
    AskedLast,
    /// It is none of these.
    New,
}

/// The destinations of flows, by key.
#[derive(Clone, Debug)]
pub(super) struct Receivers {
    framing: Framing,
    flows: Vec<Receiver>,
    /// Of each flow that is over: most packets held because others before them were missing.
    held: Histogram,
    /// By node: the most of any flow to it.
    held_by_node: Vec<u64>,
}

impl Receiver {
    fn new() -> Self {
        Self {
            src: NodeId::default(),
            dst: NodeId::default(),
            size: UNKNOWN,
            arrivals: Arrivals::default(),
            newest: 0,
            held_max: 0,
            asked: None,
        }
    }

    /// Whether a packet may be one of this flow, as far as others have told. Learns its size from the last.
    fn suits(&mut self, packet: &Packet, framing: Framing) -> bool {
        let Packet { seq, payload, .. } = *packet;
        // Sequence numbers have 32 bits on the wire.
        if seq > u64::from(u32::MAX) || payload == 0 || payload > framing.payload {
            return false;
        }
        let is_last = packet.marks.contains(Marks::LAST);
        let end = Bytes::new(seq * u64::from(framing.payload) + u64::from(payload));
        if self.size != UNKNOWN {
            return if is_last {
                end == self.size
            } else {
                framing.payload == payload && end < self.size
            };
        }
        if !is_last {
            return payload == framing.payload;
        }
        let is_beyond = self.arrivals.count() == 0 || seq > self.newest;
        if is_beyond {
            self.size = end;
        }
        is_beyond
    }
}

impl Receivers {
    pub(super) fn new(framing: Framing, nodes: u32) -> Self {
        let held_by_node = vec![0; nodes as usize];
        Self { framing, flows: Vec::new(), held: Histogram::new(), held_by_node }
    }

    /// The first packet of a flow has come.
    pub(super) fn open(&mut self, packet: &Packet) {
        let place = packet.flow.index();
        if self.flows.len() <= place {
            self.flows.resize_with(place + 1, Receiver::new);
        }
        let receiver = &mut self.flows[place];
        let arrivals = std::mem::take(&mut receiver.arrivals);
        *receiver = Receiver { src: packet.src, dst: packet.dst, arrivals, ..Receiver::new() };
    }

    /// Nothing is left to do for a flow. Its destination.
    pub(super) fn close(&mut self, key: FlowKey) -> NodeId {
        let receiver = &mut self.flows[key.index()];
        receiver.arrivals.clear();
        receiver.dst
    }

    /// A packet has come: what is now in order goes to the application. None if it makes no sense.
    pub(super) fn arrive(&mut self, packet: &Packet, out: &mut Outbox) -> Option<Arrival> {
        let receiver = &mut self.flows[packet.flow.index()];
        if !receiver.suits(packet, self.framing) {
            return None;
        }
        let Receiver { size, arrivals, held_max, asked, newest, .. } = receiver;
        let before = arrivals.next();
        if !arrivals.insert(packet.seq) {
            return Some(Arrival::Again);
        }
        *newest = packet.seq.max(*newest);
        let next = arrivals.next();
        if next > before {
            out.delivered(packet.flow, bytes_between(self.framing, *size, before, next));
        }
        let held = arrivals.count() - next;
        if held > 0 {
            *held_max = held.max(*held_max);
            let of_node = &mut self.held_by_node[packet.dst.index()];
            *of_node = held.max(*of_node);
            out.held(Bytes::new(held * u64::from(self.framing.payload)));
        }
        let was_asked = asked.take_if(|asked| *asked == packet.seq).is_some();
        if *size != UNKNOWN && next == self.framing.packets(*size) {
            self.held.record(*held_max);
            return Some(Arrival::Last);
        }
        Some(if was_asked && held > 0 { Arrival::AskedLast } else { Arrival::New })
    }

    /// A word to the source of a flow, without a route.
    pub(super) fn control(&self, key: FlowKey, kind: Kind, word: u64) -> Packet {
        let Receiver { src, dst, .. } = self.flows[key.index()];
        Packet {
            flow: key,
            src: dst,
            dst: src,
            kind,
            seq: word,
            wire: answer_bytes(kind),
            priority: DATA_PRIORITY,
            ..Packet::default()
        }
    }

    /// The first packet of a flow that is missing, and in the upper half a bitmap of those behind it
    /// that are there, up to the 32nd: those between are asked for.
    pub(super) fn missing(&mut self, key: FlowKey) -> u64 {
        let Receiver { arrivals, asked, .. } = &mut self.flows[key.index()];
        let first = arrivals.next();
        let (mut last, mut there) = (first, 0);
        for ahead in 0..u64::from(u32::BITS) {
            if arrivals.contains(first + 1 + ahead) {
                there |= 1 << (32 + ahead);
            } else {
                last = first + 1 + ahead;
            }
        }
        *asked = Some(last);
        first | there
    }

    /// How many packets of the first open flow from `src` to `dst` have arrived.
    #[cfg(test)]
    pub(super) fn received(&self, src: NodeId, dst: NodeId) -> u64 {
        let mut flows = self.flows.iter().filter(|flow| (flow.src, flow.dst) == (src, dst));
        flows.next().map_or(0, |flow| flow.arrivals.count())
    }

    /// Adds what other nodes have held.
    pub(super) fn add_held(&mut self, other: &Self) {
        self.held.merge(&other.held);
        for (most, &others) in self.held_by_node.iter_mut().zip(&other.held_by_node) {
            *most = (*most).max(others);
        }
    }

    /// Most packets held of one flow because others before them were missing.
    pub(super) fn held_max(&self) -> u64 {
        self.held_by_node.iter().copied().max().unwrap_or(0)
    }

    /// The same, exceeded by one flow in twenty of those that are over.
    pub(super) fn held_p95(&self) -> u64 {
        self.held.quantile(0.95).unwrap_or(0)
    }

    /// The same, exceeded at one node in twenty.
    pub(super) fn held_by_node_p95(&self) -> u64 {
        let mut nodes = Histogram::new();
        self.held_by_node.iter().for_each(|&held| nodes.record(held));
        nodes.quantile(0.95).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMING: Framing = Framing { payload: 1_000, header: 36 };

    /// A packet of a flow of `packets` to node `dst`.
    fn packet(key: u32, dst: u32, (seq, packets): (u64, u64)) -> Packet {
        Packet {
            flow: FlowKey::receivers(key),
            dst: NodeId::new(dst),
            seq,
            payload: 1_000,
            marks: if seq + 1 == packets { Marks::LAST } else { Marks::empty() },
            ..Packet::default()
        }
    }

    fn carry(receivers: &mut Receivers, (key, dst): (u32, u32), order: &[u64]) {
        let packets = order.len() as u64;
        receivers.open(&packet(key, dst, (order[0], packets)));
        for (place, &seq) in order.iter().enumerate() {
            let arrival =
                receivers.arrive(&packet(key, dst, (seq, packets)), &mut Outbox::default());
            assert_eq!(arrival == Some(Arrival::Last), place + 1 == order.len());
        }
        receivers.close(FlowKey::receivers(key));
    }

    #[test]
    fn a_flow_in_twenty_holds_more_than_the_95th_percentile() {
        let mut receivers = Receivers::new(FRAMING, 20);
        for key in 1..=20 {
            // The last flow's first packet comes behind its four others, all else in order.
            let order = if key == 20 { [1, 2, 3, 4, 0] } else { [0, 1, 2, 3, 4] };
            carry(&mut receivers, (key, key - 1), &order);
        }
        assert_eq!((receivers.held_p95(), receivers.held_max()), (0, 4));
        assert_eq!(receivers.held_by_node_p95(), 0);
        carry(&mut receivers, (21, 0), &[2, 1, 0]);
        // Two of 21 hold some: the first of them is the twentieth in order.
        assert_eq!((receivers.held_p95(), receivers.held_max()), (2, 4));
        // It went to the first node: two of 20 hold some.
        assert_eq!(receivers.held_by_node_p95(), 2);
    }

    /// What the packets of one flow cannot be is refused, and leaves no trace.
    #[test]
    fn packets_that_make_no_sense_are_refused() {
        let mut receivers = Receivers::new(FRAMING, 2);
        let mut out = Outbox::default();
        let good = packet(0, 1, (2, 9));
        receivers.open(&good);
        assert_eq!(receivers.arrive(&good, &mut out), Some(Arrival::New));
        let early_end = packet(0, 1, (1, 2));
        let refused = |receivers: &mut Receivers, packet: Packet, out: &mut Outbox| {
            out.drain().for_each(drop);
            assert_eq!(receivers.arrive(&packet, out), None, "{packet:?}");
            assert!(out.is_empty(), "{packet:?}");
        };
        refused(&mut receivers, early_end, &mut out);
        refused(&mut receivers, Packet { payload: 0, ..good }, &mut out);
        refused(&mut receivers, Packet { payload: 999, seq: 3, ..good }, &mut out);
        refused(&mut receivers, Packet { payload: 1_001, seq: 3, ..good }, &mut out);
        refused(&mut receivers, Packet { seq: 1 << 32, ..good }, &mut out);
        let last = Packet { payload: 400, ..packet(0, 1, (4, 5)) };
        assert_eq!(receivers.arrive(&last, &mut out), Some(Arrival::New));
        refused(&mut receivers, Packet { payload: 300, ..last }, &mut out);
        refused(&mut receivers, packet(0, 1, (5, 6)), &mut out);
        refused(&mut receivers, packet(0, 1, (5, 9)), &mut out);
        refused(&mut receivers, packet(0, 1, (4, 9)), &mut out);
        assert_eq!(receivers.arrive(&last, &mut out), Some(Arrival::Again));
    }
}
