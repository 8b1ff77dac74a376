//! What passes between hosts and switch, as bytes: PL2's own frames, and those of the transport above with its tag.
//!
//! Control frames are those of [`crate::wire::Control`], bit for bit. Data is the transport's frame, with the tag, if
//! it has one, where [`crate::wire::tag`] puts it: behind the addresses, before the 802.1Q tag. So
//! [`crate::switch::frames`] reads what a run sends.

use std::sync::Arc;

use kernel::Bytes;
use packets::Packet;
use packets::wire::Codec;

use crate::message::{KIND, Message, tag_of};
use crate::wire::{Control, Opcode, Tag, fcs, on_the_wire, tag};

/// Bytes of the addresses, behind which a tag stands.
const ADDRESSES: usize = 12;
/// Bytes of a control frame before its check sequence.
const CONTROL: usize = crate::wire::CONTROL_BYTES - fcs::BYTES;

/// Frames of a rack with a transport above PL2.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    pub(crate) inner: Arc<dyn Codec>,
}

impl Codec for Frames {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        let message = Message::of(packet).filter(|message| message.demand > 0);
        if let Some(message) = message {
            return frame.extend(&message.frame(packet.src, packet.dst).encode()[..CONTROL]);
        }
        self.inner.write(&Packet { path: 0, ..*packet }, frame);
        if let Some(tag) = tag_of(packet).filter(|_| frame.len() >= ADDRESSES) {
            frame.splice(ADDRESSES..ADDRESSES, tag.encode());
        }
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        if let Some(packet) = read_control(frame) {
            return Some(packet);
        }
        let (addresses, rest) = frame.split_at_checked(ADDRESSES)?;
        let tag = Tag::decode(rest).ok()?;
        let (extra, rest) = match tag {
            Some(_) => (tag::TAG, &rest[tag::TAG.get() as usize..]),
            None => (Bytes::ZERO, rest),
        };
        let packet = self.inner.read(&[addresses, rest].concat())?;
        let wire = on_the_wire(packet.size(), extra).get() as u16;
        Some(Packet { path: tag.map_or(0, Tag::bits), wire, ..packet })
    }
}

/// The packet of a control frame, whose check sequence was looked at before.
fn read_control(frame: &[u8]) -> Option<Packet> {
    let mut whole = frame.get(..CONTROL)?.to_vec();
    whole.extend([0; fcs::BYTES]);
    fcs::seal(&mut whole);
    let control = Control::decode(&whole).ok()?;
    let (src, dst) = (control.source.node()?, control.destination.node()?);
    let packet = Message::of_frame(&control).packet(src, dst);
    // It comes from the switch, unless a host asks for slots or gives them back.
    let is_hosts = matches!(control.opcode, Opcode::Reserve | Opcode::Reset);
    Some(Packet { hops: u8::from(!is_hosts), kind: KIND, ..packet })
}

#[cfg(test)]
mod tests {
    use kernel::Time;
    use packets::wire::{Datagrams, decode, encode, real, rides};
    use packets::{FlowKey, Kind, Marks, PRIORITIES};
    use proptest::prelude::*;
    use rack::NodeId;

    use super::*;
    use crate::message::framed;
    use crate::switch::frames::{Decision, process};
    use crate::switch::pipeline::{Accounting, Decrement, Pipeline, Settings};
    use crate::wire::tag::Place;
    use crate::wire::{Address, Flags};

    fn codec() -> Frames {
        Frames { inner: Arc::new(Datagrams { header: 42 }) }
    }

    fn reservation() -> Message {
        Message {
            opcode: Opcode::Reserve,
            flags: Flags::default(),
            demand: 4,
            burst: 9,
            send_slot: 0,
            receive_slot: 0,
            pair_slots: 0,
            stamp: Time::from_ps(123_456_789),
        }
    }

    fn data(payload: u16, tag: Option<Tag>) -> Packet {
        let (src, dst) = (NodeId::new(1), NodeId::new(2));
        let packet = Packet { src, dst, payload, wire: payload + 42, ..Packet::default() };
        framed(&packet, tag)
    }

    /// What a run sends is what the program on real frames reads.
    #[test]
    fn m15_m17_the_switch_reads_what_a_run_sends() {
        let codec = codec();
        let settings = Settings {
            ports: 4,
            drop_above: 100,
            accounting: Accounting::Flagged,
            decrement: Decrement::Ingress,
            increment: 1,
            pairs: 0,
        };
        let mut pipeline = Pipeline::new(settings);
        let asks = reservation().packet(NodeId::new(1), NodeId::new(2));
        assert_eq!(rides(&codec, &asks), [""; 0]);
        let frame = real(&encode(&codec, &asks)).unwrap();
        let Decision::Send { port: 1, frame, .. } = process(&mut pipeline, 1, &frame) else {
            panic!("no grant for a reservation");
        };
        let grant = Control::decode(&frame).unwrap();
        assert_eq!((grant.opcode, grant.destination), (Opcode::Grant, Address::of(asks.src)));
        let place = Place { thread: 3, burst: 2, index: 1 };
        for tag in [None, Some(Tag::Unreserved), Some(Tag::Unsolicited(place))] {
            let packet = data(1_400, tag);
            assert_eq!(rides(&codec, &packet), [""; 0]);
            let frame = real(&encode(&codec, &packet)).unwrap();
            let passed = process(&mut pipeline, 1, &frame);
            assert!(matches!(passed, Decision::Send { port: 2, .. }), "{tag:?}: {passed:?}");
        }
    }

    proptest! {
        /// Whatever a packet says, it comes out as it went in, and a flipped bit is found.
        #[test]
        fn every_packet_comes_out_as_it_went_in(
            longs: [u64; 4],
            (number, nodes, back) in (0u32..1 << 29, any::<[u32; 2]>(), any::<bool>()),
            (shorts, payload) in (any::<[u16; 3]>(), 0u16..2_000),
            (kind, priority, marks, hops) in (0u8..3, 0..PRIORITIES, any::<u8>(), any::<u8>()),
            flipped: usize,
        ) {
            let codec = codec();
            let flow = FlowKey::of_number(number, back).unwrap();
            let packet = Packet {
                seq: longs[0] >> if back { 32 } else { 0 },
                ack: longs[1],
                // Often an operation and flags that there are.
                word: longs[2] & !(0xFFFC << 48) | u64::from(priority) << 56,
                stamp: Time::from_ps(longs[3]),
                flow: if kind > 0 { FlowKey::NEIGHBOURS } else { flow },
                src: NodeId::new(nodes[0]),
                dst: NodeId::new(nodes[1]),
                entropy: shorts[0],
                path: shorts[1],
                wire: shorts[2],
                payload,
                kind: if kind == 1 { KIND } else { Kind::DATA },
                priority,
                marks: Marks::from_bits_truncate(marks),
                hops,
            };
            let mut bytes = encode(&codec, &packet);
            prop_assert_eq!(decode(&codec, &bytes), Ok(packet));
            let bit = flipped % (8 * bytes.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode(&codec, &bytes).is_err());
        }
    }
}
