//! Every kind from its TOML-like table to its flows, and every problem word for word.

use serde_json::{Value, json};

use super::*;
use crate::Flow;
use crate::workload::testing::{Carried, check_open_loop, play};

const CONTEXT: WorkloadContext =
    WorkloadContext { nodes: 16, seed: 1, load_rate: Rate::from_gbps(50) };

fn config(table: Value) -> WorkloadConfig {
    serde_json::from_value(table).unwrap()
}

/// A table for each kind, with a bit of everything.
fn examples() -> Vec<Value> {
    vec![
        json!({ "kind": "poisson", "load": 0.5, "flows": 500 }),
        json!({ "kind": "bulk", "size": "1 MB" }),
        json!({ "kind": "incast", "senders": 15, "receiver": 3, "size": "130 KB",
                "timing": { "rounds": 3, "period": "1 ms", "jitter": "5 us" } }),
        json!({ "kind": "outcast", "receivers": 4, "size": "1 KB" }),
        json!({ "kind": "all_to_all", "size": "10 KB", "order": "random" }),
        json!({ "kind": "shuffle", "mappers": 10, "reducers": 8, "size": "10 KB" }),
        json!({ "kind": "ring_all_reduce", "size": "1 MB", "nodes": 8, "rounds": 2 }),
        json!({ "kind": "tree_all_reduce", "size": "1 MB", "chunks": 4 }),
        json!({ "kind": "expert_all_to_all", "size": "4 KB", "expert": "10 us", "rounds": 2 }),
        json!({ "kind": "parameter_server", "size": "1 MB", "iterations": 2, "jitter": "1 us" }),
        json!({ "kind": "pipeline", "size": "1 MB", "micro_batches": 4, "forward": "5 us" }),
        json!({ "kind": "requests", "clients": 4, "load": 0.1, "requests": 100 }),
        json!({ "kind": "mix", "parts": [
            { "kind": "poisson", "load": 0.3, "flows": 200, "class": 1 },
            { "kind": "incast", "senders": 8, "size": "500 KB" },
            { "kind": "requests", "outstanding": 2, "rounds": 5 },
        ] }),
    ]
}

fn run(table: &Value, context: &WorkloadContext) -> Vec<Carried> {
    let workload = config(table.clone()).build(context).unwrap();
    play(context.nodes, workload, kernel::Span::from_us(20), 7)
}

#[test]
fn every_kind_has_an_example_that_runs_to_its_end() {
    let kinds: Vec<_> = kinds().iter().map(|kind| kind.name).collect();
    let named: Vec<_> =
        examples().iter().map(|e| e["kind"].as_str().unwrap().to_string()).collect();
    assert_eq!(kinds, named);
    for example in examples() {
        assert!(run(&example, &CONTEXT).len() >= 4, "{example}");
    }
}

#[test]
fn the_same_seed_gives_the_same_flows_and_another_gives_others() {
    let content = |flows: &[Carried]| -> Vec<_> {
        flows.iter().map(|c| (c.flow.id, c.flow.src, c.flow.dst, c.flow.size)).collect()
    };
    for example in examples() {
        let first = content(&run(&example, &CONTEXT));
        assert_eq!(first, content(&run(&example, &CONTEXT)), "{example}");
        let drawn = ["poisson", "bulk", "incast", "outcast", "requests", "mix"];
        if drawn.contains(&example["kind"].as_str().unwrap()) {
            let other = run(&example, &WorkloadContext { seed: 2, ..CONTEXT });
            assert_ne!(first, content(&other), "{example}");
        }
    }
}

#[test]
fn a_table_survives_being_written_out() {
    for example in examples() {
        let read = config(example);
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(config(written.clone()), read, "{written}");
    }
}

#[test]
fn defaults_are_the_papers() {
    let written = serde_json::to_value(config(json!({ "kind": "poisson", "load": 1.0 }))).unwrap();
    assert_eq!(
        written,
        json!({
            "kind": "poisson",
            "load": 1.0,
            "sizes": { "kind": "pareto", "shape": 1.05, "mean": "100 KB", "truncation": "cut" },
            "pattern": { "kind": "uniform" },
            "class": 0,
        })
    );
}

