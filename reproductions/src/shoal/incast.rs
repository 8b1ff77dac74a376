//! Incast of short flows (§7.2, Fig. 13).

use kernel::Bytes;
use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries, SeriesStyle};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shoal::Config;

use super::SEEDS;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot};
use crate::runs::{Collected, ScenarioFile, config_of, number, quantile, run_into, slope};
use crate::spread::{Pulse, spread, with_seeds};
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
/// From so many senders on the mean is compared with the slowest, and the longest queue with the number of
/// senders: below, the last cells of a flow that has the receiver to itself dominate (our choice).
const MANY: u32 = 10;

/// What one incast gave.
#[derive(Serialize, Deserialize)]
pub(super) struct Incast {
    slowest: f64,
    mean: f64,
    /// Cells in the longest queue.
    pub(super) queue: f64,
}

/// One incast, with what else is set.
pub(super) fn carry(
    senders: u32,
    more: &[(&'static str, Value)],
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Incast, Failure> {
    let settings = [&[("workload.senders", json!(senders))], more].concat();
    let mut flows = Collected::default();
    let result = run_into(&FIG13.with(&settings, seed)?, &mut flows, pulse)?;
    let seconds = flows.seconds();
    Ok(Incast {
        slowest: quantile(&seconds, 1.0),
        mean: seconds.iter().sum::<f64>() / seconds.len() as f64,
        queue: number(&result, "queue.max_cells"),
    })
}

/// E09.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig13.claims.toml"));
    let swept = swept(effort);
    let jobs = with_seeds(swept, SEEDS);
    let runs = spread(&jobs, watch, |&(senders, seed), pulse| carry(senders, &[], seed, pulse))?;
    let plan = config_of::<Config>(&FIG13.with(&[], 1)?).plan().expect("the scenario was checked");
    let schedule = &plan.schedule;
    // Each other node once an epoch.
    let heard = f64::from(schedule.nodes() - 1);
    let epoch = (plan.config.slot * u64::from(schedule.slots())).as_seconds();
    let cells = plan.cells.cells(Bytes::new(130_000)) as f64;
    let best = cells / heard * epoch;

    let at = |index: usize, seed: usize| &runs[index * SEEDS as usize + seed];
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
    let beyond = many.iter().flat_map(|&i| {
        (0..SEEDS as usize).map(move |seed| at(i, seed).queue - f64::from(swept[i]))
    });
    let beyond: Vec<f64> = beyond.collect();
    sheet.measure("fig13.queue", Measured::largest(&beyond));
    sheet.measure("fig13.queue-least", Measured::smallest(&beyond));

    let plots = vec![times(swept, &runs, best), queues(swept, &runs)];
    let text = "Random nodes each send 130 KB to a random one at the same instant. The receiver \
                hears each other node once an epoch; more it cannot take.";
    Ok(findings("Incast", text, vec![Block::Plots(plots)], sheet))
}

/// A quantity against the number of senders.
fn against_senders(
    name: &str,
    swept: &[u32],
    runs: &[Incast],
    get: fn(&Incast) -> f64,
) -> PlotSeries {
    let over_seeds = |runs: &[Incast]| Spread::of(&runs.iter().map(get).collect::<Vec<_>>());
    let points = swept.iter().zip(runs.chunks(SEEDS as usize));
    let points: Vec<_> = points.map(|(&n, runs)| (f64::from(n), over_seeds(runs))).collect();
    curve(name, &points)
}

/// Fig. 13; `best` is what each sender adds to the best possible time.
fn times(swept: &[u32], runs: &[Incast], best: f64) -> Plot {
    let optimum = swept.iter().map(|&n| (f64::from(n), f64::from(n) * best)).collect();
    let series = vec![
        against_senders("slowest", swept, runs, |incast| incast.slowest),
        against_senders("mean", swept, runs, |incast| incast.mean),
        PlotSeries::new("best possible", SeriesStyle::Dotted, optimum),
    ];
    let x = Axis::linear("Senders", Unit::Count);
    let y = Axis::linear("Flow completion time", Unit::Seconds);
    plot("Fig. 13", "Bars: least and most over five seeds.", x, y, series)
}

/// The longest queue beside its bound.
fn queues(swept: &[u32], runs: &[Incast]) -> Plot {
    let bound = [0, swept[swept.len() - 1]].map(|n| (f64::from(n), f64::from(n + 1)));
    let series = vec![
        against_senders("ours", swept, runs, |incast| incast.queue),
        PlotSeries::new("Eq. 5", SeriesStyle::Dotted, bound.to_vec()),
    ];
    let x = Axis::linear("Senders", Unit::Count);
    let y = Axis::linear("Longest queue", Unit::Cells);
    plot("Longest queue", "", x, y, series)
}
