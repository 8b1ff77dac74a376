//! The prototype of eight nodes (§6.2, Figs 9 and 10).

use std::ops::ControlFlow;

use kernel::{Bytes, Rate, Span};
use report::Unit;
use report::page::{Axis, Block};
use serde_json::json;
use shoal::sync::SlotTiming;
use shoal::{Config, Rack};

use super::SEEDS;
use super::throughput;
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, distribution, findings, level, plot, published};
use crate::runs::{Collected, ScenarioFile, config_of, number, quantile};
use crate::spread::{spread, with_seeds};
use crate::steady;
use crate::{Effort, Failure, Findings, Watch};

/// The scenario of Fig. 9.
pub(super) const FIG9: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig9.toml",
    text: include_str!("../../shoal/fig9.toml"),
};

const FIG10: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig10.toml",
    text: include_str!("../../shoal/fig10.toml"),
};

/// Cells swept in Fig. 9 (our choice: the paper's values are in the figure alone).
const CELLS: [u64; 7] = [64, 128, 256, 512, 1024, 2048, 4096];

/// The slot that the prototype needs for a cell (§6.1).
fn slot_for(cell: u64) -> Span {
    let (guard, framing) = (Span::from_ps(6_400), Bytes::new(24));
    let timing = SlotTiming::for_cell(Bytes::new(cell), guard, framing, Rate::from_gbps(10));
    timing.expect("a cell fits its own slot").slot()
}

/// E02: throughput of a full permutation against the size of a slot.
pub(super) fn throughput(_: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig9.claims.toml"));
    let jobs = with_seeds(&CELLS, SEEDS);
    let shares = spread(&jobs, watch, |&(cell, seed), pulse| {
        let slot = slot_for(cell).to_string();
        let size = Bytes::new(cell).to_string();
        let settings = [("fabric.cell", json!(size)), ("fabric.slot", json!(slot))];
        let scenario = FIG9.with(&settings, seed)?;
        let plan = config_of::<Config>(&scenario).plan().expect("the scenario was checked");
        let steady = throughput::window(&plan, 400, 2_000);
        let pairs = throughput::pairs(&scenario)?;
        let mut rack = Rack::new(plan.clone(), seed);
        let messages = steady::messages(&mut rack, &pairs, &steady, &mut |share| pulse.at(share))
            .ok_or(Failure::Interrupted)?;
        let cells = plan.cells.cells(steady.message) * messages.iter().sum::<u64>();
        let slots = u64::from(plan.schedule.slots()) * steady.window * pairs.len() as u64;
        Ok(cells as f64 / slots as f64)
    })?;
    let points: Vec<(f64, Spread)> = CELLS
        .iter()
        .zip(shares.chunks(SEEDS as usize))
        .map(|(&cell, shares)| (slot_for(cell).as_seconds(), Spread::of(shares)))
        .collect();
    let of = |index: usize| &shares[index * SEEDS as usize..(index + 1) * SEEDS as usize];
    sheet.measure("fig9.large", Measured::mean(of(CELLS.len() - 1)));
    sheet.measure("fig9.small", Measured::mean(of(0)));
    let (first, last) = (points[0].1.mean, points[CELLS.len() - 1].1.mean);
    let steady = points.windows(2).all(|pair| pair[0].1.mean <= pair[1].1.mean);
    let words = format!("{} to {}", Unit::Share.format(first), Unit::Share.format(last));
    let words = if steady { words } else { format!("{words}, not steadily") };
    sheet.measure("fig9.rise", Measured::shape(words, Shape::of(steady && first < last)));
    let series = vec![
        curve("ours", &points),
        level("published limit", points[0].0, sheet.number("fig9.large")),
    ];
    let x = Axis::log("Slot", Unit::Seconds);
    let y = Axis::linear("Useful cells a slot", Unit::Share);
    let note = "Full permutation of eight nodes; mean over destinations. Bars: least and most over \
                five permutations.";
    let figure = plot("Fig. 9", note, x, y, series);
    let text = "Every node of the prototype sends one endless flow and receives one. Cells of 64 B \
                to 4 KB; the slot follows. What is counted is what reaches its destination: not \
                what is relayed, not what is empty.";
    Ok(findings("Prototype: throughput", text, vec![Block::Plots(vec![figure])], sheet))
}

/// E03: seven nodes to one.
pub(super) fn incast(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig10.claims.toml"));
    let slot = slot_for(CELLS[0]);
    let (mut fastest, mut slowest, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut queue: f64 = 0.0;
    for phase in 0..7 {
        let start = (slot * phase).to_string();
        let scenario = FIG10.with(&[("workload.timing.start", json!(start))], 1)?;
        let mut flows = Collected::default();
        let result = quiet(&scenario, &mut flows)?;
        let seconds = flows.seconds();
        fastest.push(quantile(&seconds, 0.0));
        slowest.push(quantile(&seconds, 1.0));
        all.extend(seconds);
        queue = queue.max(number(&result, "queue.max_cells"));
    }
    let spreads: Vec<f64> = slowest.iter().zip(&fastest).map(|(slow, fast)| slow - fast).collect();
    sheet.measure("fig10.max", Measured::largest(&slowest));
    sheet.measure("fig10.min", Measured::smallest(&fastest));
    sheet.measure("fig10.spread", Measured::mean(&spreads));
    sheet.measure("fig10.queue", Measured::one(queue));
    let ends = vec![(sheet.number("fig10.min"), 1.0 / 7.0), (sheet.number("fig10.max"), 1.0)];
    let series = vec![distribution("ours", &all), published("published ends", ends)];
    let x = Axis::linear("Flow completion time", Unit::Seconds);
    let y = Axis::linear("Share of flows", Unit::Share);
    let note = "Seven flows of seven cells, for each slot of the epoch in which they may start.";
    let figure = plot("Fig. 10", note, x, y, series);
    let text = "Seven nodes each send seven cells to the eighth at one instant. Where in the epoch \
                that instant lies the paper does not say: ours is run for each slot, and the \
                intervals are over these.";
    Ok(findings("Prototype: incast", text, vec![Block::Plots(vec![figure])], sheet))
}

/// Runs a small scenario that nobody needs to watch.
fn quiet(
    scenario: &scenario::Scenario,
    flows: &mut Collected,
) -> Result<rack::results::RunResult, Failure> {
    Ok(scenario.execute(0, flows, &mut |_| ControlFlow::Continue(()))?)
}
