//! Runs the nodes of a fabric outside of the simulator: each in a thread of its own, bytes between them, the
//! machine's clock slowed as far as needed.
//!
//! The clock goes on by itself, `slowdown` times slower than the machine's. It waits for nodes that fall
//! behind: it is never more than [`Config::ahead`] beyond the earliest thing that a node has still to do. Time
//! in which no node has anything to do is skipped. With `ahead` no longer than
//! the shortest wire no message is ever late; with more, some messages are late, depending on the machine's load.
//!
//! Flows carry real bytes. They follow each message that carries a part of a flow, hop by hop, and what
//! reaches the destination is compared with what was sent.

mod cargo;
mod clock;
mod inbox;
mod run;

pub use run::{Config, Outcome, carry};
