//! What breaks, and how the network goes on.

use rack::Component;
use rack::topology::{Graph, LeafSpine, Torus};

use super::*;
use crate::config::{CreditFlow, Failures, FlowControl, PerFlow, Pfc, Routing};

const MICROSECOND: u64 = 1_000_000;

fn clos() -> Config {
    let topology = Shape::LeafSpine(LeafSpine { hosts: 16, radix: 8, ..Default::default() });
    let convergence = Span::from_us(20);
    let failures = Failures { silence: Span::from_us(200_000), ..Failures::default() };
    Config { topology, convergence, failures, queues: endless(), ..Config::default() }
}

fn fault(component: Component, at: u64, until: Option<u64>) -> Fault {
    Fault { component, at: Time::from_ps(at), until: until.map(Time::from_ps) }
}

fn all_pairs(hosts: u32, size: u64) -> Vec<Flow> {
    let pairs = (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (src, dst)));
    let pairs = pairs.filter(|(src, dst)| src != dst).zip(0..);
    pairs.map(|((src, dst), id)| flow(id, src, dst, size, 0)).collect()
}

/// Every flow completes, with losses on the way.
#[track_caller]
fn check_recovers(config: &Config, faults: &[Fault]) -> Network<LineRate> {
    let mut network = raw(plan(config, faults), REPEAT, 1);
    let flows = all_pairs(config.plan().unwrap().topology.hosts(), 30_000);
    let ends = run(&mut network, &flows);
    assert_eq!((ends.completed.len(), ends.failed.len()), (flows.len(), 0), "{faults:?}");
    assert_eq!(network.totals().delivered.get(), 30_000 * flows.len() as u64);
    network
}

#[test]
fn a_dead_spine_is_gone_round_after_convergence() {
    let network = check_recovers(&clos(), &[fault(Component::Spine(0), 10 * MICROSECOND, None)]);
    assert!(network.net().counts.dead_link > 0);
    assert_eq!(network.net().counts.unroutable, 0);
}

#[test]
fn a_link_that_flaps_loses_packets_and_no_flow() {
    for component in [
        Component::LeafSpine { leaf: 1, spine: 1, link: 0 },
        Component::NodeLink(NodeId::new(3)),
        Component::Leaf(0),
    ] {
        let faults: Vec<_> = (1..6)
            .map(|k| {
                let at = 20 * k * MICROSECOND;
                fault(component, at, Some(at + 7 * MICROSECOND))
            })
            .collect();
        let network = check_recovers(&clos(), &faults);
        assert!(network.totals().drops > 0, "{component}");
    }
}

#[test]
fn overlapping_faults_of_one_link_end_with_the_last() {
    let link = Component::LeafSpine { leaf: 0, spine: 0, link: 0 };
    let faults = [
        fault(link, 10 * MICROSECOND, Some(50 * MICROSECOND)),
        fault(Component::Spine(0), 20 * MICROSECOND, Some(30 * MICROSECOND)),
        fault(link, 25 * MICROSECOND, Some(70 * MICROSECOND)),
    ];
    let network = check_recovers(&clos(), &faults);
    assert!(network.net().ports.iter().all(|port| port.faults == 0));
    assert_eq!(network.net().live, crate::route::Live::all(&network.net().plan.topology));
}

/// Hosts that know of deaths once routes have converged.
fn oracle() -> Config {
    let failures = Failures { oracle: true, ..Failures::default() };
    Config { failures, ..clos() }
}

/// Hosts that find out by themselves.
fn patient(patience: Span, silence: Span) -> Config {
    Config { failures: Failures { oracle: false, patience, silence }, ..clos() }
}

/// A host dies: what it sent has failed at once, for nobody is left who would say so; its flows' other sources
/// wait in vain for as long as is stated, and for no more than a time-out longer; all halves are closed in
/// the end, and whatever else there is goes on.
#[test]
fn without_an_oracle_silence_tells_of_a_dead_host() {
    let dead = NodeId::new(5);
    let died = Time::from_ps(10 * MICROSECOND);
    let faults = [fault(Component::Node(dead), 10 * MICROSECOND, None)];
    for patience_us in [300, 2_000] {
        let patience = Span::from_us(patience_us);
        let mut network = raw(plan(&patient(patience, patience * 40), &faults), REPEAT, 1);
        let mut ends = run(&mut network, &all_pairs(16, 300_000));
        assert_eq!((ends.completed.len(), ends.failed.len()), (240 - 30, 30));
        for (flow, at, why) in &ends.failed {
            if flow.src == dead {
                assert_eq!((*at, *why), (died, Failure::SourceDied));
                continue;
            }
            assert_eq!((flow.dst, *why), (dead, Failure::DestinationDied));
            assert!(*at >= died + patience, "{flow:?} at {at:?}");
            // Time-outs double: the last is as long as all before it and the time to send what went at first.
            assert!(*at < died + patience * 4 + Span::from_us(5_000), "{flow:?} at {at:?}");
        }
        network.advance(Time::NEVER, &mut ends);
        assert_eq!(network.net().halves.open().count(), 0);
        network.check().unwrap();
        // A flow offered to it later fails too, and one from it at once.
        let now = network.now();
        let before = Time::from_ps(now.as_ps().min(1_000_000 * MICROSECOND));
        network.offer(&flow(999, 0, 5, 1, before.as_ps()));
        network.offer(&flow(1_000, 5, 0, 1, before.as_ps()));
        network.advance(Time::NEVER, &mut ends);
        assert_eq!(ends.failed.len(), 32);
        let totals = network.totals();
        assert_eq!(totals.delivered.get() + totals.lost.get(), 300_000 * 240 + 2);
    }
}

