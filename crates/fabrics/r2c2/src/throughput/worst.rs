//! The permutation that loads a link the most.
//!
//! Models: R2C2 Fig. 2's worst case (claims A9, X01), by Towles and Dally's method ("Worst-case
//! traffic for oblivious routing functions", SPAA 2002): for one link, the worst permutation is the
//! matching of sources and destinations of the greatest weight, a pair's weight being its share of
//! the link. On a torus the links of one node stand for all.

use pathfinding::prelude::{Matrix, kuhn_munkres};
use rack::NodeId;
use rack::topology::{PortId, Vertex};

use crate::routing::{Scratch, Shares};

/// Parts of a share in the whole numbers that are matched: 2⁴⁰. Rounding shifts the sum of 4,096
/// shares by less than 10⁻⁸, and the sums of all shares fit 64 bits.
const PARTS: f64 = (1u64 << 40) as f64;

/// The worst that a permutation can do.
#[derive(Clone, PartialEq, Debug)]
pub struct WorstCase {
    /// The link that it loads.
    pub port: PortId,
    /// The load of that link, if every node sends at rate 1.
    pub load: f64,
    /// Where each node sends to.
    pub destinations: Vec<NodeId>,
}

/// The worst permutation for a protocol on its network. Of links with the same load it takes the
/// first.
#[must_use]
pub fn worst_case(shares: &Shares) -> WorstCase {
    let topology = shares.network().topology();
    let torus = shares.network().grid().is_some_and(|grid| grid.is_torus());
    let ports: Vec<PortId> = if torus {
        topology.ports_of(Vertex::new(0)).collect()
    } else {
        (0..topology.ports().len() as u32).map(PortId::new).collect()
    };
    let nodes = shares.network().nodes() as usize;
    let cases = ports.into_iter().map(|port| {
        let weights = weights(shares, port);
        let rounded = weights.iter().map(|&share| (share * PARTS).round() as i64).collect();
        let matrix = Matrix::from_vec(nodes, nodes, rounded).expect("a row for each node");
        let (_, destinations) = kuhn_munkres(&matrix);
        let each = destinations.iter().enumerate().map(|(src, &dst)| weights[src * nodes + dst]);
        let load = each.sum();
        let destinations = destinations.iter().map(|&dst| NodeId::new(dst as u32)).collect();
        WorstCase { port, load, destinations }
    });
    let worse =
        |worst: WorstCase, case: WorstCase| if case.load > worst.load { case } else { worst };
    cases.reduce(worse).expect("a network has links")
}

/// How often a packet crosses a link, by source and destination.
fn weights(shares: &Shares, port: PortId) -> Vec<f64> {
    let mut scratch = Scratch::new(shares.network());
    let nodes = || (0..shares.network().nodes()).map(NodeId::new);
    let share = |pairs: &[(PortId, f64)]| {
        pairs.iter().find(|pair| pair.0 == port).map_or(0.0, |pair| pair.1)
    };
    let mut weights = Vec::with_capacity(nodes().len() * nodes().len());
    if let Some(legs) = shares.legs() {
        let out: Vec<f64> = nodes().map(|src| share(legs.outbound(src, &mut scratch))).collect();
        let into: Vec<f64> = nodes().map(|dst| share(legs.inbound(dst, &mut scratch))).collect();
        weights.extend(out.iter().flat_map(|out| into.iter().map(move |into| out + into)));
    } else {
        for src in nodes() {
            weights.extend(nodes().map(|dst| share(shares.unordered(src, dst, &mut scratch))));
        }
    }
    weights
}
