//! Which routing protocol suits which flow: a search for all long flows at once, by one node.
//!
//! Models: R2C2 §3.4, §5.2 (claims M30 to M33): the utility that is to be as large as may be, the
//! genetic search, who runs it and when, and how its result is told. Leaves out which flows are long
//! (the caller says), and the packets ([`crate::wire`]).

mod duty;
mod search;
#[cfg(test)]
mod tests;
mod utility;

pub use duty::{Duty, Rota};
pub use search::{Outcome, SearchPlan, Seeds, search};
pub use utility::{LongFlow, Utility};

use crate::routing::Protocol;

/// A flow and the protocol that it is to use (§3.4): four bytes and one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// The flow's identifier in packets.
    pub flow: u32,
    /// How its packets are to find their way from now on.
    pub protocol: Protocol,
}

/// Bytes of an assignment in a packet (§3.4).
pub const ASSIGNMENT_BYTES: usize = 5;

/// The assignments as packets of at most `packet_bytes` carry them, of which `header_bytes` are not
/// assignments (claim M33). The paper's 300 in 1,500 bytes leave no room for a header.
///
/// # Panics
/// If a packet has no room for one.
pub fn batches(
    assignments: &[Assignment],
    packet_bytes: usize,
    header_bytes: usize,
) -> impl Iterator<Item = &[Assignment]> {
    let room = packet_bytes.saturating_sub(header_bytes) / ASSIGNMENT_BYTES;
    assert!(room > 0, "{packet_bytes} B with a header of {header_bytes} B hold no assignment");
    assignments.chunks(room)
}
