//! Broadcasts: how every node comes to know of every flow (§3.2).
//!
//! A broadcast goes by one of its source's trees; each node passes it on to its children there and
//! enters what it says in its own view. A node whose queue has no room for a copy tells the source,
//! which sends the broadcast again by another tree.
//!
//! A node that takes other links to live than the source did does not have that tree: it passes the
//! broadcast on by all its links, and so do all to whom it comes that way. A node passes a broadcast on
//! once, however often it comes.

use kernel::Time;
use packets::{FlowKey, Kind, Loss, Outbox, Packet};
use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};
use serde::Serialize;

use crate::broadcast::Turns;
use crate::config::Plan;
use crate::rates::{Course, Terms};
use crate::view::{Broadcast, Broadcasts, Event, RecordId, Views};
use crate::wire;

use super::maps::Maps;
use super::neighbours::Neighbours;
use super::repeats::Repeats;

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

/// Marks a copy that goes by all links rather than by a tree.
const BY_ALL_LINKS: u16 = 1;

/// What nodes know, and what they tell each other.
#[derive(Clone, Debug)]
pub(super) struct News {
    pub(super) views: Views<Allocation>,
    broadcasts: Broadcasts,
    turns: Turns,
    priority: u8,
    repeats: Repeats,
    counts: Counts,
}

/// Where something is said: by whose maps, over which links.
pub(super) struct Scene<'a> {
    pub(super) topology: &'a Topology,
    pub(super) maps: &'a mut Maps,
    pub(super) neighbours: &'a Neighbours,
    pub(super) out: &'a mut Outbox,
}

impl Scene<'_> {
    /// Tells the neighbour at a port of a node. A packet has its port with it, counted among those of
    /// its node: that is what its receiver goes by.
    fn tell(&mut self, node: NodeId, port: PortId, packet: Packet) {
        let first = self.topology.ports_of(vertex(node)).next();
        let index = port.get() - first.expect("a node with a port has a first").get();
        self.out.tell(port, Packet { src: node, entropy: index as u16, ..packet });
    }
}

/// The port by which a packet was told.
fn port_of(topology: &Topology, packet: &Packet) -> PortId {
    let mut ports = topology.ports_of(vertex(packet.src));
    ports.nth(packet.entropy.into()).expect("a packet has its port with it")
}

impl News {
    pub(super) fn new(plan: &Plan) -> Self {
        let nodes = plan.nodes();
        let ports = plan.network.topology.ports().len();
        let broadcasts = match plan.changes_until() {
            None => Broadcasts::default(),
            Some(_) => Broadcasts::by_many_ways(nodes),
        };
        Self {
            views: Views::new(nodes),
            broadcasts,
            turns: Turns::new(nodes, plan.config.trees),
            priority: plan.config.broadcast_priority,
            repeats: Repeats::new(nodes, ports, plan.config.recovery.pause),
            counts: Counts::default(),
        }
    }

    /// A flow starts.
    pub(super) fn start(
        &mut self,
        source: NodeId,
        allocation: Allocation,
        scene: &mut Scene<'_>,
    ) -> RecordId {
        let record = self.views.add(source, allocation.course.destination, allocation);
        self.announce(source, Event::Start(record), scene);
        record
    }

    /// A flow is over.
    pub(super) fn finish(&mut self, source: NodeId, record: RecordId, scene: &mut Scene<'_>) {
        self.announce(source, Event::Finish(record), scene);
    }

    /// A flow is to be treated in another way.
    pub(super) fn change(
        &mut self,
        source: NodeId,
        old: RecordId,
        allocation: Allocation,
        scene: &mut Scene<'_>,
    ) -> RecordId {
        let record = self.views.add(source, allocation.course.destination, allocation);
        self.announce(source, Event::Change(old, record), scene);
        record
    }

    /// What a source has announced is void: it will say all again.
    pub(super) fn begin_anew(&mut self, source: NodeId, scene: &mut Scene<'_>) {
        let round = self.views.begin_round(source);
        self.announce(source, Event::Anew(source, round), scene);
    }

    /// Tells all nodes, the source first.
    pub(super) fn announce(&mut self, source: NodeId, event: Event, scene: &mut Scene<'_>) {
        let entered = event.clone();
        // One copy is the source's own, until it has entered it too.
        let id = self.broadcast(source, event, scene);
        entered.enter(source.get(), &mut self.views);
        self.broadcasts.copied(id, 0, &mut self.views);
    }

