//! Measures the clocks of a Clique (Aquila App. B; X24): errors by depth of the tree, and what happens when its primary dies.
//!
//!     cargo run --release -p rackloom-aquila --example clocks [full|half|mini|tiny] [milliseconds] [seed]

use aquila::config::{Link, Profile};
use aquila::timesync::Settings;
use aquila::timesync::measure::{Depth, accuracy};
use aquila::topology::{Fibres, Topology};
use kernel::Span;

fn ns(span: Span) -> f64 {
    span.as_ps() as f64 / 1_000.0
}

#[allow(clippy::print_stdout)]
fn print(depths: &[Depth]) {
    println!("depth  TiNs  error behind a set  largest error  bound (ns)");
    for (number, depth) in depths.iter().enumerate() {
        let Depth { nodes, corrected, largest, bound } = *depth;
        let (corrected, largest, bound) = (ns(corrected), ns(largest), ns(bound));
        println!("{number:5} {nodes:5} {corrected:19.1} {largest:14.1} {bound:11.1}");
    }
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let shape = words.first().map_or(Ok(Profile::Full), |word| word.parse())?.shape();
    let number = |at: usize, default| words.get(at).map_or(Ok(default), |word| word.parse());
    let (ms, seed) = (number(1, 10)?, number(2, 1)?);
    let topology = Topology::new(&shape, Fibres::Grid).expect("a Clique of the paper");
    let duration = (Span::from_us(1_000 * ms), true);
    let found = accuracy(&topology, &Link::default(), &Settings::default(), duration, seed);
    let Some(found) = found else {
        println!("the clocks were not settled within {ms} ms");
        return Ok(());
    };
    println!("settled after {:.1} us", ns(found.settled) / 1_000.0);
    print(&found.depths);
    let (reformed, holdover) =
        (found.reformed.unwrap_or_default(), found.holdover.unwrap_or_default());
    println!("\nthe primary dies: {:.1} us until all follow another;", ns(reformed) / 1_000.0);
    println!("clocks had drifted up to {:.1} ns from its own by then", ns(holdover));
    print(&found.depths_after);
    Ok(())
}
