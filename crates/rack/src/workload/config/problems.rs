//! Collects what is wrong with a configuration, key by key.

use crate::Problem;

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
