//! Where packets of chosen flows were, and when: the record that a run keeps if it is asked to, and what that says
//! of a flow ([`account`]).
//!
//! A record has a row for each **hop** of a packet: an output port that it waited for and left by, with the instants
//! at which it joined the queue, went on the line and came to the other end. Flows are chosen by how a run before
//! ended ([`slowest`]): runs are deterministic, so an equal one that is recorded ends in the same way.

mod account;
mod cell;
mod choice;
mod covered;
mod lines;
mod tally;

use std::fmt;

use kernel::{Span, Time};

use crate::{FlowId, NodeId};

pub use account::{Account, Part, Queue, Share, account, critical_way, queues_of};
pub use cell::{CellHop, Purpose};
pub use choice::{Chooser, Ended, slowest};
pub use covered::Covered;
pub use lines::{Line, LineRecorder, LineSpan, Lines, SPANS_MAX};
pub use tally::Tally;

/// Other flows that a hop names at most, those with most bytes first (our choice: what a table shows).
pub const BESIDE_MAX: usize = 8;

/// Hops that a record holds at most (our choice: some 4 GB of memory while it is put in order).
pub const HOPS_MAX: usize = 1 << 24;

/// A flow whose packets are to be recorded, as an equal run has carried it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Followed {
    /// Which.
    pub flow: FlowId,
    /// Who sends.
    pub src: NodeId,
    /// Who receives.
    pub dst: NodeId,
    /// When it began.
    pub start: Time,
    /// When it ended, or the run did: what happens later is not recorded.
    pub end: Time,
}

/// What goes on lines of packet networks: Ethernet's frames, by its number in the registry of link-layer header types
/// of captures (LINKTYPE_ETHERNET). Cells have numbers of those that are for private use, 147 to 162.
pub const ETHERNET: u16 = 1;

/// An output port, with its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its number in the network.
    pub port: u32,
    /// What [`Hop::header`] of its packets is, as a link-layer header type of captures: [`ETHERNET`], or a fabric's
    /// own cells.
    pub link_type: u16,
    /// Whose port it is, as faults and results name it: `node 3`, `leaf 0`.
    pub from: String,
    /// Who is at the other end.
    pub to: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.from, self.to)
    }
}

/// What became of a packet at a hop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// It came to the other end.
    Arrived,
    /// The queue had no room for it.
    NoRoom,
    /// No way led on.
    NoRoute,
    /// The link was down, or went down under it.
    DeadLink,
    /// The link lost it, or damaged it.
    Lost,
    /// The switch's program did not want it.
    Refused,
    /// It came to the other end, whose program took out of it what it said: its end.
    Absorbed,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Arrived,
        Self::NoRoom,
        Self::NoRoute,
        Self::DeadLink,
        Self::Lost,
        Self::Refused,
        Self::Absorbed,
    ];

    /// The word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::NoRoom => "no_room",
            Self::NoRoute => "no_route",
            Self::DeadLink => "dead_link",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Absorbed => "absorbed",
        }
    }

    /// The outcome of this word; `None` if there is none.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == word)
    }
}

