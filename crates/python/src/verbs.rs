//! What the command does, for Python: each verb reads its input, works, and returns plain data.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;

use cli::engine::estimate::Estimate;
use cli::engine::record::{self as recording, Recorded};
use cli::engine::sweep::{
    self as grids, Drawing, Grid, Machines, Outcome as PointOutcome, Point, Swept,
};
use cli::engine::{self, Budget, Failure};
use cli::reproduce::all::{self, Missing, OfPaper};
use cli::reproduce::{self as papers, Effort};
use pyo3::prelude::*;
use rack::apart::Outcome;
use rack::run::Progress;
use scenario::{BadInput, Located, Registry, Scenario};
use serde_json::Value;

use crate::cluster::OfPackage;
use crate::errors;
use crate::inputs::{self, Settings, Source};
use crate::watch::{Step, Watched, watched};

/// Directory, label and summary, as JSON, of one run.
type Run = (PathBuf, String, String);

/// The settings of a point, its status and label, and its run or why there is none.
type PointRow = (Vec<String>, String, String, Option<Run>, Option<String>);

/// The directory of a sweep, the keys of its grid, and its points.
type SweptRows = (PathBuf, Vec<String>, Vec<PointRow>);

/// Label, directory if it has nodes of its own, how many; messages; flows begun, completed and failed.
type RecordedRow = (String, Option<PathBuf>, usize, u64, u64, u64, u64);

/// Label, memory in bytes, seconds if they can be told, and what those rest on.
type EstimateRow = (String, u64, Option<f64>, String);

/// Claims, as rows in JSON; what broke and why; claims that the last release reproduced and this one
/// does not; checks that do not hold; experiments that have not been measured.
type Found = (String, Vec<(String, String)>, Vec<String>, Vec<String>, Vec<String>);

/// The scenario with all defaults filled in, as JSON.
#[pyfunction]
pub fn resolve(py: Python<'_>, source: Source, settings: Settings) -> PyResult<String> {
    watched(py, None, move |_| Ok(inputs::scenario(&source, &settings)?.to_value().to_string()))
}

/// What a run of each fabric of a scenario will take.
#[pyfunction]
pub fn estimate(py: Python<'_>, source: Source, settings: Settings) -> PyResult<Vec<EstimateRow>> {
    let estimates = watched(py, None, move |watched| {
        let scenario = inputs::scenario(&source, &settings)?;
        engine::estimate::estimate(&scenario, &|| watched.is_stopped())
    })?;
    let row = |found: Estimate| (found.label, found.memory.get(), found.seconds, found.basis);
    Ok(estimates.into_iter().map(row).collect())
}

/// Records the nodes of each fabric of a scenario.
#[pyfunction]
pub fn record(
    py: Python<'_>,
    source: Source,
    settings: Settings,
    out: Option<PathBuf>,
    flows: u64,
) -> PyResult<Vec<RecordedRow>> {
    let all = watched(py, None, move |watched| {
        let scenario = inputs::scenario(&source, &settings)?;
        let directory = out.unwrap_or_else(|| recording::directory_of(&scenario));
        recording::record(&scenario, &directory, flows, &|| watched.is_stopped())
    })?;
    let row = |Recorded { label, directory, nodes, outcome }: Recorded| {
        let Outcome { begun, completed, failed, messages, .. } = outcome;
        (label, directory, nodes, messages, begun, completed, failed)
    };
    Ok(all.into_iter().map(row).collect())
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

/// Runs the same flows through the fabrics of all scenarios; the directory, each run, and why fewer ran at
/// a time than asked for, if so.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    sources: Vec<(Source, Settings)>,
    jobs: Option<usize>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, Vec<Run>, Option<String>)> {
    let (compared, held_back) = watched(py, progress, move |watched| {
        let scenarios = sources.iter().map(|(source, set)| inputs::scenario(source, set));
        let scenario = Scenario::join(scenarios.collect::<Result<_, _>>()?)?;
        let directory = out.unwrap_or_else(|| engine::default_directory(&scenario));
        within_memory(jobs, |budget| {
            engine::compare(&scenario, &directory, budget, &|index, progress| {
                step(watched, &scenario.fabrics[index].label, progress)
            })
        })
    })?;
    let runs = compared.folders.into_iter().zip(compared.results);
    let runs = runs.map(|(folder, result)| (folder, result.label, result.summary.to_string()));
    Ok((compared.directory, runs.collect(), held_back))
}

