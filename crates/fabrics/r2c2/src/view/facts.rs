//! What each node knows of the flows of the rack (§3.1, §3.3): the local copy of the global traffic
//! matrix, made of the broadcasts that have reached it, and of nothing else.
//!
//! A flow is named by its source, its destination and an index. What the source says of a name is counted;
//! the newest that a node has heard is true for it, in whatever order it comes ([`super::late`]). A source
//! that announces all its flows again (§3.2) counts a *round*, and what it said in earlier ones is void: what
//! is lost with a link that fails may be the end of a flow as well as its beginning.
//!
//! What is announced is the same whoever hears it, so nodes whose views are held together keep it once, as
//! a [`Fact`], as long as it is true for one of them; a node's view is a bit for each fact. That saves memory
//! and nothing else: no node's view depends on whose is held with it.

use std::collections::BTreeMap;

use kernel::{Lookup, Time};
use rack::NodeId;

use super::late::{Late, MODULUS};
use crate::rates::{Course, Terms};
use crate::wire::{Allocation, Anew, Announcement, Event};

/// In place of a round: any is newer.
const NO_ROUND: u32 = u32::MAX;

/// A fact's place among those that are held together, until it is true for none of these.
pub type FactId = u32;

/// What a source said of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// Where it goes, and how.
    pub course: Course,
    /// Weight, priority and demand.
    pub terms: Terms,
    /// Which of the flows between the two.
    pub index: u8,
    /// Tells it from another that had its place before; zero once it is forgotten.
    pub serial: u64,
    /// Which of the announcements of its name said so, modulo [`MODULUS`].
    pub number: u8,
    round: u32,
    /// Whether some node has heard later announcements of its name before earlier ones.
    has_late: bool,
    /// For how many nodes it is true; at least one.
    knowers: u32,
    /// Its place among the facts of its source.
    at: u32,
    /// The next of those that have its name, in a ring.
    next: FactId,
}

/// Where an announcement was found to belong the last time: the fact that it makes true or, of one that
/// says that a flow is over, the fact that it ends.
#[derive(Clone, Copy, Debug)]
pub struct Hint {
    fact: FactId,
    /// Of that fact.
    serial: u64,
}

impl Default for Hint {
    /// It belongs nowhere yet.
    fn default() -> Self {
        Self { fact: 0, serial: u64::MAX }
    }
}

/// A node's bits for the facts of a word: which are true for it, and of which of these names it has heard
/// later announcements before earlier ones.
#[derive(Clone, Copy, Debug, Default)]
struct Bits {
    known: u64,
    late: u64,
}

/// A flow's name: its source in the highest bits, then its destination, and the index in the lowest eight.
type Name = u64;

/// The views of some nodes.
#[derive(Clone, Debug)]
pub struct Facts {
    nodes: u32,
    facts: Vec<Fact>,
    free: Vec<FactId>,
    /// How many there have been.
    made: u64,
    /// By name: one of its facts.
    of_name: Lookup,
    /// By source: its facts.
    of_source: Vec<Vec<FactId>>,
    late: BTreeMap<(Name, NodeId), Late>,
    /// By node and source: the source's round, as the node has heard; empty while none has counted one.
    rounds: Vec<u32>,
    /// Words of a node's bits; bit `fact` of node `n` is in word `n * words + fact / 64`.
    words: usize,
    bits: Vec<Bits>,
    /// By node and bit: since when it knows of the flow; empty where nobody asks.
    since: Vec<Time>,
    has_times: bool,
}

impl Facts {
    /// Views of `nodes` that know of nothing; with times, if anybody will ask since when they know
    /// ([`Facts::since`]).
    #[must_use]
    pub fn new(nodes: u32, has_times: bool) -> Self {
        let (words, count) = (1, nodes as usize);
        Self {
            nodes,
            facts: Vec::new(),
            free: Vec::new(),
            made: 0,
            of_name: Lookup::default(),
            of_source: vec![Vec::new(); count],
            late: BTreeMap::new(),
            rounds: Vec::new(),
            words,
            bits: vec![Bits::default(); count * words],
            since: vec![Time::ZERO; if has_times { count * words * 64 } else { 0 }],
            has_times,
        }
    }

    /// A fact, whoever knows of it.
    #[inline]
    #[must_use]
    pub fn fact(&self, id: FactId) -> &Fact {
        &self.facts[id as usize]
    }

    /// How many facts are true for any node.
    #[must_use]
    pub fn live(&self) -> usize {
        self.facts.len() - self.free.len()
    }

