//! The `[workload]` table: one of the generators, or a trace file.
//!
//! The generators know no files, so the trace is read here and handed to them as rows.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kernel::{Bytes, Rate, Span};
use rack::workload::config::{Nominal, WorkloadConfig, WorkloadContext};
use rack::workload::trace::from_rows;
use rack::{Problem, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::jobs::{JobsChoice, JobsConfig};
use crate::problem::Located;
use crate::trace::capture::{Captured, Capturing, TIMEOUT_DEFAULT};
use crate::trace::{Contents, Offered, Reading, TraceFormat};
use crate::{registry, trace};

/// The `kind` that stands for a trace file.
pub const TRACE: &str = "trace";
/// The `kind` that stands for several jobs.
pub const JOBS: &str = "jobs";

/// What a scenario carries.
#[derive(Clone)]
pub struct WorkloadChoice {
    source: Source,
    /// Memory that a trace may take.
    memory: Bytes,
    /// What a trace offers by itself, known once it has been drawn, which reading a scenario does.
    offered: Arc<OnceLock<Offered>>,
    /// What of a capture has become flows, likewise.
    captured: Arc<OnceLock<Captured>>,
    /// What results call files that are read from copies, by their keys.
    originals: Vec<(String, Value)>,
    /// The node rate that load 1.0 refers to, if the scenario states one.
    pub load_rate: Option<Rate>,
}

#[derive(Clone)]
enum Source {
    Generator(WorkloadConfig),
    Trace(TraceConfig),
    Jobs(JobsChoice),
}

/// Flows from a file: a table in CSV or Parquet with the columns start, src, dst, bytes and
/// optionally class and after; flows.parquet of an earlier run; a connection matrix of htsim; a
/// list of flows of HPCC; a capture of packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceConfig {
    /// The file; a relative path starts at the scenario file. No default.
    pub path: PathBuf,
    /// How it is written. Default: what its name ends in: .csv, .parquet (also flows.parquet of an
    /// earlier run), .cm or .tm (htsim), .pcap or .pcapng.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<TraceFormat>,
    /// The number that the file gives to node 0: what numbers its hosts from 1 says 1. Default: 0.
    #[serde(default)]
    pub first_node: u32,
    /// Stretches the gaps between starts by one factor, so that the flows come to this load; sizes
    /// and order stay, and the first flow starts at zero. Load is bytes / (node rate x nodes x time
    /// from the first start to the last). Not for flows that wait for others. Default: starts are
    /// those of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Of a capture: the address of each node, from node 0 on; packets from and to others are left out.
    /// Default: nodes are given to addresses in the order in which they appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Vec<IpAddr>>,
    /// Of a capture: a flow that nothing has ended is over when nothing has come for so long. Unit:
    /// time. Default 15 s (our choice: NetFlow's inactive timer).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_timeout: Option<Span>,
    /// First 16 hexadecimal digits of the SHA-256 of the file, to be sure that it is still the
    /// same. Default: not checked; a resolved scenario states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Files that a workload is read from.
#[derive(Clone, PartialEq, Debug)]
pub struct InputFiles {
    /// The key of the workload's table that names them.
    pub key: String,
    /// What stands there.
    pub original: Value,
    /// The files.
    pub paths: Vec<PathBuf>,
    /// Whether the key takes a list of them, and not one alone.
    pub is_list: bool,
}

/// A path from the root, as far as that can be known.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

impl WorkloadChoice {
    /// Reads the `[workload]` table of a scenario that lies in `folder`; a trace may take `memory`.
    ///
    /// # Errors
    /// Every problem, keys below the table.
    pub fn read(table: Value, folder: &Path, memory: Bytes) -> Result<Self, Vec<Problem>> {
        let mut table = match table {
            Value::Object(table) => table,
            _ => Map::new(),
        };
        let load_rate = table.shift_remove("load_rate").map(registry::read).transpose()?;
        if table.get("kind").is_some_and(|kind| kind == TRACE) {
            table.shift_remove("kind");
            let mut trace: TraceConfig = registry::read(Value::Object(table))?;
            trace.path = folder.join(&trace.path);
            trace.format = Some(trace.format()?);
            trace.check_capture()?;
            trace.pin()?;
            return Ok(Self::new(Source::Trace(trace), memory, load_rate));
        }
        if table.get("kind").is_some_and(|kind| kind == JOBS) {
            table.shift_remove("kind");
            let jobs: JobsConfig = registry::read(Value::Object(table))?;
            let jobs = JobsChoice::new(jobs, folder, memory)?;
            return Ok(Self::new(Source::Jobs(jobs), memory, load_rate));
        }
        let generator = registry::read(Value::Object(table))?;
        Ok(Self::new(Source::Generator(generator), memory, load_rate))
    }

    fn new(source: Source, memory: Bytes, load_rate: Option<Rate>) -> Self {
        let (offered, captured) = (Arc::default(), Arc::default());
        Self { source, memory, offered, captured, originals: Vec::new(), load_rate }
    }

    /// The files that it is read from, paths absolute; none of a generator.
    #[must_use]
    pub fn inputs(&self) -> Vec<InputFiles> {
        match &self.source {
            Source::Generator(_) => Vec::new(),
            Source::Trace(trace) => {
                let path = absolute(&trace.path);
                let original = json!(path);
                let (key, paths) = ("path".into(), vec![path]);
                vec![InputFiles { key, original, paths, is_list: false }]
            }
            Source::Jobs(jobs) => jobs.inputs(),
        }
    }

    /// Says that its files are copies: results name these, by key, as they would where they are.
    pub fn set_originals(&mut self, originals: Vec<(String, Value)>) {
        self.originals = originals;
    }

    /// The table with all defaults filled in.
    #[must_use]
    pub fn to_value(&self, load_rate: Rate) -> Value {
        let mut value = match &self.source {
            Source::Generator(generator) => json!(generator),
            Source::Trace(trace) => {
                // Absolute, since the resolved scenario will lie in another folder.
                let path = absolute(&trace.path);
                let mut value = json!({ "kind": TRACE });
                let table = value.as_object_mut().expect("it is a table");
                table.extend(
                    json!(TraceConfig { path, ..trace.clone() })
                        .as_object()
                        .cloned()
                        .unwrap_or_default(),
                );
                value
            }
            Source::Jobs(jobs) => {
                let mut value = json!({ "kind": JOBS });
                let table = value.as_object_mut().expect("it is a table");
                table.extend(json!(jobs.config).as_object().cloned().unwrap_or_default());
                value
            }
        };
        for (key, original) in &self.originals {
            let pointer = format!("/{}", key.replace(['[', '.'], "/").replace(']', ""));
            if let Some(place) = value.pointer_mut(&pointer) {
                place.clone_from(original);
            }
        }
        value["load_rate"] = json!(load_rate);
        value
    }

    /// Takes out of `table` what does not change the flows: the path of a trace.
    pub fn forget_path(&self, table: &mut Value) {
        let Value::Object(table) = table else { return };
        match &self.source {
            Source::Generator(_) => {}
            Source::Trace(_) => _ = table.shift_remove("path"),
            Source::Jobs(_) => {
                let jobs = table.get_mut("job").and_then(Value::as_array_mut);
                for job in jobs.into_iter().flatten().filter_map(Value::as_object_mut) {
                    job.shift_remove("trace");
                    job.shift_remove("groups");
                }
            }
        }
    }

    /// What it offers by its definition.
    #[must_use]
    pub fn nominal(&self, context: &WorkloadContext) -> Option<Nominal> {
        match &self.source {
            Source::Generator(generator) => generator.nominal(context).ok(),
            Source::Trace(trace) => Some(self.offered.get()?.nominal(trace.load, context)),
            // Their pace is the network's.
            Source::Jobs(_) => None,
        }
    }

    /// The load of a trace as it stands in its file; none of a generator, and of flows that wait
    /// for others.
    #[must_use]
    pub fn load_of_trace(&self, context: &WorkloadContext) -> Option<f64> {
        self.offered.get()?.load(context)
    }

    /// What of a capture has become flows and what has not, once it has been drawn.
    #[must_use]
    pub fn captured(&self) -> Option<Captured> {
        self.captured.get().copied()
    }

    /// Draws it for a rack.
    ///
    /// # Errors
    /// Every problem, keys below the table.
    pub fn build(&self, context: &WorkloadContext) -> Result<Box<dyn Workload>, Vec<Problem>> {
        match &self.source {
            Source::Generator(generator) => generator.build(context),
            Source::Trace(config) => {
                let Contents { mut rows, captured } = config.contents(context, self.memory)?;
                captured.into_iter().for_each(|told| _ = self.captured.set(told));
                // Equal each time: the file is the one that its digest names.
                let offered = self.offered.get_or_init(|| Offered::of(&rows));
                if let Some(load) = config.load {
                    offered.stretch(&mut rows, load, context).map_err(|problem| vec![problem])?;
                }
                Ok(Box::new(from_rows(&rows, context.nodes)?))
            }
            Source::Jobs(jobs) => jobs.build(context, None),
        }
    }

    /// What the network draws idle, as a share of its power, if it carries jobs.
    #[must_use]
    pub fn idle_power(&self) -> Option<f64> {
        match &self.source {
            Source::Jobs(jobs) => Some(jobs.config.idle_power),
            _ => None,
        }
    }

    /// The jobs that are to run alone, too.
    #[must_use]
    pub fn alone(&self) -> Vec<&str> {
        match &self.source {
            Source::Jobs(jobs) if jobs.config.alone => jobs.names(),
            _ => Vec::new(),
        }
    }

    /// Draws it for a rack, of its jobs that of this index alone; whole if it has none.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn build_alone(
        &self,
        context: &WorkloadContext,
        index: usize,
    ) -> Result<Box<dyn Workload>, Vec<Problem>> {
        match &self.source {
            Source::Jobs(jobs) => jobs.build(context, Some(index)),
            _ => self.build(context),
        }
    }
}

