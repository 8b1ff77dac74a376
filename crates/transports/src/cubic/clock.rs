//! The cubic function of a stack whose only time is a tick.
//!
//! Models: CUBIC of Mellanox's VMA (libvma, `src/vma/lwip/cc_cubic.c`, made from that of FreeBSD), which
//! PL2 §6.1 compares with. Its time is a count of ticks: one comes each 200 ms (twice
//! `VMA_TCP_TIMER_RESOLUTION_MSEC`), and a hundred are taken for a second (`hz`). A round trip in a rack is less
//! than a tick and counts as one, so that in the Reno-friendly region, where a window nearly always is, it grows by a
//! third of a segment a tick: what RFC 9438 has for a round trip.
//!
//! Until the first loss the plateau follows the window. Windows grow whether they are used or not: there is
//! no test of RFC 7661. Each host's ticks come at instants of their own, as its process began at one; or those of
//! all hosts together. Leaves out: powers in fixed point (8 bits), and that a window as large as the receiver's grows no more.

use kernel::{Span, Stream, Time};
use rack::{NodeId, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Epoch, FLOOR, Plan, Window};
use crate::stream::congestion::Acked;

/// A clock that ticks seldom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Clock {
    /// From one tick to the next. Unit: time. Default 200 ms (libvma: twice its 100 ms). Above 0.
    pub tick: Span,
    /// Ticks that the function takes for a second. Default 100 (libvma: `hz`). Above 0.
    #[schemars(range(min = 1))]
    pub ticks_per_second: u32,
    /// When the ticks of different hosts come. Default own.
    pub instants: Instants,
}

/// When the ticks of different hosts come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Instants {
    /// Each host's at instants of their own, at random: processes begin when they do.
    #[default]
    Own,
    /// Those of all hosts at the same.
    Together,
}

impl Default for Clock {
    fn default() -> Self {
        let instants = Instants::default();
        Self { tick: Span::from_us(200_000), ticks_per_second: 100, instants }
    }
}

/// The clocks of all hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    clock: Clock,
    /// That of all chance in them.
    seed: u64,
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
}

impl Clocks {
    /// `seed` is that of all chance in them.
    pub(super) fn new(clock: Clock, seed: u64) -> Self {
        Self { clock, seed }
    }

    /// For how long a host's last tick before time zero was over then.
    fn lead(&self, host: NodeId) -> Span {
        match self.clock.instants {
            Instants::Together => Span::ZERO,
            Instants::Own => {
                let mut chance =
                    Stream::new(self.seed, "transports/cubic/ticks", host.get().into());
                Span::from_ps(chance.below(self.clock.tick.as_ps()))
            }
        }
    }

    /// Ticks between two instants, the last before time zero having been over for `lead` then.
    fn between(&self, lead: Span, from: Time, to: Time) -> u64 {
        let count = |at: Time| (at + lead - Time::ZERO).as_ps() / self.clock.tick.as_ps();
        count(to) - count(from)
    }
}

impl Window {
    /// Congestion avoidance: an acknowledgment has come.
    pub(super) fn grow_by(&mut self, clocks: &Clocks, plan: &Plan, acked: &Acked) {
        let now = acked.now;
        let (cwnd, w_max) = (self.cwnd, self.w_max);
        // K is of the whole way from beta of the plateau, wherever the window is.
        let from = if plan.holds { plan.beta * w_max } else { cwnd };
        let begin =
            || Epoch { lead: clocks.lead(acked.host), ..Epoch::new(plan, now, from, w_max) };
        let epoch = self.epoch.get_or_insert_with(begin);
        if w_max == 0.0 {
            epoch.w_max = cwnd;
        }
        let ticks = clocks.between(epoch.lead, epoch.start, now) as f64;
        let friendly = plan.beta * epoch.w_max + plan.alpha * ticks;
        // The function one round trip ahead: one tick.
        let seconds = (ticks + 1.0) / f64::from(clocks.clock.ticks_per_second);
        let target = epoch.w_cubic(plan.c, seconds);
        if target < friendly {
            self.cwnd = cwnd.max(friendly);
        } else if cwnd < target {
            // In whole bytes, as there: near the plateau an acknowledgment adds nothing.
            let segment = self.segment as f64;
            self.cwnd += libm::floor(libm::floor((target - cwnd) * segment) / cwnd) / segment;
        }
    }

