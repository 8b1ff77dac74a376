//! CUBIC: a window that grows with the cube of the time since the last loss.
//!
//! Models: RFC 9438: §4.2 (the cubic function), §4.3 (the Reno-friendly region), §4.4 and §4.5
//! (concave and convex), §4.6 (decrease), §4.7 (fast convergence), §4.8 (timeout), §4.10 (slow start,
//! by HyStart++, RFC 9406, where asked for). Windows are in segments, as in the RFC.
//! Or, where a clock is given, the same function as stacks compute it that know no time but a coarse tick.
//! Leaves out: undoing a cut that proves needless (§4.9).

mod clock;
mod hystart;

use kernel::{Span, Time};
use packets::Surroundings;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::clock::Clocks;
pub use self::clock::{Clock, Instants};
use self::hystart::{Growth, HyStart};
use crate::stream::Stream;
use crate::stream::config::{Config as StreamConfig, Echo, Recovery};
use crate::stream::congestion::{Acked, Congestion, Expiry, Phase, Signal, Start};

/// TCP CUBIC endpoints.
pub type Cubic = Stream<Window>;

/// TCP CUBIC.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// How fast the window grows: C. Unit: segments/s³. Default 0.4 (RFC 9438 §5). Above 0.
    pub c: f64,
    /// What a loss leaves of the window: beta. Default 0.7 (RFC 9438 §4.6). Above 0, below 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub beta: f64,
    /// Whether a flow that lost before it was back at its last maximum gives way. Default true (RFC
    /// 9438 §4.7).
    pub fast_convergence: bool,
    /// Whether slow start ends when delay rises: HyStart++. Default true (RFC 9438 §4.10).
    pub hystart: bool,
    /// Least rise of delay that ends slow start. Unit: time. Default 4 ms (RFC 9406 §4.3: made for the
    /// Internet; in a rack it never acts unless it is lowered to a few microseconds).
    pub hystart_rise_min: Span,
    /// Most rise of delay that slow start suffers. Unit: time. Default 16 ms (RFC 9406 §4.3).
    pub hystart_rise_max: Span,
    /// Whether packets may be marked instead of dropped. Default false (RFC 3168).
    pub ecn: bool,
    /// First threshold at which slow start ends. Unit: segments. Default: none, the first loss ends it (RFC
    /// 5681 §3.1). 3 is libvma's. Above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_threshold: Option<u32>,
    /// Windows grow by a clock that ticks seldom, as those of Mellanox's VMA do. Default: none, time is exact and
    /// round trips are measured (RFC 9438).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Clock>,
    /// Floor of the retransmission timeout. Unit: time. Default 200 ms (Linux's).
    pub rto_min: Span,
    /// The byte stream.
    pub stream: StreamConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            hystart: true,
            hystart_rise_min: Span::from_us(4_000),
            hystart_rise_max: Span::from_us(16_000),
            ecn: false,
            first_threshold: None,
            clock: None,
            rto_min: Span::from_us(200_000),
            stream: StreamConfig::default(),
        }
    }
}

impl Config {
    /// What is wrong with the table.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut own = Vec::new();
        if !(self.c > 0.0 && self.c.is_finite()) {
            own.push(Problem::new("c", format!("{}; expected above 0", self.c)));
        }
        if !(self.beta > 0.0 && self.beta < 1.0) {
            own.push(Problem::new("beta", format!("{}; expected above 0 and below 1", self.beta)));
        }
        if self.hystart_rise_min > self.hystart_rise_max {
            let message = format!(
                "{}; expected at most hystart_rise_max, {}",
                self.hystart_rise_min, self.hystart_rise_max
            );
            own.push(Problem::new("hystart_rise_min", message));
        }
        if self.first_threshold == Some(0) {
            own.push(Problem::new("first_threshold", "0 segments; expected above 0"));
        }
        own.extend(self.clock.and_then(|clock| clock.check()).map(|p| p.below("clock")));
        self.stream.with(self.rto_min, own)
    }

    /// The endpoints of all hosts.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub fn build(&self, around: &Surroundings) -> Result<Cubic, Vec<Problem>> {
        let problems = self.check();
        if !problems.is_empty() {
            return Err(problems);
        }
        let echo = if self.ecn { Echo::UntilAnswered } else { Echo::None };
        let plan = self.stream.plan(self.rto_min, echo);
        Ok(Stream::with_plan(plan, self.control(around.seed), around))
    }

    /// `seed` is that of all chance.
    fn control(&self, seed: u64) -> Plan {
        Plan {
            c: self.c,
            beta: self.beta,
            alpha: 3.0 * (1.0 - self.beta) / (1.0 + self.beta),
            fast_convergence: self.fast_convergence,
            hystart: self.hystart.then_some((self.hystart_rise_min, self.hystart_rise_max)),
            first_threshold: self.first_threshold.map_or(f64::INFINITY, f64::from),
            clocks: self.clock.map(|clock| Clocks::new(clock, seed)),
            holds: self.clock.is_some() && self.stream.recovery == Recovery::Single,
        }
    }
}

/// The checked parameters.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    c: f64,
    beta: f64,
    /// RFC 9438 §4.3: what makes an additive increase with this beta as fast as Reno's.
    alpha: f64,
    fast_convergence: bool,
    hystart: Option<(Span, Span)>,
    /// Segments at which the first slow start ends; infinite: only a loss ends it.
    first_threshold: f64,
    clocks: Option<Clocks>,
    /// Whether the window stays while fast recovery lasts, and is cut at its end.
    holds: bool,
}

