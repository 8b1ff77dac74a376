//! The Clique as a fabric: what hosts see of it.

use ::rack::{Class, Fabric, Flow, FlowId, NodeId};
use kernel::{Bytes, Span, Time};
use proptest::prelude::*;

use super::Rack;
use crate::Config;
use crate::config::Ip;
use crate::topology::Fibres;

fn flow(id: u64, (src, dst): (u32, u32), size: u64, start: Time) -> Flow {
    let (src, dst) = (NodeId::new(src), NodeId::new(dst));
    Flow { id: FlowId::new(id), src, dst, size: Bytes::new(size), start, class: Class::new(0) }
}

/// Keeps what ends.
#[derive(Default)]
struct Ends(Vec<(u64, Span, Span)>);

impl ::rack::Probe for Ends {
    fn completed(&mut self, end: &::rack::Completion<'_>) -> std::ops::ControlFlow<()> {
        self.0.push((end.flow.id.get(), end.end - end.flow.start, end.ideal));
        std::ops::ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, _: Time, why: ::rack::Failure) -> std::ops::ControlFlow<()> {
        panic!("{flow:?} has failed: {why:?}");
    }
}

fn carry(config: &Config, flows: &[Flow]) -> (Rack, Vec<(u64, Span, Span)>) {
    let mut rack = Rack::new(config.plan().unwrap(), 1);
    let mut ends = Ends::default();
    for flow in flows {
        rack.advance(flow.start, &mut ends);
        rack.offer(flow);
    }
    rack.advance(Time::NEVER, &mut ends);
    rack.check().unwrap();
    assert_eq!(ends.0.len(), flows.len());
    (rack, ends.0)
}

/// A message of one packet alone takes its ideal time but for cycles and what chance puts in its way: 2.1 us of
/// handshake across a fibre of 100 m (A42), its bytes on two host lines, and the last cells.
#[test]
fn a42_a_message_alone_takes_its_ideal_time() {
    let config = Config { nodes: 136, fibres: Fibres::Metres(100), ..Config::default() };
    for (dst, size) in [(1, 500), (2, 500), (9, 500), (30, 1_000), (135, 100)] {
        let (_, ends) = carry(&config, &[flow(0, (0, dst), size, Time::ZERO)]);
        let (_, took, ideal) = ends[0];
        assert!(took >= ideal, "to {dst}: {took} for {ideal}");
        // No larger: cells of 4 KB queue for a gateway's two fibres, and some go round (F01, Fig. 10).
        // Its data takes a line of 25 Gbps where the ideal takes one of 50, and waits for its own cells.
        assert!(took <= ideal + Span::from_ns(450), "to {dst}: {took} for {ideal}");
    }
}

/// §5.1: 50 Gbps a machine when both hosts of a NIC send, 100 when one does (X25).
#[test]
fn x25_two_hosts_share_a_nic() {
    let size = 3_000_000;
    for (senders, gbps) in [(&[0][..], 90.0..98.0), (&[0, 1], 45.0..49.5)] {
        // To two TiNs of other pods, one host each: their lines are no limit.
        let flows: Vec<_> = senders
            .iter()
            .map(|&src| flow(src.into(), (src, 40 + 40 * src), size, Time::ZERO))
            .collect();
        let mut config = Config { nodes: 136, ip: Ip::default(), ..Config::default() };
        config.transport = crate::Transport::Newreno(transports::newreno::Config::default());
        let (_, ends) = carry(&config, &flows);
        for (id, took, _) in ends {
            let rate = size as f64 * 8.0 / took.as_seconds() / 1e9;
            assert!(gbps.contains(&rate), "host {id} of {senders:?}: {rate} Gbps");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// All flows end, whatever the Clique; nothing is faster than its ideal, nothing is left in it.
    #[test]
    fn every_flow_ends_and_none_before_its_ideal(
        drawn in prop::collection::vec((0..24u32, 0..24u32, 1..40_000u64, 0..30_000u64), 1..60),
        hosts_per_tin in 1..=2u8,
        metres in 1..=100u32,
    ) {
        let fibres = Fibres::Metres(metres);
        let config = Config { nodes: 24, hosts_per_tin, fibres, ..Config::default() };
        let mut flows: Vec<_> = (0..)
            .zip(&drawn)
            .map(|(id, &(src, dst, size, ns))| {
                let dst = if src == dst { (dst + 1) % 24 } else { dst };
                flow(id, (src, dst), size, Time::ZERO + Span::from_ns(ns))
            })
            .collect();
        flows.sort_by_key(|flow| flow.start);
        let (rack, ends) = carry(&config, &flows);
        for (id, took, ideal) in ends {
            prop_assert!(took >= ideal, "flow {}: {} for {}", id, took, ideal);
        }
        prop_assert_eq!(rack.details()["ip_no_ingress_room"].as_u64(), Some(0));
    }
}
