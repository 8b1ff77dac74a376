//! Reads of remote memory under load (§5.1, Fig. 8; X02).
//!
//! Leaves out: what a lookup does before and after its read (Fig. 11's).

use aquila::config::Rma;
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::Rate;
use report::Unit;
use report::page::{Axis, Block, Scale};
use serde_json::json;

use super::SEEDS;
use super::clique::{Clique, HOSTS, us};
use super::memory::{Case, Point, carry};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{curve, findings, level, plot, table};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// What hosts read of others, in bytes of memory: up to what no host can, whose bus carries 104. Unit: Gbps.
const LOADS: &[u64] = &[2, 10, 20, 30, 40, 50, 60, 70, 80, 90, 110];
const FEW: &[u64] = &[2, 50, 70, 80];
/// High load: the highest of these that full runs carry (X02).
const HIGH: u64 = 80;
/// Lower ones, of which the first is what the paper gives a machine's NIC (Aquila §5.1).
const LOWER: [(u64, &str); 2] = [(50, "fig8.high-50"), (70, "fig8.high-70")];
/// A load is carried if so much of it is (X02).
const CARRIED: f64 = 0.9;

/// A number of a point.
type Get = fn(&Point) -> f64;

/// Microseconds of a run.
const fn micros(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 12,
        Effort::Full => 60,
    }
}

/// Fig. 8.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/fig8.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let hosts = clique.hosts(HOSTS);
    let loads = if effort == Effort::Quick { FEW } else { LOADS };
    let jobs = with_seeds(loads, SEEDS);
    let found = spread(&jobs, watch, |&(load, seed), pulse| {
        let (settings, rma) = (Settings::default(), Rma::default());
        let micros = micros(effort);
        let (reads, window) = (Rate::from_gbps(load), (us(micros / 3), us(micros)));
        let case = Case { settings, rma, reads, bulk: None, window };
        carry(&clique, &hosts, &case, seed, pulse)
    })?;
    let at = |load: u64, what: Get| -> Vec<f64> {
        let all = jobs.iter().zip(&found);
        all.filter(|((other, _), _)| *other == load).map(|(_, point)| what(point)).collect()
    };
    let carries = |load: &u64| Spread::of(&at(*load, |point| point.achieved)).mean >= CARRIED;
    let highest = loads.iter().copied().filter(carries).max().unwrap_or(loads[0]);
    sheet.measure("fig8.high", Measured::mean(&at(HIGH, |point| point.p99)));
    for (load, id) in LOWER {
        sheet.measure(id, Measured::mean(&at(load, |point| point.p99)));
    }
    sheet.measure("fig8.low", Measured::mean(&at(loads[0], |point| point.p50)));
    let text = "Each of 500 hosts, two at a TiN and as many in each pod, reads 4 KB of others at random instants, \
                whether earlier reads are done or not. Total execution latency is from the hardware's having a command \
                until it says that it is done: what waits in software, behind the windows of its congestion control, is \
                not in it (§5.1).";
    Ok(findings("Remote memory under load", text, drawn(loads, highest, &at), sheet))
}

/// The figure, and its numbers.
fn drawn(loads: &[u64], highest: u64, at: &dyn Fn(u64, Get) -> Vec<f64>) -> Vec<Block> {
    let line = |name: &str, what: Get| {
        let point = |&load: &u64| (load as f64 * 1e9, Spread::of(&at(load, what)));
        curve(name, &loads.iter().map(point).collect::<Vec<_>>())
    };
    let series = vec![
        line("median", |point| point.p50),
        line("99 %", |point| point.p99),
        line("99.9 %", |point| point.p999),
        level("published: below, under high load", HIGH as f64 * 1e9, 10e-6),
    ];
    let axis = |label: &str, unit| Axis { label: label.into(), unit, scale: Scale::Linear };
    let (x, y) = (
        axis("read by a host", Unit::BitsPerSecond),
        axis("total execution latency", Unit::Seconds),
    );
    let note = format!(
        "500 hosts on 250 TiNs; bars from the smallest to the largest seed. Carried by {:.0} % and more up to \
         {highest} Gbps a host.",
        CARRIED * 100.0
    );
    let rows = loads.iter().map(|&load| {
        let mean = |what: Get| json!(Spread::of(&at(load, what)).mean);
        vec![
            json!(load as f64 * 1e9),
            mean(|point| point.p50),
            mean(|point| point.p99),
            mean(|point| point.p999),
            mean(|point| point.achieved),
            mean(|point| point.late as f64),
        ]
    });
    let columns = [
        ("load", "Read by a host", Unit::BitsPerSecond),
        ("p50", "Execution, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("p999", "99.9 %", Unit::Seconds),
        ("achieved", "Carried of what is asked for", Unit::Share),
        ("late", "Commands past their deadlines", Unit::Count),
    ];
    vec![
        Block::Plots(vec![plot("Fig. 8", &note, x, y, series)]),
        table("Means over seeds", &columns, rows.collect()),
    ]
}
