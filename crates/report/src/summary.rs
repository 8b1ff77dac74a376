//! Reading a summary: which of its figures people look for, under which name.
//!
//! The summary's keys are a contract; what a fabric adds stands under the fabric's own name and is
//! shown by its keys.

use rack::results;
use serde_json::Value;

use crate::units::{capitalised, label_of_key};
use crate::{Cell, Column, ResultsTable, Tone, Unit};

/// A figure of the summary.
#[derive(Clone, Copy, Debug)]
struct Figure {
    /// Where it stands, members joined by dots.
    key: &'static str,
    /// What people call it.
    label: &'static str,
}

/// What is compared between runs, in reading order.
const FIGURES: &[Figure] = &[
    Figure { key: "nodes", label: "Nodes" },
    Figure { key: "load.nominal", label: "Load, nominal" },
    Figure { key: "load.realised", label: "Load, realised" },
    Figure { key: "load.rate", label: "Load 100% is, a node" },
    Figure { key: "node_rate", label: "Bandwidth of a node" },
    Figure { key: "handshake", label: "Handshake before data" },
    Figure { key: "saturated", label: "Saturated" },
    Figure { key: "interrupted", label: "Interrupted" },
    Figure { key: "warm_up_flows", label: "Flows of the warm-up, not measured" },
    Figure { key: "simulated_seconds", label: "Simulated time" },
    Figure { key: "flows.measured", label: "Flows measured" },
    Figure { key: "flows.unfinished", label: "Measured flows unfinished" },
    Figure { key: "flows.measured_failed", label: "Measured flows failed" },
    Figure { key: "flows.offered", label: "Flows offered, measured or not" },
    Figure { key: "flows.completed", label: "Flows completed" },
    Figure { key: "flows.failed", label: "Flows failed" },
    Figure { key: "bytes.delivered", label: "Data delivered" },
    Figure { key: "bytes.lost", label: "Data lost" },
    Figure { key: "fct.short.p50", label: "FCT of short flows, median" },
    Figure { key: "fct.short.p99", label: "FCT of short flows, 99%" },
    Figure { key: "fct.short.p999", label: "FCT of short flows, 99.9%" },
    Figure { key: "fct.long.mean", label: "FCT of long flows, mean" },
    Figure { key: "fct.long.p99", label: "FCT of long flows, 99%" },
    Figure { key: "slowdown.short.p99", label: "Slowdown of short flows, 99%" },
    Figure { key: "slowdown.all.p50", label: "Slowdown, median" },
    Figure { key: "slowdown.all.p99", label: "Slowdown, 99%" },
    Figure { key: "slowdown.all.p999", label: "Slowdown, 99.9%" },
    Figure { key: "slowdown_common.all.p50", label: "Slowdown to a common ideal, median" },
    Figure { key: "slowdown_common.all.p99", label: "Slowdown to a common ideal, 99%" },
    Figure { key: "goodput.long.mean", label: "Goodput of long flows, mean" },
    Figure { key: "goodput.long.p50", label: "Goodput of long flows, median" },
    Figure { key: "goodput.long.p01", label: "Goodput of long flows, slowest 1%" },
    Figure { key: "throughput.mean_node", label: "Throughput a node" },
    Figure { key: "throughput.aggregate", label: "Throughput of the rack" },
    Figure { key: "queue.max_cells", label: "Longest queue, cells or packets" },
    Figure { key: "queue.max_bytes", label: "Longest queue, bytes" },
    Figure { key: "queue.p99_bytes", label: "Queue met on arrival, 99%" },
    Figure { key: "reorder.max_bytes", label: "Most data out of order, one flow" },
    Figure { key: "drops", label: "Drops" },
    Figure { key: "retransmissions", label: "Retransmissions" },
    Figure { key: "equipment.switches", label: "Switches" },
    Figure { key: "equipment.power_watts", label: "Power of the network" },
    Figure { key: "equipment.cost_ratio", label: "Cost, a packet switch being 1" },
];

/// Distributions of the summary: the classes of flows and what they are.
const CLASSES: &[(&str, &str)] = &[
    ("short", "short (at most 100 KB)"),
    ("medium", "medium"),
    ("long", "long (at least 1 MB)"),
    ("all", "all"),
];

