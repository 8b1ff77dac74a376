//! A set of segment numbers above a rising left edge: one bit each.
//!
//! A byte stream's sender keeps in one what was selectively acknowledged, every receiver what arrived
//! ahead of its turn. Empty, as it is without loss and disorder, it is never touched.
//!
//! Words near the edge lie in a row; those far beyond it, which a forged number may name, one by one: memory grows
//! with what is in the set, whatever the numbers are.

use std::collections::BTreeMap;

use kernel::Ring;

/// Segments in a word.
const WORD: u64 = 64;
/// Words that lie in a row (our choice: 8 KiB, for 65,536 segments of disorder).
const NEAR: u64 = 1 << 10;

/// The set. Numbers below the left edge are not in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    /// Bits of the segments from `first * 64` on.
    words: Ring<u64>,
    /// The number of the first word.
    first: u64,
    /// By number: words behind those, none of them zero.
    far: BTreeMap<u64, u64>,
    /// How many numbers are in the set.
    count: u64,
}

/// Bits `from..to` of a word.
#[inline]
fn mask(from: u64, to: u64) -> u64 {
    debug_assert!(from < to && to <= WORD, "bits {from} to {to} of a word");
    (u64::MAX >> (WORD - (to - from))) << from
}

/// The parts of `from..to` that lie in one word each: the word's number and its bits.
fn parts(from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    let words = if from < to { from / WORD..(to - 1) / WORD + 1 } else { 0..0 };
    words.map(move |word| {
        let start = word * WORD;
        (word, mask(from.max(start) - start, to.min(start + WORD) - start))
    })
}

