//! A hierarchical timing wheel, for events whose delays have no lane.
//!
//! After Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, scheme 7), over a
//! slab. A slot's events lie in blocks of a few, so that emptying it is no chain of dependent cache
//! misses.
//!
//! Time is cut into ticks. Level 0 has a slot for each of the next ticks, level 1 for each run of
//! 4,096 ticks, and so on. An event lies on the lowest level whose slots tell its tick from the
//! current one. When the current tick enters a slot of a higher level, the slot's events move down.
//! The events of the current tick, few as a rule, are sorted.

use super::{Entry, Key, NEVER, Numbered, key_of};
use crate::Time;

/// Picoseconds in a tick, as a power of two: 1.024 ns (our choice; of 2⁸ to 2¹¹ it took the fewest
/// instructions in a loaded Clos).
const TICK_BITS: u32 = 10;
/// Slots of a level, as a power of two: 4,096 ticks are 4 µs, so that an event one hop ahead seldom
/// moves twice (our choice).
const LEVEL_BITS: u32 = 12;
const SLOTS: usize = 1 << LEVEL_BITS;
/// Enough levels for 64 bits of picoseconds.
const LEVELS: usize = (u64::BITS - TICK_BITS).div_ceil(LEVEL_BITS) as usize;
/// "No block" in the lists.
const NONE: u32 = u32::MAX;
/// Events of a block: two cache lines where an event takes 12 bytes (our choice).
const BLOCK: usize = 5;

