//! Destinations of flows: packets come by many ways and out of order (§5.2).

use kernel::{Bytes, Histogram};
use packets::{FlowKey, Framing, Outbox, Packet};
use transports::arrivals::{Arrivals, bytes_between};

/// A flow at its destination.
#[derive(Clone, Debug, Default)]
struct Receiver {
    size: Bytes,
    arrivals: Arrivals,
    /// Most packets held because others before them were missing.
    held_max: u64,
    /// The last packet that was asked for.
    asked: Option<u64>,
}

/// What a packet brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrival {
    /// It was the last that was missing.
    pub(super) is_last: bool,
    /// It was there before.
    pub(super) is_repeat: bool,
    /// It was the last that was asked for, and others are still missing before ones that came.
    pub(super) leaves_more: bool,
}

/// The destinations of all flows, by key.
#[derive(Clone, Debug)]
pub(super) struct Receivers {
    framing: Framing,
    flows: Vec<Receiver>,
    /// Of each flow that is over: most packets held because others before them were missing.
    held: Histogram,
    /// By node: the most of any flow to it.
    held_by_node: Vec<u64>,
}

impl Receivers {
    pub(super) fn new(framing: Framing, nodes: u32) -> Self {
        let held_by_node = vec![0; nodes as usize];
        Self { framing, flows: Vec::new(), held: Histogram::new(), held_by_node }
    }

    /// A flow of `size` will come.
    pub(super) fn start(&mut self, key: FlowKey, size: Bytes) {
        if self.flows.len() <= key.index() {
            self.flows.resize_with(key.index() + 1, Receiver::default);
        }
        let receiver = &mut self.flows[key.index()];
        receiver.size = size;
        receiver.arrivals.clear();
        receiver.held_max = 0;
        receiver.asked = None;
    }

    /// A packet has come: what is now in order goes to the application.
    pub(super) fn arrive(&mut self, packet: &Packet, out: &mut Outbox) -> Arrival {
        let Receiver { size, arrivals, held_max, asked } = &mut self.flows[packet.flow.index()];
        let before = arrivals.next();
        if !arrivals.insert(packet.seq) {
            return Arrival { is_last: false, is_repeat: true, leaves_more: false };
        }
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
        let is_last = next == self.framing.packets(*size);
        if is_last {
            self.held.record(*held_max);
        }
        let leaves_more = asked.take_if(|asked| *asked == packet.seq).is_some() && held > 0;
        Arrival { is_last, is_repeat: false, leaves_more }
    }

    /// Whether all of a flow is there.
    pub(super) fn has_all(&self, key: FlowKey) -> bool {
        let Receiver { size, arrivals, .. } = &self.flows[key.index()];
        arrivals.next() == self.framing.packets(*size)
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

    /// How many packets of each flow have arrived, by key.
    #[cfg(test)]
    pub(super) fn received(&self) -> impl Iterator<Item = u64> + '_ {
        self.flows.iter().map(|flow| flow.arrivals.count())
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
    use rack::NodeId;

    use super::*;

    #[test]
    fn a_flow_in_twenty_holds_more_than_the_95th_percentile() {
        let mut receivers = Receivers::new(Framing { payload: 1_000, header: 36 }, 20);
        let mut out = Outbox::default();
        for key in 1..=20 {
            let dst = NodeId::new(key - 1);
            // The last flow's first packet comes behind its four others, all else in order.
            let order = if key == 20 { [1, 2, 3, 4, 0] } else { [0, 1, 2, 3, 4] };
            let flow = FlowKey::new(key);
            receivers.start(flow, Bytes::new(5_000));
            for seq in order {
                let arrival =
                    receivers.arrive(&Packet { flow, dst, seq, ..Packet::default() }, &mut out);
                assert_eq!(arrival.is_last, seq == order[4]);
            }
        }
        assert_eq!((receivers.held_p95(), receivers.held_max()), (0, 4));
        assert_eq!(receivers.held_by_node_p95(), 0);
        receivers.start(FlowKey::new(21), Bytes::new(3_000));
        for seq in [2, 1, 0] {
            let flow = FlowKey::new(21);
            receivers.arrive(&Packet { flow, seq, ..Packet::default() }, &mut out);
        }
        // Two of 21 hold some: the first of them is the twentieth in order.
        assert_eq!((receivers.held_p95(), receivers.held_max()), (2, 4));
        // It went to the first node: two of 20 hold some.
        assert_eq!(receivers.held_by_node_p95(), 2);
    }
}
