//! The same trace gives the same results whenever it begins, and with long pauses in it.

use rack::{Component, Fault};

use super::*;

/// Microseconds in ten days.
const TEN_DAYS: u64 = 864_000_000_000;

/// The completion times of flows that all start `by` later, with faults as much later.
fn times(plan: &Plan, flows: &[Flow], faults: &[Fault], by: Span, seed: u64) -> Vec<Span> {
    let faults: Vec<Fault> = faults
        .iter()
        .map(|fault| Fault { at: fault.at + by, until: fault.until.map(|at| at + by), ..*fault })
        .collect();
    let plan = plan.clone().with_faults(&faults).unwrap();
    let mut network = rack(&plan, seed);
    let mut ends = Ends::default();
    for flow in flows {
        network.offer(&Flow { start: flow.start + by, ..*flow });
    }
    assert_eq!(network.advance(Time::NEVER, &mut ends), Advance::Idle);
    network.check().unwrap();
    assert_eq!(ends.completed.len(), flows.len(), "{:?}", ends.failed);
    ends.completed.sort_by_key(|(flow, _)| flow.id);
    ends.completed.iter().map(|(flow, end)| *end - flow.start).collect()
}

fn raw() -> impl Strategy<Value = Vec<(u32, u32, u64, u64)>> {
    prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..400_000, 0u64..2_000), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Moved by whole intervals of computations (here 500 us, the greetings' 1 ms a multiple of it), a
    /// trace takes the same time to the picosecond, failures of links included.
    #[test]
    fn a_trace_moved_by_whole_intervals_takes_as_long(
        dimensions in prop::collection::vec(2u32..5, 1..3),
        raw in raw(),
        moved in prop_oneof![0u64..50, Just(TEN_DAYS / 500), 0..3 * TEN_DAYS / 500],
        port_buffer in prop::sample::select(&[0u64, 9_000][..]),
        fails in any::<bool>(),
        long in 1u64..20_000,
        seed in any::<u64>(),
    ) {
        let port_buffer = Bytes::new(port_buffer);
        let plan = Config { port_buffer, ..torus(&dimensions) }.plan().unwrap();
        let flows = failures::some_flows(plan.nodes(), &raw);
        let at = Time::ZERO + Span::from_us(3_000);
        let component = Component::Link { a: 0, b: 1, link: 0 };
        let fault = Fault { component, at, until: Some(at + Span::from_us(long)) };
        let faults = if fails { vec![fault] } else { Vec::new() };
        // Greetings begin two intervals before a failure: not before time does.
        let first = times(&plan, &flows, &faults, Span::ZERO, seed);
        let later = times(&plan, &flows, &faults, Span::from_us(500) * moved, seed);
        prop_assert_eq!(first, later);
    }

    /// Moved by any time, computations fall at other instants of a flow's life: one alone takes at most
    /// an interval more or less.
    #[test]
    fn a_flow_moved_by_any_time_takes_as_long_but_for_an_interval(
        dimensions in prop::collection::vec(2u32..5, 1..4),
        (src, step, size) in (any::<u32>(), any::<u32>(), 1u64..4_000_000),
        moved in 0..3 * TEN_DAYS * 1_000_000,
        seed in any::<u64>(),
    ) {
        let plan = torus(&dimensions).plan().unwrap();
        let flows = failures::some_flows(plan.nodes(), &[(src, step, size, 0)]);
        let [first, later] = [0, moved].map(|ps| {
            times(&plan, &flows, &[], Span::from_ps(ps), seed)[0].as_ps()
        });
        let interval = plan.config.interval.as_ps();
        prop_assert!(first.abs_diff(later) <= interval, "{} ps and {} ps", first, later);
    }
}

/// Flows 1,000 s apart, and a link that fails after half of that and returns a second later: nobody greets
/// while there is no flow. A million intervals with 64 greetings each lie between the flows.
#[test]
fn what_lies_long_apart_takes_no_work() {
    let second = Span::from_us(1_000_000);
    let flows: Vec<Flow> =
        (0..4).map(|id| flow(id, 0, 5, 100_000, Time::ZERO + second * (id * 1_000))).collect();
    let component = Component::Link { a: 0, b: 1, link: 0 };
    let at = Time::ZERO + second * 500;
    let fault = Fault { component, at, until: Some(at + second) };
    let plan = torus(&[4, 4]).plan().unwrap().with_faults(&[fault]).unwrap();
    let mut network = rack(&plan, 1);
    let ends = carry_until(&mut network, &flows, Time::NEVER);
    assert_eq!(ends.completed.len(), 4);
    let events = network.totals().events;
    assert!(events < 20_000, "{events} events");
    // With each flow, for as many intervals as nodes are apart and some more, 64 greetings.
    let told = network.transport().neighbours.told();
    assert!(told > 500 && told < 4 * 64 * 8, "{told}");
}
