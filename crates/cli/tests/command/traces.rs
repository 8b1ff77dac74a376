//! Flows from files as people have them.

use scenario::{TraceFormat, trace};

use crate::common::Place;

/// A scenario with this trace, and these lines for its run.
fn scenario(workload: &str, run: &str) -> String {
    format!(
        "[run]\n{run}\n[workload]\nkind = 'trace'\n{workload}\n[fabric]\nkind = 'shoal'\nnodes = 8\n"
    )
}

#[test]
fn flows_of_a_run_run_again_are_the_same_flows() {
    let place = Place::new();
    let run = "time = '40 us'\nwarm_up = 0.0";
    place.write(
        "first.toml",
        &format!(
            "[run]\nflows = 300\n{run}\n[workload]\nkind = 'poisson'\nload = 0.9\n\
         sizes = {{ kind = 'fixed', size = '10 KB' }}\n[fabric]\nkind = 'shoal'\nnodes = 8\n"
        ),
    );
    place.run(&["run", "first.toml", "--out", "a"]).succeeds();
    place.write("again.toml", &scenario("path = 'a/flows.parquet'", run));
    place.run(&["run", "again.toml", "--out", "b"]).succeeds();
    place.write("and-again.toml", &scenario("path = 'b/flows.parquet'", run));
    place.run(&["run", "and-again.toml", "--out", "c"]).succeeds();
    let [a, b] = ["a/summary.json", "b/summary.json"].map(|name| place.json(name));
    assert!(
        a["flows"]["unfinished"].as_u64() > Some(0) && a["flows"]["completed"].as_u64() > Some(0),
        "{a:#}"
    );
    for key in ["/event_hash", "/flows/offered", "/flows/completed", "/bytes", "/load/realised"] {
        assert_eq!(a.pointer(key), b.pointer(key), "{key}");
    }
    let [first, again, and_again] = ["a", "b", "c"].map(|run| {
        let name = format!("{run}/flows.parquet");
        trace::read_bytes(&name, place.read(&name), TraceFormat::Parquet, 8).unwrap()
    });
    assert_eq!(first.len() as u64, a["flows"]["offered"]);
    assert!(first == again && again == and_again);
}

#[test]
fn lists_of_other_simulators_run_and_say_what_they_are() {
    let place = Place::new();
    place.write("flow.txt", "2\n1 8 3 100 5000 0\n2 1 3 100 5000 0.000001\n");
    let without = scenario("path = 'flow.txt'", "");
    place.write("hpcc.toml", &without);
    place.run(&["run", "hpcc.toml", "--out", "out"]).refuses(&[
        "hpcc.toml:3: workload.format: missing: what \"flow.txt\" holds cannot be told from its name; add format = \
         \"csv\", \"parquet\", \"htsim\" (a connection matrix), \"hpcc\" (a list of flows) or \"pcap\" (a capture)",
    ]);
    assert!(!place.join("out").exists());
    place.write("hpcc.toml", &scenario("path = 'flow.txt'\nformat = 'hpcc'\nfirst_node = 1", ""));
    place.run(&["run", "hpcc.toml", "--out", "out"]).succeeds();
    assert_eq!(place.json("out/summary.json")["flows"]["completed"], 2);
    // The resolved scenario lies elsewhere and says all that reading it takes.
    place.run(&["run", "out/scenario.toml", "--out", "again"]).succeeds();
    assert_eq!(place.read("out/scenario.toml"), place.read("again/scenario.toml"));

    place.write(
        "t.cm",
        "Nodes 8\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 5000 send_done_trigger 1\n\
                         1->2 id 2 trigger 1 size 5000\ntrigger id 1 oneshot\n",
    );
    place.write("htsim.toml", &scenario("path = 't.cm'", ""));
    place.run(&["run", "htsim.toml", "--out", "htsim"]).succeeds();
    let summary = place.json("htsim/summary.json");
    assert_eq!(summary["flows"]["completed"], 2);
}

