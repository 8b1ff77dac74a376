//! The `parameter_server` workload.

use kernel::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problems::{Problems, check_flow, check_span, check_start};
use super::{Boxed, Nominal, WorkloadContext, check_listed};
use crate::Class;
use crate::workload::models::{scaled, vgg16};
use crate::workload::parameter_server::ParameterServer;

/// A neural network whose layers are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModelConfig {
    /// VGG16: 138,357,544 parameters in 16 layers, three quarters of them in one (PL2 §6.2.3).
    #[default]
    Vgg16,
}

/// Training with parameter servers: every iteration each worker sends the gradients of all layers, one
/// after another, in equal parts to all servers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ParameterServerConfig {
    /// How many nodes compute: the first of the rack. Default 4 (PL2 §6.2.3). At least 1.
    pub workers: u32,
    /// How many nodes gather: those after the workers. Default 2 (PL2 §6.2.3). At least 1.
    pub servers: u32,
    /// Whose layers, from the last to the first, as backpropagation gives them. Default vgg16 (PL2
    /// §6.1).
    pub model: ModelConfig,
    /// Gradients of each layer in place of the model's, in the order in which they are sent. Unit:
    /// bytes. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<Bytes>>,
    /// All gradients of a worker together: layers keep their proportions. Unit: bytes. Default 500 MiB
    /// (PL2 §6.2.3); 0 B: four bytes a parameter, or `layers` as they are.
    pub size: Bytes,
    /// How often. Default 1; 100 in PL2 §6.2.3.
    pub iterations: u64,
    /// From the end of an iteration to the start of the next. Unit: time. Default: none (PL2 §6.2.3
    /// measures the network alone).
    pub compute: Span,
    /// Each worker starts each iteration a random time below this late. Unit: time. Default: none, all
    /// start at one instant.
    pub jitter: Span,
    /// Threads with which a worker sends: each takes the next layer for the next server, of whatever iteration, as
    /// soon as it is free, so that nothing waits for the end of an iteration (PL2 §6.3, whose generator hands
    /// messages to threads). At least 1; neither `compute` nor `jitter` then. Default: a worker sends each server
    /// one layer after another, and an iteration waits for all of the one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub threads: Option<u32>,
    /// Start of the first iteration. Unit: time. Default: the start of the run.
    pub start: Time,
    /// Traffic class; 0 is the most urgent. Default 0.
    pub class: Class,
}

impl Default for ParameterServerConfig {
    fn default() -> Self {
        Self {
            workers: 4,
            servers: 2,
            model: ModelConfig::default(),
            layers: None,
            size: Bytes::new(500 << 20),
            iterations: 1,
            compute: Span::ZERO,
            jitter: Span::ZERO,
            threads: None,
            start: Time::ZERO,
            class: Class::default(),
        }
    }
}

/// Most gradients of a worker, and most layers (our choice: far above any; products fit 128 bits).
const DATA_MAX: Bytes = Bytes::new(1 << 50);
const LAYERS_MAX: usize = 10_000;
/// Bytes of a gradient: a number in single precision (IEEE 754).
const GRADIENT: u64 = 4;

impl ParameterServerConfig {
    /// Gradients of each layer in bytes.
    fn layers(&self) -> Vec<u64> {
        let own: Vec<u64> = match (&self.layers, self.model) {
            (Some(layers), _) => layers.iter().map(|layer| layer.get()).collect(),
            (None, ModelConfig::Vgg16) => {
                vgg16().iter().rev().map(|count| count * GRADIENT).collect()
            }
        };
        match self.size {
            Bytes::ZERO => own,
            _ if own.iter().all(|&size| size == 0) => own,
            size => scaled(&own, size.get()),
        }
    }

    /// All of them.
    pub(super) fn listed(&self) -> (&'static str, u64) {
        let layers = self.layers.as_ref().map_or_else(|| vgg16().len(), Vec::len) as u64;
        let pairs = u64::from(self.workers) * u64::from(self.servers);
        ("iterations", pairs.saturating_mul(layers).saturating_mul(self.iterations))
    }

    /// Notes what is wrong with `threads`, and what does not go with it.
    fn check_threads(&self, problems: &mut Problems) {
        let Some(threads) = self.threads else { return };
        if threads == 0 {
            problems.add("threads", "found 0; expected at least one");
        }
        for (key, span) in [("compute", self.compute), ("jitter", self.jitter)] {
            if span > Span::ZERO {
                let message = "with `threads` no iteration waits for another; leave it out";
                problems.add(key, format!("{span}: {message}"));
            }
        }
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let (workers, servers) = (self.workers, self.servers);
        let nodes = u64::from(workers) + u64::from(servers);
        if workers == 0 || servers == 0 {
            let key = if workers == 0 { "workers" } else { "servers" };
            problems.add(key, "found 0; expected at least one");
        } else if nodes > u64::from(context.nodes) {
            let message = format!(
                "{workers} workers and {servers} servers are {nodes} nodes; the rack has {}",
                context.nodes
            );
            problems.add("workers", message);
        }
        if self.iterations == 0 {
            problems.add("iterations", "found 0; expected at least one");
        }
        let given = self.layers.iter().flatten().chain([&self.size]);
        if given.max() > Some(&DATA_MAX)
            || self.layers.as_ref().is_some_and(|own| own.len() > LAYERS_MAX)
        {
            let message = format!("expected at most {LAYERS_MAX} layers, and 1 PiB in all");
            problems.add(if self.layers.is_some() { "layers" } else { "size" }, message);
            return None;
        }
        let layers = self.layers();
        if layers.is_empty() {
            problems.add("layers", "found none; expected at least one");
        }
        let largest = layers.iter().max().copied().unwrap_or(0);
        let part = Bytes::new(largest.div_ceil(u64::from(servers.max(1))));
        check_flow(if self.layers.is_some() { "layers" } else { "size" }, part, problems);
        check_start("start", self.start, problems);
        check_span("compute", self.compute, problems);
        check_span("jitter", self.jitter, problems);
        self.check_threads(problems);
        if let Some((place, size)) =
            (1..).zip(&layers).find(|&(_, &size)| size < u64::from(servers))
        {
            let message = format!(
                "layer {place} has {size} B; expected at least a byte for each of {servers} servers"
            );
            problems.add(if self.layers.is_some() { "layers" } else { "size" }, message);
        }
        let training = ParameterServer {
            workers,
            servers,
            layers: layers.into_iter().map(Bytes::new).collect(),
            iterations: self.iterations,
            start: self.start,
            compute: self.compute,
            jitter: self.jitter,
            class: self.class,
        };
        let (key, listed) = self.listed();
        check_listed(key, listed, problems);
        (problems.count() == 0).then(|| match self.threads {
            Some(threads) => Box::new(training.threads(threads)) as Boxed,
            None => Box::new(training.gate(context.seed)),
        })
    }

    pub(super) fn nominal(&self, context: &WorkloadContext) -> Nominal {
        let given = self.layers.iter().flatten().chain([&self.size]);
        // What is too large is refused.
        let layers = if given.max() > Some(&DATA_MAX) { Vec::new() } else { self.layers() };
        let total = layers.iter().fold(0, |all: u64, &layer| all.saturating_add(layer));
        let parts = layers.len() as u64 * u64::from(self.servers);
        let text = format!("{} layers of {} in all", layers.len(), Bytes::new(total));
        let mean = (parts > 0).then(|| total as f64 / parts as f64);
        Nominal::of_sizes(text, mean, context)
    }
}
