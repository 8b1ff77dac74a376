//! The report of several runs over the same flows, side by side.

use rack::results::RunResult;

use super::bars;
use super::gauges::{self, Curve};
use super::provenance;
use super::sizes::{self, MEDIAN, P99, Quantity};
use crate::page::{Axis, Block, Page, Plot, PlotSeries, SeriesStyle};
use crate::summary::{comparison, differences, warnings};
use crate::{ResultsTable, Unit};

/// The page that compares `runs`. `command` is what to type to obtain it again.
#[must_use]
pub fn comparison_page(title: &str, runs: &[RunResult], command: &str) -> Page {
    let labels: Vec<_> = runs.iter().map(|run| run.label.as_str()).collect();
    let lead = format!("The same flows through {}.", enumeration(&labels));
    let mut page = Page { title: title.into(), lead, sections: Vec::new() };
    let summaries: Vec<_> = runs.iter().map(|run| (run.label.as_str(), &run.summary)).collect();

    let notes = runs.iter().flat_map(|run| {
        let texts = warnings(&run.summary).into_iter();
        texts.map(|text| Block::Text(format!("{}: {text}", run.label)))
    });
    let means = differences(&summaries).into_iter().map(Block::Text);
    let mut overview: Vec<_> = means.chain(notes).collect();
    overview.push(Block::table(side_by_side(runs)));
    page.push("Side by side", overview);
    let bounds = bars::bounds_of_runs(runs);
    if !bounds.is_empty() {
        page.push("Jobs", vec![Block::Plots(bounds)]);
    }
    page.push("Flow sizes", vec![Block::Plots(size_plots(runs))]);
    page.push("Distributions", vec![Block::Plots(cdf_plots(runs))]);
    page.push("Goodput", vec![Block::Plots(bars::goodput(runs))]);
    page.push("Where the time goes", vec![Block::Plots(stage_plots(runs))]);
    page.push("Over time", vec![Block::Plots(gauge_plots(runs))]);
    page.push("Power and cost", equipment_blocks(runs));
    let sources = runs
        .iter()
        .map(|run| Block::Source { title: run.label.clone(), text: run.scenario.clone() });
    page.push("Configuration", sources.collect());
    page.push("Provenance", provenance(&summaries, command));
    page
}

/// The figures of all runs, one column each.
fn side_by_side(runs: &[RunResult]) -> ResultsTable {
    let summaries: Vec<_> = runs.iter().map(|run| (run.label.as_str(), &run.summary)).collect();
    comparison(&summaries)
}

/// Median dashed, 99th percentile solid; a colour a run.
fn size_plots(runs: &[RunResult]) -> Vec<Plot> {
    let quantities = [Quantity::CompletionTime, Quantity::Slowdown];
    let plot = |quantity: Quantity| {
        let mut series = Vec::new();
        for (hue, run) in runs.iter().enumerate() {
            for (drawn, style) in [(P99, SeriesStyle::Line), (MEDIAN, SeriesStyle::Dashed)] {
                let name = format!("{}, {}", run.label, drawn.0.to_lowercase());
                series.push(sizes::line(run, quantity, drawn, name, style).in_hue(hue));
            }
        }
        Plot {
            title: format!("{} by flow size", quantity.title()),
            note:
                "Solid: 99%, for sizes with at least 100 flows. Dashed: median. A point stands in \
                   the middle of its range of sizes."
                    .into(),
            x: Axis::log("Flow size", Unit::Bytes),
            y: quantity.axis(),
            series,
        }
    };
    quantities.map(plot).to_vec()
}

fn cdf_plots(runs: &[RunResult]) -> Vec<Plot> {
    let wanted = [
        (Quantity::CompletionTime, "short", "short flows"),
        (Quantity::Slowdown, "all", "all flows"),
        (Quantity::CompletionTime, "long", "long flows"),
        (Quantity::Slowdown, "short", "short flows"),
    ];
    let plot = |(quantity, class, flows): (Quantity, &str, &str)| {
        let mut plot = sizes::cdf_plot(quantity, flows);
        for (hue, run) in runs.iter().enumerate() {
            let points = sizes::cdf(run, quantity, class).unwrap_or_default();
            plot.series.push(PlotSeries::new(&run.label, SeriesStyle::Line, points).in_hue(hue));
        }
        plot
    };
    wanted.map(plot).to_vec()
}

/// One plot a run: fabrics differ in their stages.
fn stage_plots(runs: &[RunResult]) -> Vec<Plot> {
    let plot =
        |run: &RunResult| sizes::stages(run).map(|plot| Plot { title: run.label.clone(), ..plot });
    runs.iter().filter_map(plot).collect()
}

fn equipment_blocks(runs: &[RunResult]) -> Vec<Block> {
    let note = "What switches and NICs draw and cost at the prices of each scenario; figures of the \
                parts, not of the run, but for the energy.";
    let table = bars::equipment_table(runs);
    if table.rows.is_empty() {
        return Vec::new();
    }
    let plots = Block::Plots(bars::equipment(runs));
    vec![Block::Text(note.into()), plots, Block::table(table)]
}

/// One plot a gauge, a curve for each run that has it, in order of first appearance.
fn gauge_plots(runs: &[RunResult]) -> Vec<Plot> {
    let curves: Vec<_> = runs.iter().map(gauges::curves).collect();
    let mut kinds: Vec<&Curve> = Vec::new();
    for curve in curves.iter().flatten() {
        if !kinds.iter().any(|kind| kind.label == curve.label && kind.unit == curve.unit) {
            kinds.push(curve);
        }
    }
    let plot = |kind: &&Curve| {
        let series = runs.iter().zip(&curves).enumerate().filter_map(|(hue, (run, curves))| {
            let same = |curve: &&Curve| curve.label == kind.label && curve.unit == kind.unit;
            let points = curves.iter().find(same)?.points.clone();
            Some(PlotSeries::new(&run.label, SeriesStyle::Line, points).in_hue(hue))
        });
        let events = gauges::faults(&runs[0].summary);
        Plot {
            title: format!("{} over time", kind.label),
            note: kind.meaning.clone(),
            x: Axis::linear("Simulated time", Unit::Seconds),
            y: Axis::linear(&kind.label, kind.unit),
            series: series.chain(events).collect(),
        }
    };
    kinds.iter().map(plot).collect()
}

/// "a, b and c".
fn enumeration(names: &[&str]) -> String {
    match names {
        [] => "nothing".into(),
        [one] => (*one).into(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
