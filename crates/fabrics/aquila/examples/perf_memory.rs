//! How long reads of remote memory take under load, and how fast the engine is: `perf_memory full|half|mini|tiny HOSTS
//! GBPS MICROSECONDS [SETTING=NUMBER...]`: HOSTS hosts, spread evenly, read 4 KB of each other, GBPS each. The first third
//! is not measured. Settings: `bulk=GBPS` of packets of IP a TiN beside it, in the bulk half; `half=1`: reads are in the
//! bulk half, too; `length=BYTES`; `seed=N`.

use std::sync::Arc;

use aquila::config::{Ip, Profile, Rma};
use aquila::endpoints::Both;
use aquila::link::classes::Half;
use aquila::rma::Kind;
use aquila::rma::open_loop::{OpenLoop, Traffic, achieved, latencies};
use aquila::switch::Switches;
use aquila::switch::settings::Settings;
use aquila::tables::{Condition, compute::compute};
use aquila::topology::{Fibres, Topology};
use aquila::turns::TurnTable;
use aquila::{ip, raw};
use kernel::{Rate, Span, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let shape = word(0).parse::<Profile>()?.shape();
    let (count, gbps, us): (u32, f64, u64) = (word(1).parse()?, word(2).parse()?, word(3).parse()?);
    let (mut bulk, mut rma, mut length, mut seed) = (0.0, Rma::default(), 4_096, 1);
    for option in words.iter().skip(4) {
        let (key, value) = option.split_once('=').unwrap_or((option, "1"));
        match key {
            "bulk" => bulk = value.parse()?,
            "half" => rma.half = Half::Bulk,
            "length" => length = value.parse()?,
            "seed" => seed = value.parse()?,
            other => return Err(format!("{other:?} is no option").into()),
        }
    }
    let topology = Topology::new(&shape, Fibres::default()).map_err(|p| format!("{p:?}"))?;
    let tables = Arc::new(compute(&topology, &TurnTable::P1, &Condition::healthy(&topology)));
    let settings = Arc::new(Settings::default());
    let (own, hops): (Vec<u16>, u8) = ((0..shape.tins()).collect(), settings.switch.hops);
    let both = Both {
        ip: ip::open_loop::OpenLoop::new(&shape, &Ip::default(), hops, seed),
        memory: OpenLoop::new(&shape, &rma, &own, hops, seed),
    };
    let all = u32::from(shape.tins()) * 2;
    let spread = |number: u32| {
        let place = (u64::from(number) * u64::from(all) / u64::from(count)) as u32;
        ((place / 2) as u16, (place % 2) as usize)
    };
    let hosts: Vec<_> = (0..count.min(all)).map(spread).collect();
    let (until, from) = (Time::ZERO + Span::from_us(us), Time::ZERO + Span::from_us(us / 3));
    let rate = Rate::from_bps((gbps * 1e9) as u64);
    let reads = Traffic { kind: Kind::Read, length, rate, half: None, until };
    let packets = ip::open_loop::Traffic {
        pattern: raw::Pattern::Uniform,
        length: 4_160,
        class_of_service: 1,
        rate: Rate::from_bps((bulk * 1e9) as u64),
        until,
    };
    let mut clique = Switches::new(&topology, tables, settings, &own, seed, both);
    for tin in own {
        clique.act(tin, Time::ZERO, |both, wishes| {
            if bulk > 0.0 {
                both.ip.set_traffic(packets);
                both.ip.begin(tin, wishes);
            }
            both.memory.set_traffic(reads, hosts.clone());
            both.memory.begin(tin, wishes);
        });
    }
    let begun = std::time::Instant::now();
    clique.run(until);
    let rate = achieved(clique.endpoints().memory.issues(), from, until).as_bps() as f64;
    clique.run(until + Span::from_us(200));
    let seconds = begun.elapsed().as_secs_f64();
    let memory = &clique.endpoints().memory;
    let times = latencies(memory.issues(), from, until);
    let counts = memory.counts();
    if times.is_empty() {
        return Err("nothing is done: take a longer time".into());
    }
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    eprintln!(
        "{} reads: p50 {}, p90 {}, p99 {}, p99.9 {}, longest {}; {:.2} Gbps a host of {gbps}; {} of {} not done, {} \
         late; {:.1} s, {} cells and hops, {:.0} ns each",
        times.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
        rate / f64::from(count) / 1e9,
        counts.operations - counts.done,
        counts.operations,
        counts.late,
        seconds,
        clique.counts().hops,
        seconds * 1e9 / clique.counts().hops as f64,
    );
    Ok(())
}
