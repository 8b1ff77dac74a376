//! How fast the rack is: `perf_pl2 pl2|plain raw|newreno step|apart|random MEGABYTES [HOSTS]` lets each host
//! send MEGABYTES, under PL2 or on plain switches with the same lines.
//!
//! - *step*: to the next host, all the time; all begin at one instant, and on plain switches go on in
//!   step, so that what happens next is easy to predict.
//! - *apart*: the same, but each host begins at an instant of its own.
//! - *random*: flows of up to 200 KB begin anywhere at any time, at a load of 0.6.
//!
//!     cargo run --release --package rackloom-pl2 --example perf_pl2 -- pl2 raw random 20

use kernel::{Bytes, Span, Stream, Time};
use packets::Network;
use pl2::transport::Transport;
use pl2::{Config, Rack};
use rack::{Class, Fabric, Flow, FlowId, NodeId};
use transports::{newreno, raw};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Flows from a host to the next.
const FLOWS: u64 = 12;
/// The largest of the random flows, and the part of the line rate that they ask for.
const LARGEST: u64 = 200_000;
const LOAD: f64 = 0.6;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [network, transport, pattern, megabytes, hosts @ ..] = &words[..] else {
        return Err(
            "usage: perf_pl2 pl2|plain raw|newreno step|apart|random MEGABYTES [HOSTS]".into()
        );
    };
    let nodes: u32 = hosts.first().map_or(Ok(64), |nodes| nodes.parse())?;
    let bytes = megabytes.parse::<u64>()? * 1_000_000;
    let (raw, newreno) = (raw::Config::default(), newreno::Config::default());
    let above = match transport.as_str() {
        "newreno" => Transport::Newreno(newreno.clone()),
        _ => Transport::Raw(raw.clone()),
    };
    let config = Config { nodes, transport: above, ..Config::default() };
    let rate = config.line_rate.as_bps() as f64;
    let flows = match pattern.as_str() {
        "random" => random(nodes, bytes, rate),
        "apart" => rows(nodes, bytes, Span::from_us(10)),
        _ => rows(nodes, bytes, Span::ZERO),
    };
    let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
    if network == "pl2" {
        return carry(Rack::new(plan, 1), &flows);
    }
    let around = packets::surroundings(&plan.network, 1);
    let wrong = |problem: rack::Problem| problem.to_string();
    if transport == "newreno" {
        let endpoints = newreno.build(&around).map_err(|problems| format!("{problems:?}"))?;
        return carry(Network::new(plan.network, endpoints, 1).map_err(wrong)?, &flows);
    }
    carry(Network::new(plan.network, raw.build(&around), 1).map_err(wrong)?, &flows)
}

fn flow(id: u64, [src, dst]: [u32; 2], size: u64, start: Time) -> Flow {
    let [src, dst] = [src, dst].map(NodeId::new);
    Flow { id: FlowId::new(id), src, dst, size: Bytes::new(size), start, class: Class::new(0) }
}

/// Flows from each host to the next. Each host begins at an instant up to `last`, drawn.
fn rows(nodes: u32, bytes: u64, last: Span) -> Vec<Flow> {
    let mut draw = Stream::new(1, "example/begin", 0);
    let starts: Vec<_> = (0..nodes).map(|_| draw.below(last.as_ps() + 1)).collect();
    let one = |id: u64| {
        let src = (id / FLOWS) as u32;
        let start = Time::from_ps(starts[src as usize]);
        flow(id, [src, (src + 1) % nodes], bytes / FLOWS, start)
    };
    (0..u64::from(nodes) * FLOWS).map(one).collect()
}

/// Flows between random hosts at random instants, as many as `bytes` from each host make.
fn random(nodes: u32, bytes: u64, rate: f64) -> Vec<Flow> {
    let mut draw = Stream::new(1, "example/flows", 0);
    let count = u64::from(nodes) * bytes / (LARGEST / 2);
    let last = (bytes as f64 * 8e12 / (rate * LOAD)) as u64;
    let mut flows: Vec<Flow> = (0..count)
        .map(|_| {
            let src = draw.below(nodes.into()) as u32;
            let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
            flow(0, [src, dst], 1 + draw.below(LARGEST), Time::from_ps(draw.below(last)))
        })
        .collect();
    flows.sort_by_key(|flow| flow.start);
    (0..).zip(&mut flows).for_each(|(id, flow)| flow.id = FlowId::new(id));
    flows
}

fn carry(mut rack: impl Fabric, flows: &[Flow]) -> Outcome {
    let begin = std::time::Instant::now();
    for flow in flows {
        rack.offer(flow);
    }
    let _ = rack.advance(Time::NEVER, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let (totals, details) = (rack.totals(), rack.details());
    let hops = details["packet_hops"].as_u64().ok_or("no count of packets")?;
    eprintln!(
        "{} flows: {seconds:.3} s, {:.1} ns a hop, {} events, {hops} hops, hash {:x}, longest queue {}, \
         drops {}",
        flows.len(),
        seconds * 1e9 / hops as f64,
        totals.events,
        totals.event_hash,
        totals.queue_max,
        totals.drops,
    );
    eprintln!("{}", serde_json::to_string_pretty(&details)?);
    Ok(())
}
