//! Whose clock the rack follows, and what changing that does to cells (§3.5).

use std::ops::Range;

use kernel::Span;

use super::clock::{ClockLoss, Takeover};
use crate::config::Plan;

/// The clock of a rack in which nodes can be lost.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    master: u32,
    /// What a loss is like, but for when nodes notice.
    loss: ClockLoss,
    /// How far clocks may differ before cells are clipped, and how long a slot is.
    margin: Span,
    slot: Span,
    /// The last loss, and in which slot it was.
    last: Option<(u64, ClockLoss)>,
    /// Slots in which it clips cells, and how many earlier ones did.
    clipped: Range<u64>,
    clipped_before: u64,
    /// Losses so far, and the most by which two clocks differed.
    pub(crate) losses: u64,
    pub(crate) worst: Span,
}

impl Clock {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            master: plan.config.sync.master,
            loss: plan.config.sync.clock_loss(),
            margin: plan.synchronisation_margin(),
            slot: plan.config.slot,
            last: None,
            clipped: 0..0,
            clipped_before: 0,
            losses: 0,
            worst: plan.config.sync.precision,
        }
    }

    /// The node that all follow, or are about to.
    pub(crate) fn master(&self) -> u32 {
        self.master
    }

    /// The master is lost in a slot. All nodes have noticed `notice` slots later; they then follow `next`,
    /// if there is one left.
    pub(crate) fn lose(&mut self, slot: u64, notice: u64, next: Option<u32>) {
        let before = self.last.map_or(self.loss.precision, |(lost, loss)| {
            loss.phase_error(self.slot * (slot - lost).min(loss.recovered().div_ceil(self.slot)))
        });
        let takeover = self.slot * notice + self.loss.takeover;
        let loss = ClockLoss { before, takeover, ..self.loss };
        self.clipped_before = self.clipped_until(slot);
        let (worst, clipped) = match loss.effect(self.margin, self.slot) {
            Takeover::Seamless { worst } => (worst, slot..slot),
            Takeover::Clipped { worst, from, slots } => {
                let first = slot + from / self.slot;
                (worst, first..first + slots)
            }
        };
        self.clipped = clipped;
        self.worst = self.worst.max(worst);
        self.losses += 1;
        self.last = Some((slot, loss));
        self.master = next.unwrap_or(self.master);
    }

    /// Whether cells sent in a slot are clipped: those of the pair of nodes that is worst off.
    #[inline]
    pub(crate) fn clips(&self, slot: u64) -> bool {
        self.clipped.contains(&slot)
    }

    /// In how many slots before this one cells were clipped.
    pub(crate) fn clipped_until(&self, slot: u64) -> u64 {
        let end = self.clipped.end.min(slot);
        self.clipped_before + end.saturating_sub(self.clipped.start)
    }
}
