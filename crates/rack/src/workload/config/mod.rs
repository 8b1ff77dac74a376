//! The `[workload]` table of a scenario: what may be written there, and the workload it stands for.
//!
//! One typed struct a kind, unknown keys refused, every problem listed at once. A trace file is the
//! one kind that is not here, for nothing in this crate reads files: see [`super::trace`].

mod bursts;
mod open;
mod parameter_server;
mod pattern;
mod pipeline;
mod problems;
mod reactive;
mod sizes;
#[cfg(test)]
mod tests;

use kernel::{Rate, Stream};
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

pub use bursts::{
    AllToAllConfig, BulkConfig, IncastConfig, OrderConfig, OutcastConfig, ShuffleConfig,
    TimingConfig,
};
pub use open::PoissonConfig;
pub use parameter_server::{ModelConfig, ParameterServerConfig};
pub use pattern::{
    GatherConfig, GridConfig, HotSpotConfig, NoKeys, PartialPermutationConfig, PatternConfig,
    PermutationConfig, PoolsConfig,
};
pub use pipeline::PipelineConfig;
use problems::Problems;
pub use reactive::{
    ExpertAllToAllConfig, RequestsConfig, RingAllReduceConfig, TreeAllReduceConfig,
};
pub use sizes::{FixedSizes, ParetoSizes, PointSizes, SizesConfig, TableSizes, Truncation};

use super::Workload;
use super::limits::{FLOWS_MAX, LISTED_MAX, NODES_MAX};
use super::merge::Merge;
use crate::Problem;

/// A workload of any kind.
type Boxed = Box<dyn Workload>;

/// What a workload must know of the rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkloadContext {
    /// How many nodes there are.
    pub nodes: u32,
    /// The run's seed.
    pub seed: u64,
    /// The node rate that load 1 refers to.
    pub load_rate: Rate,
}

/// Who sends how much to whom, and when.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WorkloadConfig {
    /// Flows that arrive at random (Poisson), with sizes and pairs drawn.
    Poisson(PoissonConfig),
    /// One flow from each node under a pattern at one instant, or many between drawn pairs.
    Bulk(BulkConfig),
    /// Many nodes to one at one instant.
    Incast(IncastConfig),
    /// One node to many at one instant.
    Outcast(OutcastConfig),
    /// Every node to every other.
    AllToAll(AllToAllConfig),
    /// The shuffle of MapReduce: every mapper to every reducer.
    Shuffle(ShuffleConfig),
    /// All-reduce in a ring, each step after the one before it.
    RingAllReduce(RingAllReduceConfig),
    /// All-reduce up and down a binary tree.
    TreeAllReduce(TreeAllReduceConfig),
    /// Layers of experts: dispatch to all, compute, combine from all.
    ExpertAllToAll(ExpertAllToAllConfig),
    /// Training with parameter servers: workers send gradients, layer by layer.
    ParameterServer(ParameterServerConfig),
    /// Training in a pipeline: micro-batches forward through all stages, then back.
    Pipeline(PipelineConfig),
    /// Requests and responses, open or closed loop.
    Requests(RequestsConfig),
    /// Several workloads at once.
    Mix(MixConfig),
}

/// Several workloads at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MixConfig {
    /// The workloads; each may have a class of its own. Each draws from streams of its own. At least
    /// one. No default.
    pub parts: Vec<WorkloadConfig>,
}

/// What a workload offers by its definition, before anything is drawn.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Nominal {
    /// The sizes in words: distribution, reading, truncation.
    pub sizes: String,
    /// Mean size used, in bytes, where there is one.
    pub mean_bytes: Option<f64>,
    /// Mean time between arrivals, in seconds, if flows arrive by themselves.
    pub interarrival_seconds: Option<f64>,
    /// Load relative to `load_rate`, if flows arrive by themselves.
    pub load: Option<f64>,
    /// The node rate that load 1 refers to.
    pub load_rate: Rate,
}

impl Nominal {
    /// Of a workload that has no load, for its pace is the network's.
    fn of_sizes(sizes: String, mean_bytes: Option<f64>, context: &WorkloadContext) -> Self {
        let load_rate = context.load_rate;
        Self { sizes, mean_bytes, interarrival_seconds: None, load: None, load_rate }
    }
}

/// A kind of workload, for lists and schemas.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The value of `kind` in a scenario.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// JSON schema of its own keys, without `kind`.
    pub schema: fn() -> Schema,
}

