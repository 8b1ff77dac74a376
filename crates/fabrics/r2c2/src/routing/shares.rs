//! How often a packet crosses each link on average: a flow's weights on links.
//!
//! Models: R2C2 §3.3.1, §4.2 (claims M16, M25). On a torus one table serves all sources; elsewhere
//! shares are computed for each pair that is asked for, in a time that does not depend on the
//! number of paths. Valiant's routing touches every link, but as the sum of a leg that depends on
//! the source alone and one that depends on the destination alone: ask for [`Shares::legs`].

use rack::topology::PortId;
use rack::{NodeId, Problem};

use super::grid::{Grid, Turn};
use super::spray::Pick;
use super::translate::Table;
use super::{Network, Protocol, Scratch, boxes, spray};

/// The shares of one protocol on one network.
#[derive(Clone, Debug)]
pub struct Shares {
    network: Network,
    protocol: Protocol,
    /// On a torus, unless it would be too large: by the place of the destination as seen from the
    /// source; for Valiant's routing a single row, of what leaves node 0.
    table: Option<Table>,
}

impl Shares {
    /// The shares of `protocol` on `network`.
    ///
    /// # Errors
    /// If the protocol speaks of dimensions and the network is no whole torus or mesh.
    pub fn new(network: &Network, protocol: Protocol) -> Result<Self, Problem> {
        network.suits(protocol)?;
        let mut shares = Self { network: network.clone(), protocol, table: None };
        if let Some(grid) = network.grid().filter(|grid| grid.is_torus()) {
            shares.table = if protocol == Protocol::Valiant {
                let outbound =
                    |node, scratch: &mut Scratch| spray::outbound(network, node, scratch);
                Table::new(grid, 1, network, outbound)
            } else {
                let row = |node, scratch: &mut Scratch| shares.seen_from_first(grid, node, scratch);
                Table::new(grid, grid.nodes(), network, row)
            };
        }
        Ok(shares)
    }

    /// The network.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Bytes that are kept for all pairs together; shares that are computed take none.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, Table::bytes)
    }

    /// The links that a packet from `src` to `dst` may cross and how often it does on average, by
    /// port. None if source and destination are the same or no path joins them.
    pub fn of<'a>(
        &self,
        src: NodeId,
        dst: NodeId,
        scratch: &'a mut Scratch,
    ) -> &'a [(PortId, f64)] {
        self.unordered(src, dst, scratch);
        scratch.pairs.sort_unstable_by_key(|&(port, _)| port);
        &scratch.pairs
    }

    /// As [`Shares::of`], faster, in an order that depends on source and destination alone.
    pub fn unordered<'a>(
        &self,
        src: NodeId,
        dst: NodeId,
        scratch: &'a mut Scratch,
    ) -> &'a [(PortId, f64)] {
        if src == dst {
            scratch.pairs.clear();
        } else if let Some(legs) = self.legs() {
            legs.both(src, dst, scratch);
        } else if let (Some(table), Some(grid)) = (&self.table, self.network.grid()) {
            let row = grid.offset(src, dst).index();
            scratch.pairs.clear();
            scratch.pairs.extend(table.row(grid, row, src));
        } else {
            self.compute(src, dst, scratch);
            scratch.answer();
        }
        &scratch.pairs
    }

    /// The two legs of Valiant's routing; `None` for any other protocol.
    #[must_use]
    pub fn legs(&self) -> Option<Legs<'_>> {
        (self.protocol == Protocol::Valiant).then_some(Legs(self))
    }

    /// Adds the shares from node 0, on a torus.
    fn seen_from_first(&self, grid: &Grid, dst: NodeId, scratch: &mut Scratch) {
        let first = NodeId::new(0);
        let Some(pick) = self.pick() else { return self.compute(first, dst, scratch) };
        // Shortest paths are known to node 0: take the pair that ends there, and move it.
        let src = grid.offset(dst, first);
        spray::pair(&self.network, pick, src, first, scratch);
        scratch.answer();
        for (port, share) in std::mem::take(&mut scratch.pairs) {
            let vertex = NodeId::new(self.network.topology().port(port).vertex.get());
            let moved = self.network.topology().host(grid.offset(src, vertex));
            scratch.add(grid.step(moved, grid.direction(port)).port, share);
        }
    }

    fn pick(&self) -> Option<Pick> {
        match self.protocol {
            Protocol::Rps => Some(Pick::ByPath),
            Protocol::RpsByHop => Some(Pick::ByHop),
            _ => None,
        }
    }

    /// Adds the shares of any protocol but Valiant's, without the table.
    fn compute(&self, src: NodeId, dst: NodeId, scratch: &mut Scratch) {
        let network = &self.network;
        match self.protocol {
            Protocol::Rps => spray::pair(network, Pick::ByPath, src, dst, scratch),
            Protocol::RpsByHop => spray::pair(network, Pick::ByHop, src, dst, scratch),
            Protocol::DimensionOrder => {
                boxes::dimension_order(network, Turn::Minimal, src, dst, scratch);
            }
            Protocol::DimensionOrderUp => {
                boxes::dimension_order(network, Turn::MinimalUp, src, dst, scratch);
            }
            Protocol::Weighted => {
                boxes::over_random_node(network, Turn::Weighted, src, dst, scratch);
            }
            Protocol::WeightedThreshold => {
                boxes::over_random_node(network, Turn::WeightedThreshold, src, dst, scratch);
            }
            Protocol::Romm => boxes::over_random_node(network, Turn::Minimal, src, dst, scratch),
            Protocol::Valiant => unreachable!("Valiant's shares are the sum of its legs"),
        }
    }
}

/// Valiant's routing as two legs: what leaves a source depends on the source alone, what comes to a
/// destination on the destination alone.
#[derive(Clone, Copy, Debug)]
pub struct Legs<'a>(&'a Shares);

impl Legs<'_> {
    /// How often a packet of `src` crosses each link on its way to its waypoint, in an order that
    /// depends on `src` alone.
    pub fn outbound<'a>(&self, src: NodeId, scratch: &'a mut Scratch) -> &'a [(PortId, f64)] {
        if let (Some(table), Some(grid)) = (&self.0.table, self.0.network.grid()) {
            scratch.pairs.clear();
            scratch.pairs.extend(table.row(grid, 0, src));
        } else {
            spray::outbound(&self.0.network, src, scratch);
            scratch.answer();
        }
        &scratch.pairs
    }

    /// How often a packet to `dst` crosses each link on its way from its waypoint, in an order that
    /// depends on `dst` alone. It is the outbound leg of `dst` with all links turned round.
    pub fn inbound<'a>(&self, dst: NodeId, scratch: &'a mut Scratch) -> &'a [(PortId, f64)] {
        self.outbound(dst, scratch);
        for (port, _) in &mut scratch.pairs {
            *port = self.0.network.topology().port(*port).reverse;
        }
        &scratch.pairs
    }

    fn both(&self, src: NodeId, dst: NodeId, scratch: &mut Scratch) {
        if self.0.network.distance(src, dst).is_none() {
            return scratch.pairs.clear();
        }
        self.outbound(src, scratch);
        std::mem::swap(&mut scratch.pairs, &mut scratch.aside);
        self.inbound(dst, scratch);
        scratch.add_up();
    }
}
