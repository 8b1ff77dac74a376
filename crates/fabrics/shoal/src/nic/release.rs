//! When the next cell of a subflow may go: Eq. 2, the ready queue and the age rule (§3.3.2, §3.3.3).
//!
//! [`super::subflows`] says what a subflow's number means.

use crate::cell::Cargo;
use crate::mode::Mode;

use super::meeting::{Local, Meeting, Meetings, Ripe};
use super::subflows::{READY, SENT, TICKET_MASK};
use super::warm::AHEAD;
use super::{Bank, Link, Now};

/// Makes the cells that flows release.
pub(crate) trait CellSource {
    /// The next cell of the flow with this tag, taken in this slot.
    fn next_cell(&mut self, tag: u32, slot: u64) -> Cargo;

    /// A cell of the flow with this tag leaves its source in this slot.
    fn cell_left(&mut self, tag: u32, cargo: Cargo, slot: u64);

    /// A copy of a cell, to be kept until it is known to have arrived.
    fn copy(&mut self, cargo: Cargo) -> Cargo {
        cargo
    }

    /// A cell or its copy is gone.
    fn discard(&mut self, cargo: Cargo) {
        let _ = cargo;
    }
}

impl Bank {
    /// Finds the flows for which Eq. 2 holds as the meetings begin (S61).
    pub(super) fn ripen<M: Mode>(&self, now: Now, meetings: &mut Meetings) {
        let words = self.flows.words();
        meetings.ripe.reset(meetings.backlogged.kept().len() * words);
        let backlogged = meetings.backlogged.kept();
        for (at, &index) in backlogged.iter().enumerate() {
            if let Some(&ahead) = backlogged.get(at + AHEAD) {
                let node = meetings.all[usize::from(ahead)].node();
                self.subflows.prefetch(meetings.position, self.flows.place(node, 0));
            }
            let meeting = &meetings.all[usize::from(index)];
            let row = self.subflows.row(meetings.position, meeting.node(), &self.flows.places);
            for (word, row) in (0..).zip(row.chunks(u64::BITS as usize)) {
                let slots = self.ripe::<M>(meeting, word, row, now);
                let ripe = Ripe { meeting: index, word: word as u16, slots };
                meetings.ripe.offer(ripe, slots != 0);
            }
        }
    }

    /// The flows of a node with a backlog for which Eq. 2 holds: one bit a slot, from `64 * word`.
    /// `row` are their subflows.
    #[inline]
    fn ripe<M: Mode>(&self, meeting: &Meeting, word: usize, row: &[u32], now: Now) -> u64 {
        let active = self.flows.active(meeting.node(), word);
        if M::GENERAL && self.classes > 1 {
            return self.ripe_by_class(row, meeting, word * u64::BITS as usize, now) & active;
        }
        let latest = now.epoch + self.local(meeting.link());
        let mut ripe = 0;
        // A node has a multiple of eight places. Neither READY nor SENT is an epoch that comes.
        for eight in row.rchunks_exact(8) {
            let bit = |index: usize| u64::from(eight[index] <= latest) << index;
            let (low, high) =
                (bit(0) | bit(1) | bit(2) | bit(3), bit(4) | bit(5) | bit(6) | bit(7));
            ripe = ripe << 8 | low | high;
        }
        ripe & active
    }

    /// The same, by the queue of each flow's class (Appendix C).
    fn ripe_by_class(&self, row: &[u32], meeting: &Meeting, first: usize, now: Now) -> u64 {
        let flows = &self.flows.of(meeting.node())[first..];
        let mut ripe = 0;
        for (slot, (&due, flow)) in row.iter().zip(flows).enumerate() {
            let index = meeting.link() + usize::from(flow.class) * self.own as usize;
            ripe |= u64::from(due <= now.epoch + self.local(index)) << slot;
        }
        ripe
    }