    /// Sends a broadcast; one copy of it is left to its source.
    fn broadcast(&mut self, source: NodeId, event: Event, scene: &mut Scene<'_>) -> u32 {
        let tree = self.turns.take(source);
        let wire = match &event {
            Event::Routes(pairs) => {
                (wire::batch::HEADER_BYTES + wire::batch::PAIR_BYTES * pairs.len()) as u16
            }
            _ => SHORT_BYTES,
        };
        let map = scene.maps.of_mut(source);
        map.trees.prepare(source);
        let broadcast = Broadcast { event, source, tree, map: map.serial, wire };
        self.counts.sent += 1;
        let id = self.broadcasts.send(broadcast, 1, &mut self.views);
        self.broadcasts.is_first(id, source);
        let copies = self.pass_by_tree(source, id, scene);
        self.broadcasts.copied(id, copies + 1, &mut self.views);
        id
    }

    /// A copy of a broadcast, as `node` sends it.
    fn copy(&self, id: u32) -> Packet {
        Packet {
            flow: FlowKey::NEIGHBOURS,
            kind: Kind::Notice,
            seq: id.into(),
            wire: self.broadcasts.get(id).wire,
            priority: self.priority,
            ..Packet::default()
        }
    }

    /// Puts a copy of a broadcast on the links to the children of `node`. How many there are.
    fn pass_by_tree(&mut self, node: NodeId, id: u32, scene: &mut Scene<'_>) -> u32 {
        let Broadcast { source, tree, .. } = *self.broadcasts.get(id);
        let copy = Packet { src: node, ..self.copy(id) };
        let first = scene.topology.ports_of(vertex(node)).next().map_or(0, PortId::get);
        let mut copies = 0;
        for port in scene.maps.of(node).trees.children(source, tree, vertex(node)) {
            let entropy = (port.get() - first) as u16;
            scene.out.tell(port, Packet { entropy, ..copy });
            copies += 1;
        }
        self.counts.copies += u64::from(copies);
        copies
    }

    /// Puts a copy on all living links of `node` but that by which it came.
    fn pass_by_all(&mut self, node: NodeId, id: u32, came: PortId, scene: &mut Scene<'_>) -> u32 {
        let copy = Packet { path: BY_ALL_LINKS, ..self.copy(id) };
        let mut copies = 0;
        for port in scene.topology.ports_of(vertex(node)) {
            if port != came && scene.neighbours.lives(port) {
                scene.tell(node, port, copy);
                copies += 1;
            }
        }
        self.counts.copies += u64::from(copies);
        copies
    }

    /// `node` hears a neighbour: by whom it is told of flows, and of which other routing.
    pub(super) fn hear(
        &mut self,
        node: NodeId,
        packet: &Packet,
        scene: &mut Scene<'_>,
    ) -> Option<(NodeId, Option<Event>)> {
        if packet.kind == Kind::Nack {
            self.pass_notice(node, packet, scene);
            return None;
        }
        let id = packet.seq as u32;
        if !self.broadcasts.is_first(id, node) {
            self.broadcasts.copied(id, 0, &mut self.views);
            return None;
        }
        let Broadcast { source, ref event, map, .. } = *self.broadcasts.get(id);
        event.enter(node.get(), &mut self.views);
        let told = matches!(event, Event::Routes(_)).then(|| event.clone());
        if !scene.maps.of(node).is_whole() && !scene.neighbours.has_news(node) {
            self.disbelieve(node, id, scene);
        }
        let own = scene.maps.of(node);
        let more = if packet.path != BY_ALL_LINKS && own.serial == map {
            self.pass_by_tree(node, id, scene)
        } else {
            let came = scene.topology.port(port_of(scene.topology, packet)).reverse;
            self.pass_by_all(node, id, came, scene)
        };
        self.broadcasts.copied(id, more, &mut self.views);
        Some((source, told))
    }

    /// A node does not take for true what it hears of a source that it cannot reach: it is old, and was
    /// long under way. Unless the node has heard of changes by which it does not go yet.
    fn disbelieve(&mut self, node: NodeId, id: u32, scene: &Scene<'_>) {
        let map = scene.maps.of(node);
        for record in self.broadcasts.get(id).event.records() {
            if !map.routes.joins(node, self.views.record(record).source) {
                self.views.ends(node.get(), record);
            }
        }
    }

    /// A node goes by another map: it forgets the flows of sources that it cannot reach any more, and
    /// what it was to say over links that are dead.
    pub(super) fn forget_unreachable(&mut self, node: NodeId, scene: &Scene<'_>) {
        let routes = &scene.maps.of(node).routes;
        let sources = (0..routes.network().nodes()).map(NodeId::new);
        for source in sources.filter(|&source| !routes.joins(node, source)) {
            self.views.ends_before(node.get(), source, u32::MAX);
        }
        let ports = scene.topology.ports_of(vertex(node));
        for port in ports.filter(|&port| !scene.neighbours.lives(port)) {
            for copy in self.repeats.take_cut(port) {
                self.broadcasts.copied(copy.seq as u32, 0, &mut self.views);
            }
        }
    }

