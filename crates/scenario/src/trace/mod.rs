//! Trace files: flows as a table, in CSV or Parquet.
//!
//! Columns, in any order: `start` (text with a unit, `"1.5 us"`) or `start_ns` or `start_ps` (a
//! number); `src`, `dst` (nodes from 0); `bytes`; optionally `class` (0 is the most urgent) and
//! `after` (the rows, from 0, of earlier flows that must end first, several parted by spaces or
//! semicolons; `start` is then the earliest start). A column with any other name is refused, for it
//! is more often misspelt than meant.

mod csv;
mod parquet;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read as _, Seek, SeekFrom};
use std::path::Path;

use kernel::{Bytes, Time};
use rack::memory::binary;
use rack::workload::trace::TraceRow;

use crate::check::suggest;
use crate::problem::{BadInput, Located};
use crate::tree::Place;

/// This many rows with problems are listed; a broken generator breaks every row alike.
const PROBLEMS_MAX: usize = 10;

/// The columns a trace may have.
const COLUMNS: [&str; 8] =
    ["start", "start_ns", "start_ps", "src", "dst", "bytes", "class", "after"];

/// Memory that a row takes while a run is prepared. Our choice, on the safe side: the row, the flow made
/// of it, each in a list that may be half empty, twice, since a workload is drawn more than once.
const ROW_BYTES: u64 = 256;
/// Memory that each row takes that a row waits for, likewise.
const AFTER_BYTES: u64 = 32;
/// After this many rows with problems the rest of a file is not read. Our choice.
const BAD_ROWS_MAX: usize = 10_000;
/// Memory for a trace where nobody says how much there is: room for four million flows. Our choice.
pub const MEMORY_DEFAULT: Bytes = Bytes::new(1 << 30);

/// Reads the trace at `path` for a rack of `nodes`. Parquet if its name ends in `.parquet`,
/// otherwise CSV. A trace that would take more than `memory` is refused, with what it would take.
///
/// # Errors
/// When it cannot be read, is torn or too large, or holds a row that no rack of this size can carry.
pub fn read(path: &Path, nodes: u32, memory: Bytes) -> Result<Vec<TraceRow>, BadInput> {
    let name = path.display().to_string();
    let unreadable =
        |error| BadInput::single(Located::whole(&name, format!("cannot be read: {error}")));
    let mut file = open(path).map_err(unreadable)?;
    let mut rows = Rows::new(&name, nodes, memory);
    if path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet")) {
        parquet::read(file, &mut rows);
    } else {
        let is_ended = ends_in_line_break(&mut file).map_err(unreadable)?;
        csv::read(file, is_ended, &mut rows);
    }
    rows.finish()
}

/// Opens a file; what never ends, such as a device, is none.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() {
        File::open(path)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"))
    }
}

/// Whether the last byte ends a line. The file is then back at its start.
fn ends_in_line_break(file: &mut File) -> io::Result<bool> {
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        file.rewind()?;
    }
    Ok(last == [b'\n'])
}

/// Reads a trace in CSV from memory; messages call it `name`.
///
/// # Errors
/// As [`read`].
pub fn read_csv(name: &str, bytes: &[u8], nodes: u32) -> Result<Vec<TraceRow>, BadInput> {
    let mut rows = Rows::new(name, nodes, MEMORY_DEFAULT);
    csv::read(bytes, bytes.ends_with(b"\n"), &mut rows);
    rows.finish()
}

/// Reads a trace in Parquet from memory; messages call it `name`.
///
/// # Errors
/// As [`read`].
pub fn read_parquet(name: &str, bytes: Vec<u8>, nodes: u32) -> Result<Vec<TraceRow>, BadInput> {
    let mut rows = Rows::new(name, nodes, MEMORY_DEFAULT);
    parquet::read(::bytes::Bytes::from(bytes), &mut rows);
    rows.finish()
}

/// Where a row stands, in the terms of its format.
#[derive(Clone, Copy)]
enum At {
    /// A line of text, from 1.
    Line(usize),
    /// A row of a table, from 0.
    Row(usize),
}

