//! Time, sizes and rates as types that do not mix.
//!
//! Time is whole picoseconds, sizes are whole bytes, rates are whole bits per second. Nothing here
//! is a float: 28 Gbps, 6.4 ns and 20.48 ns are exact, and a sum of a million sends drifts by
//! nothing ([`LinkClock`] carries the remainder). Overflow is a bug and panics with its numbers.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

/// Picoseconds in a second.
pub const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// An instant of simulated time: picoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

/// A slot of a slotted network, counted from the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Slot(u64);

impl Slot {
    /// The slot with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The slot `count` later.
    #[must_use]
    pub const fn after(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than any instant a run reaches; stands for "never".
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `ps` picoseconds after the start.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Picoseconds since the start.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds since the start, for people and files; never for arithmetic inside a model.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / PS_PER_SECOND as f64
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of `ps` picoseconds.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A span of `ns` nanoseconds.
    ///
    /// # Panics
    /// If it does not fit 64 bits of picoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        match ns.checked_mul(1_000) {
            Some(ps) => Self(ps),
            None => panic!("a span in nanoseconds overflows 64 bits of picoseconds"),
        }
    }

    /// A span of `us` microseconds.
    ///
    /// # Panics
    /// If it does not fit 64 bits of picoseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        match us.checked_mul(1_000_000) {
            Some(ps) => Self(ps),
            None => panic!("a span in microseconds overflows 64 bits of picoseconds"),
        }
    }

    /// Picoseconds in this span.
    #[must_use]
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds in this span, for people and files.
    #[must_use]
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / PS_PER_SECOND as f64
    }

    /// How many whole times `part` fits, rounded up.
    ///
    /// # Panics
    /// If `part` is zero.
    #[must_use]
    pub fn div_ceil(self, part: Span) -> u64 {
        assert!(part.0 > 0, "{self} divided into spans of zero");
        self.0.div_ceil(part.0)
    }
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// A size of `count` bytes.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number of bits.
    ///
    /// # Panics
    /// If it does not fit 64 bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        match self.0.checked_mul(8) {
            Some(bits) => bits,
            None => panic!("size in bits overflows 64 bits"),
        }
    }
}

impl Rate {
    /// A rate of `bps` bits per second.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// A rate of `gbps` gigabits (10⁹ bits) per second.
    ///
    /// # Panics
    /// If it does not fit 64 bits of bits per second.
    #[must_use]
    pub const fn from_gbps(gbps: u64) -> Self {
        match gbps.checked_mul(1_000_000_000) {
            Some(bps) => Self(bps),
            None => panic!("a rate in gigabits overflows 64 bits of bits per second"),
        }
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The time to send `size` once, rounded up to a whole picosecond. For many sends in a row use
    /// [`LinkClock`], which does not accumulate the rounding.
    ///
    /// # Panics
    /// If the rate is zero or the time does not fit 64 bits of picoseconds.
    #[must_use]
    pub fn send_time(self, size: Bytes) -> Span {
        assert!(self.0 > 0, "sending {size} at a rate of zero");
        let work = u128::from(size.0) * 8 * u128::from(PS_PER_SECOND);
        let ps = work.div_ceil(u128::from(self.0));
        Span(u64::try_from(ps).unwrap_or_else(|_| panic!("{size} at {self} overflows time")))
    }

    /// As [`Rate::send_time`], rounded down: no clock of a link takes less. At most a quarter of what
    /// time holds, 53 days, so that it can be added to what else there is.
    ///
    /// # Panics
    /// If the rate is zero.
    #[must_use]
    pub fn least_send_time(self, size: Bytes) -> Span {
        assert!(self.0 > 0, "sending {size} at a rate of zero");
        let ps = u128::from(size.0) * 8 * u128::from(PS_PER_SECOND) / u128::from(self.0);
        Span(u64::try_from(ps).unwrap_or(u64::MAX).min(u64::MAX / 4))
    }

    /// Whole bytes that pass in `span`, rounded down.
    #[must_use]
    pub fn bytes_in(self, span: Span) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(span.0) / (8 * u128::from(PS_PER_SECOND));
        Bytes(u64::try_from(bytes).unwrap_or_else(|_| panic!("{span} at {self} overflows bytes")))
    }
}

/// Sending time on one link. Carries the remainder, so that a rate that does not divide a
/// picosecond (28 Gbps) never drifts: any run of sends is exact to 1 ps in total.
#[derive(Clone, Debug)]
pub struct LinkClock {
    rate: Rate,
    /// Work not yet charged, in bit-picoseconds per second; below `rate`.
    carry: u64,
    /// Whole picoseconds that a byte takes, and the work left over; below `rate`. Together they are
    /// exact: a stored quotient with its remainder.
    byte: u64,
    rest: u64,
}

