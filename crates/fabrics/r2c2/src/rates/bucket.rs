//! The token bucket that holds a flow to its rate.
//!
//! Models: R2C2 §3.5, §4.2 (claims M24, I14): one bucket a flow, at its source; the proportions of its
//! paths are fixed, so one is enough. A flow whose rate has not been computed yet sends as fast as its
//! links can (E02). Exact: tokens are counted in millionths of millionths of a bit, so any rate in
//! whole bits per second over any time in picoseconds adds a whole number of them.

use kernel::{Bytes, PS_PER_SECOND, Rate, Span, Time};

/// Tokens of a byte.
const BYTE: u64 = 8 * PS_PER_SECOND;

/// A token bucket, full at first.
///
/// ```
/// use kernel::{Bytes, Rate, Span, Time};
/// use r2c2::rates::Bucket;
/// let packet = Bytes::new(1500);
/// let mut bucket = Bucket::new(packet * 2, Time::ZERO);
/// bucket.set_pace(Time::ZERO, Some(Rate::from_gbps(1)));
/// for _ in 0..2 {
///     assert_eq!(bucket.ready_at(packet), Time::ZERO);
///     bucket.take(Time::ZERO, packet);
/// }
/// assert_eq!(bucket.ready_at(packet), Time::ZERO + Span::from_us(12));
/// ```
#[derive(Clone, Debug)]
pub struct Bucket {
    /// How fast tokens come; none if no rate holds the flow back.
    pace: Option<Rate>,
    /// Tokens when full, and now.
    full: u64,
    tokens: u64,
    /// When "now" was.
    since: Time,
}

impl Bucket {
    /// A bucket that holds `burst`, of a flow that no rate holds back yet. **Our choice** for the
    /// burst is two packets (E26): no less will do, as rates and packets do not divide each other,
    /// and more would only fill queues.
    ///
    /// # Panics
    /// If the burst is more than 2.3 MB, the most that 64 bits of tokens count.
    #[must_use]
    pub fn new(burst: Bytes, now: Time) -> Self {
        let full = burst.get().checked_mul(BYTE);
        let full = full.unwrap_or_else(|| panic!("a burst of {burst}; expected at most 2.3 MB"));
        Self { pace: None, full, tokens: full, since: now }
    }

    /// How fast tokens come.
    #[must_use]
    pub fn pace(&self) -> Option<Rate> {
        self.pace
    }

    /// Changes how fast tokens come; what has come stays.
    ///
    /// # Panics
    /// If `now` is before what the bucket has seen.
    pub fn set_pace(&mut self, now: Time, pace: Option<Rate>) {
        self.refill(now);
        self.pace = pace;
    }

    /// When a packet of this size may go, if nothing else goes before: the first picosecond at which
    /// there are tokens for it. [`Time::NEVER`] at a rate of zero.
    ///
    /// # Panics
    /// If the packet is larger than the burst.
    #[inline]
    #[must_use]
    pub fn ready_at(&self, size: Bytes) -> Time {
        let missing = self.cost(size).saturating_sub(self.tokens);
        match self.pace {
            Some(pace) if missing > 0 => {
                let wait = missing.checked_add(pace.as_bps().saturating_sub(1));
                let wait = wait.and_then(|work| work.checked_div(pace.as_bps()));
                wait.map_or(Time::NEVER, |wait| self.since + Span::from_ps(wait))
            }
            _ => self.since,
        }
    }

    /// Takes the tokens for a packet that goes now.
    ///
    /// # Panics
    /// If there are not enough, or `now` is before what the bucket has seen.
    #[inline]
    pub fn take(&mut self, now: Time, size: Bytes) {
        self.refill(now);
        let (cost, tokens) = (self.cost(size), self.tokens);
        assert!(
            cost <= tokens,
            "a packet of {size} at {now}; it may go at {}",
            self.ready_at(size)
        );
        if self.pace.is_some() {
            self.tokens -= cost;
        }
    }

    fn cost(&self, size: Bytes) -> u64 {
        let cost = size.get().saturating_mul(BYTE);
        assert!(cost <= self.full, "a packet of {size} and a burst of {} B", self.full / BYTE);
        cost
    }

