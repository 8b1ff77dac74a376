//! A slab: values at places that are used again once they are free.

use std::ops::{Deref, DerefMut};

/// Values in one array, each at a place of its own until it is released; the place released last is taken
/// first. Read and written as the slice of all places, the released ones included.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Puts a value in; gives its place.
    ///
    /// # Panics
    /// With more than 2³² values at a time.
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = value;
            return place;
        }
        self.places.push(value);
        u32::try_from(self.places.len() - 1).expect("fewer than 2^32 values at a time")
    }

    /// Lets a place be used again. Its value stays until then.
    #[inline]
    pub fn release(&mut self, place: u32) {
        debug_assert!((place as usize) < self.places.len(), "there is no place {place}");
        self.free.push(place);
    }

    /// How many values there are.
    #[must_use]
    pub fn live(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl<T> Deref for Slab<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.places
    }
}

impl<T> DerefMut for Slab<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.places
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Stream;

    #[test]
    fn places_hold_what_a_map_holds_and_no_more_than_ever_lived() {
        let mut random = Stream::new(1, "test/slab", 0);
        let (mut slab, mut model) = (Slab::default(), BTreeMap::new());
        let mut most = 0;
        for value in 0..2_000 {
            if random.below(3) < 2 {
                let place = slab.insert(value);
                assert_eq!(model.insert(place, value), None, "place {place} is in use");
            } else if let Some((&place, _)) = model.iter().next() {
                model.remove(&place);
                slab.release(place);
            }
            most = most.max(model.len());
            assert_eq!((slab.live(), slab.len()), (model.len(), most));
            assert!(model.iter().all(|(&place, &value)| slab[place as usize] == value));
        }
    }
}
