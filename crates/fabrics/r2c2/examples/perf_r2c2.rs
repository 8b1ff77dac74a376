//! How fast the rack is, on a torus of `SIDE` cubed nodes (8):
//!
//! - `perf_r2c2 poisson FLOWS TAU_NS [SIDE]`: flows of Pareto sizes (R2C2 §5.2: shape 1.05, mean 100 KB;
//!   here at most 10 MB) that start every `TAU_NS` on average;
//! - `perf_r2c2 share FLOWS TAU_NS [SIDE]`: the same, of any size, each of which starts at its share;
//! - `perf_r2c2 permutation BYTES [SIDE]`: every node sends BYTES to one other, all at once, and starts at
//!   its share.
//!
//! `THREADS=2` runs on two threads, `SHARDS=16` cuts the rack into 16 parts that run on one thread: the work of 16
//! threads.

use kernel::{Bytes, Stream, Time};
use r2c2::config::Start;
use r2c2::{Config, Rack};
use rack::topology::{Shape, Torus};
use rack::{Class, Fabric, Flow, FlowId, NodeId};

/// Mean time between flows, in picoseconds, where it is not given: all at once.
const AT_ONCE: f64 = 0.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| {
        words.get(at).ok_or("a number is missing")?.parse::<f64>().map_err(|e| e.to_string())
    };
    let kind = words.first().map_or("", String::as_str);
    let is_permutation = kind == "permutation";
    let side: u32 =
        words.get(if is_permutation { 2 } else { 3 }).map_or(Ok(8), |side| side.parse())?;
    let torus = Torus { dimensions: vec![side; 3], ..Torus::default() };
    let start = if kind == "poisson" { Start::Link } else { Start::Share };
    let config = Config { topology: Shape::Torus(torus), start, ..Config::default() };
    let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
    let nodes = plan.nodes();
    let (flows, tau) =
        if is_permutation { (u64::from(nodes), AT_ONCE) } else { (number(1)? as u64, number(2)?) };
    let largest = if kind == "poisson" { 1e7 } else { f64::INFINITY };
    let mut rack = Rack::new(plan, 1);
    if let Ok(threads) = std::env::var("THREADS") {
        rack.set_threads(threads.parse()?);
    }
    if let Ok(shards) = std::env::var("SHARDS") {
        rack.set_shards(shards.parse()?);
    }
    let mut draw = Stream::new(1, "perf", 0);
    let mut peers: Vec<u32> = (0..nodes).collect();
    draw.shuffle(&mut peers);
    let begin = std::time::Instant::now();
    let (mut at, mut bytes) = (0.0, 0);
    for id in 0..flows {
        let (start, src, dst, size) = if is_permutation {
            // Each node sends to the next of a random round.
            let next = peers[(id as usize + 1) % nodes as usize];
            (Time::ZERO, peers[id as usize], next, number(1)? as u64)
        } else {
            at += draw.exponential(tau * 1e3);
            let src = draw.below(u64::from(nodes)) as u32;
            let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
            let size = (4_762.0 / (1.0 - draw.unit()).powf(1.0 / 1.05)).min(largest) as u64;
            (Time::from_ps(at as u64), src, dst, size)
        };
        rack.advance(start, &mut ());
        bytes += size;
        rack.offer(&Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            size: Bytes::new(size),
            start,
            class: Class::new(0),
        });
    }
    rack.advance(Time::NEVER, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let totals = rack.totals();
    eprintln!(
        "{nodes} nodes, {bytes} B: {seconds:.3} s, {:.1} ns an event, {} events, {} hops with \
         payload, longest queue {}, held {}, delivered {}, drops {}, hash {:016x}",
        seconds * 1e9 / totals.events as f64,
        totals.events,
        totals.hops,
        totals.queue_max,
        totals.reorder_max,
        totals.delivered,
        totals.drops,
        totals.event_hash,
    );
    eprintln!("{:?}", rack.windows());
    eprintln!("{}", serde_json::to_string_pretty(&rack.details())?);
    Ok(())
}
