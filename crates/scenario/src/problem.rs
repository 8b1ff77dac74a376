//! What is wrong with an input, all of it at once, each with its place.

use std::fmt;

use crate::tree::Place;

/// One thing wrong, where it stands, and what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    source: String,
    place: Place,
    path: String,
    message: String,
}

impl Located {
    /// A problem with the key at `path` in `source`.
    pub fn new(source: &str, place: Place, path: &str, message: impl Into<String>) -> Self {
        Self { source: source.into(), place, path: path.into(), message: message.into() }
    }

    /// A problem with all of `source`.
    pub fn whole(source: &str, message: impl Into<String>) -> Self {
        Self::new(source, Place::Unknown, "", message)
    }

    /// Says more about it.
    pub(crate) fn add(&mut self, more: &str) {
        self.message.push_str(more);
    }

    /// Where the value was given: the file, or the argument that set it.
    #[must_use]
    pub fn source(&self) -> &str {
        match &self.place {
            Place::Argument(argument) => argument,
            Place::Line(_) | Place::Unknown => &self.source,
        }
    }

    /// The path of the key: `fabric.guard`; empty for the whole source.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What was found, what is expected, what to do.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The line in the source, where one is known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::Line(line) => Some(line),
            _ => None,
        }
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Line(line) => write!(f, "{}:{line}: ", self.source)?,
            Place::Argument(argument) => write!(f, "{argument}: ")?,
            Place::Unknown => write!(f, "{}: ", self.source)?,
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// An input that cannot be used: every reason, in the order of the source. Never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadInput {
    problems: Vec<Located>,
}

impl BadInput {
    /// All of `problems`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn new(mut problems: Vec<Located>) -> Self {
        assert!(!problems.is_empty(), "bad input without a problem");
        problems.sort_by_key(|problem| problem.line().unwrap_or(usize::MAX));
        problems.dedup();
        Self { problems }
    }

    /// Just one.
    #[must_use]
    pub fn single(problem: Located) -> Self {
        Self { problems: vec![problem] }
    }

    /// Fails if there are problems.
    ///
    /// # Errors
    /// All of `problems`.
    pub fn unless_empty(problems: Vec<Located>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self::new(problems)) }
    }

    /// The problems.
    #[must_use]
    pub fn problems(&self) -> &[Located] {
        &self.problems
    }

    /// The problems, to add to others.
    #[must_use]
    pub fn into_problems(self) -> Vec<Located> {
        self.problems
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for BadInput {}
