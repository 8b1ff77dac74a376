//! Links and nodes die and return, in any order and for any time: nodes that are connected come to know
//! the same of links and of flows, and what can be carried is.

use packets::config::Failures;
use packets::{Effect, Kind, Line, Opening, Outbox, Packet, Timer, Transport};
use proptest::sample::Index;
use rack::topology::{Graph, Mesh, PortId, Vertex};
use rack::{Component, Fault};

use super::*;
use crate::endpoint::kinds;

fn fault(component: Component, at: u64, until: Option<u64>) -> Fault {
    let time = |us: u64| Time::from_ps(us * 1_000_000);
    Fault { component, at: time(at), until: until.map(time) }
}

fn link(a: u32, b: u32) -> Component {
    Component::Link { a, b, link: 0 }
}

#[test]
fn m14_links_and_nodes_fail_and_return() {
    let faults = [
        fault(link(0, 1), 100, Some(9_000)),
        fault(link(5, 6), 2_000, Some(30_000)),
        fault(Component::Node(NodeId::new(10)), 1_000, Some(20_000)),
    ];
    let flows: Vec<Flow> = (0..200)
        .map(|id| {
            let (src, dst) = (id as u32 * 7 % 16, (id as u32 * 7 + 1 + id as u32 % 15) % 16);
            flow(id, src, dst, 100_000, Time::from_ps(id * 100_000_000))
        })
        .collect();
    for is_told in [false, true] {
        let config = Config { failures: told(is_told), ..torus(&[4, 4]) };
        let plan = config.plan().unwrap().with_faults(&faults).unwrap();
        let mut network = rack(&plan, 1);
        let ends = carry(&mut network, &flows);
        // Only the flows of the dead node may fail.
        let dead = NodeId::new(10);
        for (flow, why) in &ends.failed {
            assert!([flow.src, flow.dst].contains(&dead), "{flow:?} failed: {why:?}");
        }
        assert!(ends.failed.len() < 30, "{}", ends.failed.len());
        assert!(network.transport().neighbours.told() > 0);
    }
}

#[test]
fn where_nothing_can_fail_nobody_greets() {
    let mut network = rack(&torus(&[4, 4]).plan().unwrap(), 1);
    carry(&mut network, &permutation(16, 5, 300_000));
    assert_eq!(network.transport().neighbours.told(), 0);
}

/// Nodes do not know what is to fail: what does after all flows makes no difference to them.
#[test]
fn m14_nodes_do_not_know_what_is_to_fail() {
    let run = |at| {
        let faults = [fault(link(0, 1), at, Some(at + 10_000))];
        let plan = torus(&[4, 4]).plan().unwrap().with_faults(&faults).unwrap();
        let mut network = rack(&plan, 1);
        let ends = carry(&mut network, &permutation(16, 5, 300_000));
        let told = network.transport().neighbours.told();
        assert!(told > 0 && ends.completed.len() == 16);
        (told, ends.completed)
    };
    let late = run(10_000_000);
    for at in [30_000, 100_000, 900_000] {
        assert_eq!(run(at), late, "it fails after {at} us");
    }
}

/// A flow over one link, for which there is another way of three. The link dies early in it, at `at`
/// microseconds.
fn time_over_a_dead_link(until: Option<u64>) -> Span {
    let torus = torus(&[4, 4]);
    let faults = [fault(link(0, 1), 1_000, until)];
    let plan = torus.plan().unwrap().with_faults(&faults).unwrap();
    let mut network = rack(&plan, 1);
    let ends = carry(&mut network, &[flow(0, 0, 1, 10_000_000, Time::ZERO)]);
    assert_eq!(ends.completed.len(), 1);
    ends.completed[0].1 - Time::ZERO
}

