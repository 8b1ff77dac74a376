//! NewReno: the standard congestion control of TCP.
//!
//! Models: RFC 5681 §3.1 (slow start, congestion avoidance by bytes, eqs. 2 and 4), §3.2 with RFC
//! 6675 or RFC 6582 for recovery, RFC 3168 §6.1.2 (a mark halves the window as a loss does).
//! Leaves out: appropriate byte counting in slow start (RFC 3465), restart after idle time, for a
//! flow is one message.

use kernel::{Span, Time};
use packets::Surroundings;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stream::Stream;
use crate::stream::config::{Config as StreamConfig, Echo};
use crate::stream::congestion::{Acked, Congestion, Expiry, Phase, Signal, Start};

/// TCP NewReno endpoints.
pub type NewReno = Stream<Window>;

/// TCP NewReno.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether packets may be marked instead of dropped. Default false (RFC 3168).
    pub ecn: bool,
    /// Floor of the retransmission timeout. Unit: time. Default 200 ms (Linux's; RFC 6298 §2.4 says
    /// 1 s, which no rack uses).
    pub rto_min: Span,
    /// The byte stream.
    pub stream: StreamConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self { ecn: false, rto_min: Span::from_us(200_000), stream: StreamConfig::default() }
    }
}

impl Config {
    /// What is wrong with the table.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        self.stream.with(self.rto_min, Vec::new())
    }

    /// The endpoints of all hosts.
    ///
    /// # Errors
    /// What is wrong with the table.
    pub fn build(&self, around: &Surroundings) -> Result<NewReno, Vec<Problem>> {
        let problems = self.check();
        if !problems.is_empty() {
            return Err(problems);
        }
        let echo = if self.ecn { Echo::UntilAnswered } else { Echo::None };
        let plan = self.stream.plan(self.rto_min, echo);
        Ok(Stream::with_plan(plan, (), around))
    }
}

/// Slow start and the threshold that ends it: what all of the family share that grow as TCP does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Thresholds {
    /// cwnd, in bytes.
    pub(crate) window: u64,
    /// ssthresh, in bytes.
    pub(crate) threshold: u64,
    /// SMSS.
    pub(crate) segment: u64,
    /// Bytes acknowledged in congestion avoidance since the window grew last.
    pub(crate) credit: u64,
}

impl Thresholds {
    pub(crate) fn new(start: &Start) -> Self {
        let (window, segment) = (start.window.max(start.segment), start.segment);
        Self { window, threshold: u64::MAX, segment, credit: 0 }
    }

    #[inline]
    pub(crate) fn is_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Whether this acknowledgment may make the window grow at all.
    #[inline]
    pub(crate) fn may_grow(&self, acked: &Acked) -> bool {
        let is_used = match self.is_slow_start() {
            true => acked.fills_half(self.window),
            false => acked.fills(self.window, self.segment),
        };
        acked.bytes > 0 && !acked.is_marked && acked.phase != Phase::Recovery && is_used
    }

    /// RFC 5681 §3.1: in slow start by what was acknowledged, at most a segment (eq. 2); then by a
    /// segment for each window acknowledged.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: u64) {
        if self.is_slow_start() {
            self.window += bytes.min(self.segment);
            return;
        }
        self.credit += bytes;
        if self.credit >= self.window {
            self.credit -= self.window;
            self.window += self.segment;
        }
    }

    /// No threshold is below this (RFC 5681, eq. 4).
    pub(crate) fn floor(&self) -> u64 {
        2 * self.segment
    }

    /// Goes on from `to` or the floor in congestion avoidance.
    pub(crate) fn cut(&mut self, to: u64) {
        self.threshold = to.max(self.floor());
        self.window = self.threshold;
        self.credit = 0;
    }

    /// After a timeout: one segment, and slow start to the threshold, which stays where it is when
    /// the same segment times out again (RFC 5681 §3.1).
    pub(crate) fn collapse(&mut self, threshold: u64, expiry: Expiry) {
        if expiry == Expiry::First {
            self.threshold = threshold.max(self.floor());
        }
        self.window = self.segment;
        self.credit = 0;
    }
}

/// The window of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window(pub(crate) Thresholds);

impl Congestion for Window {
    const NAME: &'static str = "newreno";
    type Plan = ();

    fn new((): &(), start: &Start) -> Self {
        Self(Thresholds::new(start))
    }

    #[inline]
    fn window(&self) -> u64 {
        self.0.window
    }

    #[inline]
    fn acked(&mut self, (): &(), acked: &Acked) {
        if self.0.may_grow(acked) {
            self.0.grow(acked.bytes);
        }
    }

    fn congested(&mut self, (): &(), signal: Signal, flight: u64, _: Time) {
        // What limited transmit sent on top does not count (RFC 5681 §3.2, step 2).
        let half = flight.min(self.0.window) / 2;
        match signal {
            Signal::Loss | Signal::Mark => self.0.cut(half),
            Signal::Timeout(expiry) => self.0.collapse(half, expiry),
        }
    }

    fn syn_lost(&mut self, start: &Start) {
        self.0.window = start.segment;
    }
}

#[cfg(test)]
#[path = "newreno_tests.rs"]
pub(crate) mod tests;
