//! Shoal beside packet-switched racks: one command, the same flows, one table, one report.

use serde_json::Value;

use crate::common::{Place, without_engine};

const RACKS: &str = "name = 'racks'
[run]
flows = 600
warm_up = 0.1
[workload]
kind = 'poisson'
load = 0.5
sizes = { kind = 'table', name = 'W4' }
[[fabric]]
kind = 'shoal'
label = 'Shoal'
nodes = 16
[[fabric]]
kind = 'packet-switched'
label = 'NDP'
nodes = 16
transport = { kind = 'ndp' }
[[fabric]]
kind = 'packet-switched'
label = 'DCTCP'
nodes = 16
transport = { kind = 'dctcp' }
[[fabric]]
kind = 'packet-switched'
label = 'DCQCN'
nodes = 16
transport = { kind = 'dcqcn' }
[[fault]]
at = '100 us'
until = '120 us'
node_link = 3
";

/// All summaries of a comparison but the engine's speed.
fn compare(place: &Place, jobs: &str) -> Vec<Value> {
    let arguments =
        ["compare", "racks.toml", "--jobs", jobs, "--out", jobs, "--format", "json", "--quiet"];
    let done = place.run(&arguments).succeeds();
    let summaries = done.json().as_array().unwrap().clone();
    summaries.into_iter().map(without_engine).collect()
}

#[test]
fn a_comparison_is_the_same_on_any_number_of_cores() {
    let place = Place::new();
    place.write("racks.toml", RACKS);
    let (one, two) = (compare(&place, "1"), compare(&place, "2"));
    assert_eq!(one.len(), 4);
    assert_eq!(one, two);
    for folder in ["Shoal", "NDP", "DCTCP", "DCQCN"] {
        for file in ["flows.parquet", "series.parquet", "scenario.toml"] {
            let (first, second) = (format!("1/{folder}/{file}"), format!("2/{folder}/{file}"));
            assert_eq!(place.read(&first), place.read(&second), "{first}");
        }
    }
}

#[test]
fn shoal_and_packet_switched_racks_stand_side_by_side() {
    let place = Place::new();
    place.write("racks.toml", RACKS);
    let done = place.run(&["compare", "racks.toml", "--out", "c"]).succeeds();
    for text in ["Shoal", "NDP", "DCTCP", "DCQCN", "Power of the network", "Cost"] {
        assert!(done.stdout.contains(text), "no {text} in\n{}", done.stdout);
    }
    let names = place.names("c");
    assert_eq!(
        names,
        [
            "DCQCN",
            "DCTCP",
            "NDP",
            "SHA256SUMS",
            "Shoal",
            "report.html",
            "scenario.toml",
            "summary.json"
        ]
    );
    let report = String::from_utf8(place.read("c/report.html")).unwrap();
    for title in [
        "Flow completion time by flow size",
        "Slowdown by flow size",
        "Goodput of long flows",
        "Power of the network",
    ] {
        assert!(report.contains(title), "no {title} in the report");
    }
    let summaries = place.json("c/summary.json");
    let offered: Vec<_> = summaries.as_array().unwrap().iter().map(|s| &s["load"]).collect();
    assert!(offered.iter().all(|load| load["rate"] == 50e9), "{offered:?}");
    // Each run stands in its own folder too, under the key of its own kind.
    let ndp = place.json("c/NDP/summary.json");
    assert_eq!(ndp["packet_switched"]["transport"], "ndp");
    assert_eq!(ndp["fabric"], "packet-switched");
}

#[test]
fn both_fabrics_agree_on_what_the_packet_switched_rack_of_shoal_draws() {
    let place = Place::new();
    let text = RACKS.replace("nodes = 16", "nodes = 512").replace("flows = 600", "flows = 20");
    place.write("racks.toml", &text);
    let done = place.run(&["compare", "racks.toml", "--out", "c", "--format", "json", "--quiet"]);
    let summaries = done.succeeds().json();
    let (shoal, ndp) = (&summaries[0], &summaries[1]);
    assert_eq!(ndp["equipment"]["switches"], 24);
    let drawn = ndp["equipment"]["power_watts"].as_f64().unwrap();
    let expected = shoal["shoal"]["power_watts_packet_switched"].as_f64().unwrap();
    assert!((drawn - expected).abs() < 1e-6, "{drawn} W and {expected} W");
    let cost = |summary: &Value| summary["equipment"]["cost_ratio"].as_f64().unwrap();
    let expected = shoal["shoal"]["cost_relative_to_packet_switched"].as_f64().unwrap();
    assert!((cost(shoal) / cost(ndp) - expected).abs() < 1e-9);
}

#[test]
fn one_bad_fabric_stops_the_comparison_before_anything_runs() {
    let place = Place::new();
    let text = RACKS.replace("{ kind = 'dcqcn' }", "{ kind = 'dcqcn', priority = 9 }");
    place.write("racks.toml", &text);
    let done = place.run(&["compare", "racks.toml", "--out", "c"]);
    done.refuses(&[
        "racks.toml:27: fabric[3].transport.priority: found 9; expected a whole number from 1 to 7",
    ]);
    assert!(!place.join("c").exists());
}
