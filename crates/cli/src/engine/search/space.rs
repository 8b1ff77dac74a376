//! What a search goes over: keys of the scenario, and what each may be.

use std::fmt::Display;
use std::str::FromStr;

use kernel::{Bytes, Rate, Span};
use scenario::{BadInput, Located};

use super::super::sweep::Axis;
use super::FABRIC;

/// One key and what it may be: `--over fabric.nodes=16..64/16`, `--over fabric.transport.kind=ndp,homa`.
#[derive(Clone, PartialEq, Debug)]
pub struct Over {
    /// The key, as for `--set`.
    pub key: String,
    /// As it was given.
    pub text: String,
    /// What its values are.
    pub range: Range,
}

/// The values of a key. A sampler knows each by a number.
#[derive(Clone, PartialEq, Debug)]
pub enum Range {
    /// One of these, which have no order; its number is its place.
    Choice(Vec<String>),
    /// One of these numbers, in their order; its number is its place.
    Ordered(Vec<String>),
    /// A whole number.
    Whole {
        /// The least.
        low: u64,
        /// The largest that may come.
        high: u64,
        /// From one to the next.
        step: u64,
        /// Whether it is searched by its logarithm.
        log: bool,
    },
    /// Any number between two.
    Real {
        /// The least, in the base unit.
        low: f64,
        /// The largest.
        high: f64,
        /// Whether it is searched by its logarithm.
        log: bool,
        /// What a number of the base unit is written as.
        quantity: Quantity,
    },
}

/// What a number measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Nothing: it stands for itself.
    Number,
    /// Picoseconds.
    Time,
    /// Bytes.
    Size,
    /// Bits per second.
    Rate,
}

/// Digits of a number that is searched. Our choice: finer differences are below what the chance of a workload
/// makes of them, and points would have endless names.
const DIGITS: usize = 4;

impl Over {
    /// Reads `KEY=LOW..HIGH`, with `/STEP` or ` log` behind it, or `KEY=V1,V2,...`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadInput> {
        let bad =
            |message: String| BadInput::single(Located::whole(&format!("--over {text}"), message));
        let (key, values) =
            text.split_once('=').map_or(("", ""), |(key, values)| (key.trim(), values.trim()));
        if key.is_empty() || values.is_empty() {
            let message =
                "expected KEY=LOW..HIGH or KEY=VALUE,VALUE,..., such as fabric.nodes=16..64";
            return Err(bad(message.into()));
        }
        let range = match values.split_once("..") {
            Some((low, high)) => range(low.trim(), high.trim()).map_err(bad)?,
            None => {
                let same = |problem: &Located| {
                    Located::whole(&format!("--over {text}"), problem.message().to_string())
                };
                let axis = Axis::parse(text)
                    .map_err(|bad| BadInput::new(bad.problems().iter().map(same).collect()))?;
                match key == FABRIC {
                    // Names, not values of a key: quotes only keep their commas together.
                    true => Range::Choice(axis.values.iter().map(|name| bare(name)).collect()),
                    false => listed(axis.values),
                }
            }
        };
        Ok(Self { key: key.into(), text: text.into(), range })
    }
}

/// A name without the quotes around it.
fn bare(name: &str) -> String {
    name.trim_matches(['"', '\'']).into()
}

