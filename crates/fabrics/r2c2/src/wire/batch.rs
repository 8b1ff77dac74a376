//! New routing protocols of many flows, in one broadcast.
//!
//! Models: R2C2 §3.4 (claim M33): flow id of four bytes and protocol of one, for up to 300 flows in a
//! packet of 1,500 bytes. That would leave no room for a header; with this one there is room for 298
//! (D07). The four bytes are source and destination; of the flows between the two the upper half of the
//! protocol's byte tells up to 16 apart (**our choice**).
//!
//! | bytes | field |
//! | --- | --- |
//! | 0 | kind |
//! | 1 | way ([`super::way`]) |
//! | 2, 3 | who says so |
//! | 4, 5 | number of flows |
//! | 6, 7 | checksum |
//! | 8, 9 | which assignment of all: a later one has a higher number, modulo 65,536 (**our choice**) |
//! | then | source, destination, protocol of each flow, and in its upper half which of them, modulo 16 |

use rack::NodeId;

use super::read::{Reader, node_bytes};
use super::{Kind, WireError, checksum};
use crate::routing::Protocol;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 10;
/// Bytes of a flow and its protocol (§3.4).
pub const PAIR_BYTES: usize = 5;
/// Bytes of the largest packet (§3.4).
pub const BYTES_MAX: usize = 1_500;
/// Most flows in a packet.
pub const PAIRS_MAX: usize = (BYTES_MAX - HEADER_BYTES) / PAIR_BYTES;

/// Flows between two nodes are told apart modulo this.
pub const INDEX_MODULUS: u8 = 16;

/// The routing protocol of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// Who sends.
    pub source: NodeId,
    /// Who receives.
    pub destination: NodeId,
    /// Which of the flows between the two, modulo [`INDEX_MODULUS`].
    pub index: u8,
    /// How packets find their way, from now on.
    pub protocol: Protocol,
}

/// New routing protocols.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignments {
    /// Who says so.
    pub source: NodeId,
    /// The way that the broadcast takes ([`super::way`]).
    pub way: u8,
    /// Counts assignments.
    pub round: u16,
    /// For whom; at most [`PAIRS_MAX`].
    pub pairs: Vec<Assignment>,
}

impl Assignments {
    /// The bytes.
    ///
    /// # Panics
    /// If there are too many pairs, a node's number is not below 65,536, or an index not below 16.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let count = self.pairs.len();
        assert!(count <= PAIRS_MAX, "{count} flows in a batch of at most {PAIRS_MAX}");
        let mut bytes = Vec::with_capacity(HEADER_BYTES + PAIR_BYTES * count);
        bytes.extend([Kind::Assignments as u8, self.way]);
        bytes.extend(node_bytes(self.source));
        bytes.extend((count as u16).to_be_bytes());
        bytes.extend([0; 2]);
        bytes.extend(self.round.to_be_bytes());
        for pair in &self.pairs {
            bytes.extend(node_bytes(pair.source));
            bytes.extend(node_bytes(pair.destination));
            assert!(pair.index < INDEX_MODULUS, "index {}, counted modulo 16", pair.index);
            bytes.push(pair.protocol.number() | pair.index << 4);
        }
        checksum::seal(&mut bytes);
        bytes
    }
}

/// The length that a batch says it has.
pub(super) fn length(bytes: &[u8]) -> Result<usize, WireError> {
    let wrong = WireError::Length { expected: HEADER_BYTES, found: bytes.len() };
    let count = bytes.get(4..6).ok_or(wrong)?;
    Ok(HEADER_BYTES + PAIR_BYTES * usize::from(u16::from_be_bytes([count[0], count[1]])))
}

pub(super) fn decode(read: &mut Reader<'_>) -> Result<Assignments, WireError> {
    read.no_number()?;
    let way = read.byte()?;
    let source = read.node("source")?;
    let count = read.short()?;
    if usize::from(count) > PAIRS_MAX {
        return Err(WireError::Field { field: "number of flows", value: u32::from(count) });
    }
    read.checksum()?;
    let round = read.short()?;
    let pair = |_| {
        let source = read.node("source")?;
        let destination = read.peer(source)?;
        let (protocol, index) = read.protocol_and_more()?;
        Ok(Assignment { source, destination, index, protocol })
    };
    let pairs = (0..count).map(pair).collect::<Result<_, WireError>>()?;
    Ok(Assignments { source, way, round, pairs })
}
