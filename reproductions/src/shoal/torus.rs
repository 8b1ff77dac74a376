//! Shoal beside a direct-connect rack: a 3D torus under R2C2 (§7.3, "Baseline 1").

use report::Unit;
use report::page::{Axis, Block};
use serde_json::{Value, json};

use super::beside::mean;
use super::datacentre::{flows, seeds};
use super::racks::{Carried, goodput_quotients, quotients};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::runs::{Collected, ScenarioFile, run_nth};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// A figure of Shoal over that of the other rack, seed by seed.
type Quotients = fn(&Pair) -> Vec<f64>;

const TORUS: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/torus.toml",
    text: include_str!("../../shoal/torus.toml"),
};

/// Loads of 50 Gbps a node (our choice: the paper gives none).
const LOADS: [f64; 3] = [0.1, 0.5, 1.0];

/// What both racks made of a load, seed by seed.
struct Pair {
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

    fn row(&self, load: f64) -> Vec<Value> {
        let of = |racks: &[Carried], get: fn(&Carried) -> f64| {
            let values = racks.iter().map(get).filter(|value| !value.is_nan());
            mean(&values.collect::<Vec<_>>())
        };
        vec![
            json!(load),
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
fn means(pairs: &[Pair], get: fn(&Pair) -> Vec<f64>) -> Vec<f64> {
    let values = pairs.iter().map(get).filter(|values| !values.is_empty());
    values.map(|values| Spread::of(&values).mean).collect()
}

/// "Baseline 1".
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/torus.claims.toml"));
    let points: Vec<(f64, usize)> =
        LOADS.iter().flat_map(|&load| [0, 1].map(|rack| (load, rack))).collect();
    let jobs = with_seeds(&points, seeds(effort));
    let runs = spread(&jobs, watch, |&((load, rack), seed), pulse| {
        let settings = [("workload.load", json!(load)), ("workload.flows", json!(flows(effort)))];
        let mut delivered = Collected::default();
        let result = run_nth(&TORUS.with(&settings, seed)?, rack, &mut delivered, pulse)?;
        Ok(Carried::new(&result, &delivered))
    })?;
    let seeds = seeds(effort) as usize;
    let pair = |both: &[Carried]| {
        let (shoal, torus) = both.split_at(seeds);
        Pair { shoal: shoal.to_vec(), torus: torus.to_vec() }
    };
    let pairs: Vec<Pair> = runs.chunks(2 * seeds).map(pair).collect();
    let quotients: [(&str, Quotients); 2] = [("tail", Pair::tails), ("goodput", Pair::goodputs)];
    for (word, get) in quotients {
        let means = means(&pairs, get);
        sheet.measure(&format!("torus.{word}"), Measured::largest(&means));
        sheet.measure(&format!("torus.{word}-always"), Measured::smallest(&means));
    }
    let series = quotients.map(|(name, get)| {
        let points = LOADS.iter().zip(&pairs).filter_map(|(&load, pair)| {
            let values = get(pair);
            (!values.is_empty()).then(|| (load, Spread::of(&values)))
        });
        curve(name, &points.collect::<Vec<_>>())
    });
    let x = Axis::linear("Nominal load of 50 Gbps a node", Unit::Ratio);
    let y = Axis::log("Above 1, Shoal is ahead", Unit::Ratio);
    let note = "FCT p99.9 of short flows, goodput of long flows that both delivered; bars: least and \
                most over the seeds.";
    let figure = plot("Shoal beside a 3D torus", note, x, y, series.into());
    let columns = [
        ("nominal", "Load, nominal", Unit::Ratio),
        ("realised", "Load, realised", Unit::Ratio),
        ("shoal_p999", "FCT short p99.9, Shoal", Unit::Seconds),
        ("torus_p999", "torus", Unit::Seconds),
        ("tail", "torus by Shoal", Unit::Ratio),
        ("shoal_goodput", "Goodput long, Shoal", Unit::BitsPerSecond),
        ("torus_goodput", "torus", Unit::BitsPerSecond),
        ("goodput", "Shoal by torus, same flows", Unit::Ratio),
    ];
    let rows = LOADS.iter().zip(&pairs).map(|(&load, pair)| pair.row(load)).collect();
    let blocks = vec![Block::Plots(vec![figure]), table("Means over seeds", &columns, rows)];
    let text = "512 nodes of 100 Gbps in all, in Shoal's rack and in a 3D torus under R2C2 with the \
                settings of its paper, carrying the flows of Fig. 15.";
    Ok(findings("Beside a direct-connect rack", text, blocks, sheet))
}
