//! Tables of the fabrics, workloads and experiments there are, and of what their keys mean.

use std::collections::BTreeMap;

use rack::workload::tables;
use report::{Cell, Column, ResultsTable, Unit};
use scenario::{BadInput, Registry, describe, schema};
use serde_json::{Value, json};

use crate::progress::rough;
use crate::reproduce::{Effort, papers, unknown};

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
                let [quick, full] = [Effort::Quick, Effort::Full]
                    .map(|effort| rough(experiment.seconds(effort).max(1.0)));
                let what = format!("{}: {}", experiment.section, experiment.what);
                add("experiment", &name, &format!("{what} ({quick}; {full} with --full)"));
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

/// Describes what `name` stands for: a table of the scenario file (`shoal`, `run`), one of its shapes
/// (`packet-switched.transport.ndp`, or `ndp` alone), a single key (`shoal.guard`) or a published
/// distribution of sizes (`W4`).
///
/// # Errors
/// When there is none; the message names those that are near.
pub fn describe(name: &str, registry: &Registry) -> Result<Description, BadInput> {
    let root = schema::scenario(registry);
    if let Some(found) = kinds(name, &root) {
        return Ok(found);
    }
    // As messages about a scenario write keys: `workload.load`, `fabric.transport`.
    let written = ["fabric.", "workload."].into_iter().find_map(|table| name.strip_prefix(table));
    let name = written.unwrap_or(name);
    if let Some(found) = sizes(name) {
        return Ok(found);
    }
    let places = places(&root);
    // A shape's own word, such as a transport's, stands for the first place where it can be chosen.
    let path = places.get(name).map_or(name, |paths| paths[0].as_str());
    let mut found = walk(path, &root).map_err(|known| unknown_at(name, &known, &root))?;
    if let Some([_, others @ ..]) = places.get(name).map(Vec::as_slice)
        && !others.is_empty()
    {
        found.text = format!("{} The same in: {}.", found.text, others.join(", "));
    }
    Ok(found)
}

/// A table of what keys of a scenario mean.
fn key_table(rows: impl IntoIterator<Item = describe::KeyDescription>) -> ResultsTable {
    let columns = [
        ("key", "Key"),
        ("value", "Value"),
        ("default", "Default"),
        ("description", "Description"),
    ];
    let mut keys = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).to_vec());
    for row in rows {
        keys.push([row.key, row.value, row.default, row.description].map(Cell::text).to_vec());
    }
    keys
}

/// Goes from table to table along `path`; the names that could stand where it leads nowhere, if so.
fn walk(path: &str, root: &Value) -> Result<Description, Vec<String>> {
    let mut steps = path.split('.');
    let first = steps.next().unwrap_or_default();
    let (mut place, table) = find(root, first).ok_or_else(|| names(root))?;
    // Of a key at the top of the file the table is the file.
    let mut parent = matches!(first, "name" | "seed").then(|| root.clone());
    let (mut table, mut known) = (table.clone(), first.to_string());
    let mut last = first;
    for step in steps {
        let next = describe::below(&table, step, root).ok_or_else(|| {
            let near = describe::names_below(&table, root).into_iter();
            near.map(|name| format!("{known}.{name}")).collect::<Vec<_>>()
        })?;
        parent = Some(std::mem::replace(&mut table, next));
        known = format!("{known}.{step}");
        place = format!("{place}, {step}");
        last = step;
    }
    let mut rows = describe::keys(&table, root);
    let shapes = describe::shapes(&table, root);
    if let Some(parent) = parent.filter(|_| rows.is_empty()) {
        let own = |row: &describe::KeyDescription| {
            row.key == last || row.key.starts_with(&format!("{last}."))
        };
        rows = describe::keys(&parent, root).into_iter().filter(own).collect();
        if rows.is_empty() {
            // A key of one of several shapes.
            let alone = json!({ "type": "object", "properties": { last: table } });
            rows = describe::keys(&alone, root);
        }
    }
    let mut text = describe::description(&table, root);
    if !shapes.is_empty() {
        let each = shapes.iter().map(|shape| format!("{known}.{shape}"));
        text = format!("{text} One of: {}.", each.collect::<Vec<_>>().join(", "));
    }
    Ok(Description { place, text: text.trim().into(), keys: key_table(rows) })
}

