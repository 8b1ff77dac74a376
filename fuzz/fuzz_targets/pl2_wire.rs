//! Any bytes are refused as a frame of PL2, or decoded and written back the same; and the switch takes
//! any frame, leaves no register touched twice, and answers with frames that others can read.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use pl2::switch::frames::{Decision, leave, process};
use pl2::switch::{Accounting, Decrement, Pipeline, Settings};
use pl2::wire::{Control, Opcode, Tag, fcs};

/// A switch and what its ports are given.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    drop_above: u32,
    is_literal: bool,
    counts_at_egress: bool,
    tracks_pairs: bool,
    frames: Vec<(u8, &'a [u8])>,
}

/// Ports of the switch.
const PORTS: u32 = 8;

fuzz_target!(|input: Input<'_>| {
    let accounting = if input.is_literal { Accounting::Literal } else { Accounting::Flagged };
    let decrement = if input.counts_at_egress { Decrement::Egress } else { Decrement::Ingress };
    let tracks_pairs = input.tracks_pairs && !input.is_literal && input.counts_at_egress;
    let mut pipeline = Pipeline::new(Settings {
        ports: PORTS,
        drop_above: input.drop_above,
        accounting,
        decrement,
        increment: 1,
        pairs: if tracks_pairs { PORTS * PORTS } else { 0 },
    });
    for (port, bytes) in input.frames {
        check(bytes);
        // The same with the right check sequence, which random bytes seldom have.
        let mut sealed = bytes.to_vec();
        fcs::seal(&mut sealed);
        check(&sealed);
        for frame in [bytes, &sealed] {
            let decision = process(&mut pipeline, u32::from(port) % PORTS, frame);
            let Decision::Send { port, frame: answer, passed } = decision else { continue };
            assert!(port < PORTS);
            assert!(fcs::is_intact(&answer), "{answer:?} goes out damaged");
            leave(&mut pipeline, port, &answer, passed);
            let [at_inputs, of_pairs] = [pipeline.input().sum(), pipeline.pairs().sum()];
            assert!(!tracks_pairs || at_inputs == of_pairs, "{at_inputs} at inputs, {of_pairs}");
            let asked = Control::decode(frame).is_ok_and(|c| c.opcode == Opcode::Reserve);
            let granted = Control::decode(&answer).is_ok_and(|c| c.opcode == Opcode::Grant);
            assert!(!asked || granted, "{frame:?} is answered with {answer:?}");
        }
    }
});

fn check(bytes: &[u8]) {
    if let Ok(control) = Control::decode(bytes) {
        assert_eq!(control.encode(), bytes);
    }
    if let Ok(Some(tag)) = Tag::decode(bytes) {
        assert_eq!(tag.encode(), bytes[..4]);
    }
}
