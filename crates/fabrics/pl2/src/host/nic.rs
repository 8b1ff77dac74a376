//! Bursts on their way out of a host: those that wait for their instant, and those that the line takes.
//!
//! Models: PL2 §4.2.1 (claims M18, M20): control frames go first (footnote 7); the NIC sends a burst at
//! a given instant, in order where some are due together; what is due and not sent yet is the pending
//! data of Eq. 1.
//!
//! What is to happen at an instant waits in an [`Agenda`] until the line asks for a packet, which it
//! does when it gets free: a busy line needs no alarm.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kernel::{Bytes, Ring, Time};
use packets::Packet;

/// What the packets of a burst are, this time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum Role {
    /// They go in the slot that was granted.
    #[default]
    Solicited,
    /// They go before the grant.
    Unsolicited,
    /// They go a second time.
    Again,
    /// … and the switch has counted the first.
    AgainUncounted,
    /// Nothing is asked for.
    Unasked,
}

/// A burst that goes out once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Passage {
    /// The burst.
    pub(crate) burst: u32,
    /// Its next packet to go.
    pub(crate) next: u32,
    /// How many are left.
    pub(crate) left: u32,
    pub(crate) role: Role,
}

/// What is to happen, by instant; in order of insertion where instants are the same.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<T> {
    entries: BinaryHeap<Reverse<(Time, u64, T)>>,
    /// The number of the next entry.
    order: u64,
}

impl<T: Copy + Ord> Default for Agenda<T> {
    fn default() -> Self {
        Self { entries: BinaryHeap::new(), order: 0 }
    }
}

impl<T: Copy + Ord> Agenda<T> {
    /// Something is to happen at `at`.
    #[inline]
    pub(crate) fn push(&mut self, at: Time, what: T) {
        self.order += 1;
        self.entries.push(Reverse((at, self.order, what)));
    }

    /// The next whose instant has come, and that instant.
    #[inline]
    pub(crate) fn ripe(&mut self, now: Time) -> Option<(Time, T)> {
        if self.next_at() > now {
            return None;
        }
        self.entries.pop().map(|Reverse((at, _, what))| (at, what))
    }

    /// When the next one's instant comes; [`Time::NEVER`]: nothing waits.
    #[inline]
    pub(crate) fn next_at(&self) -> Time {
        self.entries.peek().map_or(Time::NEVER, |Reverse((at, ..))| *at)
    }
}

/// The way out of one host.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    /// Frames that go before all bursts.
    control: Ring<Packet>,
    /// Agents whose reservations are on their way here.
    asks: Agenda<u32>,
    /// Bursts whose instant is to come.
    later: Agenda<Passage>,
    /// When the first of all these comes.
    next_at: Time,
    /// Bursts that may go now.
    due: Ring<Passage>,
    /// What of them is left.
    pending: Bytes,
    /// Whether the line will ask for another packet without being told to: it is busy with one.
    pub(crate) is_expected: bool,
}

impl Default for Nic {
    fn default() -> Self {
        Self {
            control: Ring::default(),
            asks: Agenda::default(),
            later: Agenda::default(),
            next_at: Time::NEVER,
            due: Ring::default(),
            pending: Bytes::ZERO,
            is_expected: false,
        }
    }
}

impl Nic {
    /// A frame is to go before all bursts.
    #[inline]
    pub(crate) fn push_control(&mut self, packet: Packet) {
        self.control.push(packet);
    }

    /// The next such frame.
    #[inline]
    pub(crate) fn next_control(&mut self) -> Option<Packet> {
        self.control.pop()
    }

    /// Whether any waits.
    pub(crate) fn holds_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// A burst of `size` may go now.
    #[inline]
    pub(crate) fn push(&mut self, passage: Passage, size: Bytes) {
        self.due.push(passage);
        self.pending += size;
    }

    /// The reservation of `agent` comes here at `at`.
    #[inline]
    pub(crate) fn push_ask(&mut self, at: Time, agent: u32) {
        self.asks.push(at, agent);
        self.next_at = self.next_at.min(at);
    }

    /// A burst may go at `at`.
    #[inline]
    pub(crate) fn push_at(&mut self, at: Time, passage: Passage) {
        self.later.push(at, passage);
        self.next_at = self.next_at.min(at);
    }

    /// Whether the instant of a reservation or burst has come.
    #[inline]
    pub(crate) fn is_ripe(&self, now: Time) -> bool {
        self.next_at <= now
    }

    /// When something is to happen next.
    #[inline]
    pub(crate) fn next_at(&self) -> Time {
        self.next_at
    }

    /// The next agent whose reservation has come, and when it did.
    #[inline]
    pub(crate) fn ripe_ask(&mut self, now: Time) -> Option<(Time, u32)> {
        let ripe = self.asks.ripe(now);
        self.next_at = self.asks.next_at().min(self.later.next_at());
        ripe
    }

    /// The next burst whose instant has come.
    #[inline]
    pub(crate) fn ripe_burst(&mut self, now: Time) -> Option<Passage> {
        let ripe = self.later.ripe(now);
        self.next_at = self.asks.next_at().min(self.later.next_at());
        ripe.map(|(_, passage)| passage)
    }

    /// The burst whose packet goes next.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<&mut Passage> {
        self.due.get_mut(0)
    }

    /// A packet of `size` of the burst in front went out; `is_last`: its last.
    #[inline]
    pub(crate) fn sent(&mut self, size: Bytes, is_last: bool) {
        self.pending -= size;
        if is_last {
            self.due.pop();
        }
    }

    /// Bytes that may go and have not.
    #[inline]
    pub(crate) fn pending(&self) -> Bytes {
        self.pending
    }

    /// Forgets all frames and bursts, and tells the bursts.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = Passage> + use<> {
        let later = self.later.entries.drain().map(|Reverse((_, _, passage))| passage);
        let later: Vec<_> = later.collect();
        let due: Vec<_> = self.due.iter().copied().collect();
        self.asks.entries.clear();
        self.next_at = Time::NEVER;
        self.due.clear();
        self.control.clear();
        self.pending = Bytes::ZERO;
        later.into_iter().chain(due)
    }

    /// How many bursts are on their way.
    pub(crate) fn count(&self) -> usize {
        self.later.entries.len() + self.due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m20_bursts_go_by_instant_and_in_order_within_one() {
        let mut agenda = Agenda::default();
        for (at, burst) in [(5, 0), (3, 9), (5, 2), (3, 3)] {
            agenda.push(Time::from_ps(at), burst);
        }
        assert_eq!(agenda.next_at(), Time::from_ps(3));
        assert_eq!(agenda.ripe(Time::from_ps(2)), None);
        let mut ripe = |now| {
            let one = || agenda.ripe(Time::from_ps(now));
            std::iter::from_fn(one).map(|(at, burst)| (at.as_ps(), burst)).collect::<Vec<_>>()
        };
        assert_eq!(ripe(4), [(3, 9), (3, 3)]);
        assert_eq!(ripe(5), [(5, 0), (5, 2)]);
        assert_eq!(agenda.next_at(), Time::NEVER);
    }
}
