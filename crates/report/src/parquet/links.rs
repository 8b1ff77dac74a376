//! `links.parquet`: one row a span of a line in which it carried something, by port and time.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use arrow_schema::DataType;
use kernel::Span;
use rack::trace::{ETHERNET, Line, LineSpan, Lines, Place, SPANS_MAX};

use super::Provenance;
use super::columns::{Column, ColumnWriter};
use super::read::{foreign, ints, longs, read, words};
use crate::files::{AtomicFile, FileError};

/// Writes what lines carried to `path`, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_links(path: &Path, lines: &Lines, origin: &Provenance) -> Result<(), FileError> {
    let file = AtomicFile::create(path)?;
    write(file.handle()?, lines, origin).map_err(|source| FileError::new(path, source))?;
    file.finish()
}

fn write(out: std::fs::File, lines: &Lines, origin: &Provenance) -> io::Result<()> {
    let mut writer = ColumnWriter::new(out, &columns(), origin)?;
    for line in &lines.lines {
        writer.write(arrays(lines.span, line))?;
    }
    if lines.lines.is_empty() {
        let (from, to) = (String::new(), String::new());
        let place = Place { port: 0, link_type: ETHERNET, from, to };
        writer.write(arrays(lines.span, &Line { place, spans: Vec::new() }))?;
    }
    writer.finish()
}

/// The columns of a line, in the order of [`columns`].
fn arrays(span: Span, line: &Line) -> Vec<ArrayRef> {
    let filled = (0_u64..).zip(&line.spans).filter(|(_, one)| one.carried > 0);
    let rows: Vec<(u64, LineSpan)> = filled.map(|(at, one)| (at, *one)).collect();
    let name = |name: &str| -> ArrayRef {
        let mut builder = StringDictionaryBuilder::<Int32Type>::new();
        rows.iter().for_each(|_| builder.append_value(name));
        Arc::new(builder.finish())
    };
    let long = |value: &dyn Fn(&(u64, LineSpan)) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
    };
    let int = |value: &dyn Fn(&(u64, LineSpan)) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(value)))
    };
    vec![
        int(&|_| line.place.port),
        name(&line.place.from),
        name(&line.place.to),
        long(&|(at, _)| at * span.as_ps()),
        long(&|_| span.as_ps()),
        long(&|(_, one)| one.carried),
        int(&|(_, one)| one.waiting),
    ]
}

fn columns() -> Vec<Column> {
    use DataType::{UInt32, UInt64};
    let name = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    [
        ("port", UInt32, "", "Number of the output port in the network"),
        ("from", name(), "", "Whose port it is"),
        ("to", name(), "", "Who is at the other end"),
        ("start_ps", UInt64, "ps", "When the span begins"),
        ("span_ps", UInt64, "ps", "How long it is, the same in all rows"),
        (
            "carried_bytes",
            UInt64,
            "bytes",
            "Packets of all flows that began to go on the line in the span, headers included",
        ),
        (
            "waiting_max_bytes",
            UInt32,
            "bytes",
            "The most that waited for the line in the span as a packet went on it",
        ),
    ]
    .into_iter()
    .map(Column::filled)
    .collect()
}

/// What lines carried, as [`write_links`] has written it.
///
/// # Errors
/// When the file cannot be read, or is no such table.
pub fn read_links(path: &Path) -> Result<Lines, FileError> {
    let mut span = Span::ZERO;
    let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
    read(path, &[], &mut |batch| {
        let (ports, waiting) = (ints(batch, "port")?, ints(batch, "waiting_max_bytes")?);
        let (starts, spans) = (longs(batch, "start_ps")?, longs(batch, "span_ps")?);
        let carried = longs(batch, "carried_bytes")?;
        let (from, to) = (words(batch, "from")?, words(batch, "to")?);
        for row in 0..batch.num_rows() {
            span = Span::from_ps(spans.value(row));
            let at = starts.value(row) / span.as_ps().max(1);
            let at = usize::try_from(at).ok().filter(|at| *at < SPANS_MAX);
            let at = at.ok_or_else(|| foreign("has a span that lies beyond its last"))?;
            let port = ports.value(row);
            let [from, to] = [&from[row], &to[row]].map(String::clone);
            let place = Place { port, link_type: ETHERNET, from, to };
            let fresh = || Line { place, spans: Vec::new() };
            let line = lines.entry(port).or_insert_with(fresh);
            if line.spans.len() <= at {
                line.spans.resize(at + 1, LineSpan::default());
            }
            let (carried, waiting) = (carried.value(row), waiting.value(row));
            line.spans[at] = LineSpan { carried, waiting };
        }
        Ok(())
    })?;
    Ok(Lines { span, lines: lines.into_values().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let line = |port: u32, spans: &[(u64, u32)]| Line {
            place: Place {
                port,
                link_type: ETHERNET,
                from: format!("node {port}"),
                to: "leaf 0 (link 1)".into(),
            },
            spans: spans.iter().map(|&(carried, waiting)| LineSpan { carried, waiting }).collect(),
        };
        let span = Span::from_us(4);
        let some = Lines { span, lines: vec![line(2, &[(0, 0), (1500, 64)]), line(9, &[(5, 0)])] };
        for lines in [some, Lines::default()] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("links.parquet");
            let origin = Provenance::of_a_test();
            write_links(&path, &lines, &origin).unwrap();
            assert_eq!(read_links(&path).unwrap(), lines);
        }
    }
}
