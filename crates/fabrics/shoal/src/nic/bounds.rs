//! The bounds of §3.3.2 to §3.3.4, asserted where queues grow.

use crate::config::Feedback;

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
        let queued = self.links[self.link(position, 0, node)].queued_count();
        let bound = self.queue_bound(node, destination);
        assert!(
            queued <= bound,
            "Eq. 5: {queued} cells queued at node {node} for node {destination}, bound {bound}"
        );
    }

    /// The most cells that may queue at `node` for `destination`.
    pub(crate) fn queue_bound(&self, node: u32, destination: u32) -> u32 {
        let incast = u32::from(self.incast[destination as usize]);
        if self.mechanisms.ready_queue {
            return 1 + incast;
        }
        let own = &self.own[node as usize];
        let outcast = (own.flows.len() - own.free.len()) as u32;
        outcast + incast
    }
}
