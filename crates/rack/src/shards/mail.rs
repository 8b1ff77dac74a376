//! Messages on their way between shards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::NEVER;

/// What a shard sends in a window, by receiver.
#[derive(Clone, Debug)]
pub struct Outbox<M> {
    to: Vec<Vec<M>>,
    earliest: u64,
    count: u64,
}

impl<M> Outbox<M> {
    /// An empty one, for so many receivers.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        Self { to: (0..shards).map(|_| Vec::new()).collect(), earliest: NEVER, count: 0 }
    }

    /// Sends `message` to a shard, where it arrives `at`.
    #[inline]
    pub fn send(&mut self, to: usize, at: u64, message: M) {
        self.earliest = self.earliest.min(at);
        self.count += 1;
        self.to[to].push(message);
    }

    /// Takes out what was sent, by receiver, for a driver of one's own.
    pub fn drain(&mut self) -> impl Iterator<Item = (usize, M)> + '_ {
        self.to
            .iter_mut()
            .enumerate()
            .flat_map(|(to, messages)| messages.drain(..).map(move |message| (to, message)))
    }

    /// Begins a window.
    pub(super) fn begin(&mut self) {
        (self.earliest, self.count) = (NEVER, 0);
    }

    /// The first arrival of what was sent in this window.
    pub(super) fn earliest(&self) -> u64 {
        self.earliest
    }

    /// Messages sent in this window.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// What was sent to a shard.
    pub(super) fn messages_to(&mut self, shard: usize) -> &mut Vec<M> {
        &mut self.to[shard]
    }
}

/// The messages from one shard to another of one window. The sender writes in windows of one parity, the
/// receiver reads in those of the other, so nobody ever waits for the lock.
#[derive(Debug)]
struct Bag<M> {
    is_full: AtomicBool,
    messages: Mutex<Vec<M>>,
}

/// The bags of all pairs of shards.
#[derive(Debug)]
pub(super) struct Mail<M> {
    shards: usize,
    /// `[(parity * shards + to) * stride + from]`.
    bags: Vec<Bag<M>>,
    stride: usize,
}

impl<M> Mail<M> {
    pub(super) fn new(shards: usize) -> Self {
        // Rows of different receivers share no cache line.
        let stride = shards.next_multiple_of(4) + 4;
        let bag = |_| Bag { is_full: AtomicBool::new(false), messages: Mutex::default() };
        Self { shards, stride, bags: (0..2 * shards * stride).map(bag).collect() }
    }

    fn bag(&self, parity: usize, from: usize, to: usize) -> &Bag<M> {
        &self.bags[(parity * self.shards + to) * self.stride + from]
    }

    /// Puts what `from` sent into the mail, and takes back the memory of what was read.
    pub(super) fn post(&self, parity: usize, from: usize, out: &mut Outbox<M>) {
        for to in (0..self.shards).filter(|&to| to != from) {
            let messages = out.messages_to(to);
            if messages.is_empty() {
                continue;
            }
            let bag = self.bag(parity, from, to);
            let mut inside = bag.messages.lock().unwrap_or_else(PoisonError::into_inner);
            debug_assert!(inside.is_empty(), "shard {to} has not read what {from} sent it");
            std::mem::swap(&mut *inside, messages);
            // The lock and the barrier order this.
            bag.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// Gives `take` what was sent to a shard in windows of a parity, by sender; it leaves nothing.
    pub(super) fn fetch(&self, parity: usize, to: usize, mut take: impl FnMut(&mut Vec<M>)) {
        for from in 0..self.shards {
            let bag = self.bag(parity, from, to);
            if bag.is_full.load(Ordering::Relaxed) {
                bag.is_full.store(false, Ordering::Relaxed);
                let mut inside = bag.messages.lock().unwrap_or_else(PoisonError::into_inner);
                take(&mut inside);
                inside.clear();
            }
        }
    }
}
