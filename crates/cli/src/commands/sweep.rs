//! `rackloom sweep`.

use std::sync::Mutex;

use crate::engine::sweep::{self, Axis, Grid, Outcome, Point, Watch};
use crate::engine::{Budget, EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use scenario::{BadInput, Document, Registry};

use super::{DONE, jobs, settings};
use crate::args::SweepArguments;
use crate::interrupt;
use crate::output::Output;
use crate::progress::{Meter, Step};

/// Shows the points as they end.
struct Shown {
    /// How many have ended, and the meter that shows it.
    meter: Mutex<(u64, Meter)>,
}

impl Watch for Shown {
    fn ended(&self, count: usize, point: &Point) {
        let mut guard = self.meter.lock().expect("no thread panics while it holds this");
        let (ended, meter) = &mut *guard;
        *ended += 1;
        if let Outcome::Failed(why) = &point.outcome {
            meter.say(&format!("failed: {}: {why}", point.settings.join(", ")));
        }
        let (done, total) = (*ended, Some(count as u64));
        meter.update(|| Step { done, total, what: "points", note: String::new() });
    }

    fn stop(&self) -> bool {
        interrupt::is_asked()
    }
}

/// Runs a scenario over a grid.
pub fn sweep(
    arguments: &SweepArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let settings = settings(&arguments.settings)?;
    let mut problems = Vec::new();
    let mut axes = Vec::new();
    for text in &arguments.grid {
        match Axis::parse(text) {
            Ok(axis) => axes.push(axis),
            Err(bad) => problems.extend(bad.into_problems()),
        }
    }
    BadInput::unless_empty(problems)?;
    let document = Document::open(&arguments.scenario)?;
    let grid = Grid { document, arguments: settings, axes };
    let watch = Shown { meter: Mutex::new((0, Meter::new("sweep", output))) };
    let tell = |text: &str| {
        watch.meter.lock().expect("no thread panics while it holds this").1.say(text);
    };
    let budget = Budget::new(jobs(arguments.jobs), registry.memory(), &tell);
    let swept = sweep::sweep(&grid, arguments.out.as_deref(), &budget, registry, &watch);
    drop(watch);
    let swept = swept?;
    output.table(&sweep::table(&swept));
    let count = |wanted: fn(&Outcome) -> bool| {
        swept.points.iter().filter(|point| wanted(&point.outcome)).count()
    };
    let ran = count(|outcome| matches!(outcome, Outcome::Done(_)));
    let found = count(|outcome| matches!(outcome, Outcome::Found(_)));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let left = count(|outcome| matches!(outcome, Outcome::NotRun));
    output.note(&format!(
        "{ran} points ran, {found} had run before, {failed} failed, {left} did not run"
    ));
    output.note(&format!("Results are in {}", swept.directory.display()));
    if left > 0 {
        output.error("interrupted: the same command goes on from here");
        return Ok(EXIT_INTERRUPTED);
    }
    for point in &swept.points {
        if let Outcome::Failed(why) = &point.outcome {
            output.error(&format!("failed: {}: {why}", point.settings.join(", ")));
        }
    }
    Ok(if failed > 0 { EXIT_BROKEN } else { DONE })
}