/// Values of a list: numbers have an order, whatever the order of the list.
fn listed(mut values: Vec<String>) -> Range {
    let number = |value: &String| value.parse::<f64>().ok();
    if values.iter().any(|value| number(value).is_none()) {
        return Range::Choice(values);
    }
    values.sort_by(|a, b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
    Range::Ordered(values)
}

/// A range by its ends.
fn range(low: &str, rest: &str) -> Result<Range, String> {
    let (rest, log) = match rest.strip_suffix("log") {
        Some(rest) => (rest.trim(), true),
        None => (rest, false),
    };
    let (high, step) = match rest.split_once('/') {
        Some((high, step)) => (high.trim(), Some(step.trim())),
        None => (rest, None),
    };
    if let (Ok(low), Ok(high)) = (low.parse::<u64>(), high.parse::<u64>()) {
        let step = step.map_or(Ok(1), |step| {
            let whole = step.parse::<u64>().ok().filter(|step| *step > 0);
            whole
                .ok_or_else(|| format!("found a step of {step:?}; expected a whole number above 0"))
        })?;
        if low >= high || (log && (low == 0 || step > 1)) {
            return Err(wrong_ends(log));
        }
        return Ok(Range::Whole { low, high: high - (high - low) % step, step, log });
    }
    if step.is_some() {
        return Err("found a step; only ranges of whole numbers have one".into());
    }
    let (low, quantity) = Quantity::read(low).ok_or_else(|| unreadable(low))?;
    let (high, same) = Quantity::read(high).ok_or_else(|| unreadable(high))?;
    if quantity != same {
        return Err(
            "found ends of different kinds; expected two numbers, times, sizes or rates".into()
        );
    }
    if low >= high || (log && low <= 0.0) {
        return Err(wrong_ends(log));
    }
    Ok(Range::Real { low, high, log, quantity })
}

fn unreadable(text: &str) -> String {
    format!(
        "found {text:?}; expected a number, or one with its unit, such as 1.5, 10 us, 64 KB or 25 Gbps"
    )
}

fn wrong_ends(log: bool) -> String {
    let above = if log { ", above 0 for log and without a step" } else { "" };
    format!("expected a range from a lower to a higher end{above}, such as 16..64")
}

impl Quantity {
    /// A number in the base unit of what it measures.
    pub fn read(text: &str) -> Option<(f64, Self)> {
        fn of<T: FromStr>(text: &str, get: impl Fn(T) -> u64) -> Option<f64> {
            text.parse().ok().map(|value| get(value) as f64)
        }
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number
            .map(|number| (number, Self::Number))
            .or_else(|| of(text, |span: Span| span.as_ps()).map(|at| (at, Self::Time)))
            .or_else(|| of(text, |size: Bytes| size.get()).map(|at| (at, Self::Size)))
            .or_else(|| of(text, |rate: Rate| rate.as_bps()).map(|at| (at, Self::Rate)))
    }

    /// A number in the base unit as it stands in a scenario.
    fn write(self, number: f64) -> String {
        fn whole(number: f64, make: impl Fn(u64) -> String) -> String {
            make(number.round().max(0.0) as u64)
        }
        let rounded: f64 =
            format!("{number:.*e}", DIGITS - 1).parse().expect("a number as it was written");
        match self {
            Self::Number => shown(rounded),
            Self::Time => whole(rounded, |ps| shown(Span::from_ps(ps))),
            Self::Size => whole(rounded, |bytes| shown(Bytes::new(bytes))),
            Self::Rate => whole(rounded, |bps| shown(Rate::from_bps(bps))),
        }
    }
}

fn shown(value: impl Display) -> String {
    value.to_string()
}

impl Range {
    /// The value of this number, as it stands in a scenario.
    #[must_use]
    pub fn value(&self, number: f64) -> String {
        match self {
            Self::Choice(values) | Self::Ordered(values) => {
                let place = number.round().clamp(0.0, values.len() as f64 - 1.0) as usize;
                values[place].clone()
            }
            Self::Whole { low, high, .. } => (number.round() as u64).clamp(*low, *high).to_string(),
            Self::Real { low, high, quantity, .. } => quantity.write(number.clamp(*low, *high)),
        }
    }

    /// Its first and its last number.
    #[must_use]
    pub fn ends(&self) -> [f64; 2] {
        match self {
            Self::Choice(values) | Self::Ordered(values) => [0.0, values.len() as f64 - 1.0],
            Self::Whole { low, high, .. } => [*low as f64, *high as f64],
            Self::Real { low, high, .. } => [*low, *high],
        }
    }

    /// The numbers that it has, if they can be counted.
    #[must_use]
    pub fn numbers(&self) -> Option<Vec<f64>> {
        match self {
            Self::Choice(values) | Self::Ordered(values) => {
                Some((0..values.len()).map(|place| place as f64).collect())
            }
            Self::Whole { low, high, step, .. } => {
                let count = (high - low) / step + 1;
                (count <= COUNTED_MAX as u64)
                    .then(|| (0..count).map(|place| (low + place * step) as f64).collect())
            }
            Self::Real { .. } => None,
        }
    }
}

/// Most points of a space that are counted (our choice: a search of so many is a sweep).
pub const COUNTED_MAX: usize = 10_000;

/// How many points the space has, if they can be counted.
#[must_use]
pub fn size(space: &[Over]) -> Option<usize> {
    let mut sizes = space.iter().map(|over| over.range.numbers().map(|numbers| numbers.len()));
    sizes
        .try_fold(1usize, |size, count| size.checked_mul(count?))
        .filter(|size| *size <= COUNTED_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, number: f64, value: &str) {
        let over = Over::parse(&format!("k={text}")).unwrap();
        assert_eq!(over.range.value(number), value, "{text}");
    }

    #[test]
    fn numbers_of_a_sampler_are_values_of_the_scenario() {
        check("a,b,c", 2.0, "c");
        check("8,2,4", 0.0, "2");
        check("'a,b',c", 0.0, "'a,b'");
        let fabric = Over::parse("fabric='SCOC, one chip',NDP").unwrap();
        assert_eq!(fabric.range.value(0.0), "SCOC, one chip");
        check("16..64", 40.0, "40");
        check("16..64", 99.0, "64");
        check("0.25..0.75", 0.123_456, "0.25");
        check("0.25..0.75", 0.512_345, "0.5123");
        check("1 us..10 us", 1_234_567.0, "1.235 us");
        check("10 KB..1 MB log", 123_456.0, "123.5 KB");
        check("10 Gbps..100 Gbps", 25e9, "25 Gbps");
    }

    #[test]
    fn spaces_that_can_be_counted_are() {
        let over = |text: &str| Over::parse(text).unwrap();
        assert_eq!(size(&[over("a=1..10/4"), over("b=x,y")]), Some(6));
        assert_eq!(over("a=1..10/4").range.numbers(), Some(vec![1.0, 5.0, 9.0]));
        assert_eq!(size(&[over("a=1..10"), over("b=0.1..0.2")]), None);
        assert_eq!(size(&[over("a=0..99999")]), None);
    }

    #[test]
    fn what_is_no_range_is_refused_with_what_is() {
        let cases = [
            ("k", "expected KEY=LOW..HIGH"),
            ("k=", "expected KEY=LOW..HIGH"),
            ("k=5..2", "from a lower to a higher end"),
            ("k=0..8 log", "above 0 for log"),
            ("k=1 us..4 KB", "different kinds"),
            ("k=a..b", "expected a number, or one with its unit"),
            ("k=0.1..0.9/0.2", "only ranges of whole numbers"),
            ("k=1..9/0", "a whole number above 0"),
            ("k=x,x", "stands twice"),
        ];
        for (text, expected) in cases {
            let message = Over::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("--over {text}: ")), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }
}
