//! The `pipeline` workload.

use kernel::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problems::{Problems, check_size, check_start};
use super::{Boxed, WorkloadContext, check_listed};
use crate::Class;
use crate::workload::limits::SPAN_MAX;
use crate::workload::pipeline::Pipeline;

/// Training in a pipeline, as GPipe schedules it: micro-batches forward through all stages, then back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipelineConfig {
    /// Activations of a micro-batch between two stages, and their gradients on the way back. Unit:
    /// bytes. At least 1 B. No default.
    pub size: Bytes,
    /// How many micro-batches a step has. At least 1. Default 8 (our choice).
    #[serde(default = "eight")]
    pub micro_batches: u64,
    /// Computation of a stage for a micro-batch forward. Unit: time. Default: none.
    #[serde(default)]
    pub forward: Span,
    /// The same backward. Unit: time. Default: twice `forward` (our choice: gradients of inputs and of
    /// weights).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Span>,
    /// How many nodes are stages: the first of the rack. At least 2. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// How many steps, one after another. Default 1.
    #[serde(default = "one")]
    pub rounds: u64,
    /// Start of the first step. Unit: time. Default: the start of the run.
    #[serde(default)]
    pub start: Time,
    /// Traffic class; 0 is the most urgent. Default 0.
    #[serde(default)]
    pub class: Class,
}

fn one() -> u64 {
    1
}

fn eight() -> u64 {
    8
}

impl PipelineConfig {
    fn pipeline(&self, context: &WorkloadContext) -> Pipeline {
        let twice = Span::from_ps(self.forward.as_ps().saturating_mul(2));
        Pipeline {
            stages: self.nodes.unwrap_or(context.nodes),
            micro_batches: self.micro_batches,
            size: self.size,
            forward: self.forward,
            backward: self.backward.unwrap_or(twice),
            steps: self.rounds,
            start: self.start,
            class: self.class,
        }
    }

    /// Each stage sends each micro-batch to the next, forth and back.
    pub(super) fn listed(&self, context: &WorkloadContext) -> (&'static str, u64) {
        ("micro_batches", self.pipeline(context).flows())
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let pipeline = self.pipeline(context);
        let Pipeline { stages, micro_batches, forward, backward, steps, .. } = pipeline;
        if stages < 2 || stages > context.nodes {
            let message = format!("found {stages}; expected 2 to {} in this rack", context.nodes);
            problems.add("nodes", message);
        }
        for (key, count) in [("micro_batches", micro_batches), ("rounds", steps)] {
            if count == 0 {
                problems.add(key, "found 0; expected at least 1");
            }
        }
        check_size(self.size, problems);
        check_start("start", self.start, problems);
        let (key, listed) = self.listed(context);
        check_listed(key, listed, problems);
        let turn = u128::from(forward.as_ps()) + u128::from(backward.as_ps());
        let turns = u128::from(micro_batches) + u128::from(stages);
        let computed = turn.saturating_mul(turns).saturating_mul(steps.into());
        if computed > u128::from(SPAN_MAX.as_ps()) {
            let message = "all computations take more than 30 days, when a run ends at the latest";
            problems.add("forward", message);
        }
        (problems.count() == 0).then(|| Box::new(pipeline.gate()) as Boxed)
    }
}
