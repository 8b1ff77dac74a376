//! Every transport through the door that scenarios use: on every shape of network, with losses and
//! failures, to the end, with the same bytes each time.

use std::ops::ControlFlow;

use rack::results::{FlowEnd, FlowRecord, FlowSink, RunResult};
use rack::{Flow, NodeId};
use scenario::{Document, Format, Registry, Scenario, Sink, schema};
use serde_json::Value;

/// The transports of this build, from the schema: a new one is tested as soon as it is listed.
fn transports() -> Vec<String> {
    let root = schema::scenario(&Registry::standard());
    let fabric = schema::table(&root, "fabric", "packet-switched").expect("it is registered");
    let kinds = words(&fabric["properties"]["transport"], &root);
    assert!(kinds.len() > 5, "{kinds:?}");
    kinds
}

/// The values of `kind` anywhere in a table's alternatives.
fn words(schema: &Value, root: &Value) -> Vec<String> {
    let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
    let target = reference.map(|at| root.pointer(at.trim_start_matches('#')).expect("it is there"));
    let variants = target.unwrap_or(schema)["oneOf"].as_array().expect("one of several kinds");
    let kind = |variant: &Value| variant["properties"]["kind"]["const"].as_str().map(String::from);
    variants.iter().filter_map(kind).collect()
}

fn read(text: &str) -> Result<Scenario, String> {
    let document = Document::parse("a.toml", text, Format::Toml).map_err(|bad| bad.to_string())?;
    Scenario::read(document, &[], &Registry::standard()).map_err(|bad| bad.to_string())
}

#[track_caller]
fn run_into(text: &str, sink: &mut dyn Sink) -> RunResult {
    let scenario = read(text).unwrap_or_else(|problems| panic!("{text}\n{problems}"));
    let result = scenario.execute(0, sink, &mut |_| ControlFlow::Continue(()));
    result.unwrap_or_else(|error| panic!("{text}\n{error}"))
}

#[track_caller]
fn run(text: &str) -> RunResult {
    run_into(text, &mut ())
}

/// Keeps the flows that failed.
#[derive(Default)]
struct Failed(Vec<Flow>);

impl FlowSink for Failed {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        if let FlowEnd::Failed { .. } = record.end {
            self.0.push(*record.flow);
        }
        Ok(())
    }
}

impl Sink for Failed {}

const FLOWS: u64 = 150;

/// A scenario of a few flows of mixed sizes; `rest` ends the `[fabric]` table.
fn scenario(transport: &str, rest: &str) -> String {
    format!(
        "seed = 7
[run]
flows = {FLOWS}
[workload]
kind = 'poisson'
load = 0.4
sizes = {{ kind = 'pareto', shape = 1.3, mean = '30 KB' }}
[fabric]
kind = 'packet-switched'
transport = {transport}
{rest}"
    )
}

/// The transport's table. Raw sending is told to repeat what is lost.
fn table(kind: &str) -> String {
    let repeat = if kind == "raw" { ", losses = 'repeat'" } else { "" };
    format!("{{ kind = '{kind}'{repeat} }}")
}

const SHAPES: [&str; 6] = [
    "topology = { kind = 'single-switch', hosts = 8 }",
    "topology = { kind = 'leaf-spine', hosts = 8, radix = 4 }",
    "topology = { kind = 'three-tier', hosts = 16, radix = 4 }",
    "topology = { kind = 'torus', dimensions = [3, 3] }",
    "topology = { kind = 'mesh', dimensions = [2, 2, 2] }",
    "topology = { kind = 'graph', hosts = 3, edges = \"\"\"
a,b,rate,delay
0,3,10 Gbps,20 ns
1,3,40 Gbps,20 ns
2,4,10 Gbps,20 ns
3,4,10 Gbps,100 ns
\"\"\" }",
];

#[test]
fn every_transport_ends_on_every_shape() {
    for kind in transports() {
        for shape in SHAPES {
            let summary = run(&scenario(&table(&kind), shape)).summary;
            assert!(summary["flows"]["completed"].as_u64().unwrap() >= FLOWS, "{kind}, {shape}");
            assert_eq!(summary["flows"]["failed"], 0, "{kind}, {shape}");
            assert_eq!(summary["fabric"], "packet-switched");
            assert_eq!(summary["packet_switched"]["transport"], kind.as_str());
            let slowdown = summary["slowdown"]["all"]["p50"].as_f64().unwrap();
            assert!((0.9..100.0).contains(&slowdown), "{kind}, {shape}: {slowdown}");
        }
    }
}

