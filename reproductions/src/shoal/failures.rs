//! Dead nodes (§7.3, Fig. 17).

use kernel::{Span, Stream, Time};
use rack::results::RunResult;
use rack::workload::WorkloadContext;
use rack::{Component, Fault, Flow, FlowId, NodeId, Workload};
use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries};
use scenario::{BadInput, Job, Located, Scenario};
use serde_json::{Value, json};

use super::datacentre::{Figures, LONG_SEEDS, of};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, published, table};
use crate::runs::ScenarioFile;
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG17: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig17.toml",
    text: include_str!("../../shoal/fig17.toml"),
};

/// Per cent of nodes dead (Shoal §7.3: up to 50 %); of these the text names 20, 40 and 50.
const fn dead(effort: Effort) -> &'static [u32] {
    match effort {
        Effort::Quick => &[0, 20, 40, 50],
        Effort::Full => &[0, 10, 20, 30, 40, 50],
    }
}

/// Flows of a run (our choice: the paper's million would take hours; its figures are quotients of two such runs).
const fn flows(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 20_000,
        Effort::Full => 200_000,
    }
}
/// Shoal §7.3.
const LOAD: f64 = 1.0;
/// When flows start: by then every node knows which are dead, and has told the others, during which
/// it keeps its own cells. A cell holds six notices and goes out for an epoch, so half of 512 nodes
/// take 43 epochs, 128 µs. With 30 µs the first flows waited, and made most of the tail.
const QUIET: Span = Span::from_us(150);

/// A workload among fewer nodes, carried out by those that survive.
struct Survivors {
    inner: Box<dyn Workload>,
    alive: Vec<NodeId>,
}

impl Workload for Survivors {
    fn next_start(&mut self) -> Option<Time> {
        self.inner.next_start().map(|start| start + QUIET)
    }

    fn next_flow(&mut self) -> Option<Flow> {
        let flow = self.inner.next_flow()?;
        let node = |node: NodeId| self.alive[node.index()];
        let (src, dst) = (node(flow.src), node(flow.dst));
        Some(Flow { src, dst, start: flow.start + QUIET, ..flow })
    }

    fn total(&self) -> Option<u64> {
        self.inner.total()
    }

    fn ended(&mut self, flow: FlowId, at: Time) {
        self.inner.ended(flow, at);
    }
}

/// The nodes that survive, in random order.
fn survivors(nodes: u32, dead: u32, seed: u64) -> (Vec<NodeId>, Vec<NodeId>) {
    let mut all: Vec<NodeId> = (0..nodes).map(NodeId::new).collect();
    Stream::new(seed, "reproductions/dead", 0).shuffle(&mut all);
    let alive = all.split_off(dead as usize);
    (alive, all)
}

fn job_of<'a>(
    scenario: &Scenario,
    dead: u32,
    sink: &'a mut (),
    progress: &'a mut dyn FnMut(rack::run::Progress) -> std::ops::ControlFlow<()>,
) -> Result<Job<'a>, Failure> {
    let seed = scenario.seed;
    let (alive, dead) = survivors(scenario.nodes(), dead, seed);
    let load_rate = scenario.load_rate();
    let context = WorkloadContext { nodes: alive.len() as u32, seed, load_rate };
    let inner = scenario.workload.build(&context).map_err(|problems| {
        let locate = |p: rack::Problem| Located::whole(&p.key, p.message);
        BadInput::new(problems.into_iter().map(locate).collect())
    })?;
    let fault =
        |&node: &NodeId| Fault { component: Component::Node(node), at: Time::ZERO, until: None };
    Ok(Job {
        seed,
        faults: dead.iter().map(fault).collect(),
        workload: Box::new(Survivors { inner, alive }),
        options: scenario.options()?,
        sink,
        progress,
    })
}

/// One run with so many per cent of the nodes dead.
fn carry_out(
    dead_percent: u32,
    scenario: &Scenario,
    pulse: &mut Pulse<'_>,
) -> Result<RunResult, Failure> {
    let dead = scenario.nodes() * dead_percent / 100;
    let mut progress = |progress| pulse.report(progress);
    let mut sink = ();
    let job = job_of(scenario, dead, &mut sink, &mut progress)?;
    let result = scenario.fabrics[0].plan.run(job)?;
    if result.summary["interrupted"] == Value::Bool(true) {
        return Err(Failure::Interrupted);
    }
    Ok(result)
}

/// What the living offer when others are dead: the paper says "the same workload" (§7.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Offer {
    /// Each living node as much as before.
    Kept,
    /// The flows of the whole rack, but for those from or to the dead: a node with `p` of its peers
    /// alive offers `p` of what it did.
    Thinned,
}

/// A reading of the experiment.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Reading {
    /// In the report.
    name: &'static str,
    /// At the end of its claims' names.
    claims: &'static str,
    offer: Offer,
}

