//! What if the switch could match as Fastpass does?
//!
//! Models: PL2 §4.2 (claim M11), "Why not implement Fastpass in a switch instead?": a bitmap of slots
//! for each input and output; a burst gets the earliest run of slots that is free in both. Gaps that
//! earlier bursts left are filled, so every slot is matched as far as the demands allow, in the order
//! in which they came. The switch cannot: it takes the AND of two bitmaps, and a clock.
//!
//! Leaves out: Fastpass's batches, in which the order of demands is the arbiter's to choose.

use std::collections::VecDeque;

use kernel::{Span, Time};

use super::pipeline::Between;

/// Slots of one port that are taken, from a first one on; those behind the last are free.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Slots {
    words: VecDeque<u64>,
    /// The first slot of the first word: a multiple of 64.
    first: u64,
}

impl Slots {
    /// Forgets what is before `slot`.
    fn advance(&mut self, slot: u64) {
        let past = (slot / 64).saturating_sub(self.first / 64);
        self.words.drain(..past.min(self.words.len() as u64) as usize);
        self.first += past * 64;
    }

    /// The word of a slot that is not forgotten.
    fn word(&self, slot: u64) -> u64 {
        self.words.get(self.place(slot)).copied().unwrap_or(0)
    }

    fn take(&mut self, slot: u64) {
        let place = self.place(slot);
        if place >= self.words.len() {
            self.words.resize(place + 1, 0);
        }
        self.words[place] |= 1 << (slot % 64);
    }

    /// Slots from `slot` on that are taken, where all before its word are forgotten.
    fn taken_from(&self, slot: u64) -> u32 {
        let past = !(u64::MAX << (slot % 64));
        let all: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        all - (self.word(slot) & past).count_ones()
    }

    fn place(&self, slot: u64) -> usize {
        ((slot - self.first) / 64) as usize
    }
}

/// Bitmaps of all ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matching {
    slot: Span,
    lead: Span,
    input: Vec<Slots>,
    output: Vec<Slots>,
}

impl Matching {
    /// `ports` free ports. A slot is `slot` long; data comes `lead` after its reservation at the
    /// earliest.
    ///
    /// # Panics
    /// If `slot` is zero.
    #[must_use]
    pub fn new(ports: u32, slot: Span, lead: Span) -> Self {
        assert!(slot > Span::ZERO, "a slot of no length");
        let free = || vec![Slots::default(); ports as usize];
        Self { slot, lead, input: free(), output: free() }
    }

    /// Reserves the earliest `demand` slots in a row that are free at both ports. Returns how many
    /// slots from now the first is, counted in parts of a slot upwards.
    pub fn reserve(&mut self, now: Time, demand: u16, between: Between) -> u32 {
        let demand = u64::from(demand);
        let current = now.as_ps() / self.slot.as_ps();
        let earliest = (now + self.lead).as_ps().div_ceil(self.slot.as_ps());
        let input = &mut self.input[between.input as usize];
        let output = &mut self.output[between.output as usize];
        input.advance(current);
        output.advance(current);
        let (mut start, mut at) = (earliest, earliest);
        while at < start + demand {
            let taken = (input.word(at) | output.word(at)) >> (at % 64);
            if taken & 1 == 1 {
                // As many as are taken in a row: all that are left of the word, or fewer.
                at += u64::from(taken.trailing_ones());
                start = at;
            } else {
                at += 1;
            }
        }
        for slot in start..start + demand {
            input.take(slot);
            output.take(slot);
        }
        let begin = Time::from_ps(start * self.slot.as_ps()).max(now);
        u32::try_from((begin - now).div_ceil(self.slot)).unwrap_or(u32::MAX)
    }

    /// Slots from now on that are taken at an output.
    pub fn waiting(&mut self, now: Time, output: u32) -> u32 {
        let current = now.as_ps() / self.slot.as_ps();
        let slots = &mut self.output[output as usize];
        slots.advance(current);
        slots.taken_from(current)
    }
}
