//! A reliable transport between each pair of nodes, on top of Shoal.
//!
//! Shoal is lossless until something breaks; then a higher layer recovers what was queued in, or
//! for, the part that broke (§3.5). The paper leaves that layer open (§8). This one is our choice:
//! selective repeat over the sequence numbers that cells carry anyway. The receiver acknowledges
//! with datagrams, cells outside the sequence space that take the same way as all others and say in their
//! payload what has come; the sender repeats what stays missing. Shoal controls congestion, so the only window is that of the
//! sequence numbers.
//!
//! The sender's timer follows Shoal's own bound: a cell has left its remote queue by the epoch that
//! the feedback on it named, so what has not arrived a while after that is lost.

//!
//! A pair of nodes has a half at its source and a half at its destination, which know of each other what
//! cells and datagrams say. Halves go by the numbers that sources, and destinations, have for their pairs.

use std::collections::BTreeSet;

use crate::reorder::ReorderWindow;

/// Words of the report on cells behind the first missing one: what fits a 56-byte payload beside the
/// sequence number and the place of a handle (our choice).
const WORDS: usize = 6;
/// Most cells sent again at a time (our choice: those that a datagram may report).
const REPEATED_MAX: u32 = 64 * WORDS as u32;
/// Arrivals between two acknowledgments of one pair (our choice: 1.6 % of the cells).
const ARRIVALS_PER_ACK: u32 = 64;
/// Epochs after which arrivals are acknowledged however few they are (our choice).
const ACK_DELAY_EPOCHS: u32 = 4;
/// Epochs beyond propagation and Shoal's bound until cells are sent again (our choice); doubled each
/// time in vain.
const PATIENCE_EPOCHS: u32 = 16;
/// Most doublings of the patience (our choice).
const DOUBLINGS_MAX: u32 = 6;
/// Cells that may be sent beyond the first unacknowledged one: half the sequence space that is left
/// when one bit of 22 marks datagrams (Fig. 5, §3.5).
pub(crate) const WINDOW: u32 = 1 << 20;

/// An acknowledgment: what a datagram says of the cells that its receiver sent its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ack {
    /// All before have arrived: the datagram's sequence number.
    pub(crate) next: u32,
    /// One bit for each of the cells from `next` on, the lowest first: it has arrived.
    pub(crate) arrived: [u64; WORDS],
    /// How often who says so has come back: by that a source learns that its destination has forgotten all.
    pub(crate) life: u32,
}

impl Ack {
    /// Bytes of the report.
    pub(crate) const REPORT: usize = 8 * WORDS;

    /// What of it fits a report of so many bytes.
    fn within(mut self, bytes: usize) -> Self {
        for (word, bits) in self.arrived.iter_mut().enumerate() {
            let room = bytes.saturating_sub(8 * word).min(8) as u32;
            *bits &= u64::MAX.checked_shr(u64::BITS - 8 * room).unwrap_or(0);
        }
        self
    }

    /// The report as bytes, as far as there is room for it.
    pub(crate) fn write(&self, report: &mut [u8]) {
        let bytes = self.arrived.iter().flat_map(|word| word.to_le_bytes());
        report.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
    }

    /// The acknowledgment of a datagram's sequence number and report.
    pub(crate) fn read(next: u32, report: &[u8]) -> Self {
        let mut arrived = [0; WORDS];
        for (at, &byte) in report.iter().enumerate().take(Self::REPORT) {
            arrived[at / 8] |= u64::from(byte) << (8 * (at % 8));
        }
        Self { next, arrived, life: 0 }
    }

    fn cells(&self) -> impl Iterator<Item = u32> + '_ {
        let bits = (0..64 * WORDS as u32)
            .filter(|bit| self.arrived[*bit as usize / 64] >> (bit % 64) & 1 == 1);
        bits.map(|bit| self.next.wrapping_add(bit))
    }
}

/// A pair at its source.
#[derive(Clone, Debug, Default)]
struct Source {
    /// First cell not known to have arrived.
    base: u32,
    /// Cells beyond `base` known to have arrived.
    arrived: BTreeSet<u32>,
    /// Cells sent before the timer was set, if it runs.
    timer: Option<Timer>,
    doublings: u32,
    watched: bool,
}

/// A pair at its destination.
#[derive(Clone, Debug, Default)]
struct Destination {
    /// Arrivals not yet acknowledged, and the epoch of the first.
    arrivals: u32,
    since: u32,
    /// An acknowledgment is asked for and has not left yet.
    asked: bool,
    watched: bool,
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    /// First cell that was not yet sent when the timer was set.
    mark: u32,
    /// Epoch in which it runs out.
    deadline: u32,
}

/// What a pair looks like to its source's transport when that is asked to act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PairView {
    /// Next sequence number at the source.
    pub(crate) sequence: u32,
    /// Epoch by which the cells reported on have left their remote queues.
    pub(crate) drained: u32,
    /// Whether cells that are to be sent again still wait.
    pub(crate) is_repeating: bool,
}