    /// What `packet.src` told its neighbour is lost.
    pub(super) fn unheard(&mut self, packet: &Packet, why: Loss, scene: &mut Scene<'_>) {
        // A greeting comes again anyway; a state of links does, too, once a dead link is back.
        if packet.kind == Kind::Greeting || (packet.kind == Kind::LinkState && why == Loss::Dead) {
            return;
        }
        self.counts.lost += 1;
        let id = packet.seq as u32;
        let port = port_of(scene.topology, packet);
        let goes_by_tree = packet.kind == Kind::Notice && packet.path != BY_ALL_LINKS;
        match why {
            Loss::NoRoom if goes_by_tree => {
                if self.notify(packet.src, id, scene) {
                    return;
                }
            }
            Loss::Link | Loss::NoRoom => return self.repeats.copy(*packet, scene.out),
            Loss::Dead if scene.neighbours.lives(port) => return self.repeats.cut(port, *packet),
            Loss::Dead => {}
        }
        self.broadcasts.copied(id, 0, &mut self.views);
    }

    /// Lets `node`, which has dropped a copy, tell the source. True if word is on its way.
    fn notify(&mut self, node: NodeId, id: u32, scene: &mut Scene<'_>) -> bool {
        if node == self.broadcasts.get(id).source {
            self.repeat_later(id, scene.out);
            return false;
        }
        let word = Packet {
            flow: FlowKey::NEIGHBOURS,
            kind: Kind::Nack,
            seq: id.into(),
            wire: SHORT_BYTES,
            priority: self.priority,
            ..Packet::default()
        };
        self.climb(node, word, scene)
    }

    /// Sends a notice on towards the root of its broadcast's tree. False if the node goes by another
    /// map now: then so will the source, and say all again.
    fn climb(&self, node: NodeId, word: Packet, scene: &mut Scene<'_>) -> bool {
        let Broadcast { source, tree, map, .. } = *self.broadcasts.get(word.seq as u32);
        let own = scene.maps.of(node);
        let up = own.trees.parent(source, tree, vertex(node)).filter(|_| own.serial == map);
        up.inspect(|&port| scene.tell(node, port, word)).is_some()
    }

    /// A notice comes by `node`.
    fn pass_notice(&mut self, node: NodeId, word: &Packet, scene: &mut Scene<'_>) {
        let id = word.seq as u32;
        if self.broadcasts.get(id).source == node {
            self.repeat_later(id, scene.out);
        } else if self.climb(node, *word, scene) {
            return;
        }
        self.broadcasts.copied(id, 0, &mut self.views);
    }

    /// Keeps what a broadcast says, for its source to say again in a while.
    fn repeat_later(&mut self, id: u32, out: &mut Outbox) {
        let Broadcast { event, source, .. } = self.broadcasts.get(id).clone();
        event.records().for_each(|record| self.views.announce(record));
        self.repeats.event(source, event, out);
    }

    /// A node says again what was dropped on its way, or lost.
    pub(super) fn repeat(&mut self, node: NodeId, scene: &mut Scene<'_>) {
        let (events, copies) = self.repeats.take(node);
        for event in events {
            self.counts.repeated += 1;
            let records: Vec<RecordId> = event.records().collect();
            let id = self.broadcast(node, event, scene);
            self.broadcasts.copied(id, 0, &mut self.views);
            records.into_iter().for_each(|record| self.views.has_spread(record));
        }
        for copy in copies {
            let port = port_of(scene.topology, &copy);
            if scene.neighbours.lives(port) {
                scene.out.tell(port, copy);
            } else if copy.kind != Kind::LinkState {
                self.broadcasts.copied(copy.seq as u32, 0, &mut self.views);
            }
        }
    }

    /// A neighbour is heard by a port: it gets what a short failure of the link took.
    pub(super) fn repeat_cut(&mut self, port: PortId, out: &mut Outbox) {
        self.repeats.take_cut(port).into_iter().for_each(|copy| out.tell(port, copy));
    }

    /// How often broadcasts were sent, copied, lost and sent again.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether what is under way and what is remembered agree.
    pub(super) fn check(&self) -> Result<(), String> {
        let (under_way, live) = (self.broadcasts.under_way(), self.views.live());
        let is_busy = !self.repeats.is_empty() || self.broadcasts.speaks_of_nothing();
        if live == 0 && under_way > 0 && !is_busy {
            return Err(format!("{under_way} broadcasts are under way and speak of nothing"));
        }
        Ok(())
    }
}
