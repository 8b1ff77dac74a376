//! What is refused, and what the message says.

use super::*;

#[track_caller]
fn check(change: impl FnOnce(&mut Config), expected: &str) {
    let mut config = Config::default();
    change(&mut config);
    let problems = config.plan().expect_err("it is refused");
    let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|problem| problem.contains(expected)), "{found:?}");
}

#[test]
fn bad_keys_are_named_with_a_remedy() {
    check(|c| c.mtu = Bytes::new(36), "mtu: 36 B; expected more than the header's 36 B");
    check(|c| c.burst = Bytes::new(1), "burst: 1 B; expected at least a packet of 1.5 KB");
    check(|c| c.headroom = 1.0, "headroom: 1; expected a part of each link");
    check(|c| c.classes.clear(), "classes: no class; expected one or more");
    check(|c| c.trees = 16, "trees: 16; expected from 1 to 15");
    check(|c| c.broadcast_priority = 8, "broadcast_priority: 8; expected from 0 to 7");
    check(|c| c.demand.gain_shift = 17, "demand.gain_shift: 17; expected at most 16");
    check(|c| c.recovery.pause = Span::ZERO, "recovery.pause: 0 ns; expected, for example");
    check(|c| c.discovery.missed = 0, "discovery.missed: 0; expected from 1 to 1000");
    check(|c| c.nodes = 100, "nodes: 100, but the topology makes 512");
}

/// Greetings more often than links carry them would wait in ever longer queues. One of 16 bytes takes 12.8 ns
/// at 10 Gbps.
#[test]
fn greetings_take_a_tenth_of_a_link_at_the_most() {
    let interval = |ps| Discovery { interval: Span::from_ps(ps), ..Discovery::default() };
    check(
        |c| c.discovery = interval(127_999),
        "discovery.interval: 127.999 ns, and a greeting takes 12.8 ns of the slowest link; expected 128 ns",
    );
    let enough = Config { discovery: interval(128_000), ..Config::default() };
    assert!(enough.plan().is_ok());
}
