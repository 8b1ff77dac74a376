//! Scenarios that once broke a run, hung it, took all memory or gave figures that cannot be. They lie in
//! `tests/inputs`, each under a name of its own; a test says how each of them ends.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Done, Place};

/// Longest time that a test waits for a command. Our choice: far above what any takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A folder with all the inputs in it.
fn inputs() -> Place {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/inputs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), place.join(&entry.file_name().to_string_lossy())).unwrap();
    }
    place
}

/// Runs a command that may take so many megabytes of address space, and must end.
#[track_caller]
fn within(place: &Place, megabytes: u32, arguments: &[&str]) -> Done {
    let shell = format!("ulimit -v {}; exec \"$0\" \"$@\"", megabytes * 1024);
    let mut command = Command::new("sh");
    command.args(["-c", &shell, env!("CARGO_BIN_EXE_rackloom")]).args(arguments);
    command.current_dir(place.path()).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = child.id().to_string();
    let (sender, ended) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = ended.recv_timeout(LIMIT).is_err();
        if late {
            Command::new("kill").args(["-9", &id]).status().unwrap();
        }
        late
    });
    let output = child.wait_with_output().unwrap();
    let _ = sender.send(());
    assert!(!watch.join().unwrap(), "{arguments:?} does not end");
    Done::of(&output)
}

/// What a run with memory for anything honest leaves.
#[track_caller]
fn run(arguments: &[&str]) -> Done {
    let all: Vec<&str> = ["run"]
        .iter()
        .chain(arguments)
        .chain(&["--format", "json", "--out", "out"])
        .copied()
        .collect();
    within(&inputs(), 4_000, &all)
}

/// Bad input, found before memory or time is taken: exit code 2, a word in the message.
#[track_caller]
fn refuses(file: &str, word: &str) {
    let (place, began) = (inputs(), Instant::now());
    let done = within(&place, 1_000, &["run", file, "--out", "out"]);
    assert_eq!(done.code, Some(2), "{file}: {done:#?}");
    assert!(done.stderr.contains(word), "{file}: no {word:?} in {done:#?}");
    assert!(done.stderr.len() < 5_000, "{file}: {} bytes of message", done.stderr.len());
    assert!(!place.join("out").exists(), "{file} left something behind");
    assert!(began.elapsed() < Duration::from_secs(60), "{file} took {:?}", began.elapsed());
}

#[test]
fn the_books_balance_when_the_last_flow_comes_at_the_very_end() {
    // The driver holds every fabric's books against its own: an error says which do not balance.
    for seed in ["1", "2", "493"] {
        run(&["conserve.toml", "--seed", seed]).succeeds();
    }
}

#[test]
fn no_flow_is_faster_than_alone_in_an_idle_rack() {
    run(&["slow.toml"]).succeeds();
}

#[test]
fn a_flow_takes_as_long_whenever_it_starts() {
    for file in ["wrap.toml", "wraphang.toml"] {
        let summary = run(&[file]).succeeds().json();
        assert_eq!(summary["flows"]["completed"], 2, "{file}: {summary:#}");
        let longest = summary["fct"]["all"]["max"].as_f64().unwrap();
        assert!(longest < 20e-6, "{file}: {longest} s");
    }
}

#[test]
fn a_rate_beyond_reason_is_refused_and_in_a_sweep_that_point_alone() {
    refuses("rate1.toml", "node_rate");
    let place = inputs();
    let grid = "fabric.node_rate=100 Gbps,1 bps";
    let done = within(
        &place,
        4_000,
        &["sweep", "rate.toml", "--grid", grid, "--out", "s", "--format", "json"],
    );
    assert_eq!(done.code, Some(1), "{done:#?}");
    let rows = done.json();
    assert_eq!((&rows[0]["status"], &rows[1]["status"]), (&"done".into(), &"failed".into()));
    assert!(place.join("s/sweep.csv").exists() && place.join("s/report.html").exists());
}

#[test]
fn sizes_and_times_beyond_reason_are_refused() {
    refuses("huge.toml", "18446744073709551615");
    refuses("slot.toml", "slot");
    refuses("ndp-1bps.toml", "1 bps");
}

