//! A network in several parts is the same network: whatever the cut and the number of threads, the same ends
//! at the same instants in the same order, the same counts, the same time series.

use proptest::prelude::*;
use rack::Component;

use super::random::{config, flows, may_deadlock, resolve};
use super::*;
use crate::config::{FlowControl, PerFlow, Routing};
use crate::cut::Cut;

/// How the probe looks at a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    /// It may pause at each end.
    Pausing,
    /// It pauses at none.
    Going,
    /// It may even be told late.
    Waiting,
}

/// What ended, for a probe that looks so.
struct Ended(Ends, Look);

impl Probe for Ended {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.0.completed(completion)
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.0.failed(flow, at, why)
    }

    fn may_pause(&self) -> bool {
        self.1 == Look::Pausing
    }

    fn may_wait(&self) -> bool {
        self.1 == Look::Waiting
    }
}

/// All that a run tells, as text, and how many parts it had.
fn story(
    (plan, recovery): (&Plan, Recovery),
    flows: &[Flow],
    cut: Option<Cut>,
    look: Look,
) -> (String, usize) {
    let mut network = raw(plan.clone(), recovery, 7);
    let threads = 1 + cut.as_ref().map_or(0, |cut| cut.parts() % 2);
    if let Some(cut) = cut {
        network.set_cut(cut, threads);
    }
    let mut ended = Ended(Ends::default(), look);
    let mut told = String::new();
    // Half of them early, half when their time has come.
    let (early, late) = flows.split_at(flows.len() / 2);
    early.iter().for_each(|flow| network.offer(flow));
    let mut late: Vec<_> = late.to_vec();
    late.sort_by_key(|flow| flow.start);
    let mut row = vec![0.0; network.gauges().len()];
    let samples = (1..40).map(|n| Time::ZERO + Span::from_us(5 * n));
    let mut stops: Vec<_> = samples.clone().chain(late.iter().map(|flow| flow.start)).collect();
    stops.sort();
    for stop in stops {
        network.advance(stop, &mut ended);
        while late.first().is_some_and(|flow| flow.start <= stop) {
            network.offer(&late.remove(0));
        }
        if samples.clone().any(|sample| sample == stop) {
            network.sample(&mut row);
            let open = network.unfinished(usize::MAX);
            told += &format!("{} {row:?} {open:?}\n", network.now());
        }
    }
    let last = network.advance(Time::ZERO + Span::from_us(400_000), &mut ended);
    network.check().unwrap();
    told += &format!("{last:?} {:#?}", ended.0);
    told += &format!("{:#?} {:#?}", network.totals(), network.details());
    (told, network.parts())
}

/// The most parts that there were.
#[track_caller]
fn check(plan: &Plan, recovery: Recovery, flows: &[Flow]) -> usize {
    let topology = &plan.topology;
    let (whole, _) = story((plan, recovery), flows, None, Look::Going);
    let shuffled = (0..topology.vertices()).map(|vertex| (vertex * 7 % 5) as u16).collect();
    let cuts = [
        (None, Look::Pausing),
        (Some(Cut::balanced(topology, 2)), Look::Going),
        (Some(Cut::balanced(topology, 3)), Look::Going),
        (Some(Cut::balanced(topology, 3)), Look::Pausing),
        (Some(Cut::balanced(topology, 8)), Look::Waiting),
        (Some(Cut::new(shuffled)), Look::Waiting),
        (Some(Cut::each(topology)), Look::Going),
    ];
    let mut most = 0;
    for (cut, look) in cuts {
        let (parts, count) = story((plan, recovery), flows, cut, look);
        if parts != whole {
            let line = whole.lines().zip(parts.lines()).find(|(a, b)| a != b);
            panic!("{count} parts, {look:?}: {line:#?}");
        }
        most = most.max(count);
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn slow_any_cut_of_a_random_network_gives_the_same(
        config in config(),
        valiant: bool,
        flows in flows(),
        faults in prop::collection::vec((0u32..400, 1u64..100, prop::option::of(1u64..50)), 0..5),
    ) {
        let rings = matches!(config.topology, Shape::Torus(_) | Shape::Mesh(_));
        let routing = if valiant && rings { Routing::Valiant } else { config.routing };
        let config = Config { routing, ..config };
        prop_assume!(!may_deadlock(&config) && config.plan().is_ok());
        let built = plan(&config, &[]);
        let links: Vec<_> = built.topology.links().collect();
        let fault = |(what, at, lasts): (u32, u64, Option<u64>)| {
            let what = what as usize;
            let component = match what % 4 {
                0 => Component::Node(NodeId::new(what as u32 / 4 % built.topology.hosts())),
                _ => {
                    let end = *built.topology.port(links[what / 4 % links.len()]);
                    Component::Link { a: end.vertex.get(), b: end.peer.get(), link: 0 }
                }
            };
            let at = at * 1_000_000;
            let until = lasts.map(|lasts| Time::from_ps(at + lasts * 1_000_000));
            Fault { component, at: Time::from_ps(at), until }
        };
        let faults: Vec<_> = faults.into_iter().map(fault).collect();
        let flows = resolve(built.topology.hosts(), &flows);
        let Ok(plan) = config.plan().unwrap().with_faults(&faults) else { return Ok(()) };
        check(&plan, REPEAT, &flows);
    }
}

#[test]
fn networks_of_each_kind_are_cut() {
    let shape =
        Shape::LeafSpine(rack::topology::LeafSpine { hosts: 12, radix: 8, ..Default::default() });
    let all: Vec<_> = (0..60u32)
        .map(|n| (n % 12, 1 + n * 5 % 11, 3_000, 1_000_000 * u64::from(n / 12)))
        .collect();
    for flow_control in [
        FlowControl::None,
        FlowControl::Pfc(crate::config::Pfc::default()),
        FlowControl::Credit(crate::config::CreditFlow {
            buffer: Bytes::new(6_000),
            frame: Bytes::new(8),
        }),
        FlowControl::PerFlow(PerFlow::default()),
    ] {
        let queues = Queues { flow_control, ..Queues::default() };
        for forwarding in [crate::Forwarding::StoreAndForward, crate::Forwarding::CutThrough] {
            let config = Config {
                topology: shape.clone(),
                queues: queues.clone(),
                forwarding,
                ..Config::default()
            };
            let plan = plan(&config, &[]);
            let flows = resolve(12, &all);
            let parts = check(&plan, Recovery::None, &flows);
            assert_eq!(
                parts,
                plan.topology.vertices() as usize,
                "{:?}",
                config.queues.flow_control
            );
        }
    }
}
