//! Flows against their fair share (§7.2).

use rack::NodeId;
use rack::fairness::{Use, max_min};
use report::Unit;
use report::page::{Axis, Block, Plot};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shoal::Config;

use super::throughput::{cells_an_epoch, pairs, window};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, distribution, findings, level, plot, table};
use crate::runs::{ScenarioFile, config_of};
use crate::spread::{Pulse, spread, with_seeds};
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
pub(super) enum ReadyQueue {
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

/// On which network the fair shares are: the paper does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ideal {
    /// The mesh of virtual links, where each flow has a subflow over each node.
    VirtualLinks,
    /// Nodes' links alone, each of which carries a cell an epoch to and from each other node: that of an ideal
    /// packet switch.
    NodeLinks,
}

impl Ideal {
    /// The fair share of each pair in cells an epoch.
    fn rates(self, nodes: u32, pairs: &[(NodeId, NodeId)]) -> Vec<f64> {
        if self == Self::VirtualLinks {
            return ideal(nodes, pairs);
        }
        let ends = |&(src, dst): &(NodeId, NodeId)| {
            [src.index(), nodes as usize + dst.index()]
                .map(|link| Use { link, share: 1.0 })
                .to_vec()
        };
        let capacities = vec![f64::from(nodes - 1); 2 * nodes as usize];
        max_min(&capacities, &pairs.iter().map(ends).collect::<Vec<_>>())
    }
}

/// Who sends to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ends {
    /// So many flows between random nodes: the paper's workloads.
    Random(u32),
    /// Each node sends two flows and receives two: a test of what unevenness does.
    Even,
}

impl Ends {
    fn setting(self) -> (&'static str, Value) {
        let permutation =
            json!({ "kind": "bulk", "size": "20 MB", "pattern": { "kind": "permutation" } });
        match self {
            Self::Random(flows) => ("workload.flows", json!(flows)),
            Self::Even => {
                ("workload", json!({ "kind": "mix", "parts": [permutation.clone(), permutation] }))
            }
        }
    }
}

/// A workload with the ready queue on or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Variant {
    ready: ReadyQueue,
    ends: Ends,
}

/// A flow against its fair share.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Share {
    /// Its rate, of the fair one.
    ratio: f64,
    /// Flows that leave its source.
    at_source: u32,
    /// Flows that enter its destination.
    at_destination: u32,
}

impl Share {
    fn is_near(&self) -> bool {
        (self.ratio - 1.0).abs() <= MARGIN
    }
}

/// The share of `flows` that are near their fair share.
fn near(flows: &[Share]) -> f64 {
    flows.iter().filter(|flow| flow.is_near()).count() as f64 / flows.len() as f64
}

