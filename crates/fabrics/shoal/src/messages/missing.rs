//! Cells that are lost where no transport sends them again.
//!
//! Nothing tells a destination that a cell is lost; it can only stop waiting. Our choice, as the paper has
//! no such case: it goes on without the missing cells of a pair once the source has nothing left to send
//! it, all that was sent has left the relays' queues, as the feedback said it would (Eq. 2), and nothing
//! has come for a while; or when the cells that wait for a missing one are more than it keeps. A flow
//! without all of its cells has failed; those behind it are delivered.

use kernel::Bytes;
use rack::{Failure, Flow};

use super::{Message, Messages, NONE};

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

impl Messages {
    /// The source of a pair has nothing left to send: notes the pair if cells of it are missing.
    pub(super) fn miss(&mut self, pair: u32) {
        if self.transport.is_none() && self.pairs[pair as usize].open > 0 {
            self.incomplete.push(Incomplete { pair, arrived: u64::MAX, deadline: 0 });
        }
    }

    /// Whether no destination waits for cells that may be lost.
    pub(crate) fn is_nothing_missing(&self) -> bool {
        self.incomplete.is_empty()
    }

    /// Lets an epoch pass for destinations that wait: gives those messages for which it is over, delivered
    /// or not. They wait for `patience` epochs.
    pub(crate) fn stop_waiting(&mut self, epoch: u32, patience: u32) -> Vec<Message> {
        let mut ended = Vec::new();
        let mut incomplete = std::mem::take(&mut self.incomplete);
        incomplete.retain_mut(|waiting| {
            let pair = &self.pairs[waiting.pair as usize];
            let is_known = self.pair_of[pair.key as usize] == waiting.pair;
            if !is_known || !pair.retired || pair.open == 0 {
                return false;
            }
            let arrived = pair.arrived + u64::from(pair.window.held());
            if arrived != waiting.arrived {
                (waiting.arrived, waiting.deadline) = (arrived, epoch.saturating_add(patience));
            }
            if epoch < waiting.deadline {
                return true;
            }
            while self.skip_missing(waiting.pair) {
                while let Some(message) = self.complete_of(waiting.pair) {
                    ended.push(message);
                }
            }
            false
        });
        self.incomplete = incomplete;
        ended
    }

    /// Goes on without the oldest missing cell of a pair, if one was sent and has not come.
    fn skip_missing(&mut self, index: u32) -> bool {
        let (next, last) = {
            let pair = &self.pairs[index as usize];
            (pair.window.next_expected(), pair.sequence)
        };
        if next == last || self.pair_of[self.pairs[index as usize].key as usize] != index {
            return false;
        }
        if let Some((message, cell)) = self.cell_of(index, next) {
            let lost = &mut self.slab[message as usize].lost_from;
            *lost = Some(lost.map_or(cell, |first| first.min(cell)));
        }
        let pair = &mut self.pairs[index as usize];
        pair.arrived += u64::from(pair.window.insert(next).advanced);
        true
    }

    /// Before a cell arrives: goes on without missing ones that too many others would wait for. Whether
    /// there were any.
    #[inline]
    pub(super) fn make_room(&mut self, pair: u32, sequence: u32) -> bool {
        let ahead = |messages: &Self| {
            sequence.wrapping_sub(messages.pairs[pair as usize].window.next_expected())
        };
        let is_too_far = |ahead: u32| ahead >= WAITING_MAX && ahead <= i32::MAX as u32;
        if !is_too_far(ahead(self)) {
            return false;
        }
        while is_too_far(ahead(self)) && self.skip_missing(pair) {}
        true
    }

    /// What a message that has ended lost cells of: the bytes that did not arrive in order, if any.
    pub(crate) fn conclude(&mut self, message: &Message) -> Option<Bytes> {
        let lost_from = message.lost_from?;
        let delivered = self.plan.data_before(message.flow.size, lost_from);
        self.given_up += delivered;
        Some(message.flow.size - delivered)
    }

