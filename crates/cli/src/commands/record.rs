//! `rackloom record`.

use kernel::Time;
use rack::apart::Outcome;
use scenario::{Registry, Scenario};
use serde_json::{Value, json};

use super::{DONE, settings};
use crate::args::RecordArguments;
use crate::engine::record::{NO_NODES, Recorded, directory_of, record as record_nodes};
use crate::engine::{EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
use crate::interrupt;
use crate::output::Output;

/// Carries flows over the nodes of racks, each by itself, and writes down what they are given and do.
pub fn record(
    arguments: &RecordArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let settings = settings(&arguments.settings)?;
    let scenario = Scenario::open(&arguments.scenario, &settings, registry)?;
    let directory = arguments.out.clone().unwrap_or_else(|| directory_of(&scenario));
    let all = record_nodes(&scenario, &directory, arguments.flows, &interrupt::is_asked)?;
    let (found, refused): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|recorded| recorded.directory.is_some());
    for Recorded { label, .. } in &refused {
        output.note(&format!("{label}: {NO_NODES}; not recorded"));
    }
    let json = || Value::Array(found.iter().map(to_json).collect());
    output.result(|_| found.iter().map(text).collect::<Vec<_>>().join("\n"), json);
    output.note(&format!("Vectors are in {}", directory.display()));
    let is_open = |recorded: &Recorded| {
        let Outcome { begun, completed, failed, .. } = recorded.outcome;
        completed + failed < begun
    };
    Ok(if interrupt::is_asked() {
        EXIT_INTERRUPTED
    } else if found.iter().any(is_open) {
        output.error("flows were open in the end; the vectors are of what was done until then");
        EXIT_BROKEN
    } else {
        DONE
    })
}

fn text(Recorded { label, outcome, nodes, .. }: &Recorded) -> String {
    let Outcome { begun, completed, failed, messages, end, .. } = outcome;
    format!(
        "{label}: {nodes} nodes, {messages} messages until {end}; of {begun} flows {completed} completed, \
         {failed} failed"
    )
}

fn to_json(Recorded { label, outcome, nodes, .. }: &Recorded) -> Value {
    json!({
        "fabric": label,
        "nodes": nodes,
        "messages": outcome.messages,
        "flows": outcome.begun,
        "completed": outcome.completed,
        "failed": outcome.failed,
        "simulated_seconds": (outcome.end - Time::ZERO).as_seconds(),
    })
}
