//! Flows against their fair share (§7.2).

use rack::NodeId;
use rack::fairness::{Use, max_min};
use report::Unit;
use report::page::{Axis, Block};
use serde_json::json;
use shoal::Config;

use super::SEEDS;
use super::drawing::{curve, distribution, findings, level, plot};
use super::throughput::{cells_an_epoch, pairs, window};
use crate::claims::{Measured, Sheet, Spread};
use crate::runs::{ScenarioFile, config_of};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FAIRNESS: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fairness.toml",
    text: include_str!("../../shoal/fairness.toml"),
};

/// Flows of the workloads (Shoal §7.2: from 50 to 1,024).
const FLOWS: [u32; 5] = [50, 128, 256, 512, 1024];
/// The ends and the middle of them, for a quick look.
const FLOWS_QUICK: [u32; 3] = [50, 256, 1024];
/// Shoal §7.2: within 10 % of the ideal.
const MARGIN: f64 = 0.1;

/// Whether local flows wait in a ready queue (§3.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReadyQueue {
    Off,
    On,
}

/// The fair share of each pair in cells an epoch: water-filling of all its subflows on the mesh of
/// virtual links, each of which carries a cell an epoch.
pub(super) fn ideal(nodes: u32, pairs: &[(NodeId, NodeId)]) -> Vec<f64> {
    let link = |from: u32, to: u32| from as usize * nodes as usize + to as usize;
    let mut subflows = Vec::new();
    for &(src, dst) in pairs {
        let (src, dst) = (src.get(), dst.get());
        for via in (0..nodes).filter(|&via| via != src) {
            let mut uses = vec![Use { link: link(src, via), share: 1.0 }];
            if via != dst {
                uses.push(Use { link: link(via, dst), share: 1.0 });
            }
            subflows.push(uses);
        }
    }
    let capacities = vec![1.0; nodes as usize * nodes as usize];
    let rates = max_min(&capacities, &subflows);
    rates.chunks(nodes as usize - 1).map(|of_pair| of_pair.iter().sum()).collect()
}

/// E08.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fairness.claims.toml"));
    let (epochs, counts) = match effort {
        Effort::Quick => ((30, 70), &FLOWS_QUICK[..]),
        Effort::Full => ((100, 1_000), &FLOWS[..]),
    };
    let variants: Vec<_> = [ReadyQueue::Off, ReadyQueue::On]
        .into_iter()
        .flat_map(|ready| counts.iter().map(move |&flows| (ready, flows)))
        .collect();
    let jobs = with_seeds(&variants, SEEDS);
    let ratios = spread(&jobs, watch, |&((ready, flows), seed), pulse| {
        let on = json!(ready == ReadyQueue::On);
        let settings = [
            ("workload.flows", json!(flows)),
            ("fabric.ready_queue", on.clone()),
            ("fabric.feedback_counts_ready", on),
        ];
        let scenario = FAIRNESS.with(&settings, seed)?;
        let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
        let steady = window(&plan, epochs.0, epochs.1);
        let pairs = pairs(&scenario)?;
        let rates = cells_an_epoch(&plan, &pairs, &steady, seed, pulse)?;
        let ideal = ideal(plan.config.nodes, &pairs);
        Ok(rates.iter().zip(&ideal).map(|(rate, ideal)| rate / ideal).collect::<Vec<f64>>())
    })?;
    let near = |ratios: &Vec<f64>| {
        let count = ratios.iter().filter(|ratio| (*ratio - 1.0).abs() <= MARGIN).count();
        count as f64 / ratios.len() as f64
    };
    let shares: Vec<Vec<f64>> =
        ratios.chunks(SEEDS as usize).map(|runs| runs.iter().map(near).collect()).collect();
    let (off, on) = shares.split_at(counts.len());
    let worst = |shares: &[Vec<f64>]| {
        let mean = |shares: &&Vec<f64>| shares.iter().sum::<f64>();
        shares
            .iter()
            .min_by(|a, b| mean(a).total_cmp(&mean(b)))
            .expect("there are workloads")
            .clone()
    };
    sheet.measure("fairness.without-ready-queue", Measured::mean(&worst(off)));
    sheet.measure("fairness.with-ready-queue", Measured::mean(&worst(on)));

    let line = |name: &str, shares: &[Vec<f64>]| {
        let points = counts.iter().zip(shares);
        let points: Vec<_> = points.map(|(&f, s)| (f64::from(f), Spread::of(s))).collect();
        curve(name, &points)
    };
    let x = Axis::linear("Flows", Unit::Count);
    let y = Axis::linear("Flows within 10 % of their fair share", Unit::Share);
    let series = vec![
        line("without ready queue", off),
        line("with ready queue", on),
        level("published", 0.0, sheet.number("fairness.without-ready-queue")),
    ];
    let shares = plot("Fairness", "Bars: least and most over five seeds.", x, y, series);
    let largest = |ready: usize| {
        let first = (ready * counts.len() + counts.len() - 1) * SEEDS as usize;
        ratios[first..first + SEEDS as usize].concat()
    };
    let series = vec![
        distribution("without ready queue", &largest(0)),
        distribution("with ready queue", &largest(1)),
    ];
    let x = Axis::linear("Rate, of the fair share", Unit::Ratio);
    let y = Axis::linear("Share of flows", Unit::Share);
    let note = "1,024 flows, all seeds.";
    let distribution = plot("Rates of 1,024 flows", note, x, y, series);
    let text = "Endless flows between random nodes; each flow's rate over a window in which all \
                are under way, against its max-min fair share. Two flows between the same nodes \
                are one to Shoal.";
    Ok(findings("Fairness", text, vec![Block::Plots(vec![shares, distribution])], sheet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_flows_from_one_node_share_its_links_and_two_to_one_node_share_that_ones() {
        let node = NodeId::new;
        let out = ideal(5, &[(node(0), node(1)), (node(0), node(2))]);
        // Four links leave node 0, each halved.
        assert_eq!(out, [2.0, 2.0]);
        let into = ideal(5, &[(node(1), node(0)), (node(2), node(0))]);
        assert_eq!(into, [2.0, 2.0]);
        assert_eq!(ideal(5, &[(node(1), node(0))]), [4.0]);
    }
}
