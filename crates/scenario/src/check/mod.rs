//! Holds a scenario's tree against the JSON Schema and says all that is wrong with it.
//!
//! The schema comes from the very structs that are read, so the two cannot drift apart. Tables are
//! closed: a key that the schema does not name is a mistake, and the nearest one is suggested.

mod quantity;
mod scalar;
#[cfg(test)]
mod tests;
mod union;
mod view;

use serde_json::Value;

use crate::problem::{Located, quoted};
use crate::tree::{Entry, Item, Node, Place};
pub use view::View;

/// Two words this alike are taken for the same: Jaro-Winkler similarity. Our choice: keeps "gaurd"
/// with "guard" and "laod" with "load", and apart what shares only a first letter.
const ALIKE: f64 = 0.8;
/// Longest text that may be a word misspelt, in bytes. Our choice.
const WORD_MAX: usize = 100;
/// A list of keys up to this long is printed whole when none is alike.
const KEYS_SHOWN: usize = 16;

/// After this many problems the rest is not noted: one is enough to refuse, and far fewer are shown.
const PROBLEMS_MAX: usize = 1_000;

/// All that is wrong with `root` by `schema`; problems name `source`.
#[must_use]
pub fn check(source: &str, root: &Node, schema: &Value) -> Vec<Located> {
    let mut checker = Checker { source, schema, problems: Vec::new() };
    checker.node(root, schema, "");
    checker.problems
}

struct Checker<'a> {
    source: &'a str,
    /// The whole schema, for references.
    schema: &'a Value,
    problems: Vec<Located>,
}

impl Checker<'_> {
    fn complain(&mut self, place: &Place, path: &str, message: impl Into<String>) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        self.problems.push(Located::new(self.source, place.clone(), path, message));
    }

    fn node(&mut self, node: &Node, schema: &Value, path: &str) {
        let view = View::new(schema, self.schema);
        if !view.variants().is_empty() {
            return self.union(node, &view, path);
        }
        if let Some(words) = view.words() {
            return self.word(node, &words, path);
        }
        let types = view.types();
        if !types.is_empty() && !types.iter().any(|kind| accepts(kind, &node.item)) {
            let message = format!("found {}; expected {}", node.describe(), view.expectation());
            return self.complain(&node.place, path, message);
        }
        match &node.item {
            Item::Table(entries) => self.table(node, entries, &view, path),
            Item::List(nodes) => self.list(node, nodes, &view, path),
            Item::Alien(what) => self.complain(
                &node.place,
                path,
                format!("found {what}; expected {}", view.expectation()),
            ),
            _ => {
                if let Err(message) = scalar::check(&node.item, &view) {
                    self.complain(&node.place, path, message);
                }
            }
        }
    }

    fn table(&mut self, node: &Node, entries: &[Entry], view: &View, path: &str) {
        for entry in entries {
            let below = join(path, &entry.key);
            match view.property(&entry.key) {
                Some(schema) => self.node(&entry.value, schema, &below),
                None => {
                    let deeper = self.deeper(&entry.key, view);
                    let hint = match deeper.len() {
                        1..=KEYS_SHOWN => format!("did you mean {}?", one_of(&deeper)),
                        _ => suggest(&entry.key, &view.keys()),
                    };
                    self.complain(&entry.place, &below, format!("unknown key; {hint}"));
                }
            }
        }
        for key in view.required() {
            if !entries.iter().any(|entry| entry.key == key) {
                let expected = view.property(key).map_or("a value".into(), |schema| {
                    View::new(schema, self.schema).expectation()
                });
                let message = format!("missing; expected {expected}");
                self.complain(&node.place, &join(path, key), message);
            }
        }
    }

    /// The tables right below `view` that take a key: where whoever left its table out may have meant it.
    fn deeper(&self, key: &str, view: &View) -> Vec<String> {
        let tables = view.properties().into_iter().flatten();
        let takes = |schema: &Value| {
            let view = View::new(schema, self.schema);
            view.properties().is_some_and(|all| all.contains_key(key))
        };
        let takes = tables.filter(|(_, schema)| takes(schema));
        takes.map(|(table, _)| format!("{table}.{key}")).collect()
    }

    fn list(&mut self, node: &Node, nodes: &[Node], view: &View, path: &str) {
        let (least, most) = view.length();
        if nodes.len() < least || nodes.len() > most {
            let expected = match (least, most) {
                (least, usize::MAX) => format!("at least {least}"),
                (least, most) if least == most => format!("{least}"),
                (least, most) => format!("{least} to {most}"),
            };
            self.complain(
                &node.place,
                path,
                format!("found a list of {}; expected {expected}", nodes.len()),
            );
        }
        for (index, node) in nodes.iter().enumerate() {
            if let Some(schema) = view.item(index) {
                self.node(node, schema, &format!("{path}[{index}]"));
            }
        }
    }

    fn word(&mut self, node: &Node, words: &[String], path: &str) {
        if node.text().is_some_and(|text| words.iter().any(|word| word == text)) {
            return;
        }
        let expected = one_of(words);
        let message = match node.text() {
            Some(text) => {
                let found = quoted(text);
                match alike(text, words) {
                    Some(word) => {
                        format!("found {found}; did you mean {word:?}? Expected {expected}")
                    }
                    None => format!("found {found}; expected {expected}"),
                }
            }
            None => format!("found {}; expected {expected}", node.describe()),
        };
        self.complain(&node.place, path, message);
    }
}

/// Whether a value of this JSON Schema type may be written as `item`. A whole number is a number.
fn accepts(kind: &str, item: &Item) -> bool {
    match item {
        Item::Bool(_) => kind == "boolean",
        Item::Integer(_) => kind == "integer" || kind == "number",
        Item::Float(_) => kind == "number",
        Item::Text(_) => kind == "string",
        Item::List(_) => kind == "array",
        Item::Table(_) => kind == "object",
        Item::Alien(_) => false,
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

/// `"a"`, `"a" or "b"`, `one of "a", "b", "c"`.
#[must_use]
pub fn one_of(words: &[String]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
    match quoted.as_slice() {
        [] => "nothing".into(),
        [one] => one.clone(),
        [one, two] => format!("{one} or {two}"),
        many => format!("one of {}", many.join(", ")),
    }
}

/// The word most like `text`, if one is alike.
#[must_use]
pub fn alike<'a>(text: &str, words: &'a [String]) -> Option<&'a String> {
    // No word of ours is as long, and comparing takes time that grows with the square.
    if text.len() > WORD_MAX {
        return None;
    }
    words
        .iter()
        .map(|word| (strsim::jaro_winkler(text, word), word))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// The words of several parts, such as `line_rate`, of which `text` is one.
fn akin(text: &str, words: &[String]) -> Vec<String> {
    let has = |word: &&String| word.split(['_', '-']).any(|part| part == text);
    words.iter().filter(has).cloned().collect()
}

/// What to do about an unknown word.
#[must_use]
pub fn suggest(text: &str, words: &[String]) -> String {
    match alike(text, words) {
        Some(word) => format!("did you mean {word:?}?"),
        None if words.is_empty() => "this table takes no keys".into(),
        None if words.len() <= KEYS_SHOWN => format!("expected {}", one_of(words)),
        None if !akin(text, words).is_empty() => {
            format!("did you mean {}?", one_of(&akin(text, words)))
        }
        None => format!("none of the {} known ones is like it", words.len()),
    }
}
