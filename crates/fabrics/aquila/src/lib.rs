//! Aquila ("Aquila: A unified, low-latency fabric for datacenter networks", NSDI 2022): NIC and switch in
//! one chip, the TiN; cells, credits and a dragonfly of pods.
//!
//! What stands still: addresses, wiring and packaging, turn rules, routing tables and the proof that they cannot
//! deadlock, and the bits of everything that crosses a link. What moves: the cell switches and their links
//! ([`switch`]), IP packets that are asked for by where they go ([`ip`]), and cells alone, to measure switches with
//! ([`raw`]). Beside them: which GNet address an IP packet goes to ([`pipeline`]), traced cells and what they tell of
//! faults ([`trace`]), and one clock for all ([`timesync`]).

pub mod address;
#[cfg(test)]
mod arithmetic;
pub mod cells;
pub mod config;
pub mod endpoints;
pub mod equipment;
pub mod hosts;
pub mod ip;
pub mod link;
pub mod pipeline;
mod rack;
pub mod raw;
pub mod rma;
pub mod state;
pub mod switch;
pub mod tables;
pub mod timesync;
pub mod topology;
pub mod trace;
mod transport;
pub mod turns;

pub use crate::config::{Config, Plan};
pub use crate::rack::{Hardware, Rack};
pub use crate::transport::Transport;
