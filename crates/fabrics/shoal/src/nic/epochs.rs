//! Epochs counted from one that moves.
//!
//! A subflow's number has 31 bits for an epoch (see [`super::subflows`]), and 2^31 epochs are over after
//! some minutes of simulated time. Only differences of epochs matter, and nothing looks far back; so the
//! count starts anew now and then, whatever time was skipped, and what is kept is moved along.

use super::{Bank, Now};

/// Epochs that stay countable backwards when the count moves: far more than any wait for feedback. A run
/// begins with as many behind it, so that its start is like any other time.
pub(super) const KEPT: u64 = 1 << 28;
/// The count moves when it comes to this; what it is added to (feedback, a queue's length, patience)
/// stays below 2^31.
const MOST: u64 = 1 << 30;

impl Bank {
    /// How many epochs to forget if those counted in a slot are too many.
    pub(crate) fn surplus_epochs(&self, slot: u64) -> Option<u64> {
        let since = slot - self.schedule.origin().get();
        let epoch = self.epoch_base.wrapping_add(since / u64::from(self.schedule.slots()));
        // Records of what was sent stand in a ring of `depth` epochs, and stay where they are.
        (epoch >= MOST).then(|| (epoch - KEPT) / u64::from(self.depth) * u64::from(self.depth))
    }

    /// Counts epochs from one that is so many later. What lies before it is past all the same.
    pub(crate) fn forget_epochs(&mut self, epochs: u64) {
        self.epoch_base = self.epoch_base.wrapping_sub(epochs);
        self.turns_began = self.turns_began.wrapping_sub(epochs as u32);
        let all = u32::try_from(epochs).unwrap_or(u32::MAX);
        self.subflows.forget_epochs(all);
        self.flows.forget_epochs(all);
        if let Some(loss) = &mut self.loss {
            loss.forget_epochs(all);
        }
    }

    /// A flow comes to a rack that had none: turns count from now, so that it makes no difference when in
    /// the run this is.
    pub(crate) fn start_turns(&mut self, now: Now) {
        self.turns_began = now.epoch;
    }
}
