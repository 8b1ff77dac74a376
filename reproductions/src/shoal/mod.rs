//! Shoal (NSDI 2019): its experiments.

mod beside;
mod bootstrap;
mod convergence;
mod datacentre;
mod detour;
mod epoch;
mod equipment;
mod failures;
mod fairness;
mod incast;
mod pools;
mod prototype;
mod racks;
mod readings;
mod scale;
mod table1;
mod throughput;
mod timing;
mod torus;

use crate::paper::experiment;
use crate::{Experiment, Paper};

/// Seeds over which anything with chance in it is run (our choice, as few as the interval is worth
/// printing for).
const SEEDS: u64 = 5;

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "shoal",
    citation: "Shoal: A Network Architecture for Disaggregated Racks. Shrivastav, Valadarsky, Ballani, \
         Costa, Lee, Wang, Agarwal, Weatherspoon. NSDI 2019.",
    experiments: EXPERIMENTS,
    configuration: include_str!("../../shoal/configuration.toml"),
    released: include_str!("../../shoal/released.toml"),
};

/// In the order of the paper.
const EXPERIMENTS: &[Experiment] = &[
    experiment!("shoal", "memory", "§3.3.4, §3.5", "Memory of a node's interface", timing::memory),
    experiment!(
        "shoal",
        "table1",
        "§3.5, Table 1",
        "Slots wasted by a broken component",
        table1::run
    ),
    experiment!(
        "shoal",
        "timing",
        "§3.4, §6.1, §7.1",
        "Slots, guard bands and epochs",
        timing::timing
    ),
    experiment!(
        "shoal",
        "bootstrap",
        "§3.4",
        "The start of a rack, over its circuits",
        bootstrap::run
    ),
    experiment!("shoal", "latency", "§4, §6.2", "Latency from node to node", timing::latency),
    experiment!("shoal", "power", "§5", "Power beside a packet-switched network", equipment::power),
    experiment!(
        "shoal",
        "fig11",
        "§5, Fig. 11",
        "Cost beside a packet-switched network",
        equipment::cost,
    ),
    experiment!(
        "shoal",
        "fig9",
        "§6.2, Fig. 9",
        "Prototype: throughput against slot size",
        prototype::throughput,
    ),
    experiment!("shoal", "fig10", "§6.2, Fig. 10", "Prototype: incast of seven", prototype::incast),
    experiment!(
        "shoal",
        "fig12",
        "§7.2, Fig. 12",
        "Throughput against communicating pairs",
        throughput::run,
    ),
    experiment!("shoal", "scale", "§3.2", "2,048 nodes of 64-port switches", scale::run),
    experiment!(
        "shoal",
        "convergence",
        "§3.3.3",
        "How soon a new flow uses all virtual links",
        convergence::run,
    ),
    experiment!("shoal", "fairness", "§7.2", "Flows against their fair share", fairness::run),
    experiment!("shoal", "fig13", "§7.2, Fig. 13", "Incast: slowest and mean flow", incast::run),
    experiment!(
        "shoal",
        "fig14",
        "§7.2, Fig. 14",
        "What the latency optimisations bring",
        detour::run
    ),
    experiment!(
        "shoal",
        "readings",
        "§3.3, §7.2",
        "Other readings of feedback and of the fair share",
        readings::run,
    ),
    experiment!(
        "shoal",
        "fig15",
        "§7.3, Figs 15, 16",
        "Data-centre workload against load",
        datacentre::run,
    ),
    experiment!(
        "shoal",
        "time-out",
        "§7.3, Fig. 15",
        "Beside DCTCP with a shorter first time-out",
        datacentre::first_time_out,
    ),
    experiment!("shoal", "torus", "§7.3", "Beside a direct-connect rack, R2C2", torus::run),
    experiment!(
        "shoal",
        "torus-start",
        "§7.3",
        "Beside a direct-connect rack whose flows start slower",
        torus::starts
    ),
    experiment!("shoal", "fig17", "§7.3, Fig. 17", "Dead nodes", failures::run),
    experiment!("shoal", "epoch", "§7.3", "What a longer epoch costs", epoch::run),
    experiment!("shoal", "fig18", "§7.4, Fig. 18", "Disaggregated applications", pools::run),
    experiment!(
        "shoal",
        "fig18-blocks",
        "§7.4, Fig. 18",
        "Disaggregated applications that move blocks",
        pools::run_with_blocks,
    ),
    experiment!(
        "shoal",
        "empty-slot",
        "App. A",
        "Cost of the order that waits for feedback",
        timing::empty_slot,
    ),
];
