//! Books of the packet-switched racks, of PL2 and of SCOC, under random faults and losses: every flow ends
//! once or is open, every byte is delivered, lost or still to come, no flow is faster than its ideal and
//! nothing happens in the past. And the same flows, moved to any instant, take as long.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use kernel::{Bytes, Span, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use rack::{
    Advance, Class, Completion, Component, Fabric, Failure, Fault, Flow, FlowId, NodeId, Probe,
};
use serde_json::{Value, json};

/// What ended, and how.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Ends {
    /// By flow: when it ended, after its start, and whether it completed.
    ends: BTreeMap<u64, (Span, Result<(), Failure>)>,
    wrong: Vec<String>,
    last: Time,
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
fn carry(mut fabric: impl Fabric, flows: &[Flow]) -> Result<Ends, String> {
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

/// A rack to be built: of which fabric, its table, and how many nodes it has.
#[derive(Clone, Debug)]
struct Drawn {
    kind: &'static str,
    table: Value,
    nodes: u32,
}

/// Runs `flows` under `faults`; of these those are left out that the rack does not have.
fn run(drawn: &Drawn, faults: &[Fault], flows: &[Flow]) -> Result<Ends, String> {
    macro_rules! of {
        ($($fabric:ident)::+) => {{
            let config: $($fabric)::+::Config =
                serde_json::from_value(drawn.table.clone()).map_err(|error| error.to_string())?;
            let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
            let has = |fault: &&Fault| plan.clone().with_faults(&[**fault]).is_ok();
            let faults: Vec<_> = faults.iter().filter(has).copied().collect();
            let plan = plan.with_faults(&faults).map_err(|problems| format!("{problems:?}"))?;
            carry($($fabric)::+::Rack::new(plan, 11), flows)
        }};
    }
    match drawn.kind {
        "packet-switched" => of!(packet_switched),
        "pl2" => of!(pl2),
        "scoc" => of!(scoc),
        _ => of!(scoc::network),
    }
}

/// Vertices joined by unequal links, with ways round each of them but to the hosts.
const UNEQUAL: &str = "a,b,rate,delay
0,4,10 Gbps,100 ns
1,4,25 Gbps,10 ns
2,5,7 Gbps,100 ns
3,6,28 Gbps,1 us
4,5,1 Gbps,10 us
4,6,100 Gbps,50 ns
6,5,40 Gbps,20 ns
4,6,10 Gbps,5 ns
";

fn any_shape() -> impl Strategy<Value = (Value, u32)> {
    prop::sample::select(vec![
        (json!({ "kind": "single-switch", "hosts": 5, "rate": "10 Gbps" }), 5),
        (json!({ "kind": "single-switch", "hosts": 3, "rate": "28 Gbps" }), 3),
        (json!({ "kind": "leaf-spine", "hosts": 8, "radix": 4, "rate": "10 Gbps" }), 8),
        (
            json!({
                "kind": "leaf-spine", "hosts": 12, "radix": 8, "oversubscription": 3,
                "rate": "10 Gbps", "trunk_rate": "33 Gbps",
            }),
            12,
        ),
        (json!({ "kind": "three-tier", "hosts": 8, "radix": 4, "rate": "25 Gbps" }), 8),
        (json!({ "kind": "torus", "dimensions": [3, 3] }), 9),
        (json!({ "kind": "mesh", "dimensions": [2, 3] }), 6),
        (json!({ "kind": "graph", "hosts": 4, "edges": UNEQUAL }), 4),
    ])
}

fn any_packet_switched(loss: f64) -> impl Strategy<Value = Drawn> {
    let transport = prop::sample::select(vec![
        json!({ "kind": "newreno" }),
        json!({ "kind": "cubic" }),
        json!({ "kind": "dctcp" }),
        json!({ "kind": "swift" }),
        json!({ "kind": "ndp" }),
        json!({ "kind": "dcqcn" }),
        json!({ "kind": "homa" }),
        json!({ "kind": "rds" }),
        json!({ "kind": "raw", "losses": "repeat" }),
        json!({ "kind": "raw", "losses": "forget" }),
        json!({ "kind": "mixed" }),
        json!({ "kind": "fluid" }),
    ]);
    let convergence = prop::sample::select(vec!["0 ns", "20 us", "1 ms"]);
    let forwarding = prop::sample::select(vec!["store-and-forward", "cut-through"]);
    let routing = prop::sample::select(vec![Value::Null, json!("ecmp"), json!("random-spray")]);
    (any_shape(), transport, convergence, forwarding, routing).prop_map(
        move |((topology, nodes), transport, convergence, forwarding, routing)| {
            // Fluids take no packet's chance.
            let loss = if transport["kind"] == "fluid" { 0.0 } else { loss };
            let mut table = json!({
                "topology": topology, "transport": transport, "convergence": convergence,
                "switch": { "forwarding": forwarding }, "loss_rate": loss,
            });
            if !routing.is_null() {
                table["routing"] = routing;
            }
            Drawn { kind: "packet-switched", table, nodes }
        },
    )
}

fn any_pl2(loss: f64) -> impl Strategy<Value = Drawn> {
    let transport = prop::sample::select(vec![
        json!({ "kind": "uncontrolled" }),
        json!({ "kind": "raw", "losses": "repeat" }),
        json!({ "kind": "raw", "losses": "forget" }),
        json!({ "kind": "cubic" }),
        json!({ "kind": "ndp" }),
        json!({ "kind": "homa" }),
        json!({ "kind": "rds" }),
        json!({ "kind": "dcqcn" }),
    ]);
    let tracking = prop::sample::select(vec!["none", "pairs", "receivers"]);
    let convergence = prop::sample::select(vec!["0 ns", "50 us", "1 ms"]);
    (2u32..8, transport, tracking, convergence).prop_map(
        move |(nodes, transport, tracking, convergence)| {
            let table = json!({
                "nodes": nodes, "transport": transport, "loss_rate": loss,
                "recovery": { "tracking": tracking }, "convergence": convergence,
            });
            Drawn { kind: "pl2", table, nodes }
        },
    )
}

fn any_scoc() -> impl Strategy<Value = Drawn> {
    let switch = prop::sample::select(vec![
        json!({ "kind": "scoc" }),
        json!({ "kind": "flat" }),
        json!({ "kind": "hiera" }),
        json!({ "kind": "crrd" }),
        json!({ "kind": "output-queued" }),
    ]);
    let rate = prop::sample::select(vec!["25 Gbps", "7 Gbps"]);
    (switch, rate).prop_map(|(switch, rate)| {
        let table = json!({ "nodes": 16, "switch": switch, "line_rate": rate });
        Drawn { kind: "scoc", table, nodes: 16 }
    })
}

fn any_scoc_network() -> impl Strategy<Value = Drawn> {
    let spine = prop::sample::select(vec![
        json!({ "kind": "scoc" }),
        json!({ "kind": "flat" }),
        json!({ "kind": "output-queued" }),
    ]);
    let transport = prop::sample::select(vec!["newreno", "cubic", "dctcp", "swift"]);
    let rate = prop::sample::select(vec!["25 Gbps", "7 Gbps"]);
    (spine, transport, rate).prop_map(|(spine, transport, rate)| {
        let table = json!({
            "line_rate": rate,
            "nodes": 16, "leaves": 4, "spines": 2, "spine": spine,
            "transport": { "kind": transport },
        });
        Drawn { kind: "scoc-network", table, nodes: 16 }
    })
}

fn any_rack() -> impl Strategy<Value = Drawn> {
    prop_oneof![
        4 => prop_oneof![any_packet_switched(0.0), any_packet_switched(0.01)],
        2 => prop_oneof![any_pl2(0.0), any_pl2(0.01)],
        1 => any_scoc(),
        1 => any_scoc_network(),
    ]
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

    /// To the picosecond. What a packet meets in SCOC depends on where in a cycle it comes, and cycles are
    /// no whole number of picoseconds: there flows move by a time that is whole cycles, slots of 288 B
    /// and rounds of 16 and 17 ports of all that is drawn, so that they meet the same ones.
    #[test]
    fn the_same_flows_moved_to_any_instant_take_as_long(
        drawn in any_rack(),
        faults in any_faults(),
        flows in any_flows(),
        later in 1u64..2_592_000_000_000_000_000,
    ) {
        const ROUND: u64 = 9 * 10 * 16 * 17 * 1_000_000_000_000;
        let clocked = drawn.kind.starts_with("scoc");
        let later = if clocked { later.next_multiple_of(ROUND) } else { later };
        let at = |later| {
            run(&drawn, &faults_of(&faults, later), &flows_of(drawn.nodes, &flows, later))
        };
        let (now, then) = (at(Span::ZERO), at(Span::from_ps(later)));
        prop_assert!(now.is_ok() && then.is_ok(), "{now:?} {then:?}: {}", drawn.table);
        prop_assert_eq!(now.unwrap().ends, then.unwrap().ends);
    }
}

/// Nothing ticks while nothing is under way.
#[test]
fn flows_a_thousand_seconds_apart_take_as_many_events_as_close_ones() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..60 {
        let drawn = any_rack().new_tree(&mut runner).unwrap().current();
        let began = std::time::Instant::now();
        let flows: Vec<_> = (0..20)
            .map(|k| {
                flows_of(drawn.nodes, &[(k, 1, 20_000, 0)], Span::from_us(1_000_000_000) * k.into())
            })
            .flat_map(|flows| flows.into_iter())
            .zip(0..)
            .map(|(flow, id)| Flow { id: FlowId::new(id), ..flow })
            .collect();
        let ends = run(&drawn, &[], &flows).unwrap_or_else(|wrong| panic!("{wrong}: {drawn:?}"));
        assert_eq!(ends.ends.len(), 20, "{drawn:?}");
        let took = began.elapsed();
        assert!(took < std::time::Duration::from_secs(2), "{took:?}: {drawn:?}");
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