    /// A node died. What it was to receive is lost with it, though senders do not know yet; it will
    /// acknowledge nothing.
    pub(crate) fn receiver_died(&mut self, node: u32) {
        for message in &mut self.slab {
            message.is_doomed |= message.is_open && message.flow.dst.get() == node;
        }
        let Some(transport) = &mut self.transport else { return };
        for &pair in self.pair_of.iter().filter(|&&pair| pair != NONE) {
            let key = self.pairs[pair as usize].key;
            if key / self.classes % self.nodes == node {
                transport.receiver_died(pair);
            }
        }
    }

    /// A node that had died is back and tells its peers: those of its flows end that were open when it
    /// died. Tells `failed` each, why, and how much of it had not arrived. Gives flows that were offered
    /// since; their pairs start anew with them.
    pub(crate) fn receiver_returned(
        &mut self,
        node: u32,
        mut failed: impl FnMut(Flow, Failure, Bytes),
    ) -> Vec<Flow> {
        let doomed: Vec<u32> = (0..self.slab.len() as u32)
            .filter(|&at| self.slab[at as usize].is_open && self.slab[at as usize].is_doomed)
            .filter(|&at| self.slab[at as usize].flow.dst.get() == node)
            .collect();
        let key = |flow: &Flow| self.key(flow.src.get(), node, self.class_of(flow));
        let mut keys: Vec<_> = doomed.iter().map(|&at| key(&self.slab[at as usize].flow)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut young = Vec::new();
        for key in keys {
            let pair = self.pair_of[key];
            let is_doomed: Vec<_> = self
                .open_messages(pair)
                .iter()
                .map(|&at| self.slab[at as usize].is_doomed)
                .collect();
            let mut is_doomed = is_doomed.into_iter();
            self.fail_pair(pair, |flow, missing| match is_doomed.next() {
                Some(false) => young.push(flow),
                _ => failed(flow, Failure::DestinationDied, missing),
            });
        }
        young
    }
}

#[cfg(test)]
mod tests {
    use kernel::Time;
    use rack::{Class, FlowId, NodeId};

    use super::*;
    use crate::config::Config;
    use crate::nic::CellSource;
    use crate::packets::CellPlan;

    #[test]
    fn s96_a_long_flow_that_loses_a_cell_goes_on_without_it() {
        let config = Config { nodes: 2, ..Config::default() };
        let plan = CellPlan::new(config.packet, config.cell - config.header).unwrap();
        let mut messages = Messages::new(&config, plan);
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
        let work = messages.offer(&flow(0, cells / 27 * 1500), 0);
        let lost = 40;
        for sequence in 0..work.cells {
            let cell = messages.next_cell(work.tag, sequence);
            messages.cell_left(work.tag, cell, sequence);
            if sequence == lost {
                continue;
            }
            let delivery = messages.cell_arrived(cell, sequence, true);
            assert_eq!(delivery.completes, sequence == work.cells - 1, "cell {sequence}");
            assert!(messages.pairs[0].window.held() <= WAITING_MAX);
        }
        let message = messages.complete_of(work.tag).unwrap();
        assert_eq!(message.lost_from, Some(lost));
        let missing = messages.conclude(&message).unwrap();
        // A packet of 27 cells and 13 cells of 56 bytes were there before it.
        assert_eq!(message.flow.size - missing, Bytes::new(1500 + 13 * 56));
        assert_eq!(messages.in_order(), Bytes::new(1500 + 13 * 56));
        assert_eq!(messages.open, 0);
        // The next flow of the pair is whole.
        let work = messages.offer(&flow(1, 10), 0);
        let cell = messages.next_cell(work.tag, 0);
        assert!(messages.cell_arrived(cell, 0, true).completes);
        assert_eq!(messages.complete_of(work.tag).unwrap().lost_from, None);
    }
}
