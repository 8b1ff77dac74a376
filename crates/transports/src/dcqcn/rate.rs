//! The reaction point: the rate of one flow.
//!
//! Models: DCQCN §3.1 (Eqs 1 to 4, Fig. 7): a notification cuts the rate by half of alpha and raises
//! alpha; time without one lets alpha decay; a timer and a byte counter raise the rate, first half of
//! the way back (fast recovery), then the target too (additive and hyper increase).
//!
//! Timers are not events: what they would have done is caught up with when a packet is sent or a
//! notification comes, in the same order. Nothing in between could see the difference.

use kernel::{Bytes, Rate, Span, Time};

use super::config::Config;

/// The parameters, ready for use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    line: f64,
    min: f64,
    gain: f64,
    additive: f64,
    hyper: f64,
    alpha_interval: Span,
    timer: Span,
    byte_counter: Bytes,
    fast_recovery: u32,
}

impl Law {
    /// The law of `config` on lines of `line`.
    pub(crate) fn new(config: &Config, line: Rate) -> Self {
        let bps = |rate: Rate| rate.as_bps() as f64;
        Self {
            line: bps(line),
            min: bps(config.rate_min.min(line)),
            gain: config.gain,
            additive: bps(config.additive),
            hyper: bps(config.hyper),
            alpha_interval: config.alpha_interval,
            timer: config.timer,
            byte_counter: config.byte_counter,
            fast_recovery: config.fast_recovery,
        }
    }
}

/// The state of a flow's rate. Rates are in bit/s: the law needs fractions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limiter {
    /// R_C.
    pub(crate) current: f64,
    /// R_T.
    pub(crate) target: f64,
    /// The estimate of congestion, 0 to 1.
    pub(crate) alpha: f64,
    /// Rises by the timer and by the byte counter since the last notification.
    by_timer: u32,
    by_bytes: u32,
    /// Bytes since the byte counter last struck.
    bytes: u64,
    timer_at: Time,
    alpha_at: Time,
    /// Whether a notification has ever come: until then the flow has the whole line.
    is_limited: bool,
}

impl Limiter {
    /// A flow starts at line rate (DCQCN §3.1), with alpha at 1.
    pub(crate) fn new(law: &Law) -> Self {
        Self { current: law.line, target: law.line, alpha: 1.0, ..Self::default() }
    }

    /// The rate, in whole bits a second.
    #[inline]
    pub(crate) fn rate(&self) -> Rate {
        Rate::from_bps(self.current as u64)
    }

    /// A notification has come (Eq. 1).
    pub(crate) fn notify(&mut self, law: &Law, now: Time) {
        self.catch_up(law, now);
        self.is_limited = true;
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(law.min);
        self.alpha = (1.0 - law.gain) * self.alpha + law.gain;
        (self.by_timer, self.by_bytes, self.bytes) = (0, 0, 0);
        self.timer_at = now + law.timer;
        self.alpha_at = now + law.alpha_interval;
    }

    /// A packet has been sent.
    #[inline]
    pub(crate) fn sent(&mut self, law: &Law, size: Bytes, now: Time) {
        if !self.is_limited {
            return;
        }
        self.catch_up(law, now);
        self.bytes += size.get();
        while self.bytes >= law.byte_counter.get() {
            self.bytes -= law.byte_counter.get();
            self.by_bytes = self.by_bytes.saturating_add(1);
            self.rise(law);
        }
    }

    /// Does what timers would have done until `now`.
    #[inline]
    pub(crate) fn catch_up(&mut self, law: &Law, now: Time) {
        if !self.is_limited {
            return;
        }
        while self.alpha_at <= now {
            // Eq. 2.
            self.alpha *= 1.0 - law.gain;
            self.alpha_at += law.alpha_interval;
        }
        while self.timer_at <= now {
            self.timer_at += law.timer;
            self.by_timer = self.by_timer.saturating_add(1);
            self.rise(law);
        }
    }

