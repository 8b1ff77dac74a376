//! What nodes send when the schedule connects them to their peers (§3.3.1): the head of the queue, or
//! an empty cell; in its header, feedback on the last cell received from that peer.
//!
//! All meetings of a position go through each stage together. Nodes act only on what they know, so the
//! order makes no difference to them; the processor is faster, as it does the same work over and over.

use kernel::prefetch;

use crate::cell::Frame;
use crate::config::Admission;
use crate::mode::{Lossy, Mode};

use super::meeting::{Meeting, Meetings};
use super::release::CellSource;
use super::warm::AHEAD;
use super::{Bank, CLASS_SHIFT, DIRECT, Link, NONE, Now};

impl Bank {
    /// Lets every node that may have something to say meet its peer of `position`.
    pub(crate) fn meet<M: Mode>(
        &mut self,
        position: u32,
        now: Now,
        source: &mut impl CellSource,
        meetings: &mut Meetings,
    ) {
        meetings.clear(position);
        self.convene::<M>(now, meetings);
        if meetings.all.is_empty() {
            return;
        }
        if self.is_dense(meetings.all.len()) {
            self.prefetch_position::<M>(position + 1);
        }
        self.ripen::<M>(now, meetings);
        self.release::<M>(now, source, meetings);
        for class in 0..self.classes::<M>() {
            self.dequeue::<M>(class, now, source, meetings);
        }
        self.own_cells_leave::<M>(now, source, meetings);
        self.report::<M>(meetings);
        self.conclude::<M>(now, source, meetings);
    }

