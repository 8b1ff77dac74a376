//! Packet networks as a user meets them: each feature from a scenario file, seen in the results; bad
//! input refused by one clear message before anything runs.

use serde_json::Value;

use crate::common::Place;

/// A workload of a few flows in one direction and its opposite.
const PAIRS: &str = "[workload]
kind = 'poisson'
load = 0.6
sizes = { kind = 'fixed', size = '30 KB' }
";

/// Seven hosts to one at once.
const INCAST: &str = "[workload]
kind = 'incast'
senders = 7
receiver = 0
size = '100 KB'
";

/// One packet from host 0 to host 1: with raw sending, 1,500 B on the wire.
const PACKET: &str = "[workload]
kind = 'trace'
path = 'one.csv'
";

/// The summary of a run of `workload` over a packet network with this table.
#[track_caller]
fn run(workload: &str, fabric: &str) -> Value {
    let place = Place::new();
    place.write("one.csv", "start,src,dst,bytes\n0 ns,0,1,1458\n");
    place.write("links.csv", LINKS);
    let ends = if workload.contains("poisson") { "[run]\nflows = 200\n" } else { "" };
    let text = format!("{ends}{workload}[fabric]\nkind = 'packet-switched'\n{fabric}\n");
    place.write("net.toml", &text);
    let arguments = ["run", "net.toml", "--format", "json", "--quiet", "--out", "r"];
    let summary = place.run(&arguments).succeeds().json();
    assert_eq!(summary["flows"]["failed"], 0, "{text}");
    assert!(place.names("r").contains(&"flows.parquet".into()));
    summary
}

fn count(summary: &Value, key: &str) -> u64 {
    let found = summary.pointer(key).unwrap_or_else(|| panic!("no {key} in {summary}"));
    found.as_u64().unwrap_or_else(|| panic!("{key} is {found}"))
}

/// What the one packet took, in picoseconds.
#[track_caller]
fn packet_takes(fabric: &str, picoseconds: u64) {
    let summary = run(PACKET, &format!("transport = {{ kind = 'raw' }}\n{fabric}"));
    let found = summary["fct"]["all"]["max"].as_f64().unwrap() * 1e12;
    assert_eq!(found.round() as u64, picoseconds, "{fabric}");
}

/// Hosts 0 and 1 behind switches 2 and 3.
const LINKS: &str = "a,b,rate,delay\n0,2,10 Gbps,20 ns\n2,3,40 Gbps,100 ns\n3,1,5 Gbps,30 ns\n";

#[test]
fn a_graph_from_a_file_has_the_rates_and_delays_of_its_links() {
    // 1500 B: 1,200 ns at 10 Gbps, 300 at 40, 2,400 at 5; 150 ns of wire; two switches.
    let graph = "topology = { kind = 'graph', hosts = 2, edges = 'links.csv' }";
    packet_takes(&format!("{graph}\nswitch = {{ latency = '500 ns' }}"), 5_050_000);
    packet_takes(&format!("{graph}\nswitch = {{ latency = '0 ns' }}"), 4_050_000);
    packet_takes(
        &format!("{graph}\nswitch = {{ latency = '0 ns' }}\nhost = {{ latency = '1 us' }}"),
        5_050_000,
    );
}

#[test]
fn a_packet_takes_the_way_that_its_topology_has() {
    let switch = |forwarding: &str| {
        format!("\nswitch = {{ latency = '100 ns', forwarding = '{forwarding}' }}")
    };
    let star = "topology = { kind = 'single-switch', hosts = 2, rate = '10 Gbps', delay = '0 ns' }";
    packet_takes(&format!("{star}{}", switch("store-and-forward")), 2_500_000);
    // Cut through, the switch waits for 64 B, 51.2 ns.
    packet_takes(&format!("{star}{}", switch("cut-through")), 1_351_200);
    // Hosts 0 and 1 are at one leaf of a Clos; at 2 hosts a leaf, they share it.
    for clos in ["'leaf-spine', hosts = 8, radix = 4", "'three-tier', hosts = 16, radix = 4"] {
        let table = format!("topology = {{ kind = {clos}, rate = '10 Gbps', delay = '0 ns' }}");
        packet_takes(&format!("{table}{}", switch("store-and-forward")), 2_500_000);
    }
}

