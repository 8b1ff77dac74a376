//! Rates against linear programmes: hundreds of small networks.

use microlp::ComparisonOp;
use rack::topology::{Mesh, Shape, Torus};

use super::super::programme::{Programme, Share};
use super::*;
use crate::routing::Network;

/// Rounding of shares, and the solver's tolerance, relative to the largest capacity.
const EPSILON: f64 = 1e-5;

/// The fair rates of a case by linear programming.
fn programmed(case: &Case) -> Vec<f64> {
    let unit = case.capacities.iter().copied().fold(0.0, f64::max);
    let mut programme = Programme::default();
    let mut on_links = vec![Vec::new(); case.capacities.len()];
    let mut shares = Vec::new();
    for &(course, terms) in &case.flows {
        let demand = terms.demand.map_or(f64::INFINITY, |rate| rate.as_bps() as f64 / unit);
        let variable = programme.variable(demand);
        for (link, share) in case.courses.row(course) {
            on_links[link].push((variable, share));
        }
        let weight = f64::from(terms.weight.get());
        shares.push(Share { variable, weight, priority: terms.priority });
    }
    for (terms, capacity) in on_links.into_iter().zip(&case.capacities) {
        programme.hold(terms, ComparisonOp::Le, capacity / unit);
    }
    programme.max_min(&shares).into_iter().map(|rate| rate * unit).collect()
}

#[track_caller]
fn check(seed: u64, links: usize, flows: usize, kinds: Kinds) {
    let case = Case::random(seed, links, flows, kinds);
    let unit = case.capacities.iter().copied().fold(0.0, f64::max);
    for (flow, (found, expected)) in case.rates().into_iter().zip(programmed(&case)).enumerate() {
        assert!(
            (found - expected).abs() <= EPSILON * unit,
            "seed {seed}, flow {flow}: {found}, by linear programming {expected}: {case:?}"
        );
    }
}

#[test]
fn m17_rates_are_those_of_a_sequence_of_linear_programmes() {
    for seed in 0..200 {
        check(seed, 2 + seed as usize % 6, 1 + seed as usize % 9, PLAIN);
    }
}

#[test]
fn m21_m23_so_they_are_with_weights_priorities_demands_and_valiant() {
    for seed in 1000..1300 {
        check(seed, 2 + seed as usize % 7, 1 + seed as usize % 10, ALL);
    }
}

/// Restricted and unrestricted rates of random flows, sorted.
fn both(shape: &Shape, flows: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let network = Network::new(shape).unwrap();
    let capacities = capacities(network.topology(), 0.0);
    let routed = Routed::new(&network, &[Protocol::Rps]).unwrap();
    let mut rates = Waterfill::new(routed, capacities.clone());
    let mut draw = Stream::new(seed, "test/unrestricted", 0);
    let mut pairs = Vec::new();
    for place in 0..flows as u32 {
        let source = draw.below(network.nodes().into()) as u32;
        let further = 1 + draw.below(u64::from(network.nodes()) - 1) as u32;
        let flow = course(source, (source + further) % network.nodes(), Protocol::Rps);
        rates.join(place, flow, Terms::default());
        pairs.push((flow.source, flow.destination, Terms::default()));
    }
    rates.fill(Whose::All);
    let mut restricted: Vec<f64> = (0..flows as u32).map(|place| rates.rate(place)).collect();
    let mut free = unrestricted(network.topology(), &capacities, &pairs);
    restricted.sort_unstable_by(f64::total_cmp);
    free.sort_unstable_by(f64::total_cmp);
    (restricted, free)
}

#[test]
fn m18_fixed_proportions_never_help_the_flow_that_is_worst_off() {
    let torus = Shape::Torus(Torus { dimensions: vec![3, 3], ..Torus::default() });
    let mesh = Shape::Mesh(Mesh { dimensions: vec![3, 3], ..Mesh::default() });
    let mut costs = 0;
    for (shape, seed) in [(&torus, 1), (&torus, 2), (&mesh, 3), (&mesh, 4)] {
        let (restricted, free) = both(shape, 6, seed);
        // Max-min fairness over more choices is lexicographically at least as large.
        let first = restricted.iter().zip(&free).find(|(a, b)| (*a - *b).abs() > 1e-5 * *b);
        if let Some((restricted, free)) = first {
            assert!(free > restricted, "{seed}: {restricted} with fixed proportions, {free} free");
            costs += 1;
        }
    }
    assert!(costs > 0, "some flows lose by fixed proportions");
}
