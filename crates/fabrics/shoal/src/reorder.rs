//! Cells back in order.
//!
//! Models: Shoal §3.5 (claims S29, S30): the cells of a flow take different paths and overtake each
//! other; the destination puts them in order by their sequence numbers and throws away second
//! copies (Appendix D makes some). §7.3 sees at most 200 KB out of order.
//!
//! There is a window for each ordered pair of nodes, and each arriving cell goes through one, so
//! [`ReorderWindow`] is small and allocates only when cells are more than 128 ahead; in the steady
//! state it is a few bit operations. Where real frames ride along, [`ReorderBuffer`] keeps them.

use std::collections::VecDeque;

/// Cells that a window covers without the heap.
const INLINE_CELLS: u32 = 128;

/// How far ahead of the next cell in order one may be: two megabytes of bitmap. **Our choice**, far
/// above the 3572 cells of the paper's 200 KB; beyond it a sequence number is taken for a mistake.
pub const WINDOW_MAX: u32 = 1 << 24;

/// What came of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inserted {
    /// How many cells it brought into order, itself included; 0: it waits, or is a duplicate.
    pub advanced: u32,
    /// Whether it had come before.
    pub duplicate: bool,
}

/// Remembers which cells of a flow have come ahead of their turn.
///
/// A bitmap in a ring: the bit of sequence number `s` is bit `s` modulo the capacity, a power of
/// two. Sequence numbers are full 32-bit numbers that wrap ([`crate::wire::Serial::extend`] makes
/// them from those on the wire).
#[derive(Clone, Debug)]
pub struct ReorderWindow {
    /// The next sequence number in order. Its bit is never set.
    next: u32,
    /// How many bits are set.
    held: u32,
    words: Words,
}

/// The bitmap.
#[derive(Clone, Debug)]
enum Words {
    Inline([u64; (INLINE_CELLS / 64) as usize]),
    Heap(Box<[u64]>),
}

impl Default for ReorderWindow {
    fn default() -> Self {
        Self::new()
    }
}

impl ReorderWindow {
    /// A window that expects cell 0.
    #[must_use]
    pub const fn new() -> Self {
        Self::starting_at(0)
    }

    /// A window that expects cell `first`.
    #[must_use]
    pub const fn starting_at(first: u32) -> Self {
        Self { next: first, held: 0, words: Words::Inline([0; (INLINE_CELLS / 64) as usize]) }
    }

    /// The sequence number that comes next in order.
    #[must_use]
    pub const fn next_expected(&self) -> u32 {
        self.next
    }

    /// How many cells wait for one before them.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Whether a cell has come and waits for one before it.
    #[must_use]
    pub fn holds(&self, sequence: u32) -> bool {
        let ahead = sequence.wrapping_sub(self.next) as usize;
        let words = self.words();
        ahead < words.len() * 64
            && words[(sequence >> 6) as usize & (words.len() - 1)] >> (sequence & 63) & 1 == 1
    }

    /// Notes the arrival of a cell.
    ///
    /// # Panics
    /// If it is [`WINDOW_MAX`] or more ahead of the next in order.
    #[inline]
    pub fn insert(&mut self, sequence: u32) -> Inserted {
        let ahead = sequence.wrapping_sub(self.next);
        if ahead == 0 {
            self.next = self.next.wrapping_add(1);
            let advanced = if self.held == 0 { 1 } else { 1 + self.advance() };
            return Inserted { advanced, duplicate: false };
        }
        if ahead > i32::MAX as u32 {
            return Inserted { advanced: 0, duplicate: true };
        }
        Inserted { advanced: 0, duplicate: !self.hold(sequence, ahead) }
    }

    /// Frees what a long disorder took, if no cell waits.
    pub fn shrink(&mut self) {
        if self.held == 0 {
            *self = Self::starting_at(self.next);
        }
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.words {
            Words::Inline(_) => 0,
            Words::Heap(words) => size_of_val(&**words),
        }
    }

    /// Sets the bit of a cell that is `ahead`; says whether it was clear.
    fn hold(&mut self, sequence: u32, ahead: u32) -> bool {
        if ahead as usize >= self.words().len() * 64 {
            self.grow(ahead);
        }
        let words = self.words_mut();
        let word = &mut words[(sequence >> 6) as usize & (words.len() - 1)];
        let bit = 1 << (sequence & 63);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.held += u32::from(is_new);
        is_new
    }

