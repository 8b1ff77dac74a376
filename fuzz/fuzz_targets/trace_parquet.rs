//! Any bytes are refused with a list of problems, or are rows that a rack can carry; and no more memory is
//! taken than a file of that length is worth, which libFuzzer watches over.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scenario::{TraceFormat, trace};

const NODES: u32 = 8;

fuzz_target!(init: {
    // The reader of Parquet may panic at damaged pages, which is caught; libFuzzer would take it for a
    // crash.
    std::panic::set_hook(Box::new(|_| {}));
}, |bytes: &[u8]| {
    match trace::read_bytes("fuzz.parquet", bytes.to_vec(), TraceFormat::Parquet, NODES) {
        Err(bad) => {
            if bad.problems().is_empty() {
                std::process::abort();
            }
        }
        Ok(rows) => {
            for row in &rows {
                if row.src >= NODES || row.dst >= NODES || row.src == row.dst || row.bytes == 0 {
                    std::process::abort();
                }
            }
        }
    }
});
