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

use crate::switch::settings::TICK;

pub use coordinator::{Coordinator, Failure, Order};
pub use node::{Counts, Input, Node, Output, Quality, Role, Sending};

/// How clocks are kept together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// From one set to the next. Default 100 us (Aquila App. B.2).
    pub interval: Span,
    /// How far oscillators are off, at most. Unit: millionths. Default 100 (our choice, U54).
    pub parts_per_million: u32,
    /// What is further off than this is not applied. Default 50 ns (our choice, M915).
    pub threshold: Span,
    /// So many sets in a row that are not applied are a failure. Default 8 (our choice, M915).
    pub invalid_max: u8,
    /// So is having heard nothing for so long. Default 400 us: four sets (our choice).
    pub silence: Span,
    /// Measurements of a delay that are averaged. Default 16 (our choice).
    pub samples: u8,
    /// What a set may wait for the wire, at most. Default 128 ns (Aquila App. B.2).
    pub wait: Span,
    /// What software takes to hear of something, and to have something done. Default 100 us each (our choice).
    pub software: Span,
    /// For how long software gathers failures before it acts on them. Default 50 us (our choice).
    pub gather: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
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
