//! Branchless selection: a list that keeps some of what it is offered, and a choice of two.

/// A list with room for a stated number of items.
///
/// Where a hot loop does something for some of its items, as good as at random, a branch is
/// mispredicted every other time, and that costs as much as a dozen instructions. Offering each
/// item and going through those kept costs a store.
#[derive(Clone, Debug)]
pub struct Sieve<T> {
    /// One more than there is room for: an item that is not kept is stored all the same.
    items: Vec<T>,
    kept: usize,
}

impl<T: Copy + Default> Sieve<T> {
    /// A list with room for `capacity` items.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { items: vec![T::default(); capacity + 1], kept: 0 }
    }

    /// Forgets all items and makes room for `capacity`.
    pub fn reset(&mut self, capacity: usize) {
        self.kept = 0;
        if self.items.len() <= capacity {
            self.items.resize(capacity + 1, T::default());
        }
    }

    /// Forgets all items.
    #[inline]
    pub fn clear(&mut self) {
        self.kept = 0;
    }

    /// Adds an item, if it is to be kept.
    ///
    /// # Panics
    /// If more are kept than there is room for.
    #[inline]
    pub fn offer(&mut self, item: T, keep: bool) {
        self.items[self.kept] = item;
        self.kept += usize::from(keep);
    }

    /// Forgets all items and goes through others, each with whether it is to be kept.
    ///
    /// # Panics
    /// If more are kept than there is room for.
    #[inline]
    pub fn refill(&mut self, offers: impl Iterator<Item = (T, bool)>) {
        // Counted apart from `self`, so that the count stays in a register.
        let (items, mut kept) = (&mut self.items[..], 0);
        for (item, keep) in offers {
            items[kept] = item;
            kept += usize::from(keep);
        }
        self.kept = kept;
    }

    /// The items kept, in the order in which they were offered.
    #[inline]
    #[must_use]
    pub fn kept(&self) -> &[T] {
        &self.items[..self.kept]
    }
}

/// `yes` if `condition` holds, else `no`: never a branch, where the compiler might think one cheaper
/// because it cannot know that it would be mispredicted.
#[inline]
#[must_use]
pub fn select<T: Copy>(condition: bool, yes: T, no: T) -> T {
    [no, yes][usize::from(condition)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_kept_in_order_up_to_the_last_there_is_room_for() {
        let mut sieve = Sieve::new(5);
        (0..10).for_each(|number| sieve.offer(number, number % 2 == 1));
        assert_eq!(sieve.kept(), [1, 3, 5, 7, 9]);
        sieve.offer(11, false);
        assert_eq!(sieve.kept().len(), 5);
        sieve.refill([(2, false), (4, true), (6, true)].into_iter());
        assert_eq!(sieve.kept(), [4, 6]);
        sieve.clear();
        assert_eq!(sieve.kept(), [0; 0]);
        sieve.reset(8);
        (0..8).for_each(|number| sieve.offer(number, true));
        assert_eq!(sieve.kept().len(), 8);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn more_than_there_is_room_for_is_a_mistake() {
        let mut sieve = Sieve::new(1);
        (0..3).for_each(|number| sieve.offer(number, true));
    }
}
