//! The table as it is written: what follows from it, and what is refused.

use ::rack::fault::Component;
use ::rack::topology::Shape;
use ::rack::{Fault, NodeId};
use kernel::{Bytes, Rate, Time};
use packets::Routing;
use packets::config::{FlowControl, Marking};
use serde_json::{Value, json};

use crate::switch::Trimming;
use crate::{Config, Plan};

fn config(table: Value) -> Config {
    serde_json::from_value(table).expect("the table has the schema's shape")
}

fn plan(table: Value) -> Plan {
    config(table).plan().expect("the table is sound")
}

/// The problems of a table, as they are shown.
#[track_caller]
fn refuses(table: Value, expected: &[&str]) {
    let problems = config(table.clone()).plan().expect_err("the table is refused");
    let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "{table}");
}

#[test]
fn ps1_nothing_written_is_the_packet_switched_rack_of_shoal() {
    let plan = plan(json!({}));
    assert_eq!(plan.config.nodes, 512);
    assert_eq!(plan.config.load_rate, Rate::from_gbps(50));
    assert_eq!(plan.bill.switches, 24);
    assert_eq!(plan.network.config.mtu, Bytes::new(1500));
    assert_eq!(plan.config.switch.port_buffer, Some(Bytes::new(150_000)));
    assert_eq!(plan.config.routing, Some(Routing::Ecmp));
}

#[test]
fn ps2_a_transport_brings_its_switches() {
    let ndp = plan(json!({ "transport": { "kind": "ndp" } })).config;
    assert_eq!(ndp.switch.port_buffer, Some(Bytes::new(12 * 1500)));
    assert_eq!(ndp.routing, Some(Routing::SourcePath));
    assert!(matches!(ndp.switch.trimming, Some(Trimming::Header(_))));
    let dctcp = plan(json!({ "transport": { "kind": "dctcp" } })).config;
    assert!(matches!(dctcp.switch.marking, Some(Marking::Step(_))));
    let dcqcn = plan(json!({ "transport": { "kind": "dcqcn" } })).config;
    let Some(FlowControl::Pfc(pfc)) = dcqcn.switch.flow_control else { panic!("no pauses") };
    assert_eq!((pfc.priorities, pfc.xoff), (vec![3], Bytes::ZERO));
    let homa = plan(json!({ "transport": { "kind": "homa" } })).config;
    assert_eq!(homa.switch.port_buffer, Some(Bytes::new(1000 * 1500)));
    let raw = plan(json!({ "transport": { "kind": "raw" } })).config;
    assert!(matches!(raw.switch.flow_control, Some(FlowControl::Pfc(_))));
}

#[test]
fn ps2_what_is_written_stands() {
    let table = json!({
        "transport": { "kind": "ndp" },
        "routing": "random-spray",
        "switch": { "port_buffer": "12 KB" },
    });
    let config = plan(table).config;
    assert_eq!(config.switch.port_buffer, Some(Bytes::new(12_000)));
    assert_eq!(config.routing, Some(Routing::RandomSpray));
    assert!(matches!(config.switch.trimming, Some(Trimming::Header(_))));
}

#[test]
fn ps2_larger_packets_get_larger_queues() {
    let config = plan(json!({ "transport": { "kind": "ndp", "mtu": "9 KB" } })).config;
    assert_eq!(config.switch.port_buffer, Some(Bytes::new(12 * 9000)));
}

#[test]
fn a_resolved_table_gives_the_same_plan() {
    for kind in [
        "newreno", "cubic", "dctcp", "swift", "ndp", "dcqcn", "homa", "rds", "raw", "mixed",
        "fluid",
    ] {
        let first = plan(json!({ "nodes": 64, "transport": { "kind": kind } }));
        let text = serde_json::to_value(&first.config).unwrap();
        let again = plan(text.clone());
        assert_eq!(first.config, again.config, "{text}");
        assert_eq!(first.network.config.queues, again.network.config.queues, "{text}");
    }
}

