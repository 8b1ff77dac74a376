//! Shortest paths on any graph: how far each vertex is from a node, and by how many paths.
//!
//! Models: what random packet spraying asks (R2C2 §2.2.1, claim M26). A packet that leaves each
//! vertex by a port in proportion to the number of shortest paths beyond it takes every path with
//! the same probability. Links lead both ways, so that both tables serve for paths from a node too.
//!
//! Memory: ten bytes for each vertex and target: 2.6 MB for 512 nodes, 168 MB for 4,096. A whole
//! torus needs a single target, 41 KB for 4,096 nodes.

use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};

/// A distance to where no path leads.
const FAR: u16 = u16::MAX;

/// Which targets to look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Targets {
    /// Node 0 alone.
    First,
    /// All nodes.
    All,
}

/// Distances and counts of shortest paths.
#[derive(Debug)]
pub(super) struct Ways {
    vertices: usize,
    /// By target and vertex: links on a shortest path.
    distances: Vec<u16>,
    /// By target and vertex: how many shortest paths there are. A float, as the number grows
    /// without bound and only ratios of it choose a path.
    counts: Vec<f64>,
}

impl Ways {
    /// The shortest paths over living ports to these targets.
    ///
    /// # Panics
    /// If a path has more than 65,534 links.
    pub(super) fn new(topology: &Topology, living: &[bool], targets: Targets) -> Self {
        let targets = if targets == Targets::First { 1 } else { topology.hosts() };
        let vertices = topology.vertices() as usize;
        let size = vertices * targets as usize;
        let mut ways = Self { vertices, distances: vec![FAR; size], counts: vec![0.0; size] };
        let mut queue = Vec::with_capacity(vertices);
        for target in 0..targets {
            ways.fill(topology, living, NodeId::new(target), &mut queue);
        }
        ways
    }

    fn fill(
        &mut self,
        topology: &Topology,
        living: &[bool],
        target: NodeId,
        queue: &mut Vec<Vertex>,
    ) {
        let row = target.index() * self.vertices..(target.index() + 1) * self.vertices;
        let distances = &mut self.distances[row.clone()];
        let counts = &mut self.counts[row];
        queue.clear();
        queue.push(topology.host(target));
        distances[target.index()] = 0;
        counts[target.index()] = 1.0;
        let mut at = 0;
        while let Some(&vertex) = queue.get(at) {
            at += 1;
            let next = distances[vertex.index()] + 1;
            assert!(next < FAR, "a shortest path of more than {FAR} links");
            for port in topology.ports_of(vertex).filter(|port| living[port.index()]) {
                let peer = topology.port(port).peer.index();
                if distances[peer] == FAR {
                    distances[peer] = next;
                    queue.push(topology.port(port).peer);
                }
                if distances[peer] == next {
                    counts[peer] += counts[vertex.index()];
                }
            }
        }
    }

    /// Links from a vertex to a node; `None` if no path leads there.
    pub(super) fn distance(&self, from: Vertex, to: NodeId) -> Option<u32> {
        let distance = self.distances[to.index() * self.vertices + from.index()];
        (distance != FAR).then_some(u32::from(distance))
    }

    /// How many shortest paths lead from a vertex to a node.
    pub(super) fn count(&self, from: Vertex, to: NodeId) -> f64 {
        self.counts[to.index() * self.vertices + from.index()]
    }

    /// What lies on shortest paths to a node.
    pub(super) fn toward(&self, target: NodeId) -> Toward<'_> {
        let row = target.index() * self.vertices..(target.index() + 1) * self.vertices;
        Toward { distances: &self.distances[row.clone()], counts: &self.counts[row] }
    }
}

/// The shortest paths to one node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Toward<'a> {
    distances: &'a [u16],
    counts: &'a [f64],
}

impl Toward<'_> {
    /// Links from a vertex; `None` if no path leads from there.
    #[inline]
    pub(super) fn distance(&self, from: Vertex) -> Option<u32> {
        let distance = self.distances[from.index()];
        (distance != FAR).then_some(u32::from(distance))
    }

    /// How many shortest paths lead from a vertex.
    #[inline]
    pub(super) fn count(&self, from: Vertex) -> f64 {
        self.counts[from.index()]
    }

    /// Whether a link from one vertex to another lies on a shortest path. The link must live.
    #[inline]
    pub(super) fn nearer(&self, from: Vertex, to: Vertex) -> bool {
        self.distances[to.index()] < self.distances[from.index()]
    }

    /// The living ports out of a vertex that lie on shortest paths.
    #[inline]
    pub(super) fn ports<'b>(
        &'b self,
        topology: &'b Topology,
        living: impl Fn(PortId) -> bool + 'b,
        from: Vertex,
    ) -> impl Iterator<Item = PortId> + 'b {
        let nearer = move |port: &PortId| self.nearer(from, topology.port(*port).peer);
        topology.ports_of(from).filter(nearer).filter(move |&port| living(port))
    }
}
