//! The `[run]` table: when a run ends, and what of it is measured.

use kernel::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The `[run]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Ends when this many flows have ended. Default: when all that the workload has have. At least
    /// 1.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Ends at this simulated time, whatever is still under way. Unit: time. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// What is left out of the figures at the start: a share of the flows (0.1) or a time ("1 ms");
    /// flows that start within it are carried, but not measured. Default 0.
    pub warm_up: WarmUp,
    /// Time between the first samples of the time series; doubles as often as needed to keep the
    /// series short. Unit: time. Default 1 us (our choice). Above zero.
    pub sample: Span,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self { flows: None, time: None, warm_up: WarmUp::default(), sample: Span::from_us(1) }
    }
}

/// How much of the start of a run is not measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WarmUp {
    /// A share of the flows, from 0 to below 1.
    Share(f64),
    /// All flows that start earlier than this.
    Time(Span),
}

impl Default for WarmUp {
    fn default() -> Self {
        Self::Share(0.0)
    }
}

impl JsonSchema for WarmUp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WarmUp".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "minimum": 0, "exclusiveMaximum": 1 },
            generator.subschema_for::<Span>(),
        ] })
    }
}