/// A host that is back before anybody gives up has forgotten what it was told: its flows fail. Those of which
/// it had heard nothing go on.
#[test]
fn without_an_oracle_a_host_that_comes_back_has_forgotten_its_flows() {
    let node = Component::Node(NodeId::new(1));
    let faults = [fault(node, 10 * MICROSECOND, Some(400 * MICROSECOND))];
    let config = patient(Span::from_us(5_000), Span::from_us(50_000));
    let mut network = raw(plan(&config, &faults), REPEAT, 1);
    let flows = [
        flow(0, 0, 1, 1_000_000, 0),
        flow(1, 1, 2, 1_000_000, 0),
        flow(2, 3, 1, 10_000, 11 * MICROSECOND),
        flow(3, 4, 1, 10_000, 500 * MICROSECOND),
    ];
    let ends = run(&mut network, &flows);
    let whys: Vec<_> = ends.failed.iter().map(|(flow, _, why)| (flow.id.get(), *why)).collect();
    assert_eq!(whys, [(1, Failure::SourceDied), (0, Failure::DestinationDied)]);
    assert_eq!(ends.completed.len(), 2);
}

/// A host whose link is out for less than others wait loses no flow. If it is out for longer those to it fail,
/// and so do those from it, although its transport waits for its line and not for answers.
#[test]
fn without_an_oracle_an_outage_is_survived_that_is_shorter_than_patience() {
    let link = Component::NodeLink(NodeId::new(2));
    for (until, fails) in [(2_000, false), (100_000, true)] {
        let faults = [fault(link, 10 * MICROSECOND, Some(until * MICROSECOND))];
        let config = patient(Span::from_us(10_000), Span::from_us(200_000));
        let mut network = raw(plan(&config, &faults), REPEAT, 1);
        let ends = run(&mut network, &all_pairs(16, 300_000));
        assert_eq!(ends.failed.len(), if fails { 30 } else { 0 }, "{until} us");
        let is_of_it = |flow: &Flow| [flow.src, flow.dst].contains(&NodeId::new(2));
        assert!(ends.failed.iter().all(|(flow, ..)| is_of_it(flow)), "{until} us");
        assert_eq!(ends.completed.len() + ends.failed.len(), 240);
    }
}

/// A host is cut off for good: what it was to send, and is given to send later, has failed once its line has been
/// dead for as long as it is patient. Nothing is left, and the run ends.
#[test]
fn without_an_oracle_a_host_cut_off_for_good_gives_up_what_it_was_to_send() {
    let (lone, cut) = (NodeId::new(2), Time::from_ps(10 * MICROSECOND));
    let faults = [fault(Component::NodeLink(lone), 10 * MICROSECOND, None)];
    let patience = Span::from_us(5_000);
    let config = patient(patience, Span::from_us(50_000));
    let mut network = raw(plan(&config, &faults), REPEAT, 1);
    let late = Time::from_ps(2_000 * MICROSECOND);
    let mut flows = all_pairs(16, 300_000);
    flows.push(flow(999, 2, 7, 1, late.as_ps()));
    let mut ends = run(&mut network, &flows);
    assert_eq!((ends.completed.len(), ends.failed.len()), (240 - 30, 31));
    for (flow, at, _) in ends.failed.iter().filter(|(flow, ..)| flow.src == lone) {
        let from = cut.max(flow.start);
        // It looks no more often than four times in its patience.
        assert!(*at >= from + patience && *at <= from + patience * 5 / 4, "{flow:?} at {at:?}");
    }
    assert_eq!(network.advance(Time::NEVER, &mut ends), Advance::Idle);
    assert_eq!(network.net().halves.open().count(), 0);
}