#[test]
fn a_torus_closes_the_rings_that_a_mesh_leaves_open() {
    let place = Place::new();
    // From a corner to the opposite one: 1 + 1 links round a torus of 4 by 4, 3 + 3 across the mesh;
    // in three dimensions 1 + 1 + 1 and 3 + 3 + 3.
    let hops = |kind: &str, dimensions: &str, last: u32| {
        place.write("one.csv", &format!("start,src,dst,bytes\n0 ns,0,{last},1458\n"));
        let text = format!(
            "{PACKET}[fabric]\nkind = 'packet-switched'\ntransport = {{ kind = 'raw' }}\n\
             switch = {{ latency = '0 ns' }}\n\
             topology = {{ kind = '{kind}', dimensions = {dimensions}, rate = '10 Gbps' }}\n"
        );
        place.write("net.toml", &text);
        let out = format!("{kind}-{last}");
        let arguments = ["run", "net.toml", "--format", "json", "--quiet", "--out", &out];
        let summary = place.run(&arguments).succeeds().json();
        count(&summary, "/packet_switched/packet_hops")
    };
    let (flat, cube) = ("[4, 4]", "[4, 4, 4]");
    let torus = (hops("torus", flat, 15), hops("torus", cube, 63));
    let mesh = (hops("mesh", flat, 15), hops("mesh", cube, 63));
    assert_eq!((mesh.0 - torus.0, mesh.1 - torus.1), (4, 6));
}

#[test]
fn an_oversubscribed_clos_has_its_switches_and_its_bottleneck() {
    // 64 hosts at leaves of 8 + 8 or 12 + 4 ports; every host sends to one half the network away.
    let clos = |kind: &str, oversubscription: u32| {
        let workload = "[workload]
kind = 'bulk'
size = '1 MB'
pattern = { kind = 'permutation' }
";
        let summary = run(
            workload,
            &format!(
                "topology = {{ kind = '{kind}', hosts = 48, radix = 16, oversubscription = \
                 {oversubscription}, rate = '10 Gbps' }}\nrouting = 'permutation-spray'\n\
                 transport = {{ kind = 'fluid' }}"
            ),
        );
        (summary["fct"]["all"]["max"].as_f64().unwrap(), count(&summary, "/equipment/switches"))
    };
    for kind in ["leaf-spine", "three-tier"] {
        let (full, _) = clos(kind, 1);
        let (third, _) = clos(kind, 3);
        assert!(full < 0.9e-3, "{kind}: {full} s for 1 MB at 10 Gbps");
        assert!(third > 2.0 * full, "{kind}: {third} s and {full} s");
    }
}

#[test]
fn buffers_drop_mark_and_trim_what_they_cannot_hold() {
    let star = "topology = { kind = 'single-switch', hosts = 8, rate = '10 Gbps' }\n";
    let incast = |rest: &str| run(INCAST, &format!("{star}{rest}"));
    let drops = |rest: &str| count(&incast(rest), "/drops");
    let transport = "transport = { kind = 'newreno', stream = { initial_window = 40 } }\n";
    assert_eq!(drops(&format!("{transport}switch = {{ port_buffer = '1 MB' }}")), 0);
    assert!(drops(&format!("{transport}switch = {{ port_buffer = '30 KB' }}")) > 0);
    // Shared memory: alpha says how much of what is free a port may take.
    let shared = |alpha: &str| {
        let memory = "port_buffer = '1 MB', shared_buffer = '1 MB'";
        let summary = incast(&format!("{transport}switch = {{ {memory}, alpha = {alpha} }}"));
        (count(&summary, "/drops"), count(&summary, "/queue/max_bytes"))
    };
    let (some, half) = shared("1.0");
    let (none, whole) = shared("16.0");
    assert!(some > 0 && none == 0, "{some} and {none} drops");
    // Half of the memory, and 16 parts of 17 of it; a packet more at most.
    assert!((498_500..=501_500).contains(&half), "{half}");
    assert!((501_500..=942_700).contains(&whole), "{whole}");
    let marked = |marking: &str| {
        let table = format!("switch = {{ port_buffer = '1 MB', marking = {{ {marking} }} }}");
        count(
            &incast(&format!("transport = {{ kind = 'dctcp' }}\n{table}")),
            "/packet_switched/packets_marked",
        )
    };
    assert!(marked("kind = 'step', threshold = '30 KB'") > 0);
    assert_eq!(marked("kind = 'step', threshold = '900 KB'"), 0);
    assert!(marked("kind = 'red', min = '15 KB', max = '60 KB', probability = 0.5") > 0);
    let trimmed = incast("transport = { kind = 'ndp' }");
    assert!(count(&trimmed, "/packet_switched/packets_trimmed") > 0);
    assert_eq!(count(&trimmed, "/drops"), 0);
}

