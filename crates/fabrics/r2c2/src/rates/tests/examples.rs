//! The paper's worked examples.

use rack::topology::{Builder, Link, Mesh, Shape, Tier, Topology};

use super::*;
use crate::routing::Network;

const GBPS: f64 = 1e9;

fn mesh(dimensions: &[u32]) -> Network {
    let rate = Rate::from_gbps(1);
    Network::new(&Shape::Mesh(Mesh { dimensions: dimensions.to_vec(), rate, ..Mesh::default() }))
        .unwrap()
}

#[test]
fn x04_fig_3_a_sprayed_flow_takes_half_its_rate_over_each_side_of_a_square() {
    let network = mesh(&[2, 2]);
    let routed = Routed::new(&network, &[Protocol::Rps]).unwrap();
    let mut rates = Waterfill::new(routed, capacities(network.topology(), 0.0));
    rates.join(0, course(0, 3, Protocol::Rps), Terms::default());
    rates.fill(Whose::All);
    assert_eq!(rates.rate(0), 2.0 * GBPS, "both sides are full");
    // A second flow over one of the four links: 1/2 and 1 on it, then 2/3 each.
    rates.join(1, course(0, 1, Protocol::Rps), Terms::default());
    rates.fill(Whose::All);
    for place in [0, 1] {
        assert!((rates.rate(place) - 2.0 / 3.0 * GBPS).abs() < 1.0, "{}", rates.rate(place));
    }
    // The weighted example of §3.3.1: paths in the ratio 1:2, so that 2/3 of the rate fill a link.
    let uses = [(0, 1.0 / 3.0), (1, 1.0 / 3.0), (2, 2.0 / 3.0), (3, 2.0 / 3.0)].to_vec();
    let flow = course(0, 3, Protocol::Weighted);
    let written = Written { nodes: 4, links: 4, uses: [(flow, uses)].into(), ..Written::default() };
    let mut rates = Waterfill::new(written, vec![GBPS; 4]);
    rates.join(0, flow, Terms::default());
    rates.fill(Whose::All);
    assert!((rates.rate(0) - 1.5 * GBPS).abs() < 10.0, "{}", rates.rate(0));
}

/// Fig. 4(a): nodes 1 to 4 of the paper are 0 to 3 here.
fn fig_4() -> (Topology, Written, [Course; 2]) {
    let mut build = Builder::new(4);
    let link = Link { rate: Rate::from_gbps(1), delay: kernel::Span::ZERO };
    let nodes: Vec<_> = (0..4).map(rack::topology::Vertex::new).collect();
    for (a, b) in [(0, 3), (0, 2), (1, 2), (2, 3)] {
        build.link(nodes[a], nodes[b], link);
    }
    let topology = build.build().unwrap();
    assert!(nodes.iter().all(|&node| topology.tier(node) == Tier::Host));
    let port =
        |a: usize, b: usize| topology.links_between(nodes[a], nodes[b]).next().unwrap().index();
    let flows = [course(0, 3, Protocol::Weighted), course(1, 3, Protocol::Rps)];
    let uses = [
        (flows[0], vec![(port(0, 3), 0.5), (port(0, 2), 0.5), (port(2, 3), 0.5)]),
        (flows[1], vec![(port(1, 2), 1.0), (port(2, 3), 1.0)]),
    ];
    let links = topology.ports().len();
    let written = Written { nodes: 4, links, uses: uses.into(), ..Written::default() };
    (topology, written, flows)
}

#[test]
fn x04_fig_4_paths_in_fixed_proportions_cost_a_third() {
    let (topology, written, flows) = fig_4();
    let capacities = capacities(&topology, 0.0);
    let mut rates = Waterfill::new(written, capacities.clone());
    for (place, flow) in (0..).zip(flows) {
        rates.join(place, flow, Terms::default());
    }
    rates.fill(Whose::All);
    let terms = Terms::default();
    let free: Vec<_> = flows.iter().map(|flow| (flow.source, flow.destination, terms)).collect();
    let free = unrestricted(&topology, &capacities, &free);
    for place in [0, 1] {
        let restricted = rates.rate(place);
        assert!((restricted - 2.0 / 3.0 * GBPS).abs() < 1.0, "flow {place}: {restricted}");
        let free = free[place as usize];
        assert!((free - GBPS).abs() < 1e-5 * GBPS, "flow {place}, any paths: {free}");
    }
}

