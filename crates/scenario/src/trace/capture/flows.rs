//! Packets of one direction of a conversation, as flows.

use std::collections::HashMap;
use std::net::IpAddr;

use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket};

use super::packets::Packet;
use super::{Captured, Capturing};

/// Kinds of links, by tcpdump's list: those whose frames are told apart here.
mod link {
    pub const NULL: i32 = 0;
    pub const ETHERNET: i32 = 1;
    /// Raw IP, as some systems number it.
    pub const RAW_BSD: [i32; 2] = [12, 14];
    pub const RAW: i32 = 101;
    pub const LOOP: i32 = 108;
    pub const LINUX_SLL: i32 = 113;
    pub const IPV4: i32 = 228;
    pub const IPV6: i32 = 229;
    pub const LINUX_SLL2: i32 = 276;
}

/// Bytes of TCP's header up to the flags.
const TCP_LEAST: usize = 14;
/// Bytes of UDP's header.
const UDP_HEADER: u64 = 8;
/// Most pieces of a stream between which others are missing (our choice; beyond, the gap furthest back
/// is taken as filled).
const PIECES_MAX: usize = 256;
/// What a conversation takes: its key, its place and its flow, in tables that may be half empty. Unit: bytes.
const FLOW_BYTES: u64 = 256;

/// One direction of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Direction {
    src: (IpAddr, u16),
    dst: (IpAddr, u16),
    protocol: u8,
}

/// A flow.
pub(super) struct Flow {
    /// From the first packet of the capture. Unit: ps.
    pub start: u64,
    /// Numbers of the hosts.
    pub src: u32,
    pub dst: u32,
    /// Payload.
    pub bytes: u64,
}

/// The flow of a direction that packets belong to.
struct Current {
    /// Its place among all flows.
    place: usize,
    /// When its last packet was captured. Unit: ps.
    last: i128,
    /// Whether a FIN or RST has come.
    is_over: bool,
    stream: Stream,
}

/// What of a TCP stream has been seen, by its sequence numbers counted on beyond 32 bits.
#[derive(Default)]
struct Stream {
    /// Disjoint, in order.
    pieces: Vec<(u64, u64)>,
    /// Up to where, to count on from.
    end: Option<u64>,
}

/// Packets so far, as flows.
pub(super) struct Conversations<'a> {
    capturing: &'a Capturing,
    /// Numbers of addresses.
    numbers: HashMap<IpAddr, u32>,
    current: HashMap<Direction, Current>,
    flows: Vec<Flow>,
    /// When each flow starts, from 1970. Unit: ps.
    starts: Vec<i128>,
    /// When the first packet was captured. Unit: ps.
    first: Option<i128>,
    /// Bytes of memory that pieces of streams take.
    pieces: u64,
    pub told: Captured,
}

/// What the headers of a packet say.
struct Segment {
    direction: Direction,
    payload: u64,
    /// Of TCP: sequence number of the first byte of payload, SYN without ACK, FIN or RST, RST.
    tcp: Option<(u32, Flags)>,
}

#[derive(Clone, Copy)]
struct Flags {
    opens: bool,
    ends: bool,
    resets: bool,
}

impl<'a> Conversations<'a> {
    pub(super) fn new(capturing: &'a Capturing) -> Self {
        let numbers = (0..).zip(&capturing.hosts).map(|(number, &host)| (host, number)).collect();
        Self {
            capturing,
            numbers,
            current: HashMap::new(),
            flows: Vec::new(),
            starts: Vec::new(),
            first: None,
            pieces: 0,
            told: Captured::default(),
        }
    }

    /// How many flows there are so far.
    pub(super) fn count(&self) -> u64 {
        self.flows.len() as u64
    }

