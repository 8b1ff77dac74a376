//! Traffic from and to what is outside of the Clique (M015, M404, M428, M731, U61).

use std::collections::BTreeMap;

use ::rack::{Component, Fault};

use super::*;
use crate::config::{Ip, Outside};

/// A tiny Clique of 36 hosts with some outside, which are nodes 36 and on.
fn attached(outside: Outside) -> Config {
    Config { nodes: 36, outside, ..Config::default() }
}

fn outside(hosts: u32) -> Outside {
    Outside { hosts, ..Outside::default() }
}

/// A message from a host in the Clique, to it, and between hosts outside: whatever lies on the way, and no more than the
/// store of the Ethernet port besides. One TiN is attached, so that all ways lead there.
#[test]
fn u61_messages_from_and_to_the_outside_take_what_lies_between() {
    let one_way = Span::from_us(14) + Span::from_ns(500);
    for (from, to) in [(0, 36), (36, 0), (17, 37), (37, 35), (36, 37)] {
        let config = attached(Outside { ports: 1, ..outside(2) });
        let (_, ends) = carry(&config, &[flow(0, (from, to), 1_000, Time::ZERO)]);
        let (_, took, ideal) = ends[0];
        let least = if from.min(to) >= 36 { Span::from_us(28) } else { one_way };
        assert!(took >= ideal && ideal > least, "{from} to {to}: {took} for {ideal}");
        // A packet of 1 KB is stored for 85 ns; its cells meet each other, as those of any other (a42).
        assert!(took <= ideal + Span::from_ns(85 + 450), "{from} to {to}: {took} for {ideal}");
    }
}

/// U61, M407: a packet that comes by Ethernet is stored before its request goes, one of a host is not.
#[test]
fn u61_ethernet_ports_store_and_forward() {
    let took = |bytes: u64, early: bool| {
        let ip = Ip { early_requests: early, ..Ip::default() };
        let config = Config { ip, ..attached(outside(1)) };
        let ends = |ends| carry(&config, &[flow(0, ends, bytes, Time::ZERO)]).1[0].1;
        [ends((36, 0)), ends((0, 36))]
    };
    let ([in_early, out_early], [in_late, out_late]) = (took(4_000, true), took(4_000, false));
    assert_eq!(in_early, in_late, "it is stored in any case");
    assert!(out_early < out_late, "{out_early} and {out_late}");
}

/// M404, M731: flows go out by all Ethernet ports that are attached, as often as their weights say, and each by one.
#[test]
fn m404_m731_flows_go_out_by_weight() {
    let config = attached(Outside { hosts: 4, ports: 4, weights: vec![3, 1], ..outside(4) });
    let plan = config.plan().unwrap();
    let graph = super::super::graph(&plan);
    let blueprint = super::super::blueprint::Blueprint::new(&plan, &graph, 1);
    let ways = super::super::outside::Outside::new(&plan, &blueprint, &graph).unwrap();
    let mut counts: BTreeMap<u16, u32> = BTreeMap::new();
    for (src, entropy) in (0..36_u32).flat_map(|src| (0..200_u16).map(move |e| (src, e * 37))) {
        let mut packet = packets::Packet::default();
        (packet.src, packet.dst, packet.entropy) = (NodeId::new(src), NodeId::new(38), entropy);
        let way = ways.way_out(&packet).unwrap();
        assert_eq!(ways.way_out(&packet), Some(way), "a flow stays where it is");
        *counts.entry(way).or_default() += 1;
    }
    let all: u32 = counts.values().sum();
    let shares: Vec<f64> = counts.values().map(|&n| f64::from(n) / f64::from(all)).collect();
    let expected = [3.0 / 8.0, 1.0 / 8.0, 3.0 / 8.0, 1.0 / 8.0];
    assert_eq!(shares.len(), 4);
    for (share, expected) in shares.iter().zip(expected) {
        assert!((share - expected).abs() < 0.02, "{shares:?}");
    }
}

/// M015: many flows both ways end, whatever parts the Clique is cut into and whether all goes through bytes.
#[test]
fn m015_traffic_both_ways_ends_the_same_through_bytes() {
    let flows: Vec<_> = (0..120_u32)
        .map(|id| {
            let start = Time::ZERO + Span::from_ns(300 * u64::from(id));
            let (inside, far) = (id * 7 % 36, 36 + id % 3);
            let ends = if id % 2 == 0 { (inside, far) } else { (far, inside) };
            flow(id.into(), ends, 20_000, start)
        })
        .collect();
    let config = attached(outside(3));
    let (_, ends) = carry(&config, &flows);
    assert!(ends.iter().all(|(_, took, ideal)| took >= ideal));
    let (_, again) = carry_by(&config, &flows, true);
    assert_eq!(ends, again);
}

/// M922, I95: an Ethernet port, or its TiN, dies: flows go on by the others once routes have converged.
#[test]
fn m922_an_ethernet_port_that_dies_is_left_out() {
    let config = attached(Outside { ports: 2, ..outside(2) });
    // The TiNs that are attached are the first, and the one in the middle; the last has hosts that talk.
    let fault = |component| Fault { component, at: Time::ZERO + Span::from_us(20), until: None };
    let link = Component::Link { a: 38, b: 38 + 18, link: 0 };
    for component in [link, Component::Switch(9)] {
        let plan = config.plan().unwrap().with_faults(&[fault(component)]).unwrap();
        let mut rack = Rack::new(plan, 1);
        let mut ends = Ends::default();
        for id in 0..40_u32 {
            let start = Time::ZERO + Span::from_us(u64::from(id));
            rack.advance(start, &mut ends);
            let nodes = if id % 2 == 0 { (34, 36 + id % 4 / 2) } else { (36 + id % 4 / 2, 35) };
            rack.offer(&flow(id.into(), nodes, 30_000, start));
        }
        rack.advance(Time::NEVER, &mut ends);
        rack.check().unwrap();
        assert_eq!(ends.0.len(), 40, "{component}");
    }
}

#[test]
fn what_cannot_be_outside_is_refused_by_key() {
    let check = |change: &dyn Fn(&mut Config), expected: &str| {
        let mut config = attached(outside(2));
        change(&mut config);
        let problems = config.plan().expect_err("it is refused");
        let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|problem| problem.contains(expected)), "{found:?}");
    };
    check(&|config| config.outside.ports = 19, "outside.ports: 19; expected at most 18");
    check(
        &|config| config.outside.weights = vec![0],
        "outside.weights: [0]; expected one at least",
    );
    check(&|config| config.outside.weights = vec![1; 17], "17 weights for 16 TiNs");
    check(&|config| config.outside.prefix = "here".into(), "outside.prefix: \"here\"; expected");
    check(
        &|config| config.outside.prefix = "10.0.0.0/8".into(),
        "which the Clique's own addresses",
    );
    check(
        &|config| config.outside.prefix = "192.0.2.0/32".into(),
        "has 1 addresses, and hosts are 2",
    );
    check(
        &|config| config.carrier = Carrier::RmaRead,
        "outside.hosts: 2, but the carrier is remote",
    );
}
