//! Dead nodes (§7.3, Fig. 17).

use kernel::{Span, Stream, Time};
use rack::results::RunResult;
use rack::workload::WorkloadContext;
use rack::{Component, Fault, Flow, FlowId, NodeId, Workload};
use report::Unit;
use report::page::{Axis, Block};
use scenario::{BadInput, Job, Located, Scenario};
use serde_json::{Value, json};

use super::SEEDS;
use super::datacentre::{Figures, flows, of};
use super::drawing::{curve, findings, plot, published, table};
use crate::claims::{Measured, Sheet, Spread};
use crate::runs::ScenarioFile;
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG17: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig17.toml",
    text: include_str!("../../shoal/fig17.toml"),
};

/// Per cent of nodes dead (Shoal §7.3: up to 50 %).
const DEAD: [u32; 6] = [0, 10, 20, 30, 40, 50];
/// When flows start: by then every node knows which are dead (our choice: ten epochs).
const QUIET: Span = Span::from_us(30);

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

/// E15.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig17.claims.toml"));
    let jobs = with_seeds(&DEAD, SEEDS);
    let runs = spread(&jobs, watch, |&(dead, seed), pulse| {
        let scenario = FIG17.with(&[("run.flows", json!(flows(effort)))], seed)?;
        Ok(Figures::of(&carry_out(dead, &scenario, pulse)?))
    })?;
    let grouped: Vec<&[Figures]> = runs.chunks(SEEDS as usize).collect();
    let at = |percent: u32| {
        let index = DEAD.iter().position(|&dead| dead == percent);
        grouped[index.expect("it is one of those swept")]
    };
    let mean = |runs: &[Figures], get: fn(&Figures) -> f64| Spread::of(&of(runs, get)).mean;
    let ratios = |percent: u32, get: fn(&Figures) -> f64| -> Vec<f64> {
        of(at(percent), get).iter().map(|value| value / mean(at(0), get)).collect()
    };
    sheet.measure("fig17.goodput-50", Measured::mean(&ratios(50, |f| f.goodput)));
    sheet.measure("fig17.fct-20", Measured::mean(&ratios(20, |f| f.fct_p999)));
    sheet.measure("fig17.fct-40", Measured::mean(&ratios(40, |f| f.fct_p999)));
    let goodput = |percent: u32| mean(at(percent), |f| f.goodput);
    let off = DEAD.iter().map(|&percent| {
        let line = goodput(0) + (goodput(50) - goodput(0)) * f64::from(percent) / 50.0;
        (goodput(percent) - line).abs() / goodput(0)
    });
    sheet.measure("fig17.linear", Measured::one(off.fold(0.0, f64::max)));

    let line = |get: fn(&Figures) -> f64| {
        let points = DEAD.iter().zip(&grouped);
        let points: Vec<_> =
            points.map(|(&p, runs)| (f64::from(p) / 100.0, Spread::of(&of(runs, get)))).collect();
        curve("ours", &points)
    };
    let dead = || Axis::linear("Dead nodes", Unit::Share);
    let tail = mean(at(0), |f| f.fct_p999);
    let printed =
        [("fig17.fct-20", 0.2), ("fig17.fct-40", 0.4)].map(|(id, x)| (x, sheet.number(id) * tail));
    let fct =
        vec![line(|f| f.fct_p999), published("published, from our first point", printed.to_vec())];
    let half = vec![(0.5, sheet.number("fig17.goodput-50") * goodput(0))];
    let rates = vec![line(|f| f.goodput), published("published, from our first point", half)];
    let y = Axis::linear("FCT p99.9, short flows", Unit::Seconds);
    let fct = plot("Fig. 17, tail", "Bars: least and most over five seeds.", dead(), y, fct);
    let y = Axis::linear("Goodput, long flows", Unit::BitsPerSecond);
    let rates = plot("Fig. 17, goodput", "", dead(), y, rates);
    let text = "The workload of Fig. 15 at load 1 of 50 Gbps, with random nodes dead from the \
                start. Only those alive send and receive, each as much as before; flows start when \
                every node knows which are dead.";
    let blocks = vec![Block::Plots(vec![fct, rates]), numbers(&grouped)];
    Ok(findings("Dead nodes", text, blocks, sheet))
}

fn numbers(grouped: &[&[Figures]]) -> Block {
    let columns = [
        ("dead", "Dead", Unit::Share),
        ("realised", "Load of all nodes, realised", Unit::Ratio),
        ("fct_mean", "FCT short, mean", Unit::Seconds),
        ("fct_p999", "p99.9", Unit::Seconds),
        ("goodput", "Goodput long, mean", Unit::BitsPerSecond),
        ("queue", "Longest queue", Unit::Cells),
    ];
    let row = |(&dead, runs): (&u32, &&[Figures])| {
        let mean = |get: fn(&Figures) -> f64| json!(Spread::of(&of(runs, get)).mean);
        vec![
            json!(f64::from(dead) / 100.0),
            mean(|f| f.realised),
            mean(|f| f.fct_mean),
            mean(|f| f.fct_p999),
            mean(|f| f.goodput),
            mean(|f| f.queue),
        ]
    };
    table("Means over seeds", &columns, DEAD.iter().zip(grouped).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
                ("run.flows", json!(300)),
            ];
            let scenario = FIG17.with(&settings, 1).unwrap();
            let mut watch = |_: f64, _: &str| std::ops::ControlFlow::Continue(());
            let run = |&dead: &u32, pulse: &mut Pulse<'_>| carry_out(dead, &scenario, pulse);
            let result = spread(&[dead], &mut watch, run).unwrap().remove(0);
            let flows = &result.summary["flows"];
            assert_eq!((&flows["completed"], &flows["failed"]), (&json!(300), &json!(0)), "{dead}");
            let pairs = result.summary["shoal"]["pairs_given_up"].as_u64().unwrap_or(0);
            let (all, dead) = (32 * 31, u64::from(32 * dead / 100));
            let alive = 32 - dead;
            // Those alive give up the dead; the dead notice nothing.
            assert_eq!(pairs, all - alive * (alive - 1) - dead * 31, "{dead} dead");
        }
    }
}
