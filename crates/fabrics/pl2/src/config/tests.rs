//! What is refused, and what the message says.

use super::*;
use crate::switch::{Accounting, Decrement};

#[track_caller]
fn check(change: impl FnOnce(&mut Config), expected: &str) {
    let mut config = Config::default();
    change(&mut config);
    let problems = config.plan().expect_err("it is refused");
    let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|problem| problem.contains(expected)), "{found:?}");
}

#[test]
fn the_default_is_the_prototype() {
    let plan = Config::default().plan().unwrap();
    assert_eq!(plan.config.nodes, 6);
    // A packet of 1,538 bytes at 100 Gbps.
    assert_eq!(plan.config.slot, Span::from_ps(123_040));
    assert_eq!((plan.increment, plan.unit), (1, plan.config.slot));
    assert_eq!(plan.config.load_rate, Rate::from_gbps(100));
}

/// M03: a slot is a packet's time; what shares a line with the data is part of it where counters would not tell of
/// data that waits for it.
#[test]
fn m03_slots_hold_what_a_line_carries_in_them() {
    let raw = || Transport::Raw(::transports::raw::Config::default());
    let free = Acknowledgments::Unreserved;
    let tracked = Recovery { tracking: Some(Tracking::Receivers), ..Recovery::default() };
    let usual = Config::default;
    let blind = || Switch { decrement: Decrement::Ingress, ..Switch::default() };
    let ideal = || Switch { schedule: Schedule::Ideal, ..Switch::default() };
    for (config, ps) in [
        (usual(), 123_040),
        (Config { switch: blind(), ..usual() }, 129_760),
        (Config { switch: ideal(), ..usual() }, 129_760),
        (Config { switch: blind(), transport: raw(), ..usual() }, 123_040),
        (Config { switch: blind(), acknowledgments: free, ..usual() }, 123_040),
        (Config { transport: raw(), recovery: tracked, ..usual() }, 129_760),
        (Config { recovery: tracked, ..usual() }, 129_760),
        (Config { slot: Span::from_ns(120), ..usual() }, 120_000),
        (Config { transport: raw(), line_rate: Rate::from_gbps(25), ..usual() }, 492_160),
    ] {
        assert_eq!(config.plan().unwrap().config.slot, Span::from_ps(ps));
    }
}

/// M23: a grant is current for the longest exchange, which is 22.25 µs where the switch has its own tail
/// (§5), and for what a burst costs its thread.
#[test]
fn m23_grants_are_current_for_the_longest_exchange() {
    let usual = Config::default;
    let host = |burst_cost, max| Host {
        burst_cost: Span::from_ns(burst_cost),
        jitter: Jitter { max: Span::from_ns(max), ..Jitter::default() },
        ..Host::default()
    };
    let still = Host { jitter: Jitter { median: Span::ZERO, ..Jitter::default() }, ..usual().host };
    // Two frames of 6.72 ns, four delays of 1.62 µs in all, 347 ns in the switch: 1,980.44 ns.
    for (config, ps) in [
        (usual(), 1_980_440 + 20_200_000),
        (Config { host: host(5_100, 10_100), ..usual() }, 1_980_440 + 20_200_000 + 5_100_000),
        (Config { host: host(0, 50), ..usual() }, 1_980_440 + 100_000),
        (Config { host: still, ..usual() }, 1_980_440),
        (Config { unsolicited_age: Span::from_ns(4_100), ..usual() }, 4_100_000),
    ] {
        assert_eq!(config.plan().unwrap().config.unsolicited_age, Span::from_ps(ps));
    }
}

#[test]
fn bad_keys_are_named_with_a_remedy() {
    check(
        |c| c.slot = Span::from_us(1_001),
        "slot: a slot takes 1.001 ms; expected 1 ms at the most",
    );
    check(
        |c| c.line_rate = Rate::from_bps(10_000_000),
        "line_rate: a slot takes 1.2304 ms; expected 1 ms at the most",
    );
    check(|c| c.burst_packets = 0, "burst_packets: 0; expected from 1 to 16");
    check(|c| c.burst_packets = 17, "burst_packets: 17; expected from 1 to 16");
    check(
        |c| (c.unsolicited_below, c.switch.drop_above) = (100, 100),
        "unsolicited_below: 100, but the switch drops unsolicited packets above switch.drop_above, 100",
    );
    check(
        |c| c.nodes = 65,
        "nodes: 65 hosts, 1 to a port, need 65 ports, but the switch has 64 registers for them",
    );
    let many = 1_024.try_into().expect("not zero");
    check(
        |c| (c.nodes, c.hosts_per_port) = (65_536, many),
        "nodes: 65536 hosts with 12 threads each have 51539607552 pairs",
    );
    check(|c| c.nodes = 1, "nodes: 1");
    check(|c| c.threads = 0, "threads: 0; expected from 1 to 64");
    check(|c| c.threads = 65, "threads: 65; expected from 1 to 64");
    check(|c| c.host.jitter.spread = -1.0, "host.jitter.spread: -1.0; expected from 0 to 4");
    check(|c| c.host.jitter.max = Span::ZERO, "host.jitter.max: 0 ps, below the median, 27 ns");
    check(|c| c.recovery.patience = Span::ZERO, "recovery.patience: 0 ps; expected above 0 ns");
    let outside = |nodes: &[u32]| {
        let nodes = nodes.iter().map(|&node| NodeId::new(node)).collect();
        Some(Entering { nodes, ..Entering::default() })
    };
    check(|c| c.entering = outside(&[6]), "entering.nodes[0]: node 6; expected below 6");
    check(|c| c.entering = outside(&[1, 1]), "entering.nodes[1]: node 1 again; remove it");
    check(|c| c.entering = outside(&[0, 1, 2, 3, 4]), "entering.nodes: all nodes but one, or all");
    check(|c| c.switch.port_buffer = kernel::Bytes::new(100), "switch.port_buffer");
}

