//! The search on racks small enough to know what it should find.

use kernel::{Rate, Stream};
use rack::NodeId;
use rack::topology::{Shape, Torus};

use super::*;
use crate::rates::{Routed, Terms, Waterfill, Whose, capacities};
use crate::routing::{Network, Protocol};

const BOTH: [Protocol; 2] = [Protocol::Rps, Protocol::Valiant];

fn rack(dimensions: &[u32]) -> Waterfill<Routed> {
    let rate = Rate::from_gbps(10);
    let torus = Torus { dimensions: dimensions.to_vec(), rate, ..Torus::default() };
    let network = Network::new(&Shape::Torus(torus)).unwrap();
    let routed = Routed::new(&network, &BOTH).unwrap();
    Waterfill::new(routed, capacities(network.topology(), 0.05))
}

/// M49: so many flows, each from and to a node of its own.
fn permutation(nodes: u32, count: usize, draw: &mut Stream) -> Vec<LongFlow> {
    let mut ends: [Vec<u32>; 2] = [(0..nodes).collect(), (0..nodes).collect()];
    loop {
        ends.iter_mut().for_each(|ends| draw.shuffle(ends));
        if (0..count).all(|at| ends[0][at] != ends[1][at]) {
            break;
        }
    }
    (0..count)
        .map(|at| LongFlow {
            place: at as u32,
            source: NodeId::new(ends[0][at]),
            destination: NodeId::new(ends[1][at]),
            protocol: Protocol::Rps,
            terms: Terms::default(),
            tenant: at as u32 % 3,
        })
        .collect()
}

/// The utility of a choice, computed from nothing.
fn utility(
    dimensions: &[u32],
    flows: &[LongFlow],
    utility: Utility,
    protocol: impl Fn(usize) -> Protocol,
) -> f64 {
    let mut rates = rack(dimensions);
    for (at, flow) in flows.iter().enumerate() {
        rates.join(flow.place, flow.course(protocol(at)), flow.terms);
    }
    rates.fill(Whose::All);
    let found: Vec<f64> = flows.iter().map(|flow| rates.rate(flow.place)).collect();
    utility.of(flows, &found, &mut Vec::new())
}

#[test]
fn m30_utilities_are_what_their_names_say() {
    let mut flows = permutation(16, 4, &mut Stream::new(1, "test/selection", 0));
    let rates = [4.0, 3.0, 2.0, 1.0];
    let of = |utility: Utility, flows: &[LongFlow]| utility.of(flows, &rates, &mut Vec::new());
    // Tenants 0, 1, 2, 0.
    assert_eq!(of(Utility::Aggregate, &flows), 10.0);
    assert_eq!(of(Utility::Tail, &flows), 1.0);
    assert_eq!(of(Utility::TenantTail, &flows), 2.0);
    flows[2].tenant = 7;
    assert_eq!(of(Utility::TenantTail, &flows), 2.0, "tenants without flows do not count");
    for utility in [Utility::Aggregate, Utility::Tail, Utility::TenantTail] {
        assert_eq!(utility.of(&[], &[], &mut Vec::new()), 0.0);
    }
}

#[test]
fn m31_the_search_finds_the_best_of_all_choices_where_all_can_be_tried() {
    let dimensions = [4, 4];
    for (seed, goal) in [
        (1, Utility::Aggregate),
        (2, Utility::Tail),
        (3, Utility::TenantTail),
        (4, Utility::Aggregate),
    ] {
        let mut draw = Stream::new(seed, "test/selection", 0);
        let flows = permutation(16, 9, &mut draw);
        let best = (0..1u32 << flows.len())
            .map(|bits| utility(&dimensions, &flows, goal, |at| BOTH[(bits >> at & 1) as usize]))
            .fold(0.0, f64::max);
        let mut rates = rack(&dimensions);
        let outcome = search(&mut rates, &flows, goal, &SearchPlan::default(), &mut draw);
        assert_eq!(outcome.after(), best, "seed {seed}");
        // It is the utility of what was found, and the flows are left under it.
        let found = &outcome.protocols;
        assert_eq!(utility(&dimensions, &flows, goal, |at| found[at]), best);
        rates.fill(Whose::All);
        let left: Vec<f64> = flows.iter().map(|flow| rates.rate(flow.place)).collect();
        assert_eq!(goal.of(&flows, &left, &mut Vec::new()), best);
    }
}

