//! What a search is for: figures that are to be small or large, and conditions that have to hold.

use rack::results::Figure;
use report::Unit;
use report::summary::figure;
use scenario::{BadInput, Located};
use serde_json::Value;

use super::space::Quantity;

/// A number of the summary that is to be as small or as large as can be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Aim {
    /// Its key: `equipment.cost_ratio`.
    pub key: String,
    /// Whether more is better.
    pub is_maximised: bool,
}

/// A condition: `fct.short.p999 < 50 us`.
#[derive(Clone, PartialEq, Debug)]
pub struct Constraint {
    /// As it was given.
    pub text: String,
    /// The number of the summary that it is about.
    pub key: String,
    /// Whether the number has to be above the limit, not below.
    pub is_floor: bool,
    /// Whether the limit itself will do.
    pub is_closed: bool,
    /// In the unit of the summary.
    pub limit: f64,
}

/// How much of a violation a sampler is told at most, in limits (our choice). Beyond, all are the same.
const VIOLATION_MAX: f64 = 1e3;
/// The violation of a condition of which it is not known whether it holds (our choice).
const VIOLATION_UNKNOWN: f64 = VIOLATION_MAX;
/// The violation of a condition that does not hold by a hair.
const VIOLATION_MIN: f64 = 1e-9;

impl Constraint {
    /// Reads `KEY < LIMIT`, with `<`, `<=`, `>` or `>=`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadInput> {
        let bad = |message: String| {
            BadInput::single(Located::whole(&format!("--subject {text:?}"), message))
        };
        let expected = "expected KEY < LIMIT, such as \"fct.short.p999 < 50 us\"; or <=, > or >=";
        let at = text.find(['<', '>']).ok_or_else(|| bad(expected.into()))?;
        let (key, rest) = text.split_at(at);
        let is_floor = rest.starts_with('>');
        let (is_closed, limit) = match rest[1..].strip_prefix('=') {
            Some(limit) => (true, limit.trim()),
            None => (false, rest[1..].trim()),
        };
        let key = key.trim();
        if key.is_empty() || limit.is_empty() {
            return Err(bad(expected.into()));
        }
        let limit = limit_of(key, limit).map_err(bad)?;
        Ok(Self { text: text.trim().into(), key: key.into(), is_floor, is_closed, limit })
    }

    /// By how many limits a summary violates it, zero if it holds; and why it is taken not to hold.
    fn judge(&self, summary: &Value) -> (f64, Option<String>) {
        let found = figure(summary, &self.key);
        let holds = |value: f64| match (self.is_floor, self.is_closed) {
            (false, false) => value < self.limit,
            (false, true) => value <= self.limit,
            (true, false) => value > self.limit,
            (true, true) => value >= self.limit,
        };
        let beyond = |value: f64| {
            let beyond = if self.is_floor { self.limit - value } else { value - self.limit };
            (beyond / self.limit.abs().max(f64::MIN_POSITIVE)).clamp(VIOLATION_MIN, VIOLATION_MAX)
        };
        let shown = |value: f64| Unit::of_key(&self.key).format(value);
        match found {
            Figure::Exact(value) if holds(value) => (0.0, None),
            Figure::Exact(value) => {
                (beyond(value), Some(format!("not {}: {}", self.text, shown(value))))
            }
            // What is unfinished can only make it worse, or only better.
            Figure::AtLeast(value) if self.is_floor && holds(value) => (0.0, None),
            Figure::AtMost(value) if !self.is_floor && holds(value) => (0.0, None),
            Figure::AtLeast(value) if !self.is_floor && !holds(value) => {
                let why = format!("not {}: at least {}", self.text, shown(value));
                (beyond(value), Some(why))
            }
            Figure::AtMost(value) if self.is_floor && !holds(value) => {
                (beyond(value), Some(format!("not {}: at most {}", self.text, shown(value))))
            }
            Figure::AtLeast(_) | Figure::AtMost(_) => {
                let why = format!("{} is not known: measured flows are unfinished", self.text);
                (VIOLATION_UNKNOWN, Some(why))
            }
            Figure::Missing => {
                let why = format!("{} is not known: there is no {}", self.text, self.key);
                (VIOLATION_UNKNOWN, Some(why))
            }
        }
    }
}

