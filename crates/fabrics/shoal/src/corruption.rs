//! Bits flipped on their way through the fabric (Appendix D).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use kernel::Stream;

use crate::cell::Frame;
use crate::crc;

/// Draws which bits of which cells are flipped. Every cell counts, empty ones too. Each node has a stream for
/// each of its channels, and they count the slots that the rack goes through, not those that it skips.
#[derive(Clone, Debug)]
pub(crate) struct Corruption {
    rate: f64,
    cell_bits: u64,
    channels: u32,
    first: u32,
    /// By node and channel.
    links: Vec<Link>,
    /// Cells with flipped bits to come: slot, channel and node.
    due: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Slots so far.
    slot: u64,
    /// Cells with a flipped bit so far, and those whose CRC did not show it.
    pub(crate) corrupted: u64,
    pub(crate) undetected: u64,
}

/// The sending side of a node on a channel.
#[derive(Clone, Debug)]
struct Link {
    stream: Stream,
    /// Number of its next bit that is flipped.
    next: u64,
}

/// A cell that is damaged as it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Hit {
    pub(crate) channel: u32,
    pub(crate) from: u32,
    pub(crate) damage: Damage,
}

/// What became of a corrupted cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The CRC shows it.
    Detected,
    /// It passes the CRC; the end-to-end check of its packet will throw it away.
    Undetected,
}

impl Corruption {
    /// That of the nodes `own`.
    pub(crate) fn new(
        rate: f64,
        seed: u64,
        (own, channels): (Range<u32>, u32),
        cell_bits: u64,
    ) -> Self {
        let link = |number: u32| {
            let mut stream = Stream::new(seed, "shoal/corruption", number.into());
            let next = stream.geometric(rate);
            Link { stream, next }
        };
        let links: Vec<_> = (own.start * channels..own.end * channels).map(link).collect();
        let due = (own.start * channels..).zip(&links).map(|(number, link)| {
            Reverse((link.next / cell_bits, number % channels, number / channels))
        });
        let (corrupted, undetected, slot) = (0, 0, 0);
        let (first, due) = (own.start, due.collect());
        Self { rate, cell_bits, channels, first, due, links, slot, corrupted, undetected }
    }

    /// Goes through a slot: the cells sent in it that are damaged, by channel and node.
    pub(crate) fn pass(&mut self) -> Vec<Hit> {
        let mut hits = Vec::new();
        let bits = self.slot.saturating_mul(self.cell_bits);
        while let Some(&Reverse((slot, channel, from))) = self.due.peek() {
            if slot > self.slot {
                break;
            }
            self.due.pop();
            let index = (from - self.first) * self.channels + channel;
            let link = &mut self.links[index as usize];
            let mut flipped = Vec::new();
            while link.next < bits.saturating_add(self.cell_bits) {
                flipped.push((link.next - bits) as usize);
                let gap = link.stream.geometric(self.rate);
                link.next = link.next.saturating_add(1).saturating_add(gap);
            }
            self.due.push(Reverse((link.next / self.cell_bits, channel, from)));
            let is_detected = crc::detects(flipped.iter().copied(), self.cell_bits as usize);
            self.undetected += u64::from(!is_detected);
            self.corrupted += 1;
            let damage = if is_detected { Damage::Detected } else { Damage::Undetected };
            hits.push(Hit { channel, from, damage });
        }
        self.slot += 1;
        hits
    }
}

impl Damage {
    /// What a frame that was damaged says of it.
    pub(crate) fn flags(self) -> u16 {
        match self {
            Self::Detected => Frame::CORRUPT,
            Self::Undetected => Frame::GARBLED,
        }
    }
}
