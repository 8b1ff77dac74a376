//! The next hops of every vertex to every host, by breadth-first search over what works.
//!
//! The same set of next hops serves many destinations, so each vertex keeps its sets once and the
//! table holds their numbers: two bytes for each pair of vertex and host.

use std::collections::HashMap;

use rack::topology::{PortId, Topology, Vertex};

use crate::config::Routing;
use crate::packet::ROUTE_HOPS_MAX;

/// What of a topology works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Live {
    /// By port: its link passes packets.
    pub ports: Vec<bool>,
    /// By vertex: it is not dead.
    pub vertices: Vec<bool>,
}

impl Live {
    /// All of it.
    pub(crate) fn all(topology: &Topology) -> Self {
        Self {
            ports: vec![true; topology.ports().len()],
            vertices: vec![true; topology.vertices() as usize],
        }
    }
}

/// Next hops that are equally near.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Group {
    start: u32,
    /// How many.
    pub(crate) len: u32,
    /// Paths to the destination by each of them, where all have as many; else by the first.
    pub(crate) below: u32,
}

/// The tables of all vertices.
#[derive(Clone, Debug)]
pub(crate) struct Tables {
    hosts: u32,
    /// By vertex and host: number of the group among those of the vertex; 0: no way.
    table: Vec<u16>,
    /// The groups of vertex `v`, from `first[v]`.
    groups: Vec<Group>,
    first: Vec<u32>,
    members: Vec<PortId>,
    /// Links of a shortest path from each host to each other, together.
    links: u128,
}

/// Sets of next hops, each once.
#[derive(Default)]
struct Sets {
    /// The number of a set, by its ports, which are of one vertex, and then the paths below each.
    /// Looked up, never walked.
    known: HashMap<Vec<u32>, u16>,
    /// By vertex.
    groups: Vec<Vec<Group>>,
    members: Vec<PortId>,
}

impl Sets {
    /// For each of so many vertices the set of no next hops.
    fn new(vertices: u32) -> Self {
        let none = Group { start: 0, len: 0, below: 0 };
        Self { groups: vec![vec![none]; vertices as usize], ..Self::default() }
    }

    /// The number of the set of `vertex` that `key` spells: ports, then the paths below each.
    fn number(&mut self, vertex: Vertex, key: &[u32]) -> u16 {
        if let Some(&number) = self.known.get(key) {
            return number;
        }
        let groups = &mut self.groups[vertex.index()];
        let number = u16::try_from(groups.len())
            .expect("a vertex has no more sets of next hops than there are hosts to go to");
        let (&below, ports) = key.split_last().expect("a key ends with the paths below");
        let start = self.members.len() as u32;
        groups.push(Group { start, len: ports.len() as u32, below });
        self.members.extend(ports.iter().copied().map(PortId::new));
        self.known.insert(key.to_vec(), number);
        number
    }
}

/// Whether paths are counted: sets of next hops are few where they need not be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counting {
    Paths,
    NextHops,
}

impl Tables {
    /// The tables for what works.
    pub(crate) fn new(topology: &Topology, live: &Live) -> Self {
        Self::build(topology, live, Counting::Paths)
    }

    /// The tables for what works, as far as this kind of routing asks them: packets that carry their
    /// routes choose among no paths, so that as many count as there are next hops.
    pub(crate) fn for_routing(topology: &Topology, live: &Live, routing: Routing) -> Self {
        let is_source_routed = routing == Routing::SourceRoute;
        let counting = if is_source_routed { Counting::NextHops } else { Counting::Paths };
        Self::build(topology, live, counting)
    }

