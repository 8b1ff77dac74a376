//! A reliable transport between each pair of nodes, on top of Shoal.
//!
//! Shoal is lossless until something breaks; then a higher layer recovers what was queued in, or
//! for, the part that broke (§3.5). The paper leaves that layer open (§8). This one is our choice:
//! selective repeat over the sequence numbers that cells carry anyway. The receiver acknowledges
//! with datagrams, cells outside the sequence space that take the same way as all others; the
//! sender repeats what stays missing. Congestion is Shoal's business, so there is no window but that
//! of the sequence numbers.
//!
//! The sender's timer follows Shoal's own bound: a cell has left its remote queue by the epoch that
//! the feedback on it named, so what has not arrived a while after that is lost.

use std::collections::BTreeSet;

use crate::reorder::ReorderWindow;

/// Cells reported one by one behind the first missing one: what fits a 56-byte payload beside the
/// sequence numbers (our choice).
const REPORTED: u32 = 384;
/// Arrivals between two acknowledgments of one pair (our choice: 1.6 % of the cells).
const ARRIVALS_PER_ACK: u32 = 64;
/// Epochs after which arrivals are acknowledged however few they are (our choice).
const ACK_DELAY_EPOCHS: u32 = 4;
/// Epochs beyond propagation and Shoal's bound until cells are sent again (our choice); doubled each
/// time in vain.
const PATIENCE_EPOCHS: u32 = 16;
/// Most doublings of the patience (our choice).
const DOUBLINGS_MAX: u32 = 6;
/// Acknowledgments remembered while under way; one that takes longer is as good as lost.
const ACKS_UNDER_WAY: usize = 1 << 16;
/// Cells that may be sent beyond the first unacknowledged one: half the sequence space that is left
/// when one bit of 22 marks datagrams (Fig. 5, §3.5).
pub(crate) const WINDOW: u32 = 1 << 20;

/// An acknowledgment.
#[derive(Clone, Debug)]
struct Ack {
    /// The datagram's own number.
    id: u32,
    /// The pair whose cells it acknowledges, and which life of it.
    pair: u32,
    life: u32,
    /// All before have arrived.
    next: u32,
    /// Of the [`REPORTED`] cells from `next` on, those that have arrived.
    arrived: Vec<u32>,
}

/// One pair's state at both ends.
#[derive(Clone, Debug, Default)]
struct Ends {
    /// Sender: first cell not known to have arrived.
    base: u32,
    /// Sender: cells beyond `base` known to have arrived.
    arrived: BTreeSet<u32>,
    /// Sender: cells sent before the timer was set, if it runs.
    timer: Option<Timer>,
    doublings: u32,
    /// Receiver: arrivals not yet acknowledged, and the epoch of the first.
    arrivals: u32,
    since: u32,
    /// Receiver: an acknowledgment is asked for and has not left yet.
    asked: bool,
    watched: bool,
    /// Which life of the pair this is: its number is used again after it is forgotten.
    life: u32,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    /// First cell that was not yet sent when the timer was set.
    mark: u32,
    /// Epoch in which it runs out.
    deadline: u32,
}

/// What a pair looks like to the transport when it is asked to act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairView {
    /// Next sequence number at the source.
    pub(crate) sequence: u32,
    /// Epoch by which the cells reported on have left their remote queues.
    pub(crate) drained: u32,
    /// Whether cells of an earlier [`Action::Repeat`] still wait.
    pub(crate) is_repeating: bool,
}

/// What the transport wants sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Acknowledge this pair's cells.
    Acknowledge { pair: u32 },
    /// Send these cells of this pair again.
    Repeat { pair: u32, sequences: Vec<u32> },
}

/// The transports of all pairs.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    /// Epochs of propagation from a cell to its acknowledgment.
    round_trip: u32,
    pairs: Vec<Ends>,
    /// Pairs with something unacknowledged at either end.
    watched: Vec<u32>,
    acks: Vec<Option<Ack>>,
    next_ack: u32,
}

impl Transport {
    /// The transports of a rack in which a cell and its acknowledgment, two hops each, take
    /// `round_trip` epochs of propagation.
    pub(crate) fn new(round_trip: u32) -> Self {
        Self { round_trip, pairs: Vec::new(), watched: Vec::new(), acks: Vec::new(), next_ack: 0 }
    }

    /// A pair starts, or starts anew, with this sequence number.
    pub(crate) fn start(&mut self, pair: u32, sequence: u32) {
        let index = pair as usize;
        if self.pairs.len() <= index {
            self.pairs.resize_with(index + 1, Ends::default);
        }
        let Ends { watched, life, .. } = self.pairs[index];
        self.pairs[index] =
            Ends { base: sequence, watched, life: life.wrapping_add(1), ..Ends::default() };
    }

    fn watch(&mut self, pair: u32) {
        let ends = &mut self.pairs[pair as usize];
        if !ends.watched {
            ends.watched = true;
            self.watched.push(pair);
        }
    }

    /// Whether every cell before `sequence` is known to have arrived.
    pub(crate) fn is_settled(&self, pair: u32, sequence: u32) -> bool {
        let ends = &self.pairs[pair as usize];
        ends.base == sequence && ends.arrivals == 0
    }

    /// Cells of the pair that may be sent beyond `sequence` now.
    pub(crate) fn room(&self, pair: u32, sequence: u32) -> u32 {
        WINDOW.saturating_sub(sequence.wrapping_sub(self.pairs[pair as usize].base))
    }

    /// The source took a new cell.
    pub(crate) fn sent(&mut self, pair: u32) {
        self.watch(pair);
    }