    /// Releases what Eq. 2 allows: into the ready queue, or straight into the queue where the ready
    /// queue is off or has nothing to wait for. Where the queue is empty too, the cell that would
    /// pass through it goes out at once.
    pub(super) fn release<M: Mode>(
        &mut self,
        now: Now,
        source: &mut impl CellSource,
        meetings: &mut Meetings,
    ) {
        let Meetings { all, ripe, express, position, .. } = meetings;
        for ripe in ripe.kept() {
            let meeting = &mut all[usize::from(ripe.meeting)];
            let mut slots = ripe.slots;
            let mut at = first_in_turn(slots, now.turn);
            while slots != 0 {
                let rest = slots & u64::MAX << at;
                at = if rest != 0 { rest } else { slots }.trailing_zeros();
                slots &= !(1 << at);
                let slot = usize::from(ripe.word) * u64::BITS as usize + at as usize;
                if let Some(cargo) = self.release_one::<M>(*position, meeting, slot, now, source) {
                    meeting.frame.load(cargo);
                    express.offer(Local { meeting: ripe.meeting, slot: slot as u16 }, true);
                }
            }
        }
    }

    /// Cells and ids in a queue of its node. A cell on its way out counts no more.
    #[inline]
    fn local(&self, index: usize) -> u32 {
        self.links[index].queued_count() + self.links[index].ready_count()
    }

    /// Releases a cell of the flow in `slot`, for which Eq. 2 holds, if nothing else is in the way.
    #[inline]
    fn release_one<M: Mode>(
        &mut self,
        position: u32,
        meeting: &Meeting,
        slot: usize,
        now: Now,
        source: &mut impl CellSource,
    ) -> Option<Cargo> {
        let node = meeting.node();
        let place = self.flows.place(node, slot);
        let flow = self.flows.get(place);
        let class = if M::GENERAL { u32::from(flow.class) } else { 0 };
        if now.slot < flow.mature && !self.age_allows(meeting.link(), class, flow.started, now) {
            return None;
        }
        // S93: not by way of a node that cannot reach the destination.
        let destination = u32::from(flow.destination);
        if M::LOSSY
            && u32::from(meeting.frame.to) != destination
            && self.is_blocked(node, u32::from(meeting.frame.to), destination)
        {
            return None;
        }
        self.flows.get_mut(place).outstanding += 1;
        let index = meeting.link() + class as usize * self.own as usize;
        let link = &mut self.links[index];
        if !self.mechanisms.ready_queue {
            self.bind::<M>(position, node, class, slot, now, source);
        } else if link.ready != 0 {
            self.wait_for_room(position, index, node, slot);
        } else {
            // Nothing of this node waits: the id would leave the ready queue at once. If nothing
            // waits at all, so would the cell; until it has left, others find a local cell here.
            link.ready = Link::LOCAL;
            if link.queued == 0 && (!M::GENERAL || self.classes == 1) {
                return Some(self.take_cell(position, node, slot, now, source));
            }
            self.bind::<M>(position, node, class, slot, now, source);
        }
        None
    }

    /// The age rule: a young flow uses short queues only, `len(Q_ij) ≤ 2^age` (S66).
    #[inline]
    fn age_allows(&self, first: usize, class: u32, started: u64, now: Now) -> bool {
        let mut ahead = self.links[first].queued_count();
        for class in 1..=class as usize {
            ahead += self.links[first + class * self.own as usize].queued_count();
        }
        // The first is allowed at any age; asked first, it saves the division.
        ahead <= 1 || ahead <= 1 << ((now.slot - started) / u64::from(self.schedule.slots()))
    }

