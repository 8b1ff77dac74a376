//! Jobs through the door that scenarios use: execution traces in files, several at once, alone and
//! together.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use scenario::{Argument, Document, Format, Registry, Scenario};
use serde_json::{Value, json};

#[path = "../src/chakra/test_bytes.rs"]
mod test_bytes;

use test_bytes::{message, number, text};

/// `NodeType` of Chakra's schema.
const COMP: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;
const COLL: u64 = 7;
/// `CollectiveCommType` of Chakra's schema.
const ALL_REDUCE: u64 = 0;
const ALL_TO_ALL: u64 = 6;

fn node(id: u64, kind: u64, after: &[u64], micros: u64, attributes: &[(&str, u64)]) -> Vec<u8> {
    let after = after.iter().flat_map(|&earlier| number(5, earlier)).collect();
    let attribute = |&(name, value): &(&str, u64)| {
        text(10, &[text(1, name.as_bytes()), number(9, value)].concat())
    };
    let attributes = attributes.iter().flat_map(attribute).collect();
    message(&[number(1, id), number(3, kind), after, number(7, micros), attributes])
}

/// Writes a trace whose ranks all do the same.
fn write(folder: &Path, name: &str, ranks: u64, nodes: &[Vec<u8>]) {
    for rank in 0..ranks {
        let trace = [message(&[text(1, b"0.0.4")]), nodes.concat()].concat();
        fs::write(folder.join(format!("{name}.{rank}.et")), trace).expect("a trace can be written");
    }
}

/// Ranks that compute for 20 us, reduce `size` bytes and compute for 30 us.
fn training(folder: &Path, name: &str, ranks: u64, size: u64) {
    let sizes = [("comm_type", ALL_REDUCE), ("comm_size", size)];
    let nodes =
        [node(1, COMP, &[], 20, &[]), node(2, COLL, &[1], 0, &sizes), node(3, COMP, &[2], 30, &[])];
    write(folder, name, ranks, &nodes);
}

/// A switch that blocks nobody, whose flows get their rates by arithmetic.
const FLUID: &str = "[fabric]\nkind = \"packet-switched\"\nnodes = 16\n\
                     topology = { kind = \"single-switch\", rate = \"100 Gbps\" }\n\
                     transport = { kind = \"fluid\" }\n";

fn read(folder: &Path, text: &str, arguments: &[Argument]) -> Result<Scenario, String> {
    let path = folder.join("a.toml");
    fs::write(&path, format!("{text}\n{FLUID}")).expect("a scenario can be written");
    Scenario::open(&path, arguments, &Registry::standard()).map_err(|bad| bad.to_string())
}

#[track_caller]
fn run(folder: &Path, text: &str) -> Value {
    let scenario = read(folder, text, &[]).unwrap_or_else(|problems| panic!("{problems}"));
    let result = scenario.execute(0, &mut (), &mut |_| ControlFlow::Continue(()));
    result.unwrap_or_else(|error| panic!("{error}")).summary
}

fn seconds(summary: &Value, job: &str) -> f64 {
    summary["job"][job]["seconds"].as_f64().unwrap_or_else(|| panic!("{}", summary["job"]))
}

/// How long the network takes for one flow alone, as it says of a trace of one flow.
fn flow_alone(folder: &Path, size: u64) -> f64 {
    fs::write(folder.join("one.csv"), format!("start_ns,src,dst,bytes\n0,0,1,{size}\n"))
        .expect("a trace can be written");
    let summary = run(folder, "[workload]\nkind = \"trace\"\npath = \"one.csv\"\n");
    summary["fct"]["all"]["max"].as_f64().expect("a flow has ended")
}

#[test]
fn a_ring_all_reduce_takes_two_times_n_less_one_steps_of_an_nth_and_computations_add() {
    let folder = tempfile::tempdir().unwrap();
    for ranks in [2, 5, 16] {
        training(folder.path(), "t", ranks, ranks * 100_000);
        let text = "[workload]\nkind = \"jobs\"\n[[workload.job]]\nname = \"a\"\ntrace = \"t\"\n";
        let found = seconds(&run(folder.path(), text), "a");
        let step = flow_alone(folder.path(), 100_000);
        // 100 KB at 100 Gbps take 8 us, headers and the way apart.
        assert!((8e-6..10e-6).contains(&step), "{step}");
        let expected = 50e-6 + 2.0 * (ranks - 1) as f64 * step;
        assert!((found / expected - 1.0).abs() < 1e-6, "{ranks} ranks: {found} for {expected}");
        for rank in 0..ranks {
            fs::remove_file(folder.path().join(format!("t.{rank}.et"))).unwrap();
        }
    }
}

