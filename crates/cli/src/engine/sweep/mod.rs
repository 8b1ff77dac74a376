//! Many runs of one scenario, over a grid of settings.
//!
//! Each point lies in a folder named by the hash of its resolved scenario, so a point is the same
//! point whichever grid it is part of: a killed sweep goes on where it stopped, a wider grid runs
//! only what is new, and nothing that is finished runs twice. Each seed of a scenario is a point of its
//! own; figures are means over them ([`Swept::means`]). What there is by now stands in `sweep.json`
//! (`record`), which later grids join and from which reports are made again.

mod away;
mod drawn;
mod files;
mod means;
mod names;
mod queue;
mod record;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use kernel::Bytes;
use scenario::{Argument, BadInput, Document, Located, Registry, Scenario};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use drawn::{Drawing, draw};
pub use files::{FIGURES_FOLDER, csv_text, table};
pub(super) use files::{columns, csv, flat};
pub use means::Mean;
pub(super) use means::mean;
pub(super) use queue::{LIBRARY, LIBRARY_OF_POINT};
pub(super) use record::base;
pub use record::load;

use self::queue::{Checked, Queue};
use super::cluster::Cluster;
use super::place::Place;
use super::run::files_in;
use super::{Budget, Failure, checksums, guarded};
use crate::VERSION;

/// One key and the values it takes: `--grid workload.load=0.2,0.5,0.8`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
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
        let mut seen = HashSet::new();
        if let Some(twice) = values.iter().find(|value| !seen.insert(value.as_str())) {
            return Err(bad(&format!("the value {twice:?} stands twice")));
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
    /// Its seed.
    pub seed: u64,
    /// The hash of its scenario; empty if its settings are bad.
    pub hash: String,
    /// The hash of its scenario without seed and settings: points of one sweep share it.
    pub base: String,
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
    /// Why figures that were asked for were not drawn.
    pub undrawn: Vec<String>,
}

/// Hears from the points of a sweep, from several threads.
pub trait Watch: Sync {
    /// A point is over; there are `count` in all, as far as is known by now.
    fn ended(&self, count: usize, point: &Point) {
        let _ = (count, point);
    }

