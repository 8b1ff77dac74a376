//! What hosts hold reserved, by destination, and what has leaked of what the switch holds for them.
//!
//! Models: our answer to §4.5 (claims M14, M31), which leaves recovery to others: what a lost frame had
//! reserved stays reserved. A switch that tracks pairs says with each grant what the pair had
//! reserved when its reservation came. The requester knows what it held when the reservation went: slots
//! that it has asked for and not used. Both are the same, for nothing on a line overtakes anything. If the
//! switch has more, then that got lost on the way to it, or a grant did on the way back, and the requester
//! gives it back. That tells at once, and at ports that are never silent, what silence tells elsewhere.
//!
//! Only unsolicited bursts leave a doubt: whether the switch has counted or dropped their packets is known
//! with their grant. Until then they are held, so that nothing is given back that may be needed; what
//! leaks below t can hide behind them, where nobody waits for it.

use kernel::Time;
use packets::{Outbox, Packet, Transport};
use rack::NodeId;

use super::Shim;
use super::nic::Role;
use crate::message::Message;
use crate::wire::Opcode;

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

/// What a burst holds whose packets are not on their way to the line in its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holding {
    slots: u32,
    /// Packets that went unsolicited before it was known whether the switch counts them (M13).
    gone: u32,
    /// Whether it is known that it does.
    is_counted: bool,
    /// Its first reservation, and the last of those that were retransmitted: either may be answered first.
    claims: [Claim; 2],
}

/// What a requester held when its reservation went on the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Claim {
    /// The time stamp of the reservation: which of those for the same burst it is.
    stamp: Time,
    /// When it went.
    at: Time,
    /// What was held beside its own demand.
    held: u32,
}

impl Holding {
    pub(crate) const NONE: Self =
        Self { slots: 0, gone: 0, is_counted: false, claims: [Claim::NONE; 2] };

    /// The burst is on its way in its slots: each of its packets uses one ([`Books::used`]).
    #[inline]
    pub(crate) fn depart(&mut self) {
        self.slots = 0;
    }

    /// Whether there is anything to forget.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.slots == 0
    }
}

impl Claim {
    const NONE: Self = Self { stamp: Time::NEVER, at: Time::ZERO, held: 0 };
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
    ) {
        let book = self.book(pair.0, pair.1);
        let held = book.held - burst.slots;
        book.held = held + demand;
        burst.slots = demand;
        let is_again = burst.claims[0] != Claim::NONE;
        burst.claims[usize::from(is_again)] = Claim { stamp, at: now, held };
    }

    /// A packet goes on the line in its slot.
    #[inline]
    pub(crate) fn used(&mut self, pair: (NodeId, NodeId)) {
        let book = self.book(pair.0, pair.1);
        debug_assert!(book.held > 0, "a slot used from {pair:?} that nobody holds");
        book.held = book.held.saturating_sub(1);
    }

    /// A packet goes on the line unsolicited.
    pub(crate) fn went_unsolicited(&mut self, pair: (NodeId, NodeId), burst: &mut Holding) {
        if burst.is_counted {
            self.release(pair, burst, 1);
        } else {
            burst.gone += 1;
        }
    }

    /// The grant of an unsolicited burst has come, and the switch has counted its packets.
    pub(crate) fn counted(&mut self, pair: (NodeId, NodeId), burst: &mut Holding) {
        burst.is_counted = true;
        self.release(pair, burst, burst.gone);
    }

    /// A burst is forgotten.
    #[inline]
    pub(crate) fn forgotten(&mut self, pair: (NodeId, NodeId), burst: &mut Holding) {
        self.release(pair, burst, burst.slots);
    }

    fn release(&mut self, pair: (NodeId, NodeId), burst: &mut Holding, slots: u32) {
        let slots = slots.min(burst.slots);
        burst.slots -= slots;
        self.book(pair.0, pair.1).held -= slots;
    }

    /// How many slots have leaked, as a grant tells: it answers the reservation of a burst with this time
    /// stamp.
    pub(crate) fn leaked(
        &mut self,
        pair: (NodeId, NodeId),
        burst: &Holding,
        stamp: Time,
        pair_slots: u32,
    ) -> u32 {
        let corrected = self.book(pair.0, pair.1).corrected;
        let is_of_it = |claim: &&Claim| claim.stamp == stamp && claim.at > corrected;
        let claim = burst.claims.iter().find(is_of_it);
        claim.map_or(0, |claim| pair_slots.saturating_sub(claim.held))
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

impl<T: Transport> Shim<T> {
    /// M14: what the switch holds for this pair and the host does not has leaked.
    #[inline]
    pub(super) fn give_back_what_leaked(
        &mut self,
        pair: (NodeId, NodeId),
        place: u32,
        grant: Message,
        out: &mut Outbox,
    ) {
        let holding = &self.bursts[place as usize].holding;
        let leaked = self.books.leaked(pair, holding, grant.stamp, grant.pair_slots);
        if leaked > 0 {
            self.counts.leaked += u64::from(leaked);
            self.give_back(pair.0, pair.0, pair.1, leaked, out);
        }
    }

    /// It is known whose packets use the slots of a burst: it goes in this role, or has gone.
    #[inline]
    pub(super) fn settle_holding(
        &mut self,
        pair: (NodeId, NodeId),
        place: u32,
        role: Option<Role>,
    ) {
        let holding = &mut self.bursts[place as usize].holding;
        match role {
            Some(Role::Solicited | Role::Again) => holding.depart(),
            _ => self.books.counted(pair, holding),
        }
    }

    /// A frame of PL2's own goes on the line: what it says of slots is true from now on.
    pub(super) fn note_control(&mut self, host: NodeId, packet: &Packet, now: Time) {
        let Some(message) = Message::of(packet) else { return };
        if message.opcode == Opcode::Reset && message.send_slot == host.get() {
            self.books.corrected((host, NodeId::new(message.receive_slot)), now);
        }
        if message.opcode != Opcode::Reserve {
            return;
        }
        if let Some(agent) = self.asking(host, message.burst) {
            let place = self.agents[agent as usize].burst;
            let pair = (host, packet.dst);
            let holding = &mut self.bursts[place as usize].holding;
            let demand = message.demand.into();
            self.books.asked(pair, holding, demand, packet.stamp, now);
        }
    }
}