/// One hop of a packet: it waits for an output port and leaves by it, or does not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The flow.
    pub flow: FlowId,
    /// Which of the flow's packets, counted from 0 as they left their hosts, in both directions. One that is sent
    /// again is another.
    pub packet: u32,
    /// Which hop of the packet, from 0; of a cell, of the cell.
    pub hop: u16,
    /// What it is of a cell, where the packet goes in cells inside of switches; `None`: of the packet itself.
    pub cell: Option<Box<CellHop>>,
    /// Whether the packet carries the flow's bytes, or did before it was trimmed.
    pub is_data: bool,
    /// Whether it goes to the flow's source: an acknowledgment, a grant, a pull.
    pub to_source: bool,
    /// Whether some of the bytes that it carries have left the source before.
    pub is_again: bool,
    /// Which byte of the flow is the first in it, of data.
    pub offset: u64,
    /// Application bytes in it as it leaves; of a cell, bytes of its packet.
    pub payload: u16,
    /// Its size on the wire as it leaves, headers included. Unit: bytes.
    pub bytes: u16,
    /// The port, as an index into [`Trace::places`].
    pub place: u32,
    /// Whether it leads to the host that the packet is for.
    pub is_last: bool,
    /// Whether it has an ECN mark as it leaves.
    pub is_marked: bool,
    /// Whether its payload was cut off here or before.
    pub is_trimmed: bool,
    /// What became of it.
    pub outcome: Outcome,
    /// Since when it waits for the port. At a switch: when it joined the queue. At its source: since the flow's
    /// last packet before it was sent, or the flow began. At another host: when it joined the queue of the NIC.
    pub joined: Time,
    /// When its first bit goes on the line; of one that does not, when it is dropped, like the next two.
    pub started: Time,
    /// When its last bit is on the line.
    pub sent: Time,
    /// When the other end may act on it: its last bit is there or, at a switch that cuts through, its header, and the
    /// switch's latency is over.
    pub arrived: Time,
    /// The part of that time which the cable and the latency of the other end take.
    pub propagation: Span,
    /// How long, since it joined, the line carried packets of its own flow, and of others. The rest of its wait
    /// the line was idle: held back by a pause or for lack of credits, or down; at a source, for want of anything
    /// that the flow may send.
    pub own: Span,
    /// As [`Hop::own`], of all else.
    pub others: Span,
    /// Bytes that waited at the port when it joined.
    pub found_bytes: u32,
    /// Packets that waited there.
    pub found_packets: u32,
    /// What went on the line since it joined and is not of its own flow, by flow, in bytes on the wire: at most
    /// [`BESIDE_MAX`], those with most first. `None`: of no flow, as what switches say of themselves.
    pub beside: Vec<(Option<FlowId>, u64)>,
    /// Its frame as it leaves, without as many bytes at its end as [`Hop::payload`]: its headers.
    pub header: Vec<u8>,
}

impl Hop {
    /// What it is for, if it is of a cell.
    #[must_use]
    pub fn purpose(&self) -> Option<Purpose> {
        self.cell.as_ref().map(|cell| cell.purpose)
    }

    /// By what hops stand in a record: those of packets themselves before those of their cells.
    #[must_use]
    pub fn order(&self) -> (FlowId, u32, u32, u16) {
        let cell = self.cell.as_ref().map_or(0, |cell| cell.number + 1);
        (self.flow, self.packet, cell, self.hop)
    }

    /// How long it waited.
    #[must_use]
    pub fn wait(&self) -> Span {
        self.started - self.joined
    }

    /// How long the line was idle while it waited.
    #[must_use]
    pub fn held(&self) -> Span {
        let busy = self.own + self.others;
        self.wait() - busy.min(self.wait())
    }

    /// How long it takes onto the line: as much of it as the other end waits for.
    #[must_use]
    pub fn transmission(&self) -> Span {
        let under_way = self.arrived - self.started;
        under_way - self.propagation.min(under_way)
    }

    /// Whether it brings bytes of the flow to their destination.
    #[must_use]
    pub fn delivers(&self) -> bool {
        self.is_last
            && self.is_data
            && !self.to_source
            && self.payload > 0
            && self.outcome == Outcome::Arrived
    }
}

/// The record of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// The ports that hops name.
    pub places: Vec<Place>,
    /// By flow, packet, cell and hop.
    pub hops: Vec<Hop>,
    /// Whether there were more than [`HOPS_MAX`], of which the first were kept.
    pub is_full: bool,
    /// What lines carried of all flows.
    pub lines: Lines,
}

impl Trace {
    /// A record of hops in any order, which name their ports by numbers of which `place` knows what they are.
    #[must_use]
    pub fn of_hops(mut hops: Vec<Hop>, place: impl FnMut(u32) -> Place) -> Self {
        hops.sort_by_key(Hop::order);
        let mut ports: Vec<u32> = hops.iter().map(|hop| hop.place).collect();
        ports.sort_unstable();
        ports.dedup();
        for hop in &mut hops {
            hop.place = ports.partition_point(|&port| port < hop.place) as u32;
        }
        let places = ports.into_iter().map(place).collect();
        Self { places, hops, ..Self::default() }
    }

    /// The flows that are in it, by number.
    #[must_use]
    pub fn flows(&self) -> Vec<FlowId> {
        let mut flows: Vec<_> = self.hops.iter().map(|hop| hop.flow).collect();
        flows.dedup();
        flows
    }

    /// The hops of a flow.
    #[must_use]
    pub fn of(&self, flow: FlowId) -> &[Hop] {
        let from = self.hops.partition_point(|hop| hop.flow < flow);
        let to = self.hops.partition_point(|hop| hop.flow <= flow);
        &self.hops[from..to]
    }
}
