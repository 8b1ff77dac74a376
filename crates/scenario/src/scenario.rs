//! A scenario that can be run: checked whole, every default filled in.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use kernel::{Bytes, Rate, Time};
use rack::results::{Figure, RunResult};
use rack::run::{MeasuredSet, Options, Progress, RunError, warm_up_flows};
use rack::trace::Chooser;
use rack::workload::config::WorkloadContext;
use rack::{Estimate, Fault, Workload};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::execute::{Job, Sink};
use crate::faults::{self, FaultConfig};
use crate::jobs::Network;
use crate::problem::{BadInput, Located};
use crate::reader;
use crate::registry::{Planned, Registry};
use crate::run_config::{RunConfig, WarmUp};
use crate::source::{Argument, Document};
use crate::traced::Watched;
use crate::workload::WorkloadChoice;

/// A scenario.
#[derive(Clone)]
pub struct Scenario {
    /// Names the results.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// When a run ends and what is measured.
    pub run: RunConfig,
    /// What is carried.
    pub workload: WorkloadChoice,
    /// The networks that carry it, at least one, all with as many nodes.
    pub fabrics: Vec<FabricChoice>,
    /// What breaks.
    pub faults: Vec<FaultConfig>,
    /// On how many threads it runs if `run.threads` does not say. No part of the file: results do not depend
    /// on it. One, as it is read.
    pub free_threads: u32,
}

/// One of a scenario's fabrics.
#[derive(Clone)]
pub struct FabricChoice {
    /// The `kind` in the scenario.
    pub kind: &'static str,
    /// What tables and legends call it.
    pub label: String,
    /// Configured and checked.
    pub plan: Arc<dyn Planned>,
}

impl FabricChoice {
    /// What a run of it with these faults will take, open flows and what they have under way apart: an
    /// estimate. Unit: bytes.
    #[must_use]
    pub fn memory(&self, faults: &[FaultConfig]) -> Bytes {
        let failures = if faults.is_empty() { Bytes::ZERO } else { self.plan.failures_memory() };
        Estimate::new().plus(self.plan.memory()).plus(failures).bytes()
    }
}

