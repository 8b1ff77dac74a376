//! PL2 ("PL2: Towards Predictable Low Latency in Rack-Scale Networks", 2021): lossless Ethernet by
//! reservations in the switch, below any transport.

pub mod config;
mod framing;
pub mod host;
mod message;
mod rack;
pub mod switch;
#[cfg(test)]
mod tests;
pub mod transport;
pub mod wire;

pub use crate::config::{Config, Plan};
pub use crate::rack::Rack;
