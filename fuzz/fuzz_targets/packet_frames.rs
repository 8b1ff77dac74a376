//! Any bytes are refused as a frame of a transport's packets, or decoded and written back the same.
#![no_main]

use std::sync::{Arc, OnceLock};

use arbitrary::Arbitrary;
use kernel::{Rate, Span};
use libfuzzer_sys::fuzz_target;
use packets::Surroundings;
use packets::Transport as _;
use packets::wire::{Codec, decode, encode, sequence};
use transports::tables::Bank;
use transports::{cubic, dcqcn, homa, mixed, ndp, raw, rds};

/// Bytes, and what reads them.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    codec: u8,
    /// Whether a right check sequence is put behind them: else few get further.
    is_sealed: bool,
    bytes: &'a [u8],
}

fn of<B: Bank>(table: &B) -> Arc<dyn Codec> {
    let around = Surroundings {
        hosts: 8,
        line_rate: Rate::from_gbps(10),
        uniform_rate: Rate::from_gbps(10),
        base_rtt: Span::from_us(10),
        hops_max: 1,
        seed: 1,
    };
    table.endpoints(&around, &[]).codec()
}

fn codecs() -> &'static [Arc<dyn Codec>] {
    static CODECS: OnceLock<Vec<Arc<dyn Codec>>> = OnceLock::new();
    CODECS.get_or_init(|| {
        vec![
            of(&cubic::Config::default()),
            of(&dcqcn::Config::default()),
            of(&homa::Config::default()),
            of(&mixed::Config::<cubic::Config>::default()),
            of(&ndp::Config::default()),
            of(&raw::Config::default()),
            of(&rds::Config::default()),
        ]
    })
}

fuzz_target!(|input: Input<'_>| {
    let codec = &*codecs()[usize::from(input.codec) % codecs().len()];
    let mut bytes = input.bytes.to_vec();
    if input.is_sealed {
        let sum = sequence(&[&bytes]);
        bytes.extend(sum);
    }
    if let Ok(packet) = decode(codec, &bytes) {
        assert_eq!(encode(codec, &packet), bytes, "{packet:?}");
    }
});
