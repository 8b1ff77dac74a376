//! Who is wired to whom: hosts, switches and the links between them.
//!
//! A topology is a graph of vertices. The hosts come first, `0..hosts`, and are the nodes of the
//! rack; switches follow. A host may have several links and pass traffic on: that is a
//! direct-connect rack. Links join two vertices in both directions; between two vertices there may
//! be several. Everything lies in flat arrays, by vertex, in the order in which the links were added.
//!
//! Leaves out: what a vertex does with a packet (that is the network's), and wires of which the two
//! directions differ.

mod clos;
mod edges;
mod extent;
mod measure;
mod parts;
mod racks;
mod shape;
mod torus;

use kernel::{Bytes, Rate, Span};

use crate::{NodeId, Problem};

pub use clos::{LeafSpine, SingleSwitch, ThreeTier};
pub use edges::Graph;
pub use extent::Extent;
pub use measure::UNREACHABLE;
pub use parts::Parts;
pub use racks::{Ethernet, FRAME_MIN, FRAME_OVERHEAD, Joint, Racks, Tunnel, framed};
pub use shape::Shape;
pub use torus::{Mesh, Torus};

/// A host or a switch, counted from 0, hosts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Vertex(u32);

impl Vertex {
    /// The vertex with this index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index as a number of its own.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The index for an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One end of a link, counted from 0 over all vertices: the ports of vertex 0 first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PortId(u32);

impl PortId {
    /// The port with this index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// The index as a number of its own.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The index for an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a link is like, in each direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Rate in each direction; above zero.
    pub rate: Rate,
    /// Propagation.
    pub delay: Span,
}

/// One end of a link, and the direction out of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// The vertex that it belongs to.
    pub vertex: Vertex,
    /// The vertex at the other end.
    pub peer: Vertex,
    /// The other end.
    pub reverse: PortId,
    /// What the link is like.
    pub link: Link,
}

/// Where a vertex stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// A host.
    Host,
    /// A switch that hosts are attached to.
    Leaf,
    /// A switch that joins leaves.
    Spine,
    /// A switch that joins spines of several pods.
    Core,
    /// A switch of a graph without tiers.
    Other,
}

/// A checked topology: all vertices are connected, no link leads back to its own vertex.
#[derive(Clone, Debug)]
pub struct Topology {
    hosts: u32,
    tiers: Vec<Tier>,
    /// First port of each vertex, and the number of ports at the end.
    first: Vec<u32>,
    ports: Vec<Port>,
    /// Links from rack to rack, in the order in which they were added.
    joints: Vec<Joint>,
    /// The ports that lead to other racks, in order, and whether into a tunnel.
    outward: Vec<(PortId, bool)>,
}

impl Topology {
    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// How many vertices there are, hosts and switches.
    #[must_use]
    pub fn vertices(&self) -> u32 {
        self.tiers.len() as u32
    }

    /// Where a vertex stands.
    #[must_use]
    pub fn tier(&self, vertex: Vertex) -> Tier {
        self.tiers[vertex.index()]
    }

    /// Whether a vertex is a host.
    #[must_use]
    pub fn is_host(&self, vertex: Vertex) -> bool {
        vertex.get() < self.hosts
    }

    /// The vertex of a host.
    ///
    /// # Panics
    /// If there is no such host.
    #[must_use]
    pub fn host(&self, node: NodeId) -> Vertex {
        assert!(node.get() < self.hosts, "{node} of {} hosts", self.hosts);
        Vertex(node.get())
    }

    /// All ports, by vertex.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// A port.
    #[must_use]
    pub fn port(&self, port: PortId) -> &Port {
        &self.ports[port.index()]
    }

    /// The ports of a vertex, in the order in which its links were added.
    pub fn ports_of(&self, vertex: Vertex) -> impl ExactSizeIterator<Item = PortId> + use<> {
        (self.first[vertex.index()]..self.first[vertex.index() + 1]).map(PortId)
    }

    /// How many ports a vertex has.
    #[must_use]
    pub fn degree(&self, vertex: Vertex) -> u32 {
        self.first[vertex.index() + 1] - self.first[vertex.index()]
    }

    /// All links, each once: the end at the vertex that was named first.
    pub fn links(&self) -> impl Iterator<Item = PortId> + '_ {
        (0..self.ports.len() as u32).map(PortId).filter(|&p| p < self.port(p).reverse)
    }

    /// The links from rack to rack, where there are several racks.
    #[must_use]
    pub fn joints(&self) -> &[Joint] {
        &self.joints
    }

    /// Whether a port leads to another rack.
    #[inline]
    #[must_use]
    pub fn leads_out(&self, port: PortId) -> bool {
        self.outward.binary_search_by_key(&port, |&(port, _)| port).is_ok()
    }

    /// Whether a port leads into a tunnel, in which packets are in Ethernet frames.
    #[must_use]
    pub fn is_tunnel(&self, port: PortId) -> bool {
        let found = self.outward.binary_search_by_key(&port, |&(port, _)| port);
        found.is_ok_and(|place| self.outward[place].1)
    }

    /// The rate at which a link carries packets of this size: less than its own where it puts them in frames. Unit: bit/s.
    #[must_use]
    pub fn carried_rate(&self, port: PortId, size: Bytes) -> Rate {
        let rate = self.port(port).link.rate;
        if !self.is_tunnel(port) {
            return rate;
        }
        let (size, framed) = (u128::from(size.get()), u128::from(racks::framed(size).get()));
        Rate::from_bps((u128::from(rate.as_bps()) * size / framed) as u64)
    }
}

