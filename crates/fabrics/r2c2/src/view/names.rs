//! What sources say of their flows: names, numbers, and what may be asked for again.
//!
//! Headers tell 256 flows between two nodes apart, by an index. A source reuses the index of a flow
//! that is over, the one that has been free the longest; and it goes on counting where the last flow of that name
//! ended, so that packets of it that are still under way are known to be old. Beyond 256 open
//! flows between two nodes a further one waits until another is over (**our choice**).
//!
//! Where searches go by tenants, each tenant has a part of the indices: announcements have no other field
//! for it (**our choice**).

use std::collections::VecDeque;

use kernel::{Lookup, Span, Time};
use rack::NodeId;

use super::late::MODULUS;
use crate::wire::{Announcement, Assignments, Event};

/// Indices of flows between two nodes.
pub const INDICES: u32 = 256;
/// How long an index rests, as a rule, until it is used again (**our choice**: far longer than a broadcast
/// is under way).
pub const REST: Span = Span::from_us(10_000);
/// How many announcements of a name a source can say again: numbers tell no more in order.
const LOG: usize = MODULUS as usize / 2;
/// How many assignments of routing protocols a source can say again (**our choice**: those of a search
/// over a thousand flows).
const ASSIGNMENTS: usize = 512;
/// In place of an index in keys: what is kept by pair of nodes and tenant.
const PAIR: u32 = 1 << 16;

/// What a source has said of a name.
#[derive(Clone, Copy, Debug)]
struct Named {
    /// The number of the last announcement.
    number: u8,
    is_open: bool,
    /// When the last flow of this name was over.
    over_at: Time,
}

/// The names of flows at all sources.
#[derive(Clone, Debug)]
pub struct Names {
    tenants: u32,
    /// By source, destination and index: the place of its name.
    of_flow: Lookup,
    /// By source, destination and tenant: how many indices have been used.
    used: Lookup,
    names: Vec<Named>,
    /// By name: its last announcements; empty where nobody asks for them.
    said: Vec<VecDeque<Announcement>>,
    keeps_said: bool,
    /// By source: how often it has begun anew, how often it has assigned protocols, and its last
    /// assignments.
    rounds: Vec<u32>,
    assigned: Vec<u16>,
    assignments: Vec<VecDeque<Assignments>>,
}

impl Names {
    /// Nothing has been said by any of `nodes`, whose flows are of `tenants`. Announcements are kept if
    /// anybody may ask for them again.
    #[must_use]
    pub fn new(nodes: u32, tenants: u32, keeps_said: bool) -> Self {
        Self {
            tenants,
            of_flow: Lookup::default(),
            used: Lookup::default(),
            names: Vec::new(),
            said: Vec::new(),
            keeps_said,
            rounds: vec![0; nodes as usize],
            assigned: vec![0; nodes as usize],
            assignments: vec![VecDeque::new(); nodes as usize],
        }
    }

    /// The tenant of a class of flows; those beyond the last are of the last.
    #[must_use]
    pub fn tenant_of_class(&self, class: u32) -> u32 {
        class.min(self.tenants - 1)
    }

    /// The tenant of flows of this index.
    #[must_use]
    pub fn tenant_of_index(&self, index: u8) -> u32 {
        u32::from(index) % self.tenants
    }

    /// A name for another flow of a tenant between two nodes: its index, and the number of the first
    /// announcement. None while as many flows are open as indices tell apart.
    pub fn start(
        &mut self,
        (source, destination): (NodeId, NodeId),
        tenant: u32,
        now: Time,
    ) -> Option<(u8, u8)> {
        let pair = [source.get(), destination.get(), PAIR | tenant];
        let used = self.used.get(pair).unwrap_or(0);
        let index = |turn: u32| tenant + turn * self.tenants;
        let key = |turn: u32| [source.get(), destination.get(), index(turn)];
        let place = |turn: u32| self.of_flow.get(key(turn)).expect("an index that was used");
        let closed = (0..used).filter(|&turn| !self.names[place(turn) as usize].is_open);
        let oldest = closed.min_by_key(|&turn| self.names[place(turn) as usize].over_at);
        let has_rested = |turn: u32| self.names[place(turn) as usize].over_at + REST <= now;
        let has_more = index(used) < INDICES;
        if let Some(turn) = oldest.filter(|&turn| has_rested(turn) || !has_more) {
            let place = place(turn) as usize;
            let index = index(turn) as u8;
            let named = &mut self.names[place];
            named.is_open = true;
            named.number = (named.number + 1) % MODULUS;
            return Some((index, named.number));
        }
        if !has_more {
            return None;
        }
        let index = index(used);
        self.used.insert(pair, used + 1);
        self.of_flow.insert(key(used), self.names.len() as u32);
        self.names.push(Named { number: 0, is_open: true, over_at: Time::ZERO });
        if self.keeps_said {
            self.said.push(VecDeque::new());
        }
        Some((index as u8, 0))
    }