/// What the transport wants sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Acknowledge the cells of this pair, by its number at the destination.
    Acknowledge { pair: u32 },
    /// Send these cells again of this pair, by its number at the source.
    Repeat { pair: u32, sequences: Vec<u32> },
}

/// The transports of a set of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    /// Epochs of propagation from a cell to its acknowledgment.
    round_trip: u32,
    /// Bytes that a cell has for a report.
    report: usize,
    sources: Vec<Source>,
    destinations: Vec<Destination>,
    /// Pairs with something unacknowledged: at their sources, and at their destinations.
    sending: Vec<u32>,
    receiving: Vec<u32>,
}

fn entry<T: Default>(list: &mut Vec<T>, index: u32) -> &mut T {
    if list.len() <= index as usize {
        list.resize_with(index as usize + 1, T::default);
    }
    &mut list[index as usize]
}

impl Transport {
    /// The transports of nodes in a rack in which a cell and its acknowledgment, two hops each, take
    /// `round_trip` epochs of propagation, and cells have so many bytes for a report.
    pub(crate) fn new(round_trip: u32, report: usize) -> Self {
        let (sources, destinations) = (Vec::new(), Vec::new());
        let (sending, receiving) = (Vec::new(), Vec::new());
        Self { round_trip, report, sources, destinations, sending, receiving }
    }

    /// A source's pair starts, or starts anew, with this sequence number.
    pub(crate) fn start(&mut self, pair: u32, sequence: u32) {
        let source = entry(&mut self.sources, pair);
        *source = Source { base: sequence, watched: source.watched, ..Source::default() };
    }

    /// A destination's pair starts, or starts anew.
    pub(crate) fn start_receiving(&mut self, pair: u32) {
        let destination = entry(&mut self.destinations, pair);
        *destination = Destination { watched: destination.watched, ..Destination::default() };
    }

    /// Whether the source knows that every cell before `sequence` has arrived.
    pub(crate) fn is_settled(&self, pair: u32, sequence: u32) -> bool {
        self.sources[pair as usize].base == sequence
    }

    /// First cell of a pair that its source does not know to have arrived.
    pub(crate) fn base(&self, pair: u32) -> u32 {
        self.sources[pair as usize].base
    }

    /// Cells of the pair that may be sent beyond `sequence` now.
    pub(crate) fn room(&self, pair: u32, sequence: u32) -> u32 {
        WINDOW.saturating_sub(sequence.wrapping_sub(self.sources[pair as usize].base))
    }

    /// The source took a new cell.
    pub(crate) fn sent(&mut self, pair: u32) {
        if !std::mem::replace(&mut self.sources[pair as usize].watched, true) {
            self.sending.push(pair);
        }
    }

    fn watch(&mut self, pair: u32) {
        if !std::mem::replace(&mut self.destinations[pair as usize].watched, true) {
            self.receiving.push(pair);
        }
    }

    /// A cell reached the destination, new or not.
    pub(crate) fn arrived(&mut self, pair: u32, epoch: u32, duplicate: bool) {
        let destination = entry(&mut self.destinations, pair);
        if destination.arrivals == 0 {
            destination.since = epoch;
        }
        // A second copy means that an acknowledgment was lost or late: answer soon.
        destination.arrivals += if duplicate { ARRIVALS_PER_ACK } else { 1 };
        self.watch(pair);
    }

    /// The acknowledgment asked for will not leave: ask again when it is due.
    pub(crate) fn not_acknowledged(&mut self, pair: u32) {
        entry(&mut self.destinations, pair).asked = false;
        self.watch(pair);
    }

    /// What has arrived so far will not be acknowledged.
    pub(crate) fn owe_nothing(&mut self, pair: u32) {
        let destination = entry(&mut self.destinations, pair);
        (destination.arrivals, destination.asked) = (0, false);
    }

    /// Writes the acknowledgment of a pair.
    pub(crate) fn acknowledge(&mut self, pair: u32, window: &ReorderWindow, life: u32) -> Ack {
        let next = window.next_expected();
        let mut arrived = [0; WORDS];
        if window.held() > 0 {
            for (word, bits) in arrived.iter_mut().enumerate() {
                let first = next.wrapping_add(64 * word as u32);
                let held = (0..64).filter(|&bit| window.holds(first.wrapping_add(bit)));
                *bits = held.fold(0, |bits, bit| bits | 1 << bit);
            }
        }
        let destination = entry(&mut self.destinations, pair);
        (destination.arrivals, destination.asked) = (0, false);
        Ack { next, arrived, life }.within(self.report)
    }

