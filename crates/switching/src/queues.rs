//! Many first-in first-out queues in one memory, as shared buffers have them.

use crate::Packet;

/// No node.
const NONE: u32 = u32::MAX;

/// A fixed number of queues whose packets, or other items, share one pool. A queue that is empty takes
/// eight bytes.
#[derive(Clone, Debug)]
pub struct QueueBank<T = Packet> {
    /// First and last node of each queue.
    ends: Box<[(u32, u32)]>,
    nodes: Vec<(T, u32)>,
    /// First node that is free.
    spare: u32,
}

impl<T: Copy> QueueBank<T> {
    /// This many empty queues.
    #[must_use]
    pub fn new(queues: usize) -> Self {
        Self { ends: vec![(NONE, NONE); queues].into(), nodes: Vec::new(), spare: NONE }
    }

    /// Whether a queue is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self, queue: usize) -> bool {
        self.ends[queue].0 == NONE
    }

    /// The packet at the front of a queue.
    #[inline]
    #[must_use]
    pub fn front(&self, queue: usize) -> Option<&T> {
        let (first, _) = self.ends[queue];
        (first != NONE).then(|| &self.nodes[first as usize].0)
    }

    /// Appends to a queue.
    #[inline]
    pub fn push(&mut self, queue: usize, item: T) {
        let node = if self.spare == NONE {
            self.nodes.push((item, NONE));
            u32::try_from(self.nodes.len() - 1).expect("fewer than 2³² packets are queued")
        } else {
            let node = self.spare;
            self.spare = self.nodes[node as usize].1;
            self.nodes[node as usize] = (item, NONE);
            node
        };
        let (first, last) = &mut self.ends[queue];
        if *first == NONE {
            *first = node;
        } else {
            self.nodes[*last as usize].1 = node;
        }
        *last = node;
    }

    /// Takes from the front of a queue.
    #[inline]
    pub fn pop(&mut self, queue: usize) -> Option<T> {
        let (first, _) = self.ends[queue];
        if first == NONE {
            return None;
        }
        let (item, next) = self.nodes[first as usize];
        self.ends[queue].0 = next;
        self.nodes[first as usize].1 = self.spare;
        self.spare = first;
        Some(item)
    }

    /// The items of a queue, from the front.
    #[inline]
    pub fn iter(&self, queue: usize) -> impl Iterator<Item = &T> {
        let mut next = self.ends[queue].0;
        std::iter::from_fn(move || {
            let (item, after) = self.nodes.get(next as usize)?;
            next = *after;
            Some(item)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use kernel::Bytes;
    use proptest::prelude::*;

    use super::*;
    use crate::Ticks;

    proptest! {
        #[test]
        fn behaves_as_a_queue_for_each_index(
            steps in prop::collection::vec((0usize..5, any::<bool>()), 0..300),
        ) {
            let mut bank = QueueBank::new(5);
            let mut model = vec![VecDeque::new(); 5];
            for (number, (queue, push)) in (0..).zip(steps) {
                if push {
                    let mut packet = Packet::new(1, 2, Bytes::new(3), Ticks::new(0));
                    packet.sequence = number;
                    bank.push(queue, packet);
                    model[queue].push_back(packet);
                } else {
                    prop_assert_eq!(bank.pop(queue), model[queue].pop_front());
                }
                for (queue, expected) in model.iter().enumerate() {
                    prop_assert_eq!(bank.front(queue), expected.front());
                    prop_assert_eq!(bank.is_empty(queue), expected.is_empty());
                    prop_assert!(bank.iter(queue).eq(expected));
                }
            }
        }
    }
}
