//! SCOC (HPCA 2015): the experiments on the switch alone.

mod fairness;
mod routes;
#[cfg(test)]
mod tests;
mod throughput;
mod unbalanced;

use report::page::{Block, Section};

use crate::claims::Sheet;
use crate::{Effort, Experiment, Failure, Findings, Paper, Watch};

/// Seeds of each point (§4.E: "at least five").
const SEEDS: u64 = 5;

/// The paper.
pub struct Scoc;

const fn experiment(name: &'static str, section: &'static str, what: &'static str) -> Experiment {
    Experiment { name, section, what }
}

/// In the order of the paper.
const EXPERIMENTS: [Experiment; 5] = [
    experiment("fairness", "§3.A, Figs. 5, 6", "Fairness microbenchmarks 1 to 7"),
    experiment("fig8", "§4.B, Fig. 8", "Effective iterations"),
    experiment("fig9", "§4.C, Fig. 9", "Route allocation: F, F′ and Eq. 1"),
    experiment("fig10", "§4.C, §4.D, Fig. 10", "Random permutations, two modes"),
    experiment("fig12", "§4.E, Fig. 12", "Unbalanced traffic, packet sizes, ways of requesting"),
];

impl Paper for Scoc {
    fn name(&self) -> &'static str {
        "scoc"
    }

    fn citation(&self) -> &'static str {
        "SCOC: High-Radix Switches Made of Bufferless Clos Networks. Chrysos, Minkenberg, Rudquist, \
         Basso, Vanderpool. HPCA 2015."
    }

    fn experiments(&self) -> &'static [Experiment] {
        &EXPERIMENTS
    }

    fn run(
        &self,
        experiment: &Experiment,
        effort: Effort,
        watch: &mut Watch<'_>,
    ) -> Result<Findings, Failure> {
        match experiment.name {
            "fairness" => fairness::run(effort, watch),
            "fig8" => Ok(routes::iterations()),
            "fig9" => routes::allocation(effort, watch),
            "fig12" => unbalanced::run(effort, watch),
            "fig10" => throughput::permutations(effort, watch),
            other => unreachable!("{other} is not one of this paper's experiments"),
        }
    }
}

/// An experiment's part of the report.
fn findings(title: &str, text: &str, blocks: Vec<Block>, sheet: Sheet) -> Findings {
    let blocks = std::iter::once(Block::Text(text.into())).chain(blocks).collect();
    Findings { claims: sheet.finish(), section: Section { title: title.into(), blocks } }
}
