//! Measuring what a link takes (M218, M914): sets go there and come back.
//!
//! A set says at which cycle it went on the wire; the other end adds what it kept it for, and sends it back; half of what
//! is over is the delay. **Our choice**: it is averaged. Each way a set waits for an edge of the clock that takes it, half a
//! cycle on average, and each time is cut to whole cycles, which makes it early by half a cycle on average. The average of
//! a measurement is thus twice the delay and two cycles; so half of it is what has to be added to a time that comes: the
//! delay, the half that waiting takes and the half that was cut. One measurement is off by less than two cycles there and
//! back.

/// By how much measurements of one link can differ. Unit: cycles (four things, each up to one).
const SPREAD: u64 = 4;
/// Cycles from one to the next (our choice; prime, so that they fall on all phases of the other clock).
pub(super) const GAP: u64 = 401;
/// Cycles after which an answer is given up (our choice: ten times the longest).
const PATIENCE: u64 = 8_000;
/// Measurements that are begun for each that is wanted, at most.
const TRIES: u32 = 8;
/// Numbers of measurements (M218: 11 bits).
pub(super) const NUMBERS: u16 = 1 << 11;
/// Bits of a measurement's time.
pub(super) const TIME_MASK: u64 = (1 << 40) - 1;

/// The delay of a port's link is being measured.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    /// The port.
    pub(super) port: u8,
    wanted: u8,
    begun: u32,
    /// The one under way.
    number: u16,
    is_under_way: bool,
    /// When the next is begun, or the one under way is given up. Unit: cycles.
    pub(super) due: u64,
    samples: Vec<u64>,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Send a measurement of this number.
    Ask(u16),
    /// The delay. Unit: cycles.
    Done(u64),
    /// Nothing comes back.
    Failed,
    /// Wait.
    Wait,
}

impl Measurement {
    pub(super) fn new(port: u8, wanted: u8, number: u16, cycle: u64) -> Self {
        Self {
            port,
            wanted: wanted.max(1),
            begun: 0,
            number: number % NUMBERS,
            is_under_way: false,
            due: cycle,
            samples: Vec::with_capacity(usize::from(wanted)),
        }
    }

    /// The number behind the last that was used.
    pub(super) fn next_number(&self) -> u16 {
        (self.number + 1) % NUMBERS
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, cycle: u64) -> Step {
        if cycle < self.due {
            return Step::Wait;
        }
        if self.begun >= TRIES * u32::from(self.wanted) {
            return Step::Failed;
        }
        self.begun += 1;
        self.number = self.next_number();
        self.is_under_way = true;
        self.due = cycle + PATIENCE;
        Step::Ask(self.number)
    }

    /// An answer has come: `ticks` is the cycle at which it went, and what the other end kept it for.
    pub(super) fn answer(&mut self, number: u16, ticks: u64, cycle: u64) -> Step {
        let took = cycle.wrapping_sub(ticks) & TIME_MASK;
        if !self.is_under_way || number != self.number || took > PATIENCE {
            return Step::Wait;
        }
        self.is_under_way = false;
        self.due = cycle + GAP;
        self.samples.push(took);
        if self.samples.len() < usize::from(self.wanted) {
            return Step::Wait;
        }
        let least = self.samples.iter().copied().min().unwrap_or(0);
        // What is further apart than one link's measurements can be is wrong.
        let fine = self.samples.iter().filter(|&&took| took <= least + SPREAD);
        let (sum, count) = fine.fold((0, 0), |(sum, count), took| (sum + took, count + 1));
        Step::Done((sum + count) / (2 * count))
    }
}
