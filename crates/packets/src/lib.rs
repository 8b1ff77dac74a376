//! The event-driven packet network: hosts, NICs, switches and links over any topology, carrying any
//! transport.
//!
//! **Invariant:** knows no transport by name. Endpoint cores meet the network at [`Transport`] and
//! nowhere else; switches treat a packet as its header asks and never ask which protocol sent it.

pub mod config;
mod cut;
pub mod fluid;
mod inside;
mod message;
mod net;
mod network;
mod outbox;
mod packet;
mod program;
mod route;
mod transport;
pub mod wire;

pub use config::{Config, Forwarding, Plan, Routing};
pub use cut::Cut;
pub use fluid::Oracle;
pub use inside::{Chosen, Inner, Inside};
pub use net::{Name, NextHop, NextHops};
pub use network::{Network, surroundings};
pub use outbox::{Effect, Outbox};
pub use packet::{
    FlowKey, Kind, Marks, PRIORITIES, Packet, ROUTE_HOP_BITS, ROUTE_HOPS_MAX, answer, reply,
};
pub use program::{Handle, Hop, NOTE_WORDS, Orders, Plain, Post, Program, Verdict};
pub use route::Live;
pub use transport::{
    Framing, Framings, Gate, Line, Loss, Opening, Surroundings, Timer, Timers, Transport, Way,
};
