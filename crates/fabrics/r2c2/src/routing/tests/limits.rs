//! What does not fit, counts of paths, and the encoding of routes.

use proptest::prelude::*;
use rack::NodeId;
use rack::topology::{Graph, LeafSpine, PortId, Shape, Vertex};

use super::super::{HOPS_MAX, LINKS_MAX, Network, Protocol, Route, Routes, Shares};
use super::{mesh, oracle, small_networks, torus};

proptest! {
    #[test]
    fn i12_a_route_holds_its_hops(hops in prop::collection::vec(0u8..8, 0..=42)) {
        let route = Route::new(&hops);
        prop_assert_eq!(route.length() as usize, hops.len());
        prop_assert!(route.hops().eq(hops.iter().copied()));
        for (index, &hop) in (0..).zip(&hops) {
            prop_assert_eq!(route.hop(index), hop);
        }
        prop_assert_eq!(Route::from_bits(route.bits(), route.length()), Some(route));
        let spelled = hops.iter().rev().fold(0u128, |bits, &hop| bits << 3 | u128::from(hop));
        prop_assert_eq!(route.bits(), spelled);
    }

    #[test]
    fn i12_bits_behind_the_last_hop_are_refused(bits in any::<u128>(), length in 0u32..=60) {
        match Route::from_bits(bits, length) {
            Some(route) => prop_assert_eq!((route.bits(), route.length()), (bits, length)),
            None => prop_assert!(length > HOPS_MAX || bits >> (3 * length) != 0),
        }
    }
}

#[test]
fn i12_d06_a_route_has_at_most_42_hops_over_8_links() {
    assert_eq!((HOPS_MAX, LINKS_MAX), (42, 8));
    assert_eq!(size_of::<Route>(), 16);
    assert_eq!(Route::new(&[7; 42]).hops().collect::<Vec<_>>(), [7; 42]);
    assert!(std::panic::catch_unwind(|| Route::new(&[7; 43])).is_err());
    assert!(std::panic::catch_unwind(|| Route::new(&[8])).is_err());
}

#[test]
fn i12_d06_networks_whose_routes_are_too_long_are_refused() {
    let longest = |network: &Network, protocol| Routes::new(network).unwrap().hops_max(protocol);
    assert_eq!(longest(&torus(&[8, 8, 8]), Protocol::Valiant), Ok(24));
    assert_eq!(longest(&torus(&[8, 8, 8]), Protocol::Weighted), Ok(21));
    assert_eq!(longest(&torus(&[8, 8, 8]), Protocol::WeightedThreshold), Ok(18));
    assert_eq!(longest(&torus(&[8, 8, 8]), Protocol::Rps), Ok(12));
    assert_eq!(longest(&mesh(&[8, 8, 8]), Protocol::Valiant), Ok(42));
    assert_eq!(longest(&torus(&[16, 32]), Protocol::Rps), Ok(24));
    let refused = longest(&torus(&[16, 32]), Protocol::Valiant).unwrap_err();
    assert!(refused.message.contains("48 hops") && refused.message.contains("42"), "{refused}");
}

#[test]
fn nodes_with_more_than_eight_links_are_refused() {
    let star: String = (1..10).map(|leaf| format!("0,{leaf},10 Gbps,100 ns\n")).collect();
    let edges = format!("a,b,rate,delay\n{star}");
    let network =
        Network::new(&Shape::Graph(Graph { hosts: 10, edges, ..Graph::default() })).unwrap();
    let refused = Routes::new(&network).unwrap_err();
    assert!(refused.message.contains("vertex 0 has 9 links"), "{refused}");
}

#[test]
fn protocols_of_dimensions_are_refused_where_there_are_none() {
    let tree = Network::new(&Shape::LeafSpine(LeafSpine::default())).unwrap();
    let whole = torus(&[4, 4]);
    let broken = whole.without(&[rack::topology::PortId::new(3)], &[]);
    for network in [tree, broken] {
        for protocol in Protocol::ALL {
            let shares = Shares::new(&network, protocol);
            assert_eq!(shares.is_err(), protocol.needs_grid());
            assert!(Shares::new(&network, protocol.on_any_graph()).is_ok());
        }
    }
    assert!(Protocol::ALL.map(|p| Shares::new(&whole, p).is_ok()).iter().all(|&fits| fits));
}

