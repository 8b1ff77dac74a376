//! The half of flows at their sources: what is left to send.

use kernel::Bytes;
use rack::Flow;
use switching::{Line, Packet, Ticks};

use super::header::LAST;

/// A flow at its source.
#[derive(Clone, Copy, Debug)]
struct Sending {
    source: u16,
    destination: u16,
    /// As [`Numbers`] has it, modulo 2³¹.
    number: u32,
    /// When its first byte may be sent, on the switch's time: a cable later than on its host's.
    start: Ticks,
    /// Application bytes left to send.
    left: Bytes,
    /// Packets sent.
    sent: u32,
}

/// How flows are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Numbers {
    /// Each node counts its flows.
    OfSource,
    /// The one node that is here counts its flows to each destination.
    OfPair,
}

/// Those of a set of nodes.
#[derive(Clone, Debug)]
pub(super) struct Senders {
    line: Line,
    /// Application bytes of a full packet, and its header.
    payload: Bytes,
    header: Bytes,
    slab: Vec<Sending>,
    spare: Vec<u32>,
    numbers: Numbers,
    /// By source or destination, as `numbers` has it: how many flows there were.
    counts: Vec<u32>,
}

impl Senders {
    pub(super) fn new(
        line: Line,
        (payload, header): (Bytes, Bytes),
        (numbers, nodes): (Numbers, usize),
    ) -> Self {
        let (slab, spare, counts) = (Vec::new(), Vec::new(), vec![0; nodes]);
        Self { line, payload, header, slab, spare, numbers, counts }
    }

    /// Takes a flow: its place, and its number.
    pub(super) fn open(&mut self, flow: &Flow) -> (u32, u32) {
        let end = match self.numbers {
            Numbers::OfSource => flow.src,
            Numbers::OfPair => flow.dst,
        };
        let count = &mut self.counts[end.index()];
        let number = *count;
        *count = (number + 1) % LAST;
        let open = Sending {
            source: flow.src.get() as u16,
            destination: flow.dst.get() as u16,
            number,
            start: self.line.ticks_of(flow.start),
            left: flow.size,
            sent: 0,
        };
        let place = match self.spare.pop() {
            Some(place) => {
                self.slab[place as usize] = open;
                place
            }
            None => {
                self.slab.push(open);
                (self.slab.len() - 1) as u32
            }
        };
        (place, number)
    }

    /// When a flow's first byte may be sent.
    #[inline]
    pub(super) fn start(&self, place: u32) -> Ticks {
        self.slab[place as usize].start
    }

    /// The next packet of a flow whose first bit enters at `entered`.
    pub(super) fn packet(&self, place: u32, entered: Ticks) -> Packet {
        let open = &self.slab[place as usize];
        let size = open.left.min(self.payload) + self.header;
        let (source, destination) = (open.source.into(), open.destination.into());
        let mut packet = Packet::new(source, destination, size, open.start);
        packet.sequence = open.sent;
        packet.tag = open.number | if open.left <= self.payload { LAST } else { 0 };
        packet.entered = entered;
        packet
    }

    /// A packet of a flow was sent. Gives whether more is left; else the source forgets the flow.
    pub(super) fn sent(&mut self, place: u32, packet: &Packet) -> bool {
        let open = &mut self.slab[place as usize];
        open.left -= packet.size() - self.header;
        open.sent += 1;
        let is_more = open.left > Bytes::ZERO;
        if !is_more {
            self.spare.push(place);
        }
        is_more
    }
}
