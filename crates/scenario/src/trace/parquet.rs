//! Traces in Parquet: flat columns of numbers or text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::bytes::Bytes;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::record::Field;

use super::{At, Rows};
use crate::tree::Place;

/// Reads all rows into `rows`, problems included.
pub fn read(bytes: Vec<u8>, rows: &mut Rows<'_>) {
    // The library checks what it reads, but not all: damaged pages can make it panic. A damaged
    // file is bad input, not our mistake, so the panic ends here.
    let outcome = catch_unwind(AssertUnwindSafe(|| read_rows(bytes, rows)));
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => damaged(rows, &error),
        Err(_) => damaged(rows, "its pages contradict its description"),
    }
}

fn damaged(rows: &mut Rows<'_>, why: &str) {
    rows.complain_whole(format!(
        "not a whole Parquet file ({why}); it may be cut off: write or copy it again"
    ));
}

fn read_rows(bytes: Vec<u8>, rows: &mut Rows<'_>) -> Result<(), String> {
    let text = |error: ::parquet::errors::ParquetError| error.to_string();
    let reader = SerializedFileReader::new(Bytes::from(bytes)).map_err(text)?;
    let fields = reader.metadata().file_metadata().schema_descr().root_schema().get_fields();
    let names: Vec<String> = fields.iter().map(|field| field.name().to_string()).collect();
    if !rows.heads(Place::Unknown, names.iter().map(String::as_str)) {
        return Ok(());
    }
    for (index, row) in reader.get_row_iter(None).map_err(text)?.enumerate() {
        let row = row.map_err(text)?;
        let cells: Vec<Option<String>> = row.get_column_iter().map(|(_, f)| cell(f)).collect();
        rows.row(At::Row(index), |column| cells.get(column)?.as_deref());
    }
    Ok(())
}

/// A value as the text that CSV would hold; what is no number and no text stays recognisably wrong.
fn cell(field: &Field) -> Option<String> {
    match field {
        Field::Null => None,
        Field::Str(text) => Some(text.clone()),
        // A whole number stored as a float prints without a point.
        Field::Float(value) => Some(value.to_string()),
        Field::Double(value) => Some(value.to_string()),
        other => Some(other.to_string()),
    }
}