#[test]
fn nodes_take_the_place_of_the_topology_s_hosts() {
    let hosts = |table: Value| plan(table).network.topology.hosts();
    assert_eq!(hosts(json!({ "nodes": 64 })), 64);
    assert_eq!(hosts(json!({ "topology": { "kind": "single-switch" }, "nodes": 9 })), 9);
    assert_eq!(hosts(json!({ "topology": { "kind": "three-tier" }, "nodes": 128 })), 128);
    let torus = json!({ "topology": { "kind": "torus", "dimensions": [3, 4] }, "nodes": 12 });
    assert_eq!(hosts(torus), 12);
    refuses(
        json!({ "topology": { "kind": "torus", "dimensions": [3, 4] }, "nodes": 13 }),
        &["nodes: 13, but topology.dimensions makes 12; remove one of the two"],
    );
    refuses(
        json!({ "topology": { "kind": "leaf-spine", "hosts": 32 }, "nodes": 64 }),
        &["nodes: 64, but topology.hosts makes 32; remove one of the two"],
    );
}

#[test]
fn a_node_of_a_torus_has_the_rate_of_all_its_links() {
    let plan = plan(json!({ "topology": { "kind": "torus", "dimensions": [4, 4] } }));
    assert_eq!(plan.config.load_rate, Rate::from_gbps(40));
    assert_eq!(plan.bill.switches, 0);
}

#[test]
fn ps3_networks_that_cannot_be_are_refused() {
    let graph = |edges: &str| {
        json!({ "topology": {
            "kind": "graph", "hosts": 2, "edges": format!("a,b,rate,delay\n{edges}\n"),
        } })
    };
    refuses(
        graph("0,2,10 Gbps,20 ns\n1,3,10 Gbps,20 ns"),
        &["topology.edges: no path joins host 1 to host 0; add a link from its side of the \
           network to the other"],
    );
    refuses(
        graph("0,1,10 Gbqs,20 ns"),
        &["topology.edges: line 2, column rate: found \"10 Gbqs\"; expected a rate such as \
           \"100 Gbps\""],
    );
    refuses(
        json!({ "nodes": 4096 }),
        &["topology.hosts: 4096 hosts do not fit two tiers of 64-port switches; expected at most \
           2048, more ports or three tiers"],
    );
    refuses(
        json!({ "topology": { "kind": "leaf-spine", "radix": 63 } }),
        &["topology.radix: a leaf of 63 ports does not divide 1 to 1; expected a multiple of 2"],
    );
}

#[test]
fn ps3_queues_that_cannot_be_are_refused() {
    refuses(
        json!({ "switch": { "port_buffer": "0 B", "flow_control": { "kind": "pfc" } } }),
        &["switch.port_buffer: 0 B holds no packet of 1.5 KB; expected at least that"],
    );
    refuses(
        json!({ "switch": {
            "port_buffer": "30 KB", "marking": { "kind": "step", "threshold": "45 KB" },
        } }),
        &["switch.marking.threshold: 45 KB is never reached in a port_buffer of 30 KB; lower it"],
    );
    refuses(
        json!({ "loss_rate": 1.0 }),
        &["loss_rate: 1 losses a packet; expected 0 or more and below 1"],
    );
}

