//! Any grid (`--grid KEY=VALUE,...`) is refused with words, or is a key with different values.
#![no_main]

use std::collections::HashSet;

use cli::engine::sweep::Axis;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Axis::parse(text) {
        Err(bad) => assert!(!bad.problems().is_empty() && bad.to_string().len() < 8_000),
        Ok(axis) => {
            assert!(!axis.key.is_empty() && !axis.values.is_empty());
            assert!(axis.values.iter().all(|value| !value.is_empty()));
            assert_eq!(axis.values.iter().collect::<HashSet<_>>().len(), axis.values.len());
        }
    }
});
