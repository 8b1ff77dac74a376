//! The traffic patterns of Fig. 2.
//!
//! Models: R2C2 §2.2.1 names five patterns (claim A9); their definitions are those of Dally and
//! Towles, §3.2, for a square torus, carried over to other grids where that makes sense.

use rack::topology::Vertex;
use rack::{NodeId, Problem};

use crate::routing::{Axis, Direction, Grid, Sense};

/// A traffic pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Each node to its neighbours, evenly.
    NearestNeighbour,
    /// Each node to all nodes, itself among them, evenly.
    Uniform,
    /// In each dimension of k nodes, from x to k - 1 - x.
    BitComplement,
    /// The coordinates in reverse order: from (x, y) to (y, x).
    Transpose,
    /// Along the first dimension almost half-way round: from x to x + ⌈k / 2⌉ - 1.
    Tornado,
}

impl Pattern {
    /// All patterns, as Fig. 2 lists them.
    pub const ALL: [Self; 5] = [
        Self::NearestNeighbour,
        Self::Uniform,
        Self::BitComplement,
        Self::Transpose,
        Self::Tornado,
    ];

    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NearestNeighbour => "nearest neighbour",
            Self::Uniform => "uniform",
            Self::BitComplement => "bit complement",
            Self::Transpose => "transpose",
            Self::Tornado => "tornado",
        }
    }

    /// Who sends to whom on a grid.
    ///
    /// # Errors
    /// If dimensions of different lengths cannot be transposed.
    pub fn traffic(self, grid: &Grid) -> Result<Traffic, Problem> {
        let nodes = grid.nodes();
        let lengths: Vec<u32> = grid.axes().iter().map(|axis| axis.length()).collect();
        let moved = |change: &dyn Fn(&[u16]) -> Vec<u16>| {
            let to = |node| grid.node(&change(grid.place(Vertex::new(node))));
            Traffic::of_map(&(0..nodes).map(to).collect::<Vec<_>>())
        };
        Ok(match self {
            Self::NearestNeighbour => {
                Traffic::evenly((0..nodes).map(|node| neighbours(grid, node)))
            }
            Self::Uniform => {
                let all = || (0..nodes).map(NodeId::new).collect();
                Traffic::evenly((0..nodes).map(|_| all()))
            }
            Self::BitComplement => moved(&|place| {
                let ends = place.iter().zip(&lengths);
                ends.map(|(&at, &length)| length as u16 - 1 - at).collect()
            }),
            Self::Transpose => {
                if !lengths.iter().eq(lengths.iter().rev()) {
                    let message = format!(
                        "transpose in a grid of {lengths:?}; expected the same lengths forwards and \
                         backwards"
                    );
                    return Err(Problem::new("topology", message));
                }
                moved(&|place| place.iter().rev().copied().collect())
            }
            Self::Tornado => moved(&|place| {
                let (mut place, length) = (place.to_vec(), lengths[0]);
                place[0] = ((u32::from(place[0]) + length.div_ceil(2) - 1) % length) as u16;
                place
            }),
        })
    }
}

/// The nodes one step away.
fn neighbours(grid: &Grid, node: u32) -> Vec<NodeId> {
    let node = Vertex::new(node);
    let mut neighbours = Vec::new();
    for (dimension, (axis, &at)) in grid.axes().iter().zip(grid.place(node)).enumerate() {
        let has = |sense| match (axis, sense) {
            (Axis::Ring(length), Sense::Down) => *length > 2,
            (Axis::Ring(_), Sense::Up) => true,
            (Axis::Row(_), Sense::Down) => at > 0,
            (Axis::Row(length), Sense::Up) => u32::from(at) + 1 < *length,
        };
        let senses = [Sense::Up, Sense::Down].into_iter().filter(|&sense| has(sense));
        let step = |sense| grid.step(node, Direction::new(dimension, sense)).to;
        neighbours.extend(senses.map(|sense| NodeId::new(step(sense).get())));
    }
    neighbours
}

/// What part of its traffic each node sends to which nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct Traffic(Vec<Vec<(NodeId, f64)>>);

impl Traffic {
    /// Each node to one.
    #[must_use]
    pub fn of_map(destinations: &[NodeId]) -> Self {
        Self(destinations.iter().map(|&to| vec![(to, 1.0)]).collect())
    }

    /// Each node to several: what part of what it sends goes to whom.
    #[must_use]
    pub fn of_rows(rows: Vec<Vec<(NodeId, f64)>>) -> Self {
        Self(rows)
    }

    /// Each node to several, evenly.
    fn evenly(destinations: impl Iterator<Item = Vec<NodeId>>) -> Self {
        let parts = |to: Vec<NodeId>| {
            let part = 1.0 / to.len() as f64;
            to.into_iter().map(|node| (node, part)).collect()
        };
        Self(destinations.map(parts).collect())
    }

    /// How many nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.0.len() as u32
    }

    /// Who sends to whom, and which part of what it sends.
    pub fn pairs(&self) -> impl Iterator<Item = (NodeId, NodeId, f64)> + '_ {
        let rows = (0..).map(NodeId::new).zip(&self.0);
        rows.flat_map(|(src, row)| row.iter().map(move |&(dst, part)| (src, dst, part)))
    }

    /// What each node sends and receives in all.
    pub fn sums(&self) -> impl Iterator<Item = (NodeId, [f64; 2])> {
        let mut sums = vec![[0.0; 2]; self.0.len()];
        for (src, dst, part) in self.pairs() {
            sums[src.index()][0] += part;
            sums[dst.index()][1] += part;
        }
        (0..).map(NodeId::new).zip(sums)
    }
}
