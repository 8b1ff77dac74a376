//! Rates against what defines them, on networks too large for linear programmes.

use proptest::prelude::*;
use rack::fairness::{Use, max_min};

use super::*;

/// Rounding of shares and of sums, relative to the largest capacity: shares of a hundredth are off by
/// a part in ten million, and a rate is up to a hundred capacities.
const EPSILON: f64 = 1e-5;

fn largest(case: &Case) -> f64 {
    case.capacities.iter().copied().fold(0.0, f64::max)
}

/// I01 and I02: no link is over its capacity, and each flow has what its host can send or a full link
/// on which no flow of its priority has more for its weight, and none of a later priority anything.
fn check(case: &Case, rates: &[f64]) -> Result<(), String> {
    let slack = EPSILON * largest(case);
    let loads: Vec<f64> = (0..case.capacities.len()).map(|link| case.load(link, rates)).collect();
    for (link, (load, capacity)) in loads.iter().zip(&case.capacities).enumerate() {
        if *load > capacity + slack {
            return Err(format!("I01: link {link} carries {load} of {capacity}"));
        }
    }
    let level = |flow: usize| rates[flow] / f64::from(case.flows[flow].1.weight.get());
    let rows: Vec<Vec<(usize, f64)>> =
        case.flows.iter().map(|&(course, _)| case.courses.row(course)).collect();
    for (flow, &(_, terms)) in case.flows.iter().enumerate() {
        let demand = terms.demand.map_or(f64::INFINITY, |rate| rate.as_bps() as f64);
        if rates[flow] > demand {
            return Err(format!("flow {flow} has {} of {demand}", rates[flow]));
        }
        let has_all = rates[flow] == demand;
        let is_bottleneck = |link: usize| {
            let mut others =
                (0..rates.len()).filter(|&other| rows[other].iter().any(|used| used.0 == link));
            loads[link] >= case.capacities[link] - slack
                && others.all(|other| match case.flows[other].1.priority.cmp(&terms.priority) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => level(other) <= level(flow) + slack,
                    std::cmp::Ordering::Greater => rates[other] <= slack,
                })
        };
        if !has_all && !rows[flow].iter().any(|used| is_bottleneck(used.0)) {
            return Err(format!("I02: flow {flow} at {} has no bottleneck", rates[flow]));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn i02_every_flow_has_its_demand_or_a_bottleneck(
        seed: u64, links in 1usize..30, flows in 1usize..60,
    ) {
        for kinds in [PLAIN, ALL] {
            let case = Case::random(seed, links, flows, kinds);
            let rates = case.rates();
            let found = check(&case, &rates);
            prop_assert!(found.is_ok(), "{:?}: {:?}", found, rates);
        }
    }

    #[test]
    fn plain_flows_have_the_rates_of_the_solver_for_all_fabrics(
        seed: u64, links in 1usize..30, flows in 1usize..60,
    ) {
        let case = Case::random(seed, links, flows, PLAIN);
        let row = |&(course, _): &(Course, Terms)| -> Vec<Use> {
            let row = case.courses.row(course);
            row.into_iter().map(|(link, share)| Use { link, share }).collect()
        };
        let expected = max_min(&case.capacities, &case.flows.iter().map(row).collect::<Vec<_>>());
        for (found, expected) in case.rates().into_iter().zip(expected) {
            prop_assert!((found - expected).abs() <= EPSILON * largest(&case), "{} {}", found, expected);
        }
    }

    #[test]
    fn i03_rates_scale_with_capacities_and_not_with_weights(
        seed: u64, links in 1usize..20, flows in 1usize..40, factor in 2u8..20,
    ) {
        let case = Case::random(seed, links, flows, Kinds { limited: 0.0, ..ALL });
        let mut larger = case.clone();
        larger.capacities.iter_mut().for_each(|capacity| *capacity *= f64::from(factor));
        let mut heavier = case.clone();
        for (_, terms) in &mut heavier.flows {
            terms.weight = NonZeroU8::new(terms.weight.get() * factor).unwrap();
        }
        let slack = EPSILON * largest(&larger);
        let rates = case.rates();
        for (rate, other) in rates.iter().zip(larger.rates()) {
            prop_assert!((rate * f64::from(factor) - other).abs() <= slack, "{} {}", rate, other);
        }
        for (rate, other) in rates.iter().zip(heavier.rates()) {
            prop_assert!((rate - other).abs() <= slack, "{} {}", rate, other);
        }
    }

    #[test]
    fn i04_later_priorities_do_not_exist_for_earlier_ones(
        seed: u64, links in 1usize..20, flows in 1usize..40,
    ) {
        let case = Case::random(seed, links, flows, ALL);
        let mut earlier = case.clone();
        earlier.flows.retain(|(_, terms)| terms.priority < 2);
        let all = case.rates().into_iter().zip(&case.flows);
        let kept = all.filter(|(_, (_, terms))| terms.priority < 2).map(|(rate, _)| rate);
        prop_assert_eq!(kept.collect::<Vec<_>>(), earlier.rates());
    }
}

#[test]
fn the_check_itself_finds_unfair_rates() {
    let flow = course(0, 1, Protocol::Rps);
    let courses =
        Written { nodes: 2, links: 1, uses: [(flow, vec![(0, 0.5)])].into(), ..Written::default() };
    let two = |second: Terms| Case {
        courses: courses.clone(),
        capacities: vec![1000.0],
        flows: vec![(flow, Terms::default()), (flow, second)],
    };
    let even = two(Terms::default());
    assert_eq!(even.rates(), [1000.0, 1000.0]);
    assert!(check(&even, &[1000.0, 1000.0]).is_ok());
    for unfair in [[900.0, 1100.0], [900.0, 900.0], [1100.0, 1100.0]] {
        assert!(check(&even, &unfair).is_err(), "{unfair:?}");
    }
    let heavy = two(weight(3));
    assert!(check(&heavy, &[500.0, 1500.0]).is_ok());
    assert!(check(&heavy, &[1000.0, 1000.0]).is_err());
    let later = two(Terms { priority: 1, ..Terms::default() });
    assert!(check(&later, &[2000.0, 0.0]).is_ok());
    assert!(check(&later, &[1000.0, 1000.0]).is_err());
    let limited = two(Terms { demand: Some(Rate::from_bps(300)), ..Terms::default() });
    assert!(check(&limited, &[1700.0, 300.0]).is_ok());
    assert!(check(&limited, &[1800.0, 200.0]).is_err());
    assert!(check(&limited, &[1600.0, 400.0]).is_err());
}
