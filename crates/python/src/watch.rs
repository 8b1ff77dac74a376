//! Work in a thread of its own, while the interpreter's thread hears signals and passes progress on.
//!
//! Only the interpreter's main thread hears Ctrl-C, and only when it asks; so it asks, however long
//! the work is silent, and the work needs no lock of the interpreter at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cli::engine::Failure;
use pyo3::prelude::*;

use crate::errors;

/// How often signals are heard and progress is passed on: below what people notice. Our choice.
const PERIOD: Duration = Duration::from_millis(50);

/// How far something has come.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is under way: a fabric's label, an experiment.
    pub what: String,
    /// How much is done.
    pub done: f64,
    /// Of how much, where known.
    pub total: Option<f64>,
    /// More in a few words.
    pub note: String,
}

/// The work's end of the line.
pub struct Watched<'a> {
    steps: Sender<Step>,
    /// When a step was last sent.
    sent: Mutex<Option<Instant>>,
    stopped: &'a AtomicBool,
}

impl Watched<'_> {
    /// Says how far the work has come. Steps come by the thousand: those that follow another too
    /// soon for people to read are dropped.
    pub fn report(&self, step: impl FnOnce() -> Step) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.is_none_or(|last| last.elapsed() >= PERIOD) {
            *sent = Some(Instant::now());
            // The other end waits for as long as this one is there.
            let _ = self.steps.send(step());
        }
    }

    /// Whether the work is to stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Carries out `work`; calls `progress` with what, done, total, note. An exception, be it of a
/// signal or of the callback, stops the work and is raised once it has stopped.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watched<'_>) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let stopped = AtomicBool::new(false);
    let (outcome, exception) = py.detach(|| {
        std::thread::scope(|scope| {
            let (steps, heard) = mpsc::channel();
            let watched = Watched { steps, sent: Mutex::new(None), stopped: &stopped };
            let worker = scope.spawn(move || work(&watched));
            let mut exception = None;
            loop {
                let step = match heard.recv_timeout(PERIOD) {
                    Ok(step) => Some(step),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                if exception.is_none() {
                    exception = Python::attach(|py| attend(py, progress.as_ref(), step)).err();
                    stopped.store(exception.is_some(), Ordering::Relaxed);
                }
            }
            (worker.join(), exception)
        })
    });
    if let Some(exception) = exception {
        return Err(exception);
    }
    match outcome {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(failure)) => Err(errors::of_failure(py, failure)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Hears signals and passes a step on.
fn attend(py: Python<'_>, progress: Option<&Py<PyAny>>, step: Option<Step>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(progress), Some(step)) = (progress, step) {
        progress.call1(py, (step.what, step.done, step.total, step.note))?;
    }
    Ok(())
}
