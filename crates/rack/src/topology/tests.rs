//! Topologies against their closed forms, and against an independent maximum flow.

use petgraph::algo::maximum_flow::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use proptest::prelude::*;

use super::*;
use crate::Component;

fn count(topology: &Topology, tier: Tier) -> usize {
    topology.tier_vertices(tier).count()
}

/// The rate from the first half of the hosts to the second if nothing but links limits it, in units
/// of one link: a maximum flow, by another's code.
fn bisection(topology: &Topology) -> u64 {
    let mut graph = DiGraph::<(), u64>::new();
    let nodes: Vec<_> = (0..topology.vertices() + 2).map(|_| graph.add_node(())).collect();
    let (source, sink) = (nodes[nodes.len() - 2], nodes[nodes.len() - 1]);
    let unit = topology.ports()[0].link.rate;
    for port in topology.ports() {
        let ends = (nodes[port.vertex.index()], nodes[port.peer.index()]);
        graph.add_edge(ends.0, ends.1, port.link.rate / unit);
    }
    for host in 0..topology.hosts() {
        let node: NodeIndex = nodes[host as usize];
        let ends = if host < topology.hosts() / 2 { (source, node) } else { (node, sink) };
        graph.add_edge(ends.0, ends.1, u64::from(u32::MAX));
    }
    dinics(&graph, source, sink).0
}

/// Ports point at each other, links have two ends, each vertex's ports are its own.
#[track_caller]
fn check_wiring(topology: &Topology) {
    assert_eq!(topology.links().count() * 2, topology.ports().len());
    for vertex in (0..topology.vertices()).map(Vertex::new) {
        assert_eq!(topology.ports_of(vertex).len(), topology.degree(vertex) as usize);
        for port in topology.ports_of(vertex) {
            let end = topology.port(port);
            let other = topology.port(end.reverse);
            assert_eq!((end.vertex, end.peer), (vertex, other.vertex));
            assert_eq!((other.peer, other.reverse, other.link), (vertex, port, end.link));
            assert_ne!(end.peer, vertex);
        }
    }
}

#[test]
fn one_switch_is_two_links_across() {
    let topology = SingleSwitch { hosts: 7, ..Default::default() }.build().unwrap();
    check_wiring(&topology);
    assert_eq!((topology.hosts(), topology.vertices(), topology.diameter()), (7, 8, 2));
    assert_eq!(topology.path_count(Vertex::new(0), Vertex::new(6)), 1);
}

/// Hosts, radix, oversubscription; leaves, spines, shortest paths between leaves, bisection in links.
#[track_caller]
fn check_leaf_spine(shape: (u32, u32, u32), expected: (usize, usize, u64, u64)) {
    let (hosts, radix, oversubscription) = shape;
    let topology =
        LeafSpine { hosts, radix, oversubscription, ..Default::default() }.build().unwrap();
    check_wiring(&topology);
    let found = (
        count(&topology, Tier::Leaf),
        count(&topology, Tier::Spine),
        topology.path_count(Vertex::new(0), Vertex::new(hosts - 1)),
        bisection(&topology),
    );
    assert_eq!(found, expected, "{shape:?}");
    assert_eq!(topology.diameter(), 4);
    for vertex in (hosts..topology.vertices()).map(Vertex::new) {
        assert!(topology.degree(vertex) <= radix, "{shape:?}: {vertex:?}");
    }
}

#[test]
fn leaf_and_spine_networks_have_their_closed_forms() {
    check_leaf_spine((512, 32, 1), (32, 16, 16, 256));
    // 64 ports: 16 leaves of 32 uplinks, 8 spines, 4 parallel links to each: a choice
    // of 32 up and of 4 down.
    check_leaf_spine((512, 64, 1), (16, 8, 128, 256));
    check_leaf_spine((8, 4, 1), (4, 2, 2, 4));
    // Three to one: 12 down, 4 up; half of 4 leaves have 8 uplinks.
    check_leaf_spine((48, 16, 3), (4, 1, 16, 8));
    check_leaf_spine((96, 16, 3), (8, 2, 8, 16));
}

