//! What is due in which of the next cycles: a ring of lists.
//!
//! Simpler than the kernel's calendar, for a chip whose every delay is a bounded number of cycles.

/// Items by the cycle in which they are due. Within a cycle, in the order in which they were put.
#[derive(Clone, Debug)]
pub struct Wheel<T> {
    lists: Box<[Vec<T>]>,
    /// The cycle whose list is taken next.
    now: u64,
    /// Items in all lists.
    count: usize,
}

impl<T> Wheel<T> {
    /// A wheel for items due at most `horizon` cycles ahead.
    #[must_use]
    pub fn new(horizon: u64) -> Self {
        let slots = (horizon + 1).next_power_of_two() as usize;
        Self { lists: (0..slots).map(|_| Vec::new()).collect(), now: 0, count: 0 }
    }

    /// The farthest cycle ahead for which it has room.
    #[must_use]
    pub fn horizon(&self) -> u64 {
        self.lists.len() as u64 - 1
    }

    /// Notes an item for `cycle`, which is not past and not beyond the horizon.
    #[inline]
    pub fn put(&mut self, cycle: u64, item: T) {
        debug_assert!(
            cycle >= self.now && cycle - self.now <= self.horizon(),
            "cycle {cycle} seen from {}, horizon {}",
            self.now,
            self.horizon()
        );
        let slot = cycle as usize & (self.lists.len() - 1);
        self.lists[slot].push(item);
        self.count += 1;
    }

    /// Whether no item waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Goes on to `cycle` at once; no item waits.
    pub fn skip_to(&mut self, cycle: u64) {
        debug_assert!(self.is_empty() && cycle >= self.now, "{} items wait", self.count);
        self.now = cycle;
    }

    /// Swaps the items of the present cycle into `due`, which is cleared first, and turns to the
    /// next.
    #[inline]
    pub fn turn(&mut self, due: &mut Vec<T>) {
        due.clear();
        let slot = self.now as usize & (self.lists.len() - 1);
        std::mem::swap(due, &mut self.lists[slot]);
        self.count -= due.len();
        self.now += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_in_their_cycle_and_in_order() {
        let (mut wheel, mut due) = (Wheel::new(5), vec![]);
        assert_eq!(wheel.horizon(), 7);
        for round in 0..20u64 {
            wheel.put(round + 7, (round, 'a'));
            wheel.put(round, (round, 'b'));
            wheel.turn(&mut due);
            let late = round.checked_sub(7).map(|past| (past, 'a'));
            let expected: Vec<_> = late.into_iter().chain([(round, 'b')]).collect();
            assert_eq!(due, expected, "cycle {round}");
        }
        assert!(!wheel.is_empty());
        (0..7).for_each(|_| wheel.turn(&mut due));
        assert!(wheel.is_empty());
        wheel.skip_to(1_000);
        wheel.put(1_001, (0, 'c'));
        wheel.turn(&mut due);
        assert!(due.is_empty());
        wheel.turn(&mut due);
        assert_eq!(due, [(0, 'c')]);
    }
}
