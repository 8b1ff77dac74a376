//! Traces: flows from a file, in the formats in which people have them.
//!
//! | format | what it is | read by |
//! | --- | --- | --- |
//! | `csv`, `parquet` | a table with our columns, or `flows.parquet` of an earlier run | `table` |
//! | `htsim` | a connection matrix of htsim | `htsim` |
//! | `hpcc` | a list of flows of HPCC's simulator and others on ns-3 | `hpcc` |
//! | `pcap` | a capture of packets, pcap or pcapng | `capture` |
//!
//! Each reader hands flow after flow to `Rows`, which checks what all have in common, bounds the
//! memory that a file may take and keeps what is wrong with it, by line or row.

pub mod capture;
mod csv;
#[cfg(test)]
mod foreign_tests;
mod hpcc;
mod htsim;
mod lines;
mod load;
mod parquet;
mod rows;
mod table;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read as _, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use kernel::Bytes;
use rack::workload::trace::TraceRow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use self::capture::{Captured, Capturing};
pub use self::load::Offered;
use self::rows::{At, Draft, Rows};
use crate::problem::{BadInput, Located};

/// Bytes of a file that are read at a time.
const PART: usize = 1 << 16;
/// Memory for a trace where nobody says how much there is: room for four million flows. Our choice.
pub const MEMORY_DEFAULT: Bytes = Bytes::new(1 << 30);

/// How a trace is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceFormat {
    /// A table, first line the column heads.
    Csv,
    /// A table.
    Parquet,
    /// A connection matrix of htsim (`.cm`).
    Htsim,
    /// A list of flows of HPCC's simulator (`flow.txt`).
    Hpcc,
    /// A capture of packets, pcap or pcapng.
    Pcap,
}

impl TraceFormat {
    /// The format that a file's name tells, if it tells one.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "csv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            "cm" | "tm" => Some(Self::Htsim),
            "pcap" | "pcapng" => Some(Self::Pcap),
            _ => None,
        }
    }
}

/// What a trace is read for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reading {
    /// How it is written.
    pub format: TraceFormat,
    /// The trace's number of node 0.
    pub first_node: u32,
    /// How many nodes the rack has.
    pub nodes: u32,
    /// Memory that it may take.
    pub memory: Bytes,
    /// How a capture becomes flows.
    pub capturing: Capturing,
}

/// What is in a trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Contents {
    /// Its flows.
    pub rows: Vec<TraceRow>,
    /// Of a capture, what has become flows and what has not.
    pub captured: Option<Captured>,
}

/// Reads the trace at `path`. One that would take more than its memory is refused, with what it
/// would take.
///
/// # Errors When it cannot be read, is torn or too large, or holds a flow that no rack of this size
/// can carry.
pub fn read(path: &Path, reading: Reading) -> Result<Contents, BadInput> {
    let name = path.display().to_string();
    let unreadable =
        |error| BadInput::single(Located::whole(&name, format!("cannot be read: {error}")));
    let mut file = open(path).map_err(unreadable)?;
    let mut rows = Rows::new(&name, reading);
    match rows.format() {
        TraceFormat::Parquet => parquet::read(file, &mut rows),
        TraceFormat::Pcap => capture::read(file, &mut rows),
        _ => {
            let is_ended = ends_in_line_break(&mut file).map_err(unreadable)?;
            read_text(file, is_ended, &mut rows);
        }
    }
    contents(rows)
}

fn contents(rows: Rows<'_>) -> Result<Contents, BadInput> {
    let captured = rows.captured;
    rows.finish().map(|rows| Contents { rows, captured })
}

/// Reads a trace from memory, with [`MEMORY_DEFAULT`]; messages call it `name`.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(
    name: &str,
    bytes: Vec<u8>,
    format: TraceFormat,
    nodes: u32,
) -> Result<Vec<TraceRow>, BadInput> {
    let capturing = Capturing::default();
    let reading = Reading { format, first_node: 0, nodes, memory: MEMORY_DEFAULT, capturing };
    read_from(name, bytes, reading).map(|contents| contents.rows)
}

/// Reads a trace from memory; messages call it `name`.
///
/// # Errors
/// As [`read`].
pub fn read_from(name: &str, bytes: Vec<u8>, reading: Reading) -> Result<Contents, BadInput> {
    let mut rows = Rows::new(name, reading);
    match rows.format() {
        TraceFormat::Parquet => parquet::read(::bytes::Bytes::from(bytes), &mut rows),
        TraceFormat::Pcap => capture::read(&*bytes, &mut rows),
        _ => read_text(&*bytes, bytes.ends_with(b"\n"), &mut rows),
    }
    contents(rows)
}

/// Reads a format made of lines. `is_ended`: whether the last line has its end.
fn read_text(file: impl io::Read, is_ended: bool, rows: &mut Rows<'_>) {
    match rows.format() {
        TraceFormat::Csv => csv::read(file, is_ended, rows),
        TraceFormat::Htsim => htsim::read(file, rows),
        TraceFormat::Hpcc => hpcc::read(file, rows),
        TraceFormat::Parquet | TraceFormat::Pcap => unreachable!("not made of lines"),
    }
}

/// First 16 hexadecimal digits of the SHA-256 of the contents of `paths`, one after the other.
///
/// # Errors
/// Which cannot be read, and why.
pub(crate) fn digest(paths: &[PathBuf]) -> Result<String, (PathBuf, io::Error)> {
    let (mut digest, mut part) = (Sha256::new(), vec![0; PART]);
    for path in paths {
        let unreadable = |error| (path.clone(), error);
        let mut file = open(path).map_err(unreadable)?;
        loop {
            match file.read(&mut part).map_err(unreadable)? {
                0 => break,
                count => digest.update(&part[..count]),
            }
        }
    }
    let digest = digest.finalize();
    Ok(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect())
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
