//! Reaching all nodes: trees for each source, and what each node passes on.
//!
//! Models: R2C2 §3.2 (claims M09 to M11, M14): several shortest-path trees for each source, the table
//! by which nodes pass broadcasts on, the choice of a tree, and new trees after a failure. Leaves out
//! the packets ([`crate::wire`]) and how failures are found ([`crate::discovery`]).

mod fib;
#[cfg(test)]
mod tests;
mod turns;

pub use fib::{Fib, TREES_DEFAULT};
pub use turns::Turns;
