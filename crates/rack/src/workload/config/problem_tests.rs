//! What is said about each mistake, word for word: people read it.

use super::*;

#[track_caller]
fn check(table: Value, messages: &[&str]) {
    let Err(problems) = config(table.clone()).build(&CONTEXT) else {
        panic!("no problem with {table}")
    };
    let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, messages, "{table}");
}

#[test]
fn loads_and_paces() {
    let poisson = |more: Value| {
        let mut table = json!({ "kind": "poisson" });
        table.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        table
    };
    check(
        poisson(json!({})),
        &["load: missing; add load = 0.5, say, or interarrival = \"12.65 ns\""],
    );
    check(
        poisson(json!({ "load": -0.5, "flows": 0 })),
        &[
            "load: found -0.5; expected a load above 0, such as 0.5",
            "flows: found 0; expected at least one flow",
        ],
    );
    check(
        poisson(json!({ "load": 0.5, "interarrival": "1 ns" })),
        &["interarrival: load and interarrival are both given; remove one"],
    );
    check(
        poisson(json!({ "interarrival": "0 ps" })),
        &["interarrival: found 0 ps; expected a time above zero"],
    );
    let context = WorkloadContext { load_rate: Rate::default(), ..CONTEXT };
    let problems = config(poisson(json!({ "load": 0.5 }))).build(&context).err().unwrap();
    assert_eq!(problems[0].message, "the node rate that load refers to is 0 bps");
    let alone = WorkloadContext { nodes: 1, ..CONTEXT };
    let problems = config(poisson(json!({ "load": 0.5 }))).build(&alone).err().unwrap();
    assert_eq!(problems[0].message, "the rack has 1 node; a flow needs two");
}

#[test]
fn sizes() {
    let sizes = |sizes: Value| json!({ "kind": "poisson", "load": 0.5, "sizes": sizes });
    check(
        sizes(json!({ "kind": "fixed", "size": "0 B" })),
        &["sizes.size: found 0 B; a flow carries at least 1 B"],
    );
    check(
        sizes(json!({ "kind": "pareto", "shape": 1.0, "mean": "0 B" })),
        &[
            "sizes.shape: found 1; at or below 1 the mean is infinite: use a larger shape, or a cap \
             with truncation = \"rescale\"",
            "sizes.mean: found 0 B; expected a mean above zero, such as \"100 KB\"",
        ],
    );
    check(
        sizes(json!({ "kind": "pareto", "shape": -1.0, "truncation": "rescale" })),
        &[
            "sizes.shape: found -1; expected a number above 1",
            "sizes.truncation: found \"rescale\" without a cap; add cap = \"1 GB\", say",
        ],
    );
    check(
        sizes(json!({ "kind": "pareto", "cap": "50 KB" })),
        &["sizes.cap: found 50 KB; expected more than the mean, 100 KB"],
    );
    check(
        sizes(json!({ "kind": "table", "name": "web search" })),
        &[
            "sizes.name: \"web search\" may mean homa_w5_dctcp_websearch, dctcp_websearch; say which",
        ],
    );
    check(
        sizes(json!({ "kind": "points", "points": [[10, 0.5]] })),
        &["sizes.points: the last share must be exactly 1, not 0.5"],
    );
    let unknown = config(sizes(json!({ "kind": "table", "name": "W9" }))).build(&CONTEXT);
    let problems = unknown.err().unwrap();
    let message = &problems[0].message;
    assert!(message.starts_with("unknown table \"W9\"; expected one of homa_w1_fb_memcached, "));
}

