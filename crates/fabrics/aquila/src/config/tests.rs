//! What is refused, and what the message says.

use kernel::{Bytes, Rate, Span};

use super::*;
use crate::link::classes::{DEFAULT, Mode};

#[track_caller]
fn check(change: impl FnOnce(&mut Config), expected: &str) {
    let mut config = Config { profile: Some(Profile::Mini), ..Config::default() };
    change(&mut config);
    let problems = config.plan().expect_err("it is refused");
    let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|problem| problem.contains(expected)), "{found:?}");
}

#[test]
fn m007_the_default_is_the_clique_of_the_paper() {
    let plan = Config::default().plan().unwrap();
    assert_eq!((plan.topology.shape().tins(), plan.hosts.len()), (576, 1_152));
    assert_eq!(plan.classes, DEFAULT);
    assert_eq!(plan.turns, TurnTable::P1);
    for (profile, hosts) in [(Profile::Half, 576), (Profile::Mini, 136), (Profile::Tiny, 36)] {
        let plan = Config { profile: Some(profile), ..Config::default() }.plan().unwrap();
        assert_eq!(plan.hosts.len(), hosts, "{profile:?}");
    }
}

#[test]
fn m007_keys_go_over_the_profile() {
    let profile = Some(Profile::Full);
    let config = Config { profile, pods: Some(9), nodes: 20, ..Config::default() };
    let plan = config.plan().unwrap();
    assert_eq!((plan.topology.shape().tins(), plan.hosts.len()), (108, 20));
}

