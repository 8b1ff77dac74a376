//! What a choice of routing protocols is good for.
//!
//! Models: R2C2 §3.4 (claim M30): "the rack's aggregate throughput or the tail throughput, as measured
//! across tenants". Global: a node that chooses for all has nothing to win from the others.

use rack::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rates::{Course, Terms};
use crate::routing::Protocol;

/// A flow that lasts long enough to be worth a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongFlow {
    /// Its place in the water-filling.
    pub place: u32,
    /// Where it starts.
    pub source: NodeId,
    /// Where it ends.
    pub destination: NodeId,
    /// The protocol that it uses now.
    pub protocol: Protocol,
    /// Weight, priority and demand.
    pub terms: Terms,
    /// Whose it is; tenants are counted from 0.
    pub tenant: u32,
}

impl LongFlow {
    /// Its course under a protocol.
    #[must_use]
    pub fn course(&self, protocol: Protocol) -> Course {
        Course { source: self.source, destination: self.destination, protocol }
    }
}

/// The quantity that the search maximises, in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Utility {
    /// The sum of all rates, as in the paper's evaluation.
    #[default]
    Aggregate,
    /// The lowest rate of a flow.
    Tail,
    /// The lowest sum of a tenant's rates.
    TenantTail,
}

impl Utility {
    /// The utility of these rates, one for each flow. Zero if there is no flow.
    #[must_use]
    pub fn of(self, flows: &[LongFlow], rates: &[f64], sums: &mut Vec<f64>) -> f64 {
        let lowest = |all: &mut dyn Iterator<Item = f64>| all.reduce(f64::min).unwrap_or(0.0);
        match self {
            Self::Aggregate => rates.iter().sum(),
            Self::Tail => lowest(&mut rates.iter().copied()),
            Self::TenantTail => {
                let tenants = flows.iter().map(|flow| flow.tenant as usize + 1).max().unwrap_or(0);
                sums.clear();
                sums.resize(tenants, f64::NAN);
                for (flow, rate) in flows.iter().zip(rates) {
                    let sum = &mut sums[flow.tenant as usize];
                    *sum = if sum.is_nan() { *rate } else { *sum + rate };
                }
                // Tenants without a flow have no sum.
                lowest(&mut sums.iter().copied().filter(|sum| !sum.is_nan()))
            }
        }
    }
}
