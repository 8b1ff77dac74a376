//! Packets as bytes: NDP's header in UDP.
//!
//! Models: the header of the authors' hosts (github.com/nets-cs-pub-ro/NDP, `host_impl`): flags, checksum, two ports
//! and two numbers, 20 bytes. The paper (§3) names what they say and gives no layout. **Our choices**: UDP below
//! it, as it has no number of its own in IPv4, whose checksum covers it, so that its own is zero; big endian. The
//! second number (of the pacer, or a window) plays no part here.
//!
//! The real part of a header or control packet has 66 bytes with Ethernet and the tag, where 64 are counted, check
//! sequence and all.

use packets::wire::{Codec, Ports, read_udp, write_udp};
use packets::{Framing, Kind, Marks, Packet};

use crate::kinds;

/// Bytes of the header.
const HEADER: usize = 20;

/// Its flags.
const DATA: u16 = 1;
const ACK: u16 = 1 << 1;
const PULL: u16 = 1 << 2;
const NACK: u16 = 1 << 3;
const FIN: u16 = 1 << 6;
const CHOPPED: u16 = 1 << 7;

/// NDP's packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pulled {
    pub(super) framing: Framing,
}

impl Codec for Pulled {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        let kind = match packet.kind {
            kinds::ACK => ACK,
            kinds::NACK => NACK,
            kinds::PULL => PULL,
            _ => DATA,
        };
        let bit = |mark, flag| if packet.marks.contains(mark) { flag } else { 0 };
        let flags = kind | bit(Marks::LAST, FIN) | bit(Marks::TRIMMED, CHOPPED);
        let ports = Ports::of(packet);
        let mut body = Vec::with_capacity(HEADER + usize::from(packet.payload));
        body.extend(flags.to_be_bytes());
        body.extend([0; 2]);
        body.extend(u32::from(ports.from).to_be_bytes());
        body.extend(u32::from(ports.to).to_be_bytes());
        body.extend((packet.seq as u32).to_be_bytes());
        body.resize(HEADER + usize::from(packet.payload), 0);
        write_udp(packet, ports, &body, frame);
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        let (packet, ports, body) = read_udp(frame)?;
        let (header, payload) = body.split_first_chunk::<HEADER>()?;
        let flags = u16::from_be_bytes([header[0], header[1]]);
        let seq = u32::from_be_bytes([header[12], header[13], header[14], header[15]]).into();
        let (flow, payload) = (ports.flow()?, payload.len() as u16);
        let bit = |flag, mark| if flags & flag != 0 { mark } else { Marks::empty() };
        let marks = packet.marks | bit(FIN, Marks::LAST) | bit(CHOPPED, Marks::TRIMMED);
        let wire = self.framing.header;
        let packet = Packet { flow, seq, marks, wire, ..packet };
        Some(match flags & (DATA | ACK | PULL | NACK) {
            DATA => Packet {
                kind: Kind::DATA,
                payload,
                wire: payload.saturating_add(wire),
                marks: marks | bit(DATA, Marks::MAY_TRIM),
                ..packet
            },
            ACK => Packet { kind: kinds::ACK, ..packet },
            PULL => Packet { kind: kinds::PULL, ..packet },
            NACK => Packet { kind: kinds::NACK, ..packet },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use packets::wire::real;

    use super::super::sender::DATA_PRIORITY;
    use super::*;
    use crate::headers::{data, holds_all, rides};

    const CODEC: Pulled = Pulled { framing: Framing { payload: 1_436, header: 64 } };

    #[test]
    fn every_packet_comes_out_as_it_went_in() {
        holds_all(&CODEC);
    }

    #[test]
    fn the_header_is_that_of_the_authors_hosts() {
        let packet = Packet {
            seq: 0x0102_0304,
            priority: DATA_PRIORITY,
            marks: Marks::MAY_TRIM | Marks::LAST,
            wire: 164,
            ..data(100)
        };
        assert_eq!(rides(&CODEC, &packet), ["stamp", "entropy"]);
        let frame = real(&packets::wire::encode(&CODEC, &packet)).unwrap();
        let sliced = etherparse::SlicedPacket::from_ethernet(&frame[..frame.len() - 4]).unwrap();
        let Some(etherparse::TransportSlice::Udp(udp)) = &sliced.transport else { panic!() };
        let body = udp.payload();
        assert_eq!(body.len(), 20 + 100);
        let ports = [0, 0, 0xC0, 0x07, 0, 0, 0x04, 0];
        let head = [&[0, 0x41, 0, 0][..], &ports, &[1, 2, 3, 4, 0, 0, 0, 0]].concat();
        assert_eq!(body[..20], head);
        // Cut by a switch, and sent back by one.
        let cut = Packet { payload: 0, wire: 64, marks: packet.marks | Marks::TRIMMED, ..packet };
        assert_eq!(rides(&CODEC, &cut), ["stamp", "entropy"]);
        let (src, dst) = (cut.dst, cut.src);
        let back = Packet { src, dst, marks: cut.marks | Marks::RETURNED, ..cut };
        assert_eq!(rides(&CODEC, &back), ["stamp", "entropy", "marks"]);
    }
}
