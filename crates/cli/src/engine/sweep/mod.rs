//! Many runs of one scenario, over a grid of settings.
//!
//! Each point lies in a folder named by the hash of its resolved scenario, so a point is the same
//! point whichever grid it is part of: a killed sweep goes on where it stopped, a wider grid runs
//! only what is new, and nothing that is finished runs twice.

mod files;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rack::run::Progress;
use report::ResultsDir;
use scenario::{Argument, BadInput, Document, Located, Registry, Scenario};
use serde_json::Value;

pub use files::table;

use super::place::Place;
use super::{Failure, run};
use crate::VERSION;

/// One key and the values it takes: `--grid workload.load=0.2,0.5,0.8`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The key, as for `--set`.
    pub key: String,
    /// Its values, as text.
    pub values: Vec<String>,
}

impl Axis {
    /// Reads `KEY=V1,V2,...`; a comma within quotes, brackets or braces parts nothing.
    ///
    /// # Errors
    /// When there is no key or no value.
    pub fn parse(text: &str) -> Result<Self, BadInput> {
        let bad = |message: &str| {
            BadInput::single(Located::whole(&format!("--grid {text}"), message.to_string()))
        };
        let expected = "expected KEY=VALUE,VALUE,..., such as workload.load=0.2,0.5";
        let (key, values) = text.split_once('=').ok_or_else(|| bad(expected))?;
        let values = split_values(values);
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(bad(expected));
        }
        if let Some(twice) = values.iter().enumerate().find(|(i, v)| values[..*i].contains(v)) {
            return Err(bad(&format!("the value {} stands twice", twice.1)));
        }
        Ok(Self { key: key.trim().into(), values })
    }
}

fn split_values(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let (mut depth, mut quote) = (0u32, None);
    for c in text.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c == ',' && depth == 0 && quote.is_none() {
            values.push(String::new());
        } else {
            values.last_mut().expect("there is always a value under way").push(c);
        }
    }
    values.iter().map(|value| value.trim().to_string()).collect()
}

/// One point of a sweep: its settings and what became of it.
#[derive(Clone, Debug)]
pub struct Point {
    /// The value of each axis, in the order of the axes.
    pub settings: Vec<String>,
    /// What its fabric is called.
    pub label: String,
    /// The hash of its scenario; empty if its settings are bad.
    pub hash: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a point.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It ran now.
    Done(Value),
    /// It had run before.
    Found(Value),
    /// It cannot run, or broke.
    Failed(String),
    /// The sweep was stopped before it ended.
    NotRun,
}

impl Outcome {
    /// The summary, if there is one.
    #[must_use]
    pub fn summary(&self) -> Option<&Value> {
        match self {
            Self::Done(summary) | Self::Found(summary) => Some(summary),
            Self::Failed(_) | Self::NotRun => None,
        }
    }

    /// One word for tables.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done(_) | Self::Found(_) => "done",
            Self::Failed(_) => "failed",
            Self::NotRun => "not run",
        }
    }
}

/// A sweep that is over, or was stopped.
#[derive(Clone, Debug)]
pub struct Swept {
    /// The name of the scenario.
    pub name: String,
    /// The axes of the grid.
    pub axes: Vec<Axis>,
    /// The points, the last axis fastest, then the fabrics.
    pub points: Vec<Point>,
    /// Where its files are.
    pub directory: PathBuf,
}

/// Hears from the points of a sweep, from several threads.
pub trait Watch: Sync {
    /// Point number `index` of `count` is over.
    fn ended(&self, index: usize, count: usize, point: &Point) {
        let _ = (index, count, point);
    }

    /// Asked now and then: whether the sweep is to stop.
    fn stop(&self) -> bool {
        false
    }
}

/// Watches nothing.
impl Watch for () {}

/// What a sweep is to run.
pub struct Grid {
    /// The scenario as written.
    pub document: Document,
    /// Settings for all points.
    pub arguments: Vec<Argument>,
    /// Settings that differ.
    pub axes: Vec<Axis>,
}

impl Grid {
    /// Every combination of values, the last axis fastest.
    fn combinations(&self) -> Vec<Vec<String>> {
        self.axes.iter().fold(vec![Vec::new()], |rows, axis| {
            let longer = |row: &Vec<String>| {
                let row = row.clone();
                axis.values.iter().map(move |value| [row.clone(), vec![value.clone()]].concat())
            };
            rows.iter().flat_map(longer).collect()
        })
    }

    /// The scenario of each point, or why there is none.
    fn points(&self, registry: &Registry) -> Vec<(Vec<String>, Result<Scenario, BadInput>)> {
        let scenario = |settings: &[String]| {
            let set = |(axis, value): (&Axis, &String)| {
                Argument::text(&axis.key, value, &format!("--grid {}={value}", axis.key))
            };
            let mut arguments = self.arguments.clone();
            arguments.extend(self.axes.iter().zip(settings).map(set));
            Scenario::read(self.document.clone(), &arguments, registry)
        };
        let combinations = self.combinations().into_iter();
        combinations.map(|settings| (settings.clone(), scenario(&settings))).collect()
    }
}

/// A point that is yet to run.
struct Task {
    point: Point,
    scenario: Option<Scenario>,
}