    /// Of how many names any node waits for announcements that others have overtaken.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.late.len()
    }

    /// What is true for a node, in no order that means anything: equal views lead to equal rates
    /// whatever it is.
    pub fn known(&self, node: NodeId) -> impl Iterator<Item = FactId> + '_ {
        let start = node.index() * self.words;
        let words = &self.bits[start..start + self.words];
        (0..).step_by(64).zip(words).flat_map(|(first, bits)| {
            let mut bits = bits.known;
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(first + bit)
            })
        })
    }

    /// Since when a node knows of the flow of a fact that is true for it.
    ///
    /// # Panics
    /// If these are views without times.
    #[must_use]
    pub fn since(&self, node: NodeId, id: FactId) -> Time {
        self.since[self.time_at(node, id)]
    }

    /// What is true for a node of the flow between two others that has this index.
    #[must_use]
    pub fn of(
        &self,
        node: NodeId,
        (source, destination, index): (NodeId, NodeId, u8),
    ) -> Option<FactId> {
        self.ring((source, destination, index)).find(|&id| self.knows(node, id))
    }

    /// Whether a fact is true for a node.
    #[must_use]
    pub fn knows(&self, node: NodeId, id: FactId) -> bool {
        let (word, bit) = self.bit(node, id);
        self.bits[word].known & bit != 0
    }

    /// A node hears an announcement, or says it: once, whatever the order. The `hint` is what the last call
    /// for the same announcement left.
    #[inline]
    pub fn hear(&mut self, node: NodeId, said: &Announcement, now: Time, hint: &mut Hint) {
        let is_of_round = match self.rounds.get(self.row(node, said.source)) {
            None => said.round == 0,
            Some(&round) => round == said.round,
        };
        let ((word, bit), time) = (self.bit(node, hint.fact), self.time_at(node, hint.fact));
        let fact = self.facts.get_mut(hint.fact as usize);
        if let Some(fact) = fact.filter(|fact| is_of_round && fact.serial == hint.serial) {
            let bits = &mut self.bits[word];
            let is_known = bits.known & bit != 0;
            if said.event == Event::Start && fact.next == hint.fact && !fact.has_late && !is_known {
                bits.known |= bit;
                fact.knowers += 1;
                if self.has_times {
                    self.since[time] = now;
                }
                return;
            }
            if said.event == Event::Finish && is_known && bits.late & bit == 0 {
                return self.unknow(node, hint.fact);
            }
        }
        self.hear_any(node, said, now, hint);
    }

    /// The same for any announcement, in order or not.
    fn hear_any(&mut self, node: NodeId, said: &Announcement, now: Time, hint: &mut Hint) {
        if !self.is_of_round(node, said) {
            return;
        }
        let Announcement { event, number, source, destination, index, .. } = *said;
        let had = self.of(node, (source, destination, index));
        let name = name_of(said);
        let late = if self.late.is_empty() { None } else { self.late.get(&(name, node)).copied() };
        let last = had.map(|id| self.fact(id).number);
        let is_start = event == Event::Start;
        let in_order = match (late, last) {
            (None, None) => is_start,
            (None, Some(last)) => number == (last + 1) % MODULUS,
            (Some(_), _) => false,
        };
        if in_order {
            if let (Event::Finish, Some(id)) = (event, had) {
                *hint = Hint { fact: id, serial: self.fact(id).serial };
                return self.unknow(node, id);
            }
            return self.replace(node, had, said, (now, hint));
        }
        let mut heard = match (late, last) {
            (Some(late), _) => late,
            (None, Some(last)) if last == number => return,
            (None, Some(last)) => Late::after(last),
            (None, None) => Late::without_start(number, event == Event::Finish),
        };
        let mut change = heard.hear(number, is_start, event == Event::Finish);
        change.is_newest |= late.is_none() && last.is_none();
        if change.is_newest {
            match event {
                Event::Finish => had.into_iter().for_each(|id| self.unknow(node, id)),
                _ => self.replace(node, had, said, (now, hint)),
            }
        }
        if change.is_complete {
            self.late.remove(&(name, node));
        } else {
            self.late.insert((name, node), heard);
        }
        self.note_late(node, said);
    }

    /// A node hears that a source begins anew, or says so.
    pub fn hear_anew(&mut self, node: NodeId, said: &Anew) {
        let heard = self.round(node, said.source);
        if heard == NO_ROUND || said.number > heard {
            self.begin_round(node, said.source, said.number);
        }
    }

    /// A node cannot reach a source any more: what that said is void for it, and whatever comes next is
    /// new.
    pub fn lose(&mut self, node: NodeId, source: NodeId) {
        self.void(node, source, |_| true);
        self.set_round(node, source, NO_ROUND);
    }

    /// Whether what is held agrees.
    ///
    /// # Errors
    /// If a fact is held that is true for nobody.
    pub fn check(&self) -> Result<(), String> {
        let held: usize = self.of_source.iter().map(Vec::len).sum();
        let idle = self.of_source.iter().flatten().filter(|&&id| self.fact(id).knowers == 0);
        match (held == self.live(), idle.count()) {
            (true, 0) => Ok(()),
            (_, idle) => Err(format!(
                "{} facts of flows, {held} of sources, {idle} true for nobody",
                self.live()
            )),
        }
    }

    /// Whether an announcement is of the round that its source is in, as far as a node has heard, or of
    /// a later one: then that begins.
    fn is_of_round(&mut self, node: NodeId, said: &Announcement) -> bool {
        let round = self.round(node, said.source);
        let is_new = round == NO_ROUND || said.round > round;
        if is_new {
            // It has overtaken the word that its source begins anew.
            self.begin_round(node, said.source, said.round);
        }
        is_new || said.round == round
    }

    fn begin_round(&mut self, node: NodeId, source: NodeId, round: u32) {
        self.set_round(node, source, round);
        self.void(node, source, |fact| fact.round != round);
    }

    fn round(&self, node: NodeId, source: NodeId) -> u32 {
        self.rounds.get(self.row(node, source)).copied().unwrap_or(0)
    }

    fn set_round(&mut self, node: NodeId, source: NodeId, round: u32) {
        if self.rounds.is_empty() {
            self.rounds = vec![0; self.nodes as usize * self.nodes as usize];
        }
        let row = self.row(node, source);
        self.rounds[row] = round;
    }

    #[inline]
    fn row(&self, node: NodeId, source: NodeId) -> usize {
        node.index() * self.nodes as usize + source.index()
    }

    /// What a source said is void for a node, so far as it `is_meant`, and what it heard before its time.
    fn void(&mut self, node: NodeId, source: NodeId, is_meant: impl Fn(&Fact) -> bool) {
        for at in (0..self.of_source[source.index()].len()).rev() {
            // What takes the place of one that is forgotten comes from behind: it was looked at.
            let id = self.of_source[source.index()][at];
            if self.knows(node, id) && is_meant(self.fact(id)) {
                self.unknow(node, id);
            }
        }
        if !self.late.is_empty() {
            let source = u64::from(source.get());
            let names = (source << 40, NodeId::new(0))..((source + 1) << 40, NodeId::new(0));
            let void = self.late.range(names).map(|(&name, _)| name);
            let void: Vec<_> = void.filter(|&(_, other)| other == node).collect();
            for name in void {
                self.late.remove(&name);
            }
        }
    }

    #[inline]
    fn bit(&self, node: NodeId, id: FactId) -> (usize, u64) {
        (node.index() * self.words + id as usize / 64, 1 << (id % 64))
    }

    #[inline]
    fn time_at(&self, node: NodeId, id: FactId) -> usize {
        node.index() * self.words * 64 + id as usize
    }

    /// The facts of a name.
    fn ring(&self, name: (NodeId, NodeId, u8)) -> impl Iterator<Item = FactId> + '_ {
        let (source, destination, index) = name;
        let first = self.of_name.get([source.get(), destination.get(), index.into()]);
        let after = move |&id: &FactId| Some(self.fact(id).next).filter(|&id| Some(id) != first);
        std::iter::successors(first, after)
    }

    /// What was said is true for a node in place of what was.
    fn replace(
        &mut self,
        node: NodeId,
        had: Option<FactId>,
        said: &Announcement,
        (now, hint): (Time, &mut Hint),
    ) {
        let id = self.intern(said);
        *hint = Hint { fact: id, serial: self.fact(id).serial };
        let (word, bit) = self.bit(node, id);
        self.bits[word].known |= bit;
        self.facts[id as usize].knowers += 1;
        if self.has_times {
            let since = had.map_or(now, |had| self.since(node, had));
            let at = self.time_at(node, id);
            self.since[at] = since;
        }
        had.into_iter().for_each(|had| self.unknow(node, had));
    }

    /// A fact is not true for a node any more; if it is not for anybody, it is forgotten.
    #[inline]
    fn unknow(&mut self, node: NodeId, id: FactId) {
        let (word, bit) = self.bit(node, id);
        let bits = &mut self.bits[word];
        bits.known &= !bit;
        bits.late &= !bit;
        let fact = &mut self.facts[id as usize];
        fact.knowers -= 1;
        if fact.knowers == 0 {
            self.forget(id);
        }
    }

    /// Whether a node has heard of a name in another order is told by the bit of what is true for it, and
    /// whether any has by all facts of the name.
    fn note_late(&mut self, node: NodeId, said: &Announcement) {
        let name = (said.source, said.destination, said.index);
        let is_late = self.late.contains_key(&(name_of(said), node));
        if let Some(id) = self.of(node, name) {
            let (word, bit) = self.bit(node, id);
            let late = &mut self.bits[word].late;
            *late = if is_late { *late | bit } else { *late & !bit };
        }
        let any = self.is_anybody_late(name_of(said));
        let all: Vec<FactId> = self.ring(name).collect();
        all.into_iter().for_each(|id| self.facts[id as usize].has_late = any);
    }

    fn is_anybody_late(&self, name: Name) -> bool {
        let first = (name, NodeId::new(0));
        self.late.range(first..).next().is_some_and(|(&(next, _), _)| next == name)
    }

    /// The place of what was said; whoever asks for it makes it true for a node.
    fn intern(&mut self, said: &Announcement) -> FactId {
        let Announcement { source, destination, index, number, round, allocation, .. } = *said;
        let Allocation { demand, weight, priority, protocol } = allocation;
        let is_same = |&id: &FactId| (self.fact(id).round, self.fact(id).number) == (round, number);
        if let Some(id) = self.ring((source, destination, index)).find(is_same) {
            return id;
        }
        self.made += 1;
        let others = &mut self.of_source[source.index()];
        let fact = Fact {
            course: Course { source, destination, protocol },
            terms: Terms { weight, priority, demand: demand.rate() },
            index,
            serial: self.made,
            number,
            round,
            has_late: false,
            knowers: 0,
            at: others.len() as u32,
            next: 0,
        };
        let id = self.free.pop().unwrap_or(self.facts.len() as FactId);
        others.push(id);
        if id as usize == self.facts.len() {
            self.facts.push(fact);
        } else {
            self.facts[id as usize] = fact;
        }
        if self.facts.len() > self.words * 64 {
            self.widen();
        }
        let name = [source.get(), destination.get(), index.into()];
        let next = match self.of_name.get(name) {
            None => {
                self.of_name.insert(name, id);
                id
            }
            Some(first) => std::mem::replace(&mut self.facts[first as usize].next, id),
        };
        let has_late = !self.late.is_empty() && self.is_anybody_late(name_of(said));
        let fact = &mut self.facts[id as usize];
        (fact.next, fact.has_late) = (next, has_late);
        id
    }

    fn widen(&mut self) {
        let mut wider = vec![Bits::default(); self.bits.len() * 2];
        for (old, new) in self.bits.chunks(self.words).zip(wider.chunks_mut(2 * self.words)) {
            new[..self.words].copy_from_slice(old);
        }
        self.bits = wider;
        if self.has_times {
            let mut wider = vec![Time::ZERO; self.since.len() * 2];
            let (old, new) = (self.words * 64, self.words * 128);
            for (old, new) in self.since.chunks(old).zip(wider.chunks_mut(new)) {
                new[..old.len()].copy_from_slice(old);
            }
            self.since = wider;
        }
        self.words *= 2;
    }

    /// Forgets what is true for nobody.
    fn forget(&mut self, id: FactId) {
        let Fact { course, index, at, next, .. } = self.facts[id as usize];
        let Course { source, destination, .. } = course;
        let name = [source.get(), destination.get(), index.into()];
        if next == id {
            self.of_name.remove(name);
        } else {
            let before = self.ring((source, destination, index));
            let before = { before }.find(|&other| self.fact(other).next == id);
            self.facts[before.expect("a ring goes round") as usize].next = next;
            self.of_name.insert(name, next);
        }
        let others = &mut self.of_source[source.index()];
        others.swap_remove(at as usize);
        if let Some(&moved) = others.get(at as usize) {
            self.facts[moved as usize].at = at;
        }
        self.facts[id as usize].serial = 0;
        self.free.push(id);
    }
}

fn name_of(said: &Announcement) -> Name {
    let [source, destination] = [said.source, said.destination].map(|node| u64::from(node.get()));
    source << 40 | destination << 8 | u64::from(said.index)
}

#[cfg(test)]
mod tests;
