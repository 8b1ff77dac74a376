//! Values set beside the file: `--set fabric.guard="2.75 ns"`, `--seed 3`, Python keywords.

use std::sync::Arc;

use serde_json::Value;

use super::Document;
use crate::problem::{BadInput, Located};
use crate::tree::{DEPTH_MAX, Entry, Item, Node, Place, Segment, segments};

/// One value set from outside the file.
#[derive(Clone, Debug)]
pub struct Argument {
    path: String,
    value: Node,
}

impl Argument {
    /// Reads `key=value` as given with `--set`. The value is TOML; what is not TOML is text, so
    /// that `--set 'fabric.guard=2.75 ns'` needs no inner quotes.
    ///
    /// # Errors
    /// When there is no key or no `=`.
    pub fn parse(text: &str) -> Result<Self, BadInput> {
        let origin = format!("--set {text}");
        match text.split_once('=') {
            Some((path, value)) if !path.trim().is_empty() => {
                Ok(Self::text(path.trim(), value.trim(), &origin))
            }
            _ => Err(BadInput::single(Located::whole(
                &origin,
                "expected KEY=VALUE, such as workload.load=0.5",
            ))),
        }
    }

    /// Sets `path` to a value in TOML or, failing that, to text; messages call it `origin`.
    #[must_use]
    pub fn text(path: &str, value: &str, origin: &str) -> Self {
        let read = super::toml::parse(&format!("value = {value}\n")).ok();
        let alone = read.filter(|root| root.entries().len() == 1);
        let item = alone
            .and_then(|root| root.get("value").map(|node| node.item.clone()))
            .filter(|item| !matches!(item, Item::Alien(_)))
            .unwrap_or_else(|| Item::Text(value.into()));
        Self::new(path, Node { item, place: Place::Unknown }, origin)
    }

    /// Sets `path` to a value; messages call it `origin`.
    #[must_use]
    pub fn value(path: &str, value: &Value, origin: &str) -> Self {
        Self::new(path, super::node(value), origin)
    }

    fn new(path: &str, mut value: Node, origin: &str) -> Self {
        relocate(&mut value, &Place::Argument(origin.into()));
        Self { path: path.into(), value }
    }

    /// The key that is set.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Gives a whole tree one place.
fn relocate(node: &mut Node, place: &Place) {
    node.place = place.clone();
    match &mut node.item {
        Item::List(nodes) => nodes.iter_mut().for_each(|node| relocate(node, place)),
        Item::Table(entries) => entries.iter_mut().for_each(|entry| {
            entry.place = place.clone();
            relocate(&mut entry.value, place);
        }),
        _ => {}
    }
}

impl Document {
    /// Applies `arguments` in order; a later one wins.
    ///
    /// A key of a list of tables (`fabric.guard` with several `[[fabric]]`) is set in each of them;
    /// `fabric[1].guard` sets it in one.
    ///
    /// # Errors
    /// When a path leads through something that is not a table; every such path.
    pub fn set(&mut self, arguments: &[Argument]) -> Result<(), BadInput> {
        let mut problems = Vec::new();
        for argument in arguments {
            let steps: Vec<_> = segments(&argument.path).collect();
            // A tree as deep as that would end the stack of whoever walks it.
            let set = match steps.len() {
                0..=DEPTH_MAX => put(&mut self.root, &steps, &argument.value),
                depth => Err(format!("found a key of {depth} steps; expected at most {DEPTH_MAX}")),
            };
            if let Err(message) = set {
                let place = argument.value.place.clone();
                problems.push(Located::new(&self.name, place, &argument.path, message));
            }
        }
        BadInput::unless_empty(problems)
    }
}

fn put(node: &mut Node, steps: &[Segment<'_>], value: &Node) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    let found = node.describe();
    match (&mut node.item, *step) {
        (Item::Table(entries), Segment::Key(key)) => {
            let index = entries.iter().position(|entry| entry.key == key);
            let index = index.unwrap_or_else(|| {
                let place = value.place.clone();
                let value = Node::table(place.clone());
                entries.push(Entry { key: key.into(), place, value });
                entries.len() - 1
            });
            if rest.is_empty() {
                entries[index].place = value.place.clone();
            }
            put(&mut entries[index].value, rest, value)
        }
        (Item::List(nodes), Segment::Key(_)) => {
            nodes.iter_mut().try_for_each(|node| put(node, steps, value))
        }
        (Item::List(nodes), Segment::Index(index)) => match nodes.get_mut(index) {
            Some(node) => put(node, rest, value),
            None => Err(format!("there is no number {index} in {found}; the first is number 0")),
        },
        // `fabric[0].guard` also reaches a lone `[fabric]`.
        (Item::Table(_), Segment::Index(0)) => put(node, rest, value),
        (_, Segment::Key(key)) => Err(format!("cannot set {key:?} below {found}")),
        (_, Segment::Index(index)) => Err(format!("cannot set number {index} of {found}")),
    }
}

impl From<&str> for Place {
    fn from(origin: &str) -> Self {
        Self::Argument(Arc::from(origin))
    }
}
