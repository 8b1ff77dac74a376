//! Shares against enumeration, and the paper's examples.

use rack::NodeId;
use rack::topology::{PortId, Vertex};

use super::super::{Network, Protocol, Scratch, Shares, of_paths};
use super::{mesh, oracle, protocols, small_networks, torus};

/// All pairs of nodes.
fn pairs(network: &Network) -> impl Iterator<Item = (NodeId, NodeId)> + use<> {
    let nodes = network.nodes();
    let node = move |index: u32| NodeId::new(index);
    (0..nodes).flat_map(move |src| (0..nodes).map(move |dst| (node(src), node(dst))))
}

#[track_caller]
fn assert_near(ours: f64, expected: f64, what: &str) {
    assert!((ours - expected).abs() < 1e-12, "{what}: {ours}, expected {expected}");
}

/// The port from one vertex to another.
fn port(network: &Network, from: u32, to: u32) -> PortId {
    let mut ports = network.topology().links_between(Vertex::new(from), Vertex::new(to));
    ports.next().unwrap()
}

#[test]
fn slow_m16_shares_are_those_of_all_paths_written_out() {
    for (name, network) in small_networks() {
        let mut scratch = Scratch::new(&network);
        for protocol in protocols(&network) {
            let shares = Shares::new(&network, protocol).unwrap();
            for (src, dst) in pairs(&network) {
                let expected = oracle::shares(&oracle::paths(&network, protocol, src, dst));
                let ours = shares.of(src, dst, &mut scratch);
                let case = format!("{name}, {}, {src} to {dst}", protocol.name());
                assert!(ours.iter().map(|pair| pair.0).eq(expected.keys().copied()), "{case}");
                for &(port, share) in ours {
                    assert_near(share, expected[&port], &format!("{case}, {port:?}"));
                }
            }
        }
    }
}

#[test]
fn i06_packets_are_conserved_at_every_vertex() {
    for (name, network) in [("torus", torus(&[8, 8])), ("mesh", mesh(&[3, 4, 5]))] {
        let mut scratch = Scratch::new(&network);
        for protocol in Protocol::ALL {
            let shares = Shares::new(&network, protocol).unwrap();
            for (src, dst) in pairs(&network).step_by(37).filter(|(src, dst)| src != dst) {
                let mut gain = vec![0.0; network.nodes() as usize];
                for &(port, share) in shares.of(src, dst, &mut scratch) {
                    gain[network.topology().port(port).vertex.index()] -= share;
                    gain[network.topology().port(port).peer.index()] += share;
                }
                gain[src.index()] += 1.0;
                gain[dst.index()] -= 1.0;
                for gain in gain {
                    assert_near(gain, 0.0, &format!("{name}, {}", protocol.name()));
                }
            }
        }
    }
}

/// The mean number of links is the distance, under Valiant's routing that over the waypoint.
#[test]
fn i06_shares_add_up_to_the_mean_length_of_paths() {
    let network = torus(&[4, 5, 3]);
    let mut scratch = Scratch::new(&network);
    let distances: Vec<_> =
        (0..network.nodes()).map(|to| oracle::distances(&network, NodeId::new(to))).collect();
    for protocol in Protocol::ALL {
        let shares = Shares::new(&network, protocol).unwrap();
        for (src, dst) in pairs(&network).filter(|(src, dst)| src != dst) {
            let hops: f64 = shares.of(src, dst, &mut scratch).iter().map(|pair| pair.1).sum();
            let direct = f64::from(distances[dst.index()][src.index()]);
            let over = |way: &Vec<u32>| f64::from(way[src.index()] + way[dst.index()]);
            match protocol {
                Protocol::Valiant => {
                    let mean = distances.iter().map(over).sum::<f64>() / distances.len() as f64;
                    assert_near(hops, mean, "Valiant");
                }
                Protocol::Weighted | Protocol::WeightedThreshold => assert!(hops > direct - 1e-9),
                _ => assert_near(hops, direct, protocol.name()),
            }
        }
    }
}

/// What is translated from one table is what the graph alone, without its symmetry, gives.
#[test]
fn m25_one_table_of_a_torus_serves_all_sources() {
    for dimensions in [&[4, 4, 4][..], &[5, 2, 6], &[8, 9], &[3, 3, 2, 2]] {
        let network = torus(dimensions);
        let graph = Network::of_graph(network.topology().clone());
        let mut scratch = (Scratch::new(&network), Scratch::new(&network));
        for protocol in [Protocol::Rps, Protocol::RpsByHop, Protocol::Valiant] {
            let quick = Shares::new(&network, protocol).unwrap();
            let slow = Shares::new(&graph, protocol).unwrap();
            assert!(quick.table_bytes() > 0 && slow.table_bytes() == 0);
            for (src, dst) in pairs(&network).step_by(7) {
                let ours = quick.of(src, dst, &mut scratch.0);
                let expected = slow.of(src, dst, &mut scratch.1);
                assert_eq!(ours.len(), expected.len(), "{dimensions:?}, {src} to {dst}");
                for (ours, expected) in ours.iter().zip(expected) {
                    assert_eq!(ours.0, expected.0);
                    assert_near(ours.1, expected.1, protocol.name());
                }
            }
        }
    }
}

