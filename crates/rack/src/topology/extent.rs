//! How large a topology will be, found without building it.

use kernel::Bytes;

use super::clos::{Counts, LeafSpine, SingleSwitch, ThreeTier};
use super::{Graph, Link, Port, Racks, Shape, Vertex};
use crate::Estimate;

/// Numbers of a topology's parts, saturating. Where the topology makes no sense, those of as much as
/// building it looks at before it says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Hosts.
    pub hosts: u64,
    /// Hosts and switches.
    pub vertices: u64,
    /// Ends of links.
    pub ports: u64,
    /// Sets of next hops at all vertices, of different ports or numbers of paths; at most so many.
    pub sets: u64,
}

impl Extent {
    /// Memory of one copy of the topology, and of what building it takes besides. Unit: bytes.
    #[must_use]
    pub fn memory(&self, copies: u64) -> Bytes {
        let one = Estimate::new().array::<Port>(self.ports).and(self.vertices, 5).bytes();
        let building = Estimate::new()
            .array::<(Vertex, Vertex, Link)>(self.ports / 2)
            .and(self.vertices, 12)
            .bytes();
        Estimate::new().and(one.get(), copies).plus(building).bytes()
    }
}

impl Shape {
    /// How large it will be. Builds nothing.
    #[must_use]
    pub fn extent(&self) -> Extent {
        match self {
            Self::SingleSwitch(SingleSwitch { hosts, .. }) => {
                let hosts = u64::from(*hosts);
                Extent { hosts, vertices: hosts + 1, ports: 2 * hosts, sets: 3 * hosts }
            }
            Self::LeafSpine(LeafSpine { hosts, .. }) | Self::ThreeTier(ThreeTier { hosts, .. }) => {
                let counts = match self {
                    Self::LeafSpine(shape) => shape.counts(),
                    Self::ThreeTier(shape) => shape.counts(),
                    _ => unreachable!("one of the two"),
                };
                let Ok(Counts { switches, trunks, radix }) = counts else {
                    return Extent::default();
                };
                let hosts = u64::from(*hosts);
                // A host knows its own leaf, its pod and all others.
                let sets = switches * (radix + 1) + 4 * hosts;
                Extent { hosts, vertices: hosts + switches, ports: 2 * (hosts + trunks), sets }
            }
            Self::Torus(shape) => grid(&shape.dimensions),
            Self::Mesh(shape) => grid(&shape.dimensions),
            Self::Racks(shape) => racks(shape),
            Self::Graph(shape) => graph(shape),
        }
    }
}

fn grid(dimensions: &[u32]) -> Extent {
    let hosts = dimensions.iter().fold(1u64, |all, &length| all.saturating_mul(length.into()));
    let ports = hosts.saturating_mul(2 * dimensions.len() as u64);
    Extent { hosts, vertices: hosts, ports, sets: hosts.saturating_mul(hosts) }
}

fn racks(racks: &Racks) -> Extent {
    let hosts = racks.hosts();
    let inner = hosts.saturating_mul(2 * racks.dimensions.len() as u64);
    let ports = inner.saturating_add(racks.joints().saturating_mul(2));
    Extent { hosts, vertices: hosts, ports, sets: hosts.saturating_mul(hosts) }
}

/// All are joined, or it is refused: there is at most one vertex more than there are lines.
fn graph(graph: &Graph) -> Extent {
    let links = graph.edges.lines().count() as u64;
    let vertices = links + 1;
    let hosts = u64::from(graph.hosts).min(vertices);
    Extent { hosts, vertices, ports: 2 * links, sets: vertices.saturating_mul(hosts) }
}
