//! What the sender knows of each segment under way.
//!
//! Models: RFC 6675 §3 and §4: HighACK, HighData, HighRxt, IsLost, SetPipe and NextSeg, in segments.
//! All segments of a flow but the last are full, so both conditions of IsLost (three separate
//! blocks, or more than two segments of bytes, above) come to one: three segments above have been
//! selectively acknowledged. What is lost is then everything not acknowledged below the third
//! highest such segment: one number that only rises. What was retransmitted is everything not
//! acknowledged below HighRxt. So the whole board is five numbers and one set, and the set is empty
//! while nothing is lost or overtaken.

use crate::segments::Segments;

/// Segments above a hole after which it counts as lost (RFC 6675 §2: DupThresh).
pub(crate) const DUP_THRESH: usize = 3;

/// The board of one sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    /// HighACK: the first segment not cumulatively acknowledged.
    una: u64,
    /// HighData: the first segment never sent.
    next: u64,
    /// Selectively acknowledged; none below `una`.
    sacked: Segments,
    /// The highest three of these, highest first, each plus one; 0 where there are fewer.
    highest: [u64; DUP_THRESH],
    /// Every segment not acknowledged below here is lost.
    lost: u64,
    /// HighRxt: every segment not acknowledged below here has been retransmitted.
    again: u64,
    /// SetPipe's sum, kept up to date: segments estimated to be in the network.
    pipe: u64,
}

impl Scoreboard {
    /// Forgets everything; keeps its memory.
    pub(crate) fn reset(&mut self) {
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.clear();
        *self = Self { sacked, ..Self::default() };
    }

    /// The first segment not cumulatively acknowledged.
    #[inline]
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// The first segment never sent.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Segments sent and not cumulatively acknowledged: FlightSize of RFC 5681.
    #[inline]
    pub(crate) fn flight(&self) -> u64 {
        self.next - self.una
    }

    /// Segments estimated to be in the network.
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Whether the first segment not acknowledged is lost.
    #[inline]
    pub(crate) fn is_first_lost(&self) -> bool {
        self.lost > self.una
    }

    /// Sends one new segment.
    #[inline]
    pub(crate) fn send_new(&mut self) -> u64 {
        self.next += 1;
        self.pipe += 1;
        self.next - 1
    }

    /// How much a segment that is not acknowledged counts in the pipe (RFC 6675 §4, SetPipe).
    fn weight(&self, segment: u64) -> u64 {
        u64::from(segment >= self.lost) + u64::from(segment < self.again)
    }

    /// How much the segments `from..to` count that are not acknowledged.
    fn weigh(&self, from: u64, to: u64) -> u64 {
        if self.sacked.is_empty() && self.lost <= from && self.again <= from {
            return to - from;
        }
        self.sacked.absent(from.max(self.lost), to) + self.sacked.absent(from, to.min(self.again))
    }

    /// Everything below `ack` has arrived. How many segments are newly known to have arrived.
    pub(crate) fn acknowledge(&mut self, ack: u64) -> u64 {
        debug_assert!(self.una <= ack && ack <= self.next, "{ack} acknowledged by {self:?}");
        self.pipe -= self.weigh(self.una, ack);
        let new = self.sacked.absent(self.una, ack);
        self.una = ack;
        self.sacked.retire(ack);
        new
    }

    /// Segments `from..to` have arrived. How many of them that is news of.
    pub(crate) fn sack(&mut self, from: u64, to: u64) -> u64 {
        let (from, to) = (from.max(self.una), to.min(self.next));
        if from >= to {
            return 0;
        }
        let Self { lost, again, highest, sacked, .. } = self;
        let (mut new, mut gone) = (0, 0);
        sacked.insert(from, to, |start, bits| {
            let count = |edge: u64| match edge.saturating_sub(start) {
                below @ 0..64 => u64::from((bits & ((1 << below) - 1)).count_ones()),
                _ => u64::from(bits.count_ones()),
            };
            let all = u64::from(bits.count_ones());
            new += all;
            gone += all - count(*lost) + count(*again);
            note_highest(highest, start, bits);
        });
        self.pipe -= gone;
        new
    }

    /// Finds out what is lost after selective acknowledgments (IsLost).
    pub(crate) fn update_lost(&mut self) {
        self.declare_lost(self.highest[DUP_THRESH - 1].saturating_sub(1));
    }

    /// Everything not acknowledged below `edge` is lost.
    pub(crate) fn declare_lost(&mut self, edge: u64) {
        let from = self.lost.max(self.una);
        if edge > from {
            self.pipe -= self.sacked.absent(from, edge);
            self.lost = edge;
        }
    }

    /// A timeout: everything not acknowledged is lost, retransmitted or not (RFC 6675 §5.1).
    pub(crate) fn declare_all_lost(&mut self) {
        self.lost = self.next;
        self.again = self.una;
        self.pipe = 0;
    }

    /// Starts a recovery: HighRxt falls back to HighACK (RFC 6675 §5, step 4.3). The recovery before
    /// may have gone beyond.
    pub(crate) fn start_recovery(&mut self) {
        self.pipe -= self.sacked.absent(self.una, self.again);
        self.again = self.una;
    }

    /// Rule 1 of NextSeg: the first lost segment not yet retransmitted.
    pub(crate) fn next_lost(&self) -> Option<u64> {
        if self.lost <= self.again.max(self.una) {
            return None;
        }
        let segment = self.sacked.first_absent(self.again.max(self.una));
        (segment < self.lost).then_some(segment)
    }

    /// Rule 3 of NextSeg: the first segment not yet retransmitted below the highest acknowledged one.
    pub(crate) fn next_hole(&self) -> Option<u64> {
        let segment = self.sacked.first_absent(self.again.max(self.una));
        (segment + 1 < self.highest[0]).then_some(segment)
    }

    /// Rule 4 of NextSeg: the highest segment not acknowledged.
    pub(crate) fn last_hole(&self) -> Option<u64> {
        (self.una..self.next).rev().find(|&segment| !self.sacked.contains(segment))
    }

    /// Sends `segment` again, the one that [`Scoreboard::next_lost`] or [`Scoreboard::next_hole`]
    /// gave.
    pub(crate) fn send_again(&mut self, segment: u64) {
        debug_assert!(segment >= self.again.max(self.una) && segment < self.next);
        self.again = segment + 1;
        self.pipe += 1;
    }

    /// Recomputes what is kept up to date.
    pub(crate) fn check(&self) -> Result<(), String> {
        let open = (self.una..self.next).filter(|&segment| !self.sacked.contains(segment));
        let pipe: u64 = open.map(|segment| self.weight(segment)).sum();
        if pipe == self.pipe {
            Ok(())
        } else {
            Err(format!("a pipe of {} counts {pipe}: {self:?}", self.pipe))
        }
    }
}

/// Takes the segments of `bits` into the highest three, each plus one.
fn note_highest(highest: &mut [u64; DUP_THRESH], start: u64, mut bits: u64) {
    for _ in 0..DUP_THRESH {
        if bits == 0 {
            return;
        }
        let top = 63 - u64::from(bits.leading_zeros());
        bits &= !(1 << top);
        let mut carried = start + top + 1;
        for kept in highest.iter_mut() {
            if carried > *kept {
                std::mem::swap(kept, &mut carried);
            }
        }
    }
}

#[cfg(test)]
#[path = "scoreboard_tests.rs"]
mod tests;