#[test]
fn m14_a_flow_stands_still_until_its_link_is_found_dead() {
    // 10 MB and headers at 10 Gbps for at most half a millisecond, then 9.5 Gbps: 8.63 ms.
    let alone = Span::from_us(8_630);
    let short = time_over_a_dead_link(Some(1_500));
    assert!(short > alone + Span::from_us(400) && short < alone + Span::from_us(3_000), "{short}");
    // With the link dead from 1 ms on, nothing arrives for two intervals at least, for four and the hold
    // at most; 8.9 MB are left then, which go by three ways of 9.5 Gbps at most, and by three of the
    // flow's first rate of 10 Gbps at least.
    let long = time_over_a_dead_link(None);
    assert!(long > Span::from_us(1_000 + 2_000 + 2_450), "{long}");
    assert!(long < Span::from_us(1_000 + 4_200 + 7_500 + 1_000), "{long}");
}

#[test]
fn what_is_cut_off_takes_no_part_in_rates() {
    // Node 5 of a ring of six is cut off; a flow to it by way of any node would cross all links.
    let valiant = config::Class { protocol: Protocol::Valiant, ..config::Class::default() };
    let classes = vec![config::Class::default(), valiant];
    let faults = [fault(link(4, 5), 0, Some(60_000)), fault(link(5, 0), 0, Some(60_000))];
    let plan = Config { classes, ..torus(&[6]) }.plan().unwrap().with_faults(&faults).unwrap();
    let mut network = rack(&plan, 1);
    let start = Time::from_ps(10_000_000_000);
    let carried = flow(0, 0, 1, 12_000_000, start);
    network.offer(&carried);
    network.offer(&Flow { class: Class::new(1), ..flow(1, 0, 5, 1_000_000, start) });
    let mut ends = Ends::default();
    network.advance(start + Span::from_us(40_000), &mut ends);
    // All of 9.5 Gbps: 10.4 ms.
    let took = ends.completed[0].1 - start;
    assert!(took > Span::from_us(9_900) && took < Span::from_us(10_700), "{took}");
    // The other goes once the node is back.
    network.advance(Time::NEVER, &mut ends);
    assert_eq!(ends.completed.len(), 2);
}

/// Flows between nodes of a ring of `nodes`, of which the link from the last to the first is dead, that
/// start when all know that; and how they end. Each node sends to one `apart` places on, counted along
/// what is left of the ring, and back.
fn over_a_broken_ring(nodes: u32, protocol: Protocol, apart: u32) -> Ends {
    let classes = vec![config::Class { protocol, ..config::Class::default() }];
    let faults = [fault(link(0, nodes - 1), 0, None)];
    let plan = Config { classes, ..torus(&[nodes]) }.plan().unwrap().with_faults(&faults).unwrap();
    let mut network = rack(&plan, 1);
    let start = plan.changes_until().unwrap();
    let pairs = (0..nodes - apart).flat_map(|src| [(src, src + apart), (src + apart, src)]);
    let flows: Vec<Flow> =
        (0..).zip(pairs).map(|(id, (src, dst))| flow(id, src, dst, 10_000, start)).collect();
    let ends = carry(&mut network, &flows);
    assert_eq!(ends.completed.len() + ends.failed.len(), flows.len());
    ends
}

#[test]
fn i12_pairs_are_joined_as_far_as_a_route_leads() {
    // Half round the ring of 60 are 30 hops; along what is left of it, up to 59.
    for (apart, fails) in [(1, false), (42, false), (43, true), (59, true)] {
        let ends = over_a_broken_ring(60, Protocol::Rps, apart);
        assert_eq!((ends.completed.is_empty(), ends.failed.is_empty()), (fails, !fails), "{apart}");
    }
}

#[test]
fn i12_where_two_legs_are_too_long_packets_go_straight() {
    // Two legs are 40 hops at most while the ring is whole, and 78 after.
    assert!(over_a_broken_ring(40, Protocol::Valiant, 39).failed.is_empty());
    assert!(over_a_broken_ring(40, Protocol::Valiant, 5).failed.is_empty());
}

