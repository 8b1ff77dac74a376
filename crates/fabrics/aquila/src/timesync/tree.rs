//! Along which links the time goes (M913).
//!
//! **Our choice**: the primary is the TiN that reaches the most others, of those one from which no TiN is further than need
//! be, of those the first; the tree is in breadth, so that every TiN is as near as it can be.

use std::collections::VecDeque;

use crate::tables::Condition;
use crate::tables::condition::State;
use crate::topology::Topology;

/// Who has the time from whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    primary: u16,
    /// By TiN: its depth; `None`: it is not in the tree.
    depths: Vec<Option<u8>>,
    /// By TiN: the TiN that it has the time from, and the port at which that comes.
    parents: Vec<Option<(u16, u8)>>,
    /// By TiN: the ports at which it passes the time on.
    outputs: Vec<u64>,
}

impl Tree {
    /// The tree from a primary over all that lives.
    #[must_use]
    pub fn grow(topology: &Topology, condition: &Condition, primary: u16) -> Self {
        let tins = usize::from(topology.shape().tins());
        let mut tree = Self {
            primary,
            depths: vec![None; tins],
            parents: vec![None; tins],
            outputs: vec![0; tins],
        };
        if condition.tin(primary) == State::Dead {
            return tree;
        }
        tree.depths[usize::from(primary)] = Some(0);
        let mut queue = VecDeque::from([(primary, 0)]);
        while let Some((tin, depth)) = queue.pop_front() {
            for port in 0..topology.shape().external_ports() {
                let (Some(far), Some(link)) = (topology.far(tin, port), topology.link(tin, port))
                else {
                    continue;
                };
                let is_dead =
                    condition.link(link) == State::Dead || condition.tin(far.tin) == State::Dead;
                let at = usize::from(far.tin);
                if is_dead || tree.depths[at].is_some() {
                    continue;
                }
                tree.depths[at] = Some(depth + 1);
                tree.parents[at] = Some((tin, far.port));
                tree.outputs[usize::from(tin)] |= 1 << port;
                queue.push_back((far.tin, depth + 1));
            }
        }
        tree
    }

    /// The tree from the best primary.
    #[must_use]
    pub fn elect(topology: &Topology, condition: &Condition) -> Self {
        let trees = (0..topology.shape().tins()).map(|tin| Self::grow(topology, condition, tin));
        let best = trees.min_by_key(|tree| (std::cmp::Reverse(tree.size()), tree.height()));
        best.expect("a Clique has TiNs")
    }

    /// The root.
    #[must_use]
    pub fn primary(&self) -> u16 {
        self.primary
    }

    /// How many links a TiN is from the root.
    ///
    /// # Panics
    /// If there is no such TiN; so do the following.
    #[must_use]
    pub fn depth(&self, tin: u16) -> Option<u8> {
        self.depths[usize::from(tin)]
    }

    /// The TiN that a TiN has the time from, and the port at which it comes.
    #[must_use]
    pub fn parent(&self, tin: u16) -> Option<(u16, u8)> {
        self.parents[usize::from(tin)]
    }

    /// The ports at which a TiN passes the time on, a bit each.
    #[must_use]
    pub fn outputs(&self, tin: u16) -> u64 {
        self.outputs[usize::from(tin)]
    }

    /// TiNs in it.
    #[must_use]
    pub fn size(&self) -> usize {
        self.depths.iter().flatten().count()
    }

    /// The largest depth.
    #[must_use]
    pub fn height(&self) -> u8 {
        self.depths.iter().flatten().copied().max().unwrap_or(0)
    }
}
