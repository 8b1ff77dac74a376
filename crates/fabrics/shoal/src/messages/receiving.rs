//! The half of flows at their destinations: cells back in order, and which messages are whole.
//!
//! A destination learns of a message from the first of its cells, and of its end from its last: each cell
//! says in its packet's header (the simulator's [`payload`](crate::cell::Cargo::payload)) which message of
//! its source it is of, and the last one says so.

use kernel::Slab;
use std::collections::VecDeque;

use crate::cell::Cargo;
use crate::reorder::{ReorderWindow, WINDOW_MAX};

use super::{LAST, LIFE, NONE};

/// A message of which cells have come.
#[derive(Clone, Debug)]
struct Record {
    handle: u32,
    /// The pair's next message of which cells have come.
    next: u32,
    /// Cells of it in order so far, and how many of them were before the first that may have been one
    /// that will not come; [`u64::MAX`] if all were.
    in_order: u64,
    sound: u64,
    /// The sequence number of its last cell, if that waits for one before it.
    end: Option<u32>,
    /// Sum over its cells of the slot in which they left for the last hop.
    last_hop: u128,
    /// Cells that took the direct path.
    direct: u64,
}

/// All messages from one other node to a node here in one class.
#[derive(Clone, Debug)]
pub(super) struct Inbound {
    pub(super) window: ReorderWindow,
    /// Messages of which cells have come, in that order.
    first: u32,
    /// The message of the cells that wait for one before them, while they are all of one.
    held: u32,
    /// What the cells from the next one in order on carry, if those that wait are of several messages.
    ring: Option<VecDeque<u32>>,
    /// Went on without a cell since it was last empty.
    has_skipped: bool,
    key: u32,
}

/// A message that is whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) handle: u32,
    /// Its cells that have come, and how many of them before the first that may be missing.
    pub(super) cells: u64,
    pub(super) sound: u64,
    pub(super) last_hop: u128,
    pub(super) direct: u64,
}

/// The state of the destinations of a set of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Receivers {
    first: u32,
    nodes: u32,
    classes: u32,
    pub(super) pairs: Slab<Inbound>,
    records: Slab<Record>,
    /// Pair of `[(destination * nodes + source) * classes + class]`, destinations from the first.
    pair_of: Vec<u32>,
    /// Sequence number that an idle pair goes on with.
    expected_of: Vec<u32>,
    /// Pairs of nodes that died since: nothing is known of them, and the first cell that comes says in which
    /// life they are. Empty where none did.
    is_forgotten: Vec<bool>,
    /// Cells can be lost: pairs are kept until [`Receivers::forget_if_done`], may wait for cells that will not
    /// come, and may start anew.
    pub(super) is_lossy: bool,
    /// Pairs that have begun to wait for a cell before others, where cells can be lost.
    pub(super) waiting: Vec<u32>,
    /// Messages of which nothing is known any more, and how many of their cells had come in order.
    pub(super) given_up: Vec<(u32, u64)>,
    /// Pairs that were made or have started anew.
    pub(super) started: Vec<u32>,
    /// Messages that have become whole, in that order.
    pub(super) whole: Vec<Whole>,
    /// Cells with numbers that no cell can have now: dropped.
    pub(crate) strays: u64,
    /// Most out-of-order cells held for one pair.
    pub(crate) held_peak: u32,
}

impl Receivers {
    pub(super) fn new(nodes: u32, classes: u32, own: std::ops::Range<u32>) -> Self {
        let keys = own.len() * nodes as usize * classes as usize;
        Self {
            first: own.start,
            nodes,
            classes,
            pairs: Slab::default(),
            records: Slab::default(),
            pair_of: vec![NONE; keys],
            expected_of: vec![0; keys],
            is_forgotten: Vec::new(),
            is_lossy: false,
            waiting: Vec::new(),
            given_up: Vec::new(),
            started: Vec::new(),
            whole: Vec::new(),
            strays: 0,
            held_peak: 0,
        }
    }

    #[inline]
    fn key(&self, source: u32, destination: u32, class: u32) -> usize {
        let destination = (destination - self.first) as usize;
        (destination * self.nodes as usize + source as usize) * self.classes as usize
            + class as usize
    }

