//! The events to come, in order of time; at one instant in order of insertion.
//!
//! A hierarchical timing wheel (Varghese and Lauck, "Hashed and hierarchical timing wheels", SOSP
//! 1987, scheme 7) over a slab: a push and a pop touch a few cache lines however many events wait,
//! and nothing is allocated once the slab has grown to the most that ever waited at a time. A slot's
//! events lie in blocks of a few, so that emptying it is no chain of dependent cache misses.
//!
//! Time is cut into ticks. Level 0 has a slot for each of the next ticks, level 1 for each run of
//! 4,096 ticks, and so on. An event lies on the lowest level whose slots tell its tick from the
//! current one. When the current tick enters a slot of a higher level, the slot's events move down,
//! in order; only then can new events for the same ticks land below, behind them. So each list stays
//! in order of insertion. The events of the current tick, few as a rule, are sorted by time.

use crate::Time;

/// Picoseconds in a tick, as a power of two: 1.024 ns. In a loaded rack of a thousand hosts that is
/// about a hundred events, whose data can be fetched ahead of use (our choice; of 2⁸ to 2¹¹ it took
/// the fewest instructions in a loaded Clos).
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

/// The events to come.
///
/// ```
/// use kernel::{Calendar, Time};
/// let at = Time::from_ps;
/// let mut calendar = Calendar::new();
/// calendar.push(at(700), "second");
/// calendar.push(at(700), "third");
/// calendar.push(at(5), "first");
/// let order: Vec<_> = std::iter::from_fn(|| calendar.pop()).collect();
/// assert_eq!(order, [(at(5), "first"), (at(700), "second"), (at(700), "third")]);
/// ```
#[derive(Clone, Debug)]
pub struct Calendar<E> {
    levels: [Level; LEVELS],
    blocks: Vec<Block<E>>,
    /// Head of the list of unused blocks.
    free: u32,
    /// The current tick: every event of this tick or an earlier one is in `ready`.
    tick: u64,
    /// Those events, sorted; the ones before `taken` are gone.
    ready: Vec<Ready<E>>,
    taken: usize,
    len: usize,
    /// The instant of the last event popped.
    now: Time,
}

#[derive(Clone, Copy, Debug)]
struct Block<E> {
    /// The block behind it in its slot, or the next unused one.
    next: u32,
    /// How many of the entries are in use.
    len: u32,
    entries: [(Time, E); BLOCK],
}

#[derive(Clone, Copy, Debug)]
struct Ready<E> {
    time: Time,
    /// Place in the slot's list, to keep ties in order without an allocating sort.
    order: u32,
    event: E,
}

