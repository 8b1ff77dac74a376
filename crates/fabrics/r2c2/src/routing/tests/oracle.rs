//! Every path that a packet may take, with its probability: by the protocols' definitions, with
//! nothing of the code under test but the graph.

use std::collections::BTreeMap;

use rack::NodeId;
use rack::topology::{PortId, UNREACHABLE, Vertex};

use super::super::{Axis, Network, Protocol};

/// Paths and their probabilities.
pub(super) type Paths = BTreeMap<Vec<PortId>, f64>;

/// The paths from `src` to `dst`.
pub(super) fn paths(network: &Network, protocol: Protocol, src: NodeId, dst: NodeId) -> Paths {
    match protocol {
        Protocol::Rps => by_path(network, src, dst),
        Protocol::RpsByHop => by_hop(network, src, dst),
        Protocol::Valiant => over_waypoints(network, src, dst),
        Protocol::DimensionOrder => ordered(network, src, dst, Tie::Either),
        Protocol::DimensionOrderUp => ordered(network, src, dst, Tie::Up),
        Protocol::Romm => over_box(network, src, dst, short_way),
        Protocol::Weighted => over_box(network, src, dst, weighted),
        Protocol::WeightedThreshold => over_box(network, src, dst, |length, up| {
            if 4 * up.min(length - up) < length {
                short_way(length, up)
            } else {
                weighted(length, up)
            }
        }),
    }
}

/// The shares that these paths add up to.
pub(super) fn shares(paths: &Paths) -> BTreeMap<PortId, f64> {
    let mut shares = BTreeMap::new();
    for (path, probability) in paths {
        for &port in path {
            *shares.entry(port).or_insert(0.0) += probability;
        }
    }
    shares
}

/// Distances to a node over living links.
pub(super) fn distances(network: &Network, to: NodeId) -> Vec<u32> {
    let topology = network.topology();
    let mut distances = vec![UNREACHABLE; topology.vertices() as usize];
    distances[to.index()] = 0;
    // Bellman and Ford's, as the code under test searches breadth first.
    for _ in 0..topology.vertices() {
        for (index, port) in (0..).zip(topology.ports()) {
            let beyond = distances[port.peer.index()];
            if network.lives(PortId::new(index)) && beyond != UNREACHABLE {
                let here = &mut distances[port.vertex.index()];
                *here = (*here).min(beyond + 1);
            }
        }
    }
    distances
}

/// All shortest paths from a vertex, each with the product of what `part` says of its ports' number.
fn shortest(
    network: &Network,
    distances: &[u32],
    from: Vertex,
    path: &mut Vec<PortId>,
    part: f64,
    found: &mut Paths,
) {
    if distances[from.index()] == 0 {
        found.insert(path.clone(), part);
        return;
    }
    if distances[from.index()] == UNREACHABLE {
        return;
    }
    let topology = network.topology();
    let nearer = |port: &PortId| {
        network.lives(*port)
            && distances[topology.port(*port).peer.index()] + 1 == distances[from.index()]
    };
    let ports: Vec<PortId> = topology.ports_of(from).filter(nearer).collect();
    for &port in &ports {
        path.push(port);
        let part = part / ports.len() as f64;
        shortest(network, distances, topology.port(port).peer, path, part, found);
        path.pop();
    }
}

fn by_hop(network: &Network, src: NodeId, dst: NodeId) -> Paths {
    let mut found = Paths::new();
    let from = network.topology().host(src);
    shortest(network, &distances(network, dst), from, &mut Vec::new(), 1.0, &mut found);
    found
}

fn by_path(network: &Network, src: NodeId, dst: NodeId) -> Paths {
    let mut found = by_hop(network, src, dst);
    let all = found.len() as f64;
    found.values_mut().for_each(|part| *part = 1.0 / all);
    found
}

fn over_waypoints(network: &Network, src: NodeId, dst: NodeId) -> Paths {
    let mut found = Paths::new();
    if src == dst {
        return Paths::from([(Vec::new(), 1.0)]);
    }
    let reached = distances(network, src);
    let nodes = (0..network.nodes()).map(NodeId::new);
    let nodes: Vec<NodeId> = nodes.filter(|node| reached[node.index()] != UNREACHABLE).collect();
    for &waypoint in &nodes {
        for (first, p) in by_path(network, src, waypoint) {
            for (second, q) in by_path(network, waypoint, dst) {
                let path = [&first[..], &second[..]].concat();
                *found.entry(path).or_insert(0.0) += p * q / nodes.len() as f64;
            }
        }
    }
    found
}

#[derive(Clone, Copy, PartialEq)]
enum Tie {
    Either,
    Up,
}

/// Coordinates of a node, the first dimension fastest.
fn place(axes: &[Axis], node: NodeId) -> Vec<u32> {
    let mut rest = node.get();
    let next = |axis: &Axis| {
        let at = rest % axis.length();
        rest /= axis.length();
        at
    };
    axes.iter().map(next).collect()
}

