//! R2C2 (Costa et al., SIGCOMM 2015): a direct-connect rack in which flow events are broadcast, and
//! every node computes rates and routes itself.

pub mod broadcast;
pub mod config;
pub mod discovery;
mod endpoint;
mod rack;
pub mod rates;
pub mod routing;
pub mod selection;
pub mod throughput;
pub mod view;
pub mod wire;

pub use crate::config::{Config, Plan};
pub use crate::rack::Rack;
