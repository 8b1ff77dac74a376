//! A data-centre workload against load (§7.3, Figs 15 and 16).

use rack::results::RunResult;
use report::Unit;
use report::page::{Axis, Block, Plot};
use serde_json::{Value, json};

use super::SEEDS;
use super::drawing::{curve, findings, level, plot, table};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::runs::{self, ScenarioFile, number};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG15: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig15.toml",
    text: include_str!("../../shoal/fig15.toml"),
};

/// Loads swept (our choice: the paper's values are in the figure alone; its text speaks of low,
/// moderate and high load, and of L = 1).
const LOADS: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 1.0];

/// The two readings of R in the paper's definition of load, in Gbps.
const RATES: [u64; 2] = [50, 100];

/// Flows of a run.
pub(super) fn flows(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 20_000,
        // Shoal §7.3.
        Effort::Full => 1_000_000,
    }
}

/// What a run of this workload is measured by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) realised: f64,
    pub(super) fct_mean: f64,
    pub(super) fct_p99: f64,
    pub(super) fct_p999: f64,
    /// Not a number if the run had no long flow.
    pub(super) goodput: f64,
    pub(super) queue: f64,
    pub(super) node: f64,
    pub(super) relayed: f64,
    pub(super) reordering: f64,
}

impl Figures {
    pub(super) fn of(result: &RunResult) -> Self {
        let goodput = number(result, "goodput.long.mean");
        Self {
            realised: number(result, "load.realised"),
            fct_mean: number(result, "fct.short.mean"),
            fct_p99: number(result, "fct.short.p99"),
            fct_p999: number(result, "fct.short.p999"),
            goodput: if goodput > 0.0 { goodput } else { f64::NAN },
            queue: number(result, "queue.max_cells"),
            node: number(result, "shoal.node_queue_max_cells"),
            relayed: number(result, "shoal.node_relayed_max_cells"),
            reordering: number(result, "reorder.max_bytes"),
        }
    }
}

/// One figure of several runs.
pub(super) fn of(runs: &[Figures], get: fn(&Figures) -> f64) -> Vec<f64> {
    runs.iter().map(get).filter(|value| !value.is_nan()).collect()
}

