//! Any bytes are refused as a packet of R2C2, or decoded and written back the same.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use r2c2::wire::{Message, NODES_MAX, decode, forward, seal};

/// A rack and what its receiver is given.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    nodes: u32,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let nodes = input.nodes % (NODES_MAX + 1);
    check(input.bytes, nodes);
    // The same with the right checksum, which random bytes seldom have.
    let mut bytes = input.bytes.to_vec();
    seal(&mut bytes);
    check(&bytes, nodes);
    // What is passed on is data as before, one hop further.
    let mut passed = bytes.clone();
    let hop = forward(&mut passed);
    if let Ok(Message::Data(before, payload)) = decode(&bytes, nodes) {
        let Ok(Message::Data(after, same)) = decode(&passed, nodes) else {
            panic!("{before:?} is no data after a hop");
        };
        assert_eq!(same, payload);
        match hop.expect("data is passed on") {
            Some(port) => {
                assert_eq!(port, before.route.hop(u32::from(before.done)));
                assert_eq!(after.done, before.done + 1);
            }
            None => assert_eq!(u32::from(after.done), after.route.length()),
        }
    }
});

fn check(bytes: &[u8], nodes: u32) {
    if let Ok(message) = decode(bytes, nodes) {
        assert_eq!(message.encode(), bytes);
    }
}
