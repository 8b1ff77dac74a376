//! Cuts: to which part of a network each vertex belongs.

use std::sync::Arc;

use rack::topology::{Tier, Topology, Vertex};

/// What a host counts for when parts are to have as much to do, in ports of a switch: its transport, its NIC
/// and what it receives (our choice).
const HOST: u64 = 3;

/// A cut of a network into parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cut {
    /// By vertex.
    pub(crate) part_of: Arc<[u16]>,
    parts: usize,
}

impl Cut {
    /// A cut by vertex. Parts are numbered from 0 and may be empty.
    #[must_use]
    pub fn new(part_of: Vec<u16>) -> Self {
        let parts = part_of.iter().max().map_or(1, |&part| usize::from(part) + 1);
        Self { part_of: part_of.into(), parts }
    }

    /// All in one part.
    pub(crate) fn whole() -> Self {
        Self::new(Vec::new())
    }

    /// Each vertex by itself.
    ///
    /// # Panics
    /// If there are more than 2^16.
    #[must_use]
    pub fn each(topology: &Topology) -> Self {
        let part = |vertex| u16::try_from(vertex).expect("no more than 2^16 parts");
        Self::new((0..topology.vertices()).map(part).collect())
    }

    /// Up to so many parts with as much to do. Hosts with one link stay with their switch, if there are
    /// several switches; of each tier neighbours stay together.
    #[must_use]
    pub fn balanced(topology: &Topology, parts: usize) -> Self {
        Self::balanced_in(topology, parts, |switch| switch)
    }

    /// As [`Cut::balanced`], with each switch in the part of the one that is its home.
    pub(crate) fn balanced_in(
        topology: &Topology,
        parts: usize,
        home_of: impl Fn(Vertex) -> Vertex,
    ) -> Self {
        let vertices = || (0..topology.vertices()).map(Vertex::new);
        let is_star = vertices().filter(|&vertex| !topology.is_host(vertex)).count() == 1;
        let home = |vertex: Vertex| match topology.ports_of(vertex).next() {
            Some(port) if topology.degree(vertex) == 1 && !is_star => {
                let peer = topology.port(port).peer;
                if topology.is_host(peer) { vertex } else { home_of(peer) }
            }
            _ if topology.is_host(vertex) => vertex,
            _ => home_of(vertex),
        };
        let mut weights = vec![0; topology.vertices() as usize];
        for vertex in vertices() {
            let is_host = topology.is_host(vertex);
            weights[home(vertex).index()] +=
                u64::from(topology.degree(vertex)) + if is_host { HOST } else { 0 };
        }
        let homes: Vec<_> = vertices().filter(|&vertex| home(vertex) == vertex).collect();
        let mut part_of = vec![0; weights.len()];
        let parts = parts.clamp(1, homes.len().min(usize::from(u16::MAX))) as u64;
        let mut share_out = |homes: &[Vertex]| {
            let weight = |vertex: &Vertex| weights[vertex.index()];
            let all = homes.iter().map(weight).sum::<u64>().max(1);
            let mut before = 0;
            for vertex in homes {
                // By its middle, so that none is beyond the last part.
                let middle = 2 * before + weight(vertex);
                part_of[vertex.index()] = (middle * parts / (2 * all)).min(parts - 1) as u16;
                before += weight(vertex);
            }
        };
        if is_star {
            // The switch first: parts without it have more hosts.
            let (hosts, mut all): (Vec<_>, Vec<_>) =
                homes.iter().partition(|&&vertex| topology.is_host(vertex));
            all.extend(hosts);
            share_out(&all);
        } else {
            for tier in [Tier::Host, Tier::Leaf, Tier::Spine, Tier::Core, Tier::Other] {
                let of_tier = homes.iter().copied().filter(|&home| topology.tier(home) == tier);
                share_out(&of_tier.collect::<Vec<_>>());
            }
        }
        for vertex in vertices() {
            part_of[vertex.index()] = part_of[home(vertex).index()];
        }
        Self { part_of: part_of.into(), parts: parts as usize }
    }

    /// How many parts there are.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// The part of a vertex.
    #[must_use]
    pub fn part(&self, vertex: Vertex) -> usize {
        self.part_of[vertex.index()].into()
    }
}

#[cfg(test)]
mod tests {
    use rack::topology::{LeafSpine, Shape, SingleSwitch, ThreeTier, Torus};

    use super::*;
    use crate::Config;

    fn topology(shape: Shape) -> Topology {
        Config { topology: shape, ..Config::default() }.plan().unwrap().topology
    }

    fn shapes() -> Vec<Topology> {
        vec![
            topology(Shape::LeafSpine(LeafSpine { hosts: 64, radix: 16, ..LeafSpine::default() })),
            topology(Shape::ThreeTier(ThreeTier { hosts: 128, radix: 8, ..ThreeTier::default() })),
            topology(Shape::SingleSwitch(SingleSwitch { hosts: 24, ..SingleSwitch::default() })),
            topology(Shape::Torus(Torus { dimensions: vec![4, 4, 4], ..Torus::default() })),
        ]
    }

    #[test]
    fn parts_have_as_much_to_do() {
        for topology in shapes() {
            for parts in [1, 2, 3, 4, 8] {
                let cut = Cut::balanced(&topology, parts);
                assert_eq!(cut.parts(), parts);
                let mut weights = vec![0; parts];
                for vertex in (0..topology.vertices()).map(Vertex::new) {
                    let host = if topology.is_host(vertex) { HOST } else { 0 };
                    weights[cut.part(vertex)] += u64::from(topology.degree(vertex)) + host;
                }
                let mean = weights.iter().sum::<u64>() / parts as u64;
                // A single switch is one vertex.
                let largest =
                    (0..topology.vertices()).map(|v| topology.degree(Vertex::new(v))).max();
                let bound = (mean + mean / 2).max(u64::from(largest.unwrap()) + HOST + 1);
                assert!(
                    weights.iter().all(|&weight| weight <= bound),
                    "{weights:?} of {topology:?}"
                );
            }
        }
    }

    #[test]
    fn hosts_stay_with_their_switch_where_there_are_several() {
        for topology in &shapes()[..2] {
            let cut = Cut::balanced(topology, 3);
            for host in (0..topology.hosts()).map(Vertex::new) {
                let link = topology.ports_of(host).next().unwrap();
                assert_eq!(cut.part(host), cut.part(topology.port(link).peer));
            }
        }
    }
}
