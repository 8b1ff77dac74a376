//! What hosts hold reserved, by destination, and what has leaked of what the switch holds for them.
//!
//! Models: our answer to §4.5 (claims M14, M31), which leaves recovery to others: what frames that got
//! lost had reserved stays reserved. A switch that tracks pairs says with each grant what the pair had
//! reserved when its reservation came. The requester knows what it held when the reservation went: slots
//! that it has asked for and not used. Both are the same, for nothing on a line overtakes anything. If the
//! switch has more, then that got lost on the way to it, or a grant did on the way back, and the requester
//! gives it back. That tells at once, and at ports that are never silent, what silence tells elsewhere.
//!
//! Only unsolicited bursts leave a doubt: whether the switch has counted or dropped their packets is known
//! with their grant. Until then they are held, so that nothing is given back that may be needed; what
//! leaks below t can hide behind them, where nobody waits for it.

use kernel::Time;
use rack::NodeId;

use super::nic::Role;

/// What one host holds for one destination.
#[derive(Clone, Copy, Debug)]
struct Book {
    held: u32,
    /// When slots were given back last; [`Time::NEVER`]: they are on their way to the line. What was asked
    /// for before tells of them still.
    corrected: Time,
}

/// The books of all pairs.
#[derive(Clone, Debug)]
pub(crate) struct Books {
    hosts: u32,
    /// By host, then destination; empty: nobody keeps any.
    books: Vec<Book>,
}

/// What a burst holds (claim M13: which of its packets the switch counts, and when that is known).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Holding {
    slots: u32,
    /// Packets that went before it was known whether they are counted.
    gone: u32,
    /// Whose packets use its slots; `None`: that is not known yet.
    users: Option<Role>,
}

impl Holding {
    /// Nothing yet, of a burst that waits for its grant or does not.
    pub(crate) fn of(is_unsolicited: bool) -> Self {
        Self { users: (!is_unsolicited).then_some(Role::Solicited), ..Self::default() }
    }
}

/// What a requester held when its reservation went on the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// The time stamp of the reservation: which of those for the same burst it is.
    stamp: Time,
    /// When it went.
    at: Time,
    /// What was held beside its own demand.
    held: u32,
}

impl Claim {
    pub(crate) const NONE: Self = Self { stamp: Time::NEVER, at: Time::ZERO, held: 0 };
}

impl Books {
    /// Books of so many hosts, or of none.
    pub(crate) fn new(hosts: u32, are_kept: bool) -> Self {
        let pairs = if are_kept { hosts * hosts } else { 0 };
        Self { hosts, books: vec![Book { held: 0, corrected: Time::ZERO }; pairs as usize] }
    }

    #[inline]
    pub(crate) fn are_kept(&self) -> bool {
        !self.books.is_empty()
    }

    #[inline]
    fn book(&mut self, host: NodeId, dst: NodeId) -> &mut Book {
        &mut self.books[(host.get() * self.hosts + dst.get()) as usize]
    }

    /// A reservation of `demand` for a burst goes on the line. What an earlier one for it got is void.
    pub(crate) fn asked(
        &mut self,
        pair: (NodeId, NodeId),
        burst: &mut Holding,
        demand: u32,
        stamp: Time,
        now: Time,
    ) -> Claim {
        let book = self.book(pair.0, pair.1);
        let held = book.held - burst.slots;
        book.held = held + demand;
        burst.slots = demand;
        Claim { stamp, at: now, held }
    }

    /// A packet of a burst goes on the line.
    #[inline]
    pub(crate) fn sent(&mut self, pair: (NodeId, NodeId), burst: &mut Holding, role: Role) {
        match burst.users {
            Some(users) if users == role => self.release(pair, burst, 1),
            None => burst.gone += 1,
            Some(_) => {}
        }
    }

    /// The grant of an unsolicited burst has come: `users` says whose packets use its slots, those that
    /// went at first or those that go again.
    pub(crate) fn settled(&mut self, pair: (NodeId, NodeId), burst: &mut Holding, users: Role) {
        burst.users = Some(users);
        if users == Role::Unsolicited {
            self.release(pair, burst, burst.gone);
        }
    }

    /// A burst is forgotten.
    #[inline]
    pub(crate) fn forgotten(&mut self, pair: (NodeId, NodeId), burst: &mut Holding) {
        self.release(pair, burst, burst.slots);
    }

    #[inline]
    fn release(&mut self, pair: (NodeId, NodeId), burst: &mut Holding, slots: u32) {
        let slots = slots.min(burst.slots);
        burst.slots -= slots;
        self.book(pair.0, pair.1).held -= slots;
    }

    /// How many slots have leaked, as a grant tells: it answers the reservation with this time stamp.
    pub(crate) fn leaked(
        &mut self,
        pair: (NodeId, NodeId),
        claim: Claim,
        stamp: Time,
        pair_slots: u32,
    ) -> u32 {
        let is_of_it = claim.stamp == stamp && claim.at > self.book(pair.0, pair.1).corrected;
        if is_of_it { pair_slots.saturating_sub(claim.held) } else { 0 }
    }

    /// Slots of a pair are about to be given back.
    pub(crate) fn corrects(&mut self, pair: (NodeId, NodeId)) {
        self.book(pair.0, pair.1).corrected = Time::NEVER;
    }

    /// They go on the line.
    pub(crate) fn corrected(&mut self, pair: (NodeId, NodeId), now: Time) {
        self.book(pair.0, pair.1).corrected = now;
    }

    /// A host has died: it holds nothing, and nothing of it is on its way.
    pub(crate) fn forget(&mut self, host: NodeId) {
        let first = (host.get() * self.hosts) as usize;
        let own = self.books.iter_mut().skip(first).take(self.hosts as usize);
        own.for_each(|book| *book = Book { held: 0, corrected: Time::ZERO });
    }

    /// What all hosts hold.
    pub(crate) fn held(&self) -> u64 {
        self.books.iter().map(|book| u64::from(book.held)).sum()
    }
}
