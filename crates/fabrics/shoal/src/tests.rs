//! The rack as a whole against closed forms.

use std::ops::ControlFlow;

use kernel::{Bytes, Span, Time};
use proptest::prelude::*;
use rack::{
    Advance, Class, Completion, Component, Fabric, Failure, Fault, Flow, FlowId, NodeId, Probe,
};

use crate::config::{Admission, Config, Feedback, PairOrder, Transport};
use crate::losses::Losses;
use crate::rack::Rack;
use crate::schedule::Order;
use crate::shard::Shard;

/// Keeps every completion.
#[derive(Default)]
pub(crate) struct Ends(
    pub(crate) Vec<(u64, Time, Span, Vec<Span>)>,
    pub(crate) Vec<(u64, Time, Failure)>,
);

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

pub(crate) fn flow(id: u64, src: u32, dst: u32, size: u64, start: Time) -> Flow {
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
pub(crate) fn config(nodes: u32, channels: u32) -> Config {
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
fn slow_s70_permutations_get_the_rate_of_the_closed_form() {
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
        assert!((0.96..1.03).contains(&ratio), "{nodes} nodes, {pairs} flows: {rate}, {expected}");
    }
}

/// What a random rack is made of.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) config: Config,
    /// Source, destination, bytes, start in nanoseconds, class.
    pub(crate) flows: Vec<(u32, u32, u64, u64, u8)>,
    /// Component, begin in nanoseconds, length in nanoseconds if it ends.
    pub(crate) faults: Vec<(Component, u64, Option<u64>)>,
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
    pub(crate) fn cases()(nodes in 2u32..=16, channels in 1u32..=3)(
        config in (
            any::<bool>(), any::<bool>(), any::<bool>(), 1u32..=2, 0u32..4,
            prop_oneof![Just(0.0), Just(1e-5), Just(3e-4)],
            prop_oneof![Just(Feedback::PhaseExact), Just(Feedback::WholeEpochs), Just(Feedback::MinusOne)],
            0u64..400, prop_oneof![Just(0u64), Just(3000)],
            (
                prop_oneof![Just(PairOrder::RoundRobin), Just(PairOrder::Fifo)],
                prop_oneof![3 => Just(Transport::Auto), 1 => Just(Transport::None)],
                prop_oneof![Just(Admission::Departure), Just(Admission::Slot)],
            ),
        ),
        flows in prop::collection::vec(
            (0..nodes, 1..nodes, 1u64..6000, 0u64..40_000, 0u8..2), 1..20),
        faults in prop::collection::vec(
            (0u8..5, 0u32..64, 0u32..64, 0u64..50_000, prop::option::of(1u64..30_000)), 0..4),
        nodes in Just(nodes), channels in Just(channels),
    ) -> Case {
        let (cyclic, ready_queue, age_rule, classes, queue_limit, bit_error_rate, feedback, wire, update, order) = config;
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
            schedule_oracle_after: Span::from_ns(update),
            pair_order: order.0,
            transport: order.1,
            admission: order.2,
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

impl Case {
    /// Its rack, at rest, with everything that much later.
    pub(crate) fn rack(&self, later: Span) -> Rack {
        let time = |ns| Time::ZERO + later + Span::from_ns(ns);
        let faults = self.faults.iter().map(|&(component, at, length)| Fault {
            component,
            at: time(at),
            until: length.map(|length| time(at + length)),
        });
        let faults: Vec<_> = faults.collect();
        Rack::new(self.config.plan().unwrap().with_faults(&faults).unwrap(), 7)
    }

    /// Its flows by start, that much later.
    pub(crate) fn flows(&self, later: Span) -> Vec<Flow> {
        let mut flows = self.flows.clone();
        flows.sort_by_key(|flow| flow.3);
        let flows = (0..).zip(flows).map(|(id, (src, dst, size, at, class))| {
            let start = Time::ZERO + later + Span::from_ns(at);
            Flow { class: Class::new(class), ..flow(id, src, dst, size, start) }
        });
        flows.collect()
    }
}

/// Runs a case to its end; gives the rack and what the probe saw.
fn run_case(case: &Case) -> (Rack, Ends, Vec<Flow>) {
    let mut rack = case.rack(Span::ZERO);
    let mut ends = Ends::default();
    let offered = case.flows(Span::ZERO);
    for flow in &offered {
        rack.advance(flow.start, &mut ends);
        rack.offer(flow);
    }
    let end = rack.advance(Time::ZERO + Span::from_us(20_000), &mut ends);
    assert_eq!(end, Advance::Idle, "the run does not end: {:?}", rack.unfinished(9));
    (rack, ends, offered)
}

/// At rest every node that is alive knows of each peer that it uses whom that does not reach.
#[track_caller]
fn check_news(Shard { bank, plan, .. }: &Shard, losses: &Losses) {
    let nodes = plan.config.nodes;
    let is_there = |&node: &u32| bank.schedule.contains(node) && !losses.faults.is_dead(node);
    let there: Vec<_> = (0..nodes).filter(is_there).collect();
    let pairs = there.iter().flat_map(|&node| there.iter().map(move |&peer| (node, peer)));
    for (node, peer) in pairs.filter(|&(node, peer)| node != peer && !bank.is_down(node, peer)) {
        assert!(!bank.is_down(peer, node), "{peer} has given up {node}, which does not know it");
        for to in (0..nodes).filter(|&to| to != node && to != peer && bank.schedule.contains(to)) {
            let (heard, is) = (bank.is_blocked(node, peer, to), bank.is_down(peer, to));
            assert_eq!(heard, is, "what {node} has heard from {peer} of {to}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn slow_s99_every_byte_for_a_living_node_arrives_once_and_the_run_ends(case in cases()) {
        let (rack, ends, offered) = run_case(&case);
        let mut seen: Vec<_> = ends.0.iter().map(|end| end.0).collect();
        seen.extend(ends.1.iter().map(|failed| failed.0));
        seen.sort_unstable();
        let all: Vec<_> = (0..offered.len() as u64).collect();
        prop_assert_eq!(seen, all, "each flow ends once");
        let whole: Bytes = ends.0.iter().map(|end| offered[end.0 as usize].size).sum();
        let all: Bytes = offered.iter().map(|flow| flow.size).sum();
        let (delivered, lost) = (rack.totals().delivered, rack.totals().lost);
        prop_assert_eq!(delivered + lost, all, "each byte is delivered or lost");
        prop_assert!(delivered >= whole && (delivered == whole || !ends.1.is_empty()));
        for &(id, at, why) in &ends.1 {
            let flow = offered[id as usize];
            if why == Failure::PacketsLost {
                prop_assert_eq!(case.config.transport, Transport::None, "flow {}", id);
                continue;
            }
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
        prop_assert_eq!(rack.whole().bank.queued_total(), 0, "cells are left in queues");
        if let Some(losses) = &rack.whole().losses {
            check_news(rack.whole(), losses);
        }
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
fn slow_s67_no_queue_exceeds_its_bound_under_random_traffic() {
    for (nodes, channels, ready_queue, seed) in
        [(16, 1, true, 1), (64, 4, true, 2), (64, 2, false, 3), (9, 1, true, 4), (33, 3, true, 5)]
    {
        let config =
            Config { ready_queue, feedback_counts_ready: ready_queue, ..config(nodes, channels) };
        let mut rack = Rack::new(config.plan().unwrap(), 1);
        random_traffic(&mut rack, 3000, seed, |_| ());
        assert!(rack.whole().bank.longest_queue() > 3, "{nodes} nodes: no queue to speak of");
    }
}

/// Offers `count` random flows at some 60 % of what the rack can carry; `look` sees it after each.
fn random_traffic(rack: &mut Rack, count: u64, seed: u64, mut look: impl FnMut(&Rack)) -> Ends {
    let nodes = u64::from(rack.nodes());
    let mut draw = kernel::Stream::new(seed, "test", 0);
    let (mut at, mut ends) = (0.0, Ends::default());
    for id in 0..count {
        at += draw.exponential(10_000.0 * 8e3 / (26.0 * nodes as f64));
        let start = Time::from_ps(at as u64);
        rack.advance(start, &mut ends);
        look(rack);
        let src = draw.below(nodes);
        let dst = (src + 1 + draw.below(nodes - 1)) % nodes;
        let size = draw.below(20_000) + 1;
        rack.offer(&flow(id, src as u32, dst as u32, size, start));
    }
    assert_eq!(rack.advance(Time::NEVER, &mut ends), Advance::Idle);
    ends
}

#[test]
fn flows_between_two_nodes_take_turns_or_wait_for_each_other() {
    // A flow of 10 packets starts while one of 1,000 is on its way, between the same two nodes.
    let end_of_short = |pair_order| {
        let config = Config { packet: Bytes::new(560), pair_order, ..config(64, 1) };
        let mut rack = Rack::new(config.plan().unwrap(), 1);
        let (mut ends, start) = (Ends::default(), Time::ZERO + Span::from_us(10));
        rack.offer(&flow(0, 3, 40, 560_000, Time::ZERO));
        rack.advance(start, &mut ends);
        rack.offer(&flow(1, 3, 40, 5_600, start));
        assert_eq!(rack.advance(Time::NEVER, &mut ends), Advance::Idle);
        let end_of = |id| ends.0.iter().find(|end| end.0 == id).expect("it completed").1;
        let ideal = ends.0.iter().find(|end| end.0 == 1).expect("it completed").2;
        (end_of(0) - start, end_of(1) - start, ideal)
    };
    let (long, short, _) = end_of_short(PairOrder::Fifo);
    assert!(short > long, "first come, first served: {short} after {long}");
    let (long, short, ideal) = end_of_short(PairOrder::RoundRobin);
    // Every other packet is the long flow's, and cells queue for some epochs on either hop.
    let turns = short.as_ps() as f64 / ideal.as_ps() as f64;
    assert!(turns > 1.5 && turns < 4.0, "in turns: {short}, alone {ideal}");
    assert!(short < long / 20, "{short} of {long}");
}

#[test]
fn what_has_arrived_in_order_counts_before_its_flow_ends() {
    // A flow alone arrives evenly, a few cells out of order.
    let size = 54 * 4_000;
    let mut rack = Rack::new(config(32, 1).plan().unwrap(), 1);
    rack.offer(&flow(0, 3, 17, size, Time::ZERO));
    let (mut ends, mut seen, mut now) = (Ends::default(), Vec::new(), Time::ZERO);
    while ends.0.is_empty() {
        seen.push((now, rack.totals().delivered.get()));
        now += Span::from_ns(500);
        rack.advance(now, &mut ends);
    }
    assert_eq!(rack.totals().delivered.get(), size);
    assert!(seen.is_sorted_by_key(|&(_, delivered)| delivered), "{seen:?}");
    let end = (ends.0[0].1 - Time::ZERO).as_seconds();
    for (at, delivered) in seen {
        let (share, time) = (delivered as f64 / size as f64, (at - Time::ZERO).as_seconds() / end);
        assert!((share - time).abs() < 0.05, "{share} delivered after {time} of the time");
    }
}

#[test]
fn slow_the_lean_hot_loop_does_what_the_general_one_does() {
    // A second class that no flow uses changes nothing but which of the two is run.
    for (nodes, channels) in [(64, 1), (65, 1), (128, 2)] {
        let run = |classes| {
            let plan = Config { classes, ..config(nodes, channels) }.plan().unwrap();
            let mut rack = Rack::new(plan, 1);
            assert_eq!(rack.whole().bank.is_lean(), classes == 1);
            random_traffic(&mut rack, 1500, 8, |_| ());
            rack.totals()
        };
        assert_eq!(run(1), run(2));
    }
}

#[test]
fn slow_s62_s65_a_queue_holds_one_cell_of_a_subflow_and_one_local_cell() {
    let (departure, slot) = (Admission::Departure, Admission::Slot);
    let cases = [
        (16, 1, true, departure),
        (24, 2, true, departure),
        (24, 2, true, slot),
        (15, 1, false, departure),
    ];
    for (nodes, channels, ready_queue, admission) in cases {
        let config = Config {
            ready_queue,
            admission,
            feedback_counts_ready: ready_queue,
            ..config(nodes, channels)
        };
        let mut rack = Rack::new(config.plan().unwrap(), 1);
        random_traffic(&mut rack, 1500, 8, |rack| rack.whole().bank.check_queues());
    }
}

#[test]
fn s65_local_cells_that_join_in_the_queues_slot_do_not_wait_in_it() {
    let fullest = |admission| {
        let mut rack = Rack::new(Config { admission, ..config(64, 1) }.plan().unwrap(), 1);
        for to in 1..=3 {
            rack.offer(&flow(to.into(), 0, to, 54 * 5_000, Time::ZERO));
        }
        rack.advance(Time::NEVER, &mut Ends::default());
        rack.whole().bank.fullest_node()
    };
    // Three flows always have an id for each of the 63 queues of their node, and nobody else sends.
    assert_eq!(fullest(Admission::Departure), 63);
    // A relay gets a cell an epoch and sends it within the next.
    assert!(fullest(Admission::Slot) <= 2, "{}", fullest(Admission::Slot));
}

#[test]
fn s60_s72_every_cell_takes_at_most_two_hops_and_none_is_lost() {
    let mut rack = Rack::new(config(32, 2).plan().unwrap(), 1);
    let ends = random_traffic(&mut rack, 1000, 3, |_| ());
    assert_eq!(ends.0.len(), 1000);
    let totals = rack.totals();
    assert_eq!((totals.drops, totals.retransmissions), (0, 0));
    let cells: u64 = totals.delivered.get().div_ceil(54);
    assert!(totals.hops <= 2 * (cells + 1000), "{} hops of {cells} cells", totals.hops);
    assert!(totals.hops >= cells, "{} hops of {cells} cells", totals.hops);
}

#[test]
fn the_stages_of_a_flow_sum_to_its_completion_time() {
    let mut rack = Rack::new(config(32, 2).plan().unwrap(), 1);
    let mut starts = std::collections::BTreeMap::new();
    let ends = random_traffic(&mut rack, 800, 5, |rack| {
        for open in rack.unfinished(usize::MAX) {
            let flow = open.flow;
            starts.insert(flow.id.get(), flow.start);
        }
    });
    for (id, end, ideal, stages) in ends.0 {
        let Some(&start) = starts.get(&id) else { continue };
        let sum: Span = stages.iter().copied().sum();
        let fct = end - start;
        // Each of the five means is rounded down to a picosecond.
        assert!(sum <= fct && fct - sum <= Span::from_ps(5), "flow {id}: {stages:?} of {fct}");
        assert!(ideal <= fct, "flow {id} took {fct}, alone {ideal}");
    }
}

/// When the last of `senders` synchronised flows of `cells` each to one node ends.
fn incast(senders: u32, cells: u64) -> (Span, Span, u64) {
    let config = config(64, 1);
    let mut rack = Rack::new(config.plan().unwrap(), 1);
    for node in 1..=senders {
        rack.offer(&flow(u64::from(node), node, 0, 54 * cells, Time::ZERO));
    }
    let mut ends = Ends::default();
    rack.advance(Time::NEVER, &mut ends);
    let last = ends.0.iter().map(|end| end.1 - Time::ZERO).max().unwrap();
    let total: Span = ends.0.iter().map(|end| end.1 - Time::ZERO).sum();
    (last, total / ends.0.len() as u64, rack.totals().queue_max_cells)
}

#[test]
fn s71_an_incast_drains_at_the_receiver_s_rate_and_fairly() {
    for senders in [8, 20, 40] {
        let cells = 63 * 8;
        let (last, mean, queue) = incast(senders, cells);
        // The receiver takes 63 cells an epoch of 64 slots.
        let epochs = (u64::from(senders) * cells).div_ceil(63);
        let optimum = Config::default().slot * 64 * epochs;
        assert!(last >= optimum, "{senders} senders: {last}, at best {optimum}");
        let edge = Config::default().slot * 64 * 6;
        assert!(last <= optimum + edge, "{senders} senders: {last}, at best {optimum}");
        assert!(mean.as_seconds() > 0.93 * last.as_seconds(), "{senders}: {mean} of {last}");
        assert!(queue <= u64::from(senders) + 1, "{senders} senders, {queue} cells");
    }
}

#[test]
fn s68_literal_feedback_costs_a_lone_flow_a_third_of_its_rate() {
    let at = |feedback| permutation_rate(Config { feedback, ..config(64, 1) }, 1, 20_000);
    let exact = at(Feedback::PhaseExact);
    assert!(exact > 0.97, "{exact}");
    assert!(at(Feedback::MinusOne) > 0.95);
    let whole = at(Feedback::WholeEpochs);
    assert!((0.5..0.85).contains(&whole), "{whole}");
}

#[test]
fn s66_the_age_rule_and_the_ready_queue_shorten_short_flows() {
    let mean = |on: bool| {
        let config =
            Config { ready_queue: on, feedback_counts_ready: on, age_rule: on, ..config(64, 1) };
        let mut rack = Rack::new(config.plan().unwrap(), 1);
        // Long flows among 1 to 62 keep the queues filled; 63 sends a short one to 0 now and then.
        for (node, step) in (1..=62).flat_map(|node| [1, 7, 19, 31].map(|step| (node, step))) {
            let to = (node - 1 + step) % 62 + 1;
            rack.offer(&flow(u64::from(1000 * step + node), node, to, 54 * 20_000, Time::ZERO));
        }
        let mut ends = Ends::default();
        for id in 100..120 {
            let start = Time::ZERO + Span::from_us(20 * (id - 99));
            rack.advance(start, &mut ends);
            rack.offer(&flow(id, 63, 0, 54 * 40, start));
        }
        rack.advance(Time::ZERO + Span::from_us(480), &mut ends);
        let short: Vec<_> = ends.0.iter().filter(|end| end.0 < 120).collect();
        assert_eq!(short.len(), 20);
        let total: u64 = short
            .iter()
            .map(|end| (end.1 - (Time::ZERO + Span::from_us(20 * (end.0 - 99)))).as_ps())
            .sum();
        total / 20
    };
    let (with, without) = (mean(true), mean(false));
    assert!(with < without, "{with} ps with the optimisations, {without} ps without");
}

#[test]
fn s80_the_urgent_class_does_not_wait_for_the_others() {
    let fct = |background: bool| {
        let mut rack = Rack::new(Config { classes: 2, ..config(32, 1) }.plan().unwrap(), 1);
        if background {
            for node in 0..32 {
                let low = flow(u64::from(node), node, (node + 5) % 32, 54 * 4000, Time::ZERO);
                rack.offer(&Flow { class: Class::new(1), ..low });
            }
        }
        let start = Time::ZERO + Span::from_us(30);
        let mut ends = Ends::default();
        rack.advance(start, &mut ends);
        rack.offer(&flow(99, 3, 20, 54 * 30, start));
        rack.advance(Time::NEVER, &mut ends);
        let end = ends.0.iter().find(|end| end.0 == 99).unwrap().1;
        (end - start).as_seconds()
    };
    let (alone, loaded) = (fct(false), fct(true));
    assert!(loaded < 1.5 * alone, "{alone} s alone, {loaded} s over the background");
}

/// A rack of 32 with faults, and long flows in a ring.
fn broken_rack(config: Config, faults: &[Fault], cells: u64) -> Rack {
    let nodes = config.nodes;
    let mut rack = Rack::new(config.plan().unwrap().with_faults(faults).unwrap(), 1);
    for node in 0..nodes {
        rack.offer(&flow(u64::from(node), node, (node + 1) % nodes, 54 * cells, Time::ZERO));
    }
    rack
}

#[test]
fn s91_s92_a_failed_pair_parts_on_both_sides_within_two_epochs_and_propagation() {
    let at = Time::ZERO + Span::from_us(10);
    let fault = Fault { component: Component::Node(NodeId::new(7)), at, until: None };
    let spine = Fault { component: Component::Spine(1), at, until: None };
    let config = Config { radix: 8, ..config(32, 1) };
    let plan = config.plan().unwrap();
    let wait = config.slot * u64::from(2 * (plan.schedule.slots() + plan.delay_slots) + 2);
    for fault in [fault, spine] {
        let broken = plan.switches();
        let pairs = broken.affected_pairs(fault.component, crate::clos::Direction::Both).unwrap();
        let mut rack = broken_rack(config.clone(), &[fault], 3000);
        rack.advance(at, &mut ());
        assert!(!pairs.iter().any(|(a, b)| rack.whole().bank.have_parted(a.get(), b.get())));
        rack.advance(at + wait, &mut ());
        for (a, b) in pairs.iter().filter(|(a, b)| a.get() != 7 && b.get() != 7) {
            assert!(
                rack.whole().bank.have_parted(a.get(), b.get()),
                "{a} and {b}, {:?}",
                fault.component
            );
        }
    }
}

#[test]
fn s95_a_mended_pair_is_used_again_after_the_hold_down() {
    let at = Time::ZERO + Span::from_us(5);
    let until = Some(at + Span::from_us(10));
    let fault = Fault { component: Component::Spine(0), at, until };
    let config = Config { radix: 8, ..config(32, 1) };
    let mut rack = broken_rack(config, &[fault], 6000);
    assert_eq!(rack.advance(Time::NEVER, &mut ()), Advance::Idle);
    let losses = rack.whole().losses.as_ref().unwrap();
    assert!(losses.given_up > 0 && losses.given_up == losses.taken_up);
}

#[test]
fn s98_an_updated_schedule_gives_the_survivors_the_slots_of_the_dead() {
    let seconds = |update: u64| {
        let dead = (0..16).map(|node| Fault {
            component: Component::Node(NodeId::new(2 * node)),
            at: Time::ZERO,
            until: None,
        });
        let faults: Vec<_> = dead.collect();
        let config = Config { schedule_oracle_after: Span::from_us(update), ..config(32, 1) };
        let mut rack = Rack::new(config.plan().unwrap().with_faults(&faults).unwrap(), 1);
        let mut ends = Ends::default();
        let start = Time::ZERO + Span::from_us(50);
        rack.advance(start, &mut ends);
        for node in (1..32).step_by(2) {
            let to = (node + 2) % 32;
            rack.offer(&flow(u64::from(node), node, to, 54 * 20_000, start));
        }
        assert_eq!(rack.advance(Time::NEVER, &mut ends), Advance::Idle);
        assert_eq!((ends.0.len(), ends.1.len()), (16, 0));
        (ends.0.iter().map(|end| end.1).max().unwrap() - start).as_seconds()
    };
    let (without, with) = (seconds(0), seconds(20));
    // 16 of 31 peers are dead: their slots are 52 % of all.
    let ratio = without / with;
    assert!(
        (1.7..2.3).contains(&ratio),
        "{without} s with the old schedule, {with} s with the new"
    );
}

/// The death of the master, and of the next, in a rack of 32 with this guard band and drift: slots clipped
/// and the largest error.
fn lose_masters(guard: u64, drift_per_billion: u64, next_dies_after: Option<u64>) -> (u64, f64) {
    let at = Time::ZERO + Span::from_us(10);
    let fault = |node, at| Fault { component: Component::Node(NodeId::new(node)), at, until: None };
    let mut faults = vec![fault(0, at)];
    faults.extend(next_dies_after.map(|ns| fault(1, at + Span::from_ns(ns))));
    let slot = Span::from_ps(20_480 + guard);
    let sync = crate::sync::SyncConfig { drift_per_billion, ..Default::default() };
    let config = Config { guard: Span::from_ps(guard), slot, sync, ..config(32, 4) };
    let mut rack = broken_rack(config, &faults, 4000);
    assert_eq!(rack.advance(Time::NEVER, &mut ()), Advance::Idle);
    let details = rack.details();
    let error = details["clock_error_max_seconds"].as_f64().unwrap();
    (details["clock_clipped_slots"].as_u64().unwrap(), error)
}

#[test]
fn s48_a_master_s_death_clips_cells_exactly_where_the_drift_until_it_is_noticed_exceeds_the_guard()
{
    for (guard, drift) in
        [(2_750, 50), (2_750, 0), (2_751, 50), (2_760, 4_600), (2_770, 4_600), (2_750, 4_600)]
    {
        let slot = 20_480 + guard;
        // 8 slots of an epoch; the guard, the cell and 398.4 ns on the way, in whole slots.
        let notice = 8 + u64::div_ceil(guard + 20_480 + 398_400, slot);
        let apart = (u128::from(2 * drift * notice * slot)).div_ceil(1_000_000_000) as u64;
        let is_covered = 2_500 + 200 + 50 + apart <= guard;
        let (clipped, error) = lose_masters(guard, drift, None);
        assert_eq!(clipped == 0, is_covered, "guard {guard}, drift {drift}: {clipped}");
        assert!((error - (50 + apart) as f64 * 1e-12).abs() < 1e-15, "{error}, {apart}");
    }
}

#[test]
fn s48_the_next_master_s_death_adds_to_the_drift() {
    let (_, one) = lose_masters(2_800, 4_600, None);
    let (_, two) = lose_masters(2_800, 4_600, Some(400));
    let (_, late) = lose_masters(2_800, 4_600, Some(200_000));
    assert!(two > 1.2 * one - 50e-12 * 0.2 && two < 2.0 * one, "{one} {two}");
    assert!((late - one).abs() < 1e-15, "{one} {late}");
}

#[test]
fn slow_s20_cells_that_go_through_their_bytes_change_nothing() {
    let lossy = Config { bit_error_rate: 1e-6, radix: 8, ..config(16, 1) };
    for config in [
        config(64, 4),
        Config { classes: 2, packet: Bytes::new(1500), ..config(24, 2) },
        Config { feedback: Feedback::WholeEpochs, ..config(9, 1) },
        lossy,
    ] {
        let run = |is_on| {
            let mut rack = Rack::new(config.plan().unwrap(), 1);
            rack.set_wire(is_on).unwrap();
            let ends = random_traffic(&mut rack, 400, 11, |_| ());
            assert_eq!(rack.unexpected(), 0);
            (ends.0, ends.1, rack.totals())
        };
        let (with, without) = (run(true), run(false));
        assert_eq!(with.2, without.2);
        assert_eq!((with.0, with.1), (without.0, without.1));
    }
    let short = Config { cell: Bytes::new(12), ..config(24, 2) };
    assert_eq!(Rack::new(short.plan().unwrap(), 1).set_wire(true).unwrap_err().key, "cell");
}
