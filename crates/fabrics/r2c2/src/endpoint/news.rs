//! Broadcasts: how every node comes to know of every flow (§3.2).
//!
//! A broadcast goes by one of its source's trees; each node passes it on to its children there and
//! enters what it says in its own view. A node whose queue has no room for a copy tells the source,
//! which retransmits it to those who missed it ([`super::dropped`]).
//!
//! A node whose map of living links differs from the source's does not have that tree: it passes the
//! broadcast on by all its links, and so do all nodes that it reaches that way. A node passes a broadcast on
//! once, however often it comes.
//!
//! A copy is nothing but bytes. They are decoded once where several nodes that are held together hear the
//! same ([`super::readings`]).

use kernel::Time;
use packets::{Outbox, Packet};
use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};
use serde::Serialize;

use crate::broadcast::Turns;
use crate::config::Plan;
use crate::endpoint::kinds;
use crate::rates::{Course, Terms};
use crate::routing::Protocol;
use crate::view::{FactId, Facts, Hint, Names, Recent};
use crate::wire::{
    self, Allocation, Anew, Announcement, Assignment, Assignments, Event, Kbps, Message, Report,
    TREE_NONE, Tail,
};

use super::central::Central;
use super::doubts::Doubts;
use super::frames::{carried, carry};
use super::maps::Maps;
use super::neighbours::Neighbours;
use super::readings::{Reading, Readings};
use super::repeats::Repeats;

pub(super) fn vertex(node: NodeId) -> Vertex {
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
    /// Copies that sources retransmitted because a queue had no room for them.
    pub(super) repeated: u64,
    /// Copies put on links to other racks; none where there is one rack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to_other_racks: Option<u64>,
}

impl Counts {
    /// A copy goes on the link of this port.
    #[inline]
    pub(super) fn copy(&mut self, topology: &Topology, port: PortId) {
        self.copies += 1;
        if let Some(count) = &mut self.to_other_racks {
            *count += u64::from(topology.leads_out(port));
        }
    }
}

/// A flow's name at its source: where it goes, and which of the flows there.
pub(super) type Name = (NodeId, NodeId, u8);

/// What nodes know, and what they tell each other.
#[derive(Clone, Debug)]
pub(super) struct News {
    pub(super) facts: Facts,
    pub(super) names: Names,
    readings: Readings,
    /// `None` where a broadcast comes to a node once.
    recent: Option<Recent>,
    doubts: Doubts,
    turns: Turns,
    pub(super) priority: u8,
    pub(super) repeats: Repeats,
    pub(super) counts: Counts,
    /// A bit for each protocol that flows of this rack may use.
    protocols: u16,
    /// What the node that has just heard a search's result was told.
    found: Option<Assignments>,
    /// `None` where each node computes its own rates.
    pub(super) central: Option<Central>,
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
    pub(super) fn tell(&mut self, node: NodeId, port: PortId, packet: Packet) {
        let first = self.topology.ports_of(vertex(node)).next();
        let index = port.get() - first.expect("a node with a port has a first").get();
        self.out.tell(port, Packet { src: node, entropy: index as u16, ..packet });
    }
}

/// The port of its sender by which a packet was told; none if that has no such port.
pub(super) fn port_of(topology: &Topology, packet: &Packet) -> Option<PortId> {
    let is_node = packet.src.get() < topology.hosts();
    is_node.then(|| topology.ports_of(vertex(packet.src)).nth(packet.entropy.into()))?
}

impl News {
    pub(super) fn new(plan: &Plan, seed: u64) -> Self {
        let nodes = plan.nodes();
        let ports = plan.network.topology.ports().len();
        let protocols = plan.protocols_used();
        let has_racks = !plan.network.topology.joints().is_empty();
        Self {
            facts: Facts::new(nodes, plan.asks_for_ages()),
            names: Names::new(nodes, plan.tenants(), plan.may_drop()),
            readings: Readings::new(plan.config.trees),
            recent: plan.has_faults().then(|| Recent::new(nodes)),
            doubts: Doubts::new(nodes, plan.has_faults().then(|| plan.config.discovery.duration())),
            turns: Turns::new(nodes, plan.config.trees),
            priority: plan.config.broadcast_priority,
            repeats: Repeats::new(nodes, ports, plan.config.recovery.pause, seed),
            counts: Counts { to_other_racks: has_racks.then_some(0), ..Counts::default() },
            protocols: protocols.iter().fold(0, |all, protocol| all | 1 << protocol.number()),
            found: None,
            central: Central::new(plan),
        }
    }

