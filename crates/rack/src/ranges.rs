//! Ranges of keys, checked from the schema of the table that holds them, and from nothing else.
//!
//! A key's range stands once, beside its field: numbers have `minimum`, `maximum`, `exclusiveMinimum`
//! and `exclusiveMaximum` of JSON Schema (`#[schemars(range(min = 1, max = 16))]`, or `extend` for the
//! exclusive ones), quantities the same as text with a unit (`#[schemars(extend("x-maximum" = "1 s"))]`):
//! [`LEAST`], [`ABOVE`] and [`MOST`]. What a table's `check` says by hand is about relations between keys.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use kernel::{Bytes, Rate, Span};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Problem;

/// The least value of a quantity.
pub const LEAST: &str = "x-minimum";
/// A quantity is more than this.
pub const ABOVE: &str = "x-above";
/// The largest value of a quantity.
pub const MOST: &str = "x-maximum";

/// Every value of `table` that its schema's ranges leave out, then those of `relations` whose keys are
/// not among them.
#[must_use]
pub fn check<T: Serialize + JsonSchema + 'static>(
    table: &T,
    relations: Vec<Problem>,
) -> Vec<Problem> {
    let value = serde_json::to_value(table).expect("a configuration is plain data");
    let mut problems = Vec::new();
    walk(&value, &schema::<T>(), "", &mut problems);
    let own = problems.len();
    for problem in relations {
        if problems[..own].iter().all(|known| known.key != problem.key) {
            problems.push(problem);
        }
    }
    problems
}

/// The schema of a type, references written out. Made once a type: it takes longer than the check.
fn schema<T: JsonSchema + 'static>() -> Arc<Value> {
    static KNOWN: LazyLock<Mutex<HashMap<TypeId, Arc<Value>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let make = || {
        let inlined = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        Arc::new(inlined.into_generator().into_root_schema_for::<T>().to_value())
    };
    Arc::clone(known.entry(TypeId::of::<T>()).or_insert_with(make))
}

fn walk(value: &Value, schema: &Value, key: &str, problems: &mut Vec<Problem>) {
    let Some(own) = schema.as_object() else { return };
    for choice in ["oneOf", "anyOf"] {
        let variants = own.get(choice).and_then(Value::as_array).into_iter().flatten();
        if let Some(variant) = variants.clone().find(|variant| fits(value, variant)) {
            walk(value, variant, key, problems);
        }
    }
    match value {
        Value::Object(table) => {
            let dot = if key.is_empty() { "" } else { "." };
            for (name, value) in table {
                let known = own.get("properties").and_then(|all| all.get(name));
                let any = known.or_else(|| own.get("additionalProperties"));
                any.into_iter()
                    .for_each(|below| walk(value, below, &format!("{key}{dot}{name}"), problems));
            }
        }
        Value::Array(values) => {
            let items = own.get("items").unwrap_or(&Value::Null);
            for (index, value) in values.iter().enumerate() {
                walk(value, items, &format!("{key}[{index}]"), problems);
            }
        }
        Value::Number(number) => {
            let range = Range::of(own);
            if number.as_f64().is_some_and(|number| !range.holds(number)) {
                problems.push(Problem::new(key, format!("{number}; expected {}", range.words())));
            }
        }
        // Numbers that are none are written as null.
        Value::Null if own.get("type").is_some_and(|kind| kind == "number") => {
            let message = format!("no finite number; expected {}", Range::of(own).words());
            problems.push(Problem::new(key, message));
        }
        Value::String(text) => {
            problems.extend(quantity(text, own).map(|message| Problem::new(key, message)));
        }
        _ => {}
    }
}

/// Whether a value may be of this shape, as far as its type and fixed words tell.
fn fits(value: &Value, schema: &Value) -> bool {
    let is = |kind: &Value| match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(_) => kind == "integer" || kind == "number",
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    };
    let is_kind = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(is),
        kind => is(kind),
    };
    let fixed = schema["properties"].as_object().into_iter().flatten();
    let is_same = |(name, below): (&String, &Value)| {
        below.get("const").is_none_or(|word| value.get(name) == Some(word))
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let has = |name: &Value| name.as_str().is_some_and(|name| value.get(name).is_some());
    is_kind
        && schema.get("const").is_none_or(|word| word == value)
        && (!value.is_object() || fixed.into_iter().all(is_same) && required.into_iter().all(has))
}

/// The range of a number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    least: Option<f64>,
    above: Option<f64>,
    most: Option<f64>,
    below: Option<f64>,
}

impl Range {
    /// What a schema says of a number.
    #[must_use]
    pub fn of(schema: &Map<String, Value>) -> Self {
        let limit = |key| schema.get(key).and_then(Value::as_f64);
        // schemars states no limit for the wider integers, but Rust has one.
        let width = match schema.get("format").and_then(Value::as_str) {
            Some("uint8") => Some(f64::from(u8::MAX)),
            Some("uint16") => Some(f64::from(u16::MAX)),
            Some("uint32") => Some(f64::from(u32::MAX)),
            _ => None,
        };
        let most = match (limit("maximum"), width) {
            (Some(stated), Some(width)) => Some(stated.min(width)),
            (stated, width) => stated.or(width),
        };
        Self {
            least: limit("minimum"),
            above: limit("exclusiveMinimum"),
            most,
            below: limit("exclusiveMaximum"),
        }
    }

