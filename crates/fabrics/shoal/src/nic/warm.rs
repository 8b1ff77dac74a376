//! Asking ahead for what the next steps will touch.
//!
//! A rack's state is larger than a core's cache, and where a cell goes is as good as random: each
//! queue that it joins costs a miss. One after the other they would set the pace; the schedule tells
//! what comes next, so it is asked for while other steps are done. First the links of a step, then,
//! once they are there, what they point to.

use kernel::prefetch;

use crate::cell::Frame;
use crate::mode::Mode;

use super::Bank;

/// How many steps ahead memory is asked for (our choice, measured: enough to cover a miss).
pub(crate) const AHEAD: usize = 12;

impl Bank {
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
