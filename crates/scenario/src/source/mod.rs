//! Reading a scenario's text into a tree of values with places.

mod arguments;
mod json;
mod toml;

use std::io::Read;
use std::path::Path;

use serde_json::Value;

pub use arguments::Argument;

use crate::problem::{BadInput, Located};
use crate::tree::{DEPTH_MAX, Entry, Item, Node, Place};

/// A scenario as it was written: its tree and the name of its source.
#[derive(Clone, Debug)]
pub struct Document {
    /// What messages call the source: the file's path as given.
    pub name: String,
    /// The folder against which paths in the scenario are resolved.
    pub folder: std::path::PathBuf,
    /// The tree; its root is a table.
    pub root: Node,
}

/// The formats of a scenario file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `.toml`, and anything that is not `.json`.
    Toml,
    /// `.json`.
    Json,
}

impl Document {
    /// Reads the scenario file at `path`, TOML or, by its extension, JSON.
    ///
    /// # Errors
    /// When it cannot be read or is not well-formed: every place where it is not.
    pub fn open(path: &Path) -> Result<Self, BadInput> {
        let name = path.display().to_string();
        let bad = |message: String| BadInput::single(Located::whole(&name, message));
        let text = read_text(path).map_err(bad)?;
        let json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let format = if json { Format::Json } else { Format::Toml };
        let mut document = Self::parse(&name, &text, format)?;
        document.folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Ok(document)
    }

    /// Reads a scenario from text; `name` is what messages call it.
    ///
    /// # Errors
    /// When it is not well-formed: every place where it is not.
    pub fn parse(name: &str, text: &str, format: Format) -> Result<Self, BadInput> {
        let root = match format {
            Format::Toml => toml::parse(text),
            Format::Json => json::parse(text),
        };
        let located = |(place, message)| Located::new(name, place, "", message);
        let root = root.map_err(|all| BadInput::new(all.into_iter().map(located).collect()))?;
        Ok(Self { name: name.into(), folder: Path::new("").into(), root })
    }

    /// Takes a scenario that is already a value: a Python dictionary, say.
    ///
    /// # Errors
    /// When it is not a table.
    pub fn from_value(name: &str, value: &Value) -> Result<Self, BadInput> {
        let root = node(value);
        if !matches!(root.item, Item::Table(_)) {
            let message = format!("found {}; expected a table", root.describe());
            return Err(BadInput::single(Located::whole(name, message)));
        }
        Ok(Self { name: name.into(), folder: Path::new("").into(), root })
    }
}

/// Longest text that is read whole, in bytes. Our choice: a million links of a topology, and a tree of
/// some hundred megabytes at most.
const TEXT_MAX: u64 = 16 << 20;

/// The text of a file, if it is one and no longer than a scenario or a list of links needs.
///
/// # Errors
/// Why it is not read.
pub fn read_text(path: &Path) -> Result<String, String> {
    let unreadable = |error| format!("cannot be read: {error}");
    let file = crate::trace::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    // One byte more than there may be, so that a file that grows while it is read is found out too.
    file.take(TEXT_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > TEXT_MAX {
        let found = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        return Err(format!(
            "is {found} bytes long; expected at most {TEXT_MAX}: flows belong in a trace, a file of its own"
        ));
    }
    let is_utf16 = [[0xFF, 0xFE], [0xFE, 0xFF]].iter().any(|mark| bytes.starts_with(mark));
    let text = String::from_utf8(bytes).map_err(|_| match is_utf16 {
        true => "is text in UTF-16; expected UTF-8: save it as that".to_string(),
        false => "is not text in UTF-8".to_string(),
    })?;
    // What editors of Windows write at the beginning is no part of it.
    if let Some(text) = text.strip_prefix('\u{feff}') {
        return Ok(text.to_string());
    }
    Ok(text)
}

/// What is said of a value that is nested too deep.
fn too_deep() -> String {
    format!("nested more than {DEPTH_MAX} deep; expected a scenario, which is a few")
}

/// The tree of a JSON value without places. A key whose value is null counts as absent; what lies too
/// deep is something that no key takes.
fn node(value: &Value) -> Node {
    node_within(value, DEPTH_MAX)
}

fn node_within(value: &Value, left: usize) -> Node {
    let item = match value {
        Value::Null => Item::Alien("null"),
        Value::Bool(value) => Item::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(value), _) => Item::Integer(value),
            (None, Some(value)) if number.is_f64() => Item::Float(value),
            _ => Item::Alien("a number beyond 64 bits"),
        },
        Value::String(text) => Item::Text(text.clone()),
        Value::Array(_) | Value::Object(_) if left == 0 => Item::Alien("a value nested too deep"),
        Value::Array(values) => {
            Item::List(values.iter().map(|value| node_within(value, left - 1)).collect())
        }
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| Entry {
                key: key.clone(),
                place: Place::Unknown,
                value: node_within(value, left - 1),
            };
            Item::Table(map.iter().filter(|(_, value)| !value.is_null()).map(entry).collect())
        }
    };
    Node { item, place: Place::Unknown }
}

/// Turns byte offsets into lines.
struct Lines {
    /// Offset of the first byte of each line.
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect() }
    }

    /// The line that holds the byte at `offset`.
    fn place(&self, offset: usize) -> Place {
        Place::Line(self.starts.partition_point(|&start| start <= offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_begin_with_the_mark_of_its_bytes_and_is_utf_8() {
        let place = tempfile::tempdir().unwrap();
        let read = |bytes: &[u8]| {
            let path = place.path().join("text");
            std::fs::write(&path, bytes).unwrap();
            read_text(&path)
        };
        assert_eq!(read(b"\xEF\xBB\xBF{}").unwrap(), "{}");
        assert_eq!(read(b"seed = 1\n").unwrap(), "seed = 1\n");
        assert_eq!(read(b"").unwrap(), "");
        for bytes in [b"\xFF\xFEs\0", b"\xFE\xFF\0s"] {
            assert!(read(bytes).unwrap_err().starts_with("is text in UTF-16; expected UTF-8"));
        }
        assert_eq!(read(b"caf\xE9").unwrap_err(), "is not text in UTF-8");
    }
}
