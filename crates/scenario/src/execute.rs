//! From a checked scenario to one finished run.

use std::io;
use std::ops::ControlFlow;

use rack::results::{FlowRecord, FlowSink, RunResult};
use rack::run::{self, Options, Progress, RunError};
use rack::{Fabric, Fault, Stage, Workload};

/// All that a fabric needs to run once.
pub struct Job<'a> {
    /// Seed of every random stream.
    pub seed: u64,
    /// What breaks, by time.
    pub faults: Vec<Fault>,
    /// What is carried.
    pub workload: Box<dyn Workload>,
    /// When it ends and what is measured.
    pub options: Options,
    /// Takes the flows as they end.
    pub sink: &'a mut dyn Sink,
    /// Called now and then; a break ends the run there.
    pub progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
}

/// A flow sink that learns its columns when the run starts.
pub trait Sink: FlowSink {
    /// The run starts; its flows divide their time over `stages`.
    ///
    /// # Errors
    /// When nothing can be stored; the run is then not begun.
    fn begin(&mut self, stages: &[Stage]) -> io::Result<()> {
        let _ = stages;
        Ok(())
    }
}

/// Keeps nothing.
impl Sink for () {}

/// The same sink as a concrete type, for the runner's generic parameter.
struct Forward<'a>(&'a mut dyn Sink);

impl FlowSink for Forward<'_> {
    fn record(&mut self, record: &FlowRecord<'_>) -> io::Result<()> {
        self.0.record(record)
    }
}

/// Runs `fabric` once.
///
/// # Errors
/// When the run breaks.
pub fn execute<F: Fabric>(mut fabric: F, mut job: Job<'_>) -> Result<RunResult, RunError> {
    job.sink.begin(fabric.stages())?;
    let mut sink = Forward(job.sink);
    run::drive(&mut fabric, job.workload.as_mut(), &job.options, &mut sink, job.progress)
}
