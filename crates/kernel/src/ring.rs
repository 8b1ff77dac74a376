//! A first-in first-out queue of small values that allocates only while it grows.
//!
//! `std::collections::VecDeque` is the measure: it too keeps its memory. `Ring` earns its place
//! where a model holds a queue for every pair of nodes: it is a quarter smaller (24 bytes against
//! 32), wraps with a mask instead of a branch, and costs no allocation until its first push.

/// Slots allocated by the first push: one cache line of 8-byte values (our choice).
const FIRST_CAPACITY: usize = 8;

/// A queue on a power-of-two ring. Grows, by doubling, only when full; never shrinks.
#[derive(Clone, Debug, Default)]
pub struct Ring<T> {
    slots: Box<[T]>,
    /// Index of the front; below `slots.len()`.
    head: u32,
    len: u32,
}

impl<T: Copy + Default> Ring<T> {
    /// An empty ring that has allocated nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { slots: Box::default(), head: 0, len: 0 }
    }

    /// An empty ring with room for `count` values.
    ///
    /// # Panics
    /// If that is more than 2³¹.
    #[must_use]
    pub fn with_capacity(count: usize) -> Self {
        let mut ring = Self::new();
        if count > 0 {
            ring.resize(count.next_power_of_two());
        }
        ring
    }

    /// How many values wait.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether none waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many values fit before the ring grows.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Where the value `index` places behind the front lies. The ring is not unallocated.
    #[inline]
    fn slot(&self, index: usize) -> usize {
        (self.head as usize + index) & (self.slots.len() - 1)
    }

    /// Appends `value`.
    ///
    /// # Panics
    /// If 2³¹ values wait already.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len() == self.slots.len() {
            self.resize((self.slots.len() * 2).max(FIRST_CAPACITY));
        }
        let slot = self.slot(self.len());
        self.slots[slot] = value;
        self.len += 1;
    }

    /// Takes the front.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        let value = self.slots[self.head as usize];
        self.head = self.slot(1) as u32;
        self.len -= 1;
        Some(value)
    }

    /// Moves the first `count` values to the back, in order.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn rotate_left(&mut self, count: usize) {
        assert!(count <= self.len(), "{count} of {} values to move", self.len);
        for _ in 0..count {
            let slot = self.slot(self.len());
            self.slots[slot] = self.slots[self.head as usize];
            self.head = self.slot(1) as u32;
        }
    }

    /// The value that [`Ring::pop`] would take.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The value `index` places behind the front.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&T> {
        (index < self.len()).then(|| &self.slots[self.slot(index)])
    }

    /// The value `index` places behind the front, to change.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.len() {
            return None;
        }
        let slot = self.slot(index);
        Some(&mut self.slots[slot])
    }

    /// The values from front to back.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        (0..self.len()).map(|index| &self.slots[self.slot(index)])
    }

    /// Drops every value; keeps the memory.
    pub fn clear(&mut self) {
        self.head = 0;
        self.len = 0;
    }

    /// Moves the values, in order, to the start of `capacity` slots.
    #[cold]
    fn resize(&mut self, capacity: usize) {
        assert!(capacity <= 1 << 31, "a ring of {capacity} slots");
        let mut slots = vec![T::default(); capacity].into_boxed_slice();
        for (slot, value) in slots.iter_mut().zip(self.iter()) {
            *slot = *value;
        }
        self.slots = slots;
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_the_standard_queue(
            capacity in 0usize..20,
            steps in prop::collection::vec(prop::option::weighted(0.6, any::<u32>()), 0..400),
        ) {
            let (mut ring, mut model) = (Ring::with_capacity(capacity), VecDeque::new());
            for step in steps {
                match step {
                    Some(value) if value % 8 == 0 => {
                        let count = value as usize / 8 % (ring.len() + 1);
                        ring.rotate_left(count);
                        model.rotate_left(count);
                    }
                    Some(value) => { ring.push(value); model.push_back(value); }
                    None => prop_assert_eq!(ring.pop(), model.pop_front()),
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.is_empty(), model.is_empty());
                prop_assert_eq!(ring.front(), model.front());
                prop_assert!(ring.iter().eq(model.iter()));
                for index in 0..=model.len() {
                    prop_assert_eq!(ring.get(index), model.get(index));
                    prop_assert_eq!(ring.get_mut(index), model.get_mut(index));
                }
            }
            ring.clear();
            prop_assert_eq!((ring.pop(), ring.len()), (None, 0));
        }
    }

    #[test]
    fn is_smaller_than_the_standard_queue() {
        assert_eq!(size_of::<Ring<u64>>(), 24);
        assert!(size_of::<Ring<u64>>() < size_of::<VecDeque<u64>>());
    }

    #[test]
    fn allocates_nothing_when_empty_and_stays_put_in_the_steady_state() {
        let mut ring = Ring::new();
        assert_eq!(ring.capacity(), 0);
        (0..8u32).for_each(|value| ring.push(value));
        let before = (ring.capacity(), ring.slots.as_ptr());
        for value in 0..1000 {
            ring.pop();
            ring.push(value);
        }
        assert_eq!((ring.capacity(), ring.slots.as_ptr()), before);
    }
}
