//! Broadcast trees, kept as the ports by which each node passes a broadcast on.
//!
//! Models: R2C2 §3.2 (claims M09 to M11, M14). A tree is a shortest-path tree: a traversal of the
//! graph in breadth says how far each vertex is, and any neighbour that is one nearer may be its
//! parent. The trees of a source differ in whom they prefer as parents: each has the vertices in a
//! random order of its own, and the first of the candidates is taken. So a tree depends on what
//! works, not on what failed before, and all nodes come to the same trees; and of the spines of a
//! Clos, which are all at the same distance, one serves all leaves, so that no packet goes by a second one.
//!
//! An entry is a bit for each port of a vertex: a byte where vertices have up to eight links, as
//! headers ask for anyway. With four trees that is 1 MiB for 512 nodes and 64 MiB for 4,096, for all
//! nodes together; a node's own table is 2 KiB and 16 KiB. The trees of a source are grown when they
//! are first wanted ([`Fib::prepare`]): a source that never broadcasts needs none.

use kernel::Stream;
use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};

use crate::routing::Network;

/// Trees of a source. **Our choice** (E21): the paper says "multiple"; four spread the load, and
/// leave the other bits of the packet's byte free.
pub const TREES_DEFAULT: u8 = 4;

/// Stands for no port.
const NONE: u32 = u32::MAX;
/// Stands for a vertex that was not reached.
const FAR: u32 = u32::MAX;

/// The trees of all sources.
#[derive(Clone, Debug)]
pub struct Fib {
    network: Network,
    seed: u64,
    trees: u8,
    vertices: usize,
    /// First port of each vertex.
    first: Vec<u32>,
    /// Bytes of an entry.
    width: usize,
    /// By source, tree and vertex: the ports to the children, the lowest bit first.
    entries: Vec<u8>,
    /// By source: whether its trees are grown.
    is_grown: Vec<bool>,
    growth: Growth,
}

impl Fib {
    /// The trees of all sources in what lives of a network: so many for each source, drawn from the
    /// streams of this seed.
    ///
    /// # Panics
    /// If no tree is asked for.
    #[must_use]
    pub fn new(network: &Network, seed: u64, trees: u8) -> Self {
        let mut fib = Self::unprepared(network, seed, trees);
        (0..network.nodes()).for_each(|source| fib.prepare(NodeId::new(source)));
        fib
    }

    /// The same, of which none is grown yet.
    ///
    /// # Panics
    /// If no tree is asked for.
    #[must_use]
    pub fn unprepared(network: &Network, seed: u64, trees: u8) -> Self {
        assert!(trees > 0, "a source needs a tree to broadcast by");
        let topology = network.topology();
        let all = || (0..topology.vertices()).map(Vertex::new);
        let degree = all().map(|vertex| topology.degree(vertex)).max().unwrap_or(0);
        let (vertices, width) = (topology.vertices() as usize, degree.div_ceil(8) as usize);
        let first = all().map(|vertex| topology.ports_of(vertex).next().map_or(0, PortId::get));
        Self {
            network: network.clone(),
            seed,
            trees,
            vertices,
            first: first.collect(),
            width,
            entries: vec![0; topology.hosts() as usize * usize::from(trees) * vertices * width],
            is_grown: vec![false; topology.hosts() as usize],
            growth: Growth::new(topology),
        }
    }

    /// Grows the trees of a source, unless they are there.
    #[inline]
    pub fn prepare(&mut self, source: NodeId) {
        if !std::mem::replace(&mut self.is_grown[source.index()], true) {
            self.grow(source);
        }
    }

    /// How many trees a source has.
    #[must_use]
    pub fn trees(&self) -> u8 {
        self.trees
    }

