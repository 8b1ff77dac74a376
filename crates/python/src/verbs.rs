//! What the command does, for Python: each verb reads its input, works, and returns plain data.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use cli::engine::sweep::{self as grids, Grid, Outcome, Point};
use cli::engine::{self, Failure};
use cli::reproduce::{self as papers, Effort};
use pyo3::prelude::*;
use rack::run::Progress;
use scenario::{BadInput, Located, Scenario};
use serde_json::Value;

use crate::errors;
use crate::inputs::{self, Settings, Source};
use crate::watch::{Step, Watched, watched};

/// Directory, label and summary, as JSON, of one run.
type Run = (PathBuf, String, String);

/// The settings of a point, its status and label, and its run or why there is none.
type PointRow = (Vec<String>, String, String, Option<Run>, Option<String>);

/// Claims, as rows in JSON; what broke and why; claims that the last release reproduced and this one
/// does not.
type Found = (String, Vec<(String, String)>, Vec<String>);

/// The scenario with all defaults filled in, as JSON.
#[pyfunction]
pub fn resolve(py: Python<'_>, source: Source, settings: Settings) -> PyResult<String> {
    watched(py, None, move |_| Ok(inputs::scenario(&source, &settings)?.to_value().to_string()))
}

/// Runs the only fabric of a scenario.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    source: Source,
    settings: Settings,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let finished = watched(py, progress, move |watched| {
        let scenario = inputs::scenario(&source, &settings)?;
        alone(&scenario)?;
        let directory = out.unwrap_or_else(|| engine::default_directory(&scenario));
        let label = scenario.fabrics[0].label.clone();
        engine::run(&scenario, &directory, &mut |progress| step(watched, &label, progress))
    })?;
    let result = finished.result;
    Ok((finished.directory, result.label, result.summary.to_string()))
}

/// Runs the same flows through the fabrics of all scenarios; the directory, and each run.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    sources: Vec<(Source, Settings)>,
    jobs: Option<usize>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, Vec<Run>)> {
    let compared = watched(py, progress, move |watched| {
        let scenarios = sources.iter().map(|(source, set)| inputs::scenario(source, set));
        let scenario = Scenario::join(scenarios.collect::<Result<_, _>>()?)?;
        let directory = out.unwrap_or_else(|| engine::default_directory(&scenario));
        engine::compare(&scenario, &directory, cores_or(jobs), &|index, progress| {
            step(watched, &scenario.fabrics[index].label, progress)
        })
    })?;
    let runs = compared.folders.into_iter().zip(compared.results);
    let runs = runs.map(|(folder, result)| (folder, result.label, result.summary.to_string()));
    Ok((compared.directory, runs.collect()))
}

/// Runs a scenario over a grid; the directory, and each point.
#[pyfunction]
pub fn sweep(
    py: Python<'_>,
    source: Source,
    settings: Settings,
    grid: Vec<(String, Vec<String>)>,
    jobs: Option<usize>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, Vec<PointRow>)> {
    let swept = watched(py, progress, move |watched| {
        let arguments = inputs::arguments(&settings)?;
        let grid = Grid { document: source.document()?, arguments, axes: inputs::axes(grid) };
        grids::sweep(
            &grid,
            out.as_deref(),
            cores_or(jobs),
            &engine::registry(),
            &Points::of(watched),
        )
    })?;
    let points = swept.directory.join("points");
    let row = |point: Point| {
        let status = point.outcome.as_str().to_string();
        let folder = points.join(&point.hash);
        let summary = point.outcome.summary().map(Value::to_string);
        let run = summary.map(|summary| (folder, point.label.clone(), summary));
        let why = match point.outcome {
            Outcome::Failed(why) => Some(why),
            _ => None,
        };
        (point.settings, status, point.label, run, why)
    };
    let rows = swept.points.into_iter().map(row).collect();
    Ok((swept.directory, rows))
}

/// Repeats experiments of a paper.
#[pyfunction]
pub fn reproduce(
    py: Python<'_>,
    paper: &str,
    experiments: Vec<String>,
    effort: &str,
    out: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Found> {
    let known = ["quick".to_string(), "full".to_string()];
    let effort = match effort {
        "quick" => Effort::Quick,
        "full" => Effort::Full,
        other => return Err(errors::of_bad_input(py, &papers::unknown("effort", other, &known))),
    };
    let paper = paper.to_string();
    let done = watched(py, progress, move |watched| {
        let paper = papers::paper(&paper)?;
        let chosen = papers::select(paper, &experiments)?;
        papers::reproduce(paper, &chosen, effort, &out, &mut |which, share, note| {
            let step = || Step {
                what: which.name.into(),
                done: share,
                total: Some(1.0),
                note: note.into(),
            };
            watched.report(step);
            go_on(watched)
        })
    })?;
    let claims = report::claims_table(&done.claims).to_json();
    Ok((claims.to_string(), done.broken, done.lost))
}

/// How many runs at a time: as many as asked for, or as there are cores.
fn cores_or(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Refuses a scenario with several fabrics.
fn alone(scenario: &Scenario) -> Result<(), Failure> {
    match scenario.fabrics.len() {
        1 => Ok(()),
        count => {
            let message = format!("has {count} fabrics; use rackloom.compare");
            let problem = Located::whole(&scenario.name, message);
            Err(BadInput::single(problem).into())
        }
    }
}

/// Passes on how far a run has come.
fn step(watched: &Watched, label: &str, progress: Progress) -> ControlFlow<()> {
    watched.report(|| Step {
        what: label.into(),
        done: progress.ended as f64,
        total: progress.total.map(|total| total as f64),
        note: format!("flows, {} simulated", shown_time(progress)),
    });
    go_on(watched)
}

fn shown_time(progress: Progress) -> String {
    report::Unit::Seconds.format(progress.now.as_seconds())
}

fn go_on(watched: &Watched) -> ControlFlow<()> {
    if watched.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Counts the points of a sweep as they end.
struct Points<'a> {
    watched: &'a Watched,
    ended: AtomicUsize,
}

impl<'a> Points<'a> {
    fn of(watched: &'a Watched) -> Self {
        Self { watched, ended: 0.into() }
    }
}

impl grids::Watch for Points<'_> {
    fn ended(&self, count: usize, point: &Point) {
        let ended = self.ended.fetch_add(1, Ordering::Relaxed) + 1;
        self.watched.report(|| Step {
            what: "sweep".into(),
            done: ended as f64,
            total: Some(count as f64),
            note: format!("points: {} {}", point.settings.join(", "), point.outcome.as_str()),
        });
    }

    fn stop(&self) -> bool {
        self.watched.is_stopped()
    }
}
