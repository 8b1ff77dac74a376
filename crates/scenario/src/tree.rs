//! A scenario as a tree of values, each of which remembers where it was written.
//!
//! Every format (TOML, JSON, a Python dictionary, a `--set` argument) is read into this one tree;
//! checks walk it and can say the line of whatever they dislike.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::problem::quoted;

/// Tables and lists within each other go no deeper, whatever they are written in. Our choice: several
/// times what any scenario needs, and far from the end of any stack.
pub const DEPTH_MAX: usize = 32;

/// Where something was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the scenario file, at this line, counted from 1.
    Line(usize),
    /// On the command line or in a call: the argument as given, such as `--set seed=2`.
    Argument(Arc<str>),
    /// In a source without lines.
    Unknown,
}

/// A value and where it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// The value.
    pub item: Item,
    /// Where it stands.
    pub place: Place,
}

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub enum Item {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Text, quantities included.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A table, in the order of the source.
    Table(Vec<Entry>),
    /// Something no key takes, in words: a date, a number beyond 64 bits.
    Alien(&'static str),
}

/// A key of a table with its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// An empty table.
    #[must_use]
    pub fn table(place: Place) -> Self {
        Self { item: Item::Table(Vec::new()), place }
    }

    /// The entries of a table; none of anything else.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        match &self.item {
            Item::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The value of `key`, if this is a table that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The text, if it is text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.item {
            Item::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The tables that stand at a key which may be written once or as a list: `[fabric]`,
    /// `[[fabric]]`.
    #[must_use]
    pub fn one_or_many(&self) -> &[Node] {
        match &self.item {
            Item::List(nodes) => nodes,
            _ => std::slice::from_ref(self),
        }
    }

    /// The place of the key at `path` (`a.b[2].c`), or of the nearest table above it that exists.
    #[must_use]
    pub fn place_of(&self, path: &str) -> &Place {
        let mut node = self;
        let mut place = &self.place;
        for segment in segments(path) {
            let next = match (&node.item, segment) {
                (Item::Table(entries), Segment::Key(key)) => {
                    entries.iter().find(|entry| entry.key == key).map(|e| (&e.place, &e.value))
                }
                (Item::List(nodes), Segment::Index(index)) => {
                    nodes.get(index).map(|node| (&node.place, node))
                }
                _ => None,
            };
            let Some((found, value)) = next else { return place };
            (place, node) = (found, value);
        }
        place
    }

    /// The tree without its places.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.item {
            Item::Bool(value) => Value::from(*value),
            Item::Integer(value) => Value::from(*value),
            Item::Float(value) => Value::from(*value),
            Item::Text(value) => Value::from(value.as_str()),
            Item::List(nodes) => nodes.iter().map(Node::to_json).collect(),
            Item::Table(entries) => {
                let pairs = entries.iter().map(|e| (e.key.clone(), e.value.to_json()));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
            Item::Alien(_) => Value::Null,
        }
    }

    /// What this is, for messages.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.item {
            Item::Bool(value) => format!("{value}"),
            Item::Integer(value) => format!("the number {value}"),
            Item::Float(value) => format!("the number {value}"),
            Item::Text(value) => format!("the text {}", quoted(value)),
            Item::List(nodes) => format!("a list of {}", nodes.len()),
            Item::Table(_) => "a table".into(),
            Item::Alien(what) => (*what).into(),
        }
    }
}

/// One step of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment<'a> {
    /// Into a table.
    Key(&'a str),
    /// Into a list, counted from 0.
    Index(usize),
}

/// Splits `a.b[2].c` into its steps.
pub fn segments(path: &str) -> impl Iterator<Item = Segment<'_>> {
    path.split(['.', '[']).filter(|part| !part.is_empty()).map(|part| {
        let index = part.strip_suffix(']').unwrap_or(part);
        index.parse().map_or(Segment::Key(part), Segment::Index)
    })
}
