//! Figures of several runs as bars, a group of bars a run: goodput, power and cost.

use rack::results::RunResult;
use serde_json::Value;

use crate::page::{Axis, Plot, PlotSeries, SeriesStyle};
use crate::summary::{bounds_of_jobs, interval, name_of_bound, names_of_jobs, number, of_job};
use crate::units::capitalised;
use crate::{Cell, Column, ResultsTable, Unit};

/// One part of the bars: its name in the legend and the key of the summary.
type Part = (&'static str, &'static str);

/// What the networks draw, and of what they are made.
const POWER: [Part; 2] =
    [("Switches", "equipment.switches_watts"), ("NICs", "equipment.nics_watts")];

/// A bar for each run, stacked of `parts`; a run without figures has none.
fn stacked(runs: &[RunResult], parts: &[Part]) -> Vec<PlotSeries> {
    parts.iter().map(|part| bars(runs, *part)).collect()
}

fn bars(runs: &[RunResult], (name, key): Part) -> PlotSeries {
    let bars = runs.iter().enumerate();
    let bars = bars.filter_map(|(at, run)| Some((at as f64, number(&run.summary, key)?)));
    PlotSeries::new(name, SeriesStyle::Bars, bars.collect())
}

/// A bar for each run, and how far chance may have moved those of several seeds.
fn with_intervals(runs: &[RunResult], part: Part) -> PlotSeries {
    let mut series = bars(runs, part);
    let intervals = series.points.iter().map(|&(at, height)| {
        interval(&runs[at as usize].summary, part.1).unwrap_or((height, height))
    });
    let intervals: Vec<_> = intervals.collect();
    if intervals.iter().any(|(low, high)| low < high) {
        series.intervals = intervals;
    }
    series
}

fn names(runs: &[RunResult]) -> Axis {
    Axis::named("", runs.iter().map(|run| run.label.clone()).collect())
}

/// What bounded jobs, a bar for each of these: its name, the summary and the job in it.
fn bounds(title: String, jobs: &[(&str, &Value, &str)]) -> Plot {
    let part = |key: &String| {
        let bars = jobs.iter().enumerate();
        let bars = bars.filter_map(|(at, (_, summary, job))| {
            Some((at as f64, number(summary, &of_job(job, key))?))
        });
        PlotSeries::new(capitalised(&name_of_bound(key)), SeriesStyle::Bars, bars.collect())
    };
    let keys = bounds_of_jobs(jobs.iter().map(|(_, summary, _)| *summary));
    let is_there = |part: &PlotSeries| part.points.iter().any(|(_, height)| *height > 0.0);
    let series: Vec<_> = keys.iter().map(part).filter(is_there).collect();
    let chain = "Along its longest chain: what happened last, what that had waited for last, and so \
                 on to its start.";
    Plot {
        title,
        // A plot of one part has no legend.
        note: match &series[..] {
            [one] => format!("{} alone. {chain}", one.name),
            _ => chain.into(),
        },
        x: Axis::named("", jobs.iter().map(|(name, ..)| (*name).to_string()).collect()),
        y: Axis::linear("Time of the job", Unit::Seconds),
        series,
    }
}

/// What bounded each job of a run.
pub(super) fn bounds_of_run(summary: &Value) -> Plot {
    let jobs: Vec<_> = names_of_jobs(summary).map(|name| (name, summary, name)).collect();
    bounds("What bounded each job".into(), &jobs)
}

/// What bounded each job in each of several runs: a plot a job.
pub(super) fn bounds_of_runs(runs: &[RunResult]) -> Vec<Plot> {
    let names = runs.first().into_iter().flat_map(|run| names_of_jobs(&run.summary));
    let plot = |name: &str| {
        let bars = runs.iter().map(|run| (run.label.as_str(), &run.summary, name));
        bounds(format!("What bounded the job {name}"), &bars.collect::<Vec<_>>())
    };
    names.map(plot).filter(|plot| !plot.series.is_empty()).collect()
}

