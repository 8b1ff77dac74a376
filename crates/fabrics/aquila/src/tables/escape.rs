//! The ways of the escape channels: up*/down* routes.
//!
//! Models: Aquila §3.2 (M308): two virtual channels are left for dynamic avoidance of failures. **Our choice**:
//! a spanning tree of what lives, in breadth, from the lowest TiN; a link leads up to the end that is nearer to
//! that TiN, or of the lower number; a cell goes up first and then down, never up again. What is drained is
//! at the tree's leaves. Every way is a shortest one of these, and equal ways share destinations.

use std::collections::VecDeque;

use super::condition::State;
use super::{Condition, NONE};
use crate::topology::Topology;

/// Output ports by TiN, by whether the cell has come down already, and by destination.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Escape {
    pub(super) tins: usize,
    ports: Vec<u8>,
    /// By TiN: its place in the order of the tree; `u32::MAX`: dead, or cut off.
    order: Vec<u32>,
}

/// Not in the tree.
const CUT_OFF: u32 = u32::MAX;

impl Escape {
    /// The port on which a cell goes on, or [`NONE`].
    ///
    /// # Panics
    /// If there is no such TiN.
    #[inline]
    #[must_use]
    pub fn port(&self, tin: u16, has_come_down: bool, destination: u16) -> u8 {
        self.ports[self.place(tin, has_come_down, destination)]
    }

    /// Whether the link from one TiN to another leads down.
    ///
    /// # Panics
    /// If there is no such TiN.
    #[must_use]
    pub fn is_down(&self, from: u16, to: u16) -> bool {
        self.order[usize::from(to)] > self.order[usize::from(from)]
    }

    /// Ways that somebody else has worked out.
    ///
    /// # Panics
    /// If there are not, for each TiN, an order, and twice as many ports as TiNs: first those of cells that have not
    /// come down yet.
    #[must_use]
    pub fn from_parts(ports: Vec<u8>, order: Vec<Option<u32>>) -> Self {
        let tins = order.len();
        assert_eq!(ports.len(), 2 * tins * tins, "ports of {tins} TiNs");
        let order = order.into_iter().map(|place| place.unwrap_or(CUT_OFF)).collect();
        Self { tins, ports, order }
    }

    /// A TiN's place in the order of the tree; `None`: it cannot be reached.
    ///
    /// # Panics
    /// If there is no such TiN.
    #[must_use]
    pub fn order(&self, tin: u16) -> Option<u32> {
        self.has(tin).then(|| self.order[usize::from(tin)])
    }

    /// Whether a TiN can be reached at all.
    ///
    /// # Panics
    /// If there is no such TiN.
    #[must_use]
    pub fn has(&self, tin: u16) -> bool {
        self.order[usize::from(tin)] != CUT_OFF
    }

    pub(super) fn set_port(&mut self, tin: u16, has_come_down: bool, destination: u16, port: u8) {
        let place = self.place(tin, has_come_down, destination);
        self.ports[place] = port;
    }

    pub(super) fn set_order(&mut self, tin: u16, order: Option<u32>) {
        self.order[usize::from(tin)] = order.unwrap_or(CUT_OFF);
    }

    fn place(&self, tin: u16, has_come_down: bool, destination: u16) -> usize {
        let state = usize::from(tin) * 2 + usize::from(has_come_down);
        state * self.tins + usize::from(destination)
    }

    /// Forgets all ways of a TiN.
    #[cfg(test)]
    pub(super) fn forget(&mut self, tin: u16) {
        let first = self.place(tin, false, 0);
        let last = first + 2 * self.tins;
        self.ports[first..last].fill(NONE);
    }

    /// Computes the ways. What is dead or cut off from the root has none.
    #[must_use]
    pub fn compute(topology: &Topology, condition: &Condition) -> Self {
        let tins = topology.shape().tins();
        let neighbours: Vec<Vec<(u8, u16)>> =
            (0..tins).map(|tin| neighbours(topology, condition, tin)).collect();
        let count = usize::from(tins);
        let order = order(condition, &neighbours);
        let mut escape = Self { tins: count, ports: vec![NONE; 2 * count * count], order };
        for destination in 0..tins {
            if escape.has(destination) {
                escape.fill(&neighbours, destination);
            }
        }
        escape
    }

