//! Direct-connect racks: every host is its own switch, wired to its neighbours in a grid.
//!
//! Models: the 2D and 3D torus and mesh of R2C2 §2.1 and of Shoal §7.3's direct-connect rack. Along
//! a dimension of two hosts the way round would be a second link between the same two; there is one.

use kernel::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Builder, Link, Topology, Vertex};
use crate::Problem;

/// A grid that closes on itself in every dimension.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Torus {
    /// Hosts along each dimension. Default 8, 8, 8 (R2C2 §5.2). Each at least 2.
    pub dimensions: Vec<u32>,
    /// Rate of a link. Unit: bit/s. Default 10 Gbps (R2C2 §5.2).
    pub rate: Rate,
    /// Propagation of a link. Unit: time. Default 100 ns: a hop of R2C2 §5.2, its switch included.
    pub delay: Span,
}

/// A grid with ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Mesh {
    /// Hosts along each dimension. Default 8, 8, 8 (R2C2 §5.2). Each at least 2.
    pub dimensions: Vec<u32>,
    /// Rate of a link. Unit: bit/s. Default 10 Gbps (R2C2 §5.2).
    pub rate: Rate,
    /// Propagation of a link. Unit: time. Default 100 ns: a hop of R2C2 §5.2, its switch included.
    pub delay: Span,
}

impl Default for Torus {
    fn default() -> Self {
        let Mesh { dimensions, rate, delay } = Mesh::default();
        Self { dimensions, rate, delay }
    }
}

impl Default for Mesh {
    fn default() -> Self {
        Self { dimensions: vec![8, 8, 8], rate: Rate::from_gbps(10), delay: Span::from_ns(100) }
    }
}

/// Whether the last host of a row is joined to the first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Joined,
    Open,
}

impl Torus {
    /// The topology.
    ///
    /// # Errors
    /// If a dimension is too small or the grid too large; and as [`Builder::build`].
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        grid(&self.dimensions, Ends::Joined, Link { rate: self.rate, delay: self.delay })
    }
}

impl Mesh {
    /// The topology.
    ///
    /// # Errors
    /// If a dimension is too small or the grid too large; and as [`Builder::build`].
    pub fn build(&self) -> Result<Topology, Vec<Problem>> {
        grid(&self.dimensions, Ends::Open, Link { rate: self.rate, delay: self.delay })
    }
}

/// Most hosts of a grid: what R2C2's headers can name (§3.2).
pub(super) const HOSTS_MAX: u64 = 1 << 16;

fn grid(dimensions: &[u32], ends: Ends, link: Link) -> Result<Topology, Vec<Problem>> {
    let problem = |message: String| Err(vec![Problem::new("dimensions", message)]);
    if dimensions.is_empty() || dimensions.iter().any(|&length| length < 2) {
        return problem(format!("{dimensions:?}; expected one or more numbers, each 2 or more"));
    }
    let hosts = dimensions.iter().try_fold(1u64, |all, &length| all.checked_mul(length.into()));
    let Some(hosts) = hosts.filter(|&hosts| hosts <= HOSTS_MAX) else {
        return problem(format!("{dimensions:?} is too large; expected at most {HOSTS_MAX} hosts"));
    };
    let hosts = hosts as u32;
    let mut build = Builder::new(hosts);
    wire_ends(&mut build, dimensions, (0, ends), link);
    build.build()
}

/// Wires the hosts from `first` on to a torus of these dimensions.
pub(super) fn wire_torus(build: &mut Builder, dimensions: &[u32], first: u32, link: Link) {
    wire_ends(build, dimensions, (first, Ends::Joined), link);
}

fn wire_ends(build: &mut Builder, dimensions: &[u32], (first, ends): (u32, Ends), link: Link) {
    let hosts: u32 = dimensions.iter().product();
    for host in 0..hosts {
        let at = first + host;
        // The first dimension varies fastest.
        let mut stride = 1;
        for &length in dimensions {
            let place = host / stride % length;
            if place + 1 < length {
                build.link(Vertex::new(at), Vertex::new(at + stride), link);
            } else if ends == Ends::Joined && length > 2 {
                build.link(Vertex::new(at), Vertex::new(at - place * stride), link);
            }
            stride *= length;
        }
    }
}
