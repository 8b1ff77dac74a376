//! Shoal (NSDI 2019): a rack of nanosecond circuit switches on a static schedule.
//!
//! A node meets every other node once an epoch. Traffic is spread over all nodes, each of which
//! forwards it to its destination: at most one detour. A node learns how long the queue is that its
//! last cell joined, and releases the next when that queue has drained: queues stay bounded,
//! without a central scheduler.

mod cell;
pub mod config;
mod corruption;
mod counts;
pub mod crc;
mod details;
#[cfg(test)]
mod extremes;
#[cfg(test)]
mod failures_tests;
mod faults;
mod flight;
mod flows;
mod footprint;
mod gauges;
mod ideal;
mod inspect;
pub mod instance;
#[cfg(test)]
mod instances_tests;
mod losses;
mod messages;
mod mode;
mod nic;
mod node;
pub mod packets;
#[cfg(test)]
mod properties;
mod rack;
pub mod reorder;
pub mod schedule;
mod shard;
#[cfg(test)]
mod shard_tests;
mod stages;
#[cfg(test)]
mod tests;
mod trace;
mod transport;
pub mod wire;

pub use crate::config::{Config, Plan};
pub use crate::rack::Rack;
pub mod clos;
pub mod equipment;
pub mod memory;
pub mod sync;
