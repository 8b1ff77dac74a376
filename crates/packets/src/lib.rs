//! The event-driven packet network: hosts, NICs, switches and links over any topology, carrying any
//! transport.
//!
//! **Invariant:** knows no transport by name. Endpoint cores meet the network at [`Transport`] and
//! nowhere else; switches treat a packet as its header asks and never ask which protocol sent it.

mod outbox;
mod packet;
pub mod raw;
mod transport;

pub use outbox::{Effect, Outbox};
pub use packet::{FlowKey, Kind, Marks, PRIORITIES, Packet, reply};
pub use transport::{Framing, Line, Opening, Surroundings, Timer, Timers, Transport};
pub mod config;
mod route;