    /// S64: the flow id waits, not a cell.
    #[inline]
    fn wait_for_room(&mut self, position: u32, index: usize, node: u32, slot: usize) {
        self.links[index].ready += 1;
        let place = self.flows.place(node, slot);
        let ticket = &mut self.tickets[node as usize];
        let subflow = self.subflows.index(position, place);
        self.subflows.make_ready(subflow, *ticket & TICKET_MASK);
        *ticket = ticket.wrapping_add(1);
        // The ticket that would read as SENT is skipped.
        if READY | *ticket & TICKET_MASK == SENT {
            *ticket = ticket.wrapping_add(1);
        }
        self.set_busy(position, node);
    }

    /// Takes the next cell of a flow into the queue for the peer of a visit.
    #[inline]
    fn bind<M: Mode>(
        &mut self,
        position: u32,
        node: u32,
        class: u32,
        slot: usize,
        now: Now,
        source: &mut impl CellSource,
    ) {
        let cargo = self.take_cell(position, node, slot, now, source);
        self.enqueue::<M>(position, class, node, cargo);
    }

    /// Takes the next cell of a flow, on its way by the peer of a visit.
    #[inline]
    fn take_cell(
        &mut self,
        position: u32,
        node: u32,
        slot: usize,
        now: Now,
        source: &mut impl CellSource,
    ) -> Cargo {
        let place = self.flows.place(node, slot);
        self.subflows.set(self.subflows.index(position, place), SENT);
        let flow = self.flows.get_mut(place);
        let cargo = source.next_cell(flow.tag, now.slot);
        flow.unsent -= 1;
        if flow.unsent == 0 {
            self.run_dry(node, slot);
        }
        cargo
    }

    /// Moves the oldest ready flow's next cell into the queue if no local cell is there: at most
    /// one local cell in `Q_ij` (S65, Eq. 5).
    ///
    /// An id entered the ready queue because of what was ahead of it. If that went away otherwise (a
    /// flow ran dry), Eq. 2 does not hold yet, and the id lets younger ones pass (S63).
    pub(super) fn admit<M: Mode>(
        &mut self,
        position: u32,
        meeting: Meeting,
        class: u32,
        now: Now,
        source: &mut impl CellSource,
    ) {
        let (node, index) = (meeting.node(), meeting.link() + class as usize * self.own as usize);
        while self.links[index].ready_count() > 0 && !self.links[index].holds_local() {
            let latest = now.epoch + self.links[index].queued_count();
            let Some(slot) = self.oldest_ready::<M>(position, node, class, latest) else { return };
            self.links[index].ready -= 1;
            let place = self.flows.place(node, slot);
            let flow = self.flows.get_mut(place);
            if flow.unsent > 0 {
                self.links[index].ready |= Link::LOCAL;
                self.bind::<M>(position, node, class, slot, now, source);
            } else {
                // The flow ran dry while its id waited.
                flow.outstanding -= 1;
                let due = self.subflows.due(position, node, &self.flows.places)[slot];
                self.subflows.set(self.subflows.index(position, place), due);
            }
        }
    }

    /// The flow whose id has waited longest of those that wait for no later epoch than `latest`,
    /// or have run dry.
    fn oldest_ready<M: Mode>(
        &self,
        position: u32,
        node: u32,
        class: u32,
        latest: u32,
    ) -> Option<usize> {
        let places = &self.flows.places;
        let row = self.subflows.row(position, node, places);
        let due = self.subflows.due(position, node, places);
        let newest = self.tickets[node as usize] & TICKET_MASK;
        let mut oldest = (0, None);
        for (slot, &value) in row.iter().enumerate() {
            if value < READY || value == SENT {
                continue;
            }
            let flow = &self.flows.of(node)[slot];
            let other = M::GENERAL && u32::from(flow.class) != class;
            if other || (due[slot] > latest && flow.unsent > 0) {
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

/// The index of one of the set bits: the next with each turn.
#[inline]
fn first_in_turn(mut bits: u64, turn: u32) -> u32 {
    let count = bits.count_ones();
    if count > 1 {
        for _ in 0..turn % count {
            bits &= bits - 1;
        }
    }
    bits.trailing_zeros() % u64::BITS
}
