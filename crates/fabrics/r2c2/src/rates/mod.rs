//! How fast each flow may send: computed by every node from its own view of all flows.
//!
//! Models: R2C2 §3.3 (claims M17 to M24): weighted water-filling with priorities, headroom and
//! demands; the estimate of a flow's demand; the token bucket that holds a flow to its rate. Leaves
//! out who knows of which flow, and when (that is the view's), and what a protocol's shares are (that
//! is the routing's).

mod bucket;
mod bundles;
mod demand;
mod fill;
mod legs;
mod links;
mod programme;
mod routed;
mod shares;
mod terms;
mod tier;
mod unrestricted;
mod waterfill;

pub use bucket::Bucket;
pub use demand::{DEMAND_MAX, Demand, DemandPlan, estimate};
pub use routed::Routed;
pub use terms::{Course, Courses, Terms};
pub use unrestricted::unrestricted;
pub use waterfill::{Waterfill, Whose, capacities, capacities_for};

#[cfg(test)]
mod tests;
