//! How long it takes to draw a packet's route and to find a flow's shares:
//! `cargo run --release --package rackloom-r2c2 --example routes`, with nodes along each of three
//! dimensions as an argument (8).

use std::hint::black_box;
use std::time::{Duration, Instant};

use kernel::Stream;
use r2c2::routing::{Network, Protocol, Routes, Scratch, Shares};
use rack::NodeId;
use rack::topology::{Shape, Torus};

/// Routes and pairs that are measured.
const DRAWS: u32 = 1_000_000;
const PAIRS: u32 = 10_000;

#[allow(clippy::print_stdout)]
fn main() {
    let length = std::env::args().nth(1).map_or(8, |text| text.parse().expect("a number of nodes"));
    let torus = Torus { dimensions: vec![length; 3], ..Torus::default() };
    let network = Network::new(&Shape::Torus(torus)).expect("a torus");
    let routes = Routes::new(&network).expect("six links a node");
    let mut scratch = Scratch::new(&network);
    println!(
        "{:<38} {:>10} {:>6} {:>9} {:>8} {:>9}",
        "protocol", "ns a route", "hops", "ns a pair", "table KB", "build"
    );
    for protocol in Protocol::ALL {
        let begin = Instant::now();
        let shares = Shares::new(&network, protocol).expect("a torus suits all protocols");
        let build = begin.elapsed();
        let (route, hops) = match routes.hops_max(protocol) {
            Ok(_) => draw(&routes, protocol),
            Err(_) => (Duration::ZERO, 0.0),
        };
        let mut stream = Stream::new(1, "example/pairs", 0);
        let begin = Instant::now();
        // Shares that are not kept take long to work out.
        let pairs = if shares.table_bytes() > 0 { PAIRS } else { PAIRS / 100 };
        for _ in 0..pairs {
            let (src, dst) = pair(&network, &mut stream);
            black_box(shares.unordered(src, dst, &mut scratch));
        }
        let pair = begin.elapsed() / pairs;
        let (name, route) = (protocol.name(), route.as_nanos());
        let (pair, table) = (pair.as_nanos(), shares.table_bytes() / 1_000);
        println!("{name:<38} {route:>10} {hops:>6.2} {pair:>9} {table:>8} {build:>9.1?}");
    }
}

/// The time of a route, and its mean length.
fn draw(routes: &Routes, protocol: Protocol) -> (Duration, f64) {
    let mut stream = Stream::new(1, "example/routes", 0);
    let mut hops = 0u64;
    let begin = Instant::now();
    for _ in 0..DRAWS {
        let (src, dst) = pair(routes.network(), &mut stream);
        let route = routes.draw(protocol, src, dst, &mut stream).expect("a whole torus");
        hops += u64::from(black_box(route).length());
    }
    (begin.elapsed() / DRAWS, hops as f64 / f64::from(DRAWS))
}

fn pair(network: &Network, stream: &mut Stream) -> (NodeId, NodeId) {
    let nodes = u64::from(network.nodes());
    let mut node = || NodeId::new(stream.below(nodes) as u32);
    (node(), node())
}