/// Takes rows of text and keeps what is wrong with them.
struct Rows<'a> {
    name: &'a str,
    nodes: u32,
    /// Which column of the file each of [`COLUMNS`] is.
    columns: [Option<usize>; COLUMNS.len()],
    rows: Vec<TraceRow>,
    problems: Vec<Located>,
    /// Problems found but not kept.
    unlisted: usize,
    /// Bytes of memory that rows may take, and that they take.
    memory: Bytes,
    taken: u64,
    /// Whether the file ends before its end, for what is in it.
    is_enough: bool,
}

impl<'a> Rows<'a> {
    fn new(name: &'a str, nodes: u32, memory: Bytes) -> Self {
        Self {
            name,
            nodes,
            columns: [None; COLUMNS.len()],
            rows: Vec::new(),
            problems: Vec::new(),
            unlisted: 0,
            memory,
            taken: 0,
            is_enough: false,
        }
    }

    /// Whether the rest of the file is of no interest: nothing can come of it.
    fn is_enough(&self) -> bool {
        self.is_enough || self.unlisted >= BAD_ROWS_MAX
    }

    /// Whether `count` rows fit into memory, before any is read; complains if they do not.
    fn could_hold(&mut self, count: u64) -> bool {
        let taken = Bytes::new(count.saturating_mul(ROW_BYTES));
        if taken > self.memory {
            self.complain_of_size(count, taken);
        }
        taken <= self.memory
    }

    /// Whether a row of `size` bytes fits into what memory is left; complains if it does not.
    fn have_room(&mut self, size: u64) -> bool {
        self.taken += size;
        let taken = Bytes::new(self.taken);
        if taken > self.memory && !self.is_enough {
            self.complain_of_size(self.rows.len() as u64 + 1, taken);
        }
        taken <= self.memory
    }

    fn complain_of_size(&mut self, flows: u64, taken: Bytes) {
        self.is_enough = true;
        self.complain_whole(format!(
            "holds {flows} flows or more, which take some {} of memory; at most {} are there for them: give \
             fewer, or run where there is more",
            binary(taken),
            binary(self.memory)
        ));
    }

    fn complain(&mut self, at: At, column: &str, message: impl Into<String>) {
        if self.problems.len() >= PROBLEMS_MAX {
            self.unlisted += 1;
            return;
        }
        let (place, path) = match at {
            At::Line(line) => (Place::Line(line), column.to_string()),
            At::Row(row) => (Place::Unknown, format!("row {row}: {column}")),
        };
        let path = path.trim_end_matches(": ");
        self.problems.push(Located::new(self.name, place, path, message));
    }

    /// A problem with all of the file.
    fn complain_whole(&mut self, message: impl Into<String>) {
        self.problems.push(Located::whole(self.name, message));
    }