#[test]
fn m28_the_legs_of_valiants_routing_add_up() {
    for (name, network) in small_networks() {
        let shares = Shares::new(&network, Protocol::Valiant).unwrap();
        let legs = shares.legs().unwrap();
        let mut scratch = Scratch::new(&network);
        for (src, dst) in pairs(&network).filter(|(src, dst)| src != dst) {
            if network.distance(src, dst).is_none() {
                continue;
            }
            let mut sum = vec![0.0; network.topology().ports().len()];
            for &(port, share) in legs.outbound(src, &mut scratch) {
                sum[port.index()] += share;
            }
            for &(port, share) in legs.inbound(dst, &mut scratch) {
                sum[port.index()] += share;
            }
            for &(port, share) in shares.of(src, dst, &mut scratch) {
                assert_near(std::mem::take(&mut sum[port.index()]), share, name);
            }
            assert!(sum.iter().all(|&rest| rest == 0.0), "{name}");
        }
    }
    assert!(Shares::new(&torus(&[3, 3]), Protocol::Rps).unwrap().legs().is_none());
}

/// Fig. 3: a flow from 0 to 3 of a 2x2 mesh, half over 1 and half over 2.
#[test]
fn i07_x04_spraying_over_a_square_gives_the_shares_of_fig_3() {
    let network = mesh(&[2, 2]);
    let shares = Shares::new(&network, Protocol::Rps).unwrap();
    let mut scratch = Scratch::new(&network);
    let ours = shares.of(NodeId::new(0), NodeId::new(3), &mut scratch).to_vec();
    let mut expected = [(0, 1), (0, 2), (1, 3), (2, 3)].map(|(a, b)| (port(&network, a, b), 0.5));
    expected.sort_by_key(|pair| pair.0);
    assert_eq!(ours, expected);
}

/// §3.3.1: the same flow, one part of it over 1 and two parts over 2.
#[test]
fn i07_x04_two_paths_one_to_two_have_a_third_and_two_thirds() {
    let network = mesh(&[2, 2]);
    let link = |from, to| port(&network, from, to);
    let (over_1, over_2) = (vec![link(0, 1), link(1, 3)], vec![link(0, 2), link(2, 3)]);
    let shares = of_paths(&[(1.0, over_1.clone()), (2.0, over_2.clone())]);
    assert_eq!(shares.len(), 4);
    for (port, share) in shares {
        let expected = if over_1.contains(&port) { 1.0 / 3.0 } else { 2.0 / 3.0 };
        assert_near(share, expected, "share");
    }
}

/// §4.2 counts four bytes for each link and destination: 5.99 binary megabytes for one source. The
/// table that serves all 512 sources is smaller.
#[test]
fn x22_d04_a_table_of_all_links_takes_six_megabytes_and_ours_less() {
    let network = torus(&[8, 8, 8]);
    let naive = (network.nodes() as usize - 1) * network.topology().ports().len() * 4;
    assert_eq!(naive, 6_279_168);
    assert!(naive < 6 << 20);
    for protocol in [Protocol::Rps, Protocol::RpsByHop, Protocol::DimensionOrder, Protocol::Valiant]
    {
        let ours = Shares::new(&network, protocol).unwrap().table_bytes();
        assert!(0 < ours && ours < naive, "{}: {ours}", protocol.name());
    }
}

/// Where the table would be too large the shares are computed for each pair: the same numbers.
#[test]
fn m25_shares_that_are_not_kept_are_the_same() {
    let network = torus(&[16, 16, 16]);
    let shares = Shares::new(&network, Protocol::Weighted).unwrap();
    assert_eq!(shares.table_bytes(), 0);
    let mut scratch = Scratch::new(&network);
    let (src, dst) = (NodeId::new(1234), NodeId::new(77));
    let ours = shares.of(src, dst, &mut scratch).to_vec();
    let hops: f64 = ours.iter().map(|pair| pair.1).sum();
    // On a ring of k over d links: (1 - d / k) d + (d / k)(k - d) = 2 d (k - d) / k.
    let grid = network.grid().unwrap();
    let places = grid.place(Vertex::new(1234)).iter().zip(grid.place(Vertex::new(77)));
    let mean = places.map(|(&a, &b)| f64::from(a.abs_diff(b))).map(|d| 2.0 * d * (16.0 - d) / 16.0);
    assert!((hops - mean.sum::<f64>()).abs() < 1e-9, "{hops}");
    assert!(Shares::new(&network, Protocol::Rps).unwrap().table_bytes() > 0);
}
