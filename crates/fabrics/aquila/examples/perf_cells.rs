//! How fast the switches are: `perf_cells full|half|mini|tiny uniform|next-pod LOAD MICROSECONDS [SETTING=NUMBER...]`,
//! with the load as a share of 100 Gbps a TiN. `blocks=12` runs them in so many sets of pods, one after the other through
//! windows as long as the shortest fibre, so that the state of a set stays in the cache.

use std::sync::Arc;

use aquila::config::Profile;
use aquila::link::classes::Mode;
use aquila::raw::{Arrived, Pattern, Raw, Traffic};
use aquila::switch::blocks::Blocks;
use aquila::switch::settings::Settings;
use aquila::tables::{Condition, compute::compute};
use aquila::topology::{Fibres, Topology};
use aquila::turns::TurnTable;
use kernel::{Bytes, Rate, Span, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let shape = word(0).parse::<Profile>()?.shape();
    let pattern = match word(1) {
        "uniform" => Pattern::Uniform,
        "next-pod" => Pattern::NextPod,
        other => return Err(format!("{other:?}: expected uniform or next-pod").into()),
    };
    let (load, us): (f64, u64) = (word(2).parse()?, word(3).parse()?);
    let topology = Topology::new(&shape, Fibres::Metres(100)).map_err(|p| format!("{p:?}"))?;
    let begun = std::time::Instant::now();
    let tables = compute(&topology, &TurnTable::P1, &Condition::healthy(&topology));
    eprintln!("tables: {:.2} s, {} rows", begun.elapsed().as_secs_f64(), tables.rows().len());
    let (mut settings, mut cells, mut blocks, mut ethernet) = (Settings::default(), 29, 1, false);
    for option in words.iter().skip(4) {
        let (key, value) = option.split_once('=').unwrap_or((option, "1"));
        let number: u16 = value.parse()?;
        let bytes = Bytes::new(number.into());
        match key {
            "ethernet" => ethernet = true,
            "blocks" => blocks = usize::from(number.max(1)),
            "minimal" => settings.classes[7].mode = Mode::MinimalAdaptive,
            "weight" => settings.switch.detour_weight = number.into(),
            "bias" => settings.switch.detour_bias = bytes,
            "local" => settings.link.local_buffer = bytes,
            "global" => settings.link.global_buffer = bytes,
            "queue" => settings.switch.output_queue = bytes,
            "redraw" => settings.switch.draw_again = Span::from_ns(number.into()),
            "all" => settings.switch.compares_all = number == 1,
            "speedup" => settings.switch.speedup = number.into(),
            "train" => cells = number.into(),
            "feed" => settings.switch.terminal_rate = Rate::from_gbps(number.into()),
            "iterations" => settings.switch.iterations = number.into(),
            other => return Err(format!("{other:?} is no option").into()),
        }
    }
    let end = Time::ZERO + Span::from_us(us);
    let traffic = Traffic {
        pattern,
        cells,
        rate: Rate::from_bps((load * 100e9) as u64),
        class: 7,
        ethernet,
        until: end,
        from: Time::ZERO + Span::from_us(us / 2),
    };
    let tables = Arc::new(tables);
    let settings = Arc::new(settings);
    let raw = || Raw::new(&shape, traffic, settings.switch.hops, 1);
    let mut sets = Blocks::new(&topology, &tables, &settings, blocks, 1, raw);
    for tin in 0..shape.tins() {
        sets.of(tin).act(tin, Time::ZERO, |raw, wishes| raw.begin(tin, wishes));
    }
    let begun = std::time::Instant::now();
    sets.run(end);
    let seconds = begun.elapsed().as_secs_f64();
    let (counts, mut arrived) = (sets.counts(), Arrived::default());
    sets.sets().iter().for_each(|set| arrived.add(&set.endpoints().arrived()));
    let waiting: usize = sets.sets().iter().map(|set| set.endpoints().waiting()).sum();
    let window = (end - traffic.from).as_seconds() * f64::from(shape.tins());
    eprintln!(
        "{:.3} s, {} hops, {:.1} ns a cell and hop; {:.2} Gbps a TiN of {:.1}, {:.3} links a cell, mean wait {:.2} us, \
         detours {:.3}, {:.3} updates a hop, credit stalls {}, escapes {}, fullest FIFO {}, {} packets wait, hash {:016x}",
        seconds,
        counts.hops,
        seconds * 1e9 / counts.hops as f64,
        arrived.blocks as f64 * 64.0 / window / 1e9,
        load * 100.0,
        arrived.links as f64 / arrived.cells as f64,
        arrived.waits as f64 / arrived.cells as f64 / 1e6,
        counts.detours as f64 / counts.decisions as f64,
        counts.updates as f64 / counts.hops as f64,
        counts.credit_stalls,
        counts.escapes,
        counts.fifo_max,
        waiting,
        arrived.hash,
    );
    Ok(())
}
