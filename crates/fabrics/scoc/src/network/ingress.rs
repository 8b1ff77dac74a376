//! The side of a leaf where its nodes' packets come in: queues for each destination, and the lines to
//! the spines over which their segments are sprayed.
//!
//! Models: SCOC §6.A (M50): network-level virtual output queues; segments of variable size, each over
//! the next line that is free and has credit for the spine's input.

use ::rack::NodeId;
use kernel::Ring;

use super::message::Segment;

/// A packet that a leaf keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held {
    /// Its handle as a number.
    pub(super) packet: u32,
    pub(super) dst: NodeId,
    pub(super) size: u16,
}

/// A queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: Ring<Held>,
    /// Bytes of packets not acknowledged yet.
    bytes: u32,
    /// Packets that were granted, modulo 2³².
    granted: u32,
}

/// A packet that was granted, and how much of it has been sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    held: Held,
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
    pub(super) fn take_room(&mut self, leaf: usize, held: Held) {
        self.queues[leaf * self.nodes + held.dst.index()].bytes += u32::from(held.size);
    }

    /// A packet is in its queue.
    #[inline]
    pub(super) fn store(&mut self, leaf: usize, held: Held) {
        self.queues[leaf * self.nodes + held.dst.index()].waiting.push(held);
    }

    /// A packet has arrived: its room is free.
    pub(super) fn acknowledged(&mut self, leaf: usize, dst: NodeId, size: u16) {
        let queue = &mut self.queues[leaf * self.nodes + dst.index()];
        debug_assert!(queue.bytes >= u32::from(size), "more is acknowledged than was sent");
        queue.bytes -= u32::from(size);
    }

    /// The next packet of a queue may go: it and its number.
    pub(super) fn granted(&mut self, leaf: usize, dst: NodeId) -> (Held, u32) {
        let queue = &mut self.queues[leaf * self.nodes + dst.index()];
        let held = queue.waiting.pop().expect("credit answers a request");
        let number = queue.granted;
        queue.granted = number.wrapping_add(1);
        (held, number)
    }

    /// A granted packet is to be cut into segments.
    pub(super) fn send(&mut self, leaf: usize, held: Held, number: u32) {
        self.sending[leaf].push(Sending { held, number, sent: 0 });
    }

    /// The next segment of a leaf and the spine to send it to, if any can go.
    pub(super) fn next_segment(&mut self, leaf: usize) -> Option<(Segment, usize)> {
        let front = *self.sending[leaf].front()?;
        let spine = self.next_uplink(leaf)?;
        let uplink = &mut self.uplinks[leaf * self.spines + spine];
        uplink.is_filled = true;
        uplink.credits = uplink.credits.map(|credits| credits - 1);
        self.turns[leaf] = (spine + 1) % self.spines;
        let Sending { held, number, sent } = front;
        let size = (held.size - sent).min(self.segment);
        if sent + size == held.size {
            self.sending[leaf].pop();
        } else {
            let front = self.sending[leaf].get_mut(0).expect("it was looked at");
            front.sent = sent + size;
        }
        let Held { packet, dst: node, .. } = held;
        let segment = Segment { leaf: leaf as u16, node, number, packet, size };
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

    /// A spine's input has room for so many segments more.
    pub(super) fn credit(&mut self, leaf: usize, spine: usize, count: u32) {
        let credits = &mut self.uplinks[leaf * self.spines + spine].credits;
        *credits = credits.map(|credits| credits + count);
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
