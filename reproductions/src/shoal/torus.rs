//! Shoal beside a direct-connect rack: a 3D torus under R2C2 (§7.3, "Baseline 1").

use report::Unit;
use report::page::{Axis, Block};
use serde_json::{Value, json};

use super::beside::mean;
use super::racks::{Carried, goodput_quotients, quotients};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::runs::{Collected, ScenarioFile, run_nth};
use crate::spread::spread;
use crate::{Effort, Failure, Findings, Watch};

/// A figure of Shoal over that of the other rack, seed by seed.
type Quotients = fn(&Pair) -> Vec<f64>;

const TORUS: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/torus.toml",
    text: include_str!("../../shoal/torus.toml"),
};

/// Loads of 50 Gbps a node that the torus can carry (our choice: the paper gives none): packets go over six links on
/// average, so that a node's six, 100 Gbps together, leave it 16.7 Gbps, a third of load 1.
const LOADS: [f64; 2] = [0.1, 0.25];
/// Loads that it cannot carry: its queues grow for as long as flows come.
const TOO_MUCH: [f64; 2] = [0.5, 1.0];
/// The load at which other readings are looked at.
const LOOKED_AT: f64 = 0.25;
/// How many times as many flows a longer run has.
const LONGER: u64 = 2;
/// Seeds of the claims' runs (our choice).
const fn seeds(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => effort.seeds_of_longest(),
        Effort::Full => 2,
    }
}

/// Flows of a run (our choice: the paper's million would take the torus hours).
const fn flows(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 20_000,
        Effort::Full => 60_000,
    }
}

/// How R2C2's flows get their rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rates {
    /// R2C2 §5.1: of flows alone that have lasted an interval; until then at the rate of one link.
    Lasting,
    /// The same; until then at so much, in Mbit/s.
    LastingFrom(u64),
    /// Of all flows, which start at the rate of one link.
    All,
    /// Of all flows, which start at their share by what their node knows.
    Share,
}

/// In the order of the scenario's `[[fabric]]` entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Network {
    Shoal,
    Torus(Rates),
}

/// A run but for its seed.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Point {
    rack: Network,
    load: f64,
    /// How many times as many flows.
    length: u64,
}

const fn at(rack: Network, load: f64) -> Point {
    Point { rack, load, length: 1 }
}

const BASE: Network = Network::Torus(Rates::Lasting);

impl Point {
    fn settings(&self, effort: Effort) -> Vec<(&'static str, Value)> {
        let mut settings = vec![
            ("workload.load", json!(self.load)),
            ("workload.flows", json!(flows(effort) * self.length)),
        ];
        let mut rates = |batch: &str, start: &str| {
            settings.push(("fabric.1.batch", json!(batch)));
            settings.push(("fabric.1.start", json!(start)));
        };
        match self.rack {
            Network::Shoal | Network::Torus(Rates::Lasting) => {}
            Network::Torus(Rates::LastingFrom(rate)) => {
                settings.push(("fabric.1.initial_rate", json!(format!("{rate} Mbps"))));
            }
            Network::Torus(Rates::All) => rates("all", "link"),
            Network::Torus(Rates::Share) => rates("all", "share"),
        }
        settings
    }
}

/// What the rows are about.
const QUOTIENTS: [(&str, Quotients); 2] = [("tail", Pair::tails), ("goodput", Pair::goodputs)];

/// A quarter of a link's 16.667 Gbps, in Mbit/s.
const QUARTER: u64 = 4_167;

/// Slower starts: in the names of rows and in words.
const STARTS: [(&str, &str, Rates); 2] = [
    ("quarter", "from a quarter of a link's rate", Rates::LastingFrom(QUARTER)),
    ("share", "rates of all, from their share on", Rates::Share),
];

