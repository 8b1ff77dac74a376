//! Who sends to whom.
//!
//! Patterns that are a function of the node (the classic ones of Dally and Towles, "Principles and
//! Practices of Interconnection Networks", §3.2) give each node one destination. A node that such a
//! pattern maps to itself sends nothing. The others draw: uniform, hot spot, skewed pools.

use kernel::Stream;

use crate::NodeId;

/// The destination of each node under a fixed pattern; a node that maps to itself sends nothing.
pub type Map = Vec<u32>;

/// Each node to the node whose number has every bit inverted.
///
/// # Panics
/// Unless `nodes` is a power of two.
#[must_use]
pub fn bit_complement(nodes: u32) -> Map {
    assert!(nodes.is_power_of_two(), "bit complement over {nodes} nodes");
    (0..nodes).map(|node| node ^ (nodes - 1)).collect()
}

/// Each node to the node whose number has its bits in reverse order.
///
/// # Panics
/// Unless `nodes` is a power of two.
#[must_use]
pub fn bit_reverse(nodes: u32) -> Map {
    assert!(nodes.is_power_of_two(), "bit reverse over {nodes} nodes");
    let spare = 32 - nodes.trailing_zeros();
    (0..nodes).map(|node| node.reverse_bits().checked_shr(spare).unwrap_or(0)).collect()
}

/// Each node to the node whose number has its bits rotated left by one: the perfect shuffle.
///
/// # Panics
/// Unless `nodes` is a power of two.
#[must_use]
pub fn bit_shuffle(nodes: u32) -> Map {
    assert!(nodes.is_power_of_two(), "bit shuffle over {nodes} nodes");
    let bits = nodes.trailing_zeros();
    let rotate = |node: u32| (node << 1 & (nodes - 1)) | node >> bits.saturating_sub(1);
    (0..nodes).map(|node| if bits == 0 { 0 } else { rotate(node) }).collect()
}

/// Node (x, y) of a square to (y, x): where the side is a power of two, the high and low halves of
/// the number's bits swapped.
///
/// # Panics
/// Unless `nodes` is a square.
#[must_use]
pub fn transpose(nodes: u32) -> Map {
    let side = nodes.isqrt();
    assert!(side * side == nodes, "transpose over {nodes} nodes");
    (0..nodes).map(|node| node % side * side + node / side).collect()
}

/// In each dimension of size k, `offset(k)` places further round. Node numbers count the first
/// dimension fastest.
fn per_dimension(shape: &[u32], offset: impl Fn(u32) -> u32) -> Map {
    let nodes: u32 = shape.iter().product();
    let step = |node: u32| {
        let (mut to, mut stride) = (0, 1);
        for &size in shape {
            let place = node / stride % size;
            to += (place + offset(size)) % size * stride;
            stride *= size;
        }
        to
    };
    (0..nodes).map(step).collect()
}

/// Almost half-way round in each dimension of size k: place d to d + ceil(k / 2) - 1.
#[must_use]
pub fn tornado(shape: &[u32]) -> Map {
    per_dimension(shape, |size| size.div_ceil(2) - 1)
}

/// The next place in each dimension.
#[must_use]
pub fn neighbour(shape: &[u32]) -> Map {
    per_dimension(shape, |_| 1)
}

/// A random derangement, each equally likely: every node sends to one other and receives from one.
///
/// # Panics
/// If there are fewer than two nodes.
pub fn permutation(nodes: u32, stream: &mut Stream) -> Map {
    assert!(nodes >= 2, "a permutation of {nodes} nodes without fixed points");
    let mut map: Map = (0..nodes).collect();
    // A shuffle has no fixed point with probability 1/e, or 1/2 for two nodes.
    loop {
        stream.shuffle(&mut map);
        if (0..).zip(&map).all(|(node, &to)| node != to) {
            return map;
        }
    }
}

/// A random `senders` of the nodes each to a distinct node: a random part of a random derangement
/// (R2C2 §5.2: each node is source and sink of at most one flow).
///
/// # Panics
/// If there are fewer than two nodes, or more senders than nodes.
pub fn partial_permutation(nodes: u32, senders: u32, stream: &mut Stream) -> Map {
    assert!(senders <= nodes, "{senders} senders of {nodes} nodes");
    let mut map = permutation(nodes, stream);
    let mut order: Vec<u32> = (0..nodes).collect();
    stream.shuffle(&mut order);
    for &silent in &order[senders as usize..] {
        map[silent as usize] = silent;
    }
    map
}

