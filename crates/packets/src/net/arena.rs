//! Packets in the network, and queues of them that need no memory of their own.

use crate::packet::Packet;

/// "No packet" in lists.
pub(crate) const NONE: u32 = u32::MAX;

/// One packet with the network's notes on it: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Slot {
    packet: Packet,
    /// The packet behind it in its queue, or the next unused slot; under way, the port by which it
    /// will go on.
    next: u32,
    /// The port by which it came to where it is.
    ingress: u32,
}

const _: () = assert!(size_of::<Slot>() == 64);

/// All packets in the network. Memory follows the most that were ever in it at a time.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    slots: Vec<Slot>,
    free: u32,
    live: u32,
}

/// Packets in order of arrival, linked through the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    head: u32,
    tail: u32,
}

impl Fifo {
    pub(crate) const EMPTY: Fifo = Fifo { head: NONE, tail: NONE };

    /// The packet at the front, or [`NONE`].
    #[inline]
    pub(crate) fn head(self) -> u32 {
        self.head
    }

    /// The packet at the back, or [`NONE`].
    #[inline]
    pub(crate) fn tail(self) -> u32 {
        self.tail
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.head == NONE
    }
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, live: 0 }
    }

    /// Takes a packet in.
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet) -> u32 {
        self.live += 1;
        let slot = Slot { packet, next: NONE, ingress: NONE };
        if self.free == NONE {
            self.slots.push(slot);
            return u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 packets");
        }
        let index = self.free;
        self.free = self.slots[index as usize].next;
        self.slots[index as usize] = slot;
        index
    }

    /// Lets a packet go.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) {
        self.live -= 1;
        self.slots[index as usize].next = self.free;
        self.free = index;
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Packet {
        &self.slots[index as usize].packet
    }

    /// Asks for a packet ahead of its use.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        kernel::prefetch(&self.slots, index as usize);
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Packet {
        &mut self.slots[index as usize].packet
    }

    /// The port by which a packet came to where it is; [`NONE`] at its source.
    #[inline]
    pub(crate) fn ingress(&self, index: u32) -> u32 {
        self.slots[index as usize].ingress
    }

    #[inline]
    pub(crate) fn set_ingress(&mut self, index: u32, port: u32) {
        self.slots[index as usize].ingress = port;
    }

    /// The port by which a packet under way will leave the switch that it comes to; [`NONE`] where
    /// that was not found out.
    #[inline]
    pub(crate) fn way(&self, index: u32) -> u32 {
        self.slots[index as usize].next
    }

    #[inline]
    pub(crate) fn set_way(&mut self, index: u32, port: u32) {
        self.slots[index as usize].next = port;
    }

    /// Exchanges the places of two packets: each takes the other's slot and its links.
    pub(crate) fn exchange(&mut self, a: u32, b: u32) {
        let (first, second) = (self.slots[a as usize], self.slots[b as usize]);
        self.slots[a as usize] = Slot { next: first.next, ..second };
        self.slots[b as usize] = Slot { next: second.next, ..first };
    }

    /// How many packets there are.
    pub(crate) fn live(&self) -> u32 {
        self.live
    }

    /// How many slots there are, used or not.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Puts a packet at the back of a queue.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut Fifo, index: u32) {
        self.slots[index as usize].next = NONE;
        if queue.head == NONE {
            queue.head = index;
        } else {
            self.slots[queue.tail as usize].next = index;
        }
        queue.tail = index;
    }

    /// Takes the packet at the front of a queue that has one.
    #[inline]
    pub(crate) fn pop(&mut self, queue: &mut Fifo) -> u32 {
        let index = queue.head;
        debug_assert!(index != NONE, "a packet taken from an empty queue");
        queue.head = self.slots[index as usize].next;
        index
    }

    /// The packets of a queue, from the front.
    pub(crate) fn iter(&self, queue: Fifo) -> impl Iterator<Item = u32> + '_ {
        let link = |index: u32| (index != NONE).then_some(index);
        std::iter::successors(link(queue.head), move |&at| link(self.slots[at as usize].next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(seq: u64) -> Packet {
        Packet { seq, ..Packet::default() }
    }

    fn order(arena: &Arena, queue: Fifo) -> Vec<u64> {
        arena.iter(queue).map(|index| arena.get(index).seq).collect()
    }

    #[test]
    fn queues_keep_their_order_and_slots_are_used_again() {
        let mut arena = Arena::new();
        let mut queue = Fifo::EMPTY;
        for round in 0..10 {
            for seq in 0..4 {
                let index = arena.insert(packet(10 * round + seq));
                arena.push(&mut queue, index);
            }
            assert_eq!(order(&arena, queue), (0..4).map(|s| 10 * round + s).collect::<Vec<_>>());
            for seq in 0..4 {
                let index = arena.pop(&mut queue);
                assert_eq!(arena.get(index).seq, 10 * round + seq);
                arena.remove(index);
            }
            assert!(queue.is_empty());
        }
        assert_eq!((arena.slots.len(), arena.live()), (4, 0));
    }

    #[test]
    fn an_exchange_leaves_the_queue_linked() {
        let mut arena = Arena::new();
        let mut queue = Fifo::EMPTY;
        for seq in 0..3 {
            let index = arena.insert(packet(seq));
            arena.push(&mut queue, index);
        }
        let other = arena.insert(packet(9));
        arena.exchange(queue.tail(), other);
        assert_eq!(order(&arena, queue), [0, 1, 9]);
        assert_eq!(arena.get(other).seq, 2);
    }
}
