//! The fluid oracle against closed forms, and its rates against an independent solver on all links.

use std::ops::ControlFlow;

use kernel::{Rate, Stream};
use proptest::prelude::*;
use rack::fairness::{self, max_min};
use rack::topology::{LeafSpine, Mesh, Shape, SingleSwitch, ThreeTier, Torus};
use rack::{Class, Component, Fault, FlowId};

use super::*;
use crate::config::Config;

const FRAMING: Framing = Framing { payload: 1460, header: 40 };

fn plan(topology: Shape) -> Plan {
    Config { topology, ..Config::default() }.plan().unwrap()
}

fn flow(id: u64, src: u32, dst: u32, size: u64, start: u64) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start: Time::from_ps(start),
        class: Class::new(0),
    }
}

#[derive(Default)]
struct Ends {
    completed: Vec<(u64, Span, Span)>,
    failed: Vec<u64>,
}

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let flow = completion.flow;
        let all: Span = completion.stages.iter().copied().sum();
        assert_eq!(all, completion.end - flow.start);
        self.completed.push((flow.id.get(), completion.end - flow.start, completion.ideal));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, _: Time, _: Failure) -> ControlFlow<()> {
        self.failed.push(flow.id.get());
        ControlFlow::Continue(())
    }
}

fn run(oracle: &mut Oracle, flows: &[Flow]) -> Ends {
    let mut ends = Ends::default();
    flows.iter().for_each(|flow| oracle.offer(flow));
    assert_eq!(oracle.advance(Time::NEVER, &mut ends), Advance::Idle);
    assert!(oracle.unfinished(1).is_empty());
    ends
}

fn rack() -> Shape {
    Shape::LeafSpine(LeafSpine { hosts: 32, radix: 8, ..Default::default() })
}

#[test]
fn a_flow_alone_takes_its_ideal_time() {
    for size in [1, 1460, 1461, 1_000_000] {
        let mut oracle = Oracle::new(plan(rack()), FRAMING);
        let (_, fct, ideal) = run(&mut oracle, &[flow(0, 0, 31, size, 5)]).completed[0];
        assert!(fct.as_ps().abs_diff(ideal.as_ps()) <= 1, "{fct} for {ideal}");
    }
}

#[test]
fn an_incast_shares_the_receiver_and_ends_together() {
    let mut oracle = Oracle::new(plan(rack()), FRAMING);
    let flows: Vec<_> = (0..8).map(|src| flow(src.into(), src, 31, 1_460_000, 0)).collect();
    let ends = run(&mut oracle, &flows);
    for (_, fct, ideal) in ends.completed {
        // Eight times the line's time of 1,000 packets, and the rest as alone.
        let line = Rate::from_gbps(50).send_time(Bytes::new(1_500_000));
        let expected = line * 8 + (ideal - line);
        assert!(fct.as_ps().abs_diff(expected.as_ps()) <= 10, "{fct} for {expected}");
    }
}

/// All start at one instant, and each line is shared by as many as the rack has other hosts.
#[test]
fn an_all_to_all_shares_all_lines_and_ends_together() {
    let shape = Shape::SingleSwitch(SingleSwitch { hosts: 32, ..Default::default() });
    let mut oracle = Oracle::new(plan(shape), FRAMING);
    let pairs = (0..32u32).flat_map(|src| (0..32u32).map(move |dst| (src, dst)));
    let pairs = pairs.filter(|(src, dst)| src != dst);
    let flows: Vec<_> =
        (0..).zip(pairs).map(|(id, (src, dst))| flow(id, src, dst, 146_000, 0)).collect();
    let ends = run(&mut oracle, &flows);
    assert_eq!(ends.completed.len(), 32 * 31);
    for (_, fct, ideal) in ends.completed {
        let line = Rate::from_gbps(50).send_time(Bytes::new(150_000));
        let expected = line * 31 + (ideal - line);
        assert!(fct.as_ps().abs_diff(expected.as_ps()) <= 31, "{fct} for {expected}");
    }
}