const READINGS: [Reading; 2] = [
    Reading { name: "the living offer as before", claims: "", offer: Offer::Kept },
    Reading { name: "the dead's flows are missing", claims: "-thinned", offer: Offer::Thinned },
];

/// What one reading gave: for each share of dead nodes a run for each seed.
struct Curve<'a> {
    reading: Reading,
    /// Per cent of nodes dead; none first.
    dead: &'static [u32],
    runs: Vec<&'a [Figures]>,
}

impl<'a> Curve<'a> {
    /// The runs with so many per cent dead.
    fn at(&self, percent: u32) -> &'a [Figures] {
        let index = self.dead.iter().position(|&dead| dead == percent);
        self.runs[index.expect("it is one of those swept")]
    }

    /// A figure with so many per cent dead, of that with none: seed by seed, for those that both have, as
    /// both carry the same sizes.
    fn ratios(&self, percent: u32, get: fn(&Figures) -> f64) -> Vec<f64> {
        let pairs = self.at(percent).iter().zip(self.at(0));
        pairs.map(|(dead, whole)| get(dead) / get(whole)).filter(|ratio| !ratio.is_nan()).collect()
    }

    /// How far the goodput is off the line between its ends at most, of its first value.
    fn bend(&self) -> f64 {
        let goodput = |percent: u32| Spread::of(&self.ratios(percent, |f| f.goodput)).mean;
        let off = self.dead.iter().map(|&percent| {
            let line = 1.0 + (goodput(50) - 1.0) * f64::from(percent) / 50.0;
            (goodput(percent) - line).abs()
        });
        off.fold(0.0, f64::max)
    }
}

fn mean(runs: &[Figures], get: fn(&Figures) -> f64) -> f64 {
    Spread::of(&of(runs, get)).mean
}

/// The scenario of a reading with so many per cent of the nodes dead.
fn scenario_of(
    reading: Reading,
    dead_percent: u32,
    effort: Effort,
    seed: u64,
) -> Result<Scenario, Failure> {
    let all = FIG17.with(&[], seed)?.nodes();
    let alive = all - all * dead_percent / 100;
    let load = match reading.offer {
        Offer::Kept => LOAD,
        // Leaving out flows of a Poisson process leaves a slower one.
        Offer::Thinned => LOAD * f64::from(alive - 1) / f64::from(all - 1),
    };
    FIG17.with(&[("workload.flows", json!(flows(effort))), ("workload.load", json!(load))], seed)
}

/// E15.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig17.claims.toml"));
    let dead = dead(effort);
    // With none dead all readings are one.
    let none = [(READINGS[0], 0)].into_iter();
    let some =
        READINGS.iter().flat_map(|&reading| dead[1..].iter().map(move |&one| (reading, one)));
    let points: Vec<(Reading, u32)> = none.chain(some).collect();
    let jobs = with_seeds(&points, LONG_SEEDS);
    let runs = spread(&jobs, watch, |&((reading, dead), seed), pulse| {
        let scenario = scenario_of(reading, dead, effort, seed)?;
        Ok(Figures::of(&carry_out(dead, &scenario, pulse)?))
    })?;
    let mut groups = runs.chunks(LONG_SEEDS as usize);
    let whole = groups.next().expect("a run in which none is dead");
    let curves = READINGS.map(|reading| {
        let some = groups.by_ref().take(dead.len() - 1);
        Curve { reading, dead, runs: std::iter::once(whole).chain(some).collect() }
    });
    for curve in &curves {
        let suffix = curve.reading.claims;
        let mut put = |word: &str, value| sheet.measure(&format!("fig17.{word}{suffix}"), value);
        put("goodput-50", Measured::mean(&curve.ratios(50, |f| f.goodput)));
        put("fct-20", Measured::mean(&curve.ratios(20, |f| f.fct_p999)));
        put("fct-40", Measured::mean(&curve.ratios(40, |f| f.fct_p999)));
        put("linear", Measured::one(curve.bend()));
    }
    let text = "The workload of Fig. 15 at load 1, with random nodes dead from the start; flows \
                start when every node knows which. Only those alive send and receive: each as much \
                as before, or, as the flows of the whole rack with those of the dead missing would \
                have it, each as much less as it has fewer peers.";
    let blocks = vec![Block::Plots(plots(&sheet, &curves)), numbers(&curves)];
    Ok(findings("Dead nodes", text, blocks, sheet))
}

