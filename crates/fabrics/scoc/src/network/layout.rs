//! Who is wired to whom: nodes, leaves and spines, and the ports between them.

use ::rack::NodeId;
use ::rack::topology::{Builder, Link, PortId, Tier, Topology, Vertex};

use super::Config;

/// What a vertex is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Node,
    Leaf(usize),
    Spine(usize),
}

/// The wiring in flat arrays.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) nodes: usize,
    pub(super) leaves: usize,
    pub(super) spines: usize,
    /// By vertex.
    roles: Box<[Role]>,
    /// By port: for a link between leaf and spine which spine, or leaf, is at its other end.
    far: Box<[u16]>,
    /// `leaf * spines + spine`: the leaf's port.
    uplinks: Box<[PortId]>,
    /// `spine * leaves + leaf`: the spine's port.
    downlinks: Box<[PortId]>,
    /// By port: for a leaf's to a spine its leaf.
    own: Box<[Option<u16>]>,
    /// By node: its leaf's port to it. By port: whether it is one of these.
    node_ports: Box<[PortId]>,
    is_node_port: Box<[bool]>,
}

/// The network's graph.
pub(super) fn topology(config: &Config) -> Topology {
    let mut build = Builder::new(config.nodes);
    let leaves = build.switches(Tier::Leaf, config.leaves);
    let spines = build.switches(Tier::Spine, config.spines);
    let link = Link { rate: config.line_rate, delay: config.cable };
    let per_leaf = config.nodes / config.leaves;
    for node in 0..config.nodes {
        build.link(Vertex::new(node), leaves[(node / per_leaf) as usize], link);
    }
    for &leaf in &leaves {
        spines.iter().for_each(|&spine| build.link(leaf, spine, link));
    }
    build.build().expect("a checked rack of leaves and spines is connected")
}

impl Layout {
    pub(super) fn new(config: &Config, topology: &Topology) -> Self {
        let (nodes, leaves) = (config.nodes as usize, config.leaves as usize);
        let spines = config.spines as usize;
        let role = |vertex: usize| match vertex {
            vertex if vertex < nodes => Role::Node,
            vertex if vertex < nodes + leaves => Role::Leaf(vertex - nodes),
            vertex => Role::Spine(vertex - nodes - leaves),
        };
        let roles: Box<[Role]> = (0..topology.vertices() as usize).map(role).collect();
        let mut far = vec![0; topology.ports().len()];
        let mut own = vec![None; topology.ports().len()];
        let mut uplinks = vec![PortId::default(); leaves * spines];
        let mut downlinks = uplinks.clone();
        let mut node_ports = vec![PortId::default(); nodes];
        let mut is_node_port = vec![false; topology.ports().len()];
        for (index, port) in (0..).zip(topology.ports()) {
            match (roles[port.vertex.index()], roles[port.peer.index()]) {
                (Role::Leaf(leaf), Role::Spine(spine)) => {
                    far[index as usize] = spine as u16;
                    own[index as usize] = Some(leaf as u16);
                    uplinks[leaf * spines + spine] = PortId::new(index);
                }
                (Role::Spine(spine), Role::Leaf(leaf)) => {
                    far[index as usize] = leaf as u16;
                    downlinks[spine * leaves + leaf] = PortId::new(index);
                }
                (Role::Leaf(_), Role::Node) => {
                    node_ports[port.peer.index()] = PortId::new(index);
                    is_node_port[index as usize] = true;
                }
                _ => {}
            }
        }
        Self {
            nodes,
            leaves,
            spines,
            roles,
            far: far.into(),
            uplinks: uplinks.into(),
            downlinks: downlinks.into(),
            own: own.into(),
            node_ports: node_ports.into(),
            is_node_port: is_node_port.into(),
        }
    }

    #[inline]
    pub(super) fn role(&self, vertex: Vertex) -> Role {
        self.roles[vertex.index()]
    }

    /// Which spine, or leaf, is at the other end of a link between the two.
    #[inline]
    pub(super) fn far(&self, port: PortId) -> usize {
        usize::from(self.far[port.index()])
    }

    #[inline]
    pub(super) fn uplink(&self, leaf: usize, spine: usize) -> PortId {
        self.uplinks[leaf * self.spines + spine]
    }

    #[inline]
    pub(super) fn downlink(&self, spine: usize, leaf: usize) -> PortId {
        self.downlinks[spine * self.leaves + leaf]
    }

    /// Leaf and spine of a leaf's port to a spine.
    #[inline]
    pub(super) fn as_uplink(&self, port: PortId) -> Option<(usize, usize)> {
        self.own[port.index()].map(|leaf| (usize::from(leaf), self.far(port)))
    }

    #[inline]
    pub(super) fn node_port(&self, node: NodeId) -> PortId {
        self.node_ports[node.index()]
    }

    /// Whether a port is a leaf's to a node.
    #[inline]
    pub(super) fn is_node_port(&self, port: PortId) -> bool {
        self.is_node_port[port.index()]
    }

    /// The leaf of a node, if there is such a node.
    #[inline]
    pub(super) fn known_leaf_of(&self, node: NodeId) -> Option<usize> {
        (node.index() < self.nodes).then(|| self.leaf_of(node))
    }

    #[inline]
    pub(super) fn leaf_of(&self, node: NodeId) -> usize {
        node.index() / (self.nodes / self.leaves)
    }

    /// A node of a leaf, for what is addressed to the leaf itself.
    #[inline]
    pub(super) fn node_of(&self, leaf: usize) -> NodeId {
        NodeId::new((leaf * (self.nodes / self.leaves)) as u32)
    }

    #[inline]
    pub(super) fn leaf_vertex(&self, leaf: usize) -> Vertex {
        Vertex::new((self.nodes + leaf) as u32)
    }

    #[inline]
    pub(super) fn spine_vertex(&self, spine: usize) -> Vertex {
        Vertex::new((self.nodes + self.leaves + spine) as u32)
    }
}
