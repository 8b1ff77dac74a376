//! Bad input and bad days: one clear message or a resumable state, nothing finished is lost.

use std::io::Read;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Done, Place};

/// The small scenario with a change, refused with these lines, and nothing written.
#[track_caller]
fn refuses(from: &str, to: &str, lines: &[&str]) {
    let place = Place::new();
    let text = crate::common::SMALL.replace(from, to);
    assert_ne!(text, crate::common::SMALL, "the scenario holds no {from:?}");
    place.write("bad.toml", &text);
    place.run(&["run", "bad.toml"]).refuses(lines);
    assert_eq!(place.names("."), ["bad.toml", "small.toml"]);
}

#[test]
fn a_wrong_unit_is_refused() {
    refuses(
        "'10 KB'",
        "'10 kb'",
        &[
            "bad.toml:7: workload.sizes.size: \"10 kb\" has the unknown unit \"kb\": a size is written \
           with one of TB, GB, MB, KB, B, TiB, GiB, MiB, KiB, such as \"64 B\"",
        ],
    );
    refuses(
        "nodes = 8",
        "guard = 3",
        &[
            "bad.toml:10: fabric.guard: found the number 3; expected a time in quotes with its unit, \
           such as \"2.75 ns\"",
        ],
    );
}

#[test]
fn an_unknown_key_is_refused_with_a_suggestion() {
    refuses(
        "nodes = 8",
        "gaurd = '3 ns'",
        &["bad.toml:10: fabric.gaurd: unknown key; did you mean \"guard\"?"],
    );
}

#[test]
fn a_rack_of_one_is_refused() {
    refuses(
        "nodes = 8",
        "nodes = 1",
        &["bad.toml:10: fabric.nodes: found 1; expected a whole number from 2 to 2048"],
    );
}

#[test]
fn a_file_that_is_not_there_is_refused() {
    let place = Place::new();
    let done = place.run(&["run", "none.toml"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.starts_with("none.toml: cannot be read: "), "{done:#?}");
}

#[test]
fn bad_arguments_exit_with_two_and_name_the_argument() {
    let place = Place::new();
    place
        .run(&["run", "small.toml", "--set", "workload.laod=1"])
        .refuses(&["--set workload.laod=1: workload.laod: unknown key; did you mean \"load\"?"]);
    place.run(&["run", "small.toml", "--seed", "one"]).refuses(&[
        "--seed one: seed: found the text \"one\"; expected a whole number, at least 0",
    ]);
    place
        .run(&["run", "small.toml", "--set", "load"])
        .refuses(&["--set load: expected KEY=VALUE, such as workload.load=0.5"]);
    assert_eq!(place.run(&["run"]).code, Some(2));
    assert_eq!(place.run(&["rnu", "small.toml"]).code, Some(2));
    assert_eq!(place.run(&["describe", "shaol"]).code, Some(2));
    assert_eq!(place.run(&["reproduce", "no-such-paper"]).code, Some(2));
    assert_eq!(place.names("."), ["small.toml"]);
}

/// A scenario that carries this trace.
fn with_trace(place: &Place, name: &str) -> Done {
    let text = format!(
        "[workload]\nkind = 'trace'\npath = '{name}'\n[fabric]\nkind = 'shoal'\nnodes = 8\n"
    );
    place.write("trace.toml", &text);
    place.run(&["run", "trace.toml", "--out", "out"])
}

#[test]
fn bad_traces_are_refused_by_line() {
    let place = Place::new();
    place.write("t.csv", "start,src,dst,bytes\n0 ns,1,1,5\n0 ns,1,8,5\n0 ns,0,1,5\n1 ns,0,1");
    with_trace(&place, "t.csv").refuses(&[
        "trace.toml:3: workload.path: t.csv:2: dst: found a flow from node 1 to itself; expected two \
         nodes",
        "trace.toml:3: workload.path: t.csv:3: dst: found node 8; expected one from 0 to 7, the rack \
         has 8 nodes",
        "trace.toml:3: workload.path: t.csv:5: the last line is torn: it does not end in a line \
         break; write it whole, or cut it off",
    ]);
    place.write("t.parquet", "PAR1 and then nothing");
    let done = with_trace(&place, "t.parquet");
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("t.parquet: not a whole Parquet file"), "{done:#?}");
    assert_eq!(done.stderr.lines().count(), 1, "{done:#?}");
    assert!(!place.join("out").exists());
}

