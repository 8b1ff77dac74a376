//! What each routing protocol can carry under each pattern of traffic (§2.2.1, Fig. 2).

use r2c2::routing::{Network, Protocol, Shares};
use r2c2::throughput::{Pattern, throughput, throughput_min};
use rack::topology::{Shape, Torus};
use report::Unit;
use report::page::Block;
use serde_json::json;

use crate::claims::{Measured, Sheet};
use crate::drawing::{findings, table};
use crate::{Effort, Failure, Findings, Watch};

/// A protocol of the figure: the word for it in claims.
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

/// The words for patterns, in the order of [`Pattern::ALL`], and for the worst of all.
pub(super) const PATTERNS: [&str; 6] =
    ["nearest", "uniform", "complement", "transpose", "tornado", "worst"];

/// The figure's network.
pub(super) fn square() -> Torus {
    Torus { dimensions: vec![8, 8], ..Torus::default() }
}

/// Fig. 2.
pub(super) fn run(_: Effort, _: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig2.claims.toml"));
    let network = Network::new(&Shape::Torus(square())).expect("a torus of 8 by 8 is sound");
    let mut rows = Vec::new();
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
    }
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
