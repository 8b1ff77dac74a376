//! Flows as they are read: checked, counted, and what is wrong with them.

use kernel::{Bytes, Time};
use rack::memory::binary;
use rack::workload::trace::TraceRow;

use super::capture::{Captured, Capturing};
use super::table::Columns;
use super::{Reading, TraceFormat};
use crate::problem::{BadInput, Located};
use crate::tree::Place;

/// This many rows with problems are listed; a broken generator breaks every row alike.
pub(super) const PROBLEMS_MAX: usize = 10;
/// Memory that a row takes while a run is prepared. Our choice, on the safe side: the row, the flow made
/// of it, each in a list that may be half empty, twice, since a workload is drawn more than once.
pub(super) const ROW_BYTES: u64 = 256;
/// Memory that each row takes that a row waits for, likewise.
pub(super) const AFTER_BYTES: u64 = 32;
/// After this many rows with problems the rest of a file is not read. Our choice.
pub(super) const BAD_ROWS_MAX: usize = 10_000;

/// Where a row stands, in the terms of its format.
#[derive(Clone, Copy)]
pub(super) enum At {
    /// A line of text, from 1.
    Line(usize),
    /// A row of a table, from 0.
    Row(usize),
}

/// A flow as it was read, not checked yet.
#[derive(Default)]
pub(super) struct Draft {
    pub start: Time,
    /// The trace's numbers of its nodes.
    pub src: u64,
    pub dst: u64,
    pub bytes: u64,
    pub class: u64,
    /// Rows that must have ended.
    pub after: Vec<u64>,
}