    /// A cell reached the destination, new or not.
    pub(crate) fn arrived(&mut self, pair: u32, epoch: u32, duplicate: bool) {
        let ends = &mut self.pairs[pair as usize];
        if ends.arrivals == 0 {
            ends.since = epoch;
        }
        // A second copy means that an acknowledgment was lost or late: answer soon.
        ends.arrivals += if duplicate { ARRIVALS_PER_ACK } else { 1 };
        self.watch(pair);
    }

    /// The destination died, and with it what it was to acknowledge.
    pub(crate) fn receiver_died(&mut self, pair: u32) {
        let ends = &mut self.pairs[pair as usize];
        (ends.arrivals, ends.asked) = (0, false);
    }

    /// The acknowledgment asked for will not leave: ask again when it is due.
    pub(crate) fn not_acknowledged(&mut self, pair: u32) {
        self.pairs[pair as usize].asked = false;
        self.watch(pair);
    }

    /// Writes the acknowledgment of a pair; gives the number of its datagram.
    pub(crate) fn acknowledge(&mut self, pair: u32, window: &ReorderWindow) -> u32 {
        let next = window.next_expected();
        let candidates = (0..REPORTED).map(|ahead| next.wrapping_add(ahead));
        let arrived = candidates.filter(|&sequence| window.holds(sequence)).collect();
        let id = self.next_ack;
        self.next_ack = id.wrapping_add(1);
        let slot = id as usize % ACKS_UNDER_WAY;
        if self.acks.len() <= slot {
            self.acks.resize(slot + 1, None);
        }
        let ends = &mut self.pairs[pair as usize];
        (ends.arrivals, ends.asked) = (0, false);
        self.acks[slot] = Some(Ack { id, pair, life: ends.life, next, arrived });
        id
    }

    /// A datagram reached the sender. Gives the pair it was about.
    pub(crate) fn acknowledged(&mut self, id: u32) -> Option<u32> {
        let ack = self.acks.get_mut(id as usize % ACKS_UNDER_WAY)?.take_if(|ack| ack.id == id)?;
        let ends = &mut self.pairs[ack.pair as usize];
        let ahead = ack.next.wrapping_sub(ends.base);
        if ack.life != ends.life || ahead > i32::MAX as u32 {
            // Of a life of the pair that is over, or older than what is known.
            return None;
        }
        if ahead > 0 {
            ends.base = ack.next;
            ends.doublings = 0;
            ends.timer = None;
            let base = ends.base;
            ends.arrived.retain(|sequence| sequence.wrapping_sub(base) < WINDOW);
        }
        ends.arrived.extend(ack.arrived);
        while ends.arrived.remove(&ends.base) {
            ends.base = ends.base.wrapping_add(1);
        }
        Some(ack.pair)
    }

    /// Lets an epoch pass: runs the timers. `view` tells how a pair stands.
    pub(crate) fn tick(
        &mut self,
        epoch: u32,
        view: impl Fn(u32) -> PairView,
        mut act: impl FnMut(Action),
    ) {
        let patience = PATIENCE_EPOCHS + self.round_trip;
        let mut kept = Vec::with_capacity(self.watched.len());
        for pair in std::mem::take(&mut self.watched) {
            let ends = &mut self.pairs[pair as usize];
            let now = view(pair);
            let is_due = ends.arrivals >= ARRIVALS_PER_ACK
                || ends.arrivals > 0 && epoch >= ends.since + ACK_DELAY_EPOCHS;
            if is_due && !ends.asked {
                ends.asked = true;
                act(Action::Acknowledge { pair });
            }
            if let Some(sequences) = ends.overdue(epoch, now, patience) {
                act(Action::Repeat { pair, sequences });
            }
            ends.watched = ends.base != now.sequence || ends.arrivals > 0;
            if ends.watched {
                kept.push(pair);
            }
        }
        kept.append(&mut self.watched);
        self.watched = kept;
    }

    /// Counts epochs from one that is so many later.
    pub(crate) fn forget_epochs(&mut self, epochs: u32) {
        for ends in &mut self.pairs {
            ends.since = ends.since.saturating_sub(epochs);
            if let Some(timer) = &mut ends.timer {
                timer.deadline = timer.deadline.saturating_sub(epochs);
            }
        }
    }

    /// Epochs after which a timer runs out at the latest.
    pub(crate) fn longest_wait(&self) -> u64 {
        u64::from(PATIENCE_EPOCHS + self.round_trip) << DOUBLINGS_MAX
    }

    /// Whether any timer may still run out.
    pub(crate) fn is_idle(&self) -> bool {
        self.watched.is_empty()
    }
}

impl Ends {
    /// Runs the sender's timer; gives what it takes for lost.
    fn overdue(&mut self, epoch: u32, now: PairView, patience: u32) -> Option<Vec<u32>> {
        if self.base == now.sequence {
            self.timer = None;
            return None;
        }
        let patience = patience << self.doublings;
        let Some(timer) = self.timer else {
            let deadline = epoch.max(now.drained) + patience;
            self.timer = Some(Timer { mark: now.sequence, deadline });
            return None;
        };
        if epoch < timer.deadline || now.is_repeating {
            return None;
        }
        self.timer = None;
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        let unsure = timer.mark.wrapping_sub(self.base).min(REPORTED);
        let candidates = (0..unsure).map(|ahead| self.base.wrapping_add(ahead));
        Some(candidates.filter(|sequence| !self.arrived.contains(sequence)).collect())
    }
}
