//! Tables of what there is and what keys mean, and results as text and as HTML.

use cli::catalogue::{self, Listed};
use cli::reproduce;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use report::{ResultsTable, TextStyle};
use scenario::Registry;
use serde_json::Value;

use crate::cluster::OfModule;
use crate::errors;

/// Carries out a command line, name of the program first, with the module of the package's extras; the exit
/// code.
#[pyfunction]
pub fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>, extras: Py<PyAny>) -> u8 {
    let extras = OfModule(extras);
    py.detach(|| cli::command(arguments, Some(&extras)))
}

/// The JSON Schema of the scenario file, as JSON.
#[pyfunction]
pub fn schema() -> String {
    scenario::schema::scenario(&Registry::standard()).to_string()
}

/// What there is of a kind, or of everything: rows as JSON.
#[pyfunction]
#[pyo3(signature = (what=None))]
pub fn listing(py: Python<'_>, what: Option<&str>) -> PyResult<String> {
    let kinds = [
        ("fabrics", Listed::Fabrics),
        ("workloads", Listed::Workloads),
        ("sizes", Listed::Sizes),
        ("experiments", Listed::Experiments),
    ];
    let wanted = match what {
        None => None,
        Some(name) => {
            let found = kinds.iter().find(|(kind, _)| *kind == name).map(|(_, listed)| *listed);
            let names = kinds.map(|(kind, _)| kind.to_string());
            Some(found.ok_or_else(|| {
                errors::of_bad_input(py, &reproduce::unknown("kind", name, &names))
            })?)
        }
    };
    Ok(catalogue::list(wanted, &Registry::standard()).to_json().to_string())
}

/// The keys of a table of the scenario file: its place, what it is, rows as JSON.
#[pyfunction]
pub fn describe(py: Python<'_>, name: &str) -> PyResult<(String, String, String)> {
    let found = catalogue::describe(name, &Registry::standard());
    let found = found.map_err(|bad| errors::of_bad_input(py, &bad))?;
    Ok((found.place, found.text, found.keys.to_json().to_string()))
}

/// A summary, as JSON, or several, as text for a terminal.
#[pyfunction]
pub fn text(runs: Vec<(String, String)>) -> PyResult<String> {
    let runs = read(runs)?;
    let style = TextStyle::default();
    Ok(match runs.as_slice() {
        [(label, summary)] => report::run_text(label, summary, style),
        _ => report::comparison_text(&borrowed(&runs), style),
    })
}

/// A table as people read it: titles of the columns, then rows.
type Shown = (Vec<String>, Vec<Vec<String>>);

/// The tables of a summary, as JSON, or the one that compares several.
#[pyfunction]
pub fn page(runs: Vec<(String, String)>) -> PyResult<Vec<Shown>> {
    let runs = read(runs)?;
    let tables = match runs.as_slice() {
        [(_, summary)] => {
            vec![report::summary::figures(summary), report::summary::distributions(summary)]
        }
        _ => vec![report::summary::comparison(&borrowed(&runs))],
    };
    Ok(tables.iter().map(shown).collect())
}

fn read(runs: Vec<(String, String)>) -> PyResult<Vec<(String, Value)>> {
    let parse = |(label, summary): (String, String)| {
        let summary = serde_json::from_str(&summary);
        Ok((label, summary.map_err(|error| PyValueError::new_err(error.to_string()))?))
    };
    runs.into_iter().map(parse).collect()
}

fn borrowed(runs: &[(String, Value)]) -> Vec<(&str, &Value)> {
    runs.iter().map(|(label, summary)| (label.as_str(), summary)).collect()
}

fn shown(table: &ResultsTable) -> Shown {
    let titles = table.columns.iter().map(|column| column.title.clone()).collect();
    let text = |row: &Vec<report::Cell>| row.iter().map(|cell| cell.text.clone()).collect();
    (titles, table.rows.iter().map(text).collect())
}