/// The columns of a distribution and their heads.
const QUANTILES: &[(&str, &str)] = &[
    ("count", "Flows"),
    ("unfinished", "Unfinished"),
    ("mean", "Mean"),
    ("p50", "Median"),
    ("p95", "95%"),
    ("p99", "99%"),
    ("p999", "99.9%"),
    ("max", "Largest"),
];

/// The value at `key`, members joined by dots, unless it is null: a figure of no flows, or one that is
/// only bounded.
pub(crate) fn get<'a>(summary: &'a Value, key: &str) -> Option<&'a Value> {
    let value = key.split('.').try_fold(summary, |value, member| value.get(member));
    value.filter(|value| !value.is_null())
}

/// The number at `key`.
pub(crate) fn number(summary: &Value, key: &str) -> Option<f64> {
    get(summary, key)?.as_f64()
}

/// The figure at `key`, or its bound.
#[must_use]
pub fn figure(summary: &Value, key: &str) -> results::Figure {
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    let table = if table.is_empty() { Some(summary) } else { get(summary, table) };
    table.map_or(results::Figure::Missing, |table| results::Figure::get(name, table))
}

/// The confidence interval of the figure at `key`, of a run with several seeds.
#[must_use]
pub fn interval(summary: &Value, key: &str) -> Option<(f64, f64)> {
    let ends = get(summary.get("intervals")?, key)?;
    Some((ends.get(0)?.as_f64()?, ends.get(1)?.as_f64()?))
}

/// The cell of what stands at `key` of a summary, members joined by dots: a bound is marked as one, a
/// mean over seeds has its interval. `None` where nothing stands.
#[must_use]
pub fn cell(summary: &Value, key: &str) -> Option<Cell> {
    let unit = Unit::of_key(key);
    match (figure(summary, key), get(summary, key)) {
        (results::Figure::Missing, None) => None,
        (results::Figure::Missing, Some(value)) => Some(Cell::new(value.clone(), unit)),
        (figure, _) => Some(Cell::figure(figure, interval(summary, key), unit)),
    }
}

/// What people call the figure at `key`; its key where nobody calls it anything.
#[must_use]
pub fn label(key: &str) -> String {
    let known = FIGURES.iter().find(|figure| figure.key == key);
    known
        .map(|figure| figure.label.to_string())
        .or_else(|| of_distribution(key))
        .unwrap_or_else(|| key.to_string())
}

/// What people call a figure of a distribution, `fct.all.p999`, as those are called that are compared.
fn of_distribution(key: &str) -> Option<String> {
    let mut parts = key.split('.');
    let (quantity, class, figure) = (parts.next()?, parts.next()?, parts.next()?);
    let quantity = match quantity {
        "slowdown_common" if class != "all" => {
            let name = of_distribution(&format!("slowdown.{class}.{figure}"))?;
            return Some(name.replace("flows,", "flows to a common ideal,"));
        }
        "fct" => "FCT",
        "slowdown" => "Slowdown",
        "slowdown_common" => "Slowdown to a common ideal",
        _ => return None,
    };
    let is_class = CLASSES.iter().any(|(name, _)| *name == class);
    let (_, head) = QUANTILES[2..].iter().find(|(name, _)| *name == figure)?;
    let figure = head.to_lowercase();
    (is_class && parts.next().is_none()).then(|| match class {
        "all" => format!("{quantity}, {figure}"),
        _ => format!("{quantity} of {class} flows, {figure}"),
    })
}

/// The value at `key` as people read it; a dash where there is none.
pub(crate) fn shown(summary: &Value, key: &str) -> String {
    cell(summary, key).map_or_else(|| Unit::Count.show(&Value::Null), |cell| cell.text)
}

/// What the fabric added: its own table of the summary.
pub(crate) fn details(summary: &Value) -> Value {
    let fabric = get(summary, "fabric").and_then(Value::as_str).unwrap_or_default();
    get(summary, &fabric.replace('-', "_")).cloned().unwrap_or_default()
}

