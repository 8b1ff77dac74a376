//! The switch: Algorithm 1 as a data-plane program, and what stands beside it.

pub mod frames;
pub mod ideal;
pub mod matching;
pub mod pipeline;
pub mod registers;
pub mod scheduler;
#[cfg(test)]
mod tests;
mod tor;
#[cfg(test)]
mod vectors;

pub use pipeline::{Accounting, Between, Decrement, Header, Outcome, Pipeline, Settings};
pub use scheduler::{Instants, Scheduler};
pub(crate) use tor::Copies;
pub use tor::Tor;