#[test]
fn patterns() {
    let context = |nodes| WorkloadContext { nodes, ..CONTEXT };
    let problem = |pattern: Value, nodes| {
        let table = json!({ "kind": "poisson", "load": 0.5, "pattern": pattern });
        let problems = config(table).build(&context(nodes)).err().unwrap();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
    };
    for kind in ["bit_complement", "bit_reverse", "bit_shuffle"] {
        assert_eq!(
            problem(json!({ "kind": kind }), 12),
            "pattern.kind: patterns of bits need a power of two of nodes, and the rack has 12; 8 \
             and 16 are powers of two"
        );
    }
    assert_eq!(
        problem(json!({ "kind": "transpose" }), 12),
        "pattern.kind: a transpose needs a square number of nodes, and the rack has 12; 9 and 16 \
         are squares"
    );
    assert_eq!(
        problem(json!({ "kind": "tornado", "shape": [8, 8] }), 12),
        "pattern.shape: found [8, 8]; expected sizes whose product is 12, the nodes"
    );
    assert_eq!(
        problem(json!({ "kind": "tornado" }), 2),
        "pattern.kind: in a rack of 2 nodes this pattern sends nothing anywhere"
    );
    assert_eq!(
        problem(json!({ "kind": "partial_permutation", "share": 0.01 }), 12),
        "pattern.share: found 0.01, which is 0 of 12 nodes; expected a share of at most 1 and at \
         least one node"
    );
    assert_eq!(
        problem(json!({ "kind": "hot_spot", "share": 1.5, "nodes": [1, 12, 1] }), 12),
        "pattern.share: found 1.5; expected 0 to 1 | pattern.nodes: node 12 does not exist: the \
         rack has nodes 0 to 11 | pattern.nodes: a node is named twice; remove one"
    );
    assert_eq!(
        problem(json!({ "kind": "pools", "compute": 0.5 }), 12),
        "pattern.storage: the three shares of the nodes add up to 1.3333333333333333, not 1"
    );
    assert!(
        problem(json!({ "kind": "pools" }), 2).starts_with(
            "pattern.traffic: there is traffic from compute to memory, but in a rack of 2 those \
             pools have 0 and 1 nodes"
        ),
        "{}",
        problem(json!({ "kind": "pools" }), 2)
    );
}

#[test]
fn bursts() {
    check(
        json!({ "kind": "incast", "senders": 16, "receiver": 99, "size": "0 B",
                "timing": { "rounds": 2 } }),
        &[
            "senders: found 16; expected 1 to 15 in this rack",
            "receiver: node 99 does not exist: the rack has nodes 0 to 15",
            "size: found 0 B; a flow carries at least 1 B",
            "timing.period: missing for 2 rounds; add period = \"1 ms\", say",
        ],
    );
    check(
        json!({ "kind": "outcast", "receivers": 0, "size": "1 B",
                "timing": { "rounds": 2, "period": "1 us", "jitter": "2 us" } }),
        &[
            "receivers: found 0; expected 1 to 15 in this rack",
            "timing.jitter: found 2 us; expected at most the period, 1 us",
        ],
    );
    check(
        json!({ "kind": "bulk", "size": "1 B", "flows": 20_000_000,
                "timing": { "rounds": 1_000_000, "period": "100 s" } }),
        &[
            "flows: this makes 20000000 flows in one list; at most 4000000 fit",
            "timing.rounds: the last round starts after the 30 days that a run takes",
        ],
    );
    check(
        json!({ "kind": "all_to_all", "size": "1 B", "parallel": 0,
                "timing": { "rounds": 1_000_000, "period": "1 us" } }),
        &[
            "parallel: found 0; expected at least one flow open",
            "timing.period: found 1 us; with parallel, a flow starts when another ends",
            "timing.rounds: this makes 240000000 flows in one list; at most 4000000 fit",
        ],
    );
    check(
        json!({ "kind": "shuffle", "mappers": 17, "size": "1 B", "timing": { "rounds": 0 } }),
        &[
            "mappers: found 17; expected 1 to 16 in this rack",
            "timing.rounds: found 0; expected at least one round",
        ],
    );
}

#[test]
fn collectives_and_requests() {
    check(
        json!({ "kind": "ring_all_reduce", "size": "3 B", "nodes": 17, "rounds": 0 }),
        &[
            "nodes: found 17; expected 2 to 16 in this rack",
            "rounds: found 0; expected at least one round",
            "size: found 3 B; expected at least a byte for each of 17 nodes",
        ],
    );
    check(
        json!({ "kind": "tree_all_reduce", "size": "3 B", "chunks": 4 }),
        &["chunks: found 4; expected 1 to 3, one for each byte"],
    );
    check(
        json!({ "kind": "expert_all_to_all", "size": "0 B", "rounds": 1_000_000 }),
        &[
            "rounds: this makes 480000000 flows in one list; at most 4000000 fit",
            "size: found 0 B; a flow carries at least 1 B",
        ],
    );
    check(
        json!({ "kind": "requests", "clients": 0, "outstanding": 2, "load": 0.1,
                "request": { "kind": "fixed", "size": "0 B" } }),
        &[
            "clients: found 0; expected 1 to 16 in this rack",
            "load: this is a closed loop, for outstanding is given; remove one of the two",
            "request.size: found 0 B; a flow carries at least 1 B",
        ],
    );
    check(
        json!({ "kind": "requests", "load": 0.1, "rounds": 3, "start": "1 us", "requests": 0 }),
        &[
            "rounds: this is an open loop, for outstanding is not given; remove one of the two",
            "start: this is an open loop, for outstanding is not given; remove one of the two",
            "requests: found 0; expected at least one request",
        ],
    );
}