    /// The timer or the byte counter has struck (Fig. 7).
    fn rise(&mut self, law: &Law) {
        let most = self.by_timer.max(self.by_bytes);
        let least = self.by_timer.min(self.by_bytes);
        if least > law.fast_recovery {
            // Hyper increase.
            self.target += f64::from(least - law.fast_recovery) * law.hyper;
        } else if most >= law.fast_recovery {
            // Additive increase (Eq. 4); before it, fast recovery (Eq. 3) leaves the target alone.
            self.target += law.additive;
        }
        self.target = self.target.min(law.line);
        self.current = (self.target + self.current) / 2.0;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use kernel::Stream;

    use super::*;

    fn law(line_gbps: u64) -> Law {
        Law::new(&Config::default(), Rate::from_gbps(line_gbps))
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[track_caller]
    fn check(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-12, "{found}, expected {expected}");
    }

    #[test]
    fn a_notification_halves_a_fresh_flow_and_recovery_goes_half_the_way_each_time() {
        let law = law(100);
        let mut flow = Limiter::new(&law);
        flow.notify(&law, at(0));
        check(flow.current, 50e9);
        flow.notify(&law, at(10));
        check(flow.current, 25e9);
        check(flow.target, 50e9);
        check(flow.alpha, 1.0);
        // By hand: four rises of fast recovery, then the target goes up by 40 Mbps each time.
        let expected = [37.5, 43.75, 46.875, 48.4375, 49.238_75, 49.659_375, 49.889_687_5];
        for (rise, rate) in (1..).zip(expected) {
            flow.catch_up(&law, at(10 + 55 * rise - 1));
            let before = flow.current;
            flow.catch_up(&law, at(10 + 55 * rise));
            assert!(flow.current > before, "rise {rise}");
            check(flow.current, rate * 1e9);
        }
        check(flow.target, 50.12e9);
    }

    #[test]
    fn hyper_increase_needs_both_the_timer_and_the_byte_counter() {
        let law = law(100);
        let mut flow = Limiter::new(&law);
        for _ in 0..3 {
            flow.notify(&law, at(0));
        }
        check(flow.target, 25e9);
        // Six strikes of the byte counter alone: four of fast recovery, two additive.
        for _ in 0..6 {
            flow.sent(&law, Bytes::new(10_000_000), at(1));
        }
        check(flow.target, 25.08e9);
        // Five of the timer: the lesser count is at most five, so additive.
        flow.catch_up(&law, at(5 * 55));
        check(flow.target, 25.28e9);
        // The sixth makes both six: one step of 400 Mbps; with a seventh of each, one, then two.
        flow.catch_up(&law, at(6 * 55));
        check(flow.target, 25.68e9);
        flow.sent(&law, Bytes::new(10_000_000), at(6 * 55));
        check(flow.target, 26.08e9);
        flow.catch_up(&law, at(7 * 55));
        check(flow.target, 26.88e9);
    }

    #[test]
    fn alpha_rises_with_notifications_and_decays_without() {
        let law = law(40);
        let mut flow = Limiter::new(&law);
        flow.notify(&law, at(0));
        let quiet = 100;
        flow.catch_up(&law, at(55 * quiet));
        check(flow.alpha, (255.0f64 / 256.0).powi(quiet as i32));
        let before = flow.alpha;
        flow.notify(&law, at(55 * quiet + 10));
        check(flow.alpha, before * 255.0 / 256.0 + 1.0 / 256.0);
        // The decay starts anew with each notification.
        flow.catch_up(&law, at(55 * quiet + 64));
        check(flow.alpha, before * 255.0 / 256.0 + 1.0 / 256.0);
    }

    #[test]
    fn the_rate_stays_between_its_bounds() {
        let law = law(40);
        let mut flow = Limiter::new(&law);
        for _ in 0..100 {
            flow.notify(&law, at(0));
        }
        check(flow.current, 10e6);
        flow.catch_up(&law, at(1_000_000));
        assert_eq!((flow.current, flow.target), (40e9, 40e9));
    }

    /// The rate at which DCQCN's fluid model (§5.1, Eqs 5 to 9) stands still, where packets of
    /// `size` bytes are marked with probability `p`, and its alpha. In packets a second: alpha is the
    /// chance of a mark within K; the target falls to the current rate with each notification and
    /// rises by R_AI with each rise beyond the F-th; the current rate falls by half of alpha and rises
    /// half the way.
    pub(in super::super) fn fixed_point(p: f64, size: f64, line: f64) -> (f64, f64) {
        let (tau, k, t, b, f) = (50e-6, 55e-6, 55e-6, 10e6 / size, 5.0);
        let additive = 40e6 / (8.0 * size);
        let kept = |packets: f64| (1.0 - p).powf(packets);
        let surplus = |rate: f64| {
            let alpha = 1.0 - kept(k * rate);
            let cuts = (1.0 - kept(tau * rate)) / tau;
            let (by_bytes, by_timer) =
                (rate * p / (1.0 / kept(b) - 1.0), rate * p / (1.0 / kept(t * rate) - 1.0));
            let gap = rate * alpha * cuts / (by_bytes + by_timer);
            additive * (kept(f * b) * by_bytes + kept(f * t * rate) * by_timer) - gap * cuts
        };
        let (mut low, mut high) = (1.0, line / (8.0 * size));
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if surplus(middle) > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low * 8.0 * size, 1.0 - kept(k * low))
    }

    /// The mean rate of a flow whose packets of 1,000 bytes are marked with probability `p`, over
    /// two seconds after one of settling.
    fn simulated(p: f64) -> (f64, f64) {
        let law = law(40);
        let mut stream = Stream::new(1, "test", 0);
        let (mut flow, mut now, mut free) = (Limiter::new(&law), Time::ZERO, Time::ZERO);
        let (mut sent, mut alpha) = (0u64, 0.0);
        while now < at(3_000_000) {
            if stream.bernoulli(p) && now >= free {
                flow.notify(&law, now);
                free = now + Span::from_us(50);
            }
            flow.sent(&law, Bytes::new(1_000), now);
            let gap = flow.rate().send_time(Bytes::new(1_000));
            now += gap;
            if now >= at(1_000_000) {
                sent += 1;
                alpha += flow.alpha * gap.as_seconds();
            }
        }
        (sent as f64 * 8_000.0 / 2.0, alpha / 2.0)
    }

    #[test]
    fn the_mean_rate_follows_the_fluid_models_fixed_point() {
        // The model takes notifications for a Poisson process, so has more of them than come 50 µs
        // apart: the true rate lies above it, by a quarter over the whole range, and alpha within a
        // tenth.
        let points = [0.001, 0.003, 0.01].map(|p| (fixed_point(p, 1_000.0, 40e9), simulated(p)));
        for ((rate, alpha), (found, found_alpha)) in points {
            assert!((1.15..1.35).contains(&(found / rate)), "{points:?}");
            assert!((0.9..1.1).contains(&(found_alpha / alpha)), "{points:?}");
        }
        let law = points[0].0.0 / points[2].0.0;
        let found = points[0].1.0 / points[2].1.0;
        assert!((found / law - 1.0).abs() < 0.05, "{found}, the model {law}");
    }
}
