//! The rack as a whole against closed forms.

use std::ops::ControlFlow;

use kernel::{Bytes, Span, Time};
use proptest::prelude::*;
use rack::{
    Advance, Class, Completion, Component, Fabric, Failure, Fault, Flow, FlowId, NodeId, Probe,
};

use crate::config::{Config, Feedback};
use crate::rack::Rack;
use crate::schedule::Order;

/// Keeps every completion.
#[derive(Default)]
struct Ends(Vec<(u64, Time, Span, Vec<Span>)>, Vec<(u64, Time, Failure)>);

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let Completion { flow, end, ideal, stages } = *completion;
        self.0.push((flow.id.get(), end, ideal, stages.to_vec()));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.1.push((flow.id.get(), at, why));
        ControlFlow::Continue(())
    }
}

fn flow(id: u64, src: u32, dst: u32, size: u64, start: Time) -> Flow {
    Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start,
        class: Class::new(0),
    }
}

/// Cells of 56 B, a packet each, so that a flow of `54 n` bytes is `n` cells.
fn config(nodes: u32, channels: u32) -> Config {
    Config { nodes, channels, packet: Bytes::new(54), ..Config::default() }
}

/// Share of the slots in which each of the flows of a permutation among `pairs` nodes delivers.
fn permutation_rate(config: Config, pairs: u32, cells: u64) -> f64 {
    let slots = config.plan().unwrap().schedule.slots();
    let (nodes, channels, slot) = (config.nodes, config.channels, config.slot);
    let mut rack = Rack::new(config.plan().unwrap(), 1);
    for node in 0..pairs {
        let dst = if pairs == 1 { nodes / 3 } else { (node + 1) % pairs };
        rack.offer(&flow(u64::from(node), node, dst, 54 * cells, Time::ZERO));
    }
    let mut ends = Ends::default();
    rack.advance(Time::NEVER, &mut ends);
    assert_eq!(ends.0.len(), pairs as usize);
    let last = ends.0.iter().map(|end| end.1).max().unwrap();
    // Filling and draining take about two epochs: not part of the rate.
    let edge = slot * u64::from(2 * slots + 60);
    let seconds = ((last - Time::ZERO) - edge).as_seconds();
    cells as f64 * slot.as_seconds() / seconds / f64::from(channels)
}

#[test]
fn s70_permutations_get_the_rate_of_the_closed_form() {
    // N nodes, P of which exchange flows: (N - P/2) / (N - 1) of the slots; 1 for one flow.
    for (nodes, channels, pairs, expected) in [
        (64, 1, 1, 1.0),
        (64, 1, 64, 64.0 / 126.0),
        (64, 1, 32, 48.0 / 63.0),
        (128, 4, 128, 128.0 / 254.0),
        (128, 4, 1, 1.0),
        (65, 1, 65, 65.0 / 128.0),
    ] {
        let config = Config {
            wire_latency: Span::ZERO,
            switch_latency: Span::ZERO,
            nic_latency: Span::ZERO,
            ..config(nodes, channels)
        };
        let rate = permutation_rate(config, pairs, 20_000);
        let ratio = rate / expected;
        println!("{nodes} {pairs}: {rate} {expected} {ratio}");
        assert!((0.96..1.03).contains(&ratio), "{nodes} nodes, {pairs} flows: {rate}, {expected}");
    }
}

/// What a random rack is made of.
#[derive(Clone, Debug)]
struct Case {
    config: Config,
    /// Source, destination, bytes, start in nanoseconds, class.
    flows: Vec<(u32, u32, u64, u64, u8)>,
    /// Component, begin in nanoseconds, length in nanoseconds if it ends.
    faults: Vec<(Component, u64, Option<u64>)>,
}

fn component(nodes: u32, kind: u8, pick: u32, link: u32) -> Component {
    match kind {
        0 => Component::Node(NodeId::new(pick % nodes)),
        1 => Component::NodeLink(NodeId::new(pick % nodes)),
        2 => Component::Leaf(pick % 3),
        3 => Component::Spine(pick % 2),
        _ => Component::LeafSpine { leaf: pick % 3, spine: link % 2, link: 0 },
    }
}

prop_compose! {
    fn cases()(nodes in 2u32..=16, channels in 1u32..=3)(
        config in (
            any::<bool>(), any::<bool>(), any::<bool>(), 1u32..=2, 0u32..4,
            prop_oneof![Just(0.0), Just(1e-5), Just(3e-4)],
            prop_oneof![Just(Feedback::PhaseExact), Just(Feedback::WholeEpochs), Just(Feedback::MinusOne)],
            0u64..400, prop_oneof![Just(0u64), Just(3000)],
        ),
        flows in prop::collection::vec(
            (0..nodes, 1..nodes, 1u64..6000, 0u64..40_000, 0u8..2), 1..20),
        faults in prop::collection::vec(
            (0u8..5, 0u32..64, 0u32..64, 0u64..50_000, prop::option::of(1u64..30_000)), 0..4),
        nodes in Just(nodes), channels in Just(channels),
    ) -> Case {
        let (cyclic, ready_queue, age_rule, classes, queue_limit, bit_error_rate, feedback, wire, update) = config;
        let config = Config {
            nodes,
            channels,
            schedule: if cyclic { Order::Cyclic } else { Order::PropagationAware },
            ready_queue,
            feedback_counts_ready: ready_queue,
            age_rule,
            classes,
            queue_limit,
            bit_error_rate,
            feedback,
            radix: 8,
            wire_latency: Span::from_ns(wire),
            packet: Bytes::new(300),
            schedule_update_after: Span::from_ns(update),
            ..Config::default()
        };
        let flows = flows
            .into_iter()
            .map(|(src, step, size, at, class)| (src, (src + step) % nodes, size, at, class))
            .collect();
        let switches = config.plan().expect("the configuration is sound").switches();
        let faults = faults
            .into_iter()
            .map(|(kind, pick, link, at, length)| (component(nodes, kind, pick, link), at, length))
            .filter(|(component, ..)| switches.check_component(*component).is_ok())
            .collect();
        Case { config, flows, faults }
    }
}

