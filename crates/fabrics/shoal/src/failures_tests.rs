//! Nodes notice what breaks, and only what they can notice ends flows (§3.5).

use kernel::{Bytes, Span, Stream, Time};
use rack::{Advance, Component, Fabric, Failure, Fault, Flow, NodeId};

use crate::config::{Config, Transport};
use crate::rack::Rack;
use crate::schedule::Order;
use crate::shard::Shard;
use crate::tests::{Ends, flow};

/// Flows of `size` bytes among `nodes` at a load of 50 Gbps a node.
fn poisson(nodes: u32, count: u64, size: u64, load: f64, seed: u64) -> Vec<Flow> {
    let mut draw = Stream::new(seed, "test", 0);
    let mut at = 0.0;
    let flows = (0..count).map(|id| {
        at += draw.exponential(size as f64 * 8e12 / (50e9 * load * f64::from(nodes)));
        let src = draw.below(u64::from(nodes)) as u32;
        let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
        flow(id, src, dst, size, Time::from_ps(at as u64))
    });
    flows.collect()
}

/// Carries flows to their ends.
fn carry(config: &Config, faults: &[Fault], flows: &[Flow]) -> (Rack, Ends) {
    let mut rack = Rack::new(config.plan().unwrap().with_faults(faults).unwrap(), 1);
    let mut ends = Ends::default();
    for flow in flows {
        rack.advance(flow.start, &mut ends);
        rack.offer(flow);
    }
    assert_eq!(rack.advance(Time::NEVER, &mut ends), Advance::Idle);
    (rack, ends)
}

fn us(count: u64) -> Time {
    Time::ZERO + Span::from_us(count)
}

fn outage(component: Component, at: Time, length: Span) -> Fault {
    Fault { component, at, until: Some(at + length) }
}

fn config(nodes: u32) -> Config {
    Config { nodes, ..Config::default() }
}

#[test]
fn s91_s96_a_short_outage_ends_no_flow() {
    let flows = poisson(16, 400, 20_000, 0.8, 3);
    for (component, ns) in [
        (Component::NodeLink(NodeId::new(3)), 200),
        (Component::NodeLink(NodeId::new(3)), 30),
        (Component::NodeLink(NodeId::new(3)), 1_500),
        (Component::Leaf(0), 100),
    ] {
        let fault = outage(component, us(10), Span::from_ns(ns));
        let config = Config { radix: 8, ..config(16) };
        let (rack, ends) = carry(&config, &[fault], &flows);
        assert_eq!((ends.0.len(), ends.1.len()), (400, 0), "{component}, {ns} ns: {:?}", ends.1);
        let losses = rack.whole().losses.as_ref().unwrap();
        assert_eq!(losses.given_up, losses.taken_up, "{component}, {ns} ns");
        assert!(losses.given_up > 0, "{component}, {ns} ns");
        assert!(rack.totals().retransmissions > 0, "{component}, {ns} ns");
    }
}

/// An outage of a slot or two is noticed by those pairs only whose slot it hits.
#[test]
fn s92_who_misses_no_cell_notices_nothing() {
    let config = config(64);
    let plan = config.plan().unwrap();
    let epoch = u64::from(plan.schedule.slots());
    for slots in [1, 3, epoch / 2] {
        let fault = outage(Component::NodeLink(NodeId::new(9)), us(10), config.slot * slots);
        let (rack, ends) = carry(&config, &[fault], &poisson(64, 300, 5_000, 0.3, 1));
        assert_eq!(ends.1.len(), 0);
        // In each slot a node hears four others, and is heard by four: both sides of each pair notice.
        let hit = 2 * 2 * 4 * slots;
        let given_up = rack.whole().losses.as_ref().unwrap().given_up;
        assert!(given_up <= hit && given_up >= hit / 2, "{slots} slots: {given_up} of {hit}");
    }
}