/// A random derangement of `pairs` random nodes: each of them sends one flow and receives one, the
/// others none (Shoal §7.2, Fig. 12). A single flow has one node that sends and another that
/// receives.
///
/// # Panics
/// If there are fewer than two nodes, more pairs than nodes, or no pair.
pub fn permutation_among(nodes: u32, pairs: u32, stream: &mut Stream) -> Map {
    assert!(nodes >= 2 && (1..=nodes).contains(&pairs), "{pairs} pairs among {nodes} nodes");
    let mut chosen: Vec<u32> = (0..nodes).collect();
    stream.shuffle(&mut chosen);
    let mut map: Map = (0..nodes).collect();
    if pairs == 1 {
        map[chosen[0] as usize] = chosen[1];
        return map;
    }
    let places = permutation(pairs, stream);
    for (&node, &place) in chosen.iter().zip(&places) {
        map[node as usize] = chosen[place as usize];
    }
    map
}

/// Nodes by kind, and how much of the traffic goes from kind to kind.
#[derive(Clone, PartialEq, Debug)]
pub struct Pools {
    /// First node of each pool, and the end of the last.
    bounds: Vec<u32>,
    /// Ordered pairs of pools and the cumulative share of flows between them, the last share 1.
    pairs: Vec<(usize, usize, f64)>,
}

impl Pools {
    /// Pools of consecutive nodes in the given numbers, and `shares[from][to]` of the flows, in any
    /// unit.
    ///
    /// # Panics
    /// If a pair with a share has no two nodes to choose, or there is no share at all.
    #[must_use]
    pub fn new(counts: &[u32], shares: &[Vec<f64>]) -> Self {
        let mut bounds = vec![0];
        counts.iter().for_each(|count| bounds.push(bounds[bounds.len() - 1] + count));
        let total: f64 = shares.iter().flatten().sum();
        assert!(total > 0.0, "pools without traffic");
        let (mut pairs, mut sum) = (vec![], 0.0);
        for (from, row) in shares.iter().enumerate() {
            for (to, &share) in row.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let needed = 1 + u32::from(from == to);
                assert!(counts[from] >= 1 && counts[to] >= needed, "pool {from} to pool {to}");
                sum += share / total;
                pairs.push((from, to, sum));
            }
        }
        pairs.last_mut().expect("the total is above zero").2 = 1.0;
        Self { bounds, pairs }
    }

    /// The nodes of pool `pool`.
    #[must_use]
    pub fn nodes(&self, pool: usize) -> std::ops::Range<u32> {
        self.bounds[pool]..self.bounds[pool + 1]
    }

    fn draw(&self, sources: &mut Stream, destinations: &mut Stream) -> (u32, u32) {
        let at = sources.unit();
        let (from, to, _) = self.pairs[self.pairs.partition_point(|&(.., sum)| sum <= at)];
        let (senders, receivers) = (self.nodes(from), self.nodes(to));
        let src = senders.start + sources.below(senders.len() as u64) as u32;
        if from != to {
            return (src, receivers.start + destinations.below(receivers.len() as u64) as u32);
        }
        let place = other_than(src - senders.start, senders.len() as u32, destinations);
        (src, senders.start + place)
    }
}

/// A number below `count`, never `not`, the others equally likely.
fn other_than(not: u32, count: u32, stream: &mut Stream) -> u32 {
    let place = stream.below(u64::from(count) - 1) as u32;
    place + u32::from(place >= not)
}

/// A rule that gives the pair of each flow.
#[derive(Clone, PartialEq, Debug)]
pub enum Pattern {
    /// Source uniform over the nodes, destination uniform over the others.
    Uniform,
    /// Source uniform over the nodes that send, destination fixed by the source.
    Fixed(Map),
    /// Source uniform; with probability `share` the destination is one of the hot nodes, else one
    /// of the others. A source never draws itself.
    HotSpot {
        /// Share of flows for the hot nodes.
        share: f64,
        /// The hot nodes, in rising order.
        hot: Vec<u32>,
    },
    /// By pools of nodes.
    Pools(Pools),
}

