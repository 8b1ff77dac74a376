//! How fast a transport is on the packet network: `speed HOSTS PATTERN PACKETS TRANSPORT` carries
//! `permutation` or `incast` of so many packets a flow over a three-tier Clos of 128, 432 or 1,024
//! hosts (others: leaf and spine) under `newreno`, `cubic`, `dctcp` or `swift`.

use kernel::{Bytes, Span, Stream as Chance, Time};
use packets::config::{Config, Marking, Queues, Step};
use packets::{Network, Plan, Surroundings, Transport, surroundings};
use rack::topology::{LeafSpine, Shape, ThreeTier};
use rack::{Class, Fabric, Flow, FlowId, NodeId, Problem};
use transports::stream::config::Config as Stream;
use transports::{cubic, dctcp, newreno, swift};

fn shape(hosts: u32) -> Shape {
    match hosts {
        128 => Shape::ThreeTier(ThreeTier { hosts, radix: 8, ..Default::default() }),
        432 => Shape::ThreeTier(ThreeTier { hosts, radix: 12, ..Default::default() }),
        1024 => Shape::ThreeTier(ThreeTier { hosts, radix: 16, ..Default::default() }),
        _ => Shape::LeafSpine(LeafSpine { hosts, ..Default::default() }),
    }
}

/// Connections that are open already, and the initial window of Shoal §7.3.
fn stream() -> Stream {
    Stream {
        handshake: false,
        initial_window: 35,
        rto_initial: Span::from_us(10_000),
        ..Stream::default()
    }
}

fn measure<T: Transport>(
    plan: Plan,
    pattern: &str,
    packets: u64,
    make: impl FnOnce(&Surroundings) -> Result<T, Vec<Problem>>,
) -> Result<(), String> {
    let hosts = plan.topology.hosts();
    let transport = make(&surroundings(&plan, 1)).map_err(|problems| format!("{problems:?}"))?;
    let name = transport.name();
    let payload = u64::from(transport.framing().payload);
    let mut network = Network::new(plan, transport, 1).map_err(|problem| problem.to_string())?;
    let mut order: Vec<u32> = (0..hosts).collect();
    Chance::new(1, "example/perf", 0).shuffle(&mut order);
    for (id, &src) in (0..).zip(&order) {
        let dst = match pattern {
            "incast" => 0,
            _ => order[(id as usize + 1) % order.len()],
        };
        if src != dst {
            network.offer(&Flow {
                id: FlowId::new(id),
                src: NodeId::new(src),
                dst: NodeId::new(dst),
                size: Bytes::new(packets * payload),
                start: Time::ZERO,
                class: Class::new(0),
            });
        }
    }
    let begin = std::time::Instant::now();
    network.advance(Time::NEVER, &mut ());
    let seconds = begin.elapsed().as_secs_f64();
    let totals = network.totals();
    let hops = network.details()["packet_hops"].as_u64().unwrap_or(0);
    eprintln!(
        "{hosts} hosts, {name}, {pattern}: {seconds:.3} s, {:.1} ns a packet hop, {:.2} million a \
         second, {hops} hops, {} sent again, longest queue {}, hash {:016x}",
        seconds * 1e9 / hops as f64,
        hops as f64 / seconds / 1e6,
        totals.retransmissions,
        totals.queue_max,
        totals.event_hash,
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [hosts, pattern, packets, transport] = words.as_slice() else {
        return Err("speed HOSTS PATTERN PACKETS TRANSPORT".into());
    };
    let marking = Marking::Step(Step { threshold: Bytes::new(30_000) });
    let queues = Queues { marking, ..Queues::default() };
    let config = Config { topology: shape(hosts.parse()?), queues, ..Config::default() };
    let plan = config.plan().map_err(|problems| format!("{problems:?}"))?;
    let packets = packets.parse()?;
    let rto_min = Span::from_us(1_000);
    match transport.as_str() {
        "newreno" => {
            let config = newreno::Config { rto_min, stream: stream(), ..Default::default() };
            measure(plan, pattern, packets, |around| config.build(around))?;
        }
        "cubic" => {
            let config = cubic::Config { rto_min, stream: stream(), ..Default::default() };
            measure(plan, pattern, packets, |around| config.build(around))?;
        }
        "dctcp" => {
            let config = dctcp::Config { rto_min, stream: stream(), ..Default::default() };
            measure(plan, pattern, packets, |around| config.build(around))?;
        }
        "swift" => {
            let config = swift::Config { rto_min, stream: stream(), ..Default::default() };
            measure(plan, pattern, packets, |around| config.build(around))?;
        }
        other => return Err(format!("no transport {other}").into()),
    }
    Ok(())
}
