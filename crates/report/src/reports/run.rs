//! The report of one run.

use rack::results::RunResult;
use serde_json::Value;

use super::bars;
use super::gauges::{self, Topic};
use super::sizes::{self, Quantity};
use super::{lead, provenance};
use crate::page::{Axis, Block, Page, Plot, PlotSeries, SeriesStyle, TableBlock, Tile};
use crate::summary::{
    details, details_table, distributions, figures, get, jobs, number, shown, warnings,
};
use crate::units::{MISSING, label_of_key, sentence};
use crate::{ResultsTable, Tone, Unit};

/// The page of one run. `slow` is what is said of flows whose packets were recorded ([`super::slow_flows`]), if any
/// were; `command` is what to type to obtain it again.
#[must_use]
pub fn run_page(run: &RunResult, slow: Vec<Block>, command: &str) -> Page {
    let summary = &run.summary;
    let mut page = Page { title: run.label.clone(), lead: lead(summary), sections: Vec::new() };
    let mut overview: Vec<_> = warnings(summary).into_iter().map(Block::Text).collect();
    overview.push(Block::Tiles(key_figures(summary)));
    page.push("Key figures", overview);
    page.push("Jobs", job_blocks(summary));
    page.push("Flow sizes", size_blocks(run));
    page.push("Distributions", distribution_blocks(run));
    page.push("Long flows", long_flow_blocks(run));
    page.push("Where the time goes", stage_blocks(run));
    page.push("The slowest flows", slow);
    for (title, topic) in [
        ("Queues", Topic::Queues),
        ("Links and slots", Topic::Links),
        ("Reordering", Topic::Reordering),
        ("Other gauges", Topic::Other),
    ] {
        page.push(title, topic_blocks(run, topic));
    }
    page.push("The fabric", fabric_blocks(run));
    let details = details(summary);
    page.push("Power and cost", vec![Block::table(details_table(&details, is_power_or_cost))]);
    page.push("All figures", vec![Block::table(figures(summary))]);
    let source =
        Block::Source { title: "The scenario as resolved".into(), text: run.scenario.clone() };
    page.push("Configuration", vec![source]);
    page.push("Provenance", provenance(&[(&run.label, summary)], command));
    page
}