/// A pattern over a rack, drawing the pairs of flows.
#[derive(Clone, Debug)]
pub struct Pairs {
    nodes: u32,
    pattern: Pattern,
    /// For a hot spot, the nodes that are not hot; for a fixed pattern, the nodes that send.
    rest: Vec<u32>,
    sources: Stream,
    destinations: Stream,
}

impl Pairs {
    /// A pattern over `nodes` nodes, with the streams of this seed.
    ///
    /// # Panics
    /// If no node has anybody to send to.
    #[must_use]
    pub fn new(nodes: u32, pattern: Pattern, seed: u64) -> Self {
        let rest: Vec<u32> = match &pattern {
            Pattern::Uniform | Pattern::Pools(_) => vec![],
            Pattern::Fixed(map) => (0..nodes).filter(|&n| map[n as usize] != n).collect(),
            Pattern::HotSpot { hot, .. } => {
                (0..nodes).filter(|node| hot.binary_search(node).is_err()).collect()
            }
        };
        assert!(nodes >= 2, "pairs among {nodes} nodes");
        match &pattern {
            Pattern::Fixed(_) => assert!(!rest.is_empty(), "a pattern in which nobody sends"),
            Pattern::HotSpot { hot, .. } => {
                assert!(!hot.is_empty() && hot.is_sorted(), "hot nodes {hot:?}");
            }
            Pattern::Uniform | Pattern::Pools(_) => {}
        }
        Self {
            nodes,
            pattern,
            rest,
            sources: Stream::new(seed, "workload/sources", 0),
            destinations: Stream::new(seed, "workload/destinations", 0),
        }
    }

    /// Draws the source and destination of a flow.
    pub fn draw(&mut self) -> (NodeId, NodeId) {
        let (src, dst) = match &self.pattern {
            Pattern::Pools(pools) => pools.draw(&mut self.sources, &mut self.destinations),
            Pattern::Fixed(map) => {
                let src = self.rest[self.sources.below(self.rest.len() as u64) as usize];
                (src, map[src as usize])
            }
            Pattern::Uniform | Pattern::HotSpot { .. } => {
                let src = self.sources.below(u64::from(self.nodes)) as u32;
                (src, self.draw_destination(src))
            }
        };
        (NodeId::new(src), NodeId::new(dst))
    }

    fn draw_destination(&mut self, src: u32) -> u32 {
        let stream = &mut self.destinations;
        let Pattern::HotSpot { share, hot } = &self.pattern else {
            return other_than(src, self.nodes, stream);
        };
        let (chosen, spare) =
            if stream.bernoulli(*share) { (hot, &self.rest) } else { (&self.rest, hot) };
        // A set that holds only the source has nobody to send to: the other set takes the flow.
        let set = if chosen.iter().any(|&node| node != src) { chosen } else { spare };
        match set.binary_search(&src) {
            Ok(place) => set[other_than(place as u32, set.len() as u32, stream) as usize],
            Err(_) => set[stream.below(set.len() as u64) as usize],
        }
    }

    /// How many flows [`Pairs::one_each`] gives.
    #[must_use]
    pub fn count_each(&self) -> u64 {
        match self.pattern {
            Pattern::Fixed(_) => self.rest.len() as u64,
            _ => u64::from(self.nodes),
        }
    }

    /// One flow for each node that sends, in order of the sources: the fixed destination, or a
    /// draw. Pools draw as many flows as there are nodes.
    pub fn one_each(&mut self) -> Vec<(NodeId, NodeId)> {
        let node = NodeId::new;
        match &self.pattern {
            Pattern::Fixed(map) => {
                self.rest.iter().map(|&src| (node(src), node(map[src as usize]))).collect()
            }
            Pattern::Pools(_) => (0..self.nodes).map(|_| self.draw()).collect(),
            Pattern::Uniform | Pattern::HotSpot { .. } => {
                (0..self.nodes).map(|src| (node(src), node(self.draw_destination(src)))).collect()
            }
        }
    }
}

#[cfg(test)]
#[path = "patterns_tests.rs"]
mod tests;
