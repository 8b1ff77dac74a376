//! What tests can read of a bank beyond its interface.

use std::collections::BTreeMap;

use crate::mode::Lossy;

use super::Bank;

impl Bank {
    /// The invariants of §3.3.2 and §3.3.3, cell by cell: in each queue at most one cell of a
    /// subflow (S62), with the ready queue at most one local cell (S65), and as many cells as
    /// counted. Compares the cells of others that each node holds with its count.
    pub(crate) fn check_queues(&self) {
        let mut relayed = vec![0; self.members().end as usize];
        for position in 0..self.schedule.positions() {
            for node in self.members() {
                for class in 0..self.classes {
                    relayed[node as usize] += self.check_queue(position, class, node);
                }
            }
        }
        assert_eq!(relayed, self.relayed, "cells of others, by node");
    }

    fn check_queue(&self, position: u32, class: u32, node: u32) -> u32 {
        let link = &self.links[self.link::<Lossy>(position, class, node)];
        let cells: Vec<_> = self.arena.iter(link).collect();
        assert_eq!(cells.len(), usize::from(link.queued), "node {node}, position {position}");
        let local = cells.iter().filter(|cell| cell.source() == node).count();
        if self.mechanisms.ready_queue {
            assert!(local <= 1, "{local} local cells at node {node} in position {position}");
            assert_eq!(local == 1, link.holds_local(), "node {node}, position {position}");
        }
        let mut subflows = BTreeMap::new();
        for cell in cells {
            *subflows.entry((cell.source(), cell.destination())).or_insert(0) += 1;
        }
        for ((source, destination), count) in subflows {
            assert_eq!(count, 1, "cells from {source} to {destination} at node {node}");
        }
        u32::from(link.queued) - local as u32
    }

    /// Whether two nodes have given each other up.
    pub(crate) fn have_parted(&self, a: u32, b: u32) -> bool {
        self.is_down(a, b) && self.is_down(b, a)
    }
}
