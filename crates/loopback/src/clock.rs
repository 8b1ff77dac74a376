//! The time that all nodes go by.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kernel::{Span, Time};

/// The machine's clock, slowed, held up by nodes that lag, and leaping where nothing is to be done.
#[derive(Debug)]
pub(crate) struct Clock {
    now: AtomicU64,
}

/// Moves the clock; there is one.
#[derive(Debug)]
pub(crate) struct Hand<'a> {
    clock: &'a Clock,
    slowdown: u64,
    ahead: Span,
    /// When the machine's clock was read last, and the time then.
    last: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { now: AtomicU64::new(0) }
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_ps(self.now.load(Ordering::Acquire))
    }

    pub(crate) fn hand(&self, slowdown: u64, ahead: Span) -> Hand<'_> {
        Hand { clock: self, slowdown: slowdown.max(1), ahead, last: Instant::now() }
    }
}

impl Hand<'_> {
    /// Moves the clock on, where `first` is the first thing that any node has to do.
    pub(crate) fn advance(&mut self, first: Time) -> Time {
        let read = Instant::now();
        let passed = read.duration_since(self.last).as_nanos() * 1_000 / u128::from(self.slowdown);
        let now = self.clock.now().as_ps();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        if passed > 0 {
            self.last = read;
        }
        // Messages that are sent then arrive later.
        let most = first.as_ps().saturating_add(self.ahead.as_ps().saturating_sub(1));
        let now = now.max(now.saturating_add(passed).clamp(first.as_ps(), most));
        self.clock.now.store(now, Ordering::Release);
        Time::from_ps(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaps_to_the_next_thing_waits_for_the_slowest_and_never_goes_back() {
        let clock = Clock::new();
        let mut hand = clock.hand(1, Span::from_ps(5));
        let time = |ps| Time::from_ps(ps);
        assert_eq!(
            hand.advance(time(1_000_000_000_000)),
            time(1_000_000_000_000 + 4).min(clock.now())
        );
        let before = clock.now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        // Somebody still has something to do then: no further.
        assert_eq!(hand.advance(time(1_000_000_000_000)), time(1_000_000_000_004));
        assert!(clock.now() >= before);
        assert_eq!(hand.advance(time(7)), time(1_000_000_000_004));
    }
}
