//! What each routing protocol carries under each pattern of traffic, by packets (§2.2.1, Fig. 2).
//!
//! Every node has the same number of bytes for the others, as the pattern divides them, and R2C2 gives
//! all flows max-min fair rates of the whole links. The flows over the busiest link are then the
//! slowest: nobody else's end changes their rate, so they last as long as that link is busy, and what
//! they get is what every node can send at once.
//!
//! Leaves out what a node sends to itself, which is part of the patterns.

use kernel::Bytes;
use r2c2::config::{Class, Config};
use r2c2::routing::{Network, Protocol, Shares};
use r2c2::throughput::{Pattern, Traffic, capacity, throughput, throughput_min, worst_case};
use r2c2::wire::data::HEADER_BYTES;
use rack::topology::{Shape, Torus};
use report::Unit;
use report::page::Block;
use serde_json::{Value, json};

use super::capacity::{PATTERNS, square};
use super::slowest;
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// The figure's protocols, and ROMM, whose values it prints for spraying (see `fig2`).
const PROTOCOLS: [(&str, Protocol); 5] = [
    ("rps", Protocol::Rps),
    ("dtr", Protocol::DimensionOrder),
    ("vlb", Protocol::Valiant),
    ("wlb", Protocol::Weighted),
    ("romm", Protocol::Romm),
];

/// What a node sends (our choice: enough for a link's share of randomly routed packets to come near
/// its mean).
fn bytes(effort: Effort) -> f64 {
    match effort {
        Effort::Quick => 16e6,
        Effort::Full => 160e6,
    }
}

/// A protocol and a pattern; none stands for the worst permutation.
type Case = (Protocol, Option<Pattern>);

/// Who sends to whom.
fn traffic(network: &Network, (protocol, pattern): Case) -> Traffic {
    let grid = network.grid().expect("a torus is a grid");
    match pattern {
        Some(pattern) => pattern.traffic(grid).expect("every pattern suits a square"),
        None => Traffic::of_map(&worst_case(&shares(network, protocol)).destinations),
    }
}

fn shares(network: &Network, protocol: Protocol) -> Shares {
    Shares::new(network, protocol).expect("every protocol suits a torus")
}

