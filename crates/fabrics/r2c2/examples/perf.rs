//! How fast the rack is: `perf FLOWS TAU_NS [SIDE]` carries flows of Pareto sizes (R2C2 §5.2: shape
//! 1.05, mean 100 kB; here at most 10 MB) that start every `TAU_NS` on average through a torus of
//! `SIDE` cubed nodes.

use kernel::{Bytes, Stream, Time};
use r2c2::{Config, Rack};
use rack::topology::{Shape, Torus};
use rack::{Class, Fabric, Flow, FlowId, NodeId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (flows, tau): (u64, f64) = (words[0].parse()?, words[1].parse()?);
    let side: u32 = words.get(2).map_or(Ok(8), |side| side.parse())?;
    let torus = Torus { dimensions: vec![side; 3], ..Torus::default() };
    let config = Config { topology: Shape::Torus(torus), ..Config::default() };
    let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
    let nodes = plan.nodes();
    let mut rack = Rack::new(plan, 1);
    let mut draw = Stream::new(1, "perf", 0);
    let begin = std::time::Instant::now();
    let (mut at, mut bytes) = (0.0, 0);
    for id in 0..flows {
        at += draw.exponential(tau * 1e3);
        let start = Time::from_ps(at as u64);
        rack.advance(start, &mut ());
        let src = draw.below(u64::from(nodes)) as u32;
        let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
        let size = (4_762.0 / (1.0 - draw.unit()).powf(1.0 / 1.05)).min(1e7) as u64;
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
    eprintln!("{}", serde_json::to_string_pretty(&rack.details())?);
    Ok(())
}
