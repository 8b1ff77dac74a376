//! Lookups of a key-value store over Pony Express and by remote memory (§5.2, Fig. 11; X05).
//!
//! A lookup over Pony Express is one request and one answer: the backend's engine finds the value. By remote memory it is
//! two reads, one after the other. Both take the client 1.3 us of its own time.

use aquila::config::{Power, Rma};
use aquila::hosts::clique_map::{CliqueMap, Load, Settings, latencies};
use aquila::switch::settings::Settings as SwitchSettings;
use aquila::topology::{Fibres, Shape};
use kernel::{Span, Time};
use report::Unit;
use report::page::{Axis, Block, Scale};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clique::{Clique, quantile as quantile_of, run as run_cells};
use super::requests::{Answered, answered};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::runs::{Collected, ScenarioFile, quantile, run_into};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/aquila/fig11.toml",
    text: include_str!("../../aquila/fig11.toml"),
};

/// Lookups of a client a second (our choice: the last is 90 % of what an engine does in a second, 0.8 us for each message
/// that it sends and each that it gets).
pub(super) const RATES: [u64; 5] = [2_000, 20_000, 100_000, 300_000, 560_000];
/// Clients, and backends (§5.2: of the order of a hundred; one of each at every TiN of a mini Clique).
const CLIENTS: u64 = 68;
/// What a lookup takes its client besides (C.1 of our reading: 1 us, and 0.3 us to check the value).
const CLIENT: Span = Span::from_ns(1_300);

/// What lookups at a rate take.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Point {
    /// Unit: s.
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// A number of a point.
type Get = fn(&Point) -> f64;

/// Who carries lookups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// Pony Express over IP, at hosts that never sleep.
    Engines,
    /// The same, at hosts that sleep.
    SleepyEngines,
    /// Remote memory of hosts that never sleep.
    Memory,
    /// Remote memory of hosts that sleep.
    SleepyMemory,
}

const KINDS: [By; 4] = [By::Engines, By::SleepyEngines, By::Memory, By::SleepyMemory];

/// Lookups of a run: so many, and for as many microseconds at the least as engines near their limit take to settle.
const fn lookups(effort: Effort, rate: u64) -> u64 {
    let (count, micros) = match effort {
        Effort::Quick => (1_000, 300),
        Effort::Full => (20_000, 1_500),
    };
    let lasting = rate * CLIENTS * micros / 1_000_000;
    if lasting > count { lasting } else { count }
}

/// Lookups over Pony Express at `rate` of each client, at hosts that sleep or never do.
pub(super) fn pony_lookups(
    effort: Effort,
    (rate, sleeps): (u64, bool),
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let gap = 1_000_000_000_000 / (rate * CLIENTS);
    let settings = [
        ("workload.interarrival", json!(format!("{gap} ps"))),
        ("run.flows", json!(2 * lookups(effort, rate))),
        ("fabric.host.sleep.exit", json!(if sleeps { "8 us" } else { "0 ns" })),
    ];
    let mut flows = Collected::default();
    run_into(&FILE.with(&settings, seed)?, &mut flows, pulse)?;
    let times: Vec<f64> = answered(&flows, 1)
        .iter()
        .map(|one: &Answered| one.seconds() + CLIENT.as_seconds())
        .collect();
    Ok(Point { p50: quantile(&times, 0.5), p99: quantile(&times, 0.99) })
}

/// The same by remote memory.
fn memory_lookups(
    clique: &Clique,
    (rate, sleeps): (u64, bool),
    effort: Effort,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let until =
        Time::ZERO + Span::from_ps(lookups(effort, rate) * 1_000_000_000_000 / (rate * CLIENTS));
    let rma = Rma { power: Power { sleeps, ..Power::default() }, ..Rma::default() };
    let switches = SwitchSettings::default();
    let hosts = |slot| (0..clique.shape().tins()).map(|tin| (tin, slot)).collect::<Vec<_>>();
    let load = Load { rate: rate as f64, until };
    let of = (clique.shape(), &rma, switches.switch.hops);
    let map = CliqueMap::new(of, (Settings::default(), load), (&hosts(0), &hosts(1)), seed);
    let mut cells = clique.carry(&switches, map, seed);
    for tin in 0..clique.shape().tins() {
        cells.act(tin, Time::ZERO, |map, wishes| map.begin(tin, wishes));
    }
    run_cells(&mut cells, Time::NEVER, pulse)?;
    cells.check_home().map_err(Failure::Model)?;
    let from = Time::ZERO + (until - Time::ZERO) * 3 / 10;
    let times = latencies(cells.endpoints().lookups(), from, until);
    Ok(Point { p50: quantile_of(&times, 0.5), p99: quantile_of(&times, 0.99) })
}

