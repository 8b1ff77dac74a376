//! Books: whatever fails, each flow ends once or is open, each byte counts once, no flow takes less than the
//! idle network would, and nothing happens in the past.

use std::collections::BTreeMap;

use proptest::sample::Index;
use rack::{Component, Fault};

use super::failures::{faults, shape, some_flows, told};
use super::*;

/// Looks at each end as it is told.
#[derive(Clone, Debug, Default)]
struct Ledger {
    now: Time,
    /// By flow that was offered: its ideal time.
    offered: BTreeMap<u64, (Flow, Span)>,
    completed: BTreeMap<u64, Time>,
    failed: BTreeMap<u64, (Time, Failure)>,
}

impl Ledger {
    fn ends(&mut self, flow: &Flow, at: Time) {
        assert!(at >= self.now, "{flow:?} ends at {at}, and it was {} before", self.now);
        assert!(at >= flow.start, "{flow:?} ends at {at}");
        self.now = at;
        let id = flow.id.get();
        assert_eq!(self.offered.get(&id).map(|(offered, _)| offered), Some(flow));
        let has_ended = self.completed.contains_key(&id) || self.failed.contains_key(&id);
        assert!(!has_ended, "{flow:?} ends twice");
    }
}

impl Probe for Ledger {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        let (flow, end) = (completion.flow, completion.end);
        self.ends(flow, end);
        let ideal = self.offered[&flow.id.get()].1;
        assert!(end - flow.start >= ideal, "{flow:?} took {}, ideally {ideal}", end - flow.start);
        self.completed.insert(flow.id.get(), end);
        ControlFlow::Continue(())
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.ends(flow, at);
        self.failed.insert(flow.id.get(), (at, why));
        ControlFlow::Continue(())
    }
}

/// Flows offered are those that ended and those that are open; so are their bytes.
fn check_books(network: &Network<Endpoints>, ledger: &Ledger) -> Result<(), TestCaseError> {
    let open = network.unfinished(usize::MAX);
    let ended = ledger.completed.len() + ledger.failed.len();
    prop_assert_eq!(ended + open.len(), ledger.offered.len());
    for unfinished in &open {
        let id = unfinished.flow.id.get();
        prop_assert!(!ledger.completed.contains_key(&id) && !ledger.failed.contains_key(&id));
        prop_assert!(unfinished.delivered < unfinished.flow.size);
    }
    let size = |id: &u64| ledger.offered[id].0.size.get();
    let totals = network.totals();
    let completed: u64 = ledger.completed.keys().map(size).sum();
    let failed: u64 = ledger.failed.keys().map(size).sum();
    let so_far: u64 = open.iter().map(|open| open.delivered.get()).sum();
    // What failed flows delivered before is delivered; the rest of them is lost.
    prop_assert_eq!(totals.delivered.get() + totals.lost.get(), completed + failed + so_far);
    prop_assert!(totals.delivered.get() >= completed + so_far);
    network.check().map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn slow_books_balance_at_any_time_under_any_faults(
        topology in shape(),
        breaks in prop::collection::vec(
            (any::<Index>(), prop::bool::weighted(0.3), 0u64..6_000, prop_oneof![
                Just(0u64), 1u64..20, 20u64..4_000, 4_000u64..12_000,
            ]),
            0..6,
        ),
        raw in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..200_000, 0u64..6_000), 1..30),
        protocol in prop::sample::select(&[Protocol::Rps, Protocol::Valiant][..]),
        loss_rate in prop::sample::select(&[0.0, 0.0, 0.02][..]),
        port_buffer in prop::sample::select(&[0u64, 1_500, 6_000][..]),
        share in any::<bool>(),
        cut in 0u64..40_000,
        is_told in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let config = Config {
            failures: told(is_told),
            topology,
            classes: vec![config::Class { protocol, ..config::Class::default() }],
            loss_rate,
            port_buffer: Bytes::new(port_buffer),
            start: if share { config::Start::Share } else { config::Start::Link },
            ..Config::default()
        };
        let plan = config.plan().unwrap();
        let faults = faults(&plan, &breaks);
        let plan = plan.with_faults(&faults).unwrap();
        let mut flows = some_flows(plan.nodes(), &raw);
        flows.sort_by_key(|flow| flow.start);
        let mut network = rack(&plan, seed);
        let mut ledger = Ledger::default();
        for flow in &flows {
            network.advance(flow.start, &mut ledger);
            ledger.offered.insert(flow.id.get(), (*flow, network.ideal_fct(flow)));
            network.offer(flow);
            check_books(&network, &ledger)?;
        }
        network.advance(Time::ZERO + Span::from_us(6_000 + cut), &mut ledger);
        check_books(&network, &ledger)?;
        prop_assert_eq!(network.advance(Time::NEVER, &mut ledger), Advance::Idle);
        check_books(&network, &ledger)?;
        prop_assert!(network.unfinished(usize::MAX).is_empty());
        // Nobody else knows of a failure before as many greetings are missed as it takes.
        let discovery = plan.config.discovery;
        let soonest = discovery.interval * u64::from(discovery.missed - 1);
        let by_others = ledger.failed.iter().filter(|(_, (_, why))| *why != Failure::SourceDied);
        for (id, (at, why)) in by_others {
            let (flow, _) = ledger.offered[id];
            let first = faults.iter().map(|fault| fault.at).min().unwrap();
            prop_assert!(*at >= first + soonest, "{:?} failed at {}: {:?}", flow, at, why);
        }
    }

    /// A link that is away for less than anybody can notice delays flows and loses none.
    #[test]
    fn slow_short_outages_of_links_are_recovered(
        topology in shape(),
        which in prop::collection::vec((any::<Index>(), 0u64..3_000_000_000, 1u64..1_000_000), 1..8),
        raw in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..300_000, 0u64..3_000), 1..20),
        seed in any::<u64>(),
    ) {
        let plan = Config { topology, ..Config::default() }.plan().unwrap();
        let links: Vec<_> = plan.network.topology.links().collect();
        let faults: Vec<Fault> = which.iter().map(|(link, at, long)| {
            let end = *plan.network.topology.port(*link.get(&links));
            let component = Component::Link { a: end.vertex.get(), b: end.peer.get(), link: 0 };
            let at = Time::from_ps(*at);
            Fault { component, at, until: Some(at + Span::from_ps(*long)) }
        }).collect();
        let plan = plan.with_faults(&faults).unwrap();
        let flows = some_flows(plan.nodes(), &raw);
        let mut network = rack(&plan, seed);
        let ends = carry(&mut network, &flows);
        prop_assert_eq!(ends.completed.len(), flows.len(), "{:?}", ends.failed);
    }
}

/// Six flows failed at once when a link was away for 200 ns.
#[test]
fn an_outage_of_200_ns_fails_no_flow() {
    let at = Time::ZERO + Span::from_us(10);
    let component = Component::Link { a: 0, b: 1, link: 0 };
    let fault = Fault { component, at, until: Some(at + Span::from_ns(200)) };
    let plan = torus(&[4, 4]).plan().unwrap().with_faults(&[fault]).unwrap();
    let mut network = rack(&plan, 1);
    assert_eq!(carry(&mut network, &permutation(16, 1, 100_000)).completed.len(), 16);
    assert!(network.totals().drops > 0);
}
