//! R2C2's packets, bit for bit.
//!
//! Models: R2C2 §3.2, §3.4, §4.2, Fig. 6 (claims M33 to M37): data with a source route, broadcasts of
//! 16 bytes, batches of new routes. The paper gives fields, totals and a few widths; **our choices**
//! are all other widths (the tables in [`flow`], [`data`], [`batch`], [`upkeep`], [`central`]), big
//! endian, and:
//!
//! - The first byte holds the kind in its lower half. Its upper half numbers the announcements of one
//!   flow, modulo 16, so that what overtakes on another tree is put in order; else it is zero.
//! - The checksum is the Internet's (RFC 1071) over the whole packet, which finds every single wrong
//!   bit. The index into the route changes at each hop: it counts as zero, and has its complement
//!   beside it to guard it.
//! - A broadcast that is retransmitted to those who missed it has four bytes more, and so has one by a tree
//!   of a rack in which links are dead, and one of a source that has announced all its flows again ([`tail`]).
//! - What a destination says to the source of a flow has the header of data ([`data`]).
//! - A reader accepts exactly what a writer writes: spare bits are zero.

pub mod batch;
pub mod central;
mod checksum;
pub mod data;
pub mod flow;
mod read;
pub mod tail;
pub mod upkeep;

use kernel::Rate;

pub use batch::{Assignment, Assignments};
pub use central::{Rates, Report};
pub use checksum::{checksum, seal};
pub use data::{Answer, Data, Word, forward};
pub use flow::{Allocation, Announcement, Event};
use read::Reader;
pub use tail::{Again, Tail};
pub use upkeep::{Anew, Dropped, Hello, LinkState, Notice};

/// The most nodes: what 16 bits tell apart (§4.2).
pub const NODES_MAX: u32 = 1 << 16;
/// Bytes of a broadcast, and of the other short packets (§3.1, §4.2).
pub const SHORT_BYTES: usize = 16;

/// Most broadcast trees of a source: what half a byte tells apart, but one ([`way`]).
pub const TREES_MAX: u8 = 15;
/// In place of a tree: the broadcast goes by all links, to whoever has not heard it.
pub const TREE_NONE: u8 = TREES_MAX;

/// What a packet is, in the lower half of its first byte. No other number differs from that of data
/// in a single bit: where the checksum stands depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// What a source has announced is void; all follows anew.
    Anew = 0,
    /// A flow starts, or is announced again.
    Start = 1,
    /// A flow is over.
    Finish = 2,
    /// A flow's demand is another.
    Demand = 3,
    /// A flow's routing protocol is another.
    Route = 4,
    /// Routing protocols of many flows.
    Assignments = 5,
    /// A broadcast was dropped.
    Notice = 6,
    /// A neighbour lives.
    Hello = 8,
    /// Which links of a node live.
    LinkState = 9,
    /// To a central controller: what happens to a flow.
    Report = 10,
    /// From a central controller: what a node's flows may send.
    Rates = 12,
    /// Data.
    Data = 15,
}

impl Kind {
    const ALL: [Self; 12] = [
        Self::Anew,
        Self::Start,
        Self::Finish,
        Self::Demand,
        Self::Route,
        Self::Assignments,
        Self::Notice,
        Self::Hello,
        Self::LinkState,
        Self::Report,
        Self::Rates,
        Self::Data,
    ];

    /// The kind that a first byte tells of.
    pub(crate) fn of(first: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == first & 0x0F)
    }
}

/// Why bytes are no packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// Too few or too many bytes.
    #[error("{found} bytes; this kind of packet has {expected}")]
    Length {
        /// How many its head promises.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// No packet begins so.
    #[error("no packet begins with the byte {0}")]
    Kind(u8),
    /// The checksum, or the guard of the index into the route, is wrong.
    #[error("the checksum of the packet is wrong")]
    Corrupted,
    /// A field holds what means nothing in this rack.
    #[error("the {field} field holds {value}, which means nothing here")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// What it holds.
        value: u32,
    },
}

/// The way that a broadcast takes, as it is in a packet: in the lower half which of its source's
/// trees, or [`TREE_NONE`]; in the upper half what follows behind the message ([`Tail`]): 1 for the digest
/// of dead links by which the tree was grown, 2 for the round of its source. **Our choice**: a node that
/// knows of other links does not have that tree, and passes the broadcast on by all its links.
///
/// # Panics
/// If there is no such tree.
#[must_use]
pub fn way(tree: u8, dead: u32, round: u32) -> u8 {
    assert!(tree <= TREE_NONE, "tree {tree}, of at most {TREE_NONE}");
    tree | u8::from(dead != 0) << 4 | u8::from(round != 0) << 5
}

/// The tree that a way names, or [`TREE_NONE`].
#[must_use]
pub fn tree_of(way: u8) -> u8 {
    way & 0x0F
}

