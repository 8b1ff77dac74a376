//! The fabric's schedule, decomposed into one for each switch.
//!
//! Models: Shoal §3.2, Figs 3 and 4 (claims S12 to S14). A sender `i` that is `s` before its
//! receiver prefers uplink `(i + s / m) mod m`, with `m` nodes on a leaf. Where `m` divides the
//! number of nodes this formula is free of contention as it stands, and each node meets its peers
//! over all spines evenly, sending and receiving; otherwise [`super::colouring`] resolves the few
//! collisions at the leaf where the shift wraps around. The obvious `i mod m` was dropped: with it
//! a node sends over a single spine.

use ::rack::NodeId;

use super::colouring::{Circuit, Colouring};
use super::{Clos, Switch, Violation};

/// No node, or no position.
const NONE: u16 = u16::MAX;

/// The way of the cells from one node to another, the same in every epoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// The position of the epoch in which the two are connected.
    pub position: u32,
    /// The plane, and so the channel, on which they are.
    pub plane: u32,
    /// The switches between them.
    pub route: Route,
}

/// The switches of a path, counted within its plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// The plane's only switch.
    Single,
    /// Leaf, spine, leaf.
    TwoStage {
        /// The sender's leaf.
        leaf_in: u32,
        /// Which of the leaf's uplinks, and on the other side which of the receiving leaf's.
        uplink: u32,
        /// The spine behind it.
        spine: u32,
        /// Which of the parallel links between spine and leaf, on both sides.
        link: u32,
        /// The receiver's leaf.
        leaf_out: u32,
    },
}

/// What the switches of one plane do in one position: each is a map from ingress to egress port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PositionMaps {
    /// In the order of [`Clos::switch_list`]; the index of a map is the ingress port.
    pub maps: Vec<Vec<Option<u32>>>,
}

/// The schedules of all switches.
#[derive(Clone, Debug)]
pub struct SwitchSchedules {
    clos: Clos,
    positions: u32,
    /// `peers[position * nodes + from]`: to whom, or [`NONE`].
    peers: Vec<u16>,
    /// `position_of[from * nodes + to]`; [`NONE`] for a node and itself.
    position_of: Vec<u16>,
    /// `uplink_of[from * nodes + to]`; 0 with one stage.
    uplink_of: Vec<u16>,
}

impl SwitchSchedules {
    /// Decomposes a schedule of `positions`, in each of which a node is connected to `peer`.
    /// Position `p` belongs to plane `p` modulo the number of planes.
    ///
    /// # Errors
    /// If it is no equal-rate schedule: two nodes reach a third at once, or a pair meets twice in
    /// an epoch or never.
    ///
    /// # Panics
    /// If there are 2¹⁶ or more nodes or positions.
    pub fn new(
        clos: Clos,
        positions: u32,
        peer: impl Fn(NodeId, u32) -> Option<NodeId>,
    ) -> Result<Self, Violation> {
        let nodes = clos.nodes();
        assert!(nodes < u32::from(NONE), "schedules for {nodes} nodes");
        assert!(positions < u32::from(NONE), "schedules of {positions} positions");
        let pairs = nodes as usize * nodes as usize;
        let mut schedules = Self {
            clos,
            positions,
            peers: vec![NONE; nodes as usize * positions as usize],
            position_of: vec![NONE; pairs],
            uplink_of: vec![0; pairs],
        };
        for position in 0..positions {
            schedules.connect(position, &peer)?;
        }
        schedules.check_coverage()?;
        if clos.stage.is_some() {
            schedules.choose_uplinks();
        }
        Ok(schedules)
    }

    /// The fabric.
    #[must_use]
    pub fn clos(&self) -> &Clos {
        &self.clos
    }

    /// Positions of an epoch.
    #[must_use]
    pub fn positions(&self) -> u32 {
        self.positions
    }

    /// The plane of a position.
    #[must_use]
    pub fn plane(&self, position: u32) -> u32 {
        position % self.clos.planes()
    }

    /// To whom a node is connected in a position.
    #[must_use]
    pub fn peer(&self, from: NodeId, position: u32) -> Option<NodeId> {
        let peer = self.peers[self.at(position, from)];
        (peer != NONE).then(|| NodeId::new(u32::from(peer)))
    }

