//! TOML into a tree with lines.

use toml::de::{DeTable, DeValue};

use super::Lines;
use crate::tree::{Entry, Item, Node, Place};

/// After this many lines with errors the rest is noise.
const ERROR_LINES_MAX: usize = 10;

/// Reads `text`; on failure, the first complaint of each line that has one.
pub fn parse(text: &str) -> Result<Node, Vec<(Place, String)>> {
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node { item: entries(table.get_ref(), &lines), place: Place::Line(1) });
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

fn entries(table: &DeTable<'_>, lines: &Lines) -> Item {
    let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &toml::Spanned<toml::de::DeString<'_>> = key;
        Entry {
            key: key.get_ref().to_string(),
            place: lines.place(key.span().start),
            value: node(value, lines),
        }
    };
    Item::Table(table.iter().map(entry).collect())
}

fn node(value: &toml::Spanned<DeValue<'_>>, lines: &Lines) -> Node {
    let item = match value.get_ref() {
        DeValue::String(text) => Item::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Item::Alien("a number beyond 64 bits"), Item::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or(Item::Alien("a number out of range"), Item::Float)
        }
        DeValue::Boolean(value) => Item::Bool(*value),
        DeValue::Datetime(_) => Item::Alien("a date"),
        DeValue::Array(values) => Item::List(values.iter().map(|v| node(v, lines)).collect()),
        DeValue::Table(table) => entries(table, lines),
    };
    Node { item, place: lines.place(value.span().start) }
}
