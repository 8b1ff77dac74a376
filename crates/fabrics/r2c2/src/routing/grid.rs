//! A torus or a mesh, seen along its dimensions: where a node stands, which port leads which way,
//! and which ways lead from one coordinate to another.
//!
//! Models: R2C2 §2.1's tori and meshes, and what destination tags, weighted load balancing and ROMM
//! choose along one dimension (claims M27, M29). Along a dimension of two nodes there is one link,
//! and both directions mean it.

use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};

/// Most dimensions of a grid: 65,536 nodes (§4.2), at least two along each.
pub const DIMENSIONS_MAX: usize = 16;

/// A dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axis {
    /// So many nodes in a ring.
    Ring(u32),
    /// So many nodes in a row with two ends.
    Row(u32),
}

/// Which way along a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sense {
    /// To higher coordinates, and from the highest to 0.
    Up,
    /// To lower coordinates, and from 0 to the highest.
    Down,
}

/// One dimension and one way along it: `2 * dimension`, and one more for down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Direction(u8);

impl Direction {
    /// That way along that dimension.
    #[must_use]
    pub const fn new(dimension: usize, sense: Sense) -> Self {
        Self(2 * dimension as u8 + sense as u8)
    }

    /// The index for an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a protocol may choose along a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The shorter way; of two equal ones either.
    Minimal,
    /// The shorter way; of two equal ones the one up.
    MinimalUp,
    /// Either way, the more likely the shorter: up over u of k nodes has the chance (k - u) / k.
    Weighted,
    /// The shorter way if it is less than a quarter of the ring, else weighted.
    WeightedThreshold,
}

/// One way along a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Which way.
    pub sense: Sense,
    /// How many links.
    pub steps: u32,
    /// How likely, relative to the other choice.
    pub weight: u32,
}

/// The one or two ways along a dimension; the weight of the second is 0 if there is but one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choices(pub [Choice; 2]);

impl Choices {
    /// The sum of the weights.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.0[0].weight + self.0[1].weight
    }

    /// Each choice with its probability, those that never happen left out.
    pub fn likely(&self) -> impl Iterator<Item = (Choice, f64)> + use<> {
        let total = f64::from(self.total());
        let likely = self.0.into_iter().filter(|choice| choice.weight > 0);
        likely.map(move |choice| (choice, f64::from(choice.weight) / total))
    }

    fn only(sense: Sense, steps: u32) -> Self {
        let never = Choice { sense, steps, weight: 0 };
        Self([Choice { sense, steps, weight: 1 }, never])
    }
}

impl Axis {
    /// How many nodes.
    #[must_use]
    pub const fn length(self) -> u32 {
        match self {
            Self::Ring(length) | Self::Row(length) => length,
        }
    }

    /// The ways from one coordinate to another.
    #[inline]
    #[must_use]
    pub fn choices(self, from: u32, to: u32, turn: Turn) -> Choices {
        let length = match self {
            Self::Ring(length) if length > 2 => length,
            // A row, or a ring of two: there is one way, and in the ring of two it goes up.
            Self::Row(_) if to < from => return Choices::only(Sense::Down, from - to),
            _ => return Choices::only(Sense::Up, to.abs_diff(from)),
        };
        let up = if to >= from { to - from } else { to + length - from };
        let down = length - up;
        let weighted = match turn {
            Turn::Minimal | Turn::MinimalUp => false,
            Turn::Weighted => up > 0,
            Turn::WeightedThreshold => 4 * up.min(down) >= length,
        };
        let (weight_up, weight_down) = match up.cmp(&down) {
            _ if weighted => (down, up),
            std::cmp::Ordering::Less => return Choices::only(Sense::Up, up),
            std::cmp::Ordering::Greater => return Choices::only(Sense::Down, down),
            std::cmp::Ordering::Equal if turn == Turn::MinimalUp => {
                return Choices::only(Sense::Up, up);
            }
            std::cmp::Ordering::Equal => (1, 1),
        };
        Choices([
            Choice { sense: Sense::Up, steps: up, weight: weight_up },
            Choice { sense: Sense::Down, steps: down, weight: weight_down },
        ])
    }

    /// Links on the shortest way from one coordinate to another.
    #[must_use]
    pub fn distance(self, from: u32, to: u32) -> u32 {
        let apart = from.abs_diff(to);
        match self {
            Self::Ring(length) => apart.min(length - apart),
            Self::Row(_) => apart,
        }
    }

    /// The most links that a protocol takes along this dimension.
    #[must_use]
    pub fn steps_max(self, turn: Turn) -> u32 {
        let choices = (0..self.length()).flat_map(|to| {
            let last = self.choices(self.length() - 1, to, turn);
            self.choices(0, to, turn).likely().chain(last.likely())
        });
        choices.map(|(choice, _)| choice.steps).max().unwrap_or(0)
    }
}

