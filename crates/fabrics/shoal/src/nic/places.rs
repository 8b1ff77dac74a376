//! Where the flows of each node stand in a row that has a place for every flow of the bank, and
//! one behind them for what is of no flow.
//!
//! Nodes with more flows have more places. A node that runs out doubles its own, together with all
//! that are full as well, as that moves every row once.

use std::ops::Range;

/// Places of a node at first (our choice: few nodes at moderate load have more flows at a time).
pub(super) const AT_FIRST: u32 = 8;

/// The division of a row among the nodes.
#[derive(Clone, Debug)]
pub(super) struct Places {
    first: u32,
    /// First place of each node, by its number in the rack, and one more for the end.
    starts: Vec<u32>,
}

impl Places {
    /// A few places for each of the nodes.
    pub(super) fn new(nodes: Range<u32>) -> Self {
        let start = |node: u32| node.saturating_sub(nodes.start) * AT_FIRST;
        let starts = (0..=nodes.end).map(start).collect();
        Self { first: nodes.start, starts }
    }

    /// First place of a node.
    #[inline]
    pub(super) fn start(&self, node: u32) -> usize {
        self.starts[node as usize] as usize
    }

    /// How many places a node has.
    pub(super) fn count(&self, node: u32) -> usize {
        self.start(node + 1) - self.start(node)
    }

    /// Most places of one node.
    pub(super) fn most(&self) -> usize {
        self.nodes().map(|node| self.count(node)).max().unwrap_or(0)
    }

    /// The last place of a row, which no flow has.
    #[inline]
    pub(super) fn unused(&self) -> usize {
        *self.starts.last().expect("it starts with a zero") as usize
    }

    /// Length of a row.
    pub(super) fn row(&self) -> usize {
        self.unused() + 1
    }

    fn nodes(&self) -> Range<u32> {
        self.first..self.starts.len() as u32 - 1
    }

    /// The division in which each node that `is_full` has twice as many places.
    pub(super) fn widened(&self, is_full: impl Fn(u32) -> bool) -> Self {
        let mut starts = vec![0; self.first as usize + 1];
        let mut end = 0;
        for node in self.nodes() {
            end += self.count(node) as u32 * if is_full(node) { 2 } else { 1 };
            starts.push(end);
        }
        Self { first: self.first, starts }
    }

    /// A row of this division, laid out anew in a wider one.
    pub(super) fn spread<T: Copy>(&self, row: &[T], wider: &Self, filler: T) -> Vec<T> {
        let mut new = vec![filler; wider.row()];
        for node in self.nodes() {
            let old = &row[self.start(node)..self.start(node + 1)];
            new[wider.start(node)..][..old.len()].copy_from_slice(old);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_node_gets_twice_the_places_and_no_flow_changes_its_slot() {
        let old = Places::new(4..7);
        let row: Vec<u32> = (0..25).collect();
        let new = old.widened(|node| node == 5);
        assert_eq!([old.count(5), new.count(4), new.count(5), new.count(6)], [8, 8, 16, 8]);
        let wide = old.spread(&row, &new, 99);
        assert_eq!(wide[8..24], [8, 9, 10, 11, 12, 13, 14, 15, 99, 99, 99, 99, 99, 99, 99, 99]);
        assert_eq!(wide[24..], [16, 17, 18, 19, 20, 21, 22, 23, 99]);
        assert_eq!((new.row(), new.most()), (33, 16));
    }
}
