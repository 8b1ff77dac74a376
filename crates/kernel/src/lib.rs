//! The ground floor: quantities, random streams, queues, bitmaps, statistics.
//!
//! **Invariant:** knows no network. Nothing here names a node, a flow, a packet or a file format.

mod quantity;
mod units;

pub use quantity::{Bytes, LinkClock, PS_PER_SECOND, Rate, Span, Time};
pub use units::UnitError;
