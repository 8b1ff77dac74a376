//! Shoal (NSDI 2019): its experiments.

mod beside;
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
mod table1;
mod throughput;
mod timing;
mod torus;

use serde::Deserialize;

use crate::{Effort, Experiment, Failure, Findings, Paper, Watch};

/// Seeds over which anything with chance in it is run (our choice, as few as the interval is worth
/// printing for).
const SEEDS: u64 = 5;

/// The paper.
pub struct Shoal;

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
    entry("memory", "§3.3.4, §3.5", "Memory of a node's interface", timing::memory),
    entry("table1", "§3.5, Table 1", "Slots wasted by a broken component", table1::run),
    entry("timing", "§3.4, §6.1, §7.1", "Slots, guard bands and epochs", timing::timing),
    entry("latency", "§4, §6.2", "Latency from node to node", timing::latency),
    entry("power", "§5", "Power beside a packet-switched network", equipment::power),
    entry("fig11", "§5, Fig. 11", "Cost beside a packet-switched network", equipment::cost),
    entry("fig9", "§6.2, Fig. 9", "Prototype: throughput against slot size", prototype::throughput),
    entry("fig10", "§6.2, Fig. 10", "Prototype: incast of seven", prototype::incast),
    entry("fig12", "§7.2, Fig. 12", "Throughput against communicating pairs", throughput::run),
    entry("fairness", "§7.2", "Flows against their fair share", fairness::run),
    entry("fig13", "§7.2, Fig. 13", "Incast: slowest and mean flow", incast::run),
    entry("fig14", "§7.2, Fig. 14", "What the latency optimisations bring", detour::run),
    entry("fig15", "§7.3, Figs 15, 16", "Data-centre workload against load", datacentre::run),
    entry("torus", "§7.3", "Beside a direct-connect rack, R2C2", torus::run),
    entry("fig17", "§7.3, Fig. 17", "Dead nodes", failures::run),
    entry("epoch", "§7.3", "What a longer epoch costs", epoch::run),
    entry("fig18", "§7.4, Fig. 18", "Disaggregated applications", pools::run),
    entry("empty-slot", "App. A", "Cost of the order that waits for feedback", timing::empty_slot),
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

/// The rows that the last release reproduced.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Released {
    quick: Vec<String>,
    full: Vec<String>,
}

impl Paper for Shoal {
    fn name(&self) -> &'static str {
        "shoal"
    }

    fn citation(&self) -> &'static str {
        "Shoal: A Network Architecture for Disaggregated Racks. Shrivastav, Valadarsky, Ballani, \
         Costa, Lee, Wang, Agarwal, Weatherspoon. NSDI 2019."
    }

    fn experiments(&self) -> &'static [Experiment] {
        &EXPERIMENTS
    }

    fn released(&self, effort: Effort) -> Vec<String> {
        let text = include_str!("../../shoal/released.toml");
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
        let entry = ENTRIES.iter().find(|entry| entry.experiment.name == experiment.name);
        let entry = entry.expect("the experiment is one of this paper's");
        (entry.run)(effort, watch)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
