//! Other machines, which the package reaches through Dask: what the engine asks of them, in Python's words.
//!
//! The package's object knows jobs by their keys alone; what they hold is made and read in Rust, here and there.

use std::path::PathBuf;
use std::time::Duration;

use cli::Extras;
use cli::engine::Failure;
use cli::engine::cluster::{Cluster, Ended, Job, News};
use cli::engine::search::{Sampler, Study};
use cli::reproduce::away;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors;
use crate::search::OfOptuna;
use crate::watch::attended;

/// `rackloom.cluster.Cluster`; closed when dropped.
pub struct OfPackage(Py<PyAny>);

/// A job that has ended: its key and its files, or why there are none. Without a key: a note.
type Heard = (Option<String>, Option<Vec<(String, Vec<u8>)>>, Option<String>);

impl OfPackage {
    /// What the package has made.
    pub fn new(object: Py<PyAny>) -> Self {
        Self(object)
    }
}

impl Cluster for OfPackage {
    fn submit(&self, job: Job) -> Result<(), Failure> {
        Python::attach(|py| {
            let work = PyBytes::new(py, &job.work);
            let arguments = (job.key, work, job.memory.get(), job.files);
            self.0
                .call_method1(py, "submit", arguments)
                .map_err(|error| errors::failure(py, &error))
        })?;
        Ok(())
    }

    fn next(&self, patience: Duration) -> Result<Option<News>, Failure> {
        let heard: Option<Heard> = Python::attach(|py| {
            let heard = self.0.call_method1(py, "next", (patience.as_secs_f64(),));
            let heard = heard.and_then(|heard| heard.extract(py));
            heard.map_err(|error| errors::failure(py, &error))
        })?;
        Ok(heard.map(|heard| match heard {
            (None, _, text) => News::Note(text.unwrap_or_default()),
            (Some(key), Some(files), _) => News::Job(key, Ended::Files(files)),
            (Some(key), None, why) => News::Job(key, Ended::Failed(why.unwrap_or_default())),
        }))
    }

    fn size(&self) -> usize {
        let size = Python::attach(|py| self.0.call_method0(py, "size")?.extract(py));
        size.unwrap_or(1).max(1)
    }

    fn cancel(&self) {
        // What cannot be cancelled ends by itself.
        Python::attach(|py| self.0.call_method0(py, "cancel").map(drop).unwrap_or(()));
    }
}

impl Drop for OfPackage {
    fn drop(&mut self) {
        Python::attach(|py| self.0.call_method0(py, "close").map(drop).unwrap_or(()));
    }
}

/// What the package brings along for the command: the module `rackloom.extras`.
pub struct OfModule(pub Py<PyAny>);

impl Extras for OfModule {
    fn cluster(&self, address: &str) -> Result<Box<dyn Cluster>, Failure> {
        Python::attach(|py| {
            let made = self.0.call_method1(py, "cluster", (address,));
            let made = made.map_err(|error| errors::failure(py, &error))?;
            Ok(Box::new(OfPackage::new(made)) as Box<dyn Cluster>)
        })
    }

    fn sampler(&self, study: &Study) -> Result<Box<dyn Sampler>, Failure> {
        OfOptuna::make(&self.0, study)
    }
}

/// Does what a job asks for on a machine of a cluster, its results in `directory`; why there are none, if so.
/// `is_cancelled` is asked now and then.
#[pyfunction]
pub fn carry_out(
    py: Python<'_>,
    work: Vec<u8>,
    files: Vec<PathBuf>,
    directory: PathBuf,
    is_cancelled: Py<PyAny>,
) -> PyResult<Option<String>> {
    let ask = move |py: Python<'_>, _| match is_cancelled.call0(py)?.is_truthy(py)? {
        true => Err(PyKeyboardInterrupt::new_err("the job was cancelled")),
        false => Ok(()),
    };
    attended(py, ask, move |watched| {
        match away::carry_out(&work, &files, &directory, &|| watched.is_stopped()) {
            Ok(()) => Ok(None),
            Err(Failure::Interrupted) => Err(Failure::Interrupted),
            Err(failure) => Ok(Some(failure.to_string())),
        }
    })
}
