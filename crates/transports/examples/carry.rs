//! How fast the transports are: `carry TRANSPORT HOSTS PATTERN PACKETS [THREADS]` carries `permutation`,
//! `incast` or `poisson` (flows between hosts drawn at random, at 0.6 of what they can send) of
//! PACKETS packets a flow over a three-tier Clos of 128, 432 or 1,024 hosts (others: leaf and spine), by `ndp`,
//! `homa`, `dcqcn`, `dctcp`, `newreno`, `cubic` or `swift`, on THREADS threads. `SHARDS=16` cuts the
//! network into 16 parts that run on one thread: the work of 16 threads.

use kernel::{Bytes, Rate, Span, Stream, Time};
use packets::config::{Config, FlowControl, Marking, Pfc, Queues, Red, Routing, Step, Trimming};
use packets::{Network, Surroundings, Transport, surroundings};
use rack::topology::{LeafSpine, Shape, ThreeTier};
use rack::{Class, Fabric, Flow, FlowId, NodeId};
use transports::{cubic, dcqcn, dctcp, homa, ndp, newreno, swift};

/// Application bytes in a packet, near enough for every transport.
const PAYLOAD: u64 = 1_440;

fn shape(hosts: u32) -> Shape {
    match hosts {
        128 => Shape::ThreeTier(ThreeTier { hosts, radix: 8, ..ThreeTier::default() }),
        432 => Shape::ThreeTier(ThreeTier { hosts, radix: 12, ..ThreeTier::default() }),
        1024 => Shape::ThreeTier(ThreeTier { hosts, radix: 16, ..ThreeTier::default() }),
        _ => Shape::LeafSpine(LeafSpine { hosts, ..LeafSpine::default() }),
    }
}

/// The network that a transport asks for (Shoal §7.3: queues of 12 packets for NDP, 100 for others).
fn config(transport: &str, hosts: u32) -> Option<Config> {
    let deep = Queues::default();
    let (routing, queues) = match transport {
        "ndp" => {
            let port_buffer = Bytes::new(18_000);
            let trimming = Some(Trimming::default());
            (Routing::SourcePath, Queues { port_buffer, trimming, ..deep })
        }
        "homa" => (Routing::RandomSpray, Queues { port_buffer: Bytes::new(1_000_000), ..deep }),
        "dcqcn" => {
            let pfc = Pfc { priorities: vec![dcqcn::Config::default().priority], ..Pfc::default() };
            let flow_control = FlowControl::Pfc(pfc);
            let port_buffer = Bytes::new(1_000_000);
            let marking = Marking::Red(Red::default());
            (Routing::Ecmp, Queues { port_buffer, marking, flow_control, ..deep })
        }
        "dctcp" => (Routing::Ecmp, Queues { marking: Marking::Step(Step::default()), ..deep }),
        "newreno" | "cubic" | "swift" => (Routing::Ecmp, deep),
        _ => return None,
    };
    Some(Config { topology: shape(hosts), routing, queues, ..Config::default() })
}

fn flows(hosts: u32, pattern: &str, packets: u64) -> Option<Vec<Flow>> {
    let (step, size) = (hosts / 2 + 1, Bytes::new(packets * PAYLOAD));
    let flow = |src: u32, dst: u32| Flow {
        id: FlowId::new(src.into()),
        src: NodeId::new(src),
        dst: NodeId::new(dst),
        size,
        start: Time::ZERO,
        class: Class::new(0),
    };
    match pattern {
        "permutation" => Some((0..hosts).map(|src| flow(src, (src + step) % hosts)).collect()),
        "incast" => Some((1..hosts).map(|src| flow(src, 0)).collect()),
        "poisson" => Some(poisson(hosts, size)),
        _ => None,
    }
}

/// Forty flows a host of the default rate, between hosts drawn at random, at a load of 0.6.
fn poisson(hosts: u32, size: Bytes) -> Vec<Flow> {
    let mut draw = Stream::new(1, "example/poisson", 0);
    let gap = Rate::from_gbps(30).send_time(size) / u64::from(hosts);
    let mut start = Time::ZERO;
    let mut flow = |id: u64| {
        start += Span::from_ps(draw.exponential(gap.as_ps() as f64) as u64);
        let src = draw.below(hosts.into()) as u32;
        let dst = (src + 1 + draw.below(u64::from(hosts) - 1) as u32) % hosts;
        Flow {
            id: FlowId::new(id),
            src: NodeId::new(src),
            dst: NodeId::new(dst),
            size,
            start,
            class: Class::new(0),
        }
    };
    (0..40 * u64::from(hosts)).map(&mut flow).collect()
}

fn run<T: Transport>(
    (config, threads): (&Config, usize),
    flows: &[Flow],
    make: impl FnOnce(&Surroundings) -> T,
) -> Result<(), String> {
    let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
    let transport = make(&surroundings(&plan, 1));
    let mut network = Network::new(plan, transport, 1).map_err(|problem| problem.to_string())?;
    network.set_threads(threads);
    if let Ok(shards) = std::env::var("SHARDS") {
        network.set_shards(shards.parse().map_err(|_| "SHARDS is no number")?);
    }
    flows.iter().for_each(|flow| network.offer(flow));
    let begin = std::time::Instant::now();
    network.advance(Time::NEVER, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let windows = network.windows();
    if windows.windows > 0 {
        eprintln!("{} parts: {windows:?}", network.parts());
    }
    let totals = network.totals();
    let hops = network.details()["packet_hops"].as_u64().unwrap_or(0);
    eprintln!(
        "{} hosts, {}: {seconds:.3} s, {:.1} ns a packet hop, {:.2} million a second, {:.2} events \
         a hop, {hops} hops, {} retransmissions, hash {:016x}",
        network.nodes(),
        network.name(),
        seconds * 1e9 / hops as f64,
        hops as f64 / seconds / 1e6,
        totals.events as f64 / hops as f64,
        totals.retransmissions,
        totals.event_hash,
    );
    Ok(())
}

fn main() -> Result<(), String> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let usage = || "usage: carry TRANSPORT HOSTS PATTERN PACKETS [THREADS]".to_string();
    let [transport, hosts, pattern, packets, threads @ ..] = words.as_slice() else {
        return Err(usage());
    };
    let threads = threads.first().map_or(Ok(1), |threads| threads.parse()).map_err(|_| usage())?;
    let hosts = hosts.parse().map_err(|_| usage())?;
    let packets = packets.parse().map_err(|_| usage())?;
    let flows = flows(hosts, pattern, packets).ok_or_else(usage)?;
    let config = (&config(transport, hosts).ok_or_else(usage)?, threads);
    let built = "the defaults are sound";
    match transport.as_str() {
        "ndp" => run(config, &flows, |around| ndp::Ndp::new(&ndp::Config::default(), around)),
        "homa" => {
            let sizes = homa::Profile::new(vec![(Bytes::new(packets * PAYLOAD), 1.0)]);
            run(config, &flows, |around| homa::Homa::new(&homa::Config::default(), around, &sizes))
        }
        "dcqcn" => {
            run(config, &flows, |around| dcqcn::Dcqcn::new(&dcqcn::Config::default(), around))
        }
        "dctcp" => {
            run(config, &flows, |around| dctcp::Config::default().build(around).expect(built))
        }
        "cubic" => {
            run(config, &flows, |around| cubic::Config::default().build(around).expect(built))
        }
        "swift" => {
            run(config, &flows, |around| swift::Config::default().build(around).expect(built))
        }
        _ => run(config, &flows, |around| newreno::Config::default().build(around).expect(built)),
    }
}
