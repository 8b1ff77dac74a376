//! Flows as a table, in CSV or Parquet.
//!
//! Columns, in any order: `start` (text with a unit, `"1.5 us"`) or `start_s`, `start_ms`,
//! `start_us`, `start_ns` or `start_ps` (a number, rounded to a picosecond); `src`, `dst` (nodes from
//! 0); `bytes`; optionally `class` (0 is the most urgent) and `after` (the rows, from 0, of earlier
//! flows that must end first, several parted by spaces or semicolons; `start` is then the earliest
//! start). A column with any other name is refused, for it is more often misspelt than meant.
//!
//! Or the flows of an earlier run, told by their column `flow_id`: `flows.parquet`, or the same as
//! CSV. Of them `flow_id`, `start_ps`, `src`, `dst`, `size_bytes` and `class` are read, whatever
//! became of the flow, and the rest is what that run measured. Flows keep their order, by number.
//! What waited for what is not in them: a flow starts when it did.

use kernel::Time;

use super::{At, Draft, Rows};
use crate::check::suggest;
use crate::problem::Located;
use crate::tree::Place;

/// The columns a trace may have.
const TRACE: [&str; 11] = [
    "start", "start_s", "start_ms", "start_us", "start_ns", "start_ps", "src", "dst", "bytes",
    "class", "after",
];
/// The same of a run's flows, where they have another name, and their own.
const RESULTS: [&str; 13] = [
    "start",
    "start_s",
    "start_ms",
    "start_us",
    "start_ns",
    "start_ps",
    "src",
    "dst",
    "size_bytes",
    "class",
    "after",
    "flow_id",
    "seed",
];
/// The units of the columns of starts that are numbers, by their place in [`RESULTS`], and how many
/// picoseconds one is.
const UNITS: [(&str, f64); 6] =
    [("", 0.0), ("s", 1e12), ("ms", 1e9), ("us", 1e6), ("ns", 1e3), ("ps", 1.0)];
/// How many columns there are, of either kind.
const COUNT: usize = RESULTS.len();

/// Columns by their place in [`RESULTS`].
const SRC: usize = UNITS.len();
const DST: usize = SRC + 1;
const SIZE: usize = SRC + 2;
const CLASS: usize = SRC + 3;
const AFTER: usize = SRC + 4;
const FLOW_ID: usize = SRC + 5;
const SEED: usize = SRC + 6;

/// Which column of a file is which.
#[derive(Default)]
pub(super) struct Columns {
    places: [Option<usize>; COUNT],
    /// Whether it is the flows of an earlier run.
    are_results: bool,
    /// Of which seed that was.
    seed: Option<u64>,
}

impl Columns {
    fn name(&self, column: usize) -> &'static str {
        if self.are_results { RESULTS[column] } else { TRACE.get(column).copied().unwrap_or("") }
    }

    /// What messages call a flow's size.
    pub(super) fn size_name(&self) -> &'static str {
        if self.are_results { "size_bytes" } else { TRACE[SIZE] }
    }

    /// Whether a column of the file is read.
    pub(super) fn is_read(&self, place: usize) -> bool {
        self.places.contains(&Some(place))
    }
}

