//! Books of racks of every fabric in the registry, with random settings, faults and losses: every flow ends
//! once or is open, every byte is delivered, lost or still to come, no flow is faster than its ideal and
//! nothing happens in the past. And the same flows, moved to any instant, take as long.

mod racks;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use kernel::{Bytes, Span, Stream, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use rack::{
    Advance, Class, Completion, Component, Fabric, Failure, Fault, Flow, FlowId, NodeId, Probe,
};
use racks::Drawn;
use scenario::{Registry, schema};
use serde_json::Value;

/// What ended, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Ends {
    /// By flow: when it ended, after its start, and whether it completed.
    ends: BTreeMap<u64, (Span, Result<(), Failure>)>,
    wrong: Vec<String>,
    last: Time,
    /// Steps that the run took.
    events: u64,
}

impl Ends {
    fn end(&mut self, flow: &Flow, at: Time, how: Result<(), Failure>) {
        if at < self.last.max(flow.start) {
            self.wrong.push(format!("{flow:?} ends at {at}, after {}", self.last));
            return;
        }
        self.last = at;
        if self.ends.insert(flow.id.get(), (at - flow.start, how)).is_some() {
            self.wrong.push(format!("{flow:?} ends twice"));
        }
    }
}

impl Probe for Ends {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let Completion { flow, end, ideal, stages } = completion;
        self.end(flow, *end, Ok(()));
        if *end < flow.start + *ideal {
            self.wrong.push(format!("{flow:?} took {} of {ideal}", *end - flow.start));
        }
        let all = stages.iter().copied().sum::<Span>().as_ps();
        if all.abs_diff((*end - flow.start).as_ps()) > 8 {
            self.wrong.push(format!("{flow:?} took {}, stages {stages:?}", *end - flow.start));
        }
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.end(flow, at, Err(why));
        ControlFlow::Continue(())
    }
}

/// How long after the last start a run is cut off: longer than the longest time-outs, doubled.
const PATIENCE: Span = Span::from_us(20_000_000);

/// Carries `flows`, as a run does, and looks at the books.
fn carry(fabric: &mut dyn Fabric, flows: &[Flow]) -> Result<Ends, String> {
    let mut ends = Ends::default();
    let sizes: Vec<_> = flows.iter().map(|flow| flow.size).collect();
    fabric.hint_sizes(&sizes);
    for flow in flows {
        while fabric.advance(flow.start, &mut ends) == Advance::Paused {}
        if fabric.now() > flow.start {
            return Err(format!("now is {}, before {flow:?}", fabric.now()));
        }
        fabric.offer(flow);
    }
    let limit = flows.last().map_or(Time::ZERO, |flow| flow.start) + PATIENCE;
    while fabric.advance(limit, &mut ends) == Advance::Paused {}
    fabric.check()?;
    let open = fabric.unfinished(usize::MAX);
    if let Some(wrong) = ends.wrong.first() {
        return Err(wrong.clone());
    }
    if ends.ends.len() + open.len() != flows.len() {
        let (ended, open) = (ends.ends.len(), open.len());
        return Err(format!("{} flows offered, {ended} ended, {open} open", flows.len()));
    }
    let totals = fabric.totals();
    ends.events = totals.events;
    let offered = flows.iter().map(|flow| flow.size).sum::<Bytes>();
    let to_come = open.iter().map(|one| one.flow.size - one.delivered).sum::<Bytes>();
    if totals.delivered + totals.lost + to_come != offered {
        let (delivered, lost) = (totals.delivered, totals.lost);
        return Err(format!(
            "{offered} offered, {delivered} delivered, {lost} lost, {to_come} open"
        ));
    }
    for flow in flows {
        let ideal = fabric.ideal_fct(flow);
        match ends.ends.get(&flow.id.get()) {
            Some(&(fct, Ok(()))) if fct < ideal => {
                return Err(format!("{flow:?} took {fct}, less than its ideal of {ideal}"));
            }
            _ => {}
        }
    }
    Ok(ends)
}

