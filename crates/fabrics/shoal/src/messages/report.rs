//! What shards tell the driver of the flows of a workload; only the driver knows both halves of one.

use rack::Failure;

use super::receiving::Whole;

/// Something that has become of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Report {
    /// When it ended, in picoseconds; 0: it has not.
    pub(crate) at: u64,
    pub(crate) handle: u32,
    pub(crate) what: What,
}

/// What has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum What {
    /// Its source knows that all has been sent: sums over its cells of the slots in which they were taken
    /// into a queue and sent; and whether some went out again.
    Sent { released: u128, sent: u128, again: bool },
    /// Its last cell is there: how many are, and how many of them before the first that may be missing; sum
    /// over them of the slots in which they were sent on the last hop, and how many took the direct path.
    Whole { cells: u64, sound: u64, last_hop: u128, direct: u64 },
    /// Its source has given it up.
    Failed { code: u8 },
    /// What its source sent has left the relays' queues, as feedback says.
    Drained,
    /// Its destination has given it up when so many of its cells had arrived in order.
    GivenUp { cells: u64 },
}

/// Reasons by the code in [`What::Failed`].
const REASONS: [Failure; 3] = [Failure::SourceDied, Failure::DestinationDied, Failure::PacketsLost];

impl Report {
    pub(super) fn sent(handle: u32, released: u128, sent: u128, again: bool) -> Self {
        Self { at: 0, handle, what: What::Sent { released, sent, again } }
    }

    pub(super) fn whole(at: u64, whole: &Whole) -> Self {
        let Whole { handle, cells, sound, last_hop, direct } = *whole;
        Self { at, handle, what: What::Whole { cells, sound, last_hop, direct } }
    }

    pub(crate) fn failed(handle: u32, at: u64, why: Failure) -> Self {
        let code = REASONS.iter().position(|&reason| reason == why).unwrap_or(0) as u8;
        Self { at, handle, what: What::Failed { code } }
    }

    pub(super) fn drained(handle: u32) -> Self {
        Self { at: 0, handle, what: What::Drained }
    }

    pub(super) fn given_up(handle: u32, cells: u64) -> Self {
        Self { at: 0, handle, what: What::GivenUp { cells } }
    }
}

impl What {
    /// Why a flow failed.
    pub(crate) fn reason(code: u8) -> Failure {
        REASONS[usize::from(code) % REASONS.len()]
    }
}
