//! How fast the racks are: `perf_scoc chip|network NODES FLOWS [SHARDS]` carries flows of up to 20 KB between
//! random nodes at a load of 0.6, through one chip or through leaves and spines, cut into SHARDS shards on as
//! many threads.
//!
//!     cargo run --release --package rackloom-scoc --example perf_scoc -- network 128 2000

use std::io::Write;
use std::time::Instant;

use kernel::{Bytes, Stream, Time};
use rack::{Class, Fabric, Flow, FlowId, NodeId, Totals};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const LARGEST: u64 = 20_000;
const LOAD: f64 = 0.6;
/// Bits in a second of a node.
const RATE: f64 = 25e9;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [network, nodes, flows, shards @ ..] = &words[..] else {
        return Err("usage: perf_scoc chip|network NODES FLOWS [SHARDS]".into());
    };
    let nodes: u32 = nodes.parse()?;
    let flows = random(nodes, flows.parse()?);
    let shards: usize = shards.first().map_or(Ok(1), |shards| shards.parse())?;
    let (took, totals) = if network == "chip" {
        let config = scoc::Config { nodes, ..scoc::Config::default() };
        let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
        carry(scoc::Rack::new(plan, 1), &flows, shards)
    } else {
        let leaves = nodes / 8;
        let config = scoc::network::Config { nodes, leaves, ..scoc::network::Config::default() };
        let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
        carry(scoc::network::Rack::new(plan, 1), &flows, shards)
    };
    let Totals { hops, event_hash, .. } = totals;
    writeln!(std::io::stdout(), "{took:.2} s, {hops} hops, hash {event_hash:016x}")?;
    Ok(())
}

/// Flows between random nodes at random instants.
fn random(nodes: u32, count: u64) -> Vec<Flow> {
    let mut draw = Stream::new(1, "example/flows", 0);
    let (mean, mut at) = (LARGEST as f64 / 2.0, 0.0);
    let gap = mean * 8e12 / (RATE * LOAD * f64::from(nodes));
    let flow = |id| {
        at += draw.exponential(gap);
        let src = draw.below(nodes.into()) as u32;
        let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
        Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            size: Bytes::new(1 + draw.below(LARGEST)),
            start: Time::from_ps(at as u64),
            class: Class::new(0),
        }
    };
    (0..count).map(flow).collect()
}

/// Seconds, and what was counted.
fn carry(mut rack: impl Fabric, flows: &[Flow], shards: usize) -> (f64, Totals) {
    if shards > 1 {
        rack.set_threads(shards);
    }
    let start = Instant::now();
    for flow in flows {
        rack.advance(flow.start, &mut ());
        rack.offer(flow);
    }
    rack.advance(Time::NEVER, &mut ());
    (start.elapsed().as_secs_f64(), rack.totals())
}
