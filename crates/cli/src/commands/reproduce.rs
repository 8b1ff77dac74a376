//! `rackloom reproduce`.

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::engine::{EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use crate::reproduce::{self, Effort};

use super::DONE;
use crate::args::ReproduceArguments;
use crate::interrupt;
use crate::output::Output;
use crate::progress::{Meter, Step};

/// Steps into which one experiment's progress is cut.
const STEPS: f64 = 1_000.0;

/// Repeats the experiments of a paper.
pub fn reproduce(arguments: &ReproduceArguments, output: &mut Output) -> Result<u8, Failure> {
    let paper = reproduce::paper(&arguments.paper)?;
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
    output.table(&report::claims_table(&done.claims));
    if !done.claims.is_empty() {
        output.note(&format!("Results are in {}", directory.display()));
    }
    for (experiment, why) in &done.broken {
        output.error(&format!("{experiment}: {why}"));
    }
    for claim in &done.lost {
        output.error(&format!("{claim}: was reproduced in the last release and is not any more"));
    }
    let sound = done.broken.is_empty() && done.lost.is_empty();
    Ok(match (done.interrupted, sound) {
        (true, _) => EXIT_INTERRUPTED,
        (false, false) => EXIT_BROKEN,
        (false, true) => DONE,
    })
}
