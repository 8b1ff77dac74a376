//! `kind = "jobs"`: several jobs at once, each an execution trace or a workload of its own, on nodes of
//! its choice.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use kernel::{Bytes, Span, Stream};
use rack::workload::config::{WorkloadConfig, WorkloadContext};
use rack::workload::execution::Execution;
use rack::workload::jobs::{Job, Jobs};
use rack::workload::limits::{LISTED_MAX, NODES_MAX, SPAN_MAX};
use rack::workload::operation::Algorithm;
use rack::workload::placement::{Placement, Wanted, place};
use rack::{Class, NodeId, Problem, Workload};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::json;

use crate::chakra::{self, Playing, Source};
use crate::trace;
use crate::workload::InputFiles;

/// Most jobs of a run (our choice: more than any table shows).
const JOBS_MAX: usize = 1_000;
/// Longest file that says which ranks a group has. Our choice.
const GROUPS_MAX: u64 = 1 << 24;

/// Several jobs at once, on nodes of their own: execution traces of MLCommons Chakra, and other
/// workloads. Results say how long each takes, and how long alone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobsConfig {
    /// The jobs, as [[workload.job]]. At least one. No default.
    pub job: Vec<JobConfig>,
    /// Runs each job alone on the same nodes, too, and reports how much longer it takes together with
    /// the others. Default false.
    #[serde(default)]
    pub alone: bool,
    /// What a network draws that carries nothing, as a share of what its parts draw: the rest goes
    /// with what is carried. It decides how the energy of the network is shared out among jobs. From 0
    /// to 1. Default 1, parts that draw what they are rated at whatever they carry (our choice: what
    /// fabrics state is rated power).
    #[serde(default = "rated")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub idle_power: f64,
}

const fn rated() -> f64 {
    1.0
}

/// A job: an execution trace, or a workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobConfig {
    /// What results call it: letters, digits, "-" and "_". No default.
    pub name: String,
    /// An execution trace of Chakra, a file a rank: the path up to the ranks, "traces/llama" for
    /// traces/llama.0.et, traces/llama.1.et and so on; or a list of the files, by rank. A relative path
    /// starts at the scenario file. Default: none; then work is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceFiles>,
    /// A file that says which ranks each group of the trace has, in JSON: {"0": [0, 1], "1": [2, 3]}.
    /// Default: a group is the ranks whose traces name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<PathBuf>,
    /// How collective operations of the trace are carried out. Default ring.
    #[serde(default)]
    pub collective: Algorithm,
    /// Operations that a rank computes a second, for computations of the trace that state how many
    /// (num_ops) and not how long. Unit: 1/s. Default: such computations are refused. Above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0))]
    pub compute_rate: Option<f64>,
    /// Traffic class of the trace; 0 is the most urgent. A workload has its own. Default 0.
    #[serde(default)]
    pub class: Class,
    /// A workload of any kind that ends by itself, in a rack of as many nodes as ranks says. Default:
    /// none; then trace is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<WorkloadConfig>,
    /// How many nodes the workload has. Default: as many as nodes names. A trace has its own number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    /// The nodes of the job, by rank: "0..15", or "3, 8..11", or "all". Several jobs may share some.
    /// Default: placement chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeList>,
    /// How nodes are chosen among those that no other job has. Default packed.
    #[serde(default)]
    pub placement: Placement,
    /// When the job starts. Unit: time. Default: the start of the run.
    #[serde(default)]
    pub start: Span,
    /// First 16 hexadecimal digits of the SHA-256 of the files of the trace, by rank, and of its
    /// groups. Default: not checked; a resolved scenario states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The files of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TraceFiles {
    /// All whose names begin so, and go on with the rank and ".et".
    Prefix(PathBuf),
    /// These, by rank.
    Listed(Vec<PathBuf>),
}

impl TraceFiles {
    /// The files by rank.
    fn files(&self) -> Result<Vec<PathBuf>, String> {
        match self {
            Self::Prefix(prefix) => chakra::files(prefix),
            Self::Listed(files) if files.is_empty() => {
                Err("found no files; expected one a rank".into())
            }
            Self::Listed(files) => Ok(files.clone()),
        }
    }

