//! Reading a summary: which of its figures people look for, under which name.
//!
//! The summary's keys are a contract; what a fabric adds stands under the fabric's own name and is
//! shown by its keys.

use serde_json::Value;

use crate::units::label_of_key;
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
    Figure { key: "load.rate", label: "Node rate that load refers to" },
    Figure { key: "saturated", label: "Saturated" },
    Figure { key: "interrupted", label: "Interrupted" },
    Figure { key: "warm_up_flows", label: "Flows of the warm-up, not measured" },
    Figure { key: "simulated_seconds", label: "Simulated time" },
    Figure { key: "flows.offered", label: "Flows offered" },
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
    ("mean", "Mean"),
    ("p50", "Median"),
    ("p95", "95%"),
    ("p99", "99%"),
    ("p999", "99.9%"),
    ("max", "Largest"),
];

/// The value at `key`, members joined by dots. `None` also for a figure of no flows: the zero that
/// stands there was not measured.
pub(crate) fn get<'a>(summary: &'a Value, key: &str) -> Option<&'a Value> {
    let at = |key: &str| key.split('.').try_fold(summary, |value, member| value.get(member));
    let mut members = key.split('.');
    if let (Some("fct" | "slowdown" | "goodput"), Some(class)) = (members.next(), members.next()) {
        let count = at(&format!("fct.{class}.count")).and_then(Value::as_u64);
        if count == Some(0) && !key.ends_with(".count") {
            return None;
        }
    }
    at(key).filter(|value| !value.is_null())
}

/// The number at `key`.
pub(crate) fn number(summary: &Value, key: &str) -> Option<f64> {
    get(summary, key)?.as_f64()
}

/// The value at `key` as people read it; a dash where there is none.
pub(crate) fn shown(summary: &Value, key: &str) -> String {
    Unit::of_key(key).show(get(summary, key).unwrap_or(&Value::Null))
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
    for (family, label) in [("fct", "Completion time"), ("slowdown", "Slowdown")] {
        for (class, what) in CLASSES {
            let count = number(summary, &format!("{family}.{class}.count")).unwrap_or(0.0);
            if count == 0.0 {
                continue;
            }
            let mut cells = vec![Cell::text(label), Cell::text(*what)];
            cells.extend(QUANTILES.iter().map(|(quantile, _)| {
                let key = format!("{family}.{class}.{quantile}");
                let value = get(summary, &key).cloned().unwrap_or_default();
                Cell::new(value, Unit::of_key(&key))
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
        if let Some(value) = get(summary, figure.key) {
            let mut cells = row(figure.key, figure.label.into(), value);
            if is_alarming(figure.key, value) {
                cells[1].tone = Tone::Bad;
            }
            table.push(cells);
        }
    }
    table
}

/// Several runs side by side: a row a figure, a column a run.
#[must_use]
pub fn comparison(runs: &[(&str, &Value)]) -> ResultsTable {
    let mut columns = vec![Column::new("what", "Figure")];
    columns.extend(runs.iter().map(|(label, _)| Column::new(*label, *label)));
    let mut table = ResultsTable::new(columns);
    for figure in FIGURES {
        let values: Vec<_> = runs.iter().map(|(_, summary)| get(summary, figure.key)).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let mut cells = vec![Cell::text(figure.label)];
        for value in values {
            let cell = Cell::new(value.cloned().unwrap_or_default(), Unit::of_key(figure.key));
            let alarming = value.is_some_and(|value| is_alarming(figure.key, value));
            cells.push(if alarming { cell.toned(Tone::Bad) } else { cell });
        }
        table.push(cells);
    }
    table
}

/// What makes the other figures mean something else than they seem to.
fn is_alarming(key: &str, value: &Value) -> bool {
    match key {
        "saturated" | "interrupted" => value == &Value::Bool(true),
        "flows.failed" | "bytes.lost" => value.as_f64().is_some_and(|count| count > 0.0),
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
            shown(&json!({ "fct": { "long": { "count": 0, "p99": 0 } } }), "fct.long.p99"),
            "–"
        );
        assert_eq!(table.rows[0][4].text, "2 µs");
        assert_eq!(table.rows[0][8].text, "–");
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
    fn a_summary_without_details_is_no_trouble() {
        assert_eq!(details(&json!({})), Value::Null);
        assert!(details_table(&Value::Null, |_| true).rows.is_empty());
        assert!(figures(&json!({})).rows.is_empty());
    }
}
