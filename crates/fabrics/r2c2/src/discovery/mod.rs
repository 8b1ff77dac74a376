//! Topology discovery: what each node knows of the links of the rack, from greetings and from what
//! others told it (§3.2).
//!
//! Models: R2C2 §3.2 (claim M14), which asks for topology discovery and leaves it open. **Our choice**
//! (E30) is the usual one of link-state routing:
//!
//! - A node that has something to find out greets each neighbour once an interval, by every link, dead
//!   ones too, and asks it to greet as well, and those behind it, up to a distance. A link from which it
//!   has heard nothing for some intervals is dead; it lives again when both ends hear each other.
//! - When a link of a node dies or comes to life, the node tells all: a numbered state of its links,
//!   which every node that has not heard of it passes on by all its living links.
//! - Over a link that comes to life each end tells the other all that it knows. A greeting holds a
//!   digest of that; neighbours who find that theirs differ do the same: so whatever was lost, they
//!   come to agree.
//!
//! A link lives for a node if, as far as it has heard, both ends say so.
//!
//! Leaves out: how a node that is switched on learns how many nodes there are.

use std::sync::Arc;

use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};

use crate::wire::{Hello, LinkState};

/// What a node is to say by one of its ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    /// A greeting.
    Hello(Hello),
    /// What it says, or passes on, of a node's links.
    State(LinkState),
}

/// One end of a link, as the node there knows it.
#[derive(Clone, Copy, Debug)]
struct End {
    lives: bool,
    /// Own greetings since the last was heard.
    silent: u16,
    /// The last that was sent, and the last that was heard.
    number: u16,
    heard: u16,
}

/// A state of a node's links, as another has heard it: number in the upper 24 bits, below a bit for
/// each port. Zero if nothing was heard.
type Known = u32;

/// Bits of the ports.
const PORTS: u32 = 8;

/// What all nodes know of links, each for itself.
#[derive(Clone, Debug)]
pub struct Discovery {
    topology: Arc<Topology>,
    /// Greetings that may be missed.
    missed: u16,
    /// By port: the end of its link.
    ends: Vec<End>,
    /// By node, and then by node of which it has heard.
    known: Vec<Known>,
    /// By node: the digest of what it knows.
    digests: Vec<u32>,
    /// By node: whether it has heard of another state since it was last asked.
    has_news: Vec<bool>,
}

impl Discovery {
    /// Nodes that know of all links that they live. A link of which `missed` greetings in a row are
    /// not heard is dead.
    ///
    /// # Panics
    /// If a vertex has more than eight links, or is no host.
    #[must_use]
    pub fn new(topology: Arc<Topology>, missed: u16) -> Self {
        let nodes = topology.hosts();
        assert_eq!(nodes, topology.vertices(), "nodes alone pass on what they hear");
        let all: Vec<Known> = (0..nodes)
            .map(|node| {
                let degree = topology.degree(Vertex::new(node));
                assert!(degree <= PORTS, "node {node} has {degree} links; at most {PORTS}");
                1 << PORTS | ((1 << degree) - 1)
            })
            .collect();
        let digest = (0..).zip(&all).fold(0, |all, (node, &known)| all ^ digest(node, known));
        // They have greeted each other before.
        let end = End { lives: true, silent: 0, number: 1, heard: 1 };
        Self {
            missed,
            ends: vec![end; topology.ports().len()],
            known: all.repeat(nodes as usize),
            digests: vec![digest; nodes as usize],
            has_news: vec![false; nodes as usize],
            topology,
        }
    }

    /// Lets a node forget all, as if it were switched on now.
    pub fn forget(&mut self, node: NodeId) {
        for port in self.ports(node) {
            let number = self.ends[port.index()].number;
            self.ends[port.index()] =
                End { lives: false, silent: self.missed.saturating_add(1), number, heard: 0 };
        }
        let row = self.row(node);
        self.known[row].fill(0);
        self.digests[node.index()] = 0;
        self.store(node, node, 1 << PORTS);
    }

    /// Whether a port's link lives, as the node at its end knows.
    #[inline]
    #[must_use]
    pub fn lives(&self, port: PortId) -> bool {
        self.ends[port.index()].lives
    }

    /// Whether a node has heard of another state since it last took news.
    #[must_use]
    pub fn has_news(&self, node: NodeId) -> bool {
        self.has_news[node.index()]
    }

    /// A node takes what it has heard for its own: whether there was any news.
    pub fn takes_news(&mut self, node: NodeId) -> bool {
        std::mem::take(&mut self.has_news[node.index()])
    }

    /// The links that a node takes to be dead, each by its lower end, in order.
    #[must_use]
    pub fn dead(&self, node: NodeId) -> Vec<PortId> {
        let known = &self.known[self.row(node)];
        let says = |port: PortId| {
            let vertex = self.topology.port(port).vertex;
            known[vertex.index()] >> self.place(port) & 1 == 1
        };
        let links = self.topology.links();
        let mut dead: Vec<PortId> = links
            .map(|port| port.min(self.topology.port(port).reverse))
            .filter(|&port| !says(port) || !says(self.topology.port(port).reverse))
            .collect();
        dead.sort_unstable();
        dead
    }

