//! One big circuit switch out of many small ones.
//!
//! Models: Shoal §3.2, Figs 2 to 4 (claims S10 to S17): circuit switches of few ports in a
//! non-blocking Clos of leaves and spines; every cell crosses leaf, spine and leaf, even between
//! neighbours on one leaf, so that all nodes are equally far apart. With p-port switches it
//! connects p²/2 nodes; a smaller rack has fewer leaves, fewer spines and parallel links between
//! them (§5: 512 nodes on 24 switches of 64 ports). Each channel of a link (§3.4) is switched by a
//! *plane* of its own, a whole Clos; that the planes are separate switches is **our choice**.
//!
//! [`schedules`] decomposes the fabric's schedule into one for each switch, [`proof`] shows that
//! they are free of contention, [`failures`] knows who is cut off by a broken part, and
//! [`hardware`] has the facts of the switches themselves.
//!
//! Within a plane leaves and spines are counted from 0. In a whole rack ([`::rack::Component`])
//! they are counted through, plane after plane: leaf `l` of plane `c` is `c` times the leaves of a
//! plane plus `l`. Where one switch is enough for all nodes it counts as a leaf.

pub mod colouring;
pub mod failures;
pub mod hardware;
pub mod proof;
pub mod schedules;

use ::rack::{NodeId, Problem};

pub use failures::{Direction, LostSlots, PairSet};
pub use hardware::{SwitchHardware, SwitchLayer};
pub use proof::{Violation, check_position, prove_contention_free};
pub use schedules::{Path, PositionMaps, Route, SwitchSchedules};

/// A switch of one plane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Switch {
    /// The only one.
    Single,
    /// One to which nodes are attached.
    Leaf(u32),
    /// One between leaves.
    Spine(u32),
}

/// What a switch port is wired to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// A node.
    Node(NodeId),
    /// A port of another switch.
    Port(Switch, u32),
}

/// The spines of a two-stage fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stage {
    nodes_per_leaf: u32,
    leaves: u32,
    spines: u32,
    links: u32,
}

/// Switches and wires of a rack.
///
/// Ports of a leaf: its nodes first, then its uplinks. Ports of a spine: the links to leaf 0, then
/// those to leaf 1, and so on. Uplink `u` is link `u / spines` to spine `u % spines`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clos {
    nodes: u32,
    radix: u32,
    planes: u32,
    /// `None`: a single switch is enough.
    stage: Option<Stage>,
}

impl Clos {
    /// The fewest switches of `radix` ports that connect `nodes` without blocking, in each of
    /// `planes` planes.
    ///
    /// # Errors
    /// Without nodes, ports or planes to speak of, and above p²/2 nodes (§3.2).
    pub fn for_rack(nodes: u32, radix: u32, planes: u32) -> Result<Self, Problem> {
        if nodes < 2 {
            return Err(Problem::new("nodes", format!("{nodes} nodes: a rack has at least 2")));
        }
        if planes == 0 {
            return Err(Problem::new("channels", "0 channels: a link has at least 1"));
        }
        if radix < 2 {
            let message = format!("{radix} ports: a circuit switch has at least 2");
            return Err(Problem::new("radix", message));
        }
        if nodes <= radix {
            return Ok(Self { nodes, radix, planes, stage: None });
        }
        let nodes_per_leaf = radix / 2;
        let leaves = nodes.div_ceil(nodes_per_leaf);
        if leaves > radix {
            let most = u64::from(radix) * u64::from(nodes_per_leaf);
            let message = format!(
                "{nodes} nodes: two stages of {radix}-port switches connect at most {most}; use \
                 switches with more ports"
            );
            return Err(Problem::new("nodes", message));
        }
        // As many parallel links as a spine has ports for, so that there are few spines.
        let links = (1..=radix / leaves)
            .rev()
            .find(|&links| nodes_per_leaf.is_multiple_of(links))
            .expect("a single link divides any number of nodes");
        let spines = nodes_per_leaf / links;
        let stage = Some(Stage { nodes_per_leaf, leaves, spines, links });
        Ok(Self { nodes, radix, planes, stage })
    }

    /// Nodes of the rack.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Ports of a switch.
    #[must_use]
    pub fn radix(&self) -> u32 {
        self.radix
    }

    /// Planes, one for each channel of a link.
    #[must_use]
    pub fn planes(&self) -> u32 {
        self.planes
    }

