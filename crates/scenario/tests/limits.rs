//! Every key of the packet-switched racks, of PL2 and of SCOC with the least, the largest and other odd
//! values: each ends as a plan that can be built or as a problem, soon, and without taking memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use kernel::{Bytes, Time};
use rack::{Advance, Class, Fabric, Flow, FlowId, NodeId};
use scenario::Registry;
use serde_json::{Value, json};

/// Longest time of a plan and its rack (our choice: some machines are busy).
const LIMIT: Duration = Duration::from_secs(5);

/// The paths of all values in a table that are no tables.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(table) => {
            table.iter().for_each(|(key, value)| leaves(value, &format!("{at}/{key}"), found));
        }
        _ => found.push(at.to_string()),
    }
}

/// Odd values in the place of one.
fn odd(value: &Value) -> Vec<Value> {
    let quantities = [
        "0 ns",
        "1 ps",
        "1000 s",
        "18446744 s",
        "0 bps",
        "1 bps",
        "1 Kbps",
        "999 Tbps",
        "18 Ebps",
        "0 B",
        "1 B",
        "64 B",
        "65535 B",
        "1 TB",
        "16 EB",
    ];
    match value {
        Value::String(_) => quantities.iter().map(|&text| text.into()).collect(),
        Value::Number(_) => {
            let numbers =
                [0u64, 1, 2, 3, 63, 65_535, 65_536, u64::from(u32::MAX), u64::MAX].map(Value::from);
            numbers.into_iter().chain([json!(-1), json!(0.5), json!(1e308)]).collect()
        }
        Value::Bool(is) => vec![json!(!is)],
        _ => vec![json!(0), json!([]), json!("0 ns")],
    }
}

/// Plans and builds it, and carries a flow for a while.
fn build(kind: &str, table: &Value) {
    macro_rules! of {
        ($($fabric:ident)::+) => {{
            let config: $($fabric)::+::Config = serde_json::from_value(table.clone()).unwrap();
            let plan = config.plan().unwrap();
            let mut fabric = $($fabric)::+::Rack::new(plan, 1);
            let (src, dst, start) = (NodeId::new(0), NodeId::new(1), Time::ZERO);
            let (id, class) = (FlowId::new(0), Class::new(0));
            for size in [1, 1 << 40].map(Bytes::new) {
                let _ = fabric.ideal_fct(&Flow { id, src, dst, size, start, class });
            }
            fabric.hint_sizes(&[Bytes::new(1_000)]);
            fabric.offer(&Flow { id, src, dst, size: Bytes::new(1_000), start, class });
            assert_ne!(fabric.advance(Time::from_ps(2_000_000), &mut ()), Advance::Paused);
        }};
    }
    match kind {
        "packet-switched" => of!(packet_switched),
        "pl2" => of!(pl2),
        "scoc" => of!(scoc),
        _ => of!(scoc::network),
    }
}

/// One key after the other of this table.
fn check(kind: &str, table: &Value) {
    let registry = Registry::standard().with_memory(Bytes::new(1 << 28));
    let fabric = registry.fabric(kind).expect("it is registered");
    let planned = fabric.plan(table.clone(), registry.memory()).unwrap_or_else(|p| panic!("{p:?}"));
    let whole = planned.config().clone();
    let (mut keys, mut wrong) = (Vec::new(), Vec::new());
    leaves(&whole, "", &mut keys);
    for key in keys {
        for value in odd(whole.pointer(&key).expect("it is there")) {
            let mut table = whole.clone();
            *table.pointer_mut(&key).expect("it is there") = value.clone();
            let began = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                if let Ok(planned) = fabric.plan(table.clone(), registry.memory()) {
                    build(kind, planned.config());
                }
            }));
            if outcome.is_err() || began.elapsed() > LIMIT {
                wrong.push(format!("{kind}: {key} = {value}: {:?}", began.elapsed()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn odd_values_of_packet_switched_racks_end_as_plans_or_problems() {
    for kind in [
        "newreno", "cubic", "dctcp", "swift", "ndp", "dcqcn", "homa", "rds", "raw", "mixed",
        "fluid",
    ] {
        let topology = json!({ "kind": "single-switch", "hosts": 4 });
        check("packet-switched", &json!({ "topology": topology, "transport": { "kind": kind } }));
    }
    for topology in [
        json!({ "kind": "leaf-spine", "hosts": 8, "radix": 4 }),
        json!({ "kind": "three-tier", "hosts": 8, "radix": 4 }),
        json!({ "kind": "torus", "dimensions": [3, 3] }),
    ] {
        check("packet-switched", &json!({ "topology": topology }));
    }
}

#[test]
fn odd_values_of_pl2_end_as_plans_or_problems() {
    check("pl2", &json!({ "nodes": 4, "entering": { "nodes": [1] } }));
    check("pl2", &json!({ "nodes": 4, "outstanding": "destination" }));
    for schedule in ["ideal", "matching"] {
        check("pl2", &json!({ "nodes": 4, "switch": { "schedule": schedule } }));
    }
}

#[test]
fn odd_values_of_scoc_end_as_plans_or_problems() {
    for switch in ["scoc", "flat", "hiera", "crrd", "output-queued"] {
        check("scoc", &json!({ "nodes": 16, "switch": { "kind": switch } }));
    }
    for spine in ["scoc", "flat", "output-queued"] {
        let spine = json!({ "kind": spine });
        check("scoc-network", &json!({ "nodes": 8, "leaves": 4, "spines": 2, "spine": spine }));
    }
}
