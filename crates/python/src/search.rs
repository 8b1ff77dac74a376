//! Searches, for Python, and the sampler that the package makes.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use cli::engine::cluster::Cluster;
use cli::engine::search::{
    self as searches, Aim, Constraint, Judgement, Over, Range, Sampler, Search, Searched, Study,
    Trial,
};
use cli::engine::sweep::Machines;
use cli::engine::{self, Failure};
use pyo3::prelude::*;
use scenario::{BadInput, Registry};
use serde_json::Value;

use crate::cluster::OfPackage;
use crate::errors;
use crate::inputs::{self, Settings, Source};
use crate::verbs::within_memory;
use crate::watch::{Step, Watched, watched};

/// Settings, status, whether it is best, why it is no good; the folders of its runs; its aims and its summary, as
/// JSON, if they are known.
type TrialRow =
    (Vec<String>, &'static str, bool, Vec<String>, Vec<PathBuf>, Option<Vec<f64>>, Option<String>);

/// Directory, keys, trials, whether every point was tried.
type SearchedRows = (PathBuf, Vec<String>, Vec<TrialRow>, bool);

/// `rackloom.sampler.Sampler`.
pub struct OfOptuna(Py<PyAny>);

impl OfOptuna {
    /// Made by the package's module of extras.
    pub fn make(extras: &Py<PyAny>, study: &Study) -> Result<Box<dyn Sampler>, Failure> {
        Python::attach(|py| {
            let space: Vec<_> = study.space.iter().map(dimension).collect();
            let maximised: Vec<_> = study.aims.iter().map(|aim| aim.is_maximised).collect();
            let made = extras.call_method1(py, "sampler", (space, maximised, study.seed));
            let made = made.map_err(|error| errors::failure(py, &error))?;
            Ok(Box::new(Self(made)) as Box<dyn Sampler>)
        })
    }
}

/// Kind, ends, step, whether by logarithm.
fn dimension(over: &Over) -> (&'static str, f64, f64, f64, bool) {
    let [low, high] = over.range.ends();
    match over.range {
        Range::Choice(_) => ("choice", low, high, 1.0, false),
        Range::Ordered(_) => ("whole", low, high, 1.0, false),
        Range::Whole { step, log, .. } => ("whole", low, high, step as f64, log),
        Range::Real { log, .. } => ("real", low, high, 0.0, log),
    }
}

impl Sampler for OfOptuna {
    fn ask(&self, fixed: Option<&[f64]>) -> Result<(u64, Vec<f64>), Failure> {
        Python::attach(|py| {
            let asked = self.0.call_method1(py, "ask", (fixed.map(<[f64]>::to_vec),));
            let asked = asked.and_then(|asked| asked.extract(py));
            asked.map_err(|error| errors::failure(py, &error))
        })
    }

    fn forget(&self, trial: u64) -> Result<(), Failure> {
        Python::attach(|py| {
            let done = self.0.call_method1(py, "forget", (trial,));
            done.map(drop).map_err(|error| errors::failure(py, &error))
        })
    }

    fn tell(&self, trial: u64, judgement: &Judgement) -> Result<(), Failure> {
        let (values, violations) = (judgement.values.clone(), judgement.violations.clone());
        Python::attach(|py| {
            let done = self.0.call_method1(py, "tell", (trial, values, violations));
            done.map(drop).map_err(|error| errors::failure(py, &error))
        })
    }
}

/// What is searched and for what: keys and what each may be; keys of the summary that are to be small, and large;
/// conditions; trials, and how many of them at a time.
type Wanted = (Vec<String>, Vec<String>, Vec<String>, Vec<String>, usize, Option<usize>);

/// Searches among scenarios, here or on a cluster; what came of it, and what there is to know of where it ran.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "as many as the verb has options")]
pub fn search(
    py: Python<'_>,
    source: Source,
    settings: Settings,
    wanted: Wanted,
    extras: Py<PyAny>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    cluster: Option<Py<PyAny>>,
) -> PyResult<(SearchedRows, Option<String>)> {
    let (searched, told) = watched(py, progress, move |watched| {
        let mut search = read(&source, &settings, &wanted)?;
        let trials = Trials { watched, ended: Mutex::default() };
        let sampler = |study: &Study| OfOptuna::make(&extras, study);
        let out = out.as_deref();
        let Some(cluster) = cluster.map(OfPackage::new) else {
            return within_memory(wanted.5, |budget| {
                search.jobs = budget.jobs();
                let here = Machines::This(budget);
                searches::search(&search, out, &sampler, here, &engine::registry(), &trials)
            });
        };
        search.jobs = wanted.5.unwrap_or_else(|| cluster.size());
        let there = Machines::Cluster(&cluster);
        let searched =
            searches::search(&search, out, &sampler, there, &Registry::standard(), &trials)?;
        let (_, notes) = trials.ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((searched, (!notes.is_empty()).then(|| notes.join("\n"))))
    })?;
    Ok((rows(searched), told))
}

fn read(source: &Source, settings: &Settings, wanted: &Wanted) -> Result<Search, BadInput> {
    let (over, minimise, maximise, subject, trials, _) = wanted;
    let space = over.iter().map(|text| Over::parse(text)).collect::<Result<_, _>>()?;
    let constraints =
        subject.iter().map(|text| Constraint::parse(text)).collect::<Result<_, _>>()?;
    let aim = |is_maximised| move |key: &String| Aim { key: key.clone(), is_maximised };
    let aims = minimise.iter().map(aim(false)).chain(maximise.iter().map(aim(true))).collect();
    let arguments = inputs::arguments(settings)?;
    let document = source.document()?;
    Ok(Search { document, arguments, space, aims, constraints, trials: *trials, jobs: 1 })
}

fn rows(searched: Searched) -> SearchedRows {
    let points = searched.directory.join("points");
    let row = |trial: Trial| {
        let folders = trial.points.iter().map(|point| points.join(&point.hash)).collect();
        let summary = trial.summary.as_ref().map(Value::to_string);
        let Judgement { values, why, .. } = trial.judgement;
        (trial.settings, trial.status.as_str(), trial.is_best, why, folders, values, summary)
    };
    let keys = searched.space.into_iter().map(|over| over.key).collect();
    let trials = searched.trials.into_iter().map(row).collect();
    (searched.directory, keys, trials, searched.is_exhausted)
}

/// Counts the trials of a search as they end.
struct Trials<'a> {
    watched: &'a Watched,
    /// How many, and what was told of where they run.
    ended: Mutex<(usize, Vec<String>)>,
}

impl searches::Watch for Trials<'_> {
    fn ended(&self, count: usize, trial: &Trial) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.0 += 1;
        self.watched.report(|| Step {
            what: "search".into(),
            done: ended.0 as f64,
            total: Some(count as f64),
            note: format!("trials: {} {}", trial.settings.join(", "), trial.status.as_str()),
        });
    }

    fn told(&self, text: &str) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).1.push(text.into());
    }

    fn stop(&self) -> bool {
        self.watched.is_stopped()
    }
}
