//! Cells that are lost where no transport sends them again.
//!
//! Nothing tells a destination that a cell is lost; it can only stop waiting. Our choice, as the paper has
//! no such case: it goes on without the missing cells of a pair once the source has nothing left to send
//! it, all that was sent has left the relays' queues, as the feedback said it would (Eq. 2), and nothing
//! has come for a while; or when the cells that wait for a missing one are more than it keeps. A flow
//! without all of its cells has failed; those behind it are delivered.

use rack::{Failure, Flow};

use crate::cell::Cell;

use super::{Messages, NONE, Report};

/// Cells that may wait for a missing one: more than can overtake it where nothing is lost, which is a cell
/// of each of 2,047 queues a node in each of as many epochs.
const WAITING_MAX: u32 = 1 << 23;

/// A pair of which cells are missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incomplete {
    pair: u32,
    /// Cells that had arrived when it was last looked at.
    arrived: u64,
    /// Epoch in which the destination stops waiting if no more do.
    deadline: u32,
}

impl Incomplete {
    /// Counts epochs from one that is so many later.
    pub(super) fn forget_epochs(&mut self, epochs: u32) {
        self.deadline = self.deadline.saturating_sub(epochs);
    }
}

/// What becomes of the flows to a node that is back.
#[derive(Clone, Debug)]
pub(crate) struct Returned {
    /// Sources and classes of the pairs of those that have ended.
    pub(crate) ended: Vec<(u32, u32)>,
    /// Those that were offered since, with their handles.
    pub(crate) young: Vec<(Flow, u32)>,
}

impl Messages {
    /// The source of a pair has nothing left to send: notes the pair if cells of it are missing.
    pub(super) fn miss(&mut self, pair: u32) {
        let has_open = self.senders.pairs[pair as usize].open > 0;
        if self.may_lose() && self.transport.is_none() && has_open {
            self.incomplete.push(Incomplete { pair, arrived: u64::MAX, deadline: 0 });
        }
    }

