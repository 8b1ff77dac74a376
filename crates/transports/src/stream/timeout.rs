//! The retransmission timeout.
//!
//! Models: RFC 6298 in full: §2 (the estimate), §3 (one sample a round trip; Karn's rule where no
//! timestamps are used), §5.5 (back-off) and §5.7 (after a lost SYN). All in whole picoseconds.

use kernel::Span;

/// RFC 6298 §2: K.
const K: u64 = 4;

/// What the estimate is bounded by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Before the first sample (§2.1).
    pub(crate) initial: Span,
    /// Floor (§2.4).
    pub(crate) min: Span,
    /// Ceiling (§2.5).
    pub(crate) max: Span,
    /// Clock granularity G.
    pub(crate) granularity: Span,
}

/// One sender's estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Timeout {
    /// Smoothed round-trip time; zero before the first sample.
    srtt: Span,
    /// Its variation.
    variation: Span,
    /// The timeout as it stands, back-off included.
    rto: Span,
}

impl Timeout {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { rto: limits.initial, ..Self::default() }
    }

    /// The timeout as it stands.
    #[inline]
    pub(crate) fn rto(&self) -> Span {
        self.rto
    }

    /// The smoothed round-trip time, if there was a sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Option<Span> {
        (self.srtt > Span::ZERO).then_some(self.srtt)
    }

    /// Takes a sample (§2.2, §2.3). Ends any back-off.
    pub(crate) fn sample(&mut self, rtt: Span, limits: &Limits) {
        let rtt = rtt.max(Span::from_ps(1));
        if self.srtt == Span::ZERO {
            self.srtt = rtt;
            self.variation = rtt / 2;
        } else {
            let off = self.srtt.max(rtt) - self.srtt.min(rtt);
            self.variation = (self.variation * 3 + off) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
        }
        let rto = self.srtt + limits.granularity.max(self.variation * K);
        self.rto = rto.clamp(limits.min, limits.max);
    }

    /// The timer has expired (§5.5).
    pub(crate) fn back_off(&mut self, limits: &Limits) {
        self.rto = (self.rto * 2).min(limits.max);
    }

    /// Data may flow, but the SYN had to be retransmitted: no less than three times the initial timeout
    /// of one second, in proportion where that is configured otherwise (§5.7).
    pub(crate) fn after_lost_syn(&mut self, limits: &Limits) {
        self.rto = self.rto.max(limits.initial * 3).min(limits.max);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        initial: Span::from_us(1_000_000),
        min: Span::from_us(1_000),
        max: Span::from_us(60_000_000),
        granularity: Span::from_us(1),
    };

    /// Samples in microseconds; expected SRTT, RTTVAR and RTO in nanoseconds, worked out by hand.
    #[track_caller]
    fn check(samples: &[u64], expected: (u64, u64, u64)) {
        let mut timeout = Timeout::new(&LIMITS);
        samples.iter().for_each(|&us| timeout.sample(Span::from_us(us), &LIMITS));
        let found = (timeout.srtt, timeout.variation, timeout.rto);
        let ns = |(a, b, c)| (Span::from_ns(a), Span::from_ns(b), Span::from_ns(c));
        assert_eq!(found, ns(expected), "{samples:?}");
    }

    #[test]
    fn samples_give_the_values_of_rfc_6298_worked_out_by_hand() {
        // §2.2: SRTT = R, RTTVAR = R / 2, RTO = R + 4 R / 2 = 3 R.
        check(&[800], (800_000, 400_000, 2_400_000));
        // §2.3: RTTVAR = 3/4 × 400 + 1/4 × |800 - 1600| = 500; SRTT = 7/8 × 800 + 1/8 × 1600 = 900.
        check(&[800, 1_600], (900_000, 500_000, 2_900_000));
        // RTTVAR = 3/4 × 500 + 1/4 × 100 = 400; SRTT = 7/8 × 900 + 1/8 × 800 = 887.5.
        check(&[800, 1_600, 800], (887_500, 400_000, 2_487_500));
        // The floor: 3 × 100 us is below a millisecond.
        check(&[100], (100_000, 50_000, 1_000_000));
        // A steady path: the variation dies out, G stays: 3/4^n.
        check(&[800, 800, 800], (800_000, 225_000, 1_700_000));
    }

    #[test]
    fn granularity_bounds_the_variation_from_below() {
        let limits = Limits { min: Span::ZERO, granularity: Span::from_us(100), ..LIMITS };
        let mut timeout = Timeout::new(&limits);
        (0..50).for_each(|_| timeout.sample(Span::from_us(10), &limits));
        assert_eq!(timeout.rto(), Span::from_us(110));
    }

    #[test]
    fn back_off_doubles_to_the_ceiling_and_a_sample_ends_it() {
        let mut timeout = Timeout::new(&LIMITS);
        let mut seen = vec![timeout.rto().as_seconds()];
        for _ in 0..7 {
            timeout.back_off(&LIMITS);
            seen.push(timeout.rto().as_seconds());
        }
        assert_eq!(seen, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]);
        timeout.sample(Span::from_us(2_000), &LIMITS);
        assert_eq!(timeout.rto(), Span::from_us(6_000));
    }

    #[test]
    fn a_lost_syn_leaves_three_seconds() {
        let mut timeout = Timeout::new(&LIMITS);
        timeout.back_off(&LIMITS);
        timeout.after_lost_syn(&LIMITS);
        assert_eq!(timeout.rto(), Span::from_us(3_000_000));
    }

    proptest! {
        /// The estimate lies between the extremes of its samples, the timeout within its limits.
        #[test]
        fn estimates_stay_within_their_samples(us in prop::collection::vec(1u64..100_000, 1..60)) {
            let mut timeout = Timeout::new(&LIMITS);
            us.iter().for_each(|&us| timeout.sample(Span::from_us(us), &LIMITS));
            let [least, most] = [us.iter().min(), us.iter().max()].map(|x| Span::from_us(*x.unwrap()));
            let srtt = timeout.srtt().unwrap();
            prop_assert!(least - Span::from_ps(8) <= srtt && srtt <= most, "{srtt} of {us:?}");
            prop_assert!(LIMITS.min <= timeout.rto() && timeout.rto() <= LIMITS.max);
            prop_assert!(timeout.rto() >= srtt);
        }
    }
}
