//! What a leaf does with a node's packet, with what other leaves tell it, and with segments.

use ::rack::NodeId;
use packets::{Hop, Marks, Orders, Packet, Verdict};

use super::{Switches, Task};
use crate::network::message::{Message, Room, Say, Segment};

/// Switches of the inside that a segment crosses: to hosts a rack is one switch, whichever way a packet
/// takes through it.
const INSIDE: u8 = 2;

impl Switches {
    /// A node's packet has come to its leaf.
    pub(super) fn enters(
        &mut self,
        leaf: usize,
        hop: &Hop,
        packet: &mut Packet,
        orders: &mut Orders,
    ) -> Verdict {
        let waiting = self.ingress.bytes(leaf, packet.dst);
        let with_it = waiting + u32::from(packet.wire);
        if with_it > self.queue_limit {
            self.counts.dropped += 1;
            return Verdict::Drop;
        }
        if self.mark_from > 0 && waiting > self.mark_from && packet.marks.contains(Marks::ECT) {
            packet.marks.insert(Marks::CE);
            self.counts.marked += 1;
        }
        self.ingress.take_room(leaf, packet);
        self.counts.queue_max = self.counts.queue_max.max(with_it);
        self.counts.entered += 1;
        let (rest, _) = self.on_line(packet.wire);
        let task = Task::Store { leaf: leaf as u16, place: self.waiting.put(*packet) };
        self.schedule(orders.now() + rest + self.leaf_latency, task, hop.switch, orders);
        Verdict::Absorb
    }

    /// A node's packet is in its queue: it asks.
    pub(super) fn store(&mut self, leaf: usize, packet: Packet, orders: &mut Orders) {
        self.counts.stored += 1;
        let Packet { dst, wire: size, .. } = packet;
        self.ingress.store(leaf, packet);
        let there = self.layout.leaf_of(dst);
        if there == leaf {
            self.egress.request(leaf, dst, size);
            return self.grant(dst, orders);
        }
        let (leaf, node) = (leaf as u16, dst.get() as u16);
        let message = Message { say: Say::Request, leaf, node, size };
        self.counts.requests += 1;
        self.tell(usize::from(leaf), there, message, orders);
    }

    /// Gives a node's credit to those who ask.
    pub(super) fn grant(&mut self, node: NodeId, orders: &mut Orders) {
        let here = self.layout.leaf_of(node);
        while let Some((leaf, size)) = self.egress.grant(node) {
            if leaf == here {
                self.pass_locally(leaf, node, size, orders);
                continue;
            }
            let message =
                Message { say: Say::Credit, leaf: leaf as u16, node: node.get() as u16, size };
            self.counts.credits += 1;
            self.tell(here, leaf, message, orders);
        }
    }

    /// A packet between two nodes of a leaf goes on.
    fn pass_locally(&mut self, leaf: usize, node: NodeId, size: u16, orders: &mut Orders) {
        let granted = self.ingress.granted(leaf, node, size);
        let (packet, number) = granted.expect("a leaf asks itself for what it has");
        let header = Some(packet);
        let segment = Segment { leaf: leaf as u16, node, number, size, header };
        let is_expected = self.egress.arrived(&segment, orders.now());
        assert!(is_expected, "{segment:?} was granted");
        self.go_on(leaf, node, orders);
    }

    /// Sends a message from leaf to leaf, or keeps it until its way has room.
    fn tell(&mut self, from: usize, to: usize, message: Message, orders: &mut Orders) {
        let spine = (from + to) % self.layout.spines;
        let packet = message.packet(self.layout.node_of(from), self.layout.node_of(to));
        let line = from * self.layout.spines + spine;
        self.outbox[line].push(packet);
        self.flush(from, spine, orders);
    }

    fn flush(&mut self, leaf: usize, spine: usize, orders: &mut Orders) {
        let line = leaf * self.layout.spines + spine;
        while self.message_credits[line] > 0
            && let Some(packet) = self.outbox[line].pop()
        {
            self.message_credits[line] -= 1;
            orders.send(self.layout.uplink(leaf, spine), packet);
        }
    }

    /// Lets a leaf put segments on its lines.
    pub(super) fn spray(&mut self, leaf: usize, orders: &mut Orders) {
        while let Some((segment, spine)) = self.ingress.next_segment(leaf) {
            self.counts.segments += 1;
            orders.send(self.layout.uplink(leaf, spine), segment.packet(self.layout.node_of(leaf)));
        }
    }

