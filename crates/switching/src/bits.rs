//! Rows of bits on machine words: what arbiters look at.

/// Bits in a word.
const WORD: usize = u64::BITS as usize;

/// The first set bit at or after `from`, going round to the start: a round-robin choice. `from`
/// lies inside the words.
#[inline]
#[must_use]
pub fn next_in_turn(words: &[u64], from: usize) -> Option<usize> {
    next_in_turn_by(words.len(), from, |at| words[at])
}

/// The first bit of a word that is not zero, at or after `from`, going round its 64 bits.
#[inline]
#[must_use]
pub fn first_in_turn(word: u64, from: usize) -> usize {
    debug_assert_ne!(word, 0, "nobody to choose from");
    (word.rotate_right(from as u32).trailing_zeros() as usize + from) % WORD
}

/// [`next_in_turn`] of words that are worked out only if the choice gets to them.
#[inline]
#[must_use]
pub fn next_in_turn_by(count: usize, from: usize, word: impl Fn(usize) -> u64) -> Option<usize> {
    let (first, bit) = (from / WORD, from % WORD);
    let start = word(first);
    if count == 1 {
        // Turned so that `from` comes first: no branch to mispredict.
        return (start != 0).then(|| first_in_turn(start, bit));
    }
    let ahead = start & (u64::MAX << bit);
    if ahead != 0 {
        return Some(first * WORD + ahead.trailing_zeros() as usize);
    }
    for at in (first + 1..count).chain(0..first) {
        let there = word(at);
        if there != 0 {
            return Some(at * WORD + there.trailing_zeros() as usize);
        }
    }
    // What lies in the first word before `from`.
    (start != 0).then(|| first * WORD + start.trailing_zeros() as usize)
}

/// The set bits of a row, lowest first.
#[inline]
pub fn iter_ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| ones(word).map(move |bit| at * WORD + bit))
}

/// The set bits of a word, lowest first.
#[inline]
pub fn ones(word: u64) -> impl Iterator<Item = usize> {
    let mut rest = word;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let bit = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(bit)
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
