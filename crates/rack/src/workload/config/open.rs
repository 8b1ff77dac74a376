//! Open-loop workloads: `poisson`.

use kernel::{PS_PER_SECOND, Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::PatternConfig;
use super::problems::Problems;
use super::sizes::SizesConfig;
use super::{Boxed, Nominal, WorkloadContext, check_flows};
use crate::Class;
use crate::workload::arrivals;
use crate::workload::limits::SPAN_MAX;
use crate::workload::poisson::{Poisson, Stop};
use crate::workload::sizes::Sizes;

/// Flows that arrive at random. Exactly one of `load` and `interarrival` is given.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PoissonConfig {
    /// Offered load as a share of what all nodes may inject: mean size / (node rate x nodes x mean
    /// time between arrivals) (Shoal §7.3). Above 0. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Mean time between arrivals in the whole rack, instead of a load. Unit: time. No default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interarrival: Option<Span>,
    /// How large flows are. Default: Pareto, shape 1.05, mean 100 KB (Shoal §7.3).
    pub sizes: SizesConfig,
    /// Who sends to whom. Default: uniform (Shoal §7.3).
    pub pattern: PatternConfig,
    /// How many flows. Default: no end of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// No flow starts at or after this time. Default: no end of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Traffic class; 0 is the most urgent. Default 0.
    pub class: Class,
}

/// The least mean time between arrivals, in picoseconds (our choice: flows without data at 8 Pbps would come
/// so fast).
const PACE_MIN: f64 = 0.001;

/// Either a load or a time between arrivals, as picoseconds between arrivals.
pub(super) fn pace(
    load: Option<f64>,
    interarrival: Option<Span>,
    mean_bytes: f64,
    context: &WorkloadContext,
    problems: &mut Problems,
) -> Option<f64> {
    if context.load_rate == Rate::default() {
        problems.add("load", "the node rate that load refers to is 0 bps");
        return None;
    }
    match (load, interarrival) {
        (Some(load), None) if load > 0.0 && load.is_finite() => {
            let pace =
                arrivals::interarrival_ps(load, mean_bytes, context.load_rate, context.nodes);
            if (PACE_MIN..=SPAN_MAX.as_ps() as f64).contains(&pace) {
                return Some(pace);
            }
            let message = format!(
                "found {load}, at which a flow arrives every {pace:e} ps; expected {PACE_MIN} ps to 30 \
                 days"
            );
            problems.add("load", message);
            None
        }
        (Some(load), None) => {
            problems.add("load", format!("found {load}; expected a load above 0, such as 0.5"));
            None
        }
        (None, Some(span)) if span > SPAN_MAX => {
            problems.add("interarrival", format!("found {span}; expected at most 30 days"));
            None
        }
        (None, Some(span)) if span > Span::ZERO => Some(span.as_ps() as f64),
        (None, Some(span)) => {
            problems.add("interarrival", format!("found {span}; expected a time above zero"));
            None
        }
        (Some(_), Some(_)) => {
            problems.add("interarrival", "load and interarrival are both given; remove one");
            None
        }
        (None, None) => {
            problems.add("load", "missing; add load = 0.5, say, or interarrival = \"12.65 ns\"");
            None
        }
    }
}

/// What a random process offers, once its pace is known.
pub(super) fn nominal(
    pace: f64,
    mean_bytes: f64,
    text: String,
    context: &WorkloadContext,
) -> Nominal {
    Nominal {
        sizes: text,
        mean_bytes: Some(mean_bytes),
        interarrival_seconds: Some(pace / PS_PER_SECOND as f64),
        load: Some(arrivals::load(pace, mean_bytes, context.load_rate, context.nodes)),
        load_rate: context.load_rate,
    }
}

impl PoissonConfig {
    fn plan(&self, context: &WorkloadContext, problems: &mut Problems) -> Option<(Sizes, f64)> {
        let sizes = problems.below("sizes", |problems| self.sizes.build(problems));
        // With bad sizes the pace is checked all the same; any mean will do for that.
        let mean = sizes.as_ref().map_or(1.0, Sizes::mean);
        let pace = pace(self.load, self.interarrival, mean, context, problems);
        Some((sizes?, pace?))
    }

    pub(super) fn build(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Boxed> {
        let plan = self.plan(context, problems);
        let pattern = problems.below("pattern", |problems| self.pattern.build(context, problems));
        check_flows("flows", self.flows, problems);
        let (sizes, pace) = plan?;
        let stop = Stop { flows: self.flows, until: self.until.unwrap_or(Time::NEVER) };
        let workload = Poisson::new(context.nodes, context.seed, pace, sizes, pattern?, stop);
        Some(Box::new(workload.with_class(self.class)))
    }

    pub(super) fn nominal(
        &self,
        context: &WorkloadContext,
        problems: &mut Problems,
    ) -> Option<Nominal> {
        let (sizes, pace) = self.plan(context, problems)?;
        Some(nominal(pace, sizes.mean(), sizes.describe(), context))
    }
}
