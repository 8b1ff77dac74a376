//! The flows that the network was given, until it has told how each of them ended.
//!
//! This is the driver's own list: hosts know of flows what they were told and what packets tell. What a
//! source or a destination reports of a flow is judged here: the first report of its end holds.

use kernel::{Bytes, Lookup};
use rack::Flow;

use crate::net::Name;

/// How far a flow has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    /// Its place is unused.
    Free,
    /// Offered; its start is to come.
    Waiting,
    /// Under way.
    Open,
}

/// A flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) flow: Flow,
    pub(super) life: Life,
    /// How its hosts name it, once it is open.
    pub(super) name: Name,
    /// What its destination had of it when it closed it early.
    pub(super) left: Option<Bytes>,
}

/// All of them, in places that are used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    free: Vec<u32>,
    place_of: Lookup,
    /// Flows that have not ended.
    pub(super) open: u64,
}

impl Ledger {
    /// Takes a flow in.
    pub(super) fn enter(&mut self, flow: &Flow) -> u32 {
        self.open += 1;
        let entry = Entry { flow: *flow, life: Life::Waiting, name: Name::default(), left: None };
        if let Some(place) = self.free.pop() {
            self.entries[place as usize] = entry;
            return place;
        }
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 open flows")
    }

    /// A flow that was taken in starts, under this name.
    pub(super) fn starts(&mut self, place: u32, name: Name) {
        let entry = &mut self.entries[place as usize];
        (entry.life, entry.name) = (Life::Open, name);
        self.place_of.insert(name.words(), place);
    }

    /// A flow at its place, whatever has become of it.
    pub(super) fn get(&self, place: u32) -> &Entry {
        &self.entries[place as usize]
    }

    /// The destination of an open flow has closed it, with `delivered` bytes of it.
    pub(super) fn leaves(&mut self, name: Name, delivered: Bytes) {
        if let Some(place) = self.find(name) {
            self.entries[place as usize].left = Some(delivered);
        }
    }

    /// The place of an open flow.
    pub(super) fn find(&self, name: Name) -> Option<u32> {
        self.place_of.get(name.words())
    }

    /// A flow has ended: gives what was known of it.
    pub(super) fn strike_out(&mut self, place: u32) -> Entry {
        let entry = &mut self.entries[place as usize];
        let last = *entry;
        assert_ne!(last.life, Life::Free, "{:?} ends twice", last.flow.id);
        entry.life = Life::Free;
        if last.life == Life::Open {
            self.place_of.remove(last.name.words());
        }
        self.free.push(place);
        self.open -= 1;
        last
    }

    /// The places of flows that have not ended, in order.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = u32> + '_ {
        let entries = (0..).zip(&self.entries);
        entries.filter(|(_, entry)| entry.life != Life::Free).map(|(place, _)| place)
    }
}
