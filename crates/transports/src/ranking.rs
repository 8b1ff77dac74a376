//! Flows in order of what they have left, shortest first: one list for each host.
//!
//! A sorted array, the shortest at its end, where it is cheap to change: with shortest-first sending
//! the flow that sends is, as a rule, the shortest, and stays it. Joining costs a move of what is
//! shorter; lists of hundreds fit a few cache lines.

use packets::FlowKey;

/// A flow in a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    /// Bytes left.
    pub(crate) remaining: u64,
    /// Among equals the older one goes first: a number that rises with each start.
    pub(crate) order: u64,
    /// Which.
    pub(crate) flow: FlowKey,
}

/// The lists.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    lists: Vec<Vec<Entry>>,
}

impl Ranking {
    /// `lists` empty lists.
    pub(crate) fn new(lists: usize) -> Self {
        Self { lists: vec![Vec::new(); lists] }
    }

    /// How many flows are in a list.
    #[inline]
    pub(crate) fn len(&self, list: usize) -> usize {
        self.lists[list].len()
    }

    /// The flow at `rank`; the shortest has rank 0.
    #[inline]
    pub(crate) fn at(&self, list: usize, rank: usize) -> Option<Entry> {
        let list = &self.lists[list];
        list.len().checked_sub(rank + 1).map(|place| list[place])
    }

    /// Where an entry is, or would be.
    #[inline]
    fn place(&self, list: usize, entry: Entry) -> usize {
        let list = &self.lists[list];
        if list.last() == Some(&entry) {
            return list.len() - 1;
        }
        list.partition_point(|other| *other > entry)
    }

    /// Adds a flow.
    pub(crate) fn insert(&mut self, list: usize, entry: Entry) {
        let place = self.place(list, entry);
        self.lists[list].insert(place, entry);
    }

    /// Takes a flow out; the entry is as it was inserted or last changed.
    pub(crate) fn remove(&mut self, list: usize, entry: Entry) {
        let place = self.place(list, entry);
        let found = self.lists[list].remove(place);
        assert_eq!(found, entry, "a flow is not where its length says");
    }

    /// A flow has less left than `entry` says: gives its new entry.
    #[inline]
    pub(crate) fn shorten(&mut self, list: usize, entry: Entry, remaining: u64) -> Entry {
        debug_assert!(remaining <= entry.remaining, "{entry:?} grows to {remaining}");
        let new = Entry { remaining, ..entry };
        let place = self.place(list, entry);
        let list = &mut self.lists[list];
        assert_eq!(list[place], entry, "a flow is not where its length says");
        list[place] = new;
        let shorter = list[place + 1..].partition_point(|other| *other > new);
        list[place..=place + shorter].rotate_left(1);
        new
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn stays_in_order(steps in prop::collection::vec((0u8..3, 0usize..12, 0u64..40), 0..200)) {
            let mut ranking = Ranking::new(1);
            let mut model: Vec<Entry> = Vec::new();
            for (number, (step, which, value)) in steps.into_iter().enumerate() {
                match step {
                    0 => {
                        let order = number as u64;
                        let flow = FlowKey::new(number as u32);
                        let entry = Entry { remaining: value, order, flow };
                        ranking.insert(0, entry);
                        model.push(entry);
                    }
                    1 if which < model.len() => ranking.remove(0, model.remove(which)),
                    2 if which < model.len() => {
                        let less = model[which].remaining.saturating_sub(value);
                        model[which] = ranking.shorten(0, model[which], less);
                        prop_assert_eq!(model[which].remaining, less);
                    }
                    _ => {}
                }
                model.sort();
                let found: Vec<_> = (0..ranking.len(0)).map(|at| ranking.at(0, at).unwrap()).collect();
                prop_assert_eq!(&found, &model);
                prop_assert_eq!(ranking.at(0, model.len()), None);
            }
        }
    }
}