/// Every kind of workload that a scenario can name, apart from a trace.
#[must_use]
pub const fn kinds() -> &'static [Kind] {
    const fn kind(name: &'static str, summary: &'static str, schema: fn() -> Schema) -> Kind {
        Kind { name, summary, schema }
    }
    const KINDS: &[Kind] = &[
        kind(
            "poisson",
            "Flows that arrive at random (Poisson), with sizes and pairs drawn.",
            || schema_for!(PoissonConfig),
        ),
        kind(
            "bulk",
            "One flow from each node under a pattern at one instant, or many between drawn pairs.",
            || schema_for!(BulkConfig),
        ),
        kind("incast", "Many nodes to one at one instant.", || schema_for!(IncastConfig)),
        kind("outcast", "One node to many at one instant.", || schema_for!(OutcastConfig)),
        kind("all_to_all", "Every node to every other.", || schema_for!(AllToAllConfig)),
        kind("shuffle", "The shuffle of MapReduce: every mapper to every reducer.", || {
            schema_for!(ShuffleConfig)
        }),
        kind("ring_all_reduce", "All-reduce in a ring, each step after the one before it.", || {
            schema_for!(RingAllReduceConfig)
        }),
        kind("tree_all_reduce", "All-reduce up and down a binary tree.", || {
            schema_for!(TreeAllReduceConfig)
        }),
        kind(
            "expert_all_to_all",
            "Layers of experts: dispatch to all, compute, combine from all.",
            || schema_for!(ExpertAllToAllConfig),
        ),
        kind(
            "parameter_server",
            "Training with parameter servers: workers send gradients, layer by layer.",
            || schema_for!(ParameterServerConfig),
        ),
        kind(
            "pipeline",
            "Training in a pipeline: micro-batches forward through all stages, then back.",
            || schema_for!(PipelineConfig),
        ),
        kind("requests", "Requests and responses, open or closed loop.", || {
            schema_for!(RequestsConfig)
        }),
        kind("mix", "Several workloads at once.", || schema_for!(MixConfig)),
    ];
    KINDS
}

/// Refuses lists of flows that would not fit in memory.
fn check_listed(key: &str, flows: u64, problems: &mut Problems) {
    if flows > LISTED_MAX {
        let message = format!("this makes {flows} flows in one list; at most {LISTED_MAX} fit");
        problems.add(key, message);
    }
}

/// Refuses more flows, requests or rounds than anything counts.
fn check_flows(key: &str, flows: Option<u64>, problems: &mut Problems) {
    match flows {
        Some(0) => {
            let what = key.trim_end_matches('s');
            problems.add(key, format!("found 0; expected at least one {what}"));
        }
        Some(flows) if flows > FLOWS_MAX => {
            problems.add(key, format!("found {flows}; expected at most {FLOWS_MAX}"));
        }
        _ => {}
    }
}

impl WorkloadConfig {
    /// How many flows are in memory at a time before anything of the network is, and which key says so.
    fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        match self {
            // What is drawn one by one.
            Self::Poisson(_) | Self::Incast(_) | Self::Outcast(_) => ("", 0),
            Self::Bulk(config) => config.listed(),
            Self::AllToAll(config) => config.listed(context),
            Self::Shuffle(config) => config.listed(context),
            Self::RingAllReduce(config) => config.listed(context),
            Self::TreeAllReduce(config) => config.listed(context),
            Self::ExpertAllToAll(config) => config.listed(context),
            Self::ParameterServer(config) => config.listed(),
            Self::Pipeline(config) => config.listed(context),
            Self::Requests(config) => config.listed(context),
            Self::Mix(config) => config.listed(context),
        }
    }

    /// The workload in this rack.
    ///
    /// # Errors
    /// Every problem, each with its key below the `[workload]` table and a remedy.
    pub fn build(&self, context: &WorkloadContext) -> Result<Box<dyn Workload>, Vec<Problem>> {
        let mut problems = Problems::default();
        check_nodes(context, &mut problems);
        if problems.count() > 0 {
            return problems.finish(None);
        }
        let built = match self {
            Self::Poisson(config) => config.build(context, &mut problems),
            Self::Bulk(config) => config.build(context, &mut problems),
            Self::Incast(config) => config.build(context, &mut problems),
            Self::Outcast(config) => config.build(context, &mut problems),
            Self::AllToAll(config) => config.build(context, &mut problems),
            Self::Shuffle(config) => config.build(context, &mut problems),
            Self::RingAllReduce(config) => config.build(context, &mut problems),
            Self::TreeAllReduce(config) => config.build(context, &mut problems),
            Self::ExpertAllToAll(config) => config.build(context, &mut problems),
            Self::ParameterServer(config) => config.build(context, &mut problems),
            Self::Pipeline(config) => config.build(context, &mut problems),
            Self::Requests(config) => config.build(context, &mut problems),
            Self::Mix(config) => return config.build(context),
        };
        problems.finish(built)
    }

    /// What the workload offers by its definition in this rack.
    ///
    /// # Errors
    /// Every problem that hides it.
    pub fn nominal(&self, context: &WorkloadContext) -> Result<Nominal, Vec<Problem>> {
        let mut problems = Problems::default();
        let fixed = |size: kernel::Bytes| {
            let mean = size.get() as f64;
            Some(Nominal::of_sizes(format!("fixed {size}"), Some(mean), context))
        };
        let parts = |size: kernel::Bytes| {
            Some(Nominal::of_sizes(format!("parts of {size} a node"), None, context))
        };
        let nominal = match self {
            Self::Poisson(config) => config.nominal(context, &mut problems),
            Self::Requests(config) => config.nominal(context, &mut problems),
            Self::ParameterServer(config) => Some(config.nominal(context)),
            Self::Bulk(config) => fixed(config.size),
            Self::Incast(config) => fixed(config.size),
            Self::Outcast(config) => fixed(config.size),
            Self::AllToAll(config) => fixed(config.size),
            Self::Shuffle(config) => fixed(config.size),
            Self::ExpertAllToAll(config) => fixed(config.size),
            Self::Pipeline(config) => fixed(config.size),
            Self::RingAllReduce(config) => parts(config.size),
            Self::TreeAllReduce(config) => parts(config.size),
            Self::Mix(config) => return config.nominal(context),
        };
        problems.finish(nominal)
    }
}

