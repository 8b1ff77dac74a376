//! Homa (SIGCOMM 2018): its simulations.

mod messages;
mod slowdowns;
#[cfg(test)]
mod tests;

use crate::{Experiment, Paper};

/// Seeds over which each point is run (our choice, as few as the interval is worth printing for).
const SEEDS: u64 = 5;

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "homa",
    citation: "Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network Priorities. Montazeri, \
         Li, Alizadeh, Ousterhout. SIGCOMM 2018.",
    experiments: &[Experiment::new(
        "fig12",
        "§5.2, Figs 12, 13",
        "Slowdown of messages by size, W1 to W5 at 80 % load",
        slowdowns::run,
    )],
    released: include_str!("../../homa/released.toml"),
};