/// What long flows reach.
pub(super) fn goodput(runs: &[RunResult]) -> Vec<Plot> {
    let drawn = [
        ("Goodput of long flows, mean", "goodput.long.mean"),
        ("Goodput of long flows, slowest 1%", "goodput.long.p01"),
    ];
    let plot = |(title, key): Part| Plot {
        title: title.into(),
        note: "Application bytes over completion time, for flows of at least 1 MB.".into(),
        x: names(runs),
        y: Axis::linear("Goodput", Unit::BitsPerSecond),
        series: vec![with_intervals(runs, ("Goodput", key))],
    };
    drawn.map(plot).to_vec()
}

/// Whether some run knows what its network is made of.
fn has_equipment(runs: &[RunResult]) -> bool {
    runs.iter().any(|run| number(&run.summary, "equipment.power_watts").is_some())
}

/// What the networks draw and cost.
pub(super) fn equipment(runs: &[RunResult]) -> Vec<Plot> {
    if !has_equipment(runs) {
        return Vec::new();
    }
    let power = Plot {
        title: "Power of the network".into(),
        note: "What its switches and NICs draw.".into(),
        x: names(runs),
        y: Axis::linear("Power", Unit::Watts),
        series: stacked(runs, &POWER),
    };
    let cost = Plot {
        title: "Cost of the network".into(),
        note: "In packet switches of 64 ports of 50 Gbps.".into(),
        x: names(runs),
        y: Axis::linear("Cost", Unit::Count),
        series: stacked(runs, &[("Cost", "equipment.cost_ratio")]),
    };
    vec![power, cost]
}

/// The figures behind [`equipment`]; energy is that of the whole network over the run.
pub(super) fn equipment_table(runs: &[RunResult]) -> ResultsTable {
    let mut table = ResultsTable::new(vec![
        Column::new("network", "Network"),
        Column::new("switches", "Switches"),
        Column::new("switches_watts", "Switches draw"),
        Column::new("nics_watts", "NICs draw"),
        Column::new("power_watts", "Together"),
        Column::new("cost_ratio", "Cost, a packet switch being 1"),
        Column::new("joules_per_gigabyte", "Energy a gigabyte delivered"),
    ]);
    for run in runs.iter().filter(|run| has_equipment(std::slice::from_ref(run))) {
        let figure = |key: &str| number(&run.summary, &format!("equipment.{key}"));
        let energy = energy(run);
        let cell = |value: Option<f64>, unit| Cell::new(serde_json::json!(value), unit);
        table.push(vec![
            Cell::text(&run.label),
            Cell::new(run.summary["equipment"]["switches"].clone(), Unit::Count),
            cell(figure("switches_watts"), Unit::Watts),
            cell(figure("nics_watts"), Unit::Watts),
            cell(figure("power_watts"), Unit::Watts),
            cell(figure("cost_ratio"), Unit::Ratio),
            cell(energy, Unit::Joules),
        ]);
    }
    table
}

/// Joules that the network draws for each gigabyte that it delivers.
fn energy(run: &RunResult) -> Option<f64> {
    let watts = number(&run.summary, "equipment.power_watts")?;
    let rate = number(&run.summary, "throughput.aggregate").filter(|rate| *rate > 0.0)?;
    Some(watts / (rate / 8.0) * 1e9)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn run(summary: Value) -> RunResult {
        RunResult {
            label: "a".into(),
            scenario: String::new(),
            summary,
            stages: vec![],
            bins: vec![],
            cdfs: vec![],
            series: rack::results::SeriesTable::default(),
            tables: vec![],
        }
    }

    #[test]
    fn bars_of_several_seeds_have_their_intervals_and_others_none() {
        let one = || run(json!({ "goodput": { "long": { "mean": 4e9 } } }));
        let several = run(json!({
            "goodput": { "long": { "mean": 5e9 } },
            "intervals": { "goodput": { "long": { "mean": [4.5e9, 5.5e9] } } },
        }));
        let drawn = |runs: &[RunResult]| goodput(runs).remove(0).series.remove(0);
        assert_eq!(drawn(&[one(), one()]).intervals, []);
        let empty = run(json!({}));
        let series = drawn(&[one(), empty, several]);
        assert_eq!(series.points, [(0.0, 4e9), (2.0, 5e9)]);
        assert_eq!(series.intervals, [(4e9, 4e9), (4.5e9, 5.5e9)]);
    }
}
