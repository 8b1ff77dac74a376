//! Traces in Parquet: flat columns of numbers or text.

mod bounds;
mod shape;
mod thrift;

use std::panic::{AssertUnwindSafe, catch_unwind};

use ::parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use ::parquet::record::Field;
use ::parquet::schema::types::Type;

use self::bounds::Refused;
use super::{At, Rows};
use crate::tree::Place;

/// Reads all rows into `rows`, problems included.
pub fn read<R: ChunkReader + 'static>(file: R, rows: &mut Rows<'_>) {
    // The library checks what it reads, but not all: damaged pages can make it panic. A damaged
    // file is bad input, not our mistake, so the panic ends here.
    let outcome = catch_unwind(AssertUnwindSafe(|| read_rows(file, rows)));
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(Refused::Unsuitable(message))) => rows.complain_whole(message),
        Ok(Err(Refused::Damaged(error))) => damaged(rows, &error),
        Err(_) => damaged(rows, "its pages contradict its description"),
    }
}

fn damaged(rows: &mut Rows<'_>, why: &str) {
    rows.complain_whole(format!(
        "not a whole Parquet file ({why}); it may be cut off: write or copy it again"
    ));
}

fn read_rows<R: ChunkReader + 'static>(file: R, rows: &mut Rows<'_>) -> Result<(), Refused> {
    let damaged = |error: ::parquet::errors::ParquetError| Refused::Damaged(error.to_string());
    bounds::check_footer(&file)?;
    let file = std::sync::Arc::new(file);
    let reader = SerializedFileReader::new(Shared(file.clone())).map_err(damaged)?;
    let root = reader.metadata().file_metadata().schema_descr().root_schema();
    let fields = root.get_fields();
    let names: Vec<String> = fields.iter().map(|field| field.name().to_string()).collect();
    if !rows.heads(Place::Unknown, names.iter().map(String::as_str)) {
        return Ok(());
    }
    let is_read = |place: &usize| rows.columns.is_read(*place);
    let places: Vec<usize> = (0..fields.len()).filter(is_read).collect();
    let read: Vec<_> = places.iter().map(|&place| fields[place].clone()).collect();
    if let Some(field) = read.iter().find(|field| !field.is_primitive()) {
        let message = format!("column {} holds tables; expected one value a row", field.name());
        return Err(Refused::Unsuitable(message));
    }
    let count = bounds::rows(reader.metadata())?;
    if !rows.could_hold(count) {
        return Ok(());
    }
    bounds::check_pages(&*file, reader.metadata())?;
    let only = Type::group_type_builder(root.name()).with_fields(read).build().map_err(damaged)?;
    for (index, row) in reader.get_row_iter(Some(only)).map_err(damaged)?.enumerate() {
        let row = row.map_err(damaged)?;
        let cells: Vec<Option<String>> = row.get_column_iter().map(|(_, f)| cell(f)).collect();
        rows.row(At::Row(index), |place| {
            let cell = places.iter().position(|&read| read == place)?;
            cells.get(cell)?.as_deref()
        });
        if rows.is_enough() {
            return Ok(());
        }
    }
    Ok(())
}

/// A file that is read here and by the library.
struct Shared<R>(std::sync::Arc<R>);

impl<R: ChunkReader> ::parquet::file::reader::Length for Shared<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Shared<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> ::parquet::errors::Result<R::T> {
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ::parquet::errors::Result<bytes::Bytes> {
        self.0.get_bytes(start, length)
    }
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