#[test]
fn links_that_hold_back_drop_nothing() {
    let star = "topology = { kind = 'single-switch', hosts = 8, rate = '10 Gbps' }\n";
    let raw = "transport = { kind = 'raw' }\n";
    let incast = |control: &str| {
        let table = format!("switch = {{ flow_control = {{ {control} }} }}\n");
        let workload = INCAST.replace("100 KB", "1 MB");
        let summary = run(&workload, &format!("{star}{raw}{table}"));
        assert_eq!(count(&summary, "/drops"), 0, "{control}");
        // 7 MB at 10 Gbps take 5.6 ms, with headers 5.76: the line is never idle for long.
        let last = summary["fct"]["all"]["max"].as_f64().unwrap();
        assert!((5.76e-3..5.9e-3).contains(&last), "{control}: {last} s");
        summary
    };
    assert!(count(&incast("kind = 'pfc'"), "/packet_switched/pauses") > 0);
    assert_eq!(count(&incast("kind = 'credit'"), "/packet_switched/pauses"), 0);
    let queue = count(&incast("kind = 'per-flow', window = 4"), "/queue/max_bytes");
    assert!(queue <= 7 * 4 * 1_500, "seven flows of four packets, {queue} B wait");
}

#[test]
fn routing_keeps_a_flow_together_or_spreads_it() {
    let order = |routing: &str| {
        let table = "topology = { kind = 'leaf-spine', hosts = 32, radix = 8, rate = '10 Gbps' }";
        let fabric = format!("{table}\nrouting = '{routing}'\ntransport = {{ kind = 'newreno' }}");
        count(&run(PAIRS, &fabric), "/reorder/max_bytes")
    };
    assert_eq!(order("ecmp"), 0);
    for routing in ["random-spray", "permutation-spray"] {
        assert!(order(routing) > 0, "{routing}");
    }
}

#[test]
fn detours_double_the_way_over_a_torus() {
    let hops = |routing: &str| {
        let table = "topology = { kind = 'torus', dimensions = [8, 8], rate = '10 Gbps' }";
        let switch = "switch = { flow_control = { kind = 'per-flow' } }";
        let fabric =
            format!("{table}\n{switch}\nrouting = '{routing}'\ntransport = {{ kind = 'raw' }}");
        // Few flows, so that no network is behind and as many come under each.
        count(&run(&PAIRS.replace("0.6", "0.05"), &fabric), "/engine/hops") as f64
    };
    // The same packets go four hops on average, or eight; and one from the NIC.
    let ratio = hops("valiant") / hops("random-spray");
    assert!((1.5..2.0).contains(&ratio), "{ratio}");
}

#[test]
fn weights_stand_in_the_resolved_scenario() {
    let place = Place::new();
    let table = "switch = { scheduling = { kind = 'deficit', weights = [0, 3, 1] } }";
    place.write(
        "net.toml",
        &format!(
            "[run]\nflows = 200\n{PAIRS}[fabric]\nkind = 'packet-switched'\nnodes = 8\n{table}\n"
        ),
    );
    place.run(&["run", "net.toml", "--quiet", "--out", "r"]).succeeds();
    let resolved = String::from_utf8(place.read("r/scenario.toml")).unwrap();
    assert!(resolved.contains("deficit") && resolved.contains("weights"), "{resolved}");
}

