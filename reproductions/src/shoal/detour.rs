//! What the two latency optimisations of §3.3.3 bring (§7.2, Fig. 14).

use kernel::Time;
use rack::{Fabric, NodeId};
use report::Unit;
use report::page::{Axis, Block};
use serde_json::{Value, json};
use shoal::{Config, Rack};

use crate::claims::{Measured, Sheet};
use crate::drawing::{distribution, findings, plot};
use crate::runs::{Collected, ScenarioFile, config_of, quantile, run_into};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG14: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig14.toml",
    text: include_str!("../../shoal/fig14.toml"),
};

/// Shoal §7.2: the node that sends the short flows, and the one that receives them.
const SOURCE: NodeId = NodeId::new(511);
const DESTINATION: NodeId = NodeId::new(0);
/// How long queues are looked at, slot by slot (our choice: the short flows of 20 intervals).
const LOOK: Time = Time::from_ps(400_000_000);

/// Whether the optimisations of §3.3.3 are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Optimisations {
    On,
    Off,
}

/// The loads of the background: Fig. 14's, and a heavier one (both our choice).
const LOADS: [f64; 2] = [0.5, 0.8];

fn settings(optimisations: Optimisations, load: f64, effort: Effort) -> Vec<(&'static str, Value)> {
    let on = json!(optimisations == Optimisations::On);
    let time = match effort {
        Effort::Quick => "2 ms",
        Effort::Full => "20 ms",
    };
    let rounds = match effort {
        Effort::Quick => 98,
        Effort::Full => 998,
    };
    vec![
        ("fabric.ready_queue", on.clone()),
        ("fabric.feedback_counts_ready", on.clone()),
        ("fabric.age_rule", on),
        ("run.time", json!(time)),
        ("workload.parts[0].timing.rounds", json!(rounds)),
        ("workload.parts[1].load", json!(load)),
    ]
}

/// The longest queue for the destination at any node, looked at in each slot.
pub(super) fn longest_queue(
    more: &[(&'static str, Value)],
    seed: u64,
    effort: Effort,
    pulse: &mut Pulse<'_>,
) -> Result<f64, Failure> {
    let settings = [settings(Optimisations::On, LOADS[0], effort), more.to_vec()].concat();
    let scenario = FIG14.with(&settings, seed)?;
    let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
    let slot = plan.config.slot;
    let nodes = plan.config.nodes;
    let mut rack = Rack::new(plan, seed);
    let mut workload = scenario.draw()?;
    let (mut now, mut longest) = (Time::ZERO, 0);
    while now < LOOK {
        while workload.next_start().is_some_and(|start| start <= now) {
            let Some(flow) = workload.next_flow() else { break };
            rack.offer(&flow);
        }
        now += slot;
        rack.advance(now, &mut ());
        let others = (0..nodes).map(NodeId::new).filter(|&node| node != DESTINATION);
        longest = others.map(|node| rack.queued(node, DESTINATION)).fold(longest, u32::max);
        if pulse.at(now.as_seconds() / LOOK.as_seconds()).is_break() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(f64::from(longest))
}

/// E10.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig14.claims.toml"));
    let sides = LOADS.iter().flat_map(|&load| {
        [Optimisations::On, Optimisations::Off].map(|optimisations| (optimisations, load))
    });
    let seeds = effort.seeds();
    let jobs = with_seeds(&sides.collect::<Vec<_>>(), seeds);
    let times = spread(&jobs, watch, |&((optimisations, load), seed), pulse| {
        let scenario = FIG14.with(&settings(optimisations, load, effort), seed)?;
        let mut flows = Collected::default();
        run_into(&scenario, &mut flows, pulse)?;
        Ok(flows.between(SOURCE, DESTINATION).seconds())
    })?;
    let numbers: Vec<u64> = (1..=seeds).collect();
    let queues = spread(&numbers, watch, |&seed, pulse| longest_queue(&[], seed, effort, pulse))?;
    let (base, heavier) = times.split_at(2 * seeds as usize);
    let ratio = |times: &[Vec<f64>], of: fn(&[f64]) -> f64| -> Measured {
        let (on, off) = times.split_at(seeds as usize);
        Measured::mean(&on.iter().zip(off).map(|(on, off)| of(on) / of(off)).collect::<Vec<_>>())
    };
    let median = |times: &[f64]| quantile(times, 0.5);
    let p99 = |times: &[f64]| quantile(times, 0.99);
    sheet.measure("fig14.median", ratio(base, median));
    sheet.measure("fig14.p99", ratio(base, p99));
    sheet.measure("fig14.median-heavier", ratio(heavier, median));
    sheet.measure("fig14.p99-heavier", ratio(heavier, p99));
    let spread_of = |times: &[f64]| quantile(times, 0.99) - quantile(times, 0.5);
    sheet.measure("fig14.spread", ratio(base, spread_of));
    sheet.measure("fig14.queue", Measured::largest(&queues));
    let (on, off) = base.split_at(seeds as usize);
    let series = vec![
        distribution("with optimisations", &on.concat()),
        distribution("without", &off.concat()),
    ];
    let x = Axis::linear("Flow completion time", Unit::Seconds);
    let y = Axis::linear("Share of flows", Unit::Share);
    let note = "20 KB from node 511 to node 0 each 20 µs; all seeds.";
    let figure = plot("Fig. 14", note, x, y, series);
    let text = "Short flows between two nodes that have no other traffic of their own, while all \
                other nodes send each other the paper's heavy-tailed flows at load 0.5 (our \
                choice; rows -heavier have 0.8). The optimisations: the ready queue, and starting \
                on short queues.";
    Ok(findings("Latency optimisations", text, vec![Block::Plots(vec![figure])], sheet))
}
