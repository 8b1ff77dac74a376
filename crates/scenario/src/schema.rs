//! The JSON Schema of the scenario file, put together from those of its tables.

use kernel::Rate;
use rack::workload::config::WorkloadConfig;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::faults::FaultConfig;
use crate::jobs::JobsConfig;
use crate::registry::Registry;
use crate::run_config::RunConfig;
use crate::workload::{JOBS, TRACE, TraceConfig};

/// The schema of a whole scenario.
#[must_use]
pub fn scenario(registry: &Registry) -> Value {
    let mut generator = SchemaGenerator::default();
    let run = RunConfig::json_schema(&mut generator).to_value();
    let workload = workload(&mut generator);
    let fabrics: Vec<Value> = registry
        .fabrics()
        .map(|kind| {
            let schema = kind.schema(&mut generator).to_value();
            let label = json!({
                "description": "What tables and legends call this fabric. Default: its kind.",
                "type": "string",
                "minLength": 1,
            });
            tagged(schema, kind.name(), kind.summary(), [("label", label)])
        })
        .collect();
    let fault = FaultConfig::json_schema(&mut generator).to_value();
    let fabric = json!({ "type": "object", "oneOf": fabrics });
    let several = json!({ "type": "array", "items": fabric, "minItems": 1 });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rackloom scenario",
        "description": "What is built, what it carries and what is measured. Quantities are text \
                        with a unit.",
        "type": "object",
        "properties": {
            "name": {
                "description": "Names the results: letters, digits, '.', '-' and '_'. Default: \
                                the file's name.",
                "type": "string",
                "minLength": 1,
            },
            "seed": {
                "description": "Seed of every random stream. Default 1. From 0 to 2^63 - 1.",
                "type": "integer",
                "minimum": 0,
                "maximum": i64::MAX,
                "default": 1,
            },
            "run": run,
            "workload": workload,
            "fabric": {
                "description": "The network, or several as [[fabric]] to compare.",
                "anyOf": [fabric, several],
            },
            "fault": {
                "description": "What breaks, and when. Default: nothing.",
                "type": "array",
                "items": fault,
            },
        },
        "required": ["workload", "fabric"],
        "additionalProperties": false,
        "$defs": generator.take_definitions(true),
    })
}

/// The schema of one fabric's or workload's table in [`scenario`], if there is one of this kind.
#[must_use]
pub fn table<'a>(scenario: &'a Value, table: &str, kind: &str) -> Option<&'a Value> {
    let place = &scenario["properties"][table];
    let variants = place["oneOf"].as_array().or_else(|| place["anyOf"][0]["oneOf"].as_array())?;
    variants.iter().find(|variant| variant["properties"]["kind"]["const"] == kind)
}

/// The kinds of workload or fabric in [`scenario`], with their first line of description.
#[must_use]
pub fn kinds(scenario: &Value, table: &str) -> Vec<(String, String)> {
    let place = &scenario["properties"][table];
    let variants = place["oneOf"].as_array().or_else(|| place["anyOf"][0]["oneOf"].as_array());
    let text = |value: &Value| value.as_str().unwrap_or("").to_string();
    let first = |text: String| {
        let paragraph = text.split("\n\n").next().unwrap_or("");
        paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    variants
        .into_iter()
        .flatten()
        .map(|v| (text(&v["properties"]["kind"]["const"]), first(text(&v["description"]))))
        .collect()
}

/// The workload's kinds, each with the key that every workload has beside its own.
fn workload(generator: &mut SchemaGenerator) -> Value {
    let mut schema = WorkloadConfig::json_schema(generator).to_value();
    let trace = TraceConfig::json_schema(generator).to_value();
    let what = trace["description"].as_str().unwrap_or("").to_string();
    let trace = tagged(trace, TRACE, &what, []);
    let jobs = JobsConfig::json_schema(generator).to_value();
    let what = jobs["description"].as_str().unwrap_or("").to_string();
    let jobs = tagged(jobs, JOBS, &what, []);
    let mut load_rate = Rate::json_schema(generator).to_value();
    load_rate["description"] = json!(
        "The rate at which a node sends and receives at load 1. Unit: bit/s. Default: that of \
         the first fabric."
    );
    let variants = schema["oneOf"].as_array_mut().expect("a workload is one of several kinds");
    variants.extend([trace, jobs]);
    for variant in variants {
        let properties = variant["properties"].as_object_mut().expect("a workload has keys");
        properties.entry("load_rate").or_insert_with(|| load_rate.clone());
    }
    schema
}

/// A table's schema with `kind` fixed to `name` and keys that do not belong to the table itself.
fn tagged<const N: usize>(
    mut schema: Value,
    name: &str,
    summary: &str,
    more: [(&str, Value); N],
) -> Value {
    let object = schema.as_object_mut().expect("a configuration is a table");
    let own = match object.remove("properties") {
        Some(Value::Object(own)) => own,
        _ => Map::new(),
    };
    let kind = ("kind".to_string(), json!({ "type": "string", "const": name }));
    let more = more.into_iter().map(|(key, schema)| (key.to_string(), schema));
    let properties: Map<_, _> = std::iter::once(kind).chain(more).chain(own).collect();
    object.insert("properties".into(), properties.into());
    let mut required = vec![json!("kind")];
    if let Some(Value::Array(keys)) = object.remove("required") {
        required.extend(keys);
    }
    object.insert("required".into(), required.into());
    object.insert("additionalProperties".into(), false.into());
    object.insert("description".into(), summary.into());
    schema
}
