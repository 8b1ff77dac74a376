//! Traces packets through a Clique in which something is broken (Aquila §6): prints the way of one of them, and what the
//! collector suspects.
//!
//!     cargo run --release -p rackloom-aquila --example traced [full|half|mini|tiny] [packets]

use std::sync::Arc;

use aquila::config::Profile;
use aquila::tables::{Condition, compute::compute};
use aquila::topology::{Far, Fibres, Topology};
use aquila::trace::measure::{Load, Planted, run};
use aquila::trace::{Settings, stitch};
use aquila::turns::TurnTable;
use kernel::Span;

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let shape = words.first().map_or(Ok(Profile::Mini), |word| word.parse())?.shape();
    let packets = words.get(1).map_or(Ok(2_000), |word| word.parse())?;
    let topology = Topology::new(&shape, Fibres::Grid).expect("a Clique of the paper");
    let tables = Arc::new(compute(&topology, &TurnTable::P1, &Condition::healthy(&topology)));
    let load = Load { packets, length: 700, gap: Span::from_ns(100), is_traced: true, pod: None };
    let settings = Settings { records_per_second: 100_000_000, ..Settings::default() };
    let broken = Far { tin: 5, port: shape.local_ports };
    let planted = Planted::Loss(broken, 0.2);
    let run = run(&topology, &tables, planted, (&load, &settings), 1);
    let packets = stitch(&run.journeys);
    if let Some(packet) = packets.iter().find(|packet| packet.data.len() == 5) {
        let data = packet.data.iter().map(|(_, cell)| cell);
        packet.request.iter().chain(&packet.answer).chain(data).for_each(|cell| println!("{cell}"));
    }
    println!("\n{:?}", run.collector.heard());
    println!("planted: TiN {}, port {}, loses a fifth of its cells", broken.tin, broken.port);
    run.collector.suspects().iter().for_each(|suspect| println!("suspected: {suspect}"));
    Ok(())
}
