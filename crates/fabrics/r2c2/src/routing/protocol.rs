//! The routing protocols that a flow may name.
//!
//! Models: R2C2 §2.2.1, §4.2 (claims M26 to M29): minimal protocols (random packet spraying,
//! destination tags) and non-minimal ones (Valiant's and weighted load balancing), and ROMM, which
//! Fig. 2's column of spraying turns out to show.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a packet finds its way.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Protocol {
    /// Random packet spraying over whole paths: each packet takes one of all shortest paths, each
    /// equally likely. The default, as sources pick paths (§3.3, Fig. 3).
    #[default]
    Rps = 0,
    /// Random packet spraying hop by hop: at each vertex every port on a shortest path is equally
    /// likely, as the protocol was first proposed.
    RpsByHop = 1,
    /// Destination tags on a grid: one dimension after the other, each the shorter way round; of
    /// two ways of equal length either is equally likely.
    DimensionOrder = 2,
    /// The same, but of two ways of equal length always the one to higher coordinates.
    DimensionOrderUp = 3,
    /// Valiant load balancing: to a node drawn from all, and on to the destination, both by
    /// [`Protocol::Rps`].
    Valiant = 4,
    /// Weighted load balancing on a grid: each dimension the short way or the long way round, the
    /// likelier the shorter; within these directions over a random node as [`Protocol::Romm`].
    Weighted = 5,
    /// The same, but always the short way where it is less than a quarter of the ring.
    WeightedThreshold = 6,
    /// Randomised minimal routing on a grid: to a node drawn from all that lie on shortest paths,
    /// and on to the destination, on each leg one dimension after the other in random order.
    Romm = 7,
}

impl Protocol {
    /// All protocols, by number.
    pub const ALL: [Self; 8] = [
        Self::Rps,
        Self::RpsByHop,
        Self::DimensionOrder,
        Self::DimensionOrderUp,
        Self::Valiant,
        Self::Weighted,
        Self::WeightedThreshold,
        Self::Romm,
    ];

    /// Its number in packets (**our choice**: in the order above).
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The protocol of a number, if there is one.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rps => "random packet spraying",
            Self::RpsByHop => "random packet spraying by hop",
            Self::DimensionOrder => "dimension order",
            Self::DimensionOrderUp => "dimension order, ties upwards",
            Self::Valiant => "Valiant load balancing",
            Self::Weighted => "weighted load balancing",
            Self::WeightedThreshold => "weighted load balancing with threshold",
            Self::Romm => "ROMM",
        }
    }

    /// Whether it speaks of dimensions, and so works on tori and meshes alone.
    #[must_use]
    pub const fn needs_grid(self) -> bool {
        !matches!(self, Self::Rps | Self::RpsByHop | Self::Valiant)
    }

    /// Whether its routes are shortest paths: the others go by a random node or the long way round.
    #[must_use]
    pub const fn is_minimal(self) -> bool {
        !matches!(self, Self::Valiant | Self::Weighted | Self::WeightedThreshold)
    }

    /// What stands in for it where there is no grid, as on a torus with a broken link: itself, or
    /// [`Protocol::Rps`], the protocol that every flow starts with (§3.1).
    #[must_use]
    pub const fn on_any_graph(self) -> Self {
        if self.needs_grid() { Self::Rps } else { self }
    }
}
