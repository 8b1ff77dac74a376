//! SCOC (HPCA 2015): the experiments on the switch alone.

mod causes;
mod chip;
mod delay;
mod fairness;
mod hot_spot;
mod routes;
mod scale;
mod spine;
#[cfg(test)]
mod tests;
mod throughput;
pub mod tools;
mod unbalanced;

use scoc::{ChipConfig, CrrdConfig, CutThrough};
use switching::{Bench, Line, Switch, Traffic};

use crate::paper::experiment;
use crate::{Experiment, Failure, Paper};

/// Seeds of each point (§4.E: "at least five").
const SEEDS: u64 = 5;

/// The paper.
pub(crate) const PAPER: Paper = Paper {
    name: "scoc",
    citation: "SCOC: High-Radix Switches Made of Bufferless Clos Networks. Chrysos, Minkenberg, Rudquist, \
         Basso, Vanderpool. HPCA 2015.",
    experiments: EXPERIMENTS,
    configuration: include_str!("../../scoc/configuration.toml"),
    released: include_str!("../../scoc/released.toml"),
};

/// In the order of the paper.
const EXPERIMENTS: &[Experiment] = &[
    experiment!(
        "scoc",
        "fairness",
        "§3.A, Figs. 5, 6",
        "Fairness microbenchmarks 1 to 7",
        fairness::run,
    ),
    experiment!("scoc", "fig8", "§4.B, Fig. 8", "Effective iterations", |_, _| {
        Ok(routes::iterations())
    }),
    experiment!(
        "scoc",
        "fig9",
        "§4.C, Fig. 9",
        "Route allocation: F, F′ and Eq. 1",
        routes::allocation,
    ),
    experiment!(
        "scoc",
        "fig10",
        "§4.C, §4.D, Fig. 10",
        "Random permutations, two modes",
        throughput::permutations,
    ),
    experiment!(
        "scoc",
        "fig11",
        "§4.E, Fig. 11",
        "Delay under uniform, partitioned and diagonal traffic",
        delay::run,
    ),
    experiment!(
        "scoc",
        "fig12",
        "§4.E, Fig. 12",
        "Unbalanced traffic, packet sizes, ways of requesting",
        unbalanced::run,
    ),
    experiment!("scoc", "causes", "§4.E", "What rows that differ hang on", causes::run),
    experiment!(
        "scoc",
        "scale",
        "§4.E",
        "More ports, more routes, messages of a data centre",
        scale::run,
    ),
    experiment!(
        "scoc",
        "spine",
        "§4.F, §5, §6.A",
        "Spines of a rack, with end-to-end credits",
        spine::run,
    ),
    experiment!("scoc", "chip", "§1, §4.E, §5", "The chip's own figures", chip::run),
    experiment!(
        "scoc",
        "hot-spot",
        "§6.A",
        "One output that all inputs want more of",
        hot_spot::run
    ),
];

/// The chip as the paper's own experiments have it: a packet may be sent from its first bit on, or
/// its fall-through time could not be the same for every size (§4.E).
fn papers_chip() -> ChipConfig {
    ChipConfig { cut_through: CutThrough::FirstBit, ..ChipConfig::default() }
}

/// CRRD with as much room at an output as Flat has (§4.E): the paper says nothing of its last stage (our choice).
fn papers_crrd() -> CrrdConfig {
    CrrdConfig { output_packets: 16, ..CrrdConfig::default() }
}

/// Packet times of 288 B that are not measured and that are.
type Window = (u64, u64);

/// A bench that has run a window.
fn run_bench<S: Switch>(
    switch: S,
    line: Line,
    traffic: Traffic,
    (warm_up, measured): Window,
    seed: u64,
) -> Result<Bench<S>, Failure> {
    let packet = line.cycle_from(line.send_time(kernel::Bytes::new(288)));
    let mut bench = Bench::new(switch, line, traffic, seed);
    bench.run(warm_up * packet, measured * packet);
    bench.check().map_err(Failure::Model)?;
    Ok(bench)
}
