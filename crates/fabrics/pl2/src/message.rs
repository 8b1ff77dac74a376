//! PL2's frames as the simulator passes them: fields of a packet without payload.
//!
//! A control frame belongs to no flow. A tag takes the place of the path number, which has no meaning
//! where all hosts are at one switch.

use kernel::{Bytes, Time};
use packets::{FlowKey, Kind, Packet};
use rack::NodeId;

use crate::wire::control::{Flags, Opcode};
use crate::wire::{Address, CONTROL_BYTES, Control, ENVELOPE, SPACING, Tag, on_the_wire, tag};

/// A control frame of PL2, below whatever transport it carries.
pub(crate) const KIND: Kind = Kind::below_transports(0);

/// The priority of control frames: before all data (PL2, footnote 7).
pub(crate) const PRIORITY: u8 = 0;
/// The most urgent that data may be: a transport that has it among control frames (Homa's first priority)
/// gets the next queue.
const DATA_PRIORITY: u8 = PRIORITY + 1;
/// Bytes that a control frame takes on the wire.
pub(crate) const CONTROL_WIRE: u16 = CONTROL_BYTES as u16 + SPACING.get() as u16;
/// The most that a frame has on the wire beside its packet.
pub(crate) const FRAMING_MAX: Bytes = Bytes::new(ENVELOPE.get() + SPACING.get() + tag::TAG.get());

/// What a control frame says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    pub(crate) opcode: Opcode,
    pub(crate) flags: Flags,
    pub(crate) demand: u16,
    pub(crate) burst: u32,
    pub(crate) send_slot: u32,
    pub(crate) receive_slot: u32,
    pub(crate) pair_slots: u32,
    pub(crate) stamp: Time,
}

impl Message {
    /// The packet that carries it.
    pub(crate) fn packet(self, src: NodeId, dst: NodeId) -> Packet {
        let head = u64::from(self.opcode as u8) << 56 | u64::from(self.flags.bits()) << 48;
        Packet {
            flow: FlowKey::NEIGHBOURS,
            src,
            dst,
            kind: KIND,
            priority: PRIORITY,
            wire: CONTROL_WIRE,
            word: head | u64::from(self.demand) << 32 | u64::from(self.burst),
            ack: u64::from(self.send_slot) << 32 | u64::from(self.receive_slot),
            seq: self.pair_slots.into(),
            stamp: self.stamp,
            ..Packet::default()
        }
    }

    /// What a packet says; `None`: it is no control frame.
    #[inline]
    pub(crate) fn of(packet: &Packet) -> Option<Self> {
        if packet.kind != KIND || packet.flow != FlowKey::NEIGHBOURS {
            return None;
        }
        Self::read(packet)
    }

    fn read(packet: &Packet) -> Option<Self> {
        Some(Self {
            opcode: Opcode::from_number((packet.word >> 56) as u8)?,
            flags: Flags::from_bits((packet.word >> 48) as u8)?,
            demand: (packet.word >> 32) as u16,
            burst: packet.word as u32,
            send_slot: (packet.ack >> 32) as u32,
            receive_slot: packet.ack as u32,
            pair_slots: packet.seq as u32,
            stamp: packet.stamp,
        })
    }

    /// What a control frame says.
    pub(crate) fn of_frame(frame: &Control) -> Self {
        Self {
            opcode: frame.opcode,
            flags: frame.flags,
            demand: frame.demand,
            burst: frame.burst,
            send_slot: frame.send_slot,
            receive_slot: frame.receive_slot,
            pair_slots: frame.pair_slots,
            stamp: Time::from_ps(frame.stamp),
        }
    }

    /// The frame that stands for it.
    pub(crate) fn frame(self, src: NodeId, dst: NodeId) -> Control {
        Control {
            destination: Address::of(dst),
            source: Address::of(src),
            opcode: self.opcode,
            flags: self.flags,
            demand: self.demand,
            burst: self.burst,
            send_slot: self.send_slot,
            receive_slot: self.receive_slot,
            pair_slots: self.pair_slots,
            stamp: self.stamp.as_ps(),
        }
    }
}

/// Puts a packet in its frame: what it takes on the wire, its tag, and a priority below that of control
/// frames, if it is data.
#[inline]
pub(crate) fn framed(packet: &Packet, tag: Option<Tag>) -> Packet {
    let extra = if tag.is_some() { tag::TAG } else { Bytes::ZERO };
    let wire = on_the_wire(packet.size(), extra).get() as u16;
    let most_urgent = if packet.payload > 0 { DATA_PRIORITY } else { PRIORITY };
    let priority = packet.priority.max(most_urgent);
    Packet { wire, priority, path: tag.map_or(0, Tag::bits), ..*packet }
}

/// The tag of a data packet.
#[inline]
pub(crate) fn tag_of(packet: &Packet) -> Option<Tag> {
    if packet.path == 0 { None } else { Tag::from_bits(packet.path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_out_of_its_packet_as_it_went_in() {
        for opcode in (1..=5).filter_map(Opcode::from_number) {
            let message = Message {
                opcode,
                flags: Flags { is_unsolicited: true, is_crowded: false },
                demand: u16::MAX,
                burst: u32::MAX - 1,
                send_slot: u32::MAX,
                receive_slot: 7,
                pair_slots: u32::MAX - 2,
                stamp: Time::from_ps(9),
            };
            let (src, dst) = (NodeId::new(3), NodeId::new(4));
            let packet = message.packet(src, dst);
            assert_eq!(Message::of(&packet), Some(message));
            let frame = message.frame(src, dst);
            assert_eq!(Control::decode(&frame.encode()), Ok(frame));
        }
        assert_eq!(Message::of(&Packet::default()), None);
    }

    #[test]
    fn m03_m17_frames_take_38_bytes_more_and_tags_4() {
        let data = Packet { wire: 1_500, path: 9, ..Packet::default() };
        assert_eq!(framed(&data, None), Packet { wire: 1_538, path: 0, ..data });
        let tagged = framed(&data, Some(Tag::Unreserved));
        assert_eq!((tagged.wire, tag_of(&tagged)), (1_542, Some(Tag::Unreserved)));
    }

    #[test]
    fn m18_data_is_less_urgent_than_control_frames() {
        for (priority, payload, expected) in [(0, 1, 1), (0, 0, 0), (1, 1, 1), (7, 1_458, 7)] {
            let packet = Packet { wire: 1_500, priority, payload, ..Packet::default() };
            assert_eq!(framed(&packet, None).priority, expected, "{priority}, {payload} B");
        }
    }
}
