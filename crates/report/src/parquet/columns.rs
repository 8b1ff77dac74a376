//! A Parquet file with described columns, over any writer.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use serde_json::{Map, Value, json};

use super::Provenance;

/// Rows that are compressed together. Our choice: some tens of megabytes in memory at most, and
/// enough that readers run at full speed.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// What a column holds.
pub(super) struct Column {
    pub name: String,
    pub kind: DataType,
    pub nullable: Nullable,
    /// `ps`, `bytes`, ...; empty where there is none.
    pub unit: &'static str,
    /// One sentence.
    pub description: String,
}

/// Whether a column may lack values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nullable {
    Never,
    Sometimes,
}

impl Column {
    /// One with a value in each row: name, kind, unit, description.
    pub(super) fn filled(
        (name, kind, unit, description): (&str, DataType, &'static str, &str),
    ) -> Self {
        let (name, description) = (name.into(), description.into());
        Self { name, kind, nullable: Nullable::Never, unit, description }
    }

    /// The same, one that may lack values.
    pub(super) fn nullable(of: (&str, DataType, &'static str, &str)) -> Self {
        Self { nullable: Nullable::Sometimes, ..Self::filled(of) }
    }

    fn field(&self) -> Field {
        let metadata = HashMap::from([
            ("description".to_string(), self.description.clone()),
            ("unit".to_string(), self.unit.to_string()),
        ]);
        let nullable = self.nullable == Nullable::Sometimes;
        Field::new(&self.name, self.kind.clone(), nullable).with_metadata(metadata)
    }
}

/// Writes batches of columns to `W`.
pub(super) struct ColumnWriter<W: Write + Send> {
    schema: SchemaRef,
    writer: ArrowWriter<W>,
}

impl<W: Write + Send> ColumnWriter<W> {
    pub(super) fn new(out: W, columns: &[Column], origin: &Provenance) -> io::Result<Self> {
        let fields: Vec<_> = columns.iter().map(Column::field).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = properties(columns, origin);
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(plain)?;
        Ok(Self { schema, writer })
    }

    /// Writes one batch: an array for each column, all of one length.
    pub(super) fn write(&mut self, arrays: Vec<ArrayRef>) -> io::Result<()> {
        let batch =
            RecordBatch::try_new(self.schema.clone(), arrays).expect("arrays are as declared");
        self.writer.write(&batch).map_err(plain)
    }

    /// Writes what is left and the file's footer.
    pub(super) fn finish(self) -> io::Result<()> {
        self.writer.close().map(drop).map_err(plain)
    }

    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.writer.memory_size()
    }

    #[cfg(test)]
    pub(super) fn row_groups(&self) -> usize {
        self.writer.flushed_row_groups().len()
    }
}

/// How the file is written, and what it says of itself.
fn properties(columns: &[Column], origin: &Provenance) -> WriterProperties {
    let mut described = Map::new();
    for column in columns {
        let entry = json!({ "unit": column.unit, "description": column.description });
        described.insert(column.name.clone(), entry);
    }
    let metadata = [
        ("rackloom_version", origin.version.clone()),
        ("scenario_hash", origin.scenario_hash.clone()),
        ("seed", origin.seed.to_string()),
        ("scenario", origin.scenario.clone()),
        // Again, for readers that do not know Arrow's own schema.
        ("columns", Value::Object(described).to_string()),
    ];
    let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_string(), value)).to_vec();
    let mut properties = WriterProperties::builder()
        .set_created_by(format!("rackloom {}", origin.version))
        // The one codec that every reader knows and that needs no C.
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_key_value_metadata(Some(metadata));
    for column in columns {
        // Numbers and times mostly rise: their differences are small, their values never repeat.
        if column.kind == DataType::UInt64 {
            let path = ColumnPath::from(column.name.as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

/// The system's own error where there is one beneath, so that a full disk is known as such.
fn plain(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(system) => *system,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
