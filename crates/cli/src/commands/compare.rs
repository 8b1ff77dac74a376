//! `rackloom compare`.

use std::ops::ControlFlow;

use crate::engine::{self, EXIT_INTERRUPTED, Failure};
use report::comparison_text;
use scenario::{BadInput, Registry, Scenario};
use serde_json::Value;

use super::{DONE, settings};
use crate::args::CompareArguments;
use crate::interrupt;
use crate::output::Output;
use crate::progress::Meter;

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
    let mut meter = (0, Meter::new(&labels[0], output));
    let compared = engine::compare(&scenario, &directory, &mut |index, progress| {
        if index != meter.0 {
            meter = (index, Meter::new(&labels[index], output));
        }
        meter.1.run(progress);
        if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(meter);
    let compared = compared?;
    let runs: Vec<(&str, &Value)> =
        compared.results.iter().map(|run| (run.label.as_str(), &run.summary)).collect();
    output.result(|style| comparison_text(&runs, style), || compared.summaries());
    output.note(&format!("Results are in {}", compared.directory.display()));
    if compared.interrupted {
        output.error("interrupted: the last run shown was stopped before its end and says so");
        return Ok(EXIT_INTERRUPTED);
    }
    Ok(DONE)
}
