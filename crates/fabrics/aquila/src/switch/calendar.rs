//! What is due at each tick of the core's clock: lists of one kind each, in a ring.
//!
//! A tick does all of one kind before the next kind. Whatever one switch does for another is due ten ticks
//! later at least, so the order among switches within a tick makes no difference; of one switch, what it has
//! put in a list itself stands there in the order in which it did.

use super::Mail;

/// A port of a switch here, as one number: switch, and 6 bits of port.
pub(super) type Place = u32;

/// What is due at one tick.
#[derive(Clone, Debug, Default)]
pub(super) struct Due {
    /// Inputs from which a cell has crossed whole: place, the output and the channel it was queued in.
    pub(super) releases: Vec<Release>,
    /// Cells and ordered sets that have come over links.
    pub(super) mail: Vec<Mail>,
    /// Cells whose last bits come out of terminal ports.
    pub(super) deliveries: Vec<Delivery>,
    /// Terminal ports that may take a cell.
    pub(super) injections: Vec<Place>,
    /// Heads whose way is to be drawn again, if they are still there: place and channel.
    pub(super) draws: Vec<(Place, u8)>,
    /// Outputs that may send.
    pub(super) looks: Vec<Place>,
    /// Inputs that have kept back what they freed for long enough.
    pub(super) updates: Vec<Place>,
    /// Ports whose credit is told anew.
    pub(super) refreshes: Vec<Place>,
    /// Switches that may match more than in the tick before.
    pub(super) rounds: Vec<u32>,
    /// Switches whose endpoints want to be asked.
    pub(super) wakes: Vec<u32>,
}

/// A cell has left an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Release {
    pub(super) place: Place,
    pub(super) output: u8,
    pub(super) channel: u8,
    pub(super) blocks: u8,
}

/// A cell comes out of a terminal port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) place: Place,
    pub(super) cell: u32,
    /// Its last bit. Unit: ps.
    pub(super) tail: u64,
}

impl Due {
    fn clear(&mut self) {
        self.releases.clear();
        self.mail.clear();
        self.deliveries.clear();
        self.injections.clear();
        self.draws.clear();
        self.looks.clear();
        self.updates.clear();
        self.refreshes.clear();
        self.rounds.clear();
        self.wakes.clear();
    }
}

/// The ring.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    ring: Vec<Due>,
    /// Bit `t` modulo the ring: something is due.
    full: Vec<u64>,
    /// The tick at hand: all before are done.
    now: u64,
}

impl Calendar {
    /// A ring that reaches so many ticks ahead, at least.
    pub(super) fn new(ticks: u64) -> Self {
        let size = (ticks + 1).next_power_of_two().max(64) as usize;
        Self { ring: vec![Due::default(); size], full: vec![0; size / 64], now: 0 }
    }

    /// The tick at hand.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// How far ahead of the tick at hand something may be put.
    pub(super) fn reach(&self) -> u64 {
        self.ring.len() as u64 - 1
    }

    /// What is due at a tick, to add to.
    #[inline]
    pub(super) fn at(&mut self, tick: u64) -> &mut Due {
        debug_assert!(
            tick >= self.now && tick - self.now <= self.reach(),
            "tick {tick} is put in a ring that stands at {} and reaches {} ahead",
            self.now,
            self.reach()
        );
        let place = tick as usize & (self.ring.len() - 1);
        self.full[place / 64] |= 1 << (place % 64);
        &mut self.ring[place]
    }

    /// The first tick from the one at hand on at which something is due.
    pub(super) fn next(&self) -> Option<u64> {
        let start = self.now as usize & (self.ring.len() - 1);
        let words = self.full.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.full[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            } else if step == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                let ahead = place.wrapping_sub(start) & (self.ring.len() - 1);
                return Some(self.now + ahead as u64);
            }
        }
        None
    }

    /// Goes on to a tick before which nothing is due; takes what is due there.
    pub(super) fn take(&mut self, tick: u64, into: &mut Due) {
        debug_assert!(
            self.next().is_none_or(|next| next >= tick),
            "something is due before {tick}"
        );
        self.now = tick;
        let place = tick as usize & (self.ring.len() - 1);
        self.full[place / 64] &= !(1 << (place % 64));
        into.clear();
        std::mem::swap(into, &mut self.ring[place]);
    }

    /// Goes on to a tick before which nothing is due.
    pub(super) fn skip_to(&mut self, tick: u64) {
        debug_assert!(
            self.next().is_none_or(|next| next >= tick),
            "something is due before {tick}"
        );
        self.now = self.now.max(tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_come_in_order_over_the_ends_of_the_ring() {
        let mut calendar = Calendar::new(100);
        let (mut expected, mut tick) = (Vec::new(), 0);
        let mut due = Due::default();
        for step in [1, 50, 100, 127, 3, 64, 128 - 1, 2] {
            assert_eq!(calendar.next(), None);
            calendar.at(tick + step).looks.push(step as u32);
            calendar.at(tick + step / 2).looks.push(0);
            assert_eq!(calendar.next(), Some(tick + step / 2));
            calendar.take(tick + step / 2, &mut due);
            if step / 2 < step {
                assert_eq!(calendar.next(), Some(tick + step));
                calendar.take(tick + step, &mut due);
            }
            tick += step;
            expected.push((tick, due.looks.clone()));
        }
        assert!(expected.iter().all(|(_, looks)| !looks.is_empty()));
        assert_eq!(calendar.now(), tick);
    }
}