    /// Takes the run of cells that are now in order out of the window; returns its length.
    fn advance(&mut self) -> u32 {
        let (mut next, held) = (self.next, self.held);
        let words = self.words_mut();
        let mut left = held;
        while left > 0 {
            let word = &mut words[(next >> 6) as usize & (words.len() - 1)];
            let offset = next & 63;
            let run = (*word >> offset).trailing_ones();
            if run == 0 {
                break;
            }
            *word &= !(u64::MAX >> (64 - run) << offset);
            next = next.wrapping_add(run);
            left -= run;
            if offset + run < 64 {
                break;
            }
        }
        (self.next, self.held) = (next, left);
        held - left
    }

    /// Makes room for a cell that is `ahead`.
    #[cold]
    fn grow(&mut self, ahead: u32) {
        let next = self.next;
        assert!(ahead < WINDOW_MAX, "a cell is {ahead} ahead of cell {next} in order");
        let (old, capacity) = (self.words(), (ahead + 1).next_power_of_two());
        let mut new = vec![0; capacity as usize / 64].into_boxed_slice();
        // A wrapped number keeps its place: both capacities divide the space of numbers. The word
        // of `next` holds the start of the window and, if the window is not aligned, its end too.
        let (old_words, new_words) = (old.len() as u32, new.len() as u32);
        for step in 0..=old_words {
            let index = (next >> 6).wrapping_add(step);
            let below_next = (1_u64 << (next & 63)) - 1;
            let part = match step {
                0 => !below_next,
                _ if step == old_words => below_next,
                _ => u64::MAX,
            };
            new[(index & (new_words - 1)) as usize] |=
                old[(index & (old_words - 1)) as usize] & part;
        }
        self.words = Words::Heap(new);
    }

    fn words(&self) -> &[u64] {
        match &self.words {
            Words::Inline(words) => words,
            Words::Heap(words) => words,
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match &mut self.words {
            Words::Inline(words) => words,
            Words::Heap(words) => words,
        }
    }
}

/// Keeps the cells themselves until it is their turn.
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T> {
    next: u32,
    held: u32,
    /// The cell at the front is the next in order and has not come.
    waiting: VecDeque<Option<T>>,
}

impl<T> Default for ReorderBuffer<T> {
    fn default() -> Self {
        Self::starting_at(0)
    }
}

impl<T> ReorderBuffer<T> {
    /// A buffer that expects cell `first`.
    #[must_use]
    pub const fn starting_at(first: u32) -> Self {
        Self { next: first, held: 0, waiting: VecDeque::new() }
    }

    /// The sequence number that comes next in order.
    #[must_use]
    pub const fn next_expected(&self) -> u32 {
        self.next
    }