/// Runs a case to its end; gives the rack and what the probe saw.
fn run_case(case: &Case) -> (Rack, Ends, Vec<Flow>) {
    let faults: Vec<_> = case
        .faults
        .iter()
        .map(|&(component, at, length)| Fault {
            component,
            at: Time::ZERO + Span::from_ns(at),
            until: length.map(|length| Time::ZERO + Span::from_ns(at + length)),
        })
        .collect();
    let plan = case.config.plan().unwrap().with_faults(&faults).unwrap();
    let mut rack = Rack::new(plan, 7);
    let mut flows: Vec<_> = case.flows.clone();
    flows.sort_by_key(|flow| flow.3);
    let mut ends = Ends::default();
    let mut offered = Vec::new();
    for (id, (src, dst, size, at, class)) in flows.into_iter().enumerate() {
        let start = Time::ZERO + Span::from_ns(at);
        rack.advance(start, &mut ends);
        let flow = Flow { class: Class::new(class), ..flow(id as u64, src, dst, size, start) };
        rack.offer(&flow);
        offered.push(flow);
    }
    let end = rack.advance(Time::ZERO + Span::from_us(20_000), &mut ends);
    assert_eq!(end, Advance::Idle, "the run does not end: {:?}", rack.unfinished(9));
    (rack, ends, offered)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn s99_every_byte_for_a_living_node_arrives_once_and_the_run_ends(case in cases()) {
        let (rack, ends, offered) = run_case(&case);
        let mut seen: Vec<_> = ends.0.iter().map(|end| end.0).collect();
        seen.extend(ends.1.iter().map(|failed| failed.0));
        seen.sort_unstable();
        let all: Vec<_> = (0..offered.len() as u64).collect();
        prop_assert_eq!(seen, all, "each flow ends once");
        let delivered: Bytes = ends.0.iter().map(|end| offered[end.0 as usize].size).sum();
        prop_assert_eq!(rack.totals().delivered, delivered);
        for &(id, at, _) in &ends.1 {
            let flow = offered[id as usize];
            let cut = case.faults.iter().any(|(component, begin, _)| {
                let whole = match component {
                    Component::Node(node) | Component::NodeLink(node) => {
                        *node == flow.src || *node == flow.dst
                    }
                    _ => true,
                };
                whole && Time::ZERO + Span::from_ns(*begin) <= at
            });
            prop_assert!(cut, "flow {} failed though nothing cut its ends off", id);
        }
        prop_assert_eq!(rack.bank.queued_total(), 0, "cells are left in queues");
        for (_, end, ideal, stages) in &ends.0 {
            prop_assert!(*ideal > Span::ZERO && *end > Time::ZERO);
            prop_assert_eq!(stages.len(), 6);
        }
        let (again, ..) = run_case(&case);
        prop_assert_eq!(again.totals().event_hash, rack.totals().event_hash);
    }
}

/// A loss-free rack under random traffic: the bounds are asserted in the model, wherever a queue
/// grows.
#[test]
fn s67_no_queue_exceeds_its_bound_under_random_traffic() {
    for (nodes, channels, ready_queue, seed) in
        [(16, 1, true, 1), (64, 4, true, 2), (64, 2, false, 3), (9, 1, true, 4), (33, 3, true, 5)]
    {
        let config =
            Config { ready_queue, feedback_counts_ready: ready_queue, ..config(nodes, channels) };
        let mut rack = Rack::new(config.plan().unwrap(), 1);
        let mut draw = kernel::Stream::new(seed, "test", 0);
        let mut at = 0.0;
        for id in 0..3000 {
            // Some 60 % of what a rack of 100 Gbps nodes can carry over two hops.
            at += draw.exponential(10_000.0 * 8e3 / (26.0 * f64::from(nodes)));
            let start = Time::from_ps(at as u64);
            rack.advance(start, &mut ());
            let src = draw.below(u64::from(nodes)) as u32;
            let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
            let size = draw.below(20_000) + 1;
            rack.offer(&flow(id, src, dst, size, start));
        }
        assert_eq!(rack.advance(Time::NEVER, &mut ()), Advance::Idle);
        assert!(rack.bank.longest_queue() > 3, "{nodes} nodes: no queue to speak of");
    }
}