/// A rate in whole kilobits (10³ bits) a second, up to 4.29 Tb/s (§4.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kbps(u32);

impl Kbps {
    /// As much as there is.
    pub const UNLIMITED: Self = Self(u32::MAX);

    /// So many kilobits a second; the largest number stands for as much as there is.
    #[must_use]
    pub const fn new(kbps: u32) -> Self {
        Self(kbps)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The rate, rounded up: what a flow asks for, lest it get less. Beyond what the field holds it
    /// is as much as there is.
    #[must_use]
    pub fn at_least(rate: Rate) -> Self {
        Self(u32::try_from(rate.as_bps().div_ceil(1_000)).unwrap_or(u32::MAX))
    }

    /// The rate, rounded down: what a flow may send, lest it send more.
    #[must_use]
    pub fn at_most(rate: Rate) -> Self {
        Self(u32::try_from(rate.as_bps() / 1_000).unwrap_or(u32::MAX))
    }

    /// The rate; `None` for as much as there is.
    #[must_use]
    pub fn rate(self) -> Option<Rate> {
        (self != Self::UNLIMITED).then(|| Rate::from_bps(u64::from(self.0) * 1_000))
    }
}

/// Any packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Data, and its payload.
    Data(Data, &'a [u8]),
    /// What a destination says to the source of a flow.
    Answer(Answer),
    /// News of a flow.
    Announcement(Announcement),
    /// New routing protocols of flows.
    Assignments(Assignments),
    /// A broadcast was dropped.
    Notice(Notice),
    /// A neighbour lives.
    Hello(Hello),
    /// Which links of a node live.
    LinkState(LinkState),
    /// A source begins anew.
    Anew(Anew),
    /// News of a flow, to a central controller.
    Report(Report),
    /// What a node's flows may send, from a central controller.
    Rates(Rates),
}

/// The packet that these bytes are, in a rack of `nodes` nodes.
///
/// # Errors
/// If the bytes are not exactly what [`Message::encode`] writes for some packet of such a rack.
pub fn decode(bytes: &[u8], nodes: u32) -> Result<Message<'_>, WireError> {
    let mut read = Reader::open(bytes, nodes)?;
    let message = match read.kind() {
        Kind::Data if data::is_answer(read.number()) => {
            Message::Answer(data::decode_answer(&mut read)?)
        }
        Kind::Data => {
            let (data, payload) = data::decode(&mut read)?;
            Message::Data(data, payload)
        }
        Kind::Start | Kind::Finish | Kind::Demand | Kind::Route => {
            Message::Announcement(flow::decode(&mut read)?)
        }
        Kind::Assignments => Message::Assignments(batch::decode(&mut read)?),
        Kind::Notice => Message::Notice(upkeep::decode_notice(&mut read)?),
        Kind::Hello => Message::Hello(upkeep::decode_hello(&mut read)?),
        Kind::LinkState => Message::LinkState(upkeep::decode_link_state(&mut read)?),
        Kind::Anew => Message::Anew(upkeep::decode_anew(&mut read)?),
        Kind::Report => Message::Report(central::decode_report(&mut read)?),
        Kind::Rates => Message::Rates(central::decode_rates(&mut read)?),
    };
    read.close()?;
    Ok(message)
}

impl Message<'_> {
    /// The same, of what holds its bytes itself: anything but data.
    fn owned(self) -> Message<'static> {
        match self {
            Self::Data(data, _) => Message::Data(data, &[]),
            Self::Answer(answer) => Message::Answer(answer),
            Self::Announcement(announcement) => Message::Announcement(announcement),
            Self::Assignments(assignments) => Message::Assignments(assignments),
            Self::Notice(notice) => Message::Notice(notice),
            Self::Hello(hello) => Message::Hello(hello),
            Self::LinkState(state) => Message::LinkState(state),
            Self::Anew(anew) => Message::Anew(anew),
            Self::Report(report) => Message::Report(report),
            Self::Rates(rates) => Message::Rates(rates),
        }
    }

    /// The bytes.
    ///
    /// # Panics
    /// If a field does not fit its place.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Data(data, payload) => [&data.encode(payload)[..], payload].concat(),
            Self::Answer(answer) => answer.encode(),
            Self::Announcement(announcement) => announcement.encode().to_vec(),
            Self::Assignments(assignments) => assignments.encode(),
            Self::Notice(notice) => notice.encode().to_vec(),
            Self::Hello(hello) => hello.encode().to_vec(),
            Self::LinkState(state) => state.encode().to_vec(),
            Self::Anew(anew) => anew.encode().to_vec(),
            Self::Report(report) => report.encode().to_vec(),
            Self::Rates(rates) => rates.encode(),
        }
    }
}

#[cfg(test)]
mod tests;
