//! Who can no longer reach whom when a part of the fabric breaks.
//!
//! Models: Shoal §3.5 and Table 1 (claims S16, S17). Each ordered pair of nodes has one path, so a
//! broken part cuts off the pairs whose paths cross it. A node that hears nothing from another
//! stops sending to it too, so the opposite pairs go down with them ([`PairSet::with_reverse`]).
//!
//! Table 1 is counted thus: of the slots that nodes have for each other in an epoch, the mean
//! fraction that a node loses, over the nodes that still reach anybody, both directions of a pair
//! counted as down. A leaf-spine link is counted as broken in one direction, which is what gives
//! the paper's 2/N; in both it is nearly twice that.

use ::rack::{Component, NodeId, Problem};

use super::{Route, SwitchSchedules};

/// A set of ordered pairs of nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairSet {
    nodes: u32,
    words: Vec<u64>,
}

impl PairSet {
    /// No pairs, in a rack of `nodes`.
    #[must_use]
    pub fn empty(nodes: u32) -> Self {
        let pairs = nodes as usize * nodes as usize;
        Self { nodes, words: vec![0; pairs.div_ceil(64)] }
    }

    /// Adds a pair.
    pub fn insert(&mut self, from: NodeId, to: NodeId) {
        let bit = self.bit(from, to);
        self.words[bit / 64] |= 1 << (bit % 64);
    }

    /// Whether the pair is in it.
    #[must_use]
    pub fn contains(&self, from: NodeId, to: NodeId) -> bool {
        let bit = self.bit(from, to);
        self.words[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// How many pairs it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The pairs as sender and receiver, in order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        let nodes = self.nodes as usize;
        let bits = self.words.iter().enumerate().flat_map(|(index, &word)| {
            let next = |rest: &u64| Some(rest & (rest - 1)).filter(|&rest| rest != 0);
            std::iter::successors(Some(word).filter(|&word| word != 0), next)
                .map(move |rest| index * 64 + rest.trailing_zeros() as usize)
        });
        bits.map(move |bit| (NodeId::new((bit / nodes) as u32), NodeId::new((bit % nodes) as u32)))
    }

    /// The same with each pair's opposite: what is down once both sides have noticed.
    #[must_use]
    pub fn with_reverse(&self) -> Self {
        let mut both = self.clone();
        for (from, to) in self.iter() {
            both.insert(to, from);
        }
        both
    }

    fn bit(&self, from: NodeId, to: NodeId) -> usize {
        let nodes = self.nodes as usize;
        assert!(from.index() < nodes, "{from} in a rack of {nodes}");
        assert!(to.index() < nodes, "{to} in a rack of {nodes}");
        from.index() * nodes + to.index()
    }
}

/// Which direction of a link breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// Both.
    #[default]
    Both,
    /// From the node towards the spines.
    Up,
    /// From the spines towards the node.
    Down,
}

/// A count of slots lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostSlots {
    /// Slots of an epoch that go unused, over all nodes that still reach anybody.
    pub lost: u64,
    /// Slots that these nodes have for other nodes.
    pub of: u64,
}

impl LostSlots {
    /// The fraction that is lost; 0 if no node reaches anybody.
    #[must_use]
    pub fn fraction(self) -> f64 {
        if self.of == 0 { 0.0 } else { self.lost as f64 / self.of as f64 }
    }
}

impl SwitchSchedules {
    /// The pairs whose path crosses a component, in the direction from sender to receiver. A link
    /// may break in one direction only; a node or a switch always breaks whole.
    ///
    /// # Errors
    /// If the rack has no such component.
    pub fn affected_pairs(
        &self,
        component: Component,
        direction: Direction,
    ) -> Result<PairSet, Problem> {
        self.check_component(component)?;
        let nodes = self.clos().nodes();
        let mut pairs = PairSet::empty(nodes);
        for from in (0..nodes).map(NodeId::new) {
            for to in (0..nodes).map(NodeId::new) {
                if self.crosses(from, to, component, direction) {
                    pairs.insert(from, to);
                }
            }
        }
        Ok(pairs)
    }

