//! Any eight bytes before any payload are refused, or decoded and written back the same.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shoal::wire::{CLASSES_MAX, Coverage, Layout, NODES_MAX, WireError};

/// A rack and what its receiver is given.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    nodes: u32,
    classes: u32,
    header_only: bool,
    bytes: [u8; 8],
    payload: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let Ok(layout) = Layout::new(input.nodes % (NODES_MAX + 2), input.classes % (CLASSES_MAX + 2))
    else {
        return;
    };
    let coverage = if input.header_only { Coverage::Header } else { Coverage::Cell };
    let layout = layout.with_coverage(coverage);
    let seen = layout.decode_unchecked(input.bytes);
    check(&layout, input.bytes, input.payload);
    // The same with the right checksum, which random bytes seldom have.
    let covered = if input.header_only { &[] } else { input.payload };
    let mut bytes = input.bytes;
    bytes[7] = shoal::crc::checksum(&bytes[..7], covered);
    assert_eq!(layout.decode_unchecked(bytes), seen);
    assert_ne!(layout.decode(bytes, input.payload), Err(WireError::Corrupted));
    check(&layout, bytes, input.payload);
});

fn check(layout: &Layout, bytes: [u8; 8], payload: &[u8]) {
    if let Ok(header) = layout.decode(bytes, payload) {
        assert_eq!(layout.encode(&header, payload), bytes);
    }
}
