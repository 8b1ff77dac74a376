//! Segments as bytes: TCP in IPv4.
//!
//! Models: RFC 9293 §3.1 (header, checksum), §3.2 (maximum segment size), RFC 7323 §2 and §3 (window scale, time
//! stamps), RFC 2018 §2 and §3 (selective acknowledgments), RFC 3168 §6.1 (ECE, CWR, and how a SYN asks for them).
//! Numbers are of bytes, as the header has them: the segments of a flow have fixed places, so that segment `n`
//! begins at byte 1 + n times its size (of flows that share a connection a short segment takes the numbers of a full
//! one), the SYN being byte 0 (**our choice** of an initial number). The segment with
//! the flow's end has FIN, and so has the acknowledgment of a receiver that has closed.
//!
//! Ports are [`Ports`]. Time stamps count microseconds (**our choice** within RFC 7323 §4.1). An acknowledgment has
//! no clock of its own here: it repeats in its own stamp the one that it echoes. Blocks count whole segments: one
//! with a flow's last may end beyond the flow by less than a segment. A host that has forgotten a flow acknowledges no
//! more than its FIN.
//!
//! On the wire the real part has as many bytes as [`Packet::wire`] counts, plus Ethernet's 18 with the tag, where
//! `header` is what the options take: 52 with time stamps, 40 without. A SYN has 8 more.

use packets::wire::{Codec, Datagram, Ports, checksum, read_ip, sum_of_pseudo, write_ip};
use packets::{Kind, Marks, Packet};

use super::config::{Echo, Plan, Recovery};
use super::sack::{BLOCKS, Report, option_size, say_all, short_of};
use crate::kinds;

/// The number of TCP in IPv4.
const TCP: u8 = 6;
/// Bytes of a header without options, and where its checksum stands.
const HEADER: usize = 20;
const CHECKSUM: usize = 16;
/// IPv4 and TCP without options: what the maximum segment size leaves out (RFC 9293 §3.7.1).
const FIXED: u16 = 40;

/// Bits of the header.
const FIN: u8 = 1;
const SYN: u8 = 1 << 1;
const PSH: u8 = 1 << 3;
const ACK: u8 = 1 << 4;
const ECE: u8 = 1 << 6;
const CWR: u8 = 1 << 7;

/// Options, with their lengths where those are fixed, each filled up to four bytes.
const NOP: u8 = 1;
const SEGMENT_SIZE: [u8; 2] = [2, 4];
const SCALE: [u8; 3] = [NOP, 3, 3];
const SACK_PERMITTED: [u8; 2] = [4, 2];
const NO_SACK: [u8; 2] = [NOP, NOP];
const SACK: u8 = 5;
const TIME_STAMPS: [u8; 2] = [8, 10];
const SCALE_MAX: u8 = 14;

/// Picoseconds in a count of the time stamps' clock.
const TICK: u64 = 1_000_000;

/// TCP's segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segments {
    segment: u16,
    header: u16,
    has_stamps: bool,
    has_blocks: bool,
    has_ecn: bool,
    /// The receiver's window in bytes, which does not shrink.
    window: u64,
}

