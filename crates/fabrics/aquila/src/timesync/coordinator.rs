//! The software that sets the tree up, and another when it breaks (M913, M916).
//!
//! **Our choice**: it knows of failures what nodes tell. Whoever is cut off tells, and so do all behind it; who tells and
//! whose parent does not is where it broke. If all children of a TiN tell and there are several, that TiN is dead;
//! otherwise it is the link that one of them hears the time from.

use std::collections::BTreeMap;

use kernel::Time;

use super::node::Role;
use super::tree::Tree;
use super::{Input, Settings};
use crate::tables::Condition;
use crate::tables::condition::State;
use crate::topology::Topology;

/// What a node has told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The TiN.
    pub tin: u16,
    /// The configuration that it had.
    pub epoch: u32,
}

/// What a node is to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Order {
    /// The TiN.
    pub tin: u16,
    /// Its configuration.
    pub input: Input,
}

/// The software.
#[derive(Clone, Debug)]
pub struct Coordinator {
    topology: Topology,
    condition: Condition,
    settings: Settings,
    tree: Tree,
    epoch: u32,
    /// TiNs that have told of a failure in this epoch.
    told: BTreeMap<u16, ()>,
    /// When it acts on that.
    due: Option<Time>,
}

impl Coordinator {
    /// One that takes everything for sound.
    #[must_use]
    pub fn new(topology: &Topology, settings: &Settings) -> Self {
        let condition = Condition::healthy(topology);
        Self {
            tree: Tree::elect(topology, &condition),
            topology: topology.clone(),
            condition,
            settings: *settings,
            epoch: 0,
            told: BTreeMap::new(),
            due: None,
        }
    }

    /// The tree that it has set up.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The number of the configuration.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// What it takes for sound.
    #[must_use]
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// When it wants to act.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.due
    }

    /// Sets the tree up: what all nodes are to be told.
    pub fn begin(&mut self) -> Vec<Order> {
        self.epoch += 1;
        self.told.clear();
        self.due = None;
        let tins = 0..self.topology.shape().tins();
        tins.filter(|&tin| self.tree.depth(tin).is_some()).map(|tin| self.order(tin)).collect()
    }

    fn order(&self, tin: u16) -> Order {
        let role = match self.tree.parent(tin) {
            Some((_, port)) => Role::Client(port),
            None => Role::Primary,
        };
        let (epoch, outputs) = (self.epoch, self.tree.outputs(tin));
        Order { tin, input: Input::Configure { epoch, role, outputs } }
    }

    /// A node has told of a failure.
    pub fn hear(&mut self, now: Time, failure: Failure) {
        if failure.epoch != self.epoch || failure.tin >= self.topology.shape().tins() {
            return;
        }
        self.told.insert(failure.tin, ());
        self.due.get_or_insert(now + self.settings.gather);
    }

    /// The time to act has come: what nodes are to be told. All of them: the time of each may jump.
    pub fn act(&mut self, now: Time) -> Vec<Order> {
        if self.due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        let mut broken: BTreeMap<u16, Vec<(u16, u8)>> = BTreeMap::new();
        for &tin in self.told.keys() {
            let Some((parent, port)) = self.tree.parent(tin) else { continue };
            if !self.told.contains_key(&parent) {
                broken.entry(parent).or_default().push((tin, port));
            }
        }
        for (parent, children) in broken {
            let all = self.tree.outputs(parent).count_ones() as usize;
            if children.len() == all && all > 1 {
                self.condition.set_tin(parent, State::Dead);
                continue;
            }
            for (tin, port) in children {
                if let Some(link) = self.topology.link(tin, port) {
                    self.condition.set_link(link, State::Dead);
                }
            }
        }
        // The primary stays, if it can: no time jumps that need not.
        let same = Tree::grow(&self.topology, &self.condition, self.tree.primary());
        self.tree = match Tree::elect(&self.topology, &self.condition) {
            best if best.size() > same.size() => best,
            _ => same,
        };
        self.begin()
    }
}
