//! Which routing protocol suits which flow: a search for all long flows at once, by one node.
//!
//! Models: R2C2 §3.4, §5.2 (claims M30 to M32): the utility that is to be as large as may be, the
//! genetic search, and who runs it and when. Leaves out which flows are long (the caller says), and
//! how the result is told ([`crate::wire::batch`]).

mod duty;
mod search;
#[cfg(test)]
mod tests;
mod utility;

pub use duty::{Duty, Rota};
pub use search::{Outcome, SearchPlan, Seeds, search};
pub use utility::{LongFlow, Utility};
