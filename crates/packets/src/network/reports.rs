//! What parts tell the driver of flows.

use std::cmp::Ordering;

use kernel::{Bytes, Time};
use rack::Failure;

use crate::net::{Journey, Name};

/// What a host says of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(super) at: Time,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Its source begins it, under a name: it has this place in the driver's list.
    Started { place: u32, name: Name },
    /// Its source does not.
    Refused { place: u32, why: Failure },
    /// Its destination has all of it.
    Whole { name: Name, delivered: Bytes, journey: Journey },
    /// Its destination has closed it with no more than this.
    Left { name: Name, delivered: Bytes },
    /// Its source sends no more of it.
    GaveUp { name: Name },
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
