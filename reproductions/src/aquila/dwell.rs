//! Lookups by remote memory at hosts that sleep when nobody asks, and at hosts that do not (§5.2, Fig. 11; X05).
//!
//! Leaves out: lookups by Pony Express, which the figure holds beside them.

use aquila::config::{Power, Rma};
use aquila::hosts::clique_map::{CliqueMap, Host, Load, Lookup, Settings as Lookups, latencies};
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::{Span, Time};
use report::Unit;
use report::page::{Axis, Block, Scale};
use serde_json::json;

use super::SEEDS;
use super::clique::{Clique, quantile, run as run_cells};
use super::memory::host;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Clients, and as many backends (§5.2: on the order of 100 of each).
const CLIENTS: u32 = 100;
/// Lookups of a client a second (the paper's are in an image): up to some two thirds of what its bus carries.
pub(super) const fn rates(effort: Effort) -> &'static [u64] {
    match effort {
        Effort::Quick => &[1_000, 10_000, 100_000, 300_000, 1_000_000],
        Effort::Full => &[1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 1_600_000],
    }
}
/// The least time of a run, for its load to settle; the first half of each run is not measured.
const LEAST: Span = Span::from_us(40);

/// A number of a point.
type Get = fn(&Point) -> f64;

/// What lookups took, from their clients' wish until their values were checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    /// Unit: s.
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Total execution latency of both reads, in the mean. Unit: s.
    pub(super) execution: f64,
    /// Lookups that were done within the window, by those that came within it.
    pub(super) achieved: f64,
}

/// Clients and backends, spread evenly, never at one TiN.
pub(super) fn places(clique: &Clique) -> (Vec<Host>, Vec<Host>) {
    let all = clique.hosts(2 * CLIENTS);
    let of = |which: usize| {
        let own = all.iter().enumerate().filter(move |(number, _)| number / 2 % 2 == which);
        own.map(|(_, place)| host(place)).collect()
    };
    (of(0), of(1))
}

/// Lookups at random instants, `rate` of a client a second, whether earlier ones have ended or not.
pub(super) fn rma_lookups(
    clique: &Clique,
    (rma, rate): (&Rma, u64),
    effort: Effort,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Point, Failure> {
    let count = if effort == Effort::Quick { 1_200 } else { 12_000 };
    let long = Span::from_ps(1_000_000_000_000 / rate * count / u64::from(CLIENTS));
    let until = Time::ZERO + long.max(LEAST);
    let from = Time::ZERO + long.max(LEAST) / 2;
    let settings = Settings::default();
    let (clients, backends) = places(clique);
    let load = Load { rate: rate as f64, until };
    let of = (clique.shape(), rma, settings.switch.hops);
    let map = CliqueMap::new(of, (Lookups::default(), load), (&clients, &backends), seed);
    let mut cells = clique.carry(&settings, map, seed);
    for tin in 0..clique.shape().tins() {
        cells.act(tin, Time::ZERO, |map, wishes| map.begin(tin, wishes));
    }
    run_cells(&mut cells, Time::NEVER, pulse)?;
    cells.check_home().map_err(Failure::Model)?;
    let lookups = cells.endpoints().lookups();
    let took = latencies(lookups, from, until);
    let is_within = |at: Time| (from..until).contains(&at);
    let came: Vec<&Lookup> = lookups.iter().filter(|lookup| is_within(lookup.at)).collect();
    if let Some(lookup) = came.iter().find(|lookup| lookup.end.is_none()) {
        return Err(Failure::Model(format!("{lookup:?} has not ended")));
    }
    let done = lookups.iter().filter(|lookup| lookup.end.is_some_and(is_within)).count();
    let execution: f64 = came.iter().map(|lookup| lookup.execution.as_seconds()).sum();
    Ok(Point {
        p50: quantile(&took, 0.5),
        p99: quantile(&took, 0.99),
        execution: execution / came.len() as f64,
        achieved: done as f64 / came.len() as f64,
    })
}

/// Fig. 11's lookups by remote memory.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/dwell.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let rates = rates(effort);
    let with = |sleeps: bool| rates.iter().map(move |&rate| (sleeps, rate));
    let cases: Vec<(bool, u64)> = with(true).chain(with(false)).collect();
    let jobs = with_seeds(&cases, SEEDS);
    let found = spread(&jobs, watch, |&((sleeps, rate), seed), pulse| {
        let rma = Rma { power: Power { sleeps, ..Power::default() }, ..Rma::default() };
        rma_lookups(&clique, (&rma, rate), effort, seed, pulse)
    })?;
    let of = |case: (bool, u64), what: Get| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((other, _), _)| *other == case).map(|(_, point)| what(point)).collect()
    };
    let middle = rates[rates.len() / 2];
    for (id, sleeps) in [("dwell.sleeps", true), ("dwell.awake", false)] {
        let low = of((sleeps, rates[0]), |point| point.p50);
        let high = of((sleeps, middle), |point| point.p50);
        let ratio: Vec<f64> = high.iter().zip(low).map(|(high, low)| high / low).collect();
        sheet.measure(id, Measured::mean(&ratio));
    }
    let text = "A lookup takes its client 1 µs, then reads a bucket of 1 KB and a value of 4 KB of a backend at random, \
                one after the other, and checks it in 0.3 µs. A backend that nobody has asked in 20 µs sleeps, and takes \
                8 µs to wake (both our choice).";
    let blocks = drawn(middle, &cases, &of);
    Ok(findings("Lookups at hosts that sleep", text, blocks, sheet))
}

/// The figure, and its numbers.
fn drawn(
    middle: u64,
    cases: &[(bool, u64)],
    of: &dyn Fn((bool, u64), Get) -> Vec<f64>,
) -> Vec<Block> {
    let names = |sleeps| if sleeps { "hosts sleep" } else { "hosts never sleep" };
    let mut series = Vec::new();
    for sleeps in [true, false] {
        let line = |name: &str, what: Get| {
            let own = cases.iter().filter(|case| case.0 == sleeps);
            let point = |case: &(bool, u64)| (case.1 as f64, Spread::of(&of(*case, what)));
            curve(format!("{}, {name}", names(sleeps)), &own.map(point).collect::<Vec<_>>())
        };
        series.push(line("median", |point| point.p50));
        series.push(line("99 %", |point| point.p99));
    }
    let axis = |label: &str, unit, scale| Axis { label: label.into(), unit, scale };
    let (x, y) = (
        axis("lookups of a client a second", Unit::Count, Scale::Log),
        axis("lookup", Unit::Seconds, Scale::Linear),
    );
    let note = format!(
        "100 clients, 100 backends; bars from the smallest to the largest seed. The middle of the rates is \
         {middle}."
    );
    let rows = cases.iter().map(|&case| {
        let mean = |what: Get| json!(Spread::of(&of(case, what)).mean);
        vec![
            json!(names(case.0)),
            json!(case.1),
            mean(|point| point.p50),
            mean(|point| point.p99),
            mean(|point| point.execution),
            mean(|point| point.achieved),
        ]
    });
    let columns = [
        ("power", "", Unit::Count),
        ("rate", "Lookups of a client a second", Unit::Count),
        ("p50", "Lookup, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("execution", "Its two reads, mean", Unit::Seconds),
        ("achieved", "Carried of what is asked for", Unit::Share),
    ];
    vec![
        Block::Plots(vec![plot("Lookups by remote memory", &note, x, y, series)]),
        table("Means over seeds", &columns, rows.collect()),
    ]
}