/// Runs a scenario over a grid, here or on a cluster; the directory, each point, and what there is to know of
/// where they ran: why fewer did at a time than asked for, if so.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "as many as the verb has options")]
pub fn sweep(
    py: Python<'_>,
    source: Source,
    settings: Settings,
    grid: Vec<(String, Vec<String>)>,
    jobs: Option<usize>,
    out: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
    cluster: Option<Py<PyAny>>,
) -> PyResult<(SweptRows, Option<String>)> {
    let (swept, held_back) = watched(py, progress, move |watched| {
        let arguments = inputs::arguments(&settings)?;
        let grid = Grid { document: source.document()?, arguments, axes: inputs::axes(grid) };
        let points = Points::of(watched);
        let sweep = |machines: Machines<'_>, registry: &Registry| {
            grids::sweep(&grid, out.as_deref(), &Drawing::default(), machines, registry, &points)
        };
        let Some(cluster) = cluster.map(OfPackage::new) else {
            return within_memory(jobs, |budget| {
                sweep(Machines::This(budget), &engine::registry())
            });
        };
        // Whether a point fits is a question to the workers.
        let swept = sweep(Machines::Cluster(&cluster), &Registry::standard())?;
        Ok((swept, points.notes()))
    })?;
    Ok((rows(swept), held_back))
}

/// A sweep that has run: its directory, the keys of its grid and its points.
#[pyfunction]
pub fn swept(py: Python<'_>, directory: PathBuf) -> PyResult<SweptRows> {
    let swept = watched(py, None, move |_| grids::load(&directory))?;
    Ok(rows(swept))
}

/// A figure of a sweep that has run, as SVG and as PDF: keys of the summary side by side, over a key of the
/// grid or of the summary.
#[pyfunction]
pub fn figure(
    py: Python<'_>,
    directory: PathBuf,
    keys: Vec<String>,
    over: Option<String>,
    log: &str,
) -> PyResult<(String, Vec<u8>)> {
    let (log_x, log_y) = (log.contains('x'), log.contains('y'));
    let drawing = Drawing { keys, over, log_x, log_y };
    watched(py, None, move |_| {
        let drawn = grids::draw(&grids::load(&directory)?, &drawing)?;
        // The last is all of them.
        let plots = drawn.last().map_or(&[][..], |(_, plots)| plots);
        Ok((report::figures::svg(plots), report::figures::pdf(plots)))
    })
}

/// A sweep as plain data.
fn rows(swept: Swept) -> SweptRows {
    let points = swept.directory.join("points");
    let row = |point: Point| {
        let status = point.outcome.as_str().to_string();
        let folder = points.join(&point.hash);
        let summary = point.outcome.summary().map(Value::to_string);
        let run = summary.map(|summary| (folder, point.label.clone(), summary));
        let why = match point.outcome {
            PointOutcome::Failed(why) => Some(why),
            _ => None,
        };
        (point.settings, status, point.label, run, why)
    };
    let keys = swept.axes.into_iter().map(|axis| axis.key).collect();
    (swept.directory, keys, swept.points.into_iter().map(row).collect())
}

