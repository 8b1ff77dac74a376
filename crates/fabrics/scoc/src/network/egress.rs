//! The side of a leaf where packets go out to its nodes: who may send to them, and how segments become
//! packets again.
//!
//! Models: SCOC §6.A (M50): end-to-end credits. A leaf grants whole packets, for each of its nodes the
//! asking leaves in turn, as long as what is granted and has not gone on the node's line stays
//! within a bound: so spines never hold more for a node than that, and there is always room for what
//! comes. Packets of a queue go on in order, however their segments were sprayed.

use ::rack::NodeId;
use kernel::{Ring, Time};
use packets::Packet;
use switching::BitRows;
use switching::arbiters::RoundRobin;

use super::message::{NUMBERS, Segment};

/// What a leaf has granted for one of its nodes.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// Bytes granted that have not gone on the node's line.
    reserved: u32,
    turn: RoundRobin,
}

/// A packet that was granted.
#[derive(Clone, Copy, Debug, Default)]
struct Assembly {
    size: u16,
    /// Bytes to come.
    left: u16,
    /// Whether its first segment has brought its header, and that.
    has_header: bool,
    header: Packet,
    /// When the last bit so far is there.
    whole: Time,
}

/// The packets of one queue of one leaf, as their destination's leaf sees them.
#[derive(Clone, Debug, Default)]
struct Pair {
    /// Sizes of packets that ask.
    asking: Ring<u16>,
    /// Packets that were granted and have not gone on, in order.
    assembling: Ring<Assembly>,
    /// Number of the first of them, modulo [`NUMBERS`].
    first: u32,
    /// Until when packets that went on have come.
    until: Time,
}

/// A packet that is whole, and before which none of its queue is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Whole {
    pub(super) packet: Packet,
    /// When its last bit is there.
    pub(super) at: Time,
}

/// All leaves.
#[derive(Clone, Debug)]
pub(super) struct Egress {
    leaves: usize,
    /// Most bytes granted for a node.
    credit: u32,
    ports: Vec<Port>,
    /// Row `node`: leaves that ask.
    asking: BitRows,
    /// `node * leaves + leaf`.
    pairs: Vec<Pair>,
}

impl Egress {
    pub(super) fn new(nodes: usize, leaves: usize, credit: u32) -> Self {
        Self {
            leaves,
            credit,
            ports: vec![Port::default(); nodes],
            asking: BitRows::new(nodes, leaves),
            pairs: vec![Pair::default(); nodes * leaves],
        }
    }

    /// Whether a packet of this size will ever be granted.
    pub(super) fn may_ask(&self, size: u16) -> bool {
        size > 0 && u32::from(size) <= self.credit
    }

    /// A leaf has another packet for a node.
    pub(super) fn request(&mut self, leaf: usize, node: NodeId, size: u16) {
        self.pairs[node.index() * self.leaves + leaf].asking.push(size);
        self.asking.set(node.index(), leaf);
    }

    /// The next leaf that may send a node a packet, if there is credit left.
    pub(super) fn grant(&mut self, node: NodeId) -> Option<(usize, u16)> {
        let port = &mut self.ports[node.index()];
        let leaf = port.turn.choose(self.asking.row(node.index()))?;
        let pair = &mut self.pairs[node.index() * self.leaves + leaf];
        let size = *pair.asking.front().expect("only a leaf with a packet asks");
        let is_full = pair.assembling.len() as u32 >= NUMBERS / 2;
        if is_full || port.reserved + u32::from(size) > self.credit {
            return None;
        }
        pair.asking.pop();
        if pair.asking.is_empty() {
            self.asking.clear(node.index(), leaf);
        }
        port.reserved += u32::from(size);
        port.turn.point_beyond(leaf, self.leaves);
        pair.assembling.push(Assembly { size, left: size, ..Assembly::default() });
        Some((leaf, size))
    }

    /// A segment is there at `whole`. False: it is of no packet that was granted, or more of it than is
    /// missing.
    #[must_use]
    pub(super) fn arrived(&mut self, segment: &Segment, whole: Time) -> bool {
        let Segment { leaf, node, number, size, header } = *segment;
        let pair = &mut self.pairs[node.index() * self.leaves + usize::from(leaf)];
        let place = (number + NUMBERS - pair.first) % NUMBERS;
        let Some(assembly) = pair.assembling.get_mut(place as usize) else { return false };
        // Without its header a packet is not whole.
        let is_headless = size == assembly.left && !assembly.has_header && header.is_none();
        if size > assembly.left || is_headless || assembly.has_header && header.is_some() {
            return false;
        }
        assembly.left -= size;
        if let Some(header) = header {
            (assembly.has_header, assembly.header) = (true, header);
        }
        assembly.whole = assembly.whole.max(whole);
        true
    }

