//! Max-min fair rates of flows that may take any paths, in any proportions: what the fairness that
//! R2C2 computes is measured against.
//!
//! Models: the general form of max-min fairness that R2C2 §3.3 and Fig. 4(b) speak of, as a
//! multi-commodity flow: for each flow and link a variable, at each vertex what comes in goes out.
//! For small networks: thousands of variables take minutes.

use microlp::ComparisonOp;
use rack::NodeId;
use rack::topology::{PortId, Topology, Vertex};

use super::programme::{Programme, Share};
use super::terms::Terms;

/// The fair rates, in bit/s, of flows between these nodes on these terms, over links of these
/// capacities (see [`super::capacities`]).
///
/// # Panics
/// If a flow goes from a node to itself, or the capacities are not as many as the links.
#[must_use]
pub fn unrestricted(
    topology: &Topology,
    capacities: &[f64],
    flows: &[(NodeId, NodeId, Terms)],
) -> Vec<f64> {
    assert_eq!(capacities.len(), topology.ports().len(), "capacities of all links");
    // The solver likes numbers near one.
    let unit = capacities.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut programme = Programme::default();
    let mut shares = Vec::with_capacity(flows.len());
    let mut on_links = vec![Vec::with_capacity(flows.len()); capacities.len()];
    for &(src, dst, terms) in flows {
        assert_ne!(src, dst, "a flow from a node to itself has no bound");
        let demand = terms.demand.map_or(f64::INFINITY, |rate| rate.as_bps() as f64 / unit);
        let rate = programme.variable(demand);
        let weight = f64::from(terms.weight.get());
        shares.push(Share { variable: rate, weight, priority: terms.priority });
        let first = rate + 1;
        for on_link in &mut on_links {
            on_link.push((programme.variable(f64::INFINITY), 1.0));
        }
        for vertex in (0..topology.vertices()).map(Vertex::new) {
            programme.hold(
                conserved(topology, vertex, (src, dst), (rate, first)),
                ComparisonOp::Eq,
                0.0,
            );
        }
    }
    for (on_link, capacity) in on_links.into_iter().zip(capacities) {
        programme.hold(on_link, ComparisonOp::Le, capacity / unit);
    }
    programme.max_min(&shares).into_iter().map(|rate| rate * unit).collect()
}

/// What leaves a vertex, less what comes in, less the flow's rate where it starts, and more where it
/// ends: nothing. `variables` are the flow's rate and the first of those of the links.
fn conserved(
    topology: &Topology,
    vertex: Vertex,
    (src, dst): (NodeId, NodeId),
    (rate, first): (usize, usize),
) -> Vec<(usize, f64)> {
    let on = |port: PortId| first + port.index();
    let ports = topology.ports_of(vertex);
    let mut terms: Vec<(usize, f64)> =
        ports.flat_map(|port| [(on(port), 1.0), (on(topology.port(port).reverse), -1.0)]).collect();
    if vertex == topology.host(src) {
        terms.push((rate, -1.0));
    } else if vertex == topology.host(dst) {
        terms.push((rate, 1.0));
    }
    terms
}