/// Hosts, radix, oversubscription; leaves, spines, cores, paths between pods, bisection.
#[track_caller]
fn check_three_tier(shape: (u32, u32, u32), expected: (usize, usize, usize, u64, u64)) {
    let (hosts, radix, oversubscription) = shape;
    let topology =
        ThreeTier { hosts, radix, oversubscription, ..Default::default() }.build().unwrap();
    check_wiring(&topology);
    let found = (
        count(&topology, Tier::Leaf),
        count(&topology, Tier::Spine),
        count(&topology, Tier::Core),
        topology.path_count(Vertex::new(0), Vertex::new(hosts - 1)),
        bisection(&topology),
    );
    assert_eq!(found, expected, "{shape:?}");
    assert_eq!(topology.diameter(), 6);
    for vertex in (hosts..topology.vertices()).map(Vertex::new) {
        assert!(topology.degree(vertex) <= radix, "{shape:?}: {vertex:?}");
    }
}

#[test]
fn three_tier_networks_have_their_closed_forms() {
    // The k-ary fat tree: k³/4 hosts, k²/2 leaves and spines, k²/4 cores and paths.
    for k in [4usize, 6, 8, 12] {
        let n = k as u64;
        check_three_tier(
            (k.pow(3) as u32 / 4, k as u32, 1),
            (k * k / 2, k * k / 2, k * k / 4, n * n / 4, n.pow(3) / 8),
        );
    }
    // Half the pods need half the cores, with two links to each: a choice up and one down.
    check_three_tier((64, 8, 1), (16, 16, 8, 32, 32));
    // Three to one: leaves of 6 down and 2 up, pods of 4 leaves and 2 spines.
    check_three_tier((192, 8, 3), (32, 16, 8, 8, 32));
}

/// Dimensions and diameter; the bisection is counted for even lengths of the last dimension.
#[track_caller]
fn check_grid(topology: &Topology, diameter: u32, cut: u64, links: usize) {
    check_wiring(topology);
    assert_eq!(topology.vertices(), topology.hosts());
    assert_eq!(topology.diameter(), diameter);
    assert_eq!(topology.links().count(), links);
    assert_eq!(bisection(topology), cut);
}

#[test]
fn grids_have_their_closed_forms() {
    let torus = |dimensions: &[u32]| {
        Torus { dimensions: dimensions.to_vec(), ..Default::default() }.build().unwrap()
    };
    let mesh = |dimensions: &[u32]| {
        Mesh { dimensions: dimensions.to_vec(), ..Default::default() }.build().unwrap()
    };
    // A torus of side k: diameter d·⌊k/2⌋, cut 2·k^(d-1), d·k^d links; a mesh: d·(k-1), k^(d-1).
    check_grid(&torus(&[8, 8, 8]), 12, 128, 1536);
    check_grid(&torus(&[4, 6]), 5, 8, 48);
    check_grid(&mesh(&[4, 4]), 6, 4, 24);
    check_grid(&mesh(&[4, 4, 4]), 9, 16, 144);
    check_grid(&torus(&[2, 2, 2]), 3, 4, 12);
    // From a corner of a mesh to the other: as many paths as orders of the steps.
    assert_eq!(mesh(&[4, 4]).path_count(Vertex::new(0), Vertex::new(15)), 20);
    assert_eq!(mesh(&[3, 3, 3]).path_count(Vertex::new(0), Vertex::new(26)), 90);
}

#[track_caller]
fn check_refused(result: Result<Topology, Vec<Problem>>, key: &str, part: &str) {
    let problems = result.unwrap_err();
    let found = problems.iter().any(|p| p.key == key && p.message.contains(part));
    assert!(found, "{problems:?} lacks {key:?}: {part:?}");
}

