//! The bus between a TiN and a host, one direction of it.
//!
//! Models: Aquila §3.4 (M513). **Our choice** (U33): bytes follow each other at a constant rate, in the order in which
//! they were asked for.

use kernel::{Bytes, Rate};

/// One direction of the bus.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pipe {
    /// When it has nothing more to carry. Unit: ps.
    free: u64,
}

impl Pipe {
    /// Carries bytes from `at` on, of which the first `first` come together: when these are there. Unit: ps.
    pub(super) fn carry(&mut self, at: u64, (first, all): (u32, u32), rate: Rate) -> u64 {
        let time = |bytes: u32| rate.send_time(Bytes::new(bytes.into())).as_ps();
        let there = at.max(self.free + time(first));
        self.free = there + (time(all) - time(first));
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m513_completions_follow_at_the_rate_of_the_bus() {
        let (mut pipe, rate) = (Pipe::default(), Rate::from_gbps(104));
        // 13 GB/s: 128 B in 9,847 ps, 4096 B in 315,077 ps.
        assert_eq!(pipe.carry(600_000, (128, 4_096), rate), 600_000, "nothing is before it");
        let after = 600_000 + 315_077 - 9_847;
        assert_eq!(pipe.carry(610_000, (128, 128), rate), after + 9_847, "behind the first");
        assert_eq!(pipe.carry(2_000_000, (64, 64), rate), 2_000_000, "it is free again");
        assert_eq!(pipe.carry(0, (0, 0), rate), 2_000_000, "order is kept");
    }
}
