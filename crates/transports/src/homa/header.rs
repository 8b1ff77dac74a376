//! Packets as bytes: Homa in IPv4.
//!
//! Models: the headers of the authors' module for Linux (github.com/PlatformLab/HomaModule, `homa_wire.h`), which
//! stand directly in IPv4, as number 146: 28 bytes that all packets begin with, 56 for data. Homa (SIGCOMM 2018) names
//! what they say. The module counts bytes, so do these; what is granted or unscheduled is told up to whole packets.
//! **Our choices**: a sender that asks what its receiver lacks sends NEED_ACK; a receiver that has all sends an ACK that
//! names no other message. The identifier of a message is twice its number and two, and one more at the
//! receiver, as the module has it for clients and servers.
//!
//! On the wire the real part of data has 76 bytes beside payload, and 18 of Ethernet and the tag, where `header` is
//! 60 unless set otherwise; control packets have 66 to 118, where `control` is 64.

use kernel::Bytes;
use packets::wire::{Codec, Datagram, Ports, read_ip, write_ip};
use packets::{FlowKey, Framing, Kind, Marks, PRIORITIES, Packet};

use crate::kinds;

/// Homa's number in IPv4 (IANA).
const HOMA: u8 = 146;
/// Bytes that all packets begin with, and those of data.
const COMMON: usize = 28;
const DATA_HEADER: usize = 56;
/// Bytes of five identifiers of messages that an ACK has room for, and their count.
const ACKED: usize = 2 + 5 * 10;

/// What a packet is.
const DATA: u8 = 0x10;
const GRANT: u8 = 0x11;
const RESEND: u8 = 0x12;
const BUSY: u8 = 0x14;
const NEED_ACK: u8 = 0x17;
const ACK: u8 = 0x18;

/// Homa's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Messages {
    pub(super) framing: Framing,
    pub(super) control: u16,
}

/// A priority as the module has it: it counts to the most urgent.
fn level(priority: u64) -> u8 {
    u64::from(PRIORITIES - 1).saturating_sub(priority) as u8
}

impl Messages {
    /// Bytes in so many packets, as headers have them.
    fn bytes(&self, packets: u64) -> u32 {
        packets.wrapping_mul(self.framing.payload.into()) as u32
    }

    /// So many packets that have these bytes, the last perhaps not full.
    fn packets(&self, bytes: u32) -> u64 {
        u64::from(bytes).div_ceil(self.framing.payload.into())
    }

    /// What goes unscheduled of a message.
    fn unscheduled(&self, packet: &Packet) -> u32 {
        let bytes = packet.ack.wrapping_mul(self.framing.payload.into());
        bytes.min(packet.word) as u32
    }

    /// What follows the part that all packets have.
    fn rest(&self, packet: &Packet) -> (u8, Vec<u8>) {
        let Packet { seq, ack, word, .. } = *packet;
        let size = |size: u64| (size as u32).to_be_bytes();
        match packet.kind {
            kinds::GRANT => (GRANT, [&self.bytes(ack).to_be_bytes()[..], &[level(word)]].concat()),
            kinds::RESEND if packet.flow.is_receivers() => {
                let (from, length) = (self.bytes(ack), self.bytes(word.wrapping_sub(ack)));
                let range = [from.to_be_bytes(), length.to_be_bytes()].concat();
                (RESEND, [range, vec![level(seq)]].concat())
            }
            kinds::RESEND => (NEED_ACK, Vec::new()),
            kinds::BUSY => (BUSY, Vec::new()),
            kinds::ACK => (ACK, vec![0; ACKED]),
            _ => {
                let mut rest = [size(word), self.unscheduled(packet).to_be_bytes()].concat();
                // No message is acknowledged, no cutoffs were told, nothing is said of repeats.
                rest.resize(DATA_HEADER - COMMON - 4, 0);
                rest.extend(self.bytes(seq).to_be_bytes());
                rest.resize(rest.len() + usize::from(packet.payload), 0);
                (DATA, rest)
            }
        }
    }
}

