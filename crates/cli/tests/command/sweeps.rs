//! Sweeps as figures: seeds, plots, tables, and what an old sweep has to do with a new one.

use serde_json::{Value, json};

use crate::common::{Done, Place};

const TWO: &str = "name = 'two'
[run]
flows = 60
[workload]
kind = 'poisson'
load = 0.3
sizes = { kind = 'fixed', size = '2 KB' }
[[fabric]]
kind = 'shoal'
label = 'Shoal'
nodes = 8
[[fabric]]
kind = 'packet-switched'
label = 'NDP'
nodes = 8
transport = { kind = 'ndp' }
";

fn place() -> Place {
    let place = Place::new();
    place.write("two.toml", TWO);
    place
}

fn sweep(place: &Place, more: &[&str]) -> Done {
    place.run(&[&["sweep", "two.toml", "--out", "s"], more].concat())
}

fn text(place: &Place, name: &str) -> String {
    String::from_utf8(place.read(name)).unwrap()
}

#[test]
fn fabrics_loads_and_seeds_become_means_with_intervals_and_figures() {
    let place = place();
    let plots = ["--plot", "slowdown.all.p99", "--plot", "equipment.power_watts", "--log", "y"];
    let grid = ["--grid", "workload.load=0.2,0.4", "--seeds", "3", "--csv", "own.csv"];
    let done = sweep(&place, &[&grid[..], &plots, &["--format", "json"]].concat()).succeeds();
    // A row for each load and fabric, over the seeds; the points are there one by one.
    let rows = done.json();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    assert_eq!((&rows[0]["fabric"], &rows[0]["seeds"]), (&json!("Shoal"), &json!(3)));
    assert!(done.stderr.contains("12 points ran"), "{done:#?}");
    assert_eq!(place.names("s/points").len(), 12);
    assert_eq!(text(&place, "s/sweep.csv").lines().count(), 13);
    // The mean of the table is the mean of the points, of which each has its own summary.
    let means = text(&place, "s/means.csv");
    assert_eq!(means, text(&place, "own.csv"));
    let column = |table: &str, key: &str| -> Vec<String> {
        let mut reader = csv::Reader::from_reader(table.as_bytes());
        let at = reader.headers().unwrap().iter().position(|head| head == key).unwrap();
        reader.records().map(|row| row.unwrap()[at].to_string()).collect()
    };
    let number = |text: &String| text.parse::<f64>().unwrap();
    let key = "slowdown.all.p50";
    let points: Vec<f64> = column(&text(&place, "s/sweep.csv"), key).iter().map(number).collect();
    let mean = number(&column(&means, key)[0]);
    assert!((mean - points[..3].iter().sum::<f64>() / 3.0).abs() < 1e-12, "{mean} {points:?}");
    let ends = [".low", ".high"].map(|end| number(&column(&means, &format!("{key}{end}"))[0]));
    assert!(ends[0] < mean && mean < ends[1], "{ends:?} {mean}");
    // Figures: each, and all side by side; the network's power is the same at any load, and a bar.
    let names = [
        "equipment.power_watts-over-workload.load.pdf",
        "equipment.power_watts-over-workload.load.svg",
        "overview.pdf",
        "overview.svg",
        "slowdown.all.p99-over-workload.load.pdf",
        "slowdown.all.p99-over-workload.load.svg",
    ];
    assert_eq!(place.names("s/figures"), names);
    let overview = text(&place, "s/figures/overview.svg");
    for word in ["Shoal", "NDP", "Load", "20%", "40%", "Slowdown, 99%", "Power of the network"] {
        assert!(overview.contains(word), "{word}");
    }
    assert!(place.read("s/figures/overview.pdf").starts_with(b"%PDF"));
}

#[test]
fn a_grid_with_other_values_joins_an_older_one_and_another_scenario_does_not() {
    let place = place();
    let loads = |done: &Done| -> Vec<Value> {
        let rows = done.json();
        rows.as_array().unwrap().iter().map(|row| row["workload.load"].clone()).collect()
    };
    let run = |load: &str, more: &[&str]| {
        let grid = format!("workload.load={load}");
        let done = sweep(&place, &[&["--grid", &grid, "--format", "json"], more].concat());
        done.succeeds()
    };
    run("0.4", &[]);
    let joined = run("0.2", &[]);
    assert_eq!(loads(&joined), ["0.2", "0.2", "0.4", "0.4"]);
    assert!(joined.stderr.contains("2 points ran, 2 had run before"), "{joined:#?}");
    // More seeds of it join, too.
    let more = run("0.2", &["--seeds", "2"]);
    assert!(more.stderr.contains("2 points ran, 4 had run before"), "{more:#?}");
    assert_eq!(more.json()[0]["seeds"], json!(2));
    let other = run("0.2", &["--set", "run.flows=50"]);
    assert_eq!(loads(&other), ["0.2", "0.2"]);
}