/// A quantity against load, both readings.
struct Curve {
    title: &'static str,
    label: &'static str,
    unit: Unit,
    axis: fn(&'static str, Unit) -> Axis,
    get: fn(&Figures) -> f64,
    /// The largest value that the paper prints.
    published: Option<f64>,
}

impl Curve {
    fn plot(&self, grouped: &[&[Figures]]) -> Plot {
        let line = |(rate, groups): (&u64, &[&[Figures]])| {
            let points = LOADS.iter().zip(groups).filter_map(|(&load, runs)| {
                let values = of(runs, self.get);
                (!values.is_empty()).then(|| (load, Spread::of(&values)))
            });
            curve(format!("R = {rate} Gbps"), &points.collect::<Vec<_>>())
        };
        let mut series: Vec<_> = RATES.iter().zip(grouped.chunks(LOADS.len())).map(line).collect();
        series.extend(self.published.map(|height| level("published", LOADS[0], height)));
        let x = Axis::linear("Nominal load", Unit::Ratio);
        plot(self.title, "", x, (self.axis)(self.label, self.unit), series)
    }
}

fn curves(sheet: &Sheet) -> [Curve; 7] {
    let linear: fn(&'static str, Unit) -> Axis = |label, unit| Axis::linear(label, unit);
    let log: fn(&'static str, Unit) -> Axis = |label, unit| Axis::log(label, unit);
    let curve = |title, label, unit, axis, get, published| Curve {
        title,
        label,
        unit,
        axis,
        get,
        published,
    };
    let most = |id| Some(sheet.number(id));
    [
        curve("Fig. 15a, mean", "Mean FCT, short flows", Unit::Seconds, log, |f| f.fct_mean, None),
        curve("Fig. 15a, tail", "FCT p99.9, short flows", Unit::Seconds, log, |f| f.fct_p999, None),
        curve("Fig. 15b", "Goodput, long flows", Unit::BitsPerSecond, linear, |f| f.goodput, None),
        curve("Fig. 16", "Longest queue", Unit::Cells, linear, |f| f.queue, most("fig15.queue")),
        curve(
            "Fig. 16",
            "Most cells in a node",
            Unit::Cells,
            linear,
            |f| f.node,
            most("fig15.node"),
        ),
        curve(
            "Fig. 16",
            "Most relayed cells in a node",
            Unit::Cells,
            linear,
            |f| f.relayed,
            most("fig15.relayed"),
        ),
        curve(
            "Fig. 16",
            "Most data out of order",
            Unit::Bytes,
            linear,
            |f| f.reordering,
            most("fig15.reordering"),
        ),
    ]
}

/// Every figure of every point: means over seeds.
fn numbers(points: &[(u64, f64)], grouped: &[&[Figures]]) -> Block {
    let columns = [
        ("rate", "R", Unit::BitsPerSecond),
        ("nominal", "Load, nominal", Unit::Ratio),
        ("realised", "Load, realised", Unit::Ratio),
        ("realised_interval", "over seeds", Unit::Ratio),
        ("fct_mean", "FCT short, mean", Unit::Seconds),
        ("fct_p99", "p99", Unit::Seconds),
        ("fct_p999", "p99.9", Unit::Seconds),
        ("goodput", "Goodput long, mean", Unit::BitsPerSecond),
        ("queue", "Longest queue", Unit::Cells),
        ("node", "Most in a node", Unit::Cells),
        ("relayed", "relayed", Unit::Cells),
        ("reordering", "Out of order", Unit::Bytes),
    ];
    let row = |(&(rate, load), runs): (&(u64, f64), &&[Figures])| {
        let mean = |get: fn(&Figures) -> f64| {
            let values = of(runs, get);
            if values.is_empty() { Value::Null } else { json!(Spread::of(&values).mean) }
        };
        vec![
            json!(rate as f64 * 1e9),
            json!(load),
            mean(|f| f.realised),
            Spread::of(&of(runs, |f| f.realised)).interval(),
            mean(|f| f.fct_mean),
            mean(|f| f.fct_p99),
            mean(|f| f.fct_p999),
            mean(|f| f.goodput),
            mean(|f| f.queue),
            mean(|f| f.node),
            mean(|f| f.relayed),
            mean(|f| f.reordering),
        ]
    };
    table("Means over seeds", &columns, points.iter().zip(grouped).map(row).collect())
}

/// How a figure at the lowest load compares with the highest, for each reading: in words, and as the
/// quotient of the last and the first.
fn ends(grouped: &[&[Figures]], get: fn(&Figures) -> f64, unit: Unit) -> (String, Vec<f64>) {
    let (mut words, mut quotients) = (Vec::new(), Vec::new());
    for (rate, groups) in RATES.iter().zip(grouped.chunks(LOADS.len())) {
        let mean = |runs: &[Figures]| Spread::of(&of(runs, get)).mean;
        let (first, last) = (mean(groups[0]), mean(groups[LOADS.len() - 1]));
        words.push(format!("{} to {} (R = {rate} Gbps)", unit.format(first), unit.format(last)));
        quotients.push(last / first);
    }
    (words.join(", "), quotients)
}

/// E12, E13 and E14.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig15.claims.toml"));
    let points: Vec<(u64, f64)> =
        RATES.iter().flat_map(|&rate| LOADS.map(|load| (rate, load))).collect();
    let jobs = with_seeds(&points, SEEDS);
    let runs = spread(&jobs, watch, |&((rate, load), seed), pulse| {
        let settings = [
            ("workload.load", json!(load)),
            ("workload.load_rate", json!(format!("{rate} Gbps"))),
            ("run.flows", json!(flows(effort))),
        ];
        Ok(Figures::of(&runs::run(&FIG15.with(&settings, seed)?, pulse)?))
    })?;
    let grouped: Vec<&[Figures]> = runs.chunks(SEEDS as usize).collect();
    for (suffix, groups) in ["", "-100"].iter().zip(grouped.chunks(LOADS.len())) {
        let full = groups[LOADS.len() - 1];
        let mut put = |word: &str, get: fn(&Figures) -> f64| {
            sheet.measure(&format!("fig15.{word}{suffix}"), Measured::mean(&of(full, get)));
        };
        put("queue", |figures| figures.queue);
        put("node", |figures| figures.node);
        put("relayed", |figures| figures.relayed);
        put("reordering", |figures| figures.reordering);
    }
    let (words, quotients) = ends(&grouped, |figures| figures.fct_p999, Unit::Seconds);
    let rises = Shape::of(quotients.iter().all(|&quotient| quotient > 1.0));
    sheet.measure("fig15.fct", Measured::shape(words, rises));
    let (words, quotients) = ends(&grouped, |figures| figures.goodput, Unit::BitsPerSecond);
    let falls = Shape::of(quotients.iter().all(|&quotient| quotient < 1.0));
    sheet.measure("fig15.goodput", Measured::shape(words, falls));
    let plots = curves(&sheet).iter().map(|curve| curve.plot(&grouped)).collect();
    let blocks = vec![Block::Plots(plots), numbers(&points, &grouped)];
    let text = format!(
        "Pareto sizes (shape 1.05, mean 100 KB, not truncated), Poisson arrivals, random nodes; a \
         run ends when {} flows have ended. Short: at most 100 KB; long: at least 1 MB. The load \
         that the drawn flows realise is below the nominal one, as half of the mean sits in flows \
         that are hardly ever drawn. R is the rate that load 1 refers to.",
        Unit::Count.format(flows(effort) as f64)
    );
    Ok(findings("Data-centre workload", &text, blocks, sheet))
}
