//! DCTCP: TCP that answers marks in proportion to how many there are.
//!
//! Models: "Data Center TCP (DCTCP)", SIGCOMM 2010, §3.1, as RFC 8257 has it: §3.2 (marks echoed as
//! they come, also where acknowledgments are delayed), §3.3 (the estimate alpha over each window of
//! data, the cut by alpha / 2), §3.4 (growth as in TCP), §3.5 (a loss counts as in TCP). The marking
//! itself, by the queue's length at one threshold, is the switch's.
//! Leaves out: marks on SYNs and on pure acknowledgments (RFC 8257 §3.6 leaves these open).

use kernel::{Span, Time};
use packets::Surroundings;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::newreno::Thresholds;
use crate::stream::Stream;
use crate::stream::config::{Config as StreamConfig, Echo};
use crate::stream::congestion::{Acked, Congestion, Signal, Start};

/// DCTCP endpoints.
pub type Dctcp = Stream<Window>;

/// DCTCP.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Weight of the newest window in the estimate of marks: g. Default 0.0625 (1/16; RFC 8257 §4.2,
    /// SIGCOMM 2010 §3.4). Above 0, at most 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub g: f64,
    /// The estimate before the first window: alpha. Default 1 (RFC 8257 §3.3). From 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha_initial: f64,
    /// Floor of the retransmission timeout. Unit: time. Default 10 ms (SIGCOMM 2010 §4).
    pub rto_min: Span,
    /// The byte stream.
    pub stream: StreamConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            g: 0.0625,
            alpha_initial: 1.0,
            rto_min: Span::from_us(10_000),
            stream: StreamConfig::default(),
        }
    }
}

impl Config {
    /// What is wrong with the table.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut own = Vec::new();
        if !(self.g > 0.0 && self.g <= 1.0) {
            own.push(Problem::new("g", format!("{}; expected above 0 and at most 1", self.g)));
        }
        if !(0.0..=1.0).contains(&self.alpha_initial) {
            let message = format!("{}; expected 0 to 1", self.alpha_initial);
            own.push(Problem::new("alpha_initial", message));
        }
        self.stream.with(self.rto_min, own)
    }

    /// The endpoints of all hosts.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub fn build(&self, around: &Surroundings) -> Result<Dctcp, Vec<Problem>> {
        let problems = self.check();
        if !problems.is_empty() {
            return Err(problems);
        }
        let plan = self.stream.plan(self.rto_min, Echo::Each);
        let control = Plan { g: self.g, alpha_initial: self.alpha_initial };
        Ok(Stream::with_plan(plan, control, around))
    }
}

/// The checked parameters.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    g: f64,
    alpha_initial: f64,
}

/// The window of one flow. `alpha` is the protocol's own real number; everything else is whole.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    tcp: Thresholds,
    alpha: f64,
    /// DCTCP.WindowEnd: the estimate is renewed when this segment has been acknowledged.
    window_end: u64,
    /// DCTCP.BytesAcked and DCTCP.BytesMarked.
    bytes_acked: u64,
    bytes_marked: u64,
}

impl Window {
    /// RFC 8257 §3.3, steps 1 to 8.
    fn estimate(&mut self, g: f64, acked: &Acked) {
        self.bytes_acked += acked.bytes;
        if acked.is_marked {
            self.bytes_marked += acked.bytes;
        }
        if acked.una <= self.window_end || self.bytes_acked == 0 {
            return;
        }
        let marked = self.bytes_marked as f64 / self.bytes_acked as f64;
        self.alpha = self.alpha * (1.0 - g) + g * marked;
        self.window_end = acked.next;
        self.bytes_acked = 0;
        self.bytes_marked = 0;
    }

    /// The estimate of the share of marked packets.
    #[must_use]
    pub fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl Congestion for Window {
    const NAME: &'static str = "dctcp";
    type Plan = Plan;

    fn new(plan: &Plan, start: &Start) -> Self {
        Self {
            tcp: Thresholds::new(start),
            alpha: plan.alpha_initial,
            window_end: 0,
            bytes_acked: 0,
            bytes_marked: 0,
        }
    }

    #[inline]
    fn window(&self) -> u64 {
        self.tcp.window
    }

    #[inline]
    fn acked(&mut self, plan: &Plan, acked: &Acked) {
        self.estimate(plan.g, acked);
        if self.tcp.may_grow(acked) {
            self.tcp.grow(acked.bytes);
        }
    }

    fn congested(&mut self, _: &Plan, signal: Signal, flight: u64, _: Time) {
        let half = flight.min(self.tcp.window) / 2;
        match signal {
            // RFC 8257 §3.3, step 9.
            Signal::Mark => {
                let window = self.tcp.window as f64;
                self.tcp.cut((window * (1.0 - self.alpha / 2.0)) as u64);
            }
            Signal::Loss => self.tcp.cut(half),
            Signal::Timeout(expiry) => self.tcp.collapse(half, expiry),
        }
    }

    fn syn_lost(&mut self, start: &Start) {
        self.tcp.window = start.segment;
    }
}

#[cfg(test)]
#[path = "dctcp_tests.rs"]
mod tests;
