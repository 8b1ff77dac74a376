//! Distances and path counts of a topology, in links.

use super::{Topology, Vertex};
use crate::Problem;

/// The distance to a vertex that no path leads to.
pub const UNREACHABLE: u32 = u32::MAX;

impl Topology {
    /// The number of links from each vertex to `target` on a shortest path, [`UNREACHABLE`] if none
    /// leads there. Hosts with several links pass traffic on.
    #[must_use]
    pub fn distances_to(&self, target: Vertex) -> Vec<u32> {
        let mut distances = vec![UNREACHABLE; self.vertices() as usize];
        let mut queue = Vec::with_capacity(distances.len());
        distances[target.index()] = 0;
        queue.push(target);
        let mut at = 0;
        while let Some(&vertex) = queue.get(at) {
            at += 1;
            let next = distances[vertex.index()] + 1;
            for port in self.ports_of(vertex) {
                let peer = self.port(port).peer;
                if distances[peer.index()] == UNREACHABLE {
                    distances[peer.index()] = next;
                    queue.push(peer);
                }
            }
        }
        distances
    }

    /// The longest of the shortest paths between hosts, in links.
    #[must_use]
    pub fn diameter(&self) -> u32 {
        let hosts = self.hosts() as usize;
        let eccentricity =
            |host| self.distances_to(Vertex::new(host))[..hosts].iter().copied().max();
        (0..self.hosts()).filter_map(eccentricity).max().unwrap_or(0)
    }

    /// How many shortest paths lead from one vertex to another; parallel links count each.
    #[must_use]
    pub fn path_count(&self, from: Vertex, to: Vertex) -> u64 {
        let distances = self.distances_to(to);
        let mut order: Vec<Vertex> = (0..self.vertices()).map(Vertex::new).collect();
        order.retain(|vertex| distances[vertex.index()] <= distances[from.index()]);
        order.sort_by_key(|vertex| distances[vertex.index()]);
        let mut counts = vec![0u64; distances.len()];
        for vertex in order {
            let distance = distances[vertex.index()];
            counts[vertex.index()] = if distance == 0 {
                1
            } else {
                let peers = self.ports_of(vertex).map(|port| self.port(port).peer);
                let nearer = peers.filter(|peer| distances[peer.index()] + 1 == distance);
                nearer.map(|peer| counts[peer.index()]).fold(0, u64::saturating_add)
            };
        }
        counts[from.index()]
    }

    /// What is wrong if some vertex cannot be reached from host 0.
    pub(super) fn island(&self) -> Option<Problem> {
        let distances = self.distances_to(Vertex::new(0));
        let alone = distances.iter().position(|&distance| distance == UNREACHABLE)?;
        let what = if (alone as u32) < self.hosts() { "host" } else { "switch" };
        let message = format!(
            "no path joins {what} {alone} to host 0; add a link from its side of the network to the \
             other"
        );
        Some(Problem::new("", message))
    }
}