#[test]
fn routes_are_computed_anew_when_a_switch_dies() {
    let place = Place::new();
    let fabric = "topology = { kind = 'leaf-spine', hosts = 32, radix = 8, rate = '10 Gbps' }
convergence = '50 us'
transport = { kind = 'ndp' }
[[fault]]
at = '100 us'
spine = 1
";
    let text = format!("[run]\nflows = 2000\n{PAIRS}[fabric]\nkind = 'packet-switched'\n{fabric}");
    place.write("net.toml", &text);
    let arguments = ["run", "net.toml", "--format", "json", "--quiet", "--out", "r"];
    let summary = place.run(&arguments).succeeds().json();
    assert!(count(&summary, "/packet_switched/dropped_dead_link") > 0);
    assert_eq!(summary["flows"]["failed"], 0);
    assert!(count(&summary, "/flows/completed") >= 2_000);
}

/// One line on stderr, exit code 2, and nothing written.
#[track_caller]
fn refuses(fabric: &str, line: &str) {
    let place = Place::new();
    let text = format!("[run]\nflows = 50\n{PAIRS}[fabric]\nkind = 'packet-switched'\n{fabric}\n");
    place.write("bad.toml", &text);
    place.run(&["run", "bad.toml"]).refuses(&[line]);
    assert_eq!(place.names("."), ["bad.toml", "small.toml"], "{fabric}");
}