    /// Whether it holds `value`.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.least.is_none_or(|least| value >= least)
            && self.above.is_none_or(|above| value > above)
            && self.most.is_none_or(|most| value <= most)
            && self.below.is_none_or(|below| value < below)
    }

    /// The range in words: `from 1 to 16`; empty if there is none.
    #[must_use]
    pub fn stated(&self) -> String {
        // A limit that only says how wide the integer is tells a person nothing.
        let most = self.most.filter(|most| *most < f64::from(u32::MAX));
        match (self.least, most, self.above, self.below) {
            (Some(least), Some(most), ..) => format!("from {least} to {most}"),
            (Some(least), None, _, Some(below)) => format!("from {least} to below {below}"),
            (Some(least), None, ..) => format!("at least {least}"),
            (None, Some(most), Some(above), _) => format!("above {above}, at most {most}"),
            (None, None, Some(above), Some(below)) => format!("between {above} and {below}"),
            (None, None, Some(above), None) => format!("above {above}"),
            (None, Some(most), ..) => format!("at most {most}"),
            (None, None, None, Some(below)) => format!("below {below}"),
            (None, None, None, None) => String::new(),
        }
    }

    fn words(&self) -> String {
        let stated = self.stated();
        if stated.is_empty() { "a number".into() } else { stated }
    }
}

/// What is wrong with a text by the limits that its schema states, if it is a quantity.
fn quantity(text: &str, schema: &Map<String, Value>) -> Option<String> {
    let limit = |key| schema.get(key).and_then(Value::as_str);
    let (least, above, most) = (limit(LEAST), limit(ABOVE), limit(MOST));
    let some = least.or(above).or(most)?;
    let wrong = if some.parse::<Span>().is_ok() {
        is_outside::<Span>(text, least, above, most)
    } else if some.parse::<Rate>().is_ok() {
        is_outside::<Rate>(text, least, above, most)
    } else {
        is_outside::<Bytes>(text, least, above, most)
    };
    let bounds = [("at least", least), ("above", above), ("at most", most)];
    let words =
        bounds.iter().filter_map(|(word, limit)| limit.map(|limit| format!("{word} {limit}")));
    wrong.then(|| format!("{text}; expected {}", words.collect::<Vec<_>>().join(", ")))
}

fn is_outside<Q: std::str::FromStr + PartialOrd>(
    text: &str,
    least: Option<&str>,
    above: Option<&str>,
    most: Option<&str>,
) -> bool {
    let read = |text: &str| text.parse::<Q>().ok().expect("limits and values are quantities");
    let value = read(text);
    least.is_some_and(|least| value < read(least))
        || above.is_some_and(|above| value <= read(above))
        || most.is_some_and(|most| value > read(most))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct Table {
        #[schemars(range(min = 1, max = 16))]
        count: u32,
        #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
        share: f64,
        #[schemars(extend("x-above" = "0 ns", "x-maximum" = "1 s"))]
        delay: Span,
        #[schemars(extend("x-minimum" = "64 B"))]
        size: Option<Bytes>,
        #[schemars(extend("x-above" = "0 bps"))]
        rate: Rate,
        way: Way,
        list: Vec<Below>,
        maybe: Option<Below>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    enum Way {
        Wide(Below),
        Narrow(Narrow),
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct Below {
        #[schemars(range(min = 2))]
        width: u64,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct Narrow {
        #[schemars(range(max = 2))]
        width: u64,
    }

    fn table() -> Table {
        Table {
            count: 1,
            share: 1.0,
            delay: Span::from_us(1_000_000),
            size: None,
            rate: Rate::from_bps(1),
            way: Way::Narrow(Narrow { width: 0 }),
            list: vec![Below { width: 2 }],
            maybe: None,
        }
    }

    #[track_caller]
    fn expect(change: impl FnOnce(&mut Table), expected: &[&str]) {
        let mut table = table();
        change(&mut table);
        let found: Vec<_> = check(&table, Vec::new()).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn values_beyond_either_end_of_a_range_are_named_with_it() {
        expect(|_| (), &[]);
        expect(|t| t.count = 0, &["count: 0; expected from 1 to 16"]);
        expect(|t| t.count = 17, &["count: 17; expected from 1 to 16"]);
        expect(|t| t.share = 0.0, &["share: 0.0; expected above 0, at most 1"]);
        expect(|t| t.share = 1.5, &["share: 1.5; expected above 0, at most 1"]);
        expect(|t| t.share = f64::NAN, &["share: no finite number; expected above 0, at most 1"]);
        expect(|t| t.delay = Span::ZERO, &["delay: 0 ps; expected above 0 ns, at most 1 s"]);
        expect(
            |t| t.delay = Span::from_us(1_000_001),
            &["delay: 1.000001 s; expected above 0 ns, at most 1 s"],
        );
        expect(|t| t.size = Some(Bytes::new(63)), &["size: 63 B; expected at least 64 B"]);
        expect(|t| t.size = Some(Bytes::new(64)), &[]);
        expect(|t| t.rate = Rate::default(), &["rate: 0 bps; expected above 0 bps"]);
    }

    #[test]
    fn ranges_of_tables_below_are_found_by_their_kind() {
        let wide = |width| Way::Wide(Below { width });
        expect(|t| t.way = wide(1), &["way.width: 1; expected at least 2"]);
        expect(|t| t.way = wide(3), &[]);
        expect(
            |t| t.way = Way::Narrow(Narrow { width: 3 }),
            &["way.width: 3; expected from 0 to 2"],
        );
        expect(|t| t.list.push(Below { width: 0 }), &["list[1].width: 0; expected at least 2"]);
        expect(|t| t.maybe = Some(Below { width: 0 }), &["maybe.width: 0; expected at least 2"]);
    }

    #[test]
    fn a_key_out_of_range_has_no_other_problem() {
        let bad = Table { count: 0, ..table() };
        let relations = ["count", "share"].map(|key| Problem::new(key, "too much for the other"));
        let keys: Vec<_> = check(&bad, relations.into()).into_iter().map(|p| p.key).collect();
        assert_eq!(keys, ["count", "share"]);
    }
}
