//! The `topology` table of a scenario: which network to build.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Graph, LeafSpine, Mesh, Racks, SingleSwitch, ThreeTier, Topology, Torus};
use crate::Problem;

/// The shape of a network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Shape {
    /// All hosts at one switch.
    SingleSwitch(SingleSwitch),
    /// Leaf switches, each joined to every spine switch.
    LeafSpine(LeafSpine),
    /// Pods of leaf and spine switches, joined by core switches.
    ThreeTier(ThreeTier),
    /// Hosts in a grid that closes on itself.
    Torus(Torus),
    /// Hosts in a grid with ends.
    Mesh(Mesh),
    /// Several tori, joined by links or by tunnels through Ethernet switches.
    Racks(Racks),
    /// Any graph, link by link.
    Graph(Graph),
}

impl Default for Shape {
    fn default() -> Self {
        Self::LeafSpine(LeafSpine::default())
    }
}

impl Shape {
    /// The topology.
    ///
    /// # Errors
    /// Every problem, with its key below this table.
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        match self {
            Self::SingleSwitch(shape) => shape.build(),
            Self::LeafSpine(shape) => shape.build(),
            Self::ThreeTier(shape) => shape.build(),
            Self::Torus(shape) => shape.build(),
            Self::Mesh(shape) => shape.build(),
            Self::Racks(shape) => shape.build(),
            Self::Graph(shape) => shape.build(),
        }
    }
}