/// One row of a two-column table: label and value.
fn row(key: &str, label: String, value: &Value) -> Vec<Cell> {
    vec![Cell::text(label), Cell::new(value.clone(), Unit::of_key(key))]
}

/// A table of labels and values.
fn label_table() -> ResultsTable {
    ResultsTable::new(vec![Column::new("what", "Figure"), Column::new("value", "Value")])
}

/// The scalars of an object, nested ones with the path in their label, each with its key path.
fn scalars(value: &Value, path: &str, label: &str, visit: &mut impl FnMut(&str, String, &Value)) {
    let Value::Object(members) = value else {
        visit(path, label.to_string(), value);
        return;
    };
    for (key, member) in members {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let name = label_of_key(key);
        let label =
            if label.is_empty() { name } else { format!("{label}: {}", name.to_lowercase()) };
        scalars(member, &path, &label, visit);
    }
}

/// The figures of `details` whose key `wanted` accepts, as a table.
pub(crate) fn details_table(details: &Value, wanted: impl Fn(&str) -> bool) -> ResultsTable {
    let mut table = label_table();
    scalars(details, "", "", &mut |path, label, value| {
        if !path.is_empty() && wanted(path) {
            // Of a nested key only the last member tells the unit: `fct` and the like are names of
            // the contract, not of what a fabric adds.
            let last = path.rsplit('.').next().unwrap_or(path);
            table.push(row(last, label, value));
        }
    });
    table
}

/// Completion times and slowdowns: one row a class of flows.
#[must_use]
pub fn distributions(summary: &Value) -> ResultsTable {
    let mut columns = vec![Column::new("quantity", "Quantity"), Column::new("flows", "Of flows")];
    columns.extend(QUANTILES.iter().map(|&(key, title)| Column::new(key, title)));
    let mut table = ResultsTable::new(columns);
    let families = [
        ("fct", "Completion time"),
        ("slowdown", "Slowdown"),
        ("slowdown_common", "Slowdown to a common ideal"),
    ];
    for (family, label) in families {
        for (class, what) in CLASSES {
            let count = number(summary, &format!("{family}.{class}.count")).unwrap_or(0.0);
            if count == 0.0 {
                continue;
            }
            let mut cells = vec![Cell::text(label), Cell::text(*what)];
            cells.extend(QUANTILES.iter().map(|(quantile, _)| {
                let key = format!("{family}.{class}.{quantile}");
                let none = || Cell::new(Value::Null, Unit::of_key(&key));
                cell(summary, &key).unwrap_or_else(none)
            }));
            table.push(cells);
        }
    }
    table
}

/// The figures of one summary that people look for first.
#[must_use]
pub fn figures(summary: &Value) -> ResultsTable {
    let mut table = label_table();
    let present =
        |figure: &&Figure| !figure.key.starts_with("fct") && !figure.key.starts_with("slow");
    for figure in FIGURES.iter().filter(present) {
        if let Some(cell) = toned(summary, figure.key) {
            table.push(vec![Cell::text(figure.label), cell]);
        }
    }
    table
}

/// What is told of a job and the head of its column.
const OF_JOB: &[(&str, &str)] = &[
    ("nodes", "Nodes"),
    ("start_seconds", "Start"),
    ("seconds", "Time"),
    ("alone_seconds", "Time alone"),
    ("alone_ratio", "Times as long"),
    ("bytes", "Data sent"),
    ("energy_joules", "Energy of the network"),
];

