//! Packet-switched racks, as they are built today: what the papers' designs are compared with.
//!
//! A topology of packet switches (or of nodes that pass packets on), the queues of its ports, and a
//! transport at its hosts. The network is that of [`packets`], the transports are those of
//! [`transports`]; this crate puts them together from one table, gives the switches what the transport
//! asks for, and refuses a transport on a network that cannot carry it.

mod asks;
mod carriers;
pub mod config;
mod rack;
pub mod switch;
#[cfg(test)]
mod tests;
pub mod transport;

pub use crate::config::{Config, Plan};
pub use crate::rack::Rack;
