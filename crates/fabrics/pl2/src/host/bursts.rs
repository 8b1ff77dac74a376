//! Bursts under way, agents with their exchanges, and lanes with what they know of their switch ports.

use kernel::{Bytes, Span, Time};
use rack::NodeId;

use super::books::Holding;
use super::held::{NONE, Queue};

/// Up to K packets of one lane that go together (claim M02).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burst {
    pub(crate) packets: Queue,
    /// Their bytes on the wire.
    pub(crate) size: Bytes,
    pub(crate) agent: u32,
    pub(crate) lane: u32,
    pub(crate) dst: NodeId,
    /// Its number among the unsolicited ones of its lane.
    pub(crate) number: u8,
    /// How often it is on its way out.
    pub(crate) passages: u8,
    /// Whether its grant has come: nothing more is to be decided.
    pub(crate) is_settled: bool,
    /// Whether it went before its grant: PL2's line 17 asks for less (M24).
    pub(crate) was_unsolicited: bool,
    /// What it holds reserved, where books are kept.
    pub(crate) holding: Holding,
}

/// What an agent does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// Nothing.
    Idle,
    /// Its reservation is on its way to the NIC.
    Preparing,
    /// It waits for a grant.
    Asking,
    /// Its burst waits for its slot, or for the line.
    Leaving,
    /// It is busy with something else: its own work for the burst before.
    Resting,
}

/// A thread, or a destination: what has one exchange at a time (claim M22).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agent {
    pub(crate) state: State,
    pub(crate) host: NodeId,
    /// Whether it takes packets from the transport.
    pub(crate) is_open: bool,
    /// Whether it is to be looked at in this call.
    pub(crate) is_called: bool,
    /// How often it has asked for this burst again.
    pub(crate) repeats: u8,
    /// The burst that it speaks of.
    pub(crate) burst: u32,
    /// What its burst costs it besides the exchange.
    pub(crate) work: Span,
    /// How many bursts it has asked for.
    pub(crate) sequence: u32,
    /// When it began to ask; after a grant, before when it may not go on.
    pub(crate) since: Time,
    /// When it asks again, while it asks; when it asks, while it prepares to.
    pub(crate) deadline: Time,
    /// Lanes with packets, in turn.
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// The lane behind others that has got a packet from the transport, and its turn to come.
    pub(crate) guest: u32,
}

impl Agent {
    pub(crate) const fn of(host: NodeId) -> Self {
        Self {
            state: State::Idle,
            host,
            is_open: true,
            is_called: false,
            repeats: 0,
            burst: NONE,
            work: Span::ZERO,
            sequence: 0,
            since: Time::ZERO,
            deadline: Time::NEVER,
            first: NONE,
            last: NONE,
            guest: NONE,
        }
    }
}

const _: () = assert!(size_of::<Agent>() <= 64);

/// Packets of one agent to one destination, and what its grants told (Alg. 2, lines 2 to 4): two in a
/// cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct Lane {
    pub(crate) waiting: Queue,
    /// The lane behind it in its agent's turn.
    pub(crate) next: u32,
    pub(crate) is_listed: bool,
    /// Whether no reservation of its is answered: its bursts are dropped.
    pub(crate) is_silent: bool,
    /// The number of its next unsolicited burst.
    pub(crate) number: u8,
    /// `lastChosenTimeslot`; [`NONE`]: none yet (the paper's -1).
    pub(crate) last_chosen: u32,
    /// `lastResponseTime`; of a silent lane, when a burst was asked for last.
    pub(crate) last_response: Time,
}

const _: () = assert!(size_of::<Lane>() == 32);

impl Lane {
    pub(crate) const NEW: Self = Self {
        waiting: Queue::EMPTY,
        next: NONE,
        is_listed: false,
        is_silent: false,
        number: 0,
        last_chosen: NONE,
        last_response: Time::ZERO,
    };
}
