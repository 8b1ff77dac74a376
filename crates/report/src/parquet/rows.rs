//! A table of any columns: a row a thing that was measured.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, StringArray, UInt64Array};
use arrow_schema::DataType;

use super::Provenance;
use super::columns::{Column, ColumnWriter, Nullable};
use crate::files::{AtomicFile, FileError};

/// A column of a table of rows.
#[derive(Clone, PartialEq, Debug)]
pub struct RowsColumn {
    /// Unique in its table; ends in its unit, where it has one.
    pub name: &'static str,
    /// `s`, `bytes`, ...; empty where there is none.
    pub unit: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// As many as every other column has.
    pub values: RowsValues,
}

/// What a column holds; `None`: there is no such thing in this row.
#[derive(Clone, PartialEq, Debug)]
pub enum RowsValues {
    /// Whole numbers.
    Counts(Vec<Option<u64>>),
    /// Others.
    Numbers(Vec<Option<f64>>),
    /// Words.
    Words(Vec<Option<String>>),
}

/// Writes columns to `path`, whole or not at all.
///
/// # Errors
/// When it cannot be written.
///
/// # Panics
/// If a column has another length than the first.
pub fn write_rows(
    path: &Path,
    columns: &[RowsColumn],
    origin: &Provenance,
) -> Result<(), FileError> {
    let file = AtomicFile::create(path)?;
    write(file.handle()?, columns, origin).map_err(|source| FileError::new(path, source))?;
    file.finish()
}

fn write(out: std::fs::File, columns: &[RowsColumn], origin: &Provenance) -> io::Result<()> {
    let described = |column: &RowsColumn| Column {
        name: column.name.into(),
        kind: match column.values {
            RowsValues::Counts(_) => DataType::UInt64,
            RowsValues::Numbers(_) => DataType::Float64,
            RowsValues::Words(_) => DataType::Utf8,
        },
        nullable: Nullable::Sometimes,
        unit: column.unit,
        description: column.description.into(),
    };
    let described: Vec<Column> = columns.iter().map(described).collect();
    let array = |column: &RowsColumn| -> ArrayRef {
        match &column.values {
            RowsValues::Counts(values) => Arc::new(UInt64Array::from(values.clone())),
            RowsValues::Numbers(values) => Arc::new(Float64Array::from(values.clone())),
            RowsValues::Words(values) => Arc::new(StringArray::from(values.clone())),
        }
    };
    let mut writer = ColumnWriter::new(out, &described, origin)?;
    writer.write(columns.iter().map(array).collect())?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Array, RecordBatch};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn rows_come_back_with_units_and_gaps() {
        let column = |name, values| RowsColumn { name, unit: "s", description: "It.", values };
        let columns = [
            column("count", RowsValues::Counts(vec![Some(7), None])),
            column("at_s", RowsValues::Numbers(vec![None, Some(0.25)])),
            column("word", RowsValues::Words(vec![Some("a".into()), None])),
        ];
        let origin = Provenance {
            version: "0.1.0".into(),
            scenario_hash: String::new(),
            seed: 1,
            scenario: String::new(),
        };
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("rows.parquet");
        write_rows(&path, &columns, &origin).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        assert_eq!(reader.schema().field(1).metadata()["unit"], "s");
        let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        let count = batches[0].column(0).as_any().downcast_ref::<UInt64Array>().unwrap();
        assert!(count.value(0) == 7 && count.is_null(1));
        let at = batches[0].column(1).as_any().downcast_ref::<Float64Array>().unwrap();
        assert!(at.is_null(0) && at.value(1) == 0.25);
        assert!(batches[0].column(2).is_null(1));
    }
}
