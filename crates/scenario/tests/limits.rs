//! Every key of every fabric in the registry with the least, the largest and other odd values: each ends as
//! a plan that can be built or as a problem, soon, and without taking memory.

mod racks;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use kernel::{Bytes, Time};
use rack::{Advance, Class, Flow, FlowId, NodeId};
use scenario::registry::Planned;
use scenario::{Registry, schema};
use serde_json::{Value, json};

/// Longest time of a plan and its rack (our choice: some machines are busy).
const LIMIT: Duration = Duration::from_secs(60);

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

/// Builds it, and carries a flow for a while.
fn build(plan: &dyn Planned) {
    let mut fabric = plan.rack(&[], 1).expect("nothing fails in it");
    let (src, dst, start) = (NodeId::new(0), NodeId::new(1), Time::ZERO);
    let (id, class) = (FlowId::new(0), Class::new(0));
    for size in [1, 1 << 40].map(Bytes::new) {
        let _ = fabric.ideal_fct(&Flow { id, src, dst, size, start, class });
    }
    fabric.hint_sizes(&[Bytes::new(1_000)]);
    fabric.offer(&Flow { id, src, dst, size: Bytes::new(1_000), start, class });
    assert_ne!(fabric.advance(Time::from_ps(2_000_000), &mut ()), Advance::Paused);
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
                    build(&*planned);
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
fn odd_values_of_any_fabric_end_as_plans_or_problems() {
    let registry = Registry::standard();
    for rack in racks::all(&registry) {
        let (kind, table) = rack.table();
        check(&kind, &table);
    }
}

/// Racks with other tables than the usual ones.
#[test]
fn odd_values_of_other_tables_end_as_plans_or_problems() {
    let registry = Registry::standard();
    let schema = schema::scenario(&registry);
    let small = racks::all(&registry);
    let mut seen = BTreeSet::new();
    for rack in small.iter().filter(|rack| seen.insert(rack.table().0)) {
        for (kind, table) in racks::others(rack, &schema, &registry) {
            check(&kind, &table);
        }
    }
}
