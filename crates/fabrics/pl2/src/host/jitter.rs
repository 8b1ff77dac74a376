//! Random delays with a long tail, drawn from a table.
//!
//! Models: PL2 §5 (claims M39, E14), which gives minimum, median and maximum of an exchange: **our
//! choice** is a lognormal delay, cut off at the most. A draw is two look-ups: the table holds the
//! middle of each of 256 equally likely parts, the last of which is divided again, and its last once
//! more, down to one in 256 to the fourth.

use kernel::{Span, Stream};

use crate::config::Jitter;

/// Parts of a level.
const PARTS: usize = 256;
/// Levels: the last part of each is divided by the next.
const LEVELS: usize = 4;

/// The table of a distribution.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    /// In picoseconds, by level and part; empty: there is no delay.
    table: Vec<u32>,
}

impl Delays {
    pub(crate) fn new(jitter: &Jitter) -> Self {
        if jitter.median == Span::ZERO {
            return Self { table: Vec::new() };
        }
        let mut table = Vec::with_capacity(PARTS * LEVELS);
        let mut above = 1.0;
        for _ in 0..LEVELS {
            for part in 0..PARTS {
                // The part of all draws that is larger than the middle of this part.
                let larger = above * (1.0 - (part as f64 + 0.5) / PARTS as f64);
                table.push(quantile(jitter, larger));
            }
            above /= PARTS as f64;
        }
        Self { table }
    }

    /// A delay.
    #[inline]
    pub(crate) fn draw(&self, chance: &mut Stream) -> Span {
        if self.table.is_empty() {
            return Span::ZERO;
        }
        let bits = chance.below(1 << (8 * LEVELS));
        let mut level = 0;
        let mut part = (bits >> (8 * (LEVELS - 1))) as usize;
        while part == PARTS - 1 && level + 1 < LEVELS {
            level += 1;
            part = (bits >> (8 * (LEVELS - 1 - level))) as usize % PARTS;
        }
        Span::from_ps(self.table[level * PARTS + part].into())
    }
}

/// The delay that the share `larger` of all draws is above, in picoseconds.
fn quantile(jitter: &Jitter, larger: f64) -> u32 {
    let deviations = normal_above(larger);
    let factor = libm::exp(jitter.spread * deviations);
    let ps = jitter.median.as_ps() as f64 * factor;
    ps.min(jitter.max.as_ps() as f64) as u32
}

/// The point that a normal draw is above with this probability, by halving: the table is made once.
fn normal_above(probability: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if 0.5 * libm::erfc(middle / std::f64::consts::SQRT_2) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(count: usize, draw: impl FnMut() -> u64) -> Vec<u64> {
        let mut draws: Vec<_> = std::iter::repeat_with(draw).take(count).collect();
        draws.sort_unstable();
        draws
    }

    #[test]
    fn m39_half_of_the_delays_are_below_the_median_and_none_above_the_most() {
        let jitter = Jitter { median: Span::from_ns(30), spread: 1.1, max: Span::from_us(1) };
        let delays = Delays::new(&jitter);
        let mut chance = Stream::new(1, "test", 0);
        let draws = sorted(100_000, || delays.draw(&mut chance).as_ps());
        // A lognormal draw has a hundredth above exp(2.326 spread) times its median.
        for (rank, expected) in [(50_000, 30_000.0), (99_000, 30_000.0 * (2.326f64 * 1.1).exp())] {
            let ratio = draws[rank] as f64 / expected;
            assert!((0.94..1.06).contains(&ratio), "rank {rank}: {ratio}");
        }
        assert_eq!(draws.last(), Some(&1_000_000), "the most is reached, and not passed");
    }

    #[test]
    fn without_a_median_there_is_no_delay() {
        let delays = Delays::new(&Jitter { median: Span::ZERO, ..Jitter::default() });
        assert_eq!(delays.draw(&mut Stream::new(1, "test", 0)), Span::ZERO);
    }

    /// PL2 §5: an exchange takes 2.05 us at the median, 1.98 us of it fixed.
    #[test]
    fn e14_two_delays_of_an_exchange_have_the_median_that_was_measured() {
        let delays = Delays::new(&Jitter::default());
        let mut chance = Stream::new(1, "test", 0);
        let sums =
            sorted(100_001, || delays.draw(&mut chance).as_ps() + delays.draw(&mut chance).as_ps());
        let median = 1_980_000 + sums[50_000];
        assert!((2_040_000..2_060_000).contains(&median), "{median} ps");
    }
}
