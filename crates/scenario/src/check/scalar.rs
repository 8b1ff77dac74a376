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
    if !view.range().holds(value) {
        let whole = view.types().contains(&"integer");
        let what = if whole { "a whole number" } else { "a number" };
        return Err(format!("found {text}; expected {}", bounds(view, what)));
    }
    Ok(())
}

/// `what` with its range, in words.
pub fn bounds(view: &View, what: &str) -> String {
    let stated = view.range().stated();
    let between = if stated.starts_with("at ") { ", " } else { " " };
    if stated.is_empty() { what.into() } else { format!("{what}{between}{stated}") }
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
