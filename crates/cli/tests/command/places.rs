//! Results directories: one run at a time, nothing half of one run and half of another.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Done, Place};

/// More flows than any test waits for.
const ENDLESS: &str = "run.flows=50000000";

#[track_caller]
fn wait_until(what: &str, ready: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !ready() {
        assert!(Instant::now() < limit, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn two_runs_into_one_directory_do_not_mix() {
    let place = Place::new();
    let mut command = place.command(&["run", "small.toml", "--out", "out", "--set", ENDLESS]);
    let mut first = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the first run", || place.join("out/.rackloom.lock").exists());
    let refused = [
        "out: another run is writing its results here; wait for it to end, or choose another place",
    ];
    for verb in ["run", "compare"] {
        place.run(&[verb, "small.toml", "--out", "out"]).refuses(&refused);
    }
    // A killed process keeps nobody out, and what it had half written is gone afterwards.
    first.kill().unwrap();
    first.wait().unwrap();
    // However far it had come.
    place.write("out/.flows.parquet.Xy9.partial", "half");
    assert!(place.join("out/.rackloom.lock").exists());
    place.run(&["run", "small.toml", "--out", "out"]).succeeds();
    let names = place.names("out");
    assert!(names.iter().all(|name| !name.starts_with('.')), "{names:?}");
    assert_eq!(names.len(), 6);
}

#[test]
fn two_sweeps_into_one_directory_do_not_mix() {
    let place = Place::new();
    let grid = |flows: &'static str| ["sweep", "small.toml", "--grid", flows, "--out", "s"];
    let mut command = place.command(&grid("run.flows=50000000"));
    let mut first = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the first sweep", || place.join("s/.rackloom.lock").exists());
    let done = place.run(&grid("run.flows=100"));
    assert_eq!(done.code, Some(2), "{done:#?}");
    first.kill().unwrap();
    first.wait().unwrap();
    place.run(&grid("run.flows=100")).succeeds();
}

#[test]
fn a_killed_comparison_leaves_no_older_summary_beside_its_runs() {
    let place = Place::new();
    place.run(&["compare", "small.toml", "--out", "c"]).succeeds();
    assert!(place.join("c/summary.json").exists());
    let mut command = place.command(&["compare", "small.toml", "--out", "c", "--set", ENDLESS]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the end of the older summary", || !place.join("c/summary.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.join("c/SHA256SUMS").exists());
}

#[test]
fn a_point_whose_files_were_edited_or_lost_runs_again() {
    let place = Place::new();
    let arguments = ["sweep", "small.toml", "--grid", "workload.load=0.2,0.4", "--out", "s"];
    let ran = |count: usize| {
        let done = place.run(&arguments).succeeds();
        let expected = format!("{count} points ran, {} had run before", 2 - count);
        assert!(done.stderr.contains(&expected), "{done:#?}");
    };
    ran(2);
    ran(0);
    let point = format!("s/points/{}", place.names("s/points")[0]);
    for file in [
        "flows.parquet",
        "series.parquet",
        "scenario.toml",
        "report.html",
        "summary.json",
        "SHA256SUMS",
    ] {
        let path = place.join(&format!("{point}/{file}"));
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        ran(1);
        std::fs::remove_file(&path).unwrap();
        ran(1);
    }
    ran(0);
}

#[test]
fn checksums_are_those_that_everybody_computes() {
    let place = Place::new();
    place.run(&["run", "small.toml", "--out", "out"]).succeeds();
    let mut command = std::process::Command::new("sha256sum");
    let output = command.args(["--check", "SHA256SUMS"]).current_dir(place.join("out")).output();
    // Where that program is missing the library's own test has to do.
    let Ok(output) = output else { return };
    let done = Done::of(&output);
    assert_eq!(done.stdout.matches(": OK").count(), 5, "{done:#?}");
}

#[test]
fn points_that_are_the_same_in_other_words_run_once() {
    let place = Place::new();
    let arguments = [
        "sweep",
        "small.toml",
        "--grid",
        "workload.load=0.5,0.50,5e-1",
        "--jobs",
        "3",
        "--out",
        "s",
    ];
    let done = place.run(&arguments).succeeds();
    assert!(done.stderr.contains("1 points ran, 2 had run before, 0 failed"), "{done:#?}");
    assert_eq!(place.names("s/points").len(), 1);
}