/// Walks `steps` along one dimension, up if they are above zero, and adds the ports.
fn walk(network: &Network, at: &mut [u32], dimension: usize, steps: i64, path: &mut Vec<PortId>) {
    let axes = network.grid().expect("a grid").axes();
    let index = |at: &[u32]| {
        { at.iter().zip(axes) }.rev().fold(0, |node, (&at, axis)| node * axis.length() + at)
    };
    for _ in 0..steps.abs() {
        let here = Vertex::new(index(at));
        let length = i64::from(axes[dimension].length());
        at[dimension] = (i64::from(at[dimension]) + steps.signum()).rem_euclid(length) as u32;
        let there = Vertex::new(index(at));
        let mut ports = network.topology().links_between(here, there);
        path.push(ports.next().expect("neighbours share a link"));
    }
}

/// The ways along one dimension as signed steps, with probabilities; `ring` decides on rings.
fn ways(
    axis: Axis,
    from: u32,
    to: u32,
    ring: impl Fn(u32, u32) -> Vec<(i64, f64)>,
) -> Vec<(i64, f64)> {
    match axis {
        Axis::Ring(length) if length > 2 => ring(length, (to + length - from) % length),
        _ => vec![(i64::from(to) - i64::from(from), 1.0)],
    }
}

fn short_way(length: u32, up: u32) -> Vec<(i64, f64)> {
    let (there, back) = (i64::from(up), i64::from(up) - i64::from(length));
    match (2 * up).cmp(&length) {
        std::cmp::Ordering::Less => vec![(there, 1.0)],
        std::cmp::Ordering::Greater => vec![(back, 1.0)],
        std::cmp::Ordering::Equal => vec![(there, 0.5), (back, 0.5)],
    }
}

/// The short way over d of k nodes with probability 1 - d / k, the long way with d / k.
fn weighted(length: u32, up: u32) -> Vec<(i64, f64)> {
    let (there, back) = (i64::from(up), i64::from(up) - i64::from(length));
    let short = f64::from(up.min(length - up)) / f64::from(length);
    let (near, far) = if 2 * up <= length { (there, back) } else { (back, there) };
    if up == 0 { vec![(0, 1.0)] } else { vec![(near, 1.0 - short), (far, short)] }
}

fn ordered(network: &Network, src: NodeId, dst: NodeId, tie: Tie) -> Paths {
    let axes = network.grid().expect("a grid").axes().to_vec();
    let (from, to) = (place(&axes, src), place(&axes, dst));
    let mut partial = vec![(from.clone(), Vec::new(), 1.0)];
    for (dimension, &axis) in axes.iter().enumerate() {
        let mut ways = ways(axis, from[dimension], to[dimension], short_way);
        if tie == Tie::Up && ways.len() == 2 {
            ways = vec![(ways[0].0, 1.0)];
        }
        let mut longer = Vec::new();
        for (at, path, part) in partial {
            for &(steps, probability) in &ways {
                let (mut at, mut path) = (at.clone(), path.clone());
                walk(network, &mut at, dimension, steps, &mut path);
                longer.push((at, path, part * probability));
            }
        }
        partial = longer;
    }
    partial.into_iter().map(|(_, path, part)| (path, part)).collect()
}

fn over_box(
    network: &Network,
    src: NodeId,
    dst: NodeId,
    ring: impl Fn(u32, u32) -> Vec<(i64, f64)> + Copy,
) -> Paths {
    let axes = network.grid().expect("a grid").axes().to_vec();
    let (from, to) = (place(&axes, src), place(&axes, dst));
    // Per dimension: steps before the random node and after it, and the probability.
    let mut legs = vec![(Vec::new(), 1.0)];
    for (dimension, &axis) in axes.iter().enumerate() {
        let mut longer = Vec::new();
        for (steps, probability) in ways(axis, from[dimension], to[dimension], ring) {
            for before in 0..=steps.abs() {
                for (legs, part) in &legs {
                    let mut legs: Vec<(i64, i64)> = Vec::clone(legs);
                    legs.push((steps.signum() * before, steps.signum() * (steps.abs() - before)));
                    longer.push((legs, part * probability / (steps.abs() + 1) as f64));
                }
            }
        }
        legs = longer;
    }
    let orders = orders(axes.len());
    let mut found = Paths::new();
    for (legs, part) in legs {
        for first in &orders {
            for second in &orders {
                let (mut at, mut path) = (from.clone(), Vec::new());
                first.iter().for_each(|&d| walk(network, &mut at, d, legs[d].0, &mut path));
                second.iter().for_each(|&d| walk(network, &mut at, d, legs[d].1, &mut path));
                assert_eq!(at, to);
                *found.entry(path).or_insert(0.0) += part / (orders.len() * orders.len()) as f64;
            }
        }
    }
    found
}

/// All orders of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let Some(last) = count.checked_sub(1) else { return vec![Vec::new()] };
    let insert = |order: Vec<usize>| {
        (0..=last).map(move |at| {
            let mut order = order.clone();
            order.insert(at, last);
            order
        })
    };
    orders(last).into_iter().flat_map(insert).collect()
}