impl TraceConfig {
    /// How the file is written: as stated, or as its name tells.
    fn format(&self) -> Result<TraceFormat, Vec<Problem>> {
        self.format.or_else(|| TraceFormat::of_path(&self.path)).ok_or_else(|| {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let message = format!(
                "missing: what {name:?} holds cannot be told from its name; add format = \"csv\", \"parquet\", \
                 \"htsim\" (a connection matrix), \"hpcc\" (a list of flows) or \"pcap\" (a capture)"
            );
            vec![Problem::new("format", message)]
        })
    }

    /// Refuses keys of captures for what is none.
    fn check_capture(&self) -> Result<(), Vec<Problem>> {
        let given =
            [("hosts", self.hosts.is_some()), ("flow_timeout", self.flow_timeout.is_some())];
        let is_capture = self.format == Some(TraceFormat::Pcap);
        let wrong = given.into_iter().filter(|(_, is_given)| *is_given && !is_capture);
        let complain = |(key, _)| {
            Problem::new(key, "only packets of a capture have addresses and times; remove it")
        };
        let mut problems: Vec<Problem> = wrong.map(complain).collect();
        let hosts = self.hosts.as_deref().unwrap_or_default();
        let distinct: BTreeSet<&IpAddr> = hosts.iter().collect();
        if distinct.len() < hosts.len() {
            problems
                .push(Problem::new("hosts", "found an address twice; expected one for each node"));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Its flows, for a rack.
    fn contents(&self, context: &WorkloadContext, memory: Bytes) -> Result<Contents, Vec<Problem>> {
        self.check_digest()?;
        let reading = Reading {
            format: self.format()?,
            first_node: self.first_node,
            nodes: context.nodes,
            memory,
            capturing: Capturing {
                hosts: self.hosts.clone().unwrap_or_default(),
                timeout: self.flow_timeout.unwrap_or(TIMEOUT_DEFAULT),
            },
        };
        trace::read(&self.path, reading).map_err(|bad| {
            let message = |p: &Located| Problem::new("path", p.to_string());
            bad.problems().iter().map(message).collect()
        })
    }

    fn digest_of_file(&self) -> Result<String, Vec<Problem>> {
        trace::digest(std::slice::from_ref(&self.path)).map_err(|(path, error)| {
            let message = format!("{} cannot be read: {error}", path.display());
            vec![Problem::new("path", message)]
        })
    }

    /// Notes which content the path stands for.
    fn pin(&mut self) -> Result<(), Vec<Problem>> {
        self.check_digest()?;
        self.digest = Some(self.digest_of_file()?);
        Ok(())
    }

    fn check_digest(&self) -> Result<(), Vec<Problem>> {
        let Some(expected) = &self.digest else { return Ok(()) };
        let found = self.digest_of_file()?;
        if found == *expected {
            return Ok(());
        }
        let message = format!("found a trace with digest {found}; expected {expected}");
        Err(vec![Problem::new("digest", message)])
    }
}
