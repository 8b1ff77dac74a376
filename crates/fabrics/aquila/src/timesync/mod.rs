//! TimeSync: one clock for all TiNs of a Clique.
//!
//! Models: Aquila App. B (M910 to M916): a TiN counts cycles of its own oscillator ([`clock`]); one TiN is the primary, the
//! others follow it along a tree of links that software has set up ([`tree`], [`Coordinator`]); the time goes down the tree in
//! ordered sets between cells, each with the instant at which it went on the wire, whatever it waited for; who receives
//! one adds what the link takes, which was measured before, and passes the time on at once ([`Node`]).
//!
//! **Our choice** where App. B gives no figures (U54): how a delay is measured and averaged, the bits of the status, which
//! TiN is the primary, when a client says that it hears nothing, and what software makes of that.
//!
//! **Invariant:** a node knows its own cycles and what sets and software told it; true time is the measurement's alone
//! ([`measure`]).

pub mod clock;
mod coordinator;
mod delay;
pub mod measure;
mod node;
#[cfg(test)]
mod tests;
pub mod tree;

use kernel::Span;
use rack::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::switch::settings::TICK;

pub use coordinator::{Coordinator, Failure, Order};
pub use node::{Counts, Input, Node, Output, Quality, Role, Sending};

/// How clocks are kept together, and whether a run measures them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// For how long a scenario's clocks are measured, from when all follow the primary, beside its traffic and its
    /// faults: the summary says how far off they were. Unit: time. Default 0 ns: not at all. Up to
    /// 100 ms.
    #[schemars(extend("x-maximum" = "100 ms"))]
    pub measured: Span,
    /// From one set to the next. Unit: time. Default 100 us (Aquila App. B.2). From 10 us to 10 ms.
    #[schemars(extend("x-minimum" = "10 us", "x-maximum" = "10 ms"))]
    pub interval: Span,
    /// How far oscillators are off, at most. Unit: millionths. Default 100 (our choice, U54). Up to 1000.
    #[schemars(range(max = 1_000))]
    pub parts_per_million: u32,
    /// What is further off than this is not applied. Unit: time. Default 50 ns (our choice, M915). From 10 ns to 10 us.
    #[schemars(extend("x-minimum" = "10 ns", "x-maximum" = "10 us"))]
    pub threshold: Span,
    /// So many sets in a row that are not applied are a failure. Default 8 (our choice, M915). At least 1.
    #[schemars(range(min = 1))]
    pub invalid_max: u8,
    /// So is having heard nothing for so long. Unit: time. Default 400 us: four sets (our choice). From 20 us to 1 s.
    #[schemars(extend("x-minimum" = "20 us", "x-maximum" = "1 s"))]
    pub silence: Span,
    /// Measurements of a delay that are averaged. Default 16 (our choice). At least 1.
    #[schemars(range(min = 1))]
    pub samples: u8,
    /// What a set may wait for the wire, at most. Unit: time. Default 128 ns (Aquila App. B.2). Up to 1 us.
    #[schemars(extend("x-maximum" = "1 us"))]
    pub wait: Span,
    /// What software takes to hear of something, and to have something done. Unit: time. Default 100 us each (our
    /// choice). Up to 10 ms.
    #[schemars(extend("x-maximum" = "10 ms"))]
    pub software: Span,
    /// For how long software gathers failures before it acts on them. Unit: time. Default 50 us (our choice). Up to
    /// 10 ms.
    #[schemars(extend("x-maximum" = "10 ms"))]
    pub gather: Span,
}

impl Settings {
    /// Every mistake in it.
    #[must_use]
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.silence < self.interval * 2 {
            let least = self.interval * 2;
            let message = format!("{}; expected {least}, two sets, at least", self.silence);
            problems.push(Problem::new("silence", message));
        }
        rack::ranges::check(self, problems)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            measured: Span::ZERO,
            interval: Span::from_us(100),
            parts_per_million: 100,
            threshold: Span::from_ns(50),
            invalid_max: 8,
            silence: Span::from_us(400),
            samples: 16,
            wait: Span::from_ns(128),
            software: Span::from_us(100),
            gather: Span::from_us(50),
        }
    }
}

/// A duration in cycles of a clock that is right.
const fn cycles(span: Span) -> u64 {
    span.as_ps() / TICK.as_ps()
}
