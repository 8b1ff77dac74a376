//! A data-centre workload against load (§7.3, Figs 15 and 16).

use rack::results::RunResult;
use report::Unit;
use report::page::{Axis, Block, Plot};
use scenario::Scenario;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::beside::{self, Point, Swept};
use super::racks::{Carried, Rack};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, level, plot, table};
use crate::paper::part;
use crate::runs::{ScenarioFile, find_number, number};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG15: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig15.toml",
    text: include_str!("../../shoal/fig15.toml"),
};

/// Loads swept (our choice: the paper's values are in the figure alone; its text speaks of low,
/// moderate and high load, and of L = 1).
pub(super) const LOADS: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 1.0];

/// The packet-switched racks' rate of a node, in Gbps (Shoal §7.3).
pub(super) const NODE_RATE: u64 = 50;

/// The two readings of R in the paper's definition of load, in Gbps.
const RATES: [u64; 2] = [NODE_RATE, 100];

/// Shares of the experiment's time: the figure itself, and what stands beside it but the last.
const MAIN: f64 = 0.88;
const OPEN: f64 = 0.97;

/// Flows of Fig. 15's full runs but those at load 1 (our choice: they take most of the time, and the
/// figures that grow with a run's length are at load 1).
const FLOWS_BELOW: u64 = 200_000;

/// Flows of a run.
pub(super) fn flows(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 20_000,
        // Shoal §7.3.
        Effort::Full => 1_000_000,
    }
}

/// Seeds of these runs (our choice): they take most of the house's time, and the paper tells of one.
pub(super) const LONG_SEEDS: u64 = 1;

/// What a run of this workload is measured by; not a number where the run or the rack has no such
/// thing.
#[derive(Clone, Copy, Default, Debug, Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) realised: f64,
    pub(super) fct_mean: f64,
    pub(super) fct_p99: f64,
    pub(super) fct_p999: f64,
    pub(super) goodput: f64,
    pub(super) queue: f64,
    pub(super) node: f64,
    pub(super) relayed: f64,
    pub(super) reordering: f64,
}

impl Figures {
    pub(super) fn of(result: &RunResult) -> Self {
        let if_any = |path: &str| find_number(result, path).unwrap_or(f64::NAN);
        Self {
            realised: number(result, "load.realised"),
            fct_mean: number(result, "fct.short.mean"),
            fct_p99: number(result, "fct.short.p99"),
            fct_p999: number(result, "fct.short.p999"),
            goodput: if_any("goodput.long.mean"),
            queue: number(result, "queue.max_cells"),
            node: if_any("shoal.node_queue_max_cells"),
            relayed: if_any("shoal.node_relayed_max_cells"),
            reordering: number(result, "reorder.max_bytes"),
        }
    }
}

/// One figure of several runs.
pub(super) fn of(runs: &[Figures], get: fn(&Figures) -> f64) -> Vec<f64> {
    runs.iter().map(get).filter(|value| !value.is_nan()).collect()
}

/// A quantity of Shoal against load, both readings.
struct Curve {
    label: &'static str,
    unit: Unit,
    get: fn(&Figures) -> f64,
    /// The largest value that the paper prints.
    published: f64,
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
        series.push(level("published", LOADS[0], self.published));
        let x = Axis::linear("Nominal load", Unit::Ratio);
        plot("Fig. 16", "", x, Axis::linear(self.label, self.unit), series)
    }
}

