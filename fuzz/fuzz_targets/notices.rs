//! Any payload is refused as news of failures, or decoded and written back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal::wire::{decode_notices, encode_notices};

fuzz_target!(|payload: &[u8]| {
    if let Ok(notices) = decode_notices(payload) {
        let mut again = vec![0xFF; payload.len()];
        encode_notices(&notices, &mut again);
        assert_eq!(again, payload);
    }
});
