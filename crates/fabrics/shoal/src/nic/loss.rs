//! What a NIC does when cells are lost: tail drops (Appendix C), corruption (Appendix D) and peers
//! that fall silent (§3.5).
//!
//! Kept apart from the loss-free path: a bank has this state only where the scenario can lose cells.

use kernel::Bitmap;

use crate::cell::{Cargo, Cell, Frame};
use crate::mode::Lossy;

use super::reach::Reach;
use super::subflows::READY;
use super::{Bank, Link, NONE, Now};

/// The last cell sent in a position, kept until it is known to have arrived (Appendix D).
#[derive(Clone, Copy, Debug)]
struct Sent {
    cell: Cell,
    payload: u32,
    epoch: u32,
}

impl Sent {
    const NOTHING: Sent = Sent { cell: Cell::EMPTY, payload: 0, epoch: u32::MAX };
}

/// Bytes of a [`Sent`].
pub(super) const BYTES_PER_SENT: usize = size_of::<Sent>();

/// State of a bank whose cells can be lost.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// `[(position * nodes + node) * depth + epoch % depth]`.
    sent: Vec<Sent>,
    /// Whether the next cell to the peer of a position says `last-cell-dropped`.
    dropped: Bitmap,
    /// Who reaches whom.
    pub(super) reach: Reach,
    /// Until this slot no node sends payload.
    pub(super) quiet_until: u64,
    /// Cells dropped or discarded so far.
    pub(super) drops: u64,
    /// Cells sent again by the link layer so far.
    pub(super) resent: u64,
    /// Those of them that are their node's own, since they were last asked for.
    pub(crate) resent_own: Vec<Cargo>,
}

impl Loss {
    pub(super) fn new(positions: u32, own: u32, depth: u32, reach: Reach) -> Self {
        let pairs = positions as usize * own as usize;
        Self {
            sent: vec![Sent::NOTHING; pairs * depth as usize],
            dropped: Bitmap::new(pairs),
            reach,
            quiet_until: 0,
            drops: 0,
            resent: 0,
            resent_own: Vec::new(),
        }
    }

    /// Counts epochs from one that is so many later.
    pub(super) fn forget_epochs(&mut self, epochs: u32) {
        for sent in &mut self.sent {
            // Those before are not asked for any more.
            sent.epoch = sent.epoch.checked_sub(epochs).unwrap_or(u32::MAX);
        }
    }

    /// The same for a new schedule: what was counted stays, and how often nodes have come back.
    pub(super) fn begin_anew(self, positions: u32, depth: u32, payload: usize) -> Self {
        let Self { drops, resent, reach, .. } = self;
        let reach = reach.begin_anew(payload);
        Self { drops, resent, ..Self::new(positions, reach.own(), depth, reach) }
    }
}

pub(super) const HAS_LOSS: &str = "the lossy path runs only on a bank with loss state";

impl Bank {
    pub(super) fn pair(&self, position: u32, node: u32) -> usize {
        position as usize * self.own as usize + self.own(node)
    }

    pub(super) fn loss(&self) -> &Loss {
        self.loss.as_deref().expect(HAS_LOSS)
    }

    pub(super) fn loss_mut(&mut self) -> &mut Loss {
        self.loss.as_deref_mut().expect(HAS_LOSS)
    }

    /// Keeps a copy of a cell that leaves. Gives the flags of its frame, and the copy before it.
    pub(super) fn note_sent(
        &mut self,
        position: u32,
        node: u32,
        cargo: Cargo,
        now: Now,
    ) -> (u16, Cargo) {
        let pair = self.pair(position, node);
        let at = pair * self.depth as usize + (now.epoch % self.depth) as usize;
        let loss = self.loss_mut();
        let Cargo { cell, payload } = cargo;
        let sent = Sent { cell, payload, epoch: now.epoch };
        let before = std::mem::replace(&mut loss.sent[at], sent);
        let flags = if loss.dropped.replace(pair, false) { Frame::DROPPED } else { 0 };
        (flags, Cargo { cell: before.cell, payload: before.payload })
    }

    /// The peer of `position` did not take, or may not have taken, what it reports on now: send
    /// that again at the next opportunity (Appendices C and D). The subflow goes on waiting: its
    /// feedback will come for the second copy.
    pub(super) fn send_again(&mut self, position: u32, node: u32, now: Now) {
        let Some(peer) = self.schedule.peer(node, position) else { return };
        if self.is_down(node, peer) {
            return;
        }
        let Some(epoch) = self.epoch_reported::<Lossy>(position, now) else { return };
        *self.sent_entry::<Lossy>(position, node, epoch) = NONE;
        let at = self.pair(position, node) * self.depth as usize + (epoch % self.depth) as usize;
        let sent = std::mem::replace(&mut self.loss_mut().sent[at], Sent::NOTHING);
        let Sent { cell, payload, .. } = sent;
        if sent.epoch != epoch {
            return;
        }
        if cell.is_empty() {
            return self.tell_again(node, peer, payload);
        }
        if !self.is_known(node, cell) {
            return;
        }
        let loss = self.loss_mut();
        loss.resent += 1;
        if cell.source() == node {
            loss.resent_own.push(Cargo { cell, payload });
        }
        let (class, cargo) = (cell.class(), Cargo { cell, payload });
        let always_has_room = self.mechanisms.queue_limit == u16::MAX || peer == cell.destination();
        if always_has_room {
            self.enqueue_front(position, class, node, cargo);
        } else {
            // The peer may have had no room for it. It does not hold up what is for the peer itself and
            // always finds room: else queues that are full could wait for each other in a circle, for good.
            self.enqueue::<Lossy>(position, class, node, cargo);
        }
    }

