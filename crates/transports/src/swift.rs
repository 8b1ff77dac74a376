//! Swift: additive increase and multiplicative decrease by delay.
//!
//! Models: "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM
//! 2020: §3.2 (Algorithm 1: target delay, losses, timeouts), §3.3 (fabric and endpoint delay told
//! apart, a window for each, the smaller one counts), §3.4 (windows below one packet by pacing),
//! §3.5 (the target's scaling with hops and with the window).
//! Delay is from the data's first bit on the wire to its acknowledgment. Of that, the endpoint's share
//! is what was spent in hosts (`host` of the fabric's table): from the segment's arrival at the receiver's NIC until
//! its acknowledgment is back there, and from that one's arrival at the sender's NIC until the sender has it (§3.3:
//! t4 - t2 and t6 - t5). Where hosts take no time and acknowledge each segment, the endpoint window never shrinks.
//! Leaves out: what an acknowledgment waits for its own host's line, which counts as the fabric's; pacing of windows
//! above one, which Swift leaves to the clock of acknowledgments, too (§3.4); quality of service by different targets
//! (§3.6: a transport for each class). Recovery is the stream's (RFC 6675), where Pony Express has its own.

use kernel::{Span, Time};
use packets::Surroundings;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stream::Stream;
use crate::stream::config::{Config as StreamConfig, Echo};
use crate::stream::congestion::{Acked, Congestion, Expiry, Signal, Start};

/// Swift endpoints.
pub type Swift = Stream<Window>;

/// Swift. The paper names its parameters (§3) and gives few values; those below are near its testbed
/// at 100 Gbps and are our choice where no section is named.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Additive increase in a round trip. Unit: segments. Default 1. Above 0.
    pub additive_increase: f64,
    /// How strongly the window shrinks with delay above the target: beta. Default 0.8. Above 0.
    pub beta: f64,
    /// The most by which a window shrinks at once: max_mdf. Default 0.5. Above 0, below 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub decrease_max: f64,
    /// Target of the fabric's delay before scaling. Unit: time. Default 25 us.
    pub base_target: Span,
    /// What each switch on the way adds to the target. Unit: time. Default 1 us.
    pub hop_target: Span,
    /// The most that small windows add to the target, for many flows share their queue: fs_range.
    /// Unit: time. Default 100 us: four base targets.
    pub flow_range: Span,
    /// The window at and below which all of that is added. Unit: segments. Default 0.1. Above 0.
    pub flow_window_min: f64,
    /// The window at and above which nothing is added. Unit: segments. Default 100. Above
    /// `flow_window_min`.
    pub flow_window_max: f64,
    /// Target of the endpoint's delay. Unit: time. Default 50 us.
    pub endpoint_target: Span,
    /// Weight of the newest sample in the endpoint's delay, which is smoothed (§3.3). Default 0.125.
    /// Above 0, at most 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub endpoint_weight: f64,
    /// Smallest window. Unit: segments. Default 0.001: one segment in a thousand round trips (§3.4).
    /// Above 0, at most 1.
    pub window_min: f64,
    /// Largest window. Unit: segments. Default 4096. At least 1.
    pub window_max: f64,
    /// Timeouts in a row after which the window is the smallest: RETX_RESET_THRESHOLD. Default 5. At
    /// least 1.
    #[schemars(range(min = 1))]
    pub resets_after: u32,
    /// Floor of the retransmission timeout. Unit: time. Default 1 ms.
    pub rto_min: Span,
    /// The byte stream.
    pub stream: StreamConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            additive_increase: 1.0,
            beta: 0.8,
            decrease_max: 0.5,
            base_target: Span::from_us(25),
            hop_target: Span::from_us(1),
            flow_range: Span::from_us(100),
            flow_window_min: 0.1,
            flow_window_max: 100.0,
            endpoint_target: Span::from_us(50),
            endpoint_weight: 0.125,
            window_min: 0.001,
            window_max: 4096.0,
            resets_after: 5,
            rto_min: Span::from_us(1_000),
            stream: StreamConfig::default(),
        }
    }
}

impl Config {
    /// What is wrong with the table.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut own = Vec::new();
        let mut expect = |good: bool, key: &str, found: &dyn std::fmt::Display, range: &str| {
            if !good {
                own.push(Problem::new(key, format!("{found}; expected {range}")));
            }
        };
        let is_positive = |x: f64| x > 0.0 && x.is_finite();
        let increase = self.additive_increase;
        expect(is_positive(increase), "additive_increase", &increase, "above 0");
        expect(is_positive(self.beta), "beta", &self.beta, "above 0");
        let most = self.decrease_max;
        expect(most > 0.0 && most < 1.0, "decrease_max", &most, "above 0 and below 1");
        expect(self.base_target > Span::ZERO, "base_target", &self.base_target, "above 0");
        let endpoint = self.endpoint_target;
        expect(endpoint > Span::ZERO, "endpoint_target", &endpoint, "above 0");
        let weight = self.endpoint_weight;
        expect(weight > 0.0 && weight <= 1.0, "endpoint_weight", &weight, "above 0, at most 1");
        let (least, most) = (self.flow_window_min, self.flow_window_max);
        expect(is_positive(least), "flow_window_min", &least, "above 0");
        expect(
            most > least && most.is_finite(),
            "flow_window_max",
            &most,
            "more than flow_window_min",
        );
        let (least, most) = (self.window_min, self.window_max);
        expect(is_positive(least) && least <= 1.0, "window_min", &least, "above 0, at most 1");
        expect(most >= 1.0 && most.is_finite(), "window_max", &most, "1 or more");
        expect(self.resets_after > 0, "resets_after", &self.resets_after, "1 or more");
        self.stream.with(self.rto_min, own)
    }

    /// The endpoints of all hosts.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub fn build(&self, around: &Surroundings) -> Result<Swift, Vec<Problem>> {
        let problems = self.check();
        if !problems.is_empty() {
            return Err(problems);
        }
        let plan = self.stream.plan(self.rto_min, Echo::None);
        Ok(Stream::with_plan(plan, self.control(), around))
    }

    fn control(&self) -> Plan {
        let root = |window: f64| 1.0 / window.sqrt();
        let (least, most) = (root(self.flow_window_min), root(self.flow_window_max));
        let alpha = self.flow_range.as_ps() as f64 / (least - most);
        Plan { config: self.clone(), alpha, offset: -alpha * most }
    }
}

