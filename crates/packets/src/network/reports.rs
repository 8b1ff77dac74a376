//! What parts tell the driver of flows.

use std::cmp::Ordering;

use kernel::{Bytes, Time};
use rack::Failure;

use crate::net::{Journey, Name};

/// What a host says of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// When.
    pub at: Time,
    /// What.
    pub what: What,
}

/// What can be said of a flow.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// Its source begins it, under a name: it has this place in the driver's list.
    Started {
        /// The number under which it was offered.
        place: u32,
        /// How its hosts name it.
        name: Name,
    },
    /// Its source does not.
    Refused {
        /// The number under which it was offered.
        place: u32,
        /// Why not.
        why: Failure,
    },
    /// Its destination has all of it.
    Whole {
        /// How its hosts name it.
        name: Name,
        /// Its size, as its destination counts it.
        delivered: Bytes,
        /// Where the time of its packets went.
        journey: Journey,
    },
    /// Its destination has closed it with no more than this.
    Left {
        /// How its hosts name it.
        name: Name,
        /// Application bytes that were readable, in order.
        delivered: Bytes,
    },
    /// Its source sends no more of it.
    GaveUp {
        /// How its hosts name it.
        name: Name,
    },
}

impl Report {
    /// Whether a flow may end by it.
    pub(super) fn is_end(&self) -> bool {
        !matches!(self.what, What::Started { .. } | What::Left { .. })
    }

    /// Reports are in order of time; at one instant as here, then by flow.
    fn key(&self) -> (Time, u8, [u32; 3]) {
        let (rank, flow) = match self.what {
            What::Started { place, .. } => (0, [place, 0, 0]),
            What::Refused { place, .. } => (1, [place, 0, 0]),
            What::Whole { name, .. } => (2, name.words()),
            What::Left { name, .. } => (3, name.words()),
            What::GaveUp { name } => (4, name.words()),
        };
        (self.at, rank, flow)
    }
}

impl PartialEq for Report {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Report {}

impl PartialOrd for Report {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Report {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
