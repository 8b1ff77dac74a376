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
            || self.loss.is_some()
            // The degree of a node is what all others send it.
            || self.own < self.nodes;
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

    /// The largest number of other nodes to which a node has sent at a time.
    pub(crate) fn outcast_peak(&self) -> u32 {
        u32::from(self.outcast_peak)
    }

    /// How often a relayed cell joined a queue of each length; the last stands for all longer.
    pub(crate) fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// Cells in all queues of `node`.
    pub(crate) fn queued_in(&self, node: u32) -> u32 {
        self.queued[node as usize]
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
