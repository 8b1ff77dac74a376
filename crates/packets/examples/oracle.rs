//! How fast the oracle is: `oracle FLOWS LOAD`: Poisson arrivals of Pareto (1.05) sizes with a mean of
//! 100 KB, as in Shoal §7.3, on 512 hosts at 50 Gbps.

use kernel::{Bytes, Stream, Time};
use packets::{Config, Framing, Oracle};
use rack::{Class, Fabric, Flow, FlowId, NodeId};

/// Mean of the sizes in bytes, and their shape.
const MEAN: f64 = 100e3;
const SHAPE: f64 = 1.05;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (flows, load): (u64, f64) = (words[0].parse()?, words[1].parse()?);
    let plan = Config::default().plan().map_err(|problems| format!("{problems:?}"))?;
    let hosts = u64::from(plan.topology.hosts());
    let picoseconds = MEAN * 8e12 / (plan.load_rate().as_bps() as f64 * load * hosts as f64);
    let begin = std::time::Instant::now();
    let mut oracle = Oracle::new(plan, Framing { payload: 1460, header: 40 });
    eprintln!("built in {:.3} s", begin.elapsed().as_secs_f64());
    let mut draw = Stream::new(1, "example/oracle", 0);
    let (mut at, mut most) = (0.0, 0);
    let begin = std::time::Instant::now();
    for id in 0..flows {
        at += draw.exponential(picoseconds);
        let start = Time::from_ps(at as u64);
        oracle.advance(start, &mut ());
        let src = draw.below(hosts) as u32;
        let dst = (u64::from(src) + 1 + draw.below(hosts - 1)) % hosts;
        oracle.offer(&Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new(dst as u32),
            size: Bytes::new(draw.pareto(SHAPE, MEAN * (SHAPE - 1.0) / SHAPE).min(1e9) as u64),
            start,
            class: Class::new(0),
        });
        if id % 1_000 == 0 {
            most = most.max(oracle.unfinished(usize::MAX).len());
        }
    }
    oracle.advance(Time::NEVER, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    eprintln!(
        "{flows} flows at load {load}: {seconds:.2} s, {:.1} µs a change, up to {most} flows at a time",
        seconds * 1e6 / oracle.totals().events as f64,
    );
    Ok(())
}
