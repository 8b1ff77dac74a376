//! Responses to one request, which land in any order (M508).

/// What has come of a segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Gather {
    /// Payloads that are there, by number: at most 64.
    seen: u64,
}

/// What a response is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// None of this segment's, or one that was there before.
    Stray,
    /// More have to come.
    New,
    /// It was the last.
    Last,
}

impl Gather {
    /// A response with `length` bytes from `offset` on, both in units of 8 bytes, of a segment of `all` bytes that come
    /// `payload` at a time.
    pub(super) fn take(&mut self, (offset, length): (u16, u8), all: u32, payload: u32) -> Part {
        let first = u32::from(offset) * 8;
        let expected = (all - first.min(all)).min(payload).div_ceil(8);
        let bit = 1u64 << (first / payload).min(63);
        let is_part = first.is_multiple_of(payload) && first < all;
        if !is_part || expected != u32::from(length) || self.seen & bit != 0 {
            return Part::Stray;
        }
        self.seen |= bit;
        let is_last = self.seen.count_ones() == all.div_ceil(payload);
        if is_last { Part::Last } else { Part::New }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set of all pieces, whatever comes in whatever order (I61).
        #[test]
        fn i61_m508_a_segment_is_there_once_each_piece_has_come(
            all in 1..=4096u32,
            is_small: bool,
            noise in prop::collection::vec((0..600u16, 0..20u8), 0..40),
            order in any::<prop::sample::Index>(),
        ) {
            let payload = if is_small { 64 } else { 128 };
            let count = all.div_ceil(payload);
            let piece = |number: u32| {
                let bytes = (all - number * payload).min(payload);
                ((number * payload / 8) as u16, bytes.div_ceil(8) as u8)
            };
            let mut missing: BTreeSet<_> = (0..count).map(piece).collect();
            let first = order.index(count as usize) as u32;
            let own = (0..count).map(|step| piece((first + step) % count));
            let mut gather = Gather::default();
            // Between own pieces others, of which some may fit.
            let mut noise = noise.into_iter();
            for one in own.flat_map(|one| [noise.next(), Some(one)]).flatten() {
                let expected = match (missing.remove(&one), missing.is_empty()) {
                    (false, _) => Part::Stray,
                    (true, false) => Part::New,
                    (true, true) => Part::Last,
                };
                prop_assert_eq!(gather.take(one, all, payload), expected);
            }
            prop_assert!(missing.is_empty());
        }
    }
}
