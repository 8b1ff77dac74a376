//! Which packets of a flow have arrived.

use kernel::Bytes;
use packets::Framing;

use crate::segments::Segments;

/// A closed flow gives memory back beyond so many words (our choice: 4,096 packets of disorder).
const WORDS_KEPT: usize = 64;

/// The packets that have arrived: all up to the first that is missing, and some beyond it.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// First packet that is missing.
    next: u64,
    /// How many have arrived.
    count: u64,
    /// Those beyond `next`.
    ahead: Segments,
}

impl Arrivals {
    /// Forgets everything, for another flow.
    pub fn clear(&mut self) {
        let mut ahead = std::mem::take(&mut self.ahead);
        *self = Self::default();
        if ahead.capacity() <= WORDS_KEPT {
            ahead.clear();
            self.ahead = ahead;
        }
    }

    /// The first packet that is missing.
    #[inline]
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// How many different packets have arrived.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether `packet` has arrived.
    #[inline]
    #[must_use]
    pub fn contains(&self, packet: u64) -> bool {
        packet < self.next || self.ahead.contains(packet)
    }

    /// Of the 64 packets from `from` on, which is not before [`Arrivals::next`], those that have arrived, as bits.
    #[must_use]
    pub fn bits(&self, from: u64) -> u64 {
        self.ahead.bits(from)
    }

    /// Words of memory that it has, of 64 packets each.
    #[cfg(test)]
    pub(crate) fn words(&self) -> usize {
        self.ahead.capacity()
    }

    /// Notes an arrival; false if the packet was there already.
    #[inline]
    pub fn insert(&mut self, packet: u64) -> bool {
        if self.contains(packet) {
            return false;
        }
        self.count += 1;
        if packet > self.next {
            self.ahead.insert(packet, packet + 1, |_, _| ());
            return true;
        }
        self.next += 1;
        if !self.ahead.is_empty() {
            self.next = self.ahead.first_absent(self.next);
            self.ahead.retire(self.next);
        }
        true
    }

    /// The end of the first gap: the first packet after [`Arrivals::next`] that has arrived, or
    /// `limit`.
    #[must_use]
    pub fn gap_end(&self, limit: u64) -> u64 {
        self.ahead.first_present(self.next).map_or(limit, |packet| packet.min(limit))
    }

    /// The first gap at or after `from` and below `limit`: its first packet and its end.
    #[must_use]
    pub fn gap_after(&self, from: u64, limit: u64) -> Option<(u64, u64)> {
        let first = self.ahead.first_absent(from.max(self.next));
        let end = self.ahead.first_present(first).map_or(limit, |packet| packet.min(limit));
        (first < limit).then_some((first, end))
    }
}

/// Application bytes in the packets `from..to` of a flow of `size`.
#[must_use]
pub fn bytes_between(framing: Framing, size: Bytes, from: u64, to: u64) -> Bytes {
    let before = |packet: u64| (packet * u64::from(framing.payload)).min(size.get());
    Bytes::new(before(to) - before(from))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_set(packets in prop::collection::vec(0u64..300, 0..600)) {
            let mut arrivals = Arrivals::default();
            let mut model = BTreeSet::new();
            for packet in packets {
                prop_assert_eq!(arrivals.insert(packet), model.insert(packet));
                prop_assert_eq!(arrivals.count(), model.len() as u64);
                let next = (0..).find(|packet| !model.contains(packet)).unwrap();
                prop_assert_eq!(arrivals.next(), next);
                let after = (next..250).find(|packet| model.contains(packet)).unwrap_or(250.max(next));
                prop_assert_eq!(arrivals.gap_end(250.max(next)), after);
                let first = (packet..).find(|packet| !model.contains(packet)).unwrap();
                let end = (first..250).find(|packet| model.contains(packet)).unwrap_or(250);
                let gap = (first < 250).then_some((first, end));
                prop_assert_eq!(arrivals.gap_after(packet, 250), gap);
                for packet in 0..310 {
                    prop_assert_eq!(arrivals.contains(packet), model.contains(&packet));
                }
            }
        }
    }

    #[test]
    fn memory_of_great_disorder_is_given_back() {
        let mut arrivals = Arrivals::default();
        arrivals.insert(60_000);
        arrivals.insert(1);
        arrivals.clear();
        assert_eq!((arrivals.ahead.capacity(), arrivals.count(), arrivals.next()), (0, 0, 0));
    }

    #[test]
    fn the_last_packet_may_be_short() {
        let framing = Framing { payload: 1_000, header: 40 };
        let size = Bytes::new(2_500);
        assert_eq!(bytes_between(framing, size, 0, 3), size);
        assert_eq!(bytes_between(framing, size, 2, 3), Bytes::new(500));
        assert_eq!(bytes_between(framing, size, 1, 2), Bytes::new(1_000));
    }
}