impl Segments {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            segment: plan.segment,
            header: plan.header,
            has_stamps: plan.timestamps,
            has_blocks: plan.recovery == Recovery::Sack,
            has_ecn: plan.echo != Echo::None,
            window: plan.receive_window * u64::from(plan.segment),
        }
    }

    /// The number of a segment's first byte.
    fn number(&self, segment: u64) -> u32 {
        segment.wrapping_mul(self.segment.into()).wrapping_add(1) as u32
    }

    /// The number behind all that an acknowledgment is of; behind the FIN, if it is of all.
    fn acknowledged(&self, packet: &Packet) -> u32 {
        let number = self.number(packet.ack);
        match packet.marks.contains(Marks::LAST) {
            true => number.wrapping_sub(short_of(packet).into()).wrapping_add(1),
            false => number,
        }
    }

    /// Reads that: the segments, and by how much the last falls short.
    fn read_acknowledged(&self, number: u32, packet: &mut Packet) {
        if !packet.marks.contains(Marks::LAST) {
            packet.ack = self.segments(number.wrapping_sub(1));
            return;
        }
        let (bytes, size) = (u64::from(number.wrapping_sub(2)), u64::from(self.segment));
        packet.ack = bytes.div_ceil(size);
        say_all(packet, (packet.ack * size - bytes) as u16);
    }

    /// The segment that begins so many bytes from another; 0 where none does.
    fn segments(&self, bytes: u32) -> u64 {
        let (size, bytes) = (u64::from(self.segment), u64::from(bytes));
        if bytes.is_multiple_of(size) { bytes / size } else { 0 }
    }

    /// By how many bits the window is shifted (RFC 7323 §2.2).
    fn scale(&self) -> u8 {
        (0..SCALE_MAX).find(|&bits| self.window >> bits <= u16::MAX.into()).unwrap_or(SCALE_MAX)
    }

    /// The window as the header has it; not shifted in what opens a connection.
    fn window(&self, opens: bool) -> u16 {
        let shift = if opens { 0 } else { self.scale() };
        u16::try_from(self.window >> shift).unwrap_or(u16::MAX)
    }

    fn flags(&self, packet: &Packet) -> u8 {
        let bit = |mark, flag| if packet.marks.contains(mark) { flag } else { 0 };
        let asks = |flags| if self.has_ecn { flags } else { 0 };
        match packet.kind {
            kinds::SYN => SYN | asks(ECE | CWR),
            kinds::SYN_ACK => SYN | ACK | asks(ECE),
            Kind::DATA => {
                ACK | bit(Marks::LAST, FIN | PSH) | bit(Marks::ECE, ECE) | bit(Marks::CWR, CWR)
            }
            _ => ACK | bit(Marks::LAST, FIN) | bit(Marks::ECE, ECE) | bit(Marks::CWR, CWR),
        }
    }

    /// Time stamps: the sender's, and the one that it echoes.
    fn stamps(&self, packet: &Packet) -> [u32; 2] {
        let clock = (packet.stamp.as_ps() / TICK) as u32;
        match packet.kind {
            Kind::DATA | kinds::SYN => [clock, 0],
            _ => [clock, clock],
        }
    }

    fn options(&self, packet: &Packet, opens: bool) -> Vec<u8> {
        let mut options = Vec::new();
        let permits = if self.has_blocks { SACK_PERMITTED } else { NO_SACK };
        if opens {
            options.extend(SEGMENT_SIZE);
            options.extend((self.segment + self.header).saturating_sub(FIXED).to_be_bytes());
        }
        if self.has_stamps {
            options.extend(if opens { permits } else { NO_SACK });
            options.extend(TIME_STAMPS);
            self.stamps(packet).iter().for_each(|stamp| options.extend(stamp.to_be_bytes()));
        } else if opens {
            options.extend([permits, NO_SACK].concat());
        }
        if opens {
            options.extend(SCALE);
            options.push(self.scale());
        } else if packet.kind == kinds::ACK && self.has_blocks {
            options.extend(self.blocks(packet));
        }
        options
    }

    /// The option of selective acknowledgments; nothing without blocks.
    fn blocks(&self, packet: &Packet) -> Vec<u8> {
        let report = Report::decode(packet);
        if report.count() == 0 {
            return Vec::new();
        }
        let mut option = vec![NOP, NOP, SACK, 2 + 8 * report.count() as u8];
        for block in report.blocks.iter().filter(|block| !block.is_empty()) {
            option.extend(self.number(block.from).to_be_bytes());
            option.extend(self.number(block.to).to_be_bytes());
        }
        option
    }

    /// What the options tell: a stamp, and the edges of blocks from the acknowledgment on, in segments.
    fn read_options(&self, mut options: &[u8], ack: u32, packet: &mut Packet) -> Option<usize> {
        let (mut edges, mut count) = ([0; BLOCKS], 0);
        while let Some((&kind, rest)) = options.split_first() {
            if kind == NOP {
                options = rest;
                continue;
            }
            let (&length, _) = rest.split_first()?;
            let (option, after) = options.split_at_checked(length.max(2).into())?;
            options = after;
            if kind == TIME_STAMPS[0] {
                let stamp = u32::from_be_bytes(*option.get(2..)?.first_chunk()?);
                packet.stamp = kernel::Time::from_ps(u64::from(stamp) * TICK);
            } else if kind == SACK {
                for block in option[2..].as_chunks::<8>().0.iter().take(BLOCKS) {
                    let [a, b, c, d, e, f, g, h] = *block;
                    let edge = |bytes| self.segments(u32::from_be_bytes(bytes).wrapping_sub(ack));
                    let [from, to] = [edge([a, b, c, d]), edge([e, f, g, h])];
                    edges[count] = (from & 0xFFFF) << 16 | to & 0xFFFF;
                    count += 1;
                }
            }
        }
        let [a, b, c] = edges;
        (packet.seq, packet.word) = (a << 32 | b, c << 32);
        Some(count)
    }
}

