//! What is refused, with which key and remedy; what is taken stays what it is.

use rack::topology::{Graph, LeafSpine, SingleSwitch};
use rack::{Component, NodeId};

use super::*;
use kernel::Time;

#[track_caller]
fn check_refused(config: Config, key: &str, part: &str) {
    let problems = config.plan().unwrap_err();
    let found = problems.iter().any(|p| p.key == key && p.message.contains(part));
    assert!(found, "{problems:?} lacks {key:?}: {part:?}");
}

fn with(queues: Queues) -> Config {
    Config { queues, ..Config::default() }
}

#[test]
fn the_defaults_are_shoal_s_packet_switched_rack() {
    let plan = Config::default().plan().unwrap();
    assert_eq!(plan.topology.hosts(), 512);
    assert_eq!(plan.line_rate(), Rate::from_gbps(50));
    assert_eq!(plan.load_rate(), Rate::from_gbps(50));
    assert_eq!(plan.config.queues.port_buffer, plan.config.mtu * 100);
}

#[test]
fn zero_buffers_are_refused_with_and_without_pauses() {
    for flow_control in [FlowControl::None, FlowControl::Pfc(Pfc::default())] {
        let queues = Queues { port_buffer: Bytes::ZERO, flow_control, ..Queues::default() };
        check_refused(with(queues), "queues.port_buffer", "holds no packet of 1.5 KB");
    }
    let xoff = Pfc::fixed(Bytes::new(1));
    let queues = Queues { flow_control: FlowControl::Pfc(xoff), ..Queues::default() };
    check_refused(with(queues), "queues.flow_control.xoff", "holds no packet");
    for quanta in [0, 62, 65_536] {
        let short = FlowControl::Pfc(Pfc { quanta, ..Pfc::default() });
        let queues = Queues { flow_control: short, ..Queues::default() };
        check_refused(with(queues), "queues.flow_control.quanta", "expected 63 to 65535");
    }
    let credit = CreditFlow { buffer: Bytes::new(1499), ..CreditFlow::default() };
    let queues = Queues { flow_control: FlowControl::Credit(credit), ..Queues::default() };
    check_refused(with(queues), "queues.flow_control.buffer", "holds no packet");
    let queues = Queues { shared_buffer: Bytes::new(1), ..Queues::default() };
    check_refused(with(queues), "queues.shared_buffer", "holds no packet");
}

#[test]
fn detours_are_refused_where_a_host_passes_no_packets_on() {
    let config = Config { routing: Routing::Valiant, ..Config::default() };
    check_refused(config, "routing", "passes no packets on");
}

#[test]
fn a_threshold_above_the_buffer_is_refused() {
    let marking = |marking| Queues { marking, ..Queues::default() };
    let step = Step { threshold: Bytes::new(150_000) };
    check_refused(with(marking(Marking::Step(step))), "queues.marking.threshold", "never reached");
    // Alone in a shared memory a queue takes alpha / (1 + alpha) of it: here two thirds.
    let shared = |threshold| Queues {
        shared_buffer: Bytes::new(90_000),
        alpha: 2.0,
        ..marking(Marking::Step(Step { threshold: Bytes::new(threshold) }))
    };
    let part = "60 KB is never reached in a shared_buffer of 90 KB with alpha = 2";
    check_refused(with(shared(60_000)), "queues.marking.threshold", part);
    assert!(with(shared(59_999)).plan().is_ok());
    let red = Red { min: Bytes::new(150_000), max: Bytes::new(150_001), probability: 0.1 };
    check_refused(with(marking(Marking::Red(red))), "queues.marking.min", "never reached");
    let red = Red { min: Bytes::new(2), max: Bytes::new(1), probability: 0.1 };
    check_refused(with(marking(Marking::Red(red))), "queues.marking.min", "is not below max");
    let red = Red { probability: 1.5, ..Red::default() };
    check_refused(with(marking(Marking::Red(red))), "queues.marking.probability", "0 to 1");
}

#[test]
fn weights_that_cannot_be_are_refused() {
    for (weights, part) in [
        (vec![], "no weight"),
        (vec![0; 4], "no weight"),
        (vec![1; 9], "at most 8"),
        (vec![101], "at most 100"),
    ] {
        let scheduling = Scheduling::Deficit(Deficit { weights });
        let queues = Queues { scheduling, ..Queues::default() };
        check_refused(with(queues), "queues.scheduling.weights", part);
    }
}

#[test]
fn trimming_that_cannot_be_is_refused() {
    let trimming = |trimming| Queues { trimming: Some(trimming), ..Queues::default() };
    let default = Trimming::default;
    let key = "queues.trimming.header";
    check_refused(
        with(trimming(Trimming { header: Bytes::ZERO, ..default() })),
        key,
        "1 B or more",
    );
    check_refused(
        with(trimming(Trimming { header: Bytes::new(1500), ..default() })),
        key,
        "less than",
    );
    let small = Trimming { header_buffer: Bytes::new(63), ..default() };
    check_refused(with(trimming(small)), "queues.trimming.header_buffer", "holds no header");
    check_refused(
        with(trimming(Trimming { ratio: 0, ..default() })),
        "queues.trimming.ratio",
        "1 or more",
    );
    let both = Queues { flow_control: FlowControl::Pfc(Pfc::default()), ..trimming(default()) };
    check_refused(with(both), "queues.trimming", "choose one");
}

