//! Where segments begin and end in a stream of bytes that messages are appended to.
//!
//! Models: RFC 9293 §3.9.1 (what is handed over is sent as segments allow, whatever its boundaries) and RFC 896
//! (Nagle: while something is not acknowledged, a segment that is not full waits for more).

use kernel::Ring;

use super::config::Plan;

/// The cuts of one stream. Only those of segments that are not acknowledged are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cuts {
    /// Bytes handed over.
    written: u64,
    /// Where the segments from `first` on end; the last of them where new data begins.
    ends: Ring<u64>,
    /// The first segment that is kept, and where it begins.
    first: u64,
    begin: u64,
}

impl Cuts {
    /// Bytes handed over so far.
    #[inline]
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Bytes in segments so far.
    fn cut(&self) -> u64 {
        self.ends.len().checked_sub(1).map_or(self.begin, |last| self.end(last))
    }

    #[inline]
    fn end(&self, index: usize) -> u64 {
        *self.ends.get(index).expect("a segment that was cut and is kept")
    }

    /// More is handed over.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Bytes that were handed over and are in no segment yet.
    #[inline]
    pub(crate) fn waiting(&self) -> u64 {
        self.written - self.cut()
    }

    /// Whether a segment may be cut now, where `flight` segments are not acknowledged.
    #[inline]
    pub(crate) fn may_cut(&self, flight: u64, plan: &Plan) -> bool {
        let waiting = self.waiting();
        waiting >= u64::from(plan.segment) || (waiting > 0 && (flight == 0 || !plan.nagle))
    }

    /// Cuts the next segment: as much as there is, up to a full one.
    pub(crate) fn cut_next(&mut self, plan: &Plan) {
        let from = self.cut();
        debug_assert!(from < self.written, "nothing to cut: {self:?}");
        self.ends.push(self.written.min(from + u64::from(plan.segment)));
    }

    /// Bytes in the segments below one that is not acknowledged, or the first that is not cut.
    #[inline]
    pub(crate) fn below(&self, segment: u64) -> u64 {
        match segment - self.first {
            0 => self.begin,
            index => self.end(index as usize - 1),
        }
    }

    /// Bytes of a segment that is not acknowledged.
    #[inline]
    pub(crate) fn length(&self, segment: u64) -> u16 {
        (self.below(segment + 1) - self.below(segment)) as u16
    }

    /// Everything below a segment is acknowledged.
    pub(crate) fn retire(&mut self, segment: u64) {
        while self.first < segment {
            self.begin = self.ends.pop().expect("a segment that was cut");
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::Span;
    use proptest::prelude::*;

    use super::*;
    use crate::stream::config::{Config, Echo};

    fn plan(nagle: bool) -> Plan {
        let config = Config { connections: 1, nagle, ..Config::default() };
        config.plan(Span::from_us(1), Echo::None)
    }

    #[test]
    fn a_short_segment_waits_while_something_is_under_way_and_nagle_says_so() {
        for nagle in [false, true] {
            let (mut cuts, plan) = (Cuts::default(), plan(nagle));
            assert!(!cuts.may_cut(0, &plan), "there is nothing");
            cuts.write(100);
            assert!(cuts.may_cut(0, &plan));
            assert_eq!(cuts.may_cut(1, &plan), !nagle);
            cuts.write(u64::from(plan.segment) - 100);
            assert!(cuts.may_cut(1, &plan), "a full one does not wait");
            cuts.write(1);
            cuts.cut_next(&plan);
            assert_eq!(cuts.length(0), plan.segment);
            assert_eq!(cuts.may_cut(1, &plan), !nagle);
        }
    }

    proptest! {
        /// Against a list of all segments: they hold every byte once, in order, none is longer than a full one, and
        /// one is shorter only if nothing more was there when it was cut.
        #[test]
        fn segments_hold_every_byte_once(steps in prop::collection::vec((0u8..3, 1u64..5_000), 1..200)) {
            let plan = plan(false);
            let (mut cuts, mut ends, mut retired) = (Cuts::default(), vec![0], 0);
            let mut written = 0;
            for (step, amount) in steps {
                match step {
                    0 => {
                        cuts.write(amount);
                        written += amount;
                    }
                    1 if cuts.may_cut(1, &plan) => {
                        let from = *ends.last().unwrap();
                        cuts.cut_next(&plan);
                        ends.push(written.min(from + u64::from(plan.segment)));
                    }
                    1 => prop_assert_eq!(*ends.last().unwrap(), written),
                    _ => {
                        retired += amount % (ends.len() as u64 - retired);
                        cuts.retire(retired);
                    }
                }
                prop_assert_eq!(cuts.written(), written);
                prop_assert_eq!(cuts.waiting(), written - *ends.last().unwrap());
                for segment in retired..ends.len() as u64 {
                    prop_assert_eq!(cuts.below(segment), ends[segment as usize]);
                }
            }
        }
    }
}
