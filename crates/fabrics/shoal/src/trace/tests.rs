//! The record of cells: against closed forms of the slotted rack, and against the run without it.

use std::ops::ControlFlow;

use kernel::{Span, Time};
use proptest::prelude::*;
use rack::trace::{Account, Followed, Part, Trace, account};
use rack::{Completion, Fabric, Failure, Flow, FlowId, Probe};

use crate::config::Config;
use crate::rack::Rack;
use crate::schedule::Order;
use crate::tests::{Case, cases, config, flow};

/// One channel of 100 Gbps, on which node `i` meets node `i + 1 + s` in slot `s` of an epoch.
fn cyclic(nodes: u32) -> Config {
    Config { schedule: Order::Cyclic, ..config(nodes, 1) }
}

/// 64 bytes at 100 Gbps behind the guard band of 2.75 ns, in a slot of 23.25 ns (§7.1).
const ONTO: Span = Span::from_ps(2_750 + 5_120);
const SLOT: Span = Span::from_ps(23_250);

/// When flows ended, and what else there is to compare of a run.
#[derive(Default)]
struct Told(Vec<Followed>, Vec<String>);

impl Probe for Told {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let Completion { flow, end, .. } = *completion;
        let Flow { id, src, dst, start, .. } = *flow;
        self.0.push(Followed { flow: id, src, dst, start, end });
        self.1.push(format!("{completion:?}"));
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.1.push(format!("{flow:?} {at} {why:?}"));
        ControlFlow::Continue(())
    }
}

fn run(rack: &mut Rack, flows: &[Flow]) -> Told {
    let mut told = Told::default();
    for flow in flows {
        rack.advance(flow.start, &mut told);
        rack.offer(flow);
    }
    rack.advance(Time::ZERO + Span::from_us(20_000), &mut told);
    told.1.push(format!("{:?}", rack.totals()));
    told
}

/// Runs flows, and runs them again recorded: all of them.
#[track_caller]
fn traced(config: &Config, flows: &[Flow]) -> (Vec<Account>, Trace) {
    let rack = || Rack::new(config.plan().unwrap(), 1);
    let mut told = run(&mut rack(), flows);
    told.0.sort_by_key(|followed| followed.flow);
    let mut again = rack();
    again.set_trace(&told.0);
    assert_eq!(run(&mut again, flows).1, told.1);
    let trace = again.take_trace();
    let accounts = told.0.iter().map(|flow| account(flow, trace.of(flow.flow)).unwrap());
    (accounts.collect(), trace)
}

/// The parts of an account with the ports that they are at.
fn parts(account: &Account, trace: &Trace) -> Vec<(Part, String, Span)> {
    assert_eq!(account.rest, Span::ZERO);
    let place = |place: Option<u32>| place.map(|place| trace.places[place as usize].to_string());
    let shares = account.shares.iter();
    shares.map(|share| (share.part, place(share.place).unwrap_or_default(), share.span)).collect()
}

/// Of 9 nodes each meets all others in 8 slots. Node 0 meets node 3 in slot 2. A cell for node 7 that comes
/// there waits for slot 3 of an epoch, in which node 3 meets node 7.
#[test]
fn an_idle_cell_takes_its_slots_and_two_propagations_and_nothing_else() {
    let config = cyclic(9);
    let plan = config.plan().unwrap();
    let start = SLOT.as_ps() + 1;
    let (accounts, trace) = traced(&config, &[flow(0, 0, 7, 54, Time::from_ps(start))]);
    let (first, there) = (2, 2 + u64::from(plan.delay_slots));
    let second = (0..).map(|epoch| 8 * epoch + 3).find(|&slot| slot >= there).unwrap();
    let arrived = SLOT * first + ONTO + plan.latency;
    let (up, on) = ("node 0 to switches".to_string(), "node 3 to node 7".to_string());
    let expected = [
        (Part::Start, up.clone(), SLOT * first - Span::from_ps(start)),
        (Part::Transmission, up.clone(), ONTO),
        (Part::Propagation, up, plan.latency),
        (Part::QueueHeld, on.clone(), SLOT * second - arrived),
        (Part::Transmission, on.clone(), ONTO),
        (Part::Propagation, on, plan.latency),
    ];
    assert_eq!(parts(&accounts[0], &trace), expected);
    let found: Vec<_> = trace.hops.iter().map(|hop| (hop.found_bytes, hop.is_last)).collect();
    assert_eq!(found, [(0, false), (0, true)]);
    let [line] = &trace.lines.lines[..1] else { panic!("{:?}", trace.lines) };
    assert_eq!(
        (line.place.to_string().as_str(), line.spans[0].carried),
        ("node 0 to switches", 64)
    );
}

/// Who is met first goes straight: node 0 meets node 1 in slot 0.
#[test]
fn a_cell_for_whom_its_source_meets_first_takes_one_hop() {
    let plan = cyclic(9).plan().unwrap();
    let (accounts, trace) = traced(&cyclic(9), &[flow(0, 0, 1, 54, Time::ZERO)]);
    let up = "node 0 to switches".to_string();
    let expected = [(Part::Transmission, up.clone(), ONTO), (Part::Propagation, up, plan.latency)];
    assert_eq!(parts(&accounts[0], &trace), expected);
    assert!(trace.hops[0].is_last);
}

