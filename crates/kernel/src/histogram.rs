//! The distribution of many values in little memory.
//!
//! Buckets as in HdrHistogram, by the `hdrhistogram` crate: three significant digits over the whole
//! range of 64 bits, at most half a megabyte however many values. Count, mean, minimum and maximum
//! are exact; quantiles are at most 0.1 % above the true value and never below it.

use hdrhistogram::Histogram as Buckets;

/// Significant decimal digits kept: an error of 0.1 % (our choice).
const DIGITS: u8 = 3;

/// A mergeable summary of unsigned values.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Buckets<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// A histogram of no values.
    #[must_use]
    pub fn new() -> Self {
        let buckets = Buckets::new(DIGITS).expect("three digits is within the crate's bounds");
        Self { buckets, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Adds `value`.
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Adds `value`, `count` times.
    pub fn record_n(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.buckets.record_n(value, count).expect("the histogram resizes itself");
        self.sum += u128::from(value) * u128::from(count);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds every value of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        self.buckets.add(&other.buckets).expect("the histogram resizes itself");
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Whether no value was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The exact sum of the values.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The mean, rounded only as a float is; `None` without values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The smallest value, exactly.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min)
    }

    /// The largest value, exactly.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    /// The smallest value such that a share `q` of the values is at or below it: never too small,
    /// at most 0.1 % too large. `q` of 0 gives the minimum, 1 the maximum, both exactly.
    ///
    /// # Panics
    /// Unless 0 <= q <= 1.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<u64> {
        assert!((0.0..=1.0).contains(&q), "quantile {q}");
        if q == 0.0 {
            return self.min();
        }
        let value = self.buckets.value_at_quantile(q);
        (!self.is_empty()).then(|| value.clamp(self.min, self.max))
    }

    /// Points of the cumulative distribution: a value, and the share of values at or below it, both
    /// rising, the last share 1. At most `limit` points, chosen so that neither steep parts (much
    /// share in few buckets) nor long tails (little share in many) lose their shape.
    ///
    /// # Panics
    /// If `limit` is less than 4.
    #[must_use]
    pub fn cdf(&self, limit: usize) -> Vec<(u64, f64)> {
        assert!(limit >= 4, "a distribution in {limit} points");
        let steps = (limit / 2 - 1) as u64;
        let filled = self.buckets.iter_recorded().count() as u64;
        let (bucket_step, count_step) = (filled.div_ceil(steps), self.count().div_ceil(steps));
        let (mut points, mut seen) = (vec![], 0);
        let (mut next_bucket, mut next_count) = (1, 1);
        for (bucket, step) in (1..).zip(self.buckets.iter_recorded()) {
            seen += step.count_since_last_iteration();
            if bucket >= next_bucket || seen >= next_count || bucket == filled {
                let value = step.value_iterated_to().clamp(self.min, self.max);
                points.push((value, seen as f64 / self.count() as f64));
                (next_bucket, next_count) = (bucket + bucket_step, seen + count_step);
            }
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut all = Histogram::new();
        values.iter().for_each(|&value| all.record(value));
        all
    }

    /// The definition, on all values sorted: the oracle.
    fn quantile(sorted: &[u64], q: f64) -> u64 {
        sorted[((q * sorted.len() as f64).ceil() as usize).max(1) - 1]
    }

    /// Values of every magnitude.
    fn value() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0u32..64).prop_map(|(bits, shift)| bits >> shift)
    }

    proptest! {
        #[test]
        fn agrees_with_all_values_sorted(mut values in prop::collection::vec(value(), 1..400)) {
            let all = histogram(&values);
            values.sort_unstable();
            let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
            prop_assert_eq!(all.count(), values.len() as u64);
            prop_assert_eq!(all.sum(), sum);
            prop_assert_eq!(all.mean(), Some(sum as f64 / values.len() as f64));
            prop_assert_eq!(all.min(), values.first().copied());
            prop_assert_eq!(all.max(), values.last().copied());
            for q in [0.0, 0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999, 1.0] {
                let (found, exact) = (all.quantile(q).unwrap(), quantile(&values, q));
                prop_assert!(found >= exact, "q {}: {} below {}", q, found, exact);
                prop_assert!(found - exact <= exact / 1000, "q {}: {} for {}", q, found, exact);
            }
        }

        #[test]
        fn merging_is_the_same_as_recording_all(
            a in prop::collection::vec(value(), 0..100),
            b in prop::collection::vec(value(), 0..100),
        ) {
            let mut merged = histogram(&a);
            merged.merge(&histogram(&b));
            let together = histogram(&[a, b].concat());
            prop_assert_eq!(merged.sum(), together.sum());
            prop_assert_eq!(merged.min(), together.min());
            prop_assert_eq!(merged.max(), together.max());
            prop_assert_eq!(merged.cdf(1000), together.cdf(1000));
        }

        #[test]
        fn the_distribution_rises_to_one_in_a_bounded_number_of_points(
            values in prop::collection::vec(value(), 1..400), limit in 4usize..60,
        ) {
            let points = histogram(&values).cdf(limit);
            prop_assert!(points.len() <= limit, "{} points of {}", points.len(), limit);
            prop_assert!(points.windows(2).all(|p| p[0].0 < p[1].0 && p[0].1 < p[1].1));
            prop_assert_eq!(points.last().unwrap().1, 1.0);
            for &(value, share) in &points {
                let below = values.iter().filter(|&&v| v <= value).count();
                prop_assert_eq!(share, below as f64 / values.len() as f64);
            }
        }
    }

    #[test]
    fn keeps_the_shape_of_a_steep_body_and_a_long_tail() {
        let mut all = Histogram::new();
        (1..=100).for_each(|value| all.record_n(value, 1000));
        (0..1000).for_each(|step| all.record(1000 + step * 1_000_000));
        let points = all.cdf(100);
        let body = points.iter().filter(|p| p.0 <= 100).count();
        assert!(body >= 30, "{body} points for 99 % of the values");
        assert!(points.len() - body >= 30, "{} points for the tail", points.len() - body);
    }

    #[test]
    fn knows_nothing_when_empty_and_ignores_nothing_recorded_no_times() {
        let mut none = Histogram::default();
        none.record_n(5, 0);
        assert!(none.is_empty());
        assert_eq!((none.mean(), none.min(), none.max()), (None, None, None));
        assert_eq!((none.quantile(0.0), none.quantile(0.5)), (None, None));
        assert!(none.cdf(10).is_empty());
    }

    #[test]
    fn the_sum_outgrows_64_bits_exactly() {
        let mut all = Histogram::new();
        all.record_n(u64::MAX, 1 << 40);
        assert_eq!(all.sum(), u128::from(u64::MAX) << 40);
        assert_eq!(all.quantile(0.5), Some(u64::MAX));
    }
}
