//! `rackloom sweep`.

use std::sync::Mutex;

use crate::engine::sweep::{self, Axis, Drawing, Grid, Machines, Outcome, Point, Swept, Watch};
use crate::engine::{Budget, EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use scenario::{Argument, BadInput, Document, Registry};

use super::{DONE, jobs, settings};
use crate::args::{PlotAxis, SweepArguments};
use crate::extras::{self, Extras};
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

    fn told(&self, text: &str) {
        self.meter.lock().expect("no thread panics while it holds this").1.say(text);
    }

    fn stop(&self) -> bool {
        interrupt::is_asked()
    }
}

/// Runs a scenario over a grid, or reports on one that has run.
pub fn sweep(
    arguments: &SweepArguments,
    registry: &Registry,
    extras: Option<&dyn Extras>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let drawing = Drawing {
        keys: arguments.plot.clone(),
        over: arguments.over.clone(),
        log_x: arguments.log.contains(&PlotAxis::X),
        log_y: arguments.log.contains(&PlotAxis::Y),
    };
    let swept = if arguments.report {
        sweep::report(&arguments.scenario, &drawing)?
    } else {
        run(arguments, &drawing, registry, extras, output)?
    };
    output.table(&sweep::table(&swept));
    if let Some(path) = &arguments.csv {
        report::write_atomically(path, &sweep::csv_text(&swept))?;
    }
    told(&swept, &drawing, output)
}

/// Runs the grid.
fn run(
    arguments: &SweepArguments,
    drawing: &Drawing,
    registry: &Registry,
    extras: Option<&dyn Extras>,
    output: &Output,
) -> Result<Swept, Failure> {
    let mut settings = settings(&arguments.settings)?;
    if let Some(seeds) = arguments.seeds {
        let (seeds, origin) = (seeds.to_string(), format!("--seeds {seeds}"));
        settings.push(Argument::text("run.seeds", &seeds, &origin));
    }
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
    let sweep = |machines: Machines<'_>, registry: &Registry| {
        sweep::sweep(&grid, arguments.out.as_deref(), drawing, machines, registry, &watch)
    };
    if let Some(address) = &arguments.dask {
        let cluster = extras::needed(extras, "--dask", "dask")?.cluster(address)?;
        // Whether a point fits is a question to the workers.
        return sweep(Machines::Cluster(cluster.as_ref()), &Registry::standard());
    }
    let tell = |text: &str| watch.told(text);
    let budget = Budget::new(jobs(arguments.jobs), registry.memory(), &tell);
    sweep(Machines::This(&budget), registry)
}

/// Says what became of the points, and where everything is; the exit code.
fn told(swept: &Swept, drawing: &Drawing, output: &Output) -> Result<u8, Failure> {
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
    // Nothing is there where the disk was full from the first on.
    if swept.directory.is_dir() {
        output.note(&format!("Results are in {}", swept.directory.display()));
    }
    if !drawing.keys.is_empty() {
        let folder = swept.directory.join(sweep::FIGURES_FOLDER);
        output.note(&format!("Figures are in {}", folder.display()));
    }
    if left > 0 {
        output.error("interrupted: the same command goes on from here");
        return Ok(EXIT_INTERRUPTED);
    }
    for point in &swept.points {
        if let Outcome::Failed(why) = &point.outcome {
            output.error(&format!("failed: {}: {why}", point.settings.join(", ")));
        }
    }
    swept.undrawn.iter().for_each(|why| output.error(why));
    Ok(if failed > 0 || !swept.undrawn.is_empty() { EXIT_BROKEN } else { DONE })
}