    /// Something is to be known of where the points run.
    fn told(&self, text: &str) {
        let _ = text;
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

/// Most points of a sweep. Our choice: the summaries of all of them, some tens of kilobytes each, are
/// in memory at its end, and at a minute each they take a week.
const POINTS_MAX: usize = 10_000;

impl Grid {
    /// How many combinations of values there are.
    ///
    /// # Errors
    /// When they are more than a sweep takes.
    fn count(&self) -> Result<usize, BadInput> {
        let sizes = self.axes.iter().map(|axis| axis.values.len());
        let count = sizes.clone().fold(1u128, |count, size| count.saturating_mul(size as u128));
        if count <= POINTS_MAX as u128 {
            return Ok(count as usize);
        }
        let sizes: Vec<_> = sizes.map(|size| size.to_string()).collect();
        let message = format!(
            "has {} = {count} points; expected at most {POINTS_MAX}: give fewer values, or sweep part by \
             part",
            sizes.join(" x ")
        );
        Err(BadInput::single(Located::whole("--grid", message)))
    }

    /// Combination number `index` of values, the last axis fastest.
    fn combination(&self, mut index: usize) -> Vec<String> {
        let mut settings = Vec::new();
        for axis in self.axes.iter().rev() {
            settings.push(axis.values[index % axis.values.len()].clone());
            index /= axis.values.len();
        }
        settings.reverse();
        settings
    }

    /// The scenario of a point.
    ///
    /// # Errors
    /// When its settings are bad, or checking them goes wrong.
    fn scenario(&self, settings: &[String], registry: &Registry) -> Result<Scenario, Failure> {
        let set = |(axis, value): (&Axis, &String)| {
            Argument::text(&axis.key, value, &format!("--grid {}={value}", axis.key))
        };
        guarded(|| {
            let mut arguments = self.arguments.clone();
            arguments.extend(self.axes.iter().zip(settings).map(set));
            Ok(Scenario::read(self.document.clone(), &arguments, registry)?)
        })
    }

    /// The scenarios of a point, one a fabric.
    ///
    /// # Errors
    /// As [`Grid::scenario`].
    fn scenarios(&self, settings: &[String], registry: &Registry) -> Result<Vec<Checked>, Failure> {
        Ok(Checked::all(&self.scenario(settings, registry)?, &self.axes))
    }
}

/// Where the points of a sweep run.
#[derive(Clone, Copy)]
pub enum Machines<'a> {
    /// On this one, as many at a time as the budget has room for.
    This(&'a Budget<'a>),
    /// On those of a cluster; each point is checked and stored here.
    Cluster(&'a dyn Cluster),
}

/// What a run may take that is made here only to see which numbers its summary has, where the points run elsewhere (our
/// choice: it is over in moments, and fits the machine from which a cluster is used).
const MEMORY_TO_LOOK: Bytes = Bytes::new(1 << 30);

impl Machines<'_> {
    /// What a run may take that is made on this machine to see which numbers its summary has.
    pub(super) fn memory_to_look(self) -> Bytes {
        match self {
            // Whether it may run here was decided when its scenario was read.
            Self::This(_) => Bytes::new(u64::MAX),
            Self::Cluster(_) => MEMORY_TO_LOOK,
        }
    }
}

/// Runs every point of `grid` that has not run yet.
///
/// # Errors
/// When no point can run for bad input (nothing is written then), the directory is bad, or a cluster is of no
/// use any more: what has ended until then is kept.
pub fn sweep(
    grid: &Grid,
    directory: Option<&Path>,
    drawing: &Drawing,
    machines: Machines<'_>,
    registry: &Registry,
    watch: &dyn Watch,
) -> Result<Swept, Failure> {
    guarded(|| {
        let queue = Queue::new(grid, registry, watch)?;
        let name = queue.name.clone();
        let directory = directory.map_or_else(
            || PathBuf::from(super::RESULTS).join(format!("{name}-sweep")),
            PathBuf::from,
        );
        names::check(grid, drawing, &directory, registry, machines.memory_to_look())?;
        let place = Place::create(&directory)?;
        let folder = directory.join("points");
        let (points, broken) = match machines {
            Machines::This(budget) => (queue.carry_out(&folder, budget), None),
            Machines::Cluster(cluster) => away::carry_out(queue, &folder, cluster),
        };
        let mut swept =
            Swept { name, axes: grid.axes.clone(), points, directory, undrawn: Vec::new() };
        if swept.points.iter().any(|point| point.outcome.summary().is_some()) {
            record::join_older(&mut swept);
            record::write(&swept)?;
            // What cannot be drawn is known only now: it costs its figure, not the runs.
            let (drawn, undrawn) = drawn::draw_what_is_there(&swept, drawing);
            swept.undrawn = undrawn.iter().map(ToString::to_string).collect();
            files::write(&swept, &drawn)?;
            place.keep();
        }
        broken.map_or(Ok(swept), Err)
    })
}

/// Writes the tables, the page and the figures of a sweep that has run, from what its points left; runs
/// nothing.
///
/// # Errors
/// When there is no sweep in `directory`, a key that is to be drawn is unknown, or it cannot be written to.
pub fn report(directory: &Path, drawing: &Drawing) -> Result<Swept, Failure> {
    guarded(|| {
        let swept = record::load(directory)?;
        let drawn = drawn::draw(&swept, drawing)?;
        let place = Place::create(directory)?;
        files::write(&swept, &drawn)?;
        place.keep();
        Ok(swept)
    })
}

/// The summary of a point that this version has run to its end, all of its files as they were written.
pub(super) fn finished(directory: &Path, hash: &str) -> Option<Value> {
    let text = std::fs::read_to_string(directory.join("summary.json")).ok()?;
    let summary: Value = serde_json::from_str(&text).ok()?;
    let same = summary["rackloom_version"] == VERSION && summary["scenario_hash"] == hash;
    let whole = summary["interrupted"] != Value::Bool(true);
    (same && whole && checksums::hold(directory, &files_in(directory))).then_some(summary)
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

    proptest::proptest! {
        #[test]
        fn any_grid_is_a_key_with_different_values_or_refused(text in "[a-c=,'\"{}\\[\\] 0-2.]{0,30}") {
            if let Ok(Axis { key, values }) = Axis::parse(&text) {
                let different: HashSet<_> = values.iter().collect();
                assert!(!key.is_empty() && !values.is_empty() && different.len() == values.len());
                assert!(values.iter().all(|value| !value.is_empty()));
            }
        }
    }

    #[test]
    fn a_grid_of_millions_is_refused_with_its_size() {
        let axis = |key: &str, count: usize| Axis {
            key: key.into(),
            values: (0..count).map(|value| value.to_string()).collect(),
        };
        let document = Document::parse("a.toml", "", scenario::Format::Toml).unwrap();
        let grid = |axes| Grid { document: document.clone(), arguments: Vec::new(), axes };
        let bad = grid(vec![axis("a", 3_000), axis("b", 3_000)]).count().unwrap_err().to_string();
        assert!(bad.contains("3000 x 3000 = 9000000 points"), "{bad}");
        let axes = (0..40).map(|key| axis(&key.to_string(), 1_000)).collect();
        assert!(grid(axes).count().is_err());
        assert_eq!(grid(vec![axis("a", 1_000), axis("b", 10)]).count().unwrap(), POINTS_MAX);
    }

    #[test]
    fn the_last_axis_runs_fastest() {
        let axis = |text: &str| Axis::parse(text).unwrap();
        let document = Document::parse("a.toml", "", scenario::Format::Toml).unwrap();
        let grid =
            Grid { document, arguments: Vec::new(), axes: vec![axis("a=1,2"), axis("b=x,y")] };
        let count = grid.count().unwrap();
        let found: Vec<String> = (0..count).map(|index| grid.combination(index).concat()).collect();
        assert_eq!(found, ["1x", "1y", "2x", "2y"]);
    }

    #[test]
    fn slow_points_for_which_there_is_no_memory_wait_and_all_of_them_run() {
        let small = "run.flows = 500\nworkload = { kind = 'poisson', load = 0.3 }\n\
                     fabric = { kind = 'shoal', nodes = 16 }\n";
        let document = Document::parse("small.toml", small, scenario::Format::Toml).unwrap();
        let registry = Registry::standard();
        let alone = Scenario::read(document.clone(), &[], &registry).unwrap();
        let grid = Grid {
            document,
            arguments: Vec::new(),
            axes: vec![Axis::parse("seed=1,2,3,4").unwrap()],
        };
        let told = std::sync::Mutex::new(Vec::new());
        let tell = |text: &str| told.lock().unwrap().push(text.to_string());
        let place = tempfile::tempdir().unwrap();
        let budget = Budget::new(3, alone.memory(0), &tell);
        // Somebody else has all of it until a point has asked without success.
        let others = std::sync::Mutex::new(budget.take(alone.memory(0), || false));
        let swept = std::thread::scope(|scope| {
            scope.spawn(|| {
                while told.lock().unwrap().is_empty() {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                drop(others.lock().unwrap().take());
            });
            let drawing = Drawing::default();
            let here = Machines::This(&budget);
            sweep(&grid, Some(place.path()), &drawing, here, &registry, &()).unwrap()
        });
        assert!(swept.points.iter().all(|point| matches!(point.outcome, Outcome::Done(_))));
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("1 instead of 3 at a time"), "{told:?}");
    }
}
