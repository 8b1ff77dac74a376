//! Rates in racks of the paper's size, against closed forms and a computation made apart.

use rack::topology::{Shape, Torus};

use super::*;
use crate::routing::Network;

/// 10 Gbps less 5 % (§5.2).
const USABLE: f64 = 9.5e9;
/// Rounding of shares.
const EPSILON: f64 = 1e-6;

fn rack(dimensions: &[u32]) -> Waterfill<Routed> {
    let torus = Torus { dimensions: dimensions.to_vec(), ..Torus::default() };
    let network = Network::new(&Shape::Torus(torus)).unwrap();
    let routed = Routed::new(&network, &[Protocol::Rps, Protocol::Valiant]).unwrap();
    Waterfill::new(routed, capacities(network.topology(), 0.05))
}

/// M49: `count` flows, each from and to a node of its own.
fn permutation(nodes: u32, count: usize, draw: &mut Stream) -> Vec<(u32, u32)> {
    let (mut from, mut to): (Vec<u32>, Vec<u32>) = ((0..nodes).collect(), (0..nodes).collect());
    loop {
        draw.shuffle(&mut from);
        draw.shuffle(&mut to);
        if (0..count).all(|at| from[at] != to[at]) {
            return from.into_iter().zip(to).take(count).collect();
        }
    }
}

fn rates(rack: &mut Waterfill<Routed>, pairs: &[(u32, u32)], protocol: Protocol) -> Vec<f64> {
    rack.clear();
    for (place, &(source, destination)) in (0..).zip(pairs) {
        rack.join(place, course(source, destination, protocol), Terms::default());
    }
    rack.fill(Whose::All);
    (0..pairs.len() as u32).map(|place| rack.rate(place)).collect()
}

#[test]
fn every_permutation_under_valiant_gives_every_node_half_of_what_uniform_traffic_could_have() {
    // Each leg is uniform traffic. Along a dimension with a mean distance of h (itself among the
    // destinations) and two links a node it puts h / 2 on each link; two legs twice that. Of
    // different dimensions the longest fills first.
    for (dimensions, distance) in [(&[8, 8, 8][..], 2.0), (&[4, 4], 1.0), (&[5, 3], 6.0 / 5.0)] {
        let nodes: u32 = dimensions.iter().product();
        let expected = USABLE / distance;
        let mut draw = Stream::new(1, "test/racks", 0);
        let pairs = permutation(nodes, nodes as usize, &mut draw);
        for rate in rates(&mut rack(dimensions), &pairs, Protocol::Valiant) {
            assert!((rate - expected).abs() <= EPSILON * expected, "{rate} for {expected}");
        }
    }
}

#[test]
fn uniform_traffic_under_spraying_fills_every_link_at_once() {
    let nodes = 64;
    let pairs: Vec<(u32, u32)> =
        (0..nodes).flat_map(|a| (0..nodes).filter(move |&b| a != b).map(move |b| (a, b))).collect();
    let mut rack = rack(&[4, 4, 4]);
    // 64 * 64 pairs (those to themselves take nothing), three links a pair, 384 links.
    let expected = USABLE * 384.0 / (64.0 * 64.0 * 3.0);
    for rate in rates(&mut rack, &pairs, Protocol::Rps) {
        assert!((rate - expected).abs() <= EPSILON * expected, "{rate} for {expected}");
    }
    assert!(rack.rounds() <= pairs.len() as u64);
}

#[test]
fn x18_a_flow_alone_gains_from_valiant_what_a_computation_apart_says() {
    // 8x8x8, mean over all destinations: 22.9 Gbps sprayed, 55 Gbps under Valiant.
    let mut rack = rack(&[8, 8, 8]);
    for (protocol, expected) in [(Protocol::Rps, 22.9), (Protocol::Valiant, 55.0)] {
        let alone = (1..512).map(|to| rates(&mut rack, &[(0, to)], protocol)[0]);
        let mean = alone.sum::<f64>() / 511.0 / 1e9;
        assert!((mean - expected).abs() < 0.006 * expected, "{}: {mean}", protocol.name());
    }
}

#[test]
fn x18_half_loaded_racks_have_the_throughput_that_a_computation_apart_says() {
    // Sums in Gbps of means over a few draws there and here: within 4 %.
    let mut rack = rack(&[8, 8, 8]);
    for (count, sprayed, valiant) in
        [(51, 678.0, 886.0), (256, 1966.0, 1840.0), (512, 2851.0, 2431.0)]
    {
        for (protocol, expected) in [(Protocol::Rps, sprayed), (Protocol::Valiant, valiant)] {
            let draws = 6;
            let sum = |seed| {
                let pairs = permutation(512, count, &mut Stream::new(seed, "test/racks", 1));
                rates(&mut rack, &pairs, protocol).iter().sum::<f64>() / 1e9
            };
            let mean = (0..draws).map(sum).sum::<f64>() / draws as f64;
            let what = protocol.name();
            assert!((mean / expected - 1.0).abs() < 0.04, "{count} flows, {what}: {mean}");
        }
    }
}

#[test]
fn slow_m17_the_torus_of_4096_nodes_runs() {
    let mut rack = rack(&[16, 16, 16]);
    let mut draw = Stream::new(1, "test/racks", 2);
    let pairs = permutation(4096, 200, &mut draw);
    for protocol in [Protocol::Rps, Protocol::Valiant] {
        let found = rates(&mut rack, &pairs, protocol);
        assert!(found.iter().all(|&rate| rate > 0.0 && rate <= 6.0 * USABLE), "{found:?}");
    }
    // All nodes at once: 2 * 4096 * 12 / 24576 on each link.
    let pairs = permutation(4096, 4096, &mut draw);
    let expected = USABLE / 4.0;
    for rate in rates(&mut rack, &pairs[..], Protocol::Valiant) {
        assert!((rate - expected).abs() <= 1e-5 * expected, "{rate} for {expected}");
    }
}
