//! What a node does with a frame (§3.3.1, §3.3.2): use the feedback, then keep, relay or ignore the
//! cell.

use crate::cell::{Cell, Frame};

use super::{Bank, CLASS_SHIFT, DIRECT, NONE, Now};

impl Bank {
    /// `frame.to` acts on a frame that left `delay` slots ago. Gives the cell if it is for that
    /// node.
    #[inline]
    pub(crate) fn receive<const LOSSY: bool>(&mut self, frame: Frame, now: Now) -> Option<Cell> {
        let (node, from) = (u32::from(frame.to), u32::from(frame.from));
        let back = self.schedule.position(node, from);
        if LOSSY && self.is_down(back, node) {
            // The other side has not noticed yet; it keeps what it sent and will take it back.
            return None;
        }
        if LOSSY && frame.flags & (Frame::DROPPED | Frame::CORRUPT) != 0 {
            self.send_again(back, node, now);
            if frame.flags & Frame::CORRUPT != 0 {
                // S84: a corrupted cell is discarded and its sender told; its last-cell-dropped
                // may have been set, so the last cell to it goes out again (Appendix D).
                self.tell_dropped(back, node);
                return None;
            }
        } else {
            self.use_feedback(back, node, u32::from(frame.feedback), now);
        }
        let cell = frame.cell;
        if cell.is_empty() {
            return None;
        }
        let first_hop = cell.source() == from;
        if LOSSY && frame.flags & Frame::GARBLED != 0 {
            self.discard();
            self.note_received(back, node, DIRECT);
            return None;
        }
        if cell.destination() == node {
            if first_hop {
                self.note_received(back, node, DIRECT);
            }
            return Some(cell);
        }
        debug_assert!(first_hop, "a second detour of {cell:?} at node {node} (§3.3.1)");
        if LOSSY && !self.schedule.contains(cell.destination()) {
            self.discard();
            self.note_received(back, node, DIRECT);
            return None;
        }
        let onward = self.schedule.position(node, cell.destination());
        if LOSSY && !self.accepts(onward, back, node, cell) {
            return None;
        }
        self.note_received(back, node, (cell.class() << CLASS_SHIFT | onward) as u16);
        self.enqueue(onward, cell.class(), node, cell);
        self.count_length(onward, node, cell);
        self.assert_bound(onward, node, cell.destination());
        None
    }

    /// Whether `node` can relay a cell: it reaches the destination and has room. If not, the cell
    /// is gone, or its sender will be told.
    fn accepts(&mut self, onward: u32, back: u32, node: u32, cell: Cell) -> bool {
        if self.is_down(onward, node) {
            self.discard();
            self.note_received(back, node, DIRECT);
            return false;
        }
        let queued = self.links[self.link(onward, cell.class(), node)].queued;
        if queued >= self.mechanisms.queue_limit {
            // S83: a tail drop is told to the sender (Appendix C).
            self.tell_dropped(back, node);
            return false;
        }
        true
    }

    /// Counts the length of the queue that a relayed cell has joined.
    #[inline]
    fn count_length(&mut self, onward: u32, node: u32, cell: Cell) {
        let queued = self.links[self.link(onward, cell.class(), node)].queued_count() as usize;
        let last = self.lengths.len() - 1;
        self.lengths[queued.min(last)] += 1;
    }

    /// Records which queue the last cell from a peer joined (§4.2, "last cell received"); the
    /// report is due in `back`.
    #[inline]
    fn note_received(&mut self, back: u32, node: u32, queue: u16) {
        let index = self.link(back, 0, node);
        self.links[index].last_received = queue;
        self.set_busy(back, node);
    }

    /// Applies feedback to the subflow whose cell it reports on, if there is one.
    #[inline]
    fn use_feedback(&mut self, position: u32, node: u32, feedback: u32, now: Now) {
        let Some(epoch) = self.epoch_reported(position, now) else { return };
        let slot = std::mem::replace(self.sent_entry(position, node, epoch), NONE);
        if slot == NONE {
            return;
        }
        // T is the first visit to the peer from now on.
        let visit = now.epoch + u32::from(position < now.position);
        let due = visit + feedback;
        *self.subflows.get_mut(position, node, usize::from(slot)) = due;
        let flow = &mut self.own[node as usize].flows[usize::from(slot)];
        flow.outstanding -= 1;
        flow.drained = flow.drained.max(due);
    }

    /// The epoch in which this node sent, in `position`, the cell on which a frame that arrives now
    /// reports: the last that could reach the peer before it answered. The delays are known.
    #[inline]
    pub(super) fn epoch_reported(&self, position: u32, now: Now) -> Option<u32> {
        if self.depth == 1 && self.loss.is_none() {
            return Some(0);
        }
        let since = now.slot - self.schedule.origin().get();
        let since = since.checked_sub(2 * u64::from(self.delay_slots))?;
        let since = since.checked_sub(u64::from(self.schedule.slot_of(position)))?;
        Some(self.epoch_base + (since / u64::from(self.schedule.slots())) as u32)
    }
}