    /// All ways to one TiN, by a search in breadth from it. First those that only go down, from all TiNs that
    /// have one; then what goes up to these, shortest ways first.
    fn fill(&mut self, neighbours: &[Vec<(u8, u16)>], destination: u16) {
        let count = neighbours.len();
        let mut down = vec![u32::MAX; count];
        down[usize::from(destination)] = 0;
        let mut queue = VecDeque::from([destination]);
        while let Some(tin) = queue.pop_front() {
            for &(_, from) in &neighbours[usize::from(tin)] {
                if self.is_down(from, tin) && down[usize::from(from)] == u32::MAX {
                    down[usize::from(from)] = down[usize::from(tin)] + 1;
                    queue.push_back(from);
                }
            }
        }
        // A cell that has not come down yet may go either way. What lies above a TiN is settled before it.
        let mut any = down.clone();
        let mut sorted: Vec<u16> = (0..count as u16).filter(|&tin| self.has(tin)).collect();
        sorted.sort_by_key(|&tin| self.order[usize::from(tin)]);
        for &tin in &sorted {
            for &(_, to) in &neighbours[usize::from(tin)] {
                if !self.is_down(tin, to) && any[usize::from(to)] != u32::MAX {
                    let through = any[usize::from(to)] + 1;
                    any[usize::from(tin)] = any[usize::from(tin)].min(through);
                }
            }
        }
        for &tin in sorted.iter().filter(|&&tin| tin != destination) {
            for has_come_down in [false, true] {
                let left = |to: u16| match (self.is_down(tin, to), has_come_down) {
                    (true, _) => down[usize::from(to)],
                    (false, true) => u32::MAX,
                    (false, false) => any[usize::from(to)],
                };
                let own = if has_come_down { &down } else { &any }[usize::from(tin)];
                let ports = neighbours[usize::from(tin)].iter();
                let ports: Vec<u8> = ports
                    .filter(|&&(_, to)| left(to).saturating_add(1) == own && own != u32::MAX)
                    .map(|&(port, _)| port)
                    .collect();
                let place = self.place(tin, has_come_down, destination);
                if !ports.is_empty() {
                    self.ports[place] = ports[usize::from(destination) % ports.len()];
                }
            }
        }
    }
}

/// Ports of a TiN and what they lead to, of what is not dead.
fn neighbours(topology: &Topology, condition: &Condition, tin: u16) -> Vec<(u8, u16)> {
    if condition.tin(tin) == State::Dead {
        return Vec::new();
    }
    let ports = 0..topology.shape().external_ports();
    let lives = |&(port, to): &(u8, u16)| {
        let link = topology.link(tin, port).expect("there is a link to the far end");
        condition.link(link) != State::Dead && condition.tin(to) != State::Dead
    };
    let ends = ports.filter_map(|port| topology.far(tin, port).map(|far| (port, far.tin)));
    ends.filter(lives).collect()
}

/// Each TiN's place in the order of the tree: those that live in breadth from the lowest, then the drained.
fn order(condition: &Condition, neighbours: &[Vec<(u8, u16)>]) -> Vec<u32> {
    let tins = 0..neighbours.len() as u16;
    let mut order = vec![CUT_OFF; neighbours.len()];
    let mut next = 0;
    for allowed in [State::Live, State::Drained] {
        let root = tins.clone().find(|&tin| condition.tin(tin) <= allowed);
        let mut queue: VecDeque<u16> = if next == 0 {
            root.into_iter().collect()
        } else {
            tins.clone().filter(|&tin| order[usize::from(tin)] != CUT_OFF).collect()
        };
        for &tin in &queue {
            if order[usize::from(tin)] == CUT_OFF {
                order[usize::from(tin)] = next;
                next += 1;
            }
        }
        while let Some(tin) = queue.pop_front() {
            for &(_, to) in &neighbours[usize::from(tin)] {
                if order[usize::from(to)] == CUT_OFF && condition.tin(to) <= allowed {
                    order[usize::from(to)] = next;
                    next += 1;
                    queue.push_back(to);
                }
            }
        }
    }
    order
}