    /// The file of a rank, for messages.
    fn file(&self, rank: u32) -> String {
        match self {
            Self::Prefix(prefix) => format!("{}.{rank}.et", prefix.display()),
            Self::Listed(files) => {
                files.get(rank as usize).map_or(String::new(), |file| file.display().to_string())
            }
        }
    }

    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Prefix(prefix) => vec![prefix],
            Self::Listed(files) => files.iter_mut().collect(),
        }
    }
}

/// Numbers of nodes, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeList {
    /// All of the rack, in order.
    All,
    /// These.
    Listed(Vec<u32>),
}

/// The word for [`NodeList::All`].
const ALL: &str = "all";

impl NodeList {
    /// The nodes in a rack of so many.
    fn nodes(&self, rack: u32) -> Vec<u32> {
        match self {
            Self::All => (0..rack).collect(),
            Self::Listed(nodes) => nodes.clone(),
        }
    }
}

impl FromStr for NodeList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "found {text:?}; expected nodes such as \"0..15\" or \"3, 8..11\", each once, or \"all\""
            )
        };
        if text.trim() == ALL {
            return Ok(Self::All);
        }
        let mut nodes = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (first, last) = part.split_once("..").unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
            let (first, last) = (number(first)?, number(last)?);
            if last < first || last - first >= NODES_MAX {
                return Err(wrong());
            }
            nodes.extend(first..=last);
            // Ranges may overlap without end.
            if nodes.len() > NODES_MAX as usize {
                return Err(wrong());
            }
        }
        let distinct: BTreeSet<u32> = nodes.iter().copied().collect();
        if distinct.len() < nodes.len() { Err(wrong()) } else { Ok(Self::Listed(nodes)) }
    }
}

impl std::fmt::Display for NodeList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Listed(nodes) = self else { return f.write_str(ALL) };
        let mut parts = Vec::new();
        let mut rest = nodes.as_slice();
        while let Some(&first) = rest.first() {
            let steps = rest.windows(2).take_while(|pair| pair[1] == pair[0] + 1).count();
            let last = rest[steps];
            parts.push(if steps > 0 { format!("{first}..{last}") } else { first.to_string() });
            rest = &rest[steps + 1..];
        }
        f.write_str(&parts.join(", "))
    }
}

impl Serialize for NodeList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NodeList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for NodeList {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NodeList".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let part = "\\s*\\d+(\\s*\\.\\.\\s*\\d+)?\\s*";
        json_schema!({ "type": "string", "pattern": format!("^({part}(,{part})*|\\s*{ALL}\\s*)$") })
    }
}

/// What is known of the network that carries jobs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    /// What its parts draw. Unit: W.
    pub watts: f64,
    /// How many nodes it has.
    pub nodes: f64,
    /// What a node sends at most. Unit: bit/s.
    pub node_rate: f64,
    /// [`JobsConfig::idle_power`].
    pub idle: f64,
}

impl Network {
    /// The energy of a job on `nodes` nodes that takes `seconds` and sends `bytes`: for as long as it
    /// takes, the share of its nodes in what the network draws idle; and what carrying its data adds,
    /// which is all the rest where every node sends at its rate. Unit: J.
    pub(crate) fn joules(&self, nodes: f64, seconds: f64, bytes: f64) -> f64 {
        let idle = self.idle * nodes / self.nodes * seconds;
        let busy = (1.0 - self.idle) * bytes * 8.0 / (self.nodes * self.node_rate);
        self.watts * (idle + busy)
    }
}

/// Jobs, and their traces once they have been read.
#[derive(Clone, Debug)]
pub struct JobsChoice {
    /// As the scenario has them, paths absolute.
    pub config: JobsConfig,
    traces: Arc<OnceLock<Vec<Option<Execution>>>>,
    memory: Bytes,
}

impl JobsChoice {
    /// Finds the traces of `config`, relative to `folder`, and notes what is in them.
    ///
    /// # Errors
    /// Every problem, keys below the table.
    pub fn new(mut config: JobsConfig, folder: &Path, memory: Bytes) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        for (index, job) in config.job.iter_mut().enumerate() {
            let trace = job.trace.iter_mut().flat_map(TraceFiles::paths_mut);
            for path in trace.chain(&mut job.groups) {
                let joined = folder.join(&path);
                *path = std::path::absolute(&joined).unwrap_or(joined);
            }
            if let Err(problem) = job.pin() {
                problems.push(problem.below(&format!("job[{index}]")));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { config, traces: Arc::default(), memory })
    }

