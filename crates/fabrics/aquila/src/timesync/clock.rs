//! Oscillators, and what a TiN's clock says (M911).

use kernel::Time;

use crate::switch::settings::TICK;

/// Bits of a clock's count of ticks (M911).
pub const BITS: u32 = 48;
const MASK: u64 = (1 << BITS) - 1;
/// A thousand million: deviations are in parts of it.
const BILLION: u128 = 1_000_000_000;
/// Parts of a tick in which exact readings are given.
pub const PARTS: i64 = 1_000_000;

/// An oscillator: what true time makes it count. Known to measurements alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Oscillator {
    /// True instant of its edge 0. Unit: ps.
    phase: u64,
    /// Edges in a thousand million ticks of true time.
    rate: u64,
}

impl Oscillator {
    /// One that is so many thousand-millionths too fast, whose edge 0 is at `phase`. Unit: ps.
    ///
    /// # Panics
    /// If it is off by a hundredth or more.
    #[must_use]
    pub fn new(parts_per_billion: i32, phase: u64) -> Self {
        assert!(parts_per_billion.abs() < 10_000_000, "{parts_per_billion} thousand-millionths");
        let rate = BILLION as i64 + i64::from(parts_per_billion);
        Self { phase, rate: rate as u64 }
    }

    /// Edges after edge 0 that have been at `at`, in parts of 1 / `scale`.
    fn scaled(&self, at: Time, scale: u128) -> u64 {
        let since = u128::from(at.as_ps().saturating_sub(self.phase));
        let parts = since * u128::from(self.rate) * scale;
        (parts / (BILLION * u128::from(TICK.as_ps()))) as u64
    }

    /// The number of its last edge at `at`, 0 before the first.
    #[must_use]
    pub fn cycle(&self, at: Time) -> u64 {
        self.scaled(at, 1)
    }

    /// The instant of an edge, to the picosecond above.
    #[must_use]
    pub fn edge(&self, cycle: u64) -> Time {
        let ticks = u128::from(cycle) * BILLION * u128::from(TICK.as_ps());
        Time::from_ps(self.phase + ticks.div_ceil(u128::from(self.rate)) as u64)
    }

    /// The next edge from `at` on, and its instant.
    #[must_use]
    pub fn next_edge(&self, at: Time) -> (u64, Time) {
        let last = self.cycle(at);
        let at_last = self.edge(last);
        if at_last >= at { (last, at_last) } else { (last + 1, self.edge(last + 1)) }
    }

    /// What a clock that runs on it would show if it counted in parts of a tick. Unit: [`PARTS`] of a tick.
    #[must_use]
    pub fn exact(&self, clock: &Clock, at: Time) -> i64 {
        self.scaled(at, PARTS as u128) as i64 + clock.ahead * PARTS
    }
}

/// A clock: cycles, and how far it was set ahead of them. It says nothing of how good it is: [`super::Quality`] does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Clock {
    /// Ticks that it is ahead of its cycles.
    ahead: i64,
}

impl Clock {
    /// Its time at a cycle, below 2^48. Unit: ticks of 2.5 ns.
    #[must_use]
    pub const fn at(&self, cycle: u64) -> u64 {
        cycle.wrapping_add_signed(self.ahead) & MASK
    }

    /// How far a time is ahead of its own at a cycle, the short way round. Unit: ticks.
    #[must_use]
    pub const fn off(&self, cycle: u64, ticks: u64) -> i64 {
        let spare = u64::BITS - BITS;
        (ticks.wrapping_sub(self.at(cycle)) << spare) as i64 >> spare
    }

    /// Sets it ahead, or back.
    pub const fn adjust(&mut self, ticks: i64) {
        self.ahead = self.ahead.wrapping_add(ticks);
    }
}
