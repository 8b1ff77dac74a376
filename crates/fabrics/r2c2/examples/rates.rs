//! How long a node takes to compute rates: `rates [SECONDS]` spends about so long on each line.
//!
//! For racks of 64 and 512 nodes (3D tori), 100 to 5,000 flows between random nodes, under random
//! packet spraying (RPS) and Valiant load balancing (VLB): *anew*, from a list of flows; *next*, from
//! the flows of a moment ago, one of which has ended and another begun; *own*, the same for the flows
//! of one node alone, which is what a node does every interval (R2C2 §3.3.2).

use std::time::{Duration, Instant};

use kernel::Stream;
use r2c2::rates::{Course, Routed, Terms, Waterfill, Whose, capacities};
use r2c2::routing::{Network, Protocol};
use rack::NodeId;
use rack::topology::{Shape, Torus};

/// Headroom (§3.3.2).
const HEADROOM: f64 = 0.05;
/// Flows of which each is replaced by another and comes back.
const CHANGES: usize = 16;

fn main() {
    let seconds = std::env::args().nth(1).map_or(0.2, |word| word.parse().expect("seconds"));
    eprintln!("  nodes  protocol   flows     anew µs     next µs      own µs   rounds");
    for side in [4, 8] {
        let torus = Shape::Torus(Torus { dimensions: vec![side; 3], ..Torus::default() });
        let network = Network::new(&torus).expect("a torus");
        for protocol in [Protocol::Rps, Protocol::Valiant] {
            for count in [100, 200, 500, 1_000, 2_000, 5_000] {
                measure(&network, protocol, count, Duration::from_secs_f64(seconds));
            }
        }
    }
}

fn measure(network: &Network, protocol: Protocol, count: u32, budget: Duration) {
    let mut draw = Stream::new(1, "example/rates", u64::from(count));
    let nodes = u64::from(network.nodes());
    let mut course = move || {
        let source = draw.below(nodes);
        let destination = (source + 1 + draw.below(nodes - 1)) % nodes;
        let node = |index: u64| NodeId::new(index as u32);
        Course { source: node(source), destination: node(destination), protocol }
    };
    let mut flows: Vec<Course> = (0..count).map(|_| course()).collect();
    let routed = Routed::new(network, &[protocol]).expect("any network will do");
    let mut rates = Waterfill::new(routed, capacities(network.topology(), HEADROOM));
    let anew = time(budget, 1, |_| {
        rates.clear();
        for (place, &flow) in (0..).zip(&flows) {
            rates.join(place, flow, Terms::default());
        }
        rates.fill(Whose::All);
    });
    let rounds = rates.rounds();
    // The first flows and others in their places, in turn.
    let mut others: Vec<Course> = (0..CHANGES).map(|_| course()).collect();
    let mut next = |whose: fn(Course) -> Whose| {
        time(budget, 2 * CHANGES, |step| {
            let place = step % CHANGES;
            std::mem::swap(&mut flows[place], &mut others[place]);
            rates.leave(place as u32);
            rates.join(place as u32, flows[place], Terms::default());
            rates.fill(whose(flows[place]));
        })
    };
    let all = next(|_| Whose::All);
    let own = next(|flow| Whose::From(flow.source));
    eprintln!(
        "{nodes:>7}  {:>8}  {count:>6}  {anew:>10.1}  {all:>10.1}  {own:>10.1}  {rounds:>7}",
        if protocol == Protocol::Rps { "RPS" } else { "VLB" },
    );
}

/// The time of a step in microseconds: the mean over a cycle of steps, each at its shortest, as what
/// else runs on the machine only adds to it.
fn time(budget: Duration, cycle: usize, mut step: impl FnMut(usize)) -> f64 {
    let begin = Instant::now();
    let (mut shortest, mut cycles) = (vec![f64::INFINITY; cycle], 0);
    while cycles < 5 || begin.elapsed() < budget {
        for (at, shortest) in shortest.iter_mut().enumerate() {
            let start = Instant::now();
            step(at);
            *shortest = shortest.min(start.elapsed().as_secs_f64());
        }
        cycles += 1;
    }
    shortest.iter().sum::<f64>() / cycle as f64 * 1e6
}
