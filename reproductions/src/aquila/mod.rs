//! Aquila (NSDI 2022): what its fabric carries, how long it takes, and what each of its parts is for.

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
mod repair;
mod requests;
mod sensitivity;
pub mod speed;
mod state;
#[cfg(test)]
mod tests;
mod throughput;
mod timing;
mod tracing;
pub mod upgrade;
mod window;

use crate::paper::experiment;
use crate::{Experiment, Paper};

/// Seeds of a point that takes seconds, quick or not.
const SEEDS: u64 = 5;

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "aquila",
    citation: "Aquila: A unified, low-latency fabric for datacenter networks. Gibson, Hariharan, Lance, McLaren, \
         Montazeri, Singh, Wang, Wassel, Wu, Yoo, Balasubramanian, Chandra, Cutforth, Cuy, Decotigny, Gautam, \
         Iriza, Martin, Roy, Shen, Tan, Tang, Wong-Chan, Zbiciak, Vahdat. NSDI 2022.",
    experiments: EXPERIMENTS,
    configuration: include_str!("../../aquila/configuration.toml"),
    released: include_str!("../../aquila/released.toml"),
};

/// In the order of the paper.
const EXPERIMENTS: &[Experiment] = &[
    experiment!(
        "aquila",
        "ablation",
        "§1",
        "One part left out at a time: cells, credits, solicitation, routing, sampling, classes, order",
        ablation::run,
    ),
    experiment!("aquila", "pair", "§1", "What one TiN sends to another", bursts::one_pair),
    experiment!(
        "aquila",
        "throughput",
        "§2",
        "Uniform traffic and the worst pattern",
        throughput::run
    ),
    experiment!("aquila", "failures", "§2, §3.2", "Links that fail under load", failures::run),
    experiment!(
        "aquila",
        "repair",
        "§3.2, §4.1, §4.3",
        "A controller that writes tables while cells pass",
        repair::run
    ),
    experiment!("aquila", "timing", "§3.1, §3.2, §3.4", "A cell alone, and crossings", timing::run),
    experiment!(
        "aquila",
        "incast",
        "§3.3",
        "Many that send to one: requests, drops, marks",
        incast::run
    ),
    experiment!("aquila", "window", "§3.3", "How much may be asked for", window::run),
    experiment!(
        "aquila",
        "built",
        "§4.2, App. A",
        "Bundles, failure domains, classes of ports",
        built::run,
    ),
    experiment!(
        "aquila",
        "bootstrap",
        "§3.5, §4.4, Fig. 6",
        "A Clique that boots itself: how long, in how many waves, in how much memory",
        bootstrap::run,
    ),
    experiment!("aquila", "state", "§4.2", "How much a controller has to install", state::run),
    experiment!("aquila", "fig7", "§5.1, Fig. 7", "Round trips of IP under load", lookups::run),
    experiment!("aquila", "headline", "§1, §3.4", "A read of remote memory alone", headline::run),
    experiment!("aquila", "fig8", "§5.1, Fig. 8", "Remote memory under load", fig8::run),
    experiment!(
        "aquila",
        "fig9",
        "§5.1, Fig. 9",
        "Remote memory beside bulk traffic, and lookups on Ethernet",
        fig9::run,
    ),
    experiment!(
        "aquila",
        "fig9-slowest",
        "§5.1, Fig. 9",
        "The slowest of a thousand reads beside bulk traffic",
        fig9::slowest
    ),
    experiment!("aquila", "fig10", "§5.1, §6, Fig. 10", "Bursts that meet themselves", bursts::run),
    experiment!(
        "aquila",
        "fig11",
        "§5.2, Fig. 11",
        "Lookups over engines and by remote memory",
        applications::run,
    ),
    experiment!("aquila", "hosts", "§2, §5.1", "One or two hosts at a TiN", hosts::run),
    experiment!(
        "aquila",
        "legacy",
        "§6",
        "Applications that sleep until an answer is there",
        legacy::run,
    ),
    experiment!("aquila", "overhead", "§6", "What cells and solicitation cost", overhead::run),
    experiment!("aquila", "tracing", "§6", "Faults that tracing finds", tracing::run),
    experiment!("aquila", "clocks", "App. B", "One clock for all", clocks::run),
];
