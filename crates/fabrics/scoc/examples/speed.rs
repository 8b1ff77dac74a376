//! A switch at work, to profile: `speed SYSTEM PORTS CYCLES` with SYSTEM one of `scoc`, `flat`,
//! `hiera`, `crrd` and `output-queued`.
//!
//! Uniform traffic of 288-byte packets at load 0.9, as in `rackloom bench scoc`:
//! `valgrind --tool=callgrind target/profiling/examples/speed scoc 128 20000`.

use std::io::Write;
use std::time::Instant;

use kernel::Bytes;
use scoc::{Chip, ChipConfig, Crrd, CrrdConfig, FlatConfig, Hiera, HieraConfig, flat};
use switching::{Arrivals, Bench, Line, OutputQueued, Pattern, Phase, Sizes, Switch, Traffic};

fn measure(switch: impl Switch, line: Line, cycles: u64) {
    let traffic = Traffic {
        pattern: Pattern::Uniform,
        arrivals: Arrivals::Bernoulli(0.9),
        sizes: Sizes::Fixed(Bytes::new(288)),
        phase: Phase::Random,
    };
    let ports = switch.ports();
    let mut bench = Bench::new(switch, line, traffic, 1);
    let start = Instant::now();
    let packets = bench.run(0, cycles).packets;
    let seconds = start.elapsed().as_secs_f64();
    let (cycles, packets) = (cycles as f64 / seconds, packets as f64 / seconds);
    writeln!(
        std::io::stdout(),
        "{:.3} M cycles/s, {:.1} M port cycles/s, {:.2} M packets/s",
        cycles / 1e6,
        cycles * ports as f64 / 1e6,
        packets / 1e6
    )
    .expect("the terminal takes text");
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize, otherwise: usize| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (ports, cycles) = (number(2, 128), number(3, 200_000) as u64);
    let plan = ChipConfig { ports, ..ChipConfig::default() }.plan().expect("a sound chip");
    match arguments.get(1).map_or("scoc", String::as_str) {
        "flat" => {
            let config = FlatConfig { ports, ..FlatConfig::sped_up() };
            measure(flat(config), config.line(), cycles);
        }
        "hiera" => {
            let config = HieraConfig { ports, ..HieraConfig::default() };
            measure(Hiera::new(config), config.line(), cycles);
        }
        "crrd" => {
            let config = CrrdConfig { ports, ..CrrdConfig::default() };
            measure(Crrd::new(config), config.line(), cycles);
        }
        "output-queued" => measure(OutputQueued::new(plan.line, ports), plan.line, cycles),
        _ => measure(Chip::new(plan.clone(), 1), plan.line, cycles),
    }
}
