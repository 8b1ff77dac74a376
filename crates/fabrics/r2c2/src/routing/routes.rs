//! Routes for packets, drawn at random as their protocol has it.
//!
//! Models: R2C2 §3.5, §4.2 (claims M26 to M29, M34): the sender picks a complete path for each
//! packet. On a torus or mesh that takes coordinates alone; on any other graph, the tables of
//! shortest paths. The mean of what drawn routes cross is what [`Shares`](super::Shares) says.

use kernel::Stream;
use rack::topology::Vertex;
use rack::{NodeId, Problem};

use super::draw::{self, Walk};
use super::grid::{Axis, Turn};
use super::route::{HOPS_MAX, LINKS_MAX};
use super::spray::Pick;
use super::{Network, Protocol, Route};

/// What draws routes on one network.
#[derive(Clone, Debug)]
pub struct Routes {
    network: Network,
    /// The longest route of each protocol, or why it cannot be used here.
    hops_max: Vec<Result<u32, Problem>>,
    /// The nodes, those that paths join one after the other.
    members: Vec<NodeId>,
    /// For each node, where in `members` those start and end that paths join it to.
    part: Vec<[u32; 2]>,
    /// Whether some pair of nodes that paths join is farther apart than a route can lead.
    has_far_pairs: bool,
}

impl Routes {
    /// Routes on `network`.
    ///
    /// # Errors
    /// If a vertex has more links than a hop can tell apart.
    pub fn new(network: &Network) -> Result<Self, Problem> {
        let topology = network.topology();
        let vertices = (0..topology.vertices()).map(Vertex::new);
        if let Some(vertex) = { vertices }.find(|&vertex| topology.degree(vertex) > LINKS_MAX) {
            let (index, degree) = (vertex.get(), topology.degree(vertex));
            let message = format!(
                "vertex {index} has {degree} links, and a hop of a source route has 3 bits; \
                 expected at most {LINKS_MAX}"
            );
            return Err(Problem::new("topology", message));
        }
        let (members, part) = parts(network);
        let diameter = diameter(network);
        let hops_max = Protocol::ALL.map(|protocol| hops_max(network, protocol, diameter));
        let has_far_pairs = diameter > HOPS_MAX;
        Ok(Self {
            network: network.clone(),
            hops_max: hops_max.to_vec(),
            members,
            part,
            has_far_pairs,
        })
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The most hops that a packet takes under a protocol.
    ///
    /// # Errors
    /// If the protocol needs a whole torus or mesh and this is none, or if its longest route does
    /// not fit a packet's header.
    pub fn hops_max(&self, protocol: Protocol) -> Result<u32, Problem> {
        self.hops_max[usize::from(protocol.number())].clone()
    }

    /// Whether a path joins two nodes.
    #[inline]
    #[must_use]
    pub fn joins(&self, a: NodeId, b: NodeId) -> bool {
        self.part[a.index()] == self.part[b.index()]
    }

    /// Whether a packet can get from one node to another: a path joins them, and a header has room for
    /// the shortest.
    #[inline]
    #[must_use]
    pub fn leads(&self, src: NodeId, dst: NodeId) -> bool {
        let is_near = |hops| hops <= HOPS_MAX;
        self.joins(src, dst)
            && (!self.has_far_pairs || self.network.distance(src, dst).is_some_and(is_near))
    }

    /// What stands for a protocol where it cannot be used: one that any graph has or, where that takes
    /// too many hops, shortest paths, for pairs that they lead to.
    #[must_use]
    pub fn usable(&self, wanted: Protocol) -> Protocol {
        let fits = |protocol: &Protocol| self.hops_max[usize::from(protocol.number())].is_ok();
        [wanted, wanted.on_any_graph()].into_iter().find(fits).unwrap_or(Protocol::Rps)
    }

    /// A route from one node to another; `None` if none [leads](Self::leads) there.
    ///
    /// # Panics
    /// If the protocol is neither random packet spraying nor one without an error in
    /// [`Routes::hops_max`].
    #[inline]
    #[must_use]
    pub fn draw(
        &self,
        protocol: Protocol,
        src: NodeId,
        dst: NodeId,
        stream: &mut Stream,
    ) -> Option<Route> {
        if !self.leads(src, dst) {
            return None;
        }
        let [start, end] = self.part[src.index()];
        let mut walk = Walk::new(&self.network, src);
        match protocol {
            Protocol::Rps => draw::spray(&mut walk, Pick::ByPath, dst, stream),
            Protocol::RpsByHop => draw::spray(&mut walk, Pick::ByHop, dst, stream),
            Protocol::Valiant if src != dst => {
                let drawn = u64::from(start) + stream.below(u64::from(end - start));
                draw::spray(&mut walk, Pick::ByPath, self.members[drawn as usize], stream);
                draw::spray(&mut walk, Pick::ByPath, dst, stream);
            }
            Protocol::Valiant => {}
            Protocol::DimensionOrder => {
                draw::dimension_order(&mut walk, Turn::Minimal, dst, stream);
            }
            Protocol::DimensionOrderUp => {
                draw::dimension_order(&mut walk, Turn::MinimalUp, dst, stream);
            }
            Protocol::Weighted => {
                draw::over_random_node(&mut walk, Turn::Weighted, dst, stream);
            }
            Protocol::WeightedThreshold => {
                draw::over_random_node(&mut walk, Turn::WeightedThreshold, dst, stream);
            }
            Protocol::Romm => draw::over_random_node(&mut walk, Turn::Minimal, dst, stream),
        }
        Some(walk.finish())
    }
}

/// The nodes ordered by which of them paths join, and the bounds of each one's part.
fn parts(network: &Network) -> (Vec<NodeId>, Vec<[u32; 2]>) {
    let nodes = network.nodes();
    let mut members: Vec<NodeId> = Vec::with_capacity(nodes as usize);
    let mut part = vec![[0, 0]; nodes as usize];
    for node in (0..nodes).map(NodeId::new) {
        if part[node.index()] != [0, 0] {
            continue;
        }
        let start = members.len();
        let joined = |&other: &NodeId| network.distance(other, node).is_some();
        members.extend((node.get()..nodes).map(NodeId::new).filter(joined));
        for member in &members[start..] {
            part[member.index()] = [start as u32, members.len() as u32];
        }
    }
    (members, part)
}

/// The longest of the shortest paths between nodes that paths join.
fn diameter(network: &Network) -> u32 {
    match network.grid() {
        Some(grid) => grid.axes().iter().map(|axis| axis.steps_max(Turn::Minimal)).sum(),
        None => network.ways().diameter(),
    }
}

fn hops_max(network: &Network, protocol: Protocol, diameter: u32) -> Result<u32, Problem> {
    network.suits(protocol)?;
    let along = |turn| -> u32 {
        let axes = network.grid().map_or(&[][..], |grid| grid.axes());
        axes.iter().map(|axis: &Axis| axis.steps_max(turn)).sum()
    };
    let hops = match protocol {
        Protocol::Valiant => 2 * diameter,
        Protocol::Weighted => along(Turn::Weighted),
        Protocol::WeightedThreshold => along(Turn::WeightedThreshold),
        _ => diameter,
    };
    if hops > HOPS_MAX {
        let message = format!(
            "{} takes up to {hops} hops in this network, and a packet's header has room for \
             {HOPS_MAX}; expected a protocol of shorter routes or a smaller network",
            protocol.name()
        );
        return Err(Problem::new("protocol", message));
    }
    Ok(hops)
}
