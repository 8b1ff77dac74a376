//! Shortest paths on any graph: how far each vertex is from a node, and by how many paths.
//!
//! Models: what random packet spraying asks (R2C2 §2.2.1, claim M26). A packet that leaves each
//! vertex by a port in proportion to the number of shortest paths beyond it takes every path with
//! the same probability. Links lead both ways, so that both tables serve for paths from a node too.
//!
//! The tables of a target are made when they are first asked for, so that a rack of thousands of nodes does not take
//! seconds and its memory before anything happens in it. Ten bytes for each vertex and target: at most
//! 2.6 MB for 512 nodes, 168 MB for 4,096. A whole torus needs a single target, 41 KB for 4,096 nodes.

use std::sync::{Arc, OnceLock};

use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};

/// A distance to where no path leads.
const FAR: u16 = u16::MAX;
/// Words of bits in which nodes are followed together, and how many nodes that are (our choice: half a
/// cache line).
const WORDS: usize = 4;
const BATCH: usize = WORDS * 64;
/// Bytes of a table for each vertex.
pub(crate) const BYTES_A_VERTEX: u64 = (size_of::<u16>() + size_of::<f64>()) as u64;

/// Distances and counts of shortest paths.
#[derive(Debug)]
pub(super) struct Ways {
    topology: Arc<Topology>,
    /// Whether a packet can leave by each port.
    living: Arc<[bool]>,
    /// By target.
    tables: Box<[OnceLock<Table>]>,
}

/// The shortest paths to one target.
#[derive(Debug)]
struct Table {
    /// By vertex: links on a shortest path.
    distances: Box<[u16]>,
    /// By vertex: how many shortest paths there are. A float, as the number grows without bound and
    /// only ratios of it choose a path.
    counts: Box<[f64]>,
}

impl Table {
    /// # Panics
    /// If a path has more than 65,534 links.
    fn new(topology: &Topology, living: &[bool], target: NodeId) -> Self {
        let vertices = topology.vertices() as usize;
        let (mut distances, mut counts) = (vec![FAR; vertices], vec![0.0; vertices]);
        let mut queue = Vec::with_capacity(vertices);
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
        Self { distances: distances.into(), counts: counts.into() }
    }
}

impl Ways {
    /// The shortest paths over living ports.
    pub(super) fn new(topology: Arc<Topology>, living: Arc<[bool]>) -> Self {
        let tables = (0..topology.hosts()).map(|_| OnceLock::new()).collect();
        Self { topology, living, tables }
    }

    #[inline]
    fn table(&self, target: NodeId) -> &Table {
        let make = || Table::new(&self.topology, &self.living, target);
        self.tables[target.index()].get_or_init(make)
    }

    /// Links from a vertex to a node; `None` if no path leads there.
    pub(super) fn distance(&self, from: Vertex, to: NodeId) -> Option<u32> {
        self.toward(to).distance(from)
    }

    /// How many shortest paths lead from a vertex to a node.
    pub(super) fn count(&self, from: Vertex, to: NodeId) -> f64 {
        self.toward(to).count(from)
    }

    /// The longest of all shortest paths between nodes that a path joins. All nodes are followed at once,
    /// [`BATCH`] of them to a round, a bit each: whom a vertex knows of after so many links its neighbours
    /// do after one more.
    pub(super) fn diameter(&self) -> u32 {
        let (topology, nodes) = (&*self.topology, self.topology.hosts());
        let vertices = topology.vertices() as usize;
        let mut farthest = 0;
        for first in (0..nodes).step_by(BATCH) {
            let mut known = vec![[0u64; WORDS]; vertices];
            for node in (first..nodes).take(BATCH) {
                let bit = (node - first) as usize;
                known[topology.host(NodeId::new(node)).index()][bit / 64] |= 1 << (bit % 64);
            }
            let mut next = known.clone();
            for links in 1.. {
                let (mut grows, mut reaches) = (false, false);
                for vertex in (0..topology.vertices()).map(Vertex::new) {
                    let (before, heard) = (known[vertex.index()], &mut next[vertex.index()]);
                    for port in topology.ports_of(vertex).filter(|port| self.living[port.index()]) {
                        let told = &known[topology.port(port).peer.index()];
                        heard.iter_mut().zip(told).for_each(|(word, told)| *word |= told);
                    }
                    let is_new = *heard != before;
                    grows |= is_new;
                    reaches |= is_new && topology.is_host(vertex);
                }
                if !grows {
                    break;
                }
                farthest = farthest.max(if reaches { links } else { 0 });
                known.copy_from_slice(&next);
            }
        }
        farthest
    }

    /// What lies on shortest paths to a node.
    #[inline]
    pub(super) fn toward(&self, target: NodeId) -> Toward<'_> {
        let Table { distances, counts } = self.table(target);
        Toward { distances, counts }
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
