//! How exact the clocks of a Clique are (App. B; X24), and what the death of the primary does to them.

use aquila::config::Link;
use aquila::timesync::Settings;
use aquila::timesync::measure::{Accuracy, Depth, accuracy, reforming_bound};
use aquila::topology::{Fibres, Shape, Topology};
use kernel::Span;
use report::Unit;
use serde_json::{Value, json};

use super::SEEDS;
use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::spread::{spread_anew, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// For how long clocks are measured, before and after the primary's death. Unit: ms.
const fn millis(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 5,
        Effort::Full => 100,
    }
}

/// The largest of each depth over seeds.
fn worst(found: &[Accuracy], depths: impl Fn(&Accuracy) -> &[Depth]) -> Vec<Depth> {
    let count = found.iter().map(|one| depths(one).len()).max().unwrap_or(0);
    let of = |depth: usize| {
        let all = found.iter().filter_map(|one| depths(one).get(depth));
        all.fold(Depth::default(), |worst, one| Depth {
            nodes: worst.nodes.max(one.nodes),
            corrected: worst.corrected.max(one.corrected),
            largest: worst.largest.max(one.largest),
            bound: worst.bound.max(one.bound),
        })
    };
    (0..count).map(of).collect()
}

fn rows(when: &str, depths: &[Depth]) -> Vec<Vec<Value>> {
    let seconds = |span: Span| json!(span.as_seconds());
    let row = |(number, depth): (usize, &Depth)| {
        let Depth { nodes, corrected, largest, bound } = *depth;
        let (corrected, largest, bound) = (seconds(corrected), seconds(largest), seconds(bound));
        vec![json!(when), json!(number), json!(nodes), corrected, largest, bound]
    };
    depths.iter().enumerate().map(row).collect()
}

/// Errors as shares of what they may be: the largest of all depths.
fn of_bound(depths: &[Depth]) -> f64 {
    let below = depths.iter().skip(1);
    below.map(|depth| depth.largest.as_seconds() / depth.bound.as_seconds()).fold(0.0, f64::max)
}

/// Clocks.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/clocks.claims.toml"));
    let topology = Topology::new(&Shape::FULL, Fibres::Grid).expect("the paper's Clique");
    let (link, settings) = (Link::default(), Settings::default());
    let duration = Span::from_us(1_000 * millis(effort));
    let found = spread_anew(&with_seeds(&[()], SEEDS), watch, |&((), seed), _| {
        let found = accuracy(&topology, &link, &settings, (duration, true), seed);
        found.ok_or_else(|| Failure::Model(format!("clocks are not settled within {duration}")))
    })?;
    let before = worst(&found, |one| &one.depths);
    let after = worst(&found, |one| &one.depths_after);
    sheet.measure("clocks.bound", Measured::one(of_bound(&before)));
    sheet.measure("clocks.bound-after", Measured::one(of_bound(&after)));
    let each = |what: fn(&Accuracy) -> Option<Span>| -> Vec<f64> {
        found.iter().filter_map(|one| what(one).map(Span::as_seconds)).collect()
    };
    let (reformed, holdover) = (each(|one| one.reformed), each(|one| one.holdover));
    let height = before.len().max(after.len()) as u8;
    let bound = reforming_bound(&topology, &link, &settings, height).as_seconds();
    let slowest = reformed.iter().copied().fold(0.0, f64::max);
    sheet.measure("clocks.reformed", Measured::one(slowest / bound));
    // Two clocks drift apart by twice what each may be off, from the error that they had.
    let drift = 2e-6 * f64::from(settings.parts_per_million);
    let last = before.last().map_or(0.0, |depth| depth.bound.as_seconds());
    let share = reformed.iter().zip(&holdover).map(|(time, off)| off / (last + drift * time));
    sheet.measure("clocks.holdover", Measured::one(share.fold(0.0, f64::max)));
    let columns = [
        ("when", "", Unit::Count),
        ("depth", "Depth in the tree", Unit::Count),
        ("tins", "TiNs", Unit::Count),
        ("corrected", "Largest error behind a set", Unit::Seconds),
        ("largest", "Largest error", Unit::Seconds),
        ("bound", "Bound", Unit::Seconds),
    ];
    let mut depths = rows("the first primary", &before);
    depths.extend(rows("the second, after its death", &after));
    let most = |all: &[f64]| all.iter().copied().fold(0.0, f64::max);
    let times = vec![
        vec![
            json!("from cold until all follow the primary"),
            json!(most(&each(|o| Some(o.settled)))),
        ],
        vec![json!("from its death until all follow another"), json!(slowest)],
        vec![json!("no later than"), json!(bound)],
        vec![json!("how far a clock was off the dead one's by then"), json!(most(&holdover))],
    ];
    let heads = [("what", "", Unit::Count), ("time", "Most", Unit::Seconds)];
    let blocks = vec![
        table("The largest over seeds", &columns, depths),
        table("The primary dies", &heads, times),
    ];
    let text = "Oscillators of a full Clique's 576 TiNs, each off by up to 100 millionths and out of phase; a set every \
                100 µs along a tree in breadth, which waits up to 128 ns for the wire at each TiN. The bound is 2.5 ns \
                for writing a time and taking it, 1.25 for rounding the measured delay, a link; and what clocks drift \
                apart from one set to the next (I90).";
    Ok(findings("One clock for all", text, blocks, sheet))
}