    /// A flow starts, or is announced again: the number of its announcement is given. What its source knows
    /// of it.
    pub(super) fn start(
        &mut self,
        (name, number): (Name, u8),
        (protocol, terms): (Protocol, Terms),
        scene: &mut Scene<'_>,
    ) -> FactId {
        self.announce(name, (Event::Start, number), (protocol, terms), scene);
        self.facts.of(name.0, name).expect("a source knows of its flow")
    }

    /// A flow that is open is announced again, in a new round.
    pub(super) fn start_again(
        &mut self,
        name: Name,
        (protocol, terms): (Protocol, Terms),
        scene: &mut Scene<'_>,
    ) -> FactId {
        let number = self.names.go_on(name, Event::Start, scene.out.now());
        self.start((name, number), (protocol, terms), scene)
    }

    /// A flow is over.
    pub(super) fn finish(&mut self, name: Name, course: Course, scene: &mut Scene<'_>) {
        let number = self.names.go_on(name, Event::Finish, scene.out.now());
        let terms = Terms::default();
        self.announce(name, (Event::Finish, number), (course.protocol, terms), scene);
    }

    /// A flow is to be treated in another way. What its source knows of it now.
    pub(super) fn change(
        &mut self,
        name: Name,
        event: Event,
        (protocol, terms): (Protocol, Terms),
        scene: &mut Scene<'_>,
    ) -> FactId {
        let number = self.names.go_on(name, event, scene.out.now());
        self.announce(name, (event, number), (protocol, terms), scene);
        self.facts.of(name.0, name).expect("a source knows of its flow")
    }

    /// Tells all nodes of a flow, its source first.
    fn announce(
        &mut self,
        (source, destination, index): Name,
        (event, number): (Event, u8),
        (protocol, terms): (Protocol, Terms),
        scene: &mut Scene<'_>,
    ) {
        let (tree, dead) = self.take_tree(source, scene);
        let round = self.names.begun(source);
        let said = Announcement {
            event,
            number,
            way: wire::way(tree, dead, round),
            source,
            destination,
            index,
            round,
            allocation: Allocation {
                demand: terms.demand.map_or(Kbps::UNLIMITED, Kbps::at_least),
                weight: terms.weight,
                priority: terms.priority,
                protocol,
            },
        };
        self.names.keep(&said);
        let now = scene.out.now();
        self.is_first(source, name_of_said(&said), now);
        let mut hint = Hint::default();
        self.facts.hear(source, &said, now, &mut hint);
        if self.central.is_some() {
            return self.report(Report::Flow(said), round, scene);
        }
        let copy = match (dead, round) {
            (0, 0) => carry(&said.encode()),
            _ => carry(&Tail { dead, round, again: None }.encode(&said.encode())),
        };
        self.readings.keep(&copy, said, (tree, dead), hint);
        self.pass_by_tree(source, (source, tree), copy, scene);
    }

    /// What a source has announced is void: it will say all again.
    pub(super) fn begin_anew(&mut self, source: NodeId, scene: &mut Scene<'_>) {
        let number = self.names.begin_anew(source);
        let (tree, dead) = self.take_tree(source, scene);
        let said = Anew { source, way: wire::way(tree, dead, 0), number };
        self.is_first(source, name_of_anew(&said), scene.out.now());
        self.facts.hear_anew(source, &said);
        if self.central.is_some() {
            return self.report(Report::Anew(said), 0, scene);
        }
        let tail = Tail { dead, ..Tail::default() };
        let copy = carry(&tail.encode(&said.encode()));
        self.pass_by_tree(source, (source, tree), copy, scene);
    }

