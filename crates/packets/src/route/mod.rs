//! Next hops: which ports lead on along a shortest path, and which of them a packet takes.

mod choose;
mod hash;
mod known;
mod tables;

pub(crate) use choose::Chooser;
pub(crate) use known::Known;
pub use tables::Live;
pub(crate) use tables::{Group, Tables};

#[cfg(test)]
mod tests;