/// Takes flows and keeps what is wrong with them.
pub(super) struct Rows<'a> {
    pub(super) name: &'a str,
    reading: Reading,
    /// What the columns of a table are.
    pub(super) columns: Columns,
    rows: Vec<TraceRow>,
    /// The order of rows that have numbers of their own.
    numbers: Vec<u64>,
    pub(super) problems: Vec<Located>,
    /// Problems found but not kept.
    unlisted: usize,
    /// Bytes of memory that rows take.
    taken: u64,
    /// Whether the file ends before its end, for what is in it.
    is_enough: bool,
    /// Of a capture, what has become flows and what has not.
    pub(super) captured: Option<Captured>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(name: &'a str, reading: Reading) -> Self {
        Self {
            name,
            reading,
            columns: Columns::default(),
            rows: Vec::new(),
            numbers: Vec::new(),
            problems: Vec::new(),
            unlisted: 0,
            taken: 0,
            is_enough: false,
            captured: None,
        }
    }

    pub(super) fn format(&self) -> TraceFormat {
        self.reading.format
    }

    pub(super) fn capturing(&self) -> &Capturing {
        &self.reading.capturing
    }

    pub(super) fn first_node(&self) -> u32 {
        self.reading.first_node
    }

    pub(super) fn nodes(&self) -> u32 {
        self.reading.nodes
    }

    pub(super) fn count(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Whether the rest of the file is of no interest: nothing can come of it.
    pub(super) fn is_enough(&self) -> bool {
        self.is_enough || self.unlisted >= BAD_ROWS_MAX
    }

    /// How many problems there are; a row that has none of its own leaves it as it was.
    pub(super) fn found(&self) -> usize {
        self.problems.len() + self.unlisted
    }

    /// Whether `count` rows fit into memory, before any is read; complains if they do not.
    pub(super) fn could_hold(&mut self, count: u64) -> bool {
        let taken = Bytes::new(count.saturating_mul(ROW_BYTES));
        if taken > self.reading.memory {
            self.complain_of_size(count, taken);
        }
        taken <= self.reading.memory
    }

    /// Whether `size` bytes more fit into what memory is left; complains if they do not.
    pub(super) fn have_room(&mut self, flows: u64, size: u64) -> bool {
        self.taken = self.taken.saturating_add(size);
        let taken = Bytes::new(self.taken);
        if taken > self.reading.memory && !self.is_enough {
            self.complain_of_size(flows, taken);
        }
        taken <= self.reading.memory
    }

    fn complain_of_size(&mut self, flows: u64, taken: Bytes) {
        self.stop(format!(
            "holds {flows} flows or more, which take some {} of memory; at most {} are there for them: give \
             fewer, or run where there is more",
            binary(taken),
            binary(self.reading.memory)
        ));
    }

    pub(super) fn complain(&mut self, at: At, column: &str, message: impl Into<String>) {
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
    pub(super) fn complain_whole(&mut self, message: impl Into<String>) {
        self.problems.push(Located::whole(self.name, message));
    }

    /// A problem with all of the file, after which its rest says nothing new.
    pub(super) fn stop(&mut self, message: impl Into<String>) {
        self.is_enough = true;
        self.complain_whole(message);
    }

    /// The last line is cut short, or may be: it could still look whole.
    pub(super) fn complain_of_torn_line(&mut self, line: usize) {
        let message = "the last line is torn: it does not end in a line break; write it whole, or \
                       cut it off";
        self.complain(At::Line(line), "", message);
    }

    /// Takes a flow; `before` is how many problems there were before it was read.
    pub(super) fn take(&mut self, at: At, before: usize, draft: Draft) {
        let Draft { start, bytes, class, after, .. } = draft;
        let src = self.node(at, before, "src", draft.src);
        let dst = self.node(at, before, "dst", draft.dst);
        if self.found() == before && src == dst {
            let message =
                format!("found a flow from node {} to itself; expected two nodes", draft.src);
            self.complain(at, "dst", message);
        }
        if self.found() == before && bytes == 0 {
            let column = self.columns.size_name();
            self.complain(at, column, "found 0; expected at least 1");
        }
        if class > u64::from(u8::MAX) {
            self.complain(at, "class", format!("found {class}; expected at most {}", u8::MAX));
        }
        // Kept even if wrong, so that later rows keep their number; `finish` refuses them all.
        let class = class as u8;
        if self.have_room(self.count() + 1, ROW_BYTES + AFTER_BYTES * after.len() as u64) {
            self.rows.push(TraceRow { start, src, dst, bytes, class, after });
        }
    }

    /// Takes the number that orders the flow taken last.
    pub(super) fn number_last(&mut self, number: u64) {
        if self.numbers.len() < self.rows.len() {
            self.numbers.push(number);
        }
    }

    /// The rack's number of a node.
    fn node(&mut self, at: At, before: usize, column: &str, node: u64) -> u32 {
        let Reading { first_node, nodes, .. } = self.reading;
        let first = u64::from(first_node);
        let number = node.checked_sub(first).filter(|&number| number < u64::from(nodes));
        if number.is_none() && self.found() == before {
            let last = first + u64::from(nodes.saturating_sub(1));
            let message = format!(
                "found node {node}; expected one from {first} to {last}, the rack has {nodes} nodes"
            );
            self.complain(at, column, message);
        }
        number.unwrap_or(0) as u32
    }

    pub(super) fn finish(mut self) -> Result<Vec<TraceRow>, BadInput> {
        if self.unlisted > 0 {
            let rest = if self.unlisted >= BAD_ROWS_MAX { "; the rest was not read" } else { "" };
            let message = format!("and {} more problems of this kind{rest}", self.unlisted);
            self.complain_whole(message);
        }
        BadInput::unless_empty(std::mem::take(&mut self.problems))?;
        if self.rows.is_empty() {
            let expected = match self.format() {
                TraceFormat::Csv | TraceFormat::Parquet => "one row below the column heads",
                TraceFormat::Htsim | TraceFormat::Hpcc => "one line with a flow",
                TraceFormat::Pcap => "one packet of TCP or UDP with payload",
            };
            let told = self.captured.map(|told| format!("; {told}")).unwrap_or_default();
            let message = format!("holds no flow; expected at least {expected}{told}");
            return Err(BadInput::single(Located::whole(self.name, message)));
        }
        self.sorted()
    }

    /// The rows in the order of their numbers, if they have some.
    fn sorted(self) -> Result<Vec<TraceRow>, BadInput> {
        if self.numbers.is_empty() {
            return Ok(self.rows);
        }
        let mut numbered: Vec<(u64, TraceRow)> = self.numbers.into_iter().zip(self.rows).collect();
        numbered.sort_unstable_by_key(|(number, _)| *number);
        if let Some(pair) = numbered.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let message = format!(
                "flow {} is there twice; expected the flows of one run, each once",
                pair[0].0
            );
            return Err(BadInput::single(Located::whole(self.name, message)));
        }
        Ok(numbered.into_iter().map(|(_, row)| row).collect())
    }
}