const FAULTS: &str = "loss_rate = 0.002
topology = { kind = 'leaf-spine', hosts = 16, radix = 8 }
[[fault]]
at = '20 us'
until = '40 us'
node_link = 1
[[fault]]
at = '30 us'
spine = 1
[[fault]]
at = '50 us'
until = '70 us'
leaf_spine = { leaf = 0, spine = 0 }
[[fault]]
at = '60 us'
node = 5
";

#[test]
fn every_transport_completes_every_flow_to_a_living_host_though_packets_are_lost() {
    for kind in transports() {
        let mut failed = Failed::default();
        let summary = run_into(&scenario(&table(&kind), FAULTS), &mut failed).summary;
        let ended = |key: &str| summary["flows"][key].as_u64().unwrap();
        assert!(ended("completed") + ended("failed") >= FLOWS, "{kind}: {}", summary["flows"]);
        // Only flows of the node that dies.
        let dead = NodeId::new(5);
        let is_of_dead = |flow: &Flow| flow.src == dead || flow.dst == dead;
        assert!(!failed.0.is_empty() && failed.0.iter().all(is_of_dead), "{kind}: {:?}", failed.0);
        if kind != "fluid" {
            assert!(summary["drops"].as_u64().unwrap() > 0, "{kind}");
        }
    }
}

/// The `switch` table with buffers of one packet, as far as the transport can be carried with it:
/// DCQCN's pauses need room for what is under way.
fn smallest(kind: &str) -> &'static str {
    match kind {
        "dctcp" => {
            "switch = { port_buffer = '1500 B', marking = { kind = 'step', threshold = '0 B' } }"
        }
        "ndp" => {
            "switch = { port_buffer = '1500 B', trimming = { kind = 'header', header_buffer = '64 B' } }"
        }
        "raw" => "switch = { port_buffer = '1500 B', flow_control = { kind = 'none' } }",
        "dcqcn" => "",
        _ => "switch = { port_buffer = '1500 B' }",
    }
}

#[test]
fn every_transport_completes_every_flow_over_buffers_of_one_packet() {
    let clos = "topology = { kind = 'leaf-spine', hosts = 16, radix = 8 }";
    for kind in transports() {
        let fabric = format!("{clos}\n{}", smallest(&kind));
        let summary = run(&scenario(&table(&kind), &fabric)).summary;
        assert!(summary["flows"]["completed"].as_u64().unwrap() >= FLOWS, "{kind}");
        assert_eq!(summary["flows"]["failed"], 0, "{kind}");
        let found = &summary["packet_switched"];
        let troubles = ["dropped_full", "packets_trimmed"].map(|key| found[key].as_u64());
        let is_troubled = troubles.iter().flatten().sum::<u64>() > 0;
        assert!(is_troubled || kind == "dcqcn" || kind == "fluid", "{kind}: {found}");
    }
}

#[test]
fn the_same_scenario_gives_the_same_bytes() {
    for kind in transports() {
        let text = scenario(&table(&kind), FAULTS);
        let (one, two) = (run(&text), run(&text));
        assert_eq!(one.summary, two.summary, "{kind}");
        assert_eq!(one.series.values, two.series.values, "{kind}");
        let other = run(&text.replace("seed = 7", "seed = 8"));
        assert_ne!(one.summary["event_hash"], other.summary["event_hash"], "{kind}");
    }
}

#[test]
fn a_resolved_scenario_says_what_the_transport_asked_for_and_reads_back() {
    for kind in transports() {
        let text = scenario(&table(&kind), "topology = { kind = 'single-switch', hosts = 8 }");
        let first = read(&text).unwrap();
        let resolved = first.to_toml();
        for key in ["port_buffer", "marking", "trimming", "flow_control", "routing", "nodes = 8"] {
            assert!(resolved.contains(key), "{kind}: no {key} in\n{resolved}");
        }
        let again = read(&resolved).unwrap_or_else(|problems| panic!("{resolved}\n{problems}"));
        assert_eq!(again.to_toml(), resolved);
        assert_eq!(again.hash(), first.hash());
    }
}

