//! What is wrong with an input, said once and usefully.

use std::fmt;

/// One thing wrong with a configuration: which key, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Path of the key below the table that was checked, such as `slot` or `sizes.mean`; empty for
    /// the table itself.
    pub key: String,
    /// What was found, what was expected, what to do: one sentence, no full stop.
    pub message: String,
}

impl Problem {
    /// A problem with `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }

    /// The same problem seen from the table above: `key` is that of the table it was found in.
    #[must_use]
    pub fn below(mut self, key: &str) -> Self {
        self.key = if self.key.is_empty() { key.into() } else { format!("{key}.{}", self.key) };
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}