#[test]
fn a_trace_is_stretched_to_a_load_and_says_what_it_offers_itself() {
    let place = Place::new();
    // From the first start to the last, 80 KB of 8 nodes at 100 Gbps: 0.8 us within 3.2 us.
    let mut flows = String::from("start,src,dst,bytes\n");
    for flow in 0..8 {
        flows.push_str(&format!(
            "{} ns,{flow},{},10000\n",
            5_000 + flow * 3_200 / 7,
            (flow + 1) % 8
        ));
    }
    place.write("t.csv", &flows);
    let workload = "path = 't.csv'\nload = 0.5\nload_rate = '100 Gbps'";
    place.write("t.toml", &scenario(workload, ""));
    place.run(&["run", "t.toml", "--out", "out"]).succeeds();
    let load = &place.json("out/summary.json")["load"];
    assert_eq!((load["nominal"].as_f64(), load["realised"].as_f64()), (Some(0.5), Some(0.5)));
    assert_eq!((load["trace"].as_f64(), load["mean_bytes"].as_f64()), (Some(0.25), Some(10_000.0)));
    place.run(&["run", "out/scenario.toml", "--out", "again"]).succeeds();
    assert_eq!(place.read("out/flows.parquet"), place.read("again/flows.parquet"));
    place.write("none.toml", &scenario(&workload.replace("0.5", "0"), ""));
    place
        .run(&["run", "none.toml", "--out", "none"])
        .refuses(&["none.toml:6: workload.load: found 0; expected a load above 0, such as 0.5"]);
}

#[test]
fn a_graph_may_be_graphml_or_a_list_with_spaces() {
    let place = Place::new();
    place.write("t.csv", "start,src,dst,bytes\n0 ns,0,1,5000\n1 us,1,0,5000\n");
    place.write("star.txt", "0 2 100Gbps 20ns\n1 2 50Gbps 100ns\n");
    place.write("star.graphml", "<graphml><key id='r' attr.name='rate'><default>100 Gbps</default></key>\
        <key id='d' attr.name='latency'><default>20 ns</default></key><key id='k' attr.name='type'/><graph>\
        <node id='tor'><data key='k'>switch</data></node><node id='a'><data key='k'>host</data></node>\
        <node id='b'><data key='k'>host</data></node><edge source='a' target='tor'/><edge source='b' target='tor'>\
        <data key='r'>50 Gbps</data><data key='d'>100 ns</data></edge></graph></graphml>");
    let scenario = |hosts: u32, edges: &str| {
        format!(
            "name = 'star'\n[workload]\nkind = 'trace'\npath = 't.csv'\n[fabric]\nkind = 'packet-switched'\n\
         topology = {{ kind = 'graph', hosts = {hosts}, edges = '{edges}' }}\n"
        )
    };
    for edges in ["star.txt", "star.graphml"] {
        place.write("star.toml", &scenario(2, edges));
        place.run(&["run", "star.toml", "--out", edges.trim_start_matches("star.")]).succeeds();
    }
    assert_eq!(place.read("txt/scenario.toml"), place.read("graphml/scenario.toml"));
    place.write("star.toml", &scenario(3, "star.graphml"));
    place.run(&["run", "star.toml", "--out", "bad"]).refuses(&[
        "star.toml:7: fabric.topology.hosts: found 3; expected 2, as many as the file of its edges has",
    ]);
    place.write("star.txt", "0 2\n1 2\n");
    place.write("star.toml", &scenario(2, "star.txt"));
    place.run(&["run", "star.toml", "--out", "bad"]).refuses(&[
        "star.toml:7: fabric.topology.edges: star.txt:1: found 2 values; expected four: two vertices, a rate and a \
         delay, such as \"0 8 100Gbps 20ns\" (what all links have in common may stand in the scenario, as rate and \
         delay of the topology)",
    ]);
    assert!(!place.join("bad").exists());
}
