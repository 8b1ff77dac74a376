//! Scenarios as a whole: what they default to, what they resolve to, what is said about bad ones.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod toy;

use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;
use rack::results::{FlowEnd, FlowRecord, FlowSink};
use scenario::{Argument, Document, Format, Scenario};
use serde_json::{Value, json};

/// A scenario with one of everything.
const FULL: &str = r#"name = "full"
seed = 7

[run]
flows = 200
time = "1 s"
warm_up = 0.1
sample = "2 us"

[workload]
kind = "poisson"
load = 0.5
load_rate = "5 Gbps"

[fabric]
kind = "toy"
label = "A toy"
nodes = 16
rate = "28 Gbps"

[[fault]]
at = "10 us"
until = "20 us"
node = 3

[[fault]]
at = "5 us"
fraction = 0.25
"#;

/// As little as there can be.
const SMALL: &str =
    "[run]\nflows = 9\n[workload]\nkind = 'poisson'\nload = 0.5\n[fabric]\nkind = 'toy'\n";

fn read(text: &str, arguments: &[&str]) -> Result<Scenario, Vec<String>> {
    let document = Document::parse("a.toml", text, Format::Toml);
    let arguments: Vec<_> = arguments.iter().map(|a| Argument::parse(a).unwrap()).collect();
    document
        .and_then(|document| Scenario::read(document, &arguments, &toy::registry()))
        .map_err(|bad| bad.problems().iter().map(ToString::to_string).collect())
}

#[track_caller]
fn good(text: &str) -> Scenario {
    read(text, &[]).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

#[track_caller]
fn refuses(text: &str, arguments: &[&str], expected: &[&str]) {
    match read(text, arguments) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(problems) => assert_eq!(problems, expected, "for\n{text}"),
    }
}

#[test]
fn defaults_are_filled_in() {
    let small = good(SMALL);
    assert_eq!((small.name.as_str(), small.seed, small.nodes()), ("a", 1, 8));
    assert_eq!(small.load_rate(), "10 Gbps".parse().unwrap());
    let value = small.to_value();
    assert_eq!(value["fabric"]["label"], "toy");
    assert_eq!(value["fabric"]["guard"], "2.75 ns");
    assert_eq!(value["workload"]["load_rate"], "10 Gbps");
    assert_eq!(value["run"]["sample"], "1 us");
}

#[test]
fn a_resolved_scenario_reads_back_as_itself() {
    for text in [FULL, SMALL] {
        let first = good(text).to_toml();
        let second = good(&first);
        assert_eq!(second.to_toml(), first);
        assert_eq!(second.hash(), good(&first).hash());
    }
    assert_eq!(good(&good(FULL).to_toml()).hash(), good(FULL).hash());
}

#[test]
fn the_hash_names_what_the_scenario_means_and_not_how_it_is_written() {
    let hash = good(SMALL).hash();
    let written = "name = 'a'\nseed = 1\n[fabric]\nguard = '2.750 ns'\nkind = 'toy'\nnodes = 8\n\
                   [workload]\nload = 0.50\nkind = 'poisson'\n[run]\nflows = 9\nwarm_up = 'auto'";
    assert_eq!(good(written).hash(), hash);
    for argument in ["seed=2", "name=b", "fabric.nodes=9", "workload.load=0.6", "run.flows=8"] {
        assert_ne!(read(SMALL, &[argument]).unwrap().hash(), hash, "{argument}");
    }
    assert_eq!(hash.len(), 16);
}

#[test]
fn json_means_the_same_as_toml() {
    let json = good(SMALL).to_value().to_string();
    let document = Document::parse("a.json", &json, Format::Json).unwrap();
    let scenario = Scenario::read(document, &[], &toy::registry()).unwrap();
    assert_eq!(scenario.hash(), good(SMALL).hash());
    let value: Value = serde_json::from_str(&json).unwrap();
    let document = Document::from_value("a.json", &value).unwrap();
    let scenario = Scenario::read(document, &[], &toy::registry()).unwrap();
    assert_eq!(scenario.hash(), good(SMALL).hash());
}

