//! Collects what is wrong with a configuration, key by key.

use kernel::{Bytes, Span, Time};

use crate::Problem;
use crate::workload::limits::{FLOW_MAX, SPAN_MAX, START_MAX};

/// The problems found so far, each under a key below the table that is checked.
#[derive(Debug, Default)]
pub struct Problems {
    list: Vec<Problem>,
    /// Put before every key: the path of the table being checked.
    path: String,
}

impl Problems {
    /// Adds a problem with `key` of the table being checked.
    pub fn add(&mut self, key: &str, message: impl Into<String>) {
        let key = match (self.path.as_str(), key) {
            (path, "") => path.to_string(),
            ("", key) => key.to_string(),
            (path, key) => format!("{path}.{key}"),
        };
        self.list.push(Problem::new(key, message));
    }

    /// Checks the table at `key` below this one.
    pub fn below<T>(&mut self, key: &str, check: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        let result = check(self);
        self.path.truncate(length);
        result
    }

    /// How many problems there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// The value, if nothing is wrong.
    ///
    /// # Errors
    /// All problems.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match value {
            Some(value) if self.list.is_empty() => Ok(value),
            _ => Err(self.list),
        }
    }
}

/// A flow of some bytes, and not of more than any may have.
pub(super) fn check_size(size: Bytes, problems: &mut Problems) {
    if size == Bytes::ZERO {
        problems.add("size", "found 0 B; a flow carries at least 1 B");
    }
    check_flow("size", size, problems);
}

/// A flow of not more bytes than any may have.
pub(super) fn check_flow(key: &str, size: Bytes, problems: &mut Problems) {
    if size > FLOW_MAX {
        let message = format!("found {} bytes; a flow carries at most 1 TiB", size.get());
        problems.add(key, message);
    }
}

/// A start within the time that a run may take.
pub(super) fn check_start(key: &str, start: Time, problems: &mut Problems) {
    if start > START_MAX {
        problems.add(key, format!("found {start}; a run ends after 30 days at the latest"));
    }
}

/// A time no longer than a run may take.
pub(super) fn check_span(key: &str, span: Span, problems: &mut Problems) {
    if span > SPAN_MAX {
        problems.add(key, format!("found {span}; a run ends after 30 days at the latest"));
    }
}
