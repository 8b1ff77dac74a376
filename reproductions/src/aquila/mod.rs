//! Aquila (NSDI 2022): what its fabric carries, how long it takes, and what each of its parts is for.
//!
//! Leaves out: the controller while cells move.

mod ablation;
mod applications;
pub mod boot;
pub mod bootstrap;
mod built;
mod bursts;
mod clique;
mod clocks;
pub mod control;
mod ethernet;
mod failures;
mod fig8;
mod fig9;
mod headline;
mod hosts;
mod incast;
mod legacy;
mod lookups;
mod memory;
mod overhead;
mod pieces;
mod requests;
mod sensitivity;
pub mod speed;
mod state;
#[cfg(test)]
mod tests;
mod throughput;
mod timing;
mod tracing;
mod window;

use crate::{Effort, Experiment, Paper};

/// Seeds of each point.
const SEEDS: u64 = 5;

/// Seeds of a point that takes the whole Clique: a quick look has two.
const fn seeds(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 2,
        Effort::Full => SEEDS,
    }
}

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "aquila",
    citation: "Aquila: A unified, low-latency fabric for datacenter networks. Gibson, Hariharan, Lance, McLaren, \
         Montazeri, Singh, Wang, Wassel, Wu, Yoo, Balasubramanian, Chandra, Cutforth, Cuy, Decotigny, Gautam, \
         Iriza, Martin, Roy, Shen, Tan, Tang, Wong-Chan, Zbiciak, Vahdat. NSDI 2022.",
    experiments: EXPERIMENTS,
    released: include_str!("../../aquila/released.toml"),
};

/// In the order of the paper.
const EXPERIMENTS: &[Experiment] = &[
    Experiment::new(
        "ablation",
        "§1",
        "One part left out at a time: cells, credits, solicitation, routing, sampling, classes, order",
        ablation::run,
    ),
    Experiment::new("pair", "§1", "What one TiN sends to another", bursts::one_pair),
    Experiment::new("throughput", "§2", "Uniform traffic and the worst pattern", throughput::run),
    Experiment::new("failures", "§2, §3.2", "Links that fail under load", failures::run),
    Experiment::new("timing", "§3.1, §3.2, §3.4", "A cell alone, and crossings", timing::run),
    Experiment::new("incast", "§3.3", "Many that send to one: requests, drops, marks", incast::run),
    Experiment::new("window", "§3.3", "How much may be asked for", window::run),
    Experiment::new(
        "built",
        "§4.2, App. A",
        "Bundles, failure domains, classes of ports",
        built::run,
    ),
    Experiment::new(
        "bootstrap",
        "§3.5, §4.4, Fig. 6",
        "A Clique that boots itself: how long, in how many waves, in how much memory",
        bootstrap::run,
    ),
    Experiment::new("state", "§4.2", "How much a controller has to install", state::run),
    Experiment::new("fig7", "§5.1, Fig. 7", "Round trips of IP under load", lookups::run),
    Experiment::new("headline", "§1, §3.4", "A read of remote memory alone", headline::run),
    Experiment::new("fig8", "§5.1, Fig. 8", "Remote memory under load", fig8::run),
    Experiment::new(
        "fig9",
        "§5.1, Fig. 9",
        "Remote memory beside bulk traffic, and lookups on Ethernet",
        fig9::run,
    ),
    Experiment::new("fig10", "§5.1, §6, Fig. 10", "Bursts that meet themselves", bursts::run),
    Experiment::new(
        "fig11",
        "§5.2, Fig. 11",
        "Lookups over engines and by remote memory",
        applications::run,
    ),
    Experiment::new("hosts", "§2, §5.1", "One or two hosts at a TiN", hosts::run),
    Experiment::new(
        "legacy",
        "§6",
        "Applications that sleep until an answer is there",
        legacy::run,
    ),
    Experiment::new("overhead", "§6", "What cells and solicitation cost", overhead::run),
    Experiment::new("tracing", "§6", "Faults that tracing finds", tracing::run),
    Experiment::new("clocks", "App. B", "One clock for all", clocks::run),
];