/// A rack of any shape.
pub(super) fn shape() -> impl Strategy<Value = Shape> {
    let dimensions = || prop::collection::vec(2u32..5, 1..3);
    let torus =
        dimensions().prop_map(|dimensions| Shape::Torus(Torus { dimensions, ..Torus::default() }));
    let mesh =
        dimensions().prop_map(|dimensions| Shape::Mesh(Mesh { dimensions, ..Mesh::default() }));
    prop_oneof![torus, mesh, graph()]
}

/// A ring of nodes with some chords.
fn graph() -> impl Strategy<Value = Shape> {
    let chords = prop::collection::vec((0u32..9, 1u32..8), 0..6);
    (3u32..10, chords).prop_map(|(nodes, chords)| {
        let ring = (0..nodes).map(|node| (node, (node + 1) % nodes));
        let chords = chords.iter().map(|&(a, by)| (a % nodes, (a + 1 + by % (nodes - 1)) % nodes));
        let lines = ring.chain(chords).map(|(a, b)| format!("{a},{b},10 Gbps,100 ns\n"));
        let edges = std::iter::once("a,b,rate,delay\n".to_string()).chain(lines).collect();
        Shape::Graph(Graph { hosts: nodes, edges, ..Graph::default() })
    })
}

/// Which part fails, when (in microseconds), and for how long; 0: for good.
pub(super) type Break = (Index, bool, u64, u64);

pub(super) fn breaks() -> impl Strategy<Value = Vec<Break>> {
    let long = prop_oneof![1 => Just(0), 2 => 1u64..300, 2 => 300u64..4_000, 2 => 4_000u64..20_000];
    prop::collection::vec((any::<Index>(), prop::bool::weighted(0.3), 0u64..20_000, long), 0..6)
}

/// The faults of a plan.
pub(super) fn faults(plan: &Plan, breaks: &[Break]) -> Vec<Fault> {
    let topology = &plan.network.topology;
    let links: Vec<PortId> = topology.links().collect();
    let one = |&(which, is_node, at, long): &Break| {
        let component = if is_node {
            Component::Node(NodeId::new(which.index(plan.nodes() as usize) as u32))
        } else {
            let port = *which.get(&links);
            let (a, b) = (topology.port(port).vertex, topology.port(port).peer);
            let place = topology
                .links_between(a, b)
                .position(|other| other == port || topology.port(other).reverse == port);
            Component::Link { a: a.get(), b: b.get(), link: place.unwrap() as u32 }
        };
        fault(component, at, (long > 0).then_some(at + long))
    };
    breaks.iter().map(one).collect()
}

/// The ports that work once nothing changes any more, and the nodes.
pub(super) fn last_state(plan: &Plan, faults: &[Fault]) -> (Vec<bool>, Vec<bool>) {
    let topology = &plan.network.topology;
    let mut ports = vec![true; topology.ports().len()];
    let mut nodes = vec![true; plan.nodes() as usize];
    for fault in faults.iter().filter(|fault| fault.until.is_none()) {
        let links: Vec<PortId> = match fault.component {
            Component::Node(node) => {
                nodes[node.index()] = false;
                topology.ports_of(Vertex::new(node.get())).collect()
            }
            Component::Link { a, b, link } => {
                let mut between = topology.links_between(Vertex::new(a), Vertex::new(b));
                between.nth(link as usize).into_iter().collect()
            }
            other => unreachable!("{other:?}"),
        };
        for port in links {
            ports[port.index()] = false;
            ports[topology.port(port).reverse.index()] = false;
        }
    }
    (ports, nodes)
}

/// By node: the least node of its part of the rack.
pub(super) fn parts(plan: &Plan, ports: &[bool]) -> Vec<u32> {
    let topology = &plan.network.topology;
    let mut part: Vec<u32> = (0..plan.nodes()).collect();
    for _ in 0..plan.nodes() {
        for (end, _) in topology.ports().iter().zip(ports).filter(|(_, works)| **works) {
            let least = part[end.vertex.index()].min(part[end.peer.index()]);
            (part[end.vertex.index()], part[end.peer.index()]) = (least, least);
        }
    }
    part
}

