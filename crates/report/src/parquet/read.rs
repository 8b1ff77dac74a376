//! Results that were written before: the flows of a run, and its record of packets.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use kernel::{Bytes, Span, Time};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use rack::trace::{ETHERNET, Hop, Outcome, Place, Trace};
use rack::{FlowId, NodeId};

use super::cells::Cells;
use crate::files::FileError;

/// A flow of a run, as its table has it.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowRow {
    /// Its number.
    pub flow: FlowId,
    /// Who sends.
    pub src: NodeId,
    /// Who receives.
    pub dst: NodeId,
    /// Application bytes.
    pub size: Bytes,
    /// When it began.
    pub start: Time,
    /// When it ended, or was given up; `None`: not before the run.
    pub end: Option<Time>,
    /// Its completion time alone in the idle network; `None`: it failed.
    pub ideal: Option<Span>,
    /// Completion time over ideal; of those that completed.
    pub slowdown: Option<f64>,
    /// `completed`, `failed` or `unfinished`.
    pub status: String,
    /// Whether the figures of the run are also of this flow.
    pub is_measured: bool,
    /// Seed of the run that carried it: flows of two seeds may have one number.
    pub seed: u64,
}

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
    let mut carry = || -> io::Result<()> {
        let broken = |error: parquet::errors::ParquetError| foreign(&error.to_string());
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(broken)?;
        let mask = match columns {
            [] => ProjectionMask::all(),
            some => ProjectionMask::columns(builder.parquet_schema(), some.iter().copied()),
        };
        for batch in builder.with_projection(mask).build().map_err(broken)? {
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

/// The flows of a run that `wanted` picks out, by number.
///
/// # Errors
/// When the file cannot be read, or is no table of flows.
pub fn read_flows(path: &Path, wanted: &dyn Fn(FlowId) -> bool) -> Result<Vec<FlowRow>, FileError> {
    let mut flows = Vec::new();
    each_flow(path, wanted, &mut |row| flows.push(row))?;
    flows.sort_by_key(|row| row.flow);
    Ok(flows)
}

/// Calls `take` with each flow of a run that `wanted` picks out, in the order of the file: that in which they ended.
/// A run may have more flows than fit in memory as rows.
///
/// # Errors
/// When the file cannot be read, or is no table of flows.
pub fn each_flow(
    path: &Path,
    wanted: &dyn Fn(FlowId) -> bool,
    take: &mut dyn FnMut(FlowRow),
) -> Result<(), FileError> {
    let columns = [
        "flow_id",
        "src",
        "dst",
        "size_bytes",
        "start_ps",
        "end_ps",
        "ideal_fct_ps",
        "slowdown",
        "status",
        "measured",
        "seed",
    ];
    read(path, &columns, &mut |batch| {
        let (flow, seed) = (longs(batch, "flow_id")?, longs(batch, "seed")?);
        let (src, dst) = (ints(batch, "src")?, ints(batch, "dst")?);
        let (size, start) = (longs(batch, "size_bytes")?, longs(batch, "start_ps")?);
        let (end, ideal) = (longs(batch, "end_ps")?, longs(batch, "ideal_fct_ps")?);
        let slowdown = column(batch, "slowdown", &DataType::Float64)?.as_primitive::<Float64Type>();
        let measured = truths(batch, "measured")?;
        let status = words(batch, "status")?;
        for (row, status) in status.into_iter().enumerate() {
            let number = FlowId::new(flow.value(row));
            if !wanted(number) {
                continue;
            }
            take(FlowRow {
                flow: number,
                src: NodeId::new(src.value(row)),
                dst: NodeId::new(dst.value(row)),
                size: Bytes::new(size.value(row)),
                start: Time::from_ps(start.value(row)),
                end: end.is_valid(row).then(|| Time::from_ps(end.value(row))),
                ideal: ideal.is_valid(row).then(|| Span::from_ps(ideal.value(row))),
                slowdown: slowdown.is_valid(row).then(|| slowdown.value(row)),
                status,
                is_measured: measured.value(row),
                seed: seed.value(row),
            });
        }
        Ok(())
    })
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

/// The record of a run.
///
/// # Errors
/// When the file cannot be read, or is no such record.
pub fn read_trace(path: &Path) -> Result<Trace, FileError> {
    let mut trace = Trace::default();
    // By port.
    let mut places: BTreeMap<u32, Place> = BTreeMap::new();
    read(path, &[], &mut |batch| {
        let (from, to) = (words(batch, "from")?, words(batch, "to")?);
        let ports = ints(batch, "port")?;
        // Records of versions that knew no other have no such column.
        let link_types = batch.column_by_name("link_type").map(|_| shorts(batch, "link_type"));
        let link_types = link_types.transpose()?;
        let outcomes = words(batch, "outcome")?;
        let rows = Rows::of(batch)?;
        for row in 0..batch.num_rows() {
            let port = ports.value(row);
            let [from, to] = [&from[row], &to[row]].map(String::clone);
            let link_type = link_types.map_or(ETHERNET, |types| types.value(row));
            places.entry(port).or_insert(Place { port, link_type, from, to });
            let outcome = Outcome::of_word(&outcomes[row])
                .ok_or_else(|| foreign(&format!("has the outcome {:?}", outcomes[row])))?;
            trace.hops.push(rows.hop(row, port, outcome)?);
        }
        Ok(())
    })?;
    let ports: Vec<u32> = places.keys().copied().collect();
    for hop in &mut trace.hops {
        hop.place = ports.partition_point(|&port| port < hop.place) as u32;
    }
    trace.places = places.into_values().collect();
    trace.hops.sort_by_key(Hop::order);
    Ok(trace)
}

/// The columns of a batch of hops.
struct Rows<'a> {
    longs: [&'a arrow_array::UInt64Array; 9],
    ints: [&'a arrow_array::UInt32Array; 3],
    shorts: [&'a arrow_array::UInt16Array; 3],
    truths: [&'a arrow_array::BooleanArray; 6],
    beside: [&'a arrow_array::ListArray; 2],
    header: &'a arrow_array::BinaryArray,
    cells: Option<Cells<'a>>,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a RecordBatch) -> io::Result<Self> {
        let long = |name| longs(batch, name);
        let truth = |name| truths(batch, name);
        let list = |name: &str| {
            let wrong = || foreign(&format!("its column {name:?} holds no lists"));
            batch
                .column_by_name(name)
                .and_then(|found| found.as_list_opt::<i32>())
                .ok_or_else(wrong)
        };
        Ok(Self {
            longs: [
                long("flow_id")?,
                long("offset_bytes")?,
                long("joined_ps")?,
                long("started_ps")?,
                long("sent_ps")?,
                long("arrived_ps")?,
                long("propagation_ps")?,
                long("behind_own_ps")?,
                long("behind_others_ps")?,
            ],
            ints: [
                ints(batch, "packet")?,
                ints(batch, "found_bytes")?,
                ints(batch, "found_packets")?,
            ],
            shorts: [
                shorts(batch, "hop")?,
                shorts(batch, "payload_bytes")?,
                shorts(batch, "wire_bytes")?,
            ],
            truths: [
                truth("data")?,
                truth("to_source")?,
                truth("retransmission")?,
                truth("last")?,
                truth("marked")?,
                truth("trimmed")?,
            ],
            beside: [list("beside_flows")?, list("beside_bytes")?],
            header: column(batch, "header", &DataType::Binary)?.as_binary::<i32>(),
            cells: Cells::of(batch)?,
        })
    }

    /// A row; its place is the number of the port.
    fn hop(&self, row: usize, place: u32, outcome: Outcome) -> io::Result<Hop> {
        let [flow, offset, joined, started, sent, arrived, propagation, own, others] =
            self.longs.map(|column| column.value(row));
        let [packet, found_bytes, found_packets] = self.ints.map(|column| column.value(row));
        let [hop, payload, bytes] = self.shorts.map(|column| column.value(row));
        let [is_data, to_source, is_again, is_last, is_marked, is_trimmed] =
            self.truths.map(|column| column.value(row));
        let [joined, started, sent, arrived] = [joined, started, sent, arrived].map(Time::from_ps);
        let [propagation, own, others] = [propagation, own, others].map(Span::from_ps);
        let in_order = joined <= started && started <= sent && started <= arrived;
        let is_long = sent.max(arrived) > rack::run::TIME_MAX
            || own.max(others) > started - joined.min(started);
        if !in_order || is_long || offset.checked_add(payload.into()).is_none() {
            return Err(foreign(&format!("has a hop whose times cannot be, of flow {flow}")));
        }
        let [flows, counts] = self.beside.map(|column| column.value(row));
        let [flows, counts] = [&flows, &counts].map(|list| list.as_primitive_opt::<UInt64Type>());
        let (Some(flows), Some(counts)) = (flows, counts) else {
            return Err(foreign("its lists hold no numbers"));
        };
        let beside = flows.iter().zip(counts.iter());
        Ok(Hop {
            flow: FlowId::new(flow),
            packet,
            hop,
            cell: self.cells.as_ref().map_or(Ok(None), |cells| cells.cell(row))?,
            is_data,
            to_source,
            is_again,
            offset,
            payload,
            bytes,
            place,
            is_last,
            is_marked,
            is_trimmed,
            outcome,
            joined,
            started,
            sent,
            arrived,
            propagation,
            own,
            others,
            found_bytes,
            found_packets,
            beside: beside
                .map(|(flow, bytes)| (flow.map(FlowId::new), bytes.unwrap_or(0)))
                .collect(),
            header: self.header.value(row).to_vec(),
        })
    }
}
