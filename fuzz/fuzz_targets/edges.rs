//! Any list of links is refused with problems that name lines, or is a topology of bounded size.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rack::topology::Graph;

#[derive(Arbitrary, Debug)]
struct Input {
    hosts: u32,
    edges: String,
}

fuzz_target!(|input: Input| {
    let lines = input.edges.lines().count() as u32;
    let graph = Graph { hosts: input.hosts, edges: input.edges, ..Graph::default() };
    match graph.build() {
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| !problem.message.is_empty()));
        }
        // Each host has a link of its own, and a line holds one.
        Ok(_) => assert!(graph.hosts <= 2 * lines, "{} hosts of {lines} lines", graph.hosts),
    }
});