impl Segments {
    /// How many numbers are in the set.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Empties the set; keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.far.clear();
        self.first = 0;
        self.count = 0;
    }

    /// Words that it has memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.words.capacity() + self.far.len()
    }

    fn word(&self, number: u64) -> u64 {
        let Some(index) = number.checked_sub(self.first) else { return 0 };
        match self.words.get(index as usize) {
            Some(&word) => word,
            None if self.far.is_empty() => 0,
            None => self.far.get(&number).copied().unwrap_or(0),
        }
    }

    /// The bits of the 64 segments from `from` on.
    pub(crate) fn bits(&self, from: u64) -> u64 {
        let (word, bit) = (from / WORD, from % WORD);
        let rest = if bit == 0 { 0 } else { self.word(word + 1) << (WORD - bit) };
        self.word(word) >> bit | rest
    }

    #[inline]
    pub(crate) fn contains(&self, segment: u64) -> bool {
        self.count > 0 && self.word(segment / WORD) >> (segment % WORD) & 1 == 1
    }

    /// Adds `from..to`, none below the left edge; `visit` is given the bits that are new, word by
    /// word, with the number of the word's first segment.
    pub(crate) fn insert(&mut self, from: u64, to: u64, mut visit: impl FnMut(u64, u64)) {
        if from >= to {
            return;
        }
        if self.words.is_empty() {
            let next = self.far.first_key_value().map_or(u64::MAX, |(&number, _)| number);
            self.first = next.min(from / WORD);
        }
        if self.first > from / WORD {
            self.grow_front(from / WORD);
        }
        for (number, bits) in parts(from, to) {
            let index = number - self.first;
            let word = match index < NEAR || index < self.words.len() as u64 {
                true => self.near(index as usize),
                false => self.far.entry(number).or_default(),
            };
            let new = bits & !*word;
            *word |= new;
            self.count += u64::from(new.count_ones());
            if new != 0 {
                visit(number * WORD, new);
            }
        }
    }

    /// The word so many after the first: one of those in a row, as it is from now on.
    fn near(&mut self, index: usize) -> &mut u64 {
        while self.words.len() <= index {
            let number = self.first + self.words.len() as u64;
            let far = if self.far.is_empty() { None } else { self.far.remove(&number) };
            self.words.push(far.unwrap_or(0));
        }
        self.words.get_mut(index).expect("the words reach that far")
    }

    /// Makes the word `number` the first: only when a lower segment comes after a higher one and
    /// the edge still lies below.
    #[cold]
    fn grow_front(&mut self, number: u64) {
        let held = self.words.len();
        if self.first - number > NEAR {
            while let Some(word) = self.words.pop() {
                if word != 0 {
                    self.far.insert(self.first, word);
                }
                self.first += 1;
            }
            self.first = number;
            return;
        }
        for _ in number..self.first {
            self.words.push(0);
        }
        for _ in 0..held {
            let word = self.words.pop().expect("it holds so many");
            self.words.push(word);
        }
        self.first = number;
    }

    /// How many of `from..to` are not in the set.
    pub(crate) fn absent(&self, from: u64, to: u64) -> u64 {
        let span = to.saturating_sub(from);
        if self.count == 0 {
            return span;
        }
        span - parts(from, to)
            .map(|(word, bits)| u64::from((self.word(word) & bits).count_ones()))
            .sum::<u64>()
    }

    /// The first number at or above `from` that is not in the set.
    pub(crate) fn first_absent(&self, from: u64) -> u64 {
        let mut at = from;
        loop {
            let ones = u64::from((self.word(at / WORD) >> (at % WORD)).trailing_ones());
            at += ones;
            if ones == 0 || !at.is_multiple_of(WORD) {
                return at;
            }
        }
    }

    /// The first number at or above `from` that is in the set.
    pub(crate) fn first_present(&self, from: u64) -> Option<u64> {
        let first = |number: u64, word: u64| {
            let start = number * WORD;
            let skip = from.saturating_sub(start);
            let word = word >> skip << skip;
            (word != 0).then(|| start + u64::from(word.trailing_zeros()))
        };
        let words = (from / WORD).max(self.first)..self.first + self.words.len() as u64;
        let near = words.into_iter().find_map(|number| first(number, self.word(number)));
        near.or_else(|| {
            self.far.range(from / WORD..).find_map(|(&number, &word)| first(number, word))
        })
    }

    /// The start of the run of numbers in the set that ends with `segment`, which is in it.
    pub(crate) fn run_start(&self, segment: u64) -> u64 {
        debug_assert!(self.contains(segment), "segment {segment} is not held");
        let mut end = segment + 1;
        loop {
            let last = end - 1;
            let word = self.word(last / WORD) << (WORD - 1 - last % WORD);
            let ones = u64::from(word.leading_ones());
            end -= ones;
            if end == 0 || ones == 0 || !end.is_multiple_of(WORD) {
                return end;
            }
        }
    }

    /// Raises the left edge: forgets all numbers below `edge`.
    pub(crate) fn retire(&mut self, edge: u64) {
        if self.count == 0 {
            return;
        }
        while self.first < edge / WORD {
            let Some(word) = self.words.pop() else { break };
            self.count -= u64::from(word.count_ones());
            self.first += 1;
        }
        let below = edge % WORD;
        if self.first == edge / WORD
            && below > 0
            && let Some(word) = self.words.get_mut(0)
        {
            let gone = *word & mask(0, below);
            *word &= !gone;
            self.count -= u64::from(gone.count_ones());
        }
        if !self.far.is_empty() {
            self.retire_far(edge);
        }
        if self.count == 0 {
            self.words.clear();
        }
    }

    /// The same of the words that do not lie in a row.
    #[cold]
    fn retire_far(&mut self, edge: u64) {
        let kept = self.far.split_off(&(edge / WORD));
        for word in std::mem::replace(&mut self.far, kept).values() {
            self.count -= u64::from(word.count_ones());
        }
        let below = edge % WORD;
        if let Some(word) = self.far.get_mut(&(edge / WORD)).filter(|_| below > 0) {
            let gone = *word & mask(0, below);
            self.count -= u64::from(gone.count_ones());
            *word &= !gone;
            if *word == 0 {
                self.far.remove(&(edge / WORD));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// How much further on: mostly not at all, and now and then far, or so far that no memory reaches there.
    fn far() -> impl Strategy<Value = u64> {
        let some = |from: u64, to: u64| (from..to).prop_map(|words| words * 64);
        prop_oneof![
            6 => Just(0), 1 => some(1, 3), 1 => some(NEAR - 3, NEAR + 3), 1 => some(0, 4 * NEAR),
            1 => Just(1 << 50),
        ]
    }

    proptest! {
        /// Against a set of the standard library.
        #[test]
        fn behaves_as_an_ordered_set(
            steps in prop::collection::vec((0u64..5, 0u64..300, 0u64..90, far()), 1..60),
        ) {
            let (mut found, mut model, mut edge) = (Segments::default(), BTreeSet::new(), 0);
            for (step, offset, length, far) in steps {
                let from = edge + offset + far;
                if step == 0 {
                    edge += offset / 3 + far / 2;
                    found.retire(edge);
                    model.retain(|&segment| segment >= edge);
                } else {
                    let new: BTreeSet<_> =
                        (from..from + length).filter(|&segment| model.insert(segment)).collect();
                    let mut visited = BTreeSet::new();
                    found.insert(from, from + length, |start, bits| {
                        visited.extend((0..64).filter(|bit| bits >> bit & 1 == 1).map(|b| start + b));
                    });
                    prop_assert_eq!(visited, new);
                }
                prop_assert_eq!(found.count(), model.len() as u64);
                prop_assert_eq!(found.is_empty(), model.is_empty());
                for segment in (edge..edge + 400).chain(from.max(edge)..from + 400) {
                    prop_assert_eq!(found.contains(segment), model.contains(&segment));
                }
                let bits = (0..64).map(|bit| u64::from(model.contains(&(edge + offset + bit))) << bit);
                prop_assert_eq!(found.bits(edge + offset), bits.sum::<u64>());
                let words = model.iter().map(|segment| segment / 64).collect::<BTreeSet<_>>().len();
                prop_assert!(found.capacity() <= 4 * NEAR as usize + words, "{}", found.capacity());
                let first = (from.max(edge)..).find(|segment| !model.contains(segment)).unwrap();
                prop_assert_eq!(found.first_absent(from.max(edge)), first);
                let present = model.range(from.max(edge)..).next().copied();
                prop_assert_eq!(found.first_present(from.max(edge)), present);
                let absent = (edge..edge + offset).filter(|s| !model.contains(s)).count();
                prop_assert_eq!(found.absent(edge, edge + offset), absent as u64);
                if let Some(&segment) = model.range(from..).next() {
                    let mut start = segment;
                    while start > 0 && model.contains(&(start - 1)) {
                        start -= 1;
                    }
                    prop_assert_eq!(found.run_start(segment), start);
                }
            }
        }
    }

    #[test]
    fn the_words_stay_put_while_the_edge_rises_with_what_is_held() {
        let mut held = Segments::default();
        for segment in 0..10_000 {
            held.insert(segment + 100, segment + 101, |_, _| ());
            held.retire(segment);
        }
        assert!(held.capacity() <= 8, "{} words for 100 segments", held.capacity());
    }
}
