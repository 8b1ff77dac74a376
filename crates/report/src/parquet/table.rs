//! Any table: a row a run of a sweep, say, or a row a thing that was measured.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow_schema::DataType;
use serde_json::Value;

use super::Provenance;
use super::columns::{Column, ColumnWriter, Nullable};
use super::read::read;
use crate::Unit;
use crate::files::{AtomicFile, FileError};

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct TableColumn {
    /// Unique in its table.
    pub name: String,
    /// `s`, `bytes`, ...; empty where there is none.
    pub unit: &'static str,
    /// One sentence; empty where the name says it all.
    pub description: &'static str,
    /// One a row, null where there is no such thing. A column of numbers, or of truth values, is one; any other is
    /// text.
    pub values: Vec<Value>,
}

impl TableColumn {
    /// Values of a summary, by the key that they have there, which names their unit.
    #[must_use]
    pub fn of_key(key: impl Into<String>, values: Vec<Value>) -> Self {
        let name = key.into();
        let unit =
            if is_number(array(&values).data_type()) { Unit::of_key(&name).symbol() } else { "" };
        Self { name, unit, description: "", values }
    }
}

/// Writes `columns` to `path`, whole or not at all.
///
/// # Errors
/// When it cannot be written.
///
/// # Panics
/// If a column has another length than the first.
pub fn write_table(
    path: &Path,
    columns: &[TableColumn],
    origin: &Provenance,
) -> Result<(), FileError> {
    let file = AtomicFile::create(path)?;
    write(file.handle()?, columns, origin).map_err(|source| FileError::new(path, source))?;
    file.finish()
}

fn write(out: std::fs::File, columns: &[TableColumn], origin: &Provenance) -> io::Result<()> {
    let parts = columns.iter().map(|TableColumn { name, unit, description, values }| {
        let array = array(values);
        let column = Column {
            name: name.clone(),
            kind: array.data_type().clone(),
            nullable: Nullable::Sometimes,
            unit,
            description: (*description).into(),
        };
        (column, array)
    });
    let (columns, arrays): (Vec<_>, Vec<_>) = parts.unzip();
    let mut writer = ColumnWriter::new(out, &columns, origin)?;
    writer.write(arrays)?;
    writer.finish()
}

fn is_number(kind: &DataType) -> bool {
    matches!(kind, DataType::Float64 | DataType::Int64)
}

fn array(values: &[Value]) -> ArrayRef {
    let is = |fits: fn(&Value) -> bool| {
        values.iter().all(|value| value.is_null() || fits(value))
            && values.iter().any(|value| !value.is_null())
    };
    if is(Value::is_i64) {
        Arc::new(Int64Array::from_iter(values.iter().map(Value::as_i64)))
    } else if is(Value::is_number) {
        Arc::new(Float64Array::from_iter(values.iter().map(Value::as_f64)))
    } else if is(Value::is_boolean) {
        Arc::new(BooleanArray::from_iter(values.iter().map(Value::as_bool)))
    } else {
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Arc::new(StringArray::from_iter(values.iter().map(text)))
    }
}

/// Columns of a table that [`write_table`] has written, by name, in the order of the file: those whose names `wanted`
/// picks out.
///
/// # Errors
/// When the file cannot be read, or is no table.
pub fn read_table(
    path: &Path,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, Vec<Value>)>, FileError> {
    let mut columns: Vec<(String, Vec<Value>)> = Vec::new();
    read(path, &[], &mut |batch| {
        let schema = batch.schema();
        let fields = schema.fields().iter().zip(batch.columns());
        let fields = fields.filter(|(field, _)| wanted(field.name()));
        for (index, (field, values)) in fields.enumerate() {
            if columns.len() <= index {
                columns.push((field.name().clone(), Vec::new()));
            }
            columns[index].1.extend(values_of(values));
        }
        Ok(())
    })?;
    Ok(columns)
}

/// The values of a column of one of our kinds; of any other kind nulls.
fn values_of(column: &ArrayRef) -> Vec<Value> {
    fn all<T: Into<Value>>(values: impl Iterator<Item = Option<T>>) -> Vec<Value> {
        values.map(|value| value.map_or(Value::Null, Into::into)).collect()
    }
    match column.data_type() {
        DataType::Int64 => all(column.as_primitive::<Int64Type>().iter()),
        DataType::Float64 => all(column.as_primitive::<Float64Type>().iter()),
        DataType::Boolean => all(column.as_boolean().iter()),
        DataType::Utf8 => all(column.as_string::<i32>().iter()),
        _ => vec![Value::Null; column.len()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use serde_json::json;

    #[test]
    fn columns_have_the_kind_of_their_values() {
        let all = |values: &[Value]| values.to_vec();
        let columns = [
            ("name", all(&[json!("a"), Value::Null])),
            ("nodes", all(&[json!(8), json!(16)])),
            ("fct.all.p99", all(&[json!(1), json!(2.5e-6)])),
            ("saturated", all(&[Value::Null, json!(true)])),
            ("mixed", all(&[json!(1), json!("1 us")])),
            ("empty", all(&[Value::Null, Value::Null])),
        ]
        .map(|(key, values)| TableColumn::of_key(key, values));
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("table.parquet");
        let origin = Provenance::of_a_test();
        write_table(&path, &columns, &origin).unwrap();
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&path).unwrap()).unwrap();
        let kinds: Vec<_> =
            reader.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        use DataType::{Boolean, Float64, Int64, Utf8};
        assert_eq!(kinds, [Utf8, Int64, Float64, Boolean, Utf8, Utf8]);
        assert_eq!(reader.schema().field(2).metadata()["unit"], "s");
        let batch = reader.build().unwrap().next().unwrap().unwrap();
        let times = batch.column(2).as_any().downcast_ref::<Float64Array>().unwrap();
        assert_eq!(times.values().to_vec(), [1.0, 2.5e-6]);
        assert!(batch.column(3).is_null(0) && !batch.column(3).is_null(1));
        let read = read_table(&path, &|name| name != "nodes").unwrap();
        let expected = [
            ("name", [json!("a"), Value::Null]),
            ("fct.all.p99", [json!(1.0), json!(2.5e-6)]),
            ("saturated", [Value::Null, json!(true)]),
            ("mixed", [json!("1"), json!("1 us")]),
            ("empty", [Value::Null, Value::Null]),
        ];
        assert_eq!(read, expected.map(|(name, values)| (name.to_string(), values.to_vec())));
    }
}
