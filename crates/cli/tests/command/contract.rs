//! The command as scripts rely on it: files, streams, exit codes, byte for byte.

use crate::common::{Place, without_engine};
use serde_json::{Value, json};

#[test]
fn run_writes_the_six_files_and_prints_a_table() {
    let place = Place::new();
    let done = place.run(&["run", "small.toml"]).succeeds();
    let directories = place.names("results");
    assert_eq!(directories.len(), 1);
    let summary = place.json(&format!("results/{}/summary.json", directories[0]));
    let expected = format!("small-{}", summary["scenario_hash"].as_str().unwrap());
    assert_eq!(directories[0], expected);
    let files = [
        "SHA256SUMS",
        "flows.parquet",
        "report.html",
        "scenario.toml",
        "series.parquet",
        "summary.json",
    ];
    assert_eq!(place.names(&format!("results/{}", directories[0])), files);
    assert!(done.stdout.contains("shoal"), "{done:#?}");
    assert!(done.stderr.contains("Results are in results/small-"), "{done:#?}");
}

#[test]
fn the_summary_has_every_documented_key() {
    let place = Place::new();
    let summary = place.run(&["run", "small.toml", "--format", "json", "-q"]).succeeds().json();
    for path in [
        "rackloom_version",
        "scenario_hash",
        "seed",
        "fabric",
        "nodes",
        "load/nominal",
        "load/realised",
        "saturated",
        "simulated_seconds",
        "event_hash",
        "flows/offered",
        "flows/measured",
        "flows/unfinished",
        "flows/completed",
        "flows/failed",
        "bytes/offered",
        "bytes/delivered",
        "bytes/lost",
        "fct/short/count",
        "fct/medium/count",
        "fct/long/count",
        "fct/all/count",
        "fct/all/mean",
        "fct/all/p50",
        "fct/all/p95",
        "fct/all/p99",
        "fct/all/p999",
        "fct/all/max",
        "slowdown/all/p99",
        "goodput/long/mean",
        "goodput/long/p50",
        "goodput/long/p01",
        "throughput/mean_node",
        "throughput/aggregate",
        "queue/max_bytes",
        "queue/max_cells",
        "queue/p99_bytes",
        "reorder/max_bytes",
        "drops",
        "retransmissions",
        "engine/wall_seconds",
        "engine/hops",
        "engine/hops_per_second",
        "engine/events",
        "engine/events_per_second",
        "engine/peak_rss_bytes",
        "shoal",
    ] {
        assert!(summary.pointer(&format!("/{path}")).is_some(), "{path} is missing: {summary:#}");
    }
    assert_eq!(summary["rackloom_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&summary["seed"], &summary["nodes"]), (&json!(1), &json!(8)));
    assert_eq!(summary["flows"]["failed"], 0);
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    let place = Place::new();
    for out in ["a", "b"] {
        place.run(&["run", "small.toml", "--out", out]).succeeds();
    }
    for file in ["scenario.toml", "flows.parquet", "series.parquet"] {
        assert!(place.read(&format!("a/{file}")) == place.read(&format!("b/{file}")), "{file}");
    }
    let summary = |out: &str| without_engine(place.json(&format!("{out}/summary.json")));
    assert_eq!(summary("a").to_string(), summary("b").to_string());
    place.run(&["run", "small.toml", "--out", "c", "--seed", "2"]).succeeds();
    assert_ne!(summary("a")["event_hash"], summary("c")["event_hash"]);
}

#[test]
fn the_resolved_scenario_runs_to_the_same_result() {
    let place = Place::new();
    place.run(&["run", "small.toml", "--out", "a", "--set", "fabric.packet=1 KB"]).succeeds();
    place.run(&["run", "a/scenario.toml", "--out", "b"]).succeeds();
    assert_eq!(place.read("a/scenario.toml"), place.read("b/scenario.toml"));
    let summary = |out: &str| without_engine(place.json(&format!("{out}/summary.json")));
    assert_eq!(summary("a"), summary("b"));
}

#[test]
fn quiet_says_nothing_but_the_result_and_json_is_only_json() {
    let place = Place::new();
    let done = place.run(&["run", "small.toml", "--quiet"]).succeeds();
    assert_eq!(done.stderr, "");
    let done = place.run(&["run", "small.toml", "--format", "json"]).succeeds();
    assert!(done.json().is_object());
}

#[test]
fn compare_carries_the_same_flows_through_each_fabric() {
    let place = Place::new();
    // All flows start at once: with arrivals, the slower fabric would be offered more until its end.
    let small = crate::common::SMALL.replace(
        "kind = 'poisson'\nload = 0.5\nsizes = { kind = 'fixed', size = '10 KB' }",
        "kind = 'bulk'\nsize = '10 KB'\nflows = 40\npattern = { kind = 'uniform' }",
    );
    let other = small.replace("'small'", "'other'") + "label = 'small packets'\npacket = '1 KB'\n";
    place.write("small.toml", &small);
    place.write("other.toml", &other);
    let done =
        place.run(&["compare", "small.toml", "other.toml", "--out", "c", "--format", "json"]);
    let summaries = done.succeeds().json();
    let [first, second] = summaries.as_array().unwrap().as_slice() else { panic!("{summaries}") };
    assert_eq!(first["bytes"]["offered"], second["bytes"]["offered"]);
    assert_eq!(second["label"], "small packets");
    assert_eq!(place.json("c/summary.json"), summaries);
    assert_eq!(
        place.names("c"),
        ["SHA256SUMS", "report.html", "scenario.toml", "shoal", "small-packets", "summary.json"]
    );
    let alone = place.json("c/shoal/summary.json");
    place.run(&["run", "small.toml", "--out", "alone"]).succeeds();
    let mut expected = without_engine(place.json("alone/summary.json"));
    let mut found = without_engine(alone);
    for summary in [&mut expected, &mut found] {
        summary["scenario_hash"] = Value::Null;
    }
    assert_eq!(found, expected);
    place.run(&["compare", "c/scenario.toml", "--out", "again"]).succeeds();
    assert_eq!(place.read("c/scenario.toml"), place.read("again/scenario.toml"));
}

#[test]
fn a_sweep_runs_every_point_once_and_goes_on_where_it_stopped() {
    let place = Place::new();
    let sweep = |out: &str, loads: &str, jobs: &str| {
        let grid = format!("workload.load={loads}");
        place
            .run(&["sweep", "small.toml", "--grid", &grid, "--jobs", jobs, "--out", out])
            .succeeds()
    };
    let first = sweep("s", "0.2,0.4", "1");
    assert!(first.stderr.contains("2 points ran, 0 had run before"), "{first:#?}");
    let points = place.names("s/points");
    assert_eq!(points.len(), 2);
    // As if it had been killed in the middle of a point: no summary, no point.
    std::fs::remove_file(place.join(&format!("s/points/{}/summary.json", points[0]))).unwrap();
    let again = sweep("s", "0.2,0.4", "1");
    assert!(again.stderr.contains("1 points ran, 1 had run before"), "{again:#?}");
    let wider = sweep("s", "0.2,0.4,0.6", "2");
    assert!(wider.stderr.contains("1 points ran, 2 had run before"), "{wider:#?}");
    sweep("t", "0.2,0.4,0.6", "1");
    assert_eq!(place.read("s/sweep.csv"), place.read("t/sweep.csv"));
    for point in place.names("t/points") {
        let summary =
            |out: &str| without_engine(place.json(&format!("{out}/points/{point}/summary.json")));
        assert_eq!(summary("s"), summary("t"));
    }
}

#[test]
fn a_point_that_fails_does_not_stop_the_others() {
    let place = Place::new();
    let arguments =
        ["sweep", "small.toml", "--grid", "fabric.nodes=1,8", "--out", "s", "--format", "json"];
    let done = place.run(&arguments);
    assert_eq!(done.code, Some(1), "{done:#?}");
    let rows = done.json();
    assert_eq!((&rows[0]["status"], &rows[1]["status"]), (&json!("failed"), &json!("done")));
    assert!(done.stderr.contains("--grid fabric.nodes=1: fabric.nodes: "), "{done:#?}");
}

#[test]
fn a_filter_that_leaves_no_benchmark_is_refused() {
    let done = Place::new().run(&["bench", "permutation-46"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:#?}");
    let expected =
        "filter \"permutation-46\": no benchmark's name holds it; did you mean \"permutation-";
    assert!(done.stderr.contains(expected), "{done:#?}");
}

#[test]
fn lists_descriptions_and_the_schema_are_there() {
    let place = Place::new();
    let fabrics = place.run(&["list", "fabrics", "--format", "json"]).succeeds().json();
    let names: Vec<_> = fabrics.as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert!(names.contains(&&json!("shoal")), "{names:?}");
    let all = place.run(&["list"]).succeeds().stdout;
    for name in ["poisson", "incast", "trace", "homa_w4_fb_hadoop"] {
        assert!(all.contains(name), "{name} is not listed:\n{all}");
    }
    let keys = place.run(&["describe", "shoal", "--format", "json"]).succeeds().json();
    let guard = keys.as_array().unwrap().iter().find(|row| row["key"] == "guard").unwrap();
    assert_eq!(guard["default"], "\"2.75 ns\"");
    assert!(guard["description"].as_str().unwrap().contains("Shoal §7.1"), "{guard}");
    for name in ["poisson", "mix", "trace", "run", "fault"] {
        place.run(&["describe", name]).succeeds();
    }
    let schema = place.run(&["schema"]).succeeds().json();
    assert_eq!(schema["type"], "object");
    let fabrics = schema["properties"]["fabric"]["anyOf"][0]["oneOf"].as_array().unwrap();
    assert!(fabrics.iter().any(|fabric| fabric["properties"]["guard"].is_object()), "{fabrics:?}");
}

#[test]
fn every_key_says_what_it_means() {
    let place = Place::new();
    let names = place.run(&["list", "--format", "json"]).succeeds().json();
    let kinds = names.as_array().unwrap().iter();
    let kinds = kinds.filter(|row| row["kind"] == "fabric" || row["kind"] == "workload");
    for row in kinds {
        let name = row["name"].as_str().unwrap();
        let keys = place.run(&["describe", name, "--format", "json"]).succeeds().json();
        for key in keys.as_array().unwrap() {
            let tag = key["key"].as_str().unwrap().ends_with("kind");
            assert!(tag || key["description"] != "", "{name}: {key}");
        }
    }
}

#[test]
fn version_help_and_completions_are_there() {
    let place = Place::new();
    let version = place.run(&["--version"]).succeeds().stdout;
    assert!(version.starts_with(&format!("rackloom {}", env!("CARGO_PKG_VERSION"))), "{version}");
    assert!(place.run(&["--help"]).succeeds().stdout.contains("Exit codes"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.run(&["completions", shell]).succeeds().stdout.contains("rackloom"));
    }
}

#[test]
fn every_example_runs() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = path.display().to_string();
        if path.extension().is_some_and(|extension| extension == "toml") {
            // `compare` takes one fabric as well as several; few flows and little time, for the test's
            // sake: the longest flows take milliseconds, in which others go on arriving.
            let is_window = std::fs::read_to_string(&path).unwrap().contains("\nwindow = ");
            let few: &[_] = match is_window {
                true => &["--set", "run.window=50 us", "--set", "run.warm_up=50 us"],
                false => &["--set", "run.flows=300"],
            };
            let little = ["--set", "run.time=300 us"];
            let arguments = [&["compare", &text, "--out", "out"][..], few, &little].concat();
            place.run(&arguments).succeeds();
            count += 1;
        }
    }
    assert!(count > 0, "no example in {folder}");
    let first = format!("{folder}/shoal-rack.toml");
    let few = ["--set", "run.flows=300", "--set", "run.time=300 us"];
    let arguments = [&["run", &first, "--format", "json", "--out", "r"][..], &few].concat();
    assert_eq!(place.run(&arguments).succeeds().json()["nodes"], 512);
}
