//! Tables of the fabrics, workloads and experiments there are, and of what their keys mean.

use rack::workload::tables;
use report::{Cell, Column, ResultsTable, Unit};
use scenario::{BadInput, Registry, describe, schema};
use serde_json::Value;

use crate::reproduce::{papers, unknown};

/// What can be listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Listed {
    /// Networks that carry flows.
    Fabrics,
    /// Who sends what to whom.
    Workloads,
    /// Published distributions of flow sizes.
    Sizes,
    /// Experiments of papers.
    Experiments,
}

/// What there is of `what`; of everything if that is `None`.
#[must_use]
pub fn list(what: Option<Listed>, registry: &Registry) -> ResultsTable {
    let columns = [("kind", "Kind"), ("name", "Name"), ("summary", "What it is")];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).to_vec());
    let mut add = |kind: &str, name: &str, what: &str| {
        table.push([kind, name, what].map(Cell::text).to_vec());
    };
    let wanted = |each| what.is_none_or(|wanted| wanted == each);
    if wanted(Listed::Fabrics) {
        for fabric in registry.fabrics() {
            add("fabric", fabric.name(), fabric.summary());
        }
    }
    if wanted(Listed::Workloads) {
        for (name, what) in schema::kinds(&schema::scenario(registry), "workload") {
            add("workload", &name, &what);
        }
    }
    if wanted(Listed::Sizes) {
        for row in tables::catalogue() {
            let size = |bytes: f64| Unit::Bytes.format(bytes);
            let figures = format!("mean {}, p99 {}", size(row.mean_bytes), size(row.p99_bytes));
            let names = row.aliases.join(", ");
            add("sizes", row.name, &format!("{names}: {figures}; {}", row.source));
        }
    }
    if wanted(Listed::Experiments) {
        for paper in papers() {
            for experiment in paper.experiments {
                let name = format!("{} {}", paper.name, experiment.name);
                add("experiment", &name, &format!("{}: {}", experiment.section, experiment.what));
            }
        }
    }
    table
}

/// A table of the scenario file, described.
#[derive(Clone, Debug)]
pub struct Description {
    /// How it is written in a scenario file.
    pub place: String,
    /// What it is.
    pub text: String,
    /// Its keys: value, default, meaning.
    pub keys: ResultsTable,
}

/// Describes the table of the scenario file that `name` stands for.
///
/// # Errors
/// When there is none; the message names those that are near.
pub fn describe(name: &str, registry: &Registry) -> Result<Description, BadInput> {
    let root = schema::scenario(registry);
    let (place, table) = find(&root, name).ok_or_else(|| unknown("name", name, &names(&root)))?;
    let columns = [
        ("key", "Key"),
        ("value", "Value"),
        ("default", "Default"),
        ("description", "Description"),
    ];
    let mut keys = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).to_vec());
    for row in describe::keys(table, &root) {
        keys.push([row.key, row.value, row.default, row.description].map(Cell::text).to_vec());
    }
    Ok(Description { place, text: describe::description(table, &root), keys })
}

/// The table that `name` stands for, and how it is written in a scenario file.
fn find<'a>(root: &'a Value, name: &str) -> Option<(String, &'a Value)> {
    for table in ["fabric", "workload"] {
        if let Some(found) = schema::table(root, table, name) {
            return Some((format!("[{table}] with kind = {name:?}"), found));
        }
    }
    match name {
        "run" => Some(("[run]".into(), &root["properties"]["run"])),
        "fault" => Some(("[[fault]]".into(), &root["properties"]["fault"]["items"])),
        _ => None,
    }
}

/// Everything that can be described.
fn names(root: &Value) -> Vec<String> {
    let kinds = ["fabric", "workload"].into_iter().flat_map(|table| schema::kinds(root, table));
    kinds.map(|(name, _)| name).chain(["run".into(), "fault".into()]).collect()
}
