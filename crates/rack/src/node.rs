//! A part of a network outside of the simulator: bytes in, bytes out.
//!
//! A [`Node`] is what a fabric's core is to the world: a host, a NIC or a switch, or several of them. It owns
//! no clock and no wires. Its driver says what the time is, hands it the bytes that come in on its
//! wires, and carries what it sends.

use kernel::Time;

use crate::{Failure, Flow, NodeId};

/// Names a flow on the wire: its source counts its flows to its destination, from 0 on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowName {
    /// Who sends.
    pub src: NodeId,
    /// Who receives.
    pub dst: NodeId,
    /// Its number among those of the pair.
    pub number: u32,
}

/// Which bytes of a flow a message carries. The bytes themselves ride behind it: cores neither read nor copy
/// them, and whoever carries messages keeps them while they are at a node that passes them on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Payload {
    /// Of which flow.
    pub flow: FlowName,
    /// Bytes of the flow before these.
    pub offset: u64,
    /// How many; at least one.
    pub bytes: u32,
}

/// What a packet or cell with bytes of a flow is known by at every node that it passes: a handle to what rides
/// with it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Unit(pub u128);

/// What a node sends.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// To which node, by its place among all.
    pub to: usize,
    /// On which of the receiver's wires.
    pub wire: u32,
    /// When its last bit is there.
    pub at: Time,
    /// The message, headers and whatever the fabric adds; the flow's own bytes apart.
    pub bytes: &'a [u8],
    /// What it is known by, if bytes of a flow ride with it.
    pub unit: Option<Unit>,
    /// Which bytes these are, if the node has them ([`Nodes::place`] of their flow's source).
    pub payload: Option<Payload>,
}

/// The end of a flow, as one of its halves saw it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ending {
    /// Which flow.
    pub flow: FlowName,
    /// When.
    pub at: Time,
    /// `None`: all of it is readable at its destination.
    pub failure: Option<Failure>,
}

/// A node, or a few, that a driver runs by whatever clock.
pub trait Node: Send {
    /// The instant of the next thing to do, messages that were received included; [`Time::NEVER`] if there
    /// is none.
    fn next(&self) -> Time;

    /// The application of a host that is here hands over a flow ([`Nodes::begins`]), at `flow.start`, which is not past.
    fn offer(&mut self, flow: &Flow);

    /// Bytes have come in on one of its wires, the last of them `at`: later than now, or now if they are
    /// late. What cannot be decoded, or is not expected, is counted and dropped. Gives what it is known
    /// by, if it is sound and bytes of a flow ride with it.
    fn receive(&mut self, wire: u32, at: Time, bytes: &[u8]) -> Option<Unit>;

    /// Does everything before `until`, in order, and hands what it sends to `send`.
    fn run(&mut self, until: Time, send: &mut dyn FnMut(Message<'_>));

    /// Appends the ends of flows that its hosts have seen since it was last asked.
    fn endings(&mut self, endings: &mut Vec<Ending>);

    /// Messages that it could not decode or did not expect.
    fn unexpected(&self) -> u64;
}

/// A whole network as nodes, for a driver.
pub struct Nodes {
    /// Hosts first, by number; then switches, if they are nodes of their own.
    pub nodes: Vec<Box<dyn Node>>,
    /// No message arrives sooner after it was sent; more than nothing.
    pub delay: kernel::Span,
    /// What may become of messages on the way without a flow being lost.
    pub stands: Stands,
    /// Where hosts reach each other's memory; `None`: each has its own, and flows begin at their sources.
    pub memory: Option<Memory>,
}

/// Memory that hosts reach in each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// By host: the node that has its memory, from which its bytes go and to which they come.
    pub places: Vec<usize>,
    /// Who asks for a flow, and tells its end.
    pub asks: End,
}

/// An end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Its source.
    Source,
    /// Its destination.
    Destination,
}

impl Nodes {
    /// The node to which a flow is handed at its start.
    #[must_use]
    pub fn begins(&self, flow: &Flow) -> usize {
        match &self.memory {
            Some(Memory { asks: End::Destination, .. }) => flow.dst.index(),
            _ => flow.src.index(),
        }
    }

    /// The node that has what a host sends and receives.
    #[must_use]
    pub fn place(&self, host: NodeId) -> usize {
        let places = self.memory.as_ref().map(|memory| &memory.places);
        places.and_then(|places| places.get(host.index())).copied().unwrap_or(host.index())
    }
}

/// What may become of messages on the way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stands {
    /// Nothing: each arrives, as it was sent.
    Nothing,
    /// Each arrives, in its time, and bits may be wrong: links are synchronous, and silence has no meaning.
    Damage,
    /// They may get lost, be damaged, or come late.
    Loss,
}