/// Events in order of their keys.
#[derive(Clone, Debug)]
pub(super) struct Wheel<E> {
    levels: [Level; LEVELS],
    blocks: Vec<Block<E>>,
    /// Head of the list of unused blocks.
    free: u32,
    /// The current tick: every event of this tick or an earlier one is in `ready`.
    tick: u64,
    /// Those events, sorted; the ones before `taken` are gone.
    ready: Vec<Entry<E>>,
    taken: usize,
    /// The first key; where nothing is ready, a key that is not above it.
    head: Key,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Block<E> {
    /// The block behind it in its slot, or the next unused one.
    next: u32,
    /// How many of the entries are in use.
    len: u32,
    entries: [Entry<E>; BLOCK],
}

impl<E: Numbered> Wheel<E> {
    pub(super) fn new() -> Self {
        Self {
            levels: std::array::from_fn(|_| Level::new()),
            blocks: Vec::new(),
            free: NONE,
            tick: 0,
            ready: Vec::new(),
            taken: 0,
            head: NEVER,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A key that no event's is below; [`NEVER`] if there is none. Once it is the least of all that
    /// wait anywhere, [`Wheel::open_next`] finds out more.
    #[inline]
    pub(super) fn head(&self) -> Key {
        self.head
    }

    /// Adds an event. `now` is not after any event that waits.
    pub(super) fn push(&mut self, now: Time, entry: Entry<E>) {
        self.len += 1;
        // Nothing waits in the ticks passed over, so the others keep their slots.
        let passed = tick_of(now);
        if self.taken == self.ready.len() && passed > self.tick && key_of(now, 0) < self.head {
            self.tick = passed;
        }
        if tick_of(entry.time) <= self.tick {
            return self.push_ready(entry);
        }
        let slot = self.link(entry);
        if self.taken == self.ready.len() {
            self.head = self.head.min(key_of(start_of(slot), 0));
        }
    }

    /// Adds an event of the current tick.
    fn push_ready(&mut self, entry: Entry<E>) {
        let waiting = &self.ready[self.taken..];
        let at = self.taken + waiting.partition_point(|other| other.key() < entry.key());
        self.ready.insert(at, entry);
        self.update_head();
    }

    /// Appends an event to its slot, and returns the slot's first tick.
    fn link(&mut self, entry: Entry<E>) -> u64 {
        let tick = tick_of(entry.time);
        let level = (tick ^ self.tick).ilog2() / LEVEL_BITS;
        let slot = digit(tick, level);
        let shift = level * LEVEL_BITS;
        self.append(level, slot, entry);
        tick >> shift << shift
    }

    fn append(&mut self, level: u32, slot: usize, entry: Entry<E>) {
        let List { head, tail } = self.levels[level as usize].lists[slot];
        if head != NONE {
            let block = &mut self.blocks[tail as usize];
            let len = block.len as usize;
            if len < BLOCK {
                block.entries[len] = entry;
                block.len += 1;
                return;
            }
        }
        let index = self.new_block(entry);
        let level = &mut self.levels[level as usize];
        if head == NONE {
            level.lists[slot].head = index;
            level.filled[slot / 64] |= 1 << (slot % 64);
            level.words |= 1 << (slot / 64);
        } else {
            self.blocks[tail as usize].next = index;
        }
        level.lists[slot].tail = index;
    }

    /// A block with one event.
    fn new_block(&mut self, entry: Entry<E>) -> u32 {
        if self.free == NONE {
            // The entries not in use hold a copy: there is no other value of `E` at hand.
            self.blocks.push(Block { next: NONE, len: 1, entries: [entry; BLOCK] });
            return u32::try_from(self.blocks.len() - 1).expect("fewer than 2^32 blocks of events");
        }
        let index = self.free;
        let block = &mut self.blocks[index as usize];
        self.free = block.next;
        block.next = NONE;
        block.len = 1;
        block.entries[0] = entry;
        index
    }

    /// The first event, if it is known.
    #[inline]
    pub(super) fn front(&self) -> Option<E> {
        self.ready.get(self.taken).map(|entry| entry.event)
    }

    /// Drops the first event, which is known.
    pub(super) fn pop(&mut self) {
        debug_assert!(self.taken < self.ready.len(), "an event taken that is not known");
        self.taken += 1;
        self.len -= 1;
        self.update_head();
    }

    /// Sets the head after a change of what is ready.
    pub(super) fn update_head(&mut self) {
        self.head = match self.ready.get(self.taken) {
            Some(entry) => entry.key(),
            None => self.next_slot().map_or(NEVER, |(tick, ..)| key_of(start_of(tick), 0)),
        };
    }

    /// Moves the current tick to the start of the next slot with events and empties it: then the
    /// first event is known, or the head nearer to it. Nothing is ready.
    pub(super) fn open_next(&mut self) {
        self.ready.clear();
        self.taken = 0;
        if let Some((tick, level, slot)) = self.next_slot() {
            self.tick = tick;
            self.enter(level, slot);
            if !self.ready.is_sorted_by_key(Entry::key) {
                self.ready.sort_unstable_by_key(Entry::key);
            }
        }
        self.update_head();
    }

    /// Where the next events lie: the first tick of a slot, its level and its place there. It is on
    /// the lowest level that has any.
    fn next_slot(&self) -> Option<(u64, usize, usize)> {
        let first = |(level, slots): (usize, &Level)| Some((level, slots.first()?));
        let (level, slot) = self.levels.iter().enumerate().find_map(first)?;
        let shift = level as u32 * LEVEL_BITS;
        let above = self.tick >> shift >> LEVEL_BITS << LEVEL_BITS;
        Some(((above | slot as u64) << shift, level, slot))
    }

    /// Empties a slot: events of the current tick become ready, the others move down.
    fn enter(&mut self, level: usize, slot: usize) {
        let mut at = self.levels[level].take(slot);
        while at != NONE {
            let Block { next, len, .. } = self.blocks[at as usize];
            for place in 0..len as usize {
                let entry = self.blocks[at as usize].entries[place];
                if tick_of(entry.time) == self.tick {
                    self.ready.push(entry);
                } else {
                    self.link(entry);
                }
            }
            let block = &mut self.blocks[at as usize];
            (block.next, block.len) = (self.free, 0);
            self.free = at;
            at = next;
        }
    }

    /// The instant of the first event.
    pub(super) fn next_time(&self) -> Option<Time> {
        if let Some(next) = self.ready.get(self.taken) {
            return Some(next.time);
        }
        let (_, level, slot) = self.next_slot()?;
        let mut at = self.levels[level].lists[slot].head;
        let mut earliest = Time::NEVER;
        while at != NONE {
            let block = &self.blocks[at as usize];
            let times = block.entries[..block.len as usize].iter().map(|entry| entry.time);
            earliest = times.fold(earliest, Time::min);
            at = block.next;
        }
        Some(earliest)
    }

    /// All events, to change.
    pub(super) fn events(&mut self) -> impl Iterator<Item = &mut E> {
        let ready = self.ready[self.taken..].iter_mut();
        let linked =
            self.blocks.iter_mut().flat_map(|block| &mut block.entries[..block.len as usize]);
        ready.chain(linked).map(|entry| &mut entry.event)
    }

    /// How many events there is room for, beside those of the current tick.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.blocks.capacity() * BLOCK
    }
}

#[inline]
fn tick_of(time: Time) -> u64 {
    time.as_ps() >> TICK_BITS
}

/// The first instant of a tick.
#[inline]
fn start_of(tick: u64) -> Time {
    Time::from_ps(tick << TICK_BITS)
}

/// The slot of `tick` on a level.
#[inline]
fn digit(tick: u64, level: u32) -> usize {
    (tick >> (level * LEVEL_BITS)) as usize % SLOTS
}

/// One wheel.
#[derive(Clone, Debug)]
struct Level {
    lists: Box<[List]>,
    /// Bit for each slot: it has events.
    filled: [u64; SLOTS / 64],
    /// Bit for each word of `filled`: it is not zero.
    words: u64,
}

/// Blocks of events in order of insertion.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

impl Level {
    fn new() -> Self {
        let empty = List { head: NONE, tail: NONE };
        Self { lists: vec![empty; SLOTS].into(), filled: [0; SLOTS / 64], words: 0 }
    }

    /// The first slot with events. None lies at or before the current tick's, which was emptied.
    #[inline]
    fn first(&self) -> Option<usize> {
        if self.words == 0 {
            return None;
        }
        let word = self.words.trailing_zeros() as usize;
        Some(word * 64 + self.filled[word].trailing_zeros() as usize)
    }

    /// Empties a slot and returns its first block.
    fn take(&mut self, slot: usize) -> u32 {
        self.filled[slot / 64] &= !(1 << (slot % 64));
        if self.filled[slot / 64] == 0 {
            self.words &= !(1 << (slot / 64));
        }
        std::mem::replace(&mut self.lists[slot].head, NONE)
    }
}
