//! What datagrams say while they are in a shard: their payloads.
//!
//! A cell's payload handle is four bytes, and a report takes 48 more, so it lies here. Each copy of a
//! datagram, in a queue, on its way or kept until it is known to have arrived, has a place of its own.

use crate::transport::Ack;
use kernel::Slab;

/// The payload of a datagram whose place is not known: it says nothing.
const NONE: u32 = u32::MAX;

/// Acknowledgments by the handles that cells carry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acks {
    places: Slab<Option<Ack>>,
}

impl Acks {
    /// Keeps one; gives its handle.
    pub(crate) fn put(&mut self, ack: Ack) -> u32 {
        self.places.insert(Some(ack))
    }

    /// Takes one out, if it is there.
    pub(crate) fn take(&mut self, handle: u32) -> Option<Ack> {
        let ack = self.places.get_mut(handle as usize)?.take()?;
        self.places.release(handle);
        Some(ack)
    }

    /// How often the one who says it has come back.
    pub(crate) fn life(&self, handle: u32) -> Option<u32> {
        self.places.get(handle as usize)?.as_ref().map(|ack| ack.life)
    }

    /// A handle for a copy.
    pub(crate) fn copy(&mut self, handle: u32) -> u32 {
        let ack = self.places.get(handle as usize).copied().flatten();
        ack.map_or(NONE, |ack| self.put(ack))
    }
}
