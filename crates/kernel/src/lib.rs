//! The ground floor: quantities, random streams, queues, bitmaps, statistics.
//!
//! **Invariant:** knows no network. Nothing here names a node, a flow, a packet or a file format.

mod bitmap;
mod calendar;
mod digest;
mod histogram;
mod lookup;
mod prefetch;
mod quantity;
mod random;
mod ring;
mod series;
mod sieve;
mod slab;
mod units;

pub use bitmap::Bitmap;
pub use calendar::{Agenda, Calendar};
pub use digest::Digest;
pub use histogram::Histogram;
pub use lookup::Lookup;
pub use prefetch::{prefetch, prefetch_range};
pub use quantity::{Bytes, LinkClock, PS_PER_SECOND, Rate, Slot, Span, Time};
pub use random::{Stream, mix64};
pub use ring::Ring;
pub use series::{Combine, Series};
pub use sieve::{Sieve, select};
pub use slab::Slab;
pub use units::UnitError;
