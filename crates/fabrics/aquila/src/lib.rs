//! Aquila ("Aquila: A unified, low-latency fabric for datacenter networks", NSDI 2022): NIC and switch in
//! one chip, the TiN; cells, credits and a dragonfly of pods.
//!
//! What is here is what stands still: addresses, wiring and packaging, turn rules, routing tables and the
//! proof that they cannot deadlock, and the bits of everything that crosses a link.

pub mod address;
pub mod cells;
pub mod config;
pub mod equipment;
pub mod link;
pub mod raw;
pub mod switch;
pub mod tables;
pub mod topology;
pub mod turns;

pub use crate::config::{Config, Plan};
