//! Small scenarios of every fabric with faults are refused with words, or run and keep their books.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/scenario/tests/small/mod.rs"]
mod small;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes.iter();
    let mut draw = |below: u64| {
        let mut byte = || u64::from(*rest.next().unwrap_or(&0));
        let number = byte() << 16 | byte() << 8 | byte();
        number % below.max(1)
    };
    let text = small::scenario(&mut draw);
    small::run(&text, 2_000);
});
