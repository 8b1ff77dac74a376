//! The rack of leaves and spines against closed forms and the engine's own switches.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use ::rack::{Advance, Class, Completion, Fabric, Failure, Flow, FlowId, NodeId, Probe};
use kernel::{Bytes, Rate, Span, Stream, Time};
use transports::{cubic, dctcp, newreno, swift};

use super::{Config, FlatSpine, Rack, SpineTable, Transport};
use crate::ChipConfig;
use crate::config::OutputQueuedTable;

/// Ends of flows and their ideal times.
#[derive(Default)]
struct Ends(BTreeMap<u64, (Time, Span)>);

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let id = completion.flow.id.get();
        let earlier = self.0.insert(id, (completion.end, completion.ideal));
        assert!(earlier.is_none(), "{:?} completed twice", completion.flow);
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, _: Time, why: Failure) -> ControlFlow<()> {
        panic!("{flow:?} failed: {why:?}");
    }
}

fn flow(id: u64, src: u32, dst: u32, size: u64, start: Time) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start,
        class: Class::default(),
    }
}

fn spines() -> [SpineTable; 3] {
    [
        SpineTable::Scoc(ChipConfig::default()),
        SpineTable::Flat(FlatSpine::default()),
        SpineTable::OutputQueued(OutputQueuedTable {}),
    ]
}

fn small(spine: SpineTable) -> Config {
    let mut dctcp = dctcp::Config::default();
    dctcp.stream.handshake = false;
    let transport = Transport::Dctcp(dctcp);
    Config { nodes: 16, leaves: 4, spines: 4, spine, transport, ..Config::default() }
}

/// Carries flows, given by start, to the end.
fn carry(config: &Config, flows: &[Flow]) -> (Rack, Ends) {
    let mut rack = Rack::new(config.plan().unwrap(), 1);
    let mut ends = Ends::default();
    for flow in flows {
        while rack.now() < flow.start {
            rack.advance(flow.start, &mut ends);
        }
        rack.offer(flow);
    }
    assert_eq!(rack.advance(Time::NEVER, &mut ends), Advance::Idle);
    rack.check().unwrap();
    assert_eq!(ends.0.len(), flows.len(), "flows completed");
    (rack, ends)
}

#[test]
fn a_flow_alone_takes_its_ideal_time_and_the_waits_for_cycles_colours_and_slots() {
    for spine in spines() {
        // Two messages wait for a cycle each, a segment for a cycle and a colour or for two slots, and
        // a packet for those of its segments that take a line twice.
        let slack = Span::from_ns(250);
        for (id, size) in [1, 40, 288, 1_000, 1_448, 1_449, 10_000].into_iter().enumerate() {
            for (src, dst) in [(0, 1), (0, 4), (15, 2)] {
                let start = Time::from_ps(123_457);
                let config = small(spine.clone());
                let (_, ends) = carry(&config, &[flow(id as u64, src, dst, size, start)]);
                let (end, ideal) = ends.0[&(id as u64)];
                let took = end - start;
                let place = format!("{spine:?}: {size} B from {src} to {dst}");
                assert!(took >= ideal, "{place}: {took}, ideally {ideal}");
                assert!(took <= ideal + slack, "{place}: {took}, ideally {ideal}");
            }
        }
    }
}

/// Flows at random between the nodes, and at the end one from all others to node 0.
fn random_flows(seed: u64, nodes: u32, count: u64) -> Vec<Flow> {
    let mut stream = Stream::new(seed, "test/flows", 0);
    let mut start = Time::ZERO;
    let mut flows: Vec<Flow> = (0..count)
        .map(|id| {
            start += Span::from_ps(stream.below(400_000));
            let src = stream.below(nodes.into()) as u32;
            let dst = (src + 1 + stream.below(u64::from(nodes) - 1) as u32) % nodes;
            flow(id, src, dst, 1 + stream.below(40_000), start)
        })
        .collect();
    flows.extend((1..nodes).map(|src| flow(count + u64::from(src), src, 0, 30_000, start)));
    flows
}

