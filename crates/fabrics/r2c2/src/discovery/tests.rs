//! Racks of any shape, whose links and nodes die and return in any order while messages are lost.

use kernel::{Rate, Span, Stream};
use proptest::prelude::*;
use rack::topology::{Builder, Link};

use super::*;

/// Greetings that may be missed.
const MISSED: u16 = 3;

/// A rack without clock: words on links, in order, and rounds of greetings.
struct Bench {
    topology: Arc<Topology>,
    discovery: Discovery,
    /// By port: whether its link works.
    works: Vec<bool>,
    draw: Stream,
    /// One word in so many is lost.
    loses: Option<u64>,
    told: u64,
}

/// A connected graph of nodes with at most eight links each, some of them parallel.
fn graph(nodes: u32, more: u32, draw: &mut Stream) -> Topology {
    let mut build = Builder::new(nodes);
    let link = Link { rate: Rate::from_gbps(10), delay: Span::from_ns(100) };
    let mut degree = vec![0; nodes as usize];
    let mut join = |a: u32, b: u32, degree: &mut Vec<u32>| {
        if a != b && degree[a as usize] < PORTS && degree[b as usize] < PORTS {
            build.link(Vertex::new(a), Vertex::new(b), link);
            degree[a as usize] += 1;
            degree[b as usize] += 1;
        }
    };
    for node in 1..nodes {
        // Seven may hang below one: there is always a place.
        join(node, (node - 1) / 7, &mut degree);
    }
    for _ in 0..more {
        let pair = [(); 2].map(|()| draw.below(nodes.into()) as u32);
        join(pair[0], pair[1], &mut degree);
    }
    build.build().unwrap()
}

impl Bench {
    fn new(topology: Topology, seed: u64) -> Self {
        let topology = Arc::new(topology);
        Self {
            discovery: Discovery::new(Arc::clone(&topology), MISSED),
            works: vec![true; topology.ports().len()],
            draw: Stream::new(seed, "test/discovery", 0),
            loses: None,
            told: 0,
            topology,
        }
    }

    fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.topology.hosts()).map(NodeId::new)
    }

    fn set(&mut self, port: PortId, works: bool) {
        self.works[port.index()] = works;
        self.works[self.topology.port(port).reverse.index()] = works;
    }

    /// Brings words to where they go, and what is said because of them, until all is quiet. Links keep
    /// order; which link is next is a matter of chance.
    fn spread(&mut self, words: Vec<(PortId, Word)>) {
        let mut on_links = vec![std::collections::VecDeque::new(); self.works.len()];
        let mut busy = Vec::new();
        let send = |words: Vec<_>, busy: &mut Vec<PortId>, links: &mut Vec<_>| {
            for (port, word) in words {
                let link: &mut std::collections::VecDeque<Word> = &mut links[PortId::index(port)];
                if link.is_empty() {
                    busy.push(port);
                }
                link.push_back(word);
            }
        };
        send(words, &mut busy, &mut on_links);
        while !busy.is_empty() {
            let at = self.draw.below(busy.len() as u64) as usize;
            let port = busy[at];
            let word = on_links[port.index()].pop_front().unwrap();
            if on_links[port.index()].is_empty() {
                busy.swap_remove(at);
            }
            self.told += 1;
            let is_lost = self.loses.is_some_and(|odds| self.draw.below(odds) == 0);
            if is_lost || !self.works[port.index()] {
                continue;
            }
            let mut more = Vec::new();
            let there = self.topology.port(port).reverse;
            match word {
                Word::Hello(hello) => self.discovery.hear_hello(there, &hello, &mut more),
                Word::State(state) => self.discovery.hear_state(there, &state, &mut more),
            }
            send(more, &mut busy, &mut on_links);
        }
    }

    /// An interval passes: all nodes greet, in any order.
    fn round(&mut self) {
        let mut nodes: Vec<NodeId> = self.nodes().collect();
        self.draw.shuffle(&mut nodes);
        for node in nodes {
            let mut words = Vec::new();
            self.discovery.greet(node, u8::MAX, &mut words);
            self.spread(words);
            self.discovery.takes_news(node);
        }
        for node in self.nodes() {
            self.discovery.takes_news(node);
        }
    }

    /// The nodes to which working links lead from `node`.
    fn part(&self, node: NodeId) -> Vec<NodeId> {
        let mut found = vec![node];
        let mut at = 0;
        while let Some(&next) = found.get(at) {
            at += 1;
            for port in self.topology.ports_of(Vertex::new(next.get())) {
                let peer = NodeId::new(self.topology.port(port).peer.get());
                if self.works[port.index()] && !found.contains(&peer) {
                    found.push(peer);
                }
            }
        }
        found
    }

    /// Each node knows which links work, of those of all nodes that it can hear.
    fn check(&self) {
        for node in self.nodes() {
            let dead = self.discovery.dead(node);
            let part = self.part(node);
            for port in self.topology.links() {
                let end = self.topology.port(port);
                let low = port.min(end.reverse);
                let ends = [end.vertex, end.peer].map(|vertex| NodeId::new(vertex.get()));
                if ends.iter().any(|end| part.contains(end)) {
                    let is_dead = dead.contains(&low);
                    assert_eq!(is_dead, !self.works[low.index()], "{node} of {low:?} {ends:?}");
                }
            }
            for &other in &part {
                assert_eq!(
                    self.discovery.digests[node.index()],
                    self.discovery.digests[other.index()],
                    "{node} and {other} differ"
                );
            }
        }
    }

    /// Greets until what works must be known: links are found dead, or back; then what was lost is
    /// told again.
    fn settle(&mut self) {
        self.loses = None;
        for _ in 0..2 * MISSED + 4 {
            self.round();
        }
    }
}

