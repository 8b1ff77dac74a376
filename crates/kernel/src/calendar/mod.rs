//! The events to come, in order of time; at one instant in order of insertion ([`Calendar`]), or as the
//! caller sorts them ([`Agenda`]).
//!
//! Most events of a network come a delay after the present that many others have: the time of a full
//! packet on a line, that and the wire behind it. Events of one delay are pushed in the order in which
//! they come, so they wait in a plain queue of their own, a *lane*; a delay that is met twice gets one
//! ([`Delays`]). All others wait in a timing wheel ([`Wheel`]). The next event is the least of the
//! lanes' heads and the wheel's: a push and a pop are a few instructions, with no branch to
//! mispredict, however many events wait; and nothing is allocated once lanes and wheel have grown to the
//! most that ever waited at a time. Events are numbered as they are pushed, or are sorted where there are
//! several at an instant, so that where an event waits makes no difference to its turn.

mod agenda;
mod delays;
mod heads;
mod lane;
mod wheel;

use crate::Time;
pub use agenda::Agenda;
use delays::{Delays, is_long_ago};
use heads::{FEW, Heads};
use lane::Lane;
use wheel::Wheel;

/// Most lanes: two rates of links with packets of two sizes, through a switch, to a host and for the
/// line itself (our choice).
const LANES: usize = 15;
/// The wheel and the lanes: a power of two.
const QUEUES: usize = 1 + LANES;
/// The wheel's number among the queues.
const WHEEL: usize = 0;

/// An event that waits.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: Time,
    event: E,
}

/// An event that tells which push it was, if anybody wants to know.
trait Numbered: Copy {
    /// Whether anybody does.
    const IS_NUMBERED: bool;

    /// Which push it was: tells events of one instant apart.
    fn number(&self) -> u32;
}

/// An event of a [`Calendar`].
#[derive(Clone, Copy, Debug)]
struct InOrder<E> {
    number: u32,
    event: E,
}

impl<E: Copy> Numbered for InOrder<E> {
    const IS_NUMBERED: bool = true;

    #[inline]
    fn number(&self) -> u32 {
        self.number
    }
}

/// What events are ordered by: time, then number. One integer, which is compared without a branch.
type Key = u128;

/// After every event.
const NEVER: Key = Key::MAX;

#[inline]
fn key_of(time: Time, number: u32) -> Key {
    Key::from(time.as_ps()) << 64 | Key::from(number)
}

#[inline]
fn time_of(key: Key) -> Time {
    Time::from_ps((key >> 64) as u64)
}

impl<E: Numbered> Entry<E> {
    #[inline]
    fn key(&self) -> Key {
        key_of(self.time, self.event.number())
    }
}

/// The events to come.
///
/// ```
/// use kernel::{Calendar, Time};
/// let at = Time::from_ps;
/// let mut calendar = Calendar::new();
/// calendar.push(at(700), "second");
/// calendar.push(at(700), "third");
/// calendar.push(at(5), "first");
/// let order: Vec<_> = std::iter::from_fn(|| calendar.pop()).collect();
/// assert_eq!(order, [(at(5), "first"), (at(700), "second"), (at(700), "third")]);
/// ```
#[derive(Clone, Debug)]
pub struct Calendar<E> {
    queues: Queues<InOrder<E>>,
    /// The number of the next event pushed.
    number: u32,
}

impl<E: Copy> Default for Calendar<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> Calendar<E> {
    /// An empty calendar at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self { queues: Queues::new(), number: 0 }
    }

    /// How many events wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether no event waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event at `time`, behind those already there for the same instant.
    ///
    /// # Panics
    /// In debug builds if `time` lies before the last event popped.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        if self.number == u32::MAX {
            self.renumber();
        }
        let number = self.number;
        self.number += 1;
        self.queues.push(time, InOrder { number, event });
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.pop_before(Time::NEVER)
    }

    /// Takes the next event if it lies before `limit`. Events may still be added from the last one
    /// popped on, whatever the limit was.
    #[inline]
    pub fn pop_before(&mut self, limit: Time) -> Option<(Time, E)> {
        let (time, InOrder { event, .. }) = self.queues.pop_before(limit)?;
        Some((time, event))
    }

    /// The instant of the next event.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        self.queues.next_time()
    }

    /// Numbers all events anew, in the same order: their numbers are used up.
    #[cold]
    fn renumber(&mut self) {
        let queues = &mut self.queues;
        let lanes = queues.lanes.iter_mut().flat_map(Lane::events);
        let events = lanes.chain(queues.wheel.events());
        let mut numbers: Vec<&mut u32> = events.map(|event| &mut event.number).collect();
        numbers.sort_unstable_by_key(|number| **number);
        self.number = u32::try_from(numbers.len()).expect("fewer than 2^32 events");
        (0..).zip(numbers).for_each(|(place, number)| *number = place);
        queues.wheel.update_head();
        queues.update_wheel();
        for (queue, lane) in queues.lanes.iter().enumerate().skip(1) {
            queues.heads.set(queue, lane.head(), lane.get(0));
        }
    }
}

