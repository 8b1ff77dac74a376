//! What is due at each tick of the core's clock: lists of one kind each, in rings.
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

/// Room of a list in the beginning (our choice: a line of the cache or two).
const LIST: usize = 16;

/// What is due of one kind, by tick: a ring of lists. Lists that are done are filled again, last one first, so that no
/// more memory is in use than what is due takes.
#[derive(Clone, Debug)]
pub(super) struct Lane<T> {
    ring: Vec<Vec<T>>,
    spare: Vec<Vec<T>>,
    /// The tick at hand, in debug builds.
    now: u64,
}

impl<T> Lane<T> {
    /// A ring that reaches so many ticks ahead, at least.
    fn new(ticks: u64) -> Self {
        let ring = (0..ring_size(ticks)).map(|_| Vec::new()).collect();
        Self { ring, spare: Vec::new(), now: 0 }
    }

    /// Puts something where it is due.
    #[inline]
    pub(super) fn push(&mut self, tick: u64, entry: T) {
        debug_assert!(
            tick >= self.now && tick - self.now < self.ring.len() as u64,
            "tick {tick} is put in a ring of {} that stands at {}",
            self.ring.len(),
            self.now
        );
        let place = tick as usize & (self.ring.len() - 1);
        let list = &mut self.ring[place];
        if list.len() == list.capacity() {
            Self::widen(list, &mut self.spare);
        }
        list.push(entry);
    }

    #[inline(never)]
    fn widen(list: &mut Vec<T>, spare: &mut Vec<Vec<T>>) {
        match spare.pop() {
            Some(empty) if list.capacity() == 0 => *list = empty,
            other => {
                spare.extend(other);
                list.reserve(LIST);
            }
        }
    }

    /// What is due at a tick; to be given back.
    #[inline]
    pub(super) fn take(&mut self, tick: u64) -> Vec<T> {
        let place = tick as usize & (self.ring.len() - 1);
        std::mem::take(&mut self.ring[place])
    }

    /// A list that is done.
    #[inline]
    pub(super) fn give_back(&mut self, mut list: Vec<T>) {
        if list.capacity() > 0 {
            list.clear();
            self.spare.push(list);
        }
    }
}

/// How many ticks a ring has that reaches so many ahead.
fn ring_size(ticks: u64) -> usize {
    (ticks + 1).next_power_of_two().max(64) as usize
}

/// What is due, a lane of each kind.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    /// Inputs from which a cell has crossed whole.
    pub(super) releases: Lane<Release>,
    /// Cells, and counts of cells, that have come over links.
    pub(super) mail: Lane<Mail>,
    /// Credit that has come over links.
    pub(super) credits: Lane<Credit>,
    /// Cells whose last bits come out of terminal ports.
    pub(super) deliveries: Lane<Delivery>,
    /// Switches whose endpoints want to be asked.
    pub(super) wakes: Lane<u32>,
    /// Terminal ports that may take a cell.
    pub(super) injections: Lane<Place>,
    /// Heads whose way is to be drawn again, if they are still there.
    pub(super) draws: Lane<Queue>,
    /// Inputs that have kept back what they freed for long enough.
    pub(super) updates: Lane<Place>,
    /// Outputs that may send.
    pub(super) looks: Lane<Place>,
    /// Switches that may match more than in the tick before.
    pub(super) rounds: Lane<u32>,
}

impl Lanes {
    /// Tells all lanes the time, for their checks.
    fn stand_at(&mut self, now: u64) {
        (self.releases.now, self.mail.now, self.credits.now) = (now, now, now);
        (self.deliveries.now, self.wakes.now, self.injections.now) = (now, now, now);
        (self.draws.now, self.updates.now) = (now, now);
        (self.looks.now, self.rounds.now) = (now, now);
    }
}

/// The lanes, and the time.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    pub(super) lanes: Lanes,
    /// By tick, in a ring: not zero if something is due.
    full: Vec<u8>,
    /// The tick at hand: all before are done.
    now: u64,
}