/// A stage of congestion avoidance, from one loss to the next (RFC 9438 §4.1.2).
#[derive(Clone, Copy, PartialEq, Debug)]
struct Epoch {
    start: Time,
    /// K: seconds until the window is back at `w_max`.
    k: f64,
    /// The function's plateau.
    w_max: f64,
    /// The window that Reno would have.
    w_est: f64,
    /// Where a clock ticks: for how long its last tick before time zero was over then.
    lead: Span,
}

/// The window of one flow, in segments. Its law is a cubic of real numbers; it is rounded to bytes
/// where the stream asks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    segment: u64,
    cwnd: f64,
    ssthresh: f64,
    /// Window just before the last cut, as fast convergence has it; 0: none, or forgotten.
    w_max: f64,
    /// Window just before the last cut; where it is cut at the end of recovery, the plateau before this one.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    hystart: HyStart,
}

/// No threshold is below two segments (RFC 5681, eq. 4; RFC 9438 §4.6).
const FLOOR: f64 = 2.0;
/// The window grows by no more than half in a round trip (RFC 9438 §4.2).
const TARGET_MAX: f64 = 1.5;

impl Epoch {
    /// RFC 9438, eqs. 1 and 2: the function of the time `t` in seconds.
    fn w_cubic(&self, c: f64, t: f64) -> f64 {
        let off = t - self.k;
        c * off * off * off + self.w_max
    }

    fn new(plan: &Plan, now: Time, cwnd: f64, w_max: f64) -> Self {
        // Beyond the plateau, or none known: the convex branch from here (RFC 9438 §4.8, §4.10).
        let w_max = w_max.max(cwnd);
        Self {
            start: now,
            k: libm::cbrt((w_max - cwnd) / plan.c),
            w_max,
            w_est: cwnd,
            lead: Span::ZERO,
        }
    }
}

impl Window {
    /// Congestion avoidance (RFC 9438 §4.2 to §4.5): `segments` were acknowledged.
    fn avoid(&mut self, plan: &Plan, acked: &Acked, segments: f64) {
        let (cwnd, w_max, prior) = (self.cwnd, self.w_max, self.cwnd_prior);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(plan, acked.now, cwnd, w_max));
        let t = (acked.now - epoch.start).as_seconds();
        let alpha = if epoch.w_est < prior { plan.alpha } else { 1.0 };
        epoch.w_est += alpha * segments / cwnd;
        if epoch.w_cubic(plan.c, t) < epoch.w_est {
            self.cwnd = epoch.w_est.max(cwnd);
            return;
        }
        let target = epoch.w_cubic(plan.c, t + acked.srtt.as_seconds());
        let target = target.clamp(cwnd, TARGET_MAX * cwnd);
        self.cwnd += segments * (target - cwnd) / cwnd;
    }

    fn slow_start(&mut self, plan: &Plan, acked: &Acked) {
        let room = (self.ssthresh - self.cwnd).max(0.0);
        let full = acked.bytes.min(self.segment) as f64 / self.segment as f64;
        let growth = match plan.hystart {
            Some(rise) if self.ssthresh == f64::INFINITY => self.hystart.acked(rise, acked),
            _ => Growth::Full,
        };
        match growth {
            Growth::Full => self.cwnd += full.min(room),
            Growth::Part(divisor) => self.cwnd += full / divisor,
            Growth::Stop => self.ssthresh = self.cwnd,
        }
    }

    /// Decrease (RFC 9438 §4.6, §4.7). Gives the new threshold.
    fn decrease(&mut self, plan: &Plan, flight: u64) -> f64 {
        let cwnd = self.cwnd;
        let gives_way = plan.fast_convergence && cwnd < self.w_max;
        self.w_max = if gives_way { cwnd * (1.0 + plan.beta) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        let flight = (flight as f64 / self.segment as f64).min(cwnd);
        (flight * plan.beta).max(FLOOR)
    }
}

impl Congestion for Window {
    const NAME: &'static str = "cubic";
    type Plan = Plan;

    fn new(plan: &Plan, start: &Start) -> Self {
        Self {
            segment: start.segment,
            cwnd: (start.window as f64 / start.segment as f64).max(1.0),
            ssthresh: plan.first_threshold,
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            hystart: HyStart::default(),
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        (self.cwnd * self.segment as f64) as u64
    }

    fn acked(&mut self, plan: &Plan, acked: &Acked) {
        if acked.bytes == 0 || acked.is_marked || acked.phase == Phase::Recovery {
            return;
        }
        if self.cwnd < self.ssthresh {
            if acked.fills_half(self.window()) {
                self.slow_start(plan, acked);
            }
        } else if let Some(clocks) = &plan.clocks {
            self.grow_by(clocks, plan, acked);
        } else if acked.fills(self.window(), self.segment) {
            self.avoid(plan, acked, acked.bytes as f64 / self.segment as f64);
        }
    }

    fn congested(&mut self, plan: &Plan, signal: Signal, flight: u64, _: Time) {
        match signal {
            Signal::Loss if plan.holds => self.lose_by_clock(plan),
            Signal::Loss | Signal::Mark => {
                self.ssthresh = self.decrease(plan, flight);
                self.cwnd = self.ssthresh;
            }
            Signal::Timeout(_) if plan.clocks.is_some() => self.expire_by_clock(),
            Signal::Timeout(expiry) => {
                let threshold = self.decrease(plan, flight);
                if expiry == Expiry::First {
                    self.ssthresh = threshold;
                }
                self.cwnd = 1.0;
                // RFC 9438 §4.8: the next stage starts at its own plateau.
                self.w_max = 0.0;
            }
        }
    }

    fn recovered(&mut self, plan: &Plan, flight: u64) {
        if plan.holds {
            self.recover_by_clock(plan, flight);
        }
    }

    fn syn_lost(&mut self, _: &Start) {
        self.cwnd = 1.0;
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