impl Rows<'_> {
    /// Takes the column heads. Whether rows can be read.
    pub(super) fn heads<'h>(&mut self, at: Place, heads: impl Iterator<Item = &'h str>) -> bool {
        let heads: Vec<&str> = heads.map(str::trim).collect();
        let before = self.problems.len();
        self.columns.are_results = heads.contains(&RESULTS[FLOW_ID]);
        let known: &[&str] = if self.columns.are_results { &RESULTS } else { &TRACE };
        let names: Vec<String> = known.iter().map(ToString::to_string).collect();
        for (index, head) in heads.into_iter().enumerate() {
            let message = match known.iter().position(|column| *column == head) {
                Some(column) if self.columns.places[column].is_none() => {
                    self.columns.places[column] = Some(index);
                    continue;
                }
                Some(_) => "column appears twice".to_string(),
                None if self.columns.are_results => continue,
                None => format!("unknown column; {}", suggest(head, &names)),
            };
            self.problems.push(Located::new(self.name, at.clone(), head, message));
        }
        let starts = self.columns.places[..SRC].iter().flatten().count();
        if starts != 1 {
            let message = format!(
                "found {starts} of the columns start (with a unit), start_s, start_ms, start_us, start_ns and \
                 start_ps; expected one"
            );
            self.problems.push(Located::new(self.name, at.clone(), "", message));
        }
        for column in [SRC, DST, SIZE] {
            if self.columns.places[column].is_none() {
                let message = "column missing".to_string();
                let name = self.columns.name(column);
                self.problems.push(Located::new(self.name, at.clone(), name, message));
            }
        }
        self.problems.len() == before
    }

    /// Takes one row; `cell` gives the text of a column of the file, nothing if it is empty.
    pub(super) fn row<'c>(&mut self, at: At, cell: impl Fn(usize) -> Option<&'c str>) {
        let before = self.found();
        let text = |column: usize| self.columns.places[column].and_then(&cell).map(str::trim);
        let texts: [Option<&str>; COUNT] =
            std::array::from_fn(|column| text(column).filter(|text| !text.is_empty()));
        if self.columns.are_results && !self.is_of_the_same_run(at, &texts) {
            return;
        }
        let draft = Draft {
            start: self.start(at, &texts),
            src: self.number(at, SRC, texts[SRC], None),
            dst: self.number(at, DST, texts[DST], None),
            bytes: self.number(at, SIZE, texts[SIZE], None),
            class: self.number(at, CLASS, texts[CLASS], Some(0)),
            after: self.after(at, texts[AFTER]),
        };
        self.take(at, before, draft);
        if self.columns.are_results {
            let number = self.number(at, FLOW_ID, texts[FLOW_ID], None);
            self.number_last(number);
        }
    }

    /// Runs of several seeds lie in one file; as one trace they would be offered on top of each
    /// other.
    fn is_of_the_same_run(&mut self, at: At, texts: &[Option<&str>; COUNT]) -> bool {
        if self.columns.places[SEED].is_none() {
            return true;
        }
        let seed = self.number(at, SEED, texts[SEED], None);
        let first = *self.columns.seed.get_or_insert(seed);
        if first != seed {
            self.stop(format!(
                "holds flows of runs with several seeds, {first} and {seed}; expected those of one run: keep \
                 the rows of one seed"
            ));
        }
        first == seed
    }

    /// The rows that must end first.
    fn after(&mut self, at: At, text: Option<&str>) -> Vec<u64> {
        let row = self.count();
        let parts = text.unwrap_or("").split([' ', ';']).filter(|part| !part.is_empty());
        let after: Vec<u64> = parts.map(|part| self.number(at, AFTER, Some(part), None)).collect();
        if let Some(late) = after.iter().find(|&&earlier| earlier >= row) {
            let message = format!("found row {late}; expected one before this row {row}");
            self.complain(at, self.columns.name(AFTER), message);
        }
        after
    }

    fn start(&mut self, at: At, texts: &[Option<&str>; COUNT]) -> Time {
        let column = (0..SRC).find(|column| self.columns.places[*column].is_some()).unwrap_or(0);
        let name = self.columns.name(column);
        match (texts[column], UNITS[column]) {
            (None, _) => self.missing(at, name),
            (Some(text), ("", _)) => self.time(at, name, text),
            (Some(number), unit) => self.instant(at, name, number, unit),
        }
    }

    /// A time that is written as a number: to the picosecond as it stands, and rounded to one if it has
    /// more digits or an exponent, as what programs compute has.
    pub(super) fn instant(
        &mut self,
        at: At,
        name: &str,
        number: &str,
        (unit, picoseconds): (&str, f64),
    ) -> Time {
        let with_unit = format!("{number} {unit}");
        if with_unit.parse::<Time>().is_ok() {
            return self.time(at, name, &with_unit);
        }
        let ps = number.parse::<f64>().map(|count| (count * picoseconds).round());
        match ps {
            Ok(ps) if ps >= 0.0 && ps < Time::NEVER.as_ps() as f64 => Time::from_ps(ps as u64),
            _ => {
                let message = format!(
                    "found {number:?}; expected a time in {unit}, from 0, such as 2.000001"
                );
                self.complain(at, name, message);
                Time::ZERO
            }
        }
    }

    /// A time, written with its unit.
    pub(super) fn time(&mut self, at: At, name: &str, text: &str) -> Time {
        match text.parse::<Time>() {
            Ok(start) if start < Time::NEVER => start,
            Ok(start) => {
                self.complain(at, name, format!("{start} is later than any run"));
                Time::ZERO
            }
            Err(error) => {
                self.complain(at, name, error.to_string());
                Time::ZERO
            }
        }
    }

    fn missing<T: Default>(&mut self, at: At, column: &str) -> T {
        self.complain(at, column, "value missing");
        T::default()
    }

    fn number(&mut self, at: At, column: usize, text: Option<&str>, default: Option<u64>) -> u64 {
        let name = self.columns.name(column);
        match (text, default) {
            (None, Some(default)) => default,
            (None, None) => self.missing(at, name),
            (Some(text), _) => self.whole(at, name, text),
        }
    }

    /// A whole number.
    pub(super) fn whole(&mut self, at: At, name: &str, text: &str) -> u64 {
        text.parse().unwrap_or_else(|_| {
            let message = format!("found {text:?}; expected a whole number from 0");
            self.complain(at, name, message);
            0
        })
    }
}
