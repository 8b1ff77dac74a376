//! Published experiments, repeated: one folder a paper.
//!
//! A paper's folder holds its scenarios, and beside each the published figures with the tolerance
//! that ours are held to. The code varies the scenarios, measures, and draws; it holds no published
//! figure.
//!
//! **Invariant:** knows no command line. What a paper is made of stands in [`paper`].

pub mod aquila;
pub mod claims;
pub mod configuration;
mod drawing;
mod homa;
pub mod kept;
pub mod paper;
mod pl2;
pub mod r2c2;
pub mod runs;
pub mod scoc;
mod shoal;
pub mod spread;
pub mod steady;
#[cfg(test)]
mod tests;

pub use paper::{Effort, Experiment, Failure, Findings, Paper, Watch, Watcher};

/// Every paper of this build, one line each.
static PAPERS: &[Paper] =
    &[shoal::PAPER, scoc::PAPER, r2c2::PAPER, pl2::PAPER, homa::PAPER, aquila::PAPER];

/// Every paper of this build.
#[must_use]
pub fn papers() -> &'static [Paper] {
    PAPERS
}