    /// How many addresses have numbers.
    pub(super) fn hosts(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Memory that they take. Unit: bytes.
    pub(super) fn memory(&self) -> u64 {
        let all = self.flows.len() + self.current.len() + self.numbers.len();
        all as u64 * FLOW_BYTES + self.pieces * 32
    }

    /// Takes a packet.
    pub(super) fn take(&mut self, packet: &Packet<'_>) {
        self.told.packets += 1;
        self.first = Some(self.first.map_or(packet.at, |first| first.min(packet.at)));
        let Some(segment) = self.segment(packet) else { return };
        let Some(hosts) = self.hosts_of(&segment.direction) else {
            self.told.other_hosts += 1;
            return;
        };
        self.enter(packet.at, &segment, hosts);
        if let (IpAddr::V4(_) | IpAddr::V6(_), Some((_, flags))) =
            (segment.direction.src.0, segment.tcp)
            && flags.resets
        {
            let Direction { src, dst, protocol } = segment.direction;
            let back = Direction { src: dst, dst: src, protocol };
            if let Some(current) = self.current.get_mut(&back) {
                current.is_over = true;
            }
        }
    }

    /// Adds a segment to its flow, or begins one.
    fn enter(&mut self, at: i128, segment: &Segment, (src, dst): (u32, u32)) {
        let opens = segment.tcp.is_some_and(|(_, flags)| flags.opens);
        let timeout = i128::from(self.capturing.timeout.as_ps());
        let flows = &self.flows;
        let goes_on = self.current.get(&segment.direction).is_some_and(|current| {
            let is_new = opens && (current.is_over || flows[current.place].bytes > 0);
            at - current.last <= timeout && !is_new
        });
        if !goes_on {
            if segment.payload == 0 && !opens {
                return;
            }
            let place = self.flows.len();
            self.flows.push(Flow { start: 0, src, dst, bytes: 0 });
            self.starts.push(at);
            let current = Current { place, last: at, is_over: false, stream: Stream::default() };
            if let Some(old) = self.current.insert(segment.direction, current) {
                self.pieces -= old.stream.pieces.len() as u64;
            }
        }
        let Some(current) = self.current.get_mut(&segment.direction) else { return };
        current.last = current.last.max(at);
        let start = &mut self.starts[current.place];
        *start = (*start).min(at);
        let before = current.stream.pieces.len() as u64;
        let new = match segment.tcp {
            Some((number, _)) => current.stream.see(number, segment.payload),
            None => segment.payload,
        };
        self.pieces = self.pieces + current.stream.pieces.len() as u64 - before;
        current.is_over |= segment.tcp.is_some_and(|(_, flags)| flags.ends);
        self.flows[current.place].bytes = self.flows[current.place].bytes.saturating_add(new);
    }

    /// The numbers of both ends; `None` if one has none and may get none.
    fn hosts_of(&mut self, direction: &Direction) -> Option<(u32, u32)> {
        let is_listed = !self.capturing.hosts.is_empty();
        let mut number = |address: IpAddr| {
            let next = self.numbers.len() as u32;
            match is_listed {
                true => self.numbers.get(&address).copied(),
                false => Some(*self.numbers.entry(address).or_insert(next)),
            }
        };
        Some((number(direction.src.0)?, number(direction.dst.0)?))
    }

    /// What its headers say; `None`, counted, of what belongs to no flow.
    fn segment(&mut self, packet: &Packet<'_>) -> Option<Segment> {
        let Some(sliced) = sliced(packet) else {
            self.told.short += 1;
            return None;
        };
        let Some((ends, total, header)) = sliced.net.as_ref().and_then(ends) else {
            // Headers of IP that do not fit what follows stop the decoder before it has a network layer.
            match sliced.stop_err {
                Some(_) => self.told.short += 1,
                None => self.told.not_ip += 1,
            }
            return None;
        };
        let payload = sliced.ip_payload()?;
        if payload.fragmented {
            self.told.fragments += 1;
            return None;
        }
        let protocol = payload.ip_number;
        if protocol != IpNumber::TCP && protocol != IpNumber::UDP {
            self.told.not_tcp_udp += 1;
            return None;
        }
        // What left a host in one piece and was cut by its NIC has no length yet.
        let before = packet.data.len().saturating_sub(payload.payload.len()) as u64;
        let carried = match total {
            0 => packet.length.saturating_sub(before),
            total => total.saturating_sub(header),
        };
        let segment = transport(protocol, payload.payload, carried, ends);
        self.told.short += u64::from(segment.is_none());
        segment
    }

    /// The flows that carry anything, by start; at one instant in the order of their first packets.
    pub(super) fn into_flows(self) -> Vec<Flow> {
        let first = self.first.unwrap_or(0);
        let mut flows = self.flows;
        for (flow, start) in flows.iter_mut().zip(&self.starts) {
            flow.start = u64::try_from(start - first).unwrap_or(u64::MAX - 1);
        }
        flows.retain(|flow| flow.bytes > 0);
        flows.sort_by_key(|flow| flow.start);
        flows
    }
}

/// The headers of a packet; `None` where there is none of its link.
fn sliced<'a>(packet: &Packet<'a>) -> Option<LaxSlicedPacket<'a>> {
    let data = packet.data;
    let typed = |at: usize, header: usize| {
        let bytes = data.get(at..at + 2)?;
        let ether_type = EtherType(u16::from_be_bytes([bytes[0], bytes[1]]));
        Some(LaxSlicedPacket::from_ether_type(ether_type, data.get(header..)?))
    };
    match packet.link {
        link::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok(),
        link::NULL | link::LOOP => LaxSlicedPacket::from_ip(data.get(4..)?).ok(),
        link::LINUX_SLL => typed(14, 16),
        link::LINUX_SLL2 => typed(0, 20),
        link::RAW | link::IPV4 | link::IPV6 => LaxSlicedPacket::from_ip(data).ok(),
        other if link::RAW_BSD.contains(&other) => LaxSlicedPacket::from_ip(data).ok(),
        // Nothing is known of what is in it: no network layer, and no error.
        _ => Some(LaxSlicedPacket::from_ether_type(EtherType(0xffff), &[])),
    }
}

