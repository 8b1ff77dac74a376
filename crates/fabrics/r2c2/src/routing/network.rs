//! What routing knows of the rack: its graph, its grid if it is one, and which links live.
//!
//! Models: R2C2 §3.2: any topology with few links a node, of which links and nodes may fail. A grid
//! of which something failed is a graph like any other: protocols that speak of dimensions need it
//! whole.

use std::sync::Arc;

use rack::topology::{PortId, Shape, Topology, Vertex};
use rack::{NodeId, Problem};

use super::grid::{Axis, Grid};
use super::ways::Ways;
use super::{Protocol, grid};

/// A rack's network as routing sees it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Network(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    topology: Arc<Topology>,
    grid: Option<Grid>,
    /// Whether a packet can leave by each port.
    living: Arc<[bool]>,
    ways: Ways,
}

impl Network {
    /// The network of a topology's shape.
    ///
    /// # Errors
    /// As [`Shape::build`].
    pub fn new(shape: &Shape) -> Result<Self, Vec<Problem>> {
        let topology = shape.build()?;
        let axes: Option<Vec<Axis>> = match shape {
            Shape::Torus(torus) => Some(torus.dimensions.iter().map(|&k| Axis::Ring(k)).collect()),
            // A row of two is a ring of two: one link either way.
            Shape::Mesh(mesh) => {
                let axis = |&k: &u32| if k == 2 { Axis::Ring(k) } else { Axis::Row(k) };
                Some(mesh.dimensions.iter().map(axis).collect())
            }
            _ => None,
        };
        let grid = axes.map(|axes| Grid::new(&topology, &axes));
        let living = vec![true; topology.ports().len()];
        Ok(Self::assemble(Arc::new(topology), grid, living))
    }

    /// The network of any graph.
    #[must_use]
    pub fn of_graph(topology: Topology) -> Self {
        let living = vec![true; topology.ports().len()];
        Self::assemble(Arc::new(topology), None, living)
    }

    /// The same network without these links, each named by either of its ends, and without these
    /// vertices: a graph without grid, parts of which may be cut off.
    #[must_use]
    pub fn without(&self, links: &[PortId], vertices: &[Vertex]) -> Self {
        let mut living = self.0.living.to_vec();
        let topology = Arc::clone(&self.0.topology);
        let ports = links.iter().copied();
        for port in ports.chain(vertices.iter().flat_map(|&vertex| topology.ports_of(vertex))) {
            living[port.index()] = false;
            living[topology.port(port).reverse.index()] = false;
        }
        Self::assemble(topology, None, living)
    }

    fn assemble(topology: Arc<Topology>, grid: Option<Grid>, living: Vec<bool>) -> Self {
        let living: Arc<[bool]> = living.into();
        let ways = Ways::new(Arc::clone(&topology), Arc::clone(&living));
        Self(Arc::new(Inner { topology, grid, living, ways }))
    }

    /// The graph, with what failed still in it.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.0.topology
    }

    /// The grid, if the network is a whole torus or mesh.
    #[must_use]
    pub fn grid(&self) -> Option<&Grid> {
        self.0.grid.as_ref()
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.0.topology.hosts()
    }

    /// Whether a packet can leave by this port.
    #[must_use]
    pub fn lives(&self, port: PortId) -> bool {
        self.0.living[port.index()]
    }

    /// Links on a shortest path from one node to another; `None` if no path leads there.
    #[must_use]
    pub fn distance(&self, src: NodeId, dst: NodeId) -> Option<u32> {
        match &self.0.grid {
            None => self.0.ways.distance(self.0.topology.host(src), dst),
            Some(grid) => {
                let ways = places(grid, src, dst);
                Some(ways.map(|(axis, from, to)| axis.distance(from, to)).sum())
            }
        }
    }

    /// How many shortest paths lead from one node to another (§2.2.1). Exact up to 2⁵³.
    #[must_use]
    pub fn path_count(&self, src: NodeId, dst: NodeId) -> f64 {
        match &self.0.grid {
            Some(grid) if grid.is_torus() => {
                let from = grid.offset(dst, src);
                self.0.ways.count(self.0.topology.host(from), NodeId::new(0))
            }
            _ => self.0.ways.count(self.0.topology.host(src), dst),
        }
    }

    /// The distances and counts of paths.
    pub(super) fn ways(&self) -> &Ways {
        &self.0.ways
    }

    /// The grid that a protocol needs.
    ///
    /// # Errors
    /// If the protocol speaks of dimensions and there are none.
    pub(super) fn suits(&self, protocol: Protocol) -> Result<(), Problem> {
        if !protocol.needs_grid() || self.0.grid.is_some() {
            return Ok(());
        }
        let message = format!(
            "{} works on a torus or mesh of which nothing failed; expected {}, {} or {} here",
            protocol.name(),
            Protocol::Rps.name(),
            Protocol::RpsByHop.name(),
            Protocol::Valiant.name(),
        );
        Err(Problem::new("protocol", message))
    }
}

/// The coordinates of two nodes, axis by axis.
pub(super) fn places(
    grid: &Grid,
    src: NodeId,
    dst: NodeId,
) -> impl Iterator<Item = (grid::Axis, u32, u32)> + '_ {
    let from = grid.place(Vertex::new(src.get()));
    let to = grid.place(Vertex::new(dst.get()));
    let pairs = grid.axes().iter().zip(from.iter().zip(to));
    pairs.map(|(&axis, (&from, &to))| (axis, u32::from(from), u32::from(to)))
}