    /// The pair of two nodes in a class, made if it is not there.
    #[inline(always)]
    pub(super) fn pair(&mut self, source: u32, destination: u32, class: u32) -> u32 {
        let known = self.known_pair(source, destination, class);
        known.unwrap_or_else(|| self.add_pair(self.key(source, destination, class)))
    }

    /// The pair, if it is known.
    #[inline]
    pub(super) fn known_pair(&self, source: u32, destination: u32, class: u32) -> Option<u32> {
        let pair = self.pair_of[self.key(source, destination, class)];
        (pair != NONE).then_some(pair)
    }

    #[cold]
    fn add_pair(&mut self, key: usize) -> u32 {
        let pair = Inbound {
            window: ReorderWindow::starting_at(self.expected_of[key]),
            first: NONE,
            held: NONE,
            ring: None,
            has_skipped: false,
            key: key as u32,
        };
        let index = self.pairs.insert(pair);
        self.pair_of[key] = index;
        if self.is_lossy {
            self.started.push(index);
        }
        index
    }

    /// Source, destination and class of a pair.
    pub(super) fn ends(&self, pair: u32) -> (u32, u32, u32) {
        let key = self.pairs[pair as usize].key;
        let (route, class) = (key / self.classes, key % self.classes);
        (route % self.nodes, self.first + route / self.nodes, class)
    }

    /// Whether a number still stands for the pair that it was given to.
    pub(super) fn is_known(&self, pair: u32) -> bool {
        self.pair_of[self.pairs[pair as usize].key as usize] == pair
    }

    /// Keeps of a pair the number alone that it goes on with.
    fn forget(&mut self, pair: u32) {
        let Inbound { key, window, .. } = &self.pairs[pair as usize];
        self.expected_of[*key as usize] = window.next_expected();
        self.pair_of[*key as usize] = NONE;
        self.pairs.release(pair);
    }

    /// A pair goes on with this number; what has come of it is forgotten.
    fn restart(&mut self, index: u32, sequence: u32) {
        self.give_up(index);
        let pair = &mut self.pairs[index as usize];
        pair.window = ReorderWindow::starting_at(sequence);
        (pair.held, pair.ring, pair.has_skipped) = (NONE, None, false);
        self.started.push(index);
    }

    /// Forgets the messages of a pair.
    fn give_up(&mut self, index: u32) {
        while self.pairs[index as usize].first != NONE {
            let first = self.pairs[index as usize].first;
            let Record { handle, in_order, sound, .. } = self.records[first as usize];
            self.given_up.push((handle, in_order.min(sound)));
            self.remove(index, first);
        }
    }

    /// A node here died, and with it all that it knew.
    pub(super) fn forget_node(&mut self, node: u32) {
        for index in 0..self.pairs.len() as u32 {
            if self.is_known(index) && self.ends(index).1 == node {
                self.give_up(index);
                self.forget(index);
                // Nothing is owed to it.
                self.started.push(index);
            }
        }
        let first = self.key(0, node, 0);
        let count = self.nodes as usize * self.classes as usize;
        self.is_forgotten.resize(self.pair_of.len(), false);
        self.is_forgotten[first..first + count].fill(true);
    }

    /// A cell reaches its destination; it left for the last hop in `slot`, straight from its source
    /// if `direct`. False: it had come before.
    #[inline]
    pub(super) fn arrived(&mut self, cargo: Cargo, slot: u64, direct: bool) -> bool {
        let Cargo { cell, payload } = cargo;
        let index = self.pair(cell.source(), cell.destination(), cell.class());
        let Some((record, advanced)) = self.insert(index, cell.sequence(), payload) else {
            if !self.is_lossy {
                self.forget_if_empty(index);
            }
            return false;
        };
        let state = &mut self.records[record as usize];
        state.last_hop += u128::from(slot);
        state.direct += u64::from(direct);
        if advanced > 0 {
            self.advance(index, record, payload, advanced);
        }
        true
    }

