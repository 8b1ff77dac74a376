//! Which packets of unsolicited bursts a receiver has already.
//!
//! Models: PL2 §4.4 (claim M25): as T is far above t, both copies of a burst may come. A receiver
//! remembers the last bursts of each thread of each sender: a bit for each of their packets. It takes
//! more than one, for a thread that does not wait until a burst is out ([`GrantHandling::Async`]) may
//! send others before the second copy of this one.
//!
//! First copies come in the order of their numbers and once. So only a second copy is ever dropped, and
//! one would be for nothing only where its first copy and eight bursts of its thread in a row were lost
//! whole.
//!
//! [`GrantHandling::Async`]: crate::config::GrantHandling::Async

use crate::wire::Tag;
use crate::wire::tag::{BURST_MAX, BURSTS};

const _: () = assert!(BURST_MAX <= u16::BITS);
/// Bursts that a receiver remembers of a lane: half of those that tags tell apart, so that it sees which
/// of two came first.
const KEPT: u8 = BURSTS / 2;

/// What a receiver remembers of one lane of a sender.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// The last burst by number.
    last: u8,
    /// By number modulo [`KEPT`], of the last burst and those before it: which packets came.
    packets: [u16; KEPT as usize],
}

/// The memories of all receivers, by the sender's lane.
#[derive(Clone, Debug)]
pub(crate) struct Duplicates {
    seen: Vec<Seen>,
}

impl Duplicates {
    pub(crate) fn new(lanes: usize) -> Self {
        Self { seen: vec![Seen { last: 0, packets: [0; KEPT as usize] }; lanes] }
    }

    /// A packet came by `lane`. True if it came before.
    #[inline]
    pub(crate) fn knows(&mut self, lane: u32, tag: Tag) -> bool {
        let Some(place) = tag.place() else { return false };
        let is_first = matches!(tag, Tag::Unsolicited(_));
        let seen = &mut self.seen[lane as usize];
        let ahead = (BURSTS + place.burst - seen.last) % BURSTS;
        // What is far ahead is behind, if it may be.
        if ahead > 0 && (is_first || ahead <= KEPT) {
            (0..ahead.min(KEPT))
                .for_each(|step| seen.packets[place_of(place.burst + BURSTS - step)] = 0);
            seen.last = place.burst;
        }
        let packets = &mut seen.packets[place_of(place.burst)];
        let bit = 1 << place.index;
        let is_known = !is_first && *packets & bit != 0;
        *packets |= bit;
        is_known
    }
}

/// Where a burst of this number is remembered.
#[inline]
fn place_of(burst: u8) -> usize {
    usize::from(burst % KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tag::Place;

    const LANE: u32 = 1;

    fn at(burst: u8, index: u8) -> Place {
        Place { thread: 0, burst: burst % BURSTS, index }
    }

    /// Copies of a burst, of `lane` packets 0 and 1, come; whether each is known.
    fn again(duplicates: &mut Duplicates, burst: u8) -> [bool; 2] {
        [0, 1].map(|index| duplicates.knows(LANE, Tag::Again(at(burst, index))))
    }

    #[test]
    fn m25_a_packet_is_new_once_in_its_burst_in_any_order() {
        let mut duplicates = Duplicates::new(2);
        for (tag, is_known) in [
            (Tag::Unsolicited(at(0, 0)), false),
            (Tag::Unsolicited(at(0, 3)), false),
            (Tag::Again(at(0, 0)), true),
            (Tag::AgainUncounted(at(0, 1)), false),
            (Tag::AgainUncounted(at(0, 3)), true),
            (Tag::Unreserved, false),
            (Tag::Unsolicited(at(1, 0)), false),
            (Tag::Again(at(1, 0)), true),
        ] {
            assert_eq!(duplicates.knows(LANE, tag), is_known, "{tag:?}");
        }
        assert!(!duplicates.knows(0, Tag::Again(at(0, 0))), "another lane");
    }

    /// Numbers go round; a second copy may come after the first ones of later bursts, and a burst whose
    /// first copy was lost is new.
    #[test]
    fn m25_copies_are_known_after_later_bursts() {
        for lag in 0..KEPT {
            let mut duplicates = Duplicates::new(2);
            for burst in 0..3 * BURSTS {
                let is_lost = burst % 5 == 1;
                if !is_lost {
                    assert!(!duplicates.knows(LANE, Tag::Unsolicited(at(burst, 0))), "{burst}");
                }
                if let Some(old) = burst.checked_sub(lag) {
                    let came = old % 5 != 1;
                    assert_eq!(again(&mut duplicates, old), [came, false], "{old} after {burst}");
                    assert_eq!(again(&mut duplicates, old), [true, true], "{old} after {burst}");
                }
            }
        }
    }

    /// Bursts lost in a row: the next ones are new, whatever came under their numbers before.
    #[test]
    fn m25_after_any_gap_first_copies_are_new_and_second_ones_known() {
        for gap in 1..3 * BURSTS {
            let mut duplicates = Duplicates::new(2);
            for burst in (0..BURSTS).chain([BURSTS + gap]) {
                for index in [0, 1] {
                    assert!(!duplicates.knows(LANE, Tag::Unsolicited(at(burst, index))), "{gap}");
                }
                assert_eq!(again(&mut duplicates, burst), [true, true], "{burst}, {gap} lost");
            }
        }
    }
}