    #[inline]
    fn refill(&mut self, now: Time) {
        let span = now - self.since;
        self.since = now;
        let missing = self.full - self.tokens;
        self.tokens = match self.pace {
            Some(pace) => {
                let come = u128::from(pace.as_bps()) * u128::from(span.as_ps());
                self.full - missing.saturating_sub(u64::try_from(come).unwrap_or(u64::MAX))
            }
            None => self.full,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACKET: Bytes = Bytes::new(1500);

    /// Tokens that come at `bps` in a time, exactly.
    fn tokens(bps: u64, from: Time, to: Time) -> u128 {
        u128::from(bps) * u128::from((to - from).as_ps())
    }

    fn bucket(bps: u64) -> Bucket {
        let mut bucket = Bucket::new(PACKET * 2, Time::ZERO);
        bucket.set_pace(Time::ZERO, Some(Rate::from_bps(bps)));
        bucket
    }

    proptest! {
        #[test]
        fn i14_no_window_has_more_than_its_rate_and_a_burst(
            bps in 1u64..400_000_000_000,
            sizes in prop::collection::vec(1u64..=1500, 1..60),
            pauses in prop::collection::vec(0u64..30_000_000, 60),
        ) {
            let mut bucket = bucket(bps);
            let (mut now, mut sent) = (Time::ZERO, Vec::new());
            for (&size, &pause) in sizes.iter().zip(&pauses) {
                // Every other packet is late.
                let late = Span::from_ps(if pause % 2 == 0 { 0 } else { pause });
                now = bucket.ready_at(Bytes::new(size)) + late;
                bucket.take(now, Bytes::new(size));
                sent.push((now, size));
            }
            let burst = u128::from(3000 * BYTE);
            for (first, &(from, _)) in sent.iter().enumerate() {
                let mut all = 0;
                for &(to, size) in &sent[first..] {
                    all += u128::from(size) * u128::from(BYTE);
                    prop_assert!(all <= tokens(bps, from, to) + burst);
                }
            }
            prop_assert!(now >= Time::ZERO);
        }

        #[test]
        fn m24_a_flow_that_always_has_packets_gets_its_rate_to_the_picosecond(
            bps in 1u64..400_000_000_000, packets in 1u64..500,
        ) {
            let mut bucket = bucket(bps);
            let mut now = Time::ZERO;
            for _ in 0..packets {
                now = bucket.ready_at(PACKET);
                bucket.take(now, PACKET);
            }
            // The last went as soon as the rate had brought what the burst had not.
            let work = u128::from(packets.saturating_sub(2) * 1500) * u128::from(BYTE);
            prop_assert_eq!(u128::from(now.as_ps()), work.div_ceil(u128::from(bps)));
        }

        #[test]
        fn tokens_that_came_at_an_earlier_pace_are_kept(
            paces in prop::collection::vec((1u64..100_000_000_000, 0u64..1_000_000), 1..20),
        ) {
            let mut bucket = bucket(1);
            bucket.take(Time::ZERO, PACKET);
            bucket.take(Time::ZERO, PACKET);
            let (mut now, mut come) = (Time::ZERO, 0);
            for &(bps, ps) in &paces {
                bucket.set_pace(now, Some(Rate::from_bps(bps)));
                come += tokens(bps, now, now + Span::from_ps(ps));
                now += Span::from_ps(ps);
            }
            bucket.set_pace(now, Some(Rate::from_bps(1)));
            prop_assert_eq!(u128::from(bucket.tokens), come.min(u128::from(bucket.full)));
        }
    }

    #[test]
    fn e02_a_flow_without_a_rate_is_not_held_back() {
        let mut bucket = Bucket::new(PACKET * 2, Time::ZERO);
        let now = Time::from_ps(77);
        for _ in 0..1000 {
            bucket.take(now, PACKET);
            assert_eq!(bucket.ready_at(PACKET), now);
        }
        // Once it has one, its burst is all that it has in hand.
        bucket.set_pace(now, Some(Rate::default()));
        bucket.take(now, PACKET);
        bucket.take(now, PACKET);
        assert_eq!(bucket.ready_at(Bytes::new(1)), Time::NEVER);
    }

    #[test]
    #[should_panic(expected = "it may go at")]
    fn a_packet_before_its_time_is_refused() {
        let mut bucket = bucket(1_000_000_000);
        (0..3).for_each(|_| bucket.take(Time::ZERO, PACKET));
    }

    #[test]
    #[should_panic(expected = "a burst of 3000 B")]
    fn a_packet_larger_than_the_burst_would_wait_for_ever() {
        let _ = bucket(1_000_000_000).ready_at(Bytes::new(3001));
    }
}
