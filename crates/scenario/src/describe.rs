//! What a table of the scenario takes, as rows for people: from the schema, so always true.

use serde::Serialize;
use serde_json::Value;

use crate::check::View;

/// One key of a table.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KeyDescription {
    /// Path of the key below its table.
    pub key: String,
    /// What its value looks like: type, range, unit.
    pub value: String,
    /// Its default, as it would be written; `required` if a value must be given; `see description` where the description says
    /// how it is worked out.
    pub default: String,
    /// What it means and where the default comes from.
    pub description: String,
}

/// Tables within tables are followed this deep; deeper ones are described by their own name.
const DEPTH_MAX: usize = 4;

/// The keys of the table that `schema` describes; references point into `root`.
#[must_use]
pub fn keys(schema: &Value, root: &Value) -> Vec<KeyDescription> {
    let mut rows = Vec::new();
    collect(schema, root, "", 0, &mut rows);
    rows
}

/// The description of what `schema` stands for.
#[must_use]
pub fn description(schema: &Value, root: &Value) -> String {
    text(&View::new(schema, root))
}

/// What `name` stands for below `schema`: a key of the table, or the word that chooses one of its shapes.
/// Of a list of tables, what it stands for in one of them.
#[must_use]
pub fn below(schema: &Value, name: &str, root: &Value) -> Option<Value> {
    let view = View::new(schema, root);
    if let Some(found) = view.property(name) {
        return Some(found.clone());
    }
    let shapes: Vec<Value> = view.variants().iter().map(|one| view.variant(one)).collect();
    let chosen = shapes.iter().find(|shape| tag(&View::new(shape, root)) == Some(name));
    let in_shape = |shape: &Value| View::new(shape, root).property(name).cloned();
    chosen.cloned().or_else(|| shapes.iter().find_map(in_shape)).or_else(|| {
        let items = view.keyword("items")?;
        below(items, name, root)
    })
}