#[test]
fn what_cannot_be_built_is_refused_with_its_key() {
    let leaf_spine = |hosts, radix, oversubscription| {
        LeafSpine { hosts, radix, oversubscription, ..Default::default() }.build()
    };
    check_refused(leaf_spine(513, 32, 1), "hosts", "at most 512");
    check_refused(leaf_spine(512, 31, 1), "radix", "multiple of 2");
    check_refused(leaf_spine(512, 32, 0), "oversubscription", "expected 1");
    check_refused(leaf_spine(512, 4, u32::MAX), "radix", "does not divide");
    check_refused(leaf_spine(1, 32, 1), "", "needs 2 or more");
    let three = ThreeTier { hosts: 433, radix: 12, ..Default::default() };
    check_refused(three.build(), "hosts", "at most 432");
    let odd = ThreeTier { radix: 9, oversubscription: 2, ..Default::default() };
    check_refused(odd.build(), "radix", "even");
    let zero = SingleSwitch { rate: Rate::default(), ..Default::default() };
    check_refused(zero.build(), "", "rate of zero");
    for dimensions in [vec![], vec![1, 4], vec![70_000, 2], vec![u32::MAX; 4]] {
        check_refused(Torus { dimensions, ..Default::default() }.build(), "dimensions", "expected");
    }
}

fn graph(hosts: u32, edges: &str) -> Result<Topology, Vec<Problem>> {
    Graph { hosts, edges: edges.into(), ..Graph::default() }.build()
}

#[test]
fn a_list_of_links_becomes_a_graph() {
    let text = "a, b, rate, delay\n# a pair with a switch of its own\n0,2,10 Gbps,5 ns\n\n1,2,40 Gbps,7 ns\n";
    let topology = graph(2, text).unwrap();
    check_wiring(&topology);
    assert_eq!((topology.hosts(), topology.vertices()), (2, 3));
    assert_eq!(topology.tier(Vertex::new(2)), Tier::Other);
    let link = topology.port(topology.ports_of(Vertex::new(1)).next().unwrap()).link;
    assert_eq!(link, Link { rate: Rate::from_gbps(40), delay: Span::from_ns(7) });
}

#[test]
fn links_that_state_no_rate_or_delay_have_that_of_the_graph() {
    let common = Graph {
        hosts: 2,
        edges: String::new(),
        rate: Some(Rate::from_gbps(25)),
        delay: Some(Span::from_ns(9)),
    };
    let links = |edges: &str| -> Vec<Link> {
        let topology = Graph { edges: edges.into(), ..common.clone() }.build().unwrap();
        let first = |host: u32| topology.ports_of(Vertex::new(host)).next().unwrap();
        (0..2).map(|host| topology.port(first(host)).link).collect()
    };
    let all = common.rate.zip(common.delay).map(|(rate, delay)| Link { rate, delay }).unwrap();
    assert_eq!(links("a,b\n0,2\n1,2\n"), [all; 2]);
    let fast = Link { rate: Rate::from_gbps(100), ..all };
    assert_eq!(links("a,b,rate\n0,2,100 Gbps\n1,2,\n"), [fast, all]);
    let far = Link { delay: Span::from_ns(1_000), ..all };
    assert_eq!(links("a,b,rate,delay\n0,2,,1 us\n1,2,,\n"), [far, all]);
    let expected = "line 2 has no delay; write it there, or give delay for all links without";
    check_refused(graph(2, "a,b,rate\n0,2,1 Gbps\n"), "edges", expected);
    check_refused(graph(2, "a,b\n0,2\n"), "edges", "line 2 has no rate");
    check_refused(graph(2, "a\n0\n"), "edges", "line 1 is \"a\"; expected \"a,b,rate,delay\"");
}

#[test]
fn a_bad_list_names_line_and_column() {
    let head = "a,b,rate,delay\n";
    check_refused(graph(2, "x,y\n"), "edges", "line 1 is \"x,y\"");
    check_refused(graph(2, &format!("{head}0,q,1 Gbps,1 ns\n")), "edges", "line 2, column b");
    check_refused(graph(2, &format!("{head}0,1,1,1 ns\n")), "edges", "line 2, column rate");
    check_refused(graph(2, &format!("{head}0,1,1 Gbps,1 m\n")), "edges", "line 2, column delay");
    check_refused(graph(2, &format!("{head}\n0,1,1 Gbps\n")), "edges", "line 3 has 3 fields");
    check_refused(graph(2, &format!("{head}0,0,1 Gbps,1 ns\n")), "edges", "leads back");
    check_refused(graph(2, &format!("{head}0,2,1 Gbps,1 ns\n")), "edges", "no path joins host 1");
    check_refused(graph(2, &format!("{head}0,9999999,1 Gbps,1 ns\n")), "edges", "expected less");
    check_refused(graph(2, head), "edges", "no path joins");
    let far = format!("{head}0,1,1 Gbps,1 ns\n2,3,1 Gbps,1 ns\n");
    check_refused(graph(2, &far), "edges", "no path joins switch 2");
}

