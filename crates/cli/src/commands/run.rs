//! `rackloom run`.

use std::ops::ControlFlow;

use crate::engine::{self, EXIT_BROKEN, EXIT_INTERRUPTED, Failure, estimate};
use report::run_text;
use scenario::{BadInput, Located, Registry, Scenario, TraceChoice};
use serde_json::Value;

use super::{DONE, settings};
use crate::args::RunArguments;
use crate::interrupt;
use crate::output::Output;
use crate::progress::Meter;

/// Runs one scenario.
pub fn run(
    arguments: &RunArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let settings = settings(&arguments.settings)?;
    let scenario = Scenario::open(&arguments.scenario, &settings, registry)?;
    if arguments.estimate {
        let estimates = estimate::estimate(&scenario, &interrupt::is_asked)?;
        output.table(&estimate::table(&estimates));
        return Ok(DONE);
    }
    if scenario.fabrics.len() > 1 {
        let name = arguments.scenario.display().to_string();
        let count = scenario.fabrics.len();
        let message = format!("has {count} fabrics; use `rackloom compare {name}`");
        return Err(BadInput::single(Located::whole(&name, message)).into());
    }
    let directory = arguments.out.clone().unwrap_or_else(|| engine::default_directory(&scenario));
    let mut meter = Meter::new(&scenario.name, output);
    let finished = engine::run(&scenario, &directory, &mut |progress| {
        meter.run(progress);
        if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    drop(meter);
    let finished = finished?;
    let summary = &finished.result.summary;
    output.result(|style| run_text(&finished.result.label, summary, style), || summary.clone());
    output.note(&format!("Results are in {}", finished.directory.display()));
    if finished.is_trace_full {
        output.note(&format!(
            "Packets were recorded {} times, and there was more: no {} is stored; choose fewer flows, or smaller \
             ones, with run.trace",
            rack::trace::HOPS_MAX,
            engine::TRACE
        ));
    }
    if let Some(message) = unoffered(&scenario, summary) {
        output.note(&message);
    }
    if finished.is_interrupted() {
        output.error("interrupted: the results cover the run up to here and say so");
        return Ok(EXIT_INTERRUPTED);
    }
    if finished.is_stuck() {
        output.error(
            "the run ended with flows open that nothing moves any further; the results say so",
        );
        return Ok(EXIT_BROKEN);
    }
    Ok(DONE)
}

/// What to say of flows that `run.trace` names and that the run did not offer.
fn unoffered(scenario: &Scenario, summary: &Value) -> Option<String> {
    let Some(TraceChoice::Flows(numbers)) = &scenario.run.trace else { return None };
    let offered = summary["flows"]["offered"].as_u64()?;
    let missing: Vec<String> =
        numbers.iter().filter(|&&number| number >= offered).map(u64::to_string).collect();
    let (count, last) = (missing.len(), offered.checked_sub(1)?);
    let flows = if count == 1 { "flow" } else { "flows" };
    (count > 0).then(|| {
        format!(
            "run.trace asks for {flows} {}, which this run did not offer: it offered flows 0 to {last}",
            missing.join(", ")
        )
    })
}