    /// Whether no destination waits for cells that may be lost.
    pub(crate) fn is_nothing_missing(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// Lets an epoch pass for destinations that wait: goes on, at `at`, without what they have waited for for
    /// `patience` epochs.
    pub(crate) fn stop_waiting(&mut self, epoch: u32, patience: u32, at: u64) {
        let mut incomplete = std::mem::take(&mut self.incomplete);
        incomplete.retain_mut(|waiting| {
            let pair = &self.senders.pairs[waiting.pair as usize];
            if !self.senders.is_known(waiting.pair) || !pair.retired || pair.open == 0 {
                return false;
            }
            let (source, destination, class) = self.senders.ends(waiting.pair);
            let inbound = self.receivers.pair(source, destination, class);
            let window = &self.receivers.pairs[inbound as usize].window;
            let position = self.senders.position(waiting.pair, window.next_expected());
            let arrived = position + u64::from(window.held());
            if arrived != waiting.arrived {
                (waiting.arrived, waiting.deadline) = (arrived, epoch.saturating_add(patience));
            }
            if epoch < waiting.deadline {
                return true;
            }
            while self.skip_missing(waiting.pair, at) {}
            false
        });
        self.incomplete = incomplete;
    }

    /// Goes on, at `at`, without the oldest missing cell of a pair, if one was sent and has not come.
    fn skip_missing(&mut self, pair: u32, at: u64) -> bool {
        if !self.senders.is_known(pair) {
            return false;
        }
        let (source, destination, class) = self.senders.ends(pair);
        let inbound = self.receivers.pair(source, destination, class);
        let next = self.receivers.pairs[inbound as usize].window.next_expected();
        if next == self.senders.pairs[pair as usize].sequence {
            return false;
        }
        // The run of a cell that has not arrived is known.
        let Some((run, cell)) = self.senders.run_of(pair, next) else { return false };
        self.reports.push(Report::lost(run.handle, cell));
        self.receivers.skip(inbound, run.payload(cell));
        self.tell_whole(Cell::data(source, destination, class, next), at);
        true
    }

    /// Before a cell arrives, at `at`: goes on without missing ones that too many others would wait for.
    #[inline]
    pub(super) fn make_room(&mut self, pair: u32, cell: Cell, at: u64) {
        let inbound = self.receivers.pair(cell.source(), cell.destination(), cell.class());
        let ahead = |messages: &Self| {
            let window = &messages.receivers.pairs[inbound as usize].window;
            cell.sequence().wrapping_sub(window.next_expected())
        };
        let is_too_far = |ahead: u32| ahead >= WAITING_MAX && ahead <= i32::MAX as u32;
        while is_too_far(ahead(self)) && self.skip_missing(pair, at) {}
    }

    /// A node died. What it was to receive is lost with it, though senders do not know yet; it will
    /// acknowledge nothing.
    pub(crate) fn receiver_died(&mut self, node: u32) {
        for key in 0..self.senders.pair_of.len() {
            let pair = self.senders.pair_of[key];
            if pair == NONE || self.senders.ends(pair).1 != node {
                continue;
            }
            self.senders.for_each(pair, |message| message.is_doomed = true);
            if let Some(transport) = &mut self.transport {
                transport.receiver_died(pair);
            }
        }
    }

    /// A node that had died is back and tells its peers: those of its flows end, at `at`, that were open
    /// when it died. The pairs of those that were offered since start anew with them.
    pub(crate) fn receiver_returned(&mut self, node: u32, at: u64) -> Returned {
        let (mut ended, mut young) = (Vec::new(), Vec::new());
        for key in 0..self.senders.pair_of.len() {
            let pair = self.senders.pair_of[key];
            if pair == NONE || self.senders.ends(pair).1 != node {
                continue;
            }
            let mut has_doomed = false;
            self.senders.for_each(pair, |message| has_doomed |= message.is_doomed);
            if !has_doomed {
                continue;
            }
            for handle in self.senders.open_messages(pair) {
                let is_doomed = self.senders.message(pair, handle).is_some_and(|m| m.is_doomed);
                if is_doomed {
                    self.fail(pair, handle, at, Failure::DestinationDied);
                } else if let Some(message) = self.senders.remove(pair, handle) {
                    young.push((message.flow, handle));
                }
            }
            let (source, _, class) = self.senders.ends(pair);
            ended.push((source, class));
            self.restart(pair);
        }
        Returned { ended, young }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Time};
    use rack::{Class, FlowId, NodeId};

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
        let cells = u64::from(WAITING_MAX) + 54;
        let flow = |id, size| Flow {
            id: FlowId::new(id),
            src: NodeId::new(0),
            dst: NodeId::new(1),
            size: Bytes::new(size),
            start: Time::ZERO,
            class: Class::new(0),
        };
        // 27 cells a packet of 1,500 B.
        let work = messages.offer(&flow(0, cells / 27 * 1500), 7);
        let lost = 40;
        let whole = |messages: &mut Messages| {
            let whole = |report: &Report| matches!(report.what, What::Whole { .. });
            std::mem::take(&mut messages.reports).iter().any(whole)
        };
        for sequence in 0..work.cells {
            let cargo = messages.next_cell(work.tag, sequence);
            messages.cell_left(work.tag, cargo, sequence);
            if sequence == lost {
                continue;
            }
            assert!(messages.cell_arrived(cargo, sequence, true, 1));
            let held = messages.receivers.pairs[0].window.held();
            assert!(held <= WAITING_MAX);
            let is_gap = messages.reports.contains(&Report::lost(7, lost));
            assert_eq!(is_gap, sequence >= lost + u64::from(WAITING_MAX), "cell {sequence}");
            if sequence == work.cells - 1 {
                assert!(whole(&mut messages), "cell {sequence}");
            } else if is_gap {
                messages.reports.retain(|report| !matches!(report.what, What::Whole { .. }));
            }
        }
        assert_eq!(messages.senders.open, 0);
        // The next flow of the pair is whole.
        let work = messages.offer(&flow(1, 10), 8);
        let cargo = messages.next_cell(work.tag, 0);
        assert!(messages.cell_arrived(cargo, 0, true, 2));
        assert_eq!(messages.reports.iter().filter(|report| report.handle == 8).count(), 2);
    }
}
