//! What receivers know of grants, and what they do about senders that fall silent.
//!
//! Models: PL2 §4.5 (claim M31), which sketches it: the switch sends a copy of each grant to the
//! receiver, which counts what is to come. A sender that owes packets and has been silent for a while
//! is taken for dead; its receiver gives the slots back. The same helps where a grant got lost.
//!
//! A sender that waits for its slot is not silent: the copy says when that is. What a sender gives back
//! itself, for its grant came too late, the switch tells the receiver as well.
//!
//! A packet lost between switch and receiver is owed here and not there: to give its slot back would
//! take one too many off. So only silence counts, not single gaps.

use kernel::{Span, Time};
use rack::NodeId;

/// What one sender owes one receiver.
#[derive(Clone, Copy, Debug)]
struct Account {
    /// Packets granted and not come.
    owed: u32,
    /// When a packet came last, or the last slot begins that was granted.
    heard: Time,
}

/// The accounts of all pairs.
#[derive(Clone, Debug)]
pub(crate) struct Tracking {
    hosts: u32,
    silence: Span,
    /// By receiver, then sender; empty: nobody tracks.
    accounts: Vec<Account>,
    /// By receiver: whether its timer runs.
    pub(crate) is_watching: Vec<bool>,
}

impl Tracking {
    /// Nobody tracks anything.
    pub(crate) fn off(hosts: u32) -> Self {
        let is_watching = vec![false; hosts as usize];
        Self { hosts, silence: Span::ZERO, accounts: Vec::new(), is_watching }
    }

    /// Receivers give up senders that are silent for so long.
    pub(crate) fn new(hosts: u32, silence: Span) -> Self {
        let account = Account { owed: 0, heard: Time::ZERO };
        Self { silence, accounts: vec![account; (hosts * hosts) as usize], ..Self::off(hosts) }
    }

    fn account(&mut self, receiver: NodeId, sender: NodeId) -> Option<&mut Account> {
        self.accounts.get_mut((receiver.get() * self.hosts + sender.get()) as usize)
    }

    /// A copy of a grant has come, of slots from `due` on. Gives the instant at which to look again, if no
    /// timer runs.
    pub(crate) fn granted(
        &mut self,
        now: Time,
        receiver: NodeId,
        sender: NodeId,
        demand: u16,
        due: Time,
    ) -> Option<Time> {
        let silence = self.silence;
        let account = self.account(receiver, sender)?;
        account.owed += u32::from(demand);
        account.heard = account.heard.max(due);
        let was_watching = std::mem::replace(&mut self.is_watching[receiver.index()], true);
        (!was_watching).then_some(now + silence)
    }

    /// A packet that was counted has come.
    #[inline]
    pub(crate) fn came(&mut self, now: Time, receiver: NodeId, sender: NodeId) {
        if let Some(account) = self.account(receiver, sender) {
            account.owed = account.owed.saturating_sub(1);
            account.heard = account.heard.max(now);
        }
    }

    /// A sender has given back what it was granted.
    pub(crate) fn withdrawn(&mut self, receiver: NodeId, sender: NodeId, demand: u16) {
        if let Some(account) = self.account(receiver, sender) {
            account.owed = account.owed.saturating_sub(demand.into());
        }
    }

    /// A receiver has died: it knows nothing any more.
    pub(crate) fn forget(&mut self, receiver: NodeId) {
        let first = (receiver.get() * self.hosts) as usize;
        let own = self.accounts.iter_mut().skip(first).take(self.hosts as usize);
        own.for_each(|account| account.owed = 0);
    }

    /// Looks for senders that are silent, and tells how much each owes. Gives the instant at which to
    /// look again, if any owes anything: no later than others can be silent that are granted something
    /// meanwhile.
    pub(crate) fn look(
        &mut self,
        now: Time,
        receiver: NodeId,
        mut give_back: impl FnMut(NodeId, u32),
    ) -> Option<Time> {
        let first = (receiver.get() * self.hosts) as usize;
        let accounts = &mut self.accounts[first..first + self.hosts as usize];
        let mut next = None;
        for (sender, account) in (0..).map(NodeId::new).zip(accounts) {
            if account.owed == 0 {
                continue;
            }
            let until = account.heard + self.silence;
            if until <= now {
                give_back(sender, std::mem::take(&mut account.owed));
            } else {
                let until = until.min(now + self.silence);
                next = Some(next.map_or(until, |next: Time| next.min(until)));
            }
        }
        self.is_watching[receiver.index()] = next.is_some();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m31_what_a_silent_sender_owes_is_given_back_once() {
        let mut tracking = Tracking::new(3, Span::from_us(10));
        let at = |us| Time::ZERO + Span::from_us(us);
        let [one, two, here] = [1, 2, 0].map(NodeId::new);
        let granted = |tracking: &mut Tracking, us, sender, demand, due| {
            tracking.granted(at(us), here, sender, demand, at(due))
        };
        assert_eq!(granted(&mut tracking, 0, one, 4, 0), Some(at(10)));
        assert_eq!(granted(&mut tracking, 1, two, 2, 1), None, "a timer runs");
        tracking.came(at(5), here, one);
        tracking.came(at(6), here, two);
        tracking.came(at(7), here, two);
        let look = |tracking: &mut Tracking, us| {
            let mut back = Vec::new();
            let next = tracking.look(at(us), here, |sender, owed| back.push((sender.get(), owed)));
            (back, next)
        };
        assert_eq!(look(&mut tracking, 10), (vec![], Some(at(15))));
        assert_eq!(look(&mut tracking, 15), (vec![(1, 3)], None));
        assert_eq!(look(&mut tracking, 30), (vec![], None));
        assert_eq!(granted(&mut tracking, 40, one, 1, 40), Some(at(50)), "and anew");
        // Of six slots from 70 us on one is withdrawn, and one used ahead of time.
        assert_eq!(granted(&mut tracking, 41, two, 6, 70), None);
        tracking.withdrawn(here, two, 1);
        tracking.came(at(45), here, two);
        assert_eq!(look(&mut tracking, 50), (vec![(1, 1)], Some(at(60))));
        assert_eq!(look(&mut tracking, 79), (vec![], Some(at(80))));
        assert_eq!(look(&mut tracking, 80), (vec![(2, 4)], None));
        assert_eq!(granted(&mut tracking, 90, one, 1, 90), Some(at(100)));
        tracking.forget(here);
        assert_eq!(look(&mut tracking, 100), (vec![], None), "it has died in between");
    }
}