    /// A node tells which protocols its search has found for flows.
    pub(super) fn assign(
        &mut self,
        source: NodeId,
        pairs: &[Assignment],
        scene: &mut Scene<'_>,
    ) -> Assignments {
        let round = self.names.assign(source);
        let (tree, dead) = self.take_tree(source, scene);
        let way = wire::way(tree, dead, 0);
        let said = Assignments { source, way, round, pairs: pairs.to_vec() };
        self.names.keep_assignment(said.clone());
        self.is_first(source, name_of_assignments(&said), scene.out.now());
        let tail = Tail { dead, ..Tail::default() };
        let copy = carry(&tail.encode(&said.encode()));
        self.pass_by_tree(source, (source, tree), copy, scene);
        said
    }

    /// The next tree of a source, and the digest of the links that it takes to be dead. What goes to a
    /// controller takes none: 0.
    fn take_tree(&mut self, source: NodeId, scene: &mut Scene<'_>) -> (u8, u32) {
        if self.central.is_some() {
            return (0, scene.maps.of(source).digest);
        }
        self.counts.sent += 1;
        (self.turns.take(source), scene.maps.of(source).digest)
    }

    /// Whether a node hears what has this name for the first time.
    #[inline]
    fn is_first(&mut self, node: NodeId, name: [u32; 3], now: Time) -> bool {
        self.recent.as_mut().is_none_or(|recent| recent.is_first(node, name, now))
    }

    /// A node hears what has this name, of a source: whether for the first time.
    pub(super) fn meets(
        &mut self,
        node: NodeId,
        source: NodeId,
        name: [u32; 3],
        scene: &mut Scene<'_>,
    ) -> bool {
        let is_first = self.is_first(node, name, scene.out.now());
        if is_first && self.recent.is_some() {
            let map = scene.maps.of(node);
            let is_joined = map.is_whole() || map.routes.joins(node, source);
            self.doubts.hears((node, source), is_joined, scene.out);
        }
        is_first
    }

    /// A packet with these bytes, as `node` sends it.
    fn copy(&self, packet: Packet) -> Packet {
        Packet { kind: kinds::NOTICE, priority: self.priority, ..packet }
    }

    /// Puts a copy of a broadcast on the links to the children of `node`.
    fn pass_by_tree(
        &mut self,
        node: NodeId,
        (source, tree): (NodeId, u8),
        packet: Packet,
        scene: &mut Scene<'_>,
    ) {
        let copy = Packet { src: node, path: 0, ..self.copy(packet) };
        let first = scene.topology.ports_of(vertex(node)).next().map_or(0, PortId::get);
        let trees = &mut scene.maps.of_mut(node).trees;
        trees.prepare(source);
        for port in trees.children(source, tree, vertex(node)) {
            let entropy = (port.get() - first) as u16;
            scene.out.tell(port, Packet { entropy, ..copy });
            self.counts.copy(scene.topology, port);
        }
    }

    /// Puts a copy on all living links of `node` but that by which it came.
    fn pass_by_all(&mut self, node: NodeId, bytes: &[u8], came: PortId, scene: &mut Scene<'_>) {
        let copy = self.copy(carry(bytes));
        for port in scene.topology.ports_of(vertex(node)) {
            if port != came && scene.neighbours.lives(port) {
                scene.tell(node, port, copy);
                self.counts.copy(scene.topology, port);
            }
        }
    }

