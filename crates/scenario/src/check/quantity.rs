//! Which text is a quantity: known by the pattern that the quantity's own schema states.

use std::sync::LazyLock;

use kernel::{Bytes, Rate, Span, UnitError};
use schemars::{JsonSchema, SchemaGenerator};

use super::View;

/// The kinds of quantity that text may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// A time or a length of time.
    Time,
    /// A size in bytes.
    Size,
    /// A bit rate.
    Rate,
}

/// The pattern of each kind.
static PATTERNS: LazyLock<[(String, Quantity); 3]> = LazyLock::new(|| {
    [
        (pattern::<Span>(), Quantity::Time),
        (pattern::<Bytes>(), Quantity::Size),
        (pattern::<Rate>(), Quantity::Rate),
    ]
});

fn pattern<T: JsonSchema>() -> String {
    let schema = T::json_schema(&mut SchemaGenerator::default());
    let pattern = schema.get("pattern").and_then(|pattern| pattern.as_str());
    pattern.expect("the schema of a quantity states a pattern").to_string()
}

impl Quantity {
    /// The quantity that text at this place must hold, if any.
    #[must_use]
    pub fn of(view: &View) -> Option<Self> {
        let pattern = view.keyword("pattern")?.as_str()?;
        PATTERNS.iter().find(|(known, _)| known == pattern).map(|(_, quantity)| *quantity)
    }

    /// What is expected, for messages.
    #[must_use]
    pub fn expectation(self) -> &'static str {
        match self {
            Self::Time => "a time in quotes with its unit, such as \"2.75 ns\"",
            Self::Size => "a size in quotes with its unit, such as \"64 B\"",
            Self::Rate => "a rate in quotes with its unit, such as \"100 Gbps\"",
        }
    }

    /// Whether `text` is such a quantity.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(self, text: &str) -> Result<(), UnitError> {
        match self {
            Self::Time => text.parse::<Span>().map(drop),
            Self::Size => text.parse::<Bytes>().map(drop),
            Self::Rate => text.parse::<Rate>().map(drop),
        }
    }
}
