//! The summary of a run: the same keys for every fabric, in a fixed order.

use kernel::{Bytes, Series, Time};
use serde_json::{Map, Value, json};

use super::recorder::{Distribution, Recorder};
use super::steady::{Settled, Settling};
use super::{Quantiles, RunResult, SeriesTable};
use crate::Fabric;
use crate::equipment::Bill;
use crate::run::{Options, Stop, Tally};

/// Puts a finished run together. What only the caller knows (version, hash, seed, label, wall time)
/// is left to [`RunResult::describe`].
pub(crate) fn result(
    fabric: &dyn Fabric,
    recorder: &Recorder<'_>,
    series: &Series,
    tally: &Tally,
    options: &Options,
) -> RunResult {
    let (seconds, values) =
        series.rows().map(|(end, row)| (end.as_seconds(), row.to_vec())).unzip();
    RunResult {
        label: fabric.name().to_string(),
        scenario: String::new(),
        summary: Value::Object(summary(fabric, recorder, tally, options)),
        stages: fabric.stages().to_vec(),
        bins: recorder.size_bins(),
        cdfs: recorder.cdfs(),
        series: SeriesTable { gauges: fabric.gauges().to_vec(), seconds, values },
        tables: fabric.tables(),
    }
}

fn summary(
    fabric: &dyn Fabric,
    recorder: &Recorder<'_>,
    tally: &Tally,
    options: &Options,
) -> Map<String, Value> {
    let totals = fabric.totals();
    let seconds = tally.end.as_seconds();
    let arrivals = tally.last_start.as_seconds();
    let capacity = f64::from(fabric.nodes()) * options.load_rate.as_bps() as f64;
    let (offered, offered_bytes) = recorder.books.offered();
    let realised = offered_bytes.get() as f64 * 8.0 / (capacity * arrivals);
    let delivered = totals.delivered.get() as f64 * 8.0;
    let aggregate = if seconds > 0.0 { delivered / seconds } else { 0.0 };
    let distributions = |of: fn(&Distribution) -> Quantiles| {
        json!({
            "short": of(&recorder.short).to_value(),
            "medium": of(&recorder.medium).to_value(),
            "long": of(&recorder.long).to_value(),
            "all": of(&recorder.all).to_value(),
        })
    };
    let measured = recorder.measured;
    let summary = json!({
        "fabric": fabric.name(),
        "nodes": fabric.nodes(),
        "load": {
            "nominal": options.nominal_load,
            "realised": if arrivals > 0.0 { Some(realised) } else { None },
            "rate": options.load_rate.as_bps(),
        },
        "node_rate": fabric.node_rate().as_bps(),
        "handshake": fabric.has_handshake(),
        "saturated": tally.saturated,
        "interrupted": tally.stop == Some(Stop::Interrupted),
        "stopped": tally.stop.map(Stop::as_str),
        "warm_up_flows": measured.before,
        "warm_up": warm_up(recorder, tally, options),
        "simulated_seconds": seconds,
        "limit_seconds": tally.limit.map(Time::as_seconds),
        "faults_after_end": options.faults.iter().filter(|&&at| at >= tally.end).count(),
        "event_hash": format!("{:016x}", totals.event_hash),
        "flows": {
            "offered": offered,
            "measured": measured.offered,
            "completed": recorder.books.completed(),
            "failed": recorder.books.failed(),
            "measured_failed": measured.failed,
            "unfinished": measured.unfinished,
        },
        "bytes": {
            "offered": offered_bytes.get(),
            "delivered": totals.delivered.get(),
            "lost": totals.lost.get(),
        },
        "fct": distributions(Distribution::fct),
        "slowdown": distributions(Distribution::slowdown),
        "slowdown_common": distributions(Distribution::common),
        "goodput": { "long": recorder.goodput.to_value() },
        "throughput": {
            "mean_node": aggregate / f64::from(fabric.nodes()),
            "aggregate": aggregate,
        },
        "queue": {
            "max_bytes": totals.queue_max.get(),
            "max_cells": totals.queue_max_cells,
            "p99_bytes": totals.queue_p99.get(),
        },
        "reorder": { "max_bytes": totals.reorder_max.get() },
        "drops": totals.drops,
        "retransmissions": totals.retransmissions,
        "equipment": fabric.bill().map(equipment),
        fabric.name().replace('-', "_"): fabric.details(),
        "engine": { "hops": totals.hops, "events": totals.events },
    });
    match summary {
        Value::Object(map) => map,
        _ => unreachable!("json! of braces is an object"),
    }
}

