//! What an upgrade of the firmware was like, of a Clique that is simulated (M617).

use aquila_control::rpc::Restart;
use aquila_control::sim::results::{Results, Upgraded};
use kernel::{Span, Time};
use report::page::{Axis, Plot, PlotSeries, SeriesStyle};
use report::{Cell, ResultsTable, TableColumn, Unit};
use serde_json::{Value, json};

use super::boot::{extremes, minutes};

/// From one time to another, of those that have come to both, sorted.
fn spans(
    results: &Results,
    from: fn(&Upgraded) -> Option<Time>,
    to: fn(&Upgraded) -> Option<Time>,
) -> Vec<Span> {
    let span = |one: &Upgraded| Some(to(one)? - from(one)?);
    let mut spans: Vec<Span> = results.upgraded.values().filter_map(span).collect();
    spans.sort_unstable();
    spans
}

fn figures(spans: &[Span]) -> Value {
    let [min, median, max] = extremes(spans);
    json!({ "tins": spans.len(), "min": min, "median": median, "max": max })
}

/// TiNs with which it has ended, and why.
#[must_use]
pub fn failed(results: &Results) -> Vec<(u16, String)> {
    let why = |(&tin, one): (&u16, &Upgraded)| Some((tin, one.failed?.to_string()));
    results.upgraded.iter().filter_map(why).collect()
}

/// From the first image that was begun to the last TiN that was back; `None`: not all of those that had a part in it are.
fn total(results: &Results) -> Option<Span> {
    let all = || results.upgraded.values();
    let first = all().filter_map(|one| one.begun).min()?;
    let last: Option<Vec<Time>> = all().map(|one| one.done).collect();
    Some(last?.into_iter().max()? - first)
}

/// Its figures; nothing, if none was asked for.
#[must_use]
pub fn summary(results: &Results) -> Option<Value> {
    let plan = results.plan?;
    let failed: Vec<Value> =
        failed(results).into_iter().map(|(tin, why)| json!({ "tin": tin, "why": why })).collect();
    Some(json!({
        "version": plan.header.version,
        "image_bytes": plan.header.length,
        "restart": match plan.restart {
            Restart::Processor => "processor",
            Restart::Chip => "chip",
        },
        "at_once": plan.at_once,
        "done": results.upgraded.values().filter(|one| one.done.is_some()).count(),
        "failed": failed,
        "total_seconds": total(results).map(Span::as_seconds),
        "image_seconds": figures(&spans(results, |one| one.begun, |one| one.restarted)),
        "restart_seconds": figures(&spans(results, |one| one.restarted, |one| one.done)),
    }))
}

/// Puts what people read into a table of figures.
pub fn put(results: &Results, table: &mut ResultsTable) {
    let Some(summary) = summary(results) else { return };
    let mut put = |what: &str, cell: Cell| table.push(vec![Cell::text(what), cell]);
    let (version, done) = (&summary["version"], &summary["done"]);
    put("TiNs upgraded", Cell::text(format!("{done}, to version {version}")));
    for (tin, why) in failed(results) {
        put("Upgrade ended", Cell::text(format!("TiN {tin}: {why}")));
    }
    put("Upgrade of all", minutes(&summary["total_seconds"]));
    for (what, key) in [
        ("An image, until it may restart", "image_seconds"),
        ("From a restart until whole", "restart_seconds"),
    ] {
        put(&format!("{what}, median"), minutes(&summary[key]["median"]));
        put(&format!("{what}, longest"), minutes(&summary[key]["max"]));
    }
}

/// Columns of the table of TiNs.
#[must_use]
pub fn columns(results: &Results) -> Vec<TableColumn> {
    if results.plan.is_none() {
        return Vec::new();
    }
    let of = |at: usize| results.upgraded.get(&(at as u16)).copied().unwrap_or_default();
    let tins = 0..results.tins.len();
    let time = |name: &str, description, of_tin: fn(&Upgraded) -> Option<Time>| {
        let seconds = |at| of_tin(&of(at)).map(|time| (time - Time::ZERO).as_seconds());
        let values = tins.clone().map(|at| json!(seconds(at))).collect();
        TableColumn { name: name.into(), unit: "s", description, values }
    };
    let runs = |at: usize| Some(of(at).runs).filter(|&runs| runs > 0);
    vec![
        time("image_begun_s", "When its image of firmware was begun.", |one| one.begun),
        time("restarted_s", "When it was told to restart for it.", |one| one.restarted),
        time("upgraded_s", "When it was back, and held what it was to hold.", |one| one.done),
        TableColumn {
            name: "firmware".into(),
            unit: "",
            description: "The version that it runs; none: it had no part in the upgrade.",
            values: tins.map(|at| json!(runs(at))).collect(),
        },
    ]
}

/// Most TiNs whose names fit beside a plot.
const NAMED_MAX: usize = 24;

/// By TiN, in the order in which they began: the image, and the restart, or what it came to instead.
#[must_use]
pub fn plot(results: &Results) -> Option<Plot> {
    results.plan?;
    let mut order: Vec<(u16, &Upgraded)> =
        results.upgraded.iter().map(|(&tin, one)| (tin, one)).collect();
    order.retain(|(_, one)| one.begun.is_some());
    order.sort_by_key(|(_, one)| (one.begun, one.done));
    let first = order.first()?.1.begun?;
    type Of = fn(&Upgraded) -> Option<Time>;
    let parts: [(&str, Of, Of); 3] = [
        ("Image", |one| one.begun, |one| one.restarted.or(one.ended)),
        ("Restart", |one| one.restarted, |one| one.done),
        ("Restart, and back to what ran before", |one| one.restarted, |one| one.ended),
    ];
    let series = parts.map(|(name, from, to)| {
        let mut points = Vec::new();
        for (rank, (_, one)) in order.iter().enumerate() {
            if let (Some(from), Some(to)) = (from(one), to(one)) {
                let seconds = |time: Time| (time - first).as_seconds();
                points.extend([from, to].map(|time| (seconds(time), rank as f64)));
            }
        }
        PlotSeries::new(name, SeriesStyle::Segments, points)
    });
    let y = if order.len() <= NAMED_MAX {
        let names = order.iter().map(|(tin, _)| format!("TiN {tin}")).collect();
        Axis::named("", names)
    } else {
        Axis::linear("TiNs in order", Unit::Count)
    };
    Some(Plot {
        title: "Upgrade of each TiN".into(),
        note: "A line a TiN: its image is sent, then it restarts, until its registers are known to be right.".into(),
        x: Axis::linear("Time since the first image was begun", Unit::Seconds),
        y,
        series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
    })
}