impl LinkClock {
    /// Work in a byte, in bit-picoseconds per second.
    const BYTE: u64 = 8 * PS_PER_SECOND;

    /// A clock for a link of `rate`, with nothing carried.
    ///
    /// # Panics
    /// If the rate is zero.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        assert!(rate.0 > 0, "a link needs a rate above zero");
        Self { rate, carry: 0, byte: Self::BYTE / rate.0, rest: Self::BYTE % rate.0 }
    }

    /// The rate.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The time of a byte, where that is a whole number of picoseconds: then nothing is ever carried.
    #[must_use]
    pub fn byte_time(&self) -> Option<Span> {
        (self.rest == 0).then_some(Span(self.byte))
    }

    /// The time that sending `size` takes now: the exact time, rounded down, with what was rounded
    /// off earlier added back as soon as it makes a whole picosecond.
    #[inline]
    pub fn send(&mut self, size: Bytes) -> Span {
        let whole = self.byte.checked_mul(size.0);
        if let (0, Some(whole)) = (self.rest, whole) {
            return Span(whole);
        }
        let work = self.rest.checked_mul(size.0).and_then(|work| work.checked_add(self.carry));
        let (Some(whole), Some(work)) = (whole, work) else { return self.send_large(size) };
        self.carry = work % self.rate.0;
        Span(whole) + Span(work / self.rate.0)
    }

    /// As [`LinkClock::send`], in 128 bits.
    #[cold]
    fn send_large(&mut self, size: Bytes) -> Span {
        let work = u128::from(size.0) * u128::from(Self::BYTE) + u128::from(self.carry);
        let rate = u128::from(self.rate.0);
        self.carry = (work % rate) as u64;
        let ps = work / rate;
        Span(u64::try_from(ps).unwrap_or_else(|_| panic!("{size} at {} overflows time", self.rate)))
    }
}

/// Implements one binary operator by a checked integer method.
macro_rules! checked {
    ($op:ident, $fn:ident, $checked:ident, $word:literal: $($a:ty, $b:ty => $c:ident;)*) => {$(
        impl $op<$b> for $a {
            type Output = $c;
            #[inline]
            fn $fn(self, other: $b) -> $c {
                match self.0.$checked(other.0) {
                    Some(value) => $c(value),
                    None => panic!("{self} {} {other} overflows", $word),
                }
            }
        }
    )*};
}
checked!(Add, add, checked_add, "plus":
    Time, Span => Time; Span, Span => Span; Bytes, Bytes => Bytes; Rate, Rate => Rate;);
checked!(Sub, sub, checked_sub, "minus":
    Time, Span => Time; Time, Time => Span; Span, Span => Span; Bytes, Bytes => Bytes;
    Rate, Rate => Rate;);

/// Implements scaling by a count, ratio to the same unit, and compound assignment.
macro_rules! scalar {
    ($($t:ident),*) => {$(
        impl Mul<u64> for $t {
            type Output = $t;
            #[inline]
            fn mul(self, count: u64) -> $t {
                match self.0.checked_mul(count) {
                    Some(value) => $t(value),
                    None => panic!("{self} times {count} overflows"),
                }
            }
        }
        impl Div<u64> for $t {
            type Output = $t;
            #[inline]
            fn div(self, count: u64) -> $t {
                $t(self.0 / count)
            }
        }
        impl Div<$t> for $t {
            type Output = u64;
            #[inline]
            fn div(self, part: $t) -> u64 {
                self.0 / part.0
            }
        }
        impl Rem<$t> for $t {
            type Output = $t;
            #[inline]
            fn rem(self, part: $t) -> $t {
                $t(self.0 % part.0)
            }
        }
        impl AddAssign for $t {
            #[inline]
            fn add_assign(&mut self, other: $t) {
                *self = *self + other;
            }
        }
        impl SubAssign for $t {
            #[inline]
            fn sub_assign(&mut self, other: $t) {
                *self = *self - other;
            }
        }
        impl std::iter::Sum for $t {
            fn sum<I: Iterator<Item = $t>>(all: I) -> $t {
                all.fold($t(0), |a, b| a + b)
            }
        }
    )*};
}
scalar!(Span, Bytes, Rate);

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

macro_rules! debug_as_display {
    ($($t:ident),*) => {$(
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_as_display!(Time, Span, Bytes, Rate);

#[cfg(test)]
#[path = "quantity_tests.rs"]
mod tests;
