//! The `[run]` table: what is measured, and when a run ends.

use kernel::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::traced::TraceChoice;

/// The `[run]` table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// How many flows are measured: those that start first after the warm-up. Other flows go on
    /// arriving until all of these have ended. Default: all flows of the workload, or those that start
    /// within `window`. At least 1.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Measures the flows that start within this time after the warm-up, instead of a number of them.
    /// Unit: time. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Span>,
    /// The run ends at this simulated time at the latest. Measured flows that have not ended by then
    /// are counted, and figures on which they bear are given as bounds. Unit: time. Default: as long
    /// as the workload lasts; of one that never ends, ten times the time until the last measured flow
    /// starts, and 1 ms at least (our choice).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
    /// What is not measured at the start, while the network fills: "auto", a share of the measured
    /// flows (0.1) or a time ("1 ms"). "auto" looks for the point from which on the flows that each
    /// flow finds open are steady (MSER-5), the same for every fabric; it leaves out nothing of a
    /// workload that ends by itself. Default "auto".
    pub warm_up: WarmUp,
    /// How many seeds: the run is repeated with the seed, the seed + 1 and so on, and figures are means
    /// over these runs with a 95 % confidence interval. From 1 to 1000. Default 1.
    #[schemars(range(min = 1, max = 1000))]
    pub seeds: u32,
    /// How many threads a run may use, where its fabric can be cut and enough happens at a time. Results are the same on any number; no more are
    /// used than the machine has cores. From 1 to 1024. Default: all cores for a run alone, one for each run
    /// of a comparison, a sweep or a reproduction, which run side by side.
    #[schemars(range(min = 1, max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Whether every message between nodes is written as bytes and read again. Results are the same; it
    /// takes longer, and shows that nodes know of each other only what messages tell. Default false.
    pub wire: bool,
    /// Which flows' packets are recorded hop by hop, for `rackloom why`: "slowest 100", so many of the measured flows
    /// that completed, those with the largest slowdown; or "flows 3, 17", by number. The run is then carried out
    /// twice. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceChoice>,
    /// Time between the first samples of the time series; doubles as often as needed to keep the
    /// series short. Unit: time. Default 1 us (our choice). Above zero.
    pub sample: Span,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            flows: None,
            window: None,
            time: None,
            warm_up: WarmUp::default(),
            seeds: 1,
            threads: None,
            wire: false,
            trace: None,
            sample: Span::from_us(1),
        }
    }
}

/// How much of the start of a run is not measured.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WarmUp {
    /// What MSER-5 finds.
    #[default]
    #[serde(with = "auto")]
    Auto,
    /// A share of the measured flows, from 0 to below 1.
    Share(f64),
    /// All flows that start earlier than this.
    Time(Span),
}

/// The word that stands for [`WarmUp::Auto`].
mod auto {
    use serde::{Deserialize, Deserializer, Serializer, de};

    const WORD: &str = "auto";

    pub(super) fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(WORD)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        let word = String::deserialize(deserializer)?;
        if word == WORD { Ok(()) } else { Err(de::Error::custom("not \"auto\"")) }
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
            { "const": "auto" },
            { "type": "number", "minimum": 0, "exclusiveMaximum": 1 },
            generator.subschema_for::<Span>(),
        ] })
    }
}
