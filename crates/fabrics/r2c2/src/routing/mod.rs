//! Routing protocols, as shares of links and as routes of packets.
//!
//! Models: R2C2 §2.2.1, §3.3.1, §4.2 (claims M16, M25 to M29). A routing protocol fixes how a flow's
//! packets divide over the links; so a flow has one unknown, its rate, however many paths it takes.
//! [`Shares`] says how often a packet crosses each link on average, [`Routes`] draws the route of
//! one packet; both follow the same [`Protocol`] on the same [`Network`].
//!
//! Leaves out: protocols that look at queues on the way, which a source route cannot.

mod boxes;
mod draw;
mod grid;
mod network;
mod paths;
mod protocol;
mod route;
mod routes;
mod scratch;
mod shares;
mod spray;
mod translate;
mod ways;

pub use grid::{Axis, Choice, Choices, DIMENSIONS_MAX, Direction, Grid, Sense, Step, Turn};
pub use network::Network;
pub use paths::of_paths;
pub use protocol::Protocol;
pub use route::{HOPS_MAX, LINKS_MAX, Route};
pub use routes::Routes;
pub use scratch::Scratch;
pub use shares::{Legs, Shares};
pub(crate) use translate::{
    ENTRIES_MAX as TABLE_ENTRIES_MAX, ENTRY_BYTES as TABLE_ENTRY_BYTES, block,
};
pub(crate) use ways::BYTES_A_VERTEX as WAYS_BYTES;

#[cfg(test)]
mod tests;
