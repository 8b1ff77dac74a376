//! Any bytes are refused as requests, answers and frames of Aquila's control plane, or decoded and written back the same;
//! and whatever a request asks for, the chip's end answers it in a message that fits.
#![no_main]

use aquila::link::ordered_sets::OrderedSet;
use aquila_control::flash::{Flash, GENERATION};
use aquila_control::memory::Memory;
use aquila_control::pmos::{End, Frame};
use aquila_control::registers::file::RegisterFile;
use aquila_control::rpc::{Agent, Answer, MESSAGE_BYTES_MAX, Request};
use arbitrary::Arbitrary;
use kernel::Time;
use libfuzzer_sys::fuzz_target;

/// What comes in.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    words: Vec<[u8; 8]>,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    message(input.bytes);
    // The same with a header that fits, which random bytes seldom have.
    if input.bytes.len() >= 2 && input.bytes.len() < MESSAGE_BYTES_MAX - 16 {
        let length = (input.bytes.len() as u32 - 2 + 16).to_be_bytes();
        for kind in [1, 2] {
            let header = [b'R', b'L', kind, 0, 0, 0, 0, 1];
            let sealed = [&header, &length[..], &input.bytes[..2], &[0, 0], &input.bytes[2..]];
            message(&sealed.concat());
        }
    }
    if let Ok(frame) = Frame::decode(input.bytes) {
        assert_eq!(frame.encode(), input.bytes);
    }
    let mut end = End::new(&Memory::default(), 1).expect("there is memory");
    for word in input.words {
        if let Ok(set) = OrderedSet::decode(word) {
            end.receive(Time::ZERO, set);
        }
    }
});

fn message(bytes: &[u8]) {
    if let Ok(answer) = Answer::decode(bytes) {
        assert_eq!(answer.encode(), bytes);
    }
    let Ok(request) = Request::decode(bytes) else { return };
    assert_eq!(request.encode(), bytes);
    let mut agent = Agent::new(&Memory::default()).expect("there is memory");
    let (mut file, mut flash) = (RegisterFile::new(), Flash::default());
    let answer = agent.receive(Time::ZERO, &mut file, &mut flash, bytes).expect("it was decoded");
    assert!(answer.len() <= MESSAGE_BYTES_MAX);
    let answer = Answer::decode(answer).expect("our own answer");
    assert_eq!(answer.outcomes.len(), request.items.len());
    // Whatever was staged, chosen or confirmed, what runs is whole.
    for _ in 0..4 {
        assert!(flash.start(GENERATION).is_some());
    }
}
