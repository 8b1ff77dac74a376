//! How much the control processor is given to do (M403): a token bucket, in whole numbers.

use kernel::{Span, Time};

/// Punts a second (our choice, M403).
pub const PUNTS_PER_SECOND: u64 = 1_000;
/// Punts at once, when there were none for a while (our choice).
pub const PUNTS_AT_ONCE: u64 = 16;

/// Lets through so many a second, and so many at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Police {
    /// From one to the next.
    gap: Span,
    /// When all that is spent would be earned again.
    even: Time,
    /// How far ahead of now that may be.
    ahead: Span,
}

impl Default for Police {
    fn default() -> Self {
        Self::new(PUNTS_PER_SECOND, PUNTS_AT_ONCE)
    }
}

impl Police {
    /// One that has spent nothing.
    ///
    /// # Panics
    /// If it were to let through none a second, or none at once.
    #[must_use]
    pub fn new(a_second: u64, at_once: u64) -> Self {
        assert!(a_second > 0 && at_once > 0, "{a_second} a second, {at_once} at once");
        let gap = Span::from_ps((1_000_000_000_000 / a_second).max(1));
        let ahead = Span::from_ps(gap.as_ps() * (at_once - 1));
        Self { gap, even: Time::ZERO, ahead }
    }

    /// Whether one more is let through at `now`, which does not go back.
    pub fn takes(&mut self, now: Time) -> bool {
        if self.even > now + self.ahead {
            return false;
        }
        self.even = self.even.max(now) + self.gap;
        true
    }
}
