//! What keeps broadcasts and views right: notices of drops, hellos, the state of links.
//!
//! Models: R2C2 §3.2 (claims M13, M14), which asks for a notice to the sender of a broadcast that is
//! dropped and for topology discovery, and leaves their packets open: **our choices**, 16 bytes each.
//!
//! A notice climbs the broadcast's own tree to its root, which is a shortest path: it needs no route.
//!
//! | bytes | notice | hello | state of links |
//! | --- | --- | --- | --- |
//! | 0 | kind | kind | kind |
//! | 1 | tree | port that it left by | which ports live, a bit each |
//! | 2, 3 | source of the broadcast | who sends it | whose ports |
//! | 4, 5 | destination of the flow | 0 | 0 |
//! | 6, 7 | checksum | checksum | checksum |
//! | 8 to 11 | who dropped it, for whom it was | number | number |
//! | 12 | first byte of the broadcast | number last heard, in four bytes | 0 |
//! | 13 | which flow between the two | | 0 |
//! | 14, 15 | round of an assignment | | 0 |

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
}

/// A broadcast was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Who sent the broadcast, and is told.
    pub source: NodeId,
    /// The tree that it took.
    pub tree: u8,
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
        };
        assemble(&[
            &[Kind::Notice as u8, self.tree],
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
    let tree = read.byte()?;
    let source = read.node("source")?;
    let destination = read.node("destination")?;
    read.checksum()?;
    let dropper = read.node("dropper")?;
    let child = read.node("child")?;
    let first = read.byte()?;
    let wrong = |field, value: u32| WireError::Field { field, value };
    let dropped = match Kind::of(first) {
        Some(Kind::Assignments) if first >> 4 == 0 => {
            read.spare::<1>()?;
            if destination != NodeId::new(0) {
                return Err(wrong("spare", destination.get()));
            }
            Dropped::Assignments { round: read.short()? }
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
    Ok(Notice { source, tree, dropped, dropper, child })
}

/// A neighbour lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// Who sends it.
    pub source: NodeId,
    /// The port that it left by, counted among those of the node.
    pub port: u8,
    /// Counts the hellos on this link, from 1.
    pub sequence: u32,
    /// The last number heard from the other end, 0 if none: a link that is deaf in one direction is
    /// dead in both.
    pub heard: u32,
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
            &[0; 4],
            &self.sequence.to_be_bytes(),
            &self.heard.to_be_bytes(),
        ])
    }
}

pub(super) fn decode_hello(read: &mut Reader<'_>) -> Result<Hello, WireError> {
    read.no_number()?;
    let port = read.byte()?;
    let source = read.node("source")?;
    read.spare::<2>()?;
    read.checksum()?;
    Ok(Hello { source, port, sequence: read.word()?, heard: read.word()? })
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
