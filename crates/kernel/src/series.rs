//! A time series that keeps a bounded number of rows however long the run.
//!
//! Samples come at the end of equal intervals. When the table is full, neighbouring rows combine
//! (mean weighted by their lengths, maximum or sum, column by column) and the interval doubles: the
//! table covers the whole run, ever more coarsely, and its means, maxima and sums stay true.

use crate::{Span, Time};

/// Rows kept at most, unless told otherwise: a point for each pixel of a wide plot (our choice).
const ROWS: usize = 1024;

/// How two neighbouring samples of a column become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// Their mean, weighted by the lengths of their intervals.
    Mean,
    /// The larger.
    Max,
    /// Both together.
    Sum,
}

/// Rows of values over time.
///
/// ```
/// use kernel::{Combine, Series, Span, Time};
/// let mut queue = Series::with_rows(vec![Combine::Max], Span::from_ns(10), 2);
/// for depth in [3.0, 7.0, 5.0] {
///     queue.push(queue.next_sample_at(), &[depth]);
/// }
/// let rows: Vec<_> = queue.rows().map(|(end, row)| (end.as_ps(), row[0])).collect();
/// assert_eq!(rows, [(20_000, 7.0), (30_000, 5.0)]);
/// assert_eq!(queue.next_sample_at(), Time::from_ps(40_000));
/// ```
#[derive(Clone, Debug)]
pub struct Series {
    columns: Vec<Combine>,
    interval: Span,
    rows_max: usize,
    /// End of each row's interval; the first starts at zero, each other where the last ended.
    ends: Vec<Time>,
    /// Row by row.
    values: Vec<f64>,
}

impl Series {
    /// An empty series of at most 1024 rows, sampled each `interval` at first.
    ///
    /// # Panics
    /// If the interval is zero.
    #[must_use]
    pub fn new(columns: Vec<Combine>, interval: Span) -> Self {
        Self::with_rows(columns, interval, ROWS)
    }

    /// An empty series of at most `rows_max` rows.
    ///
    /// # Panics
    /// If the interval is zero or `rows_max` is not an even number above zero.
    #[must_use]
    pub fn with_rows(columns: Vec<Combine>, interval: Span, rows_max: usize) -> Self {
        assert!(interval > Span::ZERO, "a series sampled without pause");
        assert!(rows_max > 0 && rows_max.is_multiple_of(2), "a series of {rows_max} rows");
        Self { columns, interval, rows_max, ends: vec![], values: vec![] }
    }

    /// The time between samples now.
    #[must_use]
    pub fn interval(&self) -> Span {
        self.interval
    }

    /// The end of the last row; zero before the first.
    #[must_use]
    pub fn end(&self) -> Time {
        self.ends.last().copied().unwrap_or(Time::ZERO)
    }

    /// When the next sample is due: the first multiple of the interval after the last sample.
    #[must_use]
    pub fn next_sample_at(&self) -> Time {
        let passed = (self.end() - Time::ZERO) / self.interval;
        Time::ZERO + self.interval * (passed + 1)
    }

