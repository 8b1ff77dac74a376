//! Cells that are lost where no transport sends them again.
//!
//! Nothing tells a destination that a cell is lost; it can only stop waiting. Our choice, as the paper has
//! no such case: it goes on without a cell for which others have waited so long that it would have left the
//! longest queues (S67) on its way. A flow of which cells are missing has failed; those behind it are
//! delivered. A loss at the end of a flow shows in no later cell: the driver, which hears from
//! sources when all that they sent has left the relays' queues, as the feedback said it would (Eq. 2), ends a
//! flow that does not arrive a while after that.

use super::{Messages, Report};

/// A pair that waits for a cell, at its destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pair: u32,
    /// The cell.
    next: u32,
    /// Epoch in which the destination stops waiting for it.
    deadline: u32,
}

impl Waiting {
    /// Counts epochs from one that is so many later.
    pub(super) fn forget_epochs(&mut self, epochs: u32) {
        self.deadline = self.deadline.saturating_sub(epochs);
    }
}

impl Messages {
    /// Whether no destination waits for cells that may be lost.
    pub(crate) fn is_nothing_missing(&self) -> bool {
        self.waiting.is_empty() && self.receivers.waiting.is_empty()
    }

    /// Lets an epoch pass for destinations that wait: goes on, at `at`, without what they have waited for for
    /// `patience` epochs.
    pub(crate) fn stop_waiting(&mut self, epoch: u32, patience: u32, at: u64) {
        let begun = std::mem::take(&mut self.receivers.waiting);
        if self.transport.is_some() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        for pair in begun {
            let next = self.receivers.pairs[pair as usize].window.next_expected();
            if waiting.iter().all(|known| known.pair != pair) {
                waiting.push(Waiting { pair, next, deadline: epoch.saturating_add(patience) });
            }
        }
        waiting.retain_mut(|waiting| {
            let window = &self.receivers.pairs[waiting.pair as usize].window;
            if !self.receivers.is_known(waiting.pair) || window.held() == 0 {
                return false;
            }
            let next = window.next_expected();
            if next != waiting.next {
                (waiting.next, waiting.deadline) = (next, epoch.saturating_add(patience));
            }
            if epoch >= waiting.deadline {
                self.receivers.skip(waiting.pair);
                self.tell_whole(at);
                let window = &self.receivers.pairs[waiting.pair as usize].window;
                waiting.next = window.next_expected();
                waiting.deadline = epoch.saturating_add(patience);
            }
            let is_done = self.receivers.pairs[waiting.pair as usize].window.held() == 0;
            if is_done {
                self.receivers.forget_if_done(waiting.pair);
            }
            !is_done
        });
        self.waiting = waiting;
    }

    /// Reports what destinations have forgotten.
    pub(super) fn tell_given_up(&mut self) {
        let given_up = self.receivers.given_up.drain(..);
        self.reports.extend(given_up.map(|(handle, cells)| Report::given_up(handle, cells)));
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Time};
    use rack::{Class, Flow, FlowId, NodeId};

    use super::*;
    use crate::config::Config;
    use crate::messages::What;
    use crate::nic::CellSource;
    use crate::packets::CellPlan;

    #[test]
    fn s96_a_long_flow_that_loses_a_cell_goes_on_without_it() {
        let config = Config { nodes: 2, ..Config::default() };
        let plan = CellPlan::new(config.packet, config.cell - config.header).unwrap();
        let mut messages = Messages::new(&config, plan, 0..2).with_losses();
        let flow = |id, size| Flow {
            id: FlowId::new(id),
            src: NodeId::new(0),
            dst: NodeId::new(1),
            size: Bytes::new(size),
            start: Time::ZERO,
            class: Class::new(0),
        };
        // 27 cells a packet of 1,500 B; a cell a slot, ten slots an epoch, patience for twelve.
        let work = messages.offer(&flow(0, 1_500 * 100), 7);
        let (lost, mut ended) = (40, None);
        for sequence in 0..work.cells {
            let cargo = messages.next_cell(work.tag, sequence);
            messages.cell_left(work.tag, cargo, sequence);
            if sequence != lost {
                assert!(messages.cell_arrived(cargo, sequence, true, 1));
            }
            if sequence % 10 == 0 {
                messages.stop_waiting(sequence as u32 / 10, 12, sequence);
            }
            let held = messages.receivers.pairs[0].window.held();
            assert!(u64::from(held) <= sequence.saturating_sub(lost).min(130), "{held} wait");
            let reports = std::mem::take(&mut messages.reports);
            ended = reports.iter().find_map(|report| match report.what {
                What::Whole { cells, sound, .. } => Some((report.handle, cells, sound)),
                _ => None,
            });
        }
        assert_eq!(ended, Some((7, work.cells - 1, lost)));
        assert_eq!(messages.senders.open, 0);
        // The next flow of the pair is whole.
        let work = messages.offer(&flow(1, 10), 8);
        let cargo = messages.next_cell(work.tag, 0);
        assert!(messages.cell_arrived(cargo, 0, true, 2));
        let whole = |report: &Report| {
            report.handle == 8 && matches!(report.what, What::Whole { cells: 1, sound: 1, .. })
        };
        assert!(messages.reports.iter().any(whole));
    }
}