#[test]
fn i17_i18_the_best_never_falls_and_beats_all_flows_alike_and_the_toss_of_a_coin() {
    let dimensions = [4, 4, 4];
    for (load, seed) in [(1, 1), (6, 2), (16, 3), (32, 4), (64, 5)] {
        let mut draw = Stream::new(seed, "test/selection", 0);
        let flows = permutation(64, load, &mut draw);
        let goal = Utility::Aggregate;
        let run = |seeds: Seeds, draw: &mut Stream| {
            let plan = SearchPlan { seeds, ..SearchPlan::default() };
            let outcome = search(&mut rack(&dimensions), &flows, goal, &plan, draw);
            assert!(outcome.best.is_sorted(), "I17: {:?}", outcome.best);
            assert!(outcome.after() >= outcome.before, "I17");
            outcome
        };
        run(Seeds::Current, &mut draw);
        let outcome = run(Seeds::CurrentAndUniform, &mut draw);
        let coins: Vec<usize> = (0..load).map(|_| draw.below(2) as usize).collect();
        let rps = utility(&dimensions, &flows, goal, |_| Protocol::Rps);
        let valiant = utility(&dimensions, &flows, goal, |_| Protocol::Valiant);
        let random = utility(&dimensions, &flows, goal, |at| BOTH[coins[at]]);
        assert_eq!(outcome.before, rps, "new flows use random packet spraying");
        for other in [rps, valiant, random] {
            assert!(outcome.after() >= other, "I18: {} at load {load}: {other}", outcome.after());
        }
    }
}

#[test]
fn i17_what_flows_use_now_stays_if_nothing_is_better() {
    // Its protocol cannot be chosen, and is the best: one flow alone does best under Valiant.
    let mut draw = Stream::new(1, "test/selection", 0);
    let mut flows = permutation(64, 1, &mut draw);
    flows[0].protocol = Protocol::Valiant;
    let plan = SearchPlan { protocols: vec![Protocol::Rps], patience: 3, ..SearchPlan::default() };
    let mut rates = rack(&[4, 4, 4]);
    let outcome = search(&mut rates, &flows, Utility::Aggregate, &plan, &mut draw);
    assert_eq!((outcome.protocols, outcome.before), (vec![Protocol::Valiant], outcome.best[3]));
    rates.fill(Whose::All);
    assert_eq!(rates.rate(0), outcome.before);
}

#[test]
fn the_same_stream_finds_the_same_choice_whatever_else_was_computed() {
    let flows = permutation(64, 20, &mut Stream::new(9, "test/selection", 0));
    let plan = SearchPlan { population: 20, elite: 3, patience: 5, ..SearchPlan::default() };
    let run = |rates: &mut Waterfill<Routed>| {
        let mut draw = Stream::new(3, "test/selection", 1);
        search(rates, &flows, Utility::Aggregate, &plan, &mut draw)
    };
    let mut rates = rack(&[4, 4, 4]);
    let first = run(&mut rates);
    assert_eq!(run(&mut rates), first);
    assert!(first.evaluations <= 1 + 20 + 17 * first.best.len() as u64);
}

#[test]
fn seeds_of_every_protocol_are_never_beaten_by_one_of_them() {
    let mut draw = Stream::new(5, "test/selection", 0);
    let flows = permutation(64, 40, &mut draw);
    let plan = SearchPlan {
        seeds: Seeds::CurrentAndUniform,
        generations_max: 0,
        population: 3,
        elite: 1,
        ..SearchPlan::default()
    };
    let goal = Utility::Tail;
    let outcome = search(&mut rack(&[4, 4, 4]), &flows, goal, &plan, &mut draw);
    assert_eq!(outcome.best.len(), 1);
    for protocol in BOTH {
        assert!(outcome.after() >= utility(&[4, 4, 4], &flows, goal, |_| protocol));
    }
}

#[test]
fn e16_a_gain_of_less_than_a_hundredth_is_not_told() {
    let outcome = |before: f64, after: f64| Outcome {
        protocols: vec![],
        before,
        best: vec![after],
        evaluations: 1,
    };
    assert!(!outcome(100.0, 100.9).is_worth(0.01));
    assert!(outcome(100.0, 101.5).is_worth(0.01));
    assert!(!outcome(0.0, 0.0).is_worth(0.01));
}
