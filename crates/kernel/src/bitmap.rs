//! A dense set of small numbers: one bit each, scanned a word at a time.

/// Bits in a word.
const WORD: usize = u64::BITS as usize;

/// A fixed number of bits, all clear at first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bitmap {
    /// Bits at and beyond `len` are always clear.
    words: Box<[u64]>,
    len: usize,
}

impl Bitmap {
    /// A bitmap of `len` bits, all clear.
    #[must_use]
    pub fn new(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(WORD)].into(), len }
    }

    /// How many bits there are, set or clear.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no bit is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// How many bits are set.
    #[must_use]
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether bit `index` is set.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> bool {
        self.check(index);
        self.words[index / WORD] >> (index % WORD) & 1 == 1
    }

    /// Sets bit `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[inline]
    pub fn set(&mut self, index: usize) {
        self.check(index);
        self.words[index / WORD] |= 1 << (index % WORD);
    }

    /// Clears bit `index`.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[inline]
    pub fn clear(&mut self, index: usize) {
        self.check(index);
        self.words[index / WORD] &= !(1 << (index % WORD));
    }

    /// Sets bit `index` to `value`; gives what it was.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[inline]
    pub fn replace(&mut self, index: usize, value: bool) -> bool {
        debug_assert!(index < self.len, "bit {index} of a bitmap of {}", self.len);
        let (word, bit) = (&mut self.words[index / WORD], index % WORD);
        let was_set = *word >> bit & 1 == 1;
        *word = *word & !(1 << bit) | u64::from(value) << bit;
        was_set
    }

    #[inline]
    fn check(&self, index: usize) {
        assert!(index < self.len, "bit {index} of a bitmap of {}", self.len);
    }

    /// The first set bit at or after `from`; `from` may be past the end.
    #[inline]
    #[must_use]
    pub fn first_at_or_after(&self, from: usize) -> Option<usize> {
        let mut at = from / WORD;
        let mut word = *self.words.get(at)? & (u64::MAX << (from % WORD));
        while word == 0 {
            at += 1;
            word = *self.words.get(at)?;
        }
        Some(at * WORD + word.trailing_zeros() as usize)
    }

    /// The set bits, smallest first.
    pub fn iter_ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            // Clearing the lowest set bit steps to the next.
            std::iter::successors((word != 0).then_some(word), |&rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| at * WORD + rest.trailing_zeros() as usize)
        })
    }

    /// Sets every bit that is set in `other`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn union_with(&mut self, other: &Bitmap) {
        assert_eq!(self.len, other.len, "union of bitmaps of different lengths");
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// Clears every bit that is clear in `other`.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn intersect_with(&mut self, other: &Bitmap) {
        assert_eq!(self.len, other.len, "intersection of bitmaps of different lengths");
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine &= theirs;
        }
    }

    /// The bits as words, lowest first; bits beyond the length are clear.
    #[inline]
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn bitmap(len: usize, bits: &BTreeSet<usize>) -> Bitmap {
        let mut map = Bitmap::new(len);
        bits.iter().for_each(|&bit| map.set(bit));
        map
    }

    /// A length, and two sets of numbers below it.
    fn two_sets() -> impl Strategy<Value = (usize, BTreeSet<usize>, BTreeSet<usize>)> {
        (1usize..300).prop_flat_map(|len| {
            let set = || prop::collection::btree_set(0..len, 0..=len);
            (Just(len), set(), set())
        })
    }

    proptest! {
        #[test]
        fn behaves_as_a_set_of_numbers((len, a, b) in two_sets(), from in 0usize..400) {
            let mut map = bitmap(len, &a);
            prop_assert_eq!(map.count(), a.len());
            prop_assert_eq!(map.is_empty(), a.is_empty());
            prop_assert!(map.iter_ones().eq(a.iter().copied()));
            prop_assert_eq!(map.first_at_or_after(from), a.range(from..).next().copied());
            prop_assert!((0..len).all(|bit| map.get(bit) == a.contains(&bit)));

            let other = bitmap(len, &b);
            let mut both = map.clone();
            both.intersect_with(&other);
            prop_assert!(both.iter_ones().eq(a.intersection(&b).copied()));
            let mut either = map.clone();
            either.union_with(&other);
            prop_assert!(either.iter_ones().eq(a.union(&b).copied()));

            b.iter().for_each(|&bit| map.clear(bit));
            prop_assert!(map.iter_ones().eq(a.difference(&b).copied()));
            prop_assert_eq!(map.words().len(), len.div_ceil(64));
        }
    }

    #[test]
    fn a_bitmap_of_no_bits_has_none_set() {
        let none = Bitmap::new(0);
        assert!(none.is_empty());
        assert_eq!((none.len(), none.count(), none.first_at_or_after(0)), (0, 0, None));
    }

    #[test]
    #[should_panic(expected = "bit 70 of a bitmap of 70")]
    fn a_bit_out_of_range_is_refused_even_inside_the_last_word() {
        Bitmap::new(70).set(70);
    }

    #[test]
    #[should_panic(expected = "different lengths")]
    fn bitmaps_of_different_lengths_do_not_mix() {
        Bitmap::new(64).union_with(&Bitmap::new(65));
    }
}
