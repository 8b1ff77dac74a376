//! How often rates have to be computed: what is lost, and what it costs (§5.1, §5.2, Figs 8, 15, 16).

use report::Unit;
use report::page::{Axis, Block, Plot};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::assigned::{Computation, When, arrivals, assign, rack};
use super::racks;
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::paper::part;
use crate::runs::quantile;
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// ρ in microseconds (the paper names 100 µs, 500 µs and 1 ms).
const INTERVALS: [u64; 4] = [100, 250, 500, 1_000];
/// §5.2: the ρ of Fig. 16, in microseconds.
const USUAL: u64 = 500;
/// τ in nanoseconds.
const GAPS: [u64; 4] = [100, 1_000, 10_000, 100_000];
/// The τ of Figs 8 and 15.
const USUAL_GAP: u64 = 1_000;

/// Seeds of Figs 15 and 16, quick or not: from one ρ to the next little changes (our choice).
const SEEDS: u64 = 5;

/// Seeds of Fig. 8 (our choice): a run of ten milliseconds has twenty computations at ρ = 500 µs, of a few flows each.
const COST_SEEDS: u64 = 10;

/// Of which flows rates are computed, by the seconds from one computation to the next.
type Reading = fn(f64) -> When;

/// Of which flows rates are computed: as the claims have it (§5.1), and of all.
const READINGS: [(Reading, &str); 2] = [(When::Lasting, ""), (When::Every, "-all")];

/// τ and ρ of a run.
type Point = (u64, u64);

/// The ρ that are run with a τ.
fn intervals_of(gap: u64) -> &'static [u64] {
    if gap == USUAL_GAP { &INTERVALS } else { &[USUAL] }
}

/// Flows of a run. Rates at every event cost more the more flows there are at a time.
fn flows(effort: Effort, gap: u64) -> usize {
    match effort {
        Effort::Quick if gap < USUAL_GAP => 4_000,
        Effort::Quick => 20_000,
        Effort::Full if gap < USUAL_GAP => 30_000,
        Effort::Full => 200_000,
    }
}

/// Differences from the rates computed at every event, in parts of these: over the flows that some
/// computation considered. Median and 95th percentile.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Error {
    median: f64,
    p95: f64,
}

/// The errors of each of `intervals`, in each of [`READINGS`].
fn errors(effort: Effort, gap: u64, intervals: &[u64], seed: u64) -> [Vec<Error>; 2] {
    let network = rack();
    let coming = arrivals(&network, flows(effort, gap), gap as f64 * 1e-9, seed);
    let (ideal, _) = assign(&network, &coming, When::EveryEvent);
    let of = |when: Reading, interval: u64| {
        let (assigned, _) = assign(&network, &coming, when(interval as f64 * 1e-6));
        let pairs = assigned.iter().zip(&ideal);
        let errors: Vec<f64> = pairs
            .filter_map(|(ours, ideal)| {
                let (ours, ideal) = (ours.mean()?, ideal.mean()?);
                Some((ours - ideal).abs() / ideal)
            })
            .collect();
        Error { median: quantile(&errors, 0.5), p95: quantile(&errors, 0.95) }
    };
    READINGS.map(|(when, _)| intervals.iter().map(|&interval| of(when, interval)).collect())
}

/// The errors of every τ and ρ that was run.
struct Errors(Vec<Vec<Error>>);

/// A figure of errors.
type Get = fn(&Error) -> f64;
const MEDIAN: Get = |error| error.median;
const P95: Get = |error| error.p95;

impl Errors {
    /// Over seeds.
    fn of(&self, (gap, interval): Point, get: Get) -> Vec<f64> {
        let place = |all: &[u64], value| all.iter().position(|&known| known == value);
        let at = place(&GAPS, gap).expect("every τ is listed");
        let index = place(intervals_of(gap), interval).expect("every ρ is listed");
        let seeds = self.0.len() / GAPS.len();
        let of_seeds = &self.0[at * seeds..][..seeds];
        of_seeds.iter().map(|of_a_seed| get(&of_a_seed[index])).collect()
    }

