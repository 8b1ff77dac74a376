//! The bounds of §3.3.2 to §3.3.4, asserted where queues grow.

use crate::config::Feedback;
use crate::mode::Lossy;

use super::Bank;

impl Bank {
    /// Eq. 5, or Eq. 3 without the ready queue, for the queue of `node` for `destination` (S67).
    ///
    /// # Panics
    /// In builds with debug assertions, if the bound is broken. Not held to it: the feedback
    /// variant that is too loose ([`Feedback::MinusOne`]), several classes (Appendix C: only the
    /// most urgent is bounded) and racks that lose cells (second copies are under way).
    #[inline]
    pub(super) fn assert_bound(&self, position: u32, node: u32, destination: u32) {
        let exempt = self.mechanisms.feedback == Feedback::MinusOne
            || self.classes > 1
            || self.loss.is_some();
        if !cfg!(debug_assertions) || exempt {
            return;
        }
        let queued = self.links[self.link::<Lossy>(position, 0, node)].queued_count();
        let bound = self.queue_bound(node, destination);
        assert!(
            queued <= bound,
            "Eq. 5: {queued} cells queued at node {node} for node {destination}, bound {bound}"
        );
    }

    /// The most cells that any queue may have held so far, by the largest degrees seen.
    pub(crate) fn largest_bound(&self) -> u32 {
        let (incast, outcast) = (u32::from(self.incast_peak), u32::from(self.outcast_peak));
        if self.mechanisms.ready_queue { 1 + incast } else { outcast + incast }
    }

    /// The length that 99 % of the relayed cells found at most, themselves included.
    pub(crate) fn length_p99(&self) -> u64 {
        let all: u64 = self.lengths.iter().sum();
        let mut seen = 0;
        let within = self.lengths.iter().position(|count| {
            seen += count;
            seen * 100 >= all * 99
        });
        if all == 0 { 0 } else { within.unwrap_or(0) as u64 }
    }

    /// Cells of all classes queued at `node` for its next meeting with `peer`.
    pub(crate) fn queued_for(&self, node: u32, peer: u32) -> u32 {
        let position = self.schedule.position(node, peer);
        let length = |class| self.links[self.link::<Lossy>(position, class, node)].queued_count();
        (0..self.classes).map(length).sum()
    }

    /// The most cells that may queue at `node` for `destination`.
    pub(crate) fn queue_bound(&self, node: u32, destination: u32) -> u32 {
        let incast = u32::from(self.incast[destination as usize]);
        if self.mechanisms.ready_queue {
            return 1 + incast;
        }
        self.flows.count(node) as u32 + incast
    }
}
