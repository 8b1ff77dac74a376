//! The properties of the fuzz targets, with a few thousand random inputs.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use kernel::Bytes;
use proptest::prelude::*;
use rack::topology::Graph;
use scenario::{Argument, Document, Format, Registry, Scenario, TraceFormat, trace};
use serde_json::{Value, json};

const SMALL: &str = "run.flows = 10
workload = { kind = 'poisson', load = 0.1 }
[[fabric]]
kind = 'shoal'
nodes = 8
[[fabric]]
kind = 'packet-switched'
nodes = 8
";

fn registry() -> Registry {
    Registry::standard().with_memory(Bytes::new(64 << 20))
}

/// JSON of any shape.
fn value() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "poisson",
        "shoal",
        "kind",
        "1 us",
        "10 Gbps",
        "",
        "run",
        "flows",
        "\u{1b}[31m",
        "1e99 s",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(words.clone(), inner, 0..5).prop_map(|map| {
                map.into_iter().map(|(key, value)| (key.to_string(), value)).collect()
            }),
        ]
    })
}

/// A key of a scenario, or nearly.
fn key() -> impl Strategy<Value = String> {
    let known = [
        "run",
        "flows",
        "workload",
        "load",
        "fabric[0]",
        "fabric",
        "nodes",
        "kind",
        "name",
        "fault",
        "seed",
        "",
        "[",
        "9]",
    ];
    let step = prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(String::from), 1 => ".{0,6}"];
    prop::collection::vec(step, 1..5).prop_map(|steps| steps.join("."))
}

fn check(document: Document, arguments: &[Argument]) {
    match Scenario::read(document, arguments, &registry()) {
        Err(bad) => {
            assert!(!bad.problems().is_empty());
            assert!(bad.problems().iter().all(|problem| problem.to_string().len() < 8_000));
        }
        Ok(scenario) => {
            let resolved = scenario.to_toml();
            let again = Document::parse("resolved", &resolved, Format::Toml).unwrap();
            assert_eq!(Scenario::read(again, &[], &registry()).unwrap().to_toml(), resolved);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_setting_is_taken_or_refused(key in key(), text in ".{0,30}", number in any::<i32>()) {
        for value in [text, number.to_string(), format!("{{ kind = {number} }}"), "'5 us'".into()] {
            let Ok(argument) = Argument::parse(&format!("{key}={value}")) else { continue };
            check(Document::parse("small.toml", SMALL, Format::Toml).unwrap(), &[argument]);
        }
    }

    #[test]
    fn any_value_is_a_scenario_or_refused(key in key(), value in value()) {
        let small = json!({
            "run": { "flows": 10 },
            "workload": { "kind": "poisson", "load": 0.1 },
            "fabric": { "kind": "shoal", "nodes": 8 },
        });
        let argument = Argument::value(&key, &value, "a keyword");
        check(Document::from_value("scenario", &small).unwrap(), &[argument]);
        if let Ok(document) = Document::from_value("scenario", &value) {
            check(document, &[]);
        }
    }

    #[test]
    fn any_list_of_links_is_a_topology_or_refused(
        hosts in 0u32..20,
        rows in prop::collection::vec("[0-9]{1,2},[0-9]{1,10},[0-9]{0,3} ?(G|M)?bps,[0-9]{0,4} ?(ns|us|s)?", 0..20),
        noise in ".{0,40}",
    ) {
        for rest in ["", noise.as_str()] {
            let edges = format!("a,b,rate,delay\n{}\n{rest}\n", rows.join("\n"));
            match (Graph { hosts, edges, ..Graph::default() }).build() {
                Err(problems) => {
                    prop_assert!(!problems.is_empty());
                    prop_assert!(problems.iter().all(|problem| !problem.message.is_empty()));
                }
                Ok(_) => prop_assert!(hosts <= 2 * (rows.len() as u32 + 1)),
            }
        }
    }

    #[test]
    fn bytes_between_the_marks_of_parquet_are_rows_or_refused(
        mut bytes in prop::collection::vec(any::<u8>(), 0..300),
        size in 0u32..300,
    ) {
        bytes.extend(size.to_le_bytes());
        bytes.extend(b"PAR1");
        let whole = [b"PAR1".to_vec(), bytes].concat();
        if let Err(bad) = trace::read_bytes("t.parquet", whole, TraceFormat::Parquet, 8) {
            prop_assert!(!bad.problems().is_empty());
        }
    }
}
