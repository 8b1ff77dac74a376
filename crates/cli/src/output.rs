//! Where results and notes go.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use report::terminal::{is_unprintable, printable};
use report::{ResultsTable, TextStyle};
use serde_json::Value;

use crate::args::Format;
use crate::engine::{EXIT_BROKEN, EXIT_INPUT};

/// Results to stdout, notes and errors to stderr.
pub struct Output {
    format: Format,
    quiet: bool,
    style: TextStyle,
    /// Whether stdout refused something.
    is_broken: bool,
}

impl Output {
    /// Prints in `format`; if `quiet`, no notes.
    pub fn new(format: Format, quiet: bool) -> Self {
        let no_color = std::env::var_os("NO_COLOR");
        let style = TextStyle::detect(&io::stdout(), no_color.as_deref());
        Self { format, quiet, style, is_broken: false }
    }

    /// Whether only results and errors are wanted.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// A result, as text or as JSON.
    pub fn result(&mut self, text: impl FnOnce(TextStyle) -> String, json: impl FnOnce() -> Value) {
        match self.format {
            Format::Text => self.print(&text(self.style)),
            Format::Json => self.print(&json_text(&json())),
        }
    }

    /// As [`Output::result`]; text that is longer than the terminal is high goes through the pager of the
    /// environment (`PAGER`; `less` if there is none; an empty one, or `cat`, turns it off).
    pub fn paged(&mut self, text: impl FnOnce(TextStyle) -> String, json: impl FnOnce() -> Value) {
        if self.format == Format::Json {
            return self.result(text, json);
        }
        let text = text(self.style);
        let rows = report::terminal::size().map_or(usize::MAX, |(_, rows)| rows.into());
        let is_long = io::stdout().is_terminal() && text.lines().count() >= rows;
        if !(is_long && page(&text)) {
            self.print(&text);
        }
    }

    /// A table as a result.
    pub fn table(&mut self, table: &ResultsTable) {
        self.result(|style| table.to_text(style), || table.to_json());
    }

    /// Tables with columns of their own as one result: one after another, or all their rows in one list.
    pub fn tables(&mut self, tables: &[ResultsTable]) {
        let text = |style| tables.iter().map(|table| table.to_text(style)).collect::<Vec<_>>();
        let rows = |table: &ResultsTable| match table.to_json() {
            Value::Array(rows) => rows,
            other => vec![other],
        };
        self.result(|style| text(style).join("\n"), || tables.iter().flat_map(rows).collect());
    }

    /// Text to stdout, whatever the format.
    pub fn print(&mut self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.is_broken |= !to_stdout(&format!("{text}{end}"));
    }

    /// The exit code of a command that ends with `code`: what could not be printed is an error.
    pub fn exit_code(&self, code: u8) -> u8 {
        if self.is_broken && code == 0 { EXIT_BROKEN } else { code }
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

/// Shows `text` in the pager; whether there is one.
fn page(text: &str) -> bool {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".into());
    if pager.trim().is_empty() {
        return false;
    }
    let mut command = Command::new("sh");
    // As git has it: leave at the end of what fits, keep colours, leave the text on the terminal.
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let child = command.arg("-c").arg(&pager).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut input) = child.stdin.take() {
        // Whoever leaves the pager early has seen enough.
        let _ = input.write_all(text.as_bytes());
    }
    // 127: the shell found no such program.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

/// Writes to stdout; whether that is fine.
fn to_stdout(text: &str) -> bool {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // Whoever read us has seen enough: as in `| head`. That is no error, as it is none for ripgrep
        // and, where the signal does not kill them first, for the programs of coreutils.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => true,
        Err(error) => {
            say(&format!("standard output: {error}; what was to be printed is incomplete"));
            false
        }
        Ok(()) => true,
    }
}

/// JSON for people and scripts; characters that would command a terminal stand in it by their number,
/// which changes no value.
fn json_text(value: &Value) -> String {
    let mut text = String::new();
    for letter in format!("{value:#}").chars() {
        if letter != '\n' && is_unprintable(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(letter);
        }
    }
    text
}

/// Says what the arguments lack, or shows the help or version that they ask for; the exit code.
pub fn usage(message: &clap::Error) -> u8 {
    let text = message.render().to_string();
    if !message.use_stderr() {
        return if to_stdout(&text) { 0 } else { EXIT_BROKEN };
    }
    // With its colours, unless it quotes something that would command the terminal.
    if printable(&text) == text {
        // Nobody is left to tell if the terminal takes no more.
        let _ = message.print();
    } else {
        say(&text);
    }
    u8::try_from(message.exit_code()).unwrap_or(EXIT_INPUT)
}

/// Writes lines to stderr, fit for a terminal. Nobody is left to tell if that fails.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_for_the_terminal_commands_nothing_and_says_the_same() {
        let value =
            serde_json::json!({ "a\u{9b}31m": ["\u{1b}[2J", "\u{202e}", "\u{e0041}", "é\n"] });
        let text = json_text(&value);
        assert!(text.chars().all(|c| c == '\n' || !is_unprintable(c)), "{text}");
        assert!(text.contains("é"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
