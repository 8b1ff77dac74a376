//! `rackloom why`, on runs that record their packets.

use serde_json::Value;

use crate::common::Place;

/// An incast under TCP; the receiver's port has room for less than all send at once.
const INCAST: &str = "name = 'incast'\n[workload]\nkind = 'incast'\nsenders = 6\nreceiver = 0\n\
                      size = '40 KB'\n[fabric]\nkind = 'packet-switched'\n\
                      topology = { kind = 'single-switch', hosts = 8 }\n\
                      switch = { port_buffer = '30 KB' }\ntransport = { kind = 'newreno' }\n";

const ALL: &str = "run.trace=slowest 6";

fn recorded(place: &Place, out: &str, settings: &[&str]) {
    place.write("incast.toml", INCAST);
    let mut arguments = vec!["run", "incast.toml", "--quiet", "--out", out];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    place.run(&arguments).succeeds();
}

/// What a command says that refuses its input.
#[track_caller]
fn refused(place: &Place, arguments: &[&str]) -> String {
    let done = place.run(arguments);
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:#?}");
    done.stderr
}

#[test]
fn recording_adds_a_file_and_changes_no_other_on_any_number_of_threads() {
    let place = Place::new();
    recorded(&place, "plain", &[]);
    recorded(&place, "one", &[ALL, "run.threads=1"]);
    recorded(&place, "two", &[ALL, "run.threads=2"]);
    assert!(place.names("one").contains(&"trace.parquet".into()));
    assert!(!place.names("plain").contains(&"trace.parquet".into()));
    let rows = |run: &str| place.json(&format!("{run}/summary.json"))["event_hash"].clone();
    assert_eq!(rows("one"), rows("plain"));
    // The seed and the version apart, a table says of which scenario it is.
    let one = place.run(&["why", "one", "--format", "json"]).succeeds().json();
    assert_eq!(place.run(&["why", "two", "--format", "json"]).succeeds().json(), one);
    // So do lines.
    let links =
        |run: &str| report::read_links(&place.join(&format!("{run}/links.parquet"))).unwrap();
    let lines = links("one");
    assert_eq!(links("two"), lines);
    let carried = |is_wanted: &dyn Fn(&str, &str) -> bool| {
        let wanted = lines.lines.iter().filter(|line| is_wanted(&line.place.from, &line.place.to));
        wanted.flat_map(|line| &line.spans).map(|span| span.carried).sum::<u64>()
    };
    // The flows' bytes come by the receiver's line, a tenth of headers beside them; their senders sent as much or more.
    let last = carried(&|_, to| to == "node 0");
    assert!((6 * 40_000..6 * 44_000).contains(&last), "{last} bytes to the receiver");
    let first = carried(&|from, _| from.starts_with("node ") && from != "node 0");
    assert!(first >= last, "{first} bytes from the senders, {last} to the receiver");
    let waiting = lines.lines.iter().flat_map(|line| &line.spans).map(|span| span.waiting).max();
    let summary = place.json("one/summary.json");
    let longest = summary["queue"]["max_bytes"].as_u64().unwrap();
    let waiting = u64::from(waiting.unwrap());
    // A packet that goes on the line no longer waits.
    assert!(waiting <= longest && waiting + 2 * 1600 >= longest, "{waiting} of {longest}");
    // A run without a record takes the older one's place.
    recorded(&place, "one", &[]);
    for name in ["trace.parquet", "links.parquet"] {
        assert!(!place.names("one").contains(&name.into()), "{name}");
    }
}

#[test]
fn parts_add_up_to_the_completion_time_and_queues_say_beside_whom() {
    let place = Place::new();
    recorded(&place, "r", &[ALL]);
    let list = place.run(&["why", "r", "--format", "json"]).succeeds().json();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 6);
    let slowdowns: Vec<_> = list.iter().map(|row| row["slowdown"].as_f64().unwrap()).collect();
    assert!(slowdowns.is_sorted_by(|a, b| a >= b), "{slowdowns:?}");
    let (mut beside, mut again) = (0, 0);
    for row in list {
        let flow = row["flow_id"].to_string();
        let why = place.run(&["why", "r", &flow, "--format", "json"]).succeeds().json();
        let parts = why["parts"].as_array().unwrap();
        let sum: u64 = parts.iter().map(|part| part["ps"].as_u64().unwrap()).sum();
        assert_eq!(why["fct_ps"], sum, "{why:#}");
        assert!(parts.iter().all(|part| part["part"] != "not_recorded"), "{why:#}");
        let queues = why["queues"].as_array().unwrap();
        let names: Vec<_> = queues.iter().map(|queue| queue["queue"].as_str().unwrap()).collect();
        assert!(names.iter().any(|name| name.ends_with("to node 0")), "{names:?}");
        let others = queues.iter().flat_map(|queue| queue["beside"].as_array().unwrap());
        beside +=
            others.filter(|other| other["flow_id"].as_u64() != row["flow_id"].as_u64()).count();
        again += why["retransmitted_packets"].as_u64().unwrap();
        let text = place.run(&["why", "r", &flow]).succeeds().stdout;
        assert!(text.contains("sum: the flow completion time"), "{text}");
    }
    // Six at once over one port: they stand beside each other, and something was dropped.
    assert!(beside > 0 && again > 0, "{beside} {again}");
    let page = String::from_utf8(place.read("r/report.html")).unwrap();
    assert!(page.contains("The slowest flows"));
}

