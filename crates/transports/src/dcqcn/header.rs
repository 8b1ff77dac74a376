//! Packets as bytes: `RoCEv2`.
//!
//! Models: InfiniBand's base transport header, its acknowledgment header and its invariant CRC, in UDP to port 4791
//! (InfiniBand Architecture Specification, volume 1, §9.2, §9.3.5; annex A17, with the notification of congestion).
//! A flow is one message on a queue pair of its own: SEND, its packets first, middle, last or only. **Our
//! choices**: the queue pair is the flow's number and two (the first two are for management), both ways; the UDP port
//! of the sender is what routes hash, among the dynamic ones.
//!
//! On the wire the real part of data has what [`Packet::wire`] counts and 4 more for the tag, the check sequence
//! apart, and payload is filled up to four bytes. Acknowledgments have 66 bytes and notifications 78, where the
//! smallest frame's 64, check sequence and all, are counted.

use packets::wire::{Codec, Datagram, UDP, read_ip, sequence, write_ip};
use packets::{FlowKey, Framing, Kind, Marks, Packet};

use crate::kinds;

/// UDP's port of `RoCEv2` (annex A17), and the first of the dynamic ones.
const PORT: u16 = 4791;
const DYNAMIC: u16 = 0xC000;
/// Bytes of UDP's header, of the base transport header, of the acknowledgment header, of what is reserved in a
/// notification, and of the invariant CRC.
const UDP_HEADER: usize = 8;
const BASE: usize = 12;
const ACKNOWLEDGMENT: usize = 4;
const RESERVED: usize = 16;
const CRC: usize = 4;

/// Operations of the reliable connection, and the notification of congestion.
const FIRST: u8 = 0x00;
const MIDDLE: u8 = 0x01;
const LAST: u8 = 0x02;
const ONLY: u8 = 0x04;
const ACKNOWLEDGE: u8 = 0x11;
const NOTIFY: u8 = 0x81;
/// The bit of a connection that has not moved, and how far the count of filled-up bytes is shifted.
const MIGRATED: u8 = 1 << 6;
const PAD_SHIFT: u8 = 4;
/// The default partition, the bit that says congestion backwards, the bit that asks for an acknowledgment.
const PARTITION: u16 = 0xFFFF;
const BECN: u8 = 1 << 6;
const ASKS: u8 = 1 << 7;
/// Syndromes: an acknowledgment without credits, and a packet out of sequence.
const WELL: u8 = 0x1F;
const OUT_OF_SEQUENCE: u8 = 0x60;
/// Numbers of packets and queue pairs have 24 bits.
const NUMBERS: u32 = 0xFF_FFFF;
/// Queue pairs for management.
const MANAGEMENT: u32 = 2;

/// Packets of `RoCEv2`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Roce {
    pub(super) framing: Framing,
    /// What acknowledgments and notifications count on the wire.
    pub(super) control: u16,
}

/// The three low bytes of a number.
fn three(number: u32) -> [u8; 3] {
    let [_, a, b, c] = number.to_be_bytes();
    [a, b, c]
}

fn number(bytes: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]])
}

/// The invariant CRC of a packet of IPv4 (annex A17.3.3): over what does not change on the way, with ones in place of
/// the local route header and of what may.
fn invariant(ip: &[u8; 20], udp: &[u8]) -> [u8; CRC] {
    let (mut ip, mut udp) = (*ip, udp.to_vec());
    (ip[1], ip[8], ip[10], ip[11]) = (0xFF, 0xFF, 0xFF, 0xFF);
    udp[6..UDP_HEADER].fill(0xFF);
    udp[UDP_HEADER + 4] = 0xFF;
    sequence(&[&[0xFF; 8], &ip, &udp])
}

/// What differs from one kind of packet to the other.
struct Base {
    operation: u8,
    flags: u8,
    congestion: u8,
    asks: u8,
    number: u32,
    /// What follows the header, payload apart.
    extension: Vec<u8>,
}

