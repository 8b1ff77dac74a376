//! The work of a sweep: points are checked and run by the threads of a sweep, in the order of the grid.
//!
//! A point is checked when its turn comes, not before: the plans of a hundred thousand networks need
//! not be in memory at once. Checking it gives a task for each of its fabrics.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rack::run::Progress;
use report::page::{CHART_LIBRARY, Library};
use report::{FileError, write_atomically};
use scenario::{BadInput, Registry, Scenario};

use super::super::run::run_with;
use super::super::{Budget, Busy, Failure};
use super::{Axis, Grid, Outcome, Point, Watch, finished, record};

/// The points of a sweep, to run.
pub struct Queue<'a> {
    grid: &'a Grid,
    registry: &'a Registry,
    pub(super) watch: &'a dyn Watch,
    /// How many combinations of values there are.
    combinations: usize,
    /// The name of the first scenario that can run.
    pub name: String,
    state: Mutex<State>,
    changed: Condvar,
}

/// What there is to do and what is done.
struct State {
    /// The next combination that nobody has checked.
    next: usize,
    /// How many are being checked now.
    checking: usize,
    /// Checked, and to run.
    tasks: VecDeque<Task>,
    /// Fabrics of the scenario, as far as is known: the rest is taken to have as many.
    fabrics: usize,
    /// Combinations that are checked, and their tasks.
    checked: usize,
    /// The same.
    known: usize,
    done: BTreeMap<Key, Point>,
    /// Held while the point with this hash runs: two points may be the same, written in two ways.
    running: HashMap<String, Arc<Mutex<()>>>,
    /// Whether the reports' chart library has been written.
    is_library_there: bool,
}

/// The chart library of all pages of a sweep, in its directory, and where it is from a point's.
pub const LIBRARY: &str = "plotly-basic.min.js";
pub const LIBRARY_OF_POINT: Library<'_> = Library::Beside("../../plotly-basic.min.js");

/// The place of a point among all: its combination, then its fabric.
type Key = (usize, usize);

/// A point and its scenario, if there is one.
pub(super) struct Task {
    key: Key,
    pub point: Point,
    pub scenario: Option<Scenario>,
}

/// One fabric of a scenario that can run.
pub struct Checked {
    name: String,
    label: String,
    hash: String,
    base: String,
    scenario: Scenario,
}

impl Checked {
    /// The fabrics of `scenario`, each alone and with one seed.
    pub fn all(scenario: &Scenario, axes: &[Axis]) -> Vec<Self> {
        let fabrics = (0..scenario.fabrics.len()).map(|index| scenario.with_fabric(index));
        let alone = |scenario: Scenario| Self {
            name: scenario.name.clone(),
            label: scenario.fabrics[0].label.clone(),
            hash: scenario.hash(),
            base: record::base(&scenario, axes),
            scenario,
        };
        fabrics.flat_map(|fabric| fabric.with_each_seed()).map(alone).collect()
    }
}

/// Problems kept when no point can run; a grid may hold thousands of points with the same ones.
const PROBLEMS_MAX: usize = 1_000;

/// What a thread does next.
pub(super) enum Step {
    Check(usize),
    Run(Box<Task>),
    End,
}

impl<'a> Queue<'a> {
    /// Checks the points up to the first that can run.
    ///
    /// # Errors
    /// When none can: why each of them cannot. When there are too many.
    pub fn new(
        grid: &'a Grid,
        registry: &'a Registry,
        watch: &'a dyn Watch,
    ) -> Result<Self, Failure> {
        let combinations = grid.count()?;
        let mut queue = Self {
            grid,
            registry,
            watch,
            combinations,
            name: String::new(),
            state: Mutex::new(State {
                next: 0,
                checking: 0,
                tasks: VecDeque::new(),
                fabrics: 1,
                checked: 0,
                known: 0,
                done: BTreeMap::new(),
                running: HashMap::new(),
                is_library_there: false,
            }),
            changed: Condvar::new(),
        };
        let (mut problems, mut internal) = (Vec::new(), None);
        for index in 0..combinations {
            if watch.stop() {
                return Err(Failure::Interrupted);
            }
            let settings = grid.combination(index);
            let checked = grid.scenarios(&settings, registry);
            match &checked {
                Ok(scenarios) => {
                    queue.name = scenarios.first().map_or_else(String::new, |s| s.name.clone())
                }
                Err(Failure::Input(bad)) if problems.len() < PROBLEMS_MAX => {
                    problems.extend(bad.problems().iter().cloned());
                }
                Err(Failure::Internal(panic)) => internal = internal.or(Some(panic.clone())),
                Err(_) => {}
            }
            let is_first = checked.is_ok();
            queue.add(index, settings, checked);
            queue.lock().next = index + 1;
            if is_first {
                return Ok(queue);
            }
        }
        Err(internal.map_or_else(|| BadInput::new(problems).into(), Failure::Internal))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No thread panics while it holds this: what may panic is done without it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs all on as many threads as there are jobs; the points, in the order of the grid.
    pub fn carry_out(self, place: &Path, budget: &Budget<'_>) -> Vec<Point> {
        std::thread::scope(|scope| {
            for _ in 0..budget.jobs() {
                scope.spawn(|| self.work(place, budget));
            }
        });
        self.into_points()
    }

    /// What has ended, in the order of the grid.
    pub(super) fn into_points(self) -> Vec<Point> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.done.into_values().collect()
    }

