//! Lists and graphs whose links are written here by hand.

use proptest::prelude::*;

use super::*;

const STAR: &str = "a,b,rate,delay\n0,2,100 Gbps,20 ns\n1,2,50 Gbps,100 ns\n";

#[track_caller]
fn reads(text: &str, expected: &str, hosts: Option<u64>) {
    let links = read("t", text.to_string(), Stated::default()).expect(text);
    assert_eq!((links.text.as_str(), links.hosts), (expected, hosts), "for\n{text}");
}

#[track_caller]
fn refuses(text: &str, expected: &str) {
    let found = read("t", text.to_string(), Stated::default()).expect_err(text);
    assert!(found.starts_with(expected), "for\n{text}\nfound {found}");
}

#[test]
fn lists_are_read_with_commas_and_with_spaces() {
    for text in [
        "0,2,100 Gbps,20 ns\n1,2,50 Gbps,100 ns\n",
        "# a star\n0 2 100Gbps 20ns\n\n1\t2\t50Gbps\t100ns",
        "0 2 100 Gbps 20 ns\n1 2 50 Gbps 0.1 us\n",
        "0;2;100 Gbps;20 ns\r\n1;2;50 Gbps;100 ns\r\n",
        "0 2 100Gbps 20ns {}\n1 2 50Gbps 100ns {}\n",
    ] {
        reads(text, STAR, None);
    }
    // Our own list, and what is none, go to its reader as they are.
    reads(STAR, STAR, None);
    reads("a,b\n0,1\n", "a,b\n0,1\n", None);
    refuses("0 2\n", "t:1: found 2 values; expected four: two vertices, a rate and a delay");
    refuses(
        "0 2 100Gbps 20ns\n0 x 1Gbps 1ns\n",
        "t:2: found \"x\"; expected the number of a vertex",
    );
    refuses("# x\n0 2 100 20ns\n", "t:2: rate: \"100\" has no unit");
    refuses("0,2,100 Gbps,20\n", "t:1: delay: \"20\" has no unit");
}

/// A graph with these nodes and edges, whose delay is 20 ns where none is given.
fn graph(nodes: &str, edges: &str) -> String {
    format!(
        "<?xml version='1.0' encoding='utf-8'?>\n\
         <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
         <key id=\"d0\" for=\"edge\" attr.name=\"bandwidth\" attr.type=\"string\"/>\n\
         <key id=\"d1\" for=\"edge\" attr.name=\"delay\" attr.type=\"string\"><default>20 ns</default></key>\n\
         <key id=\"d2\" for=\"node\" attr.name=\"kind\" attr.type=\"string\"/>\n\
         <graph edgedefault=\"undirected\">\n{nodes}\n{edges}\n</graph></graphml>\n"
    )
}

const EDGES: &str = "<edge source=\"x\" target=\"hub\"><data key=\"d0\">100 Gbps</data></edge>\n\
                     <edge source=\"hub\" target=\"y\"><data key=\"d0\">50 Gbps</data><data key=\"d1\">100 ns</data></edge>";

#[test]
fn a_graph_numbers_hosts_before_switches_or_nodes_in_their_order() {
    let (star, reverse) = (STAR.replace("1,2,50", "2,1,50"), "0,1,100 Gbps,20 ns");
    let kinds = "<node id=\"hub\"><data key=\"d2\">switch</data></node><node id=\"x\"><data key=\"d2\">host</data></node>\
                 <node id=\"y\"><data key=\"d2\">Host</data></node>";
    reads(&graph(kinds, EDGES), &star, Some(2));
    reads(&graph("<node id=\"x\"/><node id=\"y\"/><node id=\"hub\"/>", EDGES), &star, None);
    let other = format!("a,b,rate,delay\n{reverse}\n1,2,50 Gbps,100 ns\n");
    reads(&graph("<node id=\"x\"/><node id=\"hub\"/><node id=\"y\"/>", EDGES), &other, None);
}

#[test]
fn what_is_wrong_with_a_graph_is_told_by_line() {
    let nodes = "<node id=\"x\"/><node id=\"y\"/><node id=\"hub\"/>";
    let whole = graph(nodes, EDGES);
    for (from, to, expected) in [
        (
            "target=\"hub\"",
            "target=\"hob\"",
            "t:8: target: found \"hob\", which is no node of this graph",
        ),
        ("<node id=\"y\"/>", "<node id=\"x\"/>", "t:7: the id \"x\" is also another node's"),
        ("<node id=\"y\"/>", "<node/>", "t:7: a node without an id"),
        (
            "<data key=\"d0\">100 Gbps</data>",
            "",
            "t:8: the edge has no rate; expected the attribute \"rate\"",
        ),
        ("100 Gbps", "fast", "t:8: rate: \"fast\""),
        ("100 ns", "100", "t:9: delay: \"100\" has no unit"),
        ("undirected", "directed", "t:8: found an edge of one direction; a link carries both ways"),
        (
            "<node id=\"y\"/>",
            "<node id=\"y\"><data key=\"d2\">host</data></node>",
            "t:7: says neither host",
        ),
        ("<node id=\"y\"/>", "<node id=\"y\"><graph/></node>", "t:7: a second graph; expected one"),
        ("</graph></graphml>", "", "t:1: not readable as GraphML: "),
    ] {
        assert!(whole.contains(from), "{from}");
        refuses(&whole.replacen(from, to, 1), expected);
    }
    refuses("<svg/>", "t:1: holds no graph; expected <graphml> with one <graph> in it");
    // An entity that doubles thirty times.
    let bomb = "<!DOCTYPE g [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><graphml><graph/></graphml>";
    refuses(bomb, "t:1: not readable as GraphML: ");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = read("t", text, Stated::default());
    }

    #[test]
    fn a_mutated_graph_is_read_or_refused(at in any::<prop::sample::Index>(), text in ".{0,3}") {
        let mut whole = graph("<node id=\"x\"/><node id=\"y\"/><node id=\"hub\"/>", EDGES);
        let at = at.index(whole.len());
        if whole.is_char_boundary(at) {
            whole.insert_str(at, &text);
        }
        let _ = read("t", whole, Stated::default());
    }
}

#[test]
fn what_a_scenario_states_for_all_links_is_left_empty() {
    let both = Stated { rate: true, delay: true };
    let reads = |text: &str, stated, expected: &str| {
        let links = read("t", text.to_string(), stated).expect(text);
        assert_eq!(links.text, format!("a,b,rate,delay\n{expected}"), "for\n{text}");
    };
    reads("0 2\n1 2\n", both, "0,2,,\n1,2,,\n");
    reads("0,2,,\n1,2,50 Gbps,\n", both, "0,2,,\n1,2,50 Gbps,\n");
    reads("0 2 100Gbps\n", Stated { delay: true, ..both }, "0,2,100 Gbps,\n");
    let nodes = "<node id=\"a\"/><node id=\"b\"/>";
    let edge = "<edge source=\"a\" target=\"b\"/>";
    let rate = Stated { rate: true, delay: false };
    reads(&graph(nodes, edge), rate, "0,1,,20 ns\n");
    let error = read("t", "0 2\n".into(), rate).unwrap_err();
    assert!(error.starts_with("t:1: found 2 values; expected four"), "{error}");
}