/// Fig. 11.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/fig11.claims.toml"));
    let clique = Clique::new(&Shape::MINI, Fibres::Grid);
    let cases: Vec<(By, u64)> = KINDS.iter().flat_map(|&by| RATES.map(|rate| (by, rate))).collect();
    let jobs = with_seeds(&cases, effort.seeds());
    let found = spread(&jobs, watch, |&((by, rate), seed), pulse| match by {
        By::Engines | By::SleepyEngines => {
            pony_lookups(effort, (rate, by == By::SleepyEngines), seed, pulse)
        }
        _ => memory_lookups(&clique, (rate, by == By::SleepyMemory), effort, seed, pulse),
    })?;
    let of = |wanted: (By, u64), what: Get| -> Vec<f64> {
        let all = jobs.iter().zip(&found).filter(|((case, _), _)| *case == wanted);
        all.map(|(_, point)| what(point)).collect()
    };
    for (pair, suffix) in
        [((By::SleepyEngines, By::SleepyMemory), ""), ((By::Engines, By::Memory), "-awake")]
    {
        compare(&mut sheet, pair, suffix, &of);
    }
    let p50: Get = |point| point.p50;
    let (lowest, middle) = (RATES[0], RATES[2]);
    for (id, by) in [("fig11.sleep", By::SleepyMemory), ("fig11.awake", By::Memory)] {
        let falls: Vec<f64> =
            of((by, middle), p50).iter().zip(of((by, lowest), p50)).map(|(a, b)| a / b).collect();
        sheet.measure(id, Measured::mean(&falls));
    }
    let text = "68 clients look values of 4 KB up at 68 backends of a mini Clique, at random instants: over Pony Express \
                (a request and an answer, engines of 0.8 µs a message at each end, 0.9 µs of bus each way) and by remote \
                memory (a bucket of the index, then the value). Idle hosts sleep after 20 µs and take 8 µs to wake, or never \
                sleep.";
    let blocks = vec![drawn(&of), numbers(&cases, &of)];
    Ok(findings("Lookups of a key-value store", text, blocks, sheet))
}

/// Pony Express over remote memory, at hosts that sleep or never do.
fn compare(sheet: &mut Sheet, (engines, memory): (By, By), suffix: &str, of: Of<'_>) {
    let over = |rate, what| -> Vec<f64> {
        let above = of((engines, rate), what);
        above.iter().zip(of((memory, rate), what)).map(|(a, b)| a / b).collect()
    };
    let (p50, p99): (Get, Get) = (|point| point.p50, |point| point.p99);
    let (lowest, highest) = (RATES[0], RATES[4]);
    let rows = [("low", lowest, p50), ("low-tail", lowest, p99), ("high", highest, p50)];
    for (word, rate, what) in rows.into_iter().chain([("high-tail", highest, p99)]) {
        sheet.measure(&format!("fig11.{word}{suffix}"), Measured::mean(&over(rate, what)));
    }
    let tails = RATES.map(|rate| Spread::of(&over(rate, p99)).mean);
    let largest = tails.into_iter().fold(0.0, f64::max);
    sheet.measure(&format!("fig11.tail{suffix}"), Measured::one(largest));
}

/// Values of a case, over seeds.
type Of<'a> = &'a dyn Fn((By, u64), Get) -> Vec<f64>;

fn name(by: By) -> &'static str {
    match by {
        By::Engines => "Pony Express",
        By::SleepyEngines => "Pony Express, idle hosts sleep",
        By::Memory => "remote memory",
        By::SleepyMemory => "remote memory, idle hosts sleep",
    }
}

fn drawn(of: Of<'_>) -> Block {
    let line = |by: By, what: Get, words: &str| {
        let points = RATES.map(|rate| (rate as f64, Spread::of(&of((by, rate), what))));
        curve(format!("{}, {words}", name(by)), &points)
    };
    let both = |by| [line(by, |point| point.p50, "median"), line(by, |point| point.p99, "99 %")];
    let series = KINDS.into_iter().flat_map(both).collect();
    let axis = |label: &str, unit| Axis { label: label.into(), unit, scale: Scale::Log };
    let (x, y) = (axis("lookups of a client a second", Unit::Count), axis("lookup", Unit::Seconds));
    let note = "Bars from the smallest to the largest seed.";
    Block::Plots(vec![plot("Fig. 11", note, x, y, series)])
}

fn numbers(cases: &[(By, u64)], of: Of<'_>) -> Block {
    let row = |&case: &(By, u64)| -> Vec<Value> {
        let mean = |what: Get| json!(Spread::of(&of(case, what)).mean);
        vec![json!(name(case.0)), json!(case.1), mean(|point| point.p50), mean(|point| point.p99)]
    };
    let columns = [
        ("by", "Carried by", Unit::Count),
        ("rate", "Lookups of a client a second", Unit::Count),
        ("p50", "Lookup, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
    ];
    table("Means over seeds", &columns, cases.iter().map(row).collect())
}