#[test]
fn parts_of_a_mix() {
    check(
        json!({ "kind": "mix", "parts": [] }),
        &["parts: found none; expected at least one workload"],
    );
    check(
        json!({ "kind": "mix", "parts": [
            { "kind": "incast", "senders": 99, "size": "1 B" },
            { "kind": "poisson", "load": 0.5 },
            { "kind": "mix", "parts": [{ "kind": "poisson", "load": 0.0 }] },
        ] }),
        &[
            "parts[0].senders: found 99; expected 1 to 15 in this rack",
            "parts[2].parts[0].load: found 0; expected a load above 0, such as 0.5",
        ],
    );
}

#[test]
fn gathering() {
    let table = |pattern: Value| json!({ "kind": "bulk", "size": "1 KB", "pattern": pattern });
    check(
        table(json!({ "kind": "gather", "receiver": 16, "senders": [] })),
        &[
            "pattern.receiver: node 16 does not exist: the rack has nodes 0 to 15",
            "pattern.senders: found no node; expected at least one",
        ],
    );
    check(
        table(json!({ "kind": "gather", "senders": [3, 0, 3, 99] })),
        &[
            "pattern.senders: node 0 is the receiver; remove it",
            "pattern.senders: node 3 is named twice; remove one",
            "pattern.senders: node 99 does not exist: the rack has nodes 0 to 15",
        ],
    );
}

#[test]
fn parameter_servers() {
    let table = |more: Value| {
        let mut table = json!({ "kind": "parameter_server" });
        table.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        table
    };
    check(
        table(json!({ "workers": 0, "iterations": 0 })),
        &["workers: found 0; expected at least one", "iterations: found 0; expected at least one"],
    );
    check(
        table(json!({ "workers": 15 })),
        &["workers: 15 workers and 2 servers are 17 nodes; the rack has 16"],
    );
    check(table(json!({ "layers": [] })), &["layers: found none; expected at least one"]);
    check(
        table(json!({ "size": "1 KB" })),
        &["size: layer 13 has 1 B; expected at least a byte for each of 2 servers"],
    );
    check(
        table(json!({ "size": "0 B", "layers": ["0 B"] })),
        &["layers: layer 1 has 0 B; expected at least a byte for each of 2 servers"],
    );
    check(
        table(json!({ "threads": 0, "compute": "1 us", "jitter": "2 us" })),
        &[
            "threads: found 0; expected at least one",
            "compute: 1 us: with `threads` no iteration waits for another; leave it out",
            "jitter: 2 us: with `threads` no iteration waits for another; leave it out",
        ],
    );
    check(
        table(json!({ "iterations": 100_000 })),
        &["iterations: this makes 12800000 flows in one list; at most 4000000 fit"],
    );
}

#[test]
fn pipelines() {
    let table = |more: Value| {
        let mut table = json!({ "kind": "pipeline", "size": "1 KB" });
        table.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        table
    };
    check(
        table(json!({ "nodes": 17, "micro_batches": 0, "rounds": 0, "size": "0 B" })),
        &[
            "nodes: found 17; expected 2 to 16 in this rack",
            "micro_batches: found 0; expected at least 1",
            "rounds: found 0; expected at least 1",
            "size: found 0 B; a flow carries at least 1 B",
        ],
    );
    check(
        table(json!({ "micro_batches": 1_000_000 })),
        &["micro_batches: this makes 30000000 flows in one list; at most 4000000 fit"],
    );
    check(
        table(json!({ "forward": "100000 s" })),
        &["forward: all computations take more than 30 days, when a run ends at the latest"],
    );
}