    fn build(topology: &Topology, live: &Live, counting: Counting) -> Self {
        let (hosts, vertices) = (topology.hosts(), topology.vertices());
        let mut table = vec![0; hosts as usize * vertices as usize];
        let mut sets = Sets::new(vertices);
        // Packets that carry their routes have no room for longer ones.
        let hops_max = match counting {
            Counting::NextHops => ROUTE_HOPS_MAX,
            Counting::Paths => u32::MAX,
        };
        let mut search = Search::new(topology, live, hops_max);
        let (mut key, mut links) = (Vec::new(), 0);
        // By vertex and mask of next hops whose paths are not counted: the number of the set; 0 if it is
        // not known.
        let masks = if counting == Counting::NextHops { vertices as usize * MASKS } else { 0 };
        let mut of_masks = vec![0; masks];
        // Rows are written a cache line at a time, not a number of each row for each host.
        let mut tile = vec![0; vertices as usize * TILE];
        for host in 0..hosts {
            let column = host as usize % TILE;
            search.run(Vertex::new(host));
            links += u128::from(search.links(hosts));
            for &vertex in &search.order[1..] {
                let mask = search.mask(vertex).filter(|_| counting == Counting::NextHops);
                let known = mask.map(|mask| vertex.index() * MASKS + mask);
                let at = vertex.index() * TILE + column;
                tile[at] = known.map_or(0, |place| of_masks[place]);
                if tile[at] > 0 {
                    continue;
                }
                key.clear();
                key.extend(search.nearer(topology, live, vertex).map(PortId::get));
                let first = topology.port(PortId::new(key[0])).peer;
                key.push(match counting {
                    Counting::Paths => search.found[first.index()].paths,
                    Counting::NextHops => 1,
                });
                tile[at] = sets.number(vertex, &key);
                if let Some(place) = known {
                    of_masks[place] = tile[at];
                }
            }
            if column + 1 == TILE || host + 1 == hosts {
                let rows = table.chunks_mut(hosts as usize).zip(tile.chunks(TILE));
                let first = host as usize - column;
                rows.for_each(|(row, tile)| {
                    row[first..=host as usize].copy_from_slice(&tile[..=column])
                });
                tile.fill(0);
            }
        }
        let ends = sets.groups.iter().scan(0, |end, groups| {
            *end += groups.len() as u32;
            Some(*end)
        });
        let first = std::iter::once(0).chain(ends).collect();
        let (groups, members) = (sets.groups.concat(), sets.members);
        Self { hosts, table, first, groups, members, links }
    }

    /// The next hops at `vertex` towards `host`.
    #[inline]
    pub(crate) fn group(&self, vertex: Vertex, host: u32) -> (u16, Group) {
        let number = self.table[vertex.index() * self.hosts as usize + host as usize];
        (number, self.groups[self.first[vertex.index()] as usize + usize::from(number)])
    }

    /// Asks for the next hops at `vertex` towards `host` ahead of their use.
    #[inline]
    pub(crate) fn prefetch(&self, vertex: Vertex, host: u32) {
        let at = vertex.index() * self.hosts as usize + host as usize;
        kernel::prefetch(&self.table, at);
    }

    /// Next hop `index` of a group.
    #[inline]
    pub(crate) fn member(&self, group: Group, index: u32) -> PortId {
        self.members[(group.start + index) as usize]
    }

    /// The links of a shortest path from each host to each other that it reaches, together.
    pub(crate) fn links(&self) -> u128 {
        self.links
    }

    /// How many groups a vertex has.
    pub(crate) fn groups(&self, vertex: Vertex) -> usize {
        (self.first[vertex.index() + 1] - self.first[vertex.index()]) as usize
    }

    /// How many paths lead from `vertex` to `host`, as far as they are counted; 0 if none does.
    pub(crate) fn paths(&self, vertex: Vertex, host: u32) -> u32 {
        let group = self.group(vertex, host).1;
        group.len.saturating_mul(group.below)
    }

    /// The ports of one shortest path, or of as much as there is.
    pub(crate) fn path<'a>(
        &'a self,
        topology: &'a Topology,
        from: Vertex,
        host: u32,
    ) -> impl Iterator<Item = PortId> + 'a {
        let step = move |at: Vertex| {
            let group = self.group(at, host).1;
            (at != Vertex::new(host) && group.len > 0).then(|| self.member(group, 0))
        };
        std::iter::successors(step(from), move |&port| step(topology.port(port).peer))
    }
}

/// Hosts whose numbers are written to the table together: a cache line of them (our choice).
const TILE: usize = 32;
/// Sets of ports that a mask tells apart.
const MASKS: usize = 1 << 8;

/// A breadth-first search towards one host; its memory serves the next. Of N hosts it looks N times at
/// every link, which is most of what a large rack takes to build: so what works of the topology is laid out
/// for it once, and what it knows of a vertex lies together.
struct Search {
    /// How far it looks.
    hops_max: u32,
    /// By vertex: the first of its edges, which lead over what works to what works; and their end.
    first: Vec<u32>,
    edges: Vec<Edge>,
    /// By vertex.
    found: Vec<Found>,
    order: Vec<Vertex>,
    /// By vertex: whether it passes on what is not its own.
    passes: Vec<bool>,
    /// By vertex: whether masks tell all of its ports apart.
    is_small: Vec<bool>,
}

