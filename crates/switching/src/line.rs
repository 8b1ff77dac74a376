//! The line at a port against the clock of the chip, exactly.
//!
//! A chip of 454 MHz takes 6.88… bytes a cycle from a line of 25 Gb/s. Time on the bench is counted
//! in ticks so small that both a cycle and a byte are whole numbers of them: nothing drifts.

use std::ops::{Add, AddAssign, Mul, Sub};

use kernel::{Bytes, PS_PER_SECOND, Rate, Span, Time};

/// An instant or a length of time on the bench; what a tick is, the [`Line`] says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ticks(u64);

impl Ticks {
    /// This many ticks.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// How many ticks.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Add for Ticks {
    type Output = Ticks;
    #[inline]
    fn add(self, other: Ticks) -> Ticks {
        Ticks(self.0 + other.0)
    }
}

impl AddAssign for Ticks {
    #[inline]
    fn add_assign(&mut self, other: Ticks) {
        *self = *self + other;
    }
}

impl Sub for Ticks {
    type Output = Ticks;
    #[inline]
    fn sub(self, other: Ticks) -> Ticks {
        debug_assert!(self.0 >= other.0, "{self:?} less {other:?}");
        Ticks(self.0 - other.0)
    }
}

impl Mul<u64> for Ticks {
    type Output = Ticks;
    #[inline]
    fn mul(self, count: u64) -> Ticks {
        Ticks(self.0 * count)
    }
}

/// The lines of a switch, all of one rate, and the cycle of its clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    rate: Rate,
    cycle: Ticks,
    byte: Ticks,
}

const fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Simulated seconds that ticks must count at least (our choice: a day).
const SECONDS_MIN: u128 = 24 * 3_600;

/// What [`Line::check_clock`] and [`Line::check_slot`] say of rates that have no common measure.
const TOO_FINE: &str = "the line's rate and the switch's have no common measure that 64 bits can count \
                        for a day; expected rounder rates, such as \"25 Gbps\"";

impl Line {
    fn of_ratio(rate: Rate, cycle: u128, byte: u128) -> Self {
        assert!(cycle > 0 && byte > 0, "a line of {cycle}/{byte} bytes a cycle");
        let common = gcd(cycle, byte);
        let ticks = |count: u128| Ticks(u64::try_from(count / common).expect("a line is checked"));
        Self { rate, cycle: ticks(cycle), byte: ticks(byte) }
    }

