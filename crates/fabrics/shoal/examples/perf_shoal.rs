//! How fast the engine is: `perf_shoal NODES CELLS PAIRS` for long flows in a permutation, `perf_shoal NODES
//! load FLOWS LOAD` for flows of 1 to 200 KB at a share of 50 Gbps a node. `THREADS=2` runs on two threads,
//! `SHARDS=16` cuts the rack into 16 shards that run on one thread: the work of 16 threads. `ERRORS=1e-18` has bit
//! errors so rare that none comes: what a rack costs that may lose cells. With `DEAD=5` each fifth node is dead, and
//! has no flows.

use kernel::{Bytes, Stream, Time};
use rack::{Class, Component, Fabric, Fault, Flow, FlowId, NodeId};
use shoal::{Config, Rack};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let nodes: u32 = words[0].parse()?;
    let bit_error_rate = std::env::var("ERRORS").map_or(Ok(0.0), |rate| rate.parse())?;
    let config = Config { nodes, bit_error_rate, ..Config::default() };
    let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
    let dead: u32 = std::env::var("DEAD").map_or(Ok(0), |dead| dead.parse())?;
    let is_dead = |node: u32| dead > 0 && node.is_multiple_of(dead);
    let fault =
        |node| Fault { component: Component::Node(NodeId::new(node)), at: Time::ZERO, until: None };
    let faults: Vec<Fault> = (0..nodes).filter(|&node| is_dead(node)).map(fault).collect();
    let plan = plan.with_faults(&faults).map_err(|problems| format!("{problems:?}"))?;
    let mut rack = Rack::new(plan, 1);
    if let Ok(threads) = std::env::var("THREADS") {
        rack.set_threads(threads.parse()?);
    }
    if let Ok(shards) = std::env::var("SHARDS") {
        rack.set_shards(shards.parse()?);
    }
    let flow = |id: u64, src: u32, dst: u32, size: u64, start: Time| Flow {
        id: FlowId::new(id),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size: Bytes::new(size),
        start,
        class: Class::new(0),
    };
    let begin = std::time::Instant::now();
    if words[1] == "load" {
        let (flows, load): (u64, f64) = (words[2].parse()?, words[3].parse()?);
        let mut draw = Stream::new(1, "perf", 0);
        let mut at = 0.0;
        for id in 0..flows {
            at += draw.exponential(100_500.0 * 8e3 / (50.0 * load * f64::from(nodes)));
            let start = Time::from_ps(at as u64);
            rack.advance(start, &mut ());
            let src = draw.below(u64::from(nodes)) as u32;
            let dst = (src + 1 + draw.below(u64::from(nodes) - 1) as u32) % nodes;
            rack.offer(&flow(id, src, dst, 1_000 + draw.below(199_000), start));
        }
    } else {
        let cells: u64 = words[1].parse()?;
        let pairs: u32 = words.get(2).map_or(Ok(nodes), |pairs| pairs.parse())?;
        for node in 0..pairs {
            let dst = (node + nodes / 3) % nodes;
            if !is_dead(node) && !is_dead(dst) {
                // By then all know who is dead.
                let start = Time::from_ps(if dead > 0 { 150_000_000 } else { 0 });
                rack.advance(start, &mut ());
                rack.offer(&flow(u64::from(node), node, dst, 56 * cells, start));
            }
        }
    }
    rack.advance(Time::NEVER, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let totals = rack.totals();
    eprintln!(
        "{nodes} nodes: {seconds:.3} s, {:.1} ns a hop, {:.1} million cell slots a second, \
         {} hops, longest queue {}, hash {:016x}",
        seconds * 1e9 / totals.hops as f64,
        totals.events as f64 / seconds / 1e6,
        totals.hops,
        totals.queue_max_cells,
        totals.event_hash,
    );
    let windows = rack.windows();
    eprintln!(
        "{} windows of {:.0} hops, {:.3} messages a hop, busiest thread {:.3}, shard {:.3}",
        windows.windows,
        windows.events as f64 / windows.windows.max(1) as f64,
        windows.messages as f64 / windows.events.max(1) as f64,
        windows.busiest as f64 / windows.events.max(1) as f64,
        windows.busiest_shard as f64 / windows.events.max(1) as f64,
    );
    Ok(())
}
