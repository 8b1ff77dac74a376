//! Shoal beside the packet-switched racks under the data-centre workload (§7.3, Fig. 15).

use report::Unit;
use report::page::{Axis, Block, Plot};
use serde_json::{Value, json};

use super::datacentre::{Figures, LOADS, NODE_RATE, of};
use super::racks::{
    BASELINES, Carried, OPEN, RACKS, Rack, SIMULATED, goodput_quotients, median, quotients,
};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, plot, table};

/// A run but for its seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) rack: Rack,
    /// What load 1 refers to, in Gbps.
    pub(super) rate: u64,
    pub(super) load: f64,
}

/// The paper's low and high load (our choice: it gives no numbers).
const LOW: f64 = LOADS[0];
const HIGH: f64 = LOADS[LOADS.len() - 1];
/// From low to moderate (the same).
const LOW_TO_MODERATE: [f64; 3] = [LOADS[0], LOADS[1], LOADS[2]];

fn at(rack: Rack, load: f64) -> Point {
    Point { rack, rate: NODE_RATE, load }
}

/// The runs that this comparison needs beside Shoal's own sweep.
pub(super) fn points() -> Vec<Point> {
    let sweep = |&rack: &Rack| LOADS.map(|load| at(rack, load));
    let mut points: Vec<_> = BASELINES.iter().flat_map(sweep).collect();
    let simulated = |&rack: &Rack| LOW_TO_MODERATE.map(|load| at(rack, load));
    points.extend(SIMULATED.iter().flat_map(simulated));
    points.extend(SIMULATED.map(|rack| at(rack, HIGH)));
    points
}

/// The runs of baselines without handshakes.
pub(super) fn open_points() -> Vec<Point> {
    let loads = || LOW_TO_MODERATE.into_iter().chain([HIGH]);
    OPEN.iter().flat_map(|&rack| loads().map(move |load| at(rack, load))).collect()
}

/// All runs, a group of seeds for each point.
pub(super) struct Swept<'a> {
    points: &'a [Point],
    runs: &'a [Carried],
    /// Runs of a point.
    seeds: usize,
}

impl<'a> Swept<'a> {
    pub(super) fn new(points: &'a [Point], runs: &'a [Carried], seeds: u64) -> Self {
        let seeds = seeds as usize;
        assert_eq!(points.len() * seeds, runs.len(), "a run for each point and seed");
        Self { points, runs, seeds }
    }

    fn has(&self, (rack, load): (Rack, f64)) -> bool {
        self.points.contains(&at(rack, load))
    }

    fn at(&self, point: Point) -> &'a [Carried] {
        let index = self.points.iter().position(|&known| known == point);
        let index = index.expect("every point asked for was run");
        &self.runs[index * self.seeds..][..self.seeds]
    }

    /// A rack's runs and Shoal's at this load.
    fn pair(&self, rack: Rack, load: f64) -> (&'a [Carried], &'a [Carried]) {
        (self.at(at(rack, load)), self.at(at(Rack::Shoal, load)))
    }
}

/// Every claim on two racks. Quotients above 1 say that Shoal is ahead.
pub(super) fn measure(sheet: &mut Sheet, swept: &Swept<'_>) {
    for rack in BASELINES.into_iter().chain(SIMULATED) {
        let means = means(swept, swept, rack);
        let id = |word: &str| format!("fig15.{word}-{}", rack.word());
        sheet.measure(&id("mean"), Measured::one(median(&means)));
        if rack == Rack::Dctcp {
            sheet.measure(&id("mean-of-all"), Measured::mean(&means));
        }
        for (word, load) in [("low", LOW), ("high", HIGH)] {
            let (other, shoal) = swept.pair(rack, load);
            let tails = quotients(other, shoal, |figures| figures.fct_p999);
            sheet.measure(&id(&format!("tail-{word}")), Measured::mean(&tails));
            let goodputs = goodput_quotients(other, shoal);
            sheet.measure(&id(&format!("goodput-{word}")), Measured::mean(&goodputs));
        }
    }
}

/// The same of baselines without handshakes, which have run with fewer seeds than `swept`.
pub(super) fn measure_open(sheet: &mut Sheet, swept: &Swept<'_>, open: &Swept<'_>) {
    for rack in OPEN {
        let id = |word: &str| format!("fig15.{word}-{}", rack.word());
        sheet.measure(&id("mean"), Measured::one(median(&means(swept, open, rack))));
        for (word, load) in [("low", LOW), ("high", HIGH)] {
            let (other, shoal) = (open.at(at(rack, load)), swept.at(at(Rack::Shoal, load)));
            let tails = quotients(other, shoal, |figures| figures.fct_p999);
            sheet.measure(&id(&format!("tail-{word}")), Measured::mean(&tails));
        }
    }
}

/// The racks of DCTCP whose first time-out is made shorter.
const DCTCPS: [Rack; 2] = [Rack::Dctcp, Rack::DctcpOpen];

/// A first time-out that is still far above what a short flow takes (our choice).
const FIRST_TIME_OUT: &str = "10 ms";