impl<E: Copy> Default for Calendar<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> Calendar<E> {
    /// An empty calendar at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self {
            levels: std::array::from_fn(|_| Level::new()),
            blocks: Vec::new(),
            free: NONE,
            tick: 0,
            ready: Vec::new(),
            taken: 0,
            len: 0,
            now: Time::ZERO,
        }
    }

    /// How many events wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event at `time`, behind those already there for the same instant.
    ///
    /// # Panics
    /// In debug builds if `time` lies before the last event popped.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        debug_assert!(time >= self.now, "an event at {time}, but {} has passed", self.now);
        self.len += 1;
        if tick_of(time) <= self.tick {
            return self.push_ready(time, event);
        }
        self.link(time, event);
    }

    /// Adds an event of the current tick.
    fn push_ready(&mut self, time: Time, event: E) {
        let waiting = &self.ready[self.taken..];
        let at = self.taken + waiting.partition_point(|other| other.time <= time);
        self.ready.insert(at, Ready { time, order: 0, event });
    }

    /// Appends an event to its slot.
    #[inline]
    fn link(&mut self, time: Time, event: E) {
        let tick = tick_of(time);
        let level = (tick ^ self.tick).ilog2() / LEVEL_BITS;
        let slot = digit(tick, level);
        let List { head, tail } = self.levels[level as usize].lists[slot];
        if head != NONE {
            let block = &mut self.blocks[tail as usize];
            let len = block.len as usize;
            if len < BLOCK {
                block.entries[len] = (time, event);
                block.len += 1;
                return;
            }
        }
        let index = self.new_block(time, event);
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
    fn new_block(&mut self, time: Time, event: E) -> u32 {
        if self.free == NONE {
            // The entries not in use hold a copy: there is no other value of `E` at hand.
            self.blocks.push(Block { next: NONE, len: 1, entries: [(time, event); BLOCK] });
            return u32::try_from(self.blocks.len() - 1).expect("fewer than 2^32 blocks of events");
        }
        let index = self.free;
        let block = &mut self.blocks[index as usize];
        self.free = block.next;
        block.next = NONE;
        block.len = 1;
        block.entries[0] = (time, event);
        index
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.pop_before(Time::NEVER)
    }

    /// Takes the next event if it lies before `limit`. Events may still be added from the last one
    /// popped on, whatever the limit was.
    #[inline]
    pub fn pop_before(&mut self, limit: Time) -> Option<(Time, E)> {
        if self.taken == self.ready.len() && !self.refill(limit) {
            return None;
        }
        let next = self.ready[self.taken];
        if next.time >= limit {
            return None;
        }
        self.taken += 1;
        self.len -= 1;
        self.now = next.time;
        Some((next.time, next.event))
    }

    /// The event `ahead` places behind the next one, where it is known already: for fetching what it
    /// needs before its turn.
    #[inline]
    #[must_use]
    pub fn upcoming(&self, ahead: usize) -> Option<E> {
        self.ready.get(self.taken + ahead).map(|ready| ready.event)
    }

    /// The instant of the next event.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        if let Some(next) = self.ready.get(self.taken) {
            return Some(next.time);
        }
        let (level, slot) = self.next_slot()?;
        let mut at = self.levels[level].lists[slot].head;
        let mut earliest = Time::NEVER;
        while at != NONE {
            let block = &self.blocks[at as usize];
            let times = block.entries[..block.len as usize].iter().map(|(time, _)| *time);
            earliest = times.fold(earliest, Time::min);
            at = block.next;
        }
        Some(earliest)
    }

    /// Where the next events lie: the lowest level that has any, its first filled slot.
    fn next_slot(&self) -> Option<(usize, usize)> {
        self.levels.iter().enumerate().find_map(|(at, level)| Some((at, level.first()?)))
    }

    /// Moves the current tick to the next one with events and makes them ready. False, with nothing
    /// lost, if they all lie in ticks after that of `limit`.
    fn refill(&mut self, limit: Time) -> bool {
        self.ready.clear();
        self.taken = 0;
        while self.ready.is_empty() {
            let Some((level, slot)) = self.next_slot() else { return false };
            let shift = level as u32 * LEVEL_BITS;
            let above = self.tick >> shift >> LEVEL_BITS << LEVEL_BITS;
            let tick = (above | slot as u64) << shift;
            if tick > tick_of(limit) {
                return false;
            }
            self.tick = tick;
            self.enter(level, slot);
        }
        let key = |ready: &Ready<E>| (ready.time, ready.order);
        if !self.ready.is_sorted_by_key(key) {
            self.ready.sort_unstable_by_key(key);
        }
        true
    }

    /// Empties a slot: events of the current tick become ready, the others move down.
    fn enter(&mut self, level: usize, slot: usize) {
        let mut at = self.levels[level].take(slot);
        while at != NONE {
            let Block { next, len, .. } = self.blocks[at as usize];
            for place in 0..len as usize {
                let (time, event) = self.blocks[at as usize].entries[place];
                if tick_of(time) == self.tick {
                    self.ready.push(Ready { time, order: self.ready.len() as u32, event });
                } else {
                    self.link(time, event);
                }
            }
            self.blocks[at as usize].next = self.free;
            self.free = at;
            at = next;
        }
    }
}

#[inline]
fn tick_of(time: Time) -> u64 {
    time.as_ps() >> TICK_BITS
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

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
