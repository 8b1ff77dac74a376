//! Control traffic beside that of a controller (§5.2, Fig. 19).

use r2c2::broadcast::Fib;
use r2c2::routing::Network;
use r2c2::wire::{SHORT_BYTES, central};
use rack::NodeId;
use rack::topology::Vertex;
use report::Unit;
use report::page::{Axis, Block, PlotSeries, SeriesStyle};

use super::assigned::rack;
use crate::claims::{Measured, Shape, Sheet};
use crate::drawing::{findings, plot};
use crate::{Effort, Failure, Findings, Watch};

/// Long flows of a node at a time that the paper speaks of: from 1 to 10.
const FLOWS_MAX: usize = 10;
/// Who has the controller: on a torus any node is like any other.
pub(super) const CONTROLLER: NodeId = NodeId::new(0);

/// Bytes on wires of an event that is broadcast.
fn broadcast(network: &Network) -> f64 {
    let trees = Fib::new(network, 1, 1);
    let vertices = (0..network.topology().vertices()).map(Vertex::new);
    let copies: usize = vertices.map(|vertex| trees.children(CONTROLLER, 0, vertex).count()).sum();
    (copies * SHORT_BYTES) as f64
}

/// Bytes on wires of an event that a controller hears of, which then tells each node the rates of its
/// `flows`: mean over the nodes from which the event may come.
pub(super) fn central(network: &Network, flows: usize) -> f64 {
    let nodes = (0..network.nodes()).map(NodeId::new);
    let hops: u32 = nodes.filter_map(|node| network.distance(CONTROLLER, node)).sum();
    let rates = central::HEADER_BYTES + central::RATE_BYTES * flows;
    let report = f64::from(hops) / f64::from(network.nodes()) * SHORT_BYTES as f64;
    f64::from(hops) * rates as f64 + report
}

/// Fig. 19.
pub(super) fn run(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig19.claims.toml"));
    let network = rack();
    let own = broadcast(&network);
    let ratio = |flows| central(&network, flows) / own;
    sheet.measure("fig19.one", Measured::one(ratio(1)));
    sheet.measure("fig19.ten", Measured::one(ratio(FLOWS_MAX)));
    // A single flow in the rack: one node to be told.
    let nodes = (0..network.nodes()).map(NodeId::new);
    let hops = nodes.filter_map(|node| network.distance(CONTROLLER, node));
    let farthest = hops.max().expect("a torus has nodes");
    let one_flow = central::HEADER_BYTES + central::RATE_BYTES + SHORT_BYTES;
    let bytes = f64::from(farthest) * one_flow as f64;
    let words = format!("{} beside {}", Unit::Bytes.format(bytes), Unit::Bytes.format(own));
    sheet.measure("fig19.few", Measured::shape(words, Shape::of(bytes < own)));
    let line = |name, of: &dyn Fn(usize) -> f64| {
        let points = (1..=FLOWS_MAX).map(|flows| (flows as f64, of(flows)));
        PlotSeries::new(name, SeriesStyle::Line, points.collect())
    };
    let series =
        vec![line("one controller", &|flows| central(&network, flows)), line("R2C2", &|_| own)];
    let x = Axis::linear("Long flows a node at a time", Unit::Count);
    let y = Axis::log("Control traffic of an event", Unit::Bytes);
    let figure = plot("Fig. 19", "", x, y, series);
    let text = "Bytes on all wires of one start or end of a flow. Broadcasts link by link of their \
                trees; a controller's packets by shortest paths, with 12 bytes and 4 for each rate \
                (our choice: the paper gives no sizes).";
    Ok(findings("Control traffic", text, vec![Block::Plots(vec![figure])], sheet))
}