/// What is set for its runs with a rack: of DCTCP its first time-out, of Shoal nothing.
pub(super) fn first_time_out(rack: Rack) -> Option<(String, Value)> {
    let key = || format!("fabric.{}.transport.stream.rto_initial", rack.place());
    DCTCPS.contains(&rack).then(|| (key(), json!(FIRST_TIME_OUT)))
}

/// The runs with a shorter first time-out, and Shoal's.
pub(super) fn first_time_out_points() -> Vec<Point> {
    let sweep = |rack: Rack| LOW_TO_MODERATE.map(|load| at(rack, load));
    [Rack::Shoal].into_iter().chain(DCTCPS).flat_map(sweep).collect()
}

/// Means beside DCTCP with a shorter first time-out.
pub(super) fn measure_first_time_out(sheet: &mut Sheet, swept: &Swept<'_>) {
    for rack in DCTCPS {
        let id = format!("time-out.mean-{}", rack.word());
        sheet.measure(&id, Measured::one(median(&means(swept, swept, rack))));
    }
}

/// Shoal's mean completion time by another rack's, from low to moderate load, over loads and seeds.
fn means(shoal: &Swept<'_>, others: &Swept<'_>, rack: Rack) -> Vec<f64> {
    let of = |&load: &f64| {
        let shoal = shoal.at(at(Rack::Shoal, load));
        quotients(shoal, others.at(at(rack, load)), |figures| figures.fct_mean)
    };
    LOW_TO_MODERATE.iter().flat_map(of).collect()
}

/// Fig. 15: a curve for each rack.
pub(super) fn plots(swept: &Swept<'_>) -> Vec<Plot> {
    let lines = |get: fn(&Figures) -> f64| {
        let line = |&rack: &Rack| {
            let points = LOADS.iter().filter_map(|&load| {
                let runs = swept.at(at(rack, load));
                let figures: Vec<_> = runs.iter().map(|run| run.figures).collect();
                let values = of(&figures, get);
                (!values.is_empty()).then(|| (load, Spread::of(&values)))
            });
            curve(rack.name(), &points.collect::<Vec<_>>())
        };
        RACKS.iter().map(line).collect()
    };
    let x = || Axis::linear("Nominal load of 50 Gbps a node", Unit::Ratio);
    let note = "Bars: least and most over the seeds.";
    let seconds = |label| Axis::log(label, Unit::Seconds);
    let mean = seconds("Mean FCT, short flows");
    let tail = seconds("FCT p99.9, short flows");
    let goodput = Axis::linear("Goodput, long flows", Unit::BitsPerSecond);
    vec![
        plot("Fig. 15a, mean", note, x(), mean, lines(|f| f.fct_mean)),
        plot("Fig. 15a, tail", note, x(), tail, lines(|f| f.fct_p999)),
        plot("Fig. 15b", note, x(), goodput, lines(|f| f.goodput)),
    ]
}

/// Every rack at every load, and the quotients that the claims are about.
pub(super) fn numbers(swept: &Swept<'_>) -> Block {
    let columns = [
        ("rack", "Rack", Unit::Count),
        ("nominal", "Load of 50 Gbps, nominal", Unit::Ratio),
        ("realised", "Load, realised", Unit::Ratio),
        ("fct_mean", "FCT short, mean", Unit::Seconds),
        ("fct_mean_quotient", "of Shoal's", Unit::Ratio),
        ("fct_p99", "p99", Unit::Seconds),
        ("fct_p99_quotient", "of Shoal's", Unit::Ratio),
        ("fct_p999", "p99.9", Unit::Seconds),
        ("fct_p999_quotient", "of Shoal's", Unit::Ratio),
        ("goodput", "Goodput long, mean", Unit::BitsPerSecond),
        ("goodput_quotient", "Shoal's of it, same flows", Unit::Ratio),
    ];
    let row = |(rack, load): (Rack, f64)| {
        let (runs, shoal) = swept.pair(rack, load);
        let figures: Vec<_> = runs.iter().map(|run| run.figures).collect();
        let mean = |get: fn(&Figures) -> f64| mean(&of(&figures, get));
        let quotient = |get: fn(&Figures) -> f64| self::mean(&quotients(runs, shoal, get));
        vec![
            json!(rack.name()),
            json!(load),
            mean(|f| f.realised),
            mean(|f| f.fct_mean),
            quotient(|f| f.fct_mean),
            mean(|f| f.fct_p99),
            quotient(|f| f.fct_p99),
            mean(|f| f.fct_p999),
            quotient(|f| f.fct_p999),
            mean(|f| f.goodput),
            self::mean(&goodput_quotients(runs, shoal)),
        ]
    };
    let of = |racks: &'static [Rack]| {
        LOADS.iter().flat_map(move |&load| racks.iter().map(move |&rack| (rack, load)))
    };
    let rows = of(&RACKS);
    let simulated = of(&SIMULATED).filter(|&row| swept.has(row));
    table("Four racks: means over seeds", &columns, rows.chain(simulated).map(row).collect())
}

/// The mean as a cell, which is empty if there is nothing.
pub(super) fn mean(values: &[f64]) -> Value {
    if values.is_empty() { Value::Null } else { json!(Spread::of(values).mean) }
}