    /// Lists the meetings.
    fn convene<M: Mode>(&self, now: Now, meetings: &mut Meetings) {
        let position = meetings.position;
        let is_whole = !M::LOSSY || self.schedule.is_whole();
        let (shift, senders) = self.schedule.column(position);
        let first = self.link::<M>(position, 0, self.first);
        let words = self.first_word..self.words;
        let busy = &self.busy.words()[position as usize * self.words..][words.clone()];
        let backlog = &self.backlog.words()[words];
        for (word, (&busy, &backlog)) in (self.first_word as u32..).zip(busy.iter().zip(backlog)) {
            let mut bits = busy | backlog;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let node = word * u64::BITS + bit;
                let peer = match is_whole {
                    true => senders.contains(&node).then(|| self.schedule.wrap(node + shift)),
                    false => self.schedule.peer(node, position),
                };
                let Some(peer) = peer else { continue };
                let is_muted = M::LOSSY && self.is_muted(node, peer, now);
                // S91: to a peer that it has given up a node says that alone, and once is enough here.
                if is_muted && self.is_down(node, peer) && !self.tells(node, peer) {
                    continue;
                }
                let link = first + (node - self.first) as usize;
                let index = meetings.all.len() as u16;
                let frame = Frame::empty(node, peer);
                let link = link as u32;
                meetings.all.push(Meeting { frame, link, reports: false, is_muted });
                meetings.backlogged.offer(index, backlog >> bit & 1 != 0 && !is_muted);
            }
        }
    }

    /// Adds the meetings of nodes that have nothing to say, each with a frame that says so.
    pub(crate) fn fill(&self, now: Now, meetings: &mut Meetings) {
        let position = meetings.position;
        for node in self.members() {
            let Some(peer) = self.schedule.peer(node, position) else { continue };
            if meetings.all.iter().any(|meeting| meeting.node() == node) {
                continue;
            }
            let mut frame = Frame::empty(node, peer);
            self.mark(&mut frame);
            let link = self.link::<Lossy>(position, 0, node) as u32;
            let is_muted = self.is_muted(node, peer, now);
            meetings.all.push(Meeting { frame, link, reports: false, is_muted });
        }
    }

    /// The first cells of a class leave, where no more urgent one does (Appendix C).
    fn dequeue<M: Mode>(
        &mut self,
        class: u32,
        now: Now,
        source: &mut impl CellSource,
        meetings: &mut Meetings,
    ) {
        let row = class as usize * self.own as usize;
        let sends =
            |meeting: &Meeting| meeting.frame.cell.is_empty() & !(M::LOSSY && meeting.is_muted);
        meetings.waiting.refill((0..).zip(&meetings.all).map(|(index, meeting)| {
            (index, sends(meeting) & self.links[meeting.link() + row].waits_for_room())
        }));
        for &index in meetings.waiting.kept() {
            let meeting = meetings.all[usize::from(index)];
            self.admit::<M>(meetings.position, meeting, class, now, source);
        }
        meetings.full.refill((0..).zip(&meetings.all).map(|(index, meeting)| {
            (index, sends(meeting) & (self.links[meeting.link() + row].queued > 0))
        }));
        let full = meetings.full.kept();
        for (at, &index) in full.iter().enumerate() {
            if let Some(&ahead) = full.get(at + AHEAD) {
                let link = meetings.all[usize::from(ahead)].link() + row;
                self.arena.prefetch(self.links[link].head);
            }
            let meeting = &mut meetings.all[usize::from(index)];
            let cargo = self.arena.pop(&mut self.links[meeting.link() + row]);
            meeting.frame.load(cargo);
            let node = meeting.node();
            let is_own = cargo.cell.source() == node;
            self.queued[node as usize] -= 1;
            self.relayed[node as usize] -= u32::from(!is_own);
            meetings.own.offer(index, is_own);
        }
    }

    /// Nodes record that cells of their own leave.
    fn own_cells_leave<M: Mode>(
        &mut self,
        now: Now,
        source: &mut impl CellSource,
        meetings: &Meetings,
    ) {
        for local in meetings.express.kept() {
            let meeting = meetings.all[usize::from(local.meeting)];
            self.own_cell_leaves::<M>(meetings.position, meeting, local.slot, now, source);
        }
        let own = meetings.own.kept();
        for (at, &index) in own.iter().enumerate() {
            if let Some(&ahead) = own.get(at + AHEAD) {
                prefetch(&self.flow_of, self.flow_sent(&meetings.all[usize::from(ahead)]));
            }
            let meeting = meetings.all[usize::from(index)];
            let slot = self.flow_of[self.flow_sent(&meeting)];
            self.own_cell_leaves::<M>(meetings.position, meeting, slot, now, source);
        }
    }

    /// Index of the flow to which the cell belongs that a node sends.
    #[inline]
    fn flow_sent(&self, meeting: &Meeting) -> usize {
        let cell = meeting.frame.cell;
        self.flow_index(meeting.node(), cell.destination(), cell.class())
    }

    /// A node's own cell leaves. With [`Admission::Departure`] the next joins the queue now, not at the next visit,
    /// so that relayed cells that arrive until then queue behind it.
    #[inline]
    fn own_cell_leaves<M: Mode>(
        &mut self,
        position: u32,
        meeting: Meeting,
        slot: u16,
        now: Now,
        source: &mut impl CellSource,
    ) {
        debug_assert_ne!(slot, NONE, "{meeting:?} sends for a flow that its node does not have");
        let class = if M::GENERAL { meeting.frame.cell.class() } else { 0 };
        if self.mechanisms.ready_queue {
            let index = meeting.link() + class as usize * self.own as usize;
            let link = &mut self.links[index];
            link.ready &= !Link::LOCAL;
            if link.ready != 0 && self.mechanisms.admission == Admission::Departure {
                self.admit::<M>(position, meeting, class, now, source);
            }
        }
        // §4.2, "last cell sent".
        *self.sent_entry::<M>(position, meeting.node(), now.epoch) = slot;
        let place = self.flows.place(meeting.node(), usize::from(slot));
        source.cell_left(self.flows.get(place).tag, meeting.frame.cargo(), now.slot);
    }

    /// Nodes report on the cells that they have received.
    fn report<M: Mode>(&mut self, meetings: &mut Meetings) {
        meetings.reporting.refill(
            (0..)
                .zip(&meetings.all)
                .map(|(index, meeting)| (index, self.links[meeting.link()].last_received != NONE)),
        );
        let reporting = meetings.reporting.kept();
        for (at, &index) in reporting.iter().enumerate() {
            if let Some(&ahead) = reporting.get(at + AHEAD) {
                let ahead = &meetings.all[usize::from(ahead)];
                let queue = u32::from(self.links[ahead.link()].last_received);
                let (target, class) = (queue & ((1 << CLASS_SHIFT) - 1), queue >> CLASS_SHIFT);
                prefetch(&self.links, self.link::<M>(target, class, ahead.node()));
            }
            let meeting = &mut meetings.all[usize::from(index)];
            let link = &mut self.links[meeting.link()];
            let queue = std::mem::replace(&mut link.last_received, NONE);
            meeting.reports = true;
            if queue != DIRECT {
                let (position, node) = (meetings.position, meeting.node());
                meeting.frame.feedback = self.feedback_on::<M>(position, node, u32::from(queue));
            }
        }
    }

    /// The record of what `node` sent in `position` in an epoch.
    #[inline]
    pub(super) fn sent_entry<M: Mode>(&mut self, position: u32, node: u32, epoch: u32) -> &mut u16 {
        if !M::GENERAL || self.depth == 1 {
            let index = self.link::<M>(position, 0, node);
            return &mut self.links[index].last_sent;
        }
        let row = self.pair(position, node) * self.depth as usize;
        &mut self.sent_ring[row + (epoch % self.depth) as usize]
    }

    /// The frames are made; notes which nodes have nothing more to say.
    fn conclude<M: Mode>(
        &mut self,
        now: Now,
        source: &mut impl CellSource,
        meetings: &mut Meetings,
    ) {
        let (position, classes) = (meetings.position, self.classes::<M>());
        for meeting in &mut meetings.all {
            let node = meeting.node();
            if M::LOSSY {
                let peer = u32::from(meeting.frame.to);
                let copy = match self.tells(node, peer) {
                    true => self.tell(&mut meeting.frame),
                    false => source.copy(meeting.frame.cargo()),
                };
                let (flags, before) = self.note_sent(position, node, copy, now);
                meeting.frame.flags |= flags;
                source.discard(before);
            }
            let has_nothing = (0..classes).all(|class| {
                let link = &self.links[meeting.link() + class as usize * self.own as usize];
                (link.queued == 0) & (link.ready_count() == 0)
            });
            self.mark_busy(
                position,
                node,
                !has_nothing || M::LOSSY && self.owes(position, meeting.frame),
            );
        }
    }
}
