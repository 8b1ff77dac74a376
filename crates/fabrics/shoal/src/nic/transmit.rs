//! What a node sends when the schedule connects it to a peer (§3.3.1): the head of the queue, or an
//! empty cell; in its header, feedback on the last cell received from that peer.

use crate::cell::{Cell, Frame};

use super::release::CellSource;
use super::{Bank, Link, NONE, Now};

/// What came of a visit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) frame: Frame,
    /// Whether the frame says more than an empty cell with no feedback does.
    pub(crate) matters: bool,
    /// Whether the cell is one of the node's own.
    pub(crate) local: bool,
}

impl Bank {
    /// `node` meets `peer` in `position`. `LOSSY`: cells may be lost, so keep what that takes.
    #[inline]
    pub(crate) fn transmit<const LOSSY: bool>(
        &mut self,
        position: u32,
        node: u32,
        peer: u32,
        now: Now,
        source: &mut impl CellSource,
    ) -> Sent {
        let mut frame =
            Frame { cell: Cell::EMPTY, from: node as u16, to: peer as u16, feedback: 0, flags: 0 };
        // S91: a node that has given up a peer is silent to it. One that spreads notices keeps its
        // cells for later.
        if LOSSY && self.is_down(position, node) {
            return Sent { frame, matters: false, local: false };
        }
        let mut express = None;
        let may_send = !(LOSSY && self.is_spreading(node, now));
        if may_send && !self.own[node as usize].active.is_empty() {
            express = self.release::<LOSSY>(position, node, peer, now, source);
        }
        let mut local = false;
        if let Some((cell, slot)) = express {
            (frame.cell, local) = (cell, true);
            *self.sent_entry(position, node, now.epoch) = slot;
            self.local_cell_left(position, 0, node, now, source);
        } else if may_send && self.may_have_cell(position, node) {
            (frame.cell, local) = self.dequeue(position, node, now, source);
            if local {
                self.record_sent(position, node, frame.cell, now);
            }
        }
        let owed = self.owes_feedback(position, node);
        if owed {
            frame.feedback = self.take_feedback(position, node);
        }
        if LOSSY {
            self.note_sent(position, node, &mut frame, now);
        }
        if self.has_nothing(position, node) {
            self.clear_busy(position, node);
        }
        let matters = owed || !frame.cell.is_empty() || frame.flags != 0;
        Sent { frame, matters, local }
    }

    /// Whether [`Bank::dequeue`] may find a cell.
    #[inline]
    fn may_have_cell(&self, position: u32, node: u32) -> bool {
        let link = &self.links[self.link(position, 0, node)];
        self.classes > 1 || link.queued > 0 || link.ready != 0
    }

    /// The first cell of the most urgent class (Appendix C), and whether it is the node's own.
    #[inline]
    fn dequeue(
        &mut self,
        position: u32,
        node: u32,
        now: Now,
        source: &mut impl CellSource,
    ) -> (Cell, bool) {
        for class in 0..self.classes {
            let index = self.link(position, class, node);
            if self.links[index].waits_for_room() {
                self.admit(position, class, node, now, source);
            }
            let link = &mut self.links[index];
            if link.queued == 0 {
                continue;
            }
            let cell = self.arena.pop(link);
            self.own[node as usize].queued -= 1;
            let local = cell.source() == node;
            if local && self.mechanisms.ready_queue {
                self.local_cell_left(position, class, node, now, source);
            }
            return (cell, local);
        }
        (Cell::EMPTY, false)
    }

    /// A local cell has left the queue: the next joins now, not at the next visit, so that relayed
    /// cells that arrive until then queue behind it.
    #[inline]
    fn local_cell_left(
        &mut self,
        position: u32,
        class: u32,
        node: u32,
        now: Now,
        source: &mut impl CellSource,
    ) {
        let index = self.link(position, class, node);
        self.links[index].ready &= !Link::LOCAL;
        if self.links[index].waits_for_room() {
            self.admit(position, class, node, now, source);
        }
    }

    /// Records to which flow the cell sent belongs (§4.2, "last cell sent").
    #[inline]
    fn record_sent(&mut self, position: u32, node: u32, cell: Cell, now: Now) {
        let slot = self.flow_of[self.flow_index(node, cell.destination(), cell.class())];
        debug_assert_ne!(slot, NONE, "node {node} sends {cell:?} of a flow it does not have");
        *self.sent_entry(position, node, now.epoch) = slot;
    }

    /// The record of what `node` sent in `position` in an epoch.
    #[inline]
    pub(super) fn sent_entry(&mut self, position: u32, node: u32, epoch: u32) -> &mut u16 {
        if self.depth == 1 {
            let index = self.link(position, 0, node);
            return &mut self.links[index].last_sent;
        }
        let row = (position as usize * self.nodes as usize + node as usize) * self.depth as usize;
        &mut self.sent_ring[row + (epoch % self.depth) as usize]
    }

    #[inline]
    fn has_nothing(&self, position: u32, node: u32) -> bool {
        (0..self.classes).all(|class| {
            let link = &self.links[self.link(position, class, node)];
            link.queued == 0 && link.ready_count() == 0
        }) && (self.loss.is_none() || !self.owes_drop(position, node))
    }
}
