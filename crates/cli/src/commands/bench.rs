//! `rackloom bench`: how fast the engines are on this machine.

use std::ops::ControlFlow;

use crate::engine::{self, EXIT_INTERRUPTED, Failure};
use report::{Cell, Column, ResultsTable, Unit};
use scenario::{Document, Format, Registry, Scenario};
use serde_json::Value;

use super::DONE;
use crate::args::BenchArguments;
use crate::interrupt;
use crate::output::Output;
use crate::progress::Meter;

/// Each benchmark: its name and its scenario. A permutation keeps every node sending all the time;
/// the heavy tail is the workload of Shoal §7.3; one flow shows what an idle rack costs.
const BENCHES: [(&str, &str); 7] = [
    (
        "permutation-64",
        "workload = { kind = 'bulk', pattern = { kind = 'permutation' }, size = '4 MB' }
         fabric = { kind = 'shoal', nodes = 64 }",
    ),
    (
        "permutation-512",
        "workload = { kind = 'bulk', pattern = { kind = 'permutation' }, size = '500 KB' }
         fabric = { kind = 'shoal', nodes = 512 }",
    ),
    (
        "permutation-2048",
        "workload = { kind = 'bulk', pattern = { kind = 'permutation' }, size = '50 KB' }
         fabric = { kind = 'shoal', nodes = 2048 }",
    ),
    (
        "heavy-tail-0.25",
        "run = { flows = 20000 }
         workload = { kind = 'poisson', load = 0.25 }
         fabric = { kind = 'shoal', nodes = 512 }",
    ),
    (
        "heavy-tail-0.5",
        "run = { flows = 20000 }
         workload = { kind = 'poisson', load = 0.5 }
         fabric = { kind = 'shoal', nodes = 512 }",
    ),
    (
        "heavy-tail-1",
        "run = { flows = 20000 }
         workload = { kind = 'poisson', load = 1.0 }
         fabric = { kind = 'shoal', nodes = 512 }",
    ),
    (
        "one-flow",
        "workload = { kind = 'incast', senders = 1, size = '1 MB' }
         fabric = { kind = 'shoal', nodes = 512 }",
    ),
];

/// Runs the benchmarks whose name holds the filter.
pub fn bench(
    arguments: &BenchArguments,
    registry: &Registry,
    output: &mut Output,
) -> Result<u8, Failure> {
    let columns = [
        ("name", "Benchmark"),
        ("wall_seconds", "Wall time"),
        ("hops", "Hops"),
        ("hops_per_second", "Hops computed"),
        ("hop_seconds", "Time a hop"),
        ("events", "Engine steps"),
        ("events_per_second", "Steps computed"),
        ("peak_rss_bytes", "Peak memory so far"),
    ];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).to_vec());
    let wanted = arguments.filter.as_deref().unwrap_or("");
    for (name, text) in BENCHES.iter().filter(|(name, _)| name.contains(wanted)) {
        let document = Document::parse(name, text, Format::Toml)?;
        let scenario = Scenario::read(document, &[], registry)?;
        let mut meter = Meter::new(name, output);
        let result = engine::measure(&scenario, &mut |progress| {
            meter.run(progress);
            if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        drop(meter);
        if interrupt::is_asked() {
            break;
        }
        table.push(row(name, &result?.summary["engine"]));
    }
    output.table(&table);
    Ok(if interrupt::is_asked() { EXIT_INTERRUPTED } else { DONE })
}

fn row(name: &str, engine: &Value) -> Vec<Cell> {
    let number = |key: &str, unit| Cell::new(engine[key].clone(), unit);
    let seconds = engine["wall_seconds"].as_f64().unwrap_or(0.0);
    let hops = engine["hops"].as_f64().unwrap_or(0.0);
    vec![
        Cell::text(name),
        number("wall_seconds", Unit::Seconds),
        number("hops", Unit::Count),
        number("hops_per_second", Unit::PerSecond),
        Cell::new(seconds / hops.max(1.0), Unit::Seconds),
        number("events", Unit::Count),
        number("events_per_second", Unit::PerSecond),
        number("peak_rss_bytes", Unit::Bytes),
    ]
}