#[test]
fn what_one_flow_leaves_the_other_takes() {
    // Two flows from one host: the short one ends, the long one goes on with all of the line.
    let shape = Shape::SingleSwitch(SingleSwitch { hosts: 3, ..Default::default() });
    let mut oracle = Oracle::new(plan(shape), FRAMING);
    let flows = [flow(0, 0, 1, 1_460_000, 0), flow(1, 0, 2, 14_600_000, 0)];
    let ends = run(&mut oracle, &flows);
    let line = |packets: u64| Rate::from_gbps(50).send_time(Bytes::new(1500 * packets));
    for ((id, fct, ideal), expected) in ends.completed.into_iter().zip([line(2_000), line(11_000)])
    {
        let expected = expected + ideal - line(if id == 0 { 1_000 } else { 10_000 });
        assert!(fct.as_ps().abs_diff(expected.as_ps()) <= 10, "flow {id}: {fct} for {expected}");
    }
}

#[test]
fn flows_of_dead_nodes_fail_and_give_way() {
    let at = Time::from_ps(100_000_000);
    let fault = Fault { component: Component::Node(NodeId::new(1)), at, until: None };
    let plan = plan(rack()).with_faults(&[fault]).unwrap();
    let mut oracle = Oracle::new(plan, FRAMING);
    let flows =
        [flow(0, 0, 1, 14_600_000, 0), flow(1, 0, 2, 14_600_000, 0), flow(2, 1, 2, 1, 200_000_000)];
    let ends = run(&mut oracle, &flows);
    assert_eq!(ends.failed, [0, 2]);
    let (_, fct, ideal) = ends.completed[0];
    // Half the line for 100 µs costs 50 µs.
    let late = (fct - ideal).as_ps();
    assert!(late.abs_diff(50_000_000) <= 10, "{late}");
    let totals = oracle.totals();
    assert_eq!(totals.delivered + totals.lost, Bytes::new(2 * 14_600_000 + 1));
}

/// A flow from each host of leaf 0 to leaf 7, at line rate until something breaks after 100 µs.
fn with_fault(component: Component, until: Option<Time>) -> (Ends, Oracle) {
    let fault = Fault { component, at: Time::from_ps(100_000_000), until };
    let plan = plan(rack()).with_faults(&[fault]).unwrap();
    let mut oracle = Oracle::new(plan, FRAMING);
    let flows = [0u32, 1, 2, 3].map(|src| flow(src.into(), src, 28 + src, 14_600_000, 0));
    let ends = run(&mut oracle, &flows);
    (ends, oracle)
}

#[test]
fn a_dead_spine_takes_its_share_of_what_leaves_a_leaf() {
    // Four flows fill the four links up from a leaf. One of them goes after 100 µs: three quarters of
    // the line are left for each of the flows, which have 15,000,000 - 625,000 bytes to send.
    let line = Rate::from_gbps(50).send_time(Bytes::new(15_000_000));
    for component in [Component::Spine(2), Component::LeafSpine { leaf: 0, spine: 2, link: 0 }] {
        let (ends, oracle) = with_fault(component, None);
        assert_eq!(ends.completed.len(), 4);
        for (_, fct, ideal) in &ends.completed {
            let late = *fct - *ideal;
            let expected = (line - Span::from_us(100)).as_ps() / 3;
            assert!(late.as_ps().abs_diff(expected) <= 10, "{component}: {late} for {expected} ps");
        }
        assert_eq!(oracle.totals().lost, Bytes::ZERO);
    }
}

#[test]
fn flows_without_a_path_wait_for_a_repair_or_fail() {
    let until = Time::from_ps(900_000_000);
    for component in [Component::Leaf(7), Component::Leaf(0)] {
        let (ends, _) = with_fault(component, Some(until));
        for (_, fct, ideal) in &ends.completed {
            // 800 µs without any path.
            assert!((*fct - *ideal).as_ps().abs_diff(800_000_000) <= 10, "{component}: {fct}");
        }
        assert_eq!(ends.completed.len(), 4);
        let (ends, oracle) = with_fault(component, None);
        assert_eq!(ends.failed.len(), 4);
        let totals = oracle.totals();
        assert_eq!(totals.delivered + totals.lost, Bytes::new(4 * 14_600_000));
        // 100 µs of four lines of 50 Gbps, less headers.
        let expected = 4.0 * 625_000.0 * 1460.0 / 1500.0;
        assert!((totals.delivered.get() as f64 - expected).abs() < 5.0, "{totals:?}");
    }
    // The link of a node that sends is its own affair: the others' shares do not change.
    let (ends, _) = with_fault(Component::NodeLink(NodeId::new(0)), None);
    assert_eq!((ends.failed.as_slice(), ends.completed.len()), (&[0][..], 3));
    for (_, fct, ideal) in ends.completed {
        assert!(fct.as_ps().abs_diff(ideal.as_ps()) <= 10, "{fct} for {ideal}");
    }
}

