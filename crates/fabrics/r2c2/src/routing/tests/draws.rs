//! Drawn routes against all paths written out, and against shares.

use std::collections::BTreeMap;

use kernel::Stream;
use rack::NodeId;
use rack::topology::{PortId, Vertex};

use super::super::{Network, Protocol, Route, Routes, Scratch, Shares};
use super::{mesh, odd_graph, oracle, protocols, small_networks, torus};

/// The ports that a route takes from a node, and where it ends.
fn follow(network: &Network, src: NodeId, route: Route) -> (Vec<PortId>, Vertex) {
    let topology = network.topology();
    let mut at = topology.host(src);
    let mut path = Vec::new();
    for hop in route.hops() {
        let port = topology.ports_of(at).nth(usize::from(hop)).unwrap();
        path.push(port);
        at = topology.port(port).peer;
    }
    (path, at)
}

/// The value that a chi-square of so many degrees of freedom exceeds with a probability of 10⁻⁶, by
/// Wilson and Hilferty's approximation (1931); the normal quantile is 4.7534.
fn chi_square_bound(degrees: usize) -> f64 {
    let degrees = degrees as f64;
    let root = 1.0 - 2.0 / (9.0 * degrees) + 4.7534 * (2.0 / (9.0 * degrees)).sqrt();
    degrees * root.powi(3)
}

/// Draws routes, and compares how often each path came with its probability: paths that are expected
/// less than ten times are counted together.
#[track_caller]
fn check_paths(network: &Network, protocol: Protocol, src: u32, dst: u32, draws: u32) {
    let (src, dst) = (NodeId::new(src), NodeId::new(dst));
    let expected = oracle::paths(network, protocol, src, dst);
    let routes = Routes::new(network).unwrap();
    let mut stream = Stream::new(7, "test/routes", u64::from(protocol.number()));
    let mut counts: BTreeMap<Vec<PortId>, u32> = BTreeMap::new();
    for _ in 0..draws {
        let route = routes.draw(protocol, src, dst, &mut stream).unwrap();
        let (path, end) = follow(network, src, route);
        assert_eq!(end.get(), dst.get());
        assert!(expected.contains_key(&path), "{}: {path:?} is no path", protocol.name());
        *counts.entry(path).or_default() += 1;
    }
    let (mut sum, mut classes, mut rare) = (0.0, 0, (0.0, 0.0));
    for (path, probability) in &expected {
        let mean = probability * f64::from(draws);
        let count = f64::from(counts.get(path).copied().unwrap_or(0));
        if mean < 10.0 {
            rare = (rare.0 + mean, rare.1 + count);
        } else {
            sum += (count - mean).powi(2) / mean;
            classes += 1;
        }
    }
    if rare.0 >= 10.0 {
        sum += (rare.1 - rare.0).powi(2) / rare.0;
        classes += 1;
    }
    assert!(classes > 0);
    if classes > 1 {
        let bound = chi_square_bound(classes - 1);
        assert!(sum < bound, "{}, {src} to {dst}: {sum}, {classes} classes", protocol.name());
    } else {
        assert!(sum < 1e-9);
    }
}

#[test]
fn m26_m27_m28_m29_drawn_paths_are_as_frequent_as_defined() {
    for network in [torus(&[4, 4]), torus(&[2, 3, 4]), torus(&[5, 3]), mesh(&[4, 3])] {
        let last = network.nodes() - 1;
        for protocol in Protocol::ALL {
            for (src, dst) in [(0, last), (last / 2, 1), (0, 1), (last - 1, last / 3)] {
                check_paths(&network, protocol, src, dst, 20_000);
            }
        }
    }
    // Half round both rings: all directions and orders are possible.
    for protocol in Protocol::ALL {
        check_paths(&torus(&[4, 4]), protocol, 0, 10, 50_000);
    }
}

#[test]
fn m26_m28_drawn_paths_on_any_graph_are_as_frequent_as_defined() {
    let whole = torus(&[4, 3]);
    let broken = whole.without(&[PortId::new(0), PortId::new(9)], &[]);
    for network in [odd_graph(), broken] {
        for protocol in protocols(&network) {
            for (src, dst) in [(0, 4), (1, 5), (6, 2), (3, 0)] {
                check_paths(&network, protocol, src, dst, 20_000);
            }
        }
    }
}