/// The runs: those of the claims with all seeds, what stands beside them with one.
fn jobs(effort: Effort) -> Vec<(Point, u64)> {
    let racks = [Network::Shoal, BASE];
    let base = LOADS.iter().flat_map(|&load| racks.map(|rack| at(rack, load)));
    let base = base.flat_map(|point| (1..=seeds(effort)).map(move |seed| (point, seed)));
    let longer = racks.map(|rack| Point { length: LONGER, ..at(rack, LOOKED_AT) });
    let readings = [Rates::All, Rates::Share].map(|rates| at(Network::Torus(rates), LOOKED_AT));
    let too_much = TOO_MUCH.into_iter().flat_map(|load| racks.map(|rack| at(rack, load)));
    let beside = too_much.chain(longer).chain(readings);
    base.chain(beside.map(|point| (point, 1))).collect()
}

/// All runs.
struct Runs {
    jobs: Vec<(Point, u64)>,
    carried: Vec<Carried>,
}

impl Runs {
    fn carry(
        jobs: Vec<(Point, u64)>,
        effort: Effort,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Failure> {
        let carried = spread(&jobs, watch, |(point, seed), pulse| {
            let index = usize::from(point.rack != Network::Shoal);
            let mut delivered = Collected::default();
            let scenario = TORUS.with(&point.settings(effort), *seed)?;
            let result = run_nth(&scenario, index, &mut delivered, pulse)?;
            Ok(Carried::new(&result, &delivered))
        })?;
        Ok(Self { jobs, carried })
    }

    fn at(&self, point: Point) -> Vec<Carried> {
        let runs = self.jobs.iter().zip(&self.carried);
        runs.filter(|((known, _), _)| *known == point).map(|(_, run)| run.clone()).collect()
    }

    /// Shoal's and a torus's runs at a load, with so many times as many flows.
    fn pair(&self, name: &'static str, torus: Network, load: f64, length: u64) -> Pair {
        let of = |rack| self.at(Point { rack, load, length });
        let (mut shoal, mut torus) = (of(Network::Shoal), of(torus));
        let seeds = shoal.len().min(torus.len());
        shoal.truncate(seeds);
        torus.truncate(seeds);
        Pair { name, load, shoal, torus }
    }
}

/// What both racks made of a load, seed by seed: of those seeds with which both have run.
struct Pair {
    name: &'static str,
    load: f64,
    shoal: Vec<Carried>,
    torus: Vec<Carried>,
}

impl Pair {
    /// Above 1, Shoal is ahead.
    fn tails(&self) -> Vec<f64> {
        quotients(&self.torus, &self.shoal, |figures| figures.fct_p999)
    }

    /// The same, over the flows that both delivered.
    fn goodputs(&self) -> Vec<f64> {
        goodput_quotients(&self.torus, &self.shoal)
    }

    fn row(&self) -> Vec<Value> {
        let of = |racks: &[Carried], get: fn(&Carried) -> f64| {
            let values = racks.iter().map(get).filter(|value| !value.is_nan());
            mean(&values.collect::<Vec<_>>())
        };
        vec![
            json!(self.name),
            json!(self.load),
            of(&self.torus, |run| run.figures.realised),
            of(&self.shoal, |run| run.figures.fct_p999),
            of(&self.torus, |run| run.figures.fct_p999),
            mean(&self.tails()),
            of(&self.shoal, |run| run.figures.goodput),
            of(&self.torus, |run| run.figures.goodput),
            mean(&self.goodputs()),
        ]
    }
}

/// The mean over seeds at each load that has one.
fn means(pairs: &[Pair], get: Quotients) -> Vec<f64> {
    let values = pairs.iter().map(get).filter(|values| !values.is_empty());
    values.map(|values| Spread::of(&values).mean).collect()
}

/// "Baseline 1".
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/torus.claims.toml"));
    let runs = Runs::carry(jobs(effort), effort, watch)?;
    let pairs = LOADS.map(|load| runs.pair("rates of flows that have lasted", BASE, load, 1));
    let torus = Network::Torus;
    let too_much = |load| runs.pair("the same, beyond what it carries", BASE, load, 1);
    let reading = |name, rates, length| runs.pair(name, torus(rates), LOOKED_AT, length);
    let beside = [
        ("load-0.5", too_much(TOO_MUCH[0])),
        ("load-1", too_much(TOO_MUCH[1])),
        ("longer", reading("the same, twice as many flows", Rates::Lasting, LONGER)),
        ("all", reading("rates of all, from one link's on", Rates::All, 1)),
        ("share", reading("rates of all, from their share on", Rates::Share, 1)),
    ];
    for (word, get) in QUOTIENTS {
        let means = means(&pairs, get);
        sheet.measure(&format!("torus.{word}"), Measured::largest(&means));
        sheet.measure(&format!("torus.{word}-always"), Measured::smallest(&means));
        for (suffix, pair) in &beside {
            sheet.measure(&format!("torus.{word}-{suffix}"), Measured::mean(&get(pair)));
        }
    }
    let rows = pairs.iter().chain(beside.iter().map(|(_, pair)| pair)).map(Pair::row).collect();
    let text = "512 nodes of 100 Gbps in all, in Shoal's rack and in a 3D torus under R2C2 with the \
                settings of its paper, carrying the flows of Fig. 15. Six links lie between two nodes \
                of the torus on average, so that it carries 16.7 Gbps a node.";
    let blocks = vec![drawn(&pairs), numbers(rows)];
    Ok(findings("Beside a direct-connect rack", text, blocks, sheet))
}

