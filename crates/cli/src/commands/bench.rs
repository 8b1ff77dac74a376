//! `rackloom bench`: how fast the engines are on this machine.

use std::ops::ControlFlow;

use crate::engine::{self, EXIT_INTERRUPTED, Failure};
use report::{Cell, Column, ResultsTable, Unit};
use reproductions::aquila::control::Speed as Control;
use reproductions::aquila::speed::Speed as Cells;
use reproductions::r2c2::speed::Speed as Rates;
use reproductions::scoc::tools::Speed;
use scenario::{BadInput, Document, Format, Located, Registry, Scenario};
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

/// The folded Clos networks of the packet-switched benchmarks: hosts, ports of a switch, and what each
/// sender has to send, for some ten million packet hops.
const CLOS: [(u32, u32, &str); 3] = [(128, 8, "10 MB"), (432, 12, "3 MB"), (1024, 16, "1200 KB")];

/// What they carry.
const TRANSPORTS: [&str; 3] = ["ndp", "dctcp", "newreno"];

/// Every packet-switched benchmark: its name and its scenario. A permutation fills all hosts' links; an
/// incast fills one, and all else waits for it.
fn packet_switched() -> impl Iterator<Item = (String, String)> {
    let networks = CLOS.into_iter().flat_map(|clos| ["permutation", "incast"].map(|p| (clos, p)));
    let all = networks.flat_map(|network| TRANSPORTS.map(|transport| (network, transport)));
    all.map(|(((hosts, radix, size), pattern), transport)| {
        let workload = match pattern {
            "incast" => format!("kind = 'incast', senders = {}", hosts - 1),
            _ => "kind = 'bulk', pattern = { kind = 'permutation' }".to_string(),
        };
        let text = format!(
            "workload = {{ {workload}, size = '{size}' }}
             [fabric]
             kind = 'packet-switched'
             topology = {{ kind = 'three-tier', hosts = {hosts}, radix = {radix} }}
             transport = {{ kind = '{transport}' }}"
        );
        (format!("clos-{hosts}-{pattern}-{transport}"), text)
    })
}

/// PL2's benchmarks, each beside plain switches with the same transport: 64 hosts of 100 Gbps at one
/// switch. Each sends to another all the time, which plain switches carry in step; or flows begin
/// anywhere at any time, as in a rack at work.
fn reserved() -> impl Iterator<Item = (String, String)> {
    let plain = "kind = 'packet-switched'
                 topology = { kind = 'single-switch', hosts = 64, rate = '100 Gbps', delay = '810 ns' }
                 switch = { latency = '347 ns' }";
    let pl2 = "kind = 'pl2'
                 nodes = 64";
    let permutation =
        "workload = { kind = 'bulk', pattern = { kind = 'permutation' }, size = '20 MB' }";
    let traces = "run = { flows = 20000 }
             [workload]
             kind = 'poisson'
             load = 0.6
             load_rate = '100 Gbps'
             sizes = { kind = 'table', name = 'W4', reading = 'upper_step' }";
    let workloads = [("permutation", permutation), ("w4", traces)];
    let transports = [("raw", "kind = 'raw', losses = 'repeat'"), ("newreno", "kind = 'newreno'")];
    let pairs = workloads.into_iter().flat_map(move |work| transports.map(|over| (work, over)));
    pairs.flat_map(move |((workload, flows), (transport, keys))| {
        [("pl2", pl2), ("plain", plain)].map(|(fabric, table)| {
            let text = format!(
                "{flows}
                 [fabric]
                 {table}
                 transport = {{ {keys} }}"
            );
            (format!("switch-64-{workload}-{fabric}-{transport}"), text)
        })
    })
}

/// R2C2's benchmarks, on the torus of its §5.2: long flows, which show what a packet's hop costs, and
/// its workload with a flow in the rack every microsecond and every 100 ns, of which most packets are
/// copies of broadcasts.
fn direct() -> impl Iterator<Item = (String, String)> {
    let fabric = "fabric = { kind = 'r2c2', start = 'share' }";
    let long = "workload = { kind = 'bulk', pattern = { kind = 'permutation' }, size = '4 MB' }";
    let sizes = "sizes = { kind = 'pareto', shape = 1.05, mean = '100 KB' }";
    // A flow of 100 KB each microsecond is 800 Gbps: a part of the 60 Gbps of 512 nodes.
    let workload = |load: &str| {
        format!(
            "run = {{ flows = 20000 }}
             workload = {{ kind = 'poisson', load = {load}, load_rate = '60 Gbps', {sizes} }}"
        )
    };
    let all = [
        ("torus-512-permutation", long.to_string()),
        ("torus-512-1us", workload("0.026041666666666668")),
        ("torus-512-100ns", workload("0.2604166666666667")),
    ];
    all.into_iter().map(move |(name, text)| (name.to_string(), format!("{text}\n{fabric}")))
}