/// Where a direction leads from a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The node at the other end.
    pub to: Vertex,
    /// The port out of this one.
    pub port: PortId,
    /// The same port, counted among those of its node.
    pub index: u8,
}

/// A torus or a mesh.
#[derive(Clone, Debug)]
pub struct Grid {
    axes: Vec<Axis>,
    /// Coordinates of each node, dimension by dimension.
    places: Vec<u16>,
    /// By node and direction; of a row's ends only what exists means something.
    steps: Vec<Step>,
    /// The direction of each port.
    directions: Vec<Direction>,
}

impl Grid {
    /// The grid of a topology that was built of these axes, the first varying fastest.
    ///
    /// # Panics
    /// If the topology is no such grid.
    #[must_use]
    pub(super) fn new(topology: &Topology, axes: &[Axis]) -> Self {
        let nodes = topology.hosts();
        let lengths: Vec<u32> = axes.iter().map(|axis| axis.length()).collect();
        assert_eq!(lengths.iter().product::<u32>(), nodes, "a grid of {lengths:?}");
        assert!(axes.len() <= DIMENSIONS_MAX, "{} dimensions", axes.len());
        let none = Step { to: Vertex::new(0), port: PortId::new(0), index: 0 };
        let mut grid = Self {
            axes: axes.to_vec(),
            places: Vec::with_capacity(nodes as usize * axes.len()),
            steps: vec![none; nodes as usize * 2 * axes.len()],
            directions: vec![Direction(0); topology.ports().len()],
        };
        for node in 0..nodes {
            let mut stride = 1;
            for (dimension, &axis) in axes.iter().enumerate() {
                let place = node / stride % axis.length();
                grid.places.push(place as u16);
                for sense in [Sense::Down, Sense::Up] {
                    let Some(there) = neighbour(axis, place, sense) else { continue };
                    let to = Vertex::new(node - place * stride + there * stride);
                    grid.join(topology, Vertex::new(node), to, Direction::new(dimension, sense));
                }
                stride *= axis.length();
            }
        }
        grid
    }

    fn join(&mut self, topology: &Topology, from: Vertex, to: Vertex, direction: Direction) {
        let found =
            topology.ports_of(from).zip(0..).find(|&(port, _)| topology.port(port).peer == to);
        let (port, index) = found.expect("neighbours of a grid share a link");
        self.steps[from.index() * 2 * self.axes.len() + direction.index()] =
            Step { to, port, index };
        self.directions[port.index()] = direction;
    }

    /// The dimensions.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// How many nodes.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        (self.places.len() / self.axes.len()) as u32
    }

    /// Whether the grid looks the same from every node: no dimension has ends.
    #[must_use]
    pub fn is_torus(&self) -> bool {
        self.axes.iter().all(|axis| matches!(axis, Axis::Ring(_)))
    }

    /// The coordinates of a node.
    #[must_use]
    pub fn place(&self, node: Vertex) -> &[u16] {
        &self.places[node.index() * self.axes.len()..][..self.axes.len()]
    }

    /// The node at these coordinates.
    #[must_use]
    pub fn node(&self, place: &[u16]) -> NodeId {
        let numbers = place.iter().zip(&self.axes).rev();
        NodeId::new(numbers.fold(0, |node, (&at, axis)| node * axis.length() + u32::from(at)))
    }

    /// Where `node` stands if `origin` is moved to node 0. Only a torus can be moved so.
    #[must_use]
    pub fn offset(&self, origin: NodeId, node: NodeId) -> NodeId {
        let places = self.place(Vertex::new(origin.get())).iter();
        let places = places.zip(self.place(Vertex::new(node.get()))).zip(&self.axes).rev();
        NodeId::new(places.fold(0, |offset, ((&from, &to), axis)| {
            let length = axis.length();
            offset * length + (u32::from(to) + length - u32::from(from)) % length
        }))
    }

    /// Where a direction leads from a node. Meaningless beyond the end of a row.
    #[inline]
    #[must_use]
    pub fn step(&self, from: Vertex, direction: Direction) -> Step {
        self.steps[from.index() * 2 * self.axes.len() + direction.index()]
    }

    /// The direction of a port; up, if in a ring of two it has both.
    #[must_use]
    pub fn direction(&self, port: PortId) -> Direction {
        self.directions[port.index()]
    }
}

/// The coordinate one step from `place`.
fn neighbour(axis: Axis, place: u32, sense: Sense) -> Option<u32> {
    let length = axis.length();
    match (axis, sense) {
        (Axis::Ring(_), Sense::Up) => Some((place + 1) % length),
        (Axis::Ring(_), Sense::Down) => Some((place + length - 1) % length),
        (Axis::Row(_), Sense::Up) => (place + 1 < length).then_some(place + 1),
        (Axis::Row(_), Sense::Down) => place.checked_sub(1),
    }
}
