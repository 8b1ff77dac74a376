//! Fig. 2's transpose where ties half-way round a ring are not taken evenly (§2.2.1).
//!
//! The rack's protocols take such ties evenly, in closed forms. Here loads are counted by walking
//! every way, one by one, which comes to the same figures where ties are even.

/// Nodes along each dimension.
const SIDE: usize = 8;

/// Protocols over a random node of the box that the ways along both dimensions span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Over {
    /// The shorter way along each (ROMM).
    Shortest,
    /// Either way, in proportion to the length of the other (weighted load balancing).
    Weighted,
}

/// A way along a dimension.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// What a step adds to the coordinate, round the ring.
    step: usize,
    steps: usize,
    probability: f64,
}

/// By node: what its links carry, up and down along the first dimension, and along the second.
type Loads = [[[f64; 4]; SIDE]; SIDE];

/// The ways over so many steps up. Half-way round, both or the one up alone.
fn ways(over: Over, up: usize, is_up: bool) -> Vec<Way> {
    let down = SIDE - up;
    let share = match over {
        _ if up == 0 => 1.0,
        _ if up == down => {
            if is_up {
                1.0
            } else {
                0.5
            }
        }
        Over::Shortest => f64::from(u8::from(up < down)),
        Over::Weighted => down as f64 / SIDE as f64,
    };
    let both = [
        Way { step: 1, steps: up, probability: share },
        Way { step: SIDE - 1, steps: down, probability: 1.0 - share },
    ];
    both.into_iter().filter(|way| way.probability > 0.0).collect()
}

/// Walks so many steps along each dimension, the dimension `first` first.
fn walk(
    loads: &mut Loads,
    at: &mut [usize; 2],
    ways: [Way; 2],
    steps: [usize; 2],
    first: usize,
    part: f64,
) {
    for dimension in [first, 1 - first] {
        let way = ways[dimension];
        for _ in 0..steps[dimension] {
            loads[at[0]][at[1]][2 * dimension + usize::from(way.step == 1)] += part;
            at[dimension] = (at[dimension] + way.step) % SIDE;
        }
    }
}

/// Adds a node's traffic to its ways over all nodes of a box.
fn across(loads: &mut Loads, source: [usize; 2], ways: [Way; 2]) {
    let [along, beside] = ways;
    let nodes = ((along.steps + 1) * (beside.steps + 1)) as f64;
    // Four orders of the dimensions, two on each leg.
    let part = along.probability * beside.probability / nodes / 4.0;
    let middles = (0..=along.steps).flat_map(|x| (0..=beside.steps).map(move |y| [x, y]));
    for middle in middles {
        let rest = [along.steps - middle[0], beside.steps - middle[1]];
        for [first, second] in [[0, 0], [0, 1], [1, 0], [1, 1]] {
            let mut at = source;
            walk(loads, &mut at, ways, middle, first, part);
            walk(loads, &mut at, ways, rest, second, part);
        }
    }
}

/// Throughput under the transpose of an 8 x 8 torus, in parts of the capacity, which is one. Ties go
/// up alone in the dimensions that say so.
pub(super) fn transposed(over: Over, is_up: [bool; 2]) -> f64 {
    let mut loads = Loads::default();
    for (x, y) in (0..SIDE).flat_map(|x| (0..SIDE).map(move |y| (x, y))) {
        let to = |from: usize, to: usize| (SIDE + to - from) % SIDE;
        for along in ways(over, to(x, y), is_up[0]) {
            for beside in ways(over, to(y, x), is_up[1]) {
                across(&mut loads, [x, y], [along, beside]);
            }
        }
    }
    1.0 / loads.as_flattened().as_flattened().iter().copied().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use r2c2::routing::{Network, Protocol, Shares};
    use r2c2::throughput::{Pattern, throughput};
    use rack::topology::Shape;

    #[test]
    fn with_even_ties_walking_comes_to_what_the_closed_forms_do() {
        let square = Shape::Torus(super::super::capacity::square());
        let network = Network::new(&square).unwrap();
        for (over, protocol) in
            [(Over::Shortest, Protocol::Romm), (Over::Weighted, Protocol::Weighted)]
        {
            let shares = Shares::new(&network, protocol).unwrap();
            let expected = throughput(&shares, Pattern::Transpose).unwrap();
            let ours = transposed(over, [false, false]);
            assert!((ours - expected).abs() < 1e-9, "{over:?}: {ours}, closed form {expected}");
        }
    }
}