    /// Bytes that all trees take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.len()
    }

    /// The ports by which a vertex passes on a broadcast of `source` that goes by `tree`: those to
    /// its children (claim M10). None at a leaf of the tree, or where the broadcast never comes, or of
    /// a source whose trees are not grown.
    ///
    /// # Panics
    /// If there is no such source, tree or vertex.
    #[inline]
    pub fn children(
        &self,
        source: NodeId,
        tree: u8,
        at: Vertex,
    ) -> impl Iterator<Item = PortId> + '_ {
        let first = self.first[at.index()];
        let entry = self.entry(source, tree, at);
        let words = self.entries[entry..entry + self.width].chunks(8).zip((first..).step_by(64));
        words.flat_map(|(bytes, first)| {
            let mut bits = bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(PortId::new(first + bit))
            })
        })
    }

    #[inline]
    fn entry(&self, source: NodeId, tree: u8, at: Vertex) -> usize {
        assert!(tree < self.trees, "tree {tree} of {}", self.trees);
        let row = source.index() * usize::from(self.trees) + usize::from(tree);
        (row * self.vertices + at.index()) * self.width
    }

    /// The byte and the bit of a port at its vertex.
    fn bit(&self, source: NodeId, tree: u8, at: Vertex, port: PortId) -> (usize, u8) {
        let index = port.get() - self.first[at.index()];
        (self.entry(source, tree, at) + index as usize / 8, 1 << (index % 8))
    }

    /// The port by which a broadcast of `source` that goes by `tree` comes to a vertex; none to the
    /// source, and where it never comes.
    #[must_use]
    pub fn parent(&self, source: NodeId, tree: u8, at: Vertex) -> Option<PortId> {
        let topology = self.network.topology();
        topology.ports_of(at).find(|&port| {
            let up = topology.port(port);
            let (byte, bit) = self.bit(source, tree, up.peer, up.reverse);
            self.entries[byte] & bit != 0
        })
    }

    /// The port of a vertex by which a broadcast of `source` that goes by `tree` comes to a vertex below
    /// it; none if it does not come by there.
    #[must_use]
    pub fn towards(
        &self,
        source: NodeId,
        tree: u8,
        from: Vertex,
        mut below: Vertex,
    ) -> Option<PortId> {
        loop {
            let up = self.network.topology().port(self.parent(source, tree, below)?);
            if up.peer == from {
                return Some(up.reverse);
            }
            below = up.peer;
        }
    }

    /// Makes the trees of a source.
    fn grow(&mut self, source: NodeId) {
        let network = self.network.clone();
        let topology = network.topology();
        self.growth.measure(&network, topology.host(source));
        for tree in 0..self.trees {
            let row = u64::from(source.get()) * u64::from(self.trees) + u64::from(tree);
            let mut draw = Stream::new(self.seed, "r2c2/broadcast", row);
            self.growth.prefer(&mut draw);
            self.growth.choose(&network);
            // From the leaves up: a switch that leads to no host is left out.
            for &vertex in self.growth.order[1..].iter().rev() {
                let own = self.entry(source, tree, vertex);
                let is_leaf = self.entries[own..own + self.width].iter().all(|&byte| byte == 0);
                if is_leaf && !topology.is_host(vertex) {
                    continue;
                }
                let up = topology.port(PortId::new(self.growth.parents[vertex.index()]));
                let (byte, bit) = self.bit(source, tree, up.peer, up.reverse);
                self.entries[byte] |= bit;
            }
        }
    }
}

/// The trees of one source while they are made.
#[derive(Clone, Debug)]
struct Growth {
    /// By vertex: links from the source.
    distances: Vec<u32>,
    /// Vertices, the nearest first.
    order: Vec<Vertex>,
    /// By vertex: its place among those that are preferred as parents; 0 most.
    ranks: Vec<u32>,
    ranked: Vec<u32>,
    /// By vertex: its port towards its parent.
    parents: Vec<u32>,
}

impl Growth {
    fn new(topology: &Topology) -> Self {
        let vertices = topology.vertices() as usize;
        Self {
            distances: vec![FAR; vertices],
            order: Vec::with_capacity(vertices),
            ranks: vec![0; vertices],
            ranked: Vec::with_capacity(vertices),
            parents: vec![NONE; vertices],
        }
    }

    /// Finds how far all vertices are, in breadth.
    fn measure(&mut self, network: &Network, source: Vertex) {
        self.distances.fill(FAR);
        self.order.clear();
        self.distances[source.index()] = 0;
        self.order.push(source);
        let mut at = 0;
        while let Some(&vertex) = self.order.get(at) {
            at += 1;
            let next = self.distances[vertex.index()] + 1;
            for port in network.topology().ports_of(vertex).filter(|&port| network.lives(port)) {
                let peer = network.topology().port(port).peer;
                if self.distances[peer.index()] == FAR {
                    self.distances[peer.index()] = next;
                    self.order.push(peer);
                }
            }
        }
    }

    /// Draws which vertices are preferred as parents.
    fn prefer(&mut self, draw: &mut Stream) {
        self.ranked.clear();
        self.ranked.extend(0..self.ranks.len() as u32);
        draw.shuffle(&mut self.ranked);
        for (rank, &vertex) in (0..).zip(&self.ranked) {
            self.ranks[vertex as usize] = rank;
        }
    }

    /// Chooses the parents of all vertices that are reached.
    fn choose(&mut self, network: &Network) {
        let topology = network.topology();
        for &vertex in &self.order[1..] {
            let nearer = self.distances[vertex.index()] - 1;
            let peer = |port: PortId| topology.port(port).peer.index();
            let candidates = topology
                .ports_of(vertex)
                .filter(|&port| self.distances[peer(port)] == nearer && network.lives(port));
            let best = candidates.min_by_key(|&port| self.ranks[peer(port)]);
            self.parents[vertex.index()] =
                best.expect("a vertex is reached from a nearer one").get();
        }
    }
}
