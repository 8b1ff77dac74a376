//! Traces in CSV, first line the column heads. Values are parted by commas; by semicolons or tabs
//! where the heads are, as spreadsheets of many countries write them. Lines that begin with `#` are
//! comments.

use std::io::{self, BufRead, BufReader, Read};

use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};

use super::{At, Rows};
use crate::tree::Place;

/// Longest line, in bytes: room for some hundred thousand rows that a flow waits for. Our choice.
const LINE_MAX: usize = 1 << 20;

/// Reads all rows into `rows`, problems included. `is_ended`: whether the last line has its end.
pub fn read(file: impl Read, is_ended: bool, rows: &mut Rows<'_>) {
    let mut short = BufReader::new(ShortLines { inner: file, length: 0 });
    let delimiter = short.fill_buf().map_or(b',', delimiter);
    let mut reader = ReaderBuilder::new()
        .flexible(true)
        .delimiter(delimiter)
        .comment(Some(b'#'))
        .from_reader(short);
    let heads = match reader.headers() {
        Ok(heads) => heads.clone(),
        Err(error) => return rows.complain_whole(unreadable(&error)),
    };
    let line = heads.position().map_or(1, |position| position.line() as usize);
    if !rows.heads(Place::Line(line.max(1)), heads.iter()) {
        return;
    }
    // A line is judged when it is known whether another follows: one cut short may still look whole,
    // so a last line without its end is not trusted.
    let (mut record, mut next) = (StringRecord::new(), StringRecord::new());
    let mut more = advance(&mut reader, &mut record, rows);
    while more && !rows.is_enough() {
        more = advance(&mut reader, &mut next, rows);
        let line = record.position().map_or(1, |position| position.line() as usize);
        if !more && !is_ended && reader.is_done() {
            rows.complain_of_torn_line(line);
        } else if record.len() == heads.len() {
            rows.row(At::Line(line), |column| record.get(column));
        } else {
            let message = format!("found {} values; expected {}", record.len(), heads.len());
            rows.complain(At::Line(line), "", message);
        }
        std::mem::swap(&mut record, &mut next);
    }
}

/// What parts the values, as the first line that is neither empty nor a comment shows.
fn delimiter(beginning: &[u8]) -> u8 {
    let mut lines = beginning.split(|&byte| byte == b'\n' || byte == b'\r');
    let heads = lines.find(|line| !line.is_empty() && !line.starts_with(b"#")).unwrap_or_default();
    let others = [b';', b'\t'].into_iter().find(|other| heads.contains(other));
    others.filter(|_| !heads.contains(&b',')).unwrap_or(b',')
}

/// Reads the next record; whether there is one. What cannot be read ends the file.
fn advance<R: Read>(
    reader: &mut Reader<R>,
    record: &mut StringRecord,
    rows: &mut Rows<'_>,
) -> bool {
    let line = reader.position().line() as usize;
    reader.read_record(record).unwrap_or_else(|error| {
        rows.complain(At::Line(line), "", unreadable(&error));
        false
    })
}

fn unreadable(error: &csv::Error) -> String {
    match error.kind() {
        ErrorKind::Utf8 { .. } => "not text in UTF-8".to_string(),
        ErrorKind::Io(error) => format!("cannot be read: {error}"),
        _ => format!("not readable as CSV: {error}"),
    }
}

/// Refuses endless lines, which would be taken into memory whole.
struct ShortLines<R> {
    inner: R,
    /// Bytes since the last line break.
    length: usize,
}

impl<R: Read> Read for ShortLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for part in buffer[..count].split_inclusive(|&byte| byte == b'\n') {
            self.length += part.len();
            if self.length > LINE_MAX {
                let message = format!("a line is longer than {LINE_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            if part.ends_with(b"\n") {
                self.length = 0;
            }
        }
        Ok(count)
    }
}
