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
    /// What a source has announced before this round is void.
    Anew(NodeId, u32),
}

/// One broadcast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broadcast {
    /// What it says.
    pub event: Event,
    /// Who says it.
    pub source: NodeId,
    /// Which of the source's trees it goes by (§3.2), and by whose map of the rack that was grown.
    pub tree: u8,
    /// The serial number of that map.
    pub map: u32,
    /// Bytes on the wire.
    pub wire: u16,
}

/// All broadcasts under way.
#[derive(Clone, Debug, Default)]
pub struct Broadcasts {
    slab: Vec<(Broadcast, u32)>,
    free: Vec<u32>,
    /// By broadcast and node, if nodes may hear one by several ways: a bit for each that has heard it.
    heard: Vec<u64>,
    words: usize,
}

impl Event {
    /// The records of which it says that they end, and those that begin.
    fn pairs(&self) -> impl Iterator<Item = (Option<RecordId>, Option<RecordId>)> + '_ {
        let (one, many): (_, &[(RecordId, RecordId)]) = match self {
            Event::Start(id) => (Some((None, Some(*id))), &[]),
            Event::Change(old, new) => (Some((Some(*old), Some(*new))), &[]),
            Event::Finish(id) => (Some((Some(*id), None)), &[]),
            Event::Routes(pairs) => (None, &pairs[..]),
            Event::Anew(..) => (None, &[]),
        };
        one.into_iter().chain(many.iter().map(|&(old, new)| (Some(old), Some(new))))
    }

    /// All records that it speaks of.
    pub fn records(&self) -> impl Iterator<Item = RecordId> + '_ {
        self.pairs().flat_map(|(ends, begins)| ends.into_iter().chain(begins))
    }

    /// A node hears it, or says it.
    pub fn enter<A: Copy>(&self, node: u32, views: &mut Views<A>) {
        match *self {
            Event::Start(id) => views.begins(node, id),
            Event::Finish(id) => views.ends(node, id),
            Event::Change(old, new) => views.replaces(node, (old, new)),
            Event::Routes(ref pairs) => {
                pairs.iter().for_each(|&pair| views.replaces(node, pair));
            }
            Event::Anew(source, round) => views.ends_before(node, source, round),
        }
    }
}

impl Broadcasts {
    /// None is under way, among `nodes` that may hear each by several ways.
    #[must_use]
    pub fn by_many_ways(nodes: u32) -> Self {
        Self { words: nodes.div_ceil(64) as usize, ..Self::default() }
    }

    /// Sends a broadcast out as `copies`; `views` remember what it speaks of until all are gone.
    ///
    /// # Panics
    /// If there is no copy.
    pub fn send<A: Copy>(
        &mut self,
        broadcast: Broadcast,
        copies: u32,
        views: &mut Views<A>,
    ) -> u32 {
        assert!(copies > 0, "a broadcast without a copy has reached all that it will");
        broadcast.event.records().for_each(|id| views.announce(id));
        let entry = (broadcast, copies);
        let id = match self.free.pop() {
            Some(id) => {
                self.slab[id as usize] = entry;
                id
            }
            None => {
                self.slab.push(entry);
                self.heard.resize(self.slab.len() * self.words, 0);
                self.slab.len() as u32 - 1
            }
        };
        self.heard[id as usize * self.words..][..self.words].fill(0);
        id
    }

    /// A broadcast under way.
    #[inline]
    #[must_use]
    pub fn get(&self, id: u32) -> &Broadcast {
        &self.slab[id as usize].0
    }

    /// A node hears, or says, a broadcast: whether that is the first time. Always where there is one
    /// way to each.
    #[inline]
    pub fn is_first(&mut self, id: u32, node: NodeId) -> bool {
        if self.words == 0 {
            return true;
        }
        let word = &mut self.heard[id as usize * self.words + node.index() / 64];
        let bit = 1 << (node.get() % 64);
        let is_first = *word & bit == 0;
        *word |= bit;
        is_first
    }

    /// One copy is gone, and `more` have been sent on in its place.
    #[inline]
    pub fn copied<A: Copy>(&mut self, id: u32, more: u32, views: &mut Views<A>) {
        let (broadcast, copies) = &mut self.slab[id as usize];
        debug_assert!(*copies > 0, "broadcast {id} has no copy to lose");
        *copies = *copies + more - 1;
        if *copies == 0 {
            broadcast.event.records().for_each(|id| views.has_spread(id));
            self.free.push(id);
        }
    }

    /// Whether any has said something that is no record's beginning or end.
    #[must_use]
    pub fn speaks_of_nothing(&self) -> bool {
        self.slab.iter().any(|(broadcast, _)| broadcast.event.records().next().is_none())
    }

    /// The most copies that are under way of any.
    #[must_use]
    pub fn copies_max(&self) -> u32 {
        self.slab.iter().map(|&(_, copies)| copies).max().unwrap_or(0)
    }

    /// How many are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.slab.len() - self.free.len()
    }
}