impl Base {
    fn of(packet: &Packet) -> Self {
        let is_last = packet.marks.contains(Marks::LAST);
        let answer = |syndrome, number| Self {
            operation: ACKNOWLEDGE,
            flags: MIGRATED,
            congestion: 0,
            asks: 0,
            number,
            extension: [&[syndrome][..], &three(is_last.into())].concat(),
        };
        match packet.kind {
            kinds::CNP => Self {
                operation: NOTIFY,
                flags: 0,
                congestion: BECN,
                asks: 0,
                number: 0,
                extension: vec![0; RESERVED],
            },
            // It tells the last that has come, a refusal the first that has not.
            kinds::ACK => answer(WELL, (packet.ack as u32).wrapping_sub(1)),
            kinds::NACK => answer(OUT_OF_SEQUENCE, packet.ack as u32),
            _ => Self {
                operation: match (packet.seq, is_last) {
                    (0, true) => ONLY,
                    (0, false) => FIRST,
                    (_, true) => LAST,
                    (_, false) => MIDDLE,
                },
                flags: MIGRATED | fill(packet.payload) << PAD_SHIFT,
                congestion: 0,
                asks: if is_last { ASKS } else { 0 },
                number: packet.seq as u32,
                extension: Vec::new(),
            },
        }
    }
}

/// Bytes that fill up a payload to four.
fn fill(payload: u16) -> u8 {
    (payload.wrapping_neg() & 3) as u8
}

impl Codec for Roce {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        let base = Base::of(packet);
        let queue_pair = packet.flow.place().wrapping_add(MANAGEMENT);
        let mut udp = Vec::with_capacity(64 + usize::from(packet.payload));
        udp.extend((DYNAMIC | packet.entropy).to_be_bytes());
        udp.extend(PORT.to_be_bytes());
        udp.extend([0; 4]);
        udp.extend([base.operation, base.flags]);
        udp.extend(PARTITION.to_be_bytes());
        udp.push(base.congestion);
        udp.extend(three(queue_pair));
        udp.push(base.asks);
        udp.extend(three(base.number));
        udp.extend(base.extension);
        let payload = usize::from(packet.payload) + usize::from(fill(packet.payload));
        udp.resize(udp.len() + payload, 0);
        // Its checksum stays zero: the invariant CRC covers more.
        let length = ((udp.len() + CRC) as u16).to_be_bytes();
        udp[4..6].copy_from_slice(&length);
        udp.extend([0; CRC]);
        let mut draft = Vec::new();
        write_ip(packet, UDP, &udp, &mut draft);
        let at = udp.len() - CRC;
        if let Some(Datagram { header, .. }) = read_ip(&draft) {
            let right = invariant(&header, &udp[..at]);
            udp[at..].copy_from_slice(&right);
        }
        write_ip(packet, UDP, &udp, frame);
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        let Datagram { packet, protocol, body, .. } = read_ip(frame)?;
        let (udp, rest) = body.split_first_chunk::<UDP_HEADER>()?;
        let (base, rest) = rest.split_first_chunk::<BASE>()?;
        let (rest, _) = rest.split_last_chunk::<CRC>()?;
        let [operation, flags, _, _, _, p, q, r, _, s, t, u] = *base;
        if protocol != UDP || udp[2..4] != PORT.to_be_bytes() {
            return None;
        }
        let queue_pair = number([p, q, r]).wrapping_sub(MANAGEMENT) & NUMBERS;
        let number = number([s, t, u]);
        let entropy = u16::from_be_bytes([udp[0], udp[1]]) & !DYNAMIC;
        let is_data = matches!(operation, FIRST | MIDDLE | LAST | ONLY);
        let flow = FlowKey::of_number(queue_pair, !is_data)?;
        let packet = Packet { flow, entropy, path: entropy, wire: self.control, ..packet };
        if is_data {
            let fill = usize::from(flags >> PAD_SHIFT & 3);
            let payload = rest.len().checked_sub(fill)? as u16;
            let wire = payload.saturating_add(self.framing.header);
            let seq = number.into();
            let is_last = matches!(operation, LAST | ONLY);
            let last = if is_last { Marks::LAST } else { Marks::empty() };
            let marks = packet.marks | last;
            return Some(Packet { kind: Kind::DATA, seq, payload, wire, marks, ..packet });
        }
        if operation == NOTIFY {
            return Some(Packet { kind: kinds::CNP, ..packet });
        }
        let &[syndrome, .., done] = rest.first_chunk::<ACKNOWLEDGMENT>()?;
        let (kind, ack) = match syndrome {
            WELL => (kinds::ACK, number.wrapping_add(1) & NUMBERS),
            _ => (kinds::NACK, number),
        };
        let marks = packet.marks | if done > 0 { Marks::LAST } else { Marks::empty() };
        Some(Packet { kind, ack: ack.into(), marks, ..packet })
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