/// Flows between different nodes of a rack, that start within 20 ms.
pub(super) fn some_flows(nodes: u32, raw: &[(u32, u32, u64, u64)]) -> Vec<Flow> {
    let one = |(id, &(src, step, size, at)): (u64, &(u32, u32, u64, u64))| {
        let src = src % nodes;
        let dst = (src + 1 + step % (nodes - 1)) % nodes;
        flow(id, src, dst, size, Time::from_ps(at * 1_000_000))
    };
    (0..).zip(raw).map(one).collect()
}

/// Searches so often and so short that many fall among what fails.
fn frequent_searches() -> Selection {
    Selection {
        period: Span::from_us(400),
        turn: Turn::Random,
        age: Span::ZERO,
        population: 11,
        patience: 1,
        ..Selection::default()
    }
}

/// A rack in which parts fail and return, and flows that start within 20 ms.
#[derive(Clone, Debug)]
struct Trial {
    topology: Shape,
    faults: Vec<Fault>,
    /// Source, distance to the destination, size (1: it ends soon, 2: never), and when it starts in microseconds.
    raw: Vec<(u32, u32, u64, u64)>,
    protocol: Protocol,
    loss_rate: f64,
    is_told: bool,
    seed: u64,
}

/// Whether nodes are told of deaths, or give up after 10 ms in vain: far more than it takes to know of links.
pub(super) fn told(is_told: bool) -> Failures {
    let patience = Span::from_us(10_000);
    if is_told { Failures::told() } else { Failures { patience, ..Failures::default() } }
}

/// Once nothing changes any more and there is a flow, each node knows which links work in its part of the rack, and
/// all flows of sources there, and no others.
fn views_come_to_be_the_truth(trial: Trial) -> Result<(), TestCaseError> {
    let Trial { topology, faults, raw, protocol, loss_rate, is_told, seed } = trial;
    let classes = vec![config::Class { protocol, ..config::Class::default() }];
    // So that what is told does not wait behind data.
    let config =
        Config { topology, classes, loss_rate, broadcast_priority: 0, ..Config::default() };
    let plan = Config { failures: told(is_told), ..config }.plan().unwrap();
    let plan = plan.with_faults(&faults).unwrap();
    let (nodes, topology) = (plan.nodes(), plan.network.topology.clone());
    // Half of them end soon, the others never.
    let mut flows = some_flows(nodes, &raw);
    flows.iter_mut().for_each(|flow| {
        let size = flow.size.get();
        flow.size =
            Bytes::new([20_000, 20_000, 1 << 40].get(size as usize).copied().unwrap_or(size));
    });
    let last = plan.changes_until().unwrap_or(Time::ZERO).max(Time::from_ps(25_000_000_000));
    let (works, living) = last_state(&plan, &faults);
    let part = parts(&plan, &works);
    // And in each part of several nodes one that starts at last and never ends: where there is none nobody looks.
    for node in 0..nodes {
        let first = part[node as usize];
        if (first..node).filter(|&other| part[other as usize] == first).count() == 1 {
            flows.push(flow(flows.len() as u64, first, node, 1 << 40, last));
        }
    }
    let mut network = rack(&plan, seed);
    let mut ends = Ends::default();
    flows.iter().for_each(|flow| network.offer(flow));
    // With losses a link may be taken for dead now and then, and back.
    let patience = if loss_rate > 0.0 { 20_000 } else { 2_000 };
    // Who finds out by itself gives up a wait and the time of its patience later.
    let patience = if is_told { patience } else { patience + 15_000 };
    // And who has just heard of one that is out of reach waits whether news of a way come.
    let patience = Span::from_us(patience) + plan.config.discovery.duration() * 2;
    network.advance(last + patience, &mut ends);
    network.check().unwrap();
    let ended: Vec<_> = ends
        .completed
        .iter()
        .map(|(flow, _)| flow.id)
        .chain(ends.failed.iter().map(|(flow, _)| flow.id))
        .collect();
    let endpoints = network.transport();
    let facts = &endpoints.news.facts;
    for node in (0..nodes).map(NodeId::new).filter(|node| living[node.index()]) {
        let mut expected: Vec<_> = flows
            .iter()
            .filter(|flow| part[flow.src.index()] == part[node.index()])
            .filter(|flow| !ended.contains(&flow.id))
            .map(|flow| (flow.src, flow.dst))
            .collect();
        let mut known: Vec<_> = facts
            .known(node)
            .map(|id| (facts.fact(id).course.source, facts.fact(id).course.destination))
            .collect();
        expected.sort_unstable();
        known.sort_unstable();
        prop_assert_eq!(&known, &expected, "{} knows other flows", node);
        if expected.is_empty() {
            continue;
        }
        let routes = &endpoints.maps.of(node).routes;
        for port in topology.links() {
            let end = topology.port(port);
            if part[end.vertex.index()] == part[node.index()] {
                let lives = routes.network().lives(port);
                prop_assert_eq!(lives, works[port.index()], "{} of {:?}", node, end);
            }
        }
    }
    Ok(())
}