    /// Switches in a plane to which nodes are attached.
    #[must_use]
    pub fn leaves(&self) -> u32 {
        self.stage.map_or(1, |stage| stage.leaves)
    }

    /// Switches in a plane between the leaves; 0: there is one stage.
    #[must_use]
    pub fn spines(&self) -> u32 {
        self.stage.map_or(0, |stage| stage.spines)
    }

    /// Parallel links between each leaf and each spine.
    #[must_use]
    pub fn links(&self) -> u32 {
        self.stage.map_or(0, |stage| stage.links)
    }

    /// The most nodes on one leaf; the last leaf may have fewer.
    #[must_use]
    pub fn nodes_per_leaf(&self) -> u32 {
        self.stage.map_or(self.nodes, |stage| stage.nodes_per_leaf)
    }

    /// Links from a leaf to the spines: as many as it has nodes, so that nothing blocks.
    #[must_use]
    pub fn uplinks(&self) -> u32 {
        self.spines() * self.links()
    }

    /// Switches in a plane.
    #[must_use]
    pub fn switches_per_plane(&self) -> u32 {
        self.leaves() + self.spines()
    }

    /// Switches of the whole rack.
    #[must_use]
    pub fn switches(&self) -> u32 {
        self.switches_per_plane() * self.planes
    }

    /// Switches on the way from any node to any other: 3, or 1 where one is enough.
    #[must_use]
    pub fn hops(&self) -> u32 {
        if self.stage.is_some() { 3 } else { 1 }
    }

    /// The switches of a plane, leaves first.
    pub fn switch_list(&self) -> impl Iterator<Item = Switch> + use<> {
        let (leaves, spines) = self.stage.map_or((0, 0), |stage| (stage.leaves, stage.spines));
        let single = self.stage.is_none().then_some(Switch::Single);
        let leaves = (0..leaves).map(Switch::Leaf);
        single.into_iter().chain(leaves).chain((0..spines).map(Switch::Spine))
    }

    /// The index of a switch in [`Clos::switch_list`].
    #[must_use]
    pub fn switch_index(&self, switch: Switch) -> usize {
        match switch {
            Switch::Single => 0,
            Switch::Leaf(leaf) => leaf as usize,
            Switch::Spine(spine) => (self.leaves() + spine) as usize,
        }
    }

    /// The leaf of a node.
    #[must_use]
    pub fn leaf(&self, node: NodeId) -> u32 {
        node.get() / self.nodes_per_leaf()
    }

    /// The switch and port of a node, in every plane.
    #[must_use]
    pub fn attachment(&self, node: NodeId) -> (Switch, u32) {
        match self.stage {
            None => (Switch::Single, node.get()),
            Some(stage) => (Switch::Leaf(self.leaf(node)), node.get() % stage.nodes_per_leaf),
        }
    }

    /// The spine and the parallel link of an uplink.
    #[must_use]
    pub fn spine_of_uplink(&self, uplink: u32) -> (u32, u32) {
        (uplink % self.spines(), uplink / self.spines())
    }

    /// The leaf's port of an uplink.
    #[must_use]
    pub fn uplink_port(&self, uplink: u32) -> u32 {
        self.nodes_per_leaf() + uplink
    }

    /// The spine's port of a parallel link to a leaf.
    #[must_use]
    pub fn spine_port(&self, leaf: u32, link: u32) -> u32 {
        leaf * self.links() + link
    }

    /// What a port of a switch is wired to; `None`: nothing, or there is no such port.
    #[must_use]
    pub fn wire(&self, switch: Switch, port: u32) -> Option<End> {
        let node = |index: u32| (index < self.nodes).then_some(End::Node(NodeId::new(index)));
        let per_leaf = self.nodes_per_leaf();
        match switch {
            Switch::Single => node(port),
            Switch::Leaf(leaf) if port < per_leaf => node(leaf * per_leaf + port),
            Switch::Leaf(leaf) => {
                let uplink = port - per_leaf;
                let (spine, link) = self.spine_of_uplink(uplink);
                let port = self.spine_port(leaf, link);
                (uplink < self.uplinks()).then_some(End::Port(Switch::Spine(spine), port))
            }
            Switch::Spine(spine) => {
                let (leaf, link) = (port / self.links(), port % self.links());
                let port = self.uplink_port(link * self.spines() + spine);
                (leaf < self.leaves()).then_some(End::Port(Switch::Leaf(leaf), port))
            }
        }
    }
}

#[cfg(test)]
mod tests;
