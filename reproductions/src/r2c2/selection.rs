//! The search for better routing beside all flows alike (§5.2, Fig. 18).

use kernel::Stream;
use r2c2::rates::{Routed, Terms, Waterfill, Whose, capacities};
use r2c2::routing::{Network, Protocol};
use r2c2::selection::{LongFlow, SearchPlan, Seeds, Utility, search};
use rack::NodeId;
use report::Unit;
use report::page::{Axis, Block};
use serde::{Deserialize, Serialize};

use super::assigned::rack;
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// §5.2: headroom.
const HEADROOM: f64 = 0.05;
/// Hundredths of the nodes that send (our choice: the paper's values are in the figure alone).
const LOADS: [u32; 5] = [2, 10, 25, 50, 100];
/// "High load" of the paper, in hundredths.
const HIGH: u32 = 50;

/// Generations of a search (the paper: until the time is over or nothing is gained).
fn generations(effort: Effort) -> u32 {
    match effort {
        Effort::Quick => 8,
        Effort::Full => 1_000,
    }
}

/// So many flows, each from and to a node of its own (§5.2).
fn permutation(nodes: u32, count: usize, draw: &mut Stream) -> Vec<LongFlow> {
    let mut ends: [Vec<u32>; 2] = [(0..nodes).collect(), (0..nodes).collect()];
    loop {
        ends.iter_mut().for_each(|ends| draw.shuffle(ends));
        if (0..count).all(|at| ends[0][at] != ends[1][at]) {
            break;
        }
    }
    let flow = |at: usize| LongFlow {
        place: at as u32,
        source: NodeId::new(ends[0][at]),
        destination: NodeId::new(ends[1][at]),
        protocol: Protocol::Rps,
        terms: Terms::default(),
        tenant: 0,
    };
    (0..count).map(flow).collect()
}

/// The sums of all flows' rates, in bit/s.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sums {
    spraying: f64,
    valiant: f64,
    random: f64,
    /// Under the search from the current choice and random ones.
    adaptive: f64,
    /// Under the search from all flows alike, either way, besides.
    seeded: f64,
}

impl Sums {
    /// What the search gains on each of the others, and what it gains if it also starts from all
    /// flows alike.
    fn gains(&self) -> [[f64; 3]; 2] {
        [self.adaptive, self.seeded]
            .map(|found| [self.spraying, self.valiant, self.random].map(|other| found / other))
    }
}

fn measure(network: &Network, load: u32, effort: Effort, seed: u64) -> Sums {
    let mut draw = Stream::new(seed, "reproductions/r2c2/fig18", load.into());
    let nodes = network.nodes();
    let flows = permutation(nodes, (nodes * load / 100) as usize, &mut draw);
    let both = [Protocol::Rps, Protocol::Valiant];
    let routed = Routed::new(network, &both).expect("both suit any graph");
    let mut rates = Waterfill::new(routed, capacities(network.topology(), HEADROOM));
    let mut sum = |protocol: &mut dyn FnMut() -> Protocol| -> f64 {
        rates.clear();
        for flow in &flows {
            rates.join(flow.place, flow.course(protocol()), flow.terms);
        }
        rates.fill(Whose::All);
        flows.iter().map(|flow| rates.rate(flow.place)).sum()
    };
    let spraying = sum(&mut || Protocol::Rps);
    let valiant = sum(&mut || Protocol::Valiant);
    let random = sum(&mut || both[draw.below(2) as usize]);
    let mut find = |seeds: Seeds, draw: &mut Stream| {
        let generations_max = generations(effort);
        let plan = SearchPlan { generations_max, seeds, ..SearchPlan::default() };
        rates.clear();
        search(&mut rates, &flows, Utility::Aggregate, &plan, draw).after()
    };
    let seeded = find(Seeds::CurrentAndUniform, &mut draw);
    let mut draw = Stream::new(seed, "reproductions/r2c2/fig18/current", load.into());
    let adaptive = find(Seeds::Current, &mut draw);
    Sums { spraying, valiant, random, adaptive, seeded }
}

/// Fig. 18.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../r2c2/fig18.claims.toml"));
    let jobs = with_seeds(&LOADS, effort.seeds());
    let found = spread(&jobs, watch, |&(load, seed), _| Ok(measure(&rack(), load, effort, seed)))?;
    let grouped: Vec<&[Sums]> = found.chunks(effort.seeds() as usize).collect();
    let gains = |reading: usize, index: usize| -> Vec<Vec<f64>> {
        let of = |sums: &&[Sums]| sums.iter().map(|sums| sums.gains()[reading][index]).collect();
        grouped.iter().map(of).collect()
    };
    for (place, reading) in ["", "-seeded"].iter().enumerate() {
        for (index, word) in ["spraying", "valiant", "random"].iter().enumerate() {
            let all: Vec<f64> = gains(place, index).into_iter().flatten().collect();
            sheet.measure(&format!("fig18.{word}{reading}"), Measured::smallest(&all));
        }
    }
    let by_load = |is_high: fn(u32) -> bool| -> Vec<f64> {
        let loads = LOADS.iter().zip(&grouped).filter(|(load, _)| is_high(**load));
        loads
            .map(|(_, all)| {
                let ratios: Vec<f64> = all.iter().map(|one| one.spraying / one.valiant).collect();
                Spread::of(&ratios).mean
            })
            .collect()
    };
    let words = |ratios: &[f64]| {
        let words: Vec<_> = ratios.iter().map(|&ratio| Unit::Ratio.format(ratio)).collect();
        format!("spraying by Valiant {}", words.join(", "))
    };
    let high = by_load(|load| load >= HIGH);
    let shape = Shape::of(high.iter().all(|&ratio| ratio > 1.0));
    sheet.measure("fig18.high", Measured::shape(words(&high), shape));
    // The lowest two.
    let low = by_load(|load| load <= LOADS[1]);
    let shape = Shape::of(low.iter().all(|&ratio| ratio < 1.0));
    sheet.measure("fig18.low", Measured::shape(words(&low), shape));
    let line = |(index, name): (usize, &str)| {
        let points = LOADS.iter().zip(gains(0, index));
        let points = points.map(|(&load, gains)| (f64::from(load) / 100.0, Spread::of(&gains)));
        curve(name, &points.collect::<Vec<_>>())
    };
    let names = ["of spraying", "of Valiant", "of a random choice"];
    let series = names.into_iter().enumerate().map(line).collect();
    let x = Axis::linear("Part of nodes that send", Unit::Share);
    let y = Axis::linear("Sum of rates", Unit::Ratio);
    let figure = plot("Fig. 18", "Bars: least and most over the seeds.", x, y, series);
    let text = "512 nodes in a 3D torus, of which a part each send one endless flow to a node of \
                its own. Rates by water-filling with 5 % of headroom. The search has 100 genotypes \
                and changes a gene with probability 0.01; the first are spraying for all, which new \
                flows use, and random ones.";
    Ok(findings("Search for routing", text, vec![Block::Plots(vec![figure])], sheet))
}