    /// The mean of the 95th percentiles at each point, and in words.
    fn along(&self, points: &[Point]) -> (Vec<f64>, String) {
        let means = points.iter().map(|&point| Spread::of(&self.of(point, P95)).mean);
        let means: Vec<f64> = means.collect();
        let words: Vec<_> = means.iter().map(|&mean| Unit::Share.format(mean)).collect();
        (means, words.join(", "))
    }

    /// A curve for each figure.
    fn plot(&self, title: &str, points: &[Point], axis: Axis, x: fn(Point) -> f64) -> Plot {
        let line = |(name, get): (&str, Get)| {
            let points = points.iter().map(|&point| (x(point), Spread::of(&self.of(point, get))));
            curve(name, &points.collect::<Vec<_>>())
        };
        let series = [("95th percentile", P95), ("median", MEDIAN)].map(line);
        let y = Axis::linear("Difference from the ideal rate", Unit::Share);
        plot(title, "Bars: least and most over the seeds.", axis, y, series.into())
    }
}

/// Notes the rows of one reading.
fn measure(sheet: &mut Sheet, found: &Errors, reading: &str) {
    let mut put = |word: &str, measured| sheet.measure(&format!("fig15.{word}{reading}"), measured);
    for (word, interval) in [("500us", 500), ("1ms", 1_000)] {
        for (name, get) in [("median", MEDIAN), ("p95", P95)] {
            put(&format!("{name}-{word}"), Measured::mean(&found.of((USUAL_GAP, interval), get)));
        }
    }
    let (means, words) = found.along(&INTERVALS.map(|interval| (USUAL_GAP, interval)));
    put("rises", Measured::shape(words, Shape::of(means.is_sorted())));
    let by_load = GAPS.map(|gap| (gap, USUAL));
    let (means, words) = found.along(&by_load);
    put("load", Measured::shape(words, Shape::of(means.is_sorted_by(|one, next| one > next))));
    put("negligible", Measured::mean(&found.of(by_load[GAPS.len() - 1], P95)));
}

/// Figs 15 and 16.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig15.claims.toml"));
    let jobs = with_seeds(&GAPS, SEEDS);
    let found =
        spread(&jobs, watch, |&(gap, seed), _| Ok(errors(effort, gap, intervals_of(gap), seed)))?;
    let mut plots = Vec::new();
    for (index, ((_, reading), of)) in READINGS.into_iter().zip(["", ", of all flows"]).enumerate()
    {
        let found = Errors(found.iter().map(|readings| readings[index].clone()).collect());
        measure(&mut sheet, &found, reading);
        let interval = Axis::linear("From computation to computation", Unit::Seconds);
        let gap = Axis::log("Time from flow to flow", Unit::Seconds);
        let by_interval = INTERVALS.map(|interval| (USUAL_GAP, interval));
        let by_load = GAPS.map(|gap| (gap, USUAL));
        let of_interval = |(_, interval): Point| interval as f64 * 1e-6;
        plots.push(found.plot(&format!("Fig. 15{of}"), &by_interval, interval, of_interval));
        plots
            .push(found.plot(&format!("Fig. 16{of}"), &by_load, gap, |(gap, _)| gap as f64 * 1e-9));
    }
    let text = "Flows without packets: each sends at the rate that it was last assigned, before \
                its first at that of a link. Rates are computed of flows that have lasted an \
                interval, or of all. Compared are the flows that some computation considered, by \
                the mean of the rates they were assigned.";
    Ok(findings("Rates against those of every event", text, vec![Block::Plots(plots)], sheet))
}

/// Of each run: flows that a computation considers, the median over computations, by microseconds of
/// the interval, or the square of them. §3.3.1: of N flows and L links a computation takes O(NL + N²): one or the other
/// stands for the share of its time that a processor computes, on whichever machine.
fn work(runs: &[Vec<Computation>], interval: u64, power: i32) -> Vec<f64> {
    let median = |run: &Vec<Computation>| {
        let flows: Vec<f64> = run.iter().map(|one| one.flows as f64).collect();
        quantile(&flows, 0.5).powi(power) / interval as f64
    };
    runs.iter().map(median).collect()
}

