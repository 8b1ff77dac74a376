//! Hosts that sleep when nobody asks for their memory.
//!
//! Models: Aquila §5.2: at low load servers may dwell in low-power states, so that more load makes reads faster. **Our
//! choice** (U40): a host whose memory nobody has asked for in some time sleeps, and takes some time to wake; what comes
//! meanwhile waits with the first. What IP brings does not count.

use kernel::Stream;

use crate::config::Power;

/// Whether a host sleeps.
#[derive(Clone, Debug)]
pub(super) struct Sleeper {
    /// When it was last asked, or will be awake; `None`: it has slept for ever. Unit: ps.
    last: Option<u64>,
    stream: Stream,
}

impl Sleeper {
    /// A host that nobody has ever asked.
    pub(super) fn new(seed: u64, host: u64) -> Self {
        Self { last: None, stream: Stream::new(seed, "aquila/sleep", host) }
    }

    /// Memory is asked for at `at`: when the host is awake. Unit: ps.
    pub(super) fn wake(&mut self, at: u64, keys: &Power) -> u64 {
        if !keys.sleeps {
            return at;
        }
        let idle = self.last.map_or(u64::MAX, |last| at.saturating_sub(last));
        let slept = idle > keys.after.as_ps();
        let exit = match slept {
            true => keys.law.draw(keys.exit, &mut self.stream).as_ps(),
            false => 0,
        };
        let awake = self.last.unwrap_or(0).max(at + exit);
        self.last = Some(awake);
        awake
    }
}

#[cfg(test)]
mod tests {
    use kernel::Span;

    use packets::config::Law;

    use super::*;

    #[test]
    fn u40_who_was_idle_for_long_takes_time_to_wake() {
        let us = |us| Span::from_us(us).as_ps();
        let keys = Power { sleeps: true, ..Power::default() };
        let mut host = Sleeper::new(1, 0);
        assert_eq!(host.wake(us(1), &keys), us(9), "it sleeps at first");
        assert_eq!(host.wake(us(29), &keys), us(29), "20 us are not more than 20 us");
        assert_eq!(host.wake(us(50), &keys), us(58), "8 us later");
        assert_eq!(host.wake(us(52), &keys), us(58), "with the first");
        assert_eq!(host.wake(us(78), &keys), us(78), "awake since 58");
        assert_eq!(host.wake(us(99), &Power::default()), us(99), "it never sleeps");
        let keys = Power { law: Law::Exponential, ..keys };
        let waits: u64 = (1..=2_000).map(|n| host.wake(us(1_000 * n), &keys) - us(1_000 * n)).sum();
        let mean = waits as f64 / 2_000.0 / us(8) as f64;
        // Four standard errors.
        assert!((mean - 1.0).abs() < 4.0 / 2_000f64.sqrt(), "{mean}");
    }
}
