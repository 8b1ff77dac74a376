//! Next hops against the topology's own distances; the choices against even use.

use std::collections::BTreeMap;

use kernel::{Rate, Span};
use proptest::prelude::*;
use rack::NodeId;
use rack::topology::{Builder, LeafSpine, Link, PortId, ThreeTier, Tier, Topology, Torus, Vertex};

use super::*;
use crate::config::Routing;
use crate::packet::Packet;

fn three_tier() -> Topology {
    ThreeTier { hosts: 128, radix: 8, ..Default::default() }.build().unwrap()
}

fn packet(src: u32, dst: u32) -> Packet {
    Packet { src: NodeId::new(src), dst: NodeId::new(dst), wire: 64, ..Packet::default() }
}

/// The ports that a packet takes to its destination.
fn walk(
    topology: &Topology,
    tables: &Tables,
    chooser: &mut Chooser,
    packet: &Packet,
) -> Vec<PortId> {
    let mut at = Vertex::new(packet.src.get());
    let mut taken = Vec::new();
    while at.get() != packet.dst.get() {
        let port = chooser.choose(tables, at, packet).unwrap();
        assert_eq!(topology.port(port).vertex, at);
        taken.push(port);
        at = topology.port(port).peer;
        assert!(taken.len() <= 64, "{packet:?} goes round");
    }
    taken
}

/// Pearson's statistic of counts that should be equal.
fn chi_square(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum()
}

/// Uses of each port by flows from every host to every other, several each.
fn uses(routing: Routing, flows: u16) -> (Topology, BTreeMap<PortId, u64>) {
    let topology = three_tier();
    let tables = Tables::new(&topology, &Live::all(&topology));
    let mut chooser = Chooser::new(routing, topology.hosts(), topology.vertices(), 1);
    let mut counts = BTreeMap::new();
    for src in 0..128 {
        for dst in (0..128).filter(|&dst| dst != src) {
            for entropy in 0..flows {
                let sent = Packet { entropy, path: entropy, ..packet(src, dst) };
                for port in walk(&topology, &tables, &mut chooser, &sent) {
                    *counts.entry(port).or_insert(0) += 1;
                }
            }
        }
    }
    (topology, counts)
}

/// The counts of the ports from one tier to another, all together.
fn between(topology: &Topology, counts: &BTreeMap<PortId, u64>, from: Tier, to: Tier) -> Vec<u64> {
    let ports = (0..topology.ports().len() as u32).map(PortId::new);
    let wanted = ports.filter(|&port| {
        let end = topology.port(port);
        topology.tier(end.vertex) == from && topology.tier(end.peer) == to
    });
    wanted.map(|port| counts.get(&port).copied().unwrap_or(0)).collect()
}

#[test]
fn ecmp_spreads_flows_evenly_over_both_tiers() {
    let (topology, counts) = uses(Routing::Ecmp, 8);
    for (from, to) in
        [(Tier::Leaf, Tier::Spine), (Tier::Spine, Tier::Core), (Tier::Core, Tier::Spine)]
    {
        let counts = between(&topology, &counts, from, to);
        // 128 ports: 127 degrees of freedom, of which 100 or so are free given each switch's total.
        // 99.99 % of even choices stay below 190; a polarised second tier is above 10,000.
        let found = chi_square(&counts);
        assert_eq!(counts.len(), 128);
        assert!(found < 190.0, "{from:?} to {to:?}: {found}");
        assert!(found > 40.0, "{from:?} to {to:?}: {found}, too even for chance");
    }
}

#[test]
fn permutation_spraying_differs_by_no_more_than_a_round() {
    let (topology, counts) = uses(Routing::PermutationSpray, 4);
    let counts = between(&topology, &counts, Tier::Leaf, Tier::Spine);
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    // Two groups of destinations (in the pod and beyond) at each leaf, each even to one.
    assert!(most - least <= 2, "{least} to {most}");
}

#[test]
fn random_spraying_is_even_as_chance_is() {
    let (topology, counts) = uses(Routing::RandomSpray, 4);
    let found = chi_square(&between(&topology, &counts, Tier::Leaf, Tier::Spine));
    assert!((40.0..190.0).contains(&found), "{found}");
}

#[test]
fn path_numbers_name_every_path_once() {
    let leaf_spine = LeafSpine { hosts: 512, ..Default::default() }.build().unwrap();
    for (topology, far, expected) in [(three_tier(), 127, 16), (leaf_spine, 511, 128)] {
        let tables = Tables::new(&topology, &Live::all(&topology));
        let mut chooser =
            Chooser::new(Routing::SourcePath, topology.hosts(), topology.vertices(), 1);
        let paths = tables.paths(Vertex::new(0), far);
        assert_eq!(u64::from(paths), topology.path_count(Vertex::new(0), Vertex::new(far)));
        assert_eq!(paths, expected);
        let all: std::collections::BTreeSet<_> = (0..paths as u16)
            .map(|path| walk(&topology, &tables, &mut chooser, &Packet { path, ..packet(0, far) }))
            .collect();
        assert_eq!(all.len(), paths as usize);
    }
}

#[test]
fn a_flow_keeps_its_path_under_ecmp_and_other_ports_choose_anew() {
    let topology = Torus { dimensions: vec![4, 4, 4], ..Default::default() }.build().unwrap();
    let tables = Tables::new(&topology, &Live::all(&topology));
    let mut chooser = Chooser::new(Routing::Ecmp, topology.hosts(), topology.vertices(), 1);
    let mut walks = std::collections::BTreeSet::new();
    for entropy in 0..64 {
        let sent = Packet { entropy, ..packet(0, 63) };
        let way = walk(&topology, &tables, &mut chooser, &sent);
        let longer = Packet { seq: 7, wire: 1500, ..sent };
        assert_eq!(way, walk(&topology, &tables, &mut chooser, &longer));
        walks.insert(way);
    }
    assert!(walks.len() > 3, "{} paths for 64 flows", walks.len());
}

