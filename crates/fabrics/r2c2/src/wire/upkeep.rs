//! What keeps broadcasts and views right: notices of drops, hellos, the state of links, and a source
//! that begins anew.
//!
//! Models: R2C2 §3.2 (claims M13, M14), which asks for a notice to the sender of a broadcast that is
//! dropped, for topology discovery and for all flows to be announced again after a failure, and leaves
//! the packets open: **our choices**, 16 bytes each.
//!
//! A notice climbs the broadcast's own tree to its root, which is a shortest path: it needs no route.
//!
//! | bytes | notice | hello | state of links | anew |
//! | --- | --- | --- | --- | --- |
//! | 0 | kind | kind | kind | kind |
//! | 1 | way | port that it left by | which ports live, a bit each | way |
//! | 2, 3 | source of the broadcast | who sends it | whose ports | who sends it |
//! | 4, 5 | destination of the flow | reach, 0 | 0 | 0 |
//! | 6, 7 | checksum | checksum | checksum | checksum |
//! | 8, 9 | who dropped it | number | number, in four bytes | number, in four bytes |
//! | 10, 11 | for whom it was | number last heard | | |
//! | 12 | first byte of the broadcast | digest, in four bytes | 0 | 0 |
//! | 13 | which flow between the two | | 0 | 0 |
//! | 14, 15 | round of an assignment, or of a new beginning | | 0 | 0 |

use rack::NodeId;

use super::flow::first;
use super::read::{Reader, assemble, node_bytes};
use super::{Event, Kind, SHORT_BYTES, WireError};

/// Which broadcast was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dropped {
    /// News of a flow of the sender.
    Announcement {
        /// What happened.
        event: Event,
        /// Its number among the flow's announcements, modulo 16.
        number: u8,
        /// Who receives the flow.
        destination: NodeId,
        /// Which of the flows between the two.
        index: u8,
    },
    /// New routing protocols, of this round.
    Assignments {
        /// Which assignment of all.
        round: u16,
    },
    /// That the sender begins anew.
    Anew {
        /// How often it had, modulo 65,536.
        round: u16,
    },
}

/// A broadcast was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Who sent the broadcast, and is told.
    pub source: NodeId,
    /// The way that it took ([`super::way`]).
    pub way: u8,
    /// What it said.
    pub dropped: Dropped,
    /// The node whose queue was full.
    pub dropper: NodeId,
    /// The neighbour that got no copy, nor did those behind it.
    pub child: NodeId,
}

impl Notice {
    /// The bytes.
    ///
    /// # Panics
    /// If a number does not fit its field.
    #[must_use]
    pub fn encode(&self) -> [u8; SHORT_BYTES] {
        let (first_byte, destination, index, round) = match self.dropped {
            Dropped::Announcement { event, number, destination, index } => {
                (first(event.kind(), number), node_bytes(destination), index, 0)
            }
            Dropped::Assignments { round } => (Kind::Assignments as u8, [0; 2], 0, round),
            Dropped::Anew { round } => (Kind::Anew as u8, [0; 2], 0, round),
        };
        assemble(&[
            &[Kind::Notice as u8, self.way],
            &node_bytes(self.source),
            &destination,
            &[0; 2],
            &node_bytes(self.dropper),
            &node_bytes(self.child),
            &[first_byte, index],
            &round.to_be_bytes(),
        ])
    }
}

pub(super) fn decode_notice(read: &mut Reader<'_>) -> Result<Notice, WireError> {
    read.no_number()?;
    let way = read.byte()?;
    let source = read.node("source")?;
    let destination = read.node("destination")?;
    read.checksum()?;
    let dropper = read.node("dropper")?;
    let child = read.node("child")?;
    let first = read.byte()?;
    let wrong = |field, value: u32| WireError::Field { field, value };
    let dropped = match Kind::of(first) {
        Some(kind @ (Kind::Assignments | Kind::Anew)) if first >> 4 == 0 => {
            read.spare::<1>()?;
            if destination != NodeId::new(0) {
                return Err(wrong("spare", destination.get()));
            }
            let round = read.short()?;
            match kind {
                Kind::Anew => Dropped::Anew { round },
                _ => Dropped::Assignments { round },
            }
        }
        kind => {
            let event = kind.and_then(Event::of);
            let event = event.ok_or(wrong("dropped kind", u32::from(first)))?;
            if destination == source {
                return Err(wrong("destination", destination.get()));
            }
            let index = read.byte()?;
            read.spare::<2>()?;
            Dropped::Announcement { event, number: first >> 4, destination, index }
        }
    };
    Ok(Notice { source, way, dropped, dropper, child })
}