    /// Whether a cell is another node's or of a flow that this node still has.
    fn is_known(&self, node: u32, cell: Cell) -> bool {
        cell.source() != node
            || self.flow_of[self.flow_index(node, cell.destination(), cell.class())] != NONE
    }

    /// Tells the peer of `position`, in the next cell to it, that its last cell was dropped.
    pub(super) fn tell_dropped(&mut self, position: u32, node: u32) {
        let pair = self.pair(position, node);
        let loss = self.loss_mut();
        loss.dropped.set(pair);
        loss.drops += 1;
        self.set_busy(position, node);
    }

    /// Whether something other than a queue makes a node visit the peer of `position`, to which it has just
    /// sent a frame.
    pub(super) fn owes(&self, position: u32, sent: Frame) -> bool {
        let node = u32::from(sent.from);
        self.loss().dropped.get(self.pair(position, node)) || self.tells(node, u32::from(sent.to))
    }

    /// Cells of nodes here that are sent again, since this was last called.
    pub(crate) fn take_resent(&mut self) -> Vec<Cargo> {
        std::mem::take(&mut self.loss_mut().resent_own)
    }

    /// Counts a cell discarded for good.
    pub(super) fn discard(&mut self) {
        self.loss_mut().drops += 1;
    }

    /// Cells dropped and cells sent again so far.
    pub(crate) fn loss_counts(&self) -> (u64, u64) {
        self.loss.as_ref().map_or((0, 0), |loss| (loss.drops, loss.resent))
    }

    /// Whether every cell and every report on one has arrived, except on empty cells.
    pub(crate) fn is_drained(&self) -> bool {
        self.backlog.is_empty() && self.draining.is_empty() && self.queued_total() == 0
    }

    /// Forgets what is still to be reported; no flow waits for it.
    pub(crate) fn forget_reports(&mut self) {
        if self.busy_count == 0 {
            return;
        }
        for link in &mut self.links {
            link.last_received = NONE;
        }
        self.busy = Bitmap::new(self.busy.len());
        self.busy_count = 0;
        let pairs = self.loss().dropped.len();
        self.loss_mut().dropped = Bitmap::new(pairs);
    }

    /// `node` gives up on `peer` (§3.5): it stops using the pair, tells the others, discards what it held for
    /// the peer, and takes back its own cells that may not have arrived. Gives those.
    pub(crate) fn declare_down(&mut self, node: u32, peer: u32, now: Now) -> Vec<Cargo> {
        let position = self.schedule.position(node, peer);
        let pair = self.pair(position, node);
        self.loss_mut().dropped.clear(pair);
        let mut own = self.take_unreported(position, node, now);
        own.extend(self.empty_queues(position, node));
        self.reset_subflows(position, node);
        self.clear_busy(position, node);
        self.part(node, peer, now.slot);
        own
    }

    /// The node's own cells, sent in `position`, on which no feedback has come; the oldest first.
    fn take_unreported(&mut self, position: u32, node: u32, now: Now) -> Vec<Cargo> {
        let first = self.pair(position, node) * self.depth as usize;
        let mut cells = Vec::new();
        for epoch in now.epoch + 1..=now.epoch + self.depth {
            let entry = std::mem::replace(self.sent_entry::<Lossy>(position, node, epoch), NONE);
            let at = first + (epoch % self.depth) as usize;
            let sent = self.loss().sent[at];
            // A relayed cell sent since then has taken the copy's place: the transport recovers.
            if entry != NONE && !sent.cell.is_empty() && sent.cell.source() == node {
                cells.push(Cargo { cell: sent.cell, payload: sent.payload });
                self.loss_mut().sent[at] = Sent::NOTHING;
            }
        }
        cells
    }

    /// Empties the queues of `node` for the peer of `position`. Gives the node's own cells.
    pub(super) fn empty_queues(&mut self, position: u32, node: u32) -> Vec<Cargo> {
        let mut own = Vec::new();
        for class in 0..self.classes {
            let index = self.link::<Lossy>(position, class, node);
            while self.links[index].queued > 0 {
                let cargo = self.arena.pop(&mut self.links[index]);
                self.queued[node as usize] -= 1;
                if cargo.cell.source() == node {
                    own.push(cargo);
                } else {
                    self.relayed[node as usize] -= 1;
                    self.discard();
                }
            }
            self.links[index] = Link::EMPTY;
        }
        own
    }

    /// Sets all subflows by way of the peer of `position` back to idle.
    pub(super) fn reset_subflows(&mut self, position: u32, node: u32) {
        for slot in 0..self.flows.of(node).len() {
            let place = self.flows.place(node, slot);
            let index = self.subflows.index(position, place);
            if self.subflows.get(index) >= READY {
                self.flows.get_mut(place).outstanding -= 1;
            }
            self.subflows.set(index, 0);
        }
    }

    /// A node dies: all that it held is gone.
    pub(crate) fn kill(&mut self, node: u32, now: Now) {
        for position in 0..self.schedule.positions() {
            if self.schedule.peer(node, position).is_none() {
                continue;
            }
            let lost = self.empty_queues(position, node).len()
                + self.take_unreported(position, node, now).len();
            let pair = self.pair(position, node);
            let loss = self.loss_mut();
            loss.drops += lost as u64;
            loss.dropped.clear(pair);
            self.reset_subflows(position, node);
            self.clear_busy(position, node);
        }
        self.forget_reach(node, now.slot);
        for slot in 0..self.flows.of(node).len() {
            self.abandon_slot(node, slot);
        }
    }

    /// A node has no more cells to send in a flow, whatever it was told.
    pub(crate) fn abandon(&mut self, node: u32, destination: u32, class: u32) {
        let slot = self.flow_of[self.flow_index(node, destination, class)];
        if slot != NONE {
            self.abandon_slot(node, usize::from(slot));
        }
    }
}
