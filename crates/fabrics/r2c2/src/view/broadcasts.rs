//! Broadcasts under way: what each says, by which tree it goes, and how many copies are left of it.
//!
//! A copy on a link carries the place of its broadcast here; its 16 bytes on the wire
//! ([`crate::wire`]) say the same.

use rack::NodeId;

use super::{RecordId, Views};

/// What a broadcast says (§3.1, §3.3.2, §3.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A flow starts.
    Start(RecordId),
    /// A flow's demand changes: it is now as the second record says.
    Change(RecordId, RecordId),
    /// A flow is over.
    Finish(RecordId),
    /// Flows change their routing; each is now as the second record of its pair says.
    Routes(Box<[(RecordId, RecordId)]>),
}

/// One broadcast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broadcast {
    /// What it says.
    pub event: Event,
    /// Who says it.
    pub source: NodeId,
    /// Which of the source's trees it goes by (§3.2).
    pub tree: u8,
    /// Bytes on the wire.
    pub wire: u16,
}

/// All broadcasts under way.
#[derive(Clone, Debug, Default)]
pub struct Broadcasts {
    slab: Vec<(Broadcast, u32)>,
    free: Vec<u32>,
}

impl Event {
    /// The records of which it says that they end, and those that begin.
    fn pairs(&self) -> impl Iterator<Item = (Option<RecordId>, Option<RecordId>)> + '_ {
        let (one, many): (_, &[(RecordId, RecordId)]) = match self {
            Event::Start(id) => (Some((None, Some(*id))), &[]),
            Event::Change(old, new) => (Some((Some(*old), Some(*new))), &[]),
            Event::Finish(id) => (Some((Some(*id), None)), &[]),
            Event::Routes(pairs) => (None, &pairs[..]),
        };
        one.into_iter().chain(many.iter().map(|&(old, new)| (Some(old), Some(new))))
    }

    /// All records that it speaks of.
    pub fn records(&self) -> impl Iterator<Item = RecordId> + '_ {
        self.pairs().flat_map(|(ends, begins)| ends.into_iter().chain(begins))
    }

    /// A node hears it, or says it.
    pub fn enter<A: Copy>(&self, node: u32, views: &mut Views<A>) {
        for (ends, begins) in self.pairs() {
            if let Some(id) = ends {
                views.ends(node, id);
            }
            if let Some(id) = begins {
                views.begins(node, id);
            }
        }
    }
}

impl Broadcasts {
    /// Sends a broadcast out as `copies`; `views` remember what it speaks of until all are gone.
    pub fn send<A: Copy>(
        &mut self,
        broadcast: Broadcast,
        copies: u32,
        views: &mut Views<A>,
    ) -> u32 {
        broadcast.event.records().for_each(|id| views.announce(id));
        let entry = (broadcast, copies);
        let id = match self.free.pop() {
            Some(id) => {
                self.slab[id as usize] = entry;
                id
            }
            None => {
                self.slab.push(entry);
                self.slab.len() as u32 - 1
            }
        };
        self.end_if_spread(id, views);
        id
    }

    /// A broadcast under way.
    #[inline]
    #[must_use]
    pub fn get(&self, id: u32) -> &Broadcast {
        &self.slab[id as usize].0
    }

    /// One copy is gone, and `more` have been sent on in its place.
    #[inline]
    pub fn copied<A: Copy>(&mut self, id: u32, more: u32, views: &mut Views<A>) {
        let copies = &mut self.slab[id as usize].1;
        debug_assert!(*copies > 0, "broadcast {id} has no copy to lose");
        *copies = *copies + more - 1;
        self.end_if_spread(id, views);
    }

    fn end_if_spread<A: Copy>(&mut self, id: u32, views: &mut Views<A>) {
        let (broadcast, copies) = &self.slab[id as usize];
        if *copies > 0 {
            return;
        }
        broadcast.event.records().for_each(|id| views.has_spread(id));
        self.free.push(id);
    }

    /// How many are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.slab.len() - self.free.len()
    }
}
