//! Hosts that sleep when nobody asks for their memory.
//!
//! Models: Aquila §5.2: at low load servers may dwell in low-power states, so that more load makes reads faster. **Our
//! choice** (U40): a host whose memory nobody has asked for in some time sleeps, and takes some time to wake; what comes
//! meanwhile waits with the first. What IP brings does not count.

use kernel::Stream;

use crate::config::{Law, Power};

/// Whether a host sleeps.
#[derive(Clone, Debug)]
pub(super) struct Sleeper {
    /// When it was last asked, or will be awake. Unit: ps.
    last: u64,
    stream: Stream,
}

impl Sleeper {
    /// A host that begins to be idle at time zero.
    pub(super) fn new(seed: u64, host: u64) -> Self {
        Self { last: 0, stream: Stream::new(seed, "aquila/sleep", host) }
    }

    /// Memory is asked for at `at`: when the host is awake. Unit: ps.
    pub(super) fn wake(&mut self, at: u64, keys: &Power) -> u64 {
        if !keys.sleeps {
            return at;
        }
        let slept = at.saturating_sub(self.last) > keys.after.as_ps();
        let exit = match (slept, keys.law) {
            (false, _) => 0,
            (true, Law::Fixed) => keys.exit.as_ps(),
            (true, Law::Exponential) => self.stream.exponential(keys.exit.as_ps() as f64) as u64,
        };
        self.last = self.last.max(at + exit);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use kernel::Span;

    use super::*;

    #[test]
    fn u40_who_was_idle_for_long_takes_time_to_wake() {
        let us = |us| Span::from_us(us).as_ps();
        let keys = Power { sleeps: true, ..Power::default() };
        let mut host = Sleeper::new(1, 0);
        assert_eq!(host.wake(us(20), &keys), us(20), "20 us are not more than 20 us");
        assert_eq!(host.wake(us(41), &keys), us(49), "8 us later");
        assert_eq!(host.wake(us(43), &keys), us(49), "with the first");
        assert_eq!(host.wake(us(69), &keys), us(69), "awake since 49");
        assert_eq!(host.wake(us(90), &Power::default()), us(90), "it never sleeps");
        let keys = Power { law: Law::Exponential, ..keys };
        let waits: u64 = (1..=2_000).map(|n| host.wake(us(1_000 * n), &keys) - us(1_000 * n)).sum();
        let mean = waits as f64 / 2_000.0 / us(8) as f64;
        // Four standard errors.
        assert!((mean - 1.0).abs() < 4.0 / 2_000f64.sqrt(), "{mean}");
    }
}