/// The flows of one run against their fair shares.
fn shares(
    variant: Variant,
    more: &[(&'static str, Value)],
    ideal: Ideal,
    seed: u64,
    epochs: (u64, u64),
    pulse: &mut Pulse<'_>,
) -> Result<Vec<Share>, Failure> {
    let on = json!(variant.ready == ReadyQueue::On);
    let own = [
        variant.ends.setting(),
        ("fabric.ready_queue", on.clone()),
        ("fabric.feedback_counts_ready", on),
    ];
    let settings = [&own, more].concat();
    let scenario = FAIRNESS.with(&settings, seed)?;
    let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
    let steady = window(&plan, epochs.0, epochs.1);
    let pairs = pairs(&scenario)?;
    let rates = cells_an_epoch(&plan, &pairs, &steady, seed, pulse)?;
    let ideal = ideal.rates(plan.config.nodes, &pairs);
    let count = |is_end: &dyn Fn(&(NodeId, NodeId)) -> bool| {
        pairs.iter().filter(|&pair| is_end(pair)).count() as u32
    };
    let share = |((&(src, dst), rate), ideal): ((&(NodeId, NodeId), &f64), &f64)| Share {
        ratio: rate / ideal,
        at_source: count(&|pair| pair.0 == src),
        at_destination: count(&|pair| pair.1 == dst),
    };
    Ok(pairs.iter().zip(&rates).zip(&ideal).map(share).collect())
}

/// The share of so many random flows that are near their fair share, with what else is set.
pub(super) fn near_among(
    flows: u32,
    ready: ReadyQueue,
    more: &[(&'static str, Value)],
    ideal: Ideal,
    epochs: (u64, u64),
    pulse: &mut Pulse<'_>,
) -> Result<f64, Failure> {
    let variant = Variant { ready, ends: Ends::Random(flows) };
    Ok(near(&shares(variant, more, ideal, 1, epochs, pulse)?))
}

/// E08.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fairness.claims.toml"));
    let (epochs, counts) = match effort {
        Effort::Quick => ((30, 70), &FLOWS_QUICK[..]),
        Effort::Full => ((100, 1_000), &FLOWS[..]),
    };
    let ends: Vec<Ends> = counts.iter().map(|&flows| Ends::Random(flows)).collect();
    let ends = [ends, vec![Ends::Even]].concat();
    let variants: Vec<_> = [ReadyQueue::Off, ReadyQueue::On]
        .into_iter()
        .flat_map(|ready| ends.iter().map(move |&ends| Variant { ready, ends }))
        .collect();
    let jobs = with_seeds(&variants, effort.seeds_of_longest());
    let runs = spread(&jobs, watch, |&(variant, seed), pulse| {
        shares(variant, &[], Ideal::VirtualLinks, seed, epochs, pulse)
    })?;
    let seeds = effort.seeds_of_longest() as usize;
    let (off, on) = runs.split_at(ends.len() * seeds);
    let ((off, off_even), (on, on_even)) =
        (off.split_at(off.len() - seeds), on.split_at(on.len() - seeds));
    // Of the workload whose mean over seeds is the worst.
    let worst = |runs: &[Vec<Share>]| {
        let shares = runs.chunks(seeds).map(over_seeds);
        let mean = |shares: &Vec<f64>| Spread::of(shares).mean;
        let worst = shares.min_by(|a, b| mean(a).total_cmp(&mean(b)));
        Measured::mean(&worst.expect("there are workloads"))
    };
    sheet.measure("fairness.without-ready-queue", worst(off));
    sheet.measure("fairness.with-ready-queue", worst(on));

    let line = |name: &str, runs: &[Vec<Share>]| {
        let points = counts.iter().zip(runs.chunks(seeds));
        let points = points.map(|(&flows, runs)| (f64::from(flows), Spread::of(&over_seeds(runs))));
        curve(name, &points.collect::<Vec<_>>())
    };
    let x = Axis::linear("Flows", Unit::Count);
    let y = Axis::linear("Flows within 10 % of their fair share", Unit::Share);
    let series = vec![
        line("without ready queue", off),
        line("with ready queue", on),
        level("published", 0.0, sheet.number("fairness.without-ready-queue")),
    ];
    let shares = plot("Fairness", "Bars: least and most over the seeds.", x, y, series);
    // The last workload has the most flows.
    let [off, on] = [off, on].map(|runs| runs[runs.len() - seeds..].concat());
    let blocks = vec![
        Block::Plots(vec![shares, rates(&off, &on)]),
        by_ends([&off, &on], [&off_even.concat(), &on_even.concat()]),
    ];
    let text = "Endless flows between random nodes; each flow's rate over a window in which all \
                are under way, against its max-min fair share. Two flows between the same nodes \
                are one to Shoal.";
    Ok(findings("Fairness", text, blocks, sheet))
}

/// The share of flows near their fair share, for each seed.
fn over_seeds(runs: &[Vec<Share>]) -> Vec<f64> {
    runs.iter().map(|flows| near(flows)).collect()
}

/// How the rates of 1,024 flows lie about their fair shares.
fn rates(off: &[Share], on: &[Share]) -> Plot {
    let ratios = |flows: &[Share]| flows.iter().map(|flow| flow.ratio).collect::<Vec<_>>();
    let series = vec![
        distribution("without ready queue", &ratios(off)),
        distribution("with ready queue", &ratios(on)),
    ];
    let x = Axis::linear("Rate, of the fair share", Unit::Ratio);
    let y = Axis::linear("Share of flows", Unit::Share);
    plot("Rates of 1,024 flows", "1,024 flows, all seeds.", x, y, series)
}

/// Whether the flows that are off their fair share are those whose source or destination is shared
/// by many, and what is left of it where every end is shared by two. Without the ready queue, then
/// with it.
fn by_ends(random: [&[Share]; 2], even: [&[Share]; 2]) -> Block {
    let columns = [
        ("end", "Flows that share", Unit::Count),
        ("count", "with so many in all", Unit::Count),
        ("flows", "Flows", Unit::Count),
        ("off_ratio", "Without ready queue: rate", Unit::Ratio),
        ("off_near", "within 10 %", Unit::Share),
        ("on_ratio", "With ready queue: rate", Unit::Ratio),
        ("on_near", "within 10 %", Unit::Share),
    ];
    let row = |end: &str, count: u32, runs: [Vec<Share>; 2]| {
        let mut row = vec![json!(end), json!(count), json!(runs[0].len())];
        for flows in runs {
            let ratios = flows.iter().map(|flow| flow.ratio);
            row.extend([json!(ratios.sum::<f64>() / flows.len() as f64), json!(near(&flows))]);
        }
        row
    };
    let at_source: fn(&Share) -> u32 = |share| share.at_source;
    let at_destination: fn(&Share) -> u32 = |share| share.at_destination;
    let mut rows = Vec::new();
    for (end, shared_by) in [("their source", at_source), ("their destination", at_destination)] {
        for count in 1..=random[0].iter().map(shared_by).max().unwrap_or(0) {
            let of = |flows: &[Share]| -> Vec<Share> {
                flows.iter().filter(|flow| shared_by(flow) == count).copied().collect()
            };
            let runs = random.map(of);
            if !runs[0].is_empty() {
                rows.push(row(end, count, runs));
            }
        }
    }
    rows.push(row("both, each node sending two and receiving two", 2, even.map(<[Share]>::to_vec)));
    table("1,024 flows by how many share an end with them", &columns, rows)
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

    #[test]
    fn even_ends_are_shared_by_two_flows_each() {
        let scenario = FAIRNESS.with(&[Ends::Even.setting()], 1).unwrap();
        let pairs = pairs(&scenario).unwrap();
        for node in (0..scenario.nodes()).map(NodeId::new) {
            let sent = pairs.iter().filter(|pair| pair.0 == node).count();
            let received = pairs.iter().filter(|pair| pair.1 == node).count();
            // One where both permutations hold the same pair, which is one flow to Shoal.
            assert!((1..=2).contains(&sent) && (1..=2).contains(&received), "{node}");
        }
        assert!(pairs.len() > 1_000, "{} of 1,024 flows differ", pairs.len());
    }
}
