//! The feedback that a node gives on a remote queue: Eqs 1 and 6, and their timing (§3.3.2, §3.3.3).

use crate::config::Feedback;
use crate::mode::Mode;
use crate::schedule::Schedule;

#[cfg(doc)]
use super::Link;
use super::{Bank, CLASS_SHIFT};

/// When a response to feedback can arrive: for each position, measured in positions from the start
/// of the epoch in which the feedback is sent.
#[derive(Clone, Debug)]
pub(crate) struct FeedbackTable {
    /// `[position * 2 + half]`, half 0 for a node below N/2, 1 for the others: only the shift N/2
    /// of an even rack tells them apart.
    response: Vec<u32>,
}

impl FeedbackTable {
    /// The table for a schedule and a delay from sending to acting of `delay` slots.
    pub(crate) fn new(schedule: &Schedule, delay: u32) -> Self {
        let response = (0..schedule.positions())
            .flat_map(|position| {
                schedule.examples().map(|node| {
                    let Some(peer) = schedule.peer(node, position) else { return 0 };
                    let (_, arrival) = round_trip(schedule, position, peer, node, delay);
                    arrival * schedule.channels()
                })
            })
            .collect();
        Self { response }
    }

    /// How often a node of that half visits `queue` after `position` and before a response to what it
    /// sends in
    /// `position` can arrive, if an epoch has `positions`.
    #[inline]
    fn drains(&self, position: u32, half: u32, queue: u32, positions: u32) -> u32 {
        let response = self.response[(position * 2 + half) as usize];
        let first = if queue > position { queue } else { queue + positions };
        if first >= response {
            0
        } else if response - first <= positions {
            1
        } else {
            (response - first).div_ceil(positions)
        }
    }
}

/// A frame leaves in `position` for `peer`: the slot in which the peer next sends back to `node`
/// after acting on it, and the slot in which `node` acts on that, from the start of the epoch.
fn round_trip(schedule: &Schedule, position: u32, peer: u32, node: u32, delay: u32) -> (u32, u32) {
    let arrival = schedule.origin().after(u64::from(schedule.slot_of(position) + delay));
    let back = schedule.next_slot(peer, node, arrival).get() - schedule.origin().get();
    (back as u32, back as u32 + delay)
}

/// Epochs of `last sent` that a node must remember until feedback on them arrives: 1 wherever the
/// schedule leaves room for propagation (Appendix A).
pub(super) fn depth(schedule: &Schedule, delay: u32) -> u32 {
    let longest = (0..schedule.positions())
        .flat_map(|position| {
            schedule.examples().map(|node| match schedule.peer(node, position) {
                None => 0,
                Some(peer) => {
                    let (_, arrival) = round_trip(schedule, position, peer, node, delay);
                    arrival - schedule.slot_of(position)
                }
            })
        })
        .max()
        .unwrap_or(0);
    longest.div_ceil(schedule.slots()).max(1)
}

impl Bank {
    /// Eq. 6 for a queue, given as in [`Link::last_received`], in a frame that leaves in `position`;
    /// with classes, the sum over those at least as urgent (Appendix C).
    #[inline]
    pub(super) fn feedback_on<M: Mode>(&self, position: u32, node: u32, queue: u32) -> u16 {
        let (target, class) = (queue & ((1 << CLASS_SHIFT) - 1), queue >> CLASS_SHIFT);
        let mut total = 0;
        for class in 0..=if M::GENERAL { class } else { 0 } {
            let link = &self.links[self.link::<M>(target, class, node)];
            let ready = if self.mechanisms.feedback_counts_ready { link.ready_count() } else { 0 };
            let length = link.queued_count() + ready;
            total += match self.mechanisms.feedback {
                Feedback::MinusOne => length.saturating_sub(1),
                Feedback::PhaseExact | Feedback::WholeEpochs => length,
            };
        }
        // Nothing to take away from nothing: most queues drain before they are reported on.
        if total > 0 && self.mechanisms.feedback == Feedback::PhaseExact {
            let positions = self.schedule.positions();
            let half = u32::from(self.schedule.is_upper(node));
            total = total.saturating_sub(self.feedback.drains(position, half, target, positions));
        }
        total as u16
    }
}
