//! `rackloom describe`.

use cli::engine::Failure;
use cli::reproduce::unknown;
use report::{Cell, Column, ResultsTable};
use scenario::{Registry, describe, schema};
use serde_json::Value;

use super::DONE;
use crate::args::DescribeArguments;
use crate::output::Output;

/// Describes the keys of a table of the scenario file.
pub fn describe(
    arguments: &DescribeArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let root = schema::scenario(registry);
    let name = arguments.name.as_str();
    let (place, table) = find(&root, name).ok_or_else(|| unknown("name", name, &names(&root)))?;
    let rows = describe::keys(table, &root);
    let columns = [
        ("key", "Key"),
        ("value", "Value"),
        ("default", "Default"),
        ("description", "Description"),
    ];
    let mut shown = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).to_vec());
    for row in rows {
        shown.push([row.key, row.value, row.default, row.description].map(Cell::text).to_vec());
    }
    let text = describe::description(table, &root);
    output.result(
        |style| format!("{name}: {text}\n\nKeys of {place}:\n\n{}", shown.to_text(style)),
        || shown.to_json(),
    );
    Ok(DONE)
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
