//! Packets that a host holds until they may go, and queues of them that need no memory of their own.

use packets::{FlowKey, Packet};

/// "No packet", "no burst".
pub(crate) const NONE: u32 = u32::MAX;

/// A packet that waits: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Slot(Packet);

const _: () = assert!(size_of::<Slot>() == 64);

/// What a queue knows of a packet in it: a burst is formed of what is here, and the packet itself, which
/// by then no cache holds any more, is looked at when it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    /// The slot behind it.
    pub(crate) next: u32,
    pub(crate) flow: FlowKey,
    /// The life of its flow when it was taken in.
    pub(crate) life: u32,
    /// Its bytes, as in [`Packet::wire`].
    pub(crate) size: u16,
}

/// Packets in the order in which they came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    pub(crate) head: u32,
    tail: u32,
    pub(crate) count: u32,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE, count: 0 };
}

/// All packets that wait at all hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    slots: Vec<Slot>,
    /// By slot.
    notes: Vec<Note>,
    free: Vec<u32>,
}

impl Held {
    /// Takes a packet of a half in, at the back of a queue.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut Queue, packet: &Packet, life: u32) {
        let note = Note { next: NONE, flow: packet.flow, life, size: packet.wire };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize].0 = *packet;
                self.notes[index as usize] = note;
                index
            }
            None => {
                self.slots.push(Slot(*packet));
                self.notes.push(note);
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 packets wait")
            }
        };
        if queue.head == NONE {
            queue.head = index;
        } else {
            self.notes[queue.tail as usize].next = index;
        }
        queue.tail = index;
        queue.count += 1;
    }

    /// The first `most` packets of a queue as a queue of their own.
    #[inline]
    pub(crate) fn split(&mut self, queue: &mut Queue, most: u32) -> Queue {
        if queue.count <= most {
            return std::mem::replace(queue, Queue::EMPTY);
        }
        let mut last = queue.head;
        for _ in 1..most {
            last = self.notes[last as usize].next;
        }
        let front = Queue { head: queue.head, tail: last, count: most };
        queue.head = std::mem::replace(&mut self.notes[last as usize].next, NONE);
        queue.count -= most;
        front
    }

    /// The packet in a slot.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Packet {
        &self.slots[index as usize].0
    }

    /// What its queue knows of it.
    #[inline]
    pub(crate) fn note(&self, index: u32) -> Note {
        self.notes[index as usize]
    }

    /// Asks for a packet ahead of its use; [`NONE`]: for none.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        kernel::prefetch(&self.slots, index as usize);
    }

    /// Takes the packet at the front of a queue out.
    #[inline]
    pub(crate) fn pop(&mut self, queue: &mut Queue) -> Option<(Packet, Note)> {
        if queue.head == NONE {
            return None;
        }
        let index = queue.head;
        let note = self.note(index);
        queue.head = note.next;
        queue.count -= 1;
        self.free.push(index);
        Some((*self.get(index), note))
    }

    /// Lets all packets of a queue go.
    #[inline]
    pub(crate) fn clear(&mut self, queue: &mut Queue) {
        let mut at = queue.head;
        while at != NONE {
            self.free.push(at);
            at = self.note(at).next;
        }
        *queue = Queue::EMPTY;
    }

    /// The slots of a queue, from the front.
    pub(crate) fn iter(&self, queue: Queue) -> impl Iterator<Item = u32> + '_ {
        let link = |index: u32| (index != NONE).then_some(index);
        std::iter::successors(link(queue.head), move |&at| link(self.note(at).next))
    }

    /// How many packets are held.
    pub(crate) fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(held: &Held, queue: Queue) -> Vec<u64> {
        held.iter(queue).map(|slot| held.get(slot).seq).collect()
    }

    #[test]
    fn queues_split_in_order_and_slots_are_used_again() {
        let mut held = Held::default();
        for _ in 0..3 {
            let mut queue = Queue::EMPTY;
            for seq in 0..5 {
                held.push(&mut queue, &Packet { seq, ..Packet::default() }, 7);
            }
            let mut front = held.split(&mut queue, 2);
            assert_eq!((numbers(&held, front), front.count), (vec![0, 1], 2));
            assert_eq!((numbers(&held, queue), queue.count), (vec![2, 3, 4], 3));
            let mut rest = held.split(&mut queue, 4);
            assert_eq!(queue, Queue::EMPTY);
            assert_eq!(
                held.pop(&mut rest).map(|(packet, note)| (packet.seq, note.life)),
                Some((2, 7))
            );
            held.clear(&mut rest);
            held.clear(&mut front);
            assert_eq!((held.live(), held.slots.len()), (0, 5));
        }
    }
}
