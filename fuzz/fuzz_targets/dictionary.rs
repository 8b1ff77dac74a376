//! Any value, as a Python dictionary arrives, is refused with problems or is a scenario; and so is any
//! setting of one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{Argument, Document, Registry, Scenario};
use serde_json::Value;

fuzz_target!(|input: (&str, &[u8])| {
    let (key, text) = input;
    let registry = Registry::standard().with_memory(kernel::Bytes::new(64 << 20));
    let Ok(value) = serde_json::from_slice::<Value>(text) else { return };
    let arguments = [Argument::value(key, &value, "a keyword")];
    let small = serde_json::json!({
        "run": { "flows": 10 },
        "workload": { "kind": "poisson", "load": 0.1 },
        "fabric": { "kind": "shoal", "nodes": 8 },
    });
    for (value, arguments) in [(&value, &[][..]), (&small, &arguments[..])] {
        let document = Document::from_value("scenario", value);
        match document.and_then(|document| Scenario::read(document, arguments, &registry)) {
            Err(bad) => assert!(!bad.problems().is_empty()),
            Ok(scenario) => assert!(!scenario.to_toml().is_empty()),
        }
    }
});
