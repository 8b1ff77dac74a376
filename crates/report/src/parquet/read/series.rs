//! What a run that was written before sampled over time.

use std::io;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;

use super::{column, read};
use crate::files::FileError;

/// What a run sampled over time, as its table has it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Series {
    /// Ends of the sampling intervals, in seconds since the start of the run.
    pub seconds: Vec<f64>,
    /// A curve a gauge.
    pub gauges: Vec<GaugeRow>,
}

/// A gauge over time.
#[derive(Clone, PartialEq, Debug)]
pub struct GaugeRow {
    /// Its name, from which its unit follows ([`crate::Unit::of_key`]).
    pub name: String,
    /// What it counts or measures, and how it was sampled.
    pub meaning: String,
    /// As many as there are intervals.
    pub values: Vec<f64>,
}

/// The gauges of a run over time.
///
/// # Errors
/// When the file cannot be read, or is no table of gauges.
pub fn read_series(path: &Path) -> Result<Series, FileError> {
    let mut series = Series::default();
    read(path, &[], &mut |batch| {
        let floats = |name: &str| -> io::Result<Vec<f64>> {
            let found = column(batch, name, &DataType::Float64)?;
            Ok(found.as_primitive::<Float64Type>().values().to_vec())
        };
        series.seconds.extend(floats("seconds")?);
        let schema = batch.schema();
        let gauges = schema.fields().iter().filter(|field| field.name() != "seconds");
        for (index, field) in gauges.enumerate() {
            if series.gauges.len() <= index {
                let meaning = field.metadata().get("description").cloned().unwrap_or_default();
                let (name, values) = (field.name().clone(), Vec::new());
                series.gauges.push(GaugeRow { name, meaning, values });
            }
            series.gauges[index].values.extend(floats(field.name())?);
        }
        Ok(())
    })?;
    Ok(series)
}