/// The names that [`below`] finds: keys of the table, and words that choose its shape.
#[must_use]
pub fn names_below(schema: &Value, root: &Value) -> Vec<String> {
    let view = View::new(schema, root);
    let mut names: Vec<String> =
        view.properties().into_iter().flatten().map(|(n, _)| n.clone()).collect();
    for variant in view.variants() {
        let shape = view.variant(variant);
        let view = View::new(&shape, root);
        names.extend(tag(&view).map(ToString::to_string));
        names.extend(view.properties().into_iter().flatten().map(|(name, _)| name.clone()));
    }
    if let Some(items) = view.keyword("items").filter(|_| names.is_empty()) {
        names = names_below(items, root);
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// The words that choose the shape of `schema`, if it has several.
#[must_use]
pub fn shapes(schema: &Value, root: &Value) -> Vec<String> {
    let view = View::new(schema, root);
    let word = |variant| {
        let shape = view.variant(variant);
        tag(&View::new(&shape, root)).map(ToString::to_string)
    };
    view.variants().iter().filter_map(word).collect()
}

/// The word by which a table is chosen among several.
fn tag(view: &View) -> Option<&str> {
    let mut properties = view.properties().into_iter().flatten();
    properties.find_map(|(_, schema)| schema.get("const").and_then(Value::as_str))
}

fn collect(schema: &Value, root: &Value, path: &str, depth: usize, rows: &mut Vec<KeyDescription>) {
    let view = View::new(schema, root);
    let required: Vec<&str> = view.required().collect();
    for (name, schema) in view.properties().into_iter().flatten() {
        let below = View::new(schema, root);
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let default = match below.keyword("default").filter(|value| !value.is_null()) {
            Some(value) => chosen(value, &below, root).unwrap_or_else(|| written(value)),
            None if required.contains(&name.as_str()) => "required".into(),
            None => unwritten(&text(&below)).into(),
        };
        let table = below.properties().is_some() && below.variants().is_empty();
        let deeper = table && depth + 1 < DEPTH_MAX;
        rows.push(KeyDescription {
            key: key.clone(),
            value: choices(&below, root),
            default: if deeper { String::new() } else { default },
            description: text(&below),
        });
        if deeper {
            collect(schema, root, &key, depth + 1, rows);
        }
        for variant in below.variants() {
            let variant = below.variant(variant);
            let view = View::new(&variant, root);
            if depth + 1 < DEPTH_MAX && view.properties().is_some() {
                let from = rows.len();
                collect(&variant, root, &key, depth + 1, rows);
                // The word that chooses a shape has that shape's description.
                if let Some(tag) = rows.get_mut(from).filter(|row| row.description.is_empty()) {
                    tag.description = text(&view);
                }
            }
        }
    }
}

/// What the value looks like, with the words it takes.
fn choices(view: &View, root: &Value) -> String {
    let variants = view.variants();
    if variants.is_empty() {
        return view.expectation();
    }
    let mut all: Vec<_> = variants
        .iter()
        .map(|variant| View::new(&view.variant(variant), root).expectation())
        .collect();
    all.dedup();
    all.join(" or ")
}

fn text(view: &View) -> String {
    let text = view.keyword("description").and_then(Value::as_str).unwrap_or("");
    let own: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    own.join(" ")
}

/// What stands for a default that has no value of its own: none, or what its description says of it, as of one that is
/// worked out from other keys.
fn unwritten(description: &str) -> &'static str {
    let described = description.split_once("Default").map(|(_, said)| said.trim_start_matches(':'));
    match described.map(str::trim_start) {
        Some(said) if !said.starts_with("none") && !said.starts_with("never") => "see description",
        _ => "none",
    }
}

/// A default that is one of several tables, whose keys have lines of their own: what chooses the table.
fn chosen(value: &Value, view: &View, root: &Value) -> Option<String> {
    let map = value.as_object().filter(|map| map.len() > 1)?;
    let is_word = |variant: &Value, key: &str, word: &Value| {
        let variant = View::new(&view.variant(variant), root);
        variant.property(key).is_some_and(|schema| schema.get("const") == Some(word))
    };
    let mut words = map.iter().filter(|(key, word)| {
        word.is_string() && view.variants().iter().any(|variant| is_word(variant, key, word))
    });
    words.next().map(|(key, word)| format!("{{ {key} = {word}, … }}"))
}

/// A default as it would stand in TOML; tables in it, whose keys have lines of their own, as `{ … }`.
fn written(value: &Value) -> String {
    let part = |value: &Value| match value {
        Value::Object(map) if !map.is_empty() => "{ … }".into(),
        other => written(other),
    };
    match value {
        Value::Object(map) if map.is_empty() => "{}".into(),
        Value::Object(map) => {
            let pairs: Vec<_> = map
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| format!("{key} = {}", part(value)))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(values) => {
            let all: Vec<_> = values.iter().map(written).collect();
            format!("[{}]", all.join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use schemars::{JsonSchema, schema_for};
    use serde::Serialize;

    use super::*;

    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    #[expect(dead_code, reason = "read by the schema alone")]
    enum Transport {
        Swift { beta: f64, resets_after: u32 },
        Fluid,
    }

    impl Default for Transport {
        fn default() -> Self {
            Self::Swift { beta: 0.8, resets_after: 5 }
        }
    }

    #[derive(Default, Serialize, JsonSchema)]
    #[serde(default)]
    struct Table {
        transport: Transport,
        rate: u32,
        /// Default: what the transport asks for.
        queue: Option<u32>,
        /// Default: none.
        limit: Option<u32>,
    }

    #[test]
    fn a_default_that_is_one_of_several_tables_is_named_by_its_kind() {
        let schema = schema_for!(Table).to_value();
        let rows = keys(&schema, &schema);
        let default = |key: &str| rows.iter().find(|row| row.key == key).unwrap().default.clone();
        assert_eq!(default("transport"), "{ kind = \"swift\", … }");
        assert_eq!(default("rate"), "0");
        assert_eq!(default("queue"), "see description");
        assert_eq!(default("limit"), "none");
        // Its keys follow.
        assert!(rows.iter().any(|row| row.key == "transport.beta"));
    }
}