#[test]
fn components_are_found_or_missed_with_a_count() {
    let topology = LeafSpine { hosts: 8, radix: 4, ..Default::default() }.build().unwrap();
    let vertex = |index| Ok(Parts::Vertex(Vertex::new(index)));
    assert_eq!(topology.parts(Component::Leaf(3)), vertex(11));
    assert_eq!(topology.parts(Component::Spine(1)), vertex(13));
    assert_eq!(topology.parts(Component::Switch(5)), vertex(13));
    assert_eq!(topology.parts(Component::Node(NodeId::new(2))), vertex(2));
    let same = [
        Component::LeafSpine { leaf: 1, spine: 0, link: 0 },
        Component::Link { a: 9, b: 12, link: 0 },
    ];
    let found = same.map(|component| topology.parts(component).unwrap());
    assert_eq!(found[0], found[1]);
    for missing in [
        Component::Node(NodeId::new(8)),
        Component::NodeLink(NodeId::new(8)),
        Component::Leaf(4),
        Component::Spine(2),
        Component::Switch(6),
        Component::Link { a: 0, b: 14, link: 0 },
        Component::Link { a: 0, b: 1, link: 0 },
        Component::LeafSpine { leaf: 0, spine: 0, link: 1 },
    ] {
        let message = topology.parts(missing).unwrap_err().message;
        assert!(message.contains("this network has"), "{message}");
    }
}

/// The numbers of parts that a shape tells beforehand are those of the topology.
#[track_caller]
fn check_extent(shape: &Shape) {
    let extent = shape.extent();
    let topology = shape.build().unwrap();
    let found = (topology.hosts(), topology.vertices(), topology.ports().len());
    assert_eq!((extent.hosts, extent.vertices), (found.0.into(), found.1.into()), "{shape:?}");
    let is_open = matches!(shape, Shape::Mesh(_) | Shape::Torus(_) | Shape::Racks(_));
    let ports = found.2 as u64;
    assert!(extent.ports == ports || (is_open && extent.ports >= ports), "{shape:?}: {extent:?}");
}

#[test]
fn the_size_of_a_topology_is_known_before_it_is_built() {
    for hosts in [2, 7, 64] {
        check_extent(&Shape::SingleSwitch(SingleSwitch { hosts, ..Default::default() }));
    }
    for (hosts, radix, oversubscription) in [(512, 64, 1), (64, 16, 3), (10, 8, 1), (5, 4, 3)] {
        let shape = LeafSpine { hosts, radix, oversubscription, ..Default::default() };
        check_extent(&Shape::LeafSpine(shape));
        let shape = ThreeTier { hosts, radix, oversubscription, ..Default::default() };
        check_extent(&Shape::ThreeTier(shape));
    }
    for dimensions in [vec![8, 8, 8], vec![2, 2], vec![3, 5]] {
        check_extent(&Shape::Torus(Torus { dimensions: dimensions.clone(), ..Default::default() }));
        let racks = Racks { dimensions: dimensions.clone(), racks: 3, ..Racks::default() };
        check_extent(&Shape::Racks(racks));
        check_extent(&Shape::Mesh(Mesh { dimensions, ..Default::default() }));
    }
    let edges = "a,b,rate,delay\n0,2,1 Gbps,1 ns\n1,2,1 Gbps,1 ns".to_string();
    let extent = Shape::Graph(Graph { hosts: 2, edges, ..Graph::default() }).extent();
    assert!(extent.vertices >= 3 && extent.ports >= 4, "{extent:?}");
}

