//! Which packets of unsolicited bursts a receiver has already.
//!
//! Models: PL2 §4.4 (claim M25): as T is far above t, both copies of a burst may come. A thread has one
//! burst under way at a time, so a receiver remembers one for each thread of each sender: its number
//! and a bit for each of its packets. Sixteen bursts of a thread in a row would have to be lost whole
//! before a number could be mistaken.

use crate::wire::tag::{BURST_MAX, BURSTS, Place};

const _: () = assert!(BURST_MAX <= u16::BITS);

/// What a receiver remembers of one lane of a sender.
#[derive(Clone, Copy, Debug)]
struct Seen {
    burst: u8,
    packets: u16,
}

/// The memories of all receivers, by the sender's lane.
#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    seen: Vec<Seen>,
}

impl Duplicates {
    pub(crate) fn new(lanes: usize) -> Self {
        // No burst has this number.
        Self { seen: vec![Seen { burst: BURSTS, packets: 0 }; lanes] }
    }

    /// A packet came by `lane`. True if it came before.
    #[inline]
    pub(crate) fn knows(&mut self, lane: u32, place: Place) -> bool {
        let seen = &mut self.seen[lane as usize];
        if seen.burst != place.burst {
            *seen = Seen { burst: place.burst, packets: 0 };
        }
        let bit = 1 << place.index;
        let is_known = seen.packets & bit != 0;
        seen.packets |= bit;
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m25_a_packet_is_new_once_in_its_burst_in_any_order() {
        let mut duplicates = Duplicates::new(2);
        let at = |burst, index| Place { thread: 0, burst, index };
        for (place, is_known) in [
            (at(0, 0), false),
            (at(0, 3), false),
            (at(0, 0), true),
            (at(0, 1), false),
            (at(1, 0), false),
            (at(1, 0), true),
            (at(0, 0), false),
        ] {
            assert_eq!(duplicates.knows(1, place), is_known, "{place:?}");
        }
        assert!(!duplicates.knows(0, at(0, 0)), "another lane");
    }
}