#[test]
fn problems_of_every_part_are_listed_at_once() {
    let text = "nmae = 'x'\n[run]\nflows = 0\n[workload]\nkind = 'poisson'\nload = -1\n\
                [fabric]\nkind = 'toy'\nnodes = 1\n[[fault]]\nat = '1 us'\n";
    refuses(
        text,
        &["fabric.gaurd=3 ns"],
        &[
            "a.toml:1: nmae: unknown key; did you mean \"name\"?",
            "a.toml:3: run.flows: found 0; expected a whole number, at least 1",
            "--set fabric.gaurd=3 ns: fabric.gaurd: unknown key; did you mean \"guard\"?",
        ],
    );
    refuses(
        "[run]\nflows = 1\n[workload]\nkind = 'poisson'\nload = -1\n[fabric]\nkind = 'toy'\n\
         [[fault]]\nat = '1 us'\n",
        &[],
        &[
            "a.toml:5: workload.load: found -1; expected a load above 0, such as 0.5",
            "a.toml:8: fault[0]: names nothing that fails; add node, node_link, leaf, spine, \
             leaf_spine, switch, link, module, cable, bundle, card, chassis, rack, count or fraction",
        ],
    );
}

#[test]
fn a_rack_of_one_is_refused_at_its_line() {
    let text = format!("{SMALL}nodes = 1\n");
    refuses(&text, &[], &["a.toml:8: fabric.nodes: a rack of 1; expected at least 2 nodes"]);
    refuses(
        SMALL,
        &["fabric.nodes=1"],
        &["--set fabric.nodes=1: fabric.nodes: a rack of 1; expected at least 2 nodes"],
    );
}

#[test]
fn unknown_fabrics_and_workloads_are_answered_with_those_there_are() {
    let text = SMALL.replace("'toy'", "'shaol'");
    refuses(&text, &[], &["a.toml:7: fabric.kind: unknown kind \"shaol\"; expected \"toy\""]);
    let problems = read(&SMALL.replace("'poisson'", "'posson'"), &[]).err().unwrap();
    assert!(problems[0].contains("did you mean \"poisson\"?"), "{problems:?}");
}

#[test]
fn a_run_that_would_never_end_is_refused() {
    let text = SMALL.replace("flows = 9", "");
    refuses(
        &text,
        &[],
        &[
            "a.toml:1: run: none of flows, window and time is given, and this workload never ends by \
             itself; add flows = 100000, say",
        ],
    );
}

#[test]
fn faults_are_checked_against_the_rack() {
    let fault = |keys: &str| format!("{SMALL}[[fault]]\nat = '1 us'\n{keys}\n");
    for (keys, expected) in [
        ("node = 8", "a.toml:10: fault[0].node: found node 8; expected one from 0 to 7"),
        (
            "node = 1\nuntil = '1 us'",
            "a.toml:11: fault[0].until: found 1 us; expected a time after at = \"1 us\"",
        ),
        (
            "node = 1\nleaf = 1",
            "a.toml:8: fault[0]: names more than one thing; expected one of node, node_link, leaf, \
             spine, leaf_spine, switch, link, module, cable, bundle, card, chassis, rack, count or fraction: \
             write two [[fault]]",
        ),
        ("leaf = 1", "a.toml:8: fault: toy: there is no leaf 1"),
        ("count = 9", "a.toml:10: fault[0].count: found 9; the rack has 8 nodes"),
        (
            "fraction = 1.5",
            "a.toml:10: fault[0].fraction: found 1.5; expected a number from 0 to 1",
        ),
        ("nod = 1", "a.toml:10: fault[0].nod: unknown key; did you mean \"node\"?"),
    ] {
        refuses(&fault(keys), &[], &[expected]);
    }
}

#[test]
fn random_faults_draw_distinct_nodes_and_do_not_move_with_other_faults() {
    let nodes = |text: &str| -> Vec<String> {
        let faults = good(text).expanded_faults();
        faults.iter().map(|fault| fault.component.to_string()).collect()
    };
    let drawn = |more: &str| nodes(&format!("{SMALL}[[fault]]\nat = '1 us'\ncount = 4\n{more}"));
    let four = drawn("");
    let mut distinct = four.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), 4, "{four:?}");
    let five = drawn("[[fault]]\nat = '2 us'\nnode = 0\n");
    assert_eq!(five[..4], four);
    let seeded = format!("seed = 2\n{SMALL}[[fault]]\nat = '1 us'\ncount = 4\n");
    assert_ne!(nodes(&seeded), four);
    let all = nodes(&format!("{SMALL}[[fault]]\nat = '1 us'\nfraction = 1\n"));
    assert_eq!(all.len(), 8);
}