    /// Fast recovery begins: the threshold falls, by half for the first time. The window stays what it is until
    /// [`Window::recover_by_clock`].
    pub(super) fn lose_by_clock(&mut self, plan: &Plan) {
        let left = if self.w_max == 0.0 { 0.5 } else { plan.beta };
        self.ssthresh = self.cwnd * left;
        (self.cwnd_prior, self.w_max) = (self.w_max, self.cwnd);
    }

    /// Fast recovery ends: beta of the plateau, which gives way if it was higher before; or what was under way, if that is
    /// less than the threshold.
    pub(super) fn recover_by_clock(&mut self, plan: &Plan, flight: u64) {
        if plan.fast_convergence && self.w_max < self.cwnd_prior {
            self.w_max *= (1.0 + plan.beta) / 2.0;
        }
        let flight = flight as f64 / self.segment as f64;
        let window = if flight < self.ssthresh { flight } else { plan.beta * self.w_max };
        self.cwnd = window.max(1.0);
        self.epoch = None;
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
    use crate::stream::config::{Config as StreamConfig, Recovery};
    use crate::stream::congestion::{Acked, Congestion, Signal};
    use crate::testing::check_near;

    /// As libvma has it: beta is 0.8.
    fn plan() -> Plan {
        with(Instants::Together)
    }

    fn with(instants: Instants) -> Plan {
        let clock = Some(Clock { instants, ..Clock::default() });
        Config { clock, beta: 0.8, first_threshold: Some(3), ..Config::default() }.control(1)
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

    /// Within a tick the windows of two hosts grow by a third of a segment each, from 80, at the instants at which their
    /// clocks tick. The function itself, near its plateau, has some bytes for them at any instant.
    #[test]
    fn hosts_tick_at_instants_of_their_own() {
        let tick = Span::from_us(200_000);
        let grows_at = |plan: &Plan, host: u32| {
            let mut window = Window::new(plan, &start(100));
            window.congested(plan, Signal::Loss, 100_000, Time::ZERO);
            let at = |step: u64| Time::ZERO + tick * step / 1_000;
            let mut acknowledge = |step: u64| {
                let host = NodeId::new(host);
                window.acked(plan, &Acked { now: at(step), host, ..acked(1_000) });
                window.cwnd
            };
            let first = (0..1_000).find(|&step| acknowledge(step) > 80.1);
            (first, acknowledge(999))
        };
        let own = with(Instants::Own);
        let [one, two] = [1, 2].map(|host| grows_at(&own, host));
        for (first, grown) in [one, two] {
            assert!(first.is_some(), "no tick within the time of one");
            check_near("window", grown, 80.0 + 1.0 / 3.0, 1e-9);
        }
        assert_ne!(one.0, two.0, "at one instant");
        assert_eq!(grows_at(&own, 1), one, "the same host at the same instant");
        assert_eq!(grows_at(&plan(), 1).0, None, "together: at 200 ms and not before");
    }

    /// As libvma has it with its recovery of one segment: the first loss halves the threshold, later ones take it to 0.8;
    /// the window stays until the first acknowledgment of new data, and then is 0.8 of what it was, of 0.9 of that if it
    /// was not back at the last plateau, or what was under way if that is below the threshold.
    #[test]
    fn the_window_is_cut_at_the_end_of_a_recovery_of_one_segment() {
        let stream = StreamConfig { recovery: Recovery::Single, ..StreamConfig::default() };
        let clock = Some(Clock { instants: Instants::Together, ..Clock::default() });
        let config =
            Config { clock, beta: 0.8, first_threshold: Some(3), stream, ..Config::default() };
        let plan = config.control(1);
        let mut window = Window::new(&plan, &start(100));
        let mut lose = |flight: u64, expected: [f64; 4]| {
            window.congested(&plan, Signal::Loss, flight, Time::ZERO);
            let (during, threshold) = (window.cwnd, window.ssthresh);
            window.recovered(&plan, flight);
            let found = [during, threshold, window.cwnd, window.w_max];
            found.into_iter().zip(expected).for_each(|(found, expected)| {
                check_near("window, threshold, window after, plateau", found, expected, 1e-9);
            });
        };
        lose(100_000, [100.0, 50.0, 80.0, 100.0]);
        lose(80_000, [80.0, 64.0, 57.6, 72.0]);
        lose(30_000, [57.6, 46.08, 30.0, 51.84]);
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
            Clock { tick, ticks_per_second, ..Clock::default() }.check().map(|problem| problem.key)
        };
        assert_eq!(key(Span::ZERO, 100).as_deref(), Some("tick"));
        assert_eq!(key(Span::from_us(1), 0).as_deref(), Some("ticks_per_second"));
        assert_eq!(key(Span::from_us(1), 1), None);
    }
}