#[test]
fn a_good_trace_runs() {
    let place = Place::new();
    place.write("t.csv", "start,src,dst,bytes,after\n0 ns,0,1,5000,\n1 us,1,2,5000,0\n");
    with_trace(&place, "t.csv").succeeds();
    assert_eq!(place.json("out/summary.json")["flows"]["completed"], 2);
    // The resolved scenario lies elsewhere and still finds the trace.
    place.run(&["run", "out/scenario.toml", "--out", "again"]).succeeds();
    assert_eq!(place.read("out/scenario.toml"), place.read("again/scenario.toml"));
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_run() {
    let place = Place::new();
    place
        .run(&["run", "small.toml", "--out", "small.toml"])
        .refuses(&["small.toml: is a file, not a directory; choose another place for the results"]);
    // The kernel's own directory refuses even root.
    let done = place.run(&["run", "small.toml", "--out", "/proc/rackloom"]);
    assert_eq!(done.code, Some(2), "{done:#?}");
    assert!(done.stderr.starts_with("/proc/rackloom: "), "{done:#?}");
}

/// A scenario that would take minutes.
const LONG: &str = "name = 'long'
[run]
flows = 50000000
[workload]
kind = 'poisson'
load = 0.5
sizes = { kind = 'fixed', size = '10 KB' }
[fabric]
kind = 'shoal'
nodes = 64
";

/// Waits until `ready`, at most a minute.
#[track_caller]
fn wait_until(what: &str, ready: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !ready() {
        assert!(Instant::now() < limit, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process.
fn signal(process: u32, name: &str) {
    let status = std::process::Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn ctrl_c_in_a_run_keeps_what_was_measured_and_says_so() {
    // Where other things run beside it the first flow may take long to end: then nothing is measured yet, which the
    // command says, and which is tried again with more time.
    for wait in (0..6).map(|turn| Duration::from_millis(300) * 3u32.pow(turn)) {
        let place = Place::new();
        place.write("long.toml", LONG);
        let mut command = place.command(&["run", "long.toml", "--out", "out"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the results directory", || place.join("out").exists());
        std::thread::sleep(wait);
        signal(child.id(), "INT");
        let done = Done::of(&child.wait_with_output().unwrap());
        assert_eq!(done.code, Some(130), "{done:#?}");
        assert!(done.stderr.contains("interrupted"), "{done:#?}");
        // So it may also be that the run does not get to hear of the signal within a second.
        let nothing_is_kept = ["before anything was finished", "did not stop in time"];
        if nothing_is_kept.iter().any(|words| done.stderr.contains(words)) {
            assert!(!place.join("out/summary.json").exists(), "{done:#?}");
            continue;
        }
        assert_eq!(place.json("out/summary.json")["interrupted"], true);
        assert_eq!(place.names("out").len(), 6);
        return;
    }
    panic!("no run was kept in a minute");
}

#[test]
fn a_second_ctrl_c_kills() {
    let place = Place::new();
    // One flow of ten gigabytes reports no progress for long, so the first signal cannot act at once.
    let huge = LONG.replace("50000000", "1").replace("10 KB", "10 GB");
    place.write("huge.toml", &huge);
    let mut command = place.command(&["run", "huge.toml", "--out", "out"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the results directory", || place.join("out").exists());
    std::thread::sleep(Duration::from_millis(200));
    signal(child.id(), "INT");
    std::thread::sleep(Duration::from_millis(50));
    if child.try_wait().unwrap().is_none() {
        signal(child.id(), "INT");
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_killed_run_leaves_no_summary() {
    let place = Place::new();
    place.write("long.toml", LONG);
    let mut command = place.command(&["run", "long.toml", "--out", "out"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the results directory", || place.join("out").exists());
    std::thread::sleep(Duration::from_millis(200));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.join("out/summary.json").exists());
    assert!(!place.join("out/flows.parquet").exists());
}

#[test]
fn a_killed_sweep_keeps_its_points_and_goes_on() {
    let place = Place::new();
    let grid = "run.flows=100,200,300,50000000";
    let arguments = ["sweep", "small.toml", "--grid", grid, "--jobs", "1", "--out", "s"];
    let mut command = place.command(&arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let finished = || {
        let points = std::fs::read_dir(place.join("s/points")).into_iter().flatten();
        points.flatten().filter(|point| point.path().join("summary.json").exists()).count()
    };
    wait_until("the third point", || finished() == 3);
    child.kill().unwrap();
    child.wait().unwrap();
    let arguments = ["sweep", "small.toml", "--grid", "run.flows=100,200,300", "--out", "s"];
    let done = place.run(&arguments).succeeds();
    assert!(done.stderr.contains("0 points ran, 3 had run before"), "{done:#?}");
}

#[test]
fn ctrl_c_in_a_sweep_keeps_the_finished_points() {
    let place = Place::new();
    let arguments =
        ["sweep", "small.toml", "--grid", "run.flows=100,50000000", "--jobs", "1", "--out", "s"];
    let mut command = place.command(&arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let second = || place.join("s/points").exists() && place.names("s/points").len() == 2;
    wait_until("the second point", second);
    std::thread::sleep(Duration::from_millis(200));
    signal(child.id(), "INT");
    let done = Done::of(&child.wait_with_output().unwrap());
    assert_eq!(done.code, Some(130), "{done:#?}");
    assert!(
        done.stderr.contains("1 points ran, 0 had run before, 0 failed, 1 did not run"),
        "{done:#?}"
    );
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let place = Place::new();
    let mut command = place.command(&["schema"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(stderr, "");
}

#[test]
fn a_full_disk_is_one_message_and_nothing_half_written() {
    let place = Place::new();
    // No file may grow beyond 8 blocks: to a program, a disk that fills up.
    let shell = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    let program = env!("CARGO_BIN_EXE_rackloom");
    let arguments = ["run", "small.toml", "--quiet", "--out", "out", "--set", "run.flows=20000"];
    let mut command = std::process::Command::new("sh");
    command.args(["-c", shell, program]).args(arguments).current_dir(place.path());
    let done = Done::of(&command.output().unwrap());
    assert_eq!(done.code, Some(1), "{done:#?}");
    assert_eq!(done.stderr.lines().count(), 1, "{done:#?}");
    assert!(done.stderr.contains("space") || done.stderr.contains("large"), "{done:#?}");
    assert!(!place.join("out").exists());
}
