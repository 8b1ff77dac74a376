//! From a checked scenario to one finished run.

use std::io;
use std::ops::ControlFlow;

use rack::results::{FlowSink, RunResult};
use rack::run::{self, Options, Progress, RunError};
use rack::trace::Trace;
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

    /// Whether it stores where packets were, if the scenario asks for that. If not, nothing is recorded.
    fn wants_trace(&self) -> bool {
        false
    }

    /// Takes where packets were, once the run and its repetition are over.
    ///
    /// # Errors
    /// When it cannot be stored.
    fn trace(&mut self, trace: Trace) -> io::Result<()> {
        let _ = trace;
        Ok(())
    }
}

/// Keeps nothing.
impl Sink for () {}

/// Runs `fabric` once.
///
/// # Errors
/// When the run breaks.
pub fn execute(fabric: &mut dyn Fabric, job: Job<'_>) -> Result<RunResult, RunError> {
    job.sink.begin(fabric.stages())?;
    let Job { mut workload, options, sink, progress, .. } = job;
    run::drive(fabric, workload.as_mut(), &options, sink, progress)
}
