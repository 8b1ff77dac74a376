//! `flows.parquet`: one row a flow, in the order in which flows ended.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, StringDictionaryBuilder, UInt8Builder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::types::Int8Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use kernel::{Span, Time};
use rack::results::{FlowEnd, FlowRecord, FlowSink};
use rack::{Failure, Flow, Stage};

use super::Provenance;
use super::columns::{Column, ColumnWriter, Nullable};
use crate::files::{AtomicFile, FileError};

/// Rows gathered before they are handed to the encoder. Our choice.
const BATCH_ROWS: usize = 8192;

/// Writes flows as they end. Until [`FlowWriter::finish`] the file has another name; a writer that
/// is dropped, or whose disk is full, leaves nothing under the final one.
pub struct FlowWriter {
    path: PathBuf,
    file: AtomicFile,
    rows: Rows<File>,
}

impl FlowWriter {
    /// Begins the file at `path`, with a column for each stage.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path, stages: &[Stage], origin: &Provenance) -> Result<Self, FileError> {
        let file = AtomicFile::create(path)?;
        let rows = Rows::new(file.handle()?, stages, origin)
            .map_err(|source| FileError::new(path, source))?;
        Ok(Self { path: path.to_path_buf(), file, rows })
    }

    /// The flows that follow are of the run with this seed.
    pub fn set_seed(&mut self, seed: u64) {
        self.rows.current_seed = seed;
    }

    /// Writes what is left and gives the file its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(), FileError> {
        self.rows.finish().map_err(|source| FileError::new(&self.path, source))?;
        self.file.finish()
    }
}

impl FlowSink for FlowWriter {
    fn record(&mut self, record: &FlowRecord<'_>) -> io::Result<()> {
        self.rows.record(record).map_err(|source| {
            let kind = source.kind();
            io::Error::new(kind, FileError::new(&self.path, source))
        })
    }
}

/// Rows being gathered, a builder for each column, and where they go.
struct Rows<W: Write + Send> {
    out: ColumnWriter<W>,
    gathered: usize,
    current_seed: u64,
    flow_id: UInt64Builder,
    src: UInt32Builder,
    dst: UInt32Builder,
    class: UInt8Builder,
    size_bytes: UInt64Builder,
    start_ps: UInt64Builder,
    end_ps: UInt64Builder,
    fct_ps: UInt64Builder,
    ideal_fct_ps: UInt64Builder,
    slowdown: Float64Builder,
    delivered_bytes: UInt64Builder,
    measured: BooleanBuilder,
    seed: UInt64Builder,
    status: StringDictionaryBuilder<Int8Type>,
    failure: StringDictionaryBuilder<Int8Type>,
    stages: Vec<UInt64Builder>,
}

impl<W: Write + Send> FlowSink for Rows<W> {
    fn record(&mut self, record: &FlowRecord<'_>) -> io::Result<()> {
        let flow = record.flow;
        self.flow_id.append_value(flow.id.get());
        self.src.append_value(flow.src.get());
        self.dst.append_value(flow.dst.get());
        self.class.append_value(flow.class.get());
        self.size_bytes.append_value(flow.size.get());
        self.start_ps.append_value(flow.start.as_ps());
        match record.end {
            FlowEnd::Completed { at, ideal, stages } => {
                self.complete(flow, at, ideal, stages);
            }
            FlowEnd::Failed { at, why } => {
                self.delivered_bytes.append_null();
                self.give_up("failed", Some(at), None, Some(why));
            }
            FlowEnd::Unfinished { delivered, ideal } => {
                self.delivered_bytes.append_value(delivered.get());
                self.give_up("unfinished", None, Some(ideal), None);
            }
        }
        self.measured.append_value(record.measured);
        self.seed.append_value(self.current_seed);
        self.gathered += 1;
        if self.gathered == BATCH_ROWS { self.flush() } else { Ok(()) }
    }
}

impl<W: Write + Send> Rows<W> {
    fn new(out: W, stages: &[Stage], origin: &Provenance) -> io::Result<Self> {
        Ok(Self {
            out: ColumnWriter::new(out, &columns(stages), origin)?,
            gathered: 0,
            current_seed: origin.seed,
            flow_id: UInt64Builder::new(),
            src: UInt32Builder::new(),
            dst: UInt32Builder::new(),
            class: UInt8Builder::new(),
            size_bytes: UInt64Builder::new(),
            start_ps: UInt64Builder::new(),
            end_ps: UInt64Builder::new(),
            fct_ps: UInt64Builder::new(),
            ideal_fct_ps: UInt64Builder::new(),
            slowdown: Float64Builder::new(),
            delivered_bytes: UInt64Builder::new(),
            measured: BooleanBuilder::new(),
            seed: UInt64Builder::new(),
            status: StringDictionaryBuilder::new(),
            failure: StringDictionaryBuilder::new(),
            stages: stages.iter().map(|_| UInt64Builder::new()).collect(),
        })
    }