#[test]
fn keys_that_do_not_go_together_are_named_with_a_remedy() {
    check(
        |c| {
            c.switch.schedule = Schedule::Ideal;
            c.switch.decrement = Decrement::Ingress;
        },
        "switch.decrement: it is about counters",
    );
    check(
        |c| {
            c.transport = Transport::Raw(::transports::raw::Config::default());
            c.loss_rate = 0.1;
        },
        "loss_rate: 0.1, but raw sends a lost packet only once",
    );
    check(
        |c| (c.switch.accounting, c.bit_error_rate) = (Accounting::Literal, 1e-9),
        "bit_error_rate: 0.000000001, but with switch.accounting = \"literal\" counters turn to 4294967295",
    );
    let trimming = |header| {
        let header = kernel::Bytes::new(header);
        Some(packets::config::Trimming { header, ..packets::config::Trimming::default() })
    };
    check(
        |c| c.switch.trimming = trimming(64),
        "switch.trimming: only ndp knows what a trimmed packet is, not uncontrolled",
    );
    check(
        |c| {
            c.transport = Transport::Ndp(::transports::ndp::Config::default());
            c.switch.trimming = trimming(60);
        },
        "switch.trimming.header: 60 B, but transport.header is 64 B",
    );
    check(
        |c| {
            c.recovery.tracking = Some(Tracking::Pairs);
            c.switch.decrement = Decrement::Ingress;
        },
        "recovery.tracking: pairs, for which the switch has to count to zero at egress",
    );
}

/// M14: pairs are tracked wherever the switch's counters allow it.
#[test]
fn m14_pairs_are_tracked_unless_counters_do_not_allow_it() {
    let with = |switch| Config { switch, ..Config::default() }.plan().unwrap().config.recovery;
    let usual = Switch::default;
    for (switch, expected) in [
        (usual(), Tracking::Pairs),
        (Switch { decrement: Decrement::Ingress, ..usual() }, Tracking::None),
        (Switch { accounting: Accounting::Literal, ..usual() }, Tracking::None),
        (Switch { schedule: Schedule::Ideal, ..usual() }, Tracking::None),
    ] {
        assert_eq!(with(switch).tracking, Some(expected));
    }
}

#[test]
fn four_hosts_to_a_port_make_256_of_64() {
    let four = 4.try_into().expect("not zero");
    let config = Config { nodes: 256, hosts_per_port: four, ..Config::default() };
    assert_eq!(config.plan().unwrap().ports(), 64);
}

/// M32: a tenth of the line kept free makes slots a ninth longer, either way.
#[test]
fn m32_a_share_lengthens_slots() {
    for (by, increment) in [(ShareBy::Slot, 1), (ShareBy::Increment, 100)] {
        let entering = Entering { nodes: vec![NodeId::new(0)], share_percent: 10, by };
        let transport = Transport::Raw(::transports::raw::Config::default());
        let config = Config { entering: Some(entering), transport, ..Config::default() };
        let plan = config.plan().unwrap();
        assert_eq!(plan.increment, increment);
        let packet = plan.unit * u64::from(increment);
        let exact = 123_040.0 / 0.9;
        assert!((packet.as_ps() as f64 / exact - 1.0).abs() < 0.001, "{packet}");
    }
}

#[test]
fn a_resolved_table_reads_back_and_gives_the_same_plan() {
    let plan = Config::default().plan().unwrap();
    let text = serde_json::to_string(&plan.config).unwrap();
    let again: Config = serde_json::from_str(&text).unwrap();
    assert_eq!(again.plan().unwrap().config, plan.config);
    assert!(serde_json::from_str::<Config>(r#"{"K": 4}"#).is_err());
}