/// No number in a shape makes it take long, overflow or take memory before it is refused.
#[test]
fn shapes_of_any_numbers_are_measured_at_once() {
    let numbers = [0, 1, 2, 3, 65_535, 65_536, u32::MAX - 1, u32::MAX];
    for hosts in numbers {
        check_large(&Shape::SingleSwitch(SingleSwitch { hosts, ..Default::default() }));
        let edges = "a,b,rate,delay\n".to_string();
        check_large(&Shape::Graph(Graph { hosts, edges, ..Graph::default() }));
        check_large(&Shape::Torus(Torus { dimensions: vec![hosts; 20], ..Default::default() }));
        for radix in numbers {
            for oversubscription in numbers {
                let shape = LeafSpine { hosts, radix, oversubscription, ..Default::default() };
                check_large(&Shape::LeafSpine(shape));
                let shape = ThreeTier { hosts, radix, oversubscription, ..Default::default() };
                check_large(&Shape::ThreeTier(shape));
            }
        }
    }
}

fn check_large(shape: &Shape) {
    let memory = shape.extent().memory(1).get();
    // Whatever is small enough is built, or refused.
    if memory < 1 << 20 {
        let _ = shape.build();
    }
}

proptest! {
    /// Whatever is in the list, there is a topology or a problem that names the list, never a crash.
    #[test]
    fn any_text_is_a_graph_or_a_problem(
        hosts in 0u32..5,
        rest in "([0-9a-z,#. ]{0,12}|[0-9]{1,2},[0-9]{1,2},[0-9] [GMk]bps,[0-9] ns|\n|,){0,12}",
    ) {
        for text in [rest.clone(), format!("a,b,rate,delay\n{rest}")] {
            match graph(hosts, &text) {
                Ok(topology) => check_wiring(&topology),
                Err(problems) => prop_assert!(problems.iter().all(|p| p.key == "edges")),
            }
        }
    }

    /// Distances follow the edges (no neighbour is nearer by more than one, and some is by one), which
    /// only true distances do.
    #[test]
    fn distances_fit_together_on_random_graphs(
        hosts in 2u32..8,
        spare in 0u32..6,
        links in prop::collection::vec((0u32..14, 0u32..14), 1..40),
    ) {
        let mut build = Builder::new(hosts);
        build.switches(Tier::Other, spare);
        let link = Link { rate: Rate::from_gbps(1), delay: Span::ZERO };
        let total = hosts + spare;
        for (a, b) in links.into_iter().map(|(a, b)| (a % total, b % total)).filter(|(a, b)| a != b) {
            build.link(Vertex::new(a), Vertex::new(b), link);
        }
        if let Ok(topology) = build.build() {
            check_wiring(&topology);
            for target in (0..total).map(Vertex::new) {
                let distances = topology.distances_to(target);
                for vertex in (0..total).map(Vertex::new) {
                    let own = distances[vertex.index()];
                    prop_assert_ne!(own, UNREACHABLE);
                    let peers = topology.ports_of(vertex).map(|p| topology.port(p).peer);
                    let least = peers.map(|peer| distances[peer.index()]).min().unwrap();
                    prop_assert_eq!(own == 0, vertex == target);
                    prop_assert!(own == 0 || least + 1 == own);
                }
            }
        }
    }
}

fn two_racks(links: u32) -> Racks {
    Racks { dimensions: vec![4, 4, 4], links, ..Racks::default() }
}

#[test]
fn m55_between_two_racks_there_is_what_their_links_carry() {
    for links in [1, 2, 3, 7, 16, 64, 100] {
        let topology = two_racks(links).build().unwrap();
        check_wiring(&topology);
        assert_eq!(topology.hosts(), 128);
        assert_eq!(topology.joints().len(), links as usize);
        assert_eq!(bisection(&topology), u64::from(links), "{links} links");
    }
}

#[test]
fn m55_links_between_racks_lie_evenly_over_the_same_places_of_both() {
    for (links, step) in [(16, 4), (8, 8), (64, 1)] {
        let topology = two_racks(links).build().unwrap();
        for (index, joint) in (0u32..).zip(topology.joints()) {
            let end = topology.port(joint.port);
            let places = (Vertex::new(index * step), Vertex::new(64 + index * step));
            assert_eq!((end.vertex, end.peer), places, "link {index} of {links}");
            assert!(topology.leads_out(joint.port) && topology.leads_out(end.reverse));
        }
    }
}

