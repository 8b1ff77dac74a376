//! News of a flow: the broadcast of 16 bytes.
//!
//! Models: R2C2 §3.1, §3.2, §4.2 (claims M15, M36, I11), which name all fields but those that are our choice.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0 | kind, and the announcement's number (**our choice**) |
//! | 1 | way ([`super::way`]) |
//! | 2, 3 | source of the flow, which is that of the broadcast |
//! | 4, 5 | destination of the flow |
//! | 6, 7 | checksum |
//! | 8 to 11 | demand in Kb/s |
//! | 12 | weight |
//! | 13 | priority, 0 the highest |
//! | 14 | routing protocol |
//! | 15 | which of the flows between the two (**our choice**) |
//!
//! Every announcement says all there is to say of the flow: whoever missed one learns it from the
//! next, and an announcement heard twice does nothing.

use std::num::NonZeroU8;

use rack::NodeId;

use super::read::{Reader, assemble, node_bytes};
use super::{Kbps, Kind, SHORT_BYTES, WireError};
use crate::routing::Protocol;

/// What happens to a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// It starts, or is announced again (§3.2, after a failure).
    Start,
    /// It is over.
    Finish,
    /// Its demand is another.
    Demand,
    /// Its routing protocol is another.
    Route,
}

impl Event {
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Start => Kind::Start,
            Self::Finish => Kind::Finish,
            Self::Demand => Kind::Demand,
            Self::Route => Kind::Route,
        }
    }

    pub(super) const fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Start => Some(Self::Start),
            Kind::Finish => Some(Self::Finish),
            Kind::Demand => Some(Self::Demand),
            Kind::Route => Some(Self::Route),
            _ => None,
        }
    }
}

/// What the rates of a flow depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// What it can send at most.
    pub demand: Kbps,
    /// Its weight.
    pub weight: NonZeroU8,
    /// Its priority; 0 is the highest.
    pub priority: u8,
    /// How its packets find their way.
    pub protocol: Protocol,
}

/// News of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announcement {
    /// What happens.
    pub event: Event,
    /// Counts the announcements of this flow, modulo 16.
    pub number: u8,
    /// The way that the broadcast takes ([`super::way`]).
    pub way: u8,
    /// Who sends the flow, and the broadcast.
    pub source: NodeId,
    /// Who receives the flow.
    pub destination: NodeId,
    /// Which of the flows between the two.
    pub index: u8,
    /// How often the source has begun anew: not in the 16 bytes, but behind them ([`super::Tail`]) once it has.
    pub round: u32,
    /// What its rate depends on, from now on.
    pub allocation: Allocation,
}

/// The first byte of an announcement.
pub(super) fn first(kind: Kind, number: u8) -> u8 {
    assert!(number < 16, "announcement {number}, counted modulo 16");
    kind as u8 | number << 4
}

impl Announcement {
    /// The bytes.
    ///
    /// # Panics
    /// If the number is not below 16, or a node's not below 65,536.
    #[must_use]
    pub fn encode(&self) -> [u8; SHORT_BYTES] {
        self.encode_as(self.event.kind(), self.way)
    }

    /// The bytes of a packet of this kind, with `way` in place of its way.
    pub(super) fn encode_as(&self, kind: Kind, way: u8) -> [u8; SHORT_BYTES] {
        let Allocation { demand, weight, priority, protocol } = self.allocation;
        assemble(&[
            &[first(kind, self.number), way],
            &node_bytes(self.source),
            &node_bytes(self.destination),
            &[0; 2],
            &demand.get().to_be_bytes(),
            &[weight.get(), priority, protocol.number(), self.index],
        ])
    }
}

pub(super) fn decode(read: &mut Reader<'_>) -> Result<Announcement, WireError> {
    let event = Event::of(read.kind()).expect("the kinds of news were asked for");
    let way = read.byte()?;
    decode_after_way(read, event, way)
}

/// All fields behind the way.
pub(super) fn decode_after_way(
    read: &mut Reader<'_>,
    event: Event,
    way: u8,
) -> Result<Announcement, WireError> {
    let number = read.number();
    let source = read.node("source")?;
    let destination = read.peer(source)?;
    read.checksum()?;
    let demand = Kbps::new(read.word()?);
    let none = WireError::Field { field: "weight", value: 0 };
    let weight = NonZeroU8::new(read.byte()?).ok_or(none)?;
    let priority = read.byte()?;
    let protocol = read.protocol()?;
    let index = read.byte()?;
    let allocation = Allocation { demand, weight, priority, protocol };
    Ok(Announcement { event, number, way, source, destination, index, round: 0, allocation })
}
