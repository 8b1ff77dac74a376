//! Which delays have a lane.

use super::QUEUES;

/// Places of the table, as a power of two: several for each lane, so that delays seldom meet (our
/// choice).
const BITS: u32 = 7;
/// Odd constant of the hash (the golden ratio in 64 bits).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Pushes of a window, as a power of two, and how often a delay comes in one before it gets a lane: a
/// lane costs every pop, the wheel its own events only (our choice: one push in 32).
const WINDOW_BITS: u32 = 10;
const OFTEN: u8 = 32;
/// "No lane".
const NONE: u8 = u8::MAX;

/// A delay that was met.
#[derive(Clone, Copy, Debug)]
struct Known {
    delay: u64,
    /// The window in which it was last met without a lane, and how often it was in it.
    window: u32,
    met: u8,
    lane: u8,
}

/// A table of delays, by hash, each in one of two places.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    places: [Known; 1 << BITS],
    /// By queue: the place of its delay.
    owners: [Option<usize>; QUEUES],
    /// The window in which lanes were last put in order.
    tidied: u32,
}

impl Delays {
    pub(super) fn new() -> Self {
        let unknown = Known { delay: 0, window: 0, met: 0, lane: NONE };
        Self { places: [unknown; 1 << BITS], owners: [None; QUEUES], tidied: 0 }
    }

    /// The lane of a delay, if it has one.
    #[inline]
    pub(super) fn lane(&self, delay: u64) -> Option<usize> {
        let place = place_of(delay);
        let known = &self.places[place];
        if known.delay == delay && known.lane != NONE {
            return Some(known.lane.into());
        }
        let known = &self.places[place ^ 1];
        (known.delay == delay && known.lane != NONE).then_some(known.lane.into())
    }

    /// Takes note of a delay without a lane, met at push `number`. Gives it one if it comes often, and
    /// there is one that no delay has or that `is_free`.
    pub(super) fn learn(
        &mut self,
        delay: u64,
        number: u32,
        is_free: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let first = place_of(delay);
        let place = if self.places[first].lane == NONE { first } else { first ^ 1 };
        let known = &mut self.places[place];
        if known.lane != NONE {
            return None;
        }
        let window = number >> WINDOW_BITS;
        if (known.delay, known.window) != (delay, window) {
            *known = Known { delay, window, met: 0, lane: NONE };
        }
        known.met += 1;
        if known.met < OFTEN {
            return None;
        }
        known.met = 0;
        let lanes = 1..QUEUES;
        let unowned = lanes.clone().find(|&lane| self.owners[lane].is_none());
        let lane = unowned.or_else(|| lanes.clone().find(|&lane| is_free(lane)))?;
        if let Some(former) = self.owners[lane].replace(place) {
            self.places[former].lane = NONE;
        }
        self.places[place].lane = lane as u8;
        Some(lane)
    }

    /// Whether push `number` is the first seen of its window.
    #[inline]
    pub(super) fn begins_window(&mut self, number: u32) -> bool {
        let window = number >> WINDOW_BITS;
        std::mem::replace(&mut self.tidied, window) != window
    }

    /// Whether a lane has a delay.
    pub(super) fn is_owned(&self, lane: usize) -> bool {
        self.owners[lane].is_some()
    }

    /// Takes a lane from its delay.
    pub(super) fn release(&mut self, lane: usize) {
        if let Some(place) = self.owners[lane].take() {
            self.places[place].lane = NONE;
        }
    }

    /// Gives the lane `to`, which no delay has, the delay of `from`.
    pub(super) fn transfer(&mut self, from: usize, to: usize) {
        self.owners[to] = self.owners[from].take();
        if let Some(place) = self.owners[to] {
            self.places[place].lane = to as u8;
        }
    }
}

/// Whether a lane that last got an event at push `last` is out of use at push `number`: a window has
/// passed.
pub(super) fn is_long_ago(last: u32, number: u32) -> bool {
    number.wrapping_sub(last) >> WINDOW_BITS > 0
}

#[inline]
fn place_of(delay: u64) -> usize {
    (delay.wrapping_mul(FACTOR) >> (u64::BITS - BITS)) as usize
}
