//! Broadcasts: how every node comes to know of every flow (§3.2).
//!
//! A broadcast goes by one of its source's trees; each node passes it on to its children there and
//! enters what it says in its own view. A node whose queue has no room for a copy tells the source,
//! which says it again to those who missed it ([`super::repeats`]).
//!
//! A node that takes other links to live than the source did does not have that tree: it passes the
//! broadcast on by all its links, and so do all to whom it comes that way. A node passes a broadcast on
//! once, however often it comes.

use kernel::Time;
use packets::{FlowKey, Loss, Outbox, Packet};
use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};
use serde::Serialize;

use super::kinds;
use crate::broadcast::Turns;
use crate::config::Plan;
use crate::rates::{Course, Terms};
use crate::view::{Broadcast, Broadcasts, Event, RecordId, Views};
use crate::wire;

use super::maps::Maps;
use super::neighbours::Neighbours;
use super::repeats::{AGAIN, BY_ALL_LINKS, BY_TREE, Repeats, path, way_of};

/// Bytes of a broadcast, and of a notification.
const SHORT_BYTES: u16 = wire::SHORT_BYTES as u16;
/// Bytes by which a broadcast that is said again is longer.
const AGAIN_BYTES: u16 = wire::again::MORE_BYTES as u16;

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
    /// Copies that sources said again because a queue had no room for them.
    pub(super) repeated: u64,
}

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
    pub(super) fn new(plan: &Plan, seed: u64) -> Self {
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
            repeats: Repeats::new(nodes, ports, plan.config.recovery.pause, seed),
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
            kind: kinds::NOTICE,
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
        if packet.kind == kinds::NACK {
            self.pass_notice(node, packet, scene);
            return None;
        }
        if way_of(packet) == AGAIN {
            self.lead(node, packet, scene);
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
        let more = if way_of(packet) == BY_TREE && own.serial == map {
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
        if packet.kind == kinds::GREETING || (packet.kind == kinds::LINK_STATE && why == Loss::Dead)
        {
            return;
        }
        self.counts.lost += 1;
        let port = port_of(scene.topology, packet);
        match why {
            Loss::NoRoom if packet.kind == kinds::NOTICE && way_of(packet) != BY_ALL_LINKS => {
                self.notify(packet, scene);
            }
            Loss::NoRoom => self.repeats.put_off(*packet, scene.out),
            Loss::Link => self.repeats.copy(*packet, scene.out),
            Loss::Dead if scene.neighbours.lives(port) => self.repeats.cut(port, *packet),
            Loss::Dead => self.is_gone(packet),
        }
    }

    /// Nothing is left of a copy, or of a notice in its place.
    fn is_gone(&mut self, packet: &Packet) {
        self.broadcasts.copied(packet.seq as u32, 0, &mut self.views);
    }

    /// The node `copy.src`, which has dropped a copy, tells the source for whom it was.
    fn notify(&mut self, copy: &Packet, scene: &mut Scene<'_>) {
        // One that was said again is for those for whom it was at first.
        let (dropper, port) = match way_of(copy) {
            AGAIN => (copy.ack, copy.word),
            _ => (copy.src.get().into(), copy.entropy.into()),
        };
        let word = Packet {
            flow: FlowKey::NEIGHBOURS,
            kind: kinds::NACK,
            seq: copy.seq,
            ack: dropper,
            word: port,
            path: path(BY_TREE, copy),
            wire: SHORT_BYTES,
            priority: self.priority,
            ..Packet::default()
        };
        self.pass_notice(copy.src, &word, scene);
    }

    /// A notice comes by `node`: it climbs on towards the root of its broadcast's tree. If the node goes by
    /// another map now, so will the source, and say all anew.
    fn pass_notice(&mut self, node: NodeId, word: &Packet, scene: &mut Scene<'_>) {
        let Broadcast { source, tree, map, wire, .. } = *self.broadcasts.get(word.seq as u32);
        let own = scene.maps.of(node);
        if own.serial != map {
            return self.is_gone(word);
        }
        if source != node {
            return match own.trees.parent(source, tree, vertex(node)) {
                Some(port) => scene.tell(node, port, *word),
                None => self.is_gone(word),
            };
        }
        let (path, wire) = (path(AGAIN, word), wire + AGAIN_BYTES);
        let copy = Packet { src: node, kind: kinds::NOTICE, path, wire, ..*word };
        self.counts.repeated += 1;
        self.repeats.put_off(copy, scene.out);
    }

    /// `node` takes a copy that is said again a hop on, towards the node that dropped it, and from there
    /// to its child. If the node goes by another map now, so will the source, and say all anew.
    fn lead(&mut self, node: NodeId, copy: &Packet, scene: &mut Scene<'_>) {
        let Broadcast { source, tree, map, wire, .. } = *self.broadcasts.get(copy.seq as u32);
        let own = scene.maps.of(node);
        if own.serial != map {
            return self.is_gone(copy);
        }
        let dropper = NodeId::new(copy.ack as u32);
        let (port, copy) = if dropper == node {
            let mut ports = scene.topology.ports_of(vertex(node));
            let port = ports.nth(copy.word as usize).expect("the notice came from here");
            (port, Packet { path: path(BY_TREE, copy), ack: 0, word: 0, wire, ..*copy })
        } else {
            let port = own.trees.towards(source, tree, vertex(node), vertex(dropper));
            (port.expect("the notice climbed by this node"), *copy)
        };
        self.counts.copies += 1;
        scene.tell(node, port, copy);
    }

    /// A node says again what was dropped on its way, or lost.
    pub(super) fn repeat(&mut self, node: NodeId, scene: &mut Scene<'_>) {
        for copy in self.repeats.take(node, scene.out) {
            if way_of(&copy) == AGAIN && copy.kind == kinds::NOTICE {
                self.lead(node, &copy, scene);
                continue;
            }
            let port = port_of(scene.topology, &copy);
            if scene.neighbours.lives(port) {
                scene.out.tell(port, copy);
            } else if copy.kind != kinds::LINK_STATE {
                self.is_gone(&copy);
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

    /// Broadcasts under way, and the most copies of any.
    #[cfg(test)]
    pub(super) fn under_way(&self) -> (usize, u32) {
        (self.broadcasts.under_way(), self.broadcasts.copies_max())
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