/// The tables of a scenario that have a kind, with all of these.
fn kinds(name: &str, root: &Value) -> Option<Description> {
    let text = match name {
        "fabric" => {
            "The network that carries the flows. Keys of a kind: `rackloom describe shoal`."
        }
        "workload" => {
            "Who sends what to whom, and when. Keys of a kind: `rackloom describe poisson`."
        }
        _ => return None,
    };
    let rows = schema::kinds(root, name).into_iter().map(|(kind, summary)| {
        let (key, value) = ("kind".into(), format!("{kind:?}"));
        describe::KeyDescription { key, value, default: String::new(), description: summary }
    });
    Some(Description { place: format!("[{name}]"), text: text.into(), keys: key_table(rows) })
}

/// A published distribution of sizes, by its name or one of its others.
fn sizes(name: &str) -> Option<Description> {
    let is_it = |one: &str| one.eq_ignore_ascii_case(name);
    let catalogue = tables::catalogue();
    let row =
        catalogue.iter().find(|row| is_it(row.name) || row.aliases.iter().any(|a| is_it(a)))?;
    let size = |bytes: f64| Unit::Bytes.format(bytes);
    let key = |key: &str, value: String, description: &str| describe::KeyDescription {
        key: key.into(),
        value,
        default: String::new(),
        description: description.into(),
    };
    let rows = [
        key("name", row.name.into(), "As the scenario names it."),
        key("also", row.aliases.join(", "), "Other names that a scenario may use."),
        key("mean", size(row.mean_bytes), "Mean size of a flow."),
        key("p99", size(row.p99_bytes), "One flow in a hundred is larger."),
    ];
    Some(Description {
        place: format!("workload.sizes = {{ kind = \"table\", name = {:?} }}", row.name),
        text: format!("Sizes of flows: {}.", row.source.trim_end_matches('.')),
        keys: key_table(rows),
    })
}

/// Where each word that chooses a shape right below a fabric or a workload can be chosen: `ndp` in
/// `packet-switched.transport.ndp`. Words that are names themselves stand for themselves.
fn places(root: &Value) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let own = names(root);
    for name in &own {
        let Some((_, table)) = find(root, name) else { continue };
        for key in describe::names_below(table, root) {
            let Some(below) = describe::below(table, &key, root) else { continue };
            for shape in describe::shapes(&below, root) {
                if !own.contains(&shape) {
                    let path = format!("{name}.{key}.{shape}");
                    places.entry(shape).or_default().push(path);
                }
            }
        }
    }
    // What a packet-switched rack has is what the others have of it.
    for paths in places.values_mut() {
        paths.sort_by_key(|path| !path.starts_with("packet-switched."));
    }
    places
}

/// What to say of a name that stands for nothing: those that are like it, and where a key of that name is.
fn unknown_at(name: &str, known: &[String], root: &Value) -> BadInput {
    let mut known = known.to_vec();
    let first = name.split('.').next().unwrap_or_default();
    if find(root, first).is_none() {
        known.extend(places(root).into_keys());
        known.extend(tables::catalogue().iter().map(|row| row.name.to_string()));
        let keys = names(root).into_iter().filter_map(|table| {
            let path = format!("{table}.{name}");
            walk(&path, root).is_ok().then_some(path)
        });
        let keys: Vec<_> = keys.collect();
        if !keys.is_empty() {
            let message = format!("is a key of a table; try {}", keys.join(" or "));
            let what = format!("name {name:?}");
            return BadInput::single(scenario::Located::whole(&what, message));
        }
    }
    unknown("name", name, &known)
}

/// The table that `name` stands for, and how it is written in a scenario file.
fn find<'a>(root: &'a Value, name: &str) -> Option<(String, &'a Value)> {
    for table in ["fabric", "workload"] {
        if let Some(found) = schema::table(root, table, name) {
            return Some((format!("[{table}] with kind = {name:?}"), found));
        }
    }
    let key = |name: &str| Some((format!("{name:?}, at the top"), &root["properties"][name]));
    match name {
        "run" => Some(("[run]".into(), &root["properties"]["run"])),
        "fault" => Some(("[[fault]]".into(), &root["properties"]["fault"]["items"])),
        "name" | "seed" => key(name),
        _ => None,
    }
}