#[test]
fn a_graph_with_an_island_is_refused() {
    refuses(
        "topology = { kind = 'graph', hosts = 3, edges = '''
a,b,rate,delay
0,3,10 Gbps,20 ns
1,3,10 Gbps,20 ns
2,4,10 Gbps,20 ns
''' }",
        "bad.toml:9: fabric.topology.edges: no path joins host 2 to host 0; add a link from its side \
         of the network to the other",
    );
    refuses(
        "topology = { kind = 'graph', hosts = 2, edges = 'absent.csv' }",
        "bad.toml:9: fabric.topology.edges: absent.csv cannot be read: No such file or directory (os \
         error 2)",
    );
}

#[test]
fn a_port_count_that_does_not_fit_is_refused() {
    refuses(
        "topology = { kind = 'leaf-spine', hosts = 5000 }",
        "bad.toml:9: fabric.topology.hosts: 5000 hosts do not fit two tiers of 64-port switches; \
         expected at most 2048, more ports or three tiers",
    );
    refuses(
        "topology = { kind = 'leaf-spine', hosts = 50, radix = 16, oversubscription = 2 }",
        "bad.toml:9: fabric.topology.radix: a leaf of 16 ports does not divide 2 to 1; expected a \
         multiple of 3",
    );
    refuses(
        "topology = { kind = 'three-tier', hosts = 5000, radix = 8 }",
        "bad.toml:9: fabric.topology.hosts: 5000 hosts do not fit three tiers of 8-port switches; \
         expected at most 128, or more ports",
    );
    refuses(
        "nodes = 100\ntopology = { kind = 'torus', dimensions = [4, 4] }",
        "bad.toml:9: fabric.nodes: 100, but topology.dimensions makes 16; remove one of the two",
    );
}

#[test]
fn buffers_and_thresholds_that_cannot_be_are_refused() {
    refuses(
        "switch = { port_buffer = '0 B', flow_control = { kind = 'pfc' } }",
        "bad.toml:9: fabric.switch.port_buffer: 0 B holds no packet of 1.5 KB; expected at least that",
    );
    refuses(
        "switch = { port_buffer = '30 KB', marking = { kind = 'step', threshold = '45 KB' } }",
        "bad.toml:9: fabric.switch.marking.threshold: 45 KB is never reached in a port_buffer of 30 \
         KB; lower it",
    );
    refuses(
        "switch = { shared_buffer = '60 KB', marking = { kind = 'step', threshold = '45 KB' } }",
        "bad.toml:9: fabric.switch.marking.threshold: 45 KB is never reached in a shared_buffer of 60 \
         KB with alpha = 1; lower it",
    );
    refuses(
        "switch = { marking = { kind = 'red', min = '50 KB', max = '5 KB' } }",
        "bad.toml:9: fabric.switch.marking.min: 50 KB is not below max = \"5 KB\"; lower it",
    );
}

#[test]
fn a_transport_is_refused_where_it_cannot_be_carried() {
    let rows = [
        (
            "ndp",
            "trimming = { kind = 'none' }",
            "trimming: none, but ndp learns of full queues by trimmed packets; remove it, or set kind \
             = \"header\"",
        ),
        (
            "dcqcn",
            "flow_control = { kind = 'none' }",
            "flow_control: none, but dcqcn is made for networks that drop nothing; remove it, or set \
             kind = \"pfc\"",
        ),
        (
            "homa",
            "scheduling = { kind = 'deficit', weights = [1, 1] }",
            "scheduling: deficit, but homa needs the most urgent packet to go first; set kind = \
             \"strict\"",
        ),
        (
            "dctcp",
            "marking = { kind = 'none' }",
            "marking: none, but dctcp slows down only for marks; remove it, or set kind = \"step\"",
        ),
        (
            "raw",
            "flow_control = { kind = 'none' }",
            "flow_control: none, but raw sends a lost packet only once; set kind = \"pfc\", or \
             transport.losses = \"repeat\" or \"forget\"",
        ),
    ];
    for (kind, switch, message) in rows {
        refuses(
            &format!("switch = {{ {switch} }}\ntransport = {{ kind = '{kind}' }}"),
            &format!("bad.toml:9: fabric.switch.{message}"),
        );
    }
    // A rack that brings its own way to carry flows.
    let place = Place::new();
    let shoal = "[fabric]\nkind = 'shoal'\ntransport = { kind = 'dctcp' }\n";
    place.write("bad.toml", &format!("[run]\nflows = 50\n{PAIRS}{shoal}"));
    place.run(&["run", "bad.toml"]).refuses(&[
        "bad.toml:9: fabric.transport: found a table; expected one of \"auto\", \"none\", \"reliable\"; \
         kind = one of \"aquila\", \"packet-switched\", \"pl2\", \"scoc-network\" takes it",
    ]);
    assert_eq!(place.names("."), ["bad.toml", "small.toml"]);
}

/// What a user records has a file a node, with real frames in it, and is the same each time.
#[test]
fn nodes_are_recorded_a_file_each() {
    let place = Place::new();
    let fabric = "[fabric]\nkind = 'packet-switched'\n\
        topology = { kind = 'single-switch', hosts = 3 }\ntransport = { kind = 'newreno' }\n";
    let ends = "[run]\nflows = 200\n";
    place.write("net.toml", &format!("{ends}{PAIRS}{fabric}"));
    for out in ["v", "w"] {
        let arguments = ["record", "net.toml", "--flows", "5", "--format", "json", "--out", out];
        let said = place.run(&arguments).succeeds().json();
        assert_eq!((&said[0]["nodes"], &said[0]["completed"]), (&4.into(), &5.into()));
    }
    let names = ["node-0.json", "node-1.json", "node-2.json", "node-3.json", "schema.json"];
    assert_eq!(place.names("v"), names);
    for name in names {
        assert_eq!(place.read(&format!("v/{name}")), place.read(&format!("w/{name}")), "{name}");
    }
    let switch = place.json("v/node-3.json");
    let heard = switch["steps"][0]["inputs"][0]["bytes"]["bytes"].as_str().unwrap();
    // A SYN: IPv4 in an 802.1Q tag of the second priority.
    assert!(heard.contains("8100c000080045"), "{heard}");
    let fluid = fabric.replace("newreno", "fluid");
    place.write("fluid.toml", &format!("{ends}{PAIRS}{fluid}"));
    place.run(&["record", "fluid.toml", "--out", "f"]).refuses(&[
        "packet-switched: with these settings and faults it has no nodes that run by themselves; \
         docs/wire-formats.md says which have",
    ]);
    place
        .run(&["run", "fluid.toml", "--set", "run.wire=true", "--out", "f"])
        .refuses(&["run.wire: fluid has no messages to send; leave the key out for this fabric"]);
    assert!(!place.join("f").exists());
    // Of several fabrics each has a folder, but those that have no nodes.
    let second = fluid.replace("[fabric]", "[[fabric]]\nlabel = 'ideal'");
    let first = fabric.replace("[fabric]", "[[fabric]]\nlabel = 'tcp'");
    place.write("both.toml", &format!("{ends}{PAIRS}{first}{second}"));
    place.run(&["record", "both.toml", "--flows", "2", "--out", "b"]).succeeds();
    assert_eq!((place.names("b"), place.names("b/tcp")), (vec!["tcp".into()], place.names("v")));
}
