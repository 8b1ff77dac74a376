//! What a leaf does with a node's packet, with what other leaves tell it, and with segments.

use ::rack::NodeId;
use packets::{Hop, Marks, Orders, Packet, Verdict};

use super::{Switches, Task};
use crate::network::ingress::Held;
use crate::network::message::{Message, Say, Segment};

impl Switches {
    /// A node's packet has come to its leaf.
    pub(super) fn enters(
        &mut self,
        leaf: usize,
        hop: &Hop,
        packet: &mut Packet,
        orders: &mut Orders,
    ) -> Verdict {
        let held = Held { packet: hop.handle.get(), dst: packet.dst, size: packet.wire };
        let waiting = self.ingress.bytes(leaf, held.dst);
        if waiting + u32::from(held.size) > self.queue_limit {
            self.counts.dropped += 1;
            return Verdict::Drop;
        }
        if self.mark_from > 0 && waiting > self.mark_from && packet.marks.contains(Marks::ECT) {
            packet.marks.insert(Marks::CE);
            self.counts.marked += 1;
        }
        self.ingress.take_room(leaf, held);
        self.counts.queue_max = self.counts.queue_max.max(waiting + u32::from(held.size));
        self.remember(hop.handle);
        self.kept += 1;
        self.entering += 1;
        let (rest, _) = self.on_line(held.size);
        let task = Task::Store { leaf: leaf as u16, held };
        self.schedule(orders.now() + rest + self.leaf_latency, task, hop.switch, orders);
        Verdict::Keep
    }

    /// A node's packet is in its queue: it asks.
    pub(super) fn store(&mut self, leaf: usize, held: Held, orders: &mut Orders) {
        self.entering -= 1;
        self.ingress.store(leaf, held);
        let there = self.layout.leaf_of(held.dst);
        if there == leaf {
            self.egress.request(leaf, held.dst, held.size);
            return self.grant(held.dst, orders);
        }
        let (leaf, node) = (leaf as u16, held.dst.get() as u16);
        let message = Message { say: Say::Request, leaf, node, size: held.size };
        self.counts.requests += 1;
        self.tell(usize::from(leaf), there, message, orders);
    }

    /// Gives a node's credit to those who ask.
    pub(super) fn grant(&mut self, node: NodeId, orders: &mut Orders) {
        let here = self.layout.leaf_of(node);
        while let Some((leaf, size)) = self.egress.grant(node) {
            if leaf == here {
                self.pass_locally(leaf, node, orders);
                continue;
            }
            let message =
                Message { say: Say::Credit, leaf: leaf as u16, node: node.get() as u16, size };
            self.counts.credits += 1;
            self.tell(here, leaf, message, orders);
        }
    }

    /// A packet between two nodes of a leaf goes on.
    fn pass_locally(&mut self, leaf: usize, node: NodeId, orders: &mut Orders) {
        let (held, number) = self.ingress.granted(leaf, node);
        let packet = (number, held.packet);
        self.egress.arrived((leaf, node), packet, held.size, orders.now());
        self.go_on(leaf, node, orders);
    }

    /// Sends a message from leaf to leaf, or keeps it until its way has room.
    fn tell(&mut self, from: usize, to: usize, message: Message, orders: &mut Orders) {
        let spine = (from + to) % self.layout.spines;
        let packet = message.packet(self.layout.node_of(from), self.layout.node_of(to));
        self.under_way += 1;
        let line = from * self.layout.spines + spine;
        self.outbox[line].push(packet);
        self.flush(from, spine, orders);
    }

    pub(super) fn flush(&mut self, leaf: usize, spine: usize, orders: &mut Orders) {
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
            self.under_way += 1;
            let packet = segment.packet(self.layout.node_of(leaf));
            orders.send(self.layout.uplink(leaf, spine), packet);
        }
    }

    /// A leaf hears a message.
    pub(super) fn hear(&mut self, packet: &Packet, orders: &mut Orders) {
        let Message { say, leaf, node, size } = Message::of(packet);
        self.under_way -= 1;
        let (leaf, node) = (usize::from(leaf), NodeId::new(node.into()));
        match say {
            Say::Request => {
                self.egress.request(leaf, node, size);
                self.grant(node, orders);
            }
            Say::Credit => {
                let (held, number) = self.ingress.granted(leaf, node);
                self.ingress.send(leaf, held, number);
                self.spray(leaf, orders);
            }
            Say::Acknowledgment => self.ingress.acknowledged(leaf, node, size),
        }
    }

    /// A segment is at the leaf of its node.
    pub(super) fn gather(&mut self, packet: &Packet, orders: &mut Orders) {
        let Segment { leaf, node, number, packet, size } = Segment::of(packet);
        self.under_way -= 1;
        let (rest, _) = self.on_line(size);
        let pair = (usize::from(leaf), node);
        self.egress.arrived(pair, (number, packet), size, orders.now() + rest);
        self.go_on(usize::from(leaf), node, orders);
    }

    /// Lets packets of a queue go on that are whole and whose turn it is.
    fn go_on(&mut self, leaf: usize, node: NodeId, orders: &mut Orders) {
        let there = self.layout.leaf_of(node);
        while let Some(whole) = self.egress.next_whole(leaf, node) {
            self.leaving += 1;
            let task = Task::Deliver(self.handle(whole.packet), self.layout.node_port(node));
            let switch = self.layout.leaf_vertex(there);
            self.schedule(whole.at + self.leaf_latency, task, switch, orders);
            if there == leaf {
                self.ingress.acknowledged(leaf, node, whole.size);
                continue;
            }
            let (from, size) = (leaf as u16, whole.size);
            let node = node.get() as u16;
            let message = Message { say: Say::Acknowledgment, leaf: from, node, size };
            self.counts.acknowledgments += 1;
            self.tell(there, leaf, message, orders);
        }
    }
}
