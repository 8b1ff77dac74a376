//! `rackloom list`.

use cli::engine::Failure;
use cli::reproduce::papers;
use rack::workload::tables;
use report::{Cell, Column, ResultsTable, Unit};
use scenario::{Registry, schema};

use super::DONE;
use crate::args::{ListArguments, Listed};
use crate::output::Output;

/// Lists what there is.
pub fn list(
    arguments: &ListArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let columns = [("kind", "Kind"), ("name", "Name"), ("summary", "What it is")];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).to_vec());
    let mut add = |kind: &str, name: &str, what: &str| {
        table.push([kind, name, what].map(Cell::text).to_vec());
    };
    let wanted = |what| arguments.what.is_none_or(|wanted| wanted == what);
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
            for experiment in paper.experiments() {
                let name = format!("{} {}", paper.name(), experiment.name);
                add("experiment", &name, &format!("{}: {}", experiment.section, experiment.what));
            }
        }
    }
    output.table(&table);
    Ok(DONE)
}