    /// The next packet of a queue that can go on.
    pub(super) fn next_whole(&mut self, leaf: usize, node: NodeId) -> Option<Whole> {
        let pair = &mut self.pairs[node.index() * self.leaves + leaf];
        let Assembly { size, header, whole, .. } =
            *pair.assembling.front().filter(|front| front.left == 0)?;
        pair.assembling.pop();
        pair.first = (pair.first + 1) % NUMBERS;
        // The last bit of one before it may come later than its own.
        pair.until = pair.until.max(whole);
        Some(Whole { packet: Packet { wire: size, ..header }, at: pair.until })
    }

    /// A packet goes on the line of a node.
    pub(super) fn released(&mut self, node: NodeId, size: u16) {
        let reserved = &mut self.ports[node.index()].reserved;
        debug_assert!(*reserved >= u32::from(size), "more leaves than was granted");
        *reserved -= u32::from(size);
    }

    /// Packets granted that have not gone on.
    pub(super) fn assembling(&self) -> usize {
        self.pairs.iter().map(|pair| pair.assembling.len()).sum()
    }

    /// Whether all that was granted has gone on the nodes' lines.
    pub(super) fn is_released(&self) -> bool {
        self.ports.iter().all(|port| port.reserved == 0)
    }

    /// Packets that ask.
    pub(super) fn asks(&self) -> usize {
        self.pairs.iter().map(|pair| pair.asking.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId::new(1);

    /// A segment of a packet of leaf 0 that has this number; the first tells its sequence number.
    fn segment(number: u32, size: u16, sequence: Option<u64>) -> Segment {
        let header = sequence.map(|seq| Packet { seq, dst: NODE, ..Packet::default() });
        Segment { leaf: 0, node: NODE, number, size, header }
    }

    #[test]
    fn leaves_are_granted_in_turn_within_the_credit() {
        let mut egress = Egress::new(2, 3, 3_000);
        for leaf in [0, 0, 0, 2] {
            egress.request(leaf, NODE, 1_000);
        }
        let granted: Vec<_> = std::iter::from_fn(|| egress.grant(NODE)).collect();
        assert_eq!(granted, [(0, 1_000), (2, 1_000), (0, 1_000)]);
        egress.released(NODE, 1_000);
        assert_eq!(egress.grant(NODE), Some((0, 1_000)));
        assert_eq!(egress.grant(NODE), None);
    }

    #[test]
    fn packets_of_a_queue_go_on_in_order_and_not_before_their_last_bit() {
        let mut egress = Egress::new(2, 1, 9_000);
        (0..2).for_each(|_| egress.request(0, NODE, 500));
        assert!(egress.grant(NODE).is_some() && egress.grant(NODE).is_some());
        let (early, late) = (Time::from_ps(10), Time::from_ps(20));
        assert!(egress.arrived(&segment(1, 500, Some(71)), early));
        assert_eq!(egress.next_whole(0, NODE), None);
        assert!(egress.arrived(&segment(0, 300, None), late));
        assert_eq!(egress.next_whole(0, NODE), None);
        assert!(egress.arrived(&segment(0, 200, Some(70)), early));
        let whole = |seq| {
            let packet = Packet { seq, dst: NODE, wire: 500, ..Packet::default() };
            Some(Whole { packet, at: late })
        };
        assert_eq!(egress.next_whole(0, NODE), whole(70));
        assert_eq!(egress.next_whole(0, NODE), whole(71));
        assert_eq!(egress.next_whole(0, NODE), None);
        assert_eq!(egress.assembling(), 0);
    }

    #[test]
    fn segments_that_nobody_granted_or_asked_for_again_are_told() {
        let mut egress = Egress::new(2, 1, 9_000);
        assert!(!egress.arrived(&segment(0, 500, Some(1)), Time::ZERO), "nothing was granted");
        egress.request(0, NODE, 500);
        assert!(egress.grant(NODE).is_some());
        let rows = [
            (segment(1, 500, Some(1)), false, "another number"),
            (segment(0, 501, Some(1)), false, "too long"),
            (segment(0, 500, None), false, "a whole packet without its header"),
            (segment(0, 300, Some(1)), true, "the first"),
            (segment(0, 200, Some(1)), false, "the first once more"),
            (segment(0, 201, None), false, "more than is missing"),
            (segment(0, 200, None), true, "the rest"),
            (segment(0, 1, None), false, "it is whole"),
        ];
        for (segment, is_expected, what) in rows {
            assert_eq!(egress.arrived(&segment, Time::ZERO), is_expected, "{what}");
        }
        assert_eq!(egress.next_whole(0, NODE).unwrap().packet.seq, 1);
    }
}
