//! What is due at each tick of the core's clock: lists of one kind each, in a ring.
//!
//! A tick does all of one kind before the next kind. Whatever one switch does for another is due ten ticks
//! later at least, so the order among switches within a tick makes no difference; of one switch, what it has
//! put in a list itself stands there in the order in which it did.

use super::settings::CHANNELS;
use super::tin::LANES;
use crate::link::ordered_sets::CHANNELS_MAX;

/// A port of a switch here, as one number: switch, and 6 bits of port.
pub(super) type Place = u32;

/// A queue of a port of a switch here, as one number: switch, 5 bits of channel, 6 bits of port.
pub(super) type Queue = u32;

/// The switch and port of a place.
#[inline]
pub(super) fn split(place: Place) -> (usize, usize) {
    ((place >> 6) as usize, place as usize % LANES)
}

/// The switch, port and channel of a queue.
#[inline]
pub(super) fn split_queue(queue: Queue) -> (usize, usize, usize) {
    ((queue >> 11) as usize, queue as usize % LANES, (queue >> 6) as usize % CHANNELS)
}

/// The place of a channel's queue at a port.
#[inline]
pub(super) fn queue_at(place: Place, channel: u8) -> Queue {
    let (slot, port) = (place >> 6, place % LANES as u32);
    slot << 11 | u32::from(channel) << 6 | port
}

/// What is due at one tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Due {
    /// Inputs from which a cell has crossed whole.
    pub(super) releases: Vec<Release>,
    /// Cells, and counts of cells, that have come over links.
    pub(super) mail: Vec<Mail>,
    /// Credit that has come over links.
    pub(super) credits: Vec<Credit>,
    /// Cells whose last bits come out of terminal ports.
    pub(super) deliveries: Vec<Delivery>,
    /// Terminal ports that may take a cell.
    pub(super) injections: Vec<Place>,
    /// Heads whose way is to be drawn again, if they are still there.
    pub(super) draws: Vec<Queue>,
    /// Outputs that may send.
    pub(super) looks: Vec<Place>,
    /// Inputs that have kept back what they freed for long enough.
    pub(super) updates: Vec<Place>,
    /// Switches that may match more than in the tick before.
    pub(super) rounds: Vec<u32>,
    /// Switches whose endpoints want to be asked.
    pub(super) wakes: Vec<u32>,
}

/// A cell has left an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    /// The queue that it was in.
    pub(super) queue: Queue,
    pub(super) output: u8,
    /// Its length. Unit: 16 B.
    pub(super) units: u8,
}

/// What has come over a link, in the order in which it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mail {
    /// A cell.
    Cell { queue: Queue, cell: u32 },
    /// All units that were sent on a channel so far (M216).
    Sync { queue: Queue, used: u16 },
}

/// Credit of up to three channels from `first` on: a flow-control ordered set (M213).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Credit {
    pub(super) place: Place,
    pub(super) first: u8,
    pub(super) count: u8,
    pub(super) limits: [u16; CHANNELS_MAX],
}

/// A cell comes out of a terminal port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) place: Place,
    pub(super) cell: u32,
    /// Its last bit. Unit: ps.
    pub(super) tail: u64,
}

impl Due {
    fn clear(&mut self) {
        self.releases.clear();
        self.mail.clear();
        self.credits.clear();
        self.deliveries.clear();
        self.injections.clear();
        self.draws.clear();
        self.looks.clear();
        self.updates.clear();
        self.rounds.clear();
        self.wakes.clear();
    }
}

/// The ring.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    ring: Vec<Box<Due>>,
    /// By place in the ring: not zero if something is due.
    full: Vec<u8>,
    /// The tick at hand: all before are done.
    now: u64,
}

impl Calendar {
    /// A ring that reaches so many ticks ahead, at least.
    pub(super) fn new(ticks: u64) -> Self {
        let size = (ticks + 1).next_power_of_two().max(64) as usize;
        Self { ring: vec![Box::default(); size], full: vec![0; size], now: 0 }
    }

    /// The tick at hand.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// How far ahead of the tick at hand something may be put.
    pub(super) fn reach(&self) -> u64 {
        self.ring.len() as u64 - 1
    }

    /// What is due at a tick, to add to.
    #[inline]
    pub(super) fn at(&mut self, tick: u64) -> &mut Due {
        debug_assert!(
            tick >= self.now && tick - self.now <= self.reach(),
            "tick {tick} is put in a ring that stands at {} and reaches {} ahead",
            self.now,
            self.reach()
        );
        let place = tick as usize & (self.ring.len() - 1);
        self.full[place] = 1;
        &mut self.ring[place]
    }

    /// The first tick from the one at hand on at which something is due, or `u64::MAX`.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        let start = self.now as usize & (self.ring.len() - 1);
        let (behind, ahead) = self.full.split_at(start);
        let first = first_full(ahead);
        let first = first.or_else(|| first_full(behind).map(|place| place + ahead.len()));
        first.map_or(u64::MAX, |steps| self.now + steps as u64)
    }

    /// Goes on to a tick before which nothing is due; takes what is due there.
    #[inline]
    pub(super) fn take(&mut self, tick: u64, into: &mut Box<Due>) {
        debug_assert!(self.next() >= tick, "something is due before {tick}");
        self.now = tick;
        let place = tick as usize & (self.ring.len() - 1);
        self.full[place] = 0;
        into.clear();
        std::mem::swap(into, &mut self.ring[place]);
    }

    /// Goes on to a tick before which nothing is due.
    pub(super) fn skip_to(&mut self, tick: u64) {
        debug_assert!(self.next() >= tick, "something is due before {tick}");
        self.now = self.now.max(tick);
    }
}

/// The first byte that is not zero: eight at a time.
#[inline]
fn first_full(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    let word = words.iter().position(|word| u64::from_le_bytes(*word) != 0);
    match word {
        Some(at) => Some(8 * at + u64::from_le_bytes(words[at]).trailing_zeros() as usize / 8),
        None => rest.iter().position(|&byte| byte != 0).map(|at| 8 * words.len() + at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_in_order_over_the_ends_of_the_ring() {
        let mut calendar = Calendar::new(100);
        let (mut expected, mut tick) = (Vec::new(), 0);
        let mut due = Box::default();
        for step in [1, 50, 100, 127, 3, 64, 128 - 1, 2] {
            assert_eq!(calendar.next(), u64::MAX);
            calendar.at(tick + step).looks.push(step as u32);
            calendar.at(tick + step / 2).looks.push(0);
            assert_eq!(calendar.next(), tick + step / 2);
            calendar.take(tick + step / 2, &mut due);
            if step / 2 < step {
                assert_eq!(calendar.next(), tick + step);
                calendar.take(tick + step, &mut due);
            }
            tick += step;
            expected.push((tick, due.looks.clone()));
        }
        assert!(expected.iter().all(|(_, looks)| !looks.is_empty()));
        assert_eq!(calendar.now(), tick);
    }
}