/// A limit in the unit of the summary.
fn limit_of(key: &str, text: &str) -> Result<f64, String> {
    let expected = |what: &str| format!("found {text:?}; expected {what}");
    if let Some(share) = text.strip_suffix('%') {
        let share = share.trim().parse::<f64>().ok().filter(|share| share.is_finite());
        return share.map(|share| share / 100.0).ok_or_else(|| expected("a number before %"));
    }
    let (number, quantity) = Quantity::read(text).ok_or_else(|| {
        expected("a number, or one with its unit, such as 2, 60 %, 50 us or 10 Gbps")
    })?;
    const PS_PER_SECOND: f64 = 1e12;
    match (quantity, Unit::of_key(key)) {
        // A number of the summary is in its unit; these are none, but lack the unit that was meant.
        (Quantity::Number, Unit::Seconds) if number >= 1.0 => Err(expected(&format!(
            "a unit, such as \"{number} us\", or \"{number} s\" if it is seconds"
        ))),
        (Quantity::Number, Unit::BitsPerSecond) if number > 0.0 && number < 1e6 => {
            Err(expected(&format!("a unit, such as \"{number} Gbps\", or \"{number} bps\"")))
        }
        (Quantity::Number, _) => Ok(number),
        (Quantity::Time, Unit::Seconds) => Ok(number / PS_PER_SECOND),
        (Quantity::Size, Unit::Bytes) | (Quantity::Rate, Unit::BitsPerSecond) => Ok(number),
        (_, unit) => {
            Err(format!("found {text:?}; expected a limit of {key}, which is in {unit:?}"))
        }
    }
}

/// What a search makes of a summary.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Judgement {
    /// The aims, in their order; none if one of them is not known.
    pub values: Option<Vec<f64>>,
    /// Of each condition by how many limits it is violated; zero if it holds.
    pub violations: Vec<f64>,
    /// Why it is infeasible; nothing if it is feasible.
    pub why: Vec<String>,
}

impl Judgement {
    /// Of a summary, of one run or of means over seeds.
    #[must_use]
    pub fn of(summary: &Value, aims: &[Aim], constraints: &[Constraint]) -> Self {
        let (mut violations, mut why) = (Vec::new(), Vec::new());
        for constraint in constraints {
            let (violation, reason) = constraint.judge(summary);
            violations.push(violation);
            why.extend(reason);
        }
        let mut values = Some(Vec::new());
        for aim in aims {
            let known = figure(summary, &aim.key).exact();
            match (known, &mut values) {
                (Some(value), Some(values)) => values.push(value),
                (Some(_), None) => {}
                (None, _) => {
                    values = None;
                    why.push(match figure(summary, &aim.key) {
                        Figure::Missing => format!("there is no {}", aim.key),
                        _ => format!("{} is not known: measured flows are unfinished", aim.key),
                    });
                }
            }
        }
        Self { values, violations, why }
    }

    /// Whether every condition holds and every aim is known.
    #[must_use]
    pub fn is_feasible(&self) -> bool {
        self.why.is_empty()
    }
}

