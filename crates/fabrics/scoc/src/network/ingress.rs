//! The side of a leaf where its nodes' packets come in: queues for each destination, and the lines to
//! the spines over which their segments are sprayed.
//!
//! Models: SCOC §6.A (M50): network-level virtual output queues; segments of variable size, each over
//! the next line that is free and has credit for the spine's input.

use ::rack::NodeId;
use kernel::Ring;
use packets::Packet;

use super::message::{NUMBERS, Segment};

/// A queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: Ring<Packet>,
    /// Bytes of packets not acknowledged yet.
    bytes: u32,
    /// Packets that were granted, modulo [`NUMBERS`].
    granted: u32,
}

/// A packet that was granted, and how much of it has been sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    packet: Packet,
    number: u32,
    sent: u16,
}

/// A line to a spine.
#[derive(Clone, Copy, Debug)]
struct Uplink {
    /// Segments for which the spine's input has room; none: without bound.
    credits: Option<u32>,
    /// Whether a segment waits for the line.
    is_filled: bool,
}

/// All leaves.
#[derive(Clone, Debug)]
pub(super) struct Ingress {
    nodes: usize,
    spines: usize,
    /// Most bytes of a segment.
    segment: u16,
    /// `leaf * nodes + destination`.
    queues: Vec<Queue>,
    /// By leaf: packets that were granted, in order.
    sending: Vec<Ring<Sending>>,
    /// `leaf * spines + spine`.
    uplinks: Vec<Uplink>,
    /// By leaf: the line whose turn it is.
    turns: Vec<usize>,
}

impl Ingress {
    /// Idle leaves. `credits`: places of a spine's input.
    pub(super) fn new(
        (leaves, nodes, spines): (usize, usize, usize),
        segment: u16,
        credits: Option<u32>,
    ) -> Self {
        let uplink = Uplink { credits, is_filled: false };
        Self {
            nodes,
            spines,
            segment,
            queues: vec![Queue::default(); leaves * nodes],
            sending: vec![Ring::new(); leaves],
            uplinks: vec![uplink; leaves * spines],
            turns: vec![0; leaves],
        }
    }

    /// Bytes of a queue that are not acknowledged.
    #[inline]
    pub(super) fn bytes(&self, leaf: usize, dst: NodeId) -> u32 {
        self.queues[leaf * self.nodes + dst.index()].bytes
    }

    /// Room in a queue is taken by a packet on its way in.
    #[inline]
    pub(super) fn take_room(&mut self, leaf: usize, packet: &Packet) {
        self.queues[leaf * self.nodes + packet.dst.index()].bytes += u32::from(packet.wire);
    }

    /// A packet is in its queue.
    #[inline]
    pub(super) fn store(&mut self, leaf: usize, packet: Packet) {
        self.queues[leaf * self.nodes + packet.dst.index()].waiting.push(packet);
    }

    /// A packet has arrived: its room is free. False: no such packet was under way.
    #[must_use]
    pub(super) fn acknowledged(&mut self, leaf: usize, dst: NodeId, size: u16) -> bool {
        let queue = &mut self.queues[leaf * self.nodes + dst.index()];
        let rest = queue.bytes.checked_sub(u32::from(size));
        queue.bytes = rest.unwrap_or(queue.bytes);
        rest.is_some()
    }

    /// The next packet of a queue may go: it and its number. None: no packet of this size asked.
    pub(super) fn granted(&mut self, leaf: usize, dst: NodeId, size: u16) -> Option<(Packet, u32)> {
        let queue = &mut self.queues[leaf * self.nodes + dst.index()];
        if queue.waiting.front()?.wire != size {
            return None;
        }
        let packet = queue.waiting.pop()?;
        let number = queue.granted;
        queue.granted = (number + 1) % NUMBERS;
        Some((packet, number))
    }

    /// A granted packet is to be cut into segments.
    pub(super) fn send(&mut self, leaf: usize, packet: Packet, number: u32) {
        self.sending[leaf].push(Sending { packet, number, sent: 0 });
    }

    /// The next segment of a leaf and the spine to send it to, if any can go.
    pub(super) fn next_segment(&mut self, leaf: usize) -> Option<(Segment, usize)> {
        let front = *self.sending[leaf].front()?;
        let spine = self.next_uplink(leaf)?;
        let uplink = &mut self.uplinks[leaf * self.spines + spine];
        uplink.is_filled = true;
        uplink.credits = uplink.credits.map(|credits| credits - 1);
        self.turns[leaf] = (spine + 1) % self.spines;
        let Sending { packet, number, sent } = front;
        let size = (packet.wire - sent).min(self.segment);
        if sent + size == packet.wire {
            self.sending[leaf].pop();
        } else {
            let front = self.sending[leaf].get_mut(0).expect("it was looked at");
            front.sent = sent + size;
        }
        let header = (sent == 0).then_some(packet);
        let segment = Segment { leaf: leaf as u16, node: packet.dst, number, size, header };
        Some((segment, spine))
    }

    /// The next line in turn that has nothing waiting and credit.
    fn next_uplink(&self, leaf: usize) -> Option<usize> {
        let lines = &self.uplinks[leaf * self.spines..][..self.spines];
        let is_open = |&spine: &usize| !lines[spine].is_filled && lines[spine].credits != Some(0);
        let turn = self.turns[leaf];
        (turn..self.spines).chain(0..turn).find(is_open)
    }

    /// The segment that waited for a line is on it.
    #[inline]
    pub(super) fn left(&mut self, leaf: usize, spine: usize) {
        self.uplinks[leaf * self.spines + spine].is_filled = false;
    }

    /// A spine's input has room for so many segments more. False: there are more than it has `places`.
    #[must_use]
    pub(super) fn credit(&mut self, leaf: usize, spine: usize, count: u32, places: u32) -> bool {
        let credits = &mut self.uplinks[leaf * self.spines + spine].credits;
        let Some(now) = credits else { return false };
        let is_expected = *now + count <= places;
        *now = (*now + count).min(places);
        is_expected
    }

    /// Packets in queues.
    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum()
    }

    /// Credit that leaves have, all together; none: without bound.
    pub(super) fn credits(&self) -> Option<usize> {
        self.uplinks.iter().map(|uplink| uplink.credits.map(|credits| credits as usize)).sum()
    }
}
