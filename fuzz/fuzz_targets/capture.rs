//! Any bytes are refused with a list of problems as a capture, or are flows that a rack can carry.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{TraceFormat, trace};

const NODES: u32 = 8;

fuzz_target!(|bytes: &[u8]| {
    match trace::read_bytes("fuzz.pcap", bytes.to_vec(), TraceFormat::Pcap, NODES) {
        Err(bad) => assert!(!bad.problems().is_empty()),
        Ok(rows) => {
            for row in &rows {
                assert!(row.src < NODES && row.dst < NODES && row.src != row.dst, "{row:?}");
                assert!(row.bytes > 0 && row.after.is_empty(), "{row:?}");
            }
            assert!(rows.is_sorted_by_key(|row| row.start));
        }
    }
});
