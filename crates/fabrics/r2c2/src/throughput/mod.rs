//! What a routing protocol can carry: loads of links under traffic patterns, and the worst of all
//! permutations.
//!
//! Models: R2C2 §2.2.1, Fig. 2 (claims A9, X01, I24), after Dally and Towles, "Principles and
//! Practices of Interconnection Networks", §3.3: if every node sends at rate 1, the busiest link has
//! some load; the throughput is what nodes can send so that it has load 1, here in parts of the
//! capacity, which is what uniform traffic could get at best. Leaves out queues: it is what a fluid
//! would do.
//!
//! What a node sends to itself takes no link under most protocols, but under Valiant's goes over a
//! waypoint like all else, as the textbooks count it: its throughput is the same for every pattern.

mod patterns;
mod worst;

use rack::Problem;
use rack::topology::PortId;

use crate::routing::{Axis, Grid, Scratch, Shares};

pub use patterns::{Pattern, Traffic};
pub use worst::{WorstCase, worst_case};

/// What each link carries, by port, if every node sends at rate 1.
///
/// # Panics
/// If the traffic is for another number of nodes.
#[must_use]
pub fn loads(shares: &Shares, traffic: &Traffic) -> Vec<f64> {
    let network = shares.network();
    assert_eq!(traffic.nodes(), network.nodes(), "traffic for another number of nodes");
    let mut scratch = Scratch::new(network);
    let mut loads = vec![0.0; network.topology().ports().len()];
    let mut add = |pairs: &[(PortId, f64)], part: f64| {
        pairs.iter().for_each(|&(port, share)| loads[port.index()] += part * share);
    };
    let Some(legs) = shares.legs() else {
        for (src, dst, part) in traffic.pairs() {
            add(shares.unordered(src, dst, &mut scratch), part);
        }
        return loads;
    };
    // The first legs depend on what a node sends alone, the second on what it receives.
    for (node, [sent, received]) in traffic.sums() {
        add(legs.outbound(node, &mut scratch), sent);
        add(legs.inbound(node, &mut scratch), received);
    }
    loads
}

/// The most that any link carries.
#[must_use]
pub fn load_max(loads: &[f64]) -> f64 {
    loads.iter().copied().fold(0.0, f64::max)
}

/// What nodes can send under uniform traffic at best, in parts of a link's rate: no way of routing
/// gets more across the middle of the dimension that is tightest.
///
/// ```
/// use r2c2::routing::Network;
/// use r2c2::throughput::capacity;
/// use rack::topology::{Shape, Torus};
/// let torus = Torus { dimensions: vec![8, 8], ..Torus::default() };
/// let network = Network::new(&Shape::Torus(torus)).unwrap();
/// assert_eq!(capacity(network.grid().unwrap()), 1.0); // 8 / k for a torus of k x k nodes
/// ```
#[must_use]
pub fn capacity(grid: &Grid) -> f64 {
    let load = |axis: &Axis| {
        // Of a row of k nodes, those on one side send to those on the other.
        let length = axis.length();
        let across = f64::from(length / 2 * length.div_ceil(2)) / f64::from(length);
        match axis {
            // Two links lead across, one at each end.
            Axis::Ring(3..) => ring_load(length),
            _ => across,
        }
    };
    1.0 / grid.axes().iter().map(load).fold(0.0, f64::max)
}

/// The mean load of a ring's links if each of `length` nodes sends to all, the shorter way: the mean
/// distance, over the two links that each node has.
fn ring_load(length: u32) -> f64 {
    let distances: u32 = (0..length).map(|to| to.min(length - to)).sum();
    f64::from(distances) / f64::from(2 * length)
}

/// The throughput of a protocol under a pattern, in parts of the capacity (Fig. 2).
///
/// # Errors
/// If the network is no torus or mesh, or the pattern does not fit it.
pub fn throughput(shares: &Shares, pattern: Pattern) -> Result<f64, Problem> {
    let grid = grid_of(shares)?;
    let traffic = pattern.traffic(grid)?;
    Ok(1.0 / load_max(&loads(shares, &traffic)) / capacity(grid))
}

/// The throughput of a protocol under the permutation that is worst for it, in parts of the capacity
/// (Fig. 2).
///
/// # Errors
/// If the network is no torus or mesh.
pub fn throughput_min(shares: &Shares) -> Result<f64, Problem> {
    let grid = grid_of(shares)?;
    Ok(1.0 / worst_case(shares).load / capacity(grid))
}

fn grid_of(shares: &Shares) -> Result<&Grid, Problem> {
    let missing = || {
        let message = "throughput in parts of capacity is for a torus or mesh of which nothing \
                       failed; expected one, or ask for loads";
        Problem::new("topology", message)
    };
    shares.network().grid().ok_or_else(missing)
}

#[cfg(test)]
mod tests;