#[test]
fn several_fabrics_carry_the_same_flows_and_have_names_of_their_own() {
    let text = "[run]\nflows = 9\n[workload]\nkind = 'poisson'\nload = 0.5\n[[fabric]]\nkind = \
                'toy'\n[[fabric]]\nkind = 'toy'\nrate = '20 Gbps'\n";
    let both = good(text);
    let labels: Vec<_> = both.fabrics.iter().map(|fabric| fabric.label.as_str()).collect();
    assert_eq!(labels, ["toy", "toy 2"]);
    assert_eq!(both.with_fabric(1).load_rate(), both.load_rate());
    assert_eq!(good(&both.to_toml()).hash(), both.hash());
    let in_both = read(text, &["fabric.guard=3 ns"]).unwrap().to_value();
    assert_eq!(in_both["fabric"][1]["guard"], "3 ns");
    let in_one = read(text, &["fabric[1].guard=3 ns"]).unwrap().to_value();
    assert_eq!(in_one["fabric"][0]["guard"], "2.75 ns");
    refuses(
        text,
        &["fabric[1].nodes=4"],
        &["--set fabric[1].nodes=4: fabric[1].nodes: found 4; expected 8, as many as the first \
           fabric: all carry the same flows"],
    );
}

#[test]
fn scenarios_join_only_if_their_flows_are_the_same() {
    let fast = good(&format!("{SMALL}rate = '20 Gbps'\n"));
    let joined = Scenario::join(vec![good(SMALL), fast]).unwrap();
    assert_eq!(joined.fabrics.len(), 2);
    assert_eq!(joined.load_rate(), "10 Gbps".parse().unwrap());
    let louder = read(SMALL, &["workload.load=0.8", "name=b"]).unwrap();
    let message = Scenario::join(vec![good(SMALL), louder]).err().unwrap().to_string();
    let expected = "b: workload: differs from that of \"a\"; to compare, all fabrics carry the same \
                    flows";
    assert_eq!(message, expected);
    let larger = read(SMALL, &["fabric.nodes=9"]).unwrap();
    let message = Scenario::join(vec![good(SMALL), larger]).err().unwrap().to_string();
    assert_eq!(message, "a: fabric: has 9 nodes and \"a\" has 8");
}

#[test]
fn a_run_in_which_flows_pile_up_without_end_says_so() {
    let text = "[workload]\nkind = 'poisson'\nload = 1_000_000\nsizes = { kind = 'fixed', size = '1 KB' }\n\
                [run]\nflows = 10_000_000\n[fabric]\nkind = 'toy'\n";
    let broken = good(text).execute(0, &mut (), &mut |_| ControlFlow::Continue(()));
    let Err(broken) = broken else { panic!("eight million flows would be open") };
    let message = broken.to_string();
    assert!(message.contains("flows are open, more than a run keeps"), "{message}");
    assert!(message.contains("Lower workload.load"), "{message}");
}

#[test]
fn a_run_ends_after_a_month_of_simulated_time_and_says_what_is_unfinished() {
    // 500 MB at a thousand bits a second: 46 days.
    let text = "[workload]\nkind = 'incast'\nsenders = 1\nsize = '500 MB'\n\
                [fabric]\nkind = 'toy'\nnodes = 2\nrate = '1 Kbps'\n";
    let summary = carried(&good(text), 0).summary;
    assert_eq!((&summary["stopped"], &summary["flows"]["unfinished"]), (&json!("time"), &json!(1)));
    let days = 24.0 * 3_600.0;
    assert_eq!(summary["fct"]["all"]["max"], Value::Null);
    // It takes no less than alone, even if the run did not last so long.
    assert_eq!(summary["fct"]["all"]["at_least"]["max"], json!(4e6 + 1e-6));
    assert_eq!(summary["simulated_seconds"], json!(30.0 * days));
    let summary = carried(&good(&text.replace("500 MB", "300 MB")), 0).summary;
    assert_eq!((&summary["stopped"], &summary["flows"]["unfinished"]), (&Value::Null, &json!(0)));
}