impl Codec for Messages {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        let (kind, rest) = self.rest(packet);
        let Ports { from, to } = Ports::of(packet);
        let (sequence, words) = match kind {
            DATA => (self.bytes(packet.seq), (DATA_HEADER / 4) as u8),
            _ => (0, 0),
        };
        let is_receivers = u64::from(packet.flow.is_receivers());
        let identifier = 2 * (u64::from(packet.flow.place()) + 1) + is_receivers;
        let mut body = Vec::with_capacity(COMMON + rest.len());
        body.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        body.extend(sequence.to_be_bytes());
        body.extend([0, 0, 0, kind, words << 4]);
        body.extend([0; 7]);
        body.extend(identifier.to_be_bytes());
        body.extend(rest);
        write_ip(packet, HOMA, &body, frame);
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        let Datagram { packet, protocol, body, .. } = read_ip(frame)?;
        let (common, rest) = body.split_first_chunk::<COMMON>()?;
        if protocol != HOMA {
            return None;
        }
        let identifier = u64::from_be_bytes(*common.last_chunk()?);
        let number = u32::try_from((identifier / 2).checked_sub(1)?).ok()?;
        let flow = FlowKey::of_number(number, identifier % 2 == 1)?;
        let word = |at: usize| rest.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
        let priority = |at: usize| rest.get(at).map(|&byte| level(byte.into()).into());
        let say = Packet { flow, path: 0, wire: self.control, ..packet };
        Some(match common[11] {
            DATA => {
                let payload = body.len().checked_sub(DATA_HEADER)? as u16;
                let (size, seq) = (u64::from(word(0)?), self.packets(word(24)?));
                let is_last = seq + 1 == self.framing.packets(Bytes::new(size));
                Packet {
                    kind: Kind::DATA,
                    seq,
                    ack: self.packets(word(4)?),
                    word: size,
                    payload,
                    wire: payload.saturating_add(self.framing.header),
                    marks: packet.marks | if is_last { Marks::LAST } else { Marks::empty() },
                    ..say
                }
            }
            GRANT => Packet {
                kind: kinds::GRANT,
                ack: self.packets(word(0)?),
                word: priority(4)?,
                ..say
            },
            RESEND => {
                let from = self.packets(word(0)?);
                let end = from + self.packets(word(4)?);
                Packet { kind: kinds::RESEND, ack: from, word: end, seq: priority(8)?, ..say }
            }
            NEED_ACK => Packet { kind: kinds::RESEND, ..say },
            BUSY => Packet { kind: kinds::BUSY, ..say },
            ACK => Packet { kind: kinds::ACK, ..say },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use packets::wire::real;

    use super::*;
    use crate::headers::{data, holds_all, rides};

    const CODEC: Messages =
        Messages { framing: Framing { payload: 1_440, header: 60 }, control: 64 };

    #[test]
    fn every_packet_comes_out_as_it_went_in() {
        holds_all(&CODEC);
    }

    /// Offsets are those of the C structures in `homa_wire.h`, which are packed.
    #[test]
    fn data_looks_as_the_module_has_it() {
        let size = 100_100u64;
        let packet = Packet { seq: 3, ack: 7, word: size, payload: 1_440, wire: 1_500, ..data(0) };
        assert_eq!(rides(&CODEC, &packet), ["stamp", "entropy"]);
        let frame = real(&packets::wire::encode(&CODEC, &packet)).unwrap();
        let sliced = etherparse::SlicedPacket::from_ethernet(&frame[..frame.len() - 4]).unwrap();
        let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net else { panic!() };
        let payload = ip.payload();
        assert_eq!(payload.ip_number.0, 146);
        let body = payload.payload;
        assert_eq!(body.len(), 56 + 1_440);
        let at = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        assert_eq!(body[..4], [0xC0, 0x07, 0x04, 0x00]);
        assert_eq!((at(4), at(52)), (3 * 1_440, 3 * 1_440), "sequence, seg.offset");
        assert_eq!((body[11], body[12] >> 4), (0x10, 14), "type, doff");
        assert_eq!(u64::from_be_bytes(body[20..28].try_into().unwrap()), 16, "sender_id");
        assert_eq!((at(28), at(32)), (100_100, 7 * 1_440), "message_length, incoming");
        // All of a short message goes unscheduled, and no more than all.
        let short =
            Packet { ack: 1, word: 100, marks: Marks::LAST, seq: 0, wire: 160, ..data(100) };
        assert_eq!(rides(&CODEC, &short), ["stamp", "entropy"]);
    }

    #[test]
    fn what_control_packets_say_is_in_their_headers() {
        let grant = Packet { kind: kinds::GRANT, payload: 0, ack: 9, word: 5, wire: 64, ..data(0) };
        assert_eq!(rides(&CODEC, &grant), ["stamp", "entropy"]);
        let flow = FlowKey::receivers(7);
        let resend = Packet { flow, kind: kinds::RESEND, seq: 4, word: 12, ..grant };
        assert_eq!(rides(&CODEC, &resend), ["stamp", "entropy"]);
        let enquiry = Packet { kind: kinds::RESEND, ack: 7, word: 9_000, ..grant };
        assert_eq!(rides(&CODEC, &enquiry), ["ack", "word", "stamp", "entropy"]);
    }
}
