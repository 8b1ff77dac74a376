//! Homa (SIGCOMM 2018): its simulations.

mod messages;
mod slowdowns;
#[cfg(test)]
mod tests;

use serde::Deserialize;

use crate::{Effort, Experiment, Failure, Findings, Paper, Watch};

/// Seeds over which each point is run (our choice, as few as the interval is worth printing for).
const SEEDS: u64 = 5;

/// The paper.
pub struct Homa;

const EXPERIMENTS: [Experiment; 1] = [Experiment {
    name: "fig12",
    section: "§5.2, Figs 12, 13",
    what: "Slowdown of messages by size, W1 to W5 at 80 % load",
}];

/// The rows that the last release reproduced.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Released {
    quick: Vec<String>,
    full: Vec<String>,
}

impl Paper for Homa {
    fn name(&self) -> &'static str {
        "homa"
    }

    fn citation(&self) -> &'static str {
        "Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network Priorities. Montazeri, \
         Li, Alizadeh, Ousterhout. SIGCOMM 2018."
    }

    fn experiments(&self) -> &'static [Experiment] {
        &EXPERIMENTS
    }

    fn released(&self, effort: Effort) -> Vec<String> {
        let text = include_str!("../../homa/released.toml");
        let released: Released = toml::from_str(text).expect("a test reads it");
        match effort {
            Effort::Quick => released.quick,
            Effort::Full => released.full,
        }
    }

    fn run(
        &self,
        experiment: &Experiment,
        effort: Effort,
        watch: &mut Watch<'_>,
    ) -> Result<Findings, Failure> {
        match experiment.name {
            "fig12" => slowdowns::run(effort, watch),
            other => unreachable!("{other} is not one of this paper's experiments"),
        }
    }
}
