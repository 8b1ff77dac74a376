//! Scenario in, results directory out: what the `rackloom` command and the Python package share.
//!
//! **Invariant:** prints nothing and reads no terminal. The command does that, in its own files.

pub mod engine;
pub mod reproduce;

/// The version of Rackloom, as in every result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
