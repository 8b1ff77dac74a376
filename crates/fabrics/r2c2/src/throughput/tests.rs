//! Fig. 2's table, closed forms, and the worst case against all permutations of small networks.

use rack::topology::{Mesh, Shape, Torus};
use rack::workload::patterns;

use super::*;
use crate::routing::{Network, Protocol};

fn torus(dimensions: &[u32]) -> Network {
    let shape = Torus { dimensions: dimensions.to_vec(), ..Torus::default() };
    Network::new(&Shape::Torus(shape)).unwrap()
}

fn mesh(dimensions: &[u32]) -> Network {
    let shape = Mesh { dimensions: dimensions.to_vec(), ..Mesh::default() };
    Network::new(&Shape::Mesh(shape)).unwrap()
}

fn shares(network: &Network, protocol: Protocol) -> Shares {
    Shares::new(network, protocol).unwrap()
}

/// A protocol's column: the five patterns in order, and the worst case.
fn column(network: &Network, protocol: Protocol) -> [f64; 6] {
    let shares = shares(network, protocol);
    let [a, b, c, d, e] = Pattern::ALL.map(|pattern| throughput(&shares, pattern).unwrap());
    [a, b, c, d, e, throughput_min(&shares).unwrap()]
}

/// Computed from the definitions by another program, to three digits.
#[test]
fn a9_x01_throughputs_on_a_square_torus_are_those_computed_elsewhere() {
    let network = torus(&[8, 8]);
    for (protocol, expected) in [
        (Protocol::Rps, [4.0, 1.0, 0.323, 0.614, 0.333, 0.165]),
        (Protocol::RpsByHop, [4.0, 1.0, 0.356, 0.614, 0.333, 0.183]),
        (Protocol::Romm, [4.0, 1.0, 0.400, 0.597, 0.333, 0.208]),
        (Protocol::DimensionOrder, [4.0, 1.0, 0.500, 0.286, 0.333, 0.286]),
        (Protocol::DimensionOrderUp, [4.0, 0.8, 0.500, 0.250, 0.333, 0.250]),
        (Protocol::Valiant, [0.5; 6]),
        (Protocol::Weighted, [2.286, 0.762, 0.421, 0.715, 0.533, 0.313]),
        (Protocol::WeightedThreshold, [4.0, 0.821, 0.410, 0.694, 0.533, 0.298]),
    ] {
        let ours = column(&network, protocol);
        for (ours, expected) in ours.into_iter().zip(expected) {
            let name = protocol.name();
            assert!((ours - expected).abs() < 1e-3, "{name}: {ours:.4}, expected {expected}");
        }
    }
}

/// What the literature prints (Dally and Towles; Singh et al.), without the transpose: its column for
/// spraying is ROMM's. One entry, 2.33, is 2 % above ours.
#[test]
fn x01_throughputs_are_those_in_print() {
    let network = torus(&[8, 8]);
    for (protocol, printed) in [
        (Protocol::Romm, [4.0, 1.0, 0.4, 0.33, 0.21]),
        (Protocol::Valiant, [0.5; 5]),
        (Protocol::Weighted, [2.33, 0.76, 0.42, 0.53, 0.31]),
    ] {
        let [neighbour, uniform, complement, _, tornado, worst] = column(&network, protocol);
        let ours = [neighbour, uniform, complement, tornado, worst];
        for (ours, printed) in ours.into_iter().zip(printed) {
            let name = protocol.name();
            assert!((ours / printed - 1.0).abs() < 0.03, "{name}: {ours:.4}, in print {printed}");
        }
    }
    // The printed column of destination tags takes ties both ways: evenly for uniform traffic, all
    // one way for the transpose and the worst case.
    let even = column(&network, Protocol::DimensionOrder);
    let up = column(&network, Protocol::DimensionOrderUp);
    let printed = [4.0, 1.0, 0.5, 0.25, 1.0 / 3.0, 0.25];
    for (index, printed) in printed.into_iter().enumerate() {
        let near = |ours: f64| (ours / printed - 1.0).abs() < 1e-9;
        assert!(near(even[index]) || near(up[index]), "{index}");
    }
}

#[test]
fn i24_valiants_throughput_is_half_the_capacity_for_every_pattern() {
    for dimensions in [&[8, 8][..], &[4, 4, 4], &[6, 6], &[8, 8, 8]] {
        let network = torus(dimensions);
        let valiant = shares(&network, Protocol::Valiant);
        for pattern in Pattern::ALL {
            let ours = throughput(&valiant, pattern).unwrap();
            assert!((ours - 0.5).abs() < 1e-12, "{dimensions:?}, {}: {ours}", pattern.name());
        }
        if network.nodes() <= 64 {
            let worst = throughput_min(&valiant).unwrap();
            assert!((worst - 0.5).abs() < 1e-12, "{dimensions:?}: {worst}");
        }
        // Any permutation at all.
        let mut stream = kernel::Stream::new(5, "test/permutations", 0);
        for _ in 0..5 {
            let map = patterns::permutation(network.nodes(), &mut stream);
            let nodes: Vec<_> = map.into_iter().map(rack::NodeId::new).collect();
            let load = load_max(&loads(&valiant, &Traffic::of_map(&nodes)));
            let ours = 1.0 / load / capacity(network.grid().unwrap());
            assert!((ours - 0.5).abs() < 1e-12, "{dimensions:?}: {ours}");
        }
    }
}