#[test]
fn flows_of_a_dead_host_fail_and_the_others_go_on() {
    let dead = NodeId::new(5);
    let faults = [fault(Component::Node(dead), 10 * MICROSECOND, None)];
    let mut network = raw(plan(&oracle(), &faults), REPEAT, 1);
    let flows = all_pairs(16, 300_000);
    let mut ends = run(&mut network, &flows);
    let touches = |flow: &Flow| flow.src == dead || flow.dst == dead;
    assert_eq!(ends.failed.len(), 30);
    for (flow, at, why) in &ends.failed {
        assert!(touches(flow));
        // Not before routes have converged: nobody knows it sooner.
        assert_eq!(*at, Time::from_ps(30 * MICROSECOND));
        let expected =
            if flow.src == dead { Failure::SourceDied } else { Failure::DestinationDied };
        assert_eq!(*why, expected);
    }
    assert_eq!(ends.completed.len(), 16 * 15 - 30);
    // A flow offered to it later fails at once.
    network.offer(&flow(999, 0, 5, 1, network.now().as_ps()));
    network.advance(Time::NEVER, &mut ends);
    assert_eq!(ends.failed.len(), 31);
    let totals = network.totals();
    let offered = 300_000 * flows.len() as u64 + 1;
    assert_eq!(totals.delivered.get() + totals.lost.get(), offered);
}

#[test]
fn a_host_cut_off_for_good_fails_its_flows_once_routes_have_converged() {
    let lone = NodeId::new(2);
    let faults = [fault(Component::NodeLink(lone), 10 * MICROSECOND, None)];
    let mut network = raw(plan(&oracle(), &faults), REPEAT, 1);
    let ends = run(&mut network, &all_pairs(16, 300_000));
    assert_eq!((ends.completed.len(), ends.failed.len()), (240 - 30, 30));
    let converged = Time::from_ps(30 * MICROSECOND);
    assert!(ends.failed.iter().all(|(_, at, _)| *at == converged));
}

#[test]
fn a_host_that_comes_back_carries_new_flows() {
    let node = Component::Node(NodeId::new(1));
    let faults = [fault(node, 0, Some(100 * MICROSECOND))];
    let flows = [flow(0, 0, 1, 10_000, MICROSECOND), flow(1, 0, 1, 10_000, 200 * MICROSECOND)];
    let ends = run(&mut raw(plan(&oracle(), &faults), REPEAT, 1), &flows);
    assert_eq!((ends.completed.len(), ends.failed.len()), (1, 1));
    assert_eq!(ends.completed[0].0.id, FlowId::new(1));
    // Whoever does not know that it was dead finds it alive the next time.
    let ends = run(&mut raw(plan(&clos(), &faults), REPEAT, 1), &flows);
    assert_eq!((ends.completed.len(), ends.failed.len()), (2, 0));
}

/// A flow that starts before a death is known goes on until it is; that of a host that was back before is
/// lost all the same. Nobody but its source knows whether a flow began before the death or since: so all that
/// began before it was known are forgotten.
#[test]
fn no_flow_fails_before_a_death_is_known() {
    let node = Component::Node(NodeId::new(1));
    for until in [None, Some(12 * MICROSECOND), Some(500 * MICROSECOND)] {
        let faults = [fault(node, 10 * MICROSECOND, until)];
        let mut network = raw(plan(&oracle(), &faults), REPEAT, 1);
        let flows = [
            flow(0, 0, 1, 1_000_000, 0),
            flow(1, 1, 2, 1_000_000, 0),
            flow(2, 3, 1, 10_000, 11 * MICROSECOND),
        ];
        let ends = run(&mut network, &flows);
        let mut failed: Vec<_> = ends.failed.iter().map(|(flow, at, _)| (flow.id, *at)).collect();
        failed.sort();
        let known = Time::from_ps(30 * MICROSECOND);
        let expected = [0, 1, 2].map(|id| (FlowId::new(id), known));
        assert_eq!(failed, expected, "back at {until:?}");
    }
}

/// A cable that is out for 200 ns loses packets and no flow.
#[test]
fn a_short_outage_loses_packets_only() {
    let link = Component::NodeLink(NodeId::new(3));
    let at = 10 * MICROSECOND;
    let network = check_recovers(&clos(), &[fault(link, at, Some(at + 200_000))]);
    assert!(network.net().counts.dead_link > 0);
}

