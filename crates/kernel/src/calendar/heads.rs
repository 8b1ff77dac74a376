//! Which of a few queues has the next event.

use super::{Key, NEVER, Numbered, QUEUES, time_of};
use crate::Time;

/// Queues that are looked at as a rule (our choice: enough for a network of one rate).
pub(super) const FEW: usize = 8;
/// … where more are in use, and this is enough (our choice).
const SOME: usize = 12;

/// The front of each queue, keys in two arrays, so that the least is found without a branch: a
/// prediction of which queue is next would be wrong as often as not. The events are here too, so that
/// the next one is at hand as soon as its queue is known.
#[derive(Clone, Debug)]
pub(super) struct Heads<E> {
    times: [u64; QUEUES],
    numbers: [u32; QUEUES],
    /// `None`: the queue is empty, or knows no more than that its front is not before the key.
    events: [Option<E>; QUEUES],
    /// Queues from here on are empty.
    used: usize,
}

impl<E: Numbered> Heads<E> {
    /// All queues empty.
    pub(super) fn new() -> Self {
        let never = time_of(NEVER).as_ps();
        Self {
            times: [never; QUEUES],
            numbers: [u32::MAX; QUEUES],
            events: [None; QUEUES],
            used: 1,
        }
    }

    /// Sets the front of a queue.
    #[inline]
    pub(super) fn set(&mut self, queue: usize, key: Key, event: Option<E>) {
        self.times[queue] = time_of(key).as_ps();
        if E::IS_NUMBERED {
            self.numbers[queue] = key as u32;
        }
        self.events[queue] = event;
    }

    /// The event at the front of a queue, if it is known.
    #[inline]
    pub(super) fn event(&self, queue: usize) -> Option<E> {
        self.events[queue]
    }

    /// From now on this queue may be filled.
    pub(super) fn count_in(&mut self, queue: usize) {
        self.used = self.used.max(queue + 1);
    }

    /// Queues from `used` on are empty and stay so.
    pub(super) fn set_used(&mut self, used: usize) {
        self.used = used;
    }

    /// Whether more than a few queues are looked at.
    #[inline]
    pub(super) fn is_wide(&self) -> bool {
        self.used > FEW
    }

    /// Exchanges two queues.
    pub(super) fn swap(&mut self, one: usize, other: usize) {
        self.times.swap(one, other);
        self.numbers.swap(one, other);
        self.events.swap(one, other);
    }

    /// The time of the front of a queue, or the latest of all.
    #[inline]
    pub(super) fn time(&self, queue: usize) -> Time {
        Time::from_ps(self.times[queue])
    }

    /// Queues that may be filled are below it.
    #[inline]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// The queue whose front is least, that front's time, and whether the front of another is at the same.
    #[inline]
    pub(super) fn first(&self) -> (usize, Time, bool) {
        let (least, mask) = if self.used <= FEW {
            self.scan::<FEW>()
        } else if self.used <= SOME {
            self.scan::<SOME>()
        } else {
            self.scan::<QUEUES>()
        };
        let mut first = mask.trailing_zeros() as usize;
        let is_tied = mask & (mask - 1) != 0;
        if E::IS_NUMBERED && is_tied {
            first = self.least_numbered(mask);
        }
        (first, Time::from_ps(least), is_tied)
    }

    /// The least time of the first `COUNT` queues, and a bit for each that has it.
    #[inline]
    fn scan<const COUNT: usize>(&self) -> (u64, u32) {
        let times: [u64; COUNT] = std::array::from_fn(|queue| self.times[queue]);
        // By halves: in a row, each comparison would wait for the one before.
        let mut least = times;
        let mut width = COUNT;
        while width > 1 {
            let half = width.div_ceil(2);
            for queue in half..width {
                least[queue - half] = least[queue - half].min(least[queue]);
            }
            width = half;
        }
        let bits = (0..).zip(times).map(|(queue, time)| u32::from(time == least[0]) << queue);
        (least[0], bits.fold(0, |mask, bit| mask | bit))
    }

    /// Of the queues of `mask`, which are more than one, that whose front was pushed first.
    fn least_numbered(&self, mut mask: u32) -> usize {
        let mut first = mask.trailing_zeros() as usize;
        while mask != 0 {
            let queue = mask.trailing_zeros() as usize;
            if self.numbers[queue] < self.numbers[first] {
                first = queue;
            }
            mask &= mask - 1;
        }
        first
    }
}
