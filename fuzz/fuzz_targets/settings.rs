//! Any setting (`--set KEY=VALUE`) is refused with problems, or gives a scenario that resolves to itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{Argument, Document, Format, Registry, Scenario};

const SMALL: &str = "run.flows = 10
workload = { kind = 'poisson', load = 0.1 }
[[fabric]]
kind = 'shoal'
nodes = 8
[[fabric]]
kind = 'packet-switched'
nodes = 8
";

fuzz_target!(|text: &str| {
    let registry = Registry::standard().with_memory(kernel::Bytes::new(64 << 20));
    let arguments: Result<Vec<_>, _> = text.lines().map(Argument::parse).collect();
    let read = arguments.and_then(|arguments| {
        let document = Document::parse("small.toml", SMALL, Format::Toml)?;
        Scenario::read(document, &arguments, &registry)
    });
    match read {
        Err(bad) => {
            assert!(!bad.problems().is_empty());
            assert!(bad.problems().iter().all(|problem| problem.to_string().len() < 8_000));
        }
        Ok(scenario) => {
            let resolved = scenario.to_toml();
            let again = Document::parse("resolved", &resolved, Format::Toml)
                .and_then(|document| Scenario::read(document, &[], &registry))
                .expect("a resolved scenario reads back");
            assert_eq!(again.to_toml(), resolved);
        }
    }
});