fn transports() -> [Transport; 4] {
    [
        Transport::Newreno(newreno::Config::default()),
        Transport::Cubic(cubic::Config::default()),
        Transport::Dctcp(dctcp::Config::default()),
        Transport::Swift(swift::Config::default()),
    ]
}

#[test]
fn slow_m50_nothing_is_lost_and_nothing_is_faster_than_alone_whatever_the_spine_and_the_transport()
{
    for spine in spines() {
        for transport in transports() {
            let config = Config { transport, ..small(spine.clone()) };
            let flows = random_flows(3, 16, 150);
            let run = || {
                let (rack, ends) = carry(&config, &flows);
                for flow in &flows {
                    let (end, ideal) = ends.0[&flow.id.get()];
                    let took = end - flow.start;
                    assert!(took >= ideal, "{config:?}, {flow:?}: {took}, ideally {ideal}");
                }
                let sizes: Bytes = flows.iter().map(|flow| flow.size).sum();
                let totals = rack.totals();
                assert_eq!(totals.delivered, sizes);
                // Queues hold the burst; spines and links lose nothing.
                assert_eq!((totals.drops, totals.reorder_max), (0, Bytes::ZERO), "{config:?}");
                (totals, ends.0)
            };
            assert_eq!(run(), run(), "{config:?}");
        }
    }
}

#[test]
fn m50_packets_that_a_leaf_has_no_room_for_are_dropped_there_and_nowhere_else() {
    let config =
        Config { queue: Bytes::new(3_000), ..small(SpineTable::Scoc(ChipConfig::default())) };
    let newreno = Transport::Newreno(newreno::Config::default());
    let config = Config { transport: newreno, mark_from: Bytes::ZERO, ..config };
    let flows: Vec<Flow> =
        (1..16).map(|src| flow(u64::from(src), src, 0, 100_000, Time::ZERO)).collect();
    let (rack, _) = carry(&config, &flows);
    let details = rack.details();
    let dropped = details["dropped_at_leaves"].as_u64().unwrap();
    assert!(dropped > 0 && dropped == rack.totals().drops, "{details:?}");
    assert!(details["leaf_queue_max_bytes"].as_u64().unwrap() <= 3_000);
}

#[test]
fn m50_credits_bound_what_spines_hold_for_a_node() {
    for spine in spines() {
        let config = small(spine);
        let flows: Vec<Flow> =
            (4..16).map(|src| flow(u64::from(src), src, 0, 60_000, Time::ZERO)).collect();
        let (rack, _) = carry(&config, &flows);
        let details = rack.details();
        // 9 KB are six packets of 1500 B of six segments each, over four spines.
        let held = details["spine_max_packets"].as_u64().unwrap();
        assert!(held <= 36, "{held} segments in a spine: {details:?}");
    }
}

#[test]
fn m49_each_packet_between_leaves_costs_a_request_a_credit_and_an_acknowledgment() {
    let config = small(SpineTable::Scoc(ChipConfig::default()));
    // Ten packets of data, and TCP's acknowledgment of each.
    let (rack, _) = carry(&config, &[flow(0, 0, 5, 14_480, Time::ZERO)]);
    let details = rack.details();
    let count = |key: &str| details[key].as_u64().unwrap();
    assert_eq!(count("requests"), count("credits"));
    assert_eq!(count("requests"), count("acknowledgments"));
    assert_eq!(count("requests"), 20);
    // 1500 B are five segments of 288 B and one of 60 B; an acknowledgment is one.
    assert_eq!(count("segments"), 6 * 10 + 10);
    let (local, _) = carry(&config, &[flow(0, 0, 1, 14_480, Time::ZERO)]);
    assert_eq!(local.details()["requests"], 0);
}

