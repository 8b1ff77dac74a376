//! What a longer epoch costs (§7.3).

use report::Unit;
use report::page::{Axis, Block, PlotSeries, SeriesStyle};
use serde_json::{Value, json};

use super::datacentre::{Figures, LONG_SEEDS, flows, of};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, plot, published, table};
use crate::runs::{self, ScenarioFile};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const EPOCH: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/epoch.toml",
    text: include_str!("../../shoal/epoch.toml"),
};

/// The paper's low and high load (our choice: it gives no numbers).
const LOADS: [f64; 2] = [0.1, 1.0];

/// Racks of which the second and third have epochs twice as long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rack {
    Base,
    /// 2 × 50 Gbps.
    FewerChannels,
    /// 1,024 nodes.
    MoreNodes,
}

const RACKS: [Rack; 3] = [Rack::Base, Rack::FewerChannels, Rack::MoreNodes];

impl Rack {
    fn settings(self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Base => vec![],
            Self::FewerChannels => {
                vec![("fabric.channels", json!(2)), ("fabric.cell", json!("128 B"))]
            }
            Self::MoreNodes => vec![("fabric.nodes", json!(1024))],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Base => "4 × 25 Gbps, 512 nodes",
            Self::FewerChannels => "2 × 50 Gbps, 512 nodes",
            Self::MoreNodes => "4 × 25 Gbps, 1,024 nodes",
        }
    }
}

/// E16 and E17.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/epoch.claims.toml"));
    let points: Vec<(Rack, f64)> =
        RACKS.iter().flat_map(|&rack| LOADS.map(|load| (rack, load))).collect();
    let jobs = with_seeds(&points, LONG_SEEDS);
    let runs = spread(&jobs, watch, |&((rack, load), seed), pulse| {
        let mut settings = rack.settings();
        settings.push(("workload.load", json!(load)));
        settings.push(("workload.flows", json!(flows(effort))));
        Ok(Figures::of(&runs::run(&EPOCH.with(&settings, seed)?, pulse)?))
    })?;
    let grouped: Vec<&[Figures]> = runs.chunks(LONG_SEEDS as usize).collect();
    let group = |rack: usize, load: usize| grouped[rack * LOADS.len() + load];
    let tail = |figures: &Figures| figures.fct_p999;
    let claims = [
        ("epoch.channels-low", 1, 0),
        ("epoch.channels-high", 1, 1),
        ("epoch.nodes-low", 2, 0),
        ("epoch.nodes-high", 2, 1),
    ];
    let mut found = Vec::new();
    for (id, rack, load) in claims {
        // Seed by seed: both racks carry the same sizes.
        let pairs = group(rack, load).iter().zip(group(0, load));
        let ratios: Vec<f64> = pairs.map(|(long, base)| tail(long) / tail(base)).collect();
        found.push(Spread::of(&ratios));
        sheet.measure(id, Measured::mean(&ratios));
    }
    let names = ["2 × 50 Gbps, low", "2 × 50 Gbps, high", "1,024 nodes, low", "1,024 nodes, high"];
    let place = |index: usize| index as f64;
    let means = found.iter().enumerate().map(|(at, ratio)| (place(at), ratio.mean)).collect();
    let ours = PlotSeries {
        intervals: found.iter().map(|ratio| (ratio.low, ratio.high)).collect(),
        ..PlotSeries::new("ours", SeriesStyle::Points, means)
    };
    let printed = claims.iter().enumerate().map(|(at, (id, ..))| (place(at), sheet.number(id)));
    let series = vec![ours, published("published", printed.collect())];
    let x = Axis::named("", names.map(String::from).to_vec());
    let y = Axis::linear("FCT p99.9, of the base rack", Unit::Ratio);
    let note = "Short flows; bars: least and most over the seeds.";
    let figure = plot("Epochs twice as long", note, x, y, series);
    let columns = [
        ("rack", "Rack", Unit::Count),
        ("load", "Load, nominal", Unit::Ratio),
        ("realised", "realised", Unit::Ratio),
        ("fct_mean", "FCT short, mean", Unit::Seconds),
        ("fct_p99", "p99", Unit::Seconds),
        ("fct_p999", "p99.9", Unit::Seconds),
    ];
    let row = |((rack, load), runs): (&(Rack, f64), &&[Figures])| {
        let mean = |get: fn(&Figures) -> f64| json!(Spread::of(&of(runs, get)).mean);
        vec![
            json!(rack.name()),
            json!(load),
            mean(|f| f.realised),
            mean(|f| f.fct_mean),
            mean(|f| f.fct_p99),
            mean(|f| f.fct_p999),
        ]
    };
    let rows = points.iter().zip(&grouped).map(row).collect();
    let blocks = vec![Block::Plots(vec![figure]), table("Means over seeds", &columns, rows)];
    let text = "The workload of Fig. 15 on the base rack and on two whose epochs are twice as \
                long. With two channels slots stay as long and cells double; with 1,024 nodes the \
                load a node is the same.";
    Ok(findings("Epoch size", text, blocks, sheet))
}
