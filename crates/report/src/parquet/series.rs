//! `series.parquet`: one row a sampling interval, one column a gauge.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array};
use arrow_schema::DataType;
use rack::results::SeriesTable;
use rack::{Gauge, GaugeKind};

use super::Provenance;
use super::columns::{Column, ColumnWriter, Nullable};
use crate::Unit;
use crate::files::{AtomicFile, FileError};

/// Writes gauges over time to `path`, whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write_series(
    path: &Path,
    series: &SeriesTable,
    origin: &Provenance,
) -> Result<(), FileError> {
    let file = AtomicFile::create(path)?;
    write(file.handle()?, series, origin).map_err(|source| FileError::new(path, source))?;
    file.finish()
}

fn write(out: std::fs::File, series: &SeriesTable, origin: &Provenance) -> io::Result<()> {
    let mut columns = vec![Column {
        name: "seconds".into(),
        kind: DataType::Float64,
        nullable: Nullable::Never,
        unit: "s",
        description: "End of the sampling interval since the start of the run".into(),
    }];
    columns.extend(series.gauges.iter().map(gauge_column));
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(Float64Array::from(series.seconds.clone()))];
    for index in 0..series.gauges.len() {
        arrays.push(Arc::new(Float64Array::from_iter_values(
            series.values.iter().map(|row| row[index]),
        )));
    }
    let mut writer = ColumnWriter::new(out, &columns, origin)?;
    writer.write(arrays)?;
    writer.finish()
}

fn gauge_column(gauge: &Gauge) -> Column {
    let how = match gauge.kind {
        GaugeKind::Level => "level at the end of the interval",
        GaugeKind::Peak => "largest in the interval",
        GaugeKind::Count => "number in the interval",
    };
    Column {
        name: gauge.name.into(),
        kind: DataType::Float64,
        nullable: Nullable::Never,
        unit: Unit::of_key(gauge.name).symbol(),
        description: format!("{} ({how})", gauge.meaning.trim_end_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn series_come_back_with_units() {
        let series = SeriesTable {
            gauges: vec![
                Gauge { name: "queue_max_bytes", meaning: "Longest queue.", kind: GaugeKind::Peak },
                Gauge { name: "drops", meaning: "Cells dropped.", kind: GaugeKind::Count },
            ],
            seconds: vec![1e-6, 2e-6],
            values: vec![vec![64.0, 0.0], vec![128.0, 3.0]],
        };
        let origin = Provenance {
            version: "0.1.0".into(),
            scenario_hash: "ab".into(),
            seed: 1,
            scenario: String::new(),
        };
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("series.parquet");
        write_series(&path, &series, &origin).unwrap();

        let file = std::fs::File::open(&path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let field = reader.schema().field(1).clone();
        assert_eq!(field.name(), "queue_max_bytes");
        assert_eq!(field.metadata()["unit"], "bytes");
        assert_eq!(field.metadata()["description"], "Longest queue (largest in the interval)");
        let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        assert_eq!(batches.len(), 1);
        let column = |index: usize| {
            let array = batches[0].column(index).as_any().downcast_ref::<Float64Array>().unwrap();
            array.values().to_vec()
        };
        assert_eq!(column(0), [1e-6, 2e-6]);
        assert_eq!(column(1), [64.0, 128.0]);
        assert_eq!(column(2), [0.0, 3.0]);
        let read = crate::read_series(&path).unwrap();
        assert_eq!(read.seconds, [1e-6, 2e-6]);
        let gauges: Vec<_> = read.gauges.iter().map(|g| (&*g.name, &*g.meaning)).collect();
        let queue = ("queue_max_bytes", "Longest queue (largest in the interval)");
        assert_eq!(gauges, [queue, ("drops", "Cells dropped (number in the interval)")]);
        assert_eq!(read.gauges[1].values, [0.0, 3.0]);
        let foreign = place.path().join("foreign.parquet");
        std::fs::write(&foreign, "no table").unwrap();
        assert!(crate::read_series(&foreign).is_err());
    }
}
