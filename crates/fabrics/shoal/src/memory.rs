//! How much memory a node's interface needs.
//!
//! Models: Shoal §3.3.4, §3.5, §4.2 (claims S54, S55): cells in off-chip memory for the worst case,
//! one cell of each queue on the chip, and the tables of the congestion control. The paper's 17 MB,
//! 32 KB and "of the order of a megabyte" follow to the byte.
//! Leaves out: the ready queues and the time stamps of feedback, whose width the paper does not
//! give.

use kernel::Bytes;

use crate::wire::Layout;

/// Memory of one node of a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeMemory {
    /// Off the chip: all nodes send to one, and each of N - 1 queues holds N cells (Eq. 5).
    pub queues: Bytes,
    /// On the chip: the next cell of each queue (§3.3.4; §4.2: cell cache).
    pub cell_cache: Bytes,
    /// On the chip: feedback from each other node for each flow, (N - 1)² entries (§4.2).
    pub feedback_matrix: Bytes,
    /// On the chip: which flow the last cell to each node belonged to, and where the last cell from
    /// each node was going (§4.2).
    pub last_cells: Bytes,
}

impl NodeMemory {
    /// The memory for racks with this header and cells of `cell` bytes, header included.
    ///
    /// # Panics
    /// If there are fewer than two nodes.
    #[must_use]
    pub fn new(nodes: u32, cell: Bytes, layout: &Layout) -> Self {
        assert!(nodes >= 2, "the memory of a rack of {nodes} nodes");
        let (nodes, peers) = (u64::from(nodes), u64::from(nodes) - 1);
        Self {
            queues: cell * (peers * nodes),
            cell_cache: cell * peers,
            feedback_matrix: in_bytes(peers * peers * u64::from(layout.feedback_bits())),
            last_cells: in_bytes(2 * peers * u64::from(layout.id_bits())),
        }
    }

    /// All that must be on the chip.
    #[must_use]
    pub fn on_chip(&self) -> Bytes {
        self.cell_cache + self.feedback_matrix + self.last_cells
    }
}

/// Whole bytes for a number of bits.
fn in_bytes(bits: u64) -> Bytes {
    Bytes::new(bits.div_ceil(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(nodes: u32) -> NodeMemory {
        NodeMemory::new(nodes, Bytes::new(64), &Layout::new(nodes, 1).unwrap())
    }

    #[test]
    fn s54_the_cells_of_512_nodes_take_what_the_paper_says() {
        assert_eq!(memory(512).queues, Bytes::new(16_744_448)); // "17 MB"
        assert_eq!(memory(512).cell_cache, Bytes::new(32_704)); // "32 KB"
    }

    #[test]
    fn s55_the_feedback_of_1000_nodes_takes_of_the_order_of_a_megabyte() {
        assert_eq!(memory(1000).feedback_matrix, Bytes::new(1_372_252)); // 999² × 11 bits
        assert_eq!(memory(1000).on_chip(), Bytes::new(1_372_252 + 999 * 64 + 2_498));
    }

    #[test]
    fn s54_s55_small_racks_by_hand() {
        // nodes: queues, cell cache, matrix, last cells; ids of 10 bits and feedback of 11.
        let rows = [(2, [128, 64, 2, 3]), (3, [384, 128, 6, 5]), (8, [3584, 448, 68, 18])];
        for (nodes, expected) in rows {
            let found = memory(nodes);
            let parts = [found.queues, found.cell_cache, found.feedback_matrix, found.last_cells];
            assert_eq!(parts.map(Bytes::get), expected, "{nodes} nodes");
        }
    }

    #[test]
    fn s55_on_chip_memory_grows_with_the_square_of_the_nodes() {
        let ratio =
            memory(2000).feedback_matrix.get() as f64 / memory(1000).feedback_matrix.get() as f64;
        // Θ(N² log N): four times, and 12 bits for 11.
        assert!((ratio - 4.0 * 12.0 / 11.0).abs() < 0.01, "{ratio}");
    }
}
