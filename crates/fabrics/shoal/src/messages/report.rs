//! What shards tell the driver of the flows of a workload; only the driver knows both halves of one.

use rack::Failure;

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
    /// A cell of it will not come.
    Lost { cell: u64 },
    /// It is whole, as far as it came: sum over its cells of the slots in which they were sent on the last
    /// hop, and how many took the direct path.
    Whole { last_hop: u128, direct: u64 },
    /// Its source has given it up; so many of its cells had arrived in order.
    Failed { code: u8, in_order: u64 },
}

/// Reasons by the code in [`What::Failed`].
const REASONS: [Failure; 3] = [Failure::SourceDied, Failure::DestinationDied, Failure::PacketsLost];

impl Report {
    pub(super) fn sent(handle: u32, released: u128, sent: u128, again: bool) -> Self {
        Self { at: 0, handle, what: What::Sent { released, sent, again } }
    }

    pub(super) fn lost(handle: u32, cell: u64) -> Self {
        Self { at: 0, handle, what: What::Lost { cell } }
    }

    pub(super) fn whole(handle: u32, at: u64, last_hop: u128, direct: u64) -> Self {
        Self { at, handle, what: What::Whole { last_hop, direct } }
    }

    pub(super) fn failed(handle: u32, at: u64, why: Failure, in_order: u64) -> Self {
        let code = REASONS.iter().position(|&reason| reason == why).unwrap_or(0) as u8;
        Self { at, handle, what: What::Failed { code, in_order } }
    }
}

impl What {
    /// Why a flow failed.
    pub(crate) fn reason(code: u8) -> Failure {
        REASONS[usize::from(code) % REASONS.len()]
    }
}
