//! Homa (SIGCOMM 2018): its simulations.

mod messages;
mod slowdowns;
#[cfg(test)]
mod tests;

use crate::Paper;
use crate::paper::experiment;

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "homa",
    citation: "Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network Priorities. Montazeri, \
         Li, Alizadeh, Ousterhout. SIGCOMM 2018.",
    experiments: &[experiment!(
        "homa",
        "fig12",
        "§5.2, Figs 12, 13",
        "Slowdown of messages by size, W1 to W5 at 80 % load",
        slowdowns::run,
    )],
    configuration: include_str!("../../homa/configuration.toml"),
    released: include_str!("../../homa/released.toml"),
};
