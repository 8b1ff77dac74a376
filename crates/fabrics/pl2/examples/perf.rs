//! How fast the rack is: `perf pl2|plain|apart MEGABYTES [HOSTS]` lets each host send so much to the next,
//! all the time, under PL2 or on plain switches with the same lines: there all hosts begin at one instant
//! and go on in step, or each at an instant of its own.
//!
//!     cargo run --release --package rackloom-pl2 --example perf -- pl2 20

use kernel::{Bytes, Span, Stream, Time};
use packets::Network;
use pl2::transport::Transport;
use pl2::{Config, Rack};
use rack::{Class, Fabric, Flow, FlowId, NodeId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let megabytes: u64 = words[1].parse()?;
    let nodes: u32 = words.get(2).map_or(Ok(64), |nodes| nodes.parse())?;
    let raw = transports::raw::Config::default();
    let config = Config { nodes, transport: Transport::Raw(raw.clone()), ..Config::default() };
    let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
    if words[0] == "pl2" {
        return carry(Rack::new(plan, 1), nodes, megabytes, Time::ZERO);
    }
    let last = if words[0] == "apart" { Time::ZERO + Span::from_us(10) } else { Time::ZERO };
    let endpoints = raw.build(&packets::surroundings(&plan.network, 1));
    let network = Network::new(plan.network, endpoints, 1).map_err(|p| p.to_string())?;
    carry(network, nodes, megabytes, last)
}

/// Twelve flows from each host to the next. Each host begins at an instant up to `last`, drawn.
fn carry(
    mut rack: impl Fabric,
    nodes: u32,
    megabytes: u64,
    last: Time,
) -> Result<(), Box<dyn std::error::Error>> {
    let begin = std::time::Instant::now();
    let mut draw = Stream::new(1, "example/begin", 0);
    let starts: Vec<_> = (0..nodes).map(|_| Time::from_ps(draw.below(last.as_ps() + 1))).collect();
    for id in 0..u64::from(nodes) * 12 {
        let src = (id / 12) as u32;
        rack.offer(&Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new((src + 1) % nodes),
            size: Bytes::new(megabytes * 1_000_000 / 12),
            start: starts[src as usize],
            class: Class::new(0),
        });
    }
    let _ = rack.advance(Time::NEVER, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let totals = rack.totals();
    eprintln!(
        "{nodes} hosts: {seconds:.3} s, {:.1} ns a data packet's hop, {} events, {} such hops, hash {:x}, longest \
         queue {}, drops {}",
        seconds * 1e9 / totals.hops as f64,
        totals.events,
        totals.hops,
        totals.event_hash,
        totals.queue_max,
        totals.drops,
    );
    eprintln!("{}", serde_json::to_string_pretty(&rack.details())?);
    Ok(())
}
