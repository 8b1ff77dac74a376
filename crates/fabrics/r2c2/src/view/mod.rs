//! What each node knows of the flows of the rack (§3.1, §3.3): the local copy of the global traffic
//! matrix, made of the broadcasts that have reached it, and of nothing else.
//!
//! What is announced of a flow is the same whoever hears it, so it is kept once, as a [`Record`]; a
//! node's view is two bits for each record: whether it has heard of its beginning, and of its end. A
//! flow whose demand or routing changes gets a new record in place of the old one. Broadcasts go by
//! different trees and may overtake each other: with a bit each for beginning and end, the order in
//! which they come makes no difference, and hearing one twice none either.

mod broadcasts;

use rack::NodeId;

pub use broadcasts::{Broadcast, Broadcasts, Event};

/// A record's place, until all nodes have forgotten it.
pub type RecordId = u32;

/// What is announced of a flow (§3.3.2, §4.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record<A> {
    /// Who sends.
    pub source: NodeId,
    /// Who receives.
    pub destination: NodeId,
    /// How it is to be treated: routing, weight, priority, demand.
    pub allocation: A,
    /// Tells it from another that had its place before.
    pub serial: u64,
    /// Broadcasts under way that speak of it, and whether it has been announced to be over.
    pending: u32,
    is_over: bool,
}

/// The views of all nodes.
#[derive(Clone, Debug)]
pub struct Views<A> {
    nodes: u32,
    records: Vec<Record<A>>,
    free: Vec<RecordId>,
    /// How many there have been.
    made: u64,
    /// Words of a node's bitmaps.
    words: usize,
    /// Bit `record` of node `n` is in word `n * words + record / 64`.
    begun: Vec<u64>,
    ended: Vec<u64>,
}

impl<A: Copy> Views<A> {
    /// Views of `nodes` that know of nothing.
    #[must_use]
    pub fn new(nodes: u32) -> Self {
        let words = 1;
        let bits = vec![0; nodes as usize * words];
        Self {
            nodes,
            records: Vec::new(),
            free: Vec::new(),
            made: 0,
            words,
            begun: bits.clone(),
            ended: bits,
        }
    }

    /// Makes a record, of which nobody knows yet.
    pub fn add(&mut self, source: NodeId, destination: NodeId, allocation: A) -> RecordId {
        let serial = self.made;
        self.made += 1;
        let record = Record { source, destination, allocation, serial, pending: 0, is_over: false };
        if let Some(id) = self.free.pop() {
            self.records[id as usize] = record;
            return id;
        }
        self.records.push(record);
        if self.records.len() > self.words * 64 {
            self.widen();
        }
        self.records.len() as RecordId - 1
    }

    /// Doubles the bitmaps.
    fn widen(&mut self) {
        for bits in [&mut self.begun, &mut self.ended] {
            let mut wider = vec![0; bits.len() * 2];
            for (old, new) in bits.chunks(self.words).zip(wider.chunks_mut(2 * self.words)) {
                new[..self.words].copy_from_slice(old);
            }
            *bits = wider;
        }
        self.words *= 2;
    }

    /// A record, whoever knows of it.
    #[inline]
    #[must_use]
    pub fn record(&self, id: RecordId) -> &Record<A> {
        &self.records[id as usize]
    }

    #[inline]
    fn bit(&self, node: u32, id: RecordId) -> (usize, u64) {
        (node as usize * self.words + id as usize / 64, 1 << (id % 64))
    }

    /// A node hears, or says, that what a record speaks of begins.
    #[inline]
    pub fn begins(&mut self, node: u32, id: RecordId) {
        let (word, bit) = self.bit(node, id);
        self.begun[word] |= bit;
    }

    /// A node hears, or says, that it is over.
    #[inline]
    pub fn ends(&mut self, node: u32, id: RecordId) {
        let (word, bit) = self.bit(node, id);
        self.ended[word] |= bit;
    }

    /// Whether a node takes a flow to be there as a record has it.
    #[must_use]
    pub fn knows(&self, node: u32, id: RecordId) -> bool {
        let (word, bit) = self.bit(node, id);
        self.begun[word] & !self.ended[word] & bit != 0
    }

    /// The records that a node takes to be true, in an order that is the same for all nodes: equal
    /// views lead to equal rates.
    pub fn known(&self, node: u32) -> impl Iterator<Item = RecordId> + '_ {
        let start = node as usize * self.words;
        let words = self.begun[start..start + self.words].iter().zip(&self.ended[start..]);
        (0..).step_by(64).zip(words).flat_map(|(first, (&begun, &ended))| {
            let mut bits = begun & !ended;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(first + bit)
            })
        })
    }

    /// No node takes anything for true that it has heard so far, and all of it is over.
    pub fn forget_all(&mut self) {
        let mut used = vec![u64::MAX; self.words];
        for id in self.free.iter().copied().chain(self.records.len() as u32..self.words as u32 * 64)
        {
            used[id as usize / 64] &= !(1 << (id % 64));
        }
        for ended in self.ended.chunks_mut(self.words) {
            ended.copy_from_slice(&used);
        }
        let bits = |(word, bits): (usize, u64)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| (word * 64 + bit) as u32)
        };
        used.into_iter().enumerate().flat_map(bits).for_each(|id| self.retire(id));
    }

    /// One more broadcast speaks of a record.
    pub fn announce(&mut self, id: RecordId) {
        self.records[id as usize].pending += 1;
    }

    /// The flow is over, or announced by another record: once no broadcast speaks of this one any
    /// more, it is forgotten.
    pub fn retire(&mut self, id: RecordId) {
        self.records[id as usize].is_over = true;
        self.forget_if_done(id);
    }

    /// A broadcast that speaks of a record has reached all whom it will reach.
    pub fn has_spread(&mut self, id: RecordId) {
        let record = &mut self.records[id as usize];
        record.pending -= 1;
        self.forget_if_done(id);
    }

    fn forget_if_done(&mut self, id: RecordId) {
        let record = &self.records[id as usize];
        if record.pending > 0 || !record.is_over {
            return;
        }
        for node in 0..self.nodes {
            let (word, bit) = self.bit(node, id);
            self.begun[word] &= !bit;
            self.ended[word] &= !bit;
        }
        self.free.push(id);
    }

    /// Records that are not forgotten.
    #[must_use]
    pub fn live(&self) -> usize {
        self.records.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests;