#[test]
fn the_nominal_offer_states_mean_reading_truncation_pace_and_load() {
    let nominal = |table: Value, nodes| {
        let context = WorkloadContext { nodes, ..CONTEXT };
        config(table).nominal(&context).unwrap()
    };
    let paper = nominal(json!({ "kind": "poisson", "load": 1.0 }), 512);
    assert_eq!(paper.sizes, "Pareto, shape 1.05, scale 4761.9 B, untruncated up to 1 TiB");
    assert!((paper.interarrival_seconds.unwrap() - 31.25e-9).abs() < 1e-15);
    let table = json!({ "kind": "poisson", "interarrival": "12.65 ns",
                        "sizes": { "kind": "table", "name": "W4" } });
    let table = nominal(table, 512);
    assert_eq!(table.sizes, "homa_w4_fb_hadoop, read as upper_step");
    assert!((table.mean_bytes.unwrap() - 127_797.0).abs() < 1.0);
    let exact = 127_797.0 * 8.0 / (50e9 * 512.0 * 12.65e-9);
    assert!((table.load.unwrap() / exact - 1.0).abs() < 1e-5);
    let requests = nominal(json!({ "kind": "requests", "load": 0.2 }), 16);
    assert_eq!(requests.sizes, "requests: fixed 64 B; responses: fixed 4.096 KB");
    assert!((requests.load.unwrap() - 0.2).abs() < 1e-12);
    assert_eq!(requests.mean_bytes, Some(4160.0));
    for example in examples() {
        let nominal = config(example.clone()).nominal(&CONTEXT).unwrap();
        let has_load = example.to_string().contains("\"load\"");
        assert_eq!(nominal.load.is_some(), has_load, "{example}");
    }
}

#[test]
fn more_than_84_percent_of_pool_flows_run_among_a_third_of_the_nodes() {
    // Shoal §7.4. Exactly 86 % by definition; binomial with four standard errors of 50,000 draws.
    let table = json!({ "kind": "poisson", "load": 1.0, "flows": 50_000,
                        "pattern": { "kind": "pools" } });
    let context = WorkloadContext { nodes: 512, ..CONTEXT };
    let flows = check_open_loop(512, config(table).build(&context).unwrap());
    let third = |flow: &&Flow| flow.src.get() < 171 && flow.dst.get() < 171;
    let share = flows.iter().filter(third).count() as f64 / flows.len() as f64;
    assert!(share > 0.84 && (share - 0.86).abs() < 4.0 * (0.86f64 * 0.14 / 50_000.0).sqrt());
}

#[test]
fn every_pattern_can_be_written() {
    let patterns = [
        json!({ "kind": "uniform" }),
        json!({ "kind": "permutation", "seed": 5 }),
        json!({ "kind": "partial_permutation", "share": 0.5 }),
        json!({ "kind": "bit_complement" }),
        json!({ "kind": "bit_reverse" }),
        json!({ "kind": "bit_shuffle" }),
        json!({ "kind": "transpose" }),
        json!({ "kind": "tornado", "shape": [4, 4] }),
        json!({ "kind": "neighbour" }),
        json!({ "kind": "hot_spot", "share": 0.5, "nodes": [3, 1] }),
        json!({ "kind": "pools" }),
    ];
    let counts = [16, 16, 8, 16, 12, 14, 12, 16, 16, 16, 16];
    for (pattern, count) in patterns.iter().zip(counts) {
        let table = json!({ "kind": "bulk", "size": "1 KB", "pattern": pattern });
        let flows = check_open_loop(16, config(table).build(&CONTEXT).unwrap());
        assert_eq!(flows.len(), count, "{pattern}");
        let table = json!({ "kind": "poisson", "load": 0.1, "flows": 50, "pattern": pattern });
        assert_eq!(check_open_loop(16, config(table).build(&CONTEXT).unwrap()).len(), 50);
    }
}

#[test]
fn a_permutation_keeps_its_own_seed() {
    let pairs = |seed| -> Vec<_> {
        let pattern = json!({ "kind": "permutation", "seed": 5 });
        let table = json!({ "kind": "bulk", "size": "1 KB", "pattern": pattern });
        let context = WorkloadContext { seed, ..CONTEXT };
        let flows = check_open_loop(16, config(table).build(&context).unwrap());
        flows.iter().map(|flow| (flow.src, flow.dst)).collect()
    };
    assert_eq!(pairs(1), pairs(2));
}