/// A way from a vertex.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The vertex at the other end.
    peer: u32,
    /// The bit of the other end's port among the first eight of its vertex; 0 if it is none of them.
    bit: u8,
}

/// What is known of a vertex.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Links to the target; [`FAR`] if it is not reached.
    distance: u32,
    /// Shortest paths to the target.
    paths: u32,
    /// A bit for each of its first eight ports that leads one step nearer.
    mask: u8,
}

/// The distance of what is not reached.
const FAR: u32 = u32::MAX;

impl Search {
    fn new(topology: &Topology, live: &Live, hops_max: u32) -> Self {
        let count = topology.vertices() as usize;
        let edge = |port: PortId| {
            let port = topology.port(port);
            let first = topology.ports_of(port.peer).next().map_or(0, PortId::get);
            let bit = 1u8.checked_shl(port.reverse.get() - first).unwrap_or(0);
            Edge { peer: port.peer.get(), bit }
        };
        let mut edges = Vec::with_capacity(topology.ports().len());
        let mut first = Vec::with_capacity(count + 1);
        for vertex in (0..topology.vertices()).map(Vertex::new) {
            first.push(edges.len() as u32);
            let lives = |port: &PortId| {
                live.ports[port.index()] && live.vertices[topology.port(*port).peer.index()]
            };
            if live.vertices[vertex.index()] {
                edges.extend(topology.ports_of(vertex).filter(lives).map(edge));
            }
        }
        first.push(edges.len() as u32);
        let vertices = || (0..topology.vertices()).map(Vertex::new);
        Self {
            hops_max,
            first,
            edges,
            found: vec![Found { distance: FAR, paths: 0, mask: 0 }; count],
            order: Vec::with_capacity(count),
            passes: vertices()
                .map(|vertex| !topology.is_host(vertex) || topology.degree(vertex) > 1)
                .collect(),
            is_small: vertices().map(|vertex| topology.degree(vertex) <= u8::BITS).collect(),
        }
    }

    /// Finds all vertices that reach `target` in few enough hops, nearest first, with the number of
    /// paths from each.
    fn run(&mut self, target: Vertex) {
        let Self { first, edges, found, order, passes, .. } = self;
        found.fill(Found { distance: FAR, paths: 0, mask: 0 });
        order.clear();
        order.push(target);
        found[target.index()] = Found { distance: 0, paths: 1, mask: 0 };
        let mut at = 0;
        while let Some(&vertex) = order.get(at) {
            at += 1;
            let Found { distance, paths, .. } = found[vertex.index()];
            if distance == self.hops_max || (vertex != target && !passes[vertex.index()]) {
                continue;
            }
            let ways = first[vertex.index()] as usize..first[vertex.index() + 1] as usize;
            for &Edge { peer, bit } in &edges[ways] {
                let peer_found = &mut found[peer as usize];
                if peer_found.distance == FAR {
                    peer_found.distance = distance + 1;
                    order.push(Vertex::new(peer));
                }
                if peer_found.distance == distance + 1 {
                    peer_found.mask |= bit;
                    peer_found.paths = peer_found.paths.saturating_add(paths);
                }
            }
        }
    }

    /// The links from all hosts that reach the target, together.
    fn links(&self, hosts: u32) -> u64 {
        let distances = self.found[..hosts as usize].iter().map(|found| found.distance);
        distances.filter(|&distance| distance != FAR).map(u64::from).sum()
    }

    /// The ports of `vertex` that lead one step nearer, a bit each; none if it has too many.
    fn mask(&self, vertex: Vertex) -> Option<usize> {
        self.is_small[vertex.index()].then(|| usize::from(self.found[vertex.index()].mask))
    }

    /// The ports of `vertex` that lead one step nearer.
    fn nearer<'a>(
        &'a self,
        topology: &'a Topology,
        live: &'a Live,
        vertex: Vertex,
    ) -> impl Iterator<Item = PortId> + 'a {
        let distance = self.found[vertex.index()].distance;
        topology.ports_of(vertex).filter(move |&port| {
            let peer = topology.port(port).peer;
            let is_nearer = self.found[peer.index()].distance.wrapping_add(1) == distance;
            live.ports[port.index()] && is_nearer
        })
    }
}
