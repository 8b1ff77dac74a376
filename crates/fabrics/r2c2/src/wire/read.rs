//! Reading and writing fields in order.

use rack::NodeId;

use super::{Kind, NODES_MAX, WireError, checksum};
use crate::routing::Protocol;

/// A packet that is read, field by field.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: u32,
    kind: Kind,
}

impl<'a> Reader<'a> {
    /// Opens a packet: its kind is known, its checksum right, its first byte read.
    pub(super) fn open(bytes: &'a [u8], nodes: u32) -> Result<Self, WireError> {
        let Some(&first) = bytes.first() else {
            return Err(WireError::Length { expected: 1, found: 0 });
        };
        let kind = Kind::of(first).ok_or(WireError::Kind(first))?;
        let place = checksum::place(kind);
        let shortest = place + 2;
        let Some(found) = bytes.get(place..shortest) else {
            return Err(WireError::Length { expected: shortest, found: bytes.len() });
        };
        if checksum::of_packet(kind, bytes).to_be_bytes() != *found {
            return Err(WireError::Corrupted);
        }
        Ok(Self { bytes, at: 1, nodes, kind })
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The upper half of the first byte.
    pub(super) fn number(&self) -> u8 {
        self.bytes[0] >> 4
    }

    /// The upper half of the first byte, which is spare in most kinds.
    pub(super) fn no_number(&self) -> Result<(), WireError> {
        spare(u32::from(self.number()))
    }

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let Some(&field) = self.bytes[self.at..].first_chunk::<N>() else {
            return Err(WireError::Length { expected: self.at + N, found: self.bytes.len() });
        };
        self.at += N;
        Ok(field)
    }

    pub(super) fn byte(&mut self) -> Result<u8, WireError> {
        self.take().map(u8::from_be_bytes)
    }

    pub(super) fn short(&mut self) -> Result<u16, WireError> {
        self.take().map(u16::from_be_bytes)
    }

    pub(super) fn word(&mut self) -> Result<u32, WireError> {
        self.take().map(u32::from_be_bytes)
    }

    /// A node of the rack.
    pub(super) fn node(&mut self, field: &'static str) -> Result<NodeId, WireError> {
        let value = u32::from(self.short()?);
        if value < self.nodes {
            Ok(NodeId::new(value))
        } else {
            Err(WireError::Field { field, value })
        }
    }

    /// Another node than `source`.
    pub(super) fn peer(&mut self, source: NodeId) -> Result<NodeId, WireError> {
        let field = "destination";
        let peer = self.node(field)?;
        if peer == source { Err(WireError::Field { field, value: peer.get() }) } else { Ok(peer) }
    }

    /// A routing protocol.
    pub(super) fn protocol(&mut self) -> Result<Protocol, WireError> {
        let number = self.byte()?;
        let wrong = WireError::Field { field: "protocol", value: u32::from(number) };
        Protocol::from_number(number).ok_or(wrong)
    }

    /// A routing protocol in the lower half of a byte, and what is in the upper.
    pub(super) fn protocol_and_more(&mut self) -> Result<(Protocol, u8), WireError> {
        let byte = self.byte()?;
        let number = byte & 0x0F;
        let wrong = WireError::Field { field: "protocol", value: u32::from(number) };
        Ok((Protocol::from_number(number).ok_or(wrong)?, byte >> 4))
    }

    /// Bytes that are spare.
    pub(super) fn spare<const N: usize>(&mut self) -> Result<(), WireError> {
        self.take::<N>()?.into_iter().try_for_each(|byte| spare(u32::from(byte)))
    }

    /// The checksum, which was looked at before.
    pub(super) fn checksum(&mut self) -> Result<(), WireError> {
        self.short().map(|_| ())
    }

    /// So many bytes, which must be the last.
    pub(super) fn last(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let rest = &self.bytes[self.at..];
        if rest.len() != count {
            let (expected, found) = (self.at + count, self.bytes.len());
            return Err(WireError::Length { expected, found });
        }
        self.at = self.bytes.len();
        Ok(rest)
    }

    /// Ends the packet here.
    pub(super) fn close(mut self) -> Result<(), WireError> {
        self.last(0).map(|_| ())
    }
}

fn spare(value: u32) -> Result<(), WireError> {
    if value == 0 { Ok(()) } else { Err(WireError::Field { field: "spare", value }) }
}

/// The two bytes of a node.
///
/// # Panics
/// If its number needs more.
pub(super) fn node_bytes(node: NodeId) -> [u8; 2] {
    assert!(node.get() < NODES_MAX, "{node}, of {NODES_MAX} that a packet can name");
    (node.get() as u16).to_be_bytes()
}

/// Puts fields together to a packet of `N` bytes, and seals it.
///
/// # Panics
/// If they have another number of bytes.
pub(super) fn assemble<const N: usize>(fields: &[&[u8]]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    for field in fields {
        bytes[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    }
    assert_eq!(at, N, "bytes of a packet");
    checksum::seal(&mut bytes);
    bytes
}
