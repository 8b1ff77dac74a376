//! Samples of the round-trip time: one a round trip (RFC 6298 §3).

use kernel::{Span, Time};

/// The segment that is being timed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timed {
    segment: u64,
    at: Time,
    /// Karn's rule: it was retransmitted, or something below it was, so what comes back says nothing.
    is_void: bool,
}

impl Timed {
    /// A segment is sent for the first time; it is timed if the last one has been answered.
    #[inline]
    pub(crate) fn sent(&mut self, segment: u64, una: u64, now: Time) {
        if self.segment < una || segment == 0 {
            *self = Self { segment, at: now, is_void: false };
        }
    }

    /// Some segment is retransmitted.
    pub(crate) fn sent_again(&mut self) {
        self.is_void = true;
    }

    /// The cumulative acknowledgment rises from `una` to `ack`. A sample, if the segment timed is
    /// among those acknowledged: by the clock, or by the echoed stamp, which is valid even for one
    /// retransmitted.
    #[inline]
    pub(crate) fn sample(&self, una: u64, ack: u64, now: Time, echo: Option<Time>) -> Option<Span> {
        if !(una..ack).contains(&self.segment) {
            return None;
        }
        match echo {
            Some(stamp) => Some(now - stamp),
            None => (!self.is_void).then(|| now - self.at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    #[test]
    fn one_segment_a_round_trip_is_timed() {
        let mut timed = Timed::default();
        (0..10).for_each(|segment| timed.sent(segment, 0, at(segment * 10)));
        assert_eq!(timed.sample(0, 1, at(500), None), Some(Span::from_ps(500)));
        timed.sent(10, 1, at(510));
        assert_eq!(timed.sample(1, 10, at(700), None), None);
        timed.sent(11, 5, at(520));
        assert_eq!(timed.sample(10, 11, at(900), None), Some(Span::from_ps(390)));
    }

    #[test]
    fn karns_rule_voids_the_clock_but_not_the_stamp() {
        let mut timed = Timed::default();
        timed.sent(0, 0, at(100));
        timed.sent_again();
        assert_eq!(timed.sample(0, 1, at(900), None), None);
        assert_eq!(timed.sample(0, 1, at(900), Some(at(800))), Some(Span::from_ps(100)));
        timed.sent(1, 1, at(1_000));
        assert_eq!(timed.sample(1, 2, at(1_200), None), Some(Span::from_ps(200)));
    }
}