#[test]
fn s96_flows_to_a_dead_node_end_when_their_sources_can_know() {
    let config = config(32);
    let plan = config.plan().unwrap();
    let epoch = config.slot * u64::from(plan.schedule.slots());
    let hop = config.slot * u64::from(plan.delay_slots);
    let fault = Fault { component: Component::Node(NodeId::new(7)), at: us(10), until: None };
    // Open when the node dies; offered right after; offered when all know; and its own.
    let flows = [
        flow(0, 3, 7, 100_000, us(9)),
        flow(1, 7, 4, 100_000, us(9)),
        flow(2, 4, 7, 1_000, Time::from_ps(10_010_000)),
        flow(3, 5, 7, 1_000, us(50)),
        flow(4, 7, 5, 1_000, us(50)),
        flow(5, 5, 6, 1_000, us(51)),
    ];
    let (_, ends) = carry(&config, &[fault], &flows);
    let failed = |id| ends.1.iter().find(|end| end.0 == id).copied().unwrap();
    assert_eq!(ends.0.iter().map(|end| end.0).collect::<Vec<_>>(), [5]);
    for id in [1, 4] {
        assert_eq!(failed(id).2, Failure::SourceDied);
    }
    for id in [0, 2] {
        let (_, at, why) = failed(id);
        assert_eq!(why, Failure::DestinationDied);
        // An epoch and a hop until all have noticed, as much until all have heard, and 64 epochs.
        let after = at - us(10);
        assert!(after > epoch * 64 && after <= epoch * 68 + hop * 3, "{id}: {after}, {epoch}");
    }
    assert_eq!((failed(3).1, failed(3).2), (us(50), Failure::DestinationDied));
}

#[test]
fn s95_a_node_that_comes_back_ends_the_flows_that_it_forgot_and_takes_new_ones() {
    let config = Config { reintegration_epochs: 1, ..config(32) };
    let fault = outage(Component::Node(NodeId::new(7)), us(10), Span::from_ns(2_000));
    let flows = [
        flow(0, 3, 7, 100_000, us(9)),
        flow(1, 3, 7, 10_000, us(11)),
        flow(2, 3, 7, 10_000, us(40)),
        flow(3, 7, 3, 10_000, us(41)),
    ];
    let (rack, ends) = carry(&config, &[fault], &flows);
    let mut completed: Vec<_> = ends.0.iter().map(|end| end.0).collect();
    completed.sort_unstable();
    assert_eq!(completed, [1, 2, 3]);
    let (id, at, why) = ends.1[0];
    assert_eq!((id, why), (0, Failure::DestinationDied));
    assert!(at > us(12) && at < us(16), "{at}");
    assert!(rack.totals().lost > Bytes::new(1));
}

/// Both ends of a pair forget its numbers when they die: what they send each other afterwards arrives.
#[test]
fn s95_nodes_that_have_both_come_back_hear_each_other() {
    let base = Config { reintegration_epochs: 1, ..config(16) };
    for update in [0, 3] {
        let config = Config { schedule_oracle_after: Span::from_us(update), ..base.clone() };
        let node = |node| Component::Node(NodeId::new(node));
        let faults = [
            outage(node(3), us(10), Span::from_us(10)),
            outage(node(5), us(12), Span::from_us(15)),
        ];
        let mut rack = Rack::new(config.plan().unwrap().with_faults(&faults).unwrap(), 1);
        let mut ends = Ends::default();
        for (first, at) in [(0, 1), (4, 60)] {
            for (id, (src, dst)) in (first..).zip([(3, 5), (5, 3), (3, 7), (7, 5)]) {
                rack.advance(us(at), &mut ends);
                rack.offer(&flow(id, src, dst, 5_000, us(at)));
            }
        }
        let advance = rack.advance(us(1_000), &mut ends);
        assert_eq!((advance, ends.0.len(), ends.1.len()), (Advance::Idle, 8, 0), "{update} us");
        assert!(ends.0.iter().all(|end| end.1 < us(80)), "{:?}", ends.0);
    }
}