/// What nodes can send by packets, in parts of the capacity.
fn carry(
    torus: &Torus,
    case: Case,
    bytes: f64,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<f64, Failure> {
    let shape = Shape::Torus(torus.clone());
    let network = Network::new(&shape).expect("a torus is sound");
    let config = Config {
        topology: shape,
        classes: vec![Class { protocol: case.0, ..Class::default() }],
        headroom: 0.0,
        ..Config::default()
    };
    let payload = config.mtu.get() - HEADER_BYTES as u64;
    let plan = config.plan().expect("the configuration is sound");
    let mut rack = r2c2::Rack::new(plan, seed);
    let traffic = traffic(&network, case);
    let pairs: Vec<_> = traffic.pairs().filter(|(src, dst, _)| src != dst).collect();
    // All parts of a pattern are alike.
    let part = pairs.last().map_or(1.0, |&(_, _, part)| part);
    let size = (bytes * part) as u64;
    let ends = pairs.into_iter().map(|(src, dst, _)| (src, dst));
    let fct = slowest::carry(&mut rack, ends, Bytes::new(size), pulse)?;
    let wire = size + size.div_ceil(payload) * HEADER_BYTES as u64;
    let sent = 8.0 * wire as f64 / fct.as_seconds() / part;
    let grid = network.grid().expect("a torus is a grid");
    Ok(sent / torus.rate.as_bps() as f64 / capacity(grid))
}

/// Fig. 2 by packets.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/saturation.claims.toml"));
    let patterns = || Pattern::ALL.map(Some).into_iter().chain([None]);
    let cases: Vec<Case> = PROTOCOLS
        .iter()
        .flat_map(|&(_, protocol)| patterns().map(move |pattern| (protocol, pattern)))
        .collect();
    let jobs = with_seeds(&cases, effort.seeds_of_longest());
    let torus = square();
    let found = spread(&jobs, watch, |&(case, seed), pulse| {
        carry(&torus, case, bytes(effort), seed, pulse)
    })?;
    let network = Network::new(&Shape::Torus(torus)).expect("a torus of 8 by 8 is sound");
    let by_loads = |(protocol, pattern): Case| {
        let shares = shares(&network, protocol);
        let of = pattern.map_or_else(|| throughput_min(&shares), |one| throughput(&shares, one));
        of.expect("every pattern suits a square")
    };
    let of_cases: Vec<&[f64]> = found.chunks(effort.seeds_of_longest() as usize).collect();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for (index, (word, protocol)) in PROTOCOLS.into_iter().enumerate() {
        let range = index * PATTERNS.len()..(index + 1) * PATTERNS.len();
        let (cases, found) = (&cases[range.clone()], &of_cases[range]);
        for (pattern, values) in PATTERNS.iter().zip(found) {
            let id = format!("saturation.{word}-{pattern}");
            if sheet.published().iter().any(|claim| claim.id == id) {
                sheet.measure(&id, Measured::mean(values));
            }
        }
        let row = |how: &str, values: Vec<f64>| {
            let head = [json!(protocol.name()), json!(how)].into_iter();
            head.chain(values.into_iter().map(|value| json!(value))).collect()
        };
        rows.push(row("packets", found.iter().map(|values| Spread::of(values).mean).collect()));
        rows.push(row("loads", cases.iter().map(|&case| by_loads(case)).collect()));
    }
    let columns = [
        ("protocol", "Protocol", Unit::Count),
        ("by", "By", Unit::Count),
        ("nearest", "Nearest neighbour", Unit::Ratio),
        ("uniform", "Uniform", Unit::Ratio),
        ("complement", "Bit complement", Unit::Ratio),
        ("transpose", "Transpose", Unit::Ratio),
        ("tornado", "Tornado", Unit::Ratio),
        ("worst", "Worst case", Unit::Ratio),
    ];
    let blocks: Vec<Block> = vec![table("Throughput in parts of the capacity", &columns, rows)];
    let text = format!(
        "An 8 x 8 torus under R2C2 without headroom. Every node has {} for the others, and the \
         slowest flow says what all could send at once: means over seeds, beside what the loads of \
         links say. What a node sends to itself is left out.",
        Unit::Bytes.format(bytes(effort))
    );
    Ok(findings("Throughput of routing protocols, by packets", &text, blocks, sheet))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::spread::spread;

    /// 4 x 4 nodes: loads are the oracle. Nobody sends to itself in these patterns.
    #[test]
    fn the_slowest_flow_gets_what_the_busiest_link_leaves_it() {
        let torus = Torus { dimensions: vec![4, 4], ..Torus::default() };
        let network = Network::new(&Shape::Torus(torus.clone())).unwrap();
        let cases = PROTOCOLS.iter().flat_map(|&(_, protocol)| {
            [Pattern::NearestNeighbour, Pattern::BitComplement, Pattern::Tornado]
                .map(|pattern| (protocol, pattern))
        });
        let cases: Vec<_> = cases.collect();
        let mut watch = |_: f64, _: &str| ControlFlow::Continue(());
        let found = spread(&cases, &mut watch, |&(protocol, pattern), pulse| {
            carry(&torus, (protocol, Some(pattern)), 4e6, 1, pulse)
        });
        for ((protocol, pattern), ours) in cases.into_iter().zip(found.unwrap()) {
            let loads = throughput(&shares(&network, protocol), pattern).unwrap();
            let name = protocol.name();
            // Links get more or less than the mean of packets that choose their way at random.
            assert!(ours > 0.9 * loads, "{name}: {ours}, by loads {loads}");
            // Valiant's packets end where they first meet their destination, be it before the waypoint.
            let is_whole = protocol != Protocol::Valiant;
            assert!(!is_whole || ours < 1.02 * loads, "{name}: {ours}, by loads {loads}");
        }
    }
}