/// Whether `a` is at least as good as `b` in every aim and better in one.
pub fn dominates(a: &[f64], b: &[f64], aims: &[Aim]) -> bool {
    let better = |index: usize| {
        let (a, b) =
            if aims[index].is_maximised { (b[index], a[index]) } else { (a[index], b[index]) };
        a.total_cmp(&b)
    };
    let orders: Vec<_> = (0..aims.len()).map(better).collect();
    orders.iter().all(|order| order.is_le()) && orders.iter().any(|order| order.is_lt())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_in_the_unit_of_their_figure() {
        let cases = [
            ("fct.short.p999 < 50 us", "fct.short.p999", false, false, 50e-6),
            ("load.realised>=60 %", "load.realised", true, true, 0.6),
            ("goodput.long.mean > 5 Gbps", "goodput.long.mean", true, false, 5e9),
            ("queue.max_bytes <= 64 KB", "queue.max_bytes", false, true, 64e3),
            ("equipment.cost_ratio < 1.5", "equipment.cost_ratio", false, false, 1.5),
            // As a program writes what it has read from a summary.
            ("fct.all.p99 < 4.8e-05", "fct.all.p99", false, false, 4.8e-5),
            ("fct.all.p99 < 50 s", "fct.all.p99", false, false, 50.0),
        ];
        for (text, key, is_floor, is_closed, limit) in cases {
            let found = Constraint::parse(text).unwrap();
            assert_eq!(
                (found.key.as_str(), found.is_floor, found.is_closed),
                (key, is_floor, is_closed)
            );
            assert!((found.limit - limit).abs() < limit * 1e-12, "{text}: {}", found.limit);
        }
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let cases = [
            ("fct.short.p999", "expected KEY < LIMIT"),
            ("< 5", "expected KEY < LIMIT"),
            ("fct.short.p999 < ", "expected KEY < LIMIT"),
            ("fct.short.p999 < soon", "expected a number, or one with its unit"),
            ("fct.short.p999 < 5 KB", "expected a limit of fct.short.p999"),
            ("load.realised > x %", "a number before %"),
            (
                "fct.short.p999 < 50",
                "found \"50\"; expected a unit, such as \"50 us\", or \"50 s\"",
            ),
            (
                "goodput.long.mean > 5",
                "found \"5\"; expected a unit, such as \"5 Gbps\", or \"5 bps\"",
            ),
        ];
        for (text, expected) in cases {
            let message = Constraint::parse(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[track_caller]
    fn check(text: &str, summary: &Value, violation: f64) {
        let (found, why) = Constraint::parse(text).unwrap().judge(summary);
        assert!((found - violation).abs() <= violation * 1e-9, "{text}: {found}");
        assert_eq!(why.is_none(), violation == 0.0, "{text}: {why:?}");
    }

    #[test]
    fn bounds_decide_only_what_they_can_decide() {
        let exact = json!({ "fct": { "short": { "p99": 2e-6 } } });
        check("fct.short.p99 < 4 us", &exact, 0.0);
        check("fct.short.p99 < 1 us", &exact, 1.0);
        check("fct.short.p99 > 4 us", &exact, 0.5);
        check("fct.short.p99 < 2 us", &exact, VIOLATION_MIN);
        check("fct.short.p99 <= 2 us", &exact, 0.0);
        let bound = json!({ "fct": { "short": { "p99": null, "at_least": { "p99": 2e-6 } } } });
        check("fct.short.p99 < 1 us", &bound, 1.0);
        check("fct.short.p99 < 4 us", &bound, VIOLATION_UNKNOWN);
        check("fct.short.p99 > 1 us", &bound, 0.0);
        check("fct.short.p98 < 1 us", &bound, VIOLATION_UNKNOWN);
    }

    #[test]
    fn an_aim_that_is_only_bounded_is_no_aim_reached() {
        let aims = [Aim { key: "fct.short.p99".into(), is_maximised: false }];
        let bound = json!({ "fct": { "short": { "p99": null, "at_least": { "p99": 2e-6 } } } });
        let judged = Judgement::of(&bound, &aims, &[]);
        assert!(judged.values.is_none() && !judged.is_feasible());
        let exact = json!({ "fct": { "short": { "p99": 2e-6 } } });
        assert_eq!(Judgement::of(&exact, &aims, &[]).values, Some(vec![2e-6]));
    }

    #[test]
    fn who_dominates_is_no_worse_anywhere_and_better_somewhere() {
        let aims = [false, true].map(|is_maximised| Aim { key: String::new(), is_maximised });
        assert!(dominates(&[1.0, 5.0], &[1.0, 4.0], &aims));
        assert!(!dominates(&[1.0, 5.0], &[1.0, 5.0], &aims));
        assert!(!dominates(&[2.0, 9.0], &[1.0, 4.0], &aims));
    }
}
