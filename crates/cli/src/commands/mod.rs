//! One file a command.

mod aquila;
mod bench;
mod compare;
mod describe;
mod list;
mod record;
mod reproduce;
mod run;
mod scoc;
mod search;
mod sweep;
mod view;
mod why;

use std::num::NonZero;
use std::thread::available_parallelism;

use crate::engine::{Failure, registry};
use clap::CommandFactory;
use scenario::{Argument, BadInput};

use crate::args::{Arguments, Command, Settings};
use crate::extras::Extras;
use crate::output::Output;

/// Exit code of what was done.
const DONE: u8 = 0;

/// Carries out `command`.
///
/// # Errors
/// When it could not be.
pub fn carry_out(
    command: Command,
    extras: Option<&dyn Extras>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let registry = registry();
    match command {
        Command::Run(arguments) => run::run(&arguments, &registry, output),
        Command::Compare(arguments) => compare::compare(&arguments, &registry, output),
        Command::Sweep(arguments) => sweep::sweep(&arguments, &registry, extras, output),
        Command::Search(arguments) => search::search(&arguments, &registry, extras, output),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments, extras, output),
        Command::Why(arguments) => why::why(&arguments, output),
        Command::View(arguments) => view::view(&arguments, output),
        Command::Record(arguments) => record::record(&arguments, &registry, output),
        Command::List(arguments) => list::list(&arguments, &registry, output),
        Command::Describe(arguments) => describe::describe(&arguments, &registry, output),
        Command::Schema => {
            output.print(&format!("{:#}", scenario::schema::scenario(&registry)));
            Ok(DONE)
        }
        Command::Bench(arguments) => bench::bench(&arguments, &registry, output),
        Command::Scoc(arguments) => scoc::scoc(&arguments, output),
        Command::Aquila(arguments) => aquila::aquila(&arguments, output),
        Command::Completions(arguments) => {
            let mut script = Vec::new();
            let mut command = Arguments::command();
            clap_complete::generate(arguments.shell, &mut command, "rackloom", &mut script);
            output.print(&String::from_utf8_lossy(&script));
            Ok(DONE)
        }
    }
}

/// How many runs at a time: as many as asked for, or as there are cores.
fn jobs(asked: Option<NonZero<usize>>) -> usize {
    asked.or_else(|| available_parallelism().ok()).map_or(1, NonZero::get)
}

/// The settings of a command line, all problems at once.
fn settings(settings: &Settings) -> Result<Vec<Argument>, BadInput> {
    let mut problems = Vec::new();
    let mut all = Vec::new();
    for text in &settings.set {
        match Argument::parse(text) {
            Ok(argument) => all.push(argument),
            Err(bad) => problems.extend(bad.into_problems()),
        }
    }
    if let Some(seed) = &settings.seed {
        all.push(Argument::text("seed", seed, &format!("--seed {seed}")));
    }
    BadInput::unless_empty(problems)?;
    Ok(all)
}
