//! What controller and chip say to each other: reads and writes of registers, as bytes.
//!
//! Models: Aquila §4.2, §4.3 (M604, M606, M610, I73): READ, WRITE, READ_BLOCK and WRITE_BLOCK, and the digests of
//! blocks; the largest message fits the chip's memory, and one request is under way at a time. **Our choice**: the
//! bytes, at most 64 KiB a message, and a request that holds any list of items.
//!
//! ```text
//! both:   magic 2 | kind 1 | zero 1 | sequence 4 | length 4 | items 2 | zero 2 | items ...
//! items of a request                                   of an answer, in the same order
//!   0 READ         address 4                             0 failed   status 1
//!   1 WRITE        address 4 | size 1 | entry            1 written
//!   2 READ_BLOCK   address 4 | count 2                   2 entry    size 1 | entry
//!   3 WRITE_BLOCK  address 4 | size 1 | length 2 | ...   3 entries  length 2 | entries
//!   4 DIGESTS      address 4 | count 2                   4 digests  count 2 | 8 bytes each
//!   5 FLASH                                              5 flash    version that runs 2 | flags 1 | header 11 | blocks 4 | records 4
//!   6 STAGE        header 11
//!   7 STORE        offset 4 | length 2 | bytes
//!   8 VERIFY
//!   9 ACTIVATE     version 2 | restart 1 | trial 2, in seconds
//!  10 CONFIRM      version 2
//! ```
//!
//! 5 to 10 are about images of firmware (M617, [`crate::flash`]): a header is version 2, generation 1, length 4, CRC-32; of
//! the flags bit 0 says that an image is staged, bit 1 that it is verified, and bits 2 and 3 how the one that runs stands.
//!
//! Numbers are big-endian; `length` is that of the whole message. Each item begins with its number, a byte.

mod agent;
mod bytes;
mod caller;
#[cfg(test)]
mod tests;

use thiserror::Error;

use crate::flash::{Header, Staged, Trial};
use crate::registers::{Entry, Status};

pub use agent::Agent;
pub use caller::{Caller, Late, NotSent, pack};

/// Largest message (M606, our choice). Unit: bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Before the items. Unit: bytes.
pub const HEADER_BYTES: usize = 16;

/// An item of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// READ: one entry.
    Read {
        /// Of the entry.
        address: u32,
    },
    /// WRITE: one entry.
    Write {
        /// Of the entry.
        address: u32,
        /// What it is to hold.
        entry: Entry,
    },
    /// READ_BLOCK: entries one after another.
    ReadBlock {
        /// Of the first.
        address: u32,
        /// How many.
        count: u16,
    },
    /// WRITE_BLOCK: entries one after another.
    WriteBlock {
        /// Of the first.
        address: u32,
        /// Of an entry. Unit: bytes.
        size: u8,
        /// All of them.
        bytes: Vec<u8>,
    },
    /// The digests of blocks of a register (M610).
    Digests {
        /// In the first block.
        address: u32,
        /// How many blocks.
        count: u16,
    },
    /// FLASH: which firmware runs, and what stands beside it.
    Flash,
    /// STAGE: begins an image beside the one that runs.
    Stage(Header),
    /// STORE: the next block of it.
    Store {
        /// Of its first byte in the image.
        offset: u32,
        /// All of it.
        bytes: Vec<u8>,
    },
    /// VERIFY: whether the image is what its header says.
    Verify,
    /// ACTIVATE: the image is what runs after a restart, which follows.
    Activate {
        /// Which image.
        version: u16,
        /// What restarts.
        restart: Restart,
        /// For how long it is on trial; 0: it is not. Unit: s.
        trial: u16,
    },
    /// CONFIRM: the image that runs on trial is kept.
    Confirm {
        /// Which image.
        version: u16,
    },
}

/// What restarts when another firmware is to run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[repr(u8)]
pub enum Restart {
    /// The processor alone; the chip goes on (M609: non-stop forwarding).
    #[default]
    Processor = 0,
    /// The chip with it: what it holds is gone (M611).
    Chip = 1,
}

impl Restart {
    /// That of this number.
    #[must_use]
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Processor),
            1 => Some(Self::Chip),
            _ => None,
        }
    }
}

/// What became of an item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was not done.
    Failed(Status),
    /// An entry was written, or several.
    Written,
    /// An entry.
    Entry(Entry),
    /// Entries, one after another.
    Entries(Vec<u8>),
    /// Digests of blocks.
    Digests(Vec<u64>),
    /// What the flash holds.
    Flash {
        /// The version that runs.
        running: u16,
        /// What stands beside it.
        staged: Staged,
        /// Whether it is on trial, or was gone back to.
        trial: Trial,
        /// How often an image was chosen, confirmed or gone back to.
        records: u32,
    },
}

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Which of a session.
    pub sequence: u32,
    /// What is to be done, in order.
    pub items: Vec<Item>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// That of the request.
    pub sequence: u32,
    /// What became of its items, in order.
    pub outcomes: Vec<Outcome>,
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum MessageError {
    /// They do not begin as one.
    #[error("it begins with {0:#010x}; expected that of a {1}")]
    Kind(u32, &'static str),
    /// It says another length.
    #[error(
        "{found} bytes that say they are {said}; expected as many, and at most {MESSAGE_BYTES_MAX}"
    )]
    Length {
        /// What there is.
        found: usize,
        /// What it says.
        said: usize,
    },
    /// It ends within an item, or goes on behind the last.
    #[error("it does not end with item {0}, the last")]
    End(u16),
    /// An item is none.
    #[error("item {0} is of no known kind, or its sizes contradict each other")]
    Item(u16),
}