fn check_nodes(context: &WorkloadContext, problems: &mut Problems) {
    if context.nodes < 2 {
        let message = format!("the rack has {} node; a flow needs two", context.nodes);
        problems.add("", message);
    }
    if context.nodes > NODES_MAX {
        let message = format!("the rack has {} nodes; expected at most {NODES_MAX}", context.nodes);
        problems.add("", message);
    }
}

impl MixConfig {
    /// The context of part `index`: its own seed, which adding other parts does not move.
    fn context(context: &WorkloadContext, index: usize) -> WorkloadContext {
        let seed = Stream::new(context.seed, "workload/part", index as u64).below(u64::MAX);
        WorkloadContext { seed, ..*context }
    }

    /// Does `each` to every part; gathers the problems, each under its part.
    fn each<T>(
        &self,
        context: &WorkloadContext,
        each: impl Fn(&WorkloadConfig, &WorkloadContext) -> Result<T, Vec<Problem>>,
    ) -> Result<Vec<T>, Vec<Problem>> {
        let (mut done, mut problems) = (vec![], vec![]);
        for (at, part) in self.parts.iter().enumerate() {
            match each(part, &Self::context(context, at)) {
                Ok(part) => done.push(part),
                Err(found) => problems.extend(found.into_iter().map(|problem| {
                    let key = format!("parts[{at}].{}", problem.key);
                    Problem::new(key.trim_end_matches('.'), problem.message)
                })),
            }
        }
        if self.parts.is_empty() {
            problems.push(Problem::new("parts", "found none; expected at least one workload"));
        }
        if problems.is_empty() { Ok(done) } else { Err(problems) }
    }

    /// The flows of all parts.
    fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        let parts = self.parts.iter().map(|part| part.listed(context).1);
        ("parts", parts.fold(0, u64::saturating_add))
    }

    fn build(&self, context: &WorkloadContext) -> Result<Box<dyn Workload>, Vec<Problem>> {
        let alone = |part: &WorkloadConfig| part.listed(context).1 <= LISTED_MAX;
        let (key, listed) = self.listed(context);
        let mut problems = Problems::default();
        // A part that is too large says so itself.
        if self.parts.iter().all(alone) {
            check_listed(key, listed, &mut problems);
        }
        problems.finish(Some(()))?;
        let parts = self.each(context, WorkloadConfig::build)?;
        Ok(Box::new(Merge::new(parts)))
    }

    /// The loads of the parts add up, as far as they have one; sizes are told part by part.
    fn nominal(&self, context: &WorkloadContext) -> Result<Nominal, Vec<Problem>> {
        let parts = self.each(context, WorkloadConfig::nominal)?;
        let sizes: Vec<_> = parts.iter().map(|part| part.sizes.as_str()).collect();
        let loads: Vec<f64> = parts.iter().filter_map(|part| part.load).collect();
        let load = (!loads.is_empty()).then(|| loads.iter().sum());
        Ok(Nominal { load, ..Nominal::of_sizes(sizes.join("; "), None, context) })
    }
}
