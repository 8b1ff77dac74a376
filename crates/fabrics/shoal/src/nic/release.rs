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
    /// into the queue where the ready queue is off or has nothing to wait for. Where the queue is
    /// empty too, the cell that would pass through it is given back at once, with its flow's slot.
    #[inline]
    pub(super) fn release<const LOSSY: bool>(
        &mut self,
        position: u32,
        node: u32,
        peer: u32,
        now: Now,
        source: &mut impl CellSource,
    ) -> Option<(Cell, u16)> {
        let mut express = None;
        let first = self.link(position, 0, node);
        let count = self.own[node as usize].active.len();
        // Start at another flow each epoch, so that none is always first.
        let mut at = if count == 1 { 0 } else { now.epoch as usize % count };
        for _ in 0..count {
            // A flow whose last cell goes leaves the list; the last one takes its place.
            let active = &self.own[node as usize].active;
            if at >= active.len() {
                at = 0;
            }
            let Some(&slot) = active.get(at) else { break };
            let slot = usize::from(slot);
            at += 1;
            let due = self.subflows.row(position, node)[slot];
            if due >= READY {
                continue;
            }
            let flow = &self.own[node as usize].flows[slot];
            let (class, destination) = (u32::from(flow.class), u32::from(flow.destination));
            let index = first + class as usize * self.nodes as usize;
            let link = &self.links[index];
            // S61: Eq. 2. A cell on its way out counts no more.
            let local = link.queued_count() + link.ready_count();
            if due > now.epoch + local {
                continue;
            }
            if now.slot < flow.mature && !self.age_allows(first, class, flow, now) {
                continue;
            }
            // S93: not by way of a node that cannot reach the destination.
            if LOSSY && peer != destination && self.is_blocked(node, peer, destination, now) {
                continue;
            }
            if self.may_pass(index) {
                express = Some((self.take_cell(position, node, slot, now, source), slot as u16));
                self.own[node as usize].flows[slot].outstanding += 1;
                // Until it has left, others find a local cell here.
                self.links[index].ready = Link::LOCAL;
            } else {
                self.release_one(position, index, node, slot, now, source);
            }
        }
        express
    }

    /// Whether a cell released into this queue is the next to leave it: nothing else is there.
    #[inline]
    fn may_pass(&self, index: usize) -> bool {
        let link = &self.links[index];
        self.classes == 1 && self.mechanisms.ready_queue && link.ready == 0 && link.queued == 0
    }

    /// The age rule: a young flow uses short queues only, `len(Q_ij) ≤ 2^age` (S66).
    #[inline]
    fn age_allows(&self, first: usize, class: u32, flow: &Outgoing, now: Now) -> bool {
        let mut ahead = self.links[first].queued_count();
        for class in 1..=class as usize {
            ahead += self.links[first + class * self.nodes as usize].queued_count();
        }
        // The first is allowed at any age; asked first, it saves the division.
        ahead <= 1 || ahead <= 1 << ((now.slot - flow.started) / u64::from(self.schedule.slots()))
    }

    #[inline]
    fn release_one(
        &mut self,
        position: u32,
        index: usize,
        node: u32,
        slot: usize,
        now: Now,
        source: &mut impl CellSource,
    ) {
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
            self.subflows.make_ready(position, node, slot, own.ticket & TICKET_MASK);
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
        let class = u32::from(self.own[node as usize].flows[slot].class);
        let cell = self.take_cell(position, node, slot, now, source);
        self.enqueue(position, class, node, cell);
    }

    /// Takes the next cell of a flow, on its way by the peer of `position`.
    #[inline]
    fn take_cell(
        &mut self,
        position: u32,
        node: u32,
        slot: usize,
        now: Now,
        source: &mut impl CellSource,
    ) -> Cell {
        *self.subflows.get_mut(position, node, slot) = SENT;
        let flow = &mut self.own[node as usize].flows[slot];
        let cell = source.next_cell(flow.tag, now.slot);
        flow.unsent -= 1;
        if flow.unsent == 0 {
            self.run_dry(node, slot);
        }
        cell
    }

    /// Moves the oldest ready flow's next cell into the queue if no local cell is there: at most
    /// one local cell in `Q_ij` (S65, Eq. 5).
    ///
    /// An id entered the ready queue because of what was ahead of it. If that went away otherwise (a
    /// flow ran dry), Eq. 2 does not hold yet, and the id lets younger ones pass (S63).
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
            let latest = now.epoch + self.links[index].queued_count();
            let Some(slot) = self.oldest_ready(position, class, node, latest) else { return };
            self.links[index].ready -= 1;
            let own = &mut self.own[node as usize];
            if own.flows[slot].unsent > 0 {
                self.links[index].ready |= Link::LOCAL;
                self.bind(position, node, slot, now, source);
            } else {
                // The flow ran dry while its id waited.
                own.flows[slot].outstanding -= 1;
                let due = self.subflows.due(position, node)[slot];
                *self.subflows.get_mut(position, node, slot) = due;
            }
        }
    }

    /// The flow whose id has waited longest of those that wait for no later epoch than `latest`,
    /// or have run dry.
    #[inline]
    fn oldest_ready(&self, position: u32, class: u32, node: u32, latest: u32) -> Option<usize> {
        let own = &self.own[node as usize];
        let row = &self.subflows.row(position, node)[..own.flows.len()];
        let due = &self.subflows.due(position, node)[..own.flows.len()];
        let newest = own.ticket & TICKET_MASK;
        let mut oldest = (0, None);
        for (slot, (&value, &due)) in row.iter().zip(due).enumerate() {
            if value < READY || value == SENT {
                continue;
            }
            let flow = &own.flows[slot];
            let other = self.classes > 1 && u32::from(flow.class) != class;
            if other || (due > latest && flow.unsent > 0) {
                continue;
            }
            let age = newest.wrapping_sub(value & TICKET_MASK) & TICKET_MASK;
            if age > oldest.0 {
                oldest = (age, Some(slot));
            }
        }
        oldest.1
    }
}