    /// How many cells wait for one before them.
    #[must_use]
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Takes a cell and hands every cell whose turn has come to `deliver`, in order. A duplicate is
    /// dropped.
    ///
    /// # Panics
    /// If it is [`WINDOW_MAX`] or more ahead of the next in order.
    pub fn insert(&mut self, sequence: u32, cell: T, mut deliver: impl FnMut(T)) -> Inserted {
        let ahead = sequence.wrapping_sub(self.next);
        if ahead > i32::MAX as u32 {
            return Inserted { advanced: 0, duplicate: true };
        }
        assert!(ahead < WINDOW_MAX, "a cell is {ahead} ahead of cell {} in order", self.next);
        let index = ahead as usize;
        if self.waiting.len() <= index {
            self.waiting.resize_with(index + 1, || None);
        }
        if self.waiting[index].is_some() {
            return Inserted { advanced: 0, duplicate: true };
        }
        self.waiting[index] = Some(cell);
        self.held += 1;
        let mut advanced = 0;
        while let Some(Some(_)) = self.waiting.front() {
            self.waiting.pop_front().flatten().into_iter().for_each(&mut deliver);
            advanced += 1;
        }
        self.next = self.next.wrapping_add(advanced);
        self.held -= advanced;
        Inserted { advanced, duplicate: false }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// The same in the plainest way: a set of what waits, in 64-bit numbers that never wrap.
    struct Naive {
        next: u64,
        waiting: BTreeSet<u64>,
    }

    impl Naive {
        fn insert(&mut self, sequence: u64) -> Inserted {
            if sequence < self.next || !self.waiting.insert(sequence) {
                return Inserted { advanced: 0, duplicate: true };
            }
            let before = self.next;
            while self.waiting.remove(&self.next) {
                self.next += 1;
            }
            Inserted { advanced: (self.next - before) as u32, duplicate: false }
        }
    }

    /// Runs the cells `first + offset` through the fast, the keeping and the naive structure.
    #[track_caller]
    fn check(first: u64, offsets: impl IntoIterator<Item = u64>) {
        let mut naive = Naive { next: first, waiting: BTreeSet::new() };
        let mut window = ReorderWindow::starting_at(first as u32);
        let mut buffer = ReorderBuffer::starting_at(first as u32);
        let mut delivered = first;
        for offset in offsets {
            let sequence = first + offset;
            let expected = naive.insert(sequence);
            assert_eq!(window.insert(sequence as u32), expected, "cell {offset} from {first}");
            let deliver = |cell: u64| {
                assert_eq!(cell, delivered);
                delivered += 1;
            };
            assert_eq!(buffer.insert(sequence as u32, sequence, deliver), expected);
            let state = (naive.next as u32, naive.waiting.len() as u32);
            assert_eq!((window.next_expected(), window.held()), state, "cell {offset}");
            assert_eq!((buffer.next_expected(), buffer.held()), state, "cell {offset}");
        }
    }

    #[test]
    fn s30_a_window_is_small() {
        assert!(size_of::<ReorderWindow>() <= 32);
    }

    #[test]
    fn s29_every_order_of_six_cells() {
        fn orders(left: &mut Vec<u64>, order: &mut Vec<u64>) {
            if left.is_empty() {
                check(u64::from(u32::MAX) - 2, order.iter().copied());
            }
            for index in 0..left.len() {
                let cell = left.remove(index);
                order.push(cell);
                orders(left, order);
                order.pop();
                left.insert(index, cell);
            }
        }
        orders(&mut (0..6).collect(), &mut Vec::new());
    }

    #[test]
    fn s29_reversed_order_over_every_capacity() {
        for count in [1, 2, 63, 64, 65, 127, 128, 129, 1000, 5000] {
            for first in [0, 1, 63, 100, (1 << 32) - 70] {
                check(first, (0..count).rev());
            }
        }
    }

    #[test]
    fn s30_order_and_little_disorder_need_no_heap() {
        let mut window = ReorderWindow::new();
        for block in 0..1000 {
            for cell in (0..128).rev() {
                let _ = window.insert(block * 128 + cell);
            }
        }
        assert_eq!((window.next_expected(), window.held(), window.heap_bytes()), (128_000, 0, 0));
    }

    #[test]
    fn s30_the_heap_is_taken_once_and_given_back() {
        let mut window = ReorderWindow::new();
        // The paper's 200 KB out of order: 3572 cells of 56 bytes.
        for sequence in 1..3573 {
            let _ = window.insert(sequence);
        }
        assert_eq!(window.heap_bytes(), 512);
        window.shrink();
        assert_eq!(window.held(), 3572);
        assert_eq!(window.insert(0), Inserted { advanced: 3573, duplicate: false });
        window.shrink();
        assert_eq!((window.heap_bytes(), window.next_expected()), (0, 3573));
    }

    #[test]
    #[should_panic(expected = "a cell is 16777216 ahead of cell 5 in order")]
    fn s30_a_cell_far_outside_the_window_is_a_mistake() {
        let _ = ReorderWindow::starting_at(5).insert(5 + WINDOW_MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn s29_any_arrivals_match_the_naive_window(
            first in (1_u64 << 32) - 3000..(1 << 32) + 10,
            offsets in proptest::collection::vec(0_u64..2000, 0..400),
        ) {
            check(first, offsets);
        }

        #[test]
        fn s29_delayed_and_repeated_cells_match_the_naive_window(
            first in 0_u64..200,
            delays in proptest::collection::vec((0_u64..300, 0_u8..10), 1..2000),
        ) {
            let mut arrivals = Vec::new();
            for (cell, &(delay, copies)) in delays.iter().enumerate() {
                let cell = cell as u64;
                arrivals.push((cell + delay, cell));
                arrivals.extend((copies == 0).then_some((cell + 2 * delay, cell)));
            }
            arrivals.sort();
            check(first, arrivals.into_iter().map(|(_, cell)| cell));
        }
    }
}