/// Node 0 dies for about as long as it takes to notice, and so does another shortly before.
#[test]
fn m14_a_node_that_returns_as_its_death_is_noticed_hears_of_all_flows() {
    let faults = vec![
        fault(link(0, 1), 0, Some(4_751)),
        fault(Component::Node(NodeId::new(6)), 2_429, Some(6_429)),
        fault(Component::Node(NodeId::new(0)), 6_728, Some(9_751)),
    ];
    let torus = Torus { dimensions: vec![4, 3], ..Torus::default() };
    let topology = Shape::Torus(torus);
    let raw = vec![(3, 3, 2, 0)];
    let seed = 101_164_152_107_268_654;
    let protocol = Protocol::Rps;
    let trial = Trial { topology, faults, raw, protocol, loss_rate: 0.0, is_told: false, seed };
    views_come_to_be_the_truth(Trial { is_told: true, ..trial.clone() }).unwrap();
    views_come_to_be_the_truth(trial).unwrap();
}

/// A ring of four is cut in two. One cut heals, and the link between nodes 1 and 2 fails for so short a time that
/// nobody notices, just when news of that pass by: node 2 hears a greeting later than the others that it can
/// reach node 3, and meanwhile what node 3 says comes directly, and after it what the short failure took.
fn late_news(flow: (u32, u32, u64, u64), is_told: bool) -> Trial {
    let faults = vec![
        fault(link(2, 3), 2_115, None),
        fault(link(1, 2), 10_224, Some(12_391)),
        fault(link(0, 1), 4_328, Some(10_291)),
    ];
    let topology = Shape::Torus(Torus { dimensions: vec![4], ..Torus::default() });
    let (protocol, raw, seed) = (Protocol::Rps, vec![flow], 2_258_043_105_491_796_753);
    Trial { topology, faults, raw, protocol, loss_rate: 0.0, is_told, seed }
}

