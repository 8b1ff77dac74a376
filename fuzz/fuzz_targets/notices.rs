//! Any payload is refused as a notice of whom a node cannot reach, or decoded and written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal::wire::{decode_notice, encode_notice};

fuzz_target!(|payload: &[u8]| {
    if let Ok(notice) = decode_notice(payload) {
        let mut again = vec![0xFF; payload.len()];
        encode_notice(&notice, &mut again);
        assert_eq!(again, payload);
    }
});
