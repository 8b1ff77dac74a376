//! Small racks of every fabric that the registry knows, with every transport that its schema names, and with
//! other settings drawn from the schema. Shared by the tests and by the fuzz target `small_runs`.

#![allow(dead_code, reason = "not every test uses all of it")]

use kernel::Bytes;
use scenario::{Document, Format, Registry, Scenario, schema};
use serde_json::{Value, json};

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

impl Rack {
    /// Its kind, and its table without that.
    pub fn table(&self) -> (String, Value) {
        let table: Result<Value, _> = toml::from_str(&self.table);
        let mut table = table.unwrap_or_else(|bad| panic!("{}: {bad}", self.table));
        let kind = table.as_object_mut().and_then(|table| table.remove("kind"));
        (kind.as_ref().and_then(Value::as_str).expect("a fabric has a kind").into(), table)
    }
}

/// The same rack with each other table that the schema knows for a key, where that goes with the rest;
/// transports apart. The kind of the rack, and its table.
pub fn others(rack: &Rack, schema: &Value, registry: &Registry) -> Vec<(String, Value)> {
    let (kind, table) = rack.table();
    let fabric = registry.fabric(&kind).expect("it is registered");
    let properties = schema::table(schema, "fabric", &kind).expect("it is in the schema");
    let keys = alternatives(schema, properties).into_iter().filter(|(key, _)| key != "transport");
    let with = |(key, value): (String, Value)| {
        let mut other = table.clone();
        other[&key] = value;
        fabric.plan(other.clone(), Bytes::new(1 << 28)).is_ok().then(|| (kind.clone(), other))
    };
    keys.flat_map(|(key, values)| values.into_iter().map(move |value| (key.clone(), value)))
        .filter(|(_, value)| value.is_object())
        .filter_map(with)
        .collect()
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
        racks.extend(by_carrier(fabric.name(), &schema));
        racks.extend(with_hosts(fabric.name(), &schema));
        racks.extend(with_connections(fabric.name(), &schema, registry));
        racks.extend(with_controller(fabric.name(), &schema));
        racks.extend(with_computing_node(fabric.name(), &schema));
        racks.extend(of_several_racks(fabric.name(), registry));
    }
    racks
}

/// Racks of a fabric whose flows something else than packets carries, if its schema knows any.
fn by_carrier(kind: &str, schema: &Value) -> Vec<Rack> {
    let properties = schema::table(schema, "fabric", kind).expect("it is in the schema");
    let words = alternatives(schema, properties).into_iter().find(|(key, _)| key == "carrier");
    let words = words.map(|(_, words)| words).unwrap_or_default();
    let other = words.into_iter().filter(|word| word != "ip");
    let rack = |word: Value| {
        let name = format!("{kind}/{}", word.as_str().expect("a carrier is a word"));
        Rack { name, table: format!("kind = '{kind}'\ncarrier = {word}\nnodes = 8\n") }
    };
    other.map(rack).collect()
}

/// A rack of a fabric whose hosts take time, if its schema knows such hosts.
fn with_hosts(kind: &str, schema: &Value) -> Option<Rack> {
    let properties = schema::table(schema, "fabric", kind).expect("it is in the schema");
    let hosts = alternatives(schema, properties).into_iter().find(|(key, _)| key == "host")?.1;
    let host = "host = { preset = 'legacy', engine = { law = 'exponential' }, \
                sleep = { exit = '8 us', law = 'exponential' } }";
    hosts.contains(&json!({ "preset": "legacy" })).then(|| Rack {
        name: format!("{kind}/hosts"),
        table: format!("kind = '{kind}'\n{host}\ntransport = {{ kind = 'swift' }}\nnodes = 8\n"),
    })
}

/// A rack of a fabric whose flows are messages on connections that last, if it carries streams.
fn with_connections(kind: &str, schema: &Value, registry: &Registry) -> Option<Rack> {
    let stream = "{ connections = 2, nagle = true, ack_segments = 2, ack_delay = '100 us' }";
    let mut known = transports(schema, kind).into_iter().flatten();
    known.find(|(name, _)| name == "newreno")?;
    let transport = format!("transport = {{ kind = 'newreno', stream = {stream} }}");
    let table = |small: &&str| format!("kind = '{kind}'\n{transport}\n{small}\n");
    let is_taken = |table: &String| read(table, "", LIGHT, "", registry).is_ok();
    let table = SMALL.iter().map(table).find(is_taken).expect("streams go over some small rack");
    Some(Rack { name: format!("{kind}/connections"), table })
}

