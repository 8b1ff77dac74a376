//! How fast the switches run: `cargo run --release -p rackloom-scoc --example speed [SECONDS]`.
//!
//! Uniform traffic of 288-byte packets at load 0.9, 128 and 512 ports. A cycle is a clock cycle of
//! SCOC and Hiera, a packet slot of Flat and CRRD; packets a second compare all of them.

use std::io::Write;
use std::time::Instant;

use kernel::Bytes;
use scoc::{Chip, ChipConfig, Crrd, CrrdConfig, FlatConfig, Hiera, HieraConfig, flat};
use switching::{Arrivals, Bench, Line, OutputQueued, Pattern, Phase, Sizes, Switch, Traffic};

fn measure(name: &str, switch: impl Switch, line: Line, seconds: f64) {
    let ports = switch.ports();
    let traffic = Traffic {
        pattern: Pattern::Uniform,
        arrivals: Arrivals::Bernoulli(0.9),
        sizes: Sizes::Fixed(Bytes::new(288)),
        phase: Phase::Random,
    };
    let mut bench = Bench::new(switch, line, traffic, 1);
    bench.run(0, 20_000);
    let (start, first) = (Instant::now(), bench.cycle());
    let mut packets = 0;
    while start.elapsed().as_secs_f64() < seconds {
        packets += bench.run(0, 5_000).packets;
    }
    let wall = start.elapsed().as_secs_f64();
    let cycles = (bench.cycle() - first) as f64 / wall;
    writeln!(
        std::io::stdout(),
        "{name:14} {ports:4} ports {:8.3} M cycles/s {:9.1} M port cycles/s {:7.2} M packets/s",
        cycles / 1e6,
        cycles * ports as f64 / 1e6,
        packets as f64 / wall / 1e6
    )
    .expect("the terminal takes text");
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2.0);
    for ports in [128, 512] {
        let plan = ChipConfig { ports, ..ChipConfig::default() }.plan().expect("sound");
        measure("SCOC", Chip::new(plan.clone(), 1), plan.line, seconds);
        let config = FlatConfig { ports, ..FlatConfig::sped_up() };
        measure("Flat 1.45x", flat(config), config.line(), seconds);
        let config = HieraConfig { ports, ..HieraConfig::default() };
        measure("Hiera", Hiera::new(config), config.line(), seconds);
        let config = CrrdConfig { ports, ..CrrdConfig::default() };
        measure("CRRD", Crrd::new(config), config.line(), seconds);
        measure("output-queued", OutputQueued::new(plan.line, ports), plan.line, seconds);
    }
}
