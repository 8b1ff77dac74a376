//! From when on a packet that arrives may ask.
//!
//! Models: SCOC §4.E, cut-through. The crossbar reads a packet faster than its line delivers it, which
//! the paper does not discuss: so that no word is missing when its turn comes, a packet waits
//! (E23).

use kernel::Bytes;
use switching::{Line, Packet, Ticks};

use crate::chip_config::{ChipPlan, CutThrough};

/// The wait of packets and their words by their size: looked up, for a division takes longer.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    line: Line,
    /// For each size in bytes the time from a packet's first bit until it may ask.
    waits: Vec<Ticks>,
    /// For each size in bytes its words.
    words: Vec<u64>,
}

impl Entry {
    pub(crate) fn new(plan: &ChipPlan) -> Self {
        let sizes = || (0..=plan.config.packet_max.get()).map(Bytes::new);
        Self {
            line: plan.line,
            waits: sizes().map(|size| wait(plan, size)).collect(),
            words: sizes().map(|size| plan.words(size)).collect(),
        }
    }

    /// The first cycle from `cycle` on in which a packet may ask.
    #[inline]
    pub(crate) fn ready(&self, packet: &Packet, cycle: u64) -> u64 {
        let wait = self.waits[packet.size().get() as usize];
        self.line.cycle_from(packet.entered + wait).max(cycle)
    }

    /// How many words a packet has.
    #[inline]
    pub(crate) fn words(&self, packet: &Packet) -> u64 {
        self.words[packet.size().get() as usize]
    }
}

/// How long a packet of `size` waits from its first bit on.
pub(crate) fn wait(plan: &ChipPlan, size: Bytes) -> Ticks {
    let line = &plan.line;
    match plan.config.cut_through {
        CutThrough::FirstBit => Ticks::default(),
        CutThrough::StoreAndForward => line.send_time(size),
        CutThrough::NoUnderrun => {
            // The line delivers evenly and so does the crossbar: if the first word and the last two
            // are in time, all are.
            let words = plan.words(size);
            let in_time = |word: u64| {
                let there = line.send_time((plan.word * (word + 1)).min(size));
                let crosses = line.start_of(plan.first_word() + word * plan.stride());
                if there > crosses { there - crosses } else { Ticks::default() }
            };
            let ends = [0, words.saturating_sub(2), words.saturating_sub(1)];
            ends.into_iter().map(in_time).max().unwrap_or_default()
        }
    }
}
