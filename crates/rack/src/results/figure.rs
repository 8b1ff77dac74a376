//! Figures over the measured flows, and how far they are known.
//!
//! A flow that a run leaves unfinished has a completion time all the same: at least as long as it was
//! open. It enters every quantile with that. Where the quantile would be another if such a flow took
//! longer, only a bound is known, and only a bound is given: figures over survivors alone would make
//! the slower network look the faster one.

use kernel::{Histogram, PS_PER_SECOND};
use serde_json::{Map, Value, json};

/// A figure of a run, and how far it is known.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Figure {
    /// There is no flow that it could be of.
    #[default]
    Missing,
    /// Known.
    Exact(f64),
    /// Flows that are unfinished may make it larger.
    AtLeast(f64),
    /// Flows that are unfinished may make it smaller.
    AtMost(f64),
}

impl Figure {
    /// The value if it is known.
    #[must_use]
    pub const fn exact(self) -> Option<f64> {
        match self {
            Self::Exact(value) => Some(value),
            _ => None,
        }
    }

    /// The value or its bound.
    #[must_use]
    pub const fn number(self) -> Option<f64> {
        match self {
            Self::Missing => None,
            Self::Exact(value) | Self::AtLeast(value) | Self::AtMost(value) => Some(value),
        }
    }

    /// The same kind of figure with another number.
    #[must_use]
    pub fn map(self, change: impl FnOnce(f64) -> f64) -> Self {
        match self {
            Self::Missing => Self::Missing,
            Self::Exact(value) => Self::Exact(change(value)),
            Self::AtLeast(value) => Self::AtLeast(change(value)),
            Self::AtMost(value) => Self::AtMost(change(value)),
        }
    }

    /// The figure `name` of a table of the summary: a number, or null where there is none or only a
    /// bound. The bound stands below `at_least` or `at_most`, by the same name, so that nobody takes
    /// it for the figure.
    pub fn put(self, name: &str, table: &mut Map<String, Value>) {
        table.insert(name.into(), json!(self.exact()));
        let (bounds, value) = match self {
            Self::AtLeast(value) => ("at_least", value),
            Self::AtMost(value) => ("at_most", value),
            Self::Exact(_) | Self::Missing => return,
        };
        let bounds = table.entry(bounds).or_insert_with(|| json!({}));
        bounds[name] = json!(value);
    }

    /// The figure `name` of such a table.
    #[must_use]
    pub fn get(name: &str, table: &Value) -> Self {
        let number = |value: Option<&Value>| value.and_then(Value::as_f64);
        let bound = |kind: &str| number(table.get(kind).and_then(|bounds| bounds.get(name)));
        match (number(table.get(name)), bound("at_least"), bound("at_most")) {
            (Some(value), _, _) => Self::Exact(value),
            (None, Some(value), _) => Self::AtLeast(value),
            (None, None, Some(value)) => Self::AtMost(value),
            (None, None, None) => Self::Missing,
        }
    }
}

/// A distribution in a few numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quantiles {
    /// How many flows, unfinished ones too.
    pub count: u64,
    /// Those of which only a bound is known.
    pub unfinished: u64,
    /// Their mean.
    pub mean: Figure,
    /// Median.
    pub p50: Figure,
    /// 95th percentile.
    pub p95: Figure,
    /// 99th percentile.
    pub p99: Figure,
    /// 99.9th percentile.
    pub p999: Figure,
    /// Largest.
    pub max: Figure,
    /// The confidence interval of each, in the order of [`Quantiles::named`]: of several seeds.
    pub intervals: [Option<(f64, f64)>; 6],
}

impl Quantiles {
    /// The figures with their names in the summary.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, Figure); 6] {
        [
            ("mean", self.mean),
            ("p50", self.p50),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p999", self.p999),
            ("max", self.max),
        ]
    }

    /// As a table of the summary.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut table = Map::new();
        table.insert("count".into(), self.count.into());
        table.insert("unfinished".into(), self.unfinished.into());
        for (name, figure) in self.named() {
            figure.put(name, &mut table);
        }
        Value::Object(table)
    }
}

/// The rank of the quantile `q` among `count` values, from 1.
fn rank(q: f64, count: u64) -> u64 {
    ((q * count as f64).ceil() as u64).clamp(1, count.max(1))
}

/// The value of this rank, if there are so many.
fn at_rank(values: &Histogram, rank: u64) -> Option<u64> {
    let count = values.count();
    let at = |rank: u64| values.quantile((rank as f64 - 0.5) / count as f64);
    (1..=count).contains(&rank).then(|| at(rank)).flatten()
}

/// Whether two values are the same as far as a histogram tells: to 0.1 %.
fn is_same(a: u64, b: u64) -> bool {
    a.abs_diff(b) <= a.min(b) / 1_000
}

