//! Arbiters: one of several requesters is chosen.
//!
//! Sources: round robin with a pointer that its owner moves, as in iSLIP (McKeown, IEEE/ACM ToN
//! 1999); least recently granted by a matrix of precedence (Dally and Towles, §18.5; SCOC calls
//! it oldest link first); oldest first by age; uniformly at random, from a stream that is handed
//! in.

use kernel::Stream;

use crate::{next_in_turn, ones};

/// Round robin: the first that asks at or after the pointer. Choosing does not move the pointer;
/// when to move it is what schedulers differ in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundRobin {
    pointer: u32,
}

impl RoundRobin {
    /// Whom the arbiter favours.
    #[inline]
    #[must_use]
    pub fn pointer(&self) -> usize {
        self.pointer as usize
    }

    /// The first of `asking` in turn.
    #[inline]
    #[must_use]
    pub fn choose(&self, asking: &[u64]) -> Option<usize> {
        next_in_turn(asking, self.pointer())
    }

    /// Favours `line` from now on.
    #[inline]
    pub fn point_at(&mut self, line: usize) {
        self.pointer = line as u32;
    }

    /// Favours whoever follows `line` among `lines`.
    #[inline]
    pub fn point_beyond(&mut self, line: usize, lines: usize) {
        self.point_at(if line + 1 == lines { 0 } else { line + 1 });
    }
}

/// Oldest link first: among those who ask, the one chosen least recently, for up to 64 lines.
/// Kept as hardware keeps it: a bit for each ordered pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OldestLink {
    /// Row `i`: those before whom `i` goes.
    before: Box<[u64]>,
}

impl OldestLink {
    /// An arbiter of `lines`, line 0 the oldest.
    ///
    /// # Panics
    /// If there are more than 64 lines.
    #[must_use]
    pub fn new(lines: usize) -> Self {
        assert!(lines <= 64, "an oldest-link arbiter of {lines} lines");
        let all = u64::MAX.checked_shr(64 - lines as u32).unwrap_or(0);
        Self { before: (0..lines).map(|line| all & !(u64::MAX >> (63 - line))).collect() }
    }

    /// The oldest of those who ask.
    #[inline]
    #[must_use]
    pub fn choose(&self, asking: u64) -> Option<usize> {
        if asking & asking.wrapping_sub(1) == 0 {
            return (asking != 0).then(|| asking.trailing_zeros() as usize);
        }
        ones(asking).find(|&line| asking & !self.before[line] == 1 << line)
    }

    /// Makes `line` the youngest.
    #[inline]
    pub fn chosen(&mut self, line: usize) {
        self.before.iter_mut().for_each(|before| *before |= 1 << line);
        self.before[line] = 0;
    }
}

/// One of those who ask, each as likely. Draws nothing where there is no choice.
#[inline]
#[must_use]
pub fn at_random(asking: u64, stream: &mut Stream) -> Option<usize> {
    match asking.count_ones() {
        0 => None,
        1 => Some(asking.trailing_zeros() as usize),
        count => {
            let skip = stream.below(u64::from(count));
            let rest = (0..skip).fold(asking, |rest, _| rest & (rest - 1));
            Some(rest.trailing_zeros() as usize)
        }
    }
}

/// Oldest first: of those who ask, the one with the smallest age stamp; the lower line of two.
#[inline]
#[must_use]
pub fn oldest(asking: &[u64], stamp: impl Fn(usize) -> u64) -> Option<usize> {
    crate::iter_ones(asking).min_by_key(|&line| (stamp(line), line))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_oldest_link_is_the_one_chosen_least_recently(
            lines in 1usize..=64, asks in prop::collection::vec(any::<u64>(), 1..200),
        ) {
            let mut arbiter = OldestLink::new(lines);
            // The oracle: lines in order, the chosen goes to the back.
            let mut order: Vec<usize> = (0..lines).collect();
            for ask in asks {
                let ask = ask & (u64::MAX >> (64 - lines));
                let expected = order.iter().copied().find(|line| ask >> line & 1 == 1);
                prop_assert_eq!(arbiter.choose(ask), expected);
                if let Some(line) = expected {
                    arbiter.chosen(line);
                    order.retain(|&other| other != line);
                    order.push(line);
                }
            }
        }

        #[test]
        fn the_oldest_by_age_has_the_smallest_stamp(stamps in prop::collection::vec(0u64..9, 1..64)) {
            let asking = [u64::MAX >> (64 - stamps.len())];
            let expected = (0..stamps.len()).min_by_key(|&line| (stamps[line], line));
            prop_assert_eq!(oldest(&asking, |line| stamps[line]), expected);
        }
    }

    #[test]
    fn round_robin_serves_all_who_ask_equally_when_it_moves_beyond_each() {
        let mut arbiter = RoundRobin::default();
        let asking = [0b1011_0010u64];
        let mut served = [0; 8];
        for _ in 0..400 {
            let line = arbiter.choose(&asking).unwrap();
            arbiter.point_beyond(line, 8);
            served[line] += 1;
        }
        assert_eq!(served, [0, 100, 0, 0, 100, 100, 0, 100]);
        assert_eq!(arbiter.choose(&[0]), None);
    }

    #[test]
    fn chance_is_even() {
        let mut stream = Stream::new(1, "test/arbiter", 0);
        let mut served = [0u32; 64];
        const DRAWS: u32 = 40_000;
        let asking = 1 | 1 << 7 | 1 << 40 | 1 << 63;
        for _ in 0..DRAWS {
            served[at_random(asking, &mut stream).unwrap()] += 1;
        }
        // Binomial: four standard errors of a quarter.
        let bound = 4.0 * (f64::from(DRAWS) * 0.25 * 0.75).sqrt();
        for line in [0, 7, 40, 63] {
            assert!((f64::from(served[line]) - f64::from(DRAWS) / 4.0).abs() < bound, "{served:?}");
        }
        assert_eq!(served.iter().sum::<u32>(), DRAWS);
        let before = stream.clone();
        assert_eq!((at_random(0, &mut stream), at_random(8, &mut stream)), (None, Some(3)));
        assert_eq!(stream, before, "no draw without a choice");
    }
}