/// One side of a pair may notice an outage that is over before the other side can: in a rack whose epoch is
/// much shorter than its propagation both part for good unless the hold-down counts from the later of the
/// two.
#[test]
fn s95_no_outage_however_short_parts_a_pair_for_good() {
    for (nodes, epochs) in [(8, 1), (16, 1), (16, 8), (64, 1)] {
        for ns in [1, 24, 47, 100, 700] {
            let config = Config { reintegration_epochs: epochs, ..config(nodes) };
            let fault = outage(Component::NodeLink(NodeId::new(1)), us(5), Span::from_ns(ns));
            let (rack, ends) = carry(&config, &[fault], &poisson(nodes, 200, 3_000, 0.5, 2));
            assert_eq!(ends.0.len(), 200);
            let down = |a, b| rack.whole().bank.down_since(a, b).is_some();
            let parted = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
            let parted: Vec<_> = parted.filter(|&(a, b)| a != b && down(a, b)).collect();
            assert_eq!(parted, [], "{nodes} nodes, {epochs} epochs, {ns} ns");
        }
    }
}

/// Without a transport what is lost stays lost: flows end without it, and so does the run.
#[test]
fn s96_without_a_transport_flows_that_lose_cells_fail() {
    let flows = poisson(16, 200, 20_000, 0.3, 1);
    let none = Config { radix: 8, transport: Transport::None, ..config(16) };
    let errors = Config { bit_error_rate: 5e-4, ..none.clone() };
    let (rack, ends) = carry(&errors, &[], &flows);
    assert_eq!(ends.0.len() + ends.1.len(), 200);
    assert!(ends.1.iter().all(|end| end.2 == Failure::PacketsLost), "{:?}", ends.1);
    // 512 bits a cell: one in 40 has errors that the checksum may miss, and does for one in 256 or so.
    assert!(!ends.1.is_empty() && ends.1.len() < 150, "{}", ends.1.len());
    assert!(rack.unfinished(9).is_empty());
    // Nodes that swallow cells before anyone knows.
    let fault = outage(Component::NodeLink(NodeId::new(3)), us(10), Span::from_ns(200));
    let (_, ends) = carry(&none, &[fault], &flows);
    assert_eq!(ends.0.len() + ends.1.len(), 200);
    assert!(ends.1.iter().all(|end| end.2 == Failure::PacketsLost), "{:?}", ends.1);
}

/// Queues of a few cells and bit errors together: what is dropped and what is damaged goes out again, and all
/// of it comes to an end.
#[test]
fn s83_s84_small_queues_and_bit_errors_come_to_an_end() {
    for (limit, errors) in [(4, 0.0), (4, 1e-5), (4, 2e-4), (2, 2e-4), (1, 1e-4)] {
        let config = Config { queue_limit: limit, bit_error_rate: errors, ..config(24) };
        let flows = poisson(24, 200, 20_000, 0.6, 1);
        let mut rack = Rack::new(config.plan().unwrap(), 1);
        let mut ends = Ends::default();
        for flow in &flows {
            rack.advance(flow.start, &mut ends);
            rack.offer(flow);
        }
        let advance = rack.advance(us(20_000), &mut ends);
        let place = format!("{limit} cells, {errors} errors a bit");
        assert_eq!((advance, ends.0.len()), (Advance::Idle, 200), "{place}");
        let last = ends.0.iter().map(|end| end.1).max().unwrap();
        // Without limit and errors they end after 72 us.
        assert!(last < us(2_000), "{place}: {last}");
    }
}

