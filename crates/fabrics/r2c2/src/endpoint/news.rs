//! Broadcasts: how every node comes to know of every flow (§3.2).
//!
//! A broadcast goes by one of its source's trees; each node passes it on to its children there and
//! enters what it says in its own view. A node whose queue has no room for a copy tells the source,
//! which sends the broadcast again by another tree.

use kernel::{Stream, Time};
use packets::{FlowKey, Kind, Loss, Outbox, Packet};
use rack::NodeId;
use rack::topology::Vertex;
use serde::Serialize;

use crate::broadcast::Fib;
use crate::config::Plan;
use crate::rates::{Course, Terms};
use crate::routing::{Protocol, Routes};
use crate::view::{Broadcast, Broadcasts, Event, RecordId, Views};
use crate::wire;

use super::repeats::Repeats;
use super::streams;

/// Bytes of a broadcast, and of a notification.
const SHORT_BYTES: u16 = wire::SHORT_BYTES as u16;

/// What is announced of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Allocation {
    /// Where it goes, and how.
    pub(super) course: Course,
    pub(super) terms: Terms,
    /// When it started.
    pub(super) since: Time,
    /// Whose it is: the flow's class.
    pub(super) tenant: u32,
}

fn vertex(node: NodeId) -> Vertex {
    Vertex::new(node.get())
}

/// What became of broadcasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct Counts {
    /// Sent by sources, those sent again too.
    pub(super) sent: u64,
    /// Copies put on links.
    pub(super) copies: u64,
    /// Copies that were lost.
    pub(super) lost: u64,
    /// Broadcasts sent again because a queue had no room for a copy.
    pub(super) repeated: u64,
}

/// What nodes know, and what they tell each other.
#[derive(Clone, Debug)]
pub(super) struct News {
    pub(super) views: Views<Allocation>,
    broadcasts: Broadcasts,
    trees: Fib,
    /// By node: the tree that its next broadcast goes by.
    next_tree: Vec<u8>,
    routes: Routes,
    draws: Vec<Stream>,
    priority: u8,
    repeats: Repeats,
    counts: Counts,
}

impl News {
    pub(super) fn new(plan: &Plan, trees: Fib, seed: u64) -> Self {
        let nodes = plan.nodes();
        Self {
            views: Views::new(nodes),
            broadcasts: Broadcasts::default(),
            trees,
            next_tree: vec![0; nodes as usize],
            routes: plan.routes.clone(),
            draws: streams(nodes, seed, "r2c2/notifications"),
            priority: plan.config.broadcast_priority,
            repeats: Repeats::new(nodes, plan.config.recovery.pause),
            counts: Counts::default(),
        }
    }

    /// From now on broadcasts go by other trees, and notifications by other routes.
    pub(super) fn reroute(&mut self, trees: Fib, routes: Routes) {
        (self.trees, self.routes) = (trees, routes);
        for copy in self.repeats.give_up() {
            self.broadcasts.copied(copy.seq as u32, 0, &mut self.views);
        }
    }

    /// A flow starts.
    pub(super) fn start(
        &mut self,
        source: NodeId,
        allocation: Allocation,
        out: &mut Outbox,
    ) -> RecordId {
        let record = self.views.add(source, allocation.course.destination, allocation);
        self.announce(source, Event::Start(record), out);
        record
    }

    /// A flow is over.
    pub(super) fn finish(&mut self, source: NodeId, record: RecordId, out: &mut Outbox) {
        self.announce(source, Event::Finish(record), out);
        self.views.retire(record);
    }

    /// A flow is to be treated in another way.
    pub(super) fn change(
        &mut self,
        source: NodeId,
        old: RecordId,
        allocation: Allocation,
        out: &mut Outbox,
    ) -> RecordId {
        let record = self.views.add(source, allocation.course.destination, allocation);
        self.announce(source, Event::Change(old, record), out);
        self.views.retire(old);
        record
    }

    /// Tells all nodes, the source first.
    pub(super) fn announce(&mut self, source: NodeId, event: Event, out: &mut Outbox) {
        event.enter(source.get(), &mut self.views);
        self.broadcast(source, event, out);
    }

    fn broadcast(&mut self, source: NodeId, event: Event, out: &mut Outbox) {
        let next = &mut self.next_tree[source.index()];
        let tree = *next;
        *next = (tree + 1) % self.trees.trees();
        let wire = match &event {
            Event::Routes(pairs) => {
                (wire::batch::HEADER_BYTES + wire::batch::PAIR_BYTES * pairs.len()) as u16
            }
            _ => SHORT_BYTES,
        };
        let copies = self.trees.children(source, tree, vertex(source)).count() as u32;
        let broadcast = Broadcast { event, source, tree, wire };
        self.counts.sent += 1;
        if copies > 0 {
            let id = self.broadcasts.send(broadcast, copies, &mut self.views);
            self.pass_on(source, id, out);
        }
    }

