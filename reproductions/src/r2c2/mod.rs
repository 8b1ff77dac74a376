//! R2C2 (SIGCOMM 2015): its experiments, apart from those on its cluster.

mod arithmetic;
mod assigned;
mod capacity;
mod completion;
mod control;
mod headroom;
mod intervals;
mod racks;
mod selection;
mod small;
#[cfg(test)]
mod tests;

use crate::{Effort, Experiment, Failure, Findings, Paper, Watch};

/// Seeds over which anything with chance in it is run (our choice, as few as the interval is worth
/// printing for).
const SEEDS: u64 = 5;

/// The paper.
pub struct R2c2;

/// Carries out one experiment.
type Run = fn(Effort, &mut Watch<'_>) -> Result<Findings, Failure>;

struct Entry {
    experiment: Experiment,
    run: Run,
}

const fn entry(name: &'static str, section: &'static str, what: &'static str, run: Run) -> Entry {
    Entry { experiment: Experiment { name, section, what }, run }
}

/// In the order of the paper.
const ENTRIES: &[Entry] = &[
    entry("fig2", "§2.2.1, Fig. 2", "What routing protocols can carry", capacity::run),
    entry("paths", "§2.2.1", "Shortest paths of a flow", arithmetic::paths),
    entry("fig9", "§3.2, §5.1, §6, Fig. 9", "Bytes of broadcasts", arithmetic::broadcasts),
    entry("examples", "§3.3.1, Figs 3, 4", "Worked examples", arithmetic::examples),
    entry("memory", "§4.2", "Memory of a node's tables", arithmetic::memory),
    entry("fig7", "§5.1, Fig. 7", "16 nodes: throughput and queues", small::run),
    entry("fig8", "§5.1, Fig. 8", "Time to compute rates", intervals::cost),
    entry("fig10", "§5.2, Figs 10, 11", "Short and long flows beside TCP and PFQ", completion::run),
    entry("fig12", "§5.2, Figs 12 to 14", "The same against load; queues", completion::sweep),
    entry("fig15", "§5.2, Figs 15, 16", "Rates computed now and then", intervals::run),
    entry("fig17", "§5.2, Fig. 17", "Headroom", headroom::run),
    entry("fig18", "§5.2, Fig. 18", "Search for better routing", selection::run),
    entry("fig19", "§5.2, Fig. 19", "Control traffic beside a controller's", control::run),
];

const EXPERIMENTS: [Experiment; ENTRIES.len()] = {
    let mut list = [ENTRIES[0].experiment; ENTRIES.len()];
    let mut index = 0;
    while index < list.len() {
        list[index] = ENTRIES[index].experiment;
        index += 1;
    }
    list
};

impl Paper for R2c2 {
    fn name(&self) -> &'static str {
        "r2c2"
    }

    fn citation(&self) -> &'static str {
        "R2C2: A Network Stack for Rack-scale Computers. Costa, Ballani, Razavi, Kash. SIGCOMM 2015."
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
        let entry = ENTRIES.iter().find(|entry| entry.experiment.name == experiment.name);
        let entry = entry.expect("the experiment is one of this paper's");
        (entry.run)(effort, watch)
    }
}
