//! What a sweep leaves beside its points: tables of the points and of their means, a page, figures.

use std::collections::HashMap;

use report::page::{Block, CHART_LIBRARY, Library, Page, Plot};
use report::{
    Cell, Column, FileError, Provenance, ResultsTable, TableColumn, Unit, write_atomically,
    write_table,
};
use serde_json::{Map, Value};

use super::drawn;
use super::queue::LIBRARY;
use super::{Axis, Mean, Swept};

/// The figures of the table, by their path in the summary. The whole summary is in `sweep.csv`.
pub(super) const FIGURES: [(&str, &str); 8] = [
    ("load.realised", "Realised load"),
    ("flows.unfinished", "Measured flows unfinished"),
    ("fct.short.p50", "Short FCT, median"),
    ("fct.short.p99", "Short FCT, p99"),
    ("slowdown.all.p99", "Slowdown, p99"),
    ("goodput.long.mean", "Long goodput, mean"),
    ("throughput.mean_node", "Throughput a node"),
    ("queue.max_bytes", "Longest queue"),
];

/// A sweep as a table: the settings, what became of each, its main figures; of several seeds their means,
/// with intervals.
#[must_use]
pub fn table(swept: &Swept) -> ResultsTable {
    let means = swept.means();
    let axes = swept.axes_of_means();
    let axes = axes.iter().map(|axis| Column::new(&axis.key, &axis.key));
    let fixed = [("fabric", "Fabric"), ("seeds", "Seeds"), ("status", "Status")];
    let fixed = fixed.map(|(key, title)| Column::new(key, title));
    let figures = FIGURES.map(|(key, title)| Column::new(key, title));
    let saturated = Column::new("saturated", "Saturated");
    let mut table =
        ResultsTable::new(axes.chain(fixed).chain(figures).chain([saturated]).collect());
    for mean in &means {
        let summary = mean.summary.as_ref();
        let mut row: Vec<Cell> = mean.settings.iter().map(Cell::text).collect();
        row.push(Cell::text(&mean.label));
        row.push(Cell::new(mean.seeds.len(), Unit::Count));
        row.push(Cell::text(mean.status()));
        let none = |key: &str| Cell::new(Value::Null, Unit::of_key(key));
        row.extend(FIGURES.map(|(key, _)| {
            summary.and_then(|summary| report::cell(summary, key)).unwrap_or_else(|| none(key))
        }));
        row.push(match summary.and_then(|summary| summary.get("saturated")) {
            Some(Value::Bool(true)) => Cell::text("yes"),
            Some(Value::Bool(false)) => Cell::text("no"),
            _ => Cell::text(""),
        });
        table.push(row);
    }
    table
}

/// The folder of figures in a sweep's directory.
pub const FIGURES_FOLDER: &str = "figures";

/// Writes the tables, the page and `drawn`, the figures that are asked for.
///
/// # Errors
/// When they cannot be written.
pub(super) fn write(swept: &Swept, drawn: &[(String, Vec<Plot>)]) -> Result<(), FileError> {
    let at = |name: &str| swept.directory.join(name);
    let means = swept.means();
    let origin = Provenance {
        version: crate::VERSION.into(),
        scenario_hash: String::new(),
        seed: 0,
        scenario: String::new(),
    };
    for (name, columns) in [("sweep", of_points(swept)), ("means", of_means(swept, &means))] {
        write_atomically(&at(&format!("{name}.csv")), &csv(&columns))?;
        write_table(&at(&format!("{name}.parquet")), &columns, &origin)?;
    }
    write_atomically(&at(LIBRARY), CHART_LIBRARY.as_bytes())?;
    let html = page(swept, &means, drawn).to_html_with(Library::Beside(LIBRARY));
    write_atomically(&at("report.html"), html.as_bytes())?;
    drawn::write(&at(FIGURES_FOLDER), drawn).map(drop)
}

/// The means of a sweep as text: a row for each setting and fabric, its settings, then each figure with its
/// interval.
#[must_use]
pub fn csv_text(swept: &Swept) -> Vec<u8> {
    csv(&of_means(swept, &swept.means()))
}

/// Text as a cell that no spreadsheet takes for a formula, which it would compute on opening the file:
/// behind an apostrophe where it begins as one might. Numbers stay numbers, signs and all.
fn harmless(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula && text.parse::<f64>().is_err() { format!("'{text}") } else { text.into() }
}

/// One row a point: its settings, then everything its summary says but the engine's speed, so that
/// the same sweep gives the same bytes.
fn of_points(swept: &Swept) -> Vec<TableColumn> {
    let rows: Vec<Row> = swept
        .points
        .iter()
        .map(|point| {
            let flat = point.outcome.summary().map(flat).unwrap_or_default();
            (point.settings.clone(), point.outcome.as_str(), flat)
        })
        .collect();
    columns(&swept.axes.iter().collect::<Vec<_>>(), &rows)
}

