//! Prefetching what the next steps will touch.
//!
//! A rack's state is larger than a core's cache, and where a cell goes is as good as random: each
//! queue that it joins costs a miss. One after the other, these misses would set the pace; the schedule tells
//! what comes next, so it is prefetched while other steps are done. First the links of a step, then,
//! once they are there, what they point to.

use kernel::{prefetch, prefetch_range};

use crate::cell::Frame;
use crate::mode::Mode;

use super::Bank;

/// How many steps ahead memory is asked for (our choice, measured: enough to cover a miss).
pub(crate) const AHEAD: usize = 12;

/// One node in so many with something to do makes it worth to ask for the state of all (our choice).
const DENSE: usize = 8;

impl Bank {
    /// Whether so many nodes with something to do in a position are many.
    pub(crate) fn is_dense(&self, count: usize) -> bool {
        count * DENSE >= self.own as usize
    }

    /// Asks for what the nodes will touch that have something to do in `position`.
    pub(crate) fn prefetch_position<M: Mode>(&self, position: u32) {
        if position >= self.schedule.positions() {
            return;
        }
        let first = self.link::<M>(position, 0, self.first);
        prefetch_range(&self.links, first..first + self.own as usize);
        self.subflows.prefetch_row(position);
    }

    /// Asks for what the nodes will touch that hear frames sent in `position`.
    pub(crate) fn prefetch_hearing<M: Mode>(&self, position: u32) {
        let (shift, senders) = self.schedule.column(position);
        if !M::LOSSY && !senders.is_empty() {
            let sender = senders.start;
            let receiver = self.schedule.wrap(sender + shift);
            self.prefetch_position::<M>(self.position::<M>(receiver, sender));
        }
    }

    /// Asks for what the receivers will touch that relay the frames behind the first.
    #[inline]
    pub(crate) fn prefetch_relays<M: Mode>(&self, frames: &[Frame]) {
        if let Some(frame) = frames.get(2 * AHEAD) {
            prefetch(&self.links, self.onward::<M>(frame));
        }
        if let Some(frame) = frames.get(AHEAD) {
            self.arena.prefetch(self.links[self.onward::<M>(frame)].tail);
        }
    }

    /// The link whose queue a cell will join that is to be relayed.
    #[inline]
    fn onward<M: Mode>(&self, frame: &Frame) -> usize {
        let (node, destination) = (u32::from(frame.to), frame.cell.destination());
        if M::LOSSY && !(self.schedule.contains(node) && self.schedule.contains(destination)) {
            return 0;
        }
        self.link::<M>(self.position::<M>(node, destination), frame.cell.class(), node)
    }
}
