//! Any bytes are refused with a message as execution traces of Chakra, one a rank, or are a list of
//! flows that ends: whatever waits for what, nothing waits for ever.
#![no_main]

use kernel::{Bytes, Time};
use libfuzzer_sys::fuzz_target;
use rack::Workload;
use scenario::chakra::{self, Playing, Source};

fuzz_target!(|ranks: Vec<Vec<u8>>| {
    let sources = ranks.iter().enumerate().map(|(rank, bytes)| Source {
        name: format!("fuzz.{rank}.et"),
        bytes: bytes.as_slice(),
    });
    let memory = Bytes::new(1 << 20);
    let Ok(execution) = chakra::read(sources.collect(), None, Playing::default(), memory) else {
        return;
    };
    let Ok(mut gate) = execution.gate() else { return };
    let (mut count, mut now) = (0, Time::ZERO);
    while let Some(flow) = gate.next_flow() {
        assert!(flow.start >= now && flow.src != flow.dst, "{flow:?}");
        now = flow.start;
        count += 1;
        gate.ended(flow.id, now);
    }
    assert_eq!(gate.total(), Some(count));
});