/// Crossings of each link in many draws, within 5.5 standard errors of the share: for some two
/// thousand links in all, chance breaks one such bound once in ten thousand seeds.
#[test]
fn m16_the_mean_of_drawn_routes_is_the_share() {
    const DRAWS: u32 = 40_000;
    for (network, pairs) in
        [(torus(&[8, 8]), [(0, 36), (9, 28)]), (torus(&[4, 4, 4]), [(0, 42), (5, 60)])]
    {
        let routes = Routes::new(&network).unwrap();
        let mut scratch = Scratch::new(&network);
        for protocol in Protocol::ALL {
            let shares = Shares::new(&network, protocol).unwrap();
            for (src, dst) in pairs.map(|(src, dst)| (NodeId::new(src), NodeId::new(dst))) {
                let mut stream = Stream::new(3, "test/means", u64::from(src.get()));
                let ports = network.topology().ports().len();
                let (mut sums, mut squares) = (vec![0u64; ports], vec![0u64; ports]);
                for _ in 0..DRAWS {
                    let route = routes.draw(protocol, src, dst, &mut stream).unwrap();
                    let (mut path, _) = follow(&network, src, route);
                    path.sort_unstable();
                    for same in path.chunk_by(|a, b| a == b) {
                        sums[same[0].index()] += same.len() as u64;
                        squares[same[0].index()] += (same.len() * same.len()) as u64;
                    }
                }
                let mut expected = vec![0.0; ports];
                for &(port, share) in shares.of(src, dst, &mut scratch) {
                    expected[port.index()] = share;
                }
                for (port, &expected) in expected.iter().enumerate() {
                    let mean = sums[port] as f64 / f64::from(DRAWS);
                    let variance = squares[port] as f64 / f64::from(DRAWS) - mean * mean;
                    // At least the variance of a few crossings, as rare ones may not have occurred.
                    let variance = variance.max(expected.min(1.0 - expected.min(1.0)));
                    let bound = 5.5 * (variance / f64::from(DRAWS)).sqrt() + 1e-12;
                    let name = protocol.name();
                    assert!((mean - expected).abs() <= bound, "{name}, {port}: {mean} {expected}");
                }
            }
        }
    }
}

#[test]
fn i16_routes_are_as_long_as_their_protocol_allows() {
    for network in [torus(&[8, 8, 8]), mesh(&[5, 4, 3]), torus(&[7, 2, 6])] {
        let routes = Routes::new(&network).unwrap();
        let diameter = network.topology().diameter();
        let mut stream = Stream::new(1, "test/lengths", 0);
        for draw in 0..20_000u64 {
            let nodes = u64::from(network.nodes());
            let (src, dst) = (stream.below(nodes), stream.below(nodes));
            let (src, dst) = (NodeId::new(src as u32), NodeId::new(dst as u32));
            let protocol = Protocol::ALL[draw as usize % Protocol::ALL.len()];
            let route = routes.draw(protocol, src, dst, &mut stream).unwrap();
            let distance = network.distance(src, dst).unwrap();
            match protocol {
                Protocol::Valiant => assert!(route.length() <= 2 * diameter),
                Protocol::Weighted | Protocol::WeightedThreshold => {}
                _ => assert_eq!(route.length(), distance, "{}", protocol.name()),
            }
            assert!((distance..=routes.hops_max(protocol).unwrap()).contains(&route.length()));
            assert_eq!(follow(&network, src, route).1.get(), dst.get());
        }
    }
}

#[test]
fn routes_keep_to_what_lives_and_end_where_nothing_is_cut_off() {
    let whole = torus(&[4, 4]);
    let dead = Vertex::new(5);
    // All links of node 10, and one of node 0.
    let links: Vec<PortId> = { whole.topology() }.ports_of(Vertex::new(10)).collect();
    let network = whole.without(&[&links[..], &[PortId::new(1)]].concat(), &[dead]);
    let routes = Routes::new(&network).unwrap();
    let mut stream = Stream::new(1, "test/failures", 0);
    for src in 0..16 {
        for dst in 0..16 {
            for protocol in protocols(&network) {
                let (src, dst) = (NodeId::new(src), NodeId::new(dst));
                let joined = oracle::distances(&network, dst)[src.index()] < 16;
                assert_eq!(
                    joined,
                    src == dst || ![5, 10].iter().any(|n| [src.get(), dst.get()].contains(n))
                );
                for _ in 0..20 {
                    let route = routes.draw(protocol, src, dst, &mut stream);
                    assert_eq!(route.is_some(), joined, "{src} to {dst}");
                    let Some(route) = route else { continue };
                    let (path, end) = follow(&network, src, route);
                    assert_eq!(end.get(), dst.get());
                    assert!(path.iter().all(|&port| network.lives(port)));
                }
            }
        }
    }
}

#[test]
fn a_packet_to_its_own_node_goes_nowhere() {
    for (name, network) in small_networks() {
        let routes = Routes::new(&network).unwrap();
        let mut scratch = Scratch::new(&network);
        let mut stream = Stream::new(1, "test/self", 0);
        for protocol in protocols(&network) {
            let node = NodeId::new(1);
            assert_eq!(
                routes.draw(protocol, node, node, &mut stream),
                Some(Route::EMPTY),
                "{name}"
            );
            let shares = Shares::new(&network, protocol).unwrap();
            assert!(shares.of(node, node, &mut scratch).is_empty(), "{name}");
        }
    }
}