    /// A leaf hears of room in an input of a spine.
    pub(super) fn hear_of_room(
        &mut self,
        (leaf, spine): (usize, usize),
        Room { is_control, count }: Room,
        orders: &mut Orders,
    ) {
        let (count, places) = (u32::from(count), self.places[usize::from(is_control)]);
        let is_expected = if is_control {
            let credits = &mut self.message_credits[leaf * self.layout.spines + spine];
            let (now, places) = (*credits + count, places.unwrap_or(u32::MAX));
            *credits = now.min(places);
            now <= places
        } else {
            self.ingress.credit(leaf, spine, count, places.unwrap_or(u32::MAX))
        };
        self.counts.unexpected += u64::from(!is_expected);
        match is_control {
            true => self.flush(leaf, spine, orders),
            false => self.spray(leaf, orders),
        }
    }

    /// A leaf hears a message.
    pub(super) fn hear(&mut self, here: usize, packet: &Packet, orders: &mut Orders) {
        if self.act_on_message(here, packet, orders).is_none() {
            self.counts.unexpected += 1;
        }
    }

    /// None: it makes no sense here.
    fn act_on_message(&mut self, here: usize, packet: &Packet, orders: &mut Orders) -> Option<()> {
        let Message { say, leaf, node, size } = Message::of(packet)?;
        let (leaf, node) = (usize::from(leaf), NodeId::new(node.into()));
        let there = self.layout.known_leaf_of(node)?;
        let (asks, keeps) = (there == here && leaf != here, leaf == here && there != here);
        match say {
            Say::Request if asks && leaf < self.layout.leaves && self.egress.may_ask(size) => {
                self.counts.requests_heard += 1;
                self.egress.request(leaf, node, size);
                self.grant(node, orders);
            }
            Say::Credit if keeps => {
                let (packet, number) = self.ingress.granted(leaf, node, size)?;
                self.counts.credits_heard += 1;
                self.ingress.send(leaf, packet, number);
                self.spray(leaf, orders);
            }
            Say::Acknowledgment if keeps => {
                if !self.ingress.acknowledged(leaf, node, size) {
                    return None;
                }
                self.counts.acknowledgments_heard += 1;
            }
            _ => return None,
        }
        Some(())
    }

    /// A segment is at the leaf of its node.
    pub(super) fn gather(&mut self, here: usize, packet: &Packet, orders: &mut Orders) {
        let leaf_of = |node| self.layout.known_leaf_of(node).map(|leaf| leaf as u16);
        let segment = Segment::of(packet, leaf_of);
        let fits = |segment: &Segment| {
            let leaf = usize::from(segment.leaf);
            leaf != here && leaf < self.layout.leaves && leaf_of(segment.node) == Some(here as u16)
        };
        let Some(mut segment) = segment.filter(fits) else {
            self.counts.unexpected += 1;
            return;
        };
        if let Some(header) = &mut segment.header {
            header.hops = header.hops.saturating_sub(INSIDE);
        }
        let (rest, _) = self.on_line(segment.size);
        if !self.egress.arrived(&segment, orders.now() + rest) {
            self.counts.unexpected += 1;
            return;
        }
        self.counts.segments_heard += 1;
        self.go_on(usize::from(segment.leaf), segment.node, orders);
    }

    /// Lets packets of a queue go on that are whole and whose turn it is.
    fn go_on(&mut self, leaf: usize, node: NodeId, orders: &mut Orders) {
        let there = self.layout.leaf_of(node);
        while let Some(whole) = self.egress.next_whole(leaf, node) {
            self.counts.whole += 1;
            let size = whole.packet.wire;
            let place = self.waiting.put(whole.packet);
            let task = Task::Deliver { place, port: self.layout.node_port(node) };
            let switch = self.layout.leaf_vertex(there);
            self.schedule(whole.at + self.leaf_latency, task, switch, orders);
            if there == leaf {
                let is_expected = self.ingress.acknowledged(leaf, node, size);
                assert!(is_expected, "{size} B of {node:?} were in this leaf");
                continue;
            }
            let (leaf, node) = (leaf as u16, node.get() as u16);
            let message = Message { say: Say::Acknowledgment, leaf, node, size };
            self.counts.acknowledgments += 1;
            self.tell(there, usize::from(leaf), message, orders);
        }
    }
}
