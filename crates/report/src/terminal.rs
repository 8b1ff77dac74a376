//! Tables for the terminal.
//!
//! Nothing here looks at the environment unasked: the caller says where the text goes and what the
//! user asked for, once, by [`TextStyle::detect`].

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::IsTerminal;

use comfy_table::{
    Attribute, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, Table,
    TableStyle, Width,
};
use serde_json::Value;

use crate::{Cell, ResultsTable, Tone, summary};

/// A line below the head and no other: rows that stand close are easier to compare.
const LOOK: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Whether text may carry colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Colours {
    /// Plain text.
    #[default]
    Off,
    /// ANSI escapes.
    On,
}

/// How a table becomes text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TextStyle {
    /// Characters a line; `None`: as many as the table needs.
    pub width: Option<u16>,
    /// Whether colours may be used.
    pub colours: Colours,
}

impl TextStyle {
    /// The style for `stream`: as wide as its terminal, in colour unless `no_color`, the value of
    /// the environment variable `NO_COLOR`, is set and not empty (<https://no-color.org>). What is
    /// not a terminal gets plain text of any width.
    pub fn detect(stream: &impl IsTerminal, no_color: Option<&OsStr>) -> Self {
        if !stream.is_terminal() {
            return Self::default();
        }
        let width = terminal_size::terminal_size().map(|(width, _)| width.0);
        let refused = no_color.is_some_and(|value| !value.is_empty());
        Self { width, colours: if refused { Colours::Off } else { Colours::On } }
    }
}

/// Columns and rows of the terminal that the process writes to or reads from, if it has one.
#[must_use]
pub fn size() -> Option<(u16, u16)> {
    terminal_size::terminal_size().map(|(width, height)| (width.0, height.0))
}

impl ResultsTable {
    /// The table as text, with a newline after each line; what the style has no room for stands in
    /// blocks below each other.
    #[must_use]
    pub fn to_text(&self, style: TextStyle) -> String {
        match style.width {
            Some(width) => {
                let blocks = self.blocks(width.into());
                let texts: Vec<_> = blocks.iter().map(|block| block.arranged(style)).collect();
                texts.join("\n")
            }
            None => self.arranged(style),
        }
    }

    fn arranged(&self, style: TextStyle) -> String {
        let mut table = Table::new();
        table.load_style(LOOK).force_no_tty();
        match style.width {
            Some(width) => {
                table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic);
            }
            None => {
                table.set_content_arrangement(ContentArrangement::Disabled);
            }
        }
        if style.colours == Colours::On {
            table.enforce_styling();
        }
        let numeric: Vec<_> = (0..self.columns.len()).map(|index| self.is_numeric(index)).collect();
        let head = self.columns.iter().zip(&numeric).map(|(column, &numeric)| {
            let cell = comfy_table::Cell::new(printable_line(&column.title))
                .add_attribute(Attribute::Bold);
            cell.set_alignment(alignment(numeric))
        });
        table.set_header(head);
        for row in &self.rows {
            table.add_row(row.iter().zip(&numeric).map(|(cell, &numeric)| styled(cell, numeric)));
        }
        for column in table.column_iter_mut().filter(|_| style.width.is_some()) {
            // The boundary counts the space at both sides.
            let least = self.least_width(column.index) + usize::from(column.padding_width());
            let least = Width::Fixed(least.try_into().unwrap_or(u16::MAX));
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
        let lines: Vec<_> = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        lines.concat()
    }

    /// Whether a column holds mainly numbers, and so is aligned to the right. Cells without anything do
    /// not count.
    #[must_use]
    pub fn is_numeric(&self, column: usize) -> bool {
        let filled = self.rows.iter().filter(|row| !row[column].value.is_null());
        let count = filled.clone().filter(|row| row[column].is_numeric()).count();
        count * 2 > filled.count()
    }
}

/// Whether a character commands a terminal, or hides from the eye what a text says: controls but line
/// breaks, marks that turn the direction of text (the explicit ones of Unicode's UAX #9), separators of
/// lines and paragraphs, and tag characters.
#[must_use]
pub fn is_unprintable(letter: char) -> bool {
    match letter {
        '\n' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        letter => letter.is_control(),
    }
}

/// `text` as a terminal may show it: what [`is_unprintable`] stands as `\u{1b}`. Every text that reaches
/// a terminal passes here, whoever wrote it.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return text.into();
    }
    let mut shown = String::new();
    for letter in text.chars() {
        match is_unprintable(letter) {
            true => shown.extend(letter.escape_unicode()),
            false => shown.push(letter),
        }
    }
    shown.into()
}

/// [`printable`] in one line.
#[must_use]
pub fn printable_line(text: &str) -> Cow<'_, str> {
    match printable(text) {
        shown if shown.contains('\n') => shown.replace('\n', "\\n").into(),
        shown => shown,
    }
}

