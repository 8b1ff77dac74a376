//! Small racks of every fabric that the registry knows, with every transport that its schema names.

use scenario::{Document, Format, Registry, Scenario, schema};
use serde_json::Value;

/// What makes a rack small: the first of these that a fabric takes.
const SMALL: [&str; 4] = [
    "nodes = 8",
    "nodes = 16",
    "topology = { kind = 'torus', dimensions = [3, 3], rate = '10 Gbps', delay = '100 ns' }",
    "",
];

/// A small rack: its `[fabric]` table, and what to call it.
#[derive(Clone, Debug)]
pub struct Rack {
    pub name: String,
    pub table: String,
}

/// All of them.
pub fn all(registry: &Registry) -> Vec<Rack> {
    let schema = schema::scenario(registry);
    let mut racks = Vec::new();
    for fabric in registry.fabrics() {
        for transport in transports(&schema, fabric.name()) {
            let (name, transport) = match transport {
                Some((name, toml)) => {
                    (format!("{}/{name}", fabric.name()), format!("transport = {toml}\n"))
                }
                None => (fabric.name().to_string(), String::new()),
            };
            let table = |small: &&str| format!("kind = '{}'\n{transport}{small}\n", fabric.name());
            let is_taken = |table: &String| read(table, "", LIGHT, "", registry).is_ok();
            let table = SMALL.iter().map(table).find(is_taken);
            let table = table.unwrap_or_else(|| panic!("{name}: no small rack of it is taken"));
            racks.push(Rack { name, table });
        }
    }
    racks
}

/// A load that any fabric bears.
pub const LIGHT: &str = "kind = 'poisson'\nload = 0.4\nflows = 150\n\
                         sizes = { kind = 'pareto', shape = 1.2, mean = '20 KB', cap = '200 KB' }";

/// A scenario of a rack. `run` are keys of the table `[run]`, with a limit of time if they have none; `rest`
/// are tables behind all others.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read(
    rack: &str,
    run: &str,
    workload: &str,
    rest: &str,
    registry: &Registry,
) -> Result<Scenario, String> {
    let limit = if run.contains("time =") { "" } else { "time = '20 ms'\n" };
    let text = format!(
        "[run]\n{limit}warm_up = 0.0\n{run}\n[workload]\n{workload}\n[fabric]\n{rack}\n{rest}\n"
    );
    let document = Document::parse("a.toml", &text, Format::Toml).map_err(|bad| bad.to_string())?;
    Scenario::read(document, &[], registry).map_err(|bad| bad.to_string())
}

/// The transports that a fabric's table allows, by name and as TOML; `None` where it has no such key.
fn transports(schema: &Value, fabric: &str) -> Vec<Option<(String, String)>> {
    let table = schema::table(schema, "fabric", fabric).expect("the fabric is in the schema");
    let Some(transport) = table.pointer("/properties/transport") else { return vec![None] };
    let mut kinds = Vec::new();
    collect(schema, transport, &mut kinds);
    if kinds.is_empty() { vec![None] } else { kinds.into_iter().map(Some).collect() }
}

/// Adds what a part of the schema allows: words, and tables by their kind.
fn collect(schema: &Value, part: &Value, kinds: &mut Vec<(String, String)>) {
    if let Some(path) = part.get("$ref").and_then(Value::as_str) {
        let part = schema.pointer(path.trim_start_matches('#'));
        return collect(schema, part.expect("a reference leads somewhere"), kinds);
    }
    let word = part.get("const").and_then(Value::as_str);
    kinds.extend(word.map(|word| (word.to_string(), format!("'{word}'"))));
    let kind = part.pointer("/properties/kind/const").and_then(Value::as_str);
    kinds.extend(kind.map(|kind| (kind.to_string(), format!("{{ kind = '{kind}' }}"))));
    for union in ["oneOf", "anyOf", "allOf"] {
        let parts = part.get(union).and_then(Value::as_array);
        parts.into_iter().flatten().for_each(|part| collect(schema, part, kinds));
    }
}
