//! What if the switch could match as Fastpass does?
//!
//! Models: PL2 §4.2 (claim M11), "Why not implement Fastpass in a switch instead?": a bitmap of slots
//! for each input and output; a burst gets the earliest run of slots that is free in both. Gaps that
//! earlier bursts left are filled, so every slot is matched as far as the demands allow, in the order
//! in which they came. The switch cannot: it takes the AND of two bitmaps, and a clock.
//!
//! Leaves out: Fastpass's batches, in which the order of demands is the arbiter's to choose.

use kernel::{Span, Time};

use super::pipeline::Between;

/// Slots of one port that are taken, from a first one on, as a ring of bits.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Slots {
    words: Vec<u64>,
    /// The first slot that the ring holds: a multiple of 64.
    first: u64,
}

impl Slots {
    fn new(words: usize) -> Self {
        Self { words: vec![0; words], first: 0 }
    }

    /// Forgets what is before `slot`.
    fn advance(&mut self, slot: u64) {
        let length = self.words.len() as u64;
        let target = slot / 64 * 64;
        if target >= self.first + 64 * length {
            self.words.fill(0);
            self.first = target;
        }
        while self.first < target {
            self.words[(self.first / 64 % length) as usize] = 0;
            self.first += 64;
        }
    }

    fn holds(&self, slot: u64) -> bool {
        self.words[(slot / 64) as usize % self.words.len()] >> (slot % 64) & 1 == 1
    }

    fn take(&mut self, slot: u64) {
        let length = self.words.len();
        self.words[(slot / 64) as usize % length] |= 1 << (slot % 64);
    }
}

/// Bitmaps of all ports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Matching {
    slot: Span,
    lead: Span,
    /// Slots that a bitmap holds.
    window: u64,
    input: Vec<Slots>,
    output: Vec<Slots>,
}

impl Matching {
    /// `ports` free ports. A slot is `slot` long; data comes `lead` after its reservation at the
    /// earliest; no burst is put off by more than `window` slots.
    ///
    /// # Panics
    /// If `slot` is zero.
    #[must_use]
    pub fn new(ports: u32, slot: Span, lead: Span, window: u64) -> Self {
        assert!(slot > Span::ZERO, "a slot of no length");
        // Two words more, for the ends of the window lie inside a word.
        let words = window.div_ceil(64) as usize + 2;
        let free = || vec![Slots::new(words); ports as usize];
        Self { slot, lead, window, input: free(), output: free() }
    }

    /// Reserves the earliest `demand` slots in a row that are free at both ports. Returns how many
    /// slots from now the first is, counted in parts of a slot upwards; the end of the window, if it
    /// is full: then the burst has to take its chance.
    pub fn reserve(&mut self, now: Time, demand: u16, between: Between) -> u32 {
        let demand = u64::from(demand);
        let current = now.as_ps() / self.slot.as_ps();
        let earliest = (now + self.lead).as_ps().div_ceil(self.slot.as_ps());
        let input = &mut self.input[between.input as usize];
        let output = &mut self.output[between.output as usize];
        input.advance(current);
        output.advance(current);
        let end = current + self.window;
        let (mut start, mut at) = (earliest, earliest);
        while at < start + demand && at < end {
            if input.holds(at) || output.holds(at) {
                start = at + 1;
            }
            at += 1;
        }
        for slot in start..(start + demand).min(end) {
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
        slots.words.iter().map(|word| word.count_ones()).sum()
    }
}