/// The figures that readers look for first.
#[must_use]
pub fn key_figures(summary: &Value) -> Vec<Tile> {
    let tile = |label: &str, key: &str, note: String| {
        let value = shown(summary, key);
        (value != MISSING).then(|| Tile { label: label.into(), value, note, tone: Tone::Plain })
    };
    let unfinished = format!(
        "unfinished {}, failed {}",
        shown(summary, "flows.unfinished"),
        shown(summary, "flows.measured_failed")
    );
    let measured = tile("Flows measured", "flows.measured", unfinished);
    let note = |label: &str, key: &str| match shown(summary, key) {
        value if value == MISSING => String::new(),
        value => format!("{label} {value}"),
    };
    let saturated = get(summary, "saturated") == Some(&Value::Bool(true));
    let load_tone = if saturated { Tone::Bad } else { Tone::Plain };
    let load_note = format!(
        "{}{}",
        note("nominal", "load.nominal"),
        if saturated { "; saturated" } else { "" }
    );
    let load = tile("Load, realised", "load.realised", load_note);
    [
        measured,
        load.map(|tile| Tile { tone: load_tone, ..tile }),
        tile("FCT of short flows, 99%", "fct.short.p99", note("median", "fct.short.p50")),
        tile("Slowdown, 99%", "slowdown.all.p99", note("median", "slowdown.all.p50")),
        tile("Goodput of long flows", "goodput.long.mean", note("slowest 1%", "goodput.long.p01")),
        tile("Throughput a node", "throughput.mean_node", note("rack", "throughput.aggregate")),
        match gauges::bound_of("queue_max_cells", summary) {
            Some(bound) => tile("Longest queue, cells", "queue.max_cells", bound_note(bound)),
            None => tile("Longest queue", "queue.max_bytes", String::new()),
        },
        tile("Most data out of order", "reorder.max_bytes", "held for one flow".into()),
        tile("Drops", "drops", note("retransmissions", "retransmissions")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How long each job took, and what of the network's energy is its own.
fn job_blocks(summary: &Value) -> Vec<Block> {
    let note = "The time of a job is from its start until its last flow has ended and its last computation is \
                done. Times as long: together with the others over alone, on the same nodes.";
    let table = TableBlock { title: "Jobs".into(), note: note.into(), table: jobs(summary) };
    if table.table.rows.is_empty() {
        return Vec::new();
    }
    let bounds = bars::bounds_of_run(summary);
    let plots = (!bounds.series.is_empty()).then(|| Block::Plots(vec![bounds]));
    [Block::Table(table)].into_iter().chain(plots).collect()
}

/// The bound of the longest queue, where the fabric states one.
fn bound_note(bound: f64) -> String {
    format!("bound {}", Unit::Cells.format(bound))
}

fn size_blocks(run: &RunResult) -> Vec<Block> {
    let plots = [Quantity::CompletionTime, Quantity::Slowdown];
    vec![
        Block::Plots(plots.map(|quantity| sizes::by_size(run, quantity)).to_vec()),
        Block::Table(TableBlock {
            title: "By class".into(),
            note: "Slowdown is completion time over ideal completion time, that of the same flow alone in the idle network."
                .into(),
            table: distributions(&run.summary),
        }),
        Block::FoldedTable(TableBlock {
            title: "Figures by size".into(),
            note: String::new(),
            table: sizes::table(run),
        }),
    ]
}

fn distribution_blocks(run: &RunResult) -> Vec<Block> {
    let mut short = sizes::cdf_plot(Quantity::CompletionTime, "short flows");
    if let Some(points) = sizes::cdf(run, Quantity::CompletionTime, "short") {
        short.series.push(PlotSeries::new("Short flows", SeriesStyle::Line, points));
    }
    let mut slowdown = sizes::cdf_plot(Quantity::Slowdown, "flows by class");
    for class in ["short", "medium", "long", "all"] {
        if let Some(points) = sizes::cdf(run, Quantity::Slowdown, class) {
            let style = if class == "all" { SeriesStyle::Dashed } else { SeriesStyle::Line };
            slowdown.series.push(PlotSeries::new(label_of_key(class), style, points));
        }
    }
    vec![Block::Plots(vec![short, slowdown])]
}

fn long_flow_blocks(run: &RunResult) -> Vec<Block> {
    let summary = &run.summary;
    let rows = [
        ("goodput.long.mean", "Mean"),
        ("goodput.long.p50", "Median"),
        ("goodput.long.p01", "Slowest 1%"),
        ("throughput.mean_node", "A node, whole run"),
    ];
    let present: Vec<_> = rows
        .iter()
        .filter_map(|&(key, label)| number(summary, key).map(|value| (label, value)))
        .collect();
    if number(summary, "goodput.long.mean").is_none() {
        return Vec::new();
    }
    let points = present.iter().enumerate().map(|(place, &(_, value))| (place as f64, value));
    let plot = Plot {
        title: "Goodput of long flows".into(),
        note:
            "Application bytes over completion time, a flow of at least 1 MB each; beside it what \
               a node received on average over the whole run."
                .into(),
        x: Axis::named("", present.iter().map(|(label, _)| (*label).into()).collect()),
        y: Axis::linear("Goodput", Unit::BitsPerSecond),
        series: vec![PlotSeries::new("Goodput", SeriesStyle::Bars, points.collect())],
    };
    let mut times = sizes::cdf_plot(Quantity::CompletionTime, "long flows");
    if let Some(points) = sizes::cdf(run, Quantity::CompletionTime, "long") {
        times.series.push(PlotSeries::new("Long flows", SeriesStyle::Line, points));
    }
    vec![Block::Plots(vec![plot, times])]
}

fn stage_blocks(run: &RunResult) -> Vec<Block> {
    let Some(plot) = sizes::stages(run) else { return Vec::new() };
    let terms = run.stages.iter().map(|stage| (label_of_key(stage.name), sentence(stage.meaning)));
    vec![Block::Plots(vec![plot]), Block::Terms(terms.collect())]
}

fn topic_blocks(run: &RunResult, topic: Topic) -> Vec<Block> {
    let summary = &run.summary;
    let note = match topic {
        Topic::Queues => {
            let held = "The longest single queue of the run held";
            let bound = gauges::bound_of("queue_max_cells", summary);
            let cells = number(summary, "queue.max_cells").map(|cells| Unit::Cells.format(cells));
            match (bound, cells) {
                (Some(bound), Some(cells)) => {
                    format!("{held} {cells}; its bound is {}.", Unit::Cells.format(bound))
                }
                _ if get(summary, "queue.max_bytes").is_some() => {
                    format!("{held} {}.", shown(summary, "queue.max_bytes"))
                }
                _ => String::new(),
            }
        }
        Topic::Reordering if get(summary, "reorder.max_bytes").is_some() => format!(
            "At most {} were held out of order for one flow.",
            shown(summary, "reorder.max_bytes")
        ),
        Topic::Reordering | Topic::Links | Topic::Other => String::new(),
    };
    vec![Block::Text(note), Block::Plots(gauges::plots(run, topic))]
}

/// Tables that the fabric adds, then its own figures.
fn fabric_blocks(run: &RunResult) -> Vec<Block> {
    let mut blocks: Vec<_> = run
        .tables
        .iter()
        .map(|table| {
            Block::Table(TableBlock {
                title: table.title.clone(),
                note: table.note.clone(),
                table: ResultsTable::of_text(&table.columns, &table.rows),
            })
        })
        .collect();
    let table = details_table(&details(&run.summary), |key| !is_power_or_cost(key));
    if !table.rows.is_empty() {
        blocks.push(Block::Table(TableBlock {
            title: "Its own figures".into(),
            note: String::new(),
            table,
        }));
    }
    blocks
}

/// Whether a figure of the fabric is about power or cost.
fn is_power_or_cost(key: &str) -> bool {
    ["power", "watts", "joules", "cost", "dollars"].iter().any(|word| key.contains(word))
}
