//! The per-destination FIFOs `Q_ij` (§3.3.1): linked through one arena, so that memory follows the
//! cells that are queued, not the N² queues.

use kernel::{prefetch, select};

use crate::cell::{Cargo, Cell};
use crate::mode::{Lossy, Mode};

use super::{Bank, Link};

const END: u32 = u32::MAX;
/// An entry that is in no queue: the one before the first cell of each.
const UNQUEUED: u32 = 0;

/// A cell with its payload, and the index of the one behind it: 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Entry {
    cell: Cell,
    payload: u32,
    next: u32,
}

impl Entry {
    #[inline]
    fn last(cargo: Cargo) -> Self {
        Self { cell: cargo.cell, payload: cargo.payload, next: END }
    }
}

/// Storage for queued cells; the most recently freed entry is used first, while it is cached.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    entries: Vec<Entry>,
    free: u32,
}

impl Default for Arena {
    fn default() -> Self {
        // The first entry is in no queue.
        Self { entries: vec![Entry::last(Cargo::EMPTY)], free: END }
    }
}

impl Arena {
    #[inline]
    fn take(&mut self, cargo: Cargo) -> u32 {
        let index = self.free;
        if index == END {
            self.entries.push(Entry::last(cargo));
            return (self.entries.len() - 1) as u32;
        }
        let entry = &mut self.entries[index as usize];
        self.free = entry.next;
        *entry = Entry::last(cargo);
        index
    }

    /// Appends a cell to a link's queue.
    #[inline]
    fn push(&mut self, link: &mut Link, cargo: Cargo) {
        let index = self.take(cargo);
        let is_first = link.queued == 0;
        link.head = select(is_first, index, link.head);
        let before = select(is_first, UNQUEUED, link.tail);
        self.entries[before as usize].next = index;
        link.tail = index;
        link.queued += 1;
    }

    /// Puts a cell in front of a link's queue: a cell sent again (Appendix D).
    fn push_front(&mut self, link: &mut Link, cargo: Cargo) {
        let index = self.take(cargo);
        self.entries[index as usize].next = link.head;
        if link.head == END {
            link.tail = index;
        }
        link.head = index;
        link.queued += 1;
    }

    /// How many cells of a queue of `node` are other nodes'.
    pub(super) fn relayed(&self, link: &Link, node: u32) -> u16 {
        let (mut count, mut next) = (0, link.head);
        for _ in 0..link.queued {
            let entry = &self.entries[next as usize];
            count += u16::from(entry.cell.source() != node);
            next = entry.next;
        }
        count
    }

    /// Asks for an entry ahead of its use.
    #[inline]
    pub(super) fn prefetch(&self, index: u32) {
        prefetch(&self.entries, index as usize);
    }

    /// The cells of a queue, first to last.
    #[cfg(test)]
    pub(super) fn iter(&self, link: &Link) -> impl Iterator<Item = Cell> {
        let mut next = link.head;
        std::iter::from_fn(move || {
            let entry = (next != END).then(|| self.entries[next as usize])?;
            next = entry.next;
            Some(entry.cell)
        })
    }

    /// Takes the first cell of a link's queue, which is not empty.
    #[inline]
    pub(super) fn pop(&mut self, link: &mut Link) -> Cargo {
        let index = link.head;
        let Entry { cell, payload, next } = self.entries[index as usize];
        self.entries[index as usize].next = self.free;
        self.free = index;
        link.head = next;
        link.queued -= 1;
        Cargo { cell, payload }
    }
}

impl Bank {
    /// Appends a cell to the queue of `node` for the peer of `position`. Gives the queue's length.
    #[inline]
    pub(super) fn enqueue<M: Mode>(
        &mut self,
        position: u32,
        class: u32,
        node: u32,
        cargo: Cargo,
    ) -> u32 {
        let index = self.link::<M>(position, class, node);
        let link = &mut self.links[index];
        self.arena.push(link, cargo);
        let length = link.queued_count();
        self.queue_peak_recent = self.queue_peak_recent.max(length);
        let queued = &mut self.queued[node as usize];
        *queued += 1;
        self.node_peak_recent = self.node_peak_recent.max(*queued);
        self.set_busy(position, node);
        length
    }

    /// Puts a cell back in front of the queue of `node` for the peer of `position`.
    pub(super) fn enqueue_front(&mut self, position: u32, class: u32, node: u32, cargo: Cargo) {
        let index = self.link::<Lossy>(position, class, node);
        self.arena.push_front(&mut self.links[index], cargo);
        self.queued[node as usize] += 1;
        self.relayed[node as usize] += u32::from(cargo.cell.source() != node);
        self.set_busy(position, node);
    }
}
