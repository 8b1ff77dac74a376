//! `record`: runs the nodes of racks each by itself, and writes down their inputs and outputs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use kernel::Time;
use rack::apart::{self, Outcome};
use rack::node::Nodes;
use rack::vectors::{self, Recording};
use report::ResultsDir;
use scenario::{BadInput, Located, Scenario};
use serde_json::Value;

use super::{Failure, default_directory, slug};

/// What came of one fabric.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// What the fabric is called.
    pub label: String,
    /// Where its vectors are; `None`: it has no nodes that run by themselves.
    pub directory: Option<PathBuf>,
    /// How many nodes there are.
    pub nodes: usize,
    /// What came of the flows.
    pub outcome: Outcome,
}

/// Why a fabric cannot be recorded.
pub const NO_NODES: &str = "with these settings and faults it has no nodes that run by themselves; \
     docs/wire-formats.md says which have";

/// Where vectors go if nobody says.
#[must_use]
pub fn directory_of(scenario: &Scenario) -> PathBuf {
    let mut directory = default_directory(scenario).into_os_string();
    directory.push("-vectors");
    directory.into()
}

/// Records the first `flows` flows over each fabric's nodes, below `directory`: in it, or of several fabrics in
/// one for each. `stop` is asked now and then; what was recorded until then is kept.
///
/// # Errors
/// When the input is bad, when no fabric has nodes of its own, or when files cannot be written.
pub fn record(
    scenario: &Scenario,
    directory: &Path,
    flows: u64,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Recorded>, Failure> {
    let racks = apart(scenario)?;
    let is_one = scenario.fabrics.len() == 1;
    let mut all = Vec::new();
    for (label, rack) in racks {
        let Some((nodes, config)) = rack else {
            let outcome = Outcome::default();
            all.push(Recorded { label, directory: None, nodes: 0, outcome });
            continue;
        };
        let place = if is_one { directory.to_owned() } else { directory.join(slug(&label)) };
        let mut workload = scenario.draw()?;
        let (mut nodes, recordings) = vectors::record(nodes, &config, scenario.seed);
        // A place that cannot be written to is told before anything is done.
        let results = ResultsDir::create(&place).map_err(Failure::Place)?;
        let until = scenario.run.time.map_or(Time::NEVER, |time| Time::ZERO + time);
        let outcome = apart::carry(&mut nodes, &mut workload, flows, until, &mut |_| {
            if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        write(&results, &recordings)?;
        all.push(Recorded { label, directory: Some(place), nodes: recordings.len(), outcome });
        if stop() {
            break;
        }
    }
    Ok(all)
}

/// Nodes of a rack and its table; none where it has none of their own.
type Apart = Option<(Nodes, Value)>;

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