    /// Goes on without the cells before the first one that waits.
    pub(super) fn skip(&mut self, index: u32) {
        let mut record = self.pairs[index as usize].first;
        while record != NONE {
            let state = &mut self.records[record as usize];
            state.sound = state.sound.min(state.in_order);
            record = state.next;
        }
        loop {
            let pair = &mut self.pairs[index as usize];
            if pair.window.held() == 0 {
                return;
            }
            pair.has_skipped = true;
            let advanced = pair.window.insert(pair.window.next_expected()).advanced;
            if advanced > 1 {
                return self.advance_held(index, u64::from(advanced) - 1);
            }
            if let Some(ring) = &mut pair.ring {
                ring.pop_front();
            }
        }
    }

    /// Forgets a pair that has nothing under way, where cells can be lost.
    pub(super) fn forget_if_done(&mut self, index: u32) {
        if self.is_known(index) {
            self.forget_if_empty(index);
        }
    }

    /// Notes a cell; none if it had come before. Gives its message and how many cells are in order now.
    #[inline(always)]
    fn insert(&mut self, index: u32, sequence: u32, payload: u32) -> Option<(u32, u32)> {
        let Inbound { key, window, .. } = &self.pairs[index as usize];
        let (key, mut ahead) = (*key, sequence.wrapping_sub(window.next_expected()));
        if self.is_lossy && self.takes_as_it_comes(key) {
            self.restart(index, sequence & !(LIFE - 1));
            ahead = sequence & (LIFE - 1);
        }
        if self.is_lossy && (LIFE / 2..=i32::MAX as u32).contains(&ahead) {
            // No cell of this life of the pair is so far ahead: its source has started anew.
            self.restart(index, sequence & !(LIFE - 1));
            ahead = sequence & (LIFE - 1);
        }
        let most = if self.is_lossy { LIFE / 2 } else { WINDOW_MAX };
        if (most..=i32::MAX as u32).contains(&ahead) {
            self.strays += 1;
            return None;
        }
        let pair = &mut self.pairs[index as usize];
        let inserted = pair.window.insert(sequence);
        if inserted.duplicate {
            return None;
        }
        self.held_peak = self.held_peak.max(pair.window.held());
        let record = self.record(index, payload & !LAST);
        if inserted.advanced == 0 {
            self.hold(index, record, sequence, payload);
        }
        Some((record, inserted.advanced))
    }

    /// Whether nothing was known of a pair until now, as its destination died.
    fn takes_as_it_comes(&mut self, key: u32) -> bool {
        self.is_forgotten.get_mut(key as usize).is_some_and(std::mem::take)
    }

    /// The record of a message, made if this is its first cell.
    #[inline]
    fn record(&mut self, pair: u32, handle: u32) -> u32 {
        let first = self.pairs[pair as usize].first;
        if first != NONE && self.records[first as usize].handle == handle {
            return first;
        }
        self.other_record(pair, handle)
    }

    #[cold]
    fn other_record(&mut self, pair: u32, handle: u32) -> u32 {
        let (mut last, mut index) = (NONE, self.pairs[pair as usize].first);
        while index != NONE {
            if self.records[index as usize].handle == handle {
                return index;
            }
            (last, index) = (index, self.records[index as usize].next);
        }
        // After a gap nobody knows whether it began in it.
        let sound = if self.pairs[pair as usize].has_skipped { 0 } else { u64::MAX };
        let (in_order, end) = (0, None);
        let record = Record { handle, next: NONE, in_order, sound, end, last_hop: 0, direct: 0 };
        let index = self.records.insert(record);
        match last {
            NONE => self.pairs[pair as usize].first = index,
            last => self.records[last as usize].next = index,
        }
        index
    }

    /// A cell waits for one before it.
    #[inline]
    fn hold(&mut self, index: u32, record: u32, sequence: u32, payload: u32) {
        if payload & LAST != 0 {
            self.records[record as usize].end = Some(sequence);
        }
        let pair = &mut self.pairs[index as usize];
        if pair.window.held() == 1 {
            pair.held = record;
            if self.is_lossy {
                self.waiting.push(index);
            }
        }
        if pair.held != record || pair.ring.is_some() {
            self.hold_of_several(index, sequence, payload);
        }
    }

