//! Events of one delay, in the order in which they were pushed and come.

use super::{Entry, Key, NEVER, Numbered};
use crate::Time;

/// Room for events at first: four cache lines' worth (our choice).
const ROOM_FIRST: usize = 16;

/// A queue on a power-of-two ring. Grows, by doubling, only when full; never shrinks. Unlike
/// [`crate::Ring`] it needs no default value: it fills its room with copies of an entry.
#[derive(Clone, Debug)]
pub(super) struct Lane<E> {
    slots: Vec<Entry<E>>,
    /// Index of the front.
    front: usize,
    len: usize,
    /// Which push was the last to come here.
    last_push: u32,
}

impl<E: Numbered> Lane<E> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), front: 0, len: 0, last_push: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the entry `index` places behind the front lies.
    #[inline]
    fn slot(&self, index: usize) -> usize {
        (self.front + index) & self.slots.len().wrapping_sub(1)
    }

    /// The event `index` places behind the front.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<E> {
        (index < self.len).then(|| self.slots[self.slot(index)].event)
    }

    /// The key of the front, or [`NEVER`].
    #[inline]
    pub(super) fn head(&self) -> Key {
        if self.len == 0 { NEVER } else { self.slots[self.front].key() }
    }

    /// Which push was the last to come here; none was: 0.
    pub(super) fn last_push(&self) -> u32 {
        self.last_push
    }

    /// Appends an event that is not before the last one.
    #[inline]
    pub(super) fn push(&mut self, time: Time, event: E, number: u32) {
        if self.len == self.slots.len() {
            self.grow(Entry { time, event });
        }
        let slot = self.slot(self.len);
        let entry = &mut self.slots[slot];
        entry.time = time;
        entry.event = event;
        self.len += 1;
        self.last_push = number;
    }

    /// Drops the front, which there is.
    #[inline]
    pub(super) fn pop(&mut self) {
        debug_assert!(self.len > 0, "an event taken from an empty lane");
        self.front = self.slot(1);
        self.len -= 1;
    }

    /// Doubles the room.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, filler: Entry<E>) {
        let room = (2 * self.slots.len()).max(ROOM_FIRST);
        self.slots.rotate_left(self.front);
        self.slots.resize(room, filler);
        self.front = 0;
    }

    /// All events, to change.
    pub(super) fn events(&mut self) -> impl Iterator<Item = &mut E> {
        self.slots.rotate_left(self.front);
        self.front = 0;
        self.slots[..self.len].iter_mut().map(|entry| &mut entry.event)
    }

    /// How many entries there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slots.len()
    }
}
