//! Any sequence of cells yields packets or named errors, and never keeps more than one packet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal::packets::{PACKET_BYTES_MAX, Place, Reassembler, segment};

/// Bytes behind the header: small, so that packets of many cells need few bytes of input.
const PAYLOAD: usize = 5;

fuzz_target!(|bytes: &[u8]| {
    let mut reassembler = Reassembler::new(PAYLOAD);
    for cell in bytes.chunks(1 + PAYLOAD) {
        let place = Place::ALL[usize::from(cell[0] % 4)];
        if let Ok(Some(packet)) = reassembler.push(place, &cell[1..]) {
            assert!(!packet.is_empty() && packet.len() as u64 <= PACKET_BYTES_MAX);
        }
    }
    // A whole packet afterwards is understood, whatever came before.
    let whole: Vec<u8> = bytes.iter().copied().take(1000).chain([7]).collect();
    let mut rebuilt = Vec::new();
    for attempt in 0..2 {
        for cell in segment(&whole, PAYLOAD) {
            match reassembler.push(cell.place, &cell.payload) {
                Ok(packet) => rebuilt.extend(packet),
                Err(error) => assert_eq!(attempt, 0, "{error}"),
            }
        }
    }
    assert_eq!(rebuilt.last(), Some(&whole));
});