#[test]
fn parts_of_a_mix_draw_from_streams_of_their_own() {
    let part = json!({ "kind": "poisson", "load": 0.1, "flows": 50 });
    let other = json!({ "kind": "poisson", "load": 0.1, "flows": 50, "class": 1 });
    let flows = run(&json!({ "kind": "mix", "parts": [part, other] }), &CONTEXT);
    let sizes = |class| -> Vec<_> {
        let mine = flows.iter().filter(|c| c.flow.class.get() == class);
        mine.map(|c| c.flow.size).collect()
    };
    assert_eq!((sizes(0).len(), sizes(1).len()), (50, 50));
    assert_ne!(sizes(0), sizes(1));
}

#[test]
fn unknown_keys_and_kinds_are_refused_and_units_are_compulsory() {
    for table in [
        json!({ "kind": "poison", "load": 0.5 }),
        json!({ "kind": "poisson", "laod": 0.5 }),
        json!({ "kind": "poisson", "sizes": { "kind": "pareto", "shap": 1.0 } }),
        json!({ "kind": "poisson", "pattern": { "kind": "uniform", "share": 1.0 } }),
        json!({ "kind": "incast", "senders": 3, "size": 1000 }),
        json!({ "kind": "incast", "senders": 3 }),
    ] {
        assert!(serde_json::from_value::<WorkloadConfig>(table.clone()).is_err(), "{table}");
    }
}

#[test]
fn the_schema_of_a_kind_lists_its_keys_with_their_documentation() {
    for kind in kinds() {
        let schema = (kind.schema)().to_value();
        let keys = schema["properties"].as_object().unwrap();
        assert!(!keys.is_empty(), "{}", kind.name);
        for (key, value) in keys {
            assert!(value["description"].is_string(), "{}.{key} says nothing", kind.name);
        }
        assert_eq!(schema["additionalProperties"], false, "{}", kind.name);
    }
    let all = schema_for!(WorkloadConfig).to_value();
    let named = |variant: &Value| {
        let summary = variant["description"].as_str().unwrap().replace('\n', " ");
        (variant["properties"]["kind"]["const"].as_str().unwrap().to_string(), summary)
    };
    let variants: Vec<_> = all["oneOf"].as_array().unwrap().iter().map(named).collect();
    let listed: Vec<_> =
        kinds().iter().map(|k| (k.name.to_string(), k.summary.to_string())).collect();
    assert_eq!(variants, listed);
}

#[path = "problem_tests.rs"]
mod problem_tests;

#[test]
fn gathering_nodes_all_send_to_one() {
    let table = |pattern: Value| {
        json!({ "kind": "bulk", "size": "1 KB", "pattern": pattern,
                "timing": { "rounds": 3, "period": "1 ns" } })
    };
    let some = json!({ "kind": "gather", "receiver": 2, "senders": [7, 5] });
    let flows = run(&table(some), &CONTEXT);
    let pairs: Vec<_> = flows.iter().map(|c| (c.flow.src.get(), c.flow.dst.get())).collect();
    assert_eq!(pairs, [(5, 2), (7, 2), (5, 2), (7, 2), (5, 2), (7, 2)]);
    let flows = run(&table(json!({ "kind": "gather" })), &CONTEXT);
    assert_eq!(flows.len(), 3 * 15);
    assert!(flows.iter().all(|c| c.flow.dst.get() == 0));
}

#[test]
fn gradients_are_those_of_vgg16_or_of_the_layers_given() {
    let sizes = |table: Value| {
        let flows = run(&table, &CONTEXT);
        flows.iter().map(|c| c.flow.size.get()).collect::<Vec<_>>()
    };
    let all = sizes(json!({ "kind": "parameter_server" }));
    assert_eq!((all.len(), all.iter().sum::<u64>()), (4 * 2 * 16, 4 * (500 << 20)));
    let exact = sizes(json!({ "kind": "parameter_server", "size": "0 B", "servers": 1 }));
    assert_eq!(exact[0], 4 * 4_097_000, "the last layer comes first");
    assert_eq!(exact.iter().sum::<u64>(), 4 * 4 * 138_357_544);
    let own = json!({ "kind": "parameter_server", "size": "0 B", "layers": ["7 B", "10 B"] });
    let own = sizes(own);
    assert_eq!(own, [3, 4, 3, 4, 3, 4, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5]);
}
