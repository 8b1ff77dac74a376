//! `rackloom reproduce`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use report::Tally;
use scenario::{BadInput, Located};

use crate::engine::{EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use crate::reproduce::all::{self, All, Missing, One};
use crate::reproduce::{self, Effort};

use super::{DONE, jobs};
use crate::args::ReproduceArguments;
use crate::extras::{self, Extras};
use crate::interrupt;
use crate::output::Output;
use crate::progress::{Meter, Step};

/// Steps into which one experiment's progress is cut.
const STEPS: f64 = 1_000.0;

/// What stands for every paper.
const ALL: &str = "all";

/// Repeats the experiments of a paper, or of all.
pub fn reproduce(
    arguments: &ReproduceArguments,
    extras: Option<&dyn Extras>,
    output: &mut Output,
) -> Result<u8, Failure> {
    if arguments.paper == ALL {
        return reproduce_all(arguments, extras, output);
    }
    let paper = reproduce::paper(&arguments.paper)?;
    let is_given = [
        ("--page", arguments.page.is_some()),
        ("--judge", arguments.judge),
        ("--beside", arguments.beside.is_some()),
        ("--dask", arguments.dask.is_some()),
    ];
    let wrong = is_given.iter().filter(|(_, is_given)| *is_given).map(|(name, _)| {
        Located::whole(name, format!("is of `reproduce {ALL}` alone, not of {}", paper.name))
    });
    BadInput::unless_empty(wrong.collect())?;
    reproduce::spread::set_runs(jobs(arguments.jobs));
    let experiments = reproduce::select(paper, &arguments.experiments)?;
    let effort = if arguments.full { Effort::Full } else { Effort::Quick };
    let directory = arguments.out.clone();
    let directory = directory.unwrap_or_else(|| PathBuf::from("reproduced").join(paper.name));
    let mut meter: Option<(&str, Meter)> = None;
    let done =
        reproduce::reproduce(paper, &experiments, effort, &directory, &mut |which, share, what| {
            if meter.as_ref().is_none_or(|(name, _)| *name != which.name) {
                meter = Some((which.name, Meter::new(which.name, output)));
            }
            if let Some((_, meter)) = &mut meter {
                let done = (share.clamp(0.0, 1.0) * STEPS) as u64;
                let (total, note) = (Some(STEPS as u64), what.to_string());
                meter.update(|| Step { done, total, what: "", note });
            }
            if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    drop(meter);
    let done = done?;
    let tally = Tally::of(&done.claims);
    let text = |style| {
        let table = report::claims_to_read(&done.claims).to_text(style);
        format!("{table}\n{}: {}\n", paper.name, tally.words())
    };
    output.result(text, || report::claims_table(&done.claims).to_json());
    if !done.claims.is_empty() {
        output.note(&format!("Results are in {}", directory.display()));
    }
    for (experiment, why) in &done.broken {
        output.error(&format!("{experiment}: {why}"));
    }
    for claim in &done.lost {
        output.error(&format!("{claim}: was reproduced in the last release and is not any more"));
    }
    for check in &done.failed {
        output.error(&format!("{check}: is a check, and does not hold"));
    }
    let sound = done.broken.is_empty() && done.lost.is_empty() && done.failed.is_empty();
    Ok(exit_code(done.interrupted, sound))
}

fn exit_code(interrupted: bool, sound: bool) -> u8 {
    match (interrupted, sound) {
        (true, _) => EXIT_INTERRUPTED,
        (false, false) => EXIT_BROKEN,
        (false, true) => DONE,
    }
}

/// Repeats every experiment of every paper, but those that are done.
fn reproduce_all(
    arguments: &ReproduceArguments,
    extras: Option<&dyn Extras>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let chosen = all::select(&arguments.experiments)?;
    let no_directory = |beside: &PathBuf| {
        let message = format!(
            "{} is no directory; expected one that `reproduce {ALL} --out` has written",
            beside.display()
        );
        Located::whole("--beside", message)
    };
    let wrong = arguments.beside.iter().filter(|beside| !beside.is_dir()).map(no_directory);
    BadInput::unless_empty(wrong.collect())?;
    let effort = if arguments.full { Effort::Full } else { Effort::Quick };
    let word = if arguments.full { "full" } else { "quick" };
    let directory = arguments.out.clone();
    let directory = directory.unwrap_or_else(|| PathBuf::from(format!("reproduced/{ALL}-{word}")));
    let cluster = match &arguments.dask {
        Some(address) => Some(extras::needed(extras, "--dask", "dask")?.cluster(address)?),
        None => None,
    };
    let missing = match &cluster {
        Some(cluster) => Missing::On(cluster.as_ref()),
        None if arguments.judge => Missing::Judge,
        None => Missing::Run(jobs(arguments.jobs)),
    };
    let mut meter = Meter::new("all experiments", output);
    let places = (&*directory, arguments.beside.as_deref());
    let done = all::all(&chosen, effort, places, missing, &mut |progress| {
        progress.told.iter().for_each(|text| meter.say(text));
        let steps = |work: f64| (work / progress.total * STEPS) as u64;
        meter.note_found(steps(progress.found));
        meter.update(|| Step {
            done: steps(progress.done),
            total: Some(STEPS as u64),
            what: "",
            note: progress.under_way.join(", "),
        });
        if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(meter);
    let done = done?;
    output.table(&done.table());
    output.note(&format!("Results are in {}", directory.display()));
    if let Some(page) = &arguments.page {
        done.write_page(page)?;
        output.note(&format!("The page is {}", page.display()));
    }
    let sound = tell(&done, &chosen, output);
    Ok(exit_code(done.interrupted, sound))
}

/// Says what went wrong and what is left to do; whether all is sound.
fn tell(done: &All, chosen: &[One], output: &mut Output) -> bool {
    for (experiment, why) in &done.broken {
        output.error(&format!("{experiment}: {why}"));
    }
    let mut sound = done.broken.is_empty();
    for paper in &done.papers {
        let name = paper.paper.name;
        for row in &paper.lost {
            output.error(&format!(
                "{name} {row}: was reproduced in the last release and is not any more"
            ));
        }
        for check in &paper.failed {
            output.error(&format!("{name} {check}: is a check, and does not hold"));
        }
        let is_chosen =
            |missing: &&str| chosen.iter().any(|(of, one)| (of.name, one.name) == (name, *missing));
        let left: Vec<&str> = paper.missing.iter().copied().filter(is_chosen).collect();
        if !left.is_empty() {
            let list = left.join(", ");
            output.note(&format!("{name}: to do: {list}; the same command goes on with them"));
        }
        sound &= paper.lost.is_empty() && paper.failed.is_empty();
    }
    sound
}
