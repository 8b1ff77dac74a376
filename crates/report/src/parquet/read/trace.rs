//! The record of packets that was written before, whole or of one flow.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_schema::DataType;
use kernel::{Span, Time};
use parquet::arrow::arrow_reader::RowSelection;
use rack::FlowId;
use rack::trace::{ETHERNET, Hop, Outcome, Place, Trace};

use super::super::cells::Cells;
use super::{column, foreign, ints, longs, read, read_rows, shorts, truths, words};
use crate::files::FileError;

/// The column that says of which flow a row is.
const FLOW: &str = "flow_id";

/// The flows that a record is of, and which of its rows are of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceIndex {
    path: PathBuf,
    /// Rows of each flow, in order.
    rows: BTreeMap<FlowId, Vec<Range<usize>>>,
    /// How many rows there are.
    all: usize,
}

impl TraceIndex {
    /// Reads which flows the record at `path` is of, and no more of it.
    ///
    /// # Errors
    /// When the file cannot be read, or is no such record.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let mut index = Self { path: path.to_path_buf(), rows: BTreeMap::new(), all: 0 };
        read(path, &[FLOW], &mut |batch| {
            for run in longs(batch, FLOW)?.values().chunk_by(|a, b| a == b) {
                index.take(FlowId::new(run[0]), run.len());
            }
            Ok(())
        })?;
        Ok(index)
    }

    /// The next `count` rows are of `flow`.
    fn take(&mut self, flow: FlowId, count: usize) {
        let from = self.all;
        self.all += count;
        let runs = self.rows.entry(flow).or_default();
        match runs.last_mut() {
            Some(last) if last.end == from => last.end = self.all,
            _ => runs.push(from..self.all),
        }
    }

    /// The flows, by number.
    #[must_use]
    pub fn flows(&self) -> Vec<FlowId> {
        self.rows.keys().copied().collect()
    }

    /// Whether the record is of `flow`, too.
    #[must_use]
    pub fn has(&self, flow: FlowId) -> bool {
        self.rows.contains_key(&flow)
    }

    /// The record of one flow, for which no more of the file is read than has to be; empty if it is not of it.
    ///
    /// # Errors
    /// When the file cannot be read, or is no such record.
    pub fn of(&self, flow: FlowId) -> Result<Trace, FileError> {
        let rows = self.rows.get(&flow).into_iter().flatten().cloned();
        read_hops(&self.path, Some(RowSelection::from_consecutive_ranges(rows, self.all)))
    }
}

/// The record of a run.
///
/// # Errors
/// When the file cannot be read, or is no such record.
pub fn read_trace(path: &Path) -> Result<Trace, FileError> {
    read_hops(path, None)
}

fn read_hops(path: &Path, rows: Option<RowSelection>) -> Result<Trace, FileError> {
    let mut trace = Trace::default();
    // By port.
    let mut places: BTreeMap<u32, Place> = BTreeMap::new();
    read_rows(path, &[], rows, &mut |batch| {
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
                long(FLOW)?,
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