#[test]
fn pauses_that_cannot_be_are_refused() {
    let pfc = |pfc| with(Queues { flow_control: FlowControl::Pfc(pfc), ..Queues::default() });
    let none = Pfc { priorities: vec![], ..Pfc::default() };
    check_refused(pfc(none), "queues.flow_control.priorities", "one or more");
    let eight = Pfc { priorities: vec![8], ..Pfc::default() };
    check_refused(pfc(eight), "queues.flow_control.priorities", "from 0 to 7");
    let xon = Pfc { xon: Bytes::new(20_001), ..Pfc::fixed(Bytes::new(20_000)) };
    check_refused(pfc(xon), "queues.flow_control.xon", "is above xoff");
    let xon = Pfc { xon: Bytes::new(1), ..Pfc::default() };
    check_refused(pfc(xon), "queues.flow_control.xon", "is above xoff");
    let beta = Pfc { beta: 0.0, ..Pfc::default() };
    check_refused(pfc(beta), "queues.flow_control.beta", "1/128 to 128");
    let shared = Queues {
        shared_buffer: Bytes::new(1_000_000),
        flow_control: FlowControl::Pfc(Pfc::default()),
        ..Queues::default()
    };
    check_refused(with(shared), "queues.shared_buffer", "cannot hold xoff and headroom");
    let port = Queues {
        port_buffer: Bytes::new(40_000),
        flow_control: FlowControl::Pfc(Pfc::default()),
        ..Queues::default()
    };
    check_refused(with(port), "queues.port_buffer", "cannot hold xoff and headroom");
}

/// DCQCN §4: a switch of 32 ports and 12 MB, eight priorities with 22.4 KB of headroom each.
fn dcqcn_switch(pfc: Pfc) -> Plan {
    let pfc = Pfc { priorities: (0..8).collect(), headroom: Bytes::new(22_400), ..pfc };
    let config = Config {
        topology: Shape::SingleSwitch(SingleSwitch { hosts: 32, ..Default::default() }),
        queues: Queues {
            shared_buffer: Bytes::new(12_000_000),
            flow_control: FlowControl::Pfc(pfc),
            ..Queues::default()
        },
        ..Config::default()
    };
    config.plan().unwrap()
}

#[test]
fn marking_comes_before_pauses_below_the_bounds_of_dcqcn() {
    // The paper: with beta at 8, t_ECN must be below 21.7 KB.
    let bound = dcqcn_switch(Pfc::default()).marking_bound().unwrap();
    assert_eq!(bound.get() / 100, 217, "{bound}");
    // With the largest fixed threshold that the memory allows, t_PFC of 24.47 KB, it would have to be
    // below a packet: "infeasible".
    let largest = (12_000_000 - 8 * 32 * 22_400) / (8 * 32);
    assert_eq!(largest / 10, 2_447);
    let bound = dcqcn_switch(Pfc::fixed(Bytes::new(largest))).marking_bound().unwrap();
    assert!(bound.get() < 1_000, "{bound}");
    assert_eq!(Config::default().plan().unwrap().marking_bound(), None);
}

#[test]
fn numbers_out_of_range_are_refused_all_at_once() {
    let config = Config {
        mtu: Bytes::new(9_217),
        loss_rate: 1.0,
        bit_error_rate: f64::NAN,
        queues: Queues { alpha: 0.0, port_buffer: Bytes::new(9_217), ..Queues::default() },
        topology: Shape::SingleSwitch(SingleSwitch { hosts: 1, ..Default::default() }),
        ..Config::default()
    };
    let problems = config.plan().unwrap_err();
    let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["mtu", "loss_rate", "bit_error_rate", "queues.alpha", "topology"]);
}

#[test]
fn a_graph_with_an_island_is_refused_under_its_key() {
    let edges = "a,b,rate,delay\n0,3,1 Gbps,1 ns\n1,3,1 Gbps,1 ns\n2,4,1 Gbps,1 ns\n".into();
    let topology = Shape::Graph(Graph { hosts: 3, edges, ..Graph::default() });
    check_refused(
        Config { topology, ..Config::default() },
        "topology.edges",
        "no path joins host 2",
    );
    let topology = Shape::LeafSpine(LeafSpine { hosts: 10_000, ..Default::default() });
    check_refused(Config { topology, ..Config::default() }, "topology.hosts", "at most 2048");
}

#[test]
fn faults_of_parts_that_do_not_exist_are_refused_by_index() {
    let fault = |component| Fault { component, at: Time::ZERO, until: None };
    let faults = [fault(Component::Spine(0)), fault(Component::Node(NodeId::new(512)))];
    let problems = Config::default().plan().unwrap().with_faults(&faults).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].key, "1");
    assert!(problems[0].message.contains("512 nodes"), "{problems:?}");
}

#[test]
fn packets_larger_than_the_network_s_are_refused() {
    let plan = Config::default().plan().unwrap();
    assert!(plan.check_framing(Framing { payload: 1460, header: 40 }).is_ok());
    let problem = plan.check_framing(Framing { payload: 1461, header: 40 }).unwrap_err();
    assert_eq!(problem.key, "mtu");
}

#[test]
fn a_configuration_survives_being_written_and_read() {
    let config = Config {
        topology: Shape::Graph(Graph {
            hosts: 2,
            edges: "a,b,rate,delay\n0,1,1 Gbps,1 ns".into(),
            ..Graph::default()
        }),
        queues: Queues {
            scheduling: Scheduling::Deficit(Deficit { weights: vec![0, 1] }),
            marking: Marking::Red(Red::default()),
            trimming: Some(Trimming::default()),
            flow_control: FlowControl::PerFlow(PerFlow { window: 3 }),
            ..Queues::default()
        },
        ..Config::default()
    };
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<Config>(&text).unwrap(), config);
    let wrong = text.replace("\"window\"", "\"windows\"");
    let error = serde_json::from_str::<Config>(&wrong).unwrap_err().to_string();
    assert!(error.contains("windows"), "{error}");
}