#[test]
fn slow_a_permutation_of_long_flows_is_full_through_every_spine() {
    for spine in spines() {
        // A fifth spine for messages, and for TCP's acknowledgments.
        let config = Config { nodes: 32, leaves: 8, spines: 5, ..small(spine) };
        let flows: Vec<Flow> = (0..32)
            .map(|src| flow(u64::from(src), src, (src + 5) % 32, 1_000_000, Time::ZERO))
            .collect();
        for (end, _) in carry(&config, &flows).1.0.into_values() {
            // 1 MB, 1448 of 1500 B, at 25 Gb/s take 331.5 µs; acknowledgments of 52 B of each packet of
            // the flow the other way 11.5 µs.
            let slowdown = (end - Time::ZERO).as_seconds() / 343e-6;
            assert!((0.99..1.03).contains(&slowdown), "{config:?}: {slowdown}");
        }
    }
}

#[track_caller]
fn check_refused(config: &Config, expected: &[&str]) {
    let problems = config.plan().unwrap_err();
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, expected, "{problems:?}");
}

#[test]
fn bad_networks_are_refused_with_the_key_and_a_remedy() {
    let usual = Config::default;
    check_refused(&Config { nodes: 130, ..usual() }, &["nodes"]);
    check_refused(&Config { leaves: 1, spines: 0, ..usual() }, &["leaves", "spines"]);
    check_refused(&Config { segment: Bytes::new(321), ..usual() }, &["segment"]);
    check_refused(&Config { segment: Bytes::ZERO, ..usual() }, &["segment"]);
    check_refused(&Config { line_rate: Rate::default(), ..usual() }, &["line_rate"]);
    check_refused(&Config { line_rate: Rate::from_bps(1), ..usual() }, &["line_rate"]);
    check_refused(&Config { nodes: 5_000, leaves: 2, ..usual() }, &["nodes"]);
    check_refused(&Config { queue: Bytes::new(1_499), ..usual() }, &["queue"]);
    check_refused(&Config { credit: Bytes::new(1_499), ..usual() }, &["credit"]);
    check_refused(&Config { mark_from: Bytes::ZERO, ..usual() }, &["mark_from"]);
    let chip = ChipConfig { routes: 0, ..ChipConfig::default() };
    check_refused(&Config { spine: SpineTable::Scoc(chip), ..usual() }, &["spine.routes"]);
    let slow = FlatSpine { port_rate: Rate::from_gbps(24), ..FlatSpine::default() };
    check_refused(&Config { spine: SpineTable::Flat(slow), ..usual() }, &["spine.port_rate"]);
    let flat = FlatSpine { packets: 0, ..FlatSpine::default() };
    check_refused(&Config { spine: SpineTable::Flat(flat), ..usual() }, &["spine.packets"]);
    let dctcp = dctcp::Config { g: 2.0, ..dctcp::Config::default() };
    check_refused(&Config { transport: Transport::Dctcp(dctcp), ..usual() }, &["transport.g"]);
}

#[test]
fn a_resolved_table_gives_the_same_plan() {
    for spine in spines() {
        let plan = small(spine).plan().unwrap();
        assert_eq!(plan.config.plan().unwrap(), plan);
    }
}

/// 16 leaves of 16 links at 350 W for 3.2 Tbps (Shoal §5), 8 chips of 16 links at 150 W for 3.4 Tbps (SCOC §5),
/// 128 NICs at 12.4 W for 100 Gbps, ten times less on a node's chip.
#[test]
fn a_network_of_chips_draws_what_its_parts_do() {
    let bill = Rack::new(Config::default().plan().unwrap(), 1).bill().unwrap();
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found}");
    assert_eq!(bill.switches, 24);
    near(bill.switches_watts, 6.4 / 3.2 * 350.0 + 3.2 / 3.4 * 150.0);
    near(bill.nics_watts, 128.0 * 0.25 * 1.24);
    near(bill.cost, 9.6 / 3.2 + 128.0 * 0.25 / 64.0);
    let spine = SpineTable::Flat(FlatSpine::default());
    assert_eq!(Rack::new(small(spine).plan().unwrap(), 1).bill(), None);
}