/// The rates of flows on all links of the network, each by itself, spread evenly over the next hops:
/// written anew, solved by `rack::fairness`.
fn on_all_links(plan: &Plan, pairs: &[(NodeId, NodeId)]) -> Vec<f64> {
    let topology = &plan.topology;
    let capacities: Vec<f64> =
        topology.ports().iter().map(|port| port.link.rate.as_bps() as f64).collect();
    let uses = pairs.iter().map(|&(src, dst)| {
        let distances = topology.distances_to(Vertex::new(dst.get()));
        let mut order: Vec<Vertex> = (0..topology.vertices()).map(Vertex::new).collect();
        order.sort_by_key(|vertex| std::cmp::Reverse(distances[vertex.index()]));
        let mut at = vec![0.0; order.len()];
        at[src.index()] = 1.0;
        let mut uses = Vec::new();
        for vertex in order {
            let nearer: Vec<_> = topology
                .ports_of(vertex)
                .filter(|&port| {
                    let peer = topology.port(port).peer;
                    distances[peer.index()] + 1 == distances[vertex.index()]
                })
                .collect();
            for &port in &nearer {
                let share = at[vertex.index()] / nearer.len() as f64;
                at[topology.port(port).peer.index()] += share;
                if share > 0.0 {
                    uses.push(fairness::Use { link: port.index(), share });
                }
            }
        }
        uses
    });
    max_min(&capacities, &uses.collect::<Vec<_>>())
}

#[track_caller]
fn check_rates(shape: Shape, flows: u32, seed: u64) {
    let plan = plan(shape);
    let hosts = u64::from(plan.topology.hosts());
    let mut draw = Stream::new(seed, "test/oracle", 0);
    let mut node = || draw.below(hosts) as u32;
    let pairs: Vec<_> = std::iter::repeat_with(|| (node(), node()))
        .filter(|(src, dst)| src != dst)
        .map(|(src, dst)| (NodeId::new(src), NodeId::new(dst)))
        .take(flows as usize)
        .collect();
    let expected = on_all_links(&plan, &pairs);
    for ((pair, found), expected) in pairs.iter().zip(fair_rates(&plan, &pairs)).zip(expected) {
        assert!((found - expected).abs() <= 1e-6 * expected, "{pair:?}: {found} for {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rates_on_bundles_are_those_on_all_links(flows in 1u32..60, seed in 0u64..1000) {
        check_rates(rack(), flows, seed);
        let slim = LeafSpine { hosts: 48, radix: 16, oversubscription: 3, ..Default::default() };
        check_rates(Shape::LeafSpine(slim), flows, seed);
        let three = ThreeTier { hosts: 54, radix: 6, oversubscription: 2, ..Default::default() };
        check_rates(Shape::ThreeTier(three), flows, seed);
        let dimensions = vec![4, 3];
        check_rates(Shape::Torus(Torus { dimensions, ..Default::default() }), flows, seed);
        let dimensions = vec![3, 3];
        check_rates(Shape::Mesh(Mesh { dimensions, ..Default::default() }), flows, seed);
    }
}

#[test]
fn bundles_are_few_where_the_network_is_regular() {
    let oracle = Oracle::new(plan(Shape::LeafSpine(LeafSpine::default())), FRAMING);
    // Two for each of 512 hosts, one up and one down for each of 16 leaves.
    assert_eq!(oracle.classes.capacity.len(), 2 * 512 + 2 * 16);
    // With full bisection only the hosts' own links ever limit a flow; not so three to one.
    assert_eq!(oracle.classes.uses(&oracle.net, 0, 511).len(), 2);
    let slim = LeafSpine { hosts: 48, radix: 16, oversubscription: 3, ..Default::default() };
    let oracle = Oracle::new(plan(Shape::LeafSpine(slim)), FRAMING);
    assert_eq!(oracle.classes.uses(&oracle.net, 0, 47).len(), 4);
}

#[test]
fn the_same_run_twice_has_the_same_hash() {
    let flows: Vec<_> =
        (0..200).map(|id| flow(id, (id % 31) as u32, 31, 1 + 997 * id, 1_000_000 * id)).collect();
    let once = || {
        let mut oracle = Oracle::new(plan(rack()), FRAMING);
        run(&mut oracle, &flows);
        oracle.totals()
    };
    assert_eq!(once(), once());
}