#[test]
fn m14_what_is_heard_before_news_of_a_link_counts_after_them() {
    for is_told in [false, true] {
        // It starts before the news, and ends with an announcement that overtakes its start.
        views_come_to_be_the_truth(late_news((3, 1, 136_153, 7_391), is_told)).unwrap();
        // It starts while the news are under way, and does not end.
        views_come_to_be_the_truth(late_news((3, 1, 2, 12_600), is_told)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn slow_m14_views_of_links_and_flows_come_to_be_the_truth(
        topology in shape(),
        breaks in breaks(),
        raw in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..3, 0u64..20_000), 1..12),
        protocol in prop::sample::select(&[Protocol::Rps, Protocol::Valiant][..]),
        loss_rate in prop::sample::select(&[0.0, 0.0, 0.02][..]),
        is_told in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let plan = Config { topology: topology.clone(), ..Config::default() }.plan().unwrap();
        let faults = faults(&plan, &breaks);
        let trial = Trial { topology, faults, raw, protocol, loss_rate, is_told, seed };
        views_come_to_be_the_truth(trial)?;
    }

    /// Every flow between living nodes that are joined in the end completes, unless one of them was
    /// dead meanwhile; and when all is quiet nobody remembers any.
    #[test]
    fn slow_m14_what_can_be_carried_is(
        topology in shape(),
        breaks in breaks(),
        raw in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..300_000, 0u64..20_000), 1..20),
        protocol in prop::sample::select(&[Protocol::Rps, Protocol::Valiant, Protocol::RpsByHop][..]),
        loss_rate in prop::sample::select(&[0.0, 0.0, 0.02][..]),
        port_buffer in prop::sample::select(&[0u64, 0, 6_000][..]),
        interval in prop::sample::select(&[0u64, 500][..]),
        searches in any::<bool>(),
        is_told in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let config = Config {
            failures: if is_told { Failures::told() } else { Failures::default() },
            topology,
            classes: vec![config::Class { protocol, ..config::Class::default() }],
            loss_rate,
            port_buffer: Bytes::new(port_buffer),
            interval: Span::from_us(interval),
            selection: searches.then(frequent_searches),
            ..Config::default()
        };
        let plan = config.plan().unwrap();
        let faults = faults(&plan, &breaks);
        let plan = plan.with_faults(&faults).unwrap();
        let flows = some_flows(plan.nodes(), &raw);
        let mut network = rack(&plan, seed);
        let ends = carry(&mut network, &flows);
        let (works, _) = last_state(&plan, &faults);
        let part = parts(&plan, &works);
        for (flow, why) in &ends.failed {
            let was_dead = faults.iter().any(|fault| match fault.component {
                Component::Node(node) => node == flow.src || node == flow.dst,
                _ => false,
            });
            let is_cut = part[flow.src.index()] != part[flow.dst.index()];
            prop_assert!(was_dead || is_cut, "{:?} failed: {:?}", flow, why);
        }
    }
}

/// A node dies while a flow of many packets passes by it; the flow's packets are sent again after its
/// end was announced. A search then gives another flow of the same source another protocol.
#[test]
fn a_flow_that_sends_again_after_its_end_is_not_taken_for_another() {
    let config = Config {
        classes: vec![config::Class { protocol: Protocol::RpsByHop, ..config::Class::default() }],
        interval: Span::from_us(500),
        selection: Some(frequent_searches()),
        ..torus(&[4, 2])
    };
    let plan = config.plan().unwrap();
    let dies = fault(Component::Node(NodeId::new(6)), 12_288, Some(12_914));
    let plan = plan.with_faults(&[dies]).unwrap();
    let flows = [
        (6, 7, 14_169, 11_270),
        (5, 4, 1_465, 14_915),
        (5, 3, 166_897, 3_303),
        (5, 2, 213_745, 12_647),
        (6, 7, 1, 0),
        (4, 2, 298_623, 3_303),
    ];
    let flows = (0..).zip(flows).map(|(id, (src, dst, size, start))| {
        flow(id, src, dst, size, Time::ZERO + Span::from_us(start))
    });
    let flows: Vec<_> = flows.collect();
    let mut network = rack(&plan, 2_982_229_595_699_044_221);
    assert_eq!(carry(&mut network, &flows).completed.len(), 6);
}

