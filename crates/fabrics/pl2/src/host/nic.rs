//! Bursts on their way out of a host: those that wait for their instant, and those that the line takes.
//!
//! Models: PL2 §4.2.1 (claims M18, M20): control frames go first (footnote 7); the NIC sends a burst at
//! a given instant, in order where some are due together; what is due and not sent yet is the pending
//! data of Eq. 1.

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

/// The way out of one host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nic {
    /// Frames that go before all bursts.
    control: Ring<Packet>,
    /// Bursts whose instant is to come, with a number that keeps the order of those of one instant.
    later: BinaryHeap<Reverse<(Time, u64, Passage)>>,
    order: u64,
    /// Bursts that may go now.
    due: Ring<Passage>,
    /// What of them is left.
    pending: Bytes,
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

    /// A burst of `size` may go now.
    #[inline]
    pub(crate) fn push(&mut self, passage: Passage, size: Bytes) {
        self.due.push(passage);
        self.pending += size;
    }

    /// A burst may go at `at`.
    #[inline]
    pub(crate) fn push_at(&mut self, at: Time, passage: Passage) {
        self.order += 1;
        self.later.push(Reverse((at, self.order, passage)));
    }

    /// The next burst whose instant has come, out of those that wait for theirs.
    #[inline]
    pub(crate) fn ripe(&mut self, now: Time) -> Option<Passage> {
        let Reverse((at, _, _)) = self.later.peek()?;
        if *at > now {
            return None;
        }
        self.later.pop().map(|Reverse((_, _, passage))| passage)
    }

    /// When the next burst's instant comes.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.later.peek().map(|Reverse((at, _, _))| *at)
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
        let later: Vec<_> = self.later.drain().map(|Reverse((_, _, passage))| passage).collect();
        let due: Vec<_> = self.due.iter().copied().collect();
        self.due.clear();
        self.control.clear();
        self.pending = Bytes::ZERO;
        later.into_iter().chain(due)
    }

    /// How many bursts are on their way.
    pub(crate) fn count(&self) -> usize {
        self.later.len() + self.due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m20_bursts_go_by_instant_and_in_order_within_one() {
        let mut nic = Nic::default();
        let passage = |burst| Passage { burst, ..Passage::default() };
        for (at, burst) in [(5, 0), (3, 1), (5, 2), (3, 3)] {
            nic.push_at(Time::from_ps(at), passage(burst));
        }
        assert_eq!(nic.next_at(), Some(Time::from_ps(3)));
        assert_eq!(nic.ripe(Time::from_ps(2)), None);
        let mut ripe = |now| {
            std::iter::from_fn(|| nic.ripe(Time::from_ps(now))).map(|p| p.burst).collect::<Vec<_>>()
        };
        assert_eq!(ripe(4), [1, 3]);
        assert_eq!(ripe(5), [0, 2]);
    }
}
