use kernel::*;
use rack::*;
use shoal::*;
fn main() {
    let nodes: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    let cells: u64 = std::env::args().nth(2).unwrap().parse().unwrap();
    let pairs: u32 = std::env::args().nth(3).map(|x| x.parse().unwrap()).unwrap_or(nodes);
    let config = Config { nodes, packet: Bytes::new(1500), ..Config::default() };
    let mut rack = Rack::new(config.plan().unwrap(), 1);
    for n in 0..pairs {
        rack.offer(&Flow {
            id: FlowId::new(u64::from(n)),
            src: NodeId::new(n),
            dst: NodeId::new((n + nodes / 3) % nodes),
            size: Bytes::new(56 * cells),
            start: Time::ZERO,
            class: Class::new(0),
        });
    }
    let t = std::time::Instant::now();
    rack.advance(Time::NEVER, &mut ());
    let e = t.elapsed().as_secs_f64();
    let totals = rack.totals();
    println!(
        "{nodes}: {:.3}s {:.1} ns/hop {:.1} Mcellslots/s hops {} q {}",
        e,
        e * 1e9 / totals.hops as f64,
        totals.events as f64 / e / 1e6,
        totals.hops,
        totals.queue_max_cells
    );
}