#[test]
fn ps4_a_transport_is_refused_where_it_cannot_be_carried() {
    let switch =
        |kind: &str, switch: Value| json!({ "transport": { "kind": kind }, "switch": switch });
    refuses(
        switch("ndp", json!({ "trimming": { "kind": "none" } })),
        &[
            "switch.trimming: none, but ndp learns of full queues by trimmed packets; remove it, or \
           set kind = \"header\"",
        ],
    );
    refuses(
        switch("ndp", json!({ "trimming": { "kind": "header", "header": "40 B" } })),
        &["switch.trimming.header: 40 B, but transport.header is 64 B; make them equal"],
    );
    refuses(
        switch("ndp", json!({ "flow_control": { "kind": "pfc" } })),
        &["switch.trimming: cuts what flow control would hold back; choose one of the two"],
    );
    refuses(
        switch("dctcp", json!({ "marking": { "kind": "none" } })),
        &["switch.marking: none, but dctcp slows down only for marks; remove it, or set kind = \
           \"step\""],
    );
    refuses(
        json!({ "transport": { "kind": "cubic", "ecn": true } }),
        &[
            "transport.ecn: true, but no switch marks packets; set switch.marking.kind = \"step\" or \
           \"red\"",
        ],
    );
    refuses(
        switch("raw", json!({ "flow_control": { "kind": "none" } })),
        &[
            "switch.flow_control: none, but raw sends a lost packet only once; set kind = \"pfc\", or \
           transport.losses = \"repeat\" or \"forget\"",
        ],
    );
    // 64 ports, of which one may have brought in all that waits: 20 KB / 64; then 8 (30 KB - 20 KB) /
    // (8 + 8), which is not above 5 KB (DCQCN §4).
    refuses(
        switch("dcqcn", json!({ "flow_control": { "kind": "pfc", "xoff": "20 KB" } })),
        &[
            "switch.marking.min: 5 KB, but switches may pause senders before they mark unless it is \
           below 312 B (DCQCN §4); lower it, raise switch.port_buffer, or leave out \
           switch.flow_control.xoff",
        ],
    );
    let small = json!({ "port_buffer": "30 KB", "flow_control": {
        "kind": "pfc", "priorities": [3], "headroom": "20 KB",
    } });
    refuses(
        switch("dcqcn", small),
        &[
            "switch.marking.min: 5 KB, but switches may pause senders before they mark unless it is \
           below 5 KB (DCQCN §4); lower it, raise switch.port_buffer, or leave out \
           switch.flow_control.xoff",
        ],
    );
    refuses(
        json!({ "transport": { "kind": "raw" }, "loss_rate": 0.01 }),
        &["loss_rate: 0.01, but raw sends a lost packet only once; set transport.losses = \
           \"repeat\" or \"forget\", or let nothing be lost"],
    );
}

#[test]
fn ps4_a_transport_s_own_mistakes_stand_under_its_table() {
    refuses(
        json!({ "transport": { "kind": "ndp", "mtu": "10 KB" } }),
        &["transport.mtu: 10 KB; expected at most 9.216 KB"],
    );
    refuses(
        json!({ "transport": { "kind": "dctcp", "stream": { "initial_window": 0 } } }),
        &["transport.stream.initial_window: 0; expected from 1 to 65535"],
    );
    refuses(
        json!({ "transport": { "kind": "raw", "mtu": "40 B" } }),
        &["transport.mtu: 40 B leaves no room for payload behind a header of 42 B; raise it"],
    );
    // Absurd sizes are refused, not multiplied.
    refuses(
        json!({ "transport": { "kind": "ndp", "mtu": "9000000 TB" } }),
        &["transport.mtu: 9000000 TB; expected at most 9.216 KB"],
    );
}

#[test]
fn every_problem_is_told_at_once() {
    refuses(
        json!({
            "nodes": 100_000,
            "transport": { "kind": "ndp", "initial_window": 0 },
            "equipment": { "nic_watts": -1.0 },
        }),
        &[
            "transport.initial_window: 0; expected at least 1",
            "equipment.nic_watts: -1.0; expected at least 0",
            "topology.hosts: 100000 hosts do not fit two tiers of 64-port switches; expected at \
             most 2048, more ports or three tiers",
        ],
    );
}

#[test]
fn faults_must_be_of_this_rack() {
    let fault = |component| Fault { component, at: Time::ZERO, until: None };
    let small = || plan(json!({ "nodes": 64 }));
    let good = [Component::Node(NodeId::new(3)), Component::Leaf(1), Component::Spine(0)];
    assert!(small().with_faults(&good.map(fault)).is_ok());
    let problems = small().with_faults(&[fault(good[0]), fault(Component::Leaf(2))]).unwrap_err();
    assert_eq!(problems[0].to_string(), "1: there is no leaf 2; this network has 2 leaves");
    let raw = plan(json!({ "transport": { "kind": "raw" } }));
    let problems = raw.with_faults(&[fault(good[0])]).unwrap_err();
    assert!(problems[0].message.contains("only once"), "{problems:?}");
}

#[test]
fn unknown_keys_are_refused() {
    let unknown = serde_json::from_value::<Config>(json!({ "swich": {} }));
    assert!(unknown.unwrap_err().to_string().contains("unknown field `swich`"));
    assert_eq!(Config::default().topology, Shape::default());
}