/// Whenever a node dies, the other gives up what it has to acknowledge, and the run ends.
#[test]
fn s96_nobody_owes_a_dead_node_an_acknowledgment_for_ever() {
    for deaths_at in (1_000..14_000).step_by(40) {
        let config = Config { schedule: Order::Cyclic, radix: 8, ..config(2) };
        let died = Time::ZERO + Span::from_ns(deaths_at);
        let fault = Fault { component: Component::Node(NodeId::new(0)), at: died, until: None };
        let mut rack = Rack::new(config.plan().unwrap().with_faults(&[fault]).unwrap(), 1);
        let mut ends = Ends::default();
        for flow in [flow(0, 0, 1, 1_123, Time::ZERO), flow(1, 1, 0, 711, Time::ZERO)] {
            rack.offer(&flow);
        }
        let advance = rack.advance(us(2_000), &mut ends);
        assert_eq!(advance, Advance::Idle, "dead from {died} on");
        assert_eq!(ends.0.len() + ends.1.len(), 2, "dead from {died} on");
    }
}

/// Whatever damages what nodes tell each other of a failure while no flow is under way: a source hears that nobody
/// reaches the destination, and gives up the flow that comes later.
#[test]
fn s26_damaged_notices_are_told_again_in_a_rack_without_flows() {
    for (seed, wire) in (0..40).flat_map(|seed| [0, 60, 229].map(|wire| (seed, wire))) {
        let config = Config {
            channels: 1,
            radix: 8,
            bit_error_rate: 3e-4,
            wire_latency: Span::from_ns(wire),
            ..config(9)
        };
        let at = Time::ZERO + Span::from_ns(587);
        let fault = Fault { component: Component::Leaf(0), at, until: None };
        let mut rack = Rack::new(config.plan().unwrap().with_faults(&[fault]).unwrap(), seed);
        let mut ends = Ends::default();
        rack.advance(us(6), &mut ends);
        rack.offer(&flow(0, 6, 0, 1_000, us(6)));
        let advance = rack.advance(us(1_000), &mut ends);
        let failed: Vec<_> = ends.1.iter().map(|end| (end.0, end.2)).collect();
        let place = format!("seed {seed}, wires of {wire} ns");
        assert_eq!(
            (advance, failed),
            (Advance::Idle, vec![(0, Failure::DestinationDied)]),
            "{place}"
        );
    }
}

/// Where cells come through one way only, and bit errors damage some of them, the rack comes to rest all the same:
/// what neither side can settle is said once. Both treat the pair as dead.
#[test]
fn s95_a_pair_that_works_one_way_stays_dead_and_at_rest() {
    let faults = [Component::Spine(1), Component::NodeLink(NodeId::new(7))]
        .map(|component| Fault { component, at: us(2), until: None });
    let mut one_way = 0;
    for (channels, wire) in [(1, 0), (1, 200), (2, 40)] {
        let config = Config {
            channels,
            schedule: Order::Cyclic,
            bit_error_rate: 3e-4,
            radix: 8,
            wire_latency: Span::from_ns(wire),
            ..config(16)
        };
        let mut rack = Rack::new(config.plan().unwrap().with_faults(&faults).unwrap(), 7);
        let mut ends = Ends::default();
        let flows = poisson(16, 60, 3_000, 0.5, 5);
        for flow in &flows {
            rack.advance(flow.start, &mut ends);
            rack.offer(flow);
        }
        let advance = rack.advance(us(20_000), &mut ends);
        assert_eq!((advance, rack.unfinished(9)), (Advance::Idle, vec![]), "{channels}, {wire} ns");
        let Shard { bank, losses, .. } = rack.whole();
        let faults = &losses.as_ref().unwrap().faults;
        let pairs = (0..16).flat_map(|a| (0..16).map(move |b| (a, b)));
        let dark: Vec<_> = pairs.filter(|&(a, b)| a != b && faults.is_broken(a, b)).collect();
        one_way += dark.iter().filter(|&&(a, b)| !faults.is_broken(b, a)).count();
        let is_dead = |&(a, b): &(u32, u32)| bank.is_down(a, b) && bank.is_down(b, a);
        assert!(dark.iter().all(is_dead), "{channels}, {wire} ns");
    }
    assert!(one_way > 0);
}
