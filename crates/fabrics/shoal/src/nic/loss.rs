//! What a NIC does when cells are lost: tail drops (Appendix C), corruption (Appendix D) and peers
//! that fall silent (§3.5).
//!
//! Kept apart from the loss-free path: a bank has this state only where the scenario can lose cells.

use std::ops::Range;

use kernel::Bitmap;

use crate::cell::{Cargo, Cell, Frame};
use crate::mode::Lossy;

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

/// The last change in what a node says of its reach to another: when, and which way it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct News(u64);

impl News {
    /// There was no change yet: it reaches the other.
    const NONE: News = News(u64::MAX);

    fn failed(slot: u64) -> Self {
        News(slot << 1 | 1)
    }

    fn recovered(slot: u64) -> Self {
        News(slot << 1)
    }

    fn slot(self) -> u64 {
        self.0 >> 1
    }

    fn says_failed(self) -> bool {
        self != Self::NONE && self.0 & 1 == 1
    }
}

/// Notices that a node is spreading (§3.5 ii).
#[derive(Clone, Copy, Debug, Default)]
struct Spreading {
    /// Its cells carry notices instead of payload until this slot.
    until: u64,
    /// Notices in the burst.
    count: u32,
}

/// State of a bank whose cells can be lost.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// `[(position * nodes + node) * depth + epoch % depth]`.
    sent: Vec<Sent>,
    /// Whether the next cell to the peer of a position says `last-cell-dropped`.
    dropped: Bitmap,
    /// `[position * nodes + node]`: whether a node has declared the peer of a position failed. Of all nodes of
    /// the rack, also of those of other shards, as is what they tell of it: it follows from the plan of faults.
    down: Bitmap,
    /// `[node * nodes + peer]`: the node's last news of its reach to the peer.
    news: Vec<News>,
    spreading: Vec<Spreading>,
    /// Cells dropped or discarded so far.
    pub(super) drops: u64,
    /// Cells sent again by the link layer so far.
    pub(super) resent: u64,
    /// Those of them that are their node's own, since they were last asked for.
    pub(crate) resent_own: Vec<Cargo>,
}