/// Two links joined by a slow one, and by two fast ones: what goes round when the slow one is out is
/// faster than what is alone on it, and still none is faster than its ideal.
#[test]
fn no_flow_is_faster_than_its_ideal_where_the_way_round_is_faster() {
    let edges = "a,b,rate,delay\n0,2,10 Gbps,100 ns\n1,3,10 Gbps,100 ns\n2,3,1 Gbps,10 us\n\
                 2,4,100 Gbps,10 ns\n4,3,100 Gbps,10 ns\n";
    let topology = Shape::Graph(Graph { hosts: 2, edges: edges.into(), ..Graph::default() });
    let config = Config { topology, ..clos() };
    let link = Component::Link { a: 2, b: 3, link: 0 };
    let mut network = raw(plan(&config, &[fault(link, 0, Some(5_000 * MICROSECOND))]), REPEAT, 1);
    let flows: Vec<_> = (0..9).map(|k| flow(k, 0, 1, 100_000, k * 1_000 * MICROSECOND)).collect();
    let ends = run(&mut network, &flows);
    assert_eq!(ends.completed.len(), 9);
    for (flow, end, ideal, _) in &ends.completed {
        assert!(*end - flow.start >= *ideal, "{flow:?}");
        assert_eq!(*ideal, network.ideal_fct(flow));
    }
}

/// Faults make no ideal longer: what ends before its way is long, or after, is not faster than it. Nor does
/// it change as they come and go.
#[test]
fn an_ideal_is_that_of_the_whole_network() {
    let topology = Shape::Torus(Torus { dimensions: vec![4, 4], ..Default::default() });
    let config = Config { topology, ..clos() };
    let link = Component::Link { a: 0, b: 1, link: 0 };
    let alone = flow(0, 0, 1, 100_000, 0);
    let whole = raw(plan(&config, &[]), REPEAT, 1).ideal_fct(&alone);
    let mut network = raw(plan(&config, &[fault(link, MICROSECOND, None)]), REPEAT, 1);
    let before = network.ideal_fct(&alone);
    network.advance(Time::from_ps(100 * MICROSECOND), &mut ());
    assert_eq!(network.ideal_fct(&alone), before);
    assert!(before <= whole);
}

/// A link on a flow's way dies when much of it waits before that: what waits goes on by another way while
/// the rest takes a third.
#[test]
fn no_flow_of_a_torus_is_faster_than_its_ideal_by_several_ways() {
    let topology = Shape::Torus(Torus { dimensions: vec![4, 4], ..Default::default() });
    let config = Config { topology, ..clos() };
    for (a, b) in [(1, 5), (4, 5)] {
        let link = Component::Link { a, b, link: 0 };
        let faults = [fault(link, 10 * MICROSECOND, None)];
        let mut network = raw(plan(&config, &faults), REPEAT, 1);
        let ends = run(&mut network, &[flow(0, 0, 5, 1_000_000, 0)]);
        for (flow, end, ideal, _) in &ends.completed {
            assert!(*end - flow.start >= *ideal, "{flow:?} by {}", *end - flow.start);
        }
    }
}

#[test]
fn a_torus_routes_round_dead_nodes_and_links() {
    let topology = Shape::Torus(Torus { dimensions: vec![4, 4], ..Default::default() });
    let config = Config { topology, ..clos() };
    let faults = [
        fault(Component::Link { a: 0, b: 1, link: 0 }, MICROSECOND, Some(90 * MICROSECOND)),
        fault(Component::Link { a: 6, b: 10, link: 0 }, MICROSECOND, None),
    ];
    check_recovers(&config, &faults);
}

#[test]
fn flow_control_survives_flaps() {
    for flow_control in [
        FlowControl::Pfc(Pfc::default()),
        FlowControl::Credit(CreditFlow::default()),
        FlowControl::PerFlow(PerFlow::default()),
    ] {
        let queues = Queues { flow_control: flow_control.clone(), ..Queues::default() };
        let config = Config { queues, routing: Routing::RandomSpray, ..clos() };
        let link = |k: u64| Component::LeafSpine { leaf: (k % 4) as u32, spine: 0, link: 0 };
        let faults: Vec<_> = (1..12)
            .map(|k| {
                let at = 9 * k * MICROSECOND;
                fault(link(k), at, Some(at + 5 * MICROSECOND))
            })
            .collect();
        let network = check_recovers(&config, &faults);
        assert!(network.net().ports.iter().all(|port| port.held == 0), "{flow_control:?}");
    }
}

#[test]
fn losses_and_corruption_come_at_their_rates() {
    let config = Config { loss_rate: 0.01, bit_error_rate: 1e-6, ..clos() };
    let network = check_recovers(&config, &[]);
    let counts = &network.net().counts;
    let hops = counts.hops as f64;
    let check = |found: u64, expected: f64| {
        let deviation = expected.sqrt();
        assert!((found as f64 - expected).abs() < 5.0 * deviation, "{found} for {expected}");
    };
    check(counts.lost, 0.01 * hops);
    // One flipped bit is enough: of data, whose packets are 1,500 bytes but for the last of a flow, or of
    // an acknowledgment of 64.
    let data = counts.payload_hops as f64 * (20.0 * 1_500.0 + 840.0) / 21.0;
    let bits = 8.0 * (data + (hops - counts.payload_hops as f64) * 64.0);
    check(counts.corrupted, 0.99 * 1e-6 * bits);
}