/// The addresses of a packet of IP, its length as its header says it, and that of its headers. Unit:
/// bytes.
fn ends(net: &LaxNetSlice<'_>) -> Option<((IpAddr, IpAddr), u64, u64)> {
    let headers = |all: &[u8], payload: &[u8]| {
        (payload.as_ptr() as usize).saturating_sub(all.as_ptr() as usize) as u64
    };
    match net {
        LaxNetSlice::Ipv4(packet) => {
            let header = packet.header();
            let ends = (header.source_addr().into(), header.destination_addr().into());
            let total = u64::from(header.total_len());
            Some((ends, total, headers(header.slice(), packet.payload().payload)))
        }
        LaxNetSlice::Ipv6(packet) => {
            let header = packet.header();
            let ends = (header.source_addr().into(), header.destination_addr().into());
            let length = u64::from(header.payload_length());
            let own = header.slice().len() as u64;
            let total = if length == 0 { 0 } else { length + own };
            Some((ends, total, headers(header.slice(), packet.payload().payload)))
        }
        LaxNetSlice::Arp(_) => None,
    }
}

/// Reads the header of TCP or UDP, of which the first bytes do: what follows may not be captured.
fn transport(
    protocol: IpNumber,
    bytes: &[u8],
    carried: u64,
    (src, dst): (IpAddr, IpAddr),
) -> Option<Segment> {
    let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let direction = Direction { src: (src, word(0)?), dst: (dst, word(2)?), protocol: protocol.0 };
    if protocol == IpNumber::UDP {
        let payload = carried.checked_sub(UDP_HEADER)?;
        return Some(Segment { direction, payload, tcp: None });
    }
    if bytes.len() < TCP_LEAST {
        return None;
    }
    let payload = carried.checked_sub(u64::from(bytes[12] >> 4) * 4)?;
    let [fin, syn, rst, ack] = [0, 1, 2, 4].map(|bit| bytes[13] >> bit & 1 == 1);
    let number = u32::from(word(4)?) << 16 | u32::from(word(6)?);
    // A SYN has a number of its own.
    let number = number.wrapping_add(u32::from(syn));
    let flags = Flags { opens: syn && !ack, ends: fin || rst, resets: rst };
    Some(Segment { direction, payload, tcp: Some((number, flags)) })
}

impl Stream {
    /// `length` bytes from `number` on; how many of them are new.
    fn see(&mut self, number: u32, length: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        // Room before the first, whose predecessors may come late.
        let last = self.end.unwrap_or(1 << 40 | u64::from(number));
        let ahead = number.wrapping_sub(last as u32) as i32;
        let begin = last.saturating_add_signed(i64::from(ahead));
        let end = begin + length;
        self.end = Some(last.max(end));
        let from = self.pieces.partition_point(|piece| piece.1 < begin);
        let to = self.pieces.partition_point(|piece| piece.0 <= end);
        let touched = &self.pieces[from..to];
        let known: u64 =
            touched.iter().map(|piece| piece.1.min(end).saturating_sub(piece.0.max(begin))).sum();
        let merged = (
            touched.first().map_or(begin, |piece| piece.0.min(begin)),
            touched.last().map_or(end, |piece| piece.1.max(end)),
        );
        self.pieces.splice(from..to, [merged]);
        if self.pieces.len() > PIECES_MAX {
            self.pieces[1].0 = self.pieces[0].0;
            self.pieces.remove(0);
        }
        length - known
    }
}
