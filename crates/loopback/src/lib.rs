//! Runs the nodes of a fabric outside of the simulator: each in a thread of its own, bytes between them, the
//! machine's clock slowed as far as needed.
//!
//! The clock goes on by itself, `slowdown` times slower than the machine's. It waits for nodes that have more
//! to do than they find time for: it is never more than [`Config::ahead`] beyond the first thing that any
//! node has still to do. It leaps over time in which no node has anything to do. With `ahead` no longer than
//! the shortest wire no message is ever late; with more, some messages are late, depending on the machine's load.
//!
//! Flows carry real bytes. They ride behind each message that carries a part of a flow, whoever passes it on,
//! and what reaches the destination is compared with what was sent.

mod cargo;
mod clock;
mod inbox;
mod run;

pub use run::{Config, Outcome, carry};
