//! JSON into a tree with lines.
//!
//! The JSON library gives no positions, but its raw values borrow from the text that it reads, so
//! their addresses say where they stand.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, Deserialize, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Lines;
use crate::problem::quoted;
use crate::tree::{DEPTH_MAX, Entry, Item, Node, Place};

/// Reads `text`; on failure, what is wrong and where.
pub fn parse(text: &str) -> Result<Node, Vec<(Place, String)>> {
    let reader = Reader { text, lines: Lines::new(text) };
    let raw: &RawValue = serde_json::from_str(text)
        .map_err(|error| vec![(Place::Line(error.line().max(1)), not_json(&error))])?;
    let root = reader.node(raw, 0).map_err(|problem| vec![problem])?;
    match root.item {
        Item::Table(_) => Ok(root),
        _ => Err(vec![(Place::Line(1), format!("found {}; expected a table", root.describe()))]),
    }
}

/// The parser's complaint without its position, which the place already says.
fn not_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    format!("not well-formed JSON: {message}")
}

struct Reader<'a> {
    text: &'a str,
    lines: Lines,
}

impl<'a> Reader<'a> {
    fn place(&self, raw: &RawValue) -> Place {
        let offset = (raw.get().as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        self.lines.place(offset)
    }

    fn node(&self, raw: &'a RawValue, depth: usize) -> Result<Node, (Place, String)> {
        let place = self.place(raw);
        if depth > DEPTH_MAX {
            return Err((place, super::too_deep()));
        }
        let wrong = |error: serde_json::Error| (place.clone(), not_json(&error));
        let item = match raw.get().as_bytes().first() {
            Some(b'{') => {
                let table: RawTable<'a> = serde_json::from_str(raw.get()).map_err(wrong)?;
                self.table(table, depth)?
            }
            Some(b'[') => {
                let list: Vec<&'a RawValue> = serde_json::from_str(raw.get()).map_err(wrong)?;
                let nodes = list.into_iter().map(|raw| self.node(raw, depth + 1));
                Item::List(nodes.collect::<Result<_, _>>()?)
            }
            _ => super::node(&serde_json::from_str(raw.get()).map_err(wrong)?).item,
        };
        Ok(Node { item, place })
    }

    fn table(&self, table: RawTable<'a>, depth: usize) -> Result<Item, (Place, String)> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut keys = HashSet::new();
        for (key, raw) in table.0 {
            let place = self.place(raw);
            if !keys.insert(key.clone()) {
                return Err((place, format!("duplicate key {}", quoted(&key))));
            }
            if raw.get() != "null" {
                entries.push(Entry { key, place, value: self.node(raw, depth + 1)? });
            }
        }
        Ok(Item::Table(entries))
    }
}

/// The keys of one table with their values unread, in order, duplicates included.
struct RawTable<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for RawTable<'de> {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = RawTable<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(RawTable(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