/// Runs fabric number `index` of `scenario`.
fn carried(scenario: &Scenario, index: usize) -> rack::results::RunResult {
    scenario.execute(index, &mut (), &mut |_| ControlFlow::Continue(())).unwrap()
}

/// The measured flows: number, and whether each completed.
#[derive(Default)]
struct Set(std::collections::BTreeMap<u64, bool>);

impl FlowSink for Set {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        if record.measured {
            let done = matches!(record.end, FlowEnd::Completed { .. });
            assert_eq!(self.0.insert(record.flow.id.get(), done), None, "{:?} twice", record.flow);
        }
        Ok(())
    }
}

impl scenario::Sink for Set {}

/// The measured flows of fabric `index`, and its summary.
fn measured(scenario: &Scenario, index: usize) -> (Set, Value) {
    let mut set = Set::default();
    let run = scenario.execute(index, &mut set, &mut |_| ControlFlow::Continue(())).unwrap();
    (set, run.summary)
}

/// A fast rack, one that is ten times slower, and one in which hardly anything ends.
const RACKS: &str = "[workload]\nkind = 'poisson'\nload = 0.5\nload_rate = '10 Gbps'\n\
                     [[fabric]]\nkind = 'toy'\n[[fabric]]\nkind = 'toy'\nrate = '1 Gbps'\n\
                     [[fabric]]\nkind = 'toy'\nrate = '1 Mbps'\n";

#[test]
fn every_fabric_measures_the_same_flows_however_slow_it_is() {
    for run in [
        "flows = 300",
        "window = '1 ms'",
        "flows = 300\nwarm_up = 0.2",
        "window = '1 ms'\nwarm_up = '300 us'",
    ] {
        let scenario = good(&format!("[run]\n{run}\n{RACKS}"));
        let all: Vec<(Set, Value)> = (0..3).map(|index| measured(&scenario, index)).collect();
        let ids = |set: &Set| set.0.keys().copied().collect::<Vec<_>>();
        assert!(ids(&all[0].0).len() > 30, "{run}");
        for (set, summary) in &all {
            assert_eq!(ids(set), ids(&all[0].0), "{run}");
            let unfinished = set.0.values().filter(|done| !**done).count();
            assert_eq!(summary["flows"]["measured"], json!(set.0.len()), "{run}");
            assert_eq!(summary["flows"]["unfinished"], json!(unfinished), "{run}");
            assert_eq!(summary["fct"]["all"]["count"], json!(set.0.len()), "{run}");
            assert_eq!(summary["warm_up_flows"], all[0].1["warm_up_flows"], "{run}");
        }
        assert_eq!(all[0].1["flows"]["unfinished"], json!(0), "{run}");
        assert_eq!(all[0].1["stopped"], Value::Null, "{run}");
        // At 1 Mbps the median flow takes 40 ms; the run ends after some.
        let slow = &all[2].1;
        assert_eq!(slow["stopped"], json!("time"), "{run}");
        assert_eq!(slow["fct"]["all"]["p99"], Value::Null, "{run}");
        assert!(slow["fct"]["all"]["at_least"]["p99"].as_f64() > Some(1e-3), "{run}");
    }
}

#[test]
fn flows_arrive_as_before_until_the_last_measured_one_has_ended() {
    let scenario = good(&format!("[run]\nflows = 300\nwarm_up = 0.0\n{RACKS}"));
    let (_, fast) = measured(&scenario, 0);
    let (_, slow) = measured(&scenario, 1);
    // Both are as loaded as they were told to be: nobody waits for the last flow of a list.
    for summary in [&fast, &slow] {
        assert!(summary["flows"]["offered"].as_u64() >= Some(300));
    }
    assert!(slow["flows"]["offered"].as_u64() > fast["flows"]["offered"].as_u64());
}