/// Values that are known, and lower bounds of values that are not.
#[derive(Clone, Debug, Default)]
pub struct Censored {
    known: Histogram,
    /// Known values and bounds alike.
    all: Histogram,
    /// The smallest bound: from here on the order of the values is not known.
    bound: Option<u64>,
}

impl Censored {
    /// Adds a value.
    pub fn record(&mut self, value: u64) {
        self.known.record(value);
        self.all.record(value);
    }

    /// Adds a value that is at least `bound`.
    pub fn record_at_least(&mut self, bound: u64) {
        self.all.record(bound);
        self.bound = Some(self.bound.map_or(bound, |least| least.min(bound)));
    }

    /// How many values there are, known or not.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.all.count()
    }

    /// How many are not known.
    #[must_use]
    pub fn unknown(&self) -> u64 {
        self.all.count() - self.known.count()
    }

    /// The smallest value such that a share `q` of all is at or below it. It is least if the unknown
    /// values are their bounds, and most if they are larger than all others: where both agree, as far as
    /// a histogram tells, it is known.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Figure {
        let Some(least) = self.all.quantile(q) else { return Figure::Missing };
        let most = at_rank(&self.known, rank(q, self.count()));
        match most {
            Some(most) if is_same(least, most) => Figure::Exact(least as f64),
            _ => Figure::AtLeast(least as f64),
        }
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> Figure {
        match (self.all.mean(), self.bound) {
            (None, _) => Figure::Missing,
            (Some(mean), None) => Figure::Exact(mean),
            (Some(mean), Some(_)) => Figure::AtLeast(mean),
        }
    }

    /// In a few numbers, each divided by `scale`.
    #[must_use]
    pub fn quantiles(&self, scale: f64) -> Quantiles {
        let at = |q| self.quantile(q).map(|value| value / scale);
        Quantiles {
            count: self.count(),
            unfinished: self.unknown(),
            mean: self.mean().map(|mean| mean / scale),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
            intervals: [None; 6],
        }
    }

    /// The cumulative distribution in at most `limit` points: a value, and the share of all values at or
    /// below it. It ends below 1 where values are unknown, and before the smallest bound.
    #[must_use]
    pub fn cdf(&self, limit: usize) -> Vec<(u64, f64)> {
        let share = self.known.count() as f64 / self.count().max(1) as f64;
        let points = self.known.cdf(limit).into_iter().map(|(value, part)| (value, part * share));
        points.take_while(|&(value, _)| self.bound.is_none_or(|bound| value < bound)).collect()
    }
}

/// Rates of flows in bit/s: of a flow that is unfinished an upper bound is known.
#[derive(Clone, Debug, Default)]
pub struct Goodput {
    known: Histogram,
    all: Histogram,
}

