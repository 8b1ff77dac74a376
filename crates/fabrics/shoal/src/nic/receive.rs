//! What a node does with a frame (§3.3.1, §3.3.2): use the feedback, then keep, relay or ignore the
//! cell.

use kernel::select;

use crate::cell::{Cell, Frame};
use crate::mode::Mode;

use super::{Bank, CLASS_SHIFT, DIRECT, NONE, Now};

impl Bank {
    /// `frame.to` hears a frame that left `delay` slots ago, and uses its feedback. Gives the
    /// position in which it will answer, if there is a cell of use in it.
    #[inline]
    pub(crate) fn hear<M: Mode>(&mut self, frame: &Frame, now: Now) -> Option<u32> {
        let node = u32::from(frame.to);
        let back = self.position::<M>(node, u32::from(frame.from));
        if M::LOSSY {
            if self.is_down(node, u32::from(frame.from)) {
                // The other side has not noticed yet; it keeps what it sent and will take it back.
                return None;
            }
            let garbled_notice = Frame::GARBLED | Frame::NOTICE;
            // The notice's own checksum shows what the cell's does not.
            let is_corrupt =
                frame.flags & Frame::CORRUPT != 0 || frame.flags & garbled_notice == garbled_notice;
            if is_corrupt || frame.flags & Frame::DROPPED != 0 {
                self.send_again(back, node, now);
            } else {
                self.use_feedback::<M>(back, node, u32::from(frame.feedback), now);
            }
            if is_corrupt {
                // S84: a corrupted cell is discarded and its sender told; its last-cell-dropped
                // may have been set, so the last cell to it goes out again (Appendix D).
                self.tell_dropped(back, node);
                return None;
            }
            if frame.flags & Frame::GARBLED != 0 && !frame.cell.is_empty() {
                self.discard();
                self.note_received::<M>(back, node, DIRECT);
                return None;
            }
        } else {
            self.use_feedback::<M>(back, node, u32::from(frame.feedback), now);
        }
        Some(back)
    }

    /// `frame.to` keeps the cell of a frame for itself; it answers in `back`.
    #[inline]
    pub(crate) fn keep<M: Mode>(&mut self, frame: &Frame, back: u32) {
        if frame.cell.source() == u32::from(frame.from) {
            self.note_received::<M>(back, u32::from(frame.to), DIRECT);
        }
    }

    /// `frame.to` queues the cell of a frame for its next hop; it answers in `back`. False: it does not.
    #[inline]
    pub(crate) fn relay<M: Mode>(&mut self, frame: &Frame, back: u32) -> bool {
        let (node, cell) = (u32::from(frame.to), frame.cell);
        debug_assert_eq!(
            cell.source(),
            u32::from(frame.from),
            "a second detour of {cell:?} at node {node} (§3.3.1)"
        );
        if M::LOSSY && !self.schedule.contains(cell.destination()) {
            self.discard();
            self.note_received::<M>(back, node, DIRECT);
            return false;
        }
        let onward = self.position::<M>(node, cell.destination());
        if M::LOSSY && !self.accepts::<M>(onward, back, node, cell) {
            return false;
        }
        self.note_received::<M>(back, node, (cell.class() << CLASS_SHIFT | onward) as u16);
        let length = self.enqueue::<M>(onward, cell.class(), node, frame.cargo()) as usize;
        let last = self.lengths.len() - 1;
        self.lengths[length.min(last)] += 1;
        let relayed = &mut self.relayed[node as usize];
        *relayed += 1;
        self.relayed_peak = self.relayed_peak.max(*relayed);
        self.assert_bound(onward, node, cell.destination());
        true
    }

    /// Whether `node` can relay a cell: it reaches the destination and has room. If not, the cell
    /// is gone, or its sender will be told.
    fn accepts<M: Mode>(&mut self, onward: u32, back: u32, node: u32, cell: Cell) -> bool {
        if self.is_down(node, cell.destination()) {
            self.discard();
            self.note_received::<M>(back, node, DIRECT);
            return false;
        }
        let link = &self.links[self.link::<M>(onward, cell.class(), node)];
        let limit = self.mechanisms.queue_limit;
        // The node's own cells do not count: they leave a queue only as far as others have room.
        if link.queued >= limit && self.arena.relayed(link, node) >= limit {
            // S83: a tail drop is told to the sender (Appendix C).
            self.tell_dropped(back, node);
            return false;
        }
        true
    }

    /// Records which queue the last cell from a peer joined (§4.2, "last cell received"); the
    /// report is due in `back`.
    #[inline]
    fn note_received<M: Mode>(&mut self, back: u32, node: u32, queue: u16) {
        let index = self.link::<M>(back, 0, node);
        self.links[index].last_received = queue;
        self.set_busy(back, node);
    }

    /// Applies feedback to the subflow whose cell it reports on. If there is none, it goes to a
    /// place that no flow has: a branch would be mispredicted every other time.
    #[inline]
    fn use_feedback<M: Mode>(&mut self, position: u32, node: u32, feedback: u32, now: Now) {
        let Some(epoch) = self.epoch_reported::<M>(position, now) else { return };
        let slot = std::mem::replace(self.sent_entry::<M>(position, node, epoch), NONE);
        let place = self.flows.place(node, usize::from(slot));
        let place = select(slot == NONE, self.flows.places.unused(), place);
        // T is the first visit to the peer from now on.
        let visit = now.epoch + u32::from(position < now.position);
        let due = visit + feedback;
        self.subflows.set(self.subflows.index(position, place), due);
        let flow = self.flows.get_mut(place);
        debug_assert!(slot == NONE || flow.outstanding > 0, "node {node} knows of no such cell");
        flow.outstanding = flow.outstanding.wrapping_sub(1);
        flow.drained = flow.drained.max(due);
    }

    /// The epoch in which this node sent, in `position`, the cell on which a frame that arrives now
    /// reports: the last that could reach the peer before it answered. The delays are known.
    #[inline]
    pub(super) fn epoch_reported<M: Mode>(&self, position: u32, now: Now) -> Option<u32> {
        if !M::GENERAL || self.depth == 1 && self.loss.is_none() {
            return Some(0);
        }
        let since = now.slot - self.schedule.origin().get();
        let since = since.checked_sub(2 * u64::from(self.delay_slots))?;
        let since = since.checked_sub(u64::from(self.schedule.slot_of(position)))?;
        Some(self.epoch_after(since / u64::from(self.schedule.slots())))
    }
}