/// Runs every point of `grid` that has not run yet, `jobs` at a time.
///
/// # Errors
/// When no point can run for bad input (nothing is written then), or the directory is bad.
pub fn sweep(
    grid: &Grid,
    directory: Option<&Path>,
    jobs: usize,
    registry: &Registry,
    watch: &dyn Watch,
) -> Result<Swept, Failure> {
    let points = grid.points(registry);
    let Some(first) = points.iter().find_map(|(_, scenario)| scenario.as_ref().ok()) else {
        let bad = points.into_iter().filter_map(|(_, scenario)| scenario.err());
        return Err(BadInput::new(bad.flat_map(BadInput::into_problems).collect()).into());
    };
    let name = first.name.clone();
    let directory = directory
        .map_or_else(|| PathBuf::from(super::RESULTS).join(format!("{name}-sweep")), PathBuf::from);
    let place = Place::create(&directory.join("points"))?;
    let tasks: Vec<Task> =
        points.into_iter().flat_map(|(s, scenario)| tasks(s, scenario)).collect();
    let points = carry_out(tasks, place.directory(), jobs, watch);
    let swept = Swept { name, axes: grid.axes.clone(), points, directory };
    if swept.points.iter().any(|point| point.outcome.summary().is_some()) {
        files::write(&swept)?;
        place.keep();
    }
    Ok(swept)
}

/// One task a fabric of the scenario.
fn tasks(settings: Vec<String>, scenario: Result<Scenario, BadInput>) -> Vec<Task> {
    match scenario {
        Err(bad) => {
            let outcome = Outcome::Failed(bad.to_string());
            let point = Point { settings, label: String::new(), hash: String::new(), outcome };
            vec![Task { point, scenario: None }]
        }
        Ok(scenario) => (0..scenario.fabrics.len())
            .map(|index| {
                let alone = scenario.with_fabric(index);
                let label = alone.fabrics[0].label.clone();
                let (settings, hash) = (settings.clone(), alone.hash());
                let point = Point { settings, label, hash, outcome: Outcome::NotRun };
                Task { point, scenario: Some(alone) }
            })
            .collect(),
    }
}

/// Runs the tasks on `jobs` threads; each takes the next one that nobody has.
fn carry_out(tasks: Vec<Task>, place: &ResultsDir, jobs: usize, watch: &dyn Watch) -> Vec<Point> {
    let count = tasks.len();
    let next = AtomicUsize::new(0);
    let finished: Mutex<BTreeMap<usize, Point>> = Mutex::new(BTreeMap::new());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index) else { return };
            let mut point = task.point.clone();
            if let Some(scenario) = task.scenario.as_ref().filter(|_| !watch.stop()) {
                point.outcome = run_point(scenario, &point.hash, place, watch);
            }
            watch.ended(index, count, &point);
            finished.lock().expect("no thread panics while it holds this").insert(index, point);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, count.max(1)) {
            scope.spawn(worker);
        }
    });
    finished.into_inner().expect("no thread panics while it holds this").into_values().collect()
}

/// Runs one point, unless its results are there. What it breaks, it breaks alone.
fn run_point(scenario: &Scenario, hash: &str, place: &ResultsDir, watch: &dyn Watch) -> Outcome {
    let directory = place.path().join(hash);
    if let Some(summary) = finished(&directory, hash) {
        return Outcome::Found(summary);
    }
    let mut stopped = false;
    let mut progress = |_: Progress| {
        stopped |= watch.stop();
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    match run(scenario, &directory, &mut progress) {
        // Half a point is no point: its summary says so, and the next sweep runs it again.
        Ok(done) if done.is_interrupted() => Outcome::NotRun,
        Ok(done) => Outcome::Done(done.result.summary),
        Err(failure) => Outcome::Failed(failure.to_string()),
    }
}

/// The summary of a point that this version has run to its end.
fn finished(directory: &Path, hash: &str) -> Option<Value> {
    let text = std::fs::read_to_string(directory.join("summary.json")).ok()?;
    let summary: Value = serde_json::from_str(&text).ok()?;
    let same = summary["rackloom_version"] == VERSION && summary["scenario_hash"] == hash;
    (same && summary["interrupted"] != Value::Bool(true)).then_some(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_axis(text: &str, values: &[&str]) {
        assert_eq!(Axis::parse(text).unwrap().values, values, "{text}");
    }

    #[test]
    fn a_grid_is_split_at_its_outer_commas() {
        check_axis("a=1,2,3", &["1", "2", "3"]);
        check_axis("a = 2.75 ns , 5 ns", &["2.75 ns", "5 ns"]);
        check_axis("a=[1,2],[3]", &["[1,2]", "[3]"]);
        check_axis("a={x=1,y=2},{x=2,y=2}", &["{x=1,y=2}", "{x=2,y=2}"]);
        check_axis("a='1,2',\"3,4\"", &["'1,2'", "\"3,4\""]);
    }

    #[test]
    fn a_grid_without_key_or_value_is_refused() {
        for text in ["a", "a=", "=1", "a=1,,2", "a=1,1"] {
            let message = Axis::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(&format!("--grid {text}: ")), "{message}");
        }
    }

    #[test]
    fn the_last_axis_runs_fastest() {
        let axis = |text: &str| Axis::parse(text).unwrap();
        let document = Document::parse("a.toml", "", scenario::Format::Toml).unwrap();
        let grid =
            Grid { document, arguments: Vec::new(), axes: vec![axis("a=1,2"), axis("b=x,y")] };
        let found: Vec<String> = grid.combinations().iter().map(|row| row.concat()).collect();
        assert_eq!(found, ["1x", "1y", "2x", "2y"]);
    }
}
