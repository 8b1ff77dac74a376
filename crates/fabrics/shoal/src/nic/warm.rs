//! Fetching ahead what the next steps will touch.
//!
//! A rack's state is larger than a core's cache, and where a cell goes is as good as random: each
//! queue that it joins costs a miss. One after the other they would set the pace; the schedule tells
//! what comes next, so a handful are read at once, and the core overlaps the misses. The values are
//! thrown away.

use std::hint::black_box;

use crate::cell::Frame;

use super::{Bank, CLASS_SHIFT, DIRECT};

/// Steps fetched ahead at a time (our choice: more than the misses a core overlaps).
pub(crate) const BATCH: usize = 16;

impl Bank {
    /// Reads what the receivers of these frames will touch.
    #[inline]
    pub(crate) fn warm_receivers(&self, frames: &[Frame]) {
        let mut sum = 0;
        for frame in frames {
            let (cell, node) = (frame.cell, u32::from(frame.to));
            let relayed = !cell.is_empty() && cell.destination() != node;
            if relayed && self.schedule.contains(cell.destination()) {
                let onward = self.schedule.position(node, cell.destination());
                let tail = self.links[self.link(onward, cell.class(), node)].tail;
                sum ^= tail;
            }
        }
        black_box(sum);
    }

    /// Reads what these nodes will touch when they send in `position`; one bit a node, from `first`.
    #[inline]
    pub(crate) fn warm_senders(&self, position: u32, first: u32, mut bits: u64) {
        let mut sum = 0;
        while bits != 0 {
            let node = first + bits.trailing_zeros();
            bits &= bits - 1;
            let link = &self.links[self.link(position, 0, node)];
            sum ^= self.arena.peek(link.head);
            if link.last_received < DIRECT {
                let queue = u32::from(link.last_received);
                let (target, class) = (queue & ((1 << CLASS_SHIFT) - 1), queue >> CLASS_SHIFT);
                sum ^= u64::from(self.links[self.link(target, class, node)].queued);
            }
        }
        black_box(sum);
    }
}
