//! A broadcast that is said again to those who missed it.
//!
//! Models: R2C2 §3.2 (claim M13), which has the source of a dropped broadcast send it again and leaves
//! open to whom. **Our choice**: the bytes of the broadcast, and four more behind them, from the notice
//! ([`super::Notice`]) that told of the drop: the node that dropped it, which has no need of it itself,
//! and the neighbour for which it was. The copy goes by the broadcast's own tree to the one, and from
//! there as the broadcast was to the other. The checksum covers all.

use rack::NodeId;

use super::read::{Reader, node_bytes};
use super::{Kind, Message, WireError, checksum};

/// Bytes by which it is longer than the broadcast.
pub const MORE_BYTES: usize = 4;

/// To whom a broadcast is said again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Again {
    /// The node that dropped it.
    pub dropper: NodeId,
    /// The neighbour that got no copy, nor did those behind it.
    pub child: NodeId,
}

impl Again {
    /// The bytes of `broadcast` as it is said again.
    ///
    /// # Panics
    /// If a node's number is not below 65,536.
    #[must_use]
    pub fn encode(&self, broadcast: &[u8]) -> Vec<u8> {
        let nodes = [node_bytes(self.dropper), node_bytes(self.child)].concat();
        let mut bytes = [broadcast, &nodes].concat();
        checksum::seal(&mut bytes);
        bytes
    }
}

/// Splits a broadcast that is said again: to whom, and its own bytes.
///
/// # Errors
/// If it is damaged, is no broadcast, or names what is no node of a rack of `nodes`.
pub fn decode(bytes: &[u8], nodes: u32) -> Result<(Again, Vec<u8>), WireError> {
    let read = Reader::open(bytes, nodes)?;
    let is_broadcast = matches!(
        read.kind(),
        Kind::Start | Kind::Finish | Kind::Demand | Kind::Route | Kind::Assignments | Kind::Anew
    );
    if !is_broadcast {
        return Err(WireError::Kind(bytes[0]));
    }
    let found = bytes.len();
    let shortest = WireError::Length { expected: super::SHORT_BYTES, found };
    let (broadcast, ends) = bytes.split_last_chunk::<MORE_BYTES>().ok_or(shortest)?;
    let node = |field, value: [u8; 2]| {
        let value = u32::from(u16::from_be_bytes(value));
        if value < nodes { Ok(NodeId::new(value)) } else { Err(WireError::Field { field, value }) }
    };
    let dropper = node("dropper", [ends[0], ends[1]])?;
    let child = node("child", [ends[2], ends[3]])?;
    if dropper == child {
        return Err(WireError::Field { field: "child", value: child.get() });
    }
    let mut broadcast = broadcast.to_vec();
    checksum::seal(&mut broadcast);
    // What is left is a broadcast of its own.
    let message: Message<'_> = super::decode(&broadcast, nodes)?;
    drop(message);
    Ok((Again { dropper, child }, broadcast))
}