#[test]
fn protocols_have_numbers_of_their_own() {
    for (protocol, number) in Protocol::ALL.into_iter().zip(0..) {
        assert_eq!(protocol.number(), number);
        assert_eq!(Protocol::from_number(number), Some(protocol));
    }
    assert_eq!(Protocol::from_number(Protocol::ALL.len() as u8), None);
}

#[test]
fn distances_and_counts_are_those_of_all_paths_written_out() {
    for (name, network) in small_networks() {
        for src in (0..network.nodes()).map(NodeId::new) {
            for dst in (0..network.nodes()).map(NodeId::new) {
                let paths = oracle::paths(&network, Protocol::Rps, src, dst);
                assert_eq!(network.path_count(src, dst), paths.len() as f64, "{name}");
                let length = paths.keys().next().map(|path| path.len() as u32);
                assert_eq!(network.distance(src, dst), length, "{name}");
            }
        }
    }
}

#[test]
fn the_longest_of_all_shortest_paths_is_found() {
    // More nodes than are followed together, and parts that nothing joins.
    let cut = torus(&[300]).without(&[PortId::new(0), PortId::new(300)], &[Vertex::new(40)]);
    let large = [torus(&[17, 17]), mesh(&[3, 100]), cut].map(|network| ("large", network));
    for (name, network) in small_networks().into_iter().map(|(_, n)| ("small", n)).chain(large) {
        let nodes = || (0..network.nodes()).map(NodeId::new);
        let pairs = nodes().flat_map(|src| nodes().map(move |dst| (src, dst)));
        let longest = pairs.filter_map(|(src, dst)| network.distance(src, dst)).max();
        assert_eq!(network.ways().diameter(), longest.unwrap(), "{name}");
    }
}

/// The mean number of shortest paths over all pairs of nodes, a node and itself among them, between
/// which there is one path of no link; and the largest.
fn path_counts(network: &Network) -> (f64, f64) {
    let nodes = (0..network.nodes()).map(NodeId::new);
    let pairs = nodes.clone().flat_map(|src| nodes.clone().map(move |dst| (src, dst)));
    let counts = pairs.map(|(src, dst)| network.path_count(src, dst));
    let (sum, max) = counts.fold((0.0, 0.0f64), |(sum, max), count| (sum + count, max.max(count)));
    (sum / f64::from(network.nodes()).powi(2), max)
}

/// §2.2.1 gives "an average flow" in a rack of 6x6x6 nodes 1,680 paths. That is the number of orders
/// of three steps along each dimension, to the farthest node; half round three rings there are eight
/// times as many, and on average far fewer.
#[test]
fn x02_d01_i16_path_counts_of_a_rack_of_216() {
    let network = torus(&[6, 6, 6]);
    let (mean, max) = path_counts(&network);
    assert_eq!(max, 1_680.0 * 8.0);
    assert!((mean - 190.6).abs() < 0.05, "{mean}");
    let farthest = NodeId::new(3 + 3 * 6 + 3 * 36);
    assert_eq!(network.path_count(NodeId::new(0), farthest), 13_440.0);
    // Offset (1, 2, 2): 5! / (1! 2! 2!) orders, no ring halfway.
    let near = NodeId::new(1 + 2 * 6 + 2 * 36);
    assert_eq!(network.path_count(NodeId::new(0), near), 30.0);
    let (mean, _) = path_counts(&mesh(&[6, 6, 6]));
    assert!((mean - 1_341.0).abs() < 0.5, "{mean}");
    let (mean, _) = path_counts(&torus(&[8, 8, 8]));
    assert!((mean - 1_717.0).abs() < 0.5, "{mean}");
}