/// The wheel and the lanes.
#[derive(Clone, Debug)]
struct Queues<E> {
    /// By queue: its front. Queue 0 is the wheel, the others are lanes.
    heads: Heads<E>,
    /// By queue; that in the wheel's place stays empty.
    lanes: [Lane<E>; QUEUES],
    delays: Delays,
    wheel: Wheel<E>,
    /// The queue of the last event popped.
    source: usize,
    /// Pushes so far, modulo 2^32.
    pushes: u32,
    /// The instant of the last event popped.
    now: Time,
}

impl<E: Numbered> Queues<E> {
    fn new() -> Self {
        Self {
            heads: Heads::new(),
            lanes: std::array::from_fn(|_| Lane::new()),
            delays: Delays::new(),
            wheel: Wheel::new(),
            source: WHEEL,
            pushes: 0,
            now: Time::ZERO,
        }
    }

    fn len(&self) -> usize {
        self.wheel.len() + self.lanes.iter().map(Lane::len).sum::<usize>()
    }

    /// Adds an event.
    #[inline]
    fn push(&mut self, time: Time, event: E) {
        debug_assert!(time >= self.now, "an event at {time}, but {} has passed", self.now);
        self.pushes = self.pushes.wrapping_add(1);
        let delay = time.as_ps().wrapping_sub(self.now.as_ps());
        match self.delays.lane(delay) {
            Some(lane) => self.append(lane, time, event),
            None => self.push_seldom(delay, time, event),
        }
    }

    /// Adds an event to a lane. In parts: an entry put together on the way would be read before it is
    /// all written.
    #[inline]
    fn append(&mut self, lane: usize, time: Time, event: E) {
        if self.lanes[lane].is_empty() {
            self.heads.set(lane, key_of(time, event.number()), Some(event));
        }
        self.lanes[lane].push(time, event, self.pushes);
    }

    /// Adds an event whose delay has no lane.
    #[inline(never)]
    fn push_seldom(&mut self, delay: u64, time: Time, event: E) {
        let number = self.pushes;
        if self.heads.is_wide() && self.delays.begins_window(number) {
            self.tidy(number);
        }
        let is_free = |lane: usize| self.lanes[lane].is_empty();
        match self.delays.learn(delay, number, is_free) {
            Some(lane) => {
                self.heads.count_in(lane);
                self.append(lane, time, event);
            }
            None => {
                self.wheel.push(self.now, Entry { time, event });
                self.update_wheel();
            }
        }
    }

    /// Lets the delays that are in use have the first lanes, and those out of use none: every pop looks
    /// at all lanes up to the last that may be filled.
    fn tidy(&mut self, number: u32) {
        for lane in 1..QUEUES {
            let is_idle = is_long_ago(self.lanes[lane].last_push(), number);
            if is_idle && self.lanes[lane].is_empty() {
                self.delays.release(lane);
            }
        }
        for lane in FEW..QUEUES {
            let mut lower = 1..FEW;
            let Some(free) = lower.find(|&lower| !self.delays.is_owned(lower)) else { break };
            if self.delays.is_owned(lane) {
                self.delays.transfer(lane, free);
                self.lanes.swap(lane, free);
                self.heads.swap(lane, free);
                if self.source == lane {
                    self.source = free;
                }
            }
        }
        let last = (1..QUEUES).rev().find(|&lane| self.delays.is_owned(lane));
        self.heads.set_used(1 + last.unwrap_or(WHEEL));
    }

    /// Takes the next event if it lies before `limit`.
    #[inline]
    fn pop_before(&mut self, limit: Time) -> Option<(Time, E)> {
        self.pop_and_look(limit).map(|(time, event, _)| (time, event))
    }

    /// As [`Queues::pop_before`]; says, too, whether another queue has an event at that instant.
    #[inline(always)]
    fn pop_and_look(&mut self, limit: Time) -> Option<(Time, E, bool)> {
        loop {
            let (queue, time, is_tied) = self.heads.first();
            if time >= limit {
                return None;
            }
            match self.heads.event(queue) {
                Some(event) => {
                    self.source = queue;
                    self.now = time;
                    self.drop_front(queue);
                    return Some((time, event, is_tied));
                }
                None => self.look_into_wheel(),
            }
        }
    }

    /// Drops the front of a queue.
    #[inline(always)]
    fn drop_front(&mut self, queue: usize) {
        if queue == WHEEL {
            self.wheel.pop();
            return self.update_wheel();
        }
        let lane = &mut self.lanes[queue];
        lane.pop();
        self.heads.set(queue, lane.head(), lane.get(0));
    }

    /// The wheel may have the next event, but did not know it yet.
    #[inline(never)]
    fn look_into_wheel(&mut self) {
        self.wheel.open_next();
        self.update_wheel();
    }

    fn update_wheel(&mut self) {
        self.heads.set(WHEEL, self.wheel.head(), self.wheel.front());
    }

    /// The instant of the next event.
    fn next_time(&self) -> Option<Time> {
        let lanes = self.lanes.iter().filter(|lane| !lane.is_empty());
        lanes.map(|lane| time_of(lane.head())).chain(self.wheel.next_time()).min()
    }
}

#[cfg(test)]
mod tests;
