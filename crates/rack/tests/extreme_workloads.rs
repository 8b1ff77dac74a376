//! Workloads of any values: built or refused at once, in little memory, and what they offer makes sense.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kernel::Rate;
use proptest::prelude::*;
use rack::Workload;
use rack::workload::limits::{FLOW_MAX, START_MAX};
use rack::workload::{WorkloadConfig, WorkloadContext};
use serde_json::{Value, json};

/// The system's allocator, which counts what is in use.
struct Counting;

static NOW: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size() as u64, Ordering::Relaxed) + layout.size() as u64;
        MOST.fetch_max(now, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Some of each kind that can be built.
fn examples() -> Vec<Value> {
    let pareto = json!({ "kind": "pareto" });
    let points = json!({ "kind": "points", "points": [[1, 0.5], [1_000, 1.0]] });
    let poisson = |sizes: &Value, pattern: Value| json!({ "kind": "poisson", "load": 0.5, "flows": 500, "sizes": sizes, "pattern": pattern });
    let timing = json!({ "rounds": 3, "period": "1 ms", "jitter": "5 us" });
    vec![
        poisson(&pareto, json!({ "kind": "uniform" })),
        poisson(&points, json!({ "kind": "hot_spot", "share": 0.5, "nodes": [0, 1] })),
        poisson(&pareto, json!({ "kind": "pools" })),
        poisson(&pareto, json!({ "kind": "gather", "senders": [1] })),
        poisson(&pareto, json!({ "kind": "permutation", "pairs": 2 })),
        json!({ "kind": "poisson", "interarrival": "1 ns" }),
        json!({ "kind": "bulk", "size": "1 MB", "flows": 7, "timing": timing }),
        json!({ "kind": "bulk", "size": "1 MB",
                "pattern": { "kind": "partial_permutation", "share": 0.5 } }),
        json!({ "kind": "bulk", "size": "1 MB", "pattern": { "kind": "tornado" } }),
        json!({ "kind": "bulk", "size": "1 MB", "pattern": { "kind": "transpose" } }),
        json!({ "kind": "bulk", "size": "1 MB", "pattern": { "kind": "bit_reverse" } }),
        json!({ "kind": "incast", "senders": 1, "receiver": 1, "size": "1 KB", "timing": timing }),
        json!({ "kind": "outcast", "receivers": 1, "size": "1 KB" }),
        json!({ "kind": "all_to_all", "size": "10 KB", "order": "random" }),
        json!({ "kind": "all_to_all", "size": "10 KB", "parallel": 2 }),
        json!({ "kind": "all_to_all", "size": "10 KB", "timing": timing }),
        json!({ "kind": "shuffle", "mappers": 2, "reducers": 2, "size": "10 KB" }),
        json!({ "kind": "ring_all_reduce", "size": "1 GB", "nodes": 2, "rounds": 2 }),
        json!({ "kind": "tree_all_reduce", "size": "1 MB", "chunks": 4, "nodes": 2 }),
        json!({ "kind": "expert_all_to_all", "size": "4 KB", "expert": "10 us", "nodes": 2 }),
        json!({ "kind": "parameter_server", "workers": 1, "servers": 1, "iterations": 2 }),
        json!({ "kind": "parameter_server", "workers": 1, "servers": 1, "size": "0 B",
                "layers": ["1 KB", "2 KB"] }),
        json!({ "kind": "pipeline", "size": "1 MB", "nodes": 2, "forward": "1 us" }),
        json!({ "kind": "requests", "clients": 1, "load": 0.1, "requests": 100 }),
        json!({ "kind": "requests", "clients": 1, "outstanding": 2, "rounds": 5,
                "think_time": "1 us" }),
    ]
}

/// Keys with values of every size that their types can hold, whatever the kind has of them.
fn change() -> impl Strategy<Value = (&'static str, Value)> {
    let numbers = prop_oneof![
        prop::sample::select(
            &[0, 1, 2, 255, 1 << 16, 1 << 20, 1 << 22, 1 << 32, 1 << 53, 1 << 61, u64::MAX][..]
        ),
        any::<u64>(),
        0u64..100_000,
    ];
    let count = prop::sample::select(
        &[
            "flows",
            "senders",
            "receivers",
            "receiver",
            "sender",
            "mappers",
            "reducers",
            "parallel",
            "nodes",
            "rounds",
            "chunks",
            "micro_batches",
            "workers",
            "servers",
            "iterations",
            "clients",
            "requests",
            "outstanding",
            "pattern.pairs",
            "pattern.receiver",
            "pattern.nodes.0",
            "pattern.senders.0",
            "timing.rounds",
            "class",
            "sizes.points.1.0",
        ][..],
    );
    let size = prop::sample::select(
        &[
            "size",
            "sizes.mean",
            "sizes.cap",
            "sizes.size",
            "layers.0",
            "request.size",
            "response.size",
        ][..],
    );
    let time = prop::sample::select(
        &[
            "interarrival",
            "until",
            "start",
            "compute",
            "expert",
            "forward",
            "backward",
            "jitter",
            "service_time",
            "think_time",
            "timing.start",
            "timing.period",
            "timing.jitter",
        ][..],
    );
    let part = prop::sample::select(
        &["load", "sizes.shape", "pattern.share", "pattern.compute", "pattern.traffic.0.1"][..],
    );
    let parts = prop::sample::select(
        &[-1.0, 0.0, 1e-300, 1e-9, 0.01, 0.5, 1.0, 1.0 + 1e-12, 1.05, 7.0, 1e9, 1e300, f64::MAX][..],
    );
    prop_oneof![
        (count, numbers.clone()).prop_map(|(key, number)| (key, json!(number))),
        (size, numbers.clone()).prop_map(|(key, number)| (key, json!(format!("{number} B")))),
        (time, numbers).prop_map(|(key, number)| (key, json!(format!("{number} ps")))),
        (part, parts).prop_map(|(key, number)| (key, json!(number))),
        Just(("sizes.truncation", json!("rescale"))),
        Just(("pattern.shape", json!(vec![1; 100_000]))),
    ]
}

/// Sets a key of a table, if the tables above it are there.
fn set(table: &mut Value, key: &str, value: Value) {
    let (above, key) = key.rsplit_once('.').unwrap_or(("", key));
    let mut steps = above.split('.').filter(|step| !step.is_empty());
    let place = steps.try_fold(table, |table, step| match table {
        Value::Array(list) => list.get_mut(step.parse::<usize>().ok()?),
        table => table.get_mut(step),
    });
    match (place, key.parse::<usize>()) {
        (Some(Value::Array(list)), Ok(at)) if at < list.len() => list[at] = value,
        (Some(Value::Object(table)), _) => {
            table.insert(key.into(), value);
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_values_make_a_workload_or_problems_at_once(
        example in prop::sample::select(examples()),
        changes in prop::collection::vec(change(), 0..4),
        copies in prop::sample::select(&[1usize, 1, 1, 3, 40][..]),
        nodes in prop::sample::select(
            &[0u32, 1, 2, 3, 16, 64, 1_000, 65_536, 100_000, 1 << 20, (1 << 20) + 1, u32::MAX][..]
        ),
        bps in prop::sample::select(&[0, 1, 10_000_000_000, u64::MAX][..]),
        seed: u64,
    ) {
        let mut table = example;
        for (key, value) in changes {
            set(&mut table, key, value);
        }
        if copies > 1 {
            table = json!({ "kind": "mix", "parts": vec![table; copies] });
        }
        // What a key's type cannot hold, or a kind does not have, is refused by the reader.
        let Ok(config) = serde_json::from_value::<WorkloadConfig>(table.clone()) else { return Ok(()) };
        let context = WorkloadContext { nodes, seed, load_rate: Rate::from_bps(bps) };
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let begin = Instant::now();
        let built = config.build(&context);
        let (took, most) = (begin.elapsed(), MOST.load(Ordering::Relaxed).saturating_sub(before));
        prop_assert!(most < 1 << 30, "{} takes {most} B", table);
        let _ = config.nominal(&context);
        let mut workload = match built {
            Err(problems) => {
                prop_assert!(took < Duration::from_secs(60), "{} takes {took:?}", table);
                prop_assert!(!problems.is_empty(), "{}", table);
                return Ok(());
            }
            Ok(workload) => workload,
        };
        prop_assert!(took < Duration::from_secs(60), "{} takes {took:?}", table);
        let mut last = kernel::Time::ZERO;
        for _ in 0..50 {
            let Some(start) = workload.next_start() else { break };
            let flow = workload.next_flow().expect("it was announced");
            prop_assert_eq!(flow.start, start);
            prop_assert!(flow.start >= last && flow.src != flow.dst, "{:?}", flow);
            prop_assert!(flow.src.get() < nodes && flow.dst.get() < nodes, "{:?}", flow);
            prop_assert!(flow.size.get() > 0 && flow.size <= FLOW_MAX, "{:?}", flow);
            last = flow.start;
            if workload.is_reactive() {
                workload.ended(flow.id, flow.start);
            } else {
                prop_assert!(flow.start <= START_MAX, "{:?}", flow);
            }
        }
        let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
        prop_assert!(most < 3 << 29, "{} takes {most} B", table);
    }
}