    /// An acknowledgment reached the source. Whether it is of this life of the pair and not older than what
    /// is known.
    pub(crate) fn acknowledged(&mut self, pair: u32, sequence: u32, ack: &Ack) -> bool {
        let source = &mut self.sources[pair as usize];
        let ahead = ack.next.wrapping_sub(source.base);
        let most = sequence.wrapping_sub(source.base);
        if ahead > most {
            return false;
        }
        if ahead > 0 {
            source.base = ack.next;
            source.doublings = 0;
            source.timer = None;
            let base = source.base;
            source.arrived.retain(|sequence| sequence.wrapping_sub(base) < WINDOW);
        }
        let base = source.base;
        source.arrived.extend(ack.cells().filter(|cell| cell.wrapping_sub(base) < most - ahead));
        while source.arrived.remove(&source.base) {
            source.base = source.base.wrapping_add(1);
        }
        true
    }

    /// Lets an epoch pass: runs the timers. `view` tells how a pair stands at its source.
    pub(crate) fn tick(
        &mut self,
        epoch: u32,
        view: impl Fn(u32) -> PairView,
        mut act: impl FnMut(Action),
    ) {
        let mut kept = Vec::with_capacity(self.receiving.len());
        for pair in std::mem::take(&mut self.receiving) {
            let destination = &mut self.destinations[pair as usize];
            let is_due = destination.arrivals >= ARRIVALS_PER_ACK
                || destination.arrivals > 0 && epoch >= destination.since + ACK_DELAY_EPOCHS;
            if is_due && !destination.asked {
                destination.asked = true;
                act(Action::Acknowledge { pair });
            }
            destination.watched = destination.arrivals > 0;
            if destination.watched {
                kept.push(pair);
            }
        }
        self.receiving = kept;
        let patience = PATIENCE_EPOCHS + self.round_trip;
        let mut kept = Vec::with_capacity(self.sending.len());
        for pair in std::mem::take(&mut self.sending) {
            let (source, now) = (&mut self.sources[pair as usize], view(pair));
            if let Some(sequences) = source.overdue(epoch, now, patience) {
                act(Action::Repeat { pair, sequences });
            }
            source.watched = source.base != now.sequence;
            if source.watched {
                kept.push(pair);
            }
        }
        self.sending = kept;
    }

    /// Counts epochs from one that is so many later.
    pub(crate) fn forget_epochs(&mut self, epochs: u32) {
        for destination in &mut self.destinations {
            destination.since = destination.since.saturating_sub(epochs);
        }
        for timer in self.sources.iter_mut().filter_map(|source| source.timer.as_mut()) {
            timer.deadline = timer.deadline.saturating_sub(epochs);
        }
    }

    /// Epochs after which a timer runs out at the latest.
    pub(crate) fn longest_wait(&self) -> u64 {
        u64::from(PATIENCE_EPOCHS + self.round_trip) << DOUBLINGS_MAX
    }

    /// Whether any timer may still run out.
    pub(crate) fn is_idle(&self) -> bool {
        self.sending.is_empty() && self.receiving.is_empty()
    }
}

impl Source {
    /// Runs the timer; gives what it takes for lost.
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
        let unsure = timer.mark.wrapping_sub(self.base).min(REPEATED_MAX);
        let candidates = (0..unsure).map(|ahead| self.base.wrapping_add(ahead));
        Some(candidates.filter(|sequence| !self.arrived.contains(sequence)).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn s96_a_report_comes_back_from_its_bytes_as_far_as_there_is_room(
            next: u32, arrived: [u64; WORDS], room in 0..60_usize,
        ) {
            let ack = Ack { next, arrived, life: 0 };
            let mut report = vec![0; room];
            ack.write(&mut report);
            prop_assert_eq!(Ack::read(next, &report), ack.within(room));
        }

        /// A source that hears acknowledgments in any order, old ones and damaged ones too, never knows
        /// of a cell that was not acknowledged, nor forgets one.
        #[test]
        fn s96_a_source_knows_what_was_acknowledged(
            acks in prop::collection::vec((0u32..300, prop::collection::vec(0u32..400, 0..20)), 0..20),
            start: u32,
        ) {
            let mut transport = Transport::new(1, Ack::REPORT);
            transport.start(0, start);
            let sent = start.wrapping_add(200);
            let mut known = std::collections::BTreeSet::new();
            for (next, more) in acks {
                let mut ack = Ack { next: start.wrapping_add(next), ..Ack::default() };
                for &cell in more.iter().filter(|&&cell| cell < 384) {
                    ack.arrived[cell as usize / 64] |= 1 << (cell % 64);
                }
                let base = transport.base(0).wrapping_sub(start);
                let is_taken = transport.acknowledged(0, sent, &ack);
                prop_assert_eq!(is_taken, (base..=200).contains(&next));
                if is_taken {
                    known.extend(0..next);
                    known.extend(more.iter().map(|cell| next + cell).filter(|&cell| cell < 200));
                }
                let first = (0..).find(|cell| !known.contains(cell)).unwrap();
                prop_assert_eq!(transport.base(0).wrapping_sub(start), first);
            }
        }
    }
}
