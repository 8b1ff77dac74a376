//! Any text is refused with a list of problems, or is a scenario that resolves to itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{Document, Format, Registry, Scenario};

fuzz_target!(|text: &str| {
    for format in [Format::Toml, Format::Json] {
        let document = Document::parse("fuzz", text, format);
        let scenario = document.and_then(|d| Scenario::read(d, &[], &Registry::standard()));
        match scenario {
            Err(bad) => assert!(!bad.problems().is_empty()),
            Ok(scenario) => {
                let resolved = scenario.to_toml();
                let again = Document::parse("resolved", &resolved, Format::Toml)
                    .and_then(|d| Scenario::read(d, &[], &Registry::standard()))
                    .expect("a resolved scenario reads back");
                assert_eq!(again.to_toml(), resolved);
            }
        }
    }
});
