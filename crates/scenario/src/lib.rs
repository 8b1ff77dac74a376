//! Experiment files: what they may say, what is wrong with them, and what they mean.
//!
//! **Invariant:** knows fabrics by their configuration and by [`rack::Fabric`] alone; knows no
//! report and no command line.

pub mod check;
pub mod describe;
pub mod faults;
pub mod problem;
pub mod run_config;
pub mod source;
pub mod trace;
pub mod tree;
