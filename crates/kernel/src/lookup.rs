//! A table of numbers, found by a key of three words.
//!
//! Open addressing with linear probing in one flat array: a hit is one cache line as a rule, and that
//! line can be [prefetched](Lookup::prefetch). What it holds has no order that anyone could see: there
//! is no way to go through it.

use crate::prefetch;

/// The value of an empty slot; never stored.
const EMPTY: u32 = u32::MAX;
/// Slots of the smallest table.
const SLOTS_MIN: usize = 16;
/// Odd constants of the hash (from the golden ratio and from the square root of three).
const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbb67_ae85_84ca_a73b];

#[derive(Clone, Copy, Debug)]
struct Slot {
    key: [u32; 3],
    value: u32,
}

const FREE: Slot = Slot { key: [0; 3], value: EMPTY };

/// Numbers below `u32::MAX` by key.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// A power of two of them, at most half of them used; or none.
    slots: Vec<Slot>,
    used: usize,
}

impl Lookup {
    /// How many keys have a number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether no key has a number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    #[inline]
    fn home(&self, [a, b, c]: [u32; 3]) -> usize {
        let low = (u64::from(a) << 32 | u64::from(b)).wrapping_mul(FACTORS[0]);
        let hash = (low ^ low >> 29 ^ u64::from(c)).wrapping_mul(FACTORS[1]);
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    /// The slot of `key`, or the free slot where it belongs. There is a free slot.
    #[inline]
    fn find(&self, key: [u32; 3]) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(key);
        loop {
            let slot = &self.slots[at];
            if slot.value == EMPTY || slot.key == key {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of `key`.
    #[inline]
    #[must_use]
    pub fn get(&self, key: [u32; 3]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let value = self.slots[self.find(key)].value;
        (value != EMPTY).then_some(value)
    }

    /// Asks for the memory in which `key` will be looked for.
    #[inline]
    pub fn prefetch(&self, key: [u32; 3]) {
        if !self.slots.is_empty() {
            prefetch(&self.slots, self.home(key));
        }
    }

    /// Gives `key` the number `value`, in place of any other.
    ///
    /// # Panics
    /// If `value` is `u32::MAX`.
    pub fn insert(&mut self, key: [u32; 3], value: u32) {
        assert_ne!(value, EMPTY, "{key:?} cannot have the number that stands for none");
        if 2 * (self.used + 1) > self.slots.len() {
            self.grow();
        }
        let at = self.find(key);
        self.used += usize::from(self.slots[at].value == EMPTY);
        self.slots[at] = Slot { key, value };
    }

    /// Takes the number of `key` out.
    pub fn remove(&mut self, key: [u32; 3]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut hole = self.find(key);
        let value = self.slots[hole].value;
        if value == EMPTY {
            return None;
        }
        self.used -= 1;
        // Those behind it move up that would not be found beyond the hole.
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.value == EMPTY {
                break;
            }
            let from_home = at.wrapping_sub(self.home(slot.key)) & mask;
            if from_home >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole] = FREE;
        Some(value)
    }

    fn grow(&mut self) {
        let wider = (2 * self.slots.len()).max(SLOTS_MIN);
        let old = std::mem::replace(&mut self.slots, vec![FREE; wider]);
        for slot in old.into_iter().filter(|slot| slot.value != EMPTY) {
            let at = self.find(slot.key);
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_map(
            steps in prop::collection::vec((0u8..3, 0u32..6, 0u32..6, 0u32..6, 0u32..1000), 0..600),
        ) {
            let (mut table, mut map) = (Lookup::default(), BTreeMap::new());
            for (step, a, b, c, value) in steps {
                let key = [a, b, c];
                match step {
                    0 => prop_assert_eq!(table.remove(key), map.remove(&key)),
                    _ => {
                        table.insert(key, value);
                        map.insert(key, value);
                    }
                }
                prop_assert_eq!(table.len(), map.len());
                prop_assert_eq!(table.is_empty(), map.is_empty());
            }
            for key in (0..216).map(|n| [n / 36, n / 6 % 6, n % 6]) {
                prop_assert_eq!(table.get(key), map.get(&key).copied());
            }
        }
    }

    #[test]
    fn dense_keys_spread() {
        let mut table = Lookup::default();
        for (number, key) in (0..64u32 * 64 * 4).map(|n| (n, [n / 256, n / 4 % 64, n % 4])) {
            table.insert(key, number);
        }
        let probes = |slot: &Slot| {
            let at = table.find(slot.key);
            at.wrapping_sub(table.home(slot.key)) & (table.slots.len() - 1)
        };
        let filled = table.slots.iter().filter(|slot| slot.value != EMPTY);
        let (count, sum) =
            filled.fold((0, 0), |(count, sum), slot| (count + 1, sum + probes(slot)));
        // Linear probing at half load takes half a step more than one, on average (Knuth, vol. 3, 6.4).
        let load = count as f64 / table.slots.len() as f64;
        let expected = 0.5 * (1.0 / (1.0 - load) - 1.0);
        assert!(
            (sum as f64 / count as f64) < expected + 0.1,
            "{sum} steps for {count}: {expected}"
        );
    }
}