/// "Baseline 1" where R2C2's flows start slower than at the rate of a link.
pub(super) fn starts(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/torus-start.claims.toml"));
    let tori = STARTS.map(|(_, _, rates)| Network::Torus(rates));
    let racks = [Network::Shoal].into_iter().chain(tori);
    let points = racks.flat_map(|rack| LOADS.map(|load| at(rack, load)));
    let jobs =
        points.flat_map(|point| (1..=seeds(effort)).map(move |seed| (point, seed))).collect();
    let runs = Runs::carry(jobs, effort, watch)?;
    let mut rows = Vec::new();
    for (suffix, name, rates) in STARTS {
        let pairs = LOADS.map(|load| runs.pair(name, Network::Torus(rates), load, 1));
        for (word, get) in QUOTIENTS {
            let means = means(&pairs, get);
            let mut put = |word: &str, measured| {
                sheet.measure(&format!("torus-start.{word}-{suffix}"), measured);
            };
            put(word, Measured::largest(&means));
            put(&format!("{word}-always"), Measured::smallest(&means));
        }
        rows.extend(pairs.iter().map(Pair::row));
    }
    let text = "Neither paper says how fast R2C2's flows go until their rates are computed. In the runs of Shoal beside a \
                direct-connect rack that is the rate of a link; here they start slower.";
    Ok(findings("Slower starts in a direct-connect rack", text, vec![numbers(rows)], sheet))
}

/// Both quotients against load.
fn drawn(pairs: &[Pair]) -> Block {
    let series = QUOTIENTS.map(|(name, get)| {
        let points = pairs.iter().filter_map(|pair| {
            let values = get(pair);
            (!values.is_empty()).then(|| (pair.load, Spread::of(&values)))
        });
        curve(name, &points.collect::<Vec<_>>())
    });
    let x = Axis::linear("Nominal load of 50 Gbps a node", Unit::Ratio);
    let y = Axis::log("Above 1, Shoal is ahead", Unit::Ratio);
    let note = "FCT p99.9 of short flows, goodput of long flows that both delivered; bars: least and \
                most over the seeds.";
    Block::Plots(vec![plot("Shoal beside a 3D torus", note, x, y, series.into())])
}

fn numbers(rows: Vec<Vec<Value>>) -> Block {
    let columns = [
        ("torus", "Torus", Unit::Count),
        ("nominal", "Load, nominal", Unit::Ratio),
        ("realised", "Load, realised", Unit::Ratio),
        ("shoal_p999", "FCT short p99.9, Shoal", Unit::Seconds),
        ("torus_p999", "torus", Unit::Seconds),
        ("tail", "torus by Shoal", Unit::Ratio),
        ("shoal_goodput", "Goodput long, Shoal", Unit::BitsPerSecond),
        ("torus_goodput", "torus", Unit::BitsPerSecond),
        ("goodput", "Shoal by torus, same flows", Unit::Ratio),
    ];
    table("Means over seeds", &columns, rows)
}
