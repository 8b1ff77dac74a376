//! Shares on a torus, kept once for all sources.
//!
//! Models: R2C2 §4.2 (claim M25). On a torus what a packet crosses depends only on where its
//! destination lies from its source; so one table serves all nodes, where the table of §4.2 serves a
//! single source.
//!
//! For 512 nodes it takes 0.7 MB under random packet spraying, and 9 MB under weighted load balancing,
//! which may send a packet over most links. One of more than [`ENTRIES_MAX`] entries, as that would be
//! for 4,096 nodes, is not kept.

use rack::NodeId;
use rack::topology::{PortId, Vertex};

use super::grid::{Direction, Grid};
use super::{Network, Scratch};

/// Most entries of a table, 16 bytes each: 64 MB (**our choice**).
pub(crate) const ENTRIES_MAX: usize = 1 << 22;
/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

/// A share of the link that leads in a direction from a node, as seen from the source.
#[derive(Clone, Copy, Debug)]
struct Entry {
    share: f64,
    /// The node's place in the first dimensions, and in the others.
    low: u16,
    high: u16,
    direction: Direction,
}

/// Shares for each place of the destination as seen from the source.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// First entry of each row, and their number at the end.
    first: Vec<u32>,
    entries: Vec<Entry>,
    /// How many nodes have the same place in the last dimensions: those that differ in the first.
    block: u32,
    /// By place in the first dimensions of the source and of a node as seen from it: where that is.
    lows: Vec<u16>,
    /// The same in the last dimensions.
    highs: Vec<u32>,
}

impl Table {
    /// The table of what `fill` adds for each row; `None` if it would be too large.
    pub(super) fn new(
        grid: &Grid,
        rows: u32,
        network: &Network,
        mut fill: impl FnMut(NodeId, &mut Scratch),
    ) -> Option<Self> {
        let block = split(grid);
        let nodes = grid.nodes();
        // Adding places dimension by dimension is moving by the offset from the opposite place.
        let moved = |origin: u32, by: u32| {
            let back = grid.offset(NodeId::new(origin), NodeId::new(0));
            grid.offset(back, NodeId::new(by)).get()
        };
        let pairs = |count: u32| (0..count).flat_map(move |a| (0..count).map(move |b| (a, b)));
        let mut table = Self {
            first: vec![0],
            entries: Vec::new(),
            block,
            lows: pairs(block).map(|(a, b)| moved(a, b) as u16).collect(),
            highs: pairs(nodes / block).map(|(a, b)| moved(a * block, b * block)).collect(),
        };
        let mut scratch = Scratch::new(network);
        for row in 0..rows {
            fill(NodeId::new(row), &mut scratch);
            scratch.answer();
            scratch.pairs.sort_unstable_by_key(|&(port, _)| port);
            for &(port, share) in &scratch.pairs {
                let vertex = network.topology().port(port).vertex.get();
                let (low, high) = ((vertex % block) as u16, (vertex / block) as u16);
                let direction = grid.direction(port);
                table.entries.push(Entry { share, low, high, direction });
            }
            if table.entries.len() > ENTRIES_MAX {
                return None;
            }
            table.first.push(table.entries.len() as u32);
        }
        Some(table)
    }

    /// The shares of a row for packets that start at `origin`.
    #[inline]
    pub(super) fn row(
        &self,
        grid: &Grid,
        row: usize,
        origin: NodeId,
    ) -> impl Iterator<Item = (PortId, f64)> {
        let (low, high) = (origin.get() % self.block, origin.get() / self.block);
        let lows = &self.lows[(low * self.block) as usize..][..self.block as usize];
        let blocks = self.first_high(high);
        let entries = &self.entries[self.first[row] as usize..self.first[row + 1] as usize];
        entries.iter().map(move |entry| {
            let vertex = blocks[usize::from(entry.high)] + u32::from(lows[usize::from(entry.low)]);
            (grid.step(Vertex::new(vertex), entry.direction).port, entry.share)
        })
    }

    fn first_high(&self, high: u32) -> &[u32] {
        let count = self.highs.len().isqrt();
        &self.highs[high as usize * count..][..count]
    }

    /// Bytes that the table takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.first)
            + size_of_val(&*self.entries)
            + size_of_val(&*self.lows)
            + size_of_val(&*self.highs)
    }
}

/// The number of nodes in the first dimensions: as near as may be to the root of all.
fn split(grid: &Grid) -> u32 {
    block(grid.axes().iter().map(|axis| axis.length().into())) as u32
}

/// The same, from the lengths of the dimensions.
pub(crate) fn block(lengths: impl Iterator<Item = u64>) -> u64 {
    let mut block = 1u64;
    for length in lengths {
        let next = block.saturating_mul(length);
        if next > 256 && block > 1 {
            break;
        }
        block = next;
    }
    block
}