/// Runs `flows` under `faults`; of these those are left out that the rack does not have.
fn run(drawn: &Drawn, faults: &[Fault], flows: &[Flow]) -> Result<Ends, String> {
    let registry = Registry::standard();
    let fabric = registry.fabric(drawn.kind).expect("it is registered");
    let plan = fabric.plan(drawn.table.clone(), registry.memory());
    let plan = plan.map_err(|problems| format!("{problems:?}"))?;
    let has = |fault: &&Fault| plan.rack(&[**fault], 11).is_ok();
    let faults: Vec<_> = faults.iter().filter(has).copied().collect();
    carry(&mut *plan.rack(&faults, 11).map_err(|problems| format!("{problems:?}"))?, flows)
}

fn any_rack() -> impl Strategy<Value = Drawn> {
    let registry = Registry::standard();
    let (racks, schema) = (racks::all(&registry), schema::scenario(&registry));
    any::<u64>().prop_map(move |seed| {
        let mut chance = Stream::new(seed, "books", 0);
        racks::drawn((&racks, &schema), &registry, &mut |below| chance.below(below))
    })
}

type DrawnFlow = (u32, u32, u64, u64);

fn any_flows() -> impl Strategy<Value = Vec<DrawnFlow>> {
    let size = prop_oneof![3 => 1u64..3_000, 3 => 1u64..100_000, 1 => 1u64..1_000_000];
    prop::collection::vec((0u32..100, 1u32..100, size, 0u64..200_000_000), 1..30)
}

/// Flows between hosts of a rack of `nodes`, in order, all `later`.
fn flows_of(nodes: u32, drawn: &[DrawnFlow], later: Span) -> Vec<Flow> {
    let mut drawn = drawn.to_vec();
    drawn.sort_by_key(|&(_, _, _, start)| start);
    let flow = |(id, &(src, step, size, start)): (u64, &DrawnFlow)| {
        let src = src % nodes;
        Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new((src + 1 + step % (nodes - 1)) % nodes),
            size: Bytes::new(size),
            start: Time::from_ps(start) + later,
            class: Class::new(0),
        }
    };
    (0..).zip(&drawn).map(flow).collect()
}

type DrawnFault = (u32, u32, u32, u64, Option<u64>);

fn any_faults() -> impl Strategy<Value = Vec<DrawnFault>> {
    let lasts = prop_oneof![
        1 => Just(None),
        1 => (1u64..2_000_000).prop_map(Some),
        2 => (1u64..3_000_000_000).prop_map(Some),
    ];
    prop::collection::vec((0u32..7, 0u32..16, 0u32..16, 0u64..400_000_000, lasts), 0..6)
}

fn faults_of(drawn: &[DrawnFault], later: Span) -> Vec<Fault> {
    let fault = |&(kind, a, b, at, lasts): &DrawnFault| {
        let component = match kind {
            0 => Component::Node(NodeId::new(a)),
            1 => Component::NodeLink(NodeId::new(a)),
            2 => Component::Leaf(a % 4),
            3 => Component::Spine(a % 4),
            4 => Component::LeafSpine { leaf: a % 4, spine: b % 4, link: 0 },
            5 => Component::Switch(a),
            _ => Component::Link { a, b, link: 0 },
        };
        let at = Time::from_ps(at) + later;
        Fault { component, at, until: lasts.map(|lasts| at + Span::from_ps(lasts)) }
    };
    drawn.iter().map(fault).collect()
}

