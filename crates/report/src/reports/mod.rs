//! The three kinds of report, composed of a page's parts: one run, several runs over the same flows,
//! a paper's claims.

mod bars;
mod claims;
mod comparison;
mod gauges;
mod run;
mod sizes;
mod why;

pub use claims::{
    Cause, Claim, Kind, Tally, Verdict, claims_page, claims_table, claims_to_read,
    published_claims, verdict_of,
};
pub use comparison::comparison_page;
pub use run::{key_figures, run_page};
pub use why::{
    Why, account_of, flows_table, parts_table, queues_table, run_again, slow_flows, slowest_first,
};

use serde_json::Value;

use crate::page::Block;
use crate::summary::{get, shown};
use crate::{Cell, Column, ResultsTable, Unit};

/// What is needed to obtain the same report again, a column a run.
fn provenance(runs: &[(&str, &Value)], command: &str) -> Vec<Block> {
    let mut columns = vec![Column::new("what", "")];
    columns.extend(runs.iter().map(|(label, _)| Column::new(*label, *label)));
    let mut table = ResultsTable::new(columns);
    for (key, label) in [
        ("rackloom_version", "Rackloom version"),
        ("scenario_hash", "Scenario hash"),
        ("seed", "Seed"),
        ("event_hash", "Event hash"),
        ("engine.wall_seconds", "Time to compute"),
        ("engine.hops", "Hops"),
        ("engine.hops_per_second", "Hops computed"),
        ("engine.events_per_second", "Engine steps computed"),
        ("engine.peak_rss_bytes", "Peak memory"),
    ] {
        if runs.iter().any(|(_, summary)| get(summary, key).is_some()) {
            let values = runs.iter().map(|(_, summary)| match get(summary, key) {
                // A seed is a name made of digits: no thousands are set apart in it.
                Some(value) if key == "seed" => Cell::text(value.to_string()),
                Some(value) => Cell::new(value.clone(), Unit::of_key(key)),
                None => Cell::new(Value::Null, Unit::Count),
            });
            table.push(std::iter::once(Cell::text(label)).chain(values).collect());
        }
    }
    let intro = "The same version, scenario and seed give the same event hash and the same figures, \
                 on any machine.";
    vec![
        Block::Text(intro.into()),
        Block::table(table),
        Block::Source { title: "Command to repeat this".into(), text: command.into() },
    ]
}

/// What was simulated, in a sentence.
fn lead(summary: &Value) -> String {
    let mut parts = vec![format!("{} nodes", shown(summary, "nodes"))];
    let is_load_asked_for = get(summary, "load.nominal").is_some();
    if is_load_asked_for {
        parts.push(format!("load {}", shown(summary, "load.nominal")));
    }
    if get(summary, "load.realised").is_some() {
        let what = if is_load_asked_for { "" } else { "load " };
        parts.push(format!("{what}{} realised", shown(summary, "load.realised")));
    }
    parts.push(format!("{} flows measured", shown(summary, "flows.measured")));
    parts.push(format!("{} simulated", shown(summary, "simulated_seconds")));
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_lead_says_load_once() {
        for (nominal, expected) in
            [(json!(0.5), "load 50% · 48% realised"), (json!(null), "load 48% realised")]
        {
            let summary = json!({
                "nodes": 8, "load": { "nominal": nominal, "realised": 0.48 },
                "flows": { "measured": 600 }, "simulated_seconds": 4.79e-4,
            });
            let expected = format!("8 nodes · {expected} · 600 flows measured · 479 µs simulated");
            assert_eq!(lead(&summary), expected);
        }
    }
}
