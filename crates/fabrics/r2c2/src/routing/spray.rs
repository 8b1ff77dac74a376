//! Shares of random packet spraying on any graph: packets wander to their destination, always nearer.
//!
//! Models: R2C2 §3.3.1, Fig. 3 (claims M16, M26). One pass over the vertices on shortest paths, by
//! distance, whatever the number of paths.

use rack::NodeId;
use rack::topology::Vertex;

use super::{Network, Scratch};

/// How a packet picks among the ports that lead nearer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pick {
    /// In proportion to the paths beyond: all paths equally likely.
    ByPath,
    /// All ports equally likely.
    ByHop,
}

/// Adds the shares of packets from `src` to `dst`; none if no path leads there.
pub(super) fn pair(network: &Network, pick: Pick, src: NodeId, dst: NodeId, scratch: &mut Scratch) {
    let topology = network.topology();
    let toward = network.ways().toward(dst);
    let lives = |port| network.lives(port);
    if toward.distance(topology.host(src)).is_none() {
        return;
    }
    scratch.queue.clear();
    scratch.queue.push(topology.host(src));
    scratch.mass[src.index()] = 1.0;
    // First come, first served is in order of distance: each vertex has all its packets in time.
    let mut at = 0;
    while let Some(&vertex) = scratch.queue.get(at) {
        at += 1;
        let mass = std::mem::take(&mut scratch.mass[vertex.index()]);
        let ports = || toward.ports(topology, lives, vertex);
        let all = match pick {
            Pick::ByPath => toward.count(vertex),
            Pick::ByHop => ports().count() as f64,
        };
        for port in ports() {
            let peer = topology.port(port).peer;
            let part = match pick {
                Pick::ByPath => toward.count(peer),
                Pick::ByHop => 1.0,
            };
            let share = mass * part / all;
            scratch.add(port, share);
            let there = &mut scratch.mass[peer.index()];
            if *there == 0.0 {
                scratch.queue.push(peer);
            }
            *there += share;
        }
    }
}

/// Adds the shares of packets from `src` to all nodes that a path leads to, `src` among them, each
/// equally likely and by paths equally likely: the first leg of Valiant's routing.
///
/// Seen from its end a random shortest path is again a random walk, back to `src`: so one pass from
/// the farthest vertex to the nearest serves all destinations together.
pub(super) fn outbound(network: &Network, src: NodeId, scratch: &mut Scratch) {
    let topology = network.topology();
    // Links lead both ways: what leads to `src` leads back.
    let toward = network.ways().toward(src);
    let lives = |port| network.lives(port);
    let reached = |vertex: &Vertex| toward.distance(*vertex).is_some();
    scratch.queue.clear();
    scratch.queue.extend((0..topology.vertices()).map(Vertex::new).filter(reached));
    let far = |vertex: &Vertex| std::cmp::Reverse((toward.distance(*vertex), vertex.get()));
    scratch.queue.sort_unstable_by_key(far);
    let nodes = scratch.queue.iter().filter(|&&vertex| topology.is_host(vertex)).count();
    for at in 0..scratch.queue.len() {
        let vertex = scratch.queue[at];
        let own = if topology.is_host(vertex) { 1.0 / nodes as f64 } else { 0.0 };
        let mass = std::mem::take(&mut scratch.mass[vertex.index()]) + own;
        let all = toward.count(vertex);
        for port in toward.ports(topology, lives, vertex) {
            let peer = topology.port(port).peer;
            let share = mass * toward.count(peer) / all;
            scratch.add(topology.port(port).reverse, share);
            scratch.mass[peer.index()] += share;
        }
    }
}
