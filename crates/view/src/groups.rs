//! What the page shows of runs that belong together: a comparison, a sweep, a search, as rows that lead to the runs.

use std::path::Path;

use report::summary::{cell, label};
use report::units::label_of_key;
use report::{Cell, Unit, read_table};
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::run::cell_json;

/// The figures of runs that are compared, by their place in the summary.
const FIGURES: [&str; 9] = [
    "load.realised",
    "fct.short.p50",
    "fct.short.p99",
    "fct.long.mean",
    "slowdown.all.p50",
    "slowdown.all.p99",
    "goodput.long.mean",
    "throughput.mean_node",
    "queue.max_bytes",
];

/// What a search leaves beside its trials.
const SEARCH: &str = "search.json";

/// The aims of the search in `directory`, if there is one: the figures that were to be small or large.
fn aims_of(directory: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join(SEARCH)).unwrap_or_default();
    let search: Value = serde_json::from_str(&text).unwrap_or_default();
    let aims = search["aims"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // Each is a word and a key.
    aims.filter_map(|aim| Some(aim.split_once(' ')?.1.to_string())).collect()
}

/// Settings come in columns so named in the tables of sweeps and searches.
const SETTING: &str = "set.";

/// The runs of the group in `directory`, a row each: settings, then figures, and where its own results lie below the
/// group. Of what has no table yet nothing.
///
/// # Errors
/// When its table cannot be read.
pub fn group(directory: &Path) -> Result<Value, Refusal> {
    for table in ["trials.parquet", "sweep.parquet"] {
        let path = directory.join(table);
        if path.is_file() {
            return of_table(&path, &aims_of(directory));
        }
    }
    Ok(of_folders(directory))
}

/// Of a table of points, or of the trials of a search with these aims.
fn of_table(path: &Path, aims: &[String]) -> Result<Value, Refusal> {
    let others = FIGURES.iter().filter(|key| !aims.iter().any(|aim| aim == *key));
    let figures: Vec<&str> = aims.iter().map(String::as_str).chain(others.copied()).collect();
    let fixed = ["trial", "is_best", "status", "label", "seed", "scenario_hash"];
    let wanted =
        |name: &str| name.starts_with(SETTING) || fixed.contains(&name) || figures.contains(&name);
    let columns = read_table(path, &wanted)?;
    let rows = columns.first().map_or(0, |(_, values)| values.len());
    let value = |name: &str, row: usize| {
        columns.iter().find(|(known, _)| known == name).map(|(_, values)| values[row].clone())
    };
    // Where the fabric is one of the settings a label says it again.
    let has_fabric = columns
        .iter()
        .any(|(name, _)| name.strip_prefix(SETTING).is_some_and(|key| key == "fabric"));
    let is_setting = |name: &str| match name {
        "label" => !has_fabric,
        name => name.starts_with(SETTING) || ["trial", "seed", "status", "is_best"].contains(&name),
    };
    let settings: Vec<&str> =
        columns.iter().map(|(name, _)| name.as_str()).filter(|name| is_setting(name)).collect();
    let row = |row: usize| {
        let hash = value("scenario_hash", row).and_then(|hash| hash.as_str().map(str::to_string));
        let settings = settings.iter().map(|name| {
            let found = value(name, row).unwrap_or_default();
            let text = found.as_str().map_or_else(
                || if found.is_null() { String::new() } else { found.to_string() },
                str::to_string,
            );
            cell_json(&Cell { value: found, ..Cell::text(text) })
        });
        let figures = figures.iter().map(|key| {
            cell_json(&Cell::new(value(key, row).unwrap_or_default(), Unit::of_key(key)))
        });
        // Settings of a trial of several seeds have several runs: their table names none of them.
        let folder = hash.filter(|hash| path.with_file_name("points").join(hash).is_dir());
        json!({
            "path": folder.map(|hash| format!("points/{hash}")),
            "cells": settings.chain(figures).collect::<Value>(),
        })
    };
    let heads = settings.iter().map(|name| name.strip_prefix(SETTING).unwrap_or(name));
    let rows = (0..rows).map(row).collect();
    let mut told = described(&heads.collect::<Vec<_>>(), &figures, rows);
    told["aims"] = json!(aims);
    Ok(told)
}

/// Of the folders of a comparison.
fn of_folders(directory: &Path) -> Value {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let rows = names.iter().filter_map(|name| {
        let text = std::fs::read_to_string(directory.join(name).join("summary.json")).ok()?;
        let summary: Value = serde_json::from_str(&text).ok()?;
        let called = summary["label"].as_str().unwrap_or(name);
        let figures = FIGURES.iter().map(|key| {
            let found = cell(&summary, key);
            cell_json(&found.unwrap_or_else(|| Cell::new(Value::Null, Unit::of_key(key))))
        });
        let cells = [cell_json(&Cell::text(called))].into_iter().chain(figures);
        Some(json!({ "path": name, "cells": cells.collect::<Value>() }))
    });
    described(&["label"], &FIGURES, rows.collect())
}

/// Rows with the heads of their columns.
fn described(settings: &[&str], figures: &[&str], rows: Vec<Value>) -> Value {
    let head = |name: &str| match name {
        "label" => "Fabric".to_string(),
        "is_best" => "Best".to_string(),
        name if name.contains('.') => name.to_string(),
        name => label_of_key(name),
    };
    let settings =
        settings.iter().map(|name| json!({ "key": name, "title": head(name), "kind": "setting" }));
    let figures = figures.iter().map(|key| {
        let axis = report::page::Axis::linear(label(key), Unit::of_key(key));
        json!({ "key": key, "title": label(key), "kind": "figure", "axis": axis.to_json() })
    });
    json!({
        "columns": settings.chain(figures).collect::<Value>(),
        "rows": rows,
        "axes": crate::run::axes(),
    })
}