/// The computations of runs of so many flows, seed by seed, for each of `intervals`.
fn computations(
    intervals: &[u64],
    count: usize,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vec<Vec<Computation>>>, Failure> {
    let found = spread(&with_seeds(intervals, COST_SEEDS), watch, |&(interval, seed), _| {
        let network = rack();
        let coming = arrivals(&network, count, USUAL_GAP as f64 * 1e-9, seed);
        // Flows that drag on after the last arrival are no part of the load.
        let (_, all) = assign(&network, &coming, When::Lasting(interval as f64 * 1e-6));
        let during = count as u64 * USUAL_GAP / (interval * 1_000);
        Ok(all.into_iter().take(during as usize).collect::<Vec<_>>())
    })?;
    Ok(found.chunks(COST_SEEDS as usize).map(<[_]>::to_vec).collect())
}

/// What computations at 100 µs take of a processor, by what those at 500 µs take.
fn overhead_by_interval(
    often: &[Vec<Computation>],
    usual: &[Vec<Computation>],
    power: i32,
) -> Measured {
    let (often, usual) = (work(often, INTERVALS[0], power), work(usual, USUAL, power));
    Measured::mean(
        &often.iter().zip(&usual).map(|(often, usual)| often / usual).collect::<Vec<_>>(),
    )
}

/// Fig. 8.
pub(super) fn cost(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig8.claims.toml"));
    let count = racks::flows(USUAL_GAP) as usize;
    let found = computations(&INTERVALS, count, &mut part(watch, 0.0..0.5))?;
    let longer = flows(effort, USUAL_GAP);
    let longer = computations(&[INTERVALS[0], USUAL], longer, &mut part(watch, 0.5..1.0))?;
    let [often, _, usual, _] = &found[..] else { unreachable!("one for each interval") };
    sheet.measure("fig8.ratio", overhead_by_interval(often, usual, 1));
    sheet.measure("fig8.ratio-square", overhead_by_interval(often, usual, 2));
    sheet.measure("fig8.ratio-longer", overhead_by_interval(&longer[0], &longer[1], 1));
    let mut considered = Vec::new();
    let mut rows = Vec::new();
    for (interval, of_seeds) in INTERVALS.iter().zip(&found) {
        let all: Vec<_> = of_seeds.iter().flatten().collect();
        let flows = all.iter().map(|one| one.flows as f64).sum::<f64>() / all.len() as f64;
        considered.push(flows);
        let rho = *interval as f64 * 1e-6;
        let overhead: Vec<f64> = all.iter().map(|one| one.seconds / rho).collect();
        rows.push(vec![
            json!(rho),
            json!(all.len()),
            json!(flows),
            json!(quantile(&overhead, 0.5)),
            json!(quantile(&overhead, 0.99)),
        ]);
    }
    let words: Vec<_> = considered.iter().map(|&flows| Unit::Count.format(flows)).collect();
    let falls = Shape::of(considered.is_sorted_by(|before, after| before >= after));
    sheet.measure("fig8.flows", Measured::shape(words.join(", "), falls));
    let columns = [
        ("interval", "From computation to computation", Unit::Seconds),
        ("computations", "Computations", Unit::Count),
        ("flows", "Flows considered, mean", Unit::Count),
        ("median", "Time of a computation by the interval, median", Unit::Share),
        ("p99", "p99", Unit::Share),
    ];
    let blocks = vec![table("Time of computations on this machine", &columns, rows)];
    let text = "Rates of all flows that have lasted for an interval, computed for the whole rack \
                while flows of the workload come and go, one a microsecond. Times are of this \
                machine, with whatever else it does; the paper's are of a Xeon E5-2665 at 2.4 GHz \
                and an Atom D510.";
    Ok(findings("Time to compute rates", text, blocks, sheet))
}
