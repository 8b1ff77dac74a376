//! Numbers against their range, text against its format.

use super::View;
use super::quantity::Quantity;
use crate::tree::Item;

/// What is wrong with a value of the right type.
pub fn check(item: &Item, view: &View) -> Result<(), String> {
    match item {
        Item::Integer(value) => number(*value as f64, &value.to_string(), view),
        Item::Float(value) => number(*value, &value.to_string(), view),
        Item::Text(value) => text(value, view),
        _ => Ok(()),
    }
}

fn number(value: f64, text: &str, view: &View) -> Result<(), String> {
    if !value.is_finite() {
        return Err(format!("found {text}; expected a finite number"));
    }
    let range = Range::of(view);
    let low = range.least.is_some_and(|least| value < least)
        || range.above.is_some_and(|above| value <= above);
    let high = range.most.is_some_and(|most| value > most)
        || range.below.is_some_and(|below| value >= below);
    if low || high {
        let whole = view.types().contains(&"integer");
        let what = if whole { "a whole number" } else { "a number" };
        return Err(format!("found {text}; expected {}", bounds(view, what)));
    }
    Ok(())
}

/// The limits of a number.
struct Range {
    least: Option<f64>,
    above: Option<f64>,
    most: Option<f64>,
    below: Option<f64>,
}

impl Range {
    fn of(view: &View) -> Self {
        let limit = |key| view.keyword(key).and_then(serde_json::Value::as_f64);
        // schemars states no limit for the wider integers, but Rust has one.
        let most = match view.format() {
            "uint8" => Some(f64::from(u8::MAX)),
            "uint16" => Some(f64::from(u16::MAX)),
            "uint32" => Some(f64::from(u32::MAX)),
            _ => None,
        };
        let most = match (limit("maximum"), most) {
            (Some(stated), Some(format)) => Some(stated.min(format)),
            (stated, format) => stated.or(format),
        };
        Self {
            least: limit("minimum"),
            above: limit("exclusiveMinimum"),
            most,
            below: limit("exclusiveMaximum"),
        }
    }
}

/// `what` with its range, in words.
pub fn bounds(view: &View, what: &str) -> String {
    let range = Range::of(view);
    // A limit that only says how wide the integer is tells a person nothing.
    let most = range.most.filter(|most| *most < f64::from(u32::MAX));
    match (range.least, most, range.above, range.below) {
        (Some(least), Some(most), ..) => format!("{what} from {least} to {most}"),
        (Some(least), None, _, Some(below)) => format!("{what} from {least} to below {below}"),
        (Some(least), None, ..) => format!("{what}, at least {least}"),
        (None, Some(most), Some(above), _) => format!("{what} above {above}, at most {most}"),
        (None, None, Some(above), Some(below)) => format!("{what} between {above} and {below}"),
        (None, None, Some(above), None) => format!("{what} above {above}"),
        (None, Some(most), ..) => format!("{what}, at most {most}"),
        (None, None, None, Some(below)) => format!("{what} below {below}"),
        (None, None, None, None) => what.into(),
    }
}

fn text(value: &str, view: &View) -> Result<(), String> {
    if let Some(quantity) = Quantity::of(view) {
        return quantity.check(value).map_err(|error| error.to_string());
    }
    let least = view.keyword("minLength").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if (value.chars().count() as u64) < least {
        return Err("found empty text; expected a name".into());
    }
    Ok(())
}
