//! Events that the caller sorts where there are several at one instant.

use super::{Numbered, Queues};
use crate::Time;

/// An event that knows no number.
#[derive(Clone, Copy, Debug)]
struct Bare<E>(E);

impl<E: Copy> Numbered for Bare<E> {
    const IS_NUMBERED: bool = false;

    #[inline]
    fn number(&self) -> u32 {
        0
    }
}

/// The events to come, in order of time; those of one instant in the order into which the caller brings
/// them. What is added for the instant at hand while its events are taken comes when all of them have been,
/// sorted anew. So the order does not depend on the order in which events were added.
///
/// ```
/// use kernel::{Agenda, Time};
/// let at = Time::from_ps;
/// let mut agenda = Agenda::new();
/// agenda.push(at(700), 'c');
/// agenda.push(at(700), 'b');
/// agenda.push(at(5), 'z');
/// let mut pop = || agenda.pop_before(Time::NEVER, |_, events| events.sort_unstable());
/// assert_eq!([pop(), pop()], [Some((at(5), 'z')), Some((at(700), 'b'))]);
/// agenda.push(at(700), 'a');
/// let mut pop = || agenda.pop_before(Time::NEVER, |_, events| events.sort_unstable());
/// assert_eq!([pop(), pop(), pop()], [Some((at(700), 'c')), Some((at(700), 'a')), None]);
/// ```
#[derive(Clone, Debug)]
pub struct Agenda<E> {
    queues: Queues<Bare<E>>,
    /// Events of the instant at hand, sorted; those before `taken` are gone.
    round: Vec<E>,
    taken: usize,
    /// Events of that instant that come after all of those.
    next_round: Vec<E>,
    /// How many events there are in both.
    left: usize,
}

impl<E: Copy> Default for Agenda<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> Agenda<E> {
    /// An empty one at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self { queues: Queues::new(), round: Vec::new(), taken: 0, next_round: Vec::new(), left: 0 }
    }

    /// How many events wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.len() + self.left
    }

    /// Whether no event waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event at `time`.
    ///
    /// # Panics
    /// In debug builds if `time` lies before the last event taken.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        if time == self.queues.now {
            self.next_round.push(event);
            self.left += 1;
            return;
        }
        self.queues.push(time, Bare(event));
    }

    /// Takes the next event if it lies before `limit`. Events may still be added from the last one
    /// taken on, whatever the limit was. `sort` puts several events of one instant, which it is told, in
    /// order.
    #[inline]
    pub fn pop_before(
        &mut self,
        limit: Time,
        sort: impl FnOnce(Time, &mut [E]),
    ) -> Option<(Time, E)> {
        if self.left > 0 {
            return self.pop_of_instant(limit, sort);
        }
        let (time, Bare(event), is_tied) = self.queues.pop_and_look(limit)?;
        if is_tied || self.queues.heads.time(self.queues.source) == time {
            return Some((time, self.gather(event, time, sort)));
        }
        Some((time, event))
    }

    /// Gathers the events of an instant, and takes the first.
    #[inline(never)]
    fn gather(&mut self, first: E, time: Time, sort: impl FnOnce(Time, &mut [E])) -> E {
        let Self { queues, round, .. } = self;
        round.clear();
        round.push(first);
        for queue in 0..queues.heads.used() {
            while queues.heads.time(queue) == time {
                match queues.heads.event(queue) {
                    Some(Bare(event)) => {
                        round.push(event);
                        queues.drop_front(queue);
                    }
                    None => queues.look_into_wheel(),
                }
            }
        }
        if round.len() > 1 {
            sort(time, round);
        }
        self.taken = 1;
        self.left = self.round.len() - 1;
        self.round[0]
    }

    /// Takes the next event of the instant at hand.
    #[inline(never)]
    fn pop_of_instant(
        &mut self,
        limit: Time,
        sort: impl FnOnce(Time, &mut [E]),
    ) -> Option<(Time, E)> {
        if self.queues.now >= limit {
            return None;
        }
        if self.taken >= self.round.len() {
            self.round.clear();
            self.taken = 0;
            std::mem::swap(&mut self.round, &mut self.next_round);
            if self.round.len() > 1 {
                sort(self.queues.now, &mut self.round);
            }
        }
        let event = self.round[self.taken];
        self.taken += 1;
        self.left -= 1;
        Some((self.queues.now, event))
    }

    /// The events so many places behind the last one taken, among those of the same instant or of the same
    /// delay: for fetching what they need before their turn.
    #[inline(always)]
    #[must_use]
    pub fn upcoming<const COUNT: usize>(&self, places: [usize; COUNT]) -> [Option<E>; COUNT] {
        if self.left > 0 {
            return self.upcoming_of_round(places);
        }
        let lane = &self.queues.lanes[self.queues.source];
        places.map(|place| lane.get(place).map(|Bare(event)| event))
    }

    /// As [`Agenda::upcoming`], while events of the instant at hand are left.
    #[inline(never)]
    fn upcoming_of_round<const COUNT: usize>(&self, places: [usize; COUNT]) -> [Option<E>; COUNT] {
        let lane = &self.queues.lanes[self.queues.source];
        let round = self.round.get(self.taken..).unwrap_or_default();
        places.map(|place| match round.get(place) {
            Some(&event) => Some(event),
            None => lane.get(place - round.len()).map(|Bare(event)| event),
        })
    }

    /// The instant of the next event.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        if self.left > 0 { Some(self.queues.now) } else { self.queues.next_time() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a map of instants: the events of one come in order, those added meanwhile after them.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((0u8..3, 0u64..40, any::<u16>()), 1..600)) {
            let mut agenda = Agenda::new();
            let mut map: BTreeMap<u64, Vec<u16>> = BTreeMap::new();
            let (mut now, mut round) = (0, Vec::new());
            for (step, delay, event) in steps.into_iter().chain([(0, 0, 0); 700]) {
                if step > 0 {
                    // Few delays, some of them zero, so that instants are met again and again.
                    let at = now + [0, 7, 7, 100, 2_500][delay as usize % 5] * delay;
                    agenda.push(Time::from_ps(at), event);
                    map.entry(at).or_default().push(event);
                    prop_assert_eq!(agenda.len(), map.values().map(Vec::len).sum::<usize>() + round.len());
                    continue;
                }
                let limit = if delay == 1 { now } else { u64::MAX };
                if round.is_empty()
                    && let Some((&at, _)) = map.first_key_value()
                    && at < limit
                {
                    round = map.remove(&at).unwrap();
                    round.sort_unstable_by(|a, b| b.cmp(a));
                    now = at;
                }
                let next = map.first_key_value().map(|(&at, _)| at);
                let next = if round.is_empty() { next } else { Some(now) };
                let expected = if now < limit { round.pop() } else { None };
                let found = agenda.pop_before(Time::from_ps(limit), |_, events| events.sort_unstable());
                prop_assert_eq!(found, expected.map(|event| (Time::from_ps(now), event)));
                if expected.is_none() {
                    prop_assert_eq!(agenda.next_time(), next.map(Time::from_ps));
                }
            }
            prop_assert!(agenda.is_empty());
        }
    }
}
