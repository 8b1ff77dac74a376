//! What leaves and spines tell each other: requests, credits and acknowledgments through the ETE switches,
//! segments of packets through the data switches, and room in the inputs of both.
//!
//! Models: SCOC §5 (M49): messages of 10 bytes. Their fields are ours, for the paper gives the size
//! alone: a kind, the queue that is meant (its leaf and its destination) and a size. The paper says
//! nothing of a segment's header either (E21). Ours tells the leaf that sent it and its packet's number in
//! the queue; the first segment of a packet brings the packet's own header along, and a request has told
//! how long the packet is.
//!
//! All of it stands in the fields of a [`Packet`], whose bytes are those of [`packets::wire`].

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

    /// The message in a packet; `None` if there is none.
    pub(super) fn of(packet: &Packet) -> Option<Self> {
        let mut bytes = [0; SIZE as usize];
        bytes[..8].copy_from_slice(&packet.word.to_le_bytes());
        bytes[8..].copy_from_slice(&u16::try_from(packet.ack).ok()?.to_le_bytes());
        Self::decode(bytes)
    }
}

/// Part of a packet on its way from leaf to leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    /// The leaf that keeps the queue, and the node that it is for.
    pub(super) leaf: u16,
    pub(super) node: NodeId,
    /// Number of its packet in the queue, modulo [`NUMBERS`].
    pub(super) number: u32,
    /// Bytes.
    pub(super) size: u16,
    /// The packet, in its first segment: all of its header but its length, and the path, which is for
    /// sources that choose one.
    pub(super) header: Option<Packet>,
}

/// Packets of a queue are numbered modulo this.
pub(super) const NUMBERS: u32 = 1 << 16;

/// A packet's priority stands above its hops while it is cut into segments, which have a priority of their
/// own.
const HOP_BITS: u32 = 5;

impl Segment {
    /// As a packet. `src`, if it does not bring its packet's header along: any node of its leaf. The first
    /// segment is the packet itself, but for its length, with its number in place of the path.
    pub(super) fn packet(self, src: NodeId) -> Packet {
        let packet = self.header.unwrap_or(Packet {
            flow: FlowKey::NEIGHBOURS,
            src,
            dst: self.node,
            payload: self.size,
            kind: Kind::DATA,
            ..Packet::default()
        });
        debug_assert!(packet.hops < 1 << HOP_BITS, "{packet:?}");
        Packet {
            path: self.number as u16,
            wire: self.size,
            priority: 1,
            hops: packet.priority << HOP_BITS | packet.hops,
            ..packet
        }
    }

    /// The segment in a packet that is no message, if its source has a leaf.
    pub(super) fn of(packet: &Packet, leaf_of: impl Fn(NodeId) -> Option<u16>) -> Option<Self> {
        let header = (packet.flow != FlowKey::NEIGHBOURS).then_some(Packet {
            path: 0,
            priority: packet.hops >> HOP_BITS,
            hops: packet.hops & ((1 << HOP_BITS) - 1),
            ..*packet
        });
        let (leaf, number) = (leaf_of(packet.src)?, packet.path.into());
        Some(Self { leaf, node: packet.dst, number, size: packet.wire, header })
    }
}

/// Whether a packet between leaf and spine is a message, which goes by way of the ETE switch.
#[inline]
pub(super) fn is_message(packet: &Packet) -> bool {
    packet.flow == FlowKey::NEIGHBOURS && packet.kind != Kind::DATA
}

/// An input of a spine's switch has room for so many more packets: told to the leaf at its other end, as a word
/// of three bytes ([`packets::Orders::tell`]). The paper names credits on these links (§6.A) and no more; that
/// they take no time on the line is our choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    /// In the ETE switch, not in the data switch.
    pub(super) is_control: bool,
    pub(super) count: u16,
}

impl Room {
    /// Its word: which switch, and the count in the two lowest bytes.
    pub(super) fn word(self) -> u32 {
        u32::from(self.is_control) << 16 | u32::from(self.count)
    }

    /// What a word says, if anything.
    pub(super) fn of(word: u32) -> Option<Self> {
        let is_control = match word >> 16 {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(Self { is_control, count: word as u16 })
    }
}

#[cfg(test)]
mod tests {
    use packets::Marks;
    use packets::wire::{self, Datagrams};
    use proptest::prelude::*;

    use super::*;

    /// How the packets of some transport look.
    const CODEC: Datagrams = Datagrams { header: 60 };

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
            let bytes = wire::encode(&CODEC, &packet);
            prop_assert_eq!(Message::of(&wire::decode(&CODEC, &bytes).unwrap()), Some(message));
        }

        #[test]
        fn bytes_are_a_message_or_refused(bytes: [u8; 10], room in 0u32..1 << 18) {
            if let Some(message) = Message::decode(bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
            match Room::of(room) {
                Some(message) => prop_assert_eq!(message.word(), room),
                None => prop_assert!(room >= 1 << 17),
            }
        }

        #[test]
        fn m50_a_segment_comes_back_whole_from_its_bytes(
            (src, node) in (0u32..4096, 0u32..4096),
            (number, size) in (0..NUMBERS, 1u16..),
            (seq, ack, word, stamp) in any::<(u64, u64, u64, u64)>(),
            (entropy, payload, flow) in (any::<u16>(), any::<u16>(), 0u32..1 << 28),
            (kind, priority, marks, hops) in (0u8..16, 0u8..8, any::<u8>(), 0u8..30),
            is_first: bool,
        ) {
            let (src, node) = (NodeId::new(src), NodeId::new(node));
            let header = is_first.then(|| Packet {
                seq, ack, word, entropy, payload, priority, hops, src,
                stamp: kernel::Time::from_ps(stamp),
                flow: FlowKey::new(flow),
                dst: node,
                wire: size,
                kind: if kind == 0 { Kind::DATA } else { Kind::of_transport(kind) },
                marks: Marks::from_bits_truncate(marks),
                path: 0,
            });
            // 4 nodes a leaf.
            let leaf_of = |node: NodeId| Some((node.get() / 4) as u16);
            let leaf = (src.get() / 4) as u16;
            let segment = Segment { leaf, node, number, size, header };
            let packet = segment.packet(src);
            prop_assert!(!is_message(&packet));
            let bytes = wire::encode(&CODEC, &packet);
            prop_assert_eq!(Segment::of(&wire::decode(&CODEC, &bytes).unwrap(), leaf_of), Some(segment));
        }
    }
}