#[test]
fn a_rack_larger_than_memory_is_refused_with_what_it_would_take() {
    refuses("pl2n.toml", "of memory");
}

#[test]
fn a_file_that_claims_gigabytes_is_refused_before_they_are_taken() {
    refuses("oomp.toml", "not a whole Parquet file");
}

#[test]
fn an_overload_is_noticed_before_memory_is_full() {
    let done = within(&inputs(), 1_500, &["run", "tiny.toml", "--format", "json", "--out", "out"]);
    assert!(matches!(done.code, Some(0..=2)), "{done:#?}");
    if done.code == Some(0) {
        let taken = done.json()["engine"]["peak_rss_bytes"].as_u64().unwrap();
        assert!(taken < 1 << 30, "{taken} bytes");
    }
}

/// Starts a run, waits until it is under way, and asks it to stop: how it ends, and how soon.
fn interrupted(place: &Place, arguments: &[&str], after: Duration) -> (Done, Duration) {
    let mut command = place.command(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(after);
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success(), "it has ended");
    let asked = Instant::now();
    let done = Done::of(&child.wait_with_output().unwrap());
    (done, asked.elapsed())
}

#[test]
fn a_first_ctrl_c_is_heard_whatever_a_run_does() {
    let place = inputs();
    let planning = "run.flows = 10\nworkload = { kind = 'poisson', load = 0.1 }\n[fabric]\nkind = 'r2c2'\n\
                    topology = { kind = 'torus', dimensions = [16, 16, 16], rate = '10 Gbps', delay = '100 ns' }\n";
    place.write("planning.toml", planning);
    for file in ["deaf.toml", "planning.toml"] {
        for after in [100, 1_500] {
            let arguments = ["run", file, "--out", "out"];
            let (done, took) = interrupted(&place, &arguments, Duration::from_millis(after));
            assert_eq!(done.code, Some(130), "{file} after {after} ms: {done:#?}");
            assert!(done.stderr.contains("interrupted"), "{file}: {done:#?}");
            // A second, and what a busy machine adds.
            assert!(took < Duration::from_secs(4), "{file} after {after} ms: {took:?}");
            let left = if place.join("out").exists() { place.names("out") } else { Vec::new() };
            let partial =
                left.iter().any(|name| name.ends_with(".partial") || name.ends_with(".lock"));
            assert!(!partial, "{file} left {left:?}");
            let _ = std::fs::remove_dir_all(place.join("out"));
        }
    }
}

#[test]
fn a_first_ctrl_c_is_heard_while_a_large_file_is_read() {
    let place = inputs();
    let rows = "0 ns,0,1,5\n".repeat(4 << 20);
    place.write("large.csv", &format!("start,src,dst,bytes\n{rows}"));
    place.write("large.toml", &crate_text("large.csv"));
    let arguments = ["run", "large.toml", "--out", "out"];
    let (done, took) = interrupted(&place, &arguments, Duration::from_millis(300));
    assert_eq!(done.code, Some(130), "{done:#?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert!(!place.join("out").exists());
}

/// A scenario that carries a trace.
fn crate_text(trace: &str) -> String {
    format!("[workload]\nkind = 'trace'\npath = '{trace}'\n[fabric]\nkind = 'shoal'\nnodes = 8\n")
}

/// Characters that command a terminal, or turn text around.
fn commands_the_terminal(text: &str) -> bool {
    text.contains(|c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c))
}