/// A rack of a fabric whose routes a controller writes while traffic flows, if its schema knows one: what is drained makes it
/// write.
fn with_controller(kind: &str, schema: &Value) -> Option<Rack> {
    let properties = schema::table(schema, "fabric", kind).expect("it is in the schema");
    let words = alternatives(schema, properties).into_iter().find(|(key, _)| key == "control")?.1;
    let sdn = "sdn = { message = '2 us', network = '2 us', entry_time = '10 ns', \
               maintenance = [{ at = '3 us', until = '1 ms', drain_tin = 1 }, { at = '5 us', drain_cable = 0 }, \
               { at = '9 us', restart = 2 }, { at = '10 us', upgrade = 2, at_once = 3 }], block_time = '1 us' }";
    words.contains(&json!("sdn")).then(|| Rack {
        name: format!("{kind}/sdn"),
        table: format!("kind = '{kind}'\ncontrol = 'sdn'\n{sdn}\nnodes = 8\n"),
    })
}

/// A rack of a fabric of which one node computes for all, if its schema knows that.
fn with_computing_node(kind: &str, schema: &Value) -> Option<Rack> {
    let properties = schema::table(schema, "fabric", kind).expect("it is in the schema");
    properties["properties"]
        .get("controller")
        .is_some_and(|key| key.get("format") == Some(&json!("uint32")))
        .then(|| Rack {
            name: format!("{kind}/controller"),
            table: format!("kind = '{kind}'\ncontroller = 4\n{}\n", SMALL[2]),
        })
}

/// Nodes of several racks, joined by links and by tunnels, under a fabric that takes such networks.
fn of_several_racks(kind: &str, registry: &Registry) -> Vec<Rack> {
    let joined = [
        ("racks", "links = 2"),
        ("tunnels", "links = 3, ethernet = { ports = 4, oversubscription = 2 }"),
    ];
    let rack = |(name, joined): (&str, &str)| {
        let shape = format!("kind = 'racks', dimensions = [2, 2], racks = 2, {joined}");
        let table = format!("kind = '{kind}'\ntopology = {{ {shape} }}\n");
        let is_taken = read(&table, "", LIGHT, "", registry).is_ok();
        is_taken.then(|| Rack { name: format!("{kind}/{name}"), table })
    };
    joined.into_iter().filter_map(rack).collect()
}

/// How often a key that has alternatives is set.
const SET: u64 = 4;
/// Small chances, for keys that are chances.
const CHANCES: [f64; 3] = [0.0, 1e-6, 0.01];

/// A small rack with random settings: words, kinds of tables, switches and chances. `draw` gives a number
/// below its argument.
pub fn drawn(
    (racks, schema): (&[Rack], &Value),
    registry: &Registry,
    draw: &mut dyn FnMut(u64) -> u64,
) -> Drawn {
    let rack = &racks[draw(racks.len() as u64) as usize];
    let (kind, mut taken) = rack.table();
    let fabric = registry.fabric(&kind).expect("it is registered");
    let properties = schema::table(schema, "fabric", &kind).expect("it is in the schema");
    let limit = Bytes::new(1 << 28);
    let planned = |table: &Value| fabric.plan(table.clone(), limit).ok();
    let mut nodes = planned(&taken).expect("it was taken before").nodes();
    for (key, values) in alternatives(schema, properties) {
        if draw(SET) > 0 || values.is_empty() || taken.get(&key).is_some() {
            continue;
        }
        let mut tried = taken.clone();
        tried[&key] = values[draw(values.len() as u64) as usize].clone();
        // What does not go with the rest is left out.
        if let Some(plan) = planned(&tried) {
            (taken, nodes) = (tried, plan.nodes());
        }
    }
    Drawn { kind: fabric.name(), table: taken, nodes }
}

/// A rack to be built: of which fabric, its table without its kind, and how many nodes it has.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub kind: &'static str,
    pub table: Value,
    pub nodes: u32,
}

/// What may stand by each key of a table for which the schema knows it.
fn alternatives(schema: &Value, table: &Value) -> Vec<(String, Vec<Value>)> {
    let Some(properties) = table.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let values = |part: &Value| {
        let mut kinds = Vec::new();
        collect(schema, part, &mut kinds);
        if !kinds.is_empty() {
            let value = |(name, toml): (String, String)| match toml.starts_with('{') {
                true => json!({ "kind": name }),
                false => json!(name),
            };
            return kinds.into_iter().map(value).collect();
        }
        let part = part.get("$ref").and_then(Value::as_str).map_or(part, |path| {
            schema.pointer(path.trim_start_matches('#')).expect("a reference leads somewhere")
        });
        let is = |kind: &str| part.get("type").is_some_and(|found| found == kind);
        let most = part.get("maximum").and_then(Value::as_f64);
        match most {
            _ if is("boolean") => vec![json!(true), json!(false)],
            Some(most) if is("number") && most <= 1.0 => CHANCES
                .iter()
                .filter(|&&chance| chance <= most)
                .map(|&chance| json!(chance))
                .collect(),
            _ if is("object") => {
                let below = alternatives(schema, part).into_iter();
                let one = |(key, values): (String, Vec<Value>)| {
                    values.into_iter().map(move |value| json!({ key.clone(): value }))
                };
                below.flat_map(one).collect()
            }
            _ => Vec::new(),
        }
    };
    properties.iter().map(|(key, part)| (key.clone(), values(part))).collect()
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
