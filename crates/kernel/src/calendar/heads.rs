//! Which of a few queues has the next event.

use super::{Key, NEVER, time_of};
use crate::Time;

/// Queues that are looked at as a rule (our choice: enough for a network of one rate).
const FEW: usize = 8;

/// The key of the front of each queue, in two arrays, so that the least is found without a branch: a
/// guess which queue is next would be wrong as often as not.
#[derive(Clone, Debug)]
pub(super) struct Heads<const QUEUES: usize> {
    times: [u64; QUEUES],
    numbers: [u32; QUEUES],
    /// Queues from here on are empty.
    used: usize,
}

impl<const QUEUES: usize> Heads<QUEUES> {
    /// All queues empty.
    pub(super) fn new() -> Self {
        let never = time_of(NEVER).as_ps();
        Self { times: [never; QUEUES], numbers: [u32::MAX; QUEUES], used: 1 }
    }

    /// Sets the front of a queue.
    #[inline]
    pub(super) fn set(&mut self, queue: usize, key: Key) {
        self.times[queue] = time_of(key).as_ps();
        self.numbers[queue] = key as u32;
    }

    /// From now on this queue may be filled.
    pub(super) fn count_in(&mut self, queue: usize) {
        self.used = self.used.max(queue + 1);
    }

    /// The queue whose front is least, and that front's time.
    #[inline]
    pub(super) fn first(&self) -> (usize, Time) {
        let (least, mask) =
            if self.used <= FEW { self.scan::<FEW>() } else { self.scan::<QUEUES>() };
        let mut first = mask.trailing_zeros() as usize;
        if mask & (mask - 1) != 0 {
            first = self.least_numbered(mask);
        }
        (first, Time::from_ps(least))
    }

    /// The least time of the first `COUNT` queues, and a bit for each that has it.
    #[inline]
    fn scan<const COUNT: usize>(&self) -> (u64, u32) {
        let times = &self.times[..COUNT.min(QUEUES)];
        let least = times.iter().fold(u64::MAX, |least, &time| least.min(time));
        let bits = (0..).zip(times).map(|(queue, &time)| u32::from(time == least) << queue);
        (least, bits.fold(0, |mask, bit| mask | bit))
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