/// What bounded a job: a part of it.
#[track_caller]
fn bounded(summary: &Value, job: &str, by: &str) -> f64 {
    let found = &summary["job"][job]["bounded_by"][format!("{by}_seconds")];
    found.as_f64().unwrap_or_else(|| panic!("{}", summary["job"]))
}

#[test]
fn what_bounds_a_job_is_told_by_its_kind_and_adds_up_to_its_time() {
    let folder = tempfile::tempdir().unwrap();
    // A millisecond, and then a message of 1.25 MB: at 100 Gbps 100 us, headers and the way apart.
    let message = [("comm_src", 0), ("comm_dst", 1), ("comm_size", 1_250_000), ("comm_tag", 3)];
    let ranks = [
        [node(0, COMP, &[], 1_000, &[]), node(1, SEND, &[0], 0, &message)],
        [node(0, COMP, &[], 5, &[]), node(1, RECEIVE, &[0], 0, &message)],
    ];
    for (rank, nodes) in ranks.iter().enumerate() {
        let trace = [self::message(&[text(1, b"0.0.4")]), nodes.concat()].concat();
        fs::write(folder.path().join(format!("m.{rank}.et")), trace).unwrap();
    }
    let job = "[workload]\nkind = \"jobs\"\n[[workload.job]]\nname = \"a\"\ntrace = \"m\"\nstart = \"7 us\"\n";
    let summary = run(folder.path(), job);
    let (alone, sent) = (flow_alone(folder.path(), 1_250_000), bounded(&summary, "a", "transfer"));
    assert!((100e-6..110e-6).contains(&alone), "{alone}");
    assert_eq!(bounded(&summary, "a", "compute"), 1e-3);
    assert!((sent / alone - 1.0).abs() < 1e-9, "{sent} for {alone}");
    assert!((seconds(&summary, "a") - 1e-3 - sent).abs() < 1e-15);
    // 20 us, six steps of a ring among four, and 30 us.
    training(folder.path(), "t", 4, 400_000);
    let summary = run(folder.path(), &job.replace("\"m\"", "\"t\""));
    let expected = 6.0 * flow_alone(folder.path(), 100_000);
    assert_eq!(bounded(&summary, "a", "compute"), 50e-6);
    assert!((bounded(&summary, "a", "all_reduce") / expected - 1.0).abs() < 1e-6);
    // Stopped before it is over, nobody knows.
    let summary = run(folder.path(), &format!("run.time = \"50 us\"\n{job}"));
    assert!(summary["job"]["a"]["bounded_by"]["compute_seconds"].is_null(), "{}", summary["job"]);
}

#[test]
fn a_job_of_computations_alone_takes_their_sum() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = [node(0, COMP, &[], 7, &[]), node(1, COMP, &[0], 11, &[])];
    write(folder.path(), "c", 3, &nodes);
    let text = "[workload]\nkind = \"jobs\"\n[[workload.job]]\nname = \"a\"\ntrace = \"c\"\nstart = \"2 us\"\n";
    let summary = run(folder.path(), text);
    assert_eq!(seconds(&summary, "a"), 18e-6);
    assert_eq!(summary["job"]["a"]["start_seconds"], 2e-6);
    assert_eq!(summary["job"]["a"]["flows"], 0);
}

const TWO: &str = "[workload]\nkind = \"jobs\"\nalone = true\n\
                   [[workload.job]]\nname = \"a\"\ntrace = \"a\"\n\
                   [[workload.job]]\nname = \"b\"\nwork = { kind = \"expert_all_to_all\", size = \"10 KB\" }\n";