    /// The way from one node to another; `None` from a node to itself.
    #[must_use]
    pub fn path(&self, from: NodeId, to: NodeId) -> Option<Path> {
        let pair = self.pair(from, to);
        let position = self.position_of[pair];
        if position == NONE {
            return None;
        }
        let (position, uplink) = (u32::from(position), u32::from(self.uplink_of[pair]));
        let route = if self.clos.stage.is_some() {
            let (leaf_in, leaf_out) = (self.clos.leaf(from), self.clos.leaf(to));
            let (spine, link) = self.clos.spine_of_uplink(uplink);
            Route::TwoStage { leaf_in, uplink, spine, link, leaf_out }
        } else {
            Route::Single
        };
        Some(Path { position, plane: self.plane(position), route })
    }

    /// What each switch of the plane is set to in a position.
    #[must_use]
    pub fn maps(&self, position: u32) -> PositionMaps {
        let clos = &self.clos;
        let ports = clos.radix() as usize;
        let mut maps = vec![vec![None; ports]; clos.switches_per_plane() as usize];
        let mut set = |switch: Switch, ingress: u32, egress: u32| {
            let slot = &mut maps[clos.switch_index(switch)][ingress as usize];
            assert!(slot.is_none(), "{switch:?} has two circuits into port {ingress}");
            *slot = Some(egress);
        };
        for from in (0..clos.nodes()).map(NodeId::new) {
            let Some(to) = self.peer(from, position) else { continue };
            let path = self.path(from, to).expect("connected nodes have a path");
            let ((first, entry), (last, exit)) = (clos.attachment(from), clos.attachment(to));
            match path.route {
                Route::Single => set(first, entry, exit),
                Route::TwoStage { leaf_in, uplink, spine, link, leaf_out } => {
                    set(first, entry, clos.uplink_port(uplink));
                    let (up, down) =
                        (clos.spine_port(leaf_in, link), clos.spine_port(leaf_out, link));
                    set(Switch::Spine(spine), up, down);
                    set(last, clos.uplink_port(uplink), exit);
                }
            }
        }
        PositionMaps { maps }
    }

    /// Notes who meets whom in a position.
    fn connect(
        &mut self,
        position: u32,
        peer: &impl Fn(NodeId, u32) -> Option<NodeId>,
    ) -> Result<(), Violation> {
        let nodes = self.clos.nodes();
        let mut sender_to = vec![None; nodes as usize];
        for from in (0..nodes).map(NodeId::new) {
            let Some(to) = peer(from, position) else { continue };
            if to.get() >= nodes || to == from {
                return Err(Violation::NoPeer { position, from, to });
            }
            if let Some(other) = sender_to[to.index()].replace(from) {
                return Err(Violation::TwoSenders { position, to, senders: [other, from] });
            }
            let (at, pair) = (self.at(position, from), self.pair(from, to));
            if self.position_of[pair] != NONE {
                let first = u32::from(self.position_of[pair]);
                return Err(Violation::PairTwice { from, to, positions: [first, position] });
            }
            self.peers[at] = to.get() as u16;
            self.position_of[pair] = position as u16;
        }
        Ok(())
    }

    /// Every pair must meet.
    fn check_coverage(&self) -> Result<(), Violation> {
        let nodes = self.clos.nodes();
        for from in (0..nodes).map(NodeId::new) {
            for to in (0..nodes).map(NodeId::new) {
                if from != to && self.position_of[self.pair(from, to)] == NONE {
                    return Err(Violation::PairNever { from, to });
                }
            }
        }
        Ok(())
    }

    /// Gives each pair its uplink, position by position.
    fn choose_uplinks(&mut self) {
        let (nodes, per_leaf) = (self.clos.nodes(), self.clos.nodes_per_leaf());
        let mut colouring = Colouring::new(self.clos.leaves(), self.clos.uplinks());
        let (mut pairs, mut circuits) = (Vec::new(), Vec::new());
        for position in 0..self.positions {
            pairs.clear();
            circuits.clear();
            for from in (0..nodes).map(NodeId::new) {
                let Some(to) = self.peer(from, position) else { continue };
                let shift = (to.get() + nodes - from.get()) % nodes;
                pairs.push(self.pair(from, to));
                circuits.push(Circuit {
                    from: self.clos.leaf(from),
                    to: self.clos.leaf(to),
                    preferred: (from.get() + shift / per_leaf) % per_leaf,
                });
            }
            for (&pair, &uplink) in pairs.iter().zip(colouring.colour(&circuits)) {
                self.uplink_of[pair] = uplink as u16;
            }
        }
    }

    fn at(&self, position: u32, node: NodeId) -> usize {
        position as usize * self.clos.nodes() as usize + node.index()
    }

    fn pair(&self, from: NodeId, to: NodeId) -> usize {
        from.index() * self.clos.nodes() as usize + to.index()
    }
}
