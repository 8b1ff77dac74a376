//! What a sweep leaves beside its points: `sweep.csv` and `report.html`.

use report::page::{Axis as PlotAxis, Block, Page, Plot, PlotSeries, SeriesStyle};
use report::{Cell, Column, FileError, ResultsTable, Unit, write_atomically};
use serde_json::{Map, Value};

use super::{Point, Swept};

/// The figures of the table, by their path in the summary. The whole summary is in `sweep.csv`.
const FIGURES: [(&str, &str); 8] = [
    ("load.realised", "Realised load"),
    ("flows.unfinished", "Measured flows unfinished"),
    ("fct.short.p50", "Short FCT, median"),
    ("fct.short.p99", "Short FCT, p99"),
    ("slowdown.all.p99", "Slowdown, p99"),
    ("goodput.long.mean", "Long goodput, mean"),
    ("throughput.mean_node", "Throughput a node"),
    ("queue.max_bytes", "Longest queue"),
];

/// A sweep as a table: the settings, what became of each point, its main figures.
#[must_use]
pub fn table(swept: &Swept) -> ResultsTable {
    let axes = swept.axes.iter().map(|axis| Column::new(&axis.key, &axis.key));
    let fixed = [("fabric", "Fabric"), ("point", "Point"), ("status", "Status")];
    let fixed = fixed.map(|(key, title)| Column::new(key, title));
    let figures = FIGURES.map(|(key, title)| Column::new(key, title));
    let saturated = Column::new("saturated", "Saturated");
    let mut table =
        ResultsTable::new(axes.chain(fixed).chain(figures).chain([saturated]).collect());
    for point in &swept.points {
        let mut row: Vec<Cell> = point.settings.iter().map(Cell::text).collect();
        row.extend([&point.label, &point.hash].map(Cell::text));
        row.push(Cell::text(point.outcome.as_str()));
        let none = |key: &str| Cell::new(Value::Null, Unit::of_key(key));
        row.extend(FIGURES.map(|(key, _)| {
            let summary = point.outcome.summary();
            summary.and_then(|summary| report::cell(summary, key)).unwrap_or_else(|| none(key))
        }));
        row.push(match figure(point, "saturated") {
            Value::Bool(true) => Cell::text("yes"),
            Value::Bool(false) => Cell::text("no"),
            _ => Cell::text(""),
        });
        table.push(row);
    }
    table
}

/// The value at a path of a point's summary; null if there is none.
fn figure(point: &Point, path: &str) -> Value {
    let parts = path.split('.');
    let found = parts.fold(point.outcome.summary(), |value, part| value.and_then(|v| v.get(part)));
    found.cloned().unwrap_or(Value::Null)
}

/// Writes both files.
pub fn write(swept: &Swept) -> Result<(), FileError> {
    write_atomically(&swept.directory.join("sweep.csv"), &csv(swept))?;
    let html = page(swept).to_html();
    write_atomically(&swept.directory.join("report.html"), html.as_bytes())
}

/// Text as a cell that no spreadsheet takes for a formula, which it would compute on opening the file:
/// behind an apostrophe where it begins as one might. Numbers stay numbers, signs and all.
fn harmless(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula && text.parse::<f64>().is_err() { format!("'{text}") } else { text.into() }
}

/// One line a point: its settings, then everything its summary says but the engine's speed, so that
/// the same sweep gives the same bytes.
fn csv(swept: &Swept) -> Vec<u8> {
    let rows: Vec<Map<String, Value>> = swept
        .points
        .iter()
        .map(|point| {
            let mut flat = Map::new();
            if let Some(Value::Object(summary)) = point.outcome.summary() {
                let kept = summary.iter().filter(|(key, _)| *key != "engine");
                kept.for_each(|(key, value)| flatten(key, value, &mut flat));
            }
            flat
        })
        .collect();
    let mut columns: Vec<&String> = Vec::new();
    for key in rows.iter().flat_map(Map::keys) {
        if !columns.contains(&key) {
            columns.push(key);
        }
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    let heads = swept.axes.iter().map(|axis| format!("set.{}", axis.key));
    let heads = heads.chain(["status".into()]).chain(columns.iter().map(ToString::to_string));
    let memory = "writing to memory does not fail";
    writer.write_record(heads.map(|head| harmless(&head))).expect(memory);
    for (point, row) in swept.points.iter().zip(&rows) {
        let cells = columns.iter().map(|column| match row.get(*column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => harmless(text),
            Some(value) => value.to_string(),
        });
        let settings = point.settings.iter().map(|setting| harmless(setting));
        let all = settings.chain([point.outcome.as_str().into()]).chain(cells);
        writer.write_record(all).expect(memory);
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

fn page(swept: &Swept) -> Page {
    let done = swept.points.iter().filter(|point| point.outcome.summary().is_some()).count();
    let lead = format!("{done} of {} points have run.", swept.points.len());
    let mut page = Page { title: format!("{}: sweep", swept.name), lead, sections: Vec::new() };
    page.push("Points", vec![Block::table(table(swept))]);
    let plots: Vec<Plot> = FIGURES
        .iter()
        .map(|(key, title)| plot(swept, key, title))
        .filter(|p| !p.is_empty())
        .collect();
    if !plots.is_empty() {
        page.push("Figures over the grid", vec![Block::Plots(plots)]);
    }
    let failed: Vec<(String, String)> = swept
        .points
        .iter()
        .filter_map(|point| match &point.outcome {
            super::Outcome::Failed(why) => Some((point.settings.join(", "), why.clone())),
            _ => None,
        })
        .collect();
    if !failed.is_empty() {
        page.push("Points that failed", vec![Block::Terms(failed)]);
    }
    page
}

/// A figure over the first axis; a line for each combination of the other settings.
fn plot(swept: &Swept, key: &str, title: &str) -> Plot {
    let values = swept.axes.first().map_or(&[][..], |axis| &axis.values);
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
    let numeric = numbers.is_some();
    let places = numbers.unwrap_or_else(|| (0..values.len()).map(|index| index as f64).collect());
    let mut lines: Vec<PlotSeries> = Vec::new();
    for point in &swept.points {
        let index = values.iter().position(|value| Some(value) == point.settings.first());
        let Some((index, summary)) = index.zip(point.outcome.summary()) else { continue };
        let Some(y) = report::summary::figure(summary, key).exact() else { continue };
        let others = swept.axes.iter().zip(&point.settings).skip(1);
        let others = others.map(|(axis, value)| format!("{} = {value}", axis.key));
        let name =
            std::iter::once(point.label.clone()).chain(others).collect::<Vec<_>>().join(", ");
        let line = match lines.iter_mut().position(|line| line.name == name) {
            Some(line) => line,
            None => {
                lines.push(PlotSeries::new(name, SeriesStyle::Line, Vec::new()));
                lines.len() - 1
            }
        };
        lines[line].points.push((places[index], y));
        // All points of a sweep have as many seeds, or none has an interval.
        lines[line].intervals.extend(report::summary::interval(summary, key));
    }
    for line in lines.iter_mut().filter(|line| line.intervals.len() != line.points.len()) {
        line.intervals.clear();
    }
    let label = swept.axes.first().map_or("", |axis| axis.key.as_str());
    Plot {
        title: title.into(),
        note: "Points at which only a bound is known are left out.".into(),
        x: if numeric {
            PlotAxis::linear(label, Unit::Count)
        } else {
            PlotAxis::named(label, values.to_vec())
        },
        y: PlotAxis::linear(title, Unit::of_key(key)),
        series: lines,
    }
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
