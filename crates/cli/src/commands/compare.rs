//! `rackloom compare`.

use std::ops::ControlFlow;

use crate::engine::{self, Budget, EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use rack::results::RunResult;
use rack::run::Stop;
use report::comparison_text;
use scenario::{BadInput, Registry, Scenario};
use serde_json::Value;

use super::{DONE, jobs, settings};
use crate::args::CompareArguments;
use crate::interrupt;
use crate::output::Output;
use crate::progress::Meters;

/// Runs the same flows through several fabrics.
pub fn compare(
    arguments: &CompareArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let settings = settings(&arguments.settings)?;
    let mut problems = Vec::new();
    let mut scenarios = Vec::new();
    for path in &arguments.scenarios {
        match Scenario::open(path, &settings, registry) {
            Ok(scenario) => scenarios.push(scenario),
            Err(bad) => problems.extend(bad.into_problems()),
        }
    }
    BadInput::unless_empty(problems)?;
    let scenario = Scenario::join(scenarios)?;
    let directory = arguments.out.clone().unwrap_or_else(|| engine::default_directory(&scenario));
    let labels: Vec<_> = scenario.fabrics.iter().map(|choice| choice.label.clone()).collect();
    let meters = Meters::new(&labels, output);
    let tell = |text: &str| meters.say(text);
    let budget = Budget::new(jobs(arguments.jobs), registry.memory(), &tell);
    let compared = engine::compare(&scenario, &directory, &budget, &|index, progress| {
        meters.run(index, progress);
        if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(meters);
    let compared = compared?;
    let runs: Vec<(&str, &Value)> =
        compared.results.iter().map(|run| (run.label.as_str(), &run.summary)).collect();
    output.result(|style| comparison_text(&runs, style), || compared.summaries());
    output.note(&format!("Results are in {}", compared.directory.display()));
    if compared.interrupted {
        output.error("interrupted: runs that were stopped before their end say so");
        return Ok(EXIT_INTERRUPTED);
    }
    let is_stuck = |run: &&RunResult| run.summary["stopped"] == Stop::NoProgress.as_str();
    for stuck in compared.results.iter().filter(is_stuck) {
        output.error(&format!("{}: the run ended with flows open that nothing moves", stuck.label));
    }
    Ok(if compared.results.iter().any(|run| is_stuck(&run)) { EXIT_BROKEN } else { DONE })
}
