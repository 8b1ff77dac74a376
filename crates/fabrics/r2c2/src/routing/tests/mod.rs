//! Routing against enumeration: every path of small networks, written out by the definitions.

mod draws;
mod limits;
mod oracle;
mod shares;

use rack::NodeId;
use rack::topology::{Graph, Mesh, PortId, Shape, Torus};

use super::{Network, Protocol};

/// A torus.
pub(super) fn torus(dimensions: &[u32]) -> Network {
    let shape = Torus { dimensions: dimensions.to_vec(), ..Torus::default() };
    Network::new(&Shape::Torus(shape)).expect("a torus")
}

/// A mesh.
pub(super) fn mesh(dimensions: &[u32]) -> Network {
    let shape = Mesh { dimensions: dimensions.to_vec(), ..Mesh::default() };
    Network::new(&Shape::Mesh(shape)).expect("a mesh")
}

/// A graph without symmetry: a ring of seven with chords, two links between the same vertices, and a
/// switch that joins three.
pub(super) fn odd_graph() -> Network {
    let links = "0,1 1,2 2,3 3,4 4,5 5,6 6,0 0,3 2,5 2,5 1,7 4,7 6,7";
    let lines = links.split(' ').map(|link| format!("{link},10 Gbps,100 ns\n"));
    let edges = format!("a,b,rate,delay\n{}", lines.collect::<String>());
    Network::new(&Shape::Graph(Graph { hosts: 7, edges, ..Graph::default() })).expect("a graph")
}

/// Small networks of every kind, with names.
pub(super) fn small_networks() -> Vec<(&'static str, Network)> {
    let whole = torus(&[4, 3]);
    let broken = whole.without(&[PortId::new(0)], &[whole.topology().host(NodeId::new(7))]);
    vec![
        ("ring of five", torus(&[5])),
        ("ring of four", torus(&[4])),
        ("torus 4x4", torus(&[4, 4])),
        ("torus 4x3", whole),
        ("torus 2x3x4", torus(&[2, 3, 4])),
        ("mesh 2x2", mesh(&[2, 2])),
        ("mesh 4x3", mesh(&[4, 3])),
        ("mesh 2x3x3", mesh(&[2, 3, 3])),
        ("graph", odd_graph()),
        ("torus 4x3 without a link and a node", broken),
    ]
}

/// The protocols that work on a network.
pub(super) fn protocols(network: &Network) -> impl Iterator<Item = Protocol> {
    let grid = network.grid().is_some();
    Protocol::ALL.into_iter().filter(move |protocol| grid || !protocol.needs_grid())
}
