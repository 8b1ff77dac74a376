//! What each node knows of the flows of the rack (§3.1, §3.3): the local copy of the global traffic
//! matrix, made of the broadcasts that have reached it, and of nothing else.
//!
//! What is announced of a flow is the same whoever hears it, so it is kept once, as a [`Record`]; a
//! node's view is two bits for each record: whether it has heard of its beginning, and of its end. A
//! flow whose demand or routing changes gets a new record in place of the old one. Broadcasts go by
//! different trees and may overtake each other: with a bit each for beginning and end, the order in
//! which they come makes no difference, and hearing one twice none either.
//!
//! What is lost with a link that fails may be the end of a flow as well as its beginning. So a source
//! that announces all its flows again (§3.2) first says that what it announced before is void: records
//! have the number of the *round* of announcements that they belong to.

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
    /// How often its source had begun anew when it was announced.
    pub round: u32,
    /// Broadcasts under way that speak of it, and nodes that take it to be true: without either it
    /// is forgotten.
    pending: u32,
    believers: u32,
    /// Its place among the records of its source.
    at: u32,
}

/// The views of all nodes.
#[derive(Clone, Debug)]
pub struct Views<A> {
    nodes: u32,
    records: Vec<Record<A>>,
    free: Vec<RecordId>,
    /// How many there have been.
    made: u64,
    /// By source: its records that are not forgotten, and how often it has begun anew.
    of_source: Vec<Vec<RecordId>>,
    rounds: Vec<u32>,
    /// Words of a node's bitmaps.
    words: usize,
    /// Bit `record` of node `n` is in word `n * words + record / 64`.
    heard: Vec<Heard>,
}

/// What a node has heard of the records of a word: whether they begin, and whether they end. Beside
/// each other, as who asks for one asks for the other.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    begun: u64,
    ended: u64,
}

impl Heard {
    /// The records that the node takes to be true.
    #[inline]
    fn known(self) -> u64 {
        self.begun & !self.ended
    }
}

impl<A: Copy> Views<A> {
    /// Views of `nodes` that know of nothing.
    #[must_use]
    pub fn new(nodes: u32) -> Self {
        let words = 1;
        Self {
            nodes,
            records: Vec::new(),
            free: Vec::new(),
            made: 0,
            of_source: vec![Vec::new(); nodes as usize],
            rounds: vec![0; nodes as usize],
            words,
            heard: vec![Heard::default(); nodes as usize * words],
        }
    }

    /// Makes a record of what a source announces, of which nobody knows yet.
    pub fn add(&mut self, source: NodeId, destination: NodeId, allocation: A) -> RecordId {
        self.add_to_round(self.rounds[source.index()], source, destination, allocation)
    }

    /// Makes a record that stands for another from now on, whoever says so.
    pub fn add_for(&mut self, old: RecordId, allocation: A) -> RecordId {
        let Record { round, source, destination, .. } = self.records[old as usize];
        self.add_to_round(round, source, destination, allocation)
    }

    fn add_to_round(
        &mut self,
        round: u32,
        source: NodeId,
        destination: NodeId,
        allocation: A,
    ) -> RecordId {
        let serial = self.made;
        self.made += 1;
        let others = &mut self.of_source[source.index()];
        let at = others.len() as u32;
        let (pending, believers) = (0, 0);
        let record =
            Record { source, destination, allocation, serial, round, pending, believers, at };
        if let Some(id) = self.free.pop() {
            others.push(id);
            self.records[id as usize] = record;
            return id;
        }
        let id = self.records.len() as RecordId;
        others.push(id);
        self.records.push(record);
        if self.records.len() > self.words * 64 {
            self.widen();
        }
        id
    }

    /// A source begins anew: what it has announced so far is void. The number of the new round.
    pub fn begin_round(&mut self, source: NodeId) -> u32 {
        self.rounds[source.index()] += 1;
        self.rounds[source.index()]
    }

    /// Doubles the bitmaps.
    fn widen(&mut self) {
        let mut wider = vec![Heard::default(); self.heard.len() * 2];
        for (old, new) in self.heard.chunks(self.words).zip(wider.chunks_mut(2 * self.words)) {
            new[..self.words].copy_from_slice(old);
        }
        self.heard = wider;
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

    /// A node hears, or says, that what a record speaks of begins. A broadcast under way must speak of
    /// it.
    #[inline]
    pub fn begins(&mut self, node: u32, id: RecordId) {
        let (word, bit) = self.bit(node, id);
        let heard = &mut self.heard[word];
        let is_new = (heard.begun | heard.ended) & bit == 0;
        heard.begun |= bit;
        self.records[id as usize].believers += u32::from(is_new);
    }

    /// A node hears, or says, that it is over.
    #[inline]
    pub fn ends(&mut self, node: u32, id: RecordId) {
        let (word, bit) = self.bit(node, id);
        let was_true = self.heard[word].known() & bit != 0;
        self.heard[word].ended |= bit;
        if was_true {
            self.records[id as usize].believers -= 1;
            self.forget_if_done(id);
        }
    }

    /// A node hears, or says, that what one record speaks of is now as another has it.
    #[inline]
    pub fn replaces(&mut self, node: u32, (old, new): (RecordId, RecordId)) {
        self.ends(node, old);
        self.begins(node, new);
    }

    /// A node hears that a source has begun this round: what it announced before is over.
    pub fn ends_before(&mut self, node: u32, source: NodeId, round: u32) {
        for at in (0..self.of_source[source.index()].len()).rev() {
            // What takes the place of one that is forgotten comes from behind: it was looked at.
            let id = self.of_source[source.index()][at];
            if self.records[id as usize].round < round {
                self.ends(node, id);
            }
        }
    }

    /// Whether a node takes a flow to be there as a record has it.
    #[must_use]
    pub fn knows(&self, node: u32, id: RecordId) -> bool {
        let (word, bit) = self.bit(node, id);
        self.heard[word].known() & bit != 0
    }

    /// The records that a node takes to be true, in an order that is the same for all nodes: equal
    /// views lead to equal rates.
    pub fn known(&self, node: u32) -> impl Iterator<Item = RecordId> + '_ {
        let start = node as usize * self.words;
        let words = &self.heard[start..start + self.words];
        (0..).step_by(64).zip(words).flat_map(|(first, heard)| {
            let mut bits = heard.known();
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(first + bit)
            })
        })
    }

    /// One more broadcast speaks of a record.
    pub fn announce(&mut self, id: RecordId) {
        self.records[id as usize].pending += 1;
    }

    /// A broadcast that speaks of a record has reached all whom it will reach.
    pub fn has_spread(&mut self, id: RecordId) {
        self.records[id as usize].pending -= 1;
        self.forget_if_done(id);
    }

    fn forget_if_done(&mut self, id: RecordId) {
        let Record { pending, believers, source, at, .. } = self.records[id as usize];
        if pending > 0 || believers > 0 {
            return;
        }
        for node in 0..self.nodes {
            let (word, bit) = self.bit(node, id);
            let heard = &mut self.heard[word];
            heard.begun &= !bit;
            heard.ended &= !bit;
        }
        let others = &mut self.of_source[source.index()];
        others.swap_remove(at as usize);
        if let Some(&moved) = others.get(at as usize) {
            self.records[moved as usize].at = at;
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