#[test]
fn the_warm_up_is_found_in_a_workload_without_end_and_nothing_is_cut_of_a_list() {
    let endless = measured(&good(&format!("[run]\nflows = 2000\n{RACKS}")), 0).1;
    assert_eq!(endless["warm_up"]["found_by"], json!("MSER-5"), "{}", endless["warm_up"]);
    assert!(endless["warm_up_flows"].as_u64() <= Some(1000));
    let list = RACKS.replace("load = 0.5", "load = 0.5\nflows = 300");
    let list = measured(&good(&list), 0).1;
    assert_eq!((&list["warm_up"]["found_by"], &list["warm_up_flows"]), (&json!("none"), &json!(0)));
    assert_eq!((&list["flows"]["measured"], &list["flows"]["offered"]), (&json!(300), &json!(300)));
}

#[test]
fn what_is_measured_is_said_once() {
    let text = format!("[run]\nflows = 9\nwindow = '1 ms'\n{RACKS}");
    let problems = read(&text, &[]).err().unwrap();
    assert!(problems[0].contains("flows and window are both given"), "{problems:?}");
    for (key, value) in
        [("window", "'0 ps'"), ("time", "'0 ps'"), ("time", "'40000 ks'"), ("seeds", "0")]
    {
        let problems = read(&format!("[run]\nflows = 9\n{key} = {value}\n{RACKS}"), &[]);
        assert!(problems.is_err(), "{key} = {value}");
    }
}

#[test]
fn a_fault_that_never_came_is_told() {
    let text = format!("[run]\nflows = 9\n{RACKS}[[fault]]\nat = '10 s'\nnode = 1\n");
    assert_eq!(measured(&good(&text), 0).1["faults_after_end"], json!(1));
}

#[test]
fn each_seed_is_a_scenario_of_its_own() {
    let scenario = good(&format!("seed = 5\n[run]\nflows = 9\nseeds = 3\n{RACKS}"));
    let each = scenario.with_each_seed();
    assert_eq!(each.iter().map(|one| one.seed).collect::<Vec<_>>(), [5, 6, 7]);
    let alone = good(&format!("seed = 6\n[run]\nflows = 9\n{RACKS}"));
    assert_eq!(each[1].hash(), alone.hash());
}

