//! What nodes know of the flows of the rack, and what sources say of theirs.
//!
//! Models: R2C2 §3.1, §3.3 (claims M05, M06, I13): every node has its own copy of the traffic matrix. Here
//! it is made of nothing but what the bytes of broadcasts say ([`crate::wire`]).
//!
//! Reading order: [`Facts`] (views), [`Late`] (what overtakes), [`Names`] (sources), [`Recent`] (what comes
//! by several ways).

mod facts;
mod late;
mod names;
mod recent;

pub use facts::{Fact, FactId, Facts, Hint};
pub use late::{Change, Late, MODULUS, is_newer};
pub use names::{INDICES, Names, REST};
pub use recent::{MEMORY, Recent};