/// Puts a topology together.
#[derive(Clone, Debug)]
pub struct Builder {
    hosts: u32,
    tiers: Vec<Tier>,
    links: Vec<(Vertex, Vertex, Link)>,
    /// Which links lead from rack to rack.
    joints: Vec<(usize, Option<Tunnel>)>,
}

/// The slowest link (our choice: the largest packet takes a minute on it).
pub const RATE_MIN: Rate = Rate::from_bps(1_000);
/// The longest link (our choice: far beyond any rack).
pub const DELAY_MAX: Span = Span::from_us(1_000_000_000);

/// Most ports of one vertex: what 16 bits can number.
const DEGREE_MAX: u32 = u16::MAX as u32;

impl Builder {
    /// `hosts` hosts and no link.
    #[must_use]
    pub fn new(hosts: u32) -> Self {
        Self {
            hosts,
            tiers: vec![Tier::Host; hosts as usize],
            links: Vec::new(),
            joints: Vec::new(),
        }
    }

    /// Adds a switch.
    pub fn switch(&mut self, tier: Tier) -> Vertex {
        self.tiers.push(tier);
        Vertex(self.tiers.len() as u32 - 1)
    }

    /// Adds `count` switches.
    pub fn switches(&mut self, tier: Tier, count: u32) -> Vec<Vertex> {
        (0..count).map(|_| self.switch(tier)).collect()
    }

    /// Joins two vertices, in both directions.
    pub fn link(&mut self, a: Vertex, b: Vertex, link: Link) {
        self.links.push((a, b, link));
    }

    /// Joins two vertices of different racks, in both directions, by a cable or by a tunnel.
    pub fn join(&mut self, a: Vertex, b: Vertex, link: Link, tunnel: Option<Tunnel>) {
        self.joints.push((self.links.len(), tunnel));
        self.link(a, b, link);
    }

    /// The topology.
    ///
    /// # Errors
    /// Every problem: a link from a vertex to itself, to one that does not exist or of rate zero,
    /// too many ports at a vertex, fewer than two hosts, or, if all that is well, vertices that no
    /// path joins.
    pub fn build(self) -> Result<Topology, Vec<Problem>> {
        let problems = self.check();
        if !problems.is_empty() {
            return Err(problems);
        }
        let topology = self.assemble();
        match topology.island() {
            None => Ok(topology),
            Some(problem) => Err(vec![problem]),
        }
    }

    fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut complain = |message: String| problems.push(Problem::new("", message));
        if self.hosts < 2 {
            complain(format!("{} hosts; a network needs 2 or more", self.hosts));
        }
        let count = self.tiers.len() as u32;
        let mut degrees = vec![0u32; self.tiers.len()];
        for (index, &(a, b, link)) in self.links.iter().enumerate() {
            let name = format!("link {index} from vertex {} to vertex {}", a.0, b.0);
            if a == b {
                complain(format!("{name} leads back to where it starts; remove it"));
            }
            for end in [a, b] {
                match degrees.get_mut(end.index()) {
                    Some(degree) => *degree += 1,
                    None => complain(format!(
                        "{name}: there is no vertex {}; expected 0 to {}",
                        end.0,
                        count - 1
                    )),
                }
            }
            if link.rate == Rate::default() {
                complain(format!("{name} has a rate of zero; expected, for example, \"100 Gbps\""));
            } else if link.rate < RATE_MIN {
                complain(format!("{name} has {}; expected at least {RATE_MIN}", link.rate));
            }
            if link.delay > DELAY_MAX {
                complain(format!("{name} takes {}; expected at most {DELAY_MAX}", link.delay));
            }
        }
        if let Some(vertex) = degrees.iter().position(|&degree| degree > DEGREE_MAX) {
            let degree = degrees[vertex];
            complain(format!("vertex {vertex} has {degree} ports; expected at most {DEGREE_MAX}"));
        }
        problems
    }

    /// Sorts the ports by vertex, keeping the order of the links.
    fn assemble(self) -> Topology {
        let mut first = vec![0u32; self.tiers.len() + 1];
        for &(a, b, _) in &self.links {
            first[a.index() + 1] += 1;
            first[b.index() + 1] += 1;
        }
        for vertex in 0..self.tiers.len() {
            first[vertex + 1] += first[vertex];
        }
        let mut next = first.clone();
        let mut place = |vertex: Vertex| {
            next[vertex.index()] += 1;
            PortId(next[vertex.index()] - 1)
        };
        let blank = Link { rate: Rate::default(), delay: Span::ZERO };
        let unset = Port { vertex: Vertex(0), peer: Vertex(0), reverse: PortId(0), link: blank };
        let mut ports = vec![unset; 2 * self.links.len()];
        let mut named = Vec::with_capacity(self.joints.len());
        let mut joints = self.joints.iter().peekable();
        for (index, &(a, b, link)) in self.links.iter().enumerate() {
            let (there, back) = (place(a), place(b));
            ports[there.index()] = Port { vertex: a, peer: b, reverse: back, link };
            ports[back.index()] = Port { vertex: b, peer: a, reverse: there, link };
            let joint = joints.next_if(|(joint, _)| *joint == index);
            named.extend(joint.map(|&(_, tunnel)| Joint { port: there, tunnel }));
        }
        let ends = |joint: &Joint| {
            let is_tunnel = joint.tunnel.is_some();
            [joint.port, ports[joint.port.index()].reverse].map(|port| (port, is_tunnel))
        };
        let mut outward: Vec<_> = named.iter().flat_map(ends).collect();
        outward.sort_unstable();
        Topology { hosts: self.hosts, tiers: self.tiers, first, ports, joints: named, outward }
    }
}

#[cfg(test)]
mod tests;