    /// Puts a copy of a broadcast on the links to the children of `node`. How many there are.
    fn pass_on(&mut self, node: NodeId, id: u32, out: &mut Outbox) -> u32 {
        let Broadcast { source, tree, wire, .. } = *self.broadcasts.get(id);
        let copy = Packet {
            flow: FlowKey::NEIGHBOURS,
            src: node,
            kind: Kind::Notice,
            seq: id.into(),
            wire,
            priority: self.priority,
            ..Packet::default()
        };
        let mut copies = 0;
        for port in self.trees.children(source, tree, vertex(node)) {
            out.tell(port, copy);
            copies += 1;
        }
        self.counts.copies += u64::from(copies);
        copies
    }

    /// `node` hears a neighbour: by whom it is told of flows, and of which other routing.
    pub(super) fn hear(
        &mut self,
        node: NodeId,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Option<(NodeId, Option<Event>)> {
        if packet.kind == Kind::Nack {
            self.pass_notification(node, packet, out);
            return None;
        }
        let id = packet.seq as u32;
        let Broadcast { source, ref event, .. } = *self.broadcasts.get(id);
        event.enter(node.get(), &mut self.views);
        let told = matches!(event, Event::Routes(_)).then(|| event.clone());
        let more = self.pass_on(node, id, out);
        self.broadcasts.copied(id, more, &mut self.views);
        Some((source, told))
    }

    /// What `packet.src` told its neighbour is lost.
    pub(super) fn unheard(&mut self, packet: &Packet, why: Loss, out: &mut Outbox) {
        self.counts.lost += 1;
        if why == Loss::Link {
            return self.repeats.copy(*packet, out);
        }
        let id = packet.seq as u32;
        let notified = packet.kind == Kind::Notice && self.notify(packet.src, id, out);
        self.broadcasts.copied(id, u32::from(notified), &mut self.views);
    }

    /// Lets `node`, which has dropped a copy, tell the source. True if word is on its way.
    fn notify(&mut self, node: NodeId, id: u32, out: &mut Outbox) -> bool {
        let source = self.broadcasts.get(id).source;
        if node == source {
            self.repeat_later(id, out);
            return false;
        }
        let draw = &mut self.draws[node.index()];
        let Some(route) = self.routes.draw(Protocol::Rps, node, source, draw) else { return false };
        let word = Packet {
            flow: FlowKey::NEIGHBOURS,
            src: node,
            kind: Kind::Nack,
            seq: id.into(),
            wire: SHORT_BYTES,
            priority: self.priority,
            ..Packet::default()
        };
        self.send_on(node, word.with_route(route.bits()), out);
        true
    }

    /// Sends a notification one hop on; `path` counts its hops.
    fn send_on(&mut self, node: NodeId, word: Packet, out: &mut Outbox) {
        let topology = self.routes.network().topology();
        let mut ports = topology.ports_of(topology.host(node));
        let port = ports.nth(usize::from(word.hop_of_route(word.path.into())));
        let port = port.expect("a drawn route names ports that are there");
        out.tell(port, Packet { src: node, path: word.path + 1, ..word });
    }

    /// A notification comes by `node`.
    fn pass_notification(&mut self, node: NodeId, word: &Packet, out: &mut Outbox) {
        let id = word.seq as u32;
        if self.broadcasts.get(id).source != node {
            return self.send_on(node, *word, out);
        }
        self.repeat_later(id, out);
        self.broadcasts.copied(id, 0, &mut self.views);
    }

    /// Keeps what a broadcast says, for its source to say again in a while.
    fn repeat_later(&mut self, id: u32, out: &mut Outbox) {
        let Broadcast { event, source, .. } = self.broadcasts.get(id).clone();
        event.records().for_each(|record| self.views.announce(record));
        self.repeats.event(source, event, out);
    }

    /// A node says again what was dropped on its way, or lost.
    pub(super) fn repeat(&mut self, node: NodeId, out: &mut Outbox) {
        let (events, copies) = self.repeats.take(node);
        for event in events {
            self.counts.repeated += 1;
            let records: Vec<RecordId> = event.records().collect();
            self.broadcast(node, event, out);
            records.into_iter().for_each(|record| self.views.has_spread(record));
        }
        let topology = self.routes.network().topology();
        for copy in copies {
            let peer = vertex(copy.dst);
            let mut ports = topology.ports_of(vertex(node));
            let port = ports.find(|&port| topology.port(port).peer == peer);
            out.tell(port.expect("it was sent to a neighbour"), copy);
        }
    }

    /// How often broadcasts were sent, copied, lost and sent again.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether what is under way and what is remembered agree.
    pub(super) fn check(&self) -> Result<(), String> {
        let (under_way, live) = (self.broadcasts.under_way(), self.views.live());
        if live == 0 && under_way > 0 && self.repeats.is_empty() {
            return Err(format!("{under_way} broadcasts are under way and speak of nothing"));
        }
        Ok(())
    }
}
