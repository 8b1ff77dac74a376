//! A digest of events that does not depend on the order in which they are added.

/// Odd constant (the golden ratio in 64 bits).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A digest of events. Each is told with all that tells it from others, its instant among that: so equal
/// runs have equal digests however their events are divided among those who tell, and digests of parts
/// add up to that of the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest(u64);

impl Digest {
    /// An event, as two words.
    #[inline]
    pub fn note(&mut self, a: u64, b: u64) {
        self.0 = self.0.wrapping_add(mix(mix(a) ^ b));
    }

    /// Adds the events of another digest.
    #[inline]
    pub fn add(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }

    /// As a number.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// Spreads a word over 64 bits, one to one.
#[inline]
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(FACTOR);
    (word ^ word >> 29).wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn of(events: &[(u64, u64)]) -> Digest {
        let mut digest = Digest::default();
        events.iter().for_each(|&(a, b)| digest.note(a, b));
        digest
    }

    #[test]
    fn tells_sets_of_events_apart_and_not_their_order() {
        let events = [(1, 7), (2, 7), (1, 8), (9, 0)];
        let mut backwards = events;
        backwards.reverse();
        assert_eq!(of(&events), of(&backwards));
        let mut parts = of(&events[..1]);
        parts.add(of(&events[1..]));
        assert_eq!(parts, of(&events));
        // Any set of up to three of 60 events close to each other has a digest of its own.
        let all: Vec<_> = (0..60).map(|n| (1_000 + n / 6, n % 6)).collect();
        let mut seen = BTreeSet::new();
        for a in 0..all.len() {
            for b in a..all.len() {
                for c in b..all.len() {
                    assert!(seen.insert(of(&[all[a], all[b], all[c]]).get()), "{a} {b} {c}");
                }
            }
        }
    }
}