impl Calendar {
    /// Lanes that reach so many ticks ahead, at least: what happens at a switch, and what goes over links or waits for
    /// a time that is set.
    pub(super) fn new(near: u64, far: u64) -> Self {
        let far = far.max(near);
        let lanes = Lanes {
            releases: Lane::new(near),
            mail: Lane::new(far),
            credits: Lane::new(far),
            deliveries: Lane::new(near),
            wakes: Lane::new(far),
            injections: Lane::new(near),
            draws: Lane::new(far),
            updates: Lane::new(far),
            looks: Lane::new(near),
            rounds: Lane::new(1),
        };
        Self { lanes, full: vec![0; ring_size(far)], now: 0 }
    }

    /// The tick at hand.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// How far ahead of the tick at hand something may be put.
    pub(super) fn reach(&self) -> u64 {
        self.full.len() as u64 - 1
    }

    /// Something is due at a tick: gives the lanes to put it in.
    #[inline]
    pub(super) fn at(&mut self, tick: u64) -> &mut Lanes {
        debug_assert!(
            tick >= self.now && tick - self.now <= self.reach(),
            "tick {tick} is put in a ring that stands at {} and reaches {} ahead",
            self.now,
            self.reach()
        );
        let place = tick as usize & (self.full.len() - 1);
        self.full[place] = 1;
        &mut self.lanes
    }

    /// The first tick from the one at hand on at which something is due, or `u64::MAX`.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        let start = self.now as usize & (self.full.len() - 1);
        let (behind, ahead) = self.full.split_at(start);
        let first = first_full(ahead);
        let first = first.or_else(|| first_full(behind).map(|place| place + ahead.len()));
        first.map_or(u64::MAX, |steps| self.now + steps as u64)
    }

    /// Goes on to a tick before which nothing is due, to take what is due there.
    #[inline]
    pub(super) fn begin(&mut self, tick: u64) {
        debug_assert!(self.next() >= tick, "something is due before {tick}");
        self.go_to(tick);
        let place = tick as usize & (self.full.len() - 1);
        self.full[place] = 0;
    }

    /// Goes on to a tick before which nothing is due.
    pub(super) fn skip_to(&mut self, tick: u64) {
        debug_assert!(self.next() >= tick, "something is due before {tick}");
        self.go_to(self.now.max(tick));
    }

    #[inline]
    fn go_to(&mut self, tick: u64) {
        self.now = tick;
        if cfg!(debug_assertions) {
            self.lanes.stand_at(tick);
        }
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
        let mut calendar = Calendar::new(100, 100);
        let (mut expected, mut tick) = (Vec::new(), 0);
        let take = |calendar: &mut Calendar, tick| {
            calendar.begin(tick);
            let list = calendar.lanes.looks.take(tick);
            let looks = list.clone();
            calendar.lanes.looks.give_back(list);
            looks
        };
        for step in [1, 50, 100, 127, 3, 64, 128 - 1, 2] {
            assert_eq!(calendar.next(), u64::MAX);
            for number in 0..step as u32 {
                calendar.at(tick + step).looks.push(tick + step, number);
            }
            calendar.at(tick + step / 2).looks.push(tick + step / 2, 7);
            assert_eq!(calendar.next(), tick + step / 2);
            let looks = take(&mut calendar, tick + step / 2);
            assert_eq!(looks.last(), Some(&7), "{step}");
            if step / 2 < step {
                assert_eq!(calendar.next(), tick + step);
                let looks = take(&mut calendar, tick + step);
                assert!(looks.into_iter().eq(0..step as u32), "{step}");
            }
            tick += step;
            expected.push(tick);
        }
        assert_eq!(Some(calendar.now()), expected.last().copied());
    }

    /// Whatever was taken and given back before, a list has what was put in it, and lists are used again.
    #[test]
    fn lists_are_used_again() {
        let mut lane = Lane::new(60);
        for tick in 0..1_000 {
            lane.now = tick;
            (0..40).for_each(|number| lane.push(tick + 3, number));
            let list = lane.take(tick);
            assert!(list.iter().copied().eq(0..if tick < 3 { 0 } else { 40 }), "{tick}: {list:?}");
            lane.give_back(list);
        }
        assert!(lane.spare.len() <= 3, "{}", lane.spare.len());
    }
}
