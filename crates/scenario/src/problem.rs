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
        let place = match place {
            Place::Argument(argument) if argument.len() > CUT => {
                Place::Argument(cut(&argument).into())
            }
            place => place,
        };
        let message = cut_quotes(message.into());
        Self { source: cut(source), place, path: cut(path), message: cut_middle(message) }
    }

    /// A problem with all of `source`.
    pub fn whole(source: &str, message: impl Into<String>) -> Self {
        Self::new(source, Place::Unknown, "", message)
    }

    /// Says more about it.
    pub(crate) fn add(&mut self, more: &str) {
        self.message.push_str(&cut_quotes(more.into()));
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

/// Text up to this many bytes is quoted whole: a command line, a path, any honest value. Our choice.
const CUT: usize = 200;
/// Of longer text this many characters are shown. Our choice.
const SHOWN: usize = 60;
/// A message of more bytes is cut in its middle. Our choice: the longest honest ones list many words.
const MESSAGE_MAX: usize = 2_000;
/// Problems listed of one input; a broken generator makes thousands alike. Our choice.
const LISTED: usize = 100;

/// `text`, or its start and how long it is.
#[must_use]
pub fn cut(text: &str) -> String {
    if text.len() <= CUT {
        return text.into();
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start}… ({} characters)", text.chars().count())
}

/// `text` in quotes, or the start of it and how long it is.
#[must_use]
pub fn quoted(text: &str) -> String {
    if text.len() <= CUT {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(SHOWN).collect();
    format!("{start:?}… ({} characters)", text.chars().count())
}

/// Cuts what stands in quotes in a message: values, whoever has put them there.
fn cut_quotes(message: String) -> String {
    if message.len() <= CUT {
        return message;
    }
    let mut text = String::new();
    let mut rest = message.as_str();
    while let Some(open) = rest.find('"') {
        let (before, quote) = rest.split_at(open + 1);
        text.push_str(before);
        let mut escaped = false;
        let is_end = |letter: char| {
            let ends = letter == '"' && !escaped;
            escaped = letter == '\\' && !escaped;
            ends
        };
        let Some(close) = quote.find(is_end) else {
            rest = quote;
            break;
        };
        let (inside, after) = quote.split_at(close);
        if inside.len() <= CUT {
            text.push_str(inside);
            text.push('"');
        } else {
            let count = inside.chars().count();
            text.extend(inside.chars().take(SHOWN));
            text.push_str(&format!("\"… ({count} characters)"));
        }
        rest = &after[1..];
    }
    text + rest
}

/// What is too long for a message has its start and its end shown: the value and the advice.
fn cut_middle(message: String) -> String {
    if message.len() <= MESSAGE_MAX {
        return message;
    }
    let count = message.chars().count();
    let start: String = message.chars().take(MESSAGE_MAX / 4).collect();
    let end: String = message.chars().skip(count - MESSAGE_MAX / 4).collect();
    format!("{start} … ({count} characters in all) … {end}")
}

/// An input that cannot be used: every reason, in the order of the source; of very many the first and
/// how many more there are. Never empty.
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
        if problems.len() > LISTED {
            let more = problems.len() - LISTED;
            let source = problems[LISTED].source.clone();
            problems.truncate(LISTED);
            problems.push(Located::whole(&source, format!("and {more} more problems")));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_megabyte_is_shown_by_its_start_and_its_length() {
        let huge = "xy".repeat(500_000);
        let origin: Place = format!("--set name={huge}").as_str().into();
        let message = format!("{huge:?} has the unknown unit {huge:?}: write it with one of s, ms");
        let problem = Located::new(&huge, origin, &huge, message).to_string();
        assert!(problem.len() < 1_000, "{} bytes: {problem}", problem.len());
        assert!(problem.starts_with("--set name=xyxyxy"), "{problem}");
        assert_eq!(problem.matches("… (1000000 characters)").count(), 3, "{problem}");
        assert!(problem.ends_with("write it with one of s, ms"), "{problem}");
        let bare = Located::whole("a", huge.clone() + " is not good").to_string();
        assert!(bare.len() < 1_200 && bare.ends_with("xyxy is not good"), "{bare}");
        assert_eq!(quoted("a\"b"), "\"a\\\"b\"");
    }

    #[test]
    fn honest_messages_stay_as_they_are() {
        let words: Vec<String> =
            (0..40).map(|word| format!("{:?}", format!("word-{word}"))).collect();
        let message = format!("found \"a\\\"b\"; expected one of {}", words.join(", "));
        assert_eq!(Located::whole("a", message.clone()).message(), message);
    }

    #[test]
    fn of_a_thousand_problems_the_first_are_listed_and_the_rest_counted() {
        let problem = |line| Located::new("a", Place::Line(line), "key", "wrong");
        let bad = BadInput::new((1..=1_000).map(problem).collect());
        assert_eq!(bad.problems().len(), LISTED + 1);
        assert_eq!(bad.problems()[LISTED].message(), "and 900 more problems");
    }
}