#[test]
fn m007_the_smallest_profile_with_places_for_all_is_taken() {
    for (nodes, profile) in [
        (2, Profile::Tiny),
        (36, Profile::Tiny),
        (37, Profile::Mini),
        (137, Profile::Half),
        (577, Profile::Full),
    ] {
        let plan = Config { nodes, ..Config::default() }.plan().unwrap();
        assert_eq!((plan.config.profile, plan.config.nodes), (Some(profile), nodes));
        assert_eq!(plan.config.plan().unwrap().config, plan.config, "nothing is left open");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_key() {
    check(|config| config.pods = Some(34), "pods: a pod of 4 TiNs with 8 global ports");
    check(|config| config.pods = Some(65), "pods: 65; expected 1 to 64");
    check(|config| config.tins_per_pod = Some(20), "tins_per_pod: 20; expected 1 to 16");
    check(|config| config.local_ports = Some(2), "local_ports: 2 cannot reach the 3 other TiNs");
    check(|config| config.local_ports = Some(40), "local_ports: 40 with 8 global ports are 48");
    check(|config| config.nodes = 137, "nodes: 137, but 68 TiNs with 2 each have places for 136");
    check(|config| config.nodes = 1, "nodes: 1; expected 2 at least");
    check(|config| config.hosts_per_tin = 3, "hosts_per_tin: 3; expected 1 or 2");
    check(|config| config.fibres = Fibres::Metres(0), "fibres: 0 m; expected 1 to 100 m");
    check(|config| config.fibres = Fibres::Metres(u32::MAX), "expected 1 to 100 m");
    check(
        |config| config.turns = Turns::Table([[true; 4]; 4]),
        "turns: lets cells of a pod of 4 TiNs wait",
    );
}

#[test]
fn links_that_cannot_work_are_refused_by_key() {
    let gbps = Rate::from_gbps;
    check(|config| config.link.local_rate = gbps(0), "link.local_rate: 0 bps; expected 1 Gbps");
    check(
        |config| config.link.local_buffer = Bytes::new(144),
        "link.local_buffer: 144 B; expected 160 B",
    );
    check(|config| config.link.global_buffer = Bytes::new(168), "a multiple of 16 B");
    check(
        |config| config.link.global_buffer = Bytes::new(40_000),
        "half of what credits can count",
    );
    check(|config| config.link.update_after = Bytes::new(2_000), "the smaller of the buffers");
    check(
        |config| config.link.start_of_cell = Bytes::new(4),
        "link.start_of_cell: 4 B; expected 0 B or 8 B",
    );
    check(|config| config.link.update_timer = Span::ZERO, "link.update_timer: 0 ns");
    check(|config| config.link.refresh = Span::from_ns(100), "at least update_timer");
    check(
        |config| {
            config.link.update_timer = Span::from_ns(10);
            config.link.refresh = Span::from_ns(150);
        },
        "on the longest fibre alone",
    );
    check(|config| config.link.global_bit_error_rate = f64::NAN, "global_bit_error_rate: NaN");
}

#[test]
fn remote_memory_that_cannot_work_is_refused_by_key() {
    let bytes = Bytes::new;
    check(
        |config| config.timesync.silence = kernel::Span::from_us(150),
        "timesync.silence: 150 us; expected 200 us, two sets, at least",
    );
    check(|config| config.timesync.samples = 0, "timesync.samples: 0; expected");
    check(|config| config.rma.payload = bytes(96), "rma.payload: 96 B; expected 64 B or 128 B");
    check(|config| config.rma.tag = bytes(8), "rma.tag: 8 B; expected 16 B, or 0 B");
    check(
        |config| config.rma.segment = bytes(1_000),
        "rma.segment: 1 KB; expected a multiple of 128 B",
    );
    check(
        |config| config.rma.segment = bytes(8_192),
        "rma.segment: 8.192 KB; expected at least 128 B",
    );
    check(
        |config| config.rma.window = bytes(4_000),
        "rma.window: 4 KB; expected 4.096 KB, one segment",
    );
    check(|config| config.rma.pcie.reads = bytes(64), "rma.pcie.reads: 64 B; expected");
    check(|config| config.rma.pcie.rate = Rate::from_gbps(0), "rma.pcie.rate: 0 bps");
    check(|config| config.rma.operation = bytes(2 << 20), "256 segments of 4.096 KB");
    check(|config| config.rma.slots = 0, "rma.slots: 0");
    check(|config| config.rma.deadline = Span::from_us(1), "rma.deadline: 1 us");
    check(|config| config.rma.software.beta = f64::NAN, "rma.software.beta");
}

#[test]
fn hosts_that_cannot_be_are_refused_by_key() {
    let long = Some(Span::from_us(2_000_000));
    check(|config| config.host.send_latency = long, "host.send_latency: 2 s; expected at most 1 s");
    check(
        |config| {
            config.carrier = Carrier::RmaRead;
            config.host.preset = packets::config::Preset::Legacy;
        },
        "host: takes time in hosts that send packets, but the carrier is remote memory",
    );
    check(
        |config| {
            config.carrier = Carrier::RmaRead;
            config.transport = serde_json::from_str(r#"{ "kind": "newreno" }"#).unwrap();
        },
        "transport: says how packets are sent, but the carrier is remote memory",
    );
    let raw = || serde_json::from_str(r#"{ "kind": "raw" }"#).unwrap();
    check(
        |config| {
            config.transport = raw();
            config.link.global_bit_error_rate = 1e-9;
        },
        "link.global_bit_error_rate: 0.000000001, but the transport sends each packet only once",
    );
    let config = Config { transport: raw(), nodes: 8, ..Config::default() };
    let at = kernel::Time::ZERO;
    let fault = ::rack::Fault { component: ::rack::Component::Switch(0), at, until: None };
    let refused = config.plan().unwrap().with_faults(&[fault]).unwrap_err();
    assert!(refused[0].message.contains("but the transport sends each packet only once"));
    check(|config| config.ip.burst = 0, "ip.burst: 0; expected 1 to 64 packets");
    check(
        |config| config.ip.classes_of_service = vec![1, 8],
        "ip.classes_of_service: [1, 8]; expected up to 8 classes, each from 0 to 7",
    );
}

/// Buffers and windows are for a time of their port's line; what is given is taken as it is.
#[test]
fn u25_u26_u27_buffers_follow_the_rate_of_their_port() {
    let of = |gbps, egress_buffer| {
        let ip = Ip { port_rate: Rate::from_gbps(gbps), egress_buffer, ..Ip::default() };
        let ip = Config { ip, nodes: 36, ..Config::default() }.plan().unwrap().config.ip;
        [ip.ingress_buffer, ip.egress_buffer, ip.window].map(|bytes| bytes.unwrap().get())
    };
    assert_eq!(of(100, None), [2 << 20, 256 << 10, 64 << 10]);
    assert_eq!(of(200, None), [4 << 20, 512 << 10, 128 << 10]);
    // A packet and two of them at the least.
    assert_eq!(of(1, None), [64 << 10, 2 * 4_160, 4_160]);
    assert_eq!(of(200, Some(Bytes::new(200_000))), [4 << 20, 200_000, 128 << 10]);
    check(
        |config| {
            config.ip.port_rate = Rate::from_gbps(200);
            config.ip.egress_buffer = Some(Bytes::new(100_000));
        },
        "ip.window: 131.072 KB; expected 4.16 KB, the largest packet (mtu), to 100 KB",
    );
    check(
        |config| config.ip.port_rate = Rate::from_gbps(400),
        "ip.port_rate: 400 Gbps, but its 4 terminal ports let 200 Gbps into the switch: 50 Gbps each",
    );
    check(
        |config| {
            config.ip.port_rate = Rate::from_gbps(400);
            config.switch.terminal_rate = Rate::from_gbps(100);
        },
        "ip.port_rate: 400 Gbps, but its 4 terminal ports let 204.8 Gbps into the switch",
    );
}

#[test]
fn classes_that_cannot_work_are_refused_by_key() {
    check(|config| config.classes.data.level = Some(4), "classes.data.level: 4; expected 0 to 3");
    check(|config| config.classes.scavenger.weight = Some(0), "classes.scavenger.weight: 0");
    check(
        |config| config.classes.requests.mode = Some(Mode::FullyAdaptive),
        "classes.requests.mode: adaptive, but requests of a flow must arrive in order",
    );
}

#[test]
fn several_mistakes_are_all_named() {
    let mut config = Config { pods: Some(0), nodes: 0, ..Config::default() };
    config.equipment.nic_cost = -1.0;
    let keys: Vec<String> =
        config.plan().unwrap_err().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["pods", "nodes", "equipment.nic_cost"]);
}

#[test]
fn keys_are_read_and_written_the_same() {
    let text = r#"{
        "profile": "mini",
        "fibres": {"metres": 30},
        "turns": "p3",
        "classes": {"requests": {"mode": "deterministic"}},
        "link": {"global_rate": "23.58 Gbps"}
    }"#;
    let config: Config = serde_json::from_str(text).unwrap();
    assert_eq!(config.classes.table()[0].mode, Mode::Deterministic);
    assert_eq!(config.classes.table()[0].service, DEFAULT[0].service);
    assert_eq!(config.link.global_rate, Rate::from_bps(23_580_000_000));
    let again = serde_json::from_str(&serde_json::to_string(&config).unwrap()).unwrap();
    assert_eq!(config, again);
    let unknown = serde_json::from_str::<Config>(r#"{"pod": 3}"#).unwrap_err();
    assert!(unknown.to_string().contains("unknown field"), "{unknown}");
}
