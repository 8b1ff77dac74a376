//! Bits flipped on their way through the fabric (Appendix D).

use kernel::Stream;

use crate::cell::Frame;
use crate::crc;

/// Draws which bits of which cells are flipped. Every cell counts, empty ones too.
#[derive(Clone, Debug)]
pub(crate) struct Corruption {
    rate: f64,
    stream: Stream,
    cell_bits: u64,
    /// Bits that pass until the next flipped one.
    next: u64,
    /// Cells with a flipped bit so far, and those whose CRC did not show it.
    pub(crate) corrupted: u64,
    pub(crate) undetected: u64,
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
    pub(crate) fn new(rate: f64, seed: u64, cell_bits: u64) -> Self {
        let mut stream = Stream::new(seed, "shoal/corruption", 0);
        let next = stream.geometric(rate);
        Self { rate, stream, cell_bits, next, corrupted: 0, undetected: 0 }
    }

    /// Passes the next `cells` cells; tells `hit` the index of each corrupted one and its damage.
    pub(crate) fn pass(&mut self, cells: u64, mut hit: impl FnMut(u64, Damage)) {
        let bits = cells * self.cell_bits;
        while self.next < bits {
            let cell = self.next / self.cell_bits;
            let mut flipped = vec![(self.next % self.cell_bits) as usize];
            self.step();
            while self.next < bits && self.next / self.cell_bits == cell {
                flipped.push((self.next % self.cell_bits) as usize);
                self.step();
            }
            let damage = if crc::detects(flipped.iter().copied(), self.cell_bits as usize) {
                Damage::Detected
            } else {
                self.undetected += 1;
                Damage::Undetected
            };
            self.corrupted += 1;
            hit(cell, damage);
        }
        self.next -= bits;
    }

    fn step(&mut self) {
        self.next = self.next.saturating_add(1).saturating_add(self.stream.geometric(self.rate));
    }
}

impl Damage {
    /// Does the damage to a frame.
    pub(crate) fn apply(self, frame: &mut Frame) {
        match self {
            Self::Detected => frame.flags |= Frame::CORRUPT,
            Self::Undetected => frame.flags |= Frame::GARBLED,
        }
    }
}