impl Loss {
    pub(super) fn new(positions: u32, (own, nodes): (Range<u32>, u32), depth: u32) -> Self {
        let pairs = positions as usize * own.len();
        Self {
            sent: vec![Sent::NOTHING; pairs * depth as usize],
            dropped: Bitmap::new(pairs),
            down: Bitmap::new(positions as usize * nodes as usize),
            news: vec![News::NONE; nodes as usize * nodes as usize],
            spreading: vec![Spreading::default(); own.end as usize],
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

    /// The same, going on from counts so far.
    pub(super) fn counting(self, (drops, resent): (u64, u64)) -> Self {
        Self { drops, resent, ..self }
    }
}

const HAS_LOSS: &str = "the lossy path runs only on a bank with loss state";

impl Bank {
    pub(super) fn pair(&self, position: u32, node: u32) -> usize {
        position as usize * self.own as usize + self.own(node)
    }

    /// Index of what any node of the rack thinks of the peer of a position.
    #[inline]
    fn told(&self, position: u32, node: u32) -> usize {
        position as usize * self.nodes as usize + node as usize
    }

    fn loss(&self) -> &Loss {
        self.loss.as_deref().expect(HAS_LOSS)
    }

    fn loss_mut(&mut self) -> &mut Loss {
        self.loss.as_deref_mut().expect(HAS_LOSS)
    }

    /// Whether `node` has given up the peer of `position`.
    #[inline]
    pub(crate) fn is_down(&self, position: u32, node: u32) -> bool {
        self.loss().down.get(self.told(position, node))
    }

    /// Whether the cells of `node` carry notices now, instead of payload.
    pub(super) fn is_spreading(&self, node: u32, now: Now) -> bool {
        self.loss().spreading[node as usize].until > now.slot
    }

    /// Lets all nodes send notices, and no payload, until a slot.
    pub(super) fn spread_until(&mut self, until: u64) {
        for spreading in &mut self.loss_mut().spreading {
            spreading.until = spreading.until.max(until);
        }
    }

    fn route(&self, node: u32, peer: u32) -> usize {
        node as usize * self.nodes as usize + peer as usize
    }

    /// Whether `node` has heard that `relay` cannot reach `destination` (§3.5 ii), and not yet that it
    /// can again.
    pub(super) fn is_blocked(&self, node: u32, relay: u32, destination: u32, now: Now) -> bool {
        let news = self.loss().news[self.route(relay, destination)];
        if news == News::NONE {
            return false;
        }
        let is_known = now.slot >= self.heard_at(node, relay, news);
        is_known == news.says_failed()
    }

    /// The slot from which `node` knows the news of `relay`: they reach it in the next cell from there,
    /// or an epoch later by way of others if the two do not meet.
    fn heard_at(&self, node: u32, relay: u32, news: News) -> u64 {
        let (since, delay) = (news.slot(), u64::from(self.delay_slots));
        if self.is_down(self.schedule.position(relay, node), relay) {
            return since + 2 * (u64::from(self.schedule.slots()) + delay);
        }
        self.schedule.next_slot(relay, node, kernel::Slot::new(since + 1)).get() + delay
    }

    /// Since which slot a node has given another up, if it has.
    pub(crate) fn down_since(&self, node: u32, peer: u32) -> Option<u64> {
        let news = self.loss().news[self.route(node, peer)];
        self.is_down(self.schedule.position(node, peer), node).then(|| news.slot())
    }

    /// Since which slot `from` knows of no path to `to`, neither straight nor by way of one other node;
    /// none if it knows one.
    pub(crate) fn pathless_since(&self, from: u32, to: u32, now: Now) -> Option<u64> {
        let present = |node| self.schedule.contains(node);
        if !present(from) || !present(to) {
            return Some(0);
        }
        let mut since = self.down_since(from, to)?;
        for relay in (0..self.nodes).filter(|&relay| relay != from && relay != to) {
            if !present(relay) {
                continue;
            }
            let news = self.loss().news[self.route(relay, to)];
            let heard = news.says_failed().then(|| self.heard_at(from, relay, news));
            let heard = heard.filter(|&slot| slot <= now.slot);
            let gone = match (self.down_since(from, relay), heard) {
                (Some(own), Some(heard)) => own.min(heard),
                (own, heard) => own.or(heard)?,
            };
            since = since.max(gone);
        }
        Some(since)
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
        if self.is_down(position, node) {
            return;
        }
        let Some(epoch) = self.epoch_reported::<Lossy>(position, now) else { return };
        *self.sent_entry::<Lossy>(position, node, epoch) = NONE;
        let at = self.pair(position, node) * self.depth as usize + (epoch % self.depth) as usize;
        let sent = std::mem::replace(&mut self.loss_mut().sent[at], Sent::NOTHING);
        let Sent { cell, payload, .. } = sent;
        if sent.epoch != epoch || cell.is_empty() || !self.is_known(node, cell) {
            return;
        }
        let loss = self.loss_mut();
        loss.resent += 1;
        if cell.source() == node {
            loss.resent_own.push(Cargo { cell, payload });
        }
        let (class, cargo) = (cell.class(), Cargo { cell, payload });
        let always_has_room = self.mechanisms.queue_limit == u16::MAX
            || self.schedule.peer(node, position) == Some(cell.destination());
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
        if self.is_down(position, node) {
            return;
        }
        let pair = self.pair(position, node);
        let loss = self.loss_mut();
        loss.dropped.set(pair);
        loss.drops += 1;
        self.set_busy(position, node);
    }

    /// Whether something other than a queue makes `node` visit the peer of `position`.
    pub(super) fn owes_drop(&self, position: u32, node: u32) -> bool {
        self.loss().dropped.get(self.pair(position, node))
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

    /// `node`, which may be in another shard, gives up on `peer` (§3.5): it stops sending to it, tells the
    /// others, discards what it held for it, and takes back its own cells that may not have arrived. Gives
    /// those.
    pub(crate) fn declare_down(&mut self, node: u32, peer: u32, now: Now) -> Vec<Cargo> {
        let position = self.schedule.position(node, peer);
        let (told, route) = (self.told(position, node), self.route(node, peer));
        let loss = self.loss_mut();
        if loss.down.replace(told, true) {
            return Vec::new();
        }
        loss.news[route] = News::failed(now.slot);
        if !self.members().contains(&node) {
            return Vec::new();
        }
        let pair = self.pair(position, node);
        self.loss_mut().dropped.clear(pair);
        self.spread(node, now);
        let mut own = self.take_unreported(position, node, now);
        own.extend(self.empty_queues(position, node));
        self.reset_subflows(position, node);
        self.clear_busy(position, node);
        own
    }

    /// A node tells all others a piece of news: in the next cell to each, for an epoch, instead of
    /// payload; more than fit a cell take another epoch.
    fn spread(&mut self, node: u32, now: Now) {
        let epoch_slots = u64::from(self.schedule.slots());
        let per_cell = self.notices_per_cell;
        let spreading = &mut self.loss_mut().spreading[node as usize];
        if spreading.until <= now.slot {
            *spreading = Spreading { until: now.slot + epoch_slots, count: 1 };
        } else {
            spreading.count += 1;
            if spreading.count.is_multiple_of(per_cell) {
                spreading.until += epoch_slots;
            }
        }
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

    /// `node`, which may be in another shard, uses the peer again, and tells the others.
    pub(crate) fn declare_up(&mut self, node: u32, peer: u32, now: Now) {
        let told = self.told(self.schedule.position(node, peer), node);
        let route = self.route(node, peer);
        let loss = self.loss_mut();
        loss.down.clear(told);
        loss.news[route] = News::recovered(now.slot);
        if self.members().contains(&node) {
            self.spread(node, now);
        }
    }

    /// A node, which may be in another shard, dies: all that it held is gone. If it comes back it reaches no
    /// other node at first, and says so.
    pub(crate) fn kill(&mut self, node: u32, now: Now) {
        let is_here = self.members().contains(&node);
        for position in 0..self.schedule.positions() {
            let Some(peer) = self.schedule.peer(node, position) else { continue };
            let (told, route) = (self.told(position, node), self.route(node, peer));
            let loss = self.loss_mut();
            loss.down.set(told);
            loss.news[route] = News::failed(now.slot);
            if !is_here {
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
        if !is_here {
            return;
        }
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
