//! `rackloom record`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::PoisonError;

use kernel::Time;
use rack::apart::{self, Outcome};
use rack::vectors;
use report::ResultsDir;
use scenario::{BadInput, Located, Registry, Scenario};
use serde_json::json;

use super::{DONE, settings};
use crate::args::RecordArguments;
use crate::engine::{self, EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use crate::interrupt;
use crate::output::Output;

/// Carries flows over the nodes of a rack, each by itself, and writes down what they are given and do.
pub fn record(
    arguments: &RecordArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let settings = settings(&arguments.settings)?;
    let scenario = Scenario::open(&arguments.scenario, &settings, registry)?;
    let nodes = nodes_of(&scenario)?;
    let mut workload = scenario.draw()?;
    let directory = arguments.out.clone().unwrap_or_else(|| default_directory(&scenario));
    let place = ResultsDir::create(&directory).map_err(Failure::Place)?;
    let config = scenario.fabrics[0].plan.config();
    let (mut nodes, recordings) = vectors::record(nodes, config, scenario.seed);
    let until = scenario.run.time.map_or(Time::NEVER, |time| Time::ZERO + time);
    let outcome = apart::carry(&mut nodes, &mut workload, arguments.flows, until, &mut |_| {
        if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let width = recordings.len().to_string().len();
    for (number, recording) in recordings.iter().enumerate() {
        let recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_string(&*recording).expect("plain numbers and text");
        // A step a line.
        let text = text.replace("{\"inputs\"", "\n{\"inputs\"");
        place.write(&format!("node-{number:0width$}.json"), &(text + "\n"))?;
    }
    let schema = serde_json::to_value(vectors::schema()).expect("a schema is JSON");
    place.write_json("schema.json", &schema)?;
    let count = recordings.len();
    output.result(|_| text(&outcome, count), || to_json(&outcome, count));
    output.note(&format!("Vectors are in {}", directory.display()));
    Ok(match outcome {
        _ if interrupt::is_asked() => EXIT_INTERRUPTED,
        Outcome { begun, completed, failed, .. } if completed + failed < begun => {
            output.error("flows were open in the end; the vectors are of what was done until then");
            EXIT_BROKEN
        }
        _ => DONE,
    })
}

/// The nodes of the scenario's one fabric.
fn nodes_of(scenario: &Scenario) -> Result<rack::node::Nodes, BadInput> {
    let bad = |message: String| BadInput::single(Located::whole(&scenario.name, message));
    let [fabric] = &scenario.fabrics[..] else {
        let count = scenario.fabrics.len();
        return Err(bad(format!("has {count} fabrics; record them one by one")));
    };
    let rack = fabric.plan.rack(&scenario.expanded_faults(), scenario.seed);
    let rack = rack.map_err(|problems| {
        let located = |problem: rack::Problem| Located::whole(&problem.key, problem.message);
        BadInput::new(problems.into_iter().map(located).collect())
    })?;
    rack.apart().ok_or_else(|| {
        let kind = fabric.kind;
        bad(format!("fabric {kind:?} with these settings has no nodes that run by themselves"))
    })
}

fn default_directory(scenario: &Scenario) -> PathBuf {
    let mut directory = engine::default_directory(scenario).into_os_string();
    directory.push("-vectors");
    directory.into()
}

fn text(outcome: &Outcome, nodes: usize) -> String {
    let Outcome { begun, completed, failed, messages, end, .. } = outcome;
    format!(
        "{nodes} nodes, {messages} messages until {end}; of {begun} flows {completed} completed, {failed} failed"
    )
}

fn to_json(outcome: &Outcome, nodes: usize) -> serde_json::Value {
    json!({
        "nodes": nodes,
        "messages": outcome.messages,
        "flows": outcome.begun,
        "completed": outcome.completed,
        "failed": outcome.failed,
        "simulated_seconds": (outcome.end - Time::ZERO).as_seconds(),
    })
}