    /// The same where the cells that wait are of several messages.
    fn hold_of_several(&mut self, index: u32, sequence: u32, payload: u32) {
        let pair = &mut self.pairs[index as usize];
        let next = pair.window.next_expected();
        let held = &self.records[pair.held as usize];
        let mut ring = pair.ring.take().unwrap_or_else(|| {
            // Until now they were of one.
            let mut ring = VecDeque::new();
            let (mut left, mut at) = (pair.window.held() - 1, next);
            while left > 0 {
                let is_held = at != sequence && pair.window.holds(at);
                left -= u32::from(is_held);
                let last = if held.end == Some(at) { LAST } else { 0 };
                ring.push_back(if is_held { held.handle | last } else { NONE });
                at = at.wrapping_add(1);
            }
            ring
        });
        let ahead = sequence.wrapping_sub(next) as usize;
        if ring.len() <= ahead {
            ring.resize(ahead + 1, NONE);
        }
        ring[ahead] = payload;
        pair.ring = Some(ring);
    }

    /// So many cells are in order now: one of the message in `record`, which has just come, and those
    /// that waited for it.
    #[inline]
    fn advance(&mut self, index: u32, record: u32, payload: u32, advanced: u32) {
        self.count(index, record, 1, payload & LAST != 0);
        if advanced > 1 {
            self.advance_held(index, u64::from(advanced) - 1);
        } else if let Some(ring) = &mut self.pairs[index as usize].ring {
            ring.pop_front();
        }
        if !self.is_lossy && self.pairs[index as usize].first == NONE {
            self.forget_if_empty(index);
        }
    }

    /// So many cells that waited are in order now.
    #[inline]
    fn advance_held(&mut self, index: u32, cells: u64) {
        let pair = &mut self.pairs[index as usize];
        let Some(mut ring) = pair.ring.take() else {
            let (held, next) = (pair.held, pair.window.next_expected());
            let end = self.records[held as usize].end;
            let is_whole = end.is_some_and(|end| next.wrapping_sub(end) as i32 > 0);
            return self.count(index, held, cells, is_whole);
        };
        let holds = pair.window.held() > 0;
        ring.pop_front();
        for payload in ring.drain(..cells as usize) {
            let record = self.record(index, payload & !LAST);
            self.count(index, record, 1, payload & LAST != 0);
        }
        if holds {
            self.pairs[index as usize].ring = Some(ring);
        }
    }

    /// Cells of a message are in order, up to its last if it `is_whole`.
    #[inline]
    fn count(&mut self, pair: u32, record: u32, cells: u64, is_whole: bool) {
        let state = &mut self.records[record as usize];
        state.in_order += cells;
        if is_whole {
            let Record { handle, last_hop, direct, in_order: cells, sound, .. } = *state;
            self.whole.push(Whole { handle, cells, sound: cells.min(sound), last_hop, direct });
            self.remove(pair, record);
        }
    }

    fn remove(&mut self, pair: u32, record: u32) {
        let next = self.records[record as usize].next;
        let (mut before, mut index) = (NONE, self.pairs[pair as usize].first);
        while index != record {
            (before, index) = (index, self.records[index as usize].next);
        }
        match before {
            NONE => self.pairs[pair as usize].first = next,
            before => self.records[before as usize].next = next,
        }
        self.records.release(record);
    }

    fn forget_if_empty(&mut self, index: u32) {
        let pair = &self.pairs[index as usize];
        if pair.first == NONE && pair.window.held() == 0 {
            self.forget(index);
        }
    }

    /// The messages of which cells have come, and how many of each are in order, up to the first that may be
    /// missing. In no order that means anything.
    pub(crate) fn begun(&self) -> impl Iterator<Item = (u32, u64)> {
        let pairs = (0..).zip(self.pairs.iter());
        let known = pairs.filter(|(pair, state)| self.pair_of[state.key as usize] == *pair);
        known.flat_map(|(pair, _)| self.begun_of(pair))
    }

    fn begun_of(&self, pair: u32) -> impl Iterator<Item = (u32, u64)> {
        let mut index = self.pairs[pair as usize].first;
        std::iter::from_fn(move || {
            let record = self.records.get(index as usize)?;
            index = record.next;
            Some((record.handle, record.in_order.min(record.sound)))
        })
    }
}
