//! When the next cell of a subflow may go: Eq. 2, the ready queue and the age rule (§3.3.2, §3.3.3).
//!
//! What a subflow's number means is told in [`super::subflows`].

use crate::cell::Cell;

use super::subflows::{READY, SENT, TICKET_MASK};
use super::{Bank, Link, Now, Outgoing};

/// Makes the cells that flows release.
pub(crate) trait CellSource {
    /// The next cell of the flow with this tag, from `node`, taken in this slot.
    fn next_cell(&mut self, tag: u32, slot: u64) -> Cell;
}

impl Bank {
    /// Releases what Eq. 2 allows for the peer of `position`: into the ready queue, or straight
    /// into the queue where the ready queue is off or has nothing to wait for.
    #[inline]
    pub(super) fn release<const LOSSY: bool>(
        &mut self,
        position: u32,
        node: u32,
        peer: u32,
        now: Now,
        source: &mut impl CellSource,
    ) {
        let count = self.own[node as usize].active.len();
        // Start at another flow each epoch, so that none is always first.
        let mut at = if count == 1 { 0 } else { now.epoch as usize % count };
        for _ in 0..count {
            // A flow whose last cell goes leaves the list; the last one takes its place.
            let active = &self.own[node as usize].active;
            if at >= active.len() {
                at = 0;
            }
            let Some(&slot) = active.get(at) else { return };
            let slot = usize::from(slot);
            at += 1;
            let due = self.subflows.row(position, node)[slot];
            if due >= READY {
                continue;
            }
            let flow = self.own[node as usize].flows[slot];
            let (class, destination) = (u32::from(flow.class), u32::from(flow.destination));
            let link = &self.links[self.link(position, class, node)];
            let local = link.queued_count() + link.ready_count();
            // S61: Eq. 2.
            if due > now.epoch + local || !self.age_allows(position, class, node, &flow, now) {
                continue;
            }
            // S93: not by way of a node that cannot reach the destination.
            if LOSSY && peer != destination && self.is_blocked(node, peer, destination, now) {
                continue;
            }
            self.release_one(position, class, node, slot, now, source);
        }
    }

    /// The age rule: a young flow uses short queues only, `len(Q_ij) ≤ 2^age` (S66).
    #[inline]
    fn age_allows(&self, position: u32, class: u32, node: u32, flow: &Outgoing, now: Now) -> bool {
        if now.slot >= flow.mature {
            return true;
        }
        let age = (now.slot - flow.started) / u64::from(self.schedule.slots());
        let ahead: u32 = (0..=class)
            .map(|class| self.links[self.link(position, class, node)].queued_count())
            .sum();
        ahead <= 1 << age
    }

    #[inline]
    fn release_one(
        &mut self,
        position: u32,
        class: u32,
        node: u32,
        slot: usize,
        now: Now,
        source: &mut impl CellSource,
    ) {
        let index = self.link(position, class, node);
        let own = &mut self.own[node as usize];
        own.flows[slot].outstanding += 1;
        let link = &mut self.links[index];
        if !self.mechanisms.ready_queue {
            self.bind(position, node, slot, now, source);
        } else if link.ready == 0 {
            // Nothing of this node waits: the id would leave the ready queue at once.
            link.ready = Link::LOCAL;
            self.bind(position, node, slot, now, source);
        } else {
            // S64: the flow id waits, not a cell.
            link.ready += 1;
            *self.subflows.get_mut(position, node, slot) = READY | own.ticket & TICKET_MASK;
            own.ticket = own.ticket.wrapping_add(1);
            // The ticket that would read as SENT is skipped.
            if READY | own.ticket & TICKET_MASK == SENT {
                own.ticket = own.ticket.wrapping_add(1);
            }
            self.set_busy(position, node);
        }
    }

    /// Takes the next cell of a flow into the queue for the peer of `position`.
    #[inline]
    fn bind(
        &mut self,
        position: u32,
        node: u32,
        slot: usize,
        now: Now,
        source: &mut impl CellSource,
    ) {
        *self.subflows.get_mut(position, node, slot) = SENT;
        let flow = &self.own[node as usize].flows[slot];
        let (tag, class) = (flow.tag, u32::from(flow.class));
        let cell = source.next_cell(tag, now.slot);
        self.take_unsent(node, slot);
        self.enqueue(position, class, node, cell);
    }

    /// Moves the oldest ready flow's next cell into the queue if no local cell is there: at most
    /// one local cell in `Q_ij` (S65, Eq. 5).
    #[inline]
    pub(super) fn admit(
        &mut self,
        position: u32,
        class: u32,
        node: u32,
        now: Now,
        source: &mut impl CellSource,
    ) {
        let index = self.link(position, class, node);
        while self.links[index].ready_count() > 0 && !self.links[index].holds_local() {
            let slot = self.oldest_ready(position, class, node);
            self.links[index].ready -= 1;
            let own = &mut self.own[node as usize];
            if own.flows[slot].unsent > 0 {
                self.links[index].ready |= Link::LOCAL;
                self.bind(position, node, slot, now, source);
            } else {
                // The flow ran dry while its id waited.
                own.flows[slot].outstanding -= 1;
                *self.subflows.get_mut(position, node, slot) = 0;
            }
        }
    }

    /// The flow whose id has waited longest; there is one.
    #[inline]
    fn oldest_ready(&self, position: u32, class: u32, node: u32) -> usize {
        let own = &self.own[node as usize];
        let row = &self.subflows.row(position, node)[..own.flows.len()];
        let newest = own.ticket & TICKET_MASK;
        let mut oldest = (0, 0);
        for (slot, &value) in row.iter().enumerate() {
            let waits = value >= READY && value != SENT;
            if !waits || (self.classes > 1 && u32::from(own.flows[slot].class) != class) {
                continue;
            }
            let age = newest.wrapping_sub(value & TICKET_MASK) & TICKET_MASK;
            if age > oldest.0 {
                oldest = (age, slot);
            }
        }
        debug_assert!(oldest.0 > 0, "node {node}, position {position}: no ready flow id");
        oldest.1
    }
}
