//! Quantities as people read them: three significant digits in a fitting unit.
//!
//! The one list of units per quantity serves the terminal, the page's tables and, handed over as
//! data, the page's axes, so that a value reads the same wherever it stands. A summary keeps bare SI
//! numbers; what they measure follows from the key ([`Unit::of_key`]).

use serde_json::{Number, Value};

/// What a number measures, in SI units without prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Unit {
    /// A number of things, or no unit at all.
    #[default]
    Count,
    /// A quotient of two like quantities, such as a slowdown.
    Ratio,
    /// A part of a whole, 0 to 1, shown in per cent.
    Share,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
    /// Events per second.
    PerSecond,
    /// Cells.
    Cells,
    /// Watts.
    Watts,
    /// Joules.
    Joules,
    /// United States dollars.
    Dollars,
}

/// A named multiple of the base unit.
type Scale = (f64, &'static str);

/// Shown where there is no value.
pub const MISSING: &str = "–";

/// Scales are tried with half a unit of the third digit to spare, so that 999.9 ns reads "1 µs" and
/// not "1000 ns".
const ROUNDING: f64 = 1.0005;

impl Unit {
    /// Every unit, for tables over all of them.
    pub const ALL: [Unit; 11] = [
        Unit::Count,
        Unit::Ratio,
        Unit::Share,
        Unit::Seconds,
        Unit::Bytes,
        Unit::BitsPerSecond,
        Unit::PerSecond,
        Unit::Cells,
        Unit::Watts,
        Unit::Joules,
        Unit::Dollars,
    ];

    /// What the summary key or gauge name `key` measures: `fct.short.p99` is in seconds,
    /// `queue.max_bytes` in bytes. A key that tells nothing is a [`Unit::Count`].
    #[must_use]
    pub fn of_key(key: &str) -> Unit {
        const FAMILIES: &[(&str, Unit)] = &[
            ("fct", Unit::Seconds),
            ("slowdown", Unit::Ratio),
            ("slowdown_common", Unit::Ratio),
            ("goodput", Unit::BitsPerSecond),
            ("throughput", Unit::BitsPerSecond),
            ("load", Unit::Share),
            ("bytes", Unit::Bytes),
        ];
        // Longer endings stand before the shorter ones that they contain.
        const ENDINGS: &[(&str, Unit)] = &[
            ("bits_per_second", Unit::BitsPerSecond),
            ("per_second", Unit::PerSecond),
            ("bps", Unit::BitsPerSecond),
            ("seconds", Unit::Seconds),
            ("bytes", Unit::Bytes),
            ("cells", Unit::Cells),
            ("share", Unit::Share),
            ("fraction", Unit::Share),
            ("utilisation", Unit::Share),
            ("ratio", Unit::Ratio),
            ("watts", Unit::Watts),
            ("joules", Unit::Joules),
            ("dollars", Unit::Dollars),
        ];
        let (family, last) = match (key.split_once('.'), key.rsplit_once('.')) {
            (Some((family, _)), Some((_, last))) => (Some(family), last),
            _ => (None, key),
        };
        let ends = |end: &str| {
            last.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
        };
        match (family, last) {
            (_, "count" | "unfinished") => return Unit::Count,
            // Of every fabric: packets in a packet network.
            (Some("queue"), "max_cells") => return Unit::Count,
            (Some("load"), "rate") | (_, "node_rate") => return Unit::BitsPerSecond,
            _ => {}
        }
        let by_ending = ENDINGS.iter().find(|(end, _)| ends(end)).map(|&(_, unit)| unit);
        let by_family = || FAMILIES.iter().find(|&&(name, _)| Some(name) == family);
        by_ending.or_else(|| by_family().map(|&(_, unit)| unit)).unwrap_or_default()
    }

    /// Multiples of the base unit, largest first.
    pub(crate) fn scales(self) -> &'static [Scale] {
        match self {
            Unit::Count | Unit::Ratio => &[(1.0, "")],
            Unit::Share => &[(0.01, "%")],
            Unit::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"), (1e-12, "ps")],
            Unit::Bytes => &[(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B")],
            Unit::BitsPerSecond => {
                &[(1e12, "Tbps"), (1e9, "Gbps"), (1e6, "Mbps"), (1e3, "Kbps"), (1.0, "bps")]
            }
            Unit::PerSecond => &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")],
            Unit::Cells => &[(1.0, "cells")],
            Unit::Watts => &[(1e6, "MW"), (1e3, "kW"), (1.0, "W"), (1e-3, "mW"), (1e-6, "µW")],
            Unit::Joules => {
                &[(1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"), (1e-12, "pJ")]
            }
            Unit::Dollars => &[(1.0, "USD")],
        }
    }

    /// The base unit in short, for the head of a column; empty where there is none.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Count => "",
            Unit::Ratio => "ratio",
            Unit::Share => "share",
            Unit::Seconds => "s",
            Unit::Bytes => "bytes",
            Unit::BitsPerSecond => "bit/s",
            Unit::PerSecond => "1/s",
            Unit::Cells => "cells",
            Unit::Watts => "W",
            Unit::Joules => "J",
            Unit::Dollars => "USD",
        }
    }

    /// `value` in the largest unit that it fills, to three significant digits; whole numbers below
    /// the unit's first scale in full, with thousands set apart.
    #[must_use]
    pub fn format(self, value: f64) -> String {
        if !value.is_finite() {
            return MISSING.into();
        }
        let scales = self.scales();
        let fits = |&&(scale, _): &&Scale| value.abs() * ROUNDING >= scale;
        let &(scale, name) = if value == 0.0 {
            scales.iter().find(|(scale, _)| *scale == 1.0).unwrap_or(&scales[0])
        } else {
            scales.iter().find(fits).unwrap_or(scales.last().expect("a unit has scales"))
        };
        let number = digits(value / scale);
        match name {
            "" => number,
            "%" => format!("{number}%"),
            name => format!("{number} {name}"),
        }
    }

    /// "1.53 to 1.64 µs", the unit named once where both ends read well in it.
    fn range(self, low: &Number, high: &Number) -> String {
        let ends = [low, high].map(|end| end.as_f64().unwrap_or(f64::NAN));
        let [low_text, high_text] = ends.map(|end| self.format(end));
        let name = high_text.trim_start_matches(|c: char| !c.is_alphabetic() && c != '%');
        let fits = |&&(_, unit): &&Scale| unit == name;
        match self.scales().iter().find(fits) {
            Some(&(scale, _)) if ends[0] * RANGE_IN_ONE_UNIT >= ends[1] && ends[0] <= ends[1] => {
                format!("{} to {high_text}", digits(ends[0] / scale))
            }
            _ => format!("{low_text} to {high_text}"),
        }
    }

    /// A value of a summary or table as text: numbers in this unit, a pair as a range, nothing as a
    /// dash.
    #[must_use]
    pub fn show(self, value: &Value) -> String {
        match value {
            Value::Null => MISSING.into(),
            Value::Bool(true) => "yes".into(),
            Value::Bool(false) => "no".into(),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.as_f64().map_or(MISSING.into(), |n| self.format(n)),
            Value::Array(items) => match items.as_slice() {
                [Value::Number(low), Value::Number(high)] => self.range(low, high),
                items => items.iter().map(|item| self.show(item)).collect::<Vec<_>>().join(", "),
            },
            Value::Object(_) => value.to_string(),
        }
    }
}

/// How far the ends of a range may lie apart to share a unit: beyond, the lower would lose its
/// digits.
const RANGE_IN_ONE_UNIT: f64 = 100.0;

/// Three significant digits; whole numbers in full, thousands set apart.
fn digits(value: f64) -> String {
    let magnitude = value.abs();
    // Above 10^15 not every whole number is a double: its digits would be invented.
    if magnitude >= 1e15 || (magnitude > 0.0 && magnitude < 1e-3) {
        return format!("{value:.2e}");
    }
    // Division by a scale leaves noise in the last bits of what was whole.
    let is_whole = (value - value.round()).abs() <= magnitude * 1e-9;
    if is_whole || magnitude >= 99.95 {
        let whole = value.round() as i64;
        let sign = if whole < 0 { "-" } else { "" };
        return format!("{sign}{}", grouped(whole.unsigned_abs()));
    }
    let places = match magnitude {
        m if m >= 9.995 => 1,
        m if m >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.places$}")
}

/// A number with commas between thousands, for people.
#[must_use]
pub fn grouped(number: u64) -> String {
    let plain = number.to_string();
    let mut text = String::with_capacity(plain.len() + plain.len() / 3);
    for (index, digit) in plain.chars().enumerate() {
        if index > 0 && (plain.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A key as a label: `queue_max_cells` becomes `Queue max`, its unit being shown with the value.
#[must_use]
pub fn label_of_key(key: &str) -> String {
    const ENDINGS: &[&str] = &[
        "_bits_per_second",
        "_per_second",
        "_bps",
        "_seconds",
        "_bytes",
        "_cells",
        "_share",
        "_watts",
        "_joules",
        "_dollars",
    ];
    let mut stem = key;
    for ending in ENDINGS {
        if let Some(rest) = key.strip_suffix(ending) {
            stem = rest;
            break;
        }
    }
    capitalised(&stem.replace('_', " "))
}

/// Words as a label has them: with a capital.
pub(crate) fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A meaning as a sentence with one full stop, whether it was written with one or without.
pub(crate) fn sentence(meaning: &str) -> String {
    format!("{}.", meaning.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(unit: Unit, rows: &[(f64, &str)]) {
        for &(value, text) in rows {
            assert_eq!(unit.format(value), text, "{value:e} in {unit:?}");
        }
    }

    #[test]
    fn values_take_the_largest_unit_they_fill() {
        check(
            Unit::Seconds,
            &[
                (0.0, "0 s"),
                (2.75e-9, "2.75 ns"),
                (1.57e-6, "1.57 µs"),
                (999.6e-9, "1.00 µs"),
                (999.4e-9, "999 ns"),
                (0.0123, "12.3 ms"),
                (12.0, "12 s"),
                (1e-12, "1 ps"),
                (2e-16, "2.00e-4 ps"),
            ],
        );
        check(Unit::Bytes, &[(64.0, "64 B"), (100e3, "100 KB"), (1.5e6, "1.50 MB"), (0.0, "0 B")]);
        check(
            Unit::BitsPerSecond,
            &[(100e9, "100 Gbps"), (28e9, "28 Gbps"), (1.2e12, "1.20 Tbps")],
        );
        check(Unit::Share, &[(0.5, "50%"), (0.4973, "49.7%"), (1.0, "100%"), (0.0, "0%")]);
        check(Unit::Count, &[(1e5, "100,000"), (-1234567.0, "-1,234,567"), (3.25, "3.25")]);
        check(Unit::Ratio, &[(f64::NAN, "–"), (f64::INFINITY, "–"), (9.999, "10.0"), (1.0, "1")]);
    }

    #[test]
    fn keys_tell_their_unit() {
        for (key, unit) in [
            ("fct.short.p99", Unit::Seconds),
            ("fct.short.count", Unit::Count),
            ("slowdown.all.mean", Unit::Ratio),
            ("goodput.long.p01", Unit::BitsPerSecond),
            ("throughput.mean_node", Unit::BitsPerSecond),
            ("load.realised", Unit::Share),
            ("load.rate", Unit::BitsPerSecond),
            ("bytes.delivered", Unit::Bytes),
            ("queue.max_bytes", Unit::Bytes),
            ("queue.max_cells", Unit::Count),
            ("queue_max_cells", Unit::Cells),
            ("engine.hops_per_second", Unit::PerSecond),
            ("engine.peak_rss_bytes", Unit::Bytes),
            ("simulated_seconds", Unit::Seconds),
            ("slots_empty_share", Unit::Share),
            ("nodes", Unit::Count),
            ("megabytes", Unit::Count),
        ] {
            assert_eq!(Unit::of_key(key), unit, "{key}");
        }
    }

    #[test]
    fn table_values_read_as_text() {
        assert_eq!(Unit::Seconds.show(&json!([1.5e-6, 2e-6])), "1.50 to 2 µs");
        assert_eq!(Unit::Seconds.show(&json!([900e-9, 2e-6])), "0.900 to 2 µs");
        assert_eq!(Unit::Seconds.show(&json!([2e-9, 2e-3])), "2 ns to 2 ms");
        assert_eq!(Unit::Share.show(&json!([0.5, 0.52])), "50 to 52%");
        assert_eq!(Unit::Count.show(&json!([8, 11])), "8 to 11");
        assert_eq!(Unit::Count.show(&json!([1, 2, 3])), "1, 2, 3");
        assert_eq!(Unit::Cells.show(&json!("at most 11")), "at most 11");
        assert_eq!(Unit::Cells.show(&Value::Null), "–");
        assert_eq!(Unit::Count.show(&json!(true)), "yes");
    }

    #[test]
    fn labels_drop_the_unit() {
        assert_eq!(label_of_key("queue_max_cells"), "Queue max");
        assert_eq!(label_of_key("links_busy_share"), "Links busy");
        assert_eq!(label_of_key(""), "");
    }
}