fn check(drawn: &Drawn, faults: &[DrawnFault], flows: &[DrawnFlow]) -> Result<(), String> {
    let flows = flows_of(drawn.nodes, flows, Span::ZERO);
    run(drawn, &faults_of(faults, Span::ZERO), &flows).map(|_| ())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn books_balance_whatever_fails(
        drawn in any_rack(), faults in any_faults(), flows in any_flows(),
    ) {
        let outcome = check(&drawn, &faults, &flows);
        prop_assert!(outcome.is_ok(), "{outcome:?}: {}", drawn.table);
    }

    /// To the picosecond. Shoal and PL2's matchings have slots, and R2C2's pace rounds: they have tests of their
    /// own. A controller's times count from the first thing that happens in a run, and move with it; what operators do
    /// has a time of its own, which is at most 1000 s, and is left out. What a packet meets in SCOC and Aquila depends on where in a cycle it comes, and SCOC's cycles are
    /// no whole number of picoseconds: there flows move by a time that is whole cycles, slots of 288 B
    /// and rounds of 16 and 17 ports of all that is drawn, so that they meet the same ones. Whole seconds they
    /// move anywhere else: which of two packets of one instant comes first is drawn for each instant of a second.
    #[test]
    fn the_same_flows_moved_by_seconds_take_as_long(
        drawn in any_rack(),
        faults in any_faults(),
        flows in any_flows(),
        later in 1u64..2_592_000_000_000_000_000,
    ) {
        const SECOND: u64 = 1_000_000_000_000;
        const ROUND: u64 = 9 * 10 * 16 * 17 * SECOND;
        let has_slots = drawn.table["switch"]["schedule"] == "matching";
        prop_assume!(!["shoal", "r2c2"].contains(&drawn.kind) && !has_slots);
        let clocked = drawn.kind.starts_with("scoc") || drawn.kind == "aquila";
        let later = later.next_multiple_of(if clocked { ROUND } else { SECOND });
        let drawn = unattended(&drawn);
        let at = |later| {
            run(&drawn, &faults_of(&faults, later), &flows_of(drawn.nodes, &flows, later))
        };
        let (now, then) = (at(Span::ZERO), at(Span::from_ps(later)));
        prop_assert!(now.is_ok() && then.is_ok(), "{now:?} {then:?}: {}", drawn.table);
        prop_assert_eq!(now.unwrap().ends, then.unwrap().ends);
    }
}

/// The same rack without what operators do in a run, which is within its first 1000 s.
fn unattended(drawn: &Drawn) -> Drawn {
    let mut drawn = drawn.clone();
    if let Some(sdn) = drawn.table.get_mut("sdn").and_then(Value::as_object_mut) {
        sdn.remove("maintenance");
    }
    drawn
}

/// Nothing ticks while nothing is under way.
#[test]
fn flows_a_thousand_seconds_apart_take_as_many_events_as_close_ones() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let any_rack = any_rack();
    for _ in 0..60 {
        let drawn = any_rack.new_tree(&mut runner).unwrap().current();
        let apart = |gap: Span| {
            let flow = |k: u32| {
                let flow = flows_of(drawn.nodes, &[(k, 1, 20_000, 0)], gap * k.into())[0];
                Flow { id: FlowId::new(k.into()), ..flow }
            };
            let flows: Vec<_> = (0..20).map(flow).collect();
            let ends =
                run(&drawn, &[], &flows).unwrap_or_else(|wrong| panic!("{wrong}: {drawn:?}"));
            assert_eq!(ends.ends.len(), 20, "{drawn:?}");
            ends.events
        };
        let (close, far) = (apart(Span::from_us(100_000)), apart(Span::from_us(1_000_000_000)));
        // Where in a cycle a flow begins makes it a little longer or shorter.
        assert!(far <= close + close / 4, "{far} events, {close} of close ones: {drawn:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    #[ignore = "takes minutes"]
    fn books_balance_in_ten_thousand_racks(
        drawn in any_rack(), faults in any_faults(), flows in any_flows(),
    ) {
        let outcome = check(&drawn, &faults, &flows);
        prop_assert!(outcome.is_ok(), "{outcome:?}: {}", drawn.table);
    }
}
