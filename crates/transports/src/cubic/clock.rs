//! The cubic function of a stack whose only time is a tick.
//!
//! Models: CUBIC of Mellanox's VMA (libvma, `src/vma/lwip/cc_cubic.c`, made from that of FreeBSD), which
//! PL2 §6.1 compares with. Its time is a count of ticks: one comes each 200 ms (twice
//! `VMA_TCP_TIMER_RESOLUTION_MSEC`), and a hundred are taken for a second (`hz`). A round trip in a rack is less
//! than a tick and counts as one, so that in the Reno-friendly region, where a window nearly always is, it grows by a
//! third of a segment a tick: what RFC 9438 has for a round trip.
//!
//! Until the first loss the plateau follows the window. Windows grow whether they are used or not: there is
//! no test of RFC 7661. Leaves out: powers in fixed point (8 bits), and ticks of each process that begin at
//! instants of their own.

use kernel::{Span, Time};
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Epoch, FLOOR, Plan, Window};

/// A clock that ticks seldom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Clock {
    /// From one tick to the next. Unit: time. Default 200 ms (libvma: twice its 100 ms). Above 0.
    pub tick: Span,
    /// Ticks that the function takes for a second. Default 100 (libvma: `hz`). Above 0.
    #[schemars(range(min = 1))]
    pub ticks_per_second: u32,
}

impl Default for Clock {
    fn default() -> Self {
        Self { tick: Span::from_us(200_000), ticks_per_second: 100 }
    }
}

impl Clock {
    /// What is wrong with the table.
    pub(super) fn check(self) -> Option<Problem> {
        if self.tick == Span::ZERO {
            return Some(Problem::new("tick", "0 ps; expected above 0"));
        }
        (self.ticks_per_second == 0)
            .then(|| Problem::new("ticks_per_second", "0; expected above 0"))
    }

    /// Ticks between two instants.
    fn between(self, from: Time, to: Time) -> u64 {
        let count = |at: Time| (at - Time::ZERO).as_ps() / self.tick.as_ps();
        count(to) - count(from)
    }
}

impl Window {
    /// Congestion avoidance: an acknowledgment has come at `now`.
    pub(super) fn grow_by(&mut self, clock: &Clock, plan: &Plan, now: Time) {
        let (cwnd, w_max) = (self.cwnd, self.w_max);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(plan, now, cwnd, w_max));
        if w_max == 0.0 {
            epoch.w_max = cwnd;
        }
        let ticks = clock.between(epoch.start, now) as f64;
        let friendly = plan.beta * epoch.w_max + plan.alpha * ticks;
        // The function one round trip ahead: one tick.
        let seconds = (ticks + 1.0) / f64::from(clock.ticks_per_second);
        let target = epoch.w_cubic(plan.c, seconds);
        if target < friendly {
            self.cwnd = cwnd.max(friendly);
        } else if cwnd < target {
            // In whole bytes, as there: near the plateau an acknowledgment adds nothing.
            let segment = self.segment as f64;
            self.cwnd += libm::floor(libm::floor((target - cwnd) * segment) / cwnd) / segment;
        }
    }

    /// A timeout: half of the window is the threshold, and the plateau stays what it was.
    pub(super) fn expire_by_clock(&mut self) {
        self.ssthresh = (self.cwnd / 2.0).max(FLOOR);
        self.cwnd = 1.0;
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::Config;
    use crate::newreno::tests::{acked, start};
    use crate::stream::congestion::{Acked, Congestion, Signal};
    use crate::testing::check_near;

    /// As libvma has it: beta is 0.8.
    fn plan() -> Plan {
        let clock = Some(Clock::default());
        Config { clock, beta: 0.8, first_threshold: Some(3), ..Config::default() }.control()
    }

    /// An acknowledgment each 50 us from `from` to `to`, in ticks.
    fn acknowledge(window: &mut Window, plan: &Plan, from: u64, to: u64) {
        let tick = Span::from_us(200_000);
        for step in from * 4_000..to * 4_000 {
            let now = Time::ZERO + tick * step / 4_000;
            window.acked(plan, &Acked { now, ..acked(1_000) });
        }
    }

    #[test]
    fn the_first_slow_start_ends_at_its_threshold() {
        let plan = plan();
        let mut window = Window::new(&plan, &start(2));
        acknowledge(&mut window, &plan, 0, 1);
        assert_eq!(window.window(), 3_000);
    }

    /// Until a loss the plateau follows the window, so that window = 0.8 window + ticks / 3.
    #[test]
    fn before_a_loss_it_has_five_thirds_of_a_segment_a_tick() {
        let plan = plan();
        let mut window = Window::new(&plan, &start(2));
        acknowledge(&mut window, &plan, 0, 13);
        check_near("window", window.cwnd, 12.0 * 5.0 / 3.0, 1e-3);
    }

    /// From 80 of 100 segments at a third a tick; the function would be at 80.2 after 12 ticks.
    #[test]
    fn after_a_loss_it_has_a_third_of_a_segment_a_tick() {
        let plan = plan();
        let mut window = Window::new(&plan, &start(100));
        window.congested(&plan, Signal::Loss, 100_000, Time::ZERO);
        check_near("window", window.cwnd, 80.0, 1e-9);
        acknowledge(&mut window, &plan, 0, 13);
        check_near("window", window.cwnd, 84.0, 1e-6);
    }

    /// Far beyond the plateau it is the function but for fractions of bytes: K = 3.68 s, of 100 ticks each, and
    /// C (t - K)^3 above it.
    #[test]
    fn far_beyond_the_plateau_it_follows_the_function() {
        let plan = Plan { alpha: 0.0, ..plan() };
        let mut window = Window::new(&plan, &start(100));
        window.congested(&plan, Signal::Loss, 100_000, Time::ZERO);
        acknowledge(&mut window, &plan, 0, 1_001);
        let beyond = 10.01 - libm::cbrt(100.0 * 0.2 / 0.4);
        check_near("window", window.cwnd, 100.0 + 0.4 * beyond * beyond * beyond, 2e-3);
    }

    #[test]
    fn a_timeout_keeps_the_plateau() {
        let plan = plan();
        let mut window = Window::new(&plan, &start(100));
        window.congested(&plan, Signal::Loss, 100_000, Time::ZERO);
        window.congested(
            &plan,
            Signal::Timeout(crate::stream::congestion::Expiry::First),
            1,
            Time::ZERO,
        );
        assert_eq!((window.cwnd, window.ssthresh, window.w_max), (1.0, 40.0, 100.0));
        acknowledge(&mut window, &plan, 0, 1);
        check_near("window", window.cwnd, 80.0, 1e-9);
    }

    #[test]
    fn bad_clocks_are_refused() {
        let key = |tick, ticks_per_second| {
            Clock { tick, ticks_per_second }.check().map(|problem| problem.key)
        };
        assert_eq!(key(Span::ZERO, 100).as_deref(), Some("tick"));
        assert_eq!(key(Span::from_us(1), 0).as_deref(), Some("ticks_per_second"));
        assert_eq!(key(Span::from_us(1), 1), None);
    }
}
