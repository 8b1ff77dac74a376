//! Bounds of the times, rates and sizes in a fabric's table, whatever its keys: far beyond any rack, and
//! such that what is computed from them fits the clock of a run.

use kernel::{Bytes, Rate, Span};
use rack::Problem;
use serde_json::Value;

/// The longest time of any key (our choice: doubled six times it is 18 hours, and a run ends after 30
/// days).
const SPAN_MAX: Span = Span::from_us(1_000_000_000);
/// The slowest rate, zero apart, which means what its key says (our choice: the largest packet takes a
/// minute).
const RATE_MIN: Rate = rack::topology::RATE_MIN;
/// The largest size (our choice: a flow's, too).
const SIZE_MAX: Bytes = Bytes::new(1 << 40);

/// Every quantity in `table` that is out of bounds, with its key.
pub(crate) fn check(table: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    walk(table, String::new(), &mut problems);
    problems
}

fn walk(value: &Value, key: String, problems: &mut Vec<Problem>) {
    match value {
        Value::Object(table) => {
            let dot = if key.is_empty() { "" } else { "." };
            table
                .iter()
                .for_each(|(name, value)| walk(value, format!("{key}{dot}{name}"), problems));
        }
        Value::Array(values) => {
            let indexed = values.iter().enumerate();
            indexed.for_each(|(index, value)| walk(value, format!("{key}[{index}]"), problems));
        }
        Value::String(text) => {
            problems.extend(wrong(text).map(|message| Problem::new(key, message)));
        }
        _ => {}
    }
}

/// What is wrong with a text, if it is a quantity.
fn wrong(text: &str) -> Option<String> {
    if let Ok(span) = text.parse::<Span>() {
        return (span > SPAN_MAX).then(|| format!("{span}; expected at most {SPAN_MAX}"));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        let is_slow = rate > Rate::default() && rate < RATE_MIN;
        return is_slow.then(|| format!("{rate}; expected at least {RATE_MIN}"));
    }
    let size = text.parse::<Bytes>().ok()?;
    (size > SIZE_MAX).then(|| format!("{size}; expected at most {SIZE_MAX}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_out_of_bounds_are_named() {
        let table = json!({
            "delay": "18446744 s",
            "rate": "1 bps",
            "none": "0 bps",
            "queue": { "size": "2 TB", "latency": "1000 s" },
            "list": ["1 ns", "1001 s"],
            "word": "ecmp",
            "number": 1e30,
        });
        let mut keys: Vec<_> = check(&table).into_iter().map(|problem| problem.key).collect();
        keys.sort();
        assert_eq!(keys, ["delay", "list[1]", "queue.size", "rate"]);
    }
}
