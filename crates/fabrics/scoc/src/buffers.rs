//! Many small buffers in one memory, as the subswitches of a hierarchical crossbar have them.
//!
//! A switch of 512 ports has 65,536 of them, nearly all empty: what each takes for itself decides
//! whether the model fits a cache, so packets of all share one pool.

use switching::{Packet, QueueBank, Ticks};

/// Buffers of the same number of places.
#[derive(Clone, Debug)]
pub(crate) struct Buffers {
    places: usize,
    /// A packet and from when on it may go on.
    waiting: QueueBank<(Packet, Ticks)>,
    /// Until when packets on their way out take room.
    leaving: QueueBank<Ticks>,
    /// How many wait, and how many leave, of each buffer.
    counts: Box<[(u16, u16)]>,
}

impl Buffers {
    /// This many empty buffers of so many places.
    pub(crate) fn new(buffers: usize, places: usize) -> Self {
        assert!(places <= usize::from(u16::MAX), "a buffer of {places} packets");
        Self {
            places,
            waiting: QueueBank::new(buffers),
            leaving: QueueBank::new(buffers),
            counts: vec![(0, 0); buffers].into(),
        }
    }

    /// The oldest packet that waits.
    #[inline]
    pub(crate) fn front(&self, buffer: usize) -> Option<&(Packet, Ticks)> {
        self.waiting.front(buffer)
    }

    /// How many wait.
    #[inline]
    pub(crate) fn waiting(&self, buffer: usize) -> usize {
        usize::from(self.counts[buffer].0)
    }

    /// Takes a packet that may go on from `ready` on.
    #[inline]
    pub(crate) fn push(&mut self, buffer: usize, packet: Packet, ready: Ticks) {
        self.waiting.push(buffer, (packet, ready));
        self.counts[buffer].0 += 1;
    }

    /// The oldest packet goes on; it takes room until `gone` says so.
    #[inline]
    pub(crate) fn pop(&mut self, buffer: usize) -> Option<(Packet, Ticks)> {
        let front = self.waiting.pop(buffer)?;
        self.counts[buffer].0 -= 1;
        Some(front)
    }

    /// A packet that went on takes room until `end`.
    #[inline]
    pub(crate) fn gone(&mut self, buffer: usize, end: Ticks) {
        self.leaving.push(buffer, end);
        self.counts[buffer].1 += 1;
    }

    /// From when on there is room for one packet more, if that is known.
    #[inline]
    pub(crate) fn room_from(&mut self, buffer: usize, now: Ticks) -> Option<Ticks> {
        while self.leaving.front(buffer).is_some_and(|&end| end <= now) {
            self.leaving.pop(buffer);
            self.counts[buffer].1 -= 1;
        }
        let (waiting, leaving) = self.counts[buffer];
        let taken = usize::from(waiting) + usize::from(leaving);
        match (taken + 1).saturating_sub(self.places) {
            0 => Some(Ticks::default()),
            excess => self.leaving.iter(buffer).nth(excess - 1).copied(),
        }
    }

    /// Whether there is room for one packet more at `now`.
    #[inline]
    pub(crate) fn has_room(&self, buffer: usize, now: Ticks) -> bool {
        // What has left is forgotten only when something enters: count it out.
        let held = self.leaving.iter(buffer).filter(|&&end| end > now).count();
        self.waiting(buffer) + held < self.places
    }
}
