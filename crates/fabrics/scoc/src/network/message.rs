//! What leaves tell each other through the ETE switches: requests, credits and acknowledgments.
//!
//! Models: SCOC §5 (M49): messages of 10 bytes. Their fields are ours, for the paper gives the size
//! alone: a kind, the queue that is meant (its leaf and its destination) and a size.

use packets::{FlowKey, Kind, Packet};
use rack::NodeId;

/// What leaves say to each other.
const CREDIT: Kind = Kind::below_transports(0);

/// Bytes of a message (§5).
pub(super) const SIZE: u16 = 10;

/// What a message says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Say {
    /// The queue has another packet.
    Request = 1,
    /// It may send its next packet.
    Credit = 2,
    /// The packet has arrived.
    Acknowledgment = 3,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Message {
    pub(super) say: Say,
    /// The leaf that keeps the queue.
    pub(super) leaf: u16,
    /// The node that it is for.
    pub(super) node: u16,
    /// Bytes of the packet.
    pub(super) size: u16,
}

impl Message {
    /// Its bytes: kind, leaf, node and size, the lowest byte first; three are spare.
    pub(super) fn encode(self) -> [u8; SIZE as usize] {
        let mut bytes = [0; SIZE as usize];
        bytes[0] = self.say as u8;
        bytes[1..3].copy_from_slice(&self.leaf.to_le_bytes());
        bytes[3..5].copy_from_slice(&self.node.to_le_bytes());
        bytes[5..7].copy_from_slice(&self.size.to_le_bytes());
        bytes
    }

    /// The message of these bytes; `None` if they are none.
    pub(super) fn decode(bytes: [u8; SIZE as usize]) -> Option<Self> {
        let [say, a, b, c, d, e, f, 0, 0, 0] = bytes else { return None };
        let say = match say {
            1 => Say::Request,
            2 => Say::Credit,
            3 => Say::Acknowledgment,
            _ => return None,
        };
        let word = |low, high| u16::from_le_bytes([low, high]);
        Some(Self { say, leaf: word(a, b), node: word(c, d), size: word(e, f) })
    }

    /// As a packet from a node's leaf to that of another. Messages wait before segments.
    pub(super) fn packet(self, src: NodeId, dst: NodeId) -> Packet {
        let bytes = self.encode();
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[..8]);
        Packet {
            word: u64::from_le_bytes(word),
            ack: u64::from(u16::from_le_bytes([bytes[8], bytes[9]])),
            flow: FlowKey::NEIGHBOURS,
            src,
            dst,
            wire: SIZE,
            kind: CREDIT,
            priority: 0,
            ..Packet::default()
        }
    }

    /// The message in a packet.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn of(packet: &Packet) -> Self {
        let mut bytes = [0; SIZE as usize];
        bytes[..8].copy_from_slice(&packet.word.to_le_bytes());
        bytes[8..].copy_from_slice(&(packet.ack as u16).to_le_bytes());
        Self::decode(bytes).expect("only leaves speak between leaves")
    }
}

/// Part of a packet on its way from leaf to leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    /// The leaf that keeps the queue, and the node that it is for.
    pub(super) leaf: u16,
    pub(super) node: NodeId,
    /// Number of its packet in the queue, modulo 2³².
    pub(super) number: u32,
    /// The handle of its packet, as a number.
    pub(super) packet: u32,
    /// Bytes.
    pub(super) size: u16,
}

impl Segment {
    /// As a packet; `src` is any node of its leaf.
    pub(super) fn packet(self, src: NodeId) -> Packet {
        Packet {
            seq: u64::from(self.number),
            word: u64::from(self.packet) << 16 | u64::from(self.leaf),
            flow: FlowKey::NEIGHBOURS,
            src,
            dst: self.node,
            wire: self.size,
            payload: self.size,
            kind: Kind::DATA,
            priority: 1,
            ..Packet::default()
        }
    }

    /// The segment in a packet.
    pub(super) fn of(packet: &Packet) -> Self {
        Self {
            leaf: packet.word as u16,
            node: packet.dst,
            number: packet.seq as u32,
            packet: (packet.word >> 16) as u32,
            size: packet.wire,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn m49_a_message_is_ten_bytes_and_comes_back_whole(
            say in prop_oneof![
                Just(Say::Request), Just(Say::Credit), Just(Say::Acknowledgment)
            ],
            leaf: u16, node: u16, size: u16,
        ) {
            let message = Message { say, leaf, node, size };
            prop_assert_eq!(Message::decode(message.encode()), Some(message));
            let packet = message.packet(NodeId::new(1), NodeId::new(2));
            prop_assert_eq!(packet.wire, 10);
            prop_assert_eq!(Message::of(&packet), message);
        }

        #[test]
        fn bytes_are_a_message_or_refused(bytes: [u8; 10]) {
            if let Some(message) = Message::decode(bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
        }

        #[test]
        fn a_segment_comes_back_whole(leaf: u16, number: u32, packet: u32, size in 1u16..) {
            let segment = Segment { leaf, node: NodeId::new(7), number, packet, size };
            prop_assert_eq!(Segment::of(&segment.packet(NodeId::new(3))), segment);
        }
    }
}
