//! Each node's map of the rack: which links it takes to live, and the routes, shares and trees that
//! follow.
//!
//! Nodes work them out each for itself. What all that take the same links to be dead come to alike is
//! kept once for those that are held together; as a rule that is one map, while news of a failure spread a
//! few. A map is named by its dead links: to other nodes by a digest of these.

use rack::NodeId;
use rack::topology::PortId;

use crate::broadcast::Fib;
use crate::config::{Plan, Wiring};
use crate::rates::{Routed, Waterfill};
use crate::routing::{Protocol, Routes};
use crate::view::FactId;

/// A map, and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// The digest of its dead links; zero if all live.
    pub(super) digest: u32,
    /// The dead links, each by its lower end.
    dead: Vec<PortId>,
    pub(super) routes: Routes,
    pub(super) trees: Fib,
    pub(super) filling: Waterfill<Routed>,
    /// The facts whose flows are in the filling, in order, with their serials: places are used again.
    pub(super) inside: Vec<(FactId, u64)>,
    /// How many nodes go by it.
    users: u32,
}

/// The maps of all nodes.
#[derive(Clone, Debug)]
pub(super) struct Maps {
    seed: u64,
    /// The first is that of the whole rack, and stays.
    all: Vec<Map>,
    /// By node: its place there.
    of_node: Vec<u32>,
}

impl Map {
    fn new(wiring: Wiring, dead: Vec<PortId>, users: u32) -> Self {
        let Wiring { routes, trees, filling } = wiring;
        Self { digest: digest(&dead), dead, routes, trees, filling, inside: Vec::new(), users }
    }

    /// Whether all links live.
    pub(super) fn is_whole(&self) -> bool {
        self.dead.is_empty()
    }

    /// What stands for a protocol that cannot be used here.
    pub(super) fn usable(&self, wanted: Protocol) -> Protocol {
        if self.is_whole() { wanted } else { self.routes.usable(wanted) }
    }
}

/// A digest of dead links: FNV-1a (32 bits, the published basis and prime) of the bytes of their lower
/// ends' numbers. Zero if there is none, and then alone.
fn digest(dead: &[PortId]) -> u32 {
    if dead.is_empty() {
        return 0;
    }
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    dead.iter().flat_map(|port| port.get().to_be_bytes()).fold(0x811c_9dc5, mix).max(1)
}

impl Maps {
    /// All nodes take all links to live.
    pub(super) fn new(plan: &Plan, seed: u64) -> Self {
        let nodes = plan.nodes();
        let whole = Map::new(plan.wiring(&[], seed), Vec::new(), nodes);
        Self { seed, all: vec![whole], of_node: vec![0; nodes as usize] }
    }

    /// The map that a node goes by.
    #[inline]
    pub(super) fn of(&self, node: NodeId) -> &Map {
        &self.all[self.of_node[node.index()] as usize]
    }

    /// The same, to work with.
    #[inline]
    pub(super) fn of_mut(&mut self, node: NodeId) -> &mut Map {
        &mut self.all[self.of_node[node.index()] as usize]
    }

    /// From now on a node takes these links to be dead.
    pub(super) fn adopt(&mut self, plan: &Plan, node: NodeId, dead: Vec<PortId>) {
        self.of_mut(node).users -= 1;
        let known = self.all.iter().position(|map| map.dead == dead);
        let place = known.unwrap_or_else(|| {
            let map = Map::new(plan.wiring(&dead, self.seed), dead, 0);
            match self.all.iter().skip(1).position(|map| map.users == 0) {
                Some(unused) => {
                    self.all[unused + 1] = map;
                    unused + 1
                }
                None => {
                    self.all.push(map);
                    self.all.len() - 1
                }
            }
        });
        self.all[place].users += 1;
        self.of_node[node.index()] = place as u32;
    }
}