/// One row a mean, as [`of_points`]: `KEY.low` and `KEY.high` are the ends of the interval of `KEY`.
fn of_means(swept: &Swept, means: &[Mean]) -> Vec<TableColumn> {
    let row = |mean: &Mean| {
        let mut row = Map::new();
        let summary = mean.summary.as_ref();
        let whole = summary.map(flat).unwrap_or_default();
        let seeds = Value::from(mean.seeds.len());
        row.insert("seeds_run".into(), seeds);
        for (key, value) in whole {
            if key.starts_with("intervals.") || key.starts_with("seeds.") {
                continue;
            }
            let ends = summary.and_then(|summary| report::summary::interval(summary, &key));
            row.insert(key.clone(), value);
            if let Some((low, high)) = ends {
                row.insert(format!("{key}.low"), low.into());
                row.insert(format!("{key}.high"), high.into());
            }
        }
        (mean.settings.clone(), mean.status(), row)
    };
    let rows: Vec<Row> = means.iter().map(row).collect();
    columns(&swept.axes_of_means(), &rows)
}

/// Settings, status, figures by their keys.
type Row = (Vec<String>, &'static str, Map<String, Value>);

/// Rows as columns, in the order in which keys first come.
pub fn columns(axes: &[&Axis], rows: &[Row]) -> Vec<TableColumn> {
    let setting = |text: &String| serde_json::from_str(text).ok().filter(Value::is_number);
    let mut columns: Vec<(String, Vec<Value>)> = axes
        .iter()
        .enumerate()
        .map(|(index, axis)| {
            let texts = || rows.iter().map(|row| &row.0[index]);
            // Numbers if all of them are: a column has one kind.
            let values: Option<Vec<Value>> = texts().map(setting).collect();
            let values =
                values.unwrap_or_else(|| texts().map(|text| text.as_str().into()).collect());
            (format!("set.{}", axis.key), values)
        })
        .collect();
    columns.push(("status".into(), rows.iter().map(|row| row.1.into()).collect()));
    let mut known = HashMap::new();
    for (place, (_, _, row)) in rows.iter().enumerate() {
        for (key, value) in row {
            let column = *known.entry(key.clone()).or_insert_with(|| {
                columns.push((key.clone(), vec![Value::Null; rows.len()]));
                columns.len() - 1
            });
            columns[column].1[place] = value.clone();
        }
    }
    columns.into_iter().map(|(key, values)| TableColumn::of_key(key, values)).collect()
}

/// A summary without the engine's speed, nested keys as paths.
pub fn flat(summary: &Value) -> Map<String, Value> {
    let mut flat = Map::new();
    if let Value::Object(summary) = summary {
        let kept = summary.iter().filter(|(key, _)| *key != "engine");
        kept.for_each(|(key, value)| flatten(key, value, &mut flat));
    }
    flat
}

/// Columns as text.
pub fn csv(columns: &[TableColumn]) -> Vec<u8> {
    let memory = "writing to memory does not fail";
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(columns.iter().map(|column| harmless(&column.name))).expect(memory);
    let rows = columns.first().map_or(0, |column| column.values.len());
    for row in 0..rows {
        let cells = columns.iter().map(|column| match &column.values[row] {
            Value::Null => String::new(),
            Value::String(text) => harmless(text),
            value => value.to_string(),
        });
        writer.write_record(cells).expect(memory);
    }
    writer.into_inner().expect(memory)
}

/// Turns nested keys into paths.
fn flatten(path: &str, value: &Value, into: &mut Map<String, Value>) {
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| flatten(&format!("{path}.{key}"), value, into));
        }
        Value::Array(values) => {
            let items = values.iter().enumerate();
            items.for_each(|(index, value)| flatten(&format!("{path}.{index}"), value, into));
        }
        value => {
            into.insert(path.into(), value.clone());
        }
    }
}

fn page(swept: &Swept, means: &[Mean], asked: &[(String, Vec<Plot>)]) -> Page {
    let done = swept.points.iter().filter(|point| point.outcome.summary().is_some()).count();
    let lead = format!("{done} of {} points have run.", swept.points.len());
    let mut page = Page { title: format!("{}: sweep", swept.name), lead, sections: Vec::new() };
    // All of them side by side are a figure for paper, not for the page.
    let single = asked.iter().filter(|(_, plots)| plots.len() == 1);
    let figures: Vec<Plot> = single.flat_map(|(_, plots)| plots.clone()).collect();
    page.push("Figures asked for", vec![Block::Plots(figures)]);
    page.push("Points", vec![Block::table(table(swept))]);
    page.push("Figures over the grid", vec![Block::Plots(drawn::usual(swept, means))]);
    let failed = means.iter().filter_map(|mean| {
        let settings = mean.settings.iter().chain([&mean.label]);
        let settings = settings.filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>();
        Some((settings.join(", "), mean.failed.clone()?))
    });
    page.push("Points that failed", vec![Block::Terms(failed.collect())]);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_spreadsheet_would_compute_is_text_and_numbers_are_numbers() {
        for text in
            ["=1+1", "=cmd|' /C calc'!A0", "+SUM(A1)", "-2+3", "@a", "\t=1", "\r=1", "-", "+"]
        {
            assert_eq!(harmless(text), format!("'{text}"));
        }
        for text in ["-1", "+0.5", "-1e-9", "0.2", "5 us", "a=1", "", "'", "poisson"] {
            assert_eq!(harmless(text), text);
        }
    }
}
