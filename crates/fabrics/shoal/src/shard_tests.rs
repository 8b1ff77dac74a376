//! A rack gives the same results however it is cut and on however many threads.

use std::ops::ControlFlow;

use kernel::{Bytes, Span, Stream, Time};
use proptest::prelude::*;
use rack::{
    Advance, Class, Completion, Component, Fabric, Failure, Fault, Flow, NodeId, Probe, Totals,
};

use crate::config::{Config, Feedback, PairOrder, Transport};
use crate::rack::Rack;
use crate::tests::{Ends, cases, flow};

/// Keeps every end, in the order in which it is told.
#[derive(Default)]
struct Told {
    ends: Ends,
    order: Vec<u64>,
    /// Whether ends are looked at one by one.
    is_stepwise: bool,
}

impl Probe for Told {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.order.push(completion.flow.id.get());
        self.ends.completed(completion)
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.order.push(flow.id.get());
        self.ends.failed(flow, at, why)
    }

    fn may_pause(&self) -> bool {
        self.is_stepwise
    }
}

/// All that a run gives: what the probe was told, counts, a row of gauges now and then, and the end.
type Outcome = (Ends, Vec<u64>, Totals, Vec<Vec<u64>>, String, Time);

/// A rack, in so many shards on so many threads.
fn rack(config: &Config, shards: usize, threads: usize) -> Rack {
    let mut rack = Rack::new(config.plan().unwrap(), 3);
    rack.set_shards_on(shards, threads);
    rack
}

fn run(mut rack: Rack, flows: &[Flow], is_stepwise: bool) -> Outcome {
    let mut told = Told { is_stepwise, ..Told::default() };
    let mut rows = Vec::new();
    let mut sample = |rack: &mut Rack| {
        let mut row = vec![0.0; rack.gauges().len()];
        rack.sample(&mut row);
        rows.push(row.into_iter().map(f64::to_bits).collect());
    };
    for (index, flow) in flows.iter().enumerate() {
        rack.advance(flow.start, &mut told);
        if index % 16 == 0 {
            sample(&mut rack);
        }
        rack.offer(flow);
    }
    let advance = rack.advance(Time::ZERO + Span::from_us(50_000), &mut told);
    assert_eq!(advance, Advance::Idle, "{:?}", rack.unfinished(3));
    sample(&mut rack);
    let details = serde_json::to_string(&rack.details()).unwrap();
    (told.ends, told.order, rack.totals(), rows, details, rack.now())
}

/// Shards, and threads for them.
const CUTS: [(usize, usize); 6] = [(2, 1), (3, 1), (8, 1), (2, 2), (3, 2), (8, 3)];

fn check_same(make: impl Fn(usize, usize) -> Rack, flows: &[Flow], is_stepwise: bool) {
    check_cuts(&CUTS, make, flows, is_stepwise);
}

fn check_cuts(
    cuts: &[(usize, usize)],
    make: impl Fn(usize, usize) -> Rack,
    flows: &[Flow],
    is_stepwise: bool,
) {
    assert!(make(2, 1).shards.count() == 2);
    let (ends, order, totals, rows, details, now) = run(make(1, 1), flows, is_stepwise);
    for &(shards, threads) in cuts {
        let other = run(make(shards, threads), flows, is_stepwise);
        let what = format!("{shards} shards, {threads} threads, stepwise {is_stepwise}");
        assert_eq!(other.1, order, "order of ends: {what}");
        for (other, own) in other.0.0.iter().zip(&ends.0) {
            assert_eq!(other, own, "{what}");
        }
        assert_eq!(other.0.0, ends.0, "{what}");
        assert_eq!(other.0.1, ends.1, "{what}");
        assert_eq!(other.2, totals, "{what}");
        assert_eq!(other.3, rows, "gauges: {what}");
        assert_eq!(other.4, details, "{what}");
        assert_eq!(other.5, now, "{what}");
    }
}

/// Flows at some 60 % of what a rack can carry, or with long gaps between them.
fn traffic(nodes: u32, count: u64, gap: f64, seed: u64) -> Vec<Flow> {
    let mut draw = Stream::new(seed, "test", 0);
    let mut at = 0.0;
    let flow = |id| {
        at += draw.exponential(gap * 10_000.0 * 8e3 / (26.0 * f64::from(nodes)));
        let src = draw.below(u64::from(nodes)) as u32;
        let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
        let size = 1 + draw.below(20_000);
        let class = Class::new(draw.below(2) as u8);
        Flow { class, ..flow(id, src, dst, size, Time::from_ps(at as u64)) }
    };
    (0..count).map(flow).collect()
}

