//! Rows of bits on machine words: what arbiters look at.

/// Bits in a word.
const WORD: usize = u64::BITS as usize;

/// The first set bit at or after `from`, going round to the start: a round-robin choice. `from`
/// lies inside the words.
#[inline]
#[must_use]
pub fn next_in_turn(words: &[u64], from: usize) -> Option<usize> {
    let (first, bit) = (from / WORD, from % WORD);
    let ahead = words[first] & (u64::MAX << bit);
    if ahead != 0 {
        return Some(first * WORD + ahead.trailing_zeros() as usize);
    }
    let lowest =
        |at: usize| (words[at] != 0).then(|| at * WORD + words[at].trailing_zeros() as usize);
    // The first word once more at the end: what lies in it before `from`.
    (first + 1..words.len()).chain(0..=first).find_map(lowest)
}

/// The set bits of a row, lowest first.
pub fn iter_ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let rest = |word: u64| (word != 0).then_some(word);
        std::iter::successors(rest(word), move |&word| rest(word & (word - 1)))
            .map(move |word| at * WORD + word.trailing_zeros() as usize)
    })
}

/// A table of bits: `rows` of the same number of `columns`, each row whole words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BitRows {
    words: Box<[u64]>,
    /// Words in a row.
    stride: usize,
    columns: usize,
}

impl BitRows {
    /// A table of clear bits.
    #[must_use]
    pub fn new(rows: usize, columns: usize) -> Self {
        let stride = columns.div_ceil(WORD).max(1);
        Self { words: vec![0; rows * stride].into(), stride, columns }
    }

    /// Words in a row.
    #[inline]
    #[must_use]
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// A row as words, lowest column first.
    #[inline]
    #[must_use]
    pub fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.stride..][..self.stride]
    }

    /// Whether a bit is set.
    #[inline]
    #[must_use]
    pub fn get(&self, row: usize, column: usize) -> bool {
        debug_assert!(column < self.columns, "column {column} of {}", self.columns);
        self.words[row * self.stride + column / WORD] >> (column % WORD) & 1 == 1
    }

    /// Sets a bit.
    #[inline]
    pub fn set(&mut self, row: usize, column: usize) {
        self.put(row, column, true);
    }

    /// Clears a bit.
    #[inline]
    pub fn clear(&mut self, row: usize, column: usize) {
        self.put(row, column, false);
    }

    /// Gives a bit this value.
    #[inline]
    pub fn put(&mut self, row: usize, column: usize, value: bool) {
        debug_assert!(column < self.columns, "column {column} of {}", self.columns);
        let (word, bit) = (&mut self.words[row * self.stride + column / WORD], column % WORD);
        *word = *word & !(1 << bit) | u64::from(value) << bit;
    }

    /// Sets every bit of a row.
    pub fn fill(&mut self, row: usize) {
        (0..self.columns).for_each(|column| self.set(row, column));
    }

    /// Clears every bit of a row.
    #[inline]
    pub fn clear_row(&mut self, row: usize) {
        self.words[row * self.stride..][..self.stride].fill(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_next_in_turn_is_the_nearest_going_round(
            columns in 1usize..300, picks in prop::collection::vec(any::<usize>(), 0..20),
            from in any::<usize>(),
        ) {
            let mut rows = BitRows::new(2, columns);
            let picks: Vec<_> = picks.iter().map(|pick| pick % columns).collect();
            picks.iter().for_each(|&pick| rows.set(1, pick));
            let from = from % columns;
            let nearest = picks.iter().copied().min_by_key(|pick| (pick + columns - from) % columns);
            prop_assert_eq!(next_in_turn(rows.row(1), from), nearest);
            let mut sorted = picks.clone();
            sorted.sort_unstable();
            sorted.dedup();
            prop_assert!(iter_ones(rows.row(1)).eq(sorted.iter().copied()));
            prop_assert!((0..columns).all(|column| rows.get(1, column) == picks.contains(&column)));
            prop_assert!(rows.row(0).iter().all(|&word| word == 0));
        }
    }
}
