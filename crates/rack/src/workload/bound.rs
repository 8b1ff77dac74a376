//! What the time of a job went to, by the longest chain of what it did.
//!
//! From the job's end backwards: the last thing to happen, what that had waited for last, and so on to the job's
//! beginning. The chain has no gaps, so its parts add up to the time of the job; making anything that is not on it
//! faster changes nothing.

use kernel::Span;

/// What a part of a chain is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Bound {
    /// A computation.
    Compute,
    /// A flow that is no part of an operation: a message.
    Transfer,
    /// A flow of an operation of this kind.
    AllReduce,
    /// As [`Bound::AllReduce`].
    ReduceScatter,
    /// As [`Bound::AllReduce`].
    AllGather,
    /// As [`Bound::AllReduce`].
    AllToAll,
    /// As [`Bound::AllReduce`].
    Broadcast,
    /// As [`Bound::AllReduce`].
    Reduce,
    /// As [`Bound::AllReduce`].
    Gather,
    /// As [`Bound::AllReduce`].
    Scatter,
    /// As [`Bound::AllReduce`].
    Barrier,
    /// For an instant before which the flow may not start.
    Waiting,
}

impl Bound {
    /// All of them, in the order of results.
    pub const ALL: [Self; 12] = [
        Self::Compute,
        Self::Transfer,
        Self::AllReduce,
        Self::ReduceScatter,
        Self::AllGather,
        Self::AllToAll,
        Self::Broadcast,
        Self::Reduce,
        Self::Gather,
        Self::Scatter,
        Self::Barrier,
        Self::Waiting,
    ];

    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Transfer => "transfer",
            Self::AllReduce => "all_reduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllGather => "all_gather",
            Self::AllToAll => "all_to_all",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Barrier => "barrier",
            Self::Waiting => "waiting",
        }
    }
}

/// How long a chain was bounded by what: an entry for each kind that occurs in the workload.
pub type Bounds = Vec<(Bound, Span)>;
