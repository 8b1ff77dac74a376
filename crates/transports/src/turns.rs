//! Flows that take turns: one list for each host, a flow in at most one place of one list.
//!
//! All of one kind: flows at their sources, or all at their destinations.
//!
//! A doubly linked list through flat arrays: joining, leaving and taking the next cost the same
//! however many wait, and nothing is allocated once the arrays have grown to the number of flows.

use packets::FlowKey;

/// No flow.
const NONE: u32 = u32::MAX;
/// Not in any list; as `previous` of a flow.
const ABSENT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Links {
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

/// The lists.
#[derive(Clone, Debug)]
pub struct Turns {
    links: Vec<Links>,
    lists: Vec<Ends>,
    /// A key of the kind that waits here.
    kind: FlowKey,
}

impl Turns {
    /// `lists` empty lists of flows at their sources.
    #[must_use]
    pub fn of_senders(lists: usize) -> Self {
        Self::of(lists, FlowKey::new(0))
    }

    /// `lists` empty lists of flows at their destinations.
    #[must_use]
    pub fn of_receivers(lists: usize) -> Self {
        Self::of(lists, FlowKey::receivers(0))
    }

    fn of(lists: usize, kind: FlowKey) -> Self {
        let lists = vec![Ends { first: NONE, last: NONE }; lists];
        Self { links: Vec::new(), lists, kind }
    }

    /// Whether `flow` waits in some list.
    #[inline]
    #[must_use]
    pub fn contains(&self, flow: FlowKey) -> bool {
        self.links.get(flow.index()).is_some_and(|links| links.previous != ABSENT)
    }

    /// The flow whose turn it is.
    #[inline]
    #[must_use]
    pub fn front(&self, list: usize) -> Option<FlowKey> {
        let first = self.lists[list].first;
        (first != NONE).then(|| self.kind.at(first))
    }

    /// The flow whose turn comes after that of `flow`, which waits.
    #[inline]
    #[must_use]
    pub fn after(&self, flow: FlowKey) -> Option<FlowKey> {
        let next = self.links[flow.index()].next;
        (next != NONE).then(|| self.kind.at(next))
    }

    /// Adds `flow` at the back of `list`, unless it waits already.
    #[inline]
    pub fn join(&mut self, list: usize, flow: FlowKey) {
        if self.contains(flow) {
            return;
        }
        debug_assert_eq!(flow.is_receivers(), self.kind.is_receivers(), "{flow:?} among others");
        let place = flow.index();
        if self.links.len() <= place {
            self.links.resize(place + 1, Links { previous: ABSENT, next: NONE });
        }
        let ends = &mut self.lists[list];
        self.links[place] = Links { previous: ends.last, next: NONE };
        match ends.last {
            NONE => ends.first = flow.place(),
            last => self.links[last as usize].next = flow.place(),
        }
        ends.last = flow.place();
    }

    /// Takes `flow` out of `list`, if it waits there.
    #[inline]
    pub fn leave(&mut self, list: usize, flow: FlowKey) {
        if !self.contains(flow) {
            return;
        }
        let Links { previous, next } = self.links[flow.index()];
        match previous {
            NONE => self.lists[list].first = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => self.lists[list].last = previous,
            next => self.links[next as usize].previous = previous,
        }
        self.links[flow.index()].previous = ABSENT;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against one queue for each list, searched from end to end.
        #[test]
        fn lists_behave_as_queues(steps in prop::collection::vec((0u8..3, 0usize..3, 0u32..6), 0..200)) {
            let mut turns = Turns::of_senders(3);
            let mut model = vec![VecDeque::new(); 3];
            for (step, list, flow) in steps {
                let key = FlowKey::new(flow);
                let home = model.iter().position(|queue| queue.contains(&key));
                match step {
                    0 => {
                        turns.join(list, key);
                        if home.is_none() {
                            model[list].push_back(key);
                        }
                    }
                    1 => if let Some(home) = home {
                        turns.leave(home, key);
                        model[home].retain(|&other| other != key);
                    },
                    _ => if let Some(front) = turns.front(list) {
                        turns.leave(list, front);
                        prop_assert_eq!(model[list].pop_front(), Some(front));
                    },
                }
                for (list, queue) in model.iter().enumerate() {
                    let mut found = Vec::new();
                    let mut next = turns.front(list);
                    while let Some(flow) = next {
                        found.push(flow);
                        next = turns.after(flow);
                    }
                    prop_assert_eq!(&found, &Vec::from(queue.clone()));
                }
            }
        }
    }
}