#[test]
fn slow_the_cut_and_the_threads_change_nothing() {
    let fast = Config { nic_latency: Span::ZERO, wire_latency: Span::ZERO, ..Config::default() };
    let fast = Config { switch_latency: Span::ZERO, ..fast };
    for (config, gap) in [
        (Config { nodes: 64, channels: 4, ..Config::default() }, 1.0),
        (Config { nodes: 33, channels: 1, packet: Bytes::new(300), ..Config::default() }, 1.0),
        (Config { nodes: 24, classes: 2, pair_order: PairOrder::Fifo, ..Config::default() }, 1.0),
        (Config { nodes: 16, feedback: Feedback::WholeEpochs, ..fast.clone() }, 1.0),
        // Most of the time no node has anything to do, or one alone.
        (Config { nodes: 64, channels: 2, ..fast.clone() }, 300.0),
        (Config { nodes: 16, channels: 4, ..Config::default() }, 100.0),
        (Config { nodes: 8, ready_queue: false, feedback_counts_ready: false, ..fast }, 10.0),
    ] {
        let flows = traffic(config.nodes, 400, gap, 5);
        for is_stepwise in [false, true] {
            check_same(|shards, threads| rack(&config, shards, threads), &flows, is_stepwise);
        }
    }
}

#[test]
fn slow_the_cut_changes_nothing_where_cells_are_lost() {
    let base = Config { nodes: 24, ..Config::default() };
    let errors = Config { bit_error_rate: 2e-4, ..base.clone() };
    for (config, is_wire) in [
        (errors.clone(), false),
        (Config { channels: 2, classes: 2, ..errors.clone() }, true),
        (Config { transport: Transport::None, ..errors.clone() }, false),
        (Config { queue_limit: 6, transport: Transport::Reliable, ..base.clone() }, true),
        (Config { queue_limit: 6, channels: 1, ..base.clone() }, false),
        (Config { nodes: 33, channels: 1, packet: Bytes::new(300), ..errors }, false),
    ] {
        let flows = traffic(config.nodes, 200, 1.5, 6);
        let make = |shards, threads| {
            let mut rack = rack(&config, shards, threads);
            rack.set_wire(is_wire).unwrap();
            rack
        };
        for is_stepwise in [false, true] {
            check_same(make, &flows, is_stepwise);
        }
    }
}

/// Nodes and switches that die, come back and die again, with and without bit errors, and with a schedule that
/// leaves out who is gone: what nodes hear of that comes in cells.
#[test]
fn slow_s91_s95_the_cut_changes_nothing_where_parts_fail() {
    let us = |count| Time::ZERO + Span::from_us(count);
    let outage = |component, at, until| Fault { component, at: us(at), until };
    let base = Config { nodes: 32, radix: 8, reintegration_epochs: 1, ..Config::default() };
    let node = |node| Component::Node(NodeId::new(node));
    for (config, faults) in [
        (base.clone(), vec![outage(node(3), 5, None)]),
        (base.clone(), vec![outage(node(31), 5, Some(us(9))), outage(node(31), 20, Some(us(21)))]),
        (
            Config { bit_error_rate: 2e-5, channels: 2, ..base.clone() },
            vec![outage(Component::Leaf(1), 6, Some(us(12))), outage(node(0), 8, Some(us(30)))],
        ),
        (
            Config { schedule_oracle_after: Span::from_us(2), ..base.clone() },
            vec![outage(node(3), 5, None), outage(node(20), 6, Some(us(16)))],
        ),
        (
            Config { transport: Transport::None, ..base },
            vec![outage(Component::NodeLink(NodeId::new(9)), 6, Some(us(7)))],
        ),
    ] {
        let flows = traffic(config.nodes, 300, 1.5, 7);
        let make = |shards, threads| {
            let plan = config.plan().unwrap().with_faults(&faults).unwrap();
            let mut rack = Rack::new(plan, 3);
            rack.set_shards_on(shards, threads);
            rack
        };
        for is_stepwise in [false, true] {
            check_cuts(&CUTS[..4], make, &flows, is_stepwise);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn slow_the_cut_changes_nothing_in_random_racks(case in cases(), is_stepwise in any::<bool>()) {
        let flows = case.flows(Span::ZERO);
        // With one shard cells are simulated, with several they go through their bytes.
        let make = |shards, threads| {
            let mut rack = case.rack(Span::ZERO);
            rack.set_wire(shards > 1).unwrap();
            rack.set_shards_on(shards, threads);
            rack
        };
        // Threads have tests of their own, and take long where cores are shared.
        check_cuts(&CUTS[..3], make, &flows, is_stepwise);
    }
}