/// A source with two flows of six cells releases one of each to each of six nodes (Eq. 2): those of the first go at
/// once, those of the second wait in the queues for the next epoch, of 8 slots.
#[test]
fn a_source_s_slots_are_its_flows_and_the_second_counts_those_of_the_first() {
    let all = [flow(0, 0, 7, 54 * 6, Time::ZERO), flow(1, 0, 8, 54 * 6, Time::ZERO)];
    let (accounts, trace) = traced(&cyclic(9), &all);
    let firsts = |flow: u64| trace.of(FlowId::new(flow)).iter().filter(|hop| hop.hop == 0);
    let slots = |flow: u64| firsts(flow).map(|hop| hop.started.as_ps() / SLOT.as_ps());
    assert_eq!(slots(0).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(slots(1).collect::<Vec<_>>(), [8, 9, 10, 11, 12, 13]);
    let first = firsts(1).next().unwrap();
    assert_eq!([first.wait(), first.others, first.own], [SLOT * 8, SLOT * 6, Span::ZERO]);
    assert_eq!(first.beside, [(Some(FlowId::new(0)), 6 * 64)]);
    assert!(firsts(0).chain(firsts(1).skip(1)).all(|hop| hop.wait() == Span::ZERO));
    // Two slots idle before its first, and as many of its own as went before the critical one.
    let [_, second] = &accounts[..] else { panic!("{accounts:?}") };
    let at_source = [Part::SourceOthers, Part::Start, Part::Sending].map(|part| second.total(part));
    assert_eq!(at_source, [SLOT * 6, SLOT * 2, SLOT * u64::from(second.critical)]);
}

/// Nodes 1 and 0 meet node 3 in slots 1 and 2 and have a cell for node 8 each. Node 3 meets node 8 in slot 4 of
/// each epoch: the second cell waits until the first has gone, and then an epoch less that slot.
#[test]
fn in_a_relay_s_queue_the_second_waits_for_the_first_and_then_for_its_slot() {
    let config = cyclic(9);
    let plan = config.plan().unwrap();
    let start = |slot: u64| Time::ZERO + SLOT * slot;
    let all = [flow(0, 1, 8, 54, start(1)), flow(1, 0, 8, 54, start(2))];
    let (accounts, trace) = traced(&config, &all);
    let there = 2 + u64::from(plan.delay_slots);
    let gone = (0..).map(|epoch| 8 * epoch + 4).find(|&slot| slot >= there).unwrap();
    let arrived = SLOT * 2 + ONTO + plan.latency;
    let second = &accounts[1];
    assert_eq!(second.total(Part::QueueOthers), SLOT * (gone + 1) - arrived);
    assert_eq!(second.total(Part::QueueHeld), SLOT * 7);
    let queue = second.queues.last().unwrap();
    assert_eq!(trace.places[queue.place as usize].to_string(), "node 3 to node 8");
    assert_eq!(queue.beside, [(Some(FlowId::new(0)), 64)]);
    assert_eq!((queue.deepest, queue.packets), (64, 1));
}

/// The record of a case: that the run is the same, and that the parts of each flow add up.
fn check_case(case: &Case) {
    let flows = case.flows(Span::ZERO);
    let told = run(&mut case.rack(Span::ZERO), &flows);
    let mut followed = told.0.clone();
    followed.retain(|flow| flow.flow.get() % 3 != 2);
    followed.sort_by_key(|followed| followed.flow);
    let once = |shards: usize| {
        let mut rack = case.rack(Span::ZERO);
        rack.set_shards(shards);
        rack.set_trace(&followed);
        assert_eq!(run(&mut rack, &flows).1, told.1);
        rack.take_trace()
    };
    let trace = once(1);
    for flow in &followed {
        let hops = trace.of(flow.flow);
        let found = account(flow, hops).unwrap_or_else(|| panic!("{flow:?} has no end: {hops:#?}"));
        assert_eq!(found.rest, Span::ZERO, "{found:#?} {hops:#?}");
        let sum: Span = found.shares.iter().map(|share| share.span).sum();
        assert_eq!(sum, flow.end - flow.start, "{found:#?} {hops:#?}");
    }
    for hop in &trace.hops {
        assert!(hop.own + hop.others <= hop.wait(), "{hop:?}");
    }
    for shards in [2, case.config.nodes as usize] {
        assert_eq!(once(shards), trace, "in {shards} shards");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn slow_whatever_happens_a_record_changes_nothing_and_adds_up(case in cases()) {
        check_case(&case);
    }

    #[test]
    fn slow_where_nothing_is_lost_a_record_changes_nothing_and_adds_up(case in cases()) {
        let config = Config { bit_error_rate: 0.0, queue_limit: 0, ..case.config };
        check_case(&Case { config, faults: Vec::new(), ..case });
    }
}