/// The checked parameters, with alpha and beta of the flow scaling (§3.5), in picoseconds.
#[derive(Clone, Debug)]
pub struct Plan {
    config: Config,
    alpha: f64,
    offset: f64,
}

impl Plan {
    /// The fabric's target at this window and number of switches (§3.5).
    fn target(&self, window: f64, hops: u8) -> Span {
        let range = self.config.flow_range.as_ps() as f64;
        let scaled = (self.alpha / window.sqrt() + self.offset).clamp(0.0, range);
        let flows = Span::from_ps(scaled as u64);
        self.config.base_target + self.config.hop_target * u64::from(hops) + flows
    }
}

/// One of the two windows, in segments.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Aimd {
    window: f64,
    decreased: Option<Time>,
}

impl Aimd {
    /// Whether a round trip has passed since the last decrease.
    fn may_decrease(&self, now: Time, rtt: Span) -> bool {
        self.decreased.is_none_or(|last| now - last >= rtt)
    }

    fn shrink(&mut self, by: f64, now: Time) {
        self.window *= by;
        self.decreased = Some(now);
    }

    /// Algorithm 1, on an acknowledgment of `segments`.
    fn acked(&mut self, config: &Config, delay: Span, target: Span, segments: f64, acked: &Acked) {
        if delay < target {
            let step = config.additive_increase * segments;
            self.window += if self.window >= 1.0 { step / self.window } else { step };
        } else if self.may_decrease(acked.now, acked.rtt) {
            let excess = (delay - target).as_ps() as f64 / delay.as_ps() as f64;
            self.shrink((1.0 - config.beta * excess).max(1.0 - config.decrease_max), acked.now);
        }
        self.window = self.window.clamp(config.window_min, config.window_max);
    }
}

/// The windows of one flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    segment: u64,
    fabric: Aimd,
    endpoint: Aimd,
    /// The endpoint's delay, smoothed, in picoseconds.
    endpoint_delay: f64,
    rtt: Span,
    timeouts: u32,
}

impl Window {
    /// The window that counts, in segments.
    fn effective(&self) -> f64 {
        self.fabric.window.min(self.endpoint.window)
    }

    fn shrink(&mut self, by: f64, least: f64, now: Time) {
        if self.fabric.may_decrease(now, self.rtt) {
            self.fabric.shrink(by, now);
            self.fabric.window = self.fabric.window.max(least);
        }
    }
}

impl Congestion for Window {
    const NAME: &'static str = "swift";
    type Plan = Plan;

    fn new(plan: &Plan, start: &Start) -> Self {
        let window = start.window as f64 / start.segment as f64;
        let window = window.clamp(plan.config.window_min, plan.config.window_max);
        let aimd = Aimd { window, decreased: None };
        Self {
            segment: start.segment,
            fabric: aimd,
            endpoint: Aimd { window: plan.config.window_max, ..aimd },
            endpoint_delay: 0.0,
            rtt: Span::ZERO,
            timeouts: 0,
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        (self.effective().max(1.0) * self.segment as f64) as u64
    }

    fn acked(&mut self, plan: &Plan, acked: &Acked) {
        let config = &plan.config;
        if acked.arrived == 0 {
            return;
        }
        self.timeouts = 0;
        self.rtt = acked.rtt;
        let segments = acked.arrived as f64;
        let sample = acked.endpoint.as_ps() as f64;
        self.endpoint_delay += config.endpoint_weight * (sample - self.endpoint_delay);
        let fabric_delay = acked.rtt - acked.endpoint.min(acked.rtt);
        let target = plan.target(self.fabric.window, acked.hops);
        self.fabric.acked(config, fabric_delay, target, segments, acked);
        let delay = Span::from_ps(self.endpoint_delay as u64);
        self.endpoint.acked(config, delay, config.endpoint_target, segments, acked);
    }

    fn congested(&mut self, plan: &Plan, signal: Signal, _: u64, now: Time) {
        let config = &plan.config;
        let least = 1.0 - config.decrease_max;
        match signal {
            Signal::Loss | Signal::Mark => {
                self.timeouts = 0;
                self.shrink(least, config.window_min, now);
            }
            Signal::Timeout(expiry) => {
                self.timeouts = if expiry == Expiry::First { 1 } else { self.timeouts + 1 };
                if self.timeouts >= config.resets_after {
                    self.fabric.window = config.window_min;
                    self.fabric.decreased = Some(now);
                } else {
                    self.shrink(least, config.window_min, now);
                }
            }
        }
    }

    /// §3.4: below one segment, a segment every 1 / window round trips.
    fn gap(&self) -> Span {
        let window = self.effective();
        if window >= 1.0 {
            return Span::ZERO;
        }
        Span::from_ps((self.rtt.as_ps() as f64 / window) as u64)
    }

    fn syn_lost(&mut self, _: &Start) {
        self.fabric.window = self.fabric.window.min(1.0);
    }
}

#[cfg(test)]
#[path = "swift_tests.rs"]
mod tests;
