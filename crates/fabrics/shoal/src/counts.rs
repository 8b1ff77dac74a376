//! What the shards of a rack have counted, together.

use rack::shards::Shards;

use crate::losses::Losses;
use crate::rack::Rack;
use crate::shard::Shard;

/// How many nodes send to each node at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Incast {
    degrees: Vec<u16>,
    pub(crate) peak: u16,
    changes: Vec<(u64, u16, i8)>,
}

impl Incast {
    /// Takes in what has changed.
    pub(crate) fn update(&mut self, shards: &mut Shards<Shard>, nodes: u32) {
        let Self { degrees, peak, changes } = self;
        shards.iter_mut().for_each(|shard| shard.bank.take_incast_changes(changes));
        // Flows are offered at the beginning of a slot, before others are freed in it.
        changes.sort_unstable_by_key(|&(slot, node, change)| (slot, node, -change));
        degrees.resize(nodes as usize, 0);
        for (_, node, change) in changes.drain(..) {
            let degree = &mut degrees[usize::from(node)];
            *degree = degree.wrapping_add_signed(i16::from(change));
            *peak = (*peak).max(*degree);
        }
    }
}

impl Rack {
    fn most(&self, count: impl Fn(&Shard) -> u32) -> u32 {
        self.shards.iter().map(count).max().unwrap_or(0)
    }

    fn all(&self, count: impl Fn(&Shard) -> u64) -> u64 {
        self.shards.iter().map(count).sum()
    }

    /// Most cells seen in one node.
    pub(crate) fn fullest_node(&self) -> u32 {
        self.most(|shard| shard.bank.fullest_node())
    }

    /// Most cells seen in one node that were on their way through it.
    pub(crate) fn fullest_relay(&self) -> u32 {
        self.most(|shard| shard.bank.fullest_relay())
    }

    /// What all shards keep where cells can be lost.
    pub(crate) fn losses(&self) -> impl Iterator<Item = &Losses> {
        self.shards.iter().filter_map(|shard| shard.losses.as_deref())
    }

    /// Cells dropped and cells sent again by the link layer so far.
    pub(crate) fn loss_counts(&self) -> (u64, u64) {
        let count = |shard: &Shard| shard.bank.loss_counts();
        (self.all(|shard| count(shard).0), self.all(|shard| count(shard).1))
    }

    /// Frames dropped that could not be decoded, or were not expected.
    pub(crate) fn unexpected(&self) -> u64 {
        self.all(|shard| shard.unexpected + shard.messages.receivers.strays)
    }

    /// Cells that the transport sent again so far.
    pub(crate) fn repeats(&self) -> u64 {
        self.all(|shard| shard.messages.repeats)
    }

    /// The length that 99 % of the relayed cells found at most, themselves included.
    pub(crate) fn length_p99(&self) -> u64 {
        let mut lengths = Vec::new();
        for shard in self.shards.iter() {
            let counts = shard.bank.lengths();
            lengths.resize(counts.len(), 0);
            lengths.iter_mut().zip(counts).for_each(|(all, own)| *all += own);
        }
        let all: u64 = lengths.iter().sum();
        let mut seen = 0;
        let within = lengths.iter().position(|count| {
            seen += count;
            seen * 100 >= all * 99
        });
        if all == 0 { 0 } else { within.unwrap_or(0) as u64 }
    }

    /// The most cells that any queue may have held so far, by the largest degrees seen (Eqs 3, 5).
    pub(crate) fn largest_bound(&self) -> u32 {
        let (incast, outcast) =
            (u32::from(self.incast.peak), self.most(|shard| shard.bank.outcast_peak()));
        if self.plan.config.ready_queue { 1 + incast } else { outcast + incast }
    }
}