#[test]
fn m55_each_two_of_several_racks_are_joined() {
    for racks in 2..=6 {
        let shape = Racks { racks, dimensions: vec![4, 4], links: 2, ..Racks::default() };
        let topology = shape.build().unwrap();
        check_wiring(&topology);
        let mut pairs = std::collections::BTreeMap::new();
        for joint in topology.joints() {
            let end = topology.port(joint.port);
            *pairs.entry([end.vertex, end.peer].map(|v| v.get() / 16)).or_insert(0) += 1;
            assert_eq!(end.vertex.get() % 16, end.peer.get() % 16);
        }
        let all = (0..racks).flat_map(|a| (a + 1..racks).map(move |b| ([a, b], 2)));
        assert_eq!(pairs, all.collect());
        // A torus of 4 x 4 has four links a host; up to 10 more lie at 16 different ones.
        let most = (0..topology.hosts()).map(|host| topology.degree(Vertex::new(host))).max();
        assert_eq!(most, Some(5), "{racks} racks");
    }
}

#[test]
fn m55_a_tunnel_is_two_cables_a_switch_and_a_bridge_at_each_end() {
    let ethernet = Ethernet { ports: 5, oversubscription: 4, ..Ethernet::default() };
    let shape = Racks {
        link_rate: Rate::from_gbps(40),
        link_delay: Span::from_ns(30),
        ethernet: Some(ethernet),
        ..two_racks(5)
    };
    let topology = shape.build().unwrap();
    let switches: Vec<u32> =
        topology.joints().iter().map(|joint| joint.tunnel.unwrap().switch).collect();
    // Four of a switch's five ports are two tunnels.
    assert_eq!((switches, topology.ethernet_switches()), (vec![0, 0, 1, 1, 2], 3));
    let first = topology.joints()[0];
    let link = topology.port(first.port).link;
    assert_eq!((link.rate, link.delay), (Rate::from_gbps(10), Span::from_ns(30 * 2 + 500 * 3)));
    // 1,500 bytes are 1,538 on the line; 16 are 84 with the padding of the smallest frame.
    for (size, framed) in [(1_500, 1_538), (16, 84), (46, 84), (47, 85)] {
        assert_eq!(super::framed(Bytes::new(size)), Bytes::new(framed));
        let rate = topology.carried_rate(first.port, Bytes::new(size));
        assert_eq!(rate.as_bps(), 10_000_000_000 * size / framed);
    }
    let inner = topology.ports_of(Vertex::new(0)).next().unwrap();
    assert_eq!(topology.carried_rate(inner, Bytes::new(16)), Rate::from_gbps(10));
}

#[test]
fn m55_with_a_switch_its_tunnels_fail() {
    let ethernet = Some(Ethernet { ports: 4, ..Ethernet::default() });
    let topology = Racks { ethernet, ..two_racks(5) }.build().unwrap();
    let ports: Vec<PortId> = topology.joints().iter().map(|joint| joint.port).collect();
    let parts = |switch| topology.parts(Component::Switch(switch));
    assert_eq!(parts(1).unwrap(), Parts::Links(ports[2..4].to_vec()));
    assert_eq!(parts(2).unwrap(), Parts::Links(ports[4..].to_vec()));
    assert!(parts(3).unwrap_err().message.contains("has 3 switches"));
    assert!(two_racks(5).build().unwrap().parts(Component::Switch(0)).is_err());
}

#[test]
fn mistakes_in_racks_are_all_named() {
    let ethernet = Ethernet { ports: 1, oversubscription: 0, ..Ethernet::default() };
    let wrong = Racks {
        racks: 1,
        links: 0,
        dimensions: vec![4, 1],
        link_delay: Span::from_us(u64::MAX / 1_000_000),
        ethernet: Some(ethernet),
        ..Racks::default()
    };
    let mut keys: Vec<_> =
        wrong.build().unwrap_err().into_iter().map(|problem| problem.key).collect();
    keys.sort();
    let ethernet = ["ethernet.oversubscription", "ethernet.ports"];
    assert_eq!(keys, [&["dimensions"], &ethernet[..], &["link_delay", "links", "racks"]].concat());
    for large in [
        Racks { racks: u32::MAX, ..Racks::default() },
        Racks { dimensions: vec![u32::MAX; 9], ..Racks::default() },
        Racks { links: u32::MAX, ..Racks::default() },
    ] {
        assert!(!large.build().unwrap_err().is_empty());
        let _ = Shape::Racks(large).extent();
    }
}