    /// Takes the column heads. Whether rows can be read.
    fn heads<'h>(&mut self, at: Place, heads: impl Iterator<Item = &'h str>) -> bool {
        let known: Vec<String> = COLUMNS.iter().map(ToString::to_string).collect();
        let before = self.problems.len();
        for (index, head) in heads.map(str::trim).enumerate() {
            let message = match COLUMNS.iter().position(|column| *column == head) {
                Some(column) if self.columns[column].is_none() => {
                    self.columns[column] = Some(index);
                    continue;
                }
                Some(_) => "column appears twice".to_string(),
                None => format!("unknown column; {}", suggest(head, &known)),
            };
            self.problems.push(Located::new(self.name, at.clone(), head, message));
        }
        let starts = self.columns[..3].iter().flatten().count();
        if starts != 1 {
            let message =
                format!("found {starts} of the columns start, start_ns and start_ps; expected one");
            self.problems.push(Located::new(self.name, at.clone(), "", message));
        }
        for (name, column) in COLUMNS[3..6].iter().zip(&self.columns[3..6]) {
            if column.is_none() {
                let message = "column missing".to_string();
                self.problems.push(Located::new(self.name, at.clone(), name, message));
            }
        }
        self.problems.len() == before
    }

    /// Takes one row; `cell` gives the text of a column of the file, nothing if it is empty.
    fn row<'c>(&mut self, at: At, cell: impl Fn(usize) -> Option<&'c str>) {
        let before = self.problems.len() + self.unlisted;
        let text = |column: usize| self.columns[column].and_then(&cell).map(str::trim);
        let texts: [Option<&str>; COLUMNS.len()] =
            std::array::from_fn(|column| text(column).filter(|text| !text.is_empty()));
        let start = self.start(at, &texts);
        let src = self.number(at, 3, texts[3], None);
        let dst = self.number(at, 4, texts[4], None);
        let size = self.number(at, 5, texts[5], None);
        let class = self.number(at, 6, texts[6], Some(0));
        let after = self.after(at, texts[7]);
        for (column, node) in [(3, src), (4, dst)] {
            if node >= u64::from(self.nodes) && self.problems.len() + self.unlisted == before {
                let message = format!(
                    "found node {node}; expected one from 0 to {}, the rack has {} nodes",
                    self.nodes.saturating_sub(1),
                    self.nodes
                );
                self.complain(at, COLUMNS[column], message);
            }
        }
        if src == dst && self.problems.len() + self.unlisted == before {
            let message = format!("found a flow from node {src} to itself; expected two nodes");
            self.complain(at, "dst", message);
        }
        if size == 0 && self.problems.len() + self.unlisted == before {
            self.complain(at, "bytes", "found 0; expected at least 1");
        }
        if class > u64::from(u8::MAX) {
            self.complain(at, "class", format!("found {class}; expected at most {}", u8::MAX));
        }
        // Kept even if wrong, so that later rows keep their number; `finish` refuses them all.
        let (src, dst, class) = (src as u32, dst as u32, class as u8);
        if !self.have_room(ROW_BYTES + AFTER_BYTES * after.len() as u64) {
            return;
        }
        self.rows.push(TraceRow { start, src, dst, bytes: size, class, after });
    }

    /// The rows that must end first.
    fn after(&mut self, at: At, text: Option<&str>) -> Vec<u64> {
        let row = self.rows.len() as u64;
        let parts = text.unwrap_or("").split([' ', ';']).filter(|part| !part.is_empty());
        let after: Vec<u64> = parts.map(|part| self.number(at, 7, Some(part), None)).collect();
        if let Some(late) = after.iter().find(|&&earlier| earlier >= row) {
            let message = format!("found row {late}; expected one before this row {row}");
            self.complain(at, "after", message);
        }
        after
    }

    fn start(&mut self, at: At, texts: &[Option<&str>; COLUMNS.len()]) -> Time {
        let column = (0..3).find(|column| self.columns[*column].is_some()).unwrap_or(0);
        let with_unit = match (column, texts[column]) {
            (_, None) => return self.missing(at, COLUMNS[column]),
            (1, Some(number)) => format!("{number} ns"),
            (2, Some(number)) => format!("{number} ps"),
            (_, Some(text)) => text.to_string(),
        };
        match with_unit.parse::<Time>() {
            Ok(start) if start < Time::NEVER => start,
            Ok(start) => {
                self.complain(at, COLUMNS[column], format!("{start} is later than any run"));
                Time::ZERO
            }
            Err(error) => {
                self.complain(at, COLUMNS[column], error.to_string());
                Time::ZERO
            }
        }
    }

    fn missing<T: Default>(&mut self, at: At, column: &str) -> T {
        self.complain(at, column, "value missing");
        T::default()
    }

    fn number(&mut self, at: At, column: usize, text: Option<&str>, default: Option<u64>) -> u64 {
        match (text, default) {
            (None, Some(default)) => default,
            (None, None) => self.missing(at, COLUMNS[column]),
            (Some(text), _) => text.parse().unwrap_or_else(|_| {
                let message = format!("found {text:?}; expected a whole number from 0");
                self.complain(at, COLUMNS[column], message);
                0
            }),
        }
    }

    fn finish(mut self) -> Result<Vec<TraceRow>, BadInput> {
        if self.unlisted > 0 {
            let rest = if self.unlisted >= BAD_ROWS_MAX { "; the rest was not read" } else { "" };
            let message = format!("and {} more problems of this kind{rest}", self.unlisted);
            self.complain_whole(message);
        }
        BadInput::unless_empty(self.problems)?;
        if self.rows.is_empty() {
            let message = "holds no flow; expected at least one row below the column heads";
            return Err(BadInput::single(Located::whole(self.name, message)));
        }
        Ok(self.rows)
    }
}
