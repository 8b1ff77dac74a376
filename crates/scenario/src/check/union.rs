//! Places that take one of several shapes: which one was meant, and what is wrong with it.

use serde_json::Value;

use super::{Checker, View, accepts, alike, join, one_of, suggest};
use crate::problem::{Located, quoted};
use crate::tree::{Item, Node};

/// Other words are named if they are this few (our choice).
const WORDS_SHOWN: usize = 6;

impl Checker<'_> {
    /// Checks `node` against the alternatives of `view`.
    pub(super) fn union(&mut self, node: &Node, view: &View, path: &str) {
        let variants: Vec<Value> = view.variants().iter().map(|v| view.variant(v)).collect();
        let views: Vec<View> = variants.iter().map(|v| View::new(v, self.schema)).collect();
        if matches!(node.item, Item::Table(_)) {
            if let Some(tag) = tag(&views) {
                return self.tagged(node, &variants, &views, tag, path);
            }
            if views.iter().all(|view| view.keys().len() == 1 || !view.types().contains(&"object"))
            {
                return self.keyed(node, &variants, &views, path);
            }
        }
        let takes_text = |view: &View| view.types().contains(&"string");
        if node.text().is_some() && views.iter().all(|v| v.words().is_some() || !takes_text(v)) {
            let words: Vec<String> = views.iter().filter_map(View::words).flatten().collect();
            if !words.is_empty() {
                return self.word(node, &words, path);
            }
        }
        let fitting: Vec<_> = variants
            .iter()
            .zip(&views)
            .filter(|(_, view)| fits(node, view))
            .map(|(variant, _)| variant)
            .collect();
        let attempts = fitting.into_iter().map(|variant| self.attempt(node, variant, path));
        match attempts.min_by_key(Vec::len) {
            Some(problems) => self.problems.extend(problems),
            None => {
                let mut expected: Vec<_> = views.iter().map(View::expectation).collect();
                expected.dedup();
                let expected = expected.join(" or ");
                self.complain(
                    &node.place,
                    path,
                    format!("found {}; expected {expected}", node.describe()),
                );
            }
        }
    }

    /// The alternatives differ in the word at `tag`: `kind = "poisson"`.
    fn tagged(&mut self, node: &Node, variants: &[Value], views: &[View], tag: &str, path: &str) {
        let words: Vec<String> = views.iter().filter_map(|view| word_at(view, tag)).collect();
        let path_tag = join(path, tag);
        let Some(found) = node.get(tag) else {
            let message = format!("missing; expected {}", one_of(&words));
            return self.complain(&node.place, &path_tag, message);
        };
        let Some(text) = found.text() else {
            let message = format!("found {}; expected {}", found.describe(), one_of(&words));
            return self.complain(&found.place, &path_tag, message);
        };
        match words.iter().position(|word| word == text) {
            Some(index) => {
                let first = self.problems.len();
                self.node(node, &variants[index], path);
                self.point_elsewhere(node, &views[index], views, tag, path, first);
            }
            None => {
                let expected = one_of(&words);
                let message = match alike(text, &words) {
                    Some(word) => {
                        format!(
                            "unknown {tag} {}; did you mean {word:?}? Expected {expected}",
                            quoted(text)
                        )
                    }
                    None => format!("unknown {tag} {}; expected {expected}", quoted(text)),
                };
                self.complain(&found.place, &path_tag, message);
            }
        }
    }

    /// Adds to the problems from `first` on: of a key that `chosen` does not know, or a table where it
    /// takes none, which words at `tag` would take it as it is.
    fn point_elsewhere(
        &mut self,
        node: &Node,
        chosen: &View,
        views: &[View],
        tag: &str,
        path: &str,
        first: usize,
    ) {
        for entry in node.entries() {
            let is_table = matches!(entry.value.item, Item::Table(_));
            if chosen.property(&entry.key).is_some() && !is_table {
                continue;
            }
            let below = join(path, &entry.key);
            let takes = |view: &&View| {
                let schema = view.property(&entry.key);
                schema.is_some_and(|schema| self.attempt(&entry.value, schema, &below).is_empty())
            };
            let words: Vec<_> =
                views.iter().filter(takes).filter_map(|view| word_at(view, tag)).collect();
            let wrong = self.problems[first..].iter_mut().find(|problem| problem.path() == below);
            if let (Some(problem), 1..=WORDS_SHOWN) = (wrong, words.len()) {
                problem.add(&format!("; {tag} = {} takes it", one_of(&words)));
            }
        }
    }

    /// What is wrong with `node` by `schema`.
    fn attempt(&self, node: &Node, schema: &Value, path: &str) -> Vec<Located> {
        let mut attempt =
            Checker { source: self.source, schema: self.schema, problems: Vec::new() };
        attempt.node(node, schema, path);
        attempt.problems
    }

    /// The alternatives differ in their only key: `{ pareto = { … } }` or `{ fixed = … }`.
    fn keyed(&mut self, node: &Node, variants: &[Value], views: &[View], path: &str) {
        let keys: Vec<String> = views.iter().flat_map(View::keys).collect();
        match node.entries() {
            [entry] => match views.iter().position(|view| view.keys().contains(&entry.key)) {
                Some(index) => self.node(node, &variants[index], path),
                None => {
                    let message = format!("unknown key; {}", suggest(&entry.key, &keys));
                    self.complain(&entry.place, &join(path, &entry.key), message);
                }
            },
            entries => {
                let message = format!(
                    "found a table of {} keys; expected just {}",
                    entries.len(),
                    one_of(&keys)
                );
                self.complain(&node.place, path, message);
            }
        }
    }
}

/// Whether the type of `node` is one that `view` takes.
fn fits(node: &Node, view: &View) -> bool {
    if view.words().is_some() {
        return node.text().is_some();
    }
    let types = view.types();
    types.is_empty() || types.iter().any(|kind| accepts(kind, &node.item))
}

/// The key at which every table among the alternatives has a fixed word.
fn tag(views: &[View]) -> Option<&str> {
    let tables: Vec<_> = views.iter().filter(|view| view.types().contains(&"object")).collect();
    let first = tables.first()?;
    let candidates = first.properties()?.keys();
    candidates
        .map(String::as_str)
        .find(|key| tables.iter().all(|view| word_at(view, key).is_some()))
}

/// The fixed word at `key`.
fn word_at(view: &View, key: &str) -> Option<String> {
    view.properties()?.get(key)?.get("const")?.as_str().map(str::to_string)
}
