//! Results that were written before: the flows of a run, its gauges, and its record of packets.

mod flows;
mod series;
mod trace;

use std::fs::File;
use std::io;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection};

pub use self::flows::{FlowRow, each_flow, read_flows};
pub use self::series::{GaugeRow, Series, read_series};
pub use self::trace::{TraceIndex, read_trace};
use crate::files::FileError;

/// What a file holds that is no such table.
pub(super) fn foreign(what: &str) -> io::Error {
    let message = format!("{what}; it was written by something else or by another version");
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Calls `take` with each batch of these columns of the file at `path`; of all if there are none.
pub(super) fn read(
    path: &Path,
    columns: &[&str],
    take: &mut dyn FnMut(&RecordBatch) -> io::Result<()>,
) -> Result<(), FileError> {
    read_rows(path, columns, None, take)
}

/// The same with these rows alone, if there are any that are to be picked out.
fn read_rows(
    path: &Path,
    columns: &[&str],
    rows: Option<RowSelection>,
    take: &mut dyn FnMut(&RecordBatch) -> io::Result<()>,
) -> Result<(), FileError> {
    let mut carry = || -> io::Result<()> {
        let broken = |error: parquet::errors::ParquetError| foreign(&error.to_string());
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(broken)?;
        let mask = match columns {
            [] => ProjectionMask::all(),
            some => ProjectionMask::columns(builder.parquet_schema(), some.iter().copied()),
        };
        let builder = builder.with_projection(mask);
        let builder = match &rows {
            Some(rows) => builder.with_row_selection(rows.clone()),
            None => builder,
        };
        for batch in builder.build().map_err(broken)? {
            take(&batch.map_err(|error| foreign(&error.to_string()))?)?;
        }
        Ok(())
    };
    carry().map_err(|source| FileError::new(path, source))
}

/// A column of a batch, if it is of this kind.
fn column<'a>(batch: &'a RecordBatch, name: &str, kind: &DataType) -> io::Result<&'a dyn Array> {
    let found = batch.column_by_name(name);
    let found = found.ok_or_else(|| foreign(&format!("has no column {name:?}")))?;
    match found.data_type() == kind {
        true => Ok(&**found),
        false => Err(foreign(&format!("its column {name:?} holds {}", found.data_type()))),
    }
}

pub(super) fn longs<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> io::Result<&'a arrow_array::UInt64Array> {
    Ok(column(batch, name, &DataType::UInt64)?.as_primitive::<UInt64Type>())
}

pub(super) fn ints<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> io::Result<&'a arrow_array::UInt32Array> {
    Ok(column(batch, name, &DataType::UInt32)?.as_primitive::<UInt32Type>())
}

fn shorts<'a>(batch: &'a RecordBatch, name: &str) -> io::Result<&'a arrow_array::UInt16Array> {
    Ok(column(batch, name, &DataType::UInt16)?.as_primitive::<UInt16Type>())
}

fn truths<'a>(batch: &'a RecordBatch, name: &str) -> io::Result<&'a arrow_array::BooleanArray> {
    Ok(column(batch, name, &DataType::Boolean)?.as_boolean())
}

/// The words of a column of them.
pub(super) fn words(batch: &RecordBatch, name: &str) -> io::Result<Vec<String>> {
    let wrong = || foreign(&format!("its column {name:?} holds no words"));
    if batch.num_rows() == 0 {
        return Ok(Vec::new());
    }
    let found = batch.column_by_name(name).ok_or_else(wrong)?;
    let dictionary = found.as_any_dictionary_opt().ok_or_else(wrong)?;
    let values = dictionary.values().as_string_opt::<i32>().ok_or_else(wrong)?;
    let keys = dictionary.normalized_keys();
    if found.null_count() > 0 {
        return Err(wrong());
    }
    Ok(keys.into_iter().map(|key| values.value(key).to_string()).collect())
}
