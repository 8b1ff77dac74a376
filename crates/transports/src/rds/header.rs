//! Packets as bytes: UDP, and behind its header 16 bytes of RDS.
//!
//! PL2 §6.1 says what travels and gives no layout; **our choice**, big endian:
//!
//! | bytes | field |
//! | --- | --- |
//! | 0 | kind: 0 data, 1 grant, 2 drop notification, 3 the receiver is there, 4 all has arrived |
//! | 1 | 1: the message's last packet |
//! | 2, 3 | zero |
//! | 4 to 7 | data: its number; a grant: packets that may be sent; a drop notification: the first |
//! | 8 to 15 | data: bytes of the message; a drop notification: the first that is not missing |
//!
//! On the wire the real part has 20 bytes more than [`Packet::wire`] counts: these, and the tag.

use packets::wire::{Codec, Ports, read_udp, write_udp};
use packets::{Framing, Kind, Marks, Packet};

use crate::kinds;

/// Bytes of the header.
const HEADER: usize = 16;
/// By number: what a packet is.
const KINDS: [Kind; 5] = [Kind::DATA, kinds::GRANT, kinds::RESEND, kinds::BUSY, kinds::ACK];

/// RDS's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) framing: Framing,
    pub(super) control: u16,
}

impl Codec for Granted {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        let kind = KINDS.iter().position(|&kind| kind == packet.kind).unwrap_or(0) as u8;
        let first = if packet.is_data() { packet.seq } else { packet.ack };
        let mut body = Vec::with_capacity(HEADER + usize::from(packet.payload));
        body.extend([kind, packet.marks.contains(Marks::LAST).into(), 0, 0]);
        body.extend((first as u32).to_be_bytes());
        body.extend(packet.word.to_be_bytes());
        body.resize(HEADER + usize::from(packet.payload), 0);
        write_udp(packet, Ports::of(packet), &body, frame);
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        let (packet, ports, body) = read_udp(frame)?;
        let (header, payload) = body.split_first_chunk::<HEADER>()?;
        let [kind, last, _, _, first @ .., _, _, _, _, _, _, _, _] = *header;
        let kind = *KINDS.get(usize::from(kind))?;
        let first = u32::from_be_bytes(first).into();
        let word = u64::from_be_bytes(*header.last_chunk()?);
        let (flow, payload) = (ports.flow()?, payload.len() as u16);
        let marks = packet.marks | if last > 0 { Marks::LAST } else { Marks::empty() };
        let packet = Packet { flow, kind, word, marks, ..packet };
        Some(match packet.is_data() {
            true => {
                let wire = payload.saturating_add(self.framing.header);
                Packet { seq: first, payload, wire, ..packet }
            }
            false => Packet { ack: first, wire: self.control, ..packet },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{data, holds_all, rides};

    const CODEC: Granted = Granted { framing: Framing { payload: 1_458, header: 42 }, control: 64 };

    #[test]
    fn every_packet_comes_out_as_it_went_in() {
        holds_all(&CODEC);
    }

    #[test]
    fn what_messages_say_is_in_the_header() {
        let packet = Packet { seq: 9, word: 1 << 40, wire: 142, ..data(100) };
        assert_eq!(rides(&CODEC, &packet), ["stamp", "entropy"]);
        for kind in [kinds::GRANT, kinds::RESEND, kinds::BUSY, kinds::ACK] {
            let packet = Packet { kind, payload: 0, seq: 0, ack: 7, word: 12, wire: 64, ..packet };
            assert_eq!(rides(&CODEC, &packet), ["stamp", "entropy"]);
        }
    }
}