/// Why a scenario was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input cannot be used.
    #[error(transparent)]
    Input(#[from] BadInput),
    /// The run broke.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Scenario {
    /// Reads the scenario file at `path` and applies `arguments`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn open(
        path: &Path,
        arguments: &[Argument],
        registry: &Registry,
    ) -> Result<Self, BadInput> {
        Self::read(Document::open(path)?, arguments, registry)
    }

    /// Applies `arguments` to `document` and reads it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(
        mut document: Document,
        arguments: &[Argument],
        registry: &Registry,
    ) -> Result<Self, BadInput> {
        document.set(arguments)?;
        reader::read(&document, registry)
    }

    /// How many nodes each rack has.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.fabrics[0].plan.nodes()
    }

    /// What a run of fabric number `index` will take, open flows and what they have under way apart: an
    /// estimate. Unit: bytes.
    ///
    /// # Panics
    /// If there is no such fabric.
    #[must_use]
    pub fn memory(&self, index: usize) -> Bytes {
        self.fabrics[index].memory(&self.faults)
    }

    /// The node rate that load 1.0 refers to: as stated, or the first fabric's.
    #[must_use]
    pub fn load_rate(&self) -> Rate {
        self.workload.load_rate.unwrap_or_else(|| self.fabrics[0].plan.load_rate())
    }

    /// The scenario with all defaults filled in, keys in a fixed order.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let fabric = |choice: &FabricChoice| {
            let mut table = Map::new();
            table.insert("kind".into(), choice.kind.into());
            table.insert("label".into(), choice.label.clone().into());
            table.extend(choice.plan.config().as_object().cloned().unwrap_or_default());
            Value::Object(table)
        };
        let fabrics: Vec<_> = self.fabrics.iter().map(fabric).collect();
        let mut value = json!({
            "name": self.name,
            "seed": self.seed,
            "run": self.run,
            "workload": self.workload.to_value(self.load_rate()),
            "fabric": match fabrics.as_slice() {
                [one] => one.clone(),
                many => Value::from(many),
            },
        });
        if !self.faults.is_empty() {
            value["fault"] = json!(self.faults);
        }
        without_nulls(value)
    }

    /// [`Scenario::to_value`] as TOML: reads back as the same scenario.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.to_value()).expect("a scenario holds nothing that TOML lacks")
    }

    /// Names this scenario among all: the first 16 hexadecimal digits of the SHA-256 of
    /// [`Scenario::to_toml`], with the seed and all defaults in it. A trace counts by its content,
    /// not by its path.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut value = self.to_value();
        self.workload.forget_path(&mut value["workload"]);
        let text = toml::to_string(&value).expect("a scenario holds nothing that TOML lacks");
        let digest = Sha256::digest(text.as_bytes());
        digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The same with just one of its fabrics, flows unchanged.
    ///
    /// # Panics
    /// If there is no such fabric.
    #[must_use]
    pub fn with_fabric(&self, index: usize) -> Self {
        let mut alone = self.clone();
        alone.workload.load_rate = Some(self.load_rate());
        alone.fabrics = vec![self.fabrics[index].clone()];
        alone
    }

    /// The fabrics of all of `scenarios`, to carry the same flows: those of the first.
    ///
    /// # Errors
    /// When a scenario would give its fabric other flows, faults or limits, or another size.
    ///
    /// # Panics
    /// If there is none.
    pub fn join(scenarios: Vec<Self>) -> Result<Self, BadInput> {
        let mut scenarios = scenarios.into_iter();
        let mut all = scenarios.next().expect("at least one scenario to compare");
        let mut problems = Vec::new();
        for mut other in scenarios {
            let stated = other.workload.load_rate;
            other.workload.load_rate = Some(stated.unwrap_or_else(|| all.load_rate()));
            let (mine, theirs) = (all.to_value(), other.to_value());
            let keys = ["seed", "run", "workload", "fault"];
            for key in keys.into_iter().filter(|key| mine.get(key) != theirs.get(key)) {
                let message = format!(
                    "differs from that of {:?}; to compare, all fabrics carry the same flows",
                    all.name
                );
                problems.push(Located::whole(&format!("{}: {key}", other.name), message));
            }
            if other.nodes() != all.nodes() {
                let (theirs, ours) = (other.nodes(), all.nodes());
                let message = format!("has {theirs} nodes and {:?} has {ours}", all.name);
                problems.push(Located::whole(&format!("{}: fabric", other.name), message));
            }
            all.fabrics.extend(other.fabrics);
        }
        BadInput::unless_empty(problems)?;
        distinguish(&mut all.fabrics);
        Ok(all)
    }

    /// What the workload must know of the rack.
    fn context(&self) -> WorkloadContext {
        WorkloadContext { nodes: self.nodes(), seed: self.seed, load_rate: self.load_rate() }
    }

    /// Draws the workload.
    ///
    /// # Errors
    /// When it cannot be built: a trace has changed since the scenario was read.
    pub fn draw(&self) -> Result<Box<dyn Workload>, BadInput> {
        self.drawn(self.workload.build(&self.context()))
    }

    /// A workload, or its problems with the scenario's name.
    fn drawn(
        &self,
        workload: Result<Box<dyn Workload>, Vec<rack::Problem>>,
    ) -> Result<Box<dyn Workload>, BadInput> {
        workload.map_err(|problems| {
            let locate = |p: rack::Problem| {
                Located::whole(&format!("{}: workload.{}", self.name, p.key), p.message)
            };
            BadInput::new(problems.into_iter().map(locate).collect())
        })
    }

    /// The faults of a run, by time.
    #[must_use]
    pub fn expanded_faults(&self) -> Vec<Fault> {
        faults::expand(&self.faults, self.nodes(), self.seed)
            .expect("faults were checked on reading")
    }

    /// The same with each of its seeds alone: `run.seeds` scenarios of one seed.
    #[must_use]
    pub fn with_each_seed(&self) -> Vec<Self> {
        let alone = |offset: u32| {
            let mut alone = self.clone();
            alone.seed = self.seed.wrapping_add(offset.into());
            alone.run.seeds = 1;
            alone
        };
        (0..self.run.seeds).map(alone).collect()
    }

    /// How the runner is to drive this scenario.
    ///
    /// # Errors
    /// As [`Scenario::draw`].
    pub fn options(&self) -> Result<Options, BadInput> {
        let (measured, warm_up) = self.measured()?;
        Ok(Options {
            measured,
            warm_up,
            sizes: first_sizes(self.draw()?.as_mut()),
            time: self.run.time.map(|time| Time::ZERO + time),
            sample: self.run.sample,
            load_rate: self.load_rate(),
            nominal_load: self.workload.nominal(&self.context()).and_then(|nominal| nominal.load),
            faults: self.expanded_faults().iter().map(|fault| fault.at).collect(),
            wire: self.run.wire,
            threads: self.run.threads.unwrap_or(self.free_threads) as usize,
            shards: 1,
            trace: None,
        })
    }

    /// Which flows are measured, and how the warm-up was found. Looks at the workload alone: the set is
    /// the same for every fabric.
    fn measured(&self) -> Result<(MeasuredSet, &'static str), BadInput> {
        let count = self.run.flows;
        let mut drawn = self.draw()?;
        let total = drawn.total();
        let (first, found_by) = match self.run.warm_up {
            WarmUp::Share(share) => {
                ((share * count.or(total).unwrap_or(0) as f64).floor() as u64, "share")
            }
            WarmUp::Time(span) => {
                let from = Time::ZERO + span;
                let set = MeasuredSet {
                    // Rows of a trace may come in any order of start: these go by time alone.
                    first: count.map_or(0, |_| starts_before(drawn.as_mut(), from)),
                    count,
                    from,
                    until: self.run.window.map_or(Time::NEVER, |window| from + window),
                };
                return Ok((set, "time"));
            }
            WarmUp::Auto if drawn.is_finite() || drawn.is_reactive() => (0, "none"),
            WarmUp::Auto => {
                let end = self.run.window.or(self.run.time);
                let until = end.map_or(Time::NEVER, |span| Time::ZERO + span);
                let flows = count.unwrap_or(u64::MAX);
                match warm_up_flows(drawn.as_mut(), self.load_rate(), flows, until) {
                    Some(flows) => (flows, "MSER-5"),
                    // Half of what was looked at is the most that MSER may leave out.
                    None => {
                        let seen = match count {
                            Some(count) => count,
                            None => starts_before(self.draw()?.as_mut(), until),
                        };
                        (seen / 2, "MSER-5, unsettled")
                    }
                }
            }
        };
        let until = match self.run.window {
            Some(window) => start_of(self.draw()?.as_mut(), first) + window,
            None => Time::NEVER,
        };
        Ok((MeasuredSet { first, count, from: Time::ZERO, until }, found_by))
    }

    /// One run, about to begin.
    fn job<'a>(
        &self,
        sink: &'a mut dyn Sink,
        progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Job<'a>, BadInput> {
        Ok(Job {
            seed: self.seed,
            faults: self.expanded_faults(),
            workload: self.draw()?,
            options: self.options()?,
            sink,
            progress,
        })
    }

    /// Runs it, and again with the packets of the flows recorded that `chooser` picks out: which flows are the slowest
    /// shows at the end alone. Of the second run nothing is kept but the record, and that it went the same way.
    fn execute_twice(
        &self,
        index: usize,
        chooser: Chooser,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<RunResult, Error> {
        let mut half = 0;
        let mut first = |p: Progress| {
            half = p.total.unwrap_or(p.ended);
            progress(Progress { total: p.total.map(|total| 2 * total), ..p })
        };
        let plan = &self.fabrics[index].plan;
        let mut watched = Watched { sink, chooser };
        let mut result = plan.run(self.job(&mut watched, &mut first)?)?;
        let Watched { sink, chooser } = watched;
        if result.summary["interrupted"] == Value::Bool(true) {
            return Ok(result);
        }
        let mut second = |p: Progress| {
            progress(Progress {
                ended: half + p.ended,
                total: p.total.map(|total| half + total),
                ..p
            })
        };
        let mut nothing = ();
        let mut job = self.job(&mut nothing, &mut second)?;
        job.options.trace = Some(chooser.chosen());
        let (again, trace) = plan.run_traced(job)?;
        if again.summary["interrupted"] == Value::Bool(true) {
            // What was recorded of a run that was stopped would say less than it seems to.
            result.summary["interrupted"] = true.into();
            return Ok(result);
        }
        let [expected, found] = [&result, &again].map(|run| run.summary["event_hash"].to_string());
        if expected != found {
            return Err(RunError::Recorded { expected, found }.into());
        }
        sink.trace(trace).map_err(RunError::Write)?;
        Ok(result)
    }

    /// Runs each of its jobs alone, if that is asked for, and notes how long it takes.
    fn execute_alone(
        &self,
        index: usize,
        result: &mut RunResult,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        for (number, name) in self.workload.alone().into_iter().enumerate() {
            if result.summary["interrupted"] == Value::Bool(true) {
                return Ok(());
            }
            let mut nothing = ();
            // The flows of the others are not to come: how many there are in all says nothing.
            let mut quietly = |p: Progress| progress(Progress { total: None, ..p });
            let mut job = self.job(&mut nothing, &mut quietly)?;
            job.workload = self.drawn(self.workload.build_alone(&self.context(), number))?;
            let alone = self.fabrics[index].plan.run(job)?;
            if alone.summary["interrupted"] == Value::Bool(true) {
                result.summary["interrupted"] = true.into();
            }
            let took = Figure::get("seconds", &alone.summary["job"][name]);
            let table = result.summary["job"][name].as_object_mut().expect("the job has run");
            let together = Figure::get("seconds", &Value::Object(table.clone()));
            took.put("alone_seconds", table);
            longer(together, took).put("alone_ratio", table);
        }
        Ok(())
    }

    /// Runs fabric number `index` once.
    ///
    /// # Errors
    /// When the workload cannot be built or the run breaks.
    ///
    /// # Panics
    /// If there is no such fabric.
    pub fn execute(
        &self,
        index: usize,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<RunResult, Error> {
        let mut result = match self.run.trace.as_ref().filter(|_| sink.wants_trace()) {
            Some(choice) => self.execute_twice(index, choice.chooser(), sink, progress)?,
            None => self.fabrics[index].plan.run(self.job(sink, progress)?)?,
        };
        put_faults(&self.expanded_faults(), &mut result);
        if let Some(idle) = self.workload.idle_power() {
            put_energy(idle, &mut result.summary);
        }
        self.execute_alone(index, &mut result, progress)?;
        if let Some(nominal) = self.workload.nominal(&self.context()) {
            result.summary["load"]["sizes"] = nominal.sizes.into();
            result.summary["load"]["mean_bytes"] = json!(nominal.mean_bytes);
        }
        if let Some(captured) = self.workload.captured() {
            result.put("capture", json!(captured));
        }
        if let Some(load) = self.workload.load_of_trace(&self.context()) {
            result.summary["load"]["trace"] = json!(load);
        }
        Ok(result)
    }
}

/// How many times as long a job takes together with others as alone.
fn longer(together: Figure, alone: Figure) -> Figure {
    match (together, alone) {
        (_, Figure::Exact(alone)) if alone > 0.0 => together.map(|together| together / alone),
        (Figure::Exact(together), Figure::AtLeast(alone)) if alone > 0.0 => {
            Figure::AtMost(together / alone)
        }
        _ => Figure::Missing,
    }
}

/// Adds to each job of a summary its share of the energy of the network, where its power is known.
fn put_energy(idle: f64, summary: &mut Value) {
    let number = |key: &str| summary[key].as_f64();
    let watts = summary["equipment"]["power_watts"].as_f64();
    let (Some(watts), Some(nodes), Some(node_rate)) = (watts, number("nodes"), number("node_rate"))
    else {
        return;
    };
    let network = Network { watts, nodes, node_rate, idle };
    let jobs = summary["job"].as_object_mut();
    for table in jobs.into_iter().flatten().filter_map(|(_, job)| job.as_object_mut()) {
        let of = |key: &str| table[key].as_f64().unwrap_or(0.0);
        let (nodes, bytes) = (of("nodes"), of("bytes"));
        let seconds = Figure::get("seconds", &Value::Object(table.clone()));
        let joules = seconds.map(|seconds| network.joules(nodes, seconds, bytes));
        joules.put("energy_joules", table);
    }
}

/// Faults that a summary lists (our choice: those of any plot that can be read).
const FAULTS_LISTED: usize = 1_000;

/// Adds what broke to a summary.
fn put_faults(faults: &[Fault], result: &mut RunResult) {
    if faults.is_empty() {
        return;
    }
    let row = |fault: &Fault| {
        json!({
            "component": fault.component.to_string(),
            "at_seconds": fault.at.as_seconds(),
            "until_seconds": fault.until.map(Time::as_seconds),
        })
    };
    result.put("faults", faults.iter().take(FAULTS_LISTED).map(row).collect());
}

/// Flows of which a fabric is told the sizes beforehand (our choice: enough for a thousandth of them
/// to have tens).
const SIZES_HINTED: usize = 20_000;

/// The sizes of the first flows; of a workload that waits for ends, of those that wait for none.
fn first_sizes(workload: &mut dyn Workload) -> Vec<Bytes> {
    let mut next = || workload.next_start().and_then(|_| workload.next_flow());
    std::iter::from_fn(|| next().map(|flow| flow.size)).take(SIZES_HINTED).collect()
}

/// When flow number `number` starts, of a workload that does not wait for ends; the start of the last if
/// there are fewer.
fn start_of(workload: &mut dyn Workload, number: u64) -> Time {
    let mut start = Time::ZERO;
    for _ in 0..=number {
        let Some(next) = workload.next_start() else { break };
        start = next;
        workload.next_flow();
    }
    start
}

/// How many flows start before `limit`, of a workload that does not wait for ends.
fn starts_before(workload: &mut dyn Workload, limit: Time) -> u64 {
    let mut count = 0;
    while workload.next_start().is_some_and(|start| start < limit) && workload.next_flow().is_some()
    {
        count += 1;
    }
    count
}

/// Numbers the labels that occur twice.
pub(crate) fn distinguish(fabrics: &mut [FabricChoice]) {
    for index in 1..fabrics.len() {
        let taken: Vec<String> = fabrics[..index].iter().map(|f| f.label.clone()).collect();
        let label = fabrics[index].label.clone();
        let free = std::iter::once(label.clone())
            .chain((2..).map(|number| format!("{label} {number}")))
            .find(|candidate| !taken.contains(candidate));
        fabrics[index].label = free.expect("there is always a higher number");
    }
}

/// The value without keys whose value is null, which TOML cannot hold.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}