/// The source of a flow of one packet, whose destination it takes to be cut off: it asks six times, each
/// after twice as long, and then no more.
#[test]
fn a_source_gives_up_who_is_out_of_reach() {
    let faults = [fault(link(0, 1), 0, None)];
    let config =
        Config { topology: graph_of_two(), failures: Failures::told(), ..Config::default() };
    let plan = config.plan().unwrap().with_faults(&faults).unwrap();
    let mut endpoints = Endpoints::new(&plan, 1);
    let patience = plan.config.recovery.patience;
    let start = plan.changes_until().unwrap() + Span::from_us(1);
    let mut out = Outbox::new(start);
    let key = FlowKey::new(0);
    let opening = Opening {
        key,
        label: FlowKey::label(key.place(), false),
        flow: flow(0, 0, 1, 1_000, start),
        paths: 1,
    };
    endpoints.start(&opening, &mut out);
    assert!(endpoints.pull(NodeId::new(0), Line::OPEN, &mut out).is_some());
    endpoints.maps.adopt(&plan, NodeId::new(0), plan.network.topology.links().collect());
    let mut waits = Vec::new();
    loop {
        let effects: Vec<Effect> = out.drain().collect();
        if effects.contains(&Effect::GiveUp(key)) {
            break;
        }
        let at = effects.iter().find_map(|effect| match effect {
            Effect::Set(timer @ Timer::Flow(..), at) => Some((*timer, *at)),
            _ => None,
        });
        let (timer, at) = at.expect("it asks again or gives up");
        waits.push((at - out.now()).as_ps() / patience.as_ps());
        out.set_now(at);
        endpoints.timer(timer, &mut out);
        // Nothing can be sent.
        assert_eq!(endpoints.pull(NodeId::new(0), Line::OPEN, &mut out), None);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64]);
}

fn graph_of_two() -> Shape {
    let edges = "a,b,rate,delay\n0,1,10 Gbps,100 ns\n".to_string();
    Shape::Graph(Graph { hosts: 2, edges, ..Graph::default() })
}

/// What makes no sense is counted, and no more.
#[test]
fn what_makes_no_sense_is_counted() {
    let plan = Config { loss_rate: 0.01, ..torus(&[4]) }.plan().unwrap();
    let mut endpoints = Endpoints::new(&plan, 1);
    let mut out = Outbox::default();
    let key = FlowKey::new(0);
    let opening = Opening {
        key,
        label: FlowKey::label(key.place(), false),
        flow: flow(0, 0, 1, 10_000, Time::ZERO),
        paths: 1,
    };
    endpoints.start(&opening, &mut out);
    let (source, destination) = (NodeId::new(0), NodeId::new(1));
    let to_source = Packet { src: destination, dst: source, flow: key, ..Packet::default() };
    let nonsense = [Kind::DATA, Kind::of_transport(98), kinds::ACK, kinds::NACK];
    for (count, kind) in (1..).zip(nonsense) {
        // No packet has been sent: none is there, and none is missing.
        endpoints.receive(source, &Packet { kind, seq: 5, ..to_source }, &mut out);
        assert_eq!(out.unexpected_count(), count, "{kind:?}");
    }
    let neighbour = Packet { flow: FlowKey::NEIGHBOURS, kind: Kind::of_transport(99), ..to_source };
    endpoints.receive(source, &neighbour, &mut out);
    assert_eq!(out.unexpected_count(), 5);
    let flow = FlowKey::receivers(0);
    let first = Packet { flow, src: source, dst: destination, payload: 1_464, ..Packet::default() };
    endpoints.accept(&first, FlowKey::label(0, true), &mut out);
    for (count, kind) in (6..).zip([kinds::ACK, kinds::NACK, Kind::of_transport(99)]) {
        endpoints.receive(destination, &Packet { kind, ..first }, &mut out);
        assert_eq!(out.unexpected_count(), count, "{kind:?}");
    }
}

/// A ring of nine, of which two links are dead, and one of these returns: the way to the destination is then longer
/// than nodes of the whole ring are apart. Its source gets there.
#[test]
fn m14_a_way_that_returns_is_found_however_long_it_is() {
    let faults = [fault(link(0, 8), 3_797, Some(29_370)), fault(link(1, 2), 12_677, None)];
    let plan = torus(&[9]).plan().unwrap().with_faults(&faults).unwrap();
    let at = |us: u64| Time::ZERO + Span::from_us(us);
    let mut network = rack(&plan, 1);
    // The first lets nodes find out that a link is dead.
    let ends =
        carry(&mut network, &[flow(0, 0, 8, 300_000, at(3_700)), flow(1, 2, 0, 1, at(12_677))]);
    assert!(ends.failed.is_empty(), "{:?}", ends.failed);
    // Some intervals after the link is back.
    assert!(ends.completed[1].1 < at(37_000), "{}", ends.completed[1].1);
}
