//! TOML into a tree with lines.

use toml::de::{DeTable, DeValue};

use super::Lines;
use crate::tree::{DEPTH_MAX, Entry, Item, Node, Place};

/// After this many lines with errors the rest is noise.
const ERROR_LINES_MAX: usize = 10;

/// Reads `text`; on failure, the first complaint of each line that has one.
pub fn parse(text: &str) -> Result<Node, Vec<(Place, String)>> {
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let item = entries(table.get_ref(), &lines, DEPTH_MAX).map_err(|deep| vec![deep])?;
        return Ok(Node { item, place: Place::Line(1) });
    }
    let mut found: Vec<(usize, String)> = errors
        .iter()
        .map(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            (offset, format!("not well-formed TOML: {}", error.message().replace('\n', "; ")))
        })
        .collect();
    found.sort_by_key(|(offset, _)| *offset);
    let mut found: Vec<_> = found.into_iter().map(|(at, what)| (lines.place(at), what)).collect();
    found.dedup_by(|later, earlier| later.0 == earlier.0);
    found.truncate(ERROR_LINES_MAX);
    Err(found)
}

/// A value that is nested too deep, and where.
type TooDeep = (Place, String);

/// The entries of a table that may hold tables and lists `left` deep.
fn entries(table: &DeTable<'_>, lines: &Lines, left: usize) -> Result<Item, TooDeep> {
    let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &toml::Spanned<toml::de::DeString<'_>> = key;
        let place = lines.place(key.span().start);
        let value = node(value, lines, left)?;
        Ok(Entry { key: key.get_ref().to_string(), place, value })
    };
    Ok(Item::Table(table.iter().map(entry).collect::<Result<_, TooDeep>>()?))
}

fn node(value: &toml::Spanned<DeValue<'_>>, lines: &Lines, left: usize) -> Result<Node, TooDeep> {
    let place = lines.place(value.span().start);
    let below = || left.checked_sub(1).ok_or_else(|| (place.clone(), super::too_deep()));
    let item = match value.get_ref() {
        DeValue::String(text) => Item::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Item::Alien("a number beyond 64 bits"), Item::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or(Item::Alien("a number out of range"), Item::Float)
        }
        DeValue::Boolean(value) => Item::Bool(*value),
        DeValue::Datetime(_) => Item::Alien("a date"),
        DeValue::Array(values) => {
            let left = below()?;
            let nodes = values.iter().map(|value| node(value, lines, left));
            Item::List(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => entries(table, lines, below()?)?,
    };
    Ok(Node { item, place })
}
