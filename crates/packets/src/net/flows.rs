//! The flows that are open, and what the network remembers of each.

use kernel::{Bytes, Span, Time};
use rack::{Class, Flow, FlowId, NodeId};

use crate::packet::FlowKey;

/// How far a flow has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// Its place is unused.
    Free,
    /// Offered; its start is to come.
    Waiting,
    /// Under way.
    Open,
    /// Its last byte has arrived; its ends still talk.
    Complete,
    /// Over; packets of it may be left in the network.
    Closed,
    /// No flow: what neighbours tell each other, as long as the network stands.
    Standing,
}

/// An open flow.
#[derive(Clone, Debug)]
pub(crate) struct OpenFlow {
    pub(crate) flow: Flow,
    pub(crate) life: Life,
    /// Its packets in the network.
    pub(crate) packets: u32,
    /// Application bytes handed over.
    pub(crate) delivered: Bytes,
    /// Data packets that arrived whole, again or not.
    arrived: u64,
    /// Sums over them, in picoseconds from the flow's start: first bit sent, last bit received.
    sent: u128,
    received: u128,
    /// Their bytes on the wire.
    wire: u64,
}

/// All of them, in places that are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flows {
    places: Vec<OpenFlow>,
    free: Vec<FlowKey>,
    /// Flows offered that have not ended.
    pub(crate) open: u64,
}

/// Where the time of a flow's packets went: means, as sums over `count` packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Journey {
    pub(crate) count: u64,
    pub(crate) sent: u128,
    pub(crate) received: u128,
    pub(crate) wire: u64,
}

impl Flows {
    /// Gives a flow a place.
    pub(crate) fn open(&mut self, flow: &Flow) -> FlowKey {
        self.open += 1;
        let entry = OpenFlow {
            flow: *flow,
            life: Life::Waiting,
            packets: 0,
            delivered: Bytes::ZERO,
            arrived: 0,
            sent: 0,
            received: 0,
            wire: 0,
        };
        if let Some(key) = self.free.pop() {
            self.places[key.index()] = entry;
            return key;
        }
        self.places.push(entry);
        let place = u32::try_from(self.places.len() - 1).expect("fewer than 2^32 open flows");
        FlowKey::new(place)
    }

    /// Takes the first place for what neighbours tell each other.
    pub(crate) fn stand(&mut self) {
        assert!(self.places.is_empty(), "neighbours have the first place");
        let nobody = Flow {
            id: FlowId::new(u64::MAX),
            src: NodeId::new(0),
            dst: NodeId::new(0),
            size: Bytes::ZERO,
            start: Time::ZERO,
            class: Class::new(0),
        };
        let key = self.open(&nobody);
        debug_assert_eq!(key, FlowKey::NEIGHBOURS);
        self.places[key.index()].life = Life::Standing;
        self.open -= 1;
    }

    #[inline]
    pub(crate) fn get(&self, key: FlowKey) -> &OpenFlow {
        &self.places[key.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: FlowKey) -> &mut OpenFlow {
        &mut self.places[key.index()]
    }

    /// Asks for a flow ahead of its use.
    #[inline]
    pub(crate) fn prefetch(&self, key: FlowKey) {
        kernel::prefetch(&self.places, key.index());
    }

    /// How many places there are, used or not.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// A packet of the flow has left the network.
    #[inline]
    pub(crate) fn packet_gone(&mut self, key: FlowKey) {
        let flow = &mut self.places[key.index()];
        debug_assert!(flow.packets > 0, "flow {} has no packet left to lose", key.get());
        flow.packets -= 1;
        if flow.packets == 0 && flow.life == Life::Closed {
            self.release(key);
        }
    }

    /// The flow is over.
    pub(crate) fn close(&mut self, key: FlowKey) {
        let flow = &mut self.places[key.index()];
        assert!(
            !matches!(flow.life, Life::Free | Life::Closed),
            "flow {:?} is closed twice",
            flow.flow.id
        );
        flow.life = Life::Closed;
        if flow.packets == 0 {
            self.release(key);
        }
    }

    fn release(&mut self, key: FlowKey) {
        self.places[key.index()].life = Life::Free;
        self.free.push(key);
    }

    /// Packets of all flows in the network.
    pub(crate) fn packets(&self) -> u64 {
        self.places.iter().map(|flow| u64::from(flow.packets)).sum()
    }

    /// The keys of flows that have not ended, in order of place.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = FlowKey> + '_ {
        let is_open = |flow: &OpenFlow| matches!(flow.life, Life::Waiting | Life::Open);
        let keys = (0..).map(FlowKey::new);
        keys.zip(&self.places).filter(move |(_, flow)| is_open(flow)).map(|(key, _)| key)
    }
}

impl OpenFlow {
    /// A data packet sent at `sent` has arrived whole.
    #[inline]
    pub(crate) fn note_arrival(&mut self, sent: Time, now: Time, wire: u16) {
        let start = u128::from(self.flow.start.as_ps());
        self.arrived += 1;
        self.sent += u128::from(sent.as_ps()) - start;
        self.received += u128::from(now.as_ps()) - start;
        self.wire += u64::from(wire);
    }

    pub(crate) fn journey(&self) -> Journey {
        Journey { count: self.arrived, sent: self.sent, received: self.received, wire: self.wire }
    }
}

/// `total` picoseconds over `count`.
pub(crate) fn mean(total: u128, count: u64) -> Span {
    let mean = total / u128::from(count.max(1));
    Span::from_ps(u64::try_from(mean).expect("a mean is not above its largest value"))
}