    /// Slots that a rack loses to a broken component, counted as for Table 1.
    ///
    /// # Errors
    /// If the rack has no such component.
    pub fn failed_slots(
        &self,
        component: Component,
        direction: Direction,
    ) -> Result<LostSlots, Problem> {
        let peers = u64::from(self.clos().nodes() - 1);
        let down = self.affected_pairs(component, direction)?.with_reverse();
        let mut lost_by = vec![0; self.clos().nodes() as usize];
        for (from, _) in down.iter() {
            lost_by[from.index()] += 1;
        }
        let survivors = lost_by.into_iter().filter(|&lost| lost < peers);
        let counts = survivors.fold((0, 0), |(lost, of), node| (lost + node, of + peers));
        Ok(LostSlots { lost: counts.0, of: counts.1 })
    }

    /// The entry of Table 1 for a component.
    ///
    /// # Errors
    /// If the rack has no such component.
    pub fn failed_slot_fraction(&self, component: Component) -> Result<f64, Problem> {
        let direction = match component {
            Component::LeafSpine { .. } => Direction::Up,
            _ => Direction::Both,
        };
        self.failed_slots(component, direction).map(LostSlots::fraction)
    }

    /// Whether the path between two nodes crosses a component that exists.
    fn crosses(&self, from: NodeId, to: NodeId, component: Component, way: Direction) -> bool {
        let Some(path) = self.path(from, to) else { return false };
        let clos = self.clos();
        let (up, down) = (way != Direction::Down, way != Direction::Up);
        match (component, path.route) {
            (Component::Node(node), _) => from == node || to == node,
            (Component::NodeLink(node), _) => (up && from == node) || (down && to == node),
            (Component::Leaf(leaf), Route::Single) => leaf == path.plane,
            (Component::Leaf(leaf), Route::TwoStage { leaf_in, leaf_out, .. }) => {
                let first = path.plane * clos.leaves();
                leaf == first + leaf_in || leaf == first + leaf_out
            }
            (Component::Spine(spine), Route::TwoStage { spine: crossed, .. }) => {
                spine == path.plane * clos.spines() + crossed
            }
            (
                Component::LeafSpine { leaf, spine, link },
                Route::TwoStage { leaf_in, spine: crossed, link: taken, leaf_out, .. },
            ) => {
                let first = path.plane * clos.leaves();
                let same = spine == path.plane * clos.spines() + crossed && link == taken;
                let enters = up && leaf == first + leaf_in;
                same && (enters || (down && leaf == first + leaf_out))
            }
            (Component::Spine(_) | Component::LeafSpine { .. }, Route::Single) => false,
            (Component::Switch(_) | Component::Link { .. } | Component::Group(..), _) => false,
        }
    }

    /// Whether the rack has the component; if not, how many it has.
    ///
    /// # Errors
    /// If the rack has no such component.
    pub fn check_component(&self, component: Component) -> Result<(), Problem> {
        let clos = self.clos();
        let (leaves, spines) = (clos.leaves() * clos.planes(), clos.spines() * clos.planes());
        let check = |key: &str, index: u32, count: u32| {
            if index < count {
                return Ok(());
            }
            let found = match count {
                0 => "the rack has none".to_string(),
                _ => format!("the rack has {count}, counted from 0"),
            };
            Err(Problem::new(key, format!("{component} does not exist: {found}")))
        };
        match component {
            Component::Node(node) | Component::NodeLink(node) => {
                check("node", node.get(), clos.nodes())
            }
            Component::Leaf(leaf) => check("leaf", leaf, leaves),
            Component::Spine(spine) => check("spine", spine, spines),
            Component::LeafSpine { leaf, spine, link } => {
                check("spine", spine, spines)?;
                check("leaf", leaf, leaves)?;
                check("link", link, clos.links())?;
                if leaf / clos.leaves() == spine / clos.spines() {
                    return Ok(());
                }
                let message = format!(
                    "{component} does not exist: leaf and spine are in different planes (a plane \
                     has {} leaves and {} spines)",
                    clos.leaves(),
                    clos.spines()
                );
                Err(Problem::new("spine", message))
            }
            Component::Switch(_) | Component::Link { .. } | Component::Group(..) => {
                let message = format!(
                    "{component} is a part of packet-switched networks; name a node, leaf, spine or \
                     leaf_spine of this rack"
                );
                Err(Problem::new("", message))
            }
        }
    }
}
