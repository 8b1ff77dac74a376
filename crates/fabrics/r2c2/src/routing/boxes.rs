//! Shares of protocols that speak of dimensions: dimension order, ROMM, weighted load balancing.
//!
//! Models: R2C2 §2.2.1, §4.2 (claims M27, M29). A way along each dimension is chosen first, which
//! spans a box with source and destination in opposite corners. Dimension order walks along its
//! edges. The others go to a random node of the box and on to the far corner, on each leg one
//! dimension after the other in random order. What crosses a link of the box has a closed form: no
//! sum over nodes or orders.

use rack::NodeId;
use rack::topology::Vertex;

use super::grid::{Choice, DIMENSIONS_MAX, Direction, Grid, Sense, Turn};
use super::network::places;
use super::{Network, Scratch};

/// One way along each dimension.
type Ways = [Choice; DIMENSIONS_MAX];
/// One number for each dimension.
type Point = [u32; DIMENSIONS_MAX];

const NOWHERE: Choice = Choice { sense: Sense::Up, steps: 0, weight: 1 };

/// Adds the shares of dimension order from `src` to `dst`.
pub(super) fn dimension_order(
    network: &Network,
    turn: Turn,
    src: NodeId,
    dst: NodeId,
    scratch: &mut Scratch,
) {
    let grid = network.grid().expect("a protocol that speaks of dimensions was given a grid");
    let mut corner = Vertex::new(src.get());
    for (dimension, (axis, from, to)) in places(grid, src, dst).enumerate() {
        let start = corner;
        for (choice, probability) in axis.choices(from, to, turn).likely() {
            corner = start;
            for _ in 0..choice.steps {
                let step = grid.step(corner, Direction::new(dimension, choice.sense));
                scratch.add(step.port, probability);
                corner = step.to;
            }
        }
    }
}

/// Adds the shares of ROMM, or with a turn that is not minimal of weighted load balancing.
pub(super) fn over_random_node(
    network: &Network,
    turn: Turn,
    src: NodeId,
    dst: NodeId,
    scratch: &mut Scratch,
) {
    let grid = network.grid().expect("a protocol that speaks of dimensions was given a grid");
    let axes: Vec<_> =
        places(grid, src, dst).map(|(axis, from, to)| axis.choices(from, to, turn)).collect();
    let mut ways = [NOWHERE; DIMENSIONS_MAX];
    // Every combination of ways, counted in binary.
    for combination in 0..1u32 << axes.len() {
        let mut probability = 1.0;
        for (dimension, choices) in axes.iter().enumerate() {
            ways[dimension] = choices.0[(combination >> dimension & 1) as usize];
            probability *= f64::from(ways[dimension].weight) / f64::from(choices.total());
        }
        if probability > 0.0 {
            across(grid, src, &ways, probability, scratch);
        }
    }
}

/// Adds the shares of one box, times `probability`.
fn across(grid: &Grid, src: NodeId, ways: &Ways, probability: f64, scratch: &mut Scratch) {
    let dimensions = grid.axes().len();
    let mut point: Point = [0; DIMENSIONS_MAX];
    // The vertices at the current point, and at the points with the last coordinates set to zero.
    let mut corners = [Vertex::new(src.get()); DIMENSIONS_MAX + 1];
    loop {
        let vertex = corners[0];
        for dimension in 0..dimensions {
            let way = ways[dimension];
            if point[dimension] < way.steps {
                let crossings = crossings(dimensions, ways, &point, dimension);
                let step = grid.step(vertex, Direction::new(dimension, way.sense));
                scratch.add(step.port, probability * crossings);
            }
        }
        let Some(moved) = (0..dimensions).find(|&d| point[d] < ways[d].steps) else { return };
        point[..moved].fill(0);
        point[moved] += 1;
        let there = grid.step(corners[moved], Direction::new(moved, ways[moved].sense)).to;
        corners[..=moved].fill(there);
    }
}

/// How often a packet crosses the link that leads from `point` on along `dimension`.
fn crossings(dimensions: usize, ways: &Ways, point: &Point, dimension: usize) -> f64 {
    // By how many other dimensions come first: the first leg's and the second leg's probability
    // that all other coordinates are right, if it were for the chosen ones to come first.
    let mut first = [0.0; DIMENSIONS_MAX];
    let mut second = [0.0; DIMENSIONS_MAX];
    (first[0], second[0]) = (1.0, 1.0);
    let others = (0..dimensions).filter(|&other| other != dimension);
    for (count, other) in others.enumerate() {
        let steps = ways[other].steps;
        // The random node has any coordinate with the same probability.
        let random = 1.0 / f64::from(steps + 1);
        let at_source = f64::from(u8::from(point[other] == 0));
        let at_destination = f64::from(u8::from(point[other] == steps));
        multiply(&mut first[..=count + 1], at_source, random);
        multiply(&mut second[..=count + 1], random, at_destination);
    }
    let steps = f64::from(ways[dimension].steps);
    let at = f64::from(point[dimension]);
    let mut sum = 0.0;
    // The probability that a certain set of `before` dimensions comes first, in a random order:
    // before! (dimensions - 1 - before)! / dimensions!
    let mut chance = 1.0 / dimensions as f64;
    for before in 0..dimensions {
        // The first leg crosses the link if the random node lies beyond it, the second if before.
        sum +=
            chance * (first[before] * (steps - at) + second[before] * (at + 1.0)) / (steps + 1.0);
        chance *= (before + 1) as f64 / (dimensions - 1 - before).max(1) as f64;
    }
    sum
}

/// Multiplies a polynomial by `after + before x`; its last coefficient is zero so far.
fn multiply(polynomial: &mut [f64], after: f64, before: f64) {
    for power in (0..polynomial.len()).rev() {
        let lower = if power > 0 { polynomial[power - 1] } else { 0.0 };
        polynomial[power] = polynomial[power] * after + lower * before;
    }
}
