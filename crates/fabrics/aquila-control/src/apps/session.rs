//! What the front end is told about sessions with TiNs, and what it asks of them.
//!
//! Models: Aquila §4.2, §4.4 (M606, M801, M811): who is reached how is the session manager's business; what is to be
//! written to whom is the front end's.

use crate::rpc::Restart;

/// By which way a TiN is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Over {
    /// A TCP session, over the datacenter's network or through the GNet pipeline.
    Tcp = 0,
    /// The bootstrap channel of a neighbour: slower (M727).
    Pmos = 1,
}

/// What the front end is told about a TiN's session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Session {
    /// There is one, and nothing of another before it counts any more.
    Up {
        /// Which TiN.
        tin: u16,
        /// How it is reached.
        over: Over,
        /// How often its chip has started cold: another number, and its registers are as after a cold start.
        boot: u32,
        /// Which version of the firmware runs there (M617).
        firmware: u16,
    },
    /// It is lost: what was asked may have been done, or not.
    Down {
        /// Which TiN.
        tin: u16,
    },
    /// The answer to a request, as bytes of [`crate::rpc`].
    Answer {
        /// Which TiN's.
        tin: u16,
        /// All of it.
        bytes: Vec<u8>,
    },
}

/// A request to a TiN: at most [`crate::rpc::MESSAGE_BYTES_MAX`], and one at a time (I73).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// To which TiN.
    pub tin: u16,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// How far a TiN's programming has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Progress {
    /// A TCP session through the GNet pipeline can be had (M811).
    Enough {
        /// Which TiN's.
        tin: u16,
    },
    /// Its control processor is about to restart, as another version of its firmware is to run (M617).
    Restarts {
        /// Which TiN's.
        tin: u16,
        /// Whether its chip does with it.
        restart: Restart,
    },
    /// Its registers equal what is wanted of it.
    Complete {
        /// Which TiN's.
        tin: u16,
    },
}
