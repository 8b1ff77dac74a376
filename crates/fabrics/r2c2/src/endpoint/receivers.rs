//! Destinations of flows: packets come by many ways and out of order (§5.2).

use kernel::Bytes;
use packets::{FlowKey, Framing, Outbox, Packet};
use transports::arrivals::{Arrivals, bytes_between};

/// A flow at its destination.
#[derive(Clone, Debug, Default)]
struct Receiver {
    size: Bytes,
    arrivals: Arrivals,
}

/// What a packet brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrival {
    /// It was the last that was missing.
    pub(super) is_last: bool,
    /// It was there before.
    pub(super) is_repeat: bool,
}

/// The destinations of all flows, by key.
#[derive(Clone, Debug)]
pub(super) struct Receivers {
    framing: Framing,
    flows: Vec<Receiver>,
    /// Most packets held of one flow because others before them were missing.
    held_max: u64,
}

impl Receivers {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, flows: Vec::new(), held_max: 0 }
    }

    /// A flow of `size` will come.
    pub(super) fn start(&mut self, key: FlowKey, size: Bytes) {
        if self.flows.len() <= key.index() {
            self.flows.resize_with(key.index() + 1, Receiver::default);
        }
        let receiver = &mut self.flows[key.index()];
        receiver.size = size;
        receiver.arrivals.clear();
    }

    /// A packet has come: what is now in order goes to the application.
    pub(super) fn arrive(&mut self, packet: &Packet, out: &mut Outbox) -> Arrival {
        let Receiver { size, arrivals } = &mut self.flows[packet.flow.index()];
        let before = arrivals.next();
        if !arrivals.insert(packet.seq) {
            return Arrival { is_last: false, is_repeat: true };
        }
        let next = arrivals.next();
        if next > before {
            out.delivered(packet.flow, bytes_between(self.framing, *size, before, next));
        }
        let held = arrivals.count() - next;
        if held > 0 {
            self.held_max = self.held_max.max(held);
            out.held(Bytes::new(held * u64::from(self.framing.payload)));
        }
        Arrival { is_last: next == self.framing.packets(*size), is_repeat: false }
    }

    /// Whether all of a flow is there.
    pub(super) fn has_all(&self, key: FlowKey) -> bool {
        let Receiver { size, arrivals } = &self.flows[key.index()];
        arrivals.next() == self.framing.packets(*size)
    }

    /// The first packet of a flow that is missing, and in the upper half a bitmap of those behind it
    /// that are there, up to the 32nd.
    pub(super) fn missing(&self, key: FlowKey) -> u64 {
        let arrivals = &self.flows[key.index()].arrivals;
        let first = arrivals.next();
        let there = (0..u64::from(u32::BITS)).filter(|ahead| arrivals.contains(first + 1 + ahead));
        first | there.map(|ahead| 1 << (32 + ahead)).sum::<u64>()
    }

    /// How many packets of each flow have arrived, by key.
    #[cfg(test)]
    pub(super) fn received(&self) -> impl Iterator<Item = u64> + '_ {
        self.flows.iter().map(|flow| flow.arrivals.count())
    }

    /// Most packets held of one flow because others before them were missing.
    pub(super) fn held_max(&self) -> u64 {
        self.held_max
    }
}