/// What the fabric is made of; cables are counted between racks alone.
fn equipment(bill: Bill) -> Value {
    let mut parts = json!({
        "switches": bill.switches,
        "switches_watts": bill.switches_watts,
        "nics_watts": bill.nics_watts,
        "power_watts": bill.watts(),
        "cost_ratio": bill.cost,
    });
    if bill.cables > 0 {
        parts["cables"] = json!(bill.cables);
        parts["cables_watts"] = json!(bill.cables_watts);
    }
    parts
}

/// What was left out at the start and how that was found, and whether what was measured has settled:
/// MSER-5 over the slowdowns of the measured flows in their order.
fn warm_up(recorder: &Recorder<'_>, tally: &Tally, options: &Options) -> Value {
    let Settled { settling, share } = recorder.settling();
    json!({
        "found_by": options.warm_up,
        "seconds": tally.first_measured.map(Time::as_seconds),
        "settled": match settling {
            Settling::After(_) => Some(true),
            Settling::Never => Some(false),
            Settling::TooShort => None,
        },
        "unsettled_share": if settling == Settling::TooShort { None } else { Some(share) },
    })
}

/// What only the caller of a run knows of it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name of the run in tables and legends.
    pub label: String,
    /// The scenario as resolved, in TOML.
    pub scenario: String,
    /// Version of Rackloom.
    pub version: String,
    /// Hash of the resolved scenario.
    pub hash: String,
    /// Seed of every random stream.
    pub seed: u64,
}

/// How fast the engine was: the only part of a summary that differs between equal runs.
#[derive(Clone, Copy, Debug)]
pub struct EngineTime {
    /// Seconds of wall time.
    pub wall_seconds: f64,
    /// Largest resident memory of the process.
    pub peak_rss: Bytes,
}

impl RunResult {
    /// Adds `value` to the summary as `key`, before what the engine took, which stands last.
    ///
    /// # Panics
    /// If the summary is no table.
    pub fn put(&mut self, key: &str, value: Value) {
        let table = self.summary.as_object_mut().expect("a summary is a table");
        let engine = table.shift_remove("engine");
        table.insert(key.into(), value);
        if let Some(engine) = engine {
            table.insert("engine".into(), engine);
        }
    }

    /// Adds what the caller knows: provenance first, the engine's speed last.
    #[must_use]
    pub fn describe(mut self, description: &Description, engine: EngineTime) -> Self {
        self.label.clone_from(&description.label);
        self.scenario.clone_from(&description.scenario);
        let mut summary = Map::new();
        summary.insert("rackloom_version".into(), description.version.clone().into());
        summary.insert("scenario_hash".into(), description.hash.clone().into());
        summary.insert("seed".into(), description.seed.into());
        summary.insert("label".into(), description.label.clone().into());
        if let Value::Object(measured) = self.summary {
            summary.extend(measured);
        }
        if let Some(Value::Object(counts)) = summary.get_mut("engine") {
            let per_second =
                |count: &Value| count.as_f64().unwrap_or(0.0) / engine.wall_seconds.max(1e-9);
            let hops = per_second(&counts["hops"]);
            let events = per_second(&counts["events"]);
            counts.insert("wall_seconds".into(), engine.wall_seconds.into());
            counts.insert("hops_per_second".into(), hops.into());
            counts.insert("events_per_second".into(), events.into());
            counts.insert("peak_rss_bytes".into(), engine.peak_rss.get().into());
        }
        self.summary = Value::Object(summary);
        self
    }
}