/// Every benchmark that is a scenario.
fn scenarios() -> impl Iterator<Item = (String, String)> {
    let slotted = BENCHES.iter().map(|(name, text)| (name.to_string(), text.to_string()));
    slotted.chain(packet_switched()).chain(reserved()).chain(direct())
}

/// Refuses a filter that leaves no benchmark.
fn check(wanted: &str) -> Result<(), BadInput> {
    let mut names: Vec<String> = scenarios().map(|(name, _)| name).collect();
    names.extend(Speed::all().into_iter().map(|speed| speed.name));
    names.extend(Rates::all().into_iter().map(|speed| speed.name));
    names.extend(Cells::all().into_iter().map(|speed| speed.name));
    names.extend(Control::all().into_iter().map(|speed| speed.name));
    if names.iter().any(|name| name.contains(wanted)) {
        return Ok(());
    }
    let hint = scenario::suggest(wanted, &names);
    let message = format!("no benchmark's name holds it; {hint} (`rackloom bench` runs all)");
    Err(BadInput::single(Located::whole(&format!("filter {wanted:?}"), message)))
}

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
    check(wanted)?;
    for (name, text) in scenarios().filter(|(name, _)| name.contains(wanted)) {
        let document = Document::parse(&name, &text, Format::Toml)?;
        let scenario = Scenario::read(document, &[], registry)?;
        let mut meter = Meter::new(&name, output);
        let result = engine::measure(&scenario, &mut |progress| {
            meter.run(progress);
            if interrupt::is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        drop(meter);
        if interrupt::is_asked() {
            break;
        }
        table.push(row(&name, &result?.summary));
    }
    for speed in Speed::all().into_iter().filter(|speed| speed.name.contains(wanted)) {
        if interrupt::is_asked() {
            break;
        }
        table.push(switch(&speed));
    }
    for speed in Rates::all().into_iter().filter(|speed| speed.name.contains(wanted)) {
        if interrupt::is_asked() {
            break;
        }
        table.push(rates(&speed));
    }
    for speed in Cells::all().into_iter().filter(|speed| speed.name.contains(wanted)) {
        if interrupt::is_asked() {
            break;
        }
        table.push(cells(&speed));
    }
    let control: Vec<_> =
        Control::all().into_iter().filter(|speed| speed.name.contains(wanted)).collect();
    let mut tables = Vec::new();
    if !table.rows.is_empty() || control.is_empty() {
        tables.push(table);
    }
    if !control.is_empty() && !interrupt::is_asked() {
        tables.push(controls(&control));
    }
    output.tables(&tables);
    Ok(if interrupt::is_asked() { EXIT_INTERRUPTED } else { DONE })
}

fn row(name: &str, summary: &Value) -> Vec<Cell> {
    let engine = &summary["engine"];
    let number = |key: &str, unit| Cell::new(engine[key].clone(), unit);
    let seconds = engine["wall_seconds"].as_f64().unwrap_or(0.0);
    let hops = hops(summary);
    vec![
        Cell::text(name),
        number("wall_seconds", Unit::Seconds),
        Cell::new(hops, Unit::Count),
        Cell::new(hops / seconds.max(f64::MIN_POSITIVE), Unit::PerSecond),
        Cell::new(seconds / hops.max(1.0), Unit::Seconds),
        number("events", Unit::Count),
        number("events_per_second", Unit::PerSecond),
        number("peak_rss_bytes", Unit::Bytes),
    ]
}

/// The hops of a run: where the fabric counts packets of every kind, all of them, for each costs the
/// engine the same; else the summary's, which are those with payload.
fn hops(summary: &Value) -> f64 {
    let parts = summary.as_object().into_iter().flat_map(|summary| summary.values());
    let packets = parts.filter_map(|part| part.get("packet_hops")?.as_f64()).next();
    packets.or(summary["engine"]["hops"].as_f64()).unwrap_or(0.0)
}

/// A switch on its bench: two hops a packet, a step for each port and cycle.
fn switch(speed: &Speed) -> Vec<Cell> {
    let start = std::time::Instant::now();
    let work = speed.run();
    let wall_seconds = start.elapsed().as_secs_f64();
    let (hops, events) = (2 * work.packets, u64::from(speed.ports) * work.cycles);
    let engine = serde_json::json!({
        "wall_seconds": wall_seconds,
        "hops": hops,
        "hops_per_second": hops as f64 / wall_seconds,
        "events": events,
        "events_per_second": events as f64 / wall_seconds,
        "peak_rss_bytes": engine::peak_rss().get(),
    });
    row(&speed.name, &serde_json::json!({ "engine": engine }))
}

/// Computations of rates: each is a step, and nothing hops.
fn rates(speed: &Rates) -> Vec<Cell> {
    let work = speed.run();
    let seconds = work.time.as_secs_f64();
    let none = |unit| Cell::new(Value::Null, unit);
    vec![
        Cell::text(&speed.name),
        Cell::new(seconds, Unit::Seconds),
        none(Unit::Count),
        none(Unit::PerSecond),
        none(Unit::Seconds),
        Cell::new(work.computations, Unit::Count),
        Cell::new(work.computations as f64 / seconds.max(f64::MIN_POSITIVE), Unit::PerSecond),
        Cell::new(engine::peak_rss().get(), Unit::Bytes),
    ]
}

/// Aquila's switches without hosts: a step is a cell that is delivered, a hop one that crosses a switch.
fn cells(speed: &Cells) -> Vec<Cell> {
    let work = speed.run();
    let wall_seconds = work.time.as_secs_f64();
    let engine = serde_json::json!({
        "wall_seconds": wall_seconds,
        "hops": work.hops,
        "events": work.cells,
        "events_per_second": work.cells as f64 / wall_seconds.max(f64::MIN_POSITIVE),
        "peak_rss_bytes": engine::peak_rss().get(),
    });
    row(&speed.name, &serde_json::json!({ "engine": engine }))
}

/// Aquila's routing engine and its base: nothing is carried, so it has columns of its own.
fn controls(all: &[Control]) -> ResultsTable {
    let columns = [
        ("name", "Benchmark"),
        ("times", "Times"),
        ("median_seconds", "Median time"),
        ("longest_seconds", "Longest"),
        ("batches", "Batches"),
        ("rows", "Rows written"),
        ("base_rows", "Rows of the base"),
        ("raw_bytes", "Their values"),
        ("stored_bytes", "As kept"),
        ("peak_rss_bytes", "Peak memory so far"),
    ];
    let mut table = ResultsTable::new(columns.map(|(key, title)| Column::new(key, title)).to_vec());
    for speed in all {
        if interrupt::is_asked() {
            break;
        }
        let mut work = speed.run();
        work.settled.sort_by_key(|settled| settled.time);
        let (median, longest) = (work.settled[work.settled.len() / 2], work.settled.last());
        let count = |count: u64| Cell::new(count, Unit::Count);
        table.push(vec![
            Cell::text(&speed.name),
            count(work.settled.len() as u64),
            Cell::new(median.time.as_secs_f64(), Unit::Seconds),
            Cell::new(longest.map(|settled| settled.time.as_secs_f64()), Unit::Seconds),
            count(median.batches),
            count(median.rows),
            count(work.sizes.rows),
            Cell::new(work.sizes.raw, Unit::Bytes),
            Cell::new(work.sizes.stored, Unit::Bytes),
            Cell::new(engine::peak_rss().get(), Unit::Bytes),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_every_benchmark_is_a_scenario_with_a_name_of_its_own() {
        let registry = Registry::standard();
        let slotted = BENCHES.iter().map(|(name, text)| (name.to_string(), text.to_string()));
        let mut names = std::collections::BTreeSet::new();
        for (name, text) in slotted.chain(packet_switched()).chain(reserved()).chain(direct()) {
            let document = Document::parse(&name, &text, Format::Toml).unwrap();
            Scenario::read(document, &[], &registry).unwrap();
            assert!(names.insert(name));
        }
        assert_eq!(names.len(), BENCHES.len() + 3 * 2 * 3 + 2 * 2 * 2 + 3);
    }

    #[test]
    fn packets_of_every_kind_count_where_they_are_counted() {
        let cells = serde_json::json!({ "engine": { "hops": 5 }, "shoal": { "cells": 7 } });
        let packets = serde_json::json!({ "engine": { "hops": 5 }, "ndp": { "packet_hops": 9 } });
        assert_eq!((hops(&cells), hops(&packets)), (5.0, 9.0));
    }
}
