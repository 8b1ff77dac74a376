//! The wall between the stream and its congestion control.
//!
//! A control sees acknowledgments, losses, marks and timeouts, and answers with a window. It knows
//! no segment numbers but as marks on the way, and no timers. All sizes are in bytes.

use std::fmt::Debug;

use kernel::{Span, Time};
use rack::NodeId;

/// What a control is told when a flow starts, besides its own parameters.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Bytes of a full segment.
    pub segment: u64,
    /// Initial window.
    pub window: u64,
}

/// Where the sender stands with respect to losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// Nothing is missing.
    #[default]
    Open,
    /// Fast recovery, until what was sent before it has arrived (RFC 6675 §5).
    Recovery,
    /// After a timeout, until what was sent before it has arrived.
    Loss,
}

/// One acknowledgment.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Now.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively.
    pub bytes: u64,
    /// Segments newly known to have arrived, cumulatively or selectively.
    pub arrived: u64,
    /// The cumulative acknowledgment after this one, in segments.
    pub una: u64,
    /// The first segment never sent.
    pub next: u64,
    /// Bytes under way before this acknowledgment.
    pub flight: u64,
    /// From the data's first bit to this acknowledgment.
    pub rtt: Span,
    /// The same, smoothed (RFC 6298 §2).
    pub srtt: Span,
    /// Of the round-trip time, what the receiver sat on the acknowledgment.
    pub endpoint: Span,
    /// Switches that the data crossed.
    pub hops: u8,
    /// Whether the receiver echoes a mark.
    pub is_marked: bool,
    /// Where the sender stood when it came.
    pub phase: Phase,
    /// The sender's host.
    pub host: NodeId,
}

/// A window that is not used says nothing of the network, so it does not grow (RFC 7661, RFC 9438
/// §5.8).
impl Acked {
    /// Whether the window is what holds the sender back: used up but for two segments (our choice:
    /// one partly free, one that waits for the line).
    #[must_use]
    pub fn fills(&self, window: u64, segment: u64) -> bool {
        self.flight + 2 * segment >= window
    }

    /// The same in slow start, where the window is ahead of what has been sent by up to twice: half
    /// of it is used.
    #[must_use]
    pub fn fills_half(&self, window: u64) -> bool {
        self.flight * 2 >= window
    }
}

/// Why the window is to shrink. Told at most once a window of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// A segment was lost; fast recovery starts.
    Loss,
    /// A mark came back (RFC 3168 §6.1.2).
    Mark,
    /// The retransmission timer expired.
    Timeout(Expiry),
}

/// Which timeout in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiry {
    /// The first for its segment.
    First,
    /// The segment was retransmitted after a timeout and timed out again.
    Repeated,
}

/// A window against congestion.
pub trait Congestion: Clone + Debug + Send + 'static {
    /// The name of the transport, kebab case.
    const NAME: &'static str;
    /// Its checked parameters, the same for all flows.
    type Plan: Clone + Debug + Send;

    /// The control of a new flow.
    fn new(plan: &Self::Plan, start: &Start) -> Self;

    /// Bytes that may be in the network. Never below one segment: a control that wants less says
    /// so by [`Congestion::gap`].
    fn window(&self) -> u64;

    /// An acknowledgment came: the window may grow.
    fn acked(&mut self, plan: &Self::Plan, acked: &Acked);

    /// The network is congested. `flight`: bytes sent and not acknowledged.
    fn congested(&mut self, plan: &Self::Plan, signal: Signal, flight: u64, now: Time);

    /// Fast recovery has ended with the first acknowledgment of new data, where that alone ends it. `flight`: bytes sent
    /// and not acknowledged, before that acknowledgment.
    fn recovered(&mut self, _plan: &Self::Plan, _flight: u64) {}

    /// Time to wait after a segment before the next may go.
    fn gap(&self) -> Span {
        Span::ZERO
    }

    /// The SYN had to be retransmitted: the initial window is one segment (RFC 5681 §3.1).
    fn syn_lost(&mut self, start: &Start);
}
