//! Any text is refused with a list of problems, or is flows that a rack can carry, whichever
//! simulator's it claims to be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{TraceFormat, trace};

const NODES: u32 = 8;

fuzz_target!(|bytes: &[u8]| {
    for format in [TraceFormat::Csv, TraceFormat::Htsim, TraceFormat::Hpcc] {
        match trace::read_bytes("fuzz", bytes.to_vec(), format, NODES) {
            Err(bad) => assert!(!bad.problems().is_empty()),
            Ok(rows) => {
                for (index, row) in rows.iter().enumerate() {
                    assert!(
                        row.src < NODES && row.dst < NODES && row.src != row.dst,
                        "row {index}"
                    );
                    assert!(row.bytes > 0, "row {index}");
                    assert!(row.after.iter().all(|&after| after < index as u64), "row {index}");
                }
            }
        }
    }
});