proptest! {
    /// On any graph with any part of it dead: the next hops are the live ports one step nearer, by
    /// distances found on a topology built of the live part alone.
    #[test]
    fn next_hops_are_the_live_neighbours_one_step_nearer(
        hosts in 2u32..6,
        switches in 1u32..6,
        links in prop::collection::vec((0u32..12, 0u32..12, any::<bool>()), 1..30),
    ) {
        let total = hosts + switches;
        let wire = Link { rate: Rate::from_gbps(1), delay: Span::ZERO };
        let links: Vec<_> = links.into_iter().map(|(a, b, up)| (a % total, b % total, up)).collect();
        let build = |only_live: bool| {
            let mut build = Builder::new(hosts);
            build.switches(Tier::Other, switches);
            for &(a, b, up) in links.iter().filter(|&&(a, b, up)| a != b && (up || !only_live)) {
                let _ = up;
                build.link(Vertex::new(a), Vertex::new(b), wire);
            }
            build.build()
        };
        let (Ok(whole), Ok(living)) = (build(false), build(true)) else { return Ok(()) };
        let mut live = Live::all(&whole);
        let used = links.iter().filter(|&&(a, b, _)| a != b);
        for (port, &(_, _, up)) in order(&whole, &links).into_iter().zip(used) {
            live.ports[port.index()] = up;
            live.ports[whole.port(port).reverse.index()] = up;
        }
        let tables = Tables::new(&whole, &live);
        let mut links = 0;
        for host in 0..hosts {
            let distances = living.distances_to(Vertex::new(host));
            let reached = distances[..hosts as usize].iter().filter(|&&links| links != u32::MAX);
            links += reached.copied().map(u128::from).sum::<u128>();
            for vertex in (0..total).filter(|&v| v != host).map(Vertex::new) {
                let group = tables.group(vertex, host).1;
                let found: Vec<_> = (0..group.len).map(|i| tables.member(group, i)).collect();
                let expected: Vec<_> = whole.ports_of(vertex).filter(|&port| {
                    let peer = whole.port(port).peer;
                    live.ports[port.index()] && distances[peer.index()] + 1 == distances[vertex.index()]
                }).collect();
                prop_assert_eq!(found, expected);
                let paths = living.path_count(vertex, Vertex::new(host));
                let firsts = u64::from(tables.paths(vertex, host));
                prop_assert!(group.len > 1 || firsts == paths);
            }
        }
        prop_assert_eq!(tables.links(), links);
    }
}

/// The end of each link at the vertex named first, in the order in which links were added.
fn order(topology: &Topology, links: &[(u32, u32, bool)]) -> Vec<PortId> {
    let mut next: BTreeMap<u32, u32> = BTreeMap::new();
    let mut place = |vertex: u32| {
        let at = next.entry(vertex).or_insert(0);
        *at += 1;
        topology.ports_of(Vertex::new(vertex)).nth(*at as usize - 1).unwrap()
    };
    links
        .iter()
        .filter(|&&(a, b, _)| a != b)
        .map(|&(a, b, _)| {
            let (there, _) = (place(a), place(b));
            there
        })
        .collect()
}

#[test]
fn a_torus_of_512_hosts_has_tables() {
    let topology = Torus::default().build().unwrap();
    let tables = Tables::new(&topology, &Live::all(&topology));
    // The farthest host is four steps away in each dimension, either way round: 12! / (4!)^3 orders
    // of steps, and two ways in each of three dimensions.
    let farthest = 4 + 8 * (4 + 8 * 4);
    assert_eq!(tables.paths(Vertex::new(0), farthest), 34_650 * 8);
}

#[test]
fn packets_that_carry_routes_get_no_farther_than_a_route() {
    let row = rack::topology::Mesh { dimensions: vec![50], ..rack::topology::Mesh::default() };
    let topology = row.build().unwrap();
    let tables = Tables::for_routing(&topology, &Live::all(&topology), Routing::SourceRoute);
    for (host, paths) in [(1, 1), (42, 1), (43, 0), (49, 0)] {
        assert_eq!(tables.paths(Vertex::new(0), host), paths);
        assert_eq!(tables.paths(Vertex::new(host), 0), paths);
    }
}

#[test]
fn packets_that_carry_routes_need_no_count_of_paths() {
    let torus = Torus { dimensions: vec![6, 8], ..Torus::default() };
    let topology = torus.build().unwrap();
    let live = Live::all(&topology);
    let counted = Tables::new(&topology, &live);
    let plain = Tables::for_routing(&topology, &live, Routing::SourceRoute);
    for vertex in (0..48).map(Vertex::new) {
        for host in 0..48 {
            let [all, few] = [&counted, &plain].map(|tables| {
                let group = tables.group(vertex, host).1;
                (0..group.len).map(|index| tables.member(group, index)).collect::<Vec<_>>()
            });
            assert_eq!(all, few);
            assert_eq!(plain.paths(vertex, host), few.len() as u32);
        }
        assert!(plain.groups(vertex) <= counted.groups(vertex));
    }
    assert!(plain.groups(Vertex::new(0)) < counted.groups(Vertex::new(0)));
}