    /// A node that was silent is going to greet: it has missed no greeting so far.
    pub fn resume(&mut self, node: NodeId) {
        for port in self.ports(node) {
            let end = &mut self.ends[port.index()];
            end.silent = if end.lives { 0 } else { end.silent };
        }
    }

    /// An interval of a node has passed: it greets its neighbours, and asks those within `reach` to
    /// greet too. One that asks nobody but itself misses no answer.
    pub fn greet(&mut self, node: NodeId, reach: u8, out: &mut Vec<(PortId, Word)>) {
        let mut has_lost = false;
        for port in self.ports(node) {
            let end = &mut self.ends[port.index()];
            end.silent = end.silent.saturating_add(u16::from(reach > 1));
            if end.lives && end.silent > self.missed {
                end.lives = false;
                has_lost = true;
            }
        }
        if has_lost {
            self.declare(node, out);
        }
        for port in self.ports(node) {
            let place = self.place(port) as u8;
            let end = &mut self.ends[port.index()];
            end.number = end.number.checked_add(1).unwrap_or(1);
            let heard = if end.silent <= self.missed { end.heard } else { 0 };
            let (number, digest) = (end.number, self.digests[node.index()]);
            out.push((
                port,
                Word::Hello(Hello { source: node, port: place, reach, number, heard, digest }),
            ));
        }
    }

    /// A node hears a greeting by one of its ports.
    pub fn hear_hello(&mut self, port: PortId, hello: &Hello, out: &mut Vec<(PortId, Word)>) {
        let node = NodeId::new(self.topology.port(port).vertex.get());
        let end = &mut self.ends[port.index()];
        (end.silent, end.heard) = (0, hello.number);
        let is_heard = hello.heard != 0;
        let changes = end.lives != is_heard;
        end.lives = is_heard;
        if changes {
            self.declare(node, out);
        }
        // While news spread, it is usual to differ.
        let differs = hello.digest != self.digests[node.index()] && !self.has_news[node.index()];
        if is_heard && (changes || differs) {
            self.tell_all(node, port, out);
        }
    }

    /// A node hears of the links of one by one of its ports.
    pub fn hear_state(&mut self, port: PortId, state: &LinkState, out: &mut Vec<(PortId, Word)>) {
        let node = NodeId::new(self.topology.port(port).vertex.get());
        let heard = state.sequence << PORTS | u32::from(state.living);
        let had = self.known[self.row(node)][state.source.index()];
        if heard == had || heard >> PORTS < had >> PORTS {
            return;
        }
        self.store(node, state.source, heard);
        if state.source == node {
            // What it said before it was switched off: it says something newer.
            self.declare(node, out);
        } else {
            self.flood(node, state, Some(port), out);
        }
    }

    fn ports(&self, node: NodeId) -> impl Iterator<Item = PortId> + use<> {
        self.topology.ports_of(self.topology.host(node))
    }

    fn row(&self, node: NodeId) -> std::ops::Range<usize> {
        let nodes = self.digests.len();
        node.index() * nodes..(node.index() + 1) * nodes
    }

    /// A port's place among those of its node.
    fn place(&self, port: PortId) -> u32 {
        let first = self.topology.ports_of(self.topology.port(port).vertex).next();
        port.get() - first.expect("a vertex with a port has a first").get()
    }

    /// A node says which of its links live.
    fn declare(&mut self, node: NodeId, out: &mut Vec<(PortId, Word)>) {
        let living = self.ports(node).filter(|port| self.ends[port.index()].lives);
        let living: u32 = living.map(|port| 1 << self.place(port)).sum();
        let number = (self.known[self.row(node)][node.index()] >> PORTS) + 1;
        self.store(node, node, number << PORTS | living);
        let state = LinkState { source: node, sequence: number, living: living as u8 };
        self.flood(node, &state, None, out);
    }

    /// A node knows a state.
    fn store(&mut self, node: NodeId, source: NodeId, known: Known) {
        let at = self.row(node).start + source.index();
        let had = std::mem::replace(&mut self.known[at], known);
        let source = source.get();
        self.digests[node.index()] ^= digest(source, had) ^ digest(source, known);
        self.has_news[node.index()] = true;
    }

    /// A node says a state by all its living links but one.
    fn flood(
        &self,
        node: NodeId,
        state: &LinkState,
        but: Option<PortId>,
        out: &mut Vec<(PortId, Word)>,
    ) {
        let ports = self.ports(node).filter(|&port| Some(port) != but && self.lives(port));
        out.extend(ports.map(|port| (port, Word::State(*state))));
    }

    /// A node says all that it knows by a port.
    fn tell_all(&self, node: NodeId, port: PortId, out: &mut Vec<(PortId, Word)>) {
        let known = (0..).zip(&self.known[self.row(node)]).filter(|(_, known)| **known > 0);
        out.extend(known.map(|(source, &known)| (port, Word::State(state(source, known)))));
    }
}

fn state(source: u32, known: Known) -> LinkState {
    LinkState { source: NodeId::new(source), sequence: known >> PORTS, living: known as u8 }
}

/// The digest of what is known of a node's links; zero if nothing is.
fn digest(source: u32, known: Known) -> u32 {
    if known == 0 { 0 } else { state(source, known).digest() }
}

#[cfg(test)]
mod tests;