    /// Whether ticks of such a line count far enough.
    fn check(rate: Rate, cycle: u128, byte: u128) -> Result<(), &'static str> {
        let common = gcd(cycle, byte).max(1);
        let (cycle, byte) = (cycle / common, byte / common);
        let second = byte.saturating_mul(u128::from(rate.as_bps())) / 8;
        let most = second.saturating_mul(SECONDS_MIN).max(cycle);
        if most > u128::from(u64::MAX) { Err(TOO_FINE) } else { Ok(()) }
    }

    /// Whether [`Line::clocked`] can be exact with these.
    ///
    /// # Errors
    /// If not: what is wrong and what was expected.
    pub fn check_clock(rate: Rate, hertz: u64) -> Result<(), &'static str> {
        Self::check(rate, rate.as_bps().into(), 8 * u128::from(hertz))
    }

    /// Whether [`Line::slotted`] can be exact with these.
    ///
    /// # Errors
    /// If not: what is wrong and what was expected.
    pub fn check_slot(rate: Rate, slot: Bytes, speed_up: (u64, u64)) -> Result<(), &'static str> {
        let cycle = u128::from(slot.get()) * u128::from(speed_up.1);
        Self::check(rate, cycle, speed_up.0.into())
    }

    /// Lines of `rate` at a chip whose clock has this frequency in cycles a second.
    ///
    /// # Panics
    /// If either is zero, or [`Line::check_clock`] refuses them.
    #[must_use]
    pub fn clocked(rate: Rate, hertz: u64) -> Self {
        Self::of_ratio(rate, rate.as_bps().into(), 8 * u128::from(hertz))
    }

    /// Lines of `rate` at a switch whose cycle moves `slot` bytes, `speed_up.0 / speed_up.1` times
    /// as fast as the line.
    ///
    /// # Panics
    /// If any of them is zero, or [`Line::check_slot`] refuses them.
    #[must_use]
    pub fn slotted(rate: Rate, slot: Bytes, speed_up: (u64, u64)) -> Self {
        let cycle = u128::from(slot.get()) * u128::from(speed_up.1);
        Self::of_ratio(rate, cycle, speed_up.0.into())
    }

    /// The rate of a line.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// One cycle.
    #[inline]
    #[must_use]
    pub fn cycle(&self) -> Ticks {
        self.cycle
    }

    /// The start of cycle `count`.
    #[inline]
    #[must_use]
    pub fn start_of(&self, count: u64) -> Ticks {
        self.cycle * count
    }

    /// The cycle in which an instant lies.
    #[inline]
    #[must_use]
    pub fn cycle_of(&self, at: Ticks) -> u64 {
        at.0 / self.cycle.0
    }

    /// The first cycle that starts at or after an instant.
    #[inline]
    #[must_use]
    pub fn cycle_from(&self, at: Ticks) -> u64 {
        at.0.div_ceil(self.cycle.0)
    }

    /// The time of `size` on the line.
    #[inline]
    #[must_use]
    pub fn send_time(&self, size: Bytes) -> Ticks {
        self.byte * size.get()
    }

    /// The first tick at or after an instant.
    ///
    /// # Panics
    /// If the bench's count of ticks ends before it.
    #[must_use]
    pub fn ticks_of(&self, time: Time) -> Ticks {
        let (ticks, bits) = self.ticks_for_bits();
        let exact = u128::from(time.as_ps()) * ticks;
        let count = exact.div_ceil(bits * u128::from(PS_PER_SECOND));
        Ticks(u64::try_from(count).expect("a run of a switch is shorter than weeks"))
    }

    /// A length of time in picoseconds, rounded up.
    ///
    /// # Panics
    /// If it is longer than simulated time.
    #[must_use]
    pub fn span(&self, ticks: Ticks) -> Span {
        let (each, bits) = self.ticks_for_bits();
        let exact = u128::from(ticks.0) * bits * u128::from(PS_PER_SECOND);
        let count = u64::try_from(exact.div_ceil(each)).expect("a run ends before time does");
        Span::from_ps(count)
    }

    /// Ticks, and bits that take a second: `ticks / bits` of them make a second.
    fn ticks_for_bits(&self) -> (u128, u128) {
        (u128::from(self.byte.0) * u128::from(self.rate.as_bps()), 8)
    }

    /// A length of time in seconds, for people.
    #[must_use]
    pub fn seconds(&self, ticks: f64) -> f64 {
        ticks * 8.0 / (self.byte.0 as f64 * self.rate.as_bps() as f64)
    }

    /// How many bytes the line carries in a length of time, for people.
    #[must_use]
    pub fn bytes(&self, span: Ticks) -> f64 {
        span.0 as f64 / self.byte.0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clocked_line_is_exact() {
        let line = Line::clocked(Rate::from_gbps(25), 454_000_000);
        // 288 B take 92.16 ns and 41.84 cycles of 2.2026 ns.
        let packet = line.send_time(Bytes::new(288));
        assert!((line.seconds(packet.get() as f64) - 92.16e-9).abs() < 1e-18);
        assert_eq!(line.cycle_of(packet), 41);
        assert_eq!(line.cycle_from(packet), 42);
        assert!((line.bytes(line.cycle()) - 25e9 / 8.0 / 454e6).abs() < 1e-12);
    }

    #[test]
    fn instants_and_ticks_translate_to_the_picosecond() {
        for hertz in [454_000_000, 1_560_000_000, 999_999_937] {
            let line = Line::clocked(Rate::from_gbps(25), hertz);
            for ps in [0, 1, 92_160, 1_000_000_007, 3_000_000_000_000] {
                let ticks = line.ticks_of(Time::from_ps(ps));
                let exact = ps as f64 * 1e-12;
                let tick = line.seconds(1.0);
                let off = line.seconds(ticks.get() as f64) - exact;
                assert!(off > -1e-15 && off < tick + 1e-15, "{ps} ps at {hertz} Hz: {off}");
                let back = line.span(ticks).as_ps();
                assert!(back >= ps && back - ps <= 2 + (tick * 1e12) as u64, "{ps}: {back}");
            }
        }
        let line = Line::clocked(Rate::from_gbps(25), 454_000_000);
        assert_eq!(line.span(line.send_time(Bytes::new(288))), Span::from_ps(92_160));
    }

    #[test]
    fn a_slotted_line_has_a_packet_a_slot_without_speed_up() {
        let line = Line::slotted(Rate::from_gbps(25), Bytes::new(288), (1, 1));
        assert_eq!(line.send_time(Bytes::new(288)), line.cycle());
        let fast = Line::slotted(Rate::from_gbps(25), Bytes::new(288), (3, 2));
        assert_eq!(fast.send_time(Bytes::new(288)) * 2, fast.cycle() * 3);
    }
}
