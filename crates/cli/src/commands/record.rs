//! `rackloom record`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use kernel::Time;
use rack::apart::{self, Outcome};
use rack::node::Nodes;
use rack::vectors::{self, Recording};
use report::ResultsDir;
use scenario::{BadInput, Located, Registry, Scenario};
use serde_json::{Value, json};

use super::{DONE, settings};
use crate::args::RecordArguments;
use crate::engine::{self, EXIT_BROKEN, EXIT_INTERRUPTED, Failure};
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
    let directory = arguments.out.clone().unwrap_or_else(|| default_directory(&scenario));
    let racks = apart(&scenario)?;
    let is_one = scenario.fabrics.len() == 1;
    let mut results = Vec::new();
    for (label, rack) in racks {
        let Some((nodes, config)) = rack else {
            output.note(&format!("{label}: {NO_NODES}; not recorded"));
            continue;
        };
        let place = if is_one { directory.clone() } else { directory.join(engine::slug(&label)) };
        let mut workload = scenario.draw()?;
        let (mut nodes, recordings) = vectors::record(nodes, &config, scenario.seed);
        // A place that cannot be written to is told before anything is done.
        let place = ResultsDir::create(&place).map_err(Failure::Place)?;
        let until = scenario.run.time.map_or(Time::NEVER, |time| Time::ZERO + time);
        let outcome = apart::carry(&mut nodes, &mut workload, arguments.flows, until, &mut |_| {
            if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        write(&place, &recordings)?;
        results.push((label, outcome, recordings.len()));
        if interrupt::is_asked() {
            break;
        }
    }
    let json = || Value::Array(results.iter().map(to_json).collect());
    output.result(|_| results.iter().map(text).collect::<Vec<_>>().join("\n"), json);
    output.note(&format!("Vectors are in {}", directory.display()));
    let is_open =
        |&(_, Outcome { begun, completed, failed, .. }, _): &Recorded| completed + failed < begun;
    Ok(if interrupt::is_asked() {
        EXIT_INTERRUPTED
    } else if results.iter().any(is_open) {
        output.error("flows were open in the end; the vectors are of what was done until then");
        EXIT_BROKEN
    } else {
        DONE
    })
}

/// A fabric, what came of its run, how many nodes it has.
type Recorded = (String, Outcome, usize);

/// Nodes of a rack and its table; none where it has none of their own.
type Apart = Option<(Nodes, Value)>;

/// Why a fabric cannot be recorded.
const NO_NODES: &str = "with these settings and faults it has no nodes that run by themselves; \
     docs/wire-formats.md says which have";

/// The nodes of each fabric.
fn apart(scenario: &Scenario) -> Result<Vec<(String, Apart)>, BadInput> {
    let located = |problem: rack::Problem| Located::whole(&problem.key, problem.message);
    let mut all = Vec::new();
    for fabric in &scenario.fabrics {
        let rack = fabric.plan.rack(&scenario.expanded_faults(), scenario.seed);
        let rack =
            rack.map_err(|problems| BadInput::new(problems.into_iter().map(located).collect()))?;
        let nodes = rack.apart().map(|nodes| (nodes, fabric.plan.config().clone()));
        all.push((fabric.label.clone(), nodes));
    }
    match all.iter().any(|(_, nodes)| nodes.is_some()) {
        true => Ok(all),
        false => {
            let refused = |(label, _): &(String, Apart)| Located::whole(label, NO_NODES);
            Err(BadInput::new(all.iter().map(refused).collect()))
        }
    }
}

/// Writes a file a node, and their schema.
fn write(place: &ResultsDir, recordings: &[Arc<Mutex<Recording>>]) -> Result<(), Failure> {
    let width = recordings.len().to_string().len();
    for (number, recording) in recordings.iter().enumerate() {
        let recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_string(&*recording).expect("plain numbers and text");
        // A step a line.
        let text = text.replace("{\"inputs\"", "\n{\"inputs\"");
        place.write(&format!("node-{number:0width$}.json"), &(text + "\n"))?;
    }
    let schema = serde_json::to_value(vectors::schema()).expect("a schema is JSON");
    Ok(place.write_json("schema.json", &schema)?)
}

fn default_directory(scenario: &Scenario) -> PathBuf {
    let mut directory = engine::default_directory(scenario).into_os_string();
    directory.push("-vectors");
    directory.into()
}

fn text((label, outcome, nodes): &Recorded) -> String {
    let Outcome { begun, completed, failed, messages, end, .. } = outcome;
    format!(
        "{label}: {nodes} nodes, {messages} messages until {end}; of {begun} flows {completed} completed, \
         {failed} failed"
    )
}

fn to_json((label, outcome, nodes): &Recorded) -> Value {
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