#[test]
fn what_labels_hold_reaches_no_terminal_no_page_and_no_spreadsheet() {
    let place = inputs();
    let rows: String =
        (0..40).map(|flow| format!("{flow} us,{},{},5000\n", flow % 8, (flow + 3) % 8)).collect();
    place.write("x<script>alert(2)<.script>.csv", &format!("start,src,dst,bytes\n{rows}"));
    let sets = ["--set", "run.flows=40"];
    let with = |first: &[&'static str], more: &[&'static str]| [first, more, &sets].concat();
    for format in ["text", "json"] {
        let done = place.run(&with(&["compare", "inj.toml"], &["--out", "c", "--format", format]));
        let done = done.succeeds();
        assert!(!commands_the_terminal(&done.stdout), "{:?}", done.stdout);
        assert!(!commands_the_terminal(&done.stderr), "{:?}", done.stderr);
    }
    let page = String::from_utf8(place.read("c/report.html")).unwrap();
    let starts = page.matches("<script").count();
    assert_eq!((starts, page.matches("</script>").count()), (3, 3));
    for raw in ["<img src=x", "<a href='javascript", "<script>alert"] {
        assert!(!page.contains(raw), "the page holds {raw}");
    }
    // Folders are named by labels, and none leads out.
    let names = place.names(".");
    assert!(names.iter().all(|name| !name.contains("evil")), "{names:?}");
    let done =
        place.run(&with(&["sweep", "inj.toml"], &["--grid", "seed=1,2", "--out", "s"])).succeeds();
    assert!(!commands_the_terminal(&done.stdout) && !commands_the_terminal(&done.stderr));
    let table = place.read("s/sweep.csv");
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&table[..]);
    let mut formulas = 0;
    for record in reader.records() {
        for cell in &record.unwrap() {
            let starts = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!starts || cell.parse::<f64>().is_ok(), "{cell:?}");
            formulas += usize::from(cell.starts_with("'=cmd"));
        }
    }
    assert!(formulas >= 2, "the label is not in the table");
}

#[test]
fn heads_of_a_csv_file_reach_the_terminal_by_their_number() {
    let place = inputs();
    place.write("heads.csv", "start,src,dst,bytes,\u{1b}[31mx\u{202e}\n0 ns,0,1,5,1\n");
    place.write("heads.toml", &crate_text("heads.csv"));
    let done = place.run(&["run", "heads.toml"]);
    assert_eq!(done.code, Some(2), "{done:#?}");
    assert!(!commands_the_terminal(&done.stderr), "{:?}", done.stderr);
    assert!(done.stderr.contains("\\u{1b}[31mx\\u{202e}"), "{:?}", done.stderr);
    // Arguments are quoted, too.
    let done = place.run(&["run", "\u{1b}[2J.toml"]);
    assert!(!commands_the_terminal(&done.stderr), "{:?}", done.stderr);
    let done = place.run(&["\u{1b}[2J"]);
    assert_eq!(done.code, Some(2));
    assert!(!commands_the_terminal(&done.stderr), "{:?}", done.stderr);
}

#[test]
fn broadcasts_that_find_no_room_do_not_multiply() {
    run(&["rstorm.toml"]).succeeds();
}

#[test]
fn nothing_is_retransmitted_where_nothing_is_lost() {
    let sets = ["adv.toml", "--set", "run.flows=3000", "--set", "run.time=\"1 s\""];
    let summary = run(&sets).succeeds().json();
    assert_eq!((&summary["retransmissions"], &summary["drops"]), (&0.into(), &0.into()));
}

#[test]
fn counters_that_track_reservations_stay_above_zero() {
    let transport = "fabric.transport={kind=\"raw\",losses=\"repeat\"}";
    let sets = ["shuf.toml", "--set", transport, "--set", "fabric.recovery.tracking=receivers"];
    let summary = run(&sets).succeeds().json();
    let found = find(&summary, "below_zero");
    assert!(found.iter().all(|count| count.as_u64() == Some(0)), "{found:?}");
}

/// The values of all keys of a summary that hold `part`.
fn find(value: &serde_json::Value, part: &str) -> Vec<serde_json::Value> {
    let entries = value.as_object().into_iter().flatten();
    let found =
        entries.flat_map(
            |(key, value)| {
                if key.contains(part) { vec![value.clone()] } else { find(value, part) }
            },
        );
    found.collect()
}

#[test]
fn a_key_of_thirty_thousand_steps_is_refused() {
    let place = inputs();
    let key = "a.".repeat(30_000) + "a=1";
    let done = place.run(&["run", "small.toml", "--set", &key]);
    assert_eq!(done.code, Some(2), "{done:#?}");
    assert!(done.stderr.contains("30001 steps") && done.stderr.len() < 1_000, "{done:#?}");
}