/// A neighbour lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Who sends it.
    pub source: NodeId,
    /// The port that it left by, counted among those of the node.
    pub port: u8,
    /// Counts the hellos on this link; 0 is left out.
    pub number: u16,
    /// The last number heard from the other end, 0 if none of late: a link that is deaf in one
    /// direction is dead in both.
    pub heard: u16,
    /// For how many hops nodes are asked to greet, the sender included: less one they ask for themselves.
    pub reach: u8,
    /// Digest of all that the sender knows of links ([`LinkState::digest`]): neighbours whose
    /// digests differ tell each other all.
    pub digest: u32,
}

impl Hello {
    /// The bytes.
    ///
    /// # Panics
    /// If the node's number is not below 65,536.
    #[must_use]
    pub fn encode(&self) -> [u8; SHORT_BYTES] {
        assemble(&[
            &[Kind::Hello as u8, self.port],
            &node_bytes(self.source),
            &[self.reach, 0],
            &[0; 2],
            &self.number.to_be_bytes(),
            &self.heard.to_be_bytes(),
            &self.digest.to_be_bytes(),
        ])
    }
}

pub(super) fn decode_hello(read: &mut Reader<'_>) -> Result<Hello, WireError> {
    read.no_number()?;
    let port = read.byte()?;
    let source = read.node("source")?;
    let reach = read.byte()?;
    read.spare::<1>()?;
    read.checksum()?;
    let (number, heard) = (read.short()?, read.short()?);
    Ok(Hello { source, port, reach, number, heard, digest: read.word()? })
}

/// Which links of a node live. Every node that hears it first passes it on by all its ports: trees
/// may be broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkState {
    /// Whose links.
    pub source: NodeId,
    /// Counts what this node has said of its links; the highest number is true.
    pub sequence: u32,
    /// A bit for each port, the first lowest: whether its link lives.
    pub living: u8,
}

impl LinkState {
    /// A digest of it: FNV-1a (32 bits, the published basis and prime) of its bytes. That of many
    /// states is the exclusive or of theirs: it depends on no order.
    #[must_use]
    pub fn digest(&self) -> u32 {
        let mix = |hash: u32, &byte: &u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        self.encode().iter().fold(0x811c_9dc5, mix)
    }

    /// The bytes.
    ///
    /// # Panics
    /// If the node's number is not below 65,536.
    #[must_use]
    pub fn encode(&self) -> [u8; SHORT_BYTES] {
        assemble(&[
            &[Kind::LinkState as u8, self.living],
            &node_bytes(self.source),
            &[0; 4],
            &self.sequence.to_be_bytes(),
            &[0; 4],
        ])
    }
}

pub(super) fn decode_link_state(read: &mut Reader<'_>) -> Result<LinkState, WireError> {
    read.no_number()?;
    let living = read.byte()?;
    let source = read.node("source")?;
    read.spare::<2>()?;
    read.checksum()?;
    let sequence = read.word()?;
    read.spare::<4>()?;
    Ok(LinkState { source, sequence, living })
}

/// A source begins anew (§3.2, after a failure): what it has announced before is void, and all its
/// flows follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anew {
    /// Who sends it.
    pub source: NodeId,
    /// The way that the broadcast takes ([`super::way`]).
    pub way: u8,
    /// Counts how often this source has begun anew.
    pub number: u32,
}

impl Anew {
    /// The bytes.
    ///
    /// # Panics
    /// If the node's number is not below 65,536.
    #[must_use]
    pub fn encode(&self) -> [u8; SHORT_BYTES] {
        assemble(&[
            &[Kind::Anew as u8, self.way],
            &node_bytes(self.source),
            &[0; 4],
            &self.number.to_be_bytes(),
            &[0; 4],
        ])
    }
}

pub(super) fn decode_anew(read: &mut Reader<'_>) -> Result<Anew, WireError> {
    read.no_number()?;
    let way = read.byte()?;
    let source = read.node("source")?;
    read.spare::<2>()?;
    read.checksum()?;
    let number = read.word()?;
    read.spare::<4>()?;
    Ok(Anew { source, way, number })
}