    /// `node` hears a neighbour: who says what is new to it, of flows or that a search is over
    /// ([`News::take_found`]). None if nothing is; what makes no sense is counted.
    pub(super) fn hear(
        &mut self,
        node: NodeId,
        packet: &Packet,
        scene: &mut Scene<'_>,
    ) -> Option<NodeId> {
        if packet.kind == kinds::NOTICE
            && let Some(reading) = self.readings.find(packet)
        {
            return self.hear_reading(node, packet, reading, scene);
        }
        let nodes = scene.topology.hosts();
        let bytes = carried(packet);
        let read = bytes.and_then(|(all, length)| wire::tail::decode(&all[..length], nodes).ok());
        let Some((message, tail)) = read else {
            scene.out.unexpected();
            return None;
        };
        match (message, packet.kind, tail.again) {
            (Message::Notice(notice), kinds::NACK, _) => {
                self.pass_notice(node, packet, (&notice, tail), scene);
                None
            }
            (Message::Notice(_), ..) | (_, kinds::NACK, _) => {
                scene.out.unexpected();
                None
            }
            (message, _, Some(again)) => {
                self.lead(node, packet, (&message, tail.dead, again), scene);
                None
            }
            (message, _, None) => self.hear_message(node, packet, (message, tail), scene),
        }
    }

    /// The same of an announcement whose bytes have been read.
    #[inline]
    fn hear_reading(
        &mut self,
        node: NodeId,
        packet: &Packet,
        reading: usize,
        scene: &mut Scene<'_>,
    ) -> Option<NodeId> {
        let Self { recent, readings, facts, doubts, .. } = self;
        let Reading { tree, dead, said, hint, .. } = readings.get(reading);
        let (source, tree, dead, now) = (said.source, *tree, *dead, scene.out.now());
        if let Some(recent) = recent {
            if !recent.is_first(node, name_of_said(said), now) {
                return None;
            }
        } else if source == node {
            scene.out.unexpected();
            return None;
        }
        let map = scene.maps.of(node);
        let has_tree = tree != TREE_NONE && map.digest == dead;
        if recent.is_some() {
            let is_joined = map.digest == 0 || map.routes.joins(node, source);
            doubts.hears((node, source), is_joined, scene.out);
        }
        facts.hear(node, said, now, hint);
        if has_tree {
            self.pass_by_tree(node, (source, tree), *packet, scene);
        } else {
            let bytes = by_all_links(&Message::Announcement(*said));
            self.flood(node, packet, &bytes, scene);
        }
        Some(source)
    }

