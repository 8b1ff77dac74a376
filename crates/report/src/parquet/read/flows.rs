//! The flows of a run that was written before.

use std::path::Path;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use kernel::{Bytes, Span, Time};
use rack::{FlowId, NodeId};

use super::{column, ints, longs, read, truths, words};
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
