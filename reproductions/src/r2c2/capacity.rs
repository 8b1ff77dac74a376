//! What each routing protocol can carry under each pattern of traffic (§2.2.1, Fig. 2).

use r2c2::routing::{Network, Protocol, Shares};
use r2c2::throughput::{Pattern, Traffic, capacity, load_max, loads, throughput, throughput_min};
use rack::topology::{Shape, Torus};
use report::Unit;
use report::page::Block;
use serde_json::json;

use super::ties::{Over, transposed};
use crate::claims::{Measured, Shape as Agreement, Sheet};
use crate::drawing::{findings, table};
use crate::{Effort, Failure, Findings, Watch};

/// A protocol and the word for it in claims: first the figure's, then other readings of these.
const PROTOCOLS: [(&str, Protocol); 8] = [
    ("rps", Protocol::Rps),
    ("dtr", Protocol::DimensionOrder),
    ("vlb", Protocol::Valiant),
    ("wlb", Protocol::Weighted),
    ("romm", Protocol::Romm),
    ("up", Protocol::DimensionOrderUp),
    ("hop", Protocol::RpsByHop),
    ("threshold", Protocol::WeightedThreshold),
];

/// How many of them the figure has.
const FIGURE: usize = 4;

/// The words for patterns, in the order of [`Pattern::ALL`], and for the worst of all.
pub(super) const PATTERNS: [&str; 6] =
    ["nearest", "uniform", "complement", "transpose", "tornado", "worst"];

/// The figure's network.
pub(super) fn square() -> Torus {
    Torus { dimensions: vec![8, 8], ..Torus::default() }
}

/// In how many patterns, the worst case among them, a protocol is best at most. Of each protocol:
/// its throughput under each pattern.
fn none_best(found: &[Vec<f64>]) -> Measured {
    let best = |pattern: usize| found.iter().map(|of| of[pattern]).fold(0.0, f64::max);
    // Less than a millionth is the rounding of sums.
    let is_best = |of: &[f64], pattern: usize| of[pattern] > best(pattern) * (1.0 - 1e-6);
    let counts = found.iter().map(|of| (0..of.len()).filter(|&at| is_best(of, at)).count());
    let most = counts.max().unwrap_or(0);
    let words = format!("one is best in {most} of {} at most", PATTERNS.len());
    Measured::shape(words, Agreement::of(most < PATTERNS.len()))
}

/// Valiant's throughput under the transpose where nodes of the diagonal, which would send to
/// themselves over waypoints, do not.
fn silent_transpose(network: &Network) -> f64 {
    let shares = Shares::new(network, Protocol::Valiant).expect("Valiant suits a torus");
    let grid = network.grid().expect("a torus is a grid");
    let traffic = Pattern::Transpose.traffic(grid).expect("a square can be transposed");
    let mut rows = vec![Vec::new(); network.nodes() as usize];
    for (src, dst, part) in traffic.pairs().filter(|(src, dst, _)| src != dst) {
        rows[src.index()].push((dst, part));
    }
    1.0 / load_max(&loads(&shares, &Traffic::of_rows(rows))) / capacity(grid)
}

/// Fig. 2.
pub(super) fn run(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig2.claims.toml"));
    let network = Network::new(&Shape::Torus(square())).expect("a torus of 8 by 8 is sound");
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for (word, protocol) in PROTOCOLS {
        let shares = Shares::new(&network, protocol).expect("every protocol suits a torus");
        let of = |pattern| throughput(&shares, pattern).expect("every pattern suits a square");
        let worst = throughput_min(&shares).expect("a torus has a capacity");
        let found: Vec<f64> =
            Pattern::ALL.into_iter().map(of).chain(std::iter::once(worst)).collect();
        for (pattern, &value) in PATTERNS.iter().zip(&found) {
            let id = format!("fig2.{word}-{pattern}");
            if sheet.published().iter().any(|claim| claim.id == id) {
                sheet.measure(&id, Measured::one(value));
            }
        }
        let cells = std::iter::once(json!(protocol.name()));
        rows.push(cells.chain(found.iter().map(|value| json!(value))).collect());
        all.push(found);
    }
    sheet.measure("fig2.none-best", none_best(&all[..FIGURE]));
    for (word, over) in [("romm", Over::Shortest), ("wlb", Over::Weighted)] {
        for (how, is_up) in [("up", [true, true]), ("up-one", [true, false])] {
            let id = format!("fig2.{how}-{word}-transpose");
            sheet.measure(&id, Measured::one(transposed(over, is_up)));
        }
    }
    sheet.measure("fig2.silent-vlb-transpose", Measured::one(silent_transpose(&network)));
    let columns = [
        ("protocol", "Protocol", Unit::Count),
        ("nearest", "Nearest neighbour", Unit::Ratio),
        ("uniform", "Uniform", Unit::Ratio),
        ("complement", "Bit complement", Unit::Ratio),
        ("transpose", "Transpose", Unit::Ratio),
        ("tornado", "Tornado", Unit::Ratio),
        ("worst", "Worst case", Unit::Ratio),
    ];
    let blocks: Vec<Block> = vec![table("Throughput in parts of the capacity", &columns, rows)];
    let text = "An 8 x 8 torus. Every node sends at the same rate; the busiest link says how fast \
                that may be. Capacity is what uniform traffic could have at best. The worst case \
                is the permutation that loads a link the most, found by matching.";
    Ok(findings("Throughput of routing protocols", text, blocks, sheet))
}
