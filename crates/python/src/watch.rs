//! Work in a thread of its own, while the interpreter's thread hears signals and passes progress on.
//!
//! Only the interpreter's main thread hears Ctrl-C, and only when it asks; so it asks, however long
//! the work is silent, and the work needs no lock of the interpreter at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cli::engine::{self, Failure};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors;

/// How often signals are heard and progress is passed on: below what people notice. Our choice.
const PERIOD: Duration = Duration::from_millis(50);
/// How long work may take to stop and to store what it has before it is left to itself (our choice):
/// within a second, with some of it left to raise the exception.
const PATIENCE: Duration = Duration::from_millis(800);

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
pub struct Watched {
    steps: Sender<Step>,
    /// When a step was last sent.
    sent: Mutex<Option<Instant>>,
    stopped: Arc<AtomicBool>,
}

impl Watched {
    /// Says how far the work has come. Steps come by the thousand: those that follow another too
    /// soon for people to read are dropped.
    pub fn report(&self, step: impl FnOnce() -> Step) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.is_none_or(|last| last.elapsed() >= PERIOD) {
            *sent = Some(Instant::now());
            // Nobody listens any more to work that was left to itself.
            let _ = self.steps.send(step());
        }
    }

    /// Whether the work is to stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Carries out `work`; calls `progress` with what, done, total, note. An exception, be it of a
/// signal or of the callback, stops the work and is raised once it has stopped; or after
/// [`PATIENCE`], and the work is left to stop by itself when it next asks: a thread cannot be ended from
/// outside. Until then it has its results directory, and leaves nothing in it.
pub fn watched<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watched) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    attended(py, move |py, step| hear(py, progress.as_ref(), step), work)
}

/// The same, with `attend` called for each step, and every [`PERIOD`] without one.
pub fn attended<T: Send + 'static>(
    py: Python<'_>,
    attend: impl Fn(Python<'_>, Option<Step>) -> PyResult<()> + Send,
    work: impl FnOnce(&Watched) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    let (outcome, exception) = py.detach(move || {
        let stopped = Arc::new(AtomicBool::new(false));
        let (steps, heard) = mpsc::channel();
        let (done, result) = mpsc::channel();
        let watched = Watched { steps, sent: Mutex::new(None), stopped: stopped.clone() };
        std::thread::spawn(move || {
            let outcome = engine::guarded(|| work(&watched));
            let _ = done.send(outcome);
        });
        let mut exception: Option<(PyErr, Instant)> = None;
        loop {
            let step = match heard.recv_timeout(PERIOD) {
                Ok(step) => Some(step),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if let Some((_, since)) = &exception {
                if since.elapsed() >= PATIENCE {
                    return (None, exception);
                }
                continue;
            }
            if let Err(raised) = Python::attach(|py| attend(py, step)) {
                exception = Some((raised, Instant::now()));
                stopped.store(true, Ordering::Relaxed);
            }
        }
        (result.recv().ok(), exception)
    });
    match (exception, outcome) {
        (Some((exception, _)), _) => Err(exception),
        (None, Some(Ok(done))) => Ok(done),
        (None, Some(Err(failure))) => Err(errors::of_failure(py, failure)),
        (None, None) => Err(PyRuntimeError::new_err("the work ended without a word")),
    }
}

/// Hears signals and passes a step on.
fn hear(py: Python<'_>, progress: Option<&Py<PyAny>>, step: Option<Step>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(progress), Some(step)) = (progress, step) {
        progress.call1(py, (step.what, step.done, step.total, step.note))?;
    }
    Ok(())
}
