//! Messages that go through their bytes change nothing, nor does any number of threads, for every fabric
//! and transport that the registry knows.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::io;
use std::ops::ControlFlow;

use rack::results::{FlowRecord, FlowSink};
use scenario::{Document, Format, Registry, Scenario, Sink, schema};
use serde_json::Value;

/// What a run told of its flows, in order.
#[derive(Default, PartialEq, Debug)]
struct Flows(Vec<String>);

impl FlowSink for Flows {
    fn record(&mut self, flow: &FlowRecord<'_>) -> io::Result<()> {
        self.0.push(format!("{flow:?}"));
        Ok(())
    }
}

impl Sink for Flows {}

/// The transports that a fabric's table allows, as TOML; `None` where it has no such key.
fn transports(schema: &Value, fabric: &str) -> Vec<Option<String>> {
    let table = schema::table(schema, "fabric", fabric).unwrap();
    let Some(transport) = table.pointer("/properties/transport") else { return vec![None] };
    let mut kinds = Vec::new();
    collect(schema, transport, &mut kinds);
    if kinds.is_empty() { vec![None] } else { kinds.into_iter().map(Some).collect() }
}

/// Adds what a part of the schema allows: words, and tables by their kind.
fn collect(schema: &Value, part: &Value, kinds: &mut Vec<String>) {
    if let Some(path) = part.get("$ref").and_then(Value::as_str) {
        return collect(schema, schema.pointer(path.trim_start_matches('#')).unwrap(), kinds);
    }
    let word = part.get("const").and_then(Value::as_str);
    kinds.extend(word.map(|word| format!("'{word}'")));
    let kind = part.pointer("/properties/kind/const").and_then(Value::as_str);
    kinds.extend(kind.map(|kind| format!("{{ kind = '{kind}' }}")));
    for union in ["oneOf", "anyOf", "allOf"] {
        let parts = part.get(union).and_then(Value::as_array);
        parts.into_iter().flatten().for_each(|part| collect(schema, part, kinds));
    }
}

fn run(fabric: &str, how: &str, registry: &Registry) -> Result<(Flows, Value), String> {
    let text = format!(
        "[run]\n{how}\ntime = '20 ms'\nwarm_up = 0.0\n[workload]\nkind = 'poisson'\nload = 0.4\n\
         flows = 150\nsizes = {{ kind = 'pareto', shape = 1.2, mean = '20 KB', cap = '200 KB' }}\n\
         [fabric]\n{fabric}\n"
    );
    let document = Document::parse("a.toml", &text, Format::Toml).map_err(|bad| bad.to_string())?;
    let scenario = Scenario::read(document, &[], registry).map_err(|bad| bad.to_string())?;
    let mut flows = Flows::default();
    let result = scenario.execute(0, &mut flows, &mut |_| ControlFlow::Continue(()));
    let mut summary = result.map_err(|bad| bad.to_string())?.summary;
    let table = summary.as_object_mut().unwrap();
    // What the run took of the machine, and what it was asked for.
    for key in ["engine", "scenario", "scenario_hash"] {
        table.remove(key);
    }
    Ok((flows, summary))
}

/// The tables of all fabrics, with each transport.
fn tables(registry: &Registry) -> Vec<String> {
    let schema = schema::scenario(registry);
    let mut tables = Vec::new();
    for fabric in registry.fabrics() {
        for transport in transports(&schema, fabric.name()) {
            let transport = transport.map(|toml| format!("\ntransport = {toml}"));
            tables.push(format!("kind = '{}'{}", fabric.name(), transport.unwrap_or_default()));
        }
    }
    tables
}

#[test]
fn messages_as_bytes_and_threads_change_nothing() {
    let registry = Registry::standard();
    let mut same = 0;
    for table in tables(&registry) {
        let plain = run(&table, "", &registry).unwrap_or_else(|why| panic!("{table}: {why}"));
        assert!(!plain.0.0.is_empty(), "{table}: no flow ended");
        let threads = run(&table, "threads = 3", &registry);
        assert_eq!(threads.as_ref(), Ok(&plain), "{table} on threads");
        match run(&table, "threads = 2\nwire = true", &registry) {
            Ok(wire) => {
                assert_eq!(wire, plain, "{table} in bytes");
                same += 1;
            }
            // A fabric that has no bytes says so.
            Err(why) => {
                assert!(why.contains("run.wire") && why.contains("bytes"), "{table}: {why}")
            }
        }
    }
    assert!(same >= 12, "{same} fabrics and transports send bytes");
}