/// Both curves of Fig. 17, a line for each reading, of what it is with all nodes alive.
fn plots(sheet: &Sheet, curves: &[Curve<'_>]) -> Vec<Plot> {
    let lines = |get: fn(&Figures) -> f64| -> Vec<PlotSeries> {
        let line = |of: &Curve<'_>| {
            let point = |&dead: &u32| (f64::from(dead) / 100.0, Spread::of(&of.ratios(dead, get)));
            curve(of.reading.name, &of.dead.iter().map(point).collect::<Vec<_>>())
        };
        curves.iter().map(line).collect()
    };
    let printed = |points: &[(&str, f64)]| {
        let points = points.iter().map(|&(id, dead)| (dead, sheet.number(id)));
        published("published", points.collect())
    };
    let dead = || Axis::linear("Dead nodes", Unit::Share);
    let note = "Bars: least and most over the seeds.";
    let mut tails = lines(|f| f.fct_p999);
    tails.push(printed(&[("fig17.fct-20", 0.2), ("fig17.fct-40", 0.4)]));
    let y = Axis::linear("FCT p99.9, short flows, of that with none dead", Unit::Ratio);
    let tails = plot("Fig. 17, tail", note, dead(), y, tails);
    let mut rates = lines(|f| f.goodput);
    rates.push(printed(&[("fig17.goodput-50", 0.5)]));
    let y = Axis::linear("Goodput, long flows, of that with none dead", Unit::Ratio);
    vec![tails, plot("Fig. 17, goodput", note, dead(), y, rates)]
}

fn numbers(curves: &[Curve<'_>]) -> Block {
    let columns = [
        ("reading", "Reading", Unit::Count),
        ("dead", "Dead", Unit::Share),
        ("realised", "Load of all nodes, realised", Unit::Ratio),
        ("fct_mean", "FCT short, mean", Unit::Seconds),
        ("fct_mean_ratio", "of none dead", Unit::Ratio),
        ("fct_p999", "p99.9", Unit::Seconds),
        ("fct_p999_ratio", "of none dead", Unit::Ratio),
        ("goodput", "Goodput long, mean", Unit::BitsPerSecond),
        ("goodput_ratio", "of none dead", Unit::Ratio),
        ("queue", "Longest queue", Unit::Cells),
    ];
    let row = |(curve, dead): (&Curve<'_>, u32)| {
        let mean = |get: fn(&Figures) -> f64| json!(mean(curve.at(dead), get));
        let ratio = |get| json!(Spread::of(&curve.ratios(dead, get)).mean);
        vec![
            json!(curve.reading.name),
            json!(f64::from(dead) / 100.0),
            mean(|f| f.realised),
            mean(|f| f.fct_mean),
            ratio(|f| f.fct_mean),
            mean(|f| f.fct_p999),
            ratio(|f| f.fct_p999),
            mean(|f| f.goodput),
            ratio(|f| f.goodput),
            mean(|f| f.queue),
        ]
    };
    let rows = curves.iter().flat_map(|curve| curve.dead.iter().map(move |&dead| (curve, dead)));
    table("Means over seeds", &columns, rows.map(row).collect())
}

#[cfg(test)]
mod tests {
    use shoal::Config;
    use shoal::wire::notice_words;

    use crate::runs::config_of;

    use super::*;
    use crate::spread::spread_anew;

    /// What the experiment rests on: the dead are known before flows start, so that nothing is lost
    /// though no transport runs.
    #[test]
    fn every_flow_between_survivors_is_delivered() {
        for dead in [0, 25, 50] {
            let settings = [
                ("fabric.nodes", json!(32)),
                ("fabric.channels", json!(1)),
                ("workload.flows", json!(300)),
                ("workload.sizes", json!({ "kind": "fixed", "size": "3 KB" })),
                ("workload.flows", json!(300)),
            ];
            let scenario = FIG17.with(&settings, 1).unwrap();
            let mut watch = |_: f64, _: &str| std::ops::ControlFlow::Continue(());
            let run = |&dead: &u32, pulse: &mut Pulse<'_>| carry_out(dead, &scenario, pulse);
            let result = spread_anew(&[dead], &mut watch, run).unwrap().remove(0);
            let flows = &result.summary["flows"];
            assert_eq!((&flows["completed"], &flows["failed"]), (&json!(300), &json!(0)), "{dead}");
            let pairs = result.summary["shoal"]["pairs_given_up"].as_u64().unwrap_or(0);
            let (all, dead) = (32 * 31, u64::from(32 * dead / 100));
            let alive = 32 - dead;
            // Those alive give up the dead; the dead notice nothing.
            assert_eq!(pairs, all - alive * (alive - 1) - dead * 31, "{dead} dead");
        }
    }

    #[test]
    fn flows_start_when_all_notices_of_the_dead_are_out() {
        let scenario = FIG17.with(&[], 1).unwrap();
        let plan = config_of::<Config>(&scenario).plan().unwrap();
        // A cell without data says of 64 nodes a word whether they are reached.
        let words = notice_words((plan.config.cell - plan.config.header).get() as usize) as u64;
        let cells = u64::from(scenario.nodes()).div_ceil(64).div_ceil(words);
        // Silence is noticed within an epoch, and the last notices take one more to arrive.
        let epoch = plan.config.slot * u64::from(plan.schedule.slots());
        assert!(epoch * (cells + 2) + plan.latency < QUIET, "{cells} cells of news");
    }
}