    /// The number of a further announcement of a flow that is open, or of its last.
    ///
    /// # Panics
    /// If no such flow is open.
    pub fn go_on(
        &mut self,
        (source, destination, index): (NodeId, NodeId, u8),
        event: Event,
        now: Time,
    ) -> u8 {
        let place = self.of_flow.get([source.get(), destination.get(), index.into()]);
        let named = &mut self.names[place.expect("a flow that has a name") as usize];
        assert!(named.is_open, "flow {index} from {source} to {destination} is over");
        named.number = (named.number + 1) % MODULUS;
        if event == Event::Finish {
            (named.is_open, named.over_at) = (false, now);
        }
        named.number
    }

    /// Keeps what a source says, as long as it may be asked for.
    pub fn keep(&mut self, said: &Announcement) {
        let key = [said.source.get(), said.destination.get(), said.index.into()];
        if let Some(place) = self.of_flow.get(key).filter(|_| self.keeps_said) {
            let last = &mut self.said[place as usize];
            if last.len() == LOG {
                last.pop_front();
            }
            last.push_back(*said);
        }
    }

    /// What a source said of a flow under a number, if it is kept.
    #[must_use]
    pub fn said(
        &self,
        (source, destination, index): (NodeId, NodeId, u8),
        (event, number): (Event, u8),
    ) -> Option<Announcement> {
        let place = self.of_flow.get([source.get(), destination.get(), index.into()])?;
        let mut last = self.said.get(place as usize)?.iter().rev().copied();
        last.find(|said| (said.event, said.number) == (event, number))
    }

    /// A source begins anew: how often it has.
    pub fn begin_anew(&mut self, source: NodeId) -> u32 {
        let round = &mut self.rounds[source.index()];
        *round = round.wrapping_add(1);
        *round
    }

    /// How often a source has begun anew.
    #[must_use]
    pub fn begun(&self, source: NodeId) -> u32 {
        self.rounds[source.index()]
    }

    /// The round of a source's next assignment.
    pub fn assign(&mut self, source: NodeId) -> u16 {
        let round = &mut self.assigned[source.index()];
        *round = round.wrapping_add(1);
        *round
    }

    /// Keeps an assignment, as long as it may be asked for.
    pub fn keep_assignment(&mut self, said: Assignments) {
        if self.keeps_said {
            let last = &mut self.assignments[said.source.index()];
            if last.len() == ASSIGNMENTS {
                last.pop_front();
            }
            last.push_back(said);
        }
    }

    /// The assignment of a source that has this round, if it is kept.
    #[must_use]
    pub fn assignment(&self, source: NodeId, round: u16) -> Option<&Assignments> {
        self.assignments[source.index()].iter().rev().find(|said| said.round == round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn names_rest_and_are_not_used_twice_at_a_time() {
        let mut names = Names::new(2, 1, false);
        let pair = (NodeId::new(0), NodeId::new(1));
        let over = |names: &mut Names, index, now| {
            names.go_on((pair.0, pair.1, index), Event::Finish, now)
        };
        assert_eq!(names.start(pair, 0, at(0)), Some((0, 0)));
        assert_eq!(names.start(pair, 0, at(0)), Some((1, 0)));
        assert_eq!((over(&mut names, 1, at(5)), over(&mut names, 0, at(7))), (1, 1));
        // Neither has rested; then the one that has rested longest goes on counting.
        assert_eq!(names.start(pair, 0, at(8)), Some((2, 0)));
        assert_eq!(names.start(pair, 0, at(10_005)), Some((1, 2)));
        assert_eq!(names.start(pair, 0, at(10_006)), Some((3, 0)));
        assert_eq!(names.start(pair, 0, at(10_007)), Some((0, 2)));
        for index in 4..=u8::MAX {
            assert_eq!(names.start(pair, 0, at(10_007)), Some((index, 0)));
        }
        assert_eq!(names.start(pair, 0, at(20_000)), None);
        assert_eq!(names.go_on((pair.0, pair.1, 9), Event::Demand, at(20_000)), 1);
        assert_eq!(over(&mut names, 9, at(20_000)), 2);
        // There is no other.
        assert_eq!(names.start(pair, 0, at(20_001)), Some((9, 3)));
        assert_eq!(names.start((pair.1, pair.0), 0, at(20_001)), Some((0, 0)));
    }

    #[test]
    fn indices_tell_tenants() {
        let mut names = Names::new(2, 16, false);
        let pair = (NodeId::new(0), NodeId::new(1));
        for (class, tenant) in [(0, 0), (3, 3), (15, 15), (16, 15), (200, 15)] {
            assert_eq!(names.tenant_of_class(class), tenant);
        }
        for tenant in [3, 15] {
            for turn in 0..16 {
                let (index, _) = names.start(pair, tenant, at(0)).unwrap();
                assert_eq!(
                    (u32::from(index), names.tenant_of_index(index)),
                    (tenant + 16 * turn, tenant)
                );
            }
            assert_eq!(names.start(pair, tenant, at(0)), None);
        }
    }
}
