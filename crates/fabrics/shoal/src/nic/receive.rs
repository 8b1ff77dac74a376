//! What a node does with a frame (§3.3.1, §3.3.2): use the feedback, then keep, relay or ignore the
//! cell.

use crate::cell::{Cell, Frame};

use super::{Bank, DIRECT, NONE, Now};

impl Bank {
    /// `frame.to` acts on a frame that left `delay` slots ago. Gives the cell if it is for that
    /// node.
    #[inline]
    pub(crate) fn receive(&mut self, frame: Frame, now: Now) -> Option<Cell> {
        let (node, from) = (u32::from(frame.to), u32::from(frame.from));
        let back = self.schedule.position(node, from);
        self.use_feedback(back, node, u32::from(frame.feedback), now);
        let cell = frame.cell;
        if cell.is_empty() {
            return None;
        }
        let first_hop = cell.source() == from;
        if cell.destination() == node {
            if first_hop {
                self.note_received(back, node, DIRECT);
            }
            return Some(cell);
        }
        debug_assert!(first_hop, "a second detour of {cell:?} at node {node} (§3.3.1)");
        let onward = self.schedule.position(node, cell.destination());
        self.note_received(back, node, (onward * self.classes + cell.class()) as u16);
        self.enqueue(onward, cell.class(), node, cell);
        self.assert_bound(onward, node, cell.destination());
        None
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
        let epoch = self.epoch_reported(position, now);
        let entry = self.sent_entry(position, node, epoch);
        let slot = std::mem::replace(entry, NONE);
        if slot == NONE {
            return;
        }
        // T is the first visit to the peer from now on.
        let visit = now.epoch + u32::from(now.phase > self.schedule.slot_of(position));
        let due = visit + feedback;
        *self.subflows.get_mut(position, node, usize::from(slot)) = due;
        let flow = &mut self.own[node as usize].flows[usize::from(slot)];
        flow.outstanding -= 1;
        flow.drained = flow.drained.max(due);
    }

    /// The epoch in which this node sent, in `position`, the cell on which feedback arrives now:
    /// the last that could reach the peer before it answered (the delays are known).
    #[inline]
    fn epoch_reported(&self, position: u32, now: Now) -> u32 {
        if self.depth == 1 {
            return 0;
        }
        let sent = now.slot.wrapping_sub(2 * u64::from(self.delay_slots));
        let phase = u64::from(self.schedule.slot_of(position));
        if now.slot < 2 * u64::from(self.delay_slots) + phase {
            return u32::MAX;
        }
        ((sent - phase) / u64::from(self.schedule.slots())) as u32
    }
}