    /// What one thread does.
    fn work(&self, place: &Path, budget: &Budget<'_>) {
        let busy = Busy::begin();
        loop {
            match self.next() {
                Step::End => return,
                Step::Check(index) => self.check(index, self.is_stopped(&busy)),
                Step::Run(mut task) => {
                    if let Some(scenario) = task.scenario.take().filter(|_| !self.is_stopped(&busy))
                    {
                        let at = (place, task.point.hash.as_str());
                        task.point.outcome = self.outcome(&scenario, at, budget, &busy);
                    }
                    self.end(*task);
                }
            }
        }
    }

    /// Checks a combination, or gives it up if the sweep is stopped.
    pub(super) fn check(&self, index: usize, is_stopped: bool) {
        let settings = self.grid.combination(index);
        let scenario = if is_stopped {
            Err(Failure::Interrupted)
        } else {
            self.grid.scenarios(&settings, self.registry)
        };
        self.add(index, settings, scenario);
        self.lock().checking -= 1;
        self.changed.notify_all();
    }

    /// A task is over, whatever became of it.
    pub(super) fn end(&self, task: Task) {
        let mut state = self.lock();
        let count = state.known + (self.combinations - state.checked) * state.fabrics;
        self.watch.ended(count, &task.point);
        state.done.insert(task.key, task.point);
    }

    /// The next thing to do; waits if that depends on what others check.
    pub(super) fn next(&self) -> Step {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.tasks.pop_front() {
                return Step::Run(Box::new(task));
            }
            if state.next < self.combinations {
                state.next += 1;
                state.checking += 1;
                return Step::Check(state.next - 1);
            }
            if state.checking == 0 {
                return Step::End;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds the tasks of combination `index`, one a fabric.
    fn add(&self, index: usize, settings: Vec<String>, checked: Result<Vec<Checked>, Failure>) {
        let tasks: Vec<Task> = match checked {
            Err(failure) => {
                let outcome = match failure {
                    Failure::Interrupted => Outcome::NotRun,
                    failure => Outcome::Failed(failure.to_string()),
                };
                let point = Point {
                    settings,
                    label: String::new(),
                    seed: 0,
                    hash: String::new(),
                    base: String::new(),
                    outcome,
                };
                vec![Task { key: (index, 0), point, scenario: None }]
            }
            Ok(all) => {
                self.lock().fabrics = all.len();
                let task = |(fabric, checked): (usize, Checked)| {
                    let Checked { label, hash, base, scenario, .. } = checked;
                    let (settings, seed) = (settings.clone(), scenario.seed);
                    let outcome = Outcome::NotRun;
                    let point = Point { settings, label, seed, hash, base, outcome };
                    Task { key: (index, fabric), point, scenario: Some(scenario) }
                };
                all.into_iter().enumerate().map(task).collect()
            }
        };
        let mut state = self.lock();
        state.checked += 1;
        state.known += tasks.len();
        state.tasks.extend(tasks);
    }

    /// Runs one point, unless its results are there. What it breaks, it breaks alone.
    fn outcome(
        &self,
        scenario: &Scenario,
        (place, hash): (&Path, &str),
        budget: &Budget<'_>,
        busy: &Busy,
    ) -> Outcome {
        let turn = self.lock().running.entry(hash.into()).or_default().clone();
        // Whoever comes second finds the results of the first.
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = &place.join(hash);
        if let Some(summary) = finished(directory, hash) {
            return Outcome::Found(summary);
        }
        let Some(_share) = budget.take(scenario.memory(0), || self.is_stopped(busy)) else {
            return Outcome::NotRun;
        };
        let mut progress = |_: Progress| match self.is_stopped(busy) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        match run_with(scenario, directory, LIBRARY_OF_POINT, &mut progress) {
            // Half a point is no point: its summary says so, and the next sweep runs it again.
            Ok(done) if done.is_interrupted() => Outcome::NotRun,
            Ok(done) => match self.share_library(place) {
                Ok(()) => Outcome::Done(done.result.summary),
                Err(failure) => Outcome::Failed(failure.to_string()),
            },
            Err(failure) => Outcome::Failed(failure.to_string()),
        }
    }

    /// Puts the chart library that the reports of all points share where they look for it, once.
    pub(super) fn share_library(&self, points: &Path) -> Result<(), FileError> {
        let mut state = self.lock();
        if !state.is_library_there {
            let place = points.parent().unwrap_or(Path::new("")).join(LIBRARY);
            write_atomically(&place, CHART_LIBRARY.as_bytes())?;
            state.is_library_there = true;
        }
        Ok(())
    }

    pub(super) fn is_stopped(&self, busy: &Busy) -> bool {
        let is_stopped = self.watch.stop();
        if is_stopped {
            busy.stopping();
        }
        is_stopped
    }
}
