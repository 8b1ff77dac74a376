//! Where results and notes go.

use std::io::{self, Write};

use report::{ResultsTable, TextStyle};
use serde_json::Value;

use crate::args::Format;

/// Results to stdout, notes and errors to stderr.
pub struct Output {
    format: Format,
    quiet: bool,
    style: TextStyle,
}

impl Output {
    /// Prints in `format`; if `quiet`, no notes.
    pub fn new(format: Format, quiet: bool) -> Self {
        let no_color = std::env::var_os("NO_COLOR");
        let style = TextStyle::detect(&io::stdout(), no_color.as_deref());
        Self { format, quiet, style }
    }

    /// Whether only results and errors are wanted.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// A result, as text or as JSON.
    pub fn result(&mut self, text: impl FnOnce(TextStyle) -> String, json: impl FnOnce() -> Value) {
        match self.format {
            Format::Text => self.print(&text(self.style)),
            Format::Json => self.print(&format!("{:#}", json())),
        }
    }

    /// A table as a result.
    pub fn table(&mut self, table: &ResultsTable) {
        self.result(|style| table.to_text(style), || table.to_json());
    }

    /// Text to stdout, whatever the format.
    pub fn print(&mut self, text: &str) {
        let mut stdout = io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let written = write!(stdout, "{text}{end}").and_then(|()| stdout.flush());
        match written {
            // Whoever read us has seen enough; all files are written by now.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) => self.error(&format!("stdout: {error}")),
            Ok(()) => {}
        }
    }

    /// A remark to stderr, unless quiet.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            say(text);
        }
    }

    /// An error to stderr.
    pub fn error(&self, text: &str) {
        say(text);
    }
}

/// Writes a line to stderr. Nobody is left to tell if that fails.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