    fn complete(&mut self, flow: &Flow, end: Time, ideal: Span, stages: &[Span]) {
        let Flow { start, size, .. } = *flow;
        let (given, wanted) = (stages.len(), self.stages.len());
        assert_eq!(given, wanted, "{given} stage times for {wanted} stages");
        let fct = end - start;
        self.end_ps.append_value(end.as_ps());
        self.fct_ps.append_value(fct.as_ps());
        self.ideal_fct_ps.append_value(ideal.as_ps());
        self.slowdown.append_value(fct.as_ps() as f64 / ideal.as_ps() as f64);
        self.delivered_bytes.append_value(size.get());
        self.status.append_value("completed");
        self.failure.append_null();
        for (builder, span) in self.stages.iter_mut().zip(stages) {
            builder.append_value(span.as_ps());
        }
    }

    fn give_up(
        &mut self,
        status: &str,
        end: Option<Time>,
        ideal: Option<Span>,
        why: Option<Failure>,
    ) {
        self.end_ps.append_option(end.map(Time::as_ps));
        self.fct_ps.append_null();
        self.ideal_fct_ps.append_option(ideal.map(Span::as_ps));
        self.slowdown.append_null();
        self.status.append_value(status);
        self.failure.append_option(why.map(|why| match why {
            Failure::SourceDied => "source_died",
            Failure::DestinationDied => "destination_died",
            Failure::PacketsLost => "packets_lost",
        }));
        for builder in &mut self.stages {
            builder.append_null();
        }
    }

    /// Hands the gathered rows to the encoder.
    fn flush(&mut self) -> io::Result<()> {
        self.gathered = 0;
        let mut arrays: Vec<ArrayRef> = vec![
            shared(self.flow_id.finish()),
            shared(self.src.finish()),
            shared(self.dst.finish()),
            shared(self.class.finish()),
            shared(self.size_bytes.finish()),
            shared(self.start_ps.finish()),
            shared(self.end_ps.finish()),
            shared(self.fct_ps.finish()),
            shared(self.ideal_fct_ps.finish()),
            shared(self.slowdown.finish()),
            shared(self.delivered_bytes.finish()),
            shared(self.measured.finish()),
            shared(self.seed.finish()),
            shared(self.status.finish()),
            shared(self.failure.finish()),
        ];
        arrays.extend(self.stages.iter_mut().map(|builder| shared(builder.finish())));
        self.out.write(arrays)
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.finish()
    }
}

fn shared(array: impl Array + 'static) -> ArrayRef {
    Arc::new(array)
}

/// The columns, in the order of [`Rows::flush`].
fn columns(stages: &[Stage]) -> Vec<Column> {
    use DataType::{Boolean, Float64, UInt8, UInt32, UInt64};
    use Nullable::{Never, Sometimes};
    let word = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    let mut columns: Vec<Column> = [
        ("flow_id", UInt64, Never, "", "Number of the flow, from 0, in the order of the workload"),
        ("src", UInt32, Never, "", "Node that sends, from 0"),
        ("dst", UInt32, Never, "", "Node that receives, from 0"),
        ("class", UInt8, Never, "", "Traffic class; 0 is the most urgent"),
        ("size_bytes", UInt64, Never, "bytes", "Application bytes, without headers"),
        ("start_ps", UInt64, Never, "ps", "When the first byte was offered to the network"),
        ("end_ps", UInt64, Sometimes, "ps", "When the last byte arrived, or the flow was given up"),
        ("fct_ps", UInt64, Sometimes, "ps", "Flow completion time: end minus start"),
        (
            "ideal_fct_ps",
            UInt64,
            Sometimes,
            "ps",
            "Completion time of the same flow alone in the idle network, with headers",
        ),
        ("slowdown", Float64, Sometimes, "ratio", "Completion time over ideal completion time"),
        (
            "delivered_bytes",
            UInt64,
            Sometimes,
            "bytes",
            "Application bytes delivered in order when the flow, or the run, ended; null if it failed",
        ),
        ("measured", Boolean, Never, "", "Whether the figures of the run are also of this flow"),
        ("seed", UInt64, Never, "", "Seed of the run that carried it"),
        ("status", word.clone(), Never, "", "completed, failed, or unfinished when the run ended"),
        ("failure", word, Sometimes, "", "Why a failed flow was given up"),
    ]
    .into_iter()
    .map(|(name, kind, nullable, unit, description)| Column {
        name: name.into(),
        kind,
        nullable,
        unit,
        description: description.into(),
    })
    .collect();
    columns.extend(stages.iter().map(|stage| Column {
        name: format!("stage_{}_ps", stage.name),
        kind: UInt64,
        nullable: Sometimes,
        unit: "ps",
        description: format!("Mean over the flow's cells or packets: {}", stage.meaning),
    }));
    columns
}

#[cfg(test)]
#[path = "flows_tests.rs"]
mod tests;