#[test]
fn flows_that_a_run_does_not_offer_are_named() {
    let place = Place::new();
    place.write("incast.toml", INCAST);
    let run = |flows: &str| {
        let trace = format!("run.trace=flows {flows}");
        place.run(&["run", "incast.toml", "--out", "r", "--set", &trace]).succeeds().stderr
    };
    let said = run("2, 6, 90");
    let expected =
        "run.trace asks for flows 6, 90, which this run did not offer: it offered flows 0 to 5";
    assert!(said.contains(expected), "{said}");
    assert!(!run("0, 5").contains("did not offer"));
    run("6");
    let why = place.run(&["why", "r", "--format", "json"]).succeeds();
    assert_eq!(why.json(), serde_json::json!([]));
    assert!(why.stderr.contains("r has a record of no flow"), "{why:#?}");
}

#[test]
fn what_cannot_be_answered_says_what_to_do() {
    let place = Place::new();
    recorded(&place, "plain", &[]);
    let said = refused(&place, &["why", "plain", "3"]);
    assert!(said.contains("rackloom run plain/scenario.toml --set run.trace="), "{said}");
    recorded(&place, "r", &["run.trace=flows 2, 4"]);
    let said = refused(&place, &["why", "r", "3"]);
    assert!(said.contains("run.trace=\"flows 3\"") && said.contains("2 flows"), "{said}");
    assert!(refused(&place, &["why", "r", "77"]).contains("has no flow 77"));
    assert!(refused(&place, &["why", "nowhere"]).contains("no directory with the results"));
    std::fs::write(place.join("r/trace.parquet"), b"PAR1 no, it is not PAR1").unwrap();
    assert!(refused(&place, &["why", "r", "2"]).contains("trace.parquet"));
}

#[test]
fn fabrics_and_settings_that_cannot_be_recorded_are_refused_at_their_key() {
    let place = Place::new();
    let run = |settings: &[&str]| {
        let mut arguments = vec!["run", "small.toml", "--out", "r"];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        let said = refused(&place, &arguments);
        assert!(!place.join("r").exists());
        said
    };
    place.write("fluid.toml", &INCAST.replace("'newreno'", "'fluid'"));
    let said = refused(&place, &["run", "fluid.toml", "--set", ALL, "--out", "r"]);
    assert!(said.contains("run.trace: fluid has no packets to record"), "{said}");
    let said = run(&["run.trace=fastest 5"]);
    assert!(said.contains("run.trace: found \"fastest 5\"; expected \"slowest 100\""), "{said}");
    place.write("incast.toml", INCAST);
    let arguments = ["run", "incast.toml", "--set", ALL, "--set", "run.seeds=2", "--out", "r"];
    assert!(refused(&place, &arguments).contains("run.seeds asks for several"));
}

#[test]
fn exports_are_whole_files_in_the_formats_of_others() {
    let place = Place::new();
    recorded(&place, "r", &[ALL]);
    place.run(&["why", "r", "--perfetto", "all.json"]).succeeds();
    place.run(&["why", "r", "3", "--perfetto", "one.json"]).succeeds();
    let events = |name: &str| place.json(name)["traceEvents"].as_array().unwrap().clone();
    let tracks = |name: &str| {
        let of_flow = |event: &&Value| {
            event["pid"] == 1
                && event["ph"] == "X"
                && event["name"].as_str().unwrap().starts_with("flow ")
        };
        events(name).iter().filter(of_flow).count()
    };
    assert_eq!((tracks("all.json"), tracks("one.json")), (6, 1));
    // Both at once are what they are alone.
    place.run(&["why", "r", "--pcapng", "all.pcapng", "--perfetto", "again.json"]).succeeds();
    assert_eq!(place.read("again.json"), place.read("all.json"));
    let bytes = place.read("all.pcapng");
    assert_eq!(bytes[..4], [0x0A, 0x0D, 0x0D, 0x0A]);
    let said = refused(&place, &["why", "r", "--perfetto", "none/x.json"]);
    assert!(said.contains("none/x.json"), "{said}");
    // A device takes what it can, and stays.
    std::os::unix::fs::symlink("/dev/full", place.join("full")).unwrap();
    for export in ["--perfetto", "--pcapng"] {
        let full = place.run(&["why", "r", export, "full"]);
        assert!(full.code == Some(1) && full.stderr.contains("full: no space left"), "{full:#?}");
        let device = std::fs::metadata(place.join("full")).unwrap();
        assert!(!device.is_file(), "{device:?}");
    }
}