/// What bounds the time of the jobs of some summaries, as keys of a job; in the order of the first that has them.
pub(crate) fn bounds_of_jobs<'a>(summaries: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let jobs = summaries.filter_map(|summary| get(summary, "job").and_then(Value::as_object));
    let tables =
        jobs.flat_map(|jobs| jobs.values()).filter_map(|job| job["bounded_by"].as_object());
    for key in tables.flat_map(|table| table.keys()) {
        let key = format!("bounded_by.{key}");
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// What people call a part of the time of a job: its key is `bounded_by.all_reduce_seconds`.
pub(crate) fn name_of_bound(key: &str) -> String {
    let name = key.trim_start_matches("bounded_by.").trim_end_matches("_seconds");
    match name {
        "compute" => "computing".into(),
        "transfer" => "messages".into(),
        name => name.replace('_', "-"),
    }
}

/// The names of the jobs of a run.
pub(crate) fn names_of_jobs(summary: &Value) -> impl Iterator<Item = &str> {
    let jobs = get(summary, "job").and_then(Value::as_object);
    jobs.into_iter().flat_map(|jobs| jobs.keys().map(String::as_str))
}

/// The jobs of a run, a row each; columns of which nothing is known are left out.
#[must_use]
pub fn jobs(summary: &Value) -> ResultsTable {
    let names: Vec<&str> = names_of_jobs(summary).collect();
    let found = |key: &str| names.iter().any(|name| cell(summary, &of_job(name, key)).is_some());
    let told = OF_JOB.iter().map(|&(key, title)| (key.to_string(), title.to_string()));
    let bounds = bounds_of_jobs(std::iter::once(summary));
    let bounds = bounds.into_iter().map(|key| {
        let title = capitalised(&name_of_bound(&key));
        (key, title)
    });
    let known: Vec<_> = told.chain(bounds).filter(|(key, _)| found(key)).collect();
    let mut columns = vec![Column::new("job", "Job")];
    columns.extend(known.iter().map(|(key, title)| Column::new(key, title)));
    let mut table = ResultsTable::new(columns);
    for name in names {
        let mut cells = vec![Cell::text(name)];
        cells.extend(known.iter().map(|(key, _)| {
            let none = || Cell::new(Value::Null, Unit::of_key(key));
            cell(summary, &of_job(name, key)).unwrap_or_else(none)
        }));
        table.push(cells);
    }
    table
}

pub(crate) fn of_job(name: &str, key: &str) -> String {
    format!("job.{name}.{key}")
}

/// Several runs side by side: a row a figure, a column a run.
#[must_use]
pub fn comparison(runs: &[(&str, &Value)]) -> ResultsTable {
    let mut columns = vec![Column::new("what", "Figure")];
    columns.extend(runs.iter().map(|(label, _)| Column::new(*label, *label)));
    let mut table = ResultsTable::new(columns);
    for figure in FIGURES {
        let found: Vec<_> = runs.iter().map(|(_, summary)| toned(summary, figure.key)).collect();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let none = || Cell::new(Value::Null, Unit::of_key(figure.key));
        let mut cells = vec![Cell::text(figure.label)];
        cells.extend(found.into_iter().map(|cell| cell.unwrap_or_else(none)));
        table.push(cells);
    }
    // The jobs of all runs are the same.
    let bounds = bounds_of_jobs(runs.iter().map(|(_, summary)| *summary));
    for name in runs.first().into_iter().flat_map(|(_, summary)| names_of_jobs(summary)) {
        let told = [
            ("seconds", "time"),
            ("alone_ratio", "times as long as alone"),
            ("energy_joules", "energy of the network"),
        ];
        let told = told.map(|(key, what)| (key.to_string(), what.to_string()));
        let bounds =
            bounds.iter().map(|key| (key.clone(), format!("time in {}", name_of_bound(key))));
        for (key, what) in told.into_iter().chain(bounds) {
            let key = of_job(name, &key);
            let found: Vec<_> = runs.iter().map(|(_, summary)| toned(summary, &key)).collect();
            if found.iter().any(Option::is_some) {
                let none = || Cell::new(Value::Null, Unit::of_key(&key));
                let mut cells = vec![Cell::text(format!("Job {name}, {what}"))];
                cells.extend(found.into_iter().map(|cell| cell.unwrap_or_else(none)));
                table.push(cells);
            }
        }
    }
    table
}

/// The cell at `key`, set off where it makes the other figures mean something else than they seem to.
fn toned(summary: &Value, key: &str) -> Option<Cell> {
    let cell = cell(summary, key)?;
    let alarming = is_alarming(key, &cell.value);
    Some(if alarming { cell.toned(Tone::Bad) } else { cell })
}

/// How far the realised load may be from the nominal one without a word (our choice).
const LOAD_APART: f64 = 0.1;

/// What to know of a run before its figures are used, a sentence or two each.
#[must_use]
pub fn warnings(summary: &Value) -> Vec<String> {
    let is = |key: &str, value: bool| get(summary, key) == Some(&Value::Bool(value));
    let mut warnings = Vec::new();
    if is("interrupted", true) {
        warnings.push("This run was interrupted; the figures are those up to then.".into());
    }
    let unfinished = number(summary, "flows.unfinished").unwrap_or(0.0);
    if unfinished > 0.0 {
        let why = match get(summary, "stopped").and_then(Value::as_str) {
            Some("time") => format!(
                " when the run came to its limit of {}; a later run.time gives them time",
                shown(summary, "limit_seconds")
            ),
            Some("no progress") => ": nothing was delivered any more when the run ended".into(),
            _ => String::new(),
        };
        warnings.push(format!(
            "{} of {} measured flows were unfinished{why}. Figures that they could change are given as \
             bounds (≥ and ≤).",
            shown(summary, "flows.unfinished"),
            shown(summary, "flows.measured")
        ));
    }
    if is("saturated", true) {
        let faults = get(summary, "faults").and_then(Value::as_array);
        let why = match faults.is_some_and(|faults| !faults.is_empty()) {
            true => " Flows to and from what had failed count as offered, too.",
            false => "",
        };
        warnings.push(format!(
            "This run was saturated: more was offered than the network carried. Completion times grow \
             with the length of such a run and say little by themselves.{why}"
        ));
    }
    if is("warm_up.settled", false) {
        warnings.push(
            "Slowdowns had not settled when the measured flows ended (MSER-5): a longer warm-up \
             (run.warm_up) or more flows may give other figures."
                .into(),
        );
    }
    let loads = (number(summary, "load.nominal"), number(summary, "load.realised"));
    if let (Some(nominal), Some(realised)) = loads
        && (realised / nominal - 1.0).abs() > LOAD_APART
    {
        warnings.push(format!(
            "The flows came to a load of {}, not to the nominal {}: few runs of this length meet the \
             largest sizes.",
            shown(summary, "load.realised"),
            shown(summary, "load.nominal")
        ));
    }
    warnings.extend(left_out(summary));
    let late = number(summary, "faults_after_end").unwrap_or(0.0);
    if late > 0.0 {
        let lie = if late == 1.0 { "lies" } else { "lie" };
        warnings.push(format!(
            "{} of the scenario's faults {lie} after the end of the run and never happened.",
            shown(summary, "faults_after_end")
        ));
    }
    warnings
}

/// What to know of runs before they are compared: they have the same flows, but not the same means.
#[must_use]
pub fn differences(runs: &[(&str, &Value)]) -> Vec<String> {
    let mut notes = Vec::new();
    let differ = |key: &str| {
        let mut values = runs.iter().map(|(_, summary)| get(summary, key));
        let first = values.next();
        first.is_some_and(|first| values.any(|value| value != first))
    };
    let each = |key: &str| {
        let parts = runs.iter().map(|(label, summary)| format!("{label} {}", shown(summary, key)));
        parts.collect::<Vec<_>>().join(", ")
    };
    if differ("node_rate") {
        let rates = each("node_rate");
        notes.push(format!("The nodes do not have the same bandwidth: {rates}."));
    }
    // Runs that were cut short have other loads for another reason.
    let load_of_whole = |(_, summary): &(&str, &Value)| {
        let is_cut = get(summary, "interrupted") == Some(&Value::Bool(true))
            || get(summary, "stopped").is_some_and(|why| !why.is_null());
        number(summary, "load.realised").filter(|_| !is_cut)?;
        Some(shown(summary, "load.realised"))
    };
    let loads: Option<Vec<String>> = runs.iter().map(load_of_whole).collect();
    if loads.is_some_and(|loads| loads.windows(2).any(|pair| pair[0] != pair[1])) {
        notes.push(
            "Realised loads differ though the measured flows are the same: others go on arriving until \
             all of these have ended, and count."
                .into(),
        );
    }
    if differ("handshake") {
        let with: Vec<_> = runs
            .iter()
            .filter(|(_, summary)| get(summary, "handshake") == Some(&Value::Bool(true)))
            .map(|(label, _)| *label)
            .collect();
        notes.push(format!(
            "Flows wait for a round trip before their first byte under {} and not under the others.",
            with.join(", ")
        ));
    }
    if runs.len() > 1 {
        notes.push(
            "Slowdown is relative to what each network takes for the same flow when it is idle; the \
             common ideal is the same for all: 1 µs and the flow's bytes at the rate of load 100%."
                .into(),
        );
    }
    notes
}

/// What of a capture has become no flow.
fn left_out(summary: &Value) -> Option<String> {
    let of = |key: &str| number(summary, &format!("capture.{key}")).unwrap_or(0.0);
    let parts = [
        ("not_ip", "not of IP"),
        ("not_tcp_udp", "neither of TCP nor of UDP"),
        ("fragments", "fragments"),
        ("short", "with headers cut off or damaged"),
        ("other_hosts", "of hosts that are not listed"),
    ];
    let told: Vec<String> = parts
        .iter()
        .filter(|(key, _)| of(key) > 0.0)
        .map(|(key, what)| format!("{} {what}", Unit::Count.format(of(key))))
        .collect();
    let is_cut = get(summary, "capture.cut_off") == Some(&Value::Bool(true));
    if told.is_empty() && !is_cut {
        return None;
    }
    let packets = Unit::Count.format(of("packets"));
    let left = match told.is_empty() {
        true => String::new(),
        false => format!(
            "Of the {packets} packets of the capture these belong to no flow: {}. ",
            told.join(", ")
        ),
    };
    let cut = if is_cut { "The capture ends within a packet." } else { "" };
    Some(format!("{left}{cut}").trim_end().to_string())
}

/// What makes the other figures mean something else than they seem to.
fn is_alarming(key: &str, value: &Value) -> bool {
    match key {
        "saturated" | "interrupted" => value == &Value::Bool(true),
        "flows.failed" | "flows.measured_failed" | "flows.unfinished" | "bytes.lost" => {
            value.as_f64().is_some_and(|count| count > 0.0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn summary() -> Value {
        json!({
            "fabric": "shoal",
            "nodes": 512,
            "load": { "nominal": 0.5, "realised": 0.4973 },
            "saturated": true,
            "fct": { "short": { "count": 7, "p50": 2e-6, "p99": 3.1e-5 }, "long": { "count": 0 } },
            "queue": { "max_cells": 9 },
            "shoal": { "epoch_seconds": 2.1e-6, "power": { "total_watts": 1200.0 }, "sync": "DTP" },
        })
    }

    #[test]
    fn a_saturated_run_with_faults_says_what_counts_as_offered() {
        let warned = |summary: Value| warnings(&summary).concat();
        let broken = json!({ "saturated": true, "faults": [{ "component": "leaf 1" }] });
        assert!(warned(broken).contains("what had failed count as offered"));
        for whole in [json!({ "saturated": true }), json!({ "saturated": true, "faults": [] })] {
            let said = warned(whole);
            assert!(said.contains("saturated") && !said.contains("failed"), "{said}");
        }
        assert!(
            warned(json!({ "faults_after_end": 1 })).starts_with("1 of the scenario's faults lies")
        );
        assert!(
            warned(json!({ "faults_after_end": 2 })).starts_with("2 of the scenario's faults lie ")
        );
    }

    #[test]
    fn every_figure_of_a_distribution_is_called_something() {
        for (key, expected) in [
            ("fct.all.p50", "FCT, median"),
            ("fct.short.p50", "FCT of short flows, median"),
            ("fct.medium.p999", "FCT of medium flows, 99.9%"),
            ("slowdown.long.max", "Slowdown of long flows, largest"),
            ("slowdown_common.all.mean", "Slowdown to a common ideal, mean"),
            ("slowdown_common.short.p99", "Slowdown of short flows to a common ideal, 99%"),
            // What is no figure of a distribution keeps its key.
            ("fct.all.count", "fct.all.count"),
            ("fct.huge.p50", "fct.huge.p50"),
            ("fct.all.p50.low", "fct.all.p50.low"),
            ("shoal.cells", "shoal.cells"),
        ] {
            assert_eq!(label(key), expected);
        }
    }

    #[test]
    fn details_are_flattened_with_their_units() {
        let table = details_table(&details(&summary()), |_| true);
        let text: Vec<_> = table.rows.iter().map(|row| (&*row[0].text, &*row[1].text)).collect();
        let expected = [("Epoch", "2.10 µs"), ("Power: total", "1.20 kW"), ("Sync", "DTP")];
        assert_eq!(text, expected);
        let power = details_table(&details(&summary()), |key| key.contains("watts"));
        assert_eq!(power.rows.len(), 1);
    }

    #[test]
    fn empty_classes_have_no_row() {
        let table = distributions(&summary());
        assert_eq!(table.rows.len(), 1);
        assert_eq!(
            shown(&json!({ "fct": { "long": { "count": 0, "p99": null } } }), "fct.long.p99"),
            "–"
        );
        assert_eq!(table.rows[0][5].text, "2 µs");
        assert_eq!(table.rows[0][9].text, "–");
    }

    #[test]
    fn runs_stand_side_by_side_and_alarms_are_set_off() {
        let (a, b) = (summary(), json!({ "nodes": 8, "saturated": false }));
        let table = comparison(&[("A", &a), ("B", &b)]);
        let row = |what: &str| table.rows.iter().find(|row| row[0].text == what).unwrap();
        assert_eq!(row("Nodes")[2].text, "8");
        assert_eq!(row("Longest queue, cells or packets")[2].text, "–");
        assert_eq!((row("Saturated")[1].tone, row("Saturated")[2].tone), (Tone::Bad, Tone::Plain));
        assert!(table.rows.iter().all(|row| row[0].text != "Drops"));
    }

    #[test]
    fn loads_that_differ_are_explained() {
        let told = |ours: f64, theirs: f64| {
            let [a, b] = [ours, theirs].map(|load| json!({ "load": { "realised": load } }));
            let notes = differences(&[("A", &a), ("B", &b)]);
            notes.iter().any(|note| note.starts_with("Realised loads differ"))
        };
        assert!(told(0.209, 0.228));
        // What is printed is what is explained.
        assert!(!told(0.209_000_1, 0.209_000_2));
        let cut = json!({ "load": { "realised": 0.1 }, "stopped": "time" });
        let whole = json!({ "load": { "realised": 0.2 } });
        assert!(
            differences(&[("A", &cut), ("B", &whole)]).iter().all(|note| !note.contains("loads"))
        );
    }

    #[test]
    fn jobs_are_told_in_a_table_of_their_own_and_in_rows_of_a_comparison() {
        let job = json!({ "nodes": 4, "seconds": 2e-3, "flows": 24, "bytes": 6_000_000 });
        let open = json!({ "nodes": 2, "seconds": null, "at_least": { "seconds": 5e-3 } });
        let summary = json!({ "job": { "a": job, "b": open } });
        let table = jobs(&summary);
        let heads: Vec<_> = table.columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(heads, ["Job", "Nodes", "Time", "Data sent"]);
        let rows: Vec<Vec<&str>> = table
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text.as_str()).collect())
            .collect();
        assert_eq!(rows, [["a", "4", "2 ms", "6 MB"], ["b", "2", "≥ 5 ms", "–"]]);
        let compared = comparison(&[("one", &summary), ("two", &summary)]);
        let labels: Vec<_> = compared.rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!(labels, ["Job a, time", "Job b, time"]);
    }

    #[test]
    fn what_a_capture_leaves_out_is_a_warning() {
        let capture = json!({ "packets": 70, "not_ip": 3, "short": 1, "cut_off": true });
        let expected = "Of the 70 packets of the capture these belong to no flow: 3 not of IP, 1 with \
                        headers cut off or damaged. The capture ends within a packet.";
        assert_eq!(warnings(&json!({ "capture": capture })), [expected]);
        assert!(warnings(&json!({ "capture": { "packets": 70, "not_ip": 0 } })).is_empty());
    }

    #[test]
    fn a_summary_without_details_is_no_trouble() {
        assert_eq!(details(&json!({})), Value::Null);
        assert!(details_table(&Value::Null, |_| true).rows.is_empty());
        assert!(figures(&json!({})).rows.is_empty());
        assert!(jobs(&json!({})).rows.is_empty());
    }
}