#[test]
fn m14_a_dead_link_is_found_after_as_many_greetings_as_may_be_missed() {
    let mut draw = Stream::new(1, "test/graph", 0);
    let mut bench = Bench::new(graph(9, 6, &mut draw), 1);
    let port = bench.topology.links().next().unwrap();
    bench.round();
    bench.set(port, false);
    // An end that heard the other before it greeted itself has counted one before the link died.
    for _ in 0..MISSED - 1 {
        bench.round();
        assert!(bench.discovery.dead(NodeId::new(5)).is_empty());
    }
    bench.round();
    bench.round();
    assert_eq!(bench.discovery.dead(NodeId::new(5)).len(), 1);
    bench.check();
    bench.set(port, true);
    bench.round();
    bench.round();
    assert!(bench.discovery.dead(NodeId::new(5)).is_empty());
    bench.check();
}

#[test]
fn m14_news_are_told_by_each_node_once() {
    let mut draw = Stream::new(2, "test/graph", 0);
    let mut bench = Bench::new(graph(30, 60, &mut draw), 1);
    bench.round();
    let ports = bench.works.len() as u64;
    assert_eq!(bench.told, ports, "a greeting by each port");
    let port = bench.topology.links().nth(40).unwrap();
    bench.set(port, false);
    for _ in 0..2 * MISSED {
        bench.round();
    }
    let news = bench.told - ports * (1 + 2 * u64::from(MISSED));
    // Two ends have news. Each goes by every living port but those by which it first came, of which
    // there is one a node, the end itself apart. While the first spreads, the second end still takes
    // its port to live, and says it there in vain.
    let once = ports - 2 - (u64::from(bench.topology.hosts()) - 1);
    assert_eq!(news, 2 * once + 1);
    bench.check();
}

#[test]
fn m14_a_rack_that_is_switched_on_finds_all_links() {
    for seed in 0..20 {
        let mut draw = Stream::new(seed, "test/graph", 0);
        let mut bench = Bench::new(graph(20, 20, &mut draw), seed);
        for node in bench.nodes() {
            bench.discovery.forget(node);
        }
        bench.settle();
        bench.check();
        // And so does one node alone that was off for a while.
        bench.discovery.forget(NodeId::new(7));
        bench.settle();
        bench.check();
        assert!(bench.discovery.dead(NodeId::new(7)).is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Links and nodes die and return at any time, for as long as it may be, while words are lost:
    /// once nothing changes any more, all nodes that working links join know the same, and the truth.
    #[test]
    fn m14_all_that_are_joined_come_to_know_what_works(
        seed: u64,
        nodes in 2u32..16,
        more in 0u32..24,
        changes in prop::collection::vec((any::<u32>(), any::<bool>(), 0u32..7), 0..12),
        loses in prop::sample::select(&[None, Some(3), Some(20)][..]),
    ) {
        let mut draw = Stream::new(seed, "test/graph", 0);
        let mut bench = Bench::new(graph(nodes, more, &mut draw), seed);
        bench.loses = loses;
        for (which, is_node, rounds) in changes {
            let ports: Vec<PortId> = if is_node {
                bench.topology.ports_of(Vertex::new(which % nodes)).collect()
            } else {
                vec![PortId::new(which % bench.works.len() as u32)]
            };
            let works = !bench.works[ports[0].index()];
            ports.into_iter().for_each(|port| bench.set(port, works));
            (0..rounds).for_each(|_| bench.round());
        }
        bench.settle();
        bench.check();
    }
}
