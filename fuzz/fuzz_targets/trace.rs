//! Any bytes are refused with a list of problems, or are rows that a rack can carry.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::trace;

const NODES: u32 = 8;

fuzz_target!(|bytes: &[u8]| {
    match trace::read_csv("fuzz.csv", bytes, NODES) {
        Err(bad) => assert!(!bad.problems().is_empty()),
        Ok(rows) => {
            for (index, row) in rows.iter().enumerate() {
                assert!(row.src < NODES && row.dst < NODES && row.src != row.dst, "row {index}");
                assert!(row.bytes > 0, "row {index}");
                assert!(row.after.iter().all(|&after| after < index as u64), "row {index}");
            }
        }
    }
});
