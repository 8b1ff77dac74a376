//! How often rates have to be computed, with packets: what each flow gets beside what it gets where
//! rates are computed at every event (§5.2, Figs 15 and 16).
//!
//! The paper compares the rates that flows were assigned; here it is what they were served at, their
//! size by their completion time, which queues and the draw of routes change too.

use std::collections::BTreeMap;

use kernel::Bytes;
use rack::FlowId;
use rack::results::SHORT_MAX;
use report::Unit;
use report::page::{Axis, Block};
use serde_json::json;

use super::racks::{Case, Rack};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::runs::{Delivered, quantile};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// ρ in microseconds (the paper names 100 µs, 500 µs and 1 ms), and that of Fig. 16's place in it.
const INTERVALS: [u64; 3] = [100, 500, 1_000];
const USUAL: usize = 1;
/// τ in nanoseconds; Fig. 15 has the first. At 100 ns rates at every event are out of reach: 512 nodes
/// would compute those of some hundred flows twenty times a microsecond.
const GAPS: [u64; 3] = [1_000, 10_000, 100_000];

/// The words for [`Errors`]' figures in claims.
const FIGURES: [&str; 4] = ["median-all", "p95-all", "median", "p95"];

/// Flows of a run.
fn flows(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 5_000,
        Effort::Full => 30_000,
    }
}

/// Each flow's size, and what it was served at in bit/s.
type Served = BTreeMap<FlowId, (Bytes, f64)>;

fn served(case: &Case, seed: u64, pulse: &mut Pulse<'_>) -> Result<Served, Failure> {
    let delivered = case.delivered(seed, pulse)?.flows;
    let of = |Delivered { flow, end }: &Delivered| {
        (flow.id, (flow.size, flow.size.bits() as f64 / (*end - flow.start).as_seconds()))
    };
    Ok(delivered.iter().map(of).collect())
}

/// Differences from rates at every event, in parts of these, for each of [`INTERVALS`]: median and 95th
/// percentile over all flows, and over those that are not short.
type Errors = [[f64; 4]; INTERVALS.len()];

fn errors(effort: Effort, gap: u64, seed: u64, pulse: &mut Pulse<'_>) -> Result<Errors, Failure> {
    let usual = Case { flows: flows(effort), ..Case::new(Rack::R2c2, gap) };
    let ideal = served(&Case { interval: 0, ..usual }, seed, pulse)?;
    let mut found = Errors::default();
    for (interval, found) in INTERVALS.into_iter().zip(&mut found) {
        let ours = served(&Case { interval, ..usual }, seed, pulse)?;
        let over = |size_min: Bytes| -> Vec<f64> {
            let ideal = ideal.iter().filter(|(_, (size, _))| *size >= size_min);
            let both = ideal.filter_map(|(flow, (_, ideal))| Some((ours.get(flow)?.1, ideal)));
            both.map(|(ours, ideal)| (ours - ideal).abs() / ideal).collect()
        };
        let (all, large) = (over(Bytes::ZERO), over(SHORT_MAX));
        *found = [(&all, 0.5), (&all, 0.95), (&large, 0.5), (&large, 0.95)]
            .map(|(errors, share)| quantile(errors, share));
    }
    Ok(found)
}

/// Figs 15 and 16 with packets.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/served.claims.toml"));
    let jobs = with_seeds(&GAPS, effort.seeds());
    let found = spread(&jobs, watch, |&(gap, seed), pulse| errors(effort, gap, seed, pulse))?;
    let of_gaps: Vec<&[Errors]> = found.chunks(effort.seeds() as usize).collect();
    let of = |gap: usize, interval: usize, figure: usize| -> Vec<f64> {
        of_gaps[gap].iter().map(|errors| errors[interval][figure]).collect()
    };
    let mut put = |word: &str, measured| sheet.measure(&format!("served.{word}"), measured);
    for (word, interval) in [("500us", 1), ("1ms", 2)] {
        for (figure, name) in FIGURES.into_iter().enumerate() {
            put(&format!("{name}-{word}"), Measured::mean(&of(0, interval, figure)));
        }
    }
    let p95s = |points: Vec<[usize; 2]>| -> (Vec<f64>, String) {
        let means = points.iter().map(|&[gap, interval]| Spread::of(&of(gap, interval, 3)).mean);
        let means: Vec<f64> = means.collect();
        let words: Vec<_> = means.iter().map(|&mean| Unit::Share.format(mean)).collect();
        (means, words.join(", "))
    };
    let (means, words) = p95s((0..INTERVALS.len()).map(|interval| [0, interval]).collect());
    put("rises", Measured::shape(words, Shape::of(means[0] < means[INTERVALS.len() - 1])));
    let (means, words) = p95s((0..GAPS.len()).map(|gap| [gap, USUAL]).collect());
    put("load", Measured::shape(words, Shape::of(means[GAPS.len() - 1] < means[0])));
    put("negligible", Measured::mean(&of(GAPS.len() - 1, USUAL, 3)));
    let line = |(figure, name): (usize, &str)| {
        let points = INTERVALS
            .iter()
            .enumerate()
            .map(|(index, &interval)| (interval as f64 * 1e-6, Spread::of(&of(0, index, figure))));
        curve(name, &points.collect::<Vec<_>>())
    };
    let names =
        ["median, all flows", "p95, all flows", "median, 100 KB or more", "p95, 100 KB or more"];
    let series = names.into_iter().enumerate().map(line).collect();
    let x = Axis::linear("From computation to computation", Unit::Seconds);
    let y = Axis::linear("Difference from the rate under every event", Unit::Share);
    let figure = plot("Fig. 15", "Bars: least and most over the seeds.", x, y, series);
    let columns = [
        ("gap", "Time from flow to flow", Unit::Seconds),
        ("interval", "From computation to computation", Unit::Seconds),
        ("median", "Difference of all flows, median", Unit::Share),
        ("p95", "p95", Unit::Share),
        ("median_large", "100 KB or more, median", Unit::Share),
        ("p95_large", "p95", Unit::Share),
    ];
    let row = |gap: usize, interval: usize| {
        let (gap_s, interval_s) = (GAPS[gap] as f64 * 1e-9, INTERVALS[interval] as f64 * 1e-6);
        let means = (0..FIGURES.len()).map(|at| json!(Spread::of(&of(gap, interval, at)).mean));
        [json!(gap_s), json!(interval_s)].into_iter().chain(means).collect()
    };
    let places = (0..GAPS.len()).flat_map(|gap| (0..INTERVALS.len()).map(move |at| (gap, at)));
    let rows = places.map(|(gap, interval)| row(gap, interval)).collect();
    let blocks = vec![Block::Plots(vec![figure]), table("Means over seeds", &columns, rows)];
    let text = format!(
        "{} flows a run through the rack of Figs 10 and 11, whose nodes compute now and then, beside \
         one whose nodes compute at every event that they hear of. Compared are flows' sizes over \
         their completion times.",
        Unit::Count.format(flows(effort) as f64)
    );
    Ok(findings("Rates against those of every event, with packets", &text, blocks, sheet))
}
