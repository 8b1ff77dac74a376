//! The half of flows at their sources: what is left to send.

use kernel::{Bytes, Slab};
use rack::Flow;
use switching::{Line, Packet, Ticks};

use super::header::LAST;

/// A flow at its source.
#[derive(Clone, Copy, Debug)]
struct Sending {
    /// Its next packet: a node that waits offers it in every cycle. It was born when the flow's first byte may
    /// be sent, on the switch's time: a cable later than on its host's.
    next: Packet,
    /// Application bytes left to send.
    left: Bytes,
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
    slab: Slab<Sending>,
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
        let (slab, counts) = (Slab::default(), vec![0; nodes]);
        Self { line, payload, header, slab, numbers, counts }
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
        let (size, is_last) = self.next_size(flow.size);
        let born = self.line.ticks_of(flow.start);
        let mut next = Packet::new(flow.src.index(), flow.dst.index(), size, born);
        next.tag = number | if is_last { LAST } else { 0 };
        let place = self.slab.insert(Sending { next, left: flow.size });
        (place, number)
    }

    /// The size of the next packet of a flow of which so much is left, and whether it is the last.
    fn next_size(&self, left: Bytes) -> (Bytes, bool) {
        (left.min(self.payload) + self.header, left <= self.payload)
    }

    /// When a flow's first byte may be sent.
    #[inline]
    pub(super) fn start(&self, place: u32) -> Ticks {
        self.slab[place as usize].next.born
    }

    /// The next packet of a flow whose first bit enters at `entered`.
    #[inline]
    pub(super) fn packet(&self, place: u32, entered: Ticks) -> Packet {
        let mut packet = self.slab[place as usize].next;
        packet.entered = entered;
        packet
    }

    /// A packet of a flow was sent. Gives whether more is left; else the source forgets the flow.
    #[inline]
    pub(super) fn sent(&mut self, place: u32, packet: &Packet) -> bool {
        let open = &mut self.slab[place as usize];
        open.left -= packet.size() - self.header;
        open.next.sequence += 1;
        if open.left > self.payload {
            return true;
        }
        self.ends(place)
    }

    /// A flow has no full packet to send that is not its last. Gives whether it has one at all.
    fn ends(&mut self, place: u32) -> bool {
        let Sending { next, left } = self.slab[place as usize];
        if left == Bytes::ZERO {
            self.slab.release(place);
            return false;
        }
        let (size, _) = self.next_size(left);
        let (source, destination) = (next.source.into(), next.destination.into());
        let mut last = Packet::new(source, destination, size, next.born);
        (last.sequence, last.tag) = (next.sequence, next.tag | LAST);
        self.slab[place as usize].next = last;
        true
    }
}
