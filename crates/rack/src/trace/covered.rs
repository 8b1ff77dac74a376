//! Which bytes of a flow have been seen.

use std::collections::BTreeMap;

/// Ranges of bytes that do not touch, by where they begin.
#[derive(Clone, Debug, Default)]
pub struct Covered {
    ranges: BTreeMap<u64, u64>,
}

impl Covered {
    /// Adds `length` bytes from `offset` on: how many of them are new.
    pub fn add(&mut self, offset: u64, length: u64) -> u64 {
        let (mut from, mut to) = (offset, offset + length);
        let mut known = 0;
        // Ranges that begin before the end of the new one; those that end before its beginning stay.
        let touched: Vec<_> =
            self.ranges.range(..=to).rev().take_while(|&(_, &end)| end >= from).collect();
        let touched: Vec<_> = touched.into_iter().map(|(&start, &end)| (start, end)).collect();
        for (start, end) in touched {
            let shared = end.min(offset + length).saturating_sub(start.max(offset));
            known += shared;
            from = from.min(start);
            to = to.max(end);
            self.ranges.remove(&start);
        }
        self.ranges.insert(from, to);
        length - known
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// As a list of bytes does.
        #[test]
        fn it_counts_each_byte_once(adds in prop::collection::vec((0u64..60, 0u64..20), 0..40)) {
            let (mut covered, mut seen) = (Covered::default(), [false; 80]);
            for (offset, length) in adds {
                let bytes = &mut seen[offset as usize..(offset + length) as usize];
                let new = bytes.iter().filter(|seen| !**seen).count() as u64;
                bytes.fill(true);
                prop_assert_eq!(covered.add(offset, length), new);
            }
        }
    }
}
