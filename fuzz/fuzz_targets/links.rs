//! Any text is refused by line, or is a list of links that the reader of graphs takes or refuses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rack::topology::Graph;
use scenario::links::{self, Stated};

fuzz_target!(|text: String| {
    let lines = text.matches('<').count().max(text.lines().count()) as u32;
    match links::read("fuzz", text, Stated::default()) {
        Err(message) => assert!(message.starts_with("fuzz:"), "{message}"),
        Ok(links) => {
            let graph = Graph { hosts: 2, edges: links.text, ..Graph::default() };
            assert!(graph.edges.lines().count() as u32 <= lines + 1, "more links than there are");
            let _ = graph.build();
        }
    }
});