/// Repeats experiments of a paper, here.
#[pyfunction]
pub fn reproduce(
    py: Python<'_>,
    paper: String,
    experiments: Vec<String>,
    effort: &str,
    jobs: Option<usize>,
    out: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Found> {
    let effort = effort_of(py, effort)?;
    let done = watched(py, progress, move |watched| {
        let paper = papers::paper(&paper)?;
        let chosen = papers::select(paper, &experiments)?;
        papers::spread::set_runs(at_a_time(jobs));
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
    Ok((claims.to_string(), done.broken, done.lost, done.failed, Vec::new()))
}

/// Repeats experiments of all papers that this build has not, here or on a cluster, and judges all that is
/// measured; beside that what there is to know of where they ran. Names of lost claims and of checks begin with
/// their paper's, those of missing experiments are as `experiments` takes them.
#[pyfunction]
pub fn reproduce_all(
    py: Python<'_>,
    experiments: Vec<String>,
    effort: &str,
    jobs: Option<usize>,
    out: PathBuf,
    progress: Option<Py<PyAny>>,
    cluster: Option<Py<PyAny>>,
) -> PyResult<(Found, Option<String>)> {
    let effort = effort_of(py, effort)?;
    let (done, told) = watched(py, progress, move |watched| {
        let chosen = all::select(&experiments)?;
        let cluster = cluster.map(OfPackage::new);
        let missing = match &cluster {
            Some(cluster) => Missing::On(cluster),
            None => Missing::Run(at_a_time(jobs)),
        };
        let mut told = Vec::new();
        let done = all::all(&chosen, effort, (&out, None), missing, &mut |progress| {
            told.extend_from_slice(&progress.told);
            watched.report(|| Step {
                what: "all experiments".into(),
                done: progress.done,
                total: Some(progress.total),
                note: progress.under_way.join(", "),
            });
            go_on(watched)
        })?;
        Ok((done, (!told.is_empty()).then(|| told.join("\n"))))
    })?;
    let named = |between: char, pick: fn(&OfPaper) -> Vec<&str>| {
        let of_one = |paper: &OfPaper| {
            let name = paper.paper.name;
            let with_paper = |row: &str| format!("{name}{between}{row}");
            pick(paper).into_iter().map(with_paper).collect::<Vec<_>>()
        };
        done.papers.iter().flat_map(of_one).collect()
    };
    let lost = named(' ', |paper| paper.lost.iter().map(String::as_str).collect());
    let failed = named(' ', |paper| paper.failed.iter().map(String::as_str).collect());
    let missing = named('/', |paper| paper.missing.clone());
    Ok(((done.rows().to_string(), done.broken, lost, failed, missing), told))
}

fn effort_of(py: Python<'_>, name: &str) -> PyResult<Effort> {
    match name {
        "quick" => Ok(Effort::Quick),
        "full" => Ok(Effort::Full),
        other => {
            let known = ["quick".to_string(), "full".to_string()];
            Err(errors::of_bad_input(py, &papers::unknown("effort", other, &known)))
        }
    }
}

/// How many runs are made at a time: as many as asked for, or as there are cores.
fn at_a_time(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Carries out `work` with as many runs at a time as asked for, or as there are cores, as far as there is
/// memory; says why if that is less.
pub fn within_memory<T>(
    jobs: Option<usize>,
    work: impl FnOnce(&Budget<'_>) -> Result<T, Failure>,
) -> Result<(T, Option<String>), Failure> {
    let jobs = at_a_time(jobs);
    let said = Mutex::new(None);
    let tell =
        |text: &str| *said.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.into());
    let done = work(&Budget::new(jobs, engine::registry().memory(), &tell))?;
    Ok((done, said.into_inner().unwrap_or_else(PoisonError::into_inner)))
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
    told: Mutex<Vec<String>>,
}

impl<'a> Points<'a> {
    fn of(watched: &'a Watched) -> Self {
        Self { watched, ended: 0.into(), told: Mutex::default() }
    }

    /// What was told of where they run.
    fn notes(&self) -> Option<String> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        (!told.is_empty()).then(|| told.join("\n"))
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

    fn told(&self, text: &str) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    fn stop(&self) -> bool {
        self.watched.is_stopped()
    }
}
