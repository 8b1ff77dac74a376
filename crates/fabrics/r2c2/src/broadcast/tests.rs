//! Trees against what they must be, on tori, meshes, a Clos and random graphs, whole and broken.

use std::collections::VecDeque;

use kernel::{Rate, Span};
use proptest::prelude::*;
use rack::topology::{Builder, LeafSpine, Link, Mesh, Shape, Torus};

use super::*;
use crate::routing::Network;
use kernel::Stream;
use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};

/// Bytes of a broadcast packet (§4.2).
const PACKET: u64 = 16;

/// Copies of a broadcast, as the table has them passed on: for each vertex at how many hops it came,
/// in order of arrival, and the ports by which copies went.
fn spread(network: &Network, fib: &Fib, source: NodeId, tree: u8) -> (Vec<Vec<u32>>, Vec<PortId>) {
    let topology = network.topology();
    let mut heard = vec![Vec::new(); topology.vertices() as usize];
    let mut sent = Vec::new();
    let mut under_way = VecDeque::from([(topology.host(source), 0)]);
    while let Some((at, hops)) = under_way.pop_front() {
        heard[at.index()].push(hops);
        assert!(sent.len() <= topology.ports().len(), "a broadcast that never ends");
        for port in fib.children(source, tree, at) {
            assert_eq!(topology.port(port).vertex, at);
            assert!(network.lives(port), "a copy over a dead link");
            sent.push(port);
            under_way.push_back((topology.port(port).peer, hops + 1));
        }
    }
    (heard, sent)
}

/// Distances in what lives, by relaxing all links until nothing changes.
fn distances(network: &Network, source: NodeId) -> Vec<Option<u32>> {
    let topology = network.topology();
    let mut found = vec![None; topology.vertices() as usize];
    found[source.index()] = Some(0);
    loop {
        let before = found.clone();
        for (port, end) in (0..).map(PortId::new).zip(topology.ports()) {
            if let Some(hops) = before[end.vertex.index()].filter(|_| network.lives(port)) {
                let there = &mut found[end.peer.index()];
                *there = Some(there.unwrap_or(u32::MAX).min(hops + 1));
            }
        }
        if found == before {
            return found;
        }
    }
}

/// I09, I10: each host that can be reached hears each broadcast once, after as many hops as it is
/// away; on a network without switches that takes a transmission for each.
#[track_caller]
fn check(network: &Network, fib: &Fib) {
    let topology = network.topology();
    for source in (0..network.nodes()).map(NodeId::new) {
        let expected = distances(network, source);
        for tree in 0..fib.trees() {
            let (heard, sent) = spread(network, fib, source, tree);
            for host in 0..topology.hosts() as usize {
                let once: Vec<u32> = expected[host].into_iter().collect();
                assert_eq!(heard[host], once, "host {host}, tree {tree} of {source}");
            }
            let reached = heard.iter().filter(|times| !times.is_empty()).count();
            assert_eq!(sent.len(), reached - 1, "tree {tree} of {source}");
            if topology.vertices() == topology.hosts() {
                assert_eq!(reached, expected.iter().flatten().count());
            }
        }
    }
}

fn torus(dimensions: &[u32]) -> Network {
    let torus = Torus { dimensions: dimensions.to_vec(), ..Torus::default() };
    Network::new(&Shape::Torus(torus)).unwrap()
}

fn mesh(dimensions: &[u32]) -> Network {
    let mesh = Mesh { dimensions: dimensions.to_vec(), ..Mesh::default() };
    Network::new(&Shape::Mesh(mesh)).unwrap()
}

/// A connected graph: a random tree, and more links between random vertices, some of them parallel.
fn graph(hosts: u32, switches: u32, more: u32, draw: &mut Stream) -> Topology {
    let mut build = Builder::new(hosts);
    build.switches(rack::topology::Tier::Other, switches);
    let link = Link { rate: Rate::from_gbps(10), delay: Span::from_ns(100) };
    let count = hosts + switches;
    for vertex in 1..count {
        let to = draw.below(vertex.into()) as u32;
        build.link(Vertex::new(vertex), Vertex::new(to), link);
    }
    for _ in 0..more {
        let a = draw.below(count.into()) as u32;
        let b = (a + 1 + draw.below(u64::from(count) - 1) as u32) % count;
        build.link(Vertex::new(a), Vertex::new(b), link);
    }
    build.build().unwrap()
}

