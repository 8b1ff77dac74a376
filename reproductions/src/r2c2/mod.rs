//! R2C2 (SIGCOMM 2015): its experiments, apart from those on its cluster.

mod arithmetic;
mod assigned;
mod capacity;
mod cluster;
mod completion;
mod control;
mod controller;
mod headroom;
mod intervals;
mod racks;
mod saturation;
mod selection;
mod served;
mod slowest;
mod small;
pub mod speed;
#[cfg(test)]
mod tests;
mod ties;

use crate::paper::experiment;
use crate::{Experiment, Paper};

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "r2c2",
    citation: "R2C2: A Network Stack for Rack-scale Computers. Costa, Ballani, Razavi, Kash. SIGCOMM 2015.",
    experiments: EXPERIMENTS,
    configuration: include_str!("../../r2c2/configuration.toml"),
    released: include_str!("../../r2c2/released.toml"),
};

/// In the order of the paper.
const EXPERIMENTS: &[Experiment] = &[
    experiment!(
        "r2c2",
        "fig2",
        "§2.2.1, Fig. 2",
        "What routing protocols can carry",
        capacity::run
    ),
    experiment!(
        "r2c2",
        "saturation",
        "§2.2.1, Fig. 2",
        "What routing protocols carry, by packets",
        saturation::run,
    ),
    experiment!("r2c2", "paths", "§2.2.1", "Shortest paths of a flow", arithmetic::paths),
    experiment!(
        "r2c2",
        "fig9",
        "§3.2, §5.1, §6, Fig. 9",
        "Bytes of broadcasts",
        arithmetic::broadcasts,
    ),
    experiment!("r2c2", "examples", "§3.3.1, Figs 3, 4", "Worked examples", arithmetic::examples),
    experiment!("r2c2", "memory", "§3.4, §4.2", "Sizes of tables and packets", arithmetic::memory),
    experiment!("r2c2", "fig7", "§5.1, Fig. 7", "16 nodes: throughput and queues", small::run),
    experiment!("r2c2", "fig8", "§5.1, Fig. 8", "Time to compute rates", intervals::cost),
    experiment!(
        "r2c2",
        "fig10",
        "§5.2, Figs 10, 11",
        "Short and long flows beside TCP and PFQ",
        completion::run,
    ),
    experiment!(
        "r2c2",
        "fig12",
        "§5.2, Figs 12 to 14",
        "The same against load; queues",
        completion::sweep,
    ),
    experiment!(
        "r2c2",
        "shorter",
        "§5.2, Fig. 14",
        "What grows with a run, in shorter ones",
        completion::shorter
    ),
    experiment!(
        "r2c2",
        "limited",
        "§5.2, Figs 10 to 14",
        "Flows whose applications limit them",
        completion::limited
    ),
    experiment!(
        "r2c2",
        "fig15",
        "§5.2, Figs 15, 16",
        "Rates computed now and then",
        intervals::run
    ),
    experiment!("r2c2", "served", "§5.2, Figs 15, 16", "The same with packets", served::run),
    experiment!("r2c2", "fig17", "§5.2, Fig. 17", "Headroom", headroom::run),
    experiment!("r2c2", "fig18", "§5.2, Fig. 18", "Search for better routing", selection::run),
    experiment!(
        "r2c2",
        "fig19",
        "§5.2, Fig. 19",
        "Control traffic beside a controller's",
        control::run,
    ),
    experiment!(
        "r2c2",
        "controller",
        "§5.2, Fig. 19",
        "Control traffic beside a controller's, by packets",
        controller::run,
    ),
    experiment!("r2c2", "cluster", "§6", "Two racks joined", cluster::run),
];
