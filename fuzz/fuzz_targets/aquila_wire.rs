//! Any bytes are refused as cells, ordered sets and payloads of Aquila, or decoded and written back the same.
#![no_main]

use aquila::cells::ip::{Clear, Data, Rts};
use aquila::cells::rma::{Request, Response};
use aquila::cells::trace::Record;
use aquila::link::header::{Header, HeaderError};
use aquila::link::ordered_sets::{OrderedSet, SetError};
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

/// What a receiver is given.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    block: [u8; 8],
    payload: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    header(input.block);
    set(input.block);
    // The same with the right checksums, which random bytes seldom have.
    let mut sealed = input.block;
    if let Err(HeaderError::Checksum { expected, .. }) = Header::decode(sealed) {
        sealed[7] = expected;
        assert!(!matches!(Header::decode(sealed), Err(HeaderError::Checksum { .. })));
    }
    header(sealed);
    set(sealed);
    payload(input.payload);
});

fn header(bytes: [u8; 8]) {
    if let Ok(header) = Header::decode(bytes) {
        assert_eq!(header.encode(), bytes);
    }
}

fn set(bytes: [u8; 8]) {
    match OrderedSet::decode(bytes) {
        Ok(set) => {
            assert_eq!(set.encode(), bytes);
            if let OrderedSet::FlowControl(counts) | OrderedSet::CreditSync(counts) = set {
                assert!(counts.iter().all(|(vc, count)| vc < 32 && count < 4096));
            }
        }
        Err(SetError::Checksum { found, expected }) => assert_ne!(found, expected),
        Err(_) => {}
    }
}

fn payload(bytes: &[u8]) {
    if let Ok(rts) = Rts::decode(bytes) {
        assert_eq!(rts.encode(), bytes);
    }
    if let Ok(clear) = Clear::decode(bytes) {
        assert_eq!(clear.encode(), bytes);
    }
    if let Ok((data, rest)) = Data::decode(bytes) {
        assert_eq!([&data.encode()[..], rest].concat(), bytes);
    }
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes);
    }
    if let Ok((response, rest)) = Response::decode(bytes) {
        assert_eq!([&response.encode()[..], rest].concat(), bytes);
    }
    if let Ok(record) = Record::decode(bytes) {
        assert_eq!(record.encode()[..], *bytes);
    }
}
