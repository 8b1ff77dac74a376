//! One place of a JSON Schema, with references and intersections folded in.

use rack::ranges::Range;
use serde_json::{Map, Value};

use super::quantity::Quantity;

/// A schema object whose `$ref` and `allOf` have been merged into it.
pub struct View {
    object: Map<String, Value>,
}

/// References that lead to references; more than this is a loop.
const REFERENCES_MAX: usize = 16;

impl View {
    /// The view of `schema`, whose references point into `root`.
    #[must_use]
    pub fn new(schema: &Value, root: &Value) -> Self {
        let mut object = Map::new();
        merge(&mut object, schema, root, 0);
        // `anyOf` with null is how an optional value is written; null itself cannot be.
        for key in ["anyOf", "oneOf"] {
            let Some(Value::Array(variants)) = object.get_mut(key) else { continue };
            variants.retain(|variant| variant["type"] != "null");
            if let [only] = variants.as_slice() {
                let only = only.clone();
                object.remove(key);
                // What is left of the place itself is said of this very key: it goes first.
                merge(&mut object, &only, root, 0);
            }
        }
        Self { object }
    }

    /// The alternatives, none if there is no choice. Alternatives that are all plain words count as
    /// [`View::words`], not as a choice.
    #[must_use]
    pub fn variants(&self) -> &[Value] {
        if self.words().is_some() {
            return &[];
        }
        ["oneOf", "anyOf"]
            .iter()
            .find_map(|key| self.object.get(*key).and_then(Value::as_array))
            .map_or(&[], Vec::as_slice)
    }

    /// The view of one alternative together with what all alternatives share.
    #[must_use]
    pub fn variant(&self, variant: &Value) -> Value {
        let mut object = self.object.clone();
        object.remove("oneOf");
        object.remove("anyOf");
        let mut merged = variant.as_object().cloned().unwrap_or_default();
        merge_objects(&mut merged, object);
        Value::Object(merged)
    }

    /// The words this place takes, if it takes nothing but certain words.
    #[must_use]
    pub fn words(&self) -> Option<Vec<String>> {
        let text = |value: &Value| value.as_str().map(str::to_string);
        let object = &self.object;
        if let Some(word) = object.get("const") {
            return text(word).map(|word| vec![word]);
        }
        if let Some(Value::Array(words)) = object.get("enum") {
            return words.iter().filter(|word| !word.is_null()).map(text).collect();
        }
        let variants = ["oneOf", "anyOf"].iter().find_map(|key| object.get(*key)?.as_array())?;
        let mut words = Vec::new();
        for variant in variants {
            match (&variant["const"], &variant["enum"]) {
                (Value::String(word), _) => words.push(word.clone()),
                (_, Value::Array(more)) => {
                    words.extend(more.iter().map(text).collect::<Option<Vec<_>>>()?);
                }
                _ => return None,
            }
        }
        Some(words)
    }

    /// The types this place takes, null left out; empty if it does not say.
    #[must_use]
    pub fn types(&self) -> Vec<&str> {
        match self.object.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => {
                kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null").collect()
            }
            _ => Vec::new(),
        }
    }

    /// The names of the keys this table takes.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.properties().map(|all| all.keys().cloned().collect()).unwrap_or_default()
    }

    /// The keys with their schemas.
    #[must_use]
    pub fn properties(&self) -> Option<&Map<String, Value>> {
        self.object.get("properties").and_then(Value::as_object)
    }

    /// The schema of one key: its own or, in a map with free keys, that of all.
    #[must_use]
    pub fn property(&self, key: &str) -> Option<&Value> {
        let own = self.properties().and_then(|all| all.get(key));
        own.or_else(|| self.object.get("additionalProperties").filter(|schema| schema.is_object()))
    }

    /// The keys that must be there.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let keys = self.object.get("required").and_then(Value::as_array);
        keys.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The schema of the list's item with this index.
    #[must_use]
    pub fn item(&self, index: usize) -> Option<&Value> {
        let fixed = self.object.get("prefixItems").and_then(|items| items.get(index));
        fixed.or_else(|| self.object.get("items"))
    }

    /// Smallest and largest length of the list.
    #[must_use]
    pub fn length(&self) -> (usize, usize) {
        let limit = |key| self.object.get(key).and_then(Value::as_u64).map(|n| n as usize);
        (limit("minItems").unwrap_or(0), limit("maxItems").unwrap_or(usize::MAX))
    }

    /// A keyword's value.
    #[must_use]
    pub fn keyword(&self, key: &str) -> Option<&Value> {
        self.object.get(key)
    }

    /// The range of a number.
    #[must_use]
    pub fn range(&self) -> Range {
        Range::of(&self.object)
    }

    /// What a value here looks like, for messages.
    #[must_use]
    pub fn expectation(&self) -> String {
        if let Some(words) = self.words() {
            return super::one_of(&words);
        }
        let variants = self.variants();
        if !variants.is_empty() {
            let mut all: Vec<_> = variants
                .iter()
                .map(|variant| View::new(&self.variant(variant), &Value::Null).expectation())
                .collect();
            all.dedup();
            return all.join(" or ");
        }
        let types = self.types();
        let all: Vec<_> = types.iter().map(|kind| self.expectation_of(kind)).collect();
        if all.is_empty() { "a value".into() } else { all.join(" or ") }
    }

    fn expectation_of(&self, kind: &str) -> String {
        match (kind, Quantity::of(self)) {
            ("string", Some(quantity)) => quantity.expectation().into(),
            ("string", None) => "text".into(),
            ("boolean", _) => "true or false".into(),
            ("integer", _) => super::scalar::bounds(self, "a whole number"),
            ("number", _) => super::scalar::bounds(self, "a number"),
            ("array", _) => "a list".into(),
            ("object", _) => "a table".into(),
            (other, _) => other.into(),
        }
    }
}

/// Folds `schema` into `into`, its own words before those of what it refers to.
fn merge(into: &mut Map<String, Value>, schema: &Value, root: &Value, depth: usize) {
    assert!(depth < REFERENCES_MAX, "the schema refers to itself: {schema}");
    let Some(object) = schema.as_object() else { return };
    merge_objects(into, object.clone());
    let target = into.remove("$ref").and_then(|reference| {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        root.pointer(pointer).cloned()
    });
    let parts = match into.remove("allOf") {
        Some(Value::Array(parts)) => parts,
        _ => Vec::new(),
    };
    for part in target.iter().chain(&parts) {
        merge(into, part, root, depth + 1);
    }
}

/// Adds what `more` has and `into` lacks; tables of properties and lists of required keys unite.
fn merge_objects(into: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match (key.as_str(), into.get_mut(&key), value) {
            ("properties", Some(Value::Object(mine)), Value::Object(theirs)) => {
                for (name, schema) in theirs {
                    mine.entry(name).or_insert(schema);
                }
            }
            ("required", Some(Value::Array(mine)), Value::Array(theirs)) => {
                for name in theirs {
                    if !mine.contains(&name) {
                        mine.push(name);
                    }
                }
            }
            (_, Some(_), _) => {}
            (_, None, value) => {
                into.insert(key, value);
            }
        }
    }
}