/// Everything that can be described by one word of the file itself.
fn names(root: &Value) -> Vec<String> {
    let kinds = ["fabric", "workload"].into_iter().flat_map(|table| schema::kinds(root, table));
    let more = ["run", "fault", "seed", "name"].map(String::from);
    kinds.map(|(name, _)| name).chain(more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str) -> Description {
        describe(name, &Registry::standard()).unwrap_or_else(|bad| panic!("{name}: {bad}"))
    }

    fn keys(found: &Description) -> Vec<&str> {
        found.keys.rows.iter().map(|row| row[0].text.as_str()).collect()
    }

    #[test]
    fn a_path_leads_to_a_shape_and_to_a_key() {
        let ndp = found("packet-switched.transport.ndp");
        assert!(keys(&ndp).contains(&"initial_window"), "{:?}", keys(&ndp));
        let guard = found("shoal.guard");
        assert_eq!(keys(&guard), ["guard"]);
        assert!(guard.text.contains("Shoal §7.1"), "{}", guard.text);
        assert_eq!(guard.keys.rows[0][2].text, "\"2.75 ns\"");
        let transports = found("packet-switched.transport");
        assert!(transports.text.contains("packet-switched.transport.dctcp"), "{}", transports.text);
        assert_eq!(keys(&found("run.seeds")), ["seeds"]);
        assert_eq!(keys(&found("fabric.shoal.guard")), ["guard"]);
    }

    #[test]
    fn tables_with_a_kind_name_all_of_them() {
        let values = |name: &str| -> Vec<String> {
            found(name).keys.rows.iter().map(|row| row[1].text.clone()).collect()
        };
        let fabrics = Registry::standard();
        let fabrics: Vec<_> = fabrics.fabrics().map(|f| format!("{:?}", f.name())).collect();
        let mut described = values("fabric");
        described.sort();
        assert!(fabrics.len() > 5 && described.len() == fabrics.len(), "{described:?}");
        assert!(fabrics.iter().all(|fabric| described.contains(fabric)), "{described:?}");
        assert!(values("workload").contains(&"\"poisson\"".to_owned()));
    }

    #[test]
    fn a_transport_and_a_distribution_of_sizes_have_names_of_their_own() {
        let ndp = found("ndp");
        assert_eq!(keys(&ndp), keys(&found("packet-switched.transport.ndp")));
        assert!(ndp.text.contains("The same in: "), "{}", ndp.text);
        assert!(found("w4").place.contains("homa_w4_fb_hadoop"), "{}", found("w4").place);
    }

    /// Whatever the tables hold: each key of each is found by its path.
    #[test]
    fn slow_every_key_is_found_by_its_path() {
        let registry = Registry::standard();
        let root = schema::scenario(&registry);
        let mut count = 0;
        for name in names(&root) {
            let (_, table) = find(&root, &name).unwrap();
            for key in describe::names_below(table, &root) {
                let found = found(&format!("{name}.{key}"));
                assert!(!found.keys.rows.is_empty(), "{name}.{key}");
                count += 1;
            }
        }
        assert!(count > 100, "{count}");
    }

    #[test]
    fn what_is_unknown_is_answered_with_what_is_near() {
        let says = |name: &str| describe(name, &Registry::standard()).unwrap_err().to_string();
        let near = says("packet-switched.transport.npd");
        assert!(near.contains("did you mean \"packet-switched.transport.ndp\"?"), "{near}");
        assert!(says("shaol").contains("did you mean \"shoal\"?"), "{}", says("shaol"));
        assert!(says("guard").contains("shoal.guard"), "{}", says("guard"));
        assert!(says("workload.load").contains("try poisson.load"), "{}", says("workload.load"));
        assert!(says("sizes.fixed").contains("try poisson.sizes.fixed"), "{}", says("sizes.fixed"));
        assert!(says("dctpc").contains("did you mean \"dctcp\"?"), "{}", says("dctpc"));
    }
}