fn curves(sheet: &Sheet) -> [Curve; 4] {
    let curve = |label, unit, get, word| Curve { label, unit, get, published: sheet.number(word) };
    [
        curve("Longest queue", Unit::Cells, |f| f.queue, "fig15.queue"),
        curve("Most cells in a node", Unit::Cells, |f| f.node, "fig15.node"),
        curve("Most relayed cells in a node", Unit::Cells, |f| f.relayed, "fig15.relayed"),
        curve("Most data out of order", Unit::Bytes, |f| f.reordering, "fig15.reordering"),
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
    table("Shoal: means over seeds", &columns, points.iter().zip(grouped).map(row).collect())
}

/// How a figure at the lowest load compares with the highest, load 1 being 50 Gbps: in words, and as the
/// quotient of the last and the first.
fn ends(groups: &[&[Figures]], get: fn(&Figures) -> f64, unit: Unit) -> (String, f64) {
    let mean = |runs: &[Figures]| Spread::of(&of(runs, get)).mean;
    let (first, last) = (mean(groups[0]), mean(groups[LOADS.len() - 1]));
    (format!("{} to {}", unit.format(first), unit.format(last)), last / first)
}

impl Point {
    /// Flows of its run: the paper's number in the claims' runs at load 1.
    fn flows(&self, effort: Effort) -> u64 {
        match effort {
            Effort::Full if self.load < 1.0 || self.rate != NODE_RATE => FLOWS_BELOW,
            _ => flows(effort),
        }
    }

    /// Its scenario, with what else is set.
    fn scenario(
        &self,
        effort: Effort,
        more: &[(&str, Value)],
        seed: u64,
    ) -> Result<Scenario, Failure> {
        let mut settings = vec![
            ("workload.load", json!(self.load)),
            ("workload.load_rate", json!(format!("{} Gbps", self.rate))),
            ("workload.flows", json!(self.flows(effort))),
        ];
        settings.extend_from_slice(more);
        FIG15.with(&settings, seed)
    }
}

/// Most cells in a node at load 1 where local cells join a queue in its next slot.
fn in_slot(effort: Effort, watch: &mut Watch<'_>) -> Result<Measured, Failure> {
    let point = Point { rack: Rack::Shoal, rate: NODE_RATE, load: 1.0 };
    let jobs = with_seeds(&[point], LONG_SEEDS);
    let runs = spread(&jobs, &mut part(watch, OPEN..1.0), |&(point, seed), pulse| {
        let slot = [("fabric.0.admission", json!("slot"))];
        let (result, _) = point.rack.carry(&point.scenario(effort, &slot, seed)?, pulse)?;
        Ok(Figures::of(&result))
    })?;
    Ok(Measured::largest(&of(&runs, |figures| figures.node)))
}

/// Carries the same flows over each rack.
fn carry(
    jobs: &[(Point, u64)],
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Vec<Carried>, Failure> {
    spread(jobs, watch, |&(point, seed), pulse| {
        let (result, delivered) = point.rack.carry(&point.scenario(effort, &[], seed)?, pulse)?;
        Ok(Carried::new(&result, &delivered))
    })
}

/// E12, E13 and E14.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig15.claims.toml"));
    let points: Vec<(u64, f64)> =
        RATES.iter().flat_map(|&rate| LOADS.map(|load| (rate, load))).collect();
    let mut all: Vec<Point> =
        points.iter().map(|&(rate, load)| Point { rack: Rack::Shoal, rate, load }).collect();
    all.extend(beside::points());
    let jobs = with_seeds(&all, LONG_SEEDS);
    let runs = carry(&jobs, effort, &mut part(watch, 0.0..MAIN))?;
    let open = beside::open_points();
    let open_runs = carry(&with_seeds(&open, 1), effort, &mut part(watch, MAIN..OPEN))?;
    sheet.measure("fig15.node-slot", in_slot(effort, watch)?);
    let figures: Vec<Figures> = runs.iter().map(|run| run.figures).collect();
    let grouped: Vec<&[Figures]> = figures.chunks(LONG_SEEDS as usize).take(points.len()).collect();
    measure_shoal(&mut sheet, &grouped);
    let swept = Swept::new(&all, &runs, LONG_SEEDS);
    beside::measure(&mut sheet, &swept);
    beside::measure_open(&mut sheet, &swept, &Swept::new(&open, &open_runs, 1));
    let mut plots = beside::plots(&swept);
    plots.extend(curves(&sheet).iter().map(|curve| curve.plot(&grouped)));
    let numbers = numbers(&points, &grouped);
    let blocks = vec![Block::Plots(plots), beside::numbers(&swept), numbers];
    let text = format!(
        "Pareto sizes (shape 1.05, mean 100 KB, not truncated), Poisson arrivals, random nodes; a \
         run ends when {} flows have ended ({} below load 1, and where load 1 is 100 Gbps). Short: \
         at most 100 KB; long: at least 1 MB. The load that the drawn flows realise is below the \
         nominal one, as half of the mean sits in flows that are hardly ever drawn. R is the rate \
         that load 1 refers to. The packet-switched racks have 50 Gbps a node and carry the same \
         flows; in quotients above 1 Shoal is ahead.",
        Unit::Count.format(flows(effort) as f64),
        Unit::Count.format(
            Point { rack: Rack::Shoal, rate: NODE_RATE, load: LOADS[0] }.flows(effort) as f64
        )
    );
    Ok(findings("Data-centre workload", &text, blocks, sheet))
}

/// Fig. 15's means beside DCTCP, where a flow that loses its first packet does not wait a second.
pub(super) fn first_time_out(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/time-out.claims.toml"));
    let points = beside::first_time_out_points();
    let jobs = with_seeds(&points, LONG_SEEDS);
    let runs = spread(&jobs, watch, |&(point, seed), pulse| {
        let time_out = beside::first_time_out(point.rack);
        let more: Vec<_> =
            time_out.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        let (result, delivered) = point.rack.carry(&point.scenario(effort, &more, seed)?, pulse)?;
        Ok(Carried::new(&result, &delivered))
    })?;
    beside::measure_first_time_out(&mut sheet, &Swept::new(&points, &runs, LONG_SEEDS));
    let text =
        "Runs of Fig. 15 in which DCTCP's first time-out is 10 ms, not the second of RFC 6298.";
    Ok(findings("DCTCP with a shorter first time-out", text, Vec::new(), sheet))
}

/// The claims on Shoal alone.
fn measure_shoal(sheet: &mut Sheet, grouped: &[&[Figures]]) {
    for (suffix, groups) in ["", "-100"].iter().zip(grouped.chunks(LOADS.len())) {
        let mut put = |word: &str, groups: &[&[Figures]], get: fn(&Figures) -> f64| {
            let values: Vec<f64> = groups.iter().flat_map(|runs| of(runs, get)).collect();
            sheet.measure(&format!("fig15.{word}{suffix}"), Measured::largest(&values));
        };
        let full = &groups[LOADS.len() - 1..];
        put("queue", full, |figures| figures.queue);
        put("node", full, |figures| figures.node);
        put("relayed", full, |figures| figures.relayed);
        put("reordering", groups, |figures| figures.reordering);
    }
    let groups = &grouped[..LOADS.len()];
    let (words, quotient) = ends(groups, |figures| figures.fct_p999, Unit::Seconds);
    sheet.measure("fig15.fct", Measured::shape(words, Shape::of(quotient > 1.0)));
    let (words, quotient) = ends(groups, |figures| figures.goodput, Unit::BitsPerSecond);
    sheet.measure("fig15.goodput", Measured::shape(words, Shape::of(quotient < 1.0)));
}