#[test]
fn a_report_is_made_again_without_running_anything() {
    let place = place();
    sweep(&place, &["--grid", "workload.load=0.2,0.4"]).succeeds();
    let csv = place.read("s/sweep.csv");
    for name in ["s/sweep.csv", "s/report.html"] {
        std::fs::remove_file(place.join(name)).unwrap();
    }
    let plot = ["--plot", "fct.short.p99", "--over", "load.realised"];
    let done = place.run(&[&["sweep", "s", "--report"][..], &plot].concat()).succeeds();
    assert!(done.stderr.contains("0 points ran, 4 had run before"), "{done:#?}");
    assert_eq!(place.read("s/sweep.csv"), csv);
    assert_eq!(place.names("s/figures").len(), 2);
    let page = text(&place, "s/report.html");
    assert!(page.contains("Figures asked for"));
    let unknown = place.run(&["sweep", "s", "--report", "--plot", "fct.short.p98"]);
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
    assert!(unknown.stderr.contains("did you mean \"fct.short.p99\"?"), "{unknown:#?}");
    let none = place.run(&["sweep", "nowhere", "--report"]);
    assert_eq!(none.code, Some(2), "{none:#?}");
    assert!(none.stderr.contains("holds no sweep"), "{none:#?}");
    assert!(!place.join("nowhere").exists());
}

#[test]
fn a_key_that_no_summary_has_is_refused_before_any_point_runs() {
    let place = place();
    let plots = ["--plot", "slowdown.al.p99", "--plot", "fct.all.p99", "--over", "load.realized"];
    let done = sweep(&place, &[&["--grid", "workload.load=0.2"][..], &plots].concat());
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:#?}");
    for expected in [
        "--plot slowdown.al.p99: no summary of this scenario has such a number; did you mean \"slowdown.all.p99\"?",
        "--over load.realized: no summary of this scenario has such a number; did you mean \"load.realised\"?",
    ] {
        assert!(done.stderr.contains(expected), "{done:#?}");
    }
    assert!(!done.stderr.contains("fct.all.p99:") && !place.join("s").exists());
    // Figures go over keys of the grid, too.
    let over = ["--grid", "workload.load=0.2", "--plot", "fct.all.p99", "--over", "workload.lod"];
    let done = sweep(&place, &over);
    let expected = "--over workload.lod: no summary of this scenario has such a number; did you mean \"workload.load\"?";
    assert!(done.code == Some(2) && done.stderr.contains(expected), "{done:#?}");
}

#[test]
fn a_key_without_a_number_in_any_summary_costs_its_figure_alone() {
    let place = place();
    // No flow is long.
    let done = sweep(&place, &["--grid", "workload.load=0.2", "--plot", "fct.long.p99"]);
    assert_eq!(done.code, Some(1), "{done:#?}");
    assert!(done.stderr.contains("no summary of this sweep has such a number"), "{done:#?}");
    assert!(place.join("s/report.html").exists() && !place.join("s/figures").exists());
}

#[test]
fn reports_of_a_sweep_share_one_chart_library() {
    let place = place();
    sweep(&place, &["--grid", "workload.load=0.2,0.4"]).succeeds();
    let library = place.read("s/plotly-basic.min.js").len();
    for point in place.names("s/points") {
        let page = text(&place, &format!("s/points/{point}/report.html"));
        assert!(page.len() < library / 4, "{} bytes", page.len());
        assert!(page.contains("src=\"../../plotly-basic.min.js\""));
    }
    assert!(text(&place, "s/report.html").contains("src=\"plotly-basic.min.js\""));
    // A run by itself can be sent alone.
    place.run(&["run", "small.toml", "--out", "r"]).succeeds();
    assert!(place.read("r/report.html").len() > library);
}

#[test]
fn without_a_grid_fabrics_stand_beside_each_other() {
    let place = place();
    let plot = ["--seeds", "2", "--plot", "slowdown.all.p50"];
    sweep(&place, &plot).succeeds();
    assert_eq!(place.names("s/figures"), ["slowdown.all.p50.pdf", "slowdown.all.p50.svg"]);
    let nothing = place.run(&["sweep", "two.toml"]);
    assert_eq!(nothing.code, Some(2), "{nothing:#?}");
}
