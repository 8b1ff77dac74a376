//! What a run leaves behind: plain data, the same for every fabric, that the report, the files and
//! Python read.

pub mod figure;
pub(crate) mod jobs;
pub(crate) mod recorder;
pub mod seeds;
pub mod steady;
pub(crate) mod summary;

use kernel::{Bytes, Span, Time};
use serde_json::Value;

use crate::{Failure, Flow, Gauge, Stage};

pub use figure::{Figure, Quantiles};
pub use recorder::{COMMON_LATENCY, LONG_MIN, SHORT_MAX};
pub use summary::{Description, EngineTime};

/// One flow, when it has ended or the run has.
#[derive(Clone, Copy, Debug)]
pub struct FlowRecord<'a> {
    /// The flow as it was offered.
    pub flow: &'a Flow,
    /// Whether it is one of those that are measured.
    pub measured: bool,
    /// How it ended.
    pub end: FlowEnd<'a>,
}

/// How a flow ended.
#[derive(Clone, Copy, Debug)]
pub enum FlowEnd<'a> {
    /// Its last byte arrived.
    Completed {
        /// When.
        at: Time,
        /// Its completion time alone in the idle network.
        ideal: Span,
        /// Mean time of its cells or packets in each stage.
        stages: &'a [Span],
    },
    /// It was given up.
    Failed {
        /// When.
        at: Time,
        /// Why.
        why: Failure,
    },
    /// The run ended first.
    Unfinished {
        /// Application bytes handed to the receiver by then, in order.
        delivered: Bytes,
        /// Its completion time alone in the idle network.
        ideal: Span,
    },
}

/// Takes flows as they end, so that a run need not keep them.
pub trait FlowSink {
    /// Takes one flow.
    ///
    /// # Errors
    /// When it cannot be stored; the run then stops.
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()>;
}

/// Keeps nothing.
impl FlowSink for () {
    fn record(&mut self, _: &FlowRecord<'_>) -> std::io::Result<()> {
        Ok(())
    }
}

/// All that the report shows of one run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// What to call the run in a table or legend: the fabric's label.
    pub label: String,
    /// The scenario as resolved, in TOML.
    pub scenario: String,
    /// `summary.json`, keys in the documented order, SI units without prefix.
    pub summary: Value,
    /// The parts into which completion times divide.
    pub stages: Vec<Stage>,
    /// Flows by size, smallest first; empty bins are left out.
    pub bins: Vec<SizeBin>,
    /// Distributions of completion time and slowdown.
    pub cdfs: Vec<Cdf>,
    /// Gauges over time.
    pub series: SeriesTable,
    /// What the fabric adds: small tables for the report.
    pub tables: Vec<Table>,
}

/// The flows of one range of sizes.
#[derive(Clone, Debug)]
pub struct SizeBin {
    /// Smallest size in the bin.
    pub from: Bytes,
    /// Largest size in the bin.
    pub to: Bytes,
    /// How many flows were measured, unfinished ones too.
    pub count: u64,
    /// Flow completion time in seconds.
    pub fct: Quantiles,
    /// Completion time over ideal completion time.
    pub slowdown: Quantiles,
    /// Mean seconds in each of [`RunResult::stages`], over the flows that completed.
    pub stages: Vec<f64>,
}

/// A cumulative distribution.
#[derive(Clone, Debug)]
pub struct Cdf {
    /// `fct` or `slowdown`.
    pub quantity: &'static str,
    /// `short`, `medium`, `long` or `all`.
    pub class: &'static str,
    /// Value and the share of flows at or below it, both rising; seconds or a ratio. Ends below 1 where
    /// flows were left unfinished.
    pub points: Vec<(f64, f64)>,
}

/// Gauges sampled over a run; however long the run, a bounded number of rows.
#[derive(Clone, Debug, Default)]
pub struct SeriesTable {
    /// One column each.
    pub gauges: Vec<Gauge>,
    /// End of each sampling interval, in seconds, rising.
    pub seconds: Vec<f64>,
    /// `values[row][column]`.
    pub values: Vec<Vec<f64>>,
}

/// A small table that a fabric adds to the report.
#[derive(Clone, Debug)]
pub struct Table {
    /// Heading.
    pub title: String,
    /// One or two sentences: what it shows, and the source of its figures.
    pub note: String,
    /// Column heads, with unit.
    pub columns: Vec<String>,
    /// Rows of cells as text.
    pub rows: Vec<Vec<String>>,
}