    /// `node` hears a broadcast that is read now.
    fn hear_message(
        &mut self,
        node: NodeId,
        packet: &Packet,
        (message, tail): (Message<'static>, Tail),
        scene: &mut Scene<'_>,
    ) -> Option<NodeId> {
        let (source, way, name) = match &message {
            Message::Announcement(said) => (said.source, said.way, name_of_said(said)),
            Message::Assignments(said) => (said.source, said.way, name_of_assignments(said)),
            Message::Anew(said) => (said.source, said.way, name_of_anew(said)),
            _ => {
                scene.out.unexpected();
                return None;
            }
        };
        let tree = wire::tree_of(way);
        let is_own = source == node && self.recent.is_none();
        if is_own || !self.readings.has_tree(tree) || !self.may_be_used(&message) {
            scene.out.unexpected();
            return None;
        }
        if let Message::Announcement(said) = message {
            let reading = self.readings.keep(packet, said, (tree, tail.dead), Hint::default());
            return self.hear_reading(node, packet, reading, scene);
        }
        if !self.is_first(node, name, scene.out.now()) {
            return None;
        }
        if let Message::Anew(said) = &message {
            let map = scene.maps.of(node);
            let is_joined = map.is_whole() || map.routes.joins(node, source);
            self.doubts.hears((node, source), is_joined, scene.out);
            self.facts.hear_anew(node, said);
        }
        if tree != TREE_NONE && scene.maps.of(node).digest == tail.dead {
            self.pass_by_tree(node, (source, tree), *packet, scene);
        } else {
            self.flood(node, packet, &by_all_links(&message), scene);
        }
        if let Message::Assignments(said) = message {
            self.found = Some(said);
        }
        Some(source)
    }

    /// The result of a search, if that is what has just been heard.
    #[inline]
    pub(super) fn take_found(&mut self) -> Option<Assignments> {
        if self.found.is_none() { None } else { self.found.take() }
    }

    /// Whether all protocols of a message are such as flows of this rack may use.
    fn may_be_used(&self, message: &Message<'_>) -> bool {
        match message {
            Message::Announcement(said) => self.may_use(said.allocation.protocol),
            Message::Assignments(said) => said.pairs.iter().all(|pair| self.may_use(pair.protocol)),
            _ => true,
        }
    }

    /// Whether flows of this rack may use a protocol.
    pub(super) fn may_use(&self, protocol: Protocol) -> bool {
        self.protocols >> protocol.number() & 1 == 1
    }

    fn flood(&mut self, node: NodeId, packet: &Packet, bytes: &[u8], scene: &mut Scene<'_>) {
        match port_of(scene.topology, packet) {
            Some(port) => {
                let came = scene.topology.port(port).reverse;
                self.pass_by_all(node, bytes, came, scene);
            }
            None => scene.out.unexpected(),
        }
    }

    /// A node goes by another map: it forgets the flows of sources that it cannot reach any more, and
    /// what it was to say over links that are dead.
    pub(super) fn forget_unreachable(&mut self, node: NodeId, scene: &mut Scene<'_>) {
        self.lose_unreachable(node, scene);
        let ports = scene.topology.ports_of(vertex(node));
        for port in ports.filter(|&port| !scene.neighbours.lives(port)) {
            self.repeats.take_cut(port);
        }
    }

    /// It is time for a node to forget the flows of sources that it cannot reach.
    pub(super) fn look_for_unreachable(&mut self, node: NodeId, scene: &mut Scene<'_>) {
        self.doubts.looks(node);
        self.lose_unreachable(node, scene);
    }

    /// A node forgets the flows of sources that it cannot reach, once it has heard nothing of them for long.
    fn lose_unreachable(&mut self, node: NodeId, scene: &mut Scene<'_>) {
        let (now, mut next) = (scene.out.now(), Time::NEVER);
        let routes = &scene.maps.of(node).routes;
        let sources = (0..routes.network().nodes()).map(NodeId::new);
        for source in sources.filter(|&source| !routes.joins(node, source)) {
            match self.doubts.until(node, source) {
                until if until <= now => self.facts.lose(node, source),
                until => next = next.min(until),
            }
        }
        self.doubts.look(node, next, scene.out);
    }

    /// Adds what was counted for other nodes.
    pub(super) fn add_counts(&mut self, other: &Self) {
        let Counts { sent, copies, lost, repeated, to_other_racks } = other.counts;
        self.counts.sent += sent;
        self.counts.copies += copies;
        self.counts.lost += lost;
        self.counts.repeated += repeated;
        if let (Some(own), Some(other)) = (&mut self.counts.to_other_racks, to_other_racks) {
            *own += other;
        }
        if let (Some(own), Some(other)) = (&mut self.central, &other.central) {
            own.add_counts(other);
        }
    }

    /// How often broadcasts were sent, copied, lost and sent again.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether what is remembered agrees.
    pub(super) fn check(&self) -> Result<(), String> {
        self.facts.check()
    }
}

/// The bytes of a broadcast that goes by all links.
pub(super) fn by_all_links(message: &Message<'_>) -> Vec<u8> {
    let way = TREE_NONE;
    match message {
        Message::Announcement(said) => {
            let round = said.round;
            let said = Announcement { way: wire::way(TREE_NONE, 0, round), ..*said };
            Tail { round, ..Tail::default() }.encode(&said.encode())
        }
        Message::Assignments(said) => Assignments { way, ..said.clone() }.encode(),
        Message::Anew(said) => Anew { way, ..*said }.encode().to_vec(),
        other => other.encode(),
    }
}

/// What tells an announcement from all others that are under way.
#[inline]
pub(super) fn name_of_said(said: &Announcement) -> [u32; 3] {
    let ends = said.source.get() << 16 | said.destination.get();
    [ends, u32::from(said.index) << 8 | u32::from(said.number), said.round + 3]
}

pub(super) fn name_of_anew(said: &Anew) -> [u32; 3] {
    [said.source.get(), said.number, 1]
}

fn name_of_assignments(said: &Assignments) -> [u32; 3] {
    [said.source.get(), said.round.into(), 2]
}
