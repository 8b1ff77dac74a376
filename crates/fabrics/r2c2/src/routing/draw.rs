//! How a packet is led, hop by hop, to where its protocol wants it.
//!
//! Models: R2C2 §2.2.1 (claims M26 to M29). Each function leads a [`Walk`] on to a destination.

use kernel::Stream;
use rack::NodeId;
use rack::topology::Vertex;

use super::Network;
use super::grid::{Choices, DIMENSIONS_MAX, Direction, Grid, Sense, Turn};
use super::network::places;
use super::route::{Draft, Route};
use super::spray::Pick;

/// A route while it is drawn, and where it has come to.
pub(super) struct Walk<'a> {
    network: &'a Network,
    at: Vertex,
    draft: Draft,
}

impl<'a> Walk<'a> {
    pub(super) fn new(network: &'a Network, src: NodeId) -> Self {
        Self { network, at: network.topology().host(src), draft: Draft::default() }
    }

    fn grid(&self) -> &'a Grid {
        self.network.grid().expect("a protocol that speaks of dimensions was given a grid")
    }

    #[inline]
    fn step(&mut self, grid: &Grid, dimension: usize, sense: Sense) {
        let step = grid.step(self.at, Direction::new(dimension, sense));
        self.draft.push(step.index);
        self.at = step.to;
    }

    pub(super) fn finish(self) -> Route {
        self.draft.finish()
    }
}

/// What is left to go along each dimension.
struct Left {
    steps: [u32; DIMENSIONS_MAX],
    senses: [Sense; DIMENSIONS_MAX],
    /// How many ways are equally good: 2 half round a ring before the first step, else 1.
    ways: [u32; DIMENSIONS_MAX],
}

impl Left {
    fn new(grid: &Grid, from: Vertex, dst: NodeId, turn: Turn) -> (Self, usize) {
        let mut left = Self {
            steps: [0; DIMENSIONS_MAX],
            senses: [Sense::Up; DIMENSIONS_MAX],
            ways: [1; DIMENSIONS_MAX],
        };
        let mut dimensions = 0;
        for (axis, from, to) in places(grid, NodeId::new(from.get()), dst) {
            let Choices([first, second]) = axis.choices(from, to, turn);
            left.steps[dimensions] = first.steps;
            left.senses[dimensions] = first.sense;
            left.ways[dimensions] = 1 + u32::from(second.weight > 0);
            dimensions += 1;
        }
        (left, dimensions)
    }
}

/// Random packet spraying.
#[inline]
pub(super) fn spray(walk: &mut Walk<'_>, pick: Pick, dst: NodeId, stream: &mut Stream) {
    match walk.network.grid() {
        Some(grid) => spray_on_grid(walk, grid, pick, dst, stream),
        None => spray_on_graph(walk, pick, dst, stream),
    }
}

fn spray_on_grid(walk: &mut Walk<'_>, grid: &Grid, pick: Pick, dst: NodeId, stream: &mut Stream) {
    let (mut left, dimensions) = Left::new(grid, walk.at, dst, Turn::Minimal);
    loop {
        // A box of steps has paths of all orders of its steps, equally many each way round a ring:
        // so a dimension comes next in proportion to its steps, and either way is as likely.
        let weight = |d: usize| match pick {
            Pick::ByPath => left.steps[d],
            Pick::ByHop => left.ways[d] * u32::from(left.steps[d] > 0),
        };
        let all: u32 = (0..dimensions).map(weight).sum();
        if all == 0 {
            return;
        }
        let mut drawn = if all == 1 { 0 } else { stream.below(u64::from(all)) as u32 };
        let mut dimension = 0;
        while drawn >= weight(dimension) {
            drawn -= weight(dimension);
            dimension += 1;
        }
        if left.ways[dimension] == 2 {
            // `drawn` is below 2 and says which way, if ports are equally likely.
            let down = if pick == Pick::ByHop { drawn == 1 } else { stream.below(2) == 1 };
            left.senses[dimension] = if down { Sense::Down } else { Sense::Up };
            left.ways[dimension] = 1;
        }
        walk.step(grid, dimension, left.senses[dimension]);
        left.steps[dimension] -= 1;
    }
}

fn spray_on_graph(walk: &mut Walk<'_>, pick: Pick, dst: NodeId, stream: &mut Stream) {
    let network = walk.network;
    let topology = network.topology();
    let toward = network.ways().toward(dst);
    let target = topology.host(dst);
    while walk.at != target {
        let ports = || toward.ports(topology, |port| network.lives(port), walk.at);
        let port = match pick {
            Pick::ByHop => {
                let drawn = stream.below(ports().count() as u64);
                { ports() }.nth(drawn as usize)
            }
            Pick::ByPath => {
                let mut drawn = stream.unit() * toward.count(walk.at);
                // What rounding leaves over falls to the last.
                let last = ports().last();
                let found = ports().find(|&port| {
                    drawn -= toward.count(topology.port(port).peer);
                    drawn < 0.0
                });
                found.or(last)
            }
        };
        let port = port.expect("a vertex with a path has a port on it");
        let first = topology.ports_of(walk.at).next().expect("a vertex with a port has a first");
        walk.draft.push((port.get() - first.get()) as u8);
        walk.at = topology.port(port).peer;
    }
}

/// One dimension after the other.
pub(super) fn dimension_order(walk: &mut Walk<'_>, turn: Turn, dst: NodeId, stream: &mut Stream) {
    let grid = walk.grid();
    let start = NodeId::new(walk.at.get());
    for (dimension, (axis, from, to)) in places(grid, start, dst).enumerate() {
        let (steps, sense) = choose(axis.choices(from, to, turn), stream);
        for _ in 0..steps {
            walk.step(grid, dimension, sense);
        }
    }
}

/// A way along each dimension, a random node in the box that they span, and on each leg one
/// dimension after the other in random order.
pub(super) fn over_random_node(walk: &mut Walk<'_>, turn: Turn, dst: NodeId, stream: &mut Stream) {
    let grid = walk.grid();
    let start = NodeId::new(walk.at.get());
    let dimensions = grid.axes().len();
    let mut legs = [[0; DIMENSIONS_MAX]; 2];
    let mut senses = [Sense::Up; DIMENSIONS_MAX];
    for (dimension, (axis, from, to)) in places(grid, start, dst).enumerate() {
        let (steps, sense) = choose(axis.choices(from, to, turn), stream);
        let first = if steps == 0 { 0 } else { stream.below(u64::from(steps) + 1) as u32 };
        senses[dimension] = sense;
        legs[0][dimension] = first;
        legs[1][dimension] = steps - first;
    }
    let mut order: [usize; DIMENSIONS_MAX] = std::array::from_fn(|dimension| dimension);
    for leg in legs {
        stream.shuffle(&mut order[..dimensions]);
        for &dimension in &order[..dimensions] {
            for _ in 0..leg[dimension] {
                walk.step(grid, dimension, senses[dimension]);
            }
        }
    }
}

fn choose(choices: Choices, stream: &mut Stream) -> (u32, Sense) {
    let [first, second] = choices.0;
    let takes_second =
        second.weight > 0 && stream.below(u64::from(choices.total())) >= u64::from(first.weight);
    let choice = if takes_second { second } else { first };
    (choice.steps, choice.sense)
}
