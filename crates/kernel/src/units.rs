//! Quantities as text: `"2.75 ns"`, `"64 B"`, `"28 Gbps"`, exactly in both directions.
//!
//! A decimal number, optional space, a unit. The unit is compulsory: a bare number has none, and no
//! default would suit everyone. Text that is not a whole number of picoseconds, bytes or bits
//! per second is refused rather than rounded.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Bytes, Rate, Span, Time};

/// A unit's name and its size in the base unit.
type Unit = (&'static str, u64);

/// Largest first: printing takes the first that fits.
const TIME_UNITS: &[Unit] =
    &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)];
const BYTE_UNITS: &[Unit] =
    &[("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("KB", 1_000), ("B", 1)];
/// Binary sizes are read but never printed, so that output has one form.
const BINARY_UNITS: &[Unit] =
    &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
const RATE_UNITS: &[Unit] = &[
    ("Tbps", 1_000_000_000_000),
    ("Gbps", 1_000_000_000),
    ("Mbps", 1_000_000),
    ("Kbps", 1_000),
    ("bps", 1),
];

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// No number at the start.
    #[error("\"{text}\" is not a {what}: expected a number and a unit, such as \"{example}\"")]
    NotANumber {
        /// The text as given.
        text: String,
        /// The kind of quantity.
        what: &'static str,
        /// A good value.
        example: &'static str,
    },
    /// The unit is missing or unknown.
    #[error("\"{text}\" has {}: a {what} is written with one of {units}, such as \"{example}\"",
        if unit.is_empty() { "no unit".to_string() } else { format!("the unknown unit \"{unit}\"") })]
    Unit {
        /// The text as given.
        text: String,
        /// The unit found, empty if none.
        unit: String,
        /// The kind of quantity.
        what: &'static str,
        /// The units that exist.
        units: String,
        /// A good value.
        example: &'static str,
    },
    /// Finer than the base unit.
    #[error("\"{text}\" is not a whole number of {base}")]
    Fraction {
        /// The text as given.
        text: String,
        /// The base unit in words.
        base: &'static str,
    },
    /// Larger than 64 bits of the base unit.
    #[error("\"{text}\" is too large: at most {max} {base}")]
    TooLarge {
        /// The text as given.
        text: String,
        /// The base unit in words.
        base: &'static str,
        /// The largest value.
        max: u64,
    },
}

/// What the four kinds of quantity differ in.
struct Kind {
    what: &'static str,
    base: &'static str,
    example: &'static str,
    read: &'static [&'static [Unit]],
}
const TIME: Kind =
    Kind { what: "time", base: "picoseconds", example: "2.75 ns", read: &[TIME_UNITS] };
const SIZE: Kind =
    Kind { what: "size", base: "bytes", example: "64 B", read: &[BYTE_UNITS, BINARY_UNITS] };
const RATE: Kind =
    Kind { what: "rate", base: "bits per second", example: "100 Gbps", read: &[RATE_UNITS] };

/// Reads `text` as a whole number of base units.
fn parse(text: &str, kind: &Kind) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let (number, unit) = trimmed.split_at(end.unwrap_or(trimmed.len()));
    let unit = unit.trim();
    let not_a_number =
        || UnitError::NotANumber { text: text.into(), what: kind.what, example: kind.example };
    let digits: String = number.chars().filter(|&c| c != '_').collect();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    if whole.is_empty() || fraction.contains('.') || digits.ends_with('.') {
        return Err(not_a_number());
    }
    let scale = kind.read.iter().flat_map(|units| units.iter()).find(|(name, _)| *name == unit);
    let Some(&(_, scale)) = scale else {
        let units: Vec<_> =
            kind.read.iter().flat_map(|u| u.iter().map(|(name, _)| *name)).collect();
        return Err(UnitError::Unit {
            text: text.into(),
            unit: unit.into(),
            what: kind.what,
            units: units.join(", "),
            example: kind.example,
        });
    };
    let too_large = || UnitError::TooLarge { text: text.into(), base: kind.base, max: u64::MAX };
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(UnitError::Fraction { text: text.into(), base: kind.base });
    }
    let mantissa: u128 = format!("{whole}{fraction}").parse().map_err(|_| too_large())?;
    let value = mantissa.checked_mul(u128::from(scale)).ok_or_else(too_large)?;
    let divisor = 10u128.pow(fraction.len() as u32);
    if value % divisor != 0 {
        return Err(UnitError::Fraction { text: text.into(), base: kind.base });
    }
    u64::try_from(value / divisor).map_err(|_| too_large())
}

/// Writes `value` exactly, in the largest unit that is not larger than it.
fn print(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let &(name, scale) = units
        .iter()
        .find(|&&(_, scale)| value >= scale)
        .unwrap_or(units.last().expect("a kind has units"));
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return f.pad(&format!("{whole} {name}"));
    }
    let width = scale.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    f.pad(&format!("{whole}.{} {name}", fraction.trim_end_matches('0')))
}

/// Reads a quantity from a file, and says how to write one where it finds something else.
struct Reader<T>(Kind, PhantomData<T>);

impl<T: FromStr<Err = UnitError>> de::Visitor<'_> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {} with its unit, such as \"{}\"", self.0.what, self.0.example)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// The JSON schema of a kind of quantity. Says `pattern` and no `format`: the standard's own
/// formats "time" and "duration" mean something else.
fn schema(kind: &Kind) -> Schema {
    let names: Vec<_> = kind.read.iter().flat_map(|u| u.iter().map(|(name, _)| *name)).collect();
    let pattern = format!(r"^\s*[0-9][0-9_]*(\.[0-9_]+)?\s*({})\s*$", names.join("|"));
    json_schema!({ "type": "string", "pattern": pattern, "examples": [kind.example] })
}

macro_rules! text {
    ($t:ident, $kind:ident, $units:ident, $make:path, $get:ident) => {
        impl FromStr for $t {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                parse(text, &$kind).map($make)
            }
        }
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print(f, self.$get(), $units)
            }
        }
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Reader($kind, PhantomData))
            }
        }
        impl JsonSchema for $t {
            fn schema_name() -> Cow<'static, str> {
                stringify!($t).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                schema(&$kind)
            }
        }
    };
}
text!(Time, TIME, TIME_UNITS, Time::from_ps, as_ps);
text!(Span, TIME, TIME_UNITS, Span::from_ps, as_ps);
text!(Bytes, SIZE, BYTE_UNITS, Bytes::new, get);
text!(Rate, RATE, RATE_UNITS, Rate::from_bps, as_bps);

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