/// Minimal protocols that use both ways round get the whole capacity from uniform traffic, on a torus
/// of equal dimensions; k-ary textbook values: 8 / k, 8 k / (k² - 1) for odd k, 4 / k on a mesh.
#[test]
fn capacity_is_what_uniform_traffic_gets_at_best() {
    for (network, expected) in [
        (torus(&[8, 8]), 1.0),
        (torus(&[4, 4, 4]), 2.0),
        (torus(&[5, 5]), 40.0 / 24.0),
        (torus(&[2, 2, 2]), 2.0),
        (mesh(&[8, 8]), 0.5),
        (mesh(&[3, 3]), 1.5),
    ] {
        let capacity = capacity(network.grid().unwrap());
        assert!((capacity - expected).abs() < 1e-12, "{capacity}, expected {expected}");
        let dimension_order = shares(&network, Protocol::DimensionOrder);
        let ours = throughput(&dimension_order, Pattern::Uniform).unwrap();
        assert!((ours - 1.0).abs() < 1e-12, "{ours}");
    }
}

/// All orders of the numbers below `count`, by Heap's method.
fn permutations(count: usize, visit: &mut impl FnMut(&[usize])) {
    fn heap(size: usize, order: &mut [usize], visit: &mut impl FnMut(&[usize])) {
        if size <= 1 {
            return visit(order);
        }
        for at in 0..size {
            heap(size - 1, order, visit);
            order.swap(if size.is_multiple_of(2) { at } else { 0 }, size - 1);
        }
    }
    let mut order: Vec<usize> = (0..count).collect();
    heap(count, &mut order, visit);
}

#[test]
fn x01_the_worst_case_is_the_worst_of_all_permutations() {
    for network in [torus(&[4, 2]), torus(&[7]), mesh(&[3, 2]), mesh(&[2, 2, 2])] {
        let nodes = network.nodes() as usize;
        for protocol in Protocol::ALL {
            let shares = shares(&network, protocol);
            let worst = worst_case(&shares);
            // The permutation does what it is said to do.
            let loads_then = loads(&shares, &Traffic::of_map(&worst.destinations));
            assert!((loads_then[worst.port.index()] - worst.load).abs() < 1e-9);
            assert!((load_max(&loads_then) - worst.load).abs() < 1e-9);
            // And no other does worse.
            let mut all = vec![Vec::new(); nodes * nodes];
            for (pair, row) in all.iter_mut().enumerate() {
                let (src, dst) = (pair / nodes, pair % nodes);
                let mut alone = vec![Vec::new(); nodes];
                alone[src] = vec![(rack::NodeId::new(dst as u32), 1.0)];
                *row = loads(&shares, &Traffic::of_rows(alone));
            }
            let mut highest = 0.0f64;
            let mut sum = vec![0.0; network.topology().ports().len()];
            permutations(nodes, &mut |order| {
                sum.fill(0.0);
                for (src, &dst) in order.iter().enumerate() {
                    sum.iter_mut()
                        .zip(&all[src * nodes + dst])
                        .for_each(|(sum, load)| *sum += load);
                }
                highest = highest.max(load_max(&sum));
            });
            let name = protocol.name();
            assert!((worst.load - highest).abs() < 1e-9, "{name}: {} {highest}", worst.load);
        }
    }
}

/// Dally and Towles let a tornado blow in every dimension: that gives the same throughput.
#[test]
fn a9_a_tornado_along_one_dimension_is_as_bad_as_along_all() {
    let network = torus(&[8, 8]);
    let grid = network.grid().unwrap();
    let map: Vec<_> = patterns::tornado(&[8, 8]).into_iter().map(rack::NodeId::new).collect();
    for protocol in Protocol::ALL {
        let shares = shares(&network, protocol);
        let all = 1.0 / load_max(&loads(&shares, &Traffic::of_map(&map))) / capacity(grid);
        let one = throughput(&shares, Pattern::Tornado).unwrap();
        assert!((all - one).abs() < 1e-9, "{}: {all} and {one}", protocol.name());
    }
}

#[test]
fn a9_patterns_are_those_of_the_textbook() {
    let network = torus(&[8, 8]);
    let grid = network.grid().unwrap();
    let map = |pattern: Pattern| -> Vec<u32> {
        pattern.traffic(grid).unwrap().pairs().map(|(_, dst, _)| dst.get()).collect()
    };
    assert_eq!(map(Pattern::BitComplement), patterns::bit_complement(64));
    assert_eq!(map(Pattern::Transpose), patterns::transpose(64));
    let tornado: Vec<u32> = (0..64).map(|node| node / 8 * 8 + (node + 3) % 8).collect();
    assert_eq!(map(Pattern::Tornado), tornado);
    let near = Pattern::NearestNeighbour.traffic(grid).unwrap();
    let mut first: Vec<u32> = near.pairs().take(4).map(|(_, dst, _)| dst.get()).collect();
    first.sort_unstable();
    assert_eq!(first, [1, 7, 8, 56]);
    assert!(Pattern::ALL.iter().all(|pattern| {
        let traffic = pattern.traffic(grid).unwrap();
        traffic.sums().all(|(_, sums)| sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12))
    }));
    let oblong = torus(&[8, 4]);
    assert!(Pattern::Transpose.traffic(oblong.grid().unwrap()).is_err());
    let graph = Network::of_graph(network.topology().clone());
    assert!(throughput(&shares(&graph, Protocol::Rps), Pattern::Uniform).is_err());
}