#[test]
fn a_grid_of_nine_million_points_is_refused_with_its_size() {
    let place = inputs();
    let values: Vec<String> = (0..3_000).map(|value| value.to_string()).collect();
    let grid = |key: &str| format!("{key}={}", values.join(","));
    let (seeds, flows) = (grid("seed"), grid("run.flows"));
    let done = within(&place, 1_000, &["sweep", "small.toml", "--grid", &seeds, "--grid", &flows]);
    assert_eq!(done.code, Some(2), "{done:#?}");
    assert!(done.stderr.contains("9000000 points") && done.stderr.len() < 1_000, "{done:#?}");
    assert!(!place.join("results").exists());
}

#[test]
fn what_cannot_be_printed_is_an_error_and_the_results_stay() {
    let place = Place::new();
    for arguments in [
        &["run", "small.toml", "--format", "json", "--out", "out"][..],
        &["run", "small.toml", "--out", "out"],
        &["list"],
        &["schema"],
        &["--help"],
        &["completions", "bash"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = place.command(arguments);
        let done = Done::of(&command.stdout(full).output().unwrap());
        assert_eq!(done.code, Some(1), "{arguments:?}: {done:#?}");
        assert!(done.stderr.contains("standard output: No space left"), "{arguments:?}: {done:#?}");
    }
    assert_eq!(place.json("out/summary.json")["seed"], 1);
    // Nobody is left to tell of a full standard error, and nothing breaks for it.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = place.command(&["run", "none.toml"]);
    assert_eq!(command.stderr(full).output().unwrap().status.code(), Some(2));
}

#[test]
fn corruption_without_a_transport_ends_with_a_word() {
    let place = Place::new();
    let text = "run.flows = 200\nworkload = { kind = 'poisson', load = 0.3, sizes = { kind = 'fixed', size = '20 KB' } }\n\
                [fabric]\nkind = 'shoal'\nnodes = 16\nradix = 8\ntransport = 'none'\nbit_error_rate = 2e-4\n";
    place.write("corrupt.toml", text);
    let done = within(&place, 4_000, &["run", "corrupt.toml", "--format", "json", "--out", "out"]);
    // Either a run whose limit counts what has not ended, or one that breaks and says that nothing moves.
    match done.code {
        Some(0) => assert!(done.json()["flows"]["offered"].as_u64().unwrap() >= 200, "{done:#?}"),
        Some(1) => assert!(done.stderr.contains("progress"), "{done:#?}"),
        _ => panic!("{done:#?}"),
    }
}

#[test]
fn a_link_that_is_out_for_an_instant_costs_no_flow() {
    let place = Place::new();
    let text = "run.flows = 400\nworkload = { kind = 'poisson', load = 0.8, sizes = { kind = 'fixed', size = '20 KB' } }\n\
                [fabric]\nkind = 'shoal'\nnodes = 16\nradix = 8\n\
                [[fault]]\nat = '10 us'\nuntil = '10.2 us'\nnode_link = 3\n";
    place.write("outage.toml", text);
    let done = within(&place, 4_000, &["run", "outage.toml", "--format", "json", "--out", "out"]);
    assert_eq!(done.succeeds().json()["flows"]["failed"], 0);
}

#[test]
fn an_estimate_says_what_a_run_takes_and_stores_nothing() {
    let place = Place::new();
    let packets = crate::common::SMALL.replace("shoal", "packet-switched");
    place.write("small.toml", &packets);
    let rows =
        place.run(&["run", "small.toml", "--estimate", "--format", "json"]).succeeds().json();
    assert!(rows[0]["memory_bytes"].as_u64().unwrap() > 0, "{rows}");
    assert!(rows[0]["seconds"].as_f64().unwrap() > 0.0, "{rows}");
    assert_eq!(place.names("."), ["small.toml"]);
    // Of a run of hours it says so within seconds.
    let began = Instant::now();
    let long =
        ["run", "small.toml", "--estimate", "--format", "json", "--set", "run.flows=1000000000"];
    let rows = place.run(&long).succeeds().json();
    assert!(rows[0]["seconds"].as_f64().unwrap() > 60.0, "{rows}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let text = place.run(&["run", "small.toml", "--estimate"]).succeeds().stdout;
    assert!(text.contains("iB") && text.contains("probe"), "{text}");
}