/// A run's summary for the terminal: completion times and slowdowns by class, then single figures.
#[must_use]
pub fn run_text(label: &str, summary: &Value, style: TextStyle) -> String {
    let distributions = summary::distributions(summary).to_text(style);
    let figures = summary::figures(summary).to_text(style);
    let jobs = summary::jobs(summary);
    let jobs = match jobs.rows.is_empty() {
        true => String::new(),
        false => format!("{}\n", jobs.to_text(style)),
    };
    let notes: Vec<_> = summary::warnings(summary)
        .iter()
        .map(|text| format!("\n{}\n", printable_line(text)))
        .collect();
    format!("{}\n\n{jobs}{distributions}\n{figures}{}", printable_line(label), notes.concat())
}

/// Several runs side by side for the terminal.
#[must_use]
pub fn comparison_text(runs: &[(&str, &Value)], style: TextStyle) -> String {
    let mut text = summary::comparison(runs).to_text(style);
    let warnings = runs.iter().flat_map(|(label, summary)| {
        summary::warnings(summary).into_iter().map(move |text| format!("{label}: {text}"))
    });
    for note in summary::differences(runs).into_iter().chain(warnings) {
        text.push_str(&format!("\n{}\n", printable_line(&note)));
    }
    text
}

fn alignment(numeric: bool) -> CellAlignment {
    if numeric { CellAlignment::Right } else { CellAlignment::Left }
}

fn styled(cell: &Cell, numeric: bool) -> comfy_table::Cell {
    let text = comfy_table::Cell::new(printable_line(&cell.text)).set_alignment(alignment(numeric));
    match cell.tone {
        Tone::Plain => text,
        Tone::Good => text.fg(Color::Green),
        Tone::Bad => text.fg(Color::Red).add_attribute(Attribute::Bold),
        Tone::Muted => text.fg(Color::DarkGrey),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Unit};

    fn sample() -> ResultsTable {
        let mut table =
            ResultsTable::new(vec![Column::new("what", "What"), Column::new("ours", "Ours")]);
        table
            .push(vec![Cell::text("latency").toned(Tone::Good), Cell::new(1.57e-6, Unit::Seconds)]);
        table.push(vec![Cell::text("a fairly long name of a queue"), Cell::new(11, Unit::Cells)]);
        table
    }

    #[test]
    fn plain_text_has_no_escapes_and_aligns_numbers_right() {
        let text = sample().to_text(TextStyle::default());
        assert!(!text.contains('\x1b'), "{text}");
        let ends: Vec<_> = text
            .lines()
            .filter(|line| line.contains("1.57") || line.contains("11 cells"))
            .map(|line| line.chars().count())
            .collect();
        assert_eq!(ends.len(), 2, "{text}");
        assert_eq!(ends[0], ends[1], "{text}");
    }

    #[test]
    fn no_text_of_a_table_commands_the_terminal() {
        const EVIL: &str = "a\u{1b}[31m\u{9b}2J\u{7}\u{202e}\r\tb\nc\u{2066}\u{e0041}";
        let mut table = ResultsTable::new(vec![Column::new("what", EVIL)]);
        table.push(vec![Cell::text(EVIL)]);
        let summary = serde_json::json!({ "fabric": EVIL, "label": EVIL });
        let style = TextStyle::default();
        for text in [
            table.to_text(style),
            run_text(EVIL, &summary, style),
            comparison_text(&[(EVIL, &summary), (EVIL, &summary)], style),
        ] {
            assert!(!text.contains(is_unprintable), "{text:?}");
            assert!(
                text.contains("a\\u{1b}[31m\\u{9b}2J\\u{7}\\u{202e}\\u{d}\\u{9}b\\nc"),
                "{text:?}"
            );
        }
        // Letters of every script stay, and so do the joiners that some need.
        for text in ["Überlast µs", "नमस्ते", "می\u{200c}خواهم", "ab 中文"] {
            assert_eq!(printable(text), text);
        }
    }

    #[test]
    fn columns_are_aligned_by_what_is_in_them() {
        let mut table =
            ResultsTable::new(["some", "none", "words"].map(|key| Column::new(key, key)).into());
        for some in [serde_json::json!(3), Value::Null, Value::Null] {
            table.push(vec![
                Cell::new(some, Unit::Count),
                Cell::new(Value::Null, Unit::Count),
                Cell::text("a word"),
            ]);
        }
        assert_eq!([0, 1, 2].map(|column| table.is_numeric(column)), [true, false, false]);
    }

    #[test]
    fn colours_only_when_asked() {
        let style = TextStyle { width: Some(80), colours: Colours::On };
        assert!(sample().to_text(style).contains('\x1b'));
        let style = TextStyle { width: Some(80), colours: Colours::Off };
        assert!(!sample().to_text(style).contains('\x1b'));
    }

    #[test]
    fn a_narrow_terminal_wraps() {
        let text = sample().to_text(TextStyle { width: Some(30), colours: Colours::Off });
        for line in text.lines() {
            assert!(line.chars().count() <= 30, "{line:?} in\n{text}");
        }
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(words.contains(&"queue") && words.contains(&"fairly"), "{text}");
    }

    #[test]
    fn a_file_gets_plain_text_of_any_width() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(TextStyle::detect(&file, None), TextStyle::default());
    }
}