#[test]
fn jobs_on_nodes_of_their_own_behind_a_switch_that_blocks_nobody_take_as_long_as_alone() {
    let folder = tempfile::tempdir().unwrap();
    training(folder.path(), "a", 8, 800_000);
    for placement in ["packed", "spread", "random"] {
        let text = format!("{TWO}ranks = 8\nplacement = \"{placement}\"\nstart = \"1 us\"\n");
        let summary = run(folder.path(), &text);
        for job in ["a", "b"] {
            let told = &summary["job"][job];
            assert_eq!(told["alone_ratio"], 1.0, "{placement}: {told}");
            assert_eq!(told["alone_seconds"], told["seconds"], "{placement}");
            assert_eq!(told["nodes"], 8);
        }
        // 8 x 7 x 2 flows of 10 KB.
        assert_eq!(summary["job"]["b"]["bytes"], 1_120_000, "{placement}");
    }
}

#[test]
fn jobs_that_share_nodes_take_longer_than_alone() {
    let folder = tempfile::tempdir().unwrap();
    training(folder.path(), "a", 8, 800_000);
    let summary = run(folder.path(), &format!("{TWO}nodes = \"0..7\"\n"));
    // Job a is placed on nodes that b does not name.
    assert_eq!(summary["job"]["a"]["alone_ratio"], 1.0);
    let text = format!("{TWO}nodes = \"0..7\"\n")
        .replace("trace = \"a\"", "trace = \"a\"\nnodes = \"0..7\"");
    let text = text.replace("10 KB", "1 MB");
    let summary = run(folder.path(), &text);
    let ratio = summary["job"]["a"]["alone_ratio"].as_f64().unwrap();
    assert!(ratio > 1.2, "{}", summary["job"]);
}

#[test]
fn energy_is_the_share_of_a_job_in_what_the_network_draws() {
    let folder = tempfile::tempdir().unwrap();
    training(folder.path(), "a", 8, 800_000);
    let summary = run(folder.path(), &format!("{TWO}ranks = 4\n"));
    let watts = summary["equipment"]["power_watts"].as_f64().unwrap();
    for (job, share) in [("a", 0.5), ("b", 0.25)] {
        let joules = summary["job"][job]["energy_joules"].as_f64().unwrap();
        let expected = watts * share * seconds(&summary, job);
        assert!((joules / expected - 1.0).abs() < 1e-12, "{job}: {joules} for {expected}");
    }
    let idle = TWO.replace("alone = true", "idle_power = 0.0");
    let summary = run(folder.path(), &format!("{idle}ranks = 4\n"));
    // 14 steps of 100 KB of 8 nodes, of the 16 x 100 Gbps that the rack could have sent.
    let expected = watts * 14.0 * 8.0 * 1e5 * 8.0 / (16.0 * 100e9);
    let joules = summary["job"]["a"]["energy_joules"].as_f64().unwrap();
    assert!((joules / expected - 1.0).abs() < 1e-12, "{joules} for {expected}");
}

#[test]
fn a_resolved_scenario_reads_as_the_same_wherever_its_traces_lie() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [here.path(), there.path()] {
        training(folder, "a", 8, 800_000);
    }
    fs::write(here.path().join("groups.json"), r#"{"dp": [0, 1]}"#).unwrap();
    let text = format!("{TWO}nodes = \"9, 2..4\"\n")
        .replace("trace = \"a\"", "trace = \"a\"\ngroups = \"groups.json\"");
    let first = read(here.path(), &text, &[]).unwrap();
    let resolved = Document::parse("b.toml", &first.to_toml(), Format::Toml).unwrap();
    let again = Scenario::read(resolved, &[], &Registry::standard()).unwrap();
    assert_eq!((again.to_toml(), again.hash()), (first.to_toml(), first.hash()));
    // Elsewhere, from copies, by the keys that name them.
    let inputs = first.workload.inputs();
    let keys: Vec<_> = inputs.iter().map(|input| (input.key.as_str(), input.paths.len())).collect();
    assert_eq!(keys, [("job[0].trace", 8), ("job[0].groups", 1)]);
    let copies: Vec<Value> =
        (0..8).map(|rank| json!(there.path().join(format!("a.{rank}.et")))).collect();
    fs::copy(here.path().join("groups.json"), there.path().join("g.json")).unwrap();
    let arguments = [
        Argument::value("workload.job[0].trace", &json!(copies), "a copy"),
        Argument::value("workload.job[0].groups", &json!(there.path().join("g.json")), "a copy"),
    ];
    let resolved = Document::parse("b.toml", &first.to_toml(), Format::Toml).unwrap();
    let mut copied = Scenario::read(resolved, &arguments, &Registry::standard()).unwrap();
    assert_eq!(copied.hash(), first.hash());
    assert_ne!(copied.to_toml(), first.to_toml());
    copied
        .workload
        .set_originals(inputs.into_iter().map(|input| (input.key, input.original)).collect());
    assert_eq!(copied.to_toml(), first.to_toml());
    // Another content is another trace.
    training(there.path(), "a", 8, 800_001);
    let resolved = Document::parse("b.toml", &first.to_toml(), Format::Toml).unwrap();
    let Err(bad) = Scenario::read(resolved, &arguments, &Registry::standard()) else {
        panic!("another trace has passed for the same")
    };
    assert!(bad.to_string().contains("found a trace with digest"), "{bad}");
}

