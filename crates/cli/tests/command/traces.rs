//! Flows from files as people have them.

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
    assert_eq!(place.read("b/flows.parquet"), place.read("c/flows.parquet"));
}

#[test]
fn lists_of_other_simulators_run_and_say_what_they_are() {
    let place = Place::new();
    place.write("flow.txt", "2\n1 8 3 100 5000 0\n2 1 3 100 5000 0.000001\n");
    let without = scenario("path = 'flow.txt'", "");
    place.write("hpcc.toml", &without);
    place.run(&["run", "hpcc.toml", "--out", "out"]).refuses(&[
        "hpcc.toml: workload.format: missing: what \"flow.txt\" holds cannot be told from its name; add format = \
         \"csv\", \"parquet\", \"htsim\" (a connection matrix) or \"hpcc\" (a list of flows)",
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