    /// Adds the sample of the interval that ended at `at`: when it was due, later, or (only the
    /// last of a run) earlier. The row stands for the time that it covers.
    ///
    /// # Panics
    /// If `at` is not after the last sample or the row has the wrong number of columns.
    pub fn push(&mut self, at: Time, row: &[f64]) {
        assert!(at > self.end(), "a sample at {at}, not after the last at {}", self.end());
        assert_eq!(row.len(), self.columns.len(), "columns of a sample");
        if self.ends.len() == self.rows_max {
            self.halve();
        }
        self.ends.push(at);
        self.values.extend_from_slice(row);
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no row yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The end of each row's interval, and its values.
    pub fn rows(&self) -> impl Iterator<Item = (Time, &[f64])> {
        let width = self.columns.len();
        self.ends
            .iter()
            .enumerate()
            .map(move |(row, &end)| (end, &self.values[row * width..(row + 1) * width]))
    }

    /// Combines each pair of neighbouring rows and doubles the interval.
    fn halve(&mut self) {
        let width = self.columns.len();
        let mut start = Time::ZERO;
        for pair in 0..self.ends.len() / 2 {
            let (middle, end) = (self.ends[2 * pair], self.ends[2 * pair + 1]);
            let (first, second) = ((middle - start).as_ps(), (end - middle).as_ps());
            for (column, rule) in self.columns.iter().enumerate() {
                let left = self.values[2 * pair * width + column];
                let right = self.values[(2 * pair + 1) * width + column];
                self.values[pair * width + column] = match rule {
                    Combine::Mean => weighted_mean(left, first, right, second),
                    Combine::Max => left.max(right),
                    Combine::Sum => left + right,
                };
            }
            self.ends[pair] = end;
            start = end;
        }
        self.ends.truncate(self.rows_max / 2);
        self.values.truncate(self.rows_max / 2 * width);
        self.interval = self.interval * 2;
    }
}

/// The mean of two values that held for so many picoseconds each. Equal lengths, the usual case,
/// take the plain mean: exact to the last bit.
fn weighted_mean(left: f64, left_ps: u64, right: f64, right_ps: u64) -> f64 {
    if left_ps == right_ps {
        return (left + right) / 2.0;
    }
    let all = left_ps as f64 + right_ps as f64;
    left * (left_ps as f64 / all) + right * (right_ps as f64 / all)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COLUMNS: [Combine; 3] = [Combine::Mean, Combine::Max, Combine::Sum];

    fn series(rows: usize) -> Series {
        Series::with_rows(COLUMNS.to_vec(), Span::from_ps(10), rows)
    }

    #[test]
    fn a_long_run_keeps_few_rows_and_loses_nothing() {
        let mut all = series(8);
        while all.end() < Time::from_ps(123_456_789) {
            let at = all.next_sample_at();
            let covered = (at - all.end()).as_ps() as f64;
            all.push(at, &[covered, covered, covered]);
        }
        assert!(all.len() <= 8);
        let total: f64 = all.rows().map(|(_, row)| row[2]).sum();
        assert_eq!(total, all.end().as_ps() as f64);
        // Every interval is the base interval times a power of two.
        assert!((all.interval().as_ps() / 10).is_power_of_two());
        assert!(all.rows().all(|(end, _)| end.as_ps() % 10 == 0));
    }

    proptest! {
        #[test]
        fn combining_keeps_integral_maximum_and_sum(
            // Up to 40 samples, since each may double the time covered. How late, and the value.
            samples in prop::collection::vec((0u64..100, 0u32..1000), 1..40),
            half in 1usize..10,
        ) {
            let mut all = series(2 * half);
            let (mut now, mut integral, mut sum, mut max) = (Time::ZERO, 0.0, 0.0, 0.0f64);
            for (late, value) in samples {
                let covered = all.next_sample_at() + Span::from_ps(late) - now;
                now += covered;
                let value = f64::from(value);
                all.push(now, &[value; 3]);
                integral += value * covered.as_ps() as f64;
                sum += value;
                max = max.max(value);
                prop_assert!(all.len() <= 2 * half);
                prop_assert!(all.next_sample_at() > now);
                prop_assert_eq!(all.next_sample_at().as_ps() % all.interval().as_ps(), 0);
            }
            let (mut start, mut found) = (Time::ZERO, [0.0, 0.0f64, 0.0]);
            for (end, row) in all.rows() {
                found[0] += row[0] * (end - start).as_ps() as f64;
                found[1] = found[1].max(row[1]);
                found[2] += row[2];
                start = end;
            }
            prop_assert_eq!(start, now);
            prop_assert!((found[0] - integral).abs() <= 1e-9 * integral, "{} {}", found[0], integral);
            prop_assert_eq!(found[1], max);
            prop_assert_eq!(found[2], sum);
        }
    }

    #[test]
    fn a_late_sample_weighs_what_it_covers() {
        let mut all = series(2);
        all.push(Time::from_ps(10), &[1.0, 1.0, 1.0]);
        all.push(Time::from_ps(40), &[5.0, 5.0, 5.0]);
        all.push(Time::from_ps(50), &[0.0, 0.0, 0.0]);
        let (end, row) = all.rows().next().unwrap();
        assert_eq!((end, row), (Time::from_ps(40), &[4.0, 5.0, 6.0][..]));
        assert_eq!(all.next_sample_at(), Time::from_ps(60));
    }

    #[test]
    fn the_default_table_has_1024_rows() {
        let mut all = Series::new(vec![], Span::from_ps(1));
        assert!(all.is_empty());
        (0..1025).for_each(|_| all.push(all.next_sample_at(), &[]));
        assert_eq!(all.len(), 513);
    }

    #[test]
    #[should_panic(expected = "a sample at 10 ps, not after the last at 10 ps")]
    fn time_must_pass_between_samples() {
        let mut all = series(2);
        all.push(Time::from_ps(10), &[0.0; 3]);
        all.push(Time::from_ps(10), &[0.0; 3]);
    }

    #[test]
    #[should_panic(expected = "a series of 3 rows")]
    fn rows_come_in_pairs() {
        let _ = series(3);
    }
}