impl Codec for Segments {
    fn write(&self, packet: &Packet, frame: &mut Vec<u8>) {
        let opens = matches!(packet.kind, kinds::SYN | kinds::SYN_ACK);
        let (seq, ack) = match packet.kind {
            kinds::SYN => (0, 0),
            kinds::SYN_ACK => (0, 1),
            Kind::DATA => (self.number(packet.seq), 1),
            _ => (1, self.acknowledged(packet)),
        };
        let options = self.options(packet, opens);
        let Ports { from, to } = Ports::of(packet);
        let mut segment = Vec::with_capacity(HEADER + options.len() + usize::from(packet.payload));
        segment.extend(from.to_be_bytes());
        segment.extend(to.to_be_bytes());
        segment.extend(seq.to_be_bytes());
        segment.extend(ack.to_be_bytes());
        let words = (HEADER + options.len()) as u8 / 4;
        segment.extend([words << 4, self.flags(packet)]);
        segment.extend(self.window(opens).to_be_bytes());
        segment.extend([0; 4]);
        segment.extend(options);
        segment.resize(segment.len() + usize::from(packet.payload), 0);
        let sum = checksum([&sum_of_pseudo(packet, TCP, segment.len())[..], &segment]);
        segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        write_ip(packet, TCP, &segment, frame);
    }

    fn read(&self, frame: &[u8]) -> Option<Packet> {
        let Datagram { packet, protocol, body, .. } = read_ip(frame)?;
        let (header, rest) = body.split_first_chunk::<HEADER>()?;
        if protocol != TCP {
            return None;
        }
        let flow = Ports::read(header)?.flow()?;
        let word = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (seq, ack, flags) = (word(4), word(8), header[13]);
        let options = usize::from(header[12] >> 4) * 4;
        let (options, payload) = rest.split_at_checked(options.checked_sub(HEADER)?)?;
        let (kind, is_opening) = match (flags & SYN != 0, flags & ACK != 0, flow.is_receivers()) {
            (true, true, _) => (kinds::SYN_ACK, true),
            (true, false, _) => (kinds::SYN, true),
            (false, _, true) => (kinds::ACK, false),
            (false, _, false) => (Kind::DATA, false),
        };
        let payload = payload.len() as u16;
        let mut packet = Packet { flow, kind, payload, wire: self.header, ..packet };
        let blocks = self.read_options(options, ack, &mut packet)?;
        let mark = |flag, mark| if flags & flag != 0 { mark } else { Marks::empty() };
        if !is_opening {
            packet.marks |= mark(FIN, Marks::LAST) | mark(ECE, Marks::ECE) | mark(CWR, Marks::CWR);
        }
        match kind {
            Kind::DATA => {
                packet.seq = self.segments(seq.wrapping_sub(1));
                packet.wire = payload.saturating_add(self.header);
            }
            kinds::ACK => {
                self.read_acknowledged(ack, &mut packet);
                packet.wire += option_size(blocks);
            }
            _ => {}
        }
        Some(packet)
    }
}

#[cfg(test)]
#[path = "header_tests.rs"]
mod tests;
