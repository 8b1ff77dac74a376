//! `rackloom search`.

use std::cell::RefCell;

use crate::engine::search::{
    self, Aim, Constraint, FRONT, Over, Search, Searched, Status, Trial, Watch,
};
use crate::engine::sweep::Machines;
use crate::engine::{Budget, EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use scenario::{Argument, BadInput, Document, Registry};

use super::{DONE, jobs, settings};
use crate::args::SearchArguments;
use crate::extras::{self, Extras};
use crate::interrupt;
use crate::output::Output;
use crate::progress::{Meter, Step};

/// Shows the trials as they end.
struct Shown {
    /// How many have ended, and the meter that shows it.
    meter: RefCell<(u64, Meter)>,
}

impl Watch for Shown {
    fn ended(&self, count: usize, trial: &Trial) {
        let (ended, meter) = &mut *self.meter.borrow_mut();
        *ended += 1;
        if trial.status == Status::Failed {
            let why = trial.judgement.why.join("; ");
            meter.say(&format!("failed: {}: {why}", trial.settings.join(", ")));
        }
        let (done, total) = (*ended, Some(count as u64));
        meter.update(|| Step { done, total, what: "trials", note: String::new() });
    }

    fn told(&self, text: &str) {
        self.meter.borrow().1.say(text);
    }

    fn stop(&self) -> bool {
        interrupt::is_asked()
    }
}

/// Searches among scenarios.
pub fn search(
    arguments: &SearchArguments,
    registry: &Registry,
    extras: Option<&dyn Extras>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let mut search = read(arguments)?;
    let extras = extras::needed(extras, "search", "search")?;
    let watch = Shown { meter: RefCell::new((0, Meter::new("search", output))) };
    let sampler = |study: &search::Study| extras.sampler(study);
    let out = arguments.out.as_deref();
    let searched = match &arguments.dask {
        Some(address) => {
            let cluster = extras.cluster(address)?;
            search.jobs = arguments.jobs.map_or_else(|| cluster.size(), std::num::NonZero::get);
            let machines = Machines::Cluster(cluster.as_ref());
            // Whether a run fits is a question to the workers.
            search::search(&search, out, &sampler, machines, &Registry::standard(), &watch)?
        }
        None => {
            // Lines come from several threads, the meter is of this one.
            let tell = |text: &str| output.note(text);
            let budget = Budget::new(search.jobs, registry.memory(), &tell);
            search::search(&search, out, &sampler, Machines::This(&budget), registry, &watch)?
        }
    };
    drop(watch);
    output.table(&search::table(&searched, search::Shown::Best));
    Ok(told(&searched, search.trials, output))
}

/// What is asked for, all problems at once.
fn read(arguments: &SearchArguments) -> Result<Search, Failure> {
    let mut settings = settings(&arguments.settings)?;
    if let Some(seeds) = arguments.seeds {
        let (seeds, origin) = (seeds.to_string(), format!("--seeds {seeds}"));
        settings.push(Argument::text("run.seeds", &seeds, &origin));
    }
    let mut problems = Vec::new();
    fn all<T>(
        texts: &[String],
        parse: impl Fn(&str) -> Result<T, BadInput>,
        problems: &mut Vec<scenario::Located>,
    ) -> Vec<T> {
        let mut read = Vec::new();
        for text in texts {
            match parse(text) {
                Ok(found) => read.push(found),
                Err(bad) => problems.extend(bad.into_problems()),
            }
        }
        read
    }
    let space = all(&arguments.over, Over::parse, &mut problems);
    let constraints = all(&arguments.subject, Constraint::parse, &mut problems);
    BadInput::unless_empty(problems)?;
    let aim = |is_maximised| move |key: &String| Aim { key: key.clone(), is_maximised };
    let aims = arguments.minimise.iter().map(aim(false));
    let aims = aims.chain(arguments.maximise.iter().map(aim(true))).collect();
    Ok(Search {
        document: Document::open(&arguments.scenario)?,
        arguments: settings,
        space,
        aims,
        constraints,
        trials: arguments.trials.get(),
        jobs: jobs(arguments.jobs),
    })
}

/// Says what became of the trials, and where everything is; the exit code.
fn told(searched: &Searched, trials: usize, output: &Output) -> u8 {
    let count =
        |wanted: Status| searched.trials.iter().filter(|trial| trial.status == wanted).count();
    let (feasible, failed) = (count(Status::Feasible), count(Status::Failed));
    let left = count(Status::NotRun);
    output.note(&format!(
        "{feasible} trials are feasible, {} are not, {failed} failed, {left} did not run",
        count(Status::Infeasible)
    ));
    if searched.is_exhausted {
        output.note("Every point of the space was tried");
    }
    // Nothing is there where the disk was full from the first on.
    if searched.directory.is_dir() {
        output.note(&format!("Results are in {}", searched.directory.display()));
    }
    let front = searched.directory.join(format!("{FRONT}.svg"));
    if front.exists() {
        output.note(&format!("The figure is {}", front.display()));
    }
    if left > 0 || (searched.trials.len() < trials && !searched.is_exhausted) {
        output.error("interrupted: the same command goes on from here");
        return EXIT_INTERRUPTED;
    }
    if feasible == 0 {
        let mut reasons = searched.trials.iter().flat_map(|trial| &trial.judgement.why);
        let first = reasons.next().map_or("none has run", String::as_str);
        output.error(&format!("no trial meets the conditions; of the first: {first}"));
        return EXIT_BROKEN;
    }
    DONE
}