    /// What the jobs are called, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.config.job.iter().map(|job| job.name.as_str()).collect()
    }

    /// The files of all traces, by the key that names them.
    #[must_use]
    pub fn inputs(&self) -> Vec<InputFiles> {
        let mut inputs = Vec::new();
        for (index, job) in self.config.job.iter().enumerate() {
            // What was there when the scenario was read may be gone: whoever reads them says so.
            if let (Some(trace), Ok(paths)) = (&job.trace, job.files()) {
                let (key, original) = (format!("job[{index}].trace"), json!(trace));
                inputs.push(InputFiles { key, original, paths, is_list: true });
            }
            if let Some(groups) = &job.groups {
                let (key, original) = (format!("job[{index}].groups"), json!(groups));
                let paths = vec![groups.clone()];
                inputs.push(InputFiles { key, original, paths, is_list: false });
            }
        }
        inputs
    }

    /// The jobs in a rack; of `alone` that one alone runs.
    ///
    /// # Errors
    /// Every problem, keys below the table.
    pub fn build(
        &self,
        context: &WorkloadContext,
        alone: Option<usize>,
    ) -> Result<Box<dyn Workload>, Vec<Problem>> {
        self.check_names()?;
        let traces = self.traces()?;
        let places = self.places(traces, context)?;
        let (mut jobs, mut problems) = (Vec::new(), Vec::new());
        for (index, (job, nodes)) in self.config.job.iter().zip(places).enumerate() {
            let work = match &traces[index] {
                Some(execution) => {
                    let gate = execution.gate().map_err(|fault| vec![job.located(&fault)]);
                    gate.map(|gate| Box::new(gate) as Box<dyn Workload>)
                }
                None => job.generated(index, nodes.len() as u32, context),
            };
            let below = |problem: Problem| problem.below(&format!("job[{index}]"));
            match work {
                Ok(work) => {
                    jobs.push(Job { name: job.name.clone(), nodes, start: job.start, work });
                }
                Err(found) => problems.extend(found.into_iter().map(below)),
            }
        }
        // What waits for ends lies in lists.
        let listed = jobs.iter().filter(|job| job.work.is_reactive());
        let listed = listed.filter_map(|job| job.work.total()).fold(0, u64::saturating_add);
        if listed > LISTED_MAX {
            let message =
                format!("these jobs have {listed} flows in lists; at most {LISTED_MAX} fit");
            problems.push(Problem::new("job", message));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let jobs = Jobs::new(jobs);
        Ok(Box::new(match alone {
            Some(index) => jobs.alone(index),
            None => jobs,
        }))
    }

    fn check_names(&self) -> Result<(), Vec<Problem>> {
        let mut problems = Vec::new();
        let mut seen = BTreeSet::new();
        let mut complain = |index: usize, key: &str, message: String| {
            problems.push(Problem::new(format!("job[{index}].{key}"), message));
        };
        for (index, job) in self.config.job.iter().enumerate() {
            let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
            if job.name.is_empty() || !job.name.chars().all(is_plain) {
                let message =
                    format!("found {:?}; expected letters, digits, \"-\" and \"_\"", job.name);
                complain(index, "name", message);
            } else if !seen.insert(job.name.as_str()) {
                complain(index, "name", format!("there are two jobs named {:?}", job.name));
            }
            if job.start > SPAN_MAX {
                let message =
                    format!("found {}; a run ends after 30 days at the latest", job.start);
                complain(index, "start", message);
            }
            match (&job.trace, &job.work) {
                (None, None) => complain(
                    index,
                    "trace",
                    "missing: a job has a trace, or a workload as work".into(),
                ),
                (Some(_), Some(_)) => {
                    complain(index, "work", "there is a trace, too; remove one".into())
                }
                (Some(_), None) if job.ranks.is_some() => {
                    complain(
                        index,
                        "ranks",
                        "a trace has its own number of ranks; remove it".into(),
                    );
                }
                _ => {}
            }
        }
        let count = self.config.job.len();
        if !(1..=JOBS_MAX).contains(&count) {
            let message = format!("found {count} jobs; expected 1 to {JOBS_MAX}");
            problems.push(Problem::new("job", message));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The traces, which are read once: their digests have said that the files are the same.
    fn traces(&self) -> Result<&Vec<Option<Execution>>, Vec<Problem>> {
        if self.traces.get().is_none() {
            let (mut traces, mut problems) = (Vec::new(), Vec::new());
            let mut left = self.memory;
            for (index, job) in self.config.job.iter().enumerate() {
                match job.read(left) {
                    Ok(trace) => {
                        let taken = trace.as_ref().map_or(Bytes::ZERO, chakra::memory);
                        left = Bytes::new(left.get().saturating_sub(taken.get()));
                        traces.push(trace);
                    }
                    Err(problem) => problems.push(problem.below(&format!("job[{index}]"))),
                }
            }
            if !problems.is_empty() {
                return Err(problems);
            }
            _ = self.traces.set(traces);
        }
        Ok(self.traces.get().expect("they were read"))
    }

    /// The nodes of each job.
    fn places(
        &self,
        traces: &[Option<Execution>],
        context: &WorkloadContext,
    ) -> Result<Vec<Vec<NodeId>>, Vec<Problem>> {
        let (mut wanted, mut problems) = (Vec::new(), Vec::new());
        for (index, (job, trace)) in self.config.job.iter().zip(traces).enumerate() {
            match job.wanted(trace.as_ref(), context.nodes) {
                Ok(these) => wanted.push(these),
                Err(problem) => problems.push(problem.below(&format!("job[{index}]"))),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        place(&wanted, context.nodes, context.seed).map_err(|(job, free)| {
            let message = format!(
                "needs {} nodes, and {free} of the rack's {} are free; take a larger rack, or name nodes that \
                 jobs share",
                match wanted[job] {
                    Wanted::Some(count, _) => count,
                    Wanted::Nodes(_) => 0,
                },
                context.nodes
            );
            vec![Problem::new(format!("job[{job}]"), message)]
        })
    }
}

impl JobConfig {
    /// Which nodes it asks for.
    fn wanted(&self, trace: Option<&Execution>, rack: u32) -> Result<Wanted, Problem> {
        let ranks = trace.map(|trace| trace.ranks.len() as u32).or(self.ranks);
        let Some(nodes) = self.nodes.as_ref().map(|list| list.nodes(rack)) else {
            let message = "missing: give ranks, or nodes";
            let count = ranks.ok_or_else(|| Problem::new("ranks", message))?;
            if count == 0 {
                return Err(Problem::new("ranks", "found 0; expected at least 1"));
            }
            return Ok(Wanted::Some(count, self.placement));
        };
        if let Some(node) = nodes.iter().find(|&&node| node >= rack) {
            let message =
                format!("node {node} does not exist: the rack has nodes 0 to {}", rack - 1);
            return Err(Problem::new("nodes", message));
        }
        if ranks.is_some_and(|ranks| ranks as usize != nodes.len()) {
            let ranks = ranks.unwrap_or(0);
            let message =
                format!("found {} nodes for {ranks} ranks; expected one a rank", nodes.len());
            return Err(Problem::new("nodes", message));
        }
        Ok(Wanted::Nodes(nodes.into_iter().map(NodeId::new).collect()))
    }

    /// The flows of a workload.
    fn generated(
        &self,
        index: usize,
        nodes: u32,
        context: &WorkloadContext,
    ) -> Result<Box<dyn Workload>, Vec<Problem>> {
        let seed = Stream::new(context.seed, "workload/job", index as u64).below(u64::MAX);
        let context = WorkloadContext { nodes, seed, ..*context };
        let below = |problem: Problem| problem.below("work");
        let work = self.work.as_ref().expect("checked: a job without a trace has a workload");
        let work = work
            .build(&context)
            .map_err(|found| -> Vec<Problem> { found.into_iter().map(below).collect() })?;
        if work.total().is_none() {
            let message = "never ends by itself, or nobody knows after how many flows; say how many there are";
            return Err(vec![Problem::new("work", message)]);
        }
        Ok(work)
    }

    fn files(&self) -> Result<Vec<PathBuf>, Problem> {
        let Some(trace) = &self.trace else { return Ok(Vec::new()) };
        trace.files().map_err(|message| Problem::new("trace", message))
    }

    /// A fault of its trace, with the file.
    fn located(&self, fault: &rack::workload::execution::Fault) -> Problem {
        let file = self.trace.as_ref().map_or(String::new(), |trace| trace.file(fault.rank));
        let node = fault.node.map_or(String::new(), |node| format!(" node {node}:"));
        let message = format!("{file}:{node} {}", fault.message);
        Problem::new("trace", message)
    }

    fn read(&self, memory: Bytes) -> Result<Option<Execution>, Problem> {
        if self.trace.is_none() {
            return Ok(None);
        }
        let mut sources = Vec::new();
        for path in self.files()? {
            let name = path.display().to_string();
            let bytes = trace::open(&path).map_err(|error| unreadable("trace", &path, &error))?;
            sources.push(Source { name, bytes });
        }
        let groups = match &self.groups {
            Some(path) => Some((path.display().to_string(), read_groups(path)?)),
            None => None,
        };
        let groups = groups.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        let playing = Playing {
            algorithm: self.collective,
            compute_rate: self.compute_rate,
            class: self.class,
        };
        let read = chakra::read(sources, groups, playing, memory);
        read.map(Some).map_err(|message| Problem::new("trace", message))
    }

    /// Notes which content its paths stand for.
    fn pin(&mut self) -> Result<(), Problem> {
        let mut paths = self.files()?;
        if paths.is_empty() {
            return Ok(());
        }
        paths.extend(self.groups.clone());
        let found = trace::digest(&paths).map_err(|(path, error)| {
            let key = if self.groups.as_ref() == Some(&path) { "groups" } else { "trace" };
            unreadable(key, &path, &error)
        })?;
        if self.digest.as_ref().is_some_and(|expected| *expected != found) {
            let expected = self.digest.as_deref().unwrap_or_default();
            let message = format!("found a trace with digest {found}; expected {expected}");
            return Err(Problem::new("digest", message));
        }
        self.digest = Some(found);
        Ok(())
    }
}

fn read_groups(path: &Path) -> Result<String, Problem> {
    let read = || -> std::io::Result<String> {
        let mut text = String::new();
        let file: File = trace::open(path)?;
        file.take(GROUPS_MAX + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    let text = read().map_err(|error| unreadable("groups", path, &error))?;
    if text.len() as u64 > GROUPS_MAX {
        let message = format!("{} is longer than {GROUPS_MAX} bytes", path.display());
        return Err(Problem::new("groups", message));
    }
    Ok(text)
}

fn unreadable(key: &str, path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(key, format!("{} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 100 W, 4 nodes of 1 Gbit/s.
    #[test]
    fn energy_is_power_by_use_over_the_time_of_a_job() {
        let network = |idle| Network { watts: 100.0, nodes: 4.0, node_rate: 1e9, idle };
        // The whole network for two seconds, whatever it carries.
        assert_eq!(network(1.0).joules(4.0, 2.0, 5e8), 200.0);
        assert_eq!(network(1.0).joules(1.0, 2.0, 5e8), 50.0);
        // 5e8 bytes are 4 Gbit: one second of all nodes at their rate, however long it took.
        assert_eq!(network(0.0).joules(4.0, 2.0, 5e8), 100.0);
        assert_eq!(network(0.5).joules(2.0, 2.0, 5e8), 100.0 * (0.5 + 0.5));
        // At full use for all of its time it is what the parts are rated at.
        assert_eq!(network(0.3).joules(4.0, 1.0, 5e8), 100.0);
    }

    #[test]
    fn lists_of_nodes_are_read_and_written_shortly() {
        for (text, nodes, written) in [
            ("0..3", vec![0, 1, 2, 3], "0..3"),
            ("3, 8..10,2", vec![3, 8, 9, 10, 2], "3, 8..10, 2"),
            (" 7 ", vec![7], "7"),
        ] {
            let list: NodeList = text.parse().unwrap();
            assert_eq!(list.nodes(99), nodes);
            assert_eq!(list.to_string(), written);
        }
        let all: NodeList = "all".parse().unwrap();
        assert_eq!((all.nodes(3), all.to_string()), (vec![0, 1, 2], "all".into()));
        for text in ["", "a", "1..", "4..2", "1, 1", "0..3, 2", "-1", "0..4294967295"] {
            let error = text.parse::<NodeList>().unwrap_err();
            assert!(error.contains("expected nodes such as"), "{text}: {error}");
        }
    }
}