#[test]
fn problems_name_the_line_and_the_key() {
    let bad = |rest: &str| read(&scenario("{ kind = 'ndp' }", rest)).err().expect("it is refused");
    let found = bad("switch = { trimming = { kind = 'none' } }\n");
    assert!(found.contains("a.toml:11: fabric.switch.trimming: none, but ndp learns"), "{found}");
    let found = bad("switch = { triming = { kind = 'none' } }\n");
    assert!(
        found.contains("fabric.switch.triming: unknown key; did you mean \"trimming\"?"),
        "{found}"
    );
    let found = bad("switch = { flow_control = { kind = 'pfcc' } }\n");
    assert!(found.contains("unknown kind \"pfcc\"; did you mean \"pfc\"?"), "{found}");
    // A key, or a table, that another fabric takes.
    let shoal = scenario("{ kind = 'ndp' }", "switch = {}\n").replace("packet-switched", "shoal");
    let found = read(&shoal).err().expect("it is refused");
    assert!(
        found.contains(
            "fabric.transport: found a table; expected one of \"auto\", \"none\", \"reliable\"; kind \
             = one of \"aquila\", \"packet-switched\", \"pl2\" takes it"
        ),
        "{found}"
    );
    assert!(found.contains("fabric.switch: unknown key; "), "{found}");
    let found = bad("[[fault]]\nat = '1 us'\nswitch = 24\n");
    assert!(found.contains("there is no switch 24; this network has 24 switches"), "{found}");
    let found = bad("[[fault]]\nat = '1 us'\nlink = { a = 0, b = 1 }\n");
    assert!(found.contains("vertex 0 to vertex 1"), "{found}");
}

#[test]
fn the_links_of_a_graph_may_stand_in_a_file() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("a.toml");
    std::fs::write(
        place.path().join("links.csv"),
        "a,b,rate,delay\n0,2,1 Gbps,1 us\n1,2,1 Gbps,1 us\n",
    )
    .unwrap();
    let text = |name: &str| {
        let graph = format!("topology = {{ kind = 'graph', hosts = 2, edges = '{name}' }}");
        scenario("{ kind = 'dctcp' }", &graph)
    };
    let open = |text: String| {
        std::fs::write(&file, text).unwrap();
        Scenario::open(&file, &[], &Registry::standard()).map_err(|bad| bad.to_string())
    };
    let found = open(text("links.csv")).unwrap();
    assert_eq!(found.nodes(), 2);
    // The resolved scenario holds the links themselves.
    assert!(read(&found.to_toml()).is_ok());
    let problems = open(text("absent.csv")).err().expect("it is refused");
    assert!(problems.contains("fabric.topology.edges: "), "{problems}");
    assert!(problems.contains("absent.csv cannot be read"), "{problems}");
}

#[test]
fn a_run_may_last_for_seconds_with_a_sample_each_microsecond_at_first() {
    let flows = "[workload]
kind = 'poisson'
interarrival = '100 ms'
flows = 60
[fabric]
kind = 'packet-switched'
topology = { kind = 'single-switch', hosts = 4 }
transport = { kind = 'fluid' }
";
    let summary = run(flows).summary;
    assert!(summary["simulated_seconds"].as_f64().unwrap() > 3.0, "{summary}");
    assert_eq!(summary["saturated"], false);
}

/// Homa's receivers grant more than the 100 packets that a port holds for other transports: 355 packets
/// were dropped here.
#[test]
fn ports_hold_what_receivers_of_homa_grant() {
    let table = "[run]
flows = 20_000
[workload]
kind = 'poisson'
load = 0.6
sizes = { kind = 'table', name = 'W3', reading = 'upper_step' }
[fabric]
kind = 'packet-switched'
topology = { kind = 'leaf-spine', hosts = 64, radix = 16 }
transport = { kind = 'homa' }
";
    let summary = run(table).summary;
    assert_eq!((&summary["drops"], &summary["saturated"]), (&0.into(), &false.into()));
}

/// What Aquila's IP does not carry is refused with one message that says what there is.
#[test]
fn transports_that_aquila_does_not_carry_are_refused_by_name() {
    let all = ["newreno", "cubic", "dctcp", "swift", "ndp", "dcqcn", "homa", "rds", "raw", "mixed"];
    for kind in ["fluid", "pfabric"] {
        let workload = "[workload]\nkind = 'poisson'\nload = 0.1\n";
        let fabric = format!("[fabric]\nkind = 'aquila'\ntransport.kind = '{kind}'\n");
        let text = format!("[run]\nflows = 9\n{workload}{fabric}");
        let problems = read(&text).err().expect("it is none of them");
        let expected = all.map(|kind| format!("{kind:?}")).join(", ");
        let message = format!("unknown kind {kind:?}; expected one of {expected}");
        assert_eq!(problems.lines().count(), 1, "{problems}");
        assert!(problems.contains(&message), "{problems}");
    }
}