#[test]
fn what_is_wrong_with_jobs_is_told_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    training(at, "a", 8, 800_000);
    write(at, "odd", 2, &[node(5, COLL, &[], 0, &[("comm_type", ALL_TO_ALL)])]);
    let job = |text: &str| format!("[workload]\nkind = \"jobs\"\n[[workload.job]]\n{text}");
    let experts = "work = { kind = \"expert_all_to_all\", size = \"1 KB\" }";
    let forever =
        "work = { kind = \"poisson\", load = 0.5, sizes = { kind = \"fixed\", size = \"1 KB\" } }";
    for (text, expected) in [
        (job("name = \"a\""), "workload.job[0].trace: missing"),
        (job("name = \"a.b\"\ntrace = \"a\""), "workload.job[0].name: found \"a.b\""),
        (job("name = \"a\"\ntrace = \"none\""), "workload.job[0].trace: found no none.0.et in "),
        (job("name = \"a\"\ntrace = \"a\"\nranks = 3"), "workload.job[0].ranks: a trace has"),
        (job("name = \"a\"\ntrace = \"a\"\nnodes = \"0..3\""), "found 4 nodes for 8 ranks"),
        (job("name = \"a\"\ntrace = \"a\"\nnodes = \"9..16\""), "node 16 does not exist"),
        (
            job(&format!("name = \"a\"\n{experts}")),
            "workload.job[0].ranks: missing: give ranks, or nodes",
        ),
        (
            job(&format!("name = \"a\"\nranks = 17\n{experts}")),
            "workload.job[0]: needs 17 nodes, and 16",
        ),
        (job(&format!("name = \"a\"\nranks = 4\n{forever}")), "workload.job[0].work: never ends"),
        (
            job(&format!("name = \"a\"\nranks = 4\n{}", experts.replace("1 KB", "0 B"))),
            "workload.job[0].work.size: found 0 B",
        ),
        (job("name = \"a\"\ntrace = \"a\"\ngroups = \"no.json\""), "workload.job[0].groups: "),
        (
            job("name = \"a\"\ntrace = \"odd\""),
            "odd.0.et: byte 9: node 5 (\"\"): has no attribute comm_size",
        ),
        (format!("{TWO}ranks = 4\n").replace("\"b\"", "\"a\""), "there are two jobs named \"a\""),
        ("[workload]\nkind = \"jobs\"\njob = []\n".into(), "workload.job: found 0 jobs"),
    ] {
        let Err(problems) = read(at, &text, &[]) else { panic!("accepted: {text}") };
        assert!(problems.contains(expected), "{text}:\n{problems}\ninstead of\n{expected}");
    }
    // One rank takes part in an operation that the other does not know of.
    write(at, "odd", 2, &[]);
    let sizes = [("comm_type", ALL_REDUCE), ("comm_size", 8)];
    let lonely = [message(&[text(1, b"0.0.4")]), node(5, COLL, &[], 0, &sizes)].concat();
    fs::write(at.join("odd.1.et"), lonely).unwrap();
    let Err(problems) = read(at, &job("name = \"a\"\ntrace = \"odd\""), &[]) else { panic!() };
    assert!(problems.contains("odd.1.et: rank 0 takes part in 0 operations"), "{problems}");
}