#[test]
fn i09_i10_each_node_hears_each_broadcast_once_and_as_early_as_can_be() {
    for network in
        [torus(&[4, 4]), torus(&[3, 2, 5]), torus(&[4, 4, 4]), mesh(&[5, 3]), mesh(&[2, 2])]
    {
        check(&network, &Fib::new(&network, 1, TREES_DEFAULT));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn i09_m14_so_it_is_on_any_graph_and_after_any_failures(
        seed: u64, hosts in 2u32..24, switches in 0u32..8, more in 0u32..40, failures in 0u32..12,
    ) {
        let mut draw = Stream::new(seed, "test/graph", 0);
        let network = Network::of_graph(graph(hosts, switches, more, &mut draw));
        check(&network, &Fib::new(&network, seed, 3));
        // Links and nodes die one after the other.
        let (mut links, mut vertices) = (Vec::new(), Vec::new());
        for _ in 0..failures {
            if draw.bernoulli(0.7) {
                let ports = network.topology().ports().len() as u64;
                links.push(PortId::new(draw.below(ports) as u32));
            } else {
                vertices.push(Vertex::new(draw.below(u64::from(hosts + switches)) as u32));
            }
            let broken = network.without(&links, &vertices);
            check(&broken, &Fib::new(&broken, seed, 3));
        }
    }
}

#[test]
fn m09_the_trees_of_a_source_differ() {
    let network = torus(&[4, 4, 4]);
    let fib = Fib::new(&network, 1, TREES_DEFAULT);
    for source in (0..64).map(NodeId::new) {
        let mut trees: Vec<_> =
            (0..TREES_DEFAULT).map(|tree| spread(&network, &fib, source, tree).1).collect();
        trees.iter_mut().for_each(|ports| ports.sort_unstable());
        trees.sort();
        trees.dedup();
        assert_eq!(trees.len(), usize::from(TREES_DEFAULT), "{source}");
    }
}

#[test]
fn m11_a_source_takes_its_trees_in_turn() {
    let mut turns = Turns::new(2, 3);
    let taken: Vec<u8> = (0..5).map(|_| turns.take(NodeId::new(0))).collect();
    assert_eq!((taken, turns.take(NodeId::new(1))), (vec![0, 1, 2, 0, 1], 0));
}

#[test]
fn trees_are_the_same_whenever_they_are_grown() {
    let network = torus(&[4, 3]);
    let all = Fib::new(&network, 1, 2);
    let mut late = Fib::unprepared(&network, 1, 2);
    for source in [7, 3, 7, 11].map(NodeId::new) {
        late.prepare(source);
        for tree in 0..2 {
            assert_eq!(spread(&network, &late, source, tree), spread(&network, &all, source, tree));
        }
    }
    assert_eq!(spread(&network, &late, NodeId::new(0), 0).1, []);
}

#[test]
fn m13_a_notice_climbs_by_the_way_that_a_broadcast_came() {
    let network = torus(&[4, 4]);
    let fib = Fib::new(&network, 1, TREES_DEFAULT);
    for source in (0..16).map(NodeId::new) {
        for tree in 0..TREES_DEFAULT {
            let root = network.topology().host(source);
            assert_eq!(fib.parent(source, tree, root), None);
            for at in (0..16).map(Vertex::new).filter(|&at| at != root) {
                let up = network.topology().port(fib.parent(source, tree, at).unwrap());
                let below: Vec<PortId> = fib.children(source, tree, up.peer).collect();
                assert!(below.contains(&up.reverse), "{at:?} in tree {tree} of {source}");
            }
        }
    }
}

#[test]
fn x03_a_broadcast_takes_8176_bytes_and_those_of_all_pairs_681_kb_a_link() {
    let network = torus(&[8, 8, 8]);
    let fib = Fib::new(&network, 1, TREES_DEFAULT);
    assert_eq!(fib.bytes(), 1 << 20, "a byte for each source, tree and node");
    // A flow from each node to each, itself among them: 512 broadcasts of each source, by its trees
    // in turn.
    let mut packets = vec![0u64; network.topology().ports().len()];
    for source in (0..512).map(NodeId::new) {
        for tree in 0..TREES_DEFAULT {
            let (_, sent) = spread(&network, &fib, source, tree);
            assert_eq!(sent.len() as u64 * PACKET, 8_176);
            for port in sent {
                packets[port.index()] += 512 / u64::from(TREES_DEFAULT);
            }
        }
    }
    let bytes = packets.iter().sum::<u64>() * PACKET;
    let mean = bytes as f64 / packets.len() as f64;
    assert!((mean / 1024.0 - 681.0).abs() < 0.5, "{mean} B");
    // 2,048 trees, each over a given link with a chance of 511/3072: within six deviations of that.
    let chance: f64 = 511.0 / 3072.0;
    let deviation = ((1.0 - chance) / (2048.0 * chance)).sqrt();
    for (link, &count) in packets.iter().enumerate() {
        let relative = (count * PACKET) as f64 / mean - 1.0;
        assert!(relative.abs() < 6.0 * deviation, "link {link}: {relative}");
    }
}

#[test]
fn x20_a_broadcast_in_a_clos_takes_8704_bytes() {
    // §6: 512 nodes, switches of 32 ports: 32 leaves and 16 spines.
    let clos = LeafSpine { hosts: 512, radix: 32, ..LeafSpine::default() };
    let network = Network::new(&Shape::LeafSpine(clos)).unwrap();
    assert_eq!(network.topology().vertices(), 512 + 32 + 16);
    let fib = Fib::new(&network, 1, 2);
    for source in [0, 17, 511].map(NodeId::new) {
        for tree in 0..2 {
            let (heard, sent) = spread(&network, &fib, source, tree);
            assert_eq!(sent.len() as u64 * PACKET, 8_704);
            assert!(heard[..512].iter().all(|times| times.len() == 1));
        }
    }
}