#[test]
fn a_run_that_its_time_ends_lasts_that_long_although_no_flow_has_ended() {
    // At 10 Gbps, 1 MB takes 0.8 ms.
    let text = "[workload]\nkind = 'incast'\nsenders = 1\nsize = '1 MB'\n[run]\ntime = '300 us'\n\
                [fabric]\nkind = 'toy'\nnodes = 2\nrate = '10 Gbps'\n";
    let run = good(text).execute(0, &mut (), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(run.summary["flows"]["completed"], 0);
    assert_eq!(run.summary["simulated_seconds"], 300e-6);
}

#[test]
fn a_run_carries_every_flow_in_its_known_time() {
    let scenario = good(FULL);
    let run = scenario.execute(0, &mut (), &mut |_| ControlFlow::Continue(())).unwrap();
    // In this fabric nobody waits, so each flow is exactly as fast as alone.
    for class in ["short", "medium", "long", "all"] {
        let slowdown = &run.summary["slowdown"][class];
        if slowdown["count"].as_u64() > Some(0) {
            assert_eq!(
                (&slowdown["mean"], &slowdown["max"]),
                (&json!(1.0), &json!(1.0)),
                "{class}"
            );
        }
    }
    assert_eq!(run.summary["warm_up_flows"], 20);
    assert_eq!(run.summary["flows"]["measured"], 200, "{}", run.summary);
    let again = scenario.execute(0, &mut (), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(again.summary, run.summary);
    let other = read(FULL, &["seed=8"]).unwrap();
    let other = other.execute(0, &mut (), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_ne!(other.summary["event_hash"], run.summary["event_hash"]);
}

/// A scenario that carries the trace at `path`.
fn with_trace(path: &Path) -> String {
    format!("[workload]\nkind = 'trace'\npath = '{}'\n[fabric]\nkind = 'toy'\n", path.display())
}

#[test]
fn a_trace_counts_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
    let rows = "start,src,dst,bytes,after\n0 ns,0,1,1250,\n5 us,1,2,2500,0\n";
    std::fs::write(&first, rows).unwrap();
    std::fs::write(&second, rows).unwrap();
    let scenario = good(&with_trace(&first));
    assert_eq!(scenario.hash(), good(&with_trace(&second)).hash());
    let run = scenario.execute(0, &mut (), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(run.summary["flows"]["completed"], 2);
    // 1250 B at 10 Gbps take 1 us, 2500 B 2 us; each 1 us more. The second starts at 5 us.
    assert_eq!(run.summary["simulated_seconds"], 8e-6);
    let resolved = scenario.to_toml();
    assert_eq!(good(&resolved).hash(), scenario.hash());
    std::fs::write(&first, rows.replace("2500", "2501")).unwrap();
    let problems = read(&resolved, &[]).err().unwrap();
    assert!(problems[0].contains("workload.digest: found a trace with digest"), "{problems:?}");
    assert_ne!(good(&with_trace(&first)).hash(), scenario.hash());
}

#[test]
fn a_bad_trace_is_named_by_scenario_and_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let file = path.display();
    std::fs::write(&path, "start,src,dst,bytes\n0 ns,0,8,1250\n1 ns,2,2,5\n2 ns,0,1").unwrap();
    refuses(
        &with_trace(&path),
        &[],
        &[
            &format!(
                "a.toml:3: workload.path: {file}:2: dst: found node 8; expected one from 0 to 7, \
                 the rack has 8 nodes"
            ),
            &format!(
                "a.toml:3: workload.path: {file}:3: dst: found a flow from node 2 to itself; \
                 expected two nodes"
            ),
            &format!(
                "a.toml:3: workload.path: {file}:4: the last line is torn: it does not end in a \
                 line break; write it whole, or cut it off"
            ),
        ],
    );
    std::fs::remove_file(&path).unwrap();
    let problems = read(&with_trace(&path), &[]).err().unwrap();
    assert!(problems[0].starts_with("a.toml:3: workload.path: "), "{problems:?}");
    assert!(problems[0].contains("cannot be read"), "{problems:?}");
}

/// Every problem is one line that says where.
#[track_caller]
fn check_listed(outcome: Result<Scenario, Vec<String>>) {
    if let Err(problems) = outcome {
        assert!(!problems.is_empty());
        for problem in problems {
            assert!(problem.starts_with("a.toml:") && !problem.contains('\n'), "{problem:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_a_scenario_or_a_list_of_problems(text in "\\PC{0,200}") {
        check_listed(read(&text, &[]));
    }

    #[test]
    fn a_mutated_scenario_is_a_scenario_or_a_list_of_problems(
        at in any::<prop::sample::Index>(),
        length in 0usize..4,
        patch in "[-a-z0-9=.'\"\\[\\]{}\n ]{0,4}",
    ) {
        let mut text = FULL.to_string();
        let at = at.index(text.len());
        let end = (at + length).min(text.len());
        text.replace_range(at..end, &patch);
        check_listed(read(&text, &[]));
    }

    #[test]
    fn a_scenario_of_any_types_is_checked_whole(
        key in prop::sample::select(vec![
            "name", "seed", "run", "run.flows", "run.time", "run.warm_up", "run.sample", "run.window",
            "run.seeds", "workload",
            "workload.kind", "workload.load", "workload.sizes", "workload.pattern", "fabric",
            "fabric.kind", "fabric.nodes", "fabric.rate", "fault", "fault[0].at", "fault[0].node",
        ]),
        value in prop::sample::select(vec![
            "0", "-1", "1e300", "nan", "true", "x", "'1 ns'", "[]", "[1]", "{}", "{a=1}", "[[]]",
            "1979-05-27", "99999999999999999999", "9223372036854775807", "''",
        ]),
    ) {
        let document = Document::parse("a.toml", FULL, Format::Toml).unwrap();
        let argument = Argument::parse(&format!("{key}={value}")).unwrap();
        if let Err(bad) = Scenario::read(document, &[argument], &toy::registry()) {
            prop_assert!(!bad.problems().is_empty());
        }
    }
}