#[test]
fn m20_headroom_is_kept_free_on_every_link() {
    let network = mesh(&[2, 2]);
    let routed = Routed::new(&network, &[Protocol::Rps]).unwrap();
    let mut rates = Waterfill::new(routed, capacities(network.topology(), 0.05));
    rates.join(0, course(0, 3, Protocol::Rps), Terms::default());
    rates.fill(Whose::All);
    assert_eq!(rates.rate_of(0), Some(Rate::from_bps(1_900_000_000)));
}

#[test]
fn m21_weights_divide_a_link_and_priorities_take_turns() {
    let flow = course(0, 1, Protocol::Rps);
    let written =
        Written { nodes: 2, links: 1, uses: [(flow, vec![(0, 1.0)])].into(), ..Written::default() };
    let mut rates = Waterfill::new(written, vec![12e9]);
    rates.join(0, flow, weight(1));
    rates.join(1, flow, weight(3));
    rates.fill(Whose::All);
    assert_eq!([0, 1].map(|place| rates.rate(place)), [3e9, 9e9]);
    let demand = Some(Rate::from_gbps(4));
    rates.join(2, flow, Terms { demand, ..weight(200) });
    rates.fill(Whose::All);
    assert_eq!([0, 1, 2].map(|place| rates.rate(place)), [2e9, 6e9, 4e9]);
    rates.leave(2);
    // Who comes first has all that it can send, who comes later what is left.
    rates.join(2, flow, Terms { demand, ..weight(1) });
    rates.leave(0);
    rates.join(0, flow, Terms { priority: 1, ..weight(1) });
    rates.leave(1);
    rates.join(1, flow, Terms { priority: 7, ..weight(255) });
    rates.fill(Whose::All);
    assert_eq!([0, 1, 2].map(|place| rates.rate(place)), [8e9, 0.0, 4e9]);
}

#[test]
fn a_flow_to_its_own_source_is_bounded_by_its_host_alone() {
    let own = course(0, 0, Protocol::Rps);
    let spread = course(1, 1, Protocol::Valiant);
    let mut rates = Waterfill::new(Written { nodes: 2, links: 1, ..Written::default() }, vec![1e9]);
    rates.join(0, own, Terms::default());
    rates.join(1, own, Terms { demand: Some(Rate::from_gbps(3)), ..Terms::default() });
    rates.join(2, spread, Terms::default());
    rates.fill(Whose::All);
    assert_eq!([0, 1, 2].map(|place| rates.rate_of(place)), [None, Some(Rate::from_gbps(3)), None]);
}

#[test]
#[should_panic(expected = "the rate of place 0 was not asked for")]
fn a_rate_that_was_not_asked_for_is_refused() {
    let flow = course(0, 1, Protocol::Rps);
    let uses = [(flow, vec![(0, 1.0)])].into();
    let mut rates =
        Waterfill::new(Written { nodes: 2, links: 1, uses, ..Written::default() }, vec![1.0]);
    rates.join(0, flow, Terms::default());
    rates.fill(Whose::From(NodeId::new(1)));
    let _ = rates.rate(0);
}

#[test]
#[should_panic(expected = "the rate of place 1 was not asked for")]
fn a_flow_that_came_after_the_computation_has_no_rate_yet() {
    let flows = [course(0, 1, Protocol::Rps), course(1, 0, Protocol::Rps)];
    let uses = flows.map(|flow| (flow, vec![(0, 1.0)])).into();
    let written = Written { nodes: 2, links: 1, uses, ..Written::default() };
    let mut rates = Waterfill::new(written, vec![1.0]);
    rates.join(0, flows[0], Terms::default());
    rates.fill(Whose::All);
    assert_eq!(rates.rate(0), 1.0);
    // In the place of the bundle of another.
    rates.leave(0);
    rates.join(1, flows[1], Terms::default());
    let _ = rates.rate(1);
}
