//! `rackloom aquila bootstrap`: a Clique boots itself, in simulated time.

use std::ops::ControlFlow;
use std::path::PathBuf;

use rack::Problem;
use report::Unit;
use reproductions::aquila::boot::{Boot, Outcome};
use scenario::{BadInput, Located};

use super::super::DONE;
use crate::args::BootstrapArguments;
use crate::engine::{self, EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use crate::interrupt;
use crate::output::Output;
use crate::progress::{Meter, Step};

/// Stages that are named where a bootstrap does not come to its end.
const LEFT_MAX: usize = 5;

/// Boots a Clique.
pub fn bootstrap(arguments: &BootstrapArguments, output: &mut Output) -> Result<u8, Failure> {
    let boot = asked(arguments);
    boot.config().map_err(bad_input)?;
    let directory = arguments.out.clone().unwrap_or_else(|| {
        PathBuf::from("results").join(format!("aquila-bootstrap-{}", boot.profile))
    });
    let mut meter = Meter::new("bootstrap", output);
    let run = |boot: &Boot, busy: &engine::Busy| {
        boot.run(&mut |ready, total, now| {
            let seconds = (now - kernel::Time::ZERO).as_seconds();
            let note = format!("{} simulated", Unit::Seconds.format(seconds));
            meter.update(|| Step { done: ready, total: Some(total), what: "TiNs ready", note });
            if interrupt::is_asked() {
                busy.stopping();
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .map_err(|problems| Failure::from(bad_input(problems)))
    };
    let outcome = engine::boot::store(&boot, &directory, run)?;
    drop(meter);
    output.result(|style| outcome.table().to_text(style), || outcome.summary(crate::VERSION));
    output.note(&format!("Results are in {}", directory.display()));
    Ok(ending(&outcome, output))
}

/// The exit code, and why it is none of success.
fn ending(outcome: &Outcome, output: &Output) -> u8 {
    if outcome.is_interrupted {
        output.error("interrupted: the results cover the bootstrap up to here and say so");
        return EXIT_INTERRUPTED;
    }
    let left = outcome.left();
    if !outcome.is_done && left.is_empty() {
        output.error("not all is done that was asked for; --limit gives it more time");
        return EXIT_BROKEN;
    }
    if !outcome.is_done {
        let some: Vec<String> = left
            .iter()
            .take(LEFT_MAX)
            .map(|(tin, stage)| format!("TiN {tin}: {stage:?}"))
            .collect();
        output.error(&format!(
            "the bootstrap did not come to its end: {} TiNs are not ready ({}); --limit gives it more time",
            left.len(),
            some.join(", ")
        ));
        return EXIT_BROKEN;
    }
    if let Some((tin, why)) = outcome.not_upgraded().first() {
        output.error(&format!("the upgrade ended with TiN {tin}: {why}"));
        return EXIT_BROKEN;
    }
    DONE
}

fn asked(arguments: &BootstrapArguments) -> Boot {
    Boot {
        profile: arguments.profile,
        connected: arguments.connected,
        targets: arguments.targets,
        mos_interval: arguments.mos_interval,
        entry_time: arguments.entry_time,
        mos_lost: arguments.mos_lost,
        seed: arguments.seed,
        faults: arguments.fault.clone(),
        at_once: arguments.at_once,
        versions: arguments.ip,
        limit: arguments.limit,
    }
}

/// The option that each problem is about.
fn bad_input(problems: Vec<Problem>) -> BadInput {
    let located = |problem: Problem| Located::whole(&format!("--{}", problem.key), problem.message);
    BadInput::new(problems.into_iter().map(located).collect())
}
