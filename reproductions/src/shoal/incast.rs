//! Incast of short flows (§7.2, Fig. 13).

use kernel::Bytes;
use report::Unit;
use report::page::{Axis, Block, PlotSeries, SeriesStyle};
use serde_json::json;
use shoal::Config;

use super::SEEDS;
use super::drawing::{curve, findings, plot};
use crate::claims::{Measured, Sheet, Spread};
use crate::runs::{Collected, ScenarioFile, config_of, number, quantile, run_into, slope};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG13: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig13.toml",
    text: include_str!("../../shoal/fig13.toml"),
};

/// Senders swept (our choice: the paper's values are in the figure alone).
fn swept(effort: Effort) -> &'static [u32] {
    match effort {
        Effort::Quick => &[1, 10, 50, 100, 200],
        Effort::Full => &[1, 10, 50, 100, 150, 200, 300, 400, 511],
    }
}
/// From so many senders on the mean is compared with the slowest: below, the last cells of a flow
/// that has the receiver to itself dominate (our choice).
const MANY: u32 = 10;

/// What one incast gave.
struct Incast {
    slowest: f64,
    mean: f64,
    queue: f64,
}

/// E09.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig13.claims.toml"));
    let swept = swept(effort);
    let jobs = with_seeds(swept, SEEDS);
    let runs = spread(&jobs, watch, |&(senders, seed), pulse| {
        let scenario = FIG13.with(&[("workload.senders", json!(senders))], seed)?;
        let mut flows = Collected::default();
        let result = run_into(&scenario, &mut flows, pulse)?;
        let seconds = flows.seconds();
        Ok(Incast {
            slowest: quantile(&seconds, 1.0),
            mean: seconds.iter().sum::<f64>() / seconds.len() as f64,
            queue: number(&result, "queue.max_cells"),
        })
    })?;
    let plan = config_of::<Config>(&FIG13.with(&[], 1)?).plan().expect("the scenario was checked");
    let schedule = &plan.schedule;
    // Each other node once an epoch.
    let heard = f64::from(schedule.nodes() - 1);
    let epoch = (plan.config.slot * u64::from(schedule.slots())).as_seconds();
    let cells = plan.cells.cells(Bytes::new(130_000)) as f64;
    let best = cells / heard * epoch;

    let at = |index: usize, seed: usize| &runs[index * SEEDS as usize + seed];
    let over = |index: usize, get: fn(&Incast) -> f64| -> Vec<f64> {
        (0..SEEDS as usize).map(|seed| get(at(index, seed))).collect()
    };
    let many: Vec<usize> = (0..swept.len()).filter(|&i| swept[i] >= MANY).collect();
    let slopes: Vec<f64> = (0..SEEDS as usize)
        .map(|seed| {
            let point = |&i: &usize| (f64::from(swept[i]), at(i, seed).slowest);
            slope(&many.iter().map(point).collect::<Vec<_>>()) / best
        })
        .collect();
    sheet.measure("fig13.slope", Measured::mean(&slopes));
    let means: Vec<f64> = (0..SEEDS as usize)
        .map(|seed| {
            let share = |&i: &usize| at(i, seed).mean / at(i, seed).slowest;
            many.iter().map(share).fold(f64::INFINITY, f64::min)
        })
        .collect();
    sheet.measure("fig13.mean", Measured::smallest(&means));
    let excess = (0..swept.len())
        .flat_map(|i| (0..SEEDS as usize).map(move |seed| at(i, seed).queue - f64::from(swept[i])));
    sheet.measure("fig13.queue", Measured::one(excess.fold(f64::NEG_INFINITY, f64::max)));

    let line = |name: &str, get: fn(&Incast) -> f64| {
        let points = swept.iter().enumerate();
        let points: Vec<_> =
            points.map(|(i, &n)| (f64::from(n), Spread::of(&over(i, get)))).collect();
        curve(name, &points)
    };
    let optimum = swept.iter().map(|&n| (f64::from(n), f64::from(n) * best)).collect();
    let series = vec![
        line("slowest", |incast| incast.slowest),
        line("mean", |incast| incast.mean),
        PlotSeries::new("best possible", SeriesStyle::Dotted, optimum),
    ];
    let x = Axis::linear("Senders", Unit::Count);
    let y = Axis::linear("Flow completion time", Unit::Seconds);
    let times = plot("Fig. 13", "Bars: least and most over five seeds.", x, y, series);
    let series = vec![
        line("ours", |incast| incast.queue),
        PlotSeries::new(
            "Eq. 5",
            SeriesStyle::Dotted,
            [0, swept[swept.len() - 1]].map(|n| (f64::from(n), f64::from(n + 1))).to_vec(),
        ),
    ];
    let x = Axis::linear("Senders", Unit::Count);
    let y = Axis::linear("Longest queue", Unit::Cells);
    let queues = plot("Longest queue", "", x, y, series);
    let text = "Random nodes each send 130 KB to a random one at the same instant. The receiver \
                hears each other node once an epoch; more it cannot take.";
    Ok(findings("Incast", text, vec![Block::Plots(vec![times, queues])], sheet))
}