impl Goodput {
    /// Bits over picoseconds, in bit/s.
    fn rate(bits: u64, ps: u64) -> u64 {
        let rate = u128::from(bits) * u128::from(PS_PER_SECOND) / u128::from(ps.max(1));
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// A flow of so many bits took `ps`.
    pub fn record(&mut self, bits: u64, ps: u64) {
        let rate = Self::rate(bits, ps);
        self.known.record(rate);
        self.all.record(rate);
    }

    /// A flow of so many bits takes at least `ps`.
    pub fn record_at_most(&mut self, bits: u64, ps: u64) {
        self.all.record(Self::rate(bits, ps));
    }

    /// As [`Censored::quantile`]: most if the unknown rates are their bounds, least if they are nothing.
    fn quantile(&self, q: f64) -> Figure {
        let Some(most) = self.all.quantile(q) else { return Figure::Missing };
        let rank = rank(q, self.all.count()).saturating_sub(self.unknown());
        match at_rank(&self.known, rank) {
            Some(least) if is_same(least, most) => Figure::Exact(most as f64),
            _ => Figure::AtMost(most as f64),
        }
    }

    fn mean(&self) -> Figure {
        match (self.all.mean(), self.unknown()) {
            (None, _) => Figure::Missing,
            (Some(mean), 0) => Figure::Exact(mean),
            (Some(mean), _) => Figure::AtMost(mean),
        }
    }

    fn unknown(&self) -> u64 {
        self.all.count() - self.known.count()
    }

    /// As a table of the summary: mean, median and first percentile.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut table = Map::new();
        table.insert("count".into(), self.all.count().into());
        table.insert("unfinished".into(), self.unknown().into());
        for (name, figure) in
            [("mean", self.mean()), ("p50", self.quantile(0.5)), ("p01", self.quantile(0.01))]
        {
            figure.put(name, &mut table);
        }
        Value::Object(table)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn censored(known: &[u64], bounds: &[u64]) -> Censored {
        let mut all = Censored::default();
        known.iter().for_each(|&value| all.record(value));
        bounds.iter().for_each(|&bound| all.record_at_least(bound));
        all
    }

    /// The definition, on all values sorted.
    fn quantile(mut values: Vec<u64>, q: f64) -> u64 {
        values.sort_unstable();
        values[((q * values.len() as f64).ceil() as usize).max(1) - 1]
    }

    const QS: [f64; 5] = [0.01, 0.5, 0.95, 0.99, 1.0];

    #[test]
    fn a_quantile_among_unfinished_flows_is_a_bound() {
        let flows = censored(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[20]);
        assert_eq!(flows.quantile(0.5), Figure::Exact(5.0));
        assert_eq!(flows.quantile(0.9), Figure::Exact(9.0));
        assert_eq!(flows.quantile(1.0), Figure::AtLeast(20.0));
        assert_eq!(flows.mean(), Figure::AtLeast(6.5));
        // The unfinished one may end anywhere above 4: so may the median.
        let flows = censored(&[1, 2, 3, 5, 6, 7, 8, 9, 10], &[4]);
        assert_eq!(flows.quantile(0.3), Figure::Exact(3.0));
        assert_eq!(flows.quantile(0.5), Figure::AtLeast(5.0));
        // Where values lie close, one that is unknown hardly matters.
        let known: Vec<u64> = (0..10_000).map(|value| 1_000_000 + value).collect();
        assert!(matches!(censored(&known, &[5]).quantile(0.5), Figure::Exact(_)));
    }

    #[test]
    fn no_flow_has_no_figure_and_a_summary_says_so() {
        let none = Censored::default().quantiles(1.0);
        assert_eq!((none.count, none.p50, none.mean), (0, Figure::Missing, Figure::Missing));
        assert_eq!(none.to_value()["p50"], Value::Null);
        assert_eq!(none.to_value().get("at_least"), None);
        let one = censored(&[], &[7]).quantiles(1.0).to_value();
        assert_eq!((&one["p99"], &one["at_least"]["p99"]), (&Value::Null, &json!(7.0)));
        assert_eq!(Figure::get("p99", &one), Figure::AtLeast(7.0));
        assert_eq!(Figure::get("count", &one), Figure::Exact(1.0));
        assert_eq!(Figure::get("p42", &one), Figure::Missing);
    }

    #[test]
    fn goodput_of_unfinished_flows_is_bounded_from_above() {
        let mut goodput = Goodput::default();
        // A second each: 10 to 100 bit/s; one that is unfinished after a second has at most 15.
        (1..=10).for_each(|tens| goodput.record(tens * 10, PS_PER_SECOND));
        goodput.record_at_most(15, PS_PER_SECOND);
        let value = goodput.to_value();
        assert_eq!(Figure::get("p50", &value), Figure::Exact(50.0));
        assert_eq!(Figure::get("p01", &value), Figure::AtMost(10.0));
        assert!(matches!(Figure::get("mean", &value), Figure::AtMost(mean) if mean > 51.0));
        assert_eq!(Goodput::default().to_value()["mean"], Value::Null);
    }

    proptest! {
        /// Whatever the unfinished flows come to, an exact quantile is that of all, and a bound is one.
        #[test]
        fn figures_hold_whatever_unfinished_flows_come_to(
            known in prop::collection::vec(0u64..2_000, 0..60),
            open in prop::collection::vec((0u64..2_000, 0u64..5_000), 0..20),
        ) {
            prop_assume!(!known.is_empty() || !open.is_empty());
            let bounds: Vec<u64> = open.iter().map(|&(bound, _)| bound).collect();
            let flows = censored(&known, &bounds);
            let ended = open.iter().map(|&(bound, more)| bound + more);
            let all: Vec<u64> = known.iter().copied().chain(ended).collect();
            for q in QS {
                let (truth, found) = (quantile(all.clone(), q) as f64, flows.quantile(q));
                match found {
                    // Below 2,000 the histogram keeps every value; above 1,000 two are the same to 0.1 %.
                    Figure::Exact(value) => {
                        prop_assert!((value - truth).abs() <= truth / 1_000.0, "q {}: {}", q, value);
                    }
                    Figure::AtLeast(value) => prop_assert!(value <= truth, "q {}: {} above {}", q, value, truth),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
            prop_assert!(flows.mean().number().unwrap() <= mean + 1e-9);
            for (value, share) in flows.cdf(50) {
                let below = all.iter().filter(|&&v| v <= value).count() as f64 / all.len() as f64;
                prop_assert!((share - below).abs() < 1e-9, "{} of {} at {}", share, below, value);
            }
        }
    }
}
