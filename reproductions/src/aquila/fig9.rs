//! Remote memory beside bulk traffic, in channels of its own and in those of bulk, beside lookups on Ethernet (§5.1,
//! Fig. 9; X03), and bulk traffic beside remote memory (X30).

use aquila::config::Rma;
use aquila::link::classes::{Half, Mode};
use aquila::switch::settings::Settings;
use aquila::topology::{Fibres, Shape};
use kernel::Rate;
use report::Unit;
use report::page::{Axis, Block, PlotSeries, Scale, SeriesStyle};
use serde_json::json;

use super::clique::{Clique, us};
use super::ethernet::Ethernet;
use super::memory::{Case, Point, READ, carry};
use crate::claims::{Measured, Shape as Agreement, Sheet, Spread};
use crate::drawing::{findings, plot, table};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

/// Instances of CliqueMap, and what each looks up a second (§5.1).
const INSTANCES: u32 = 200;
const LOOKUPS: u64 = 10_000;
/// Bulk of each host (§5.1), and much more of it, to see what bulk takes. Unit: Gbps.
const BULK: u64 = 10;
const MUCH: u64 = 40;
/// Twice the bulk: more would fill the two links of shortest ways between two pods (our choice).
const TWICE: u64 = 20;
/// What the scheduler gives the fast half for what it gives bulk (§5.1).
const WEIGHT: u8 = 8;

/// A number of a point.
type Get = fn(&Point) -> f64;

/// A bar: the half of the channels that reads take, bulk of each host in Gbps, lookups a second, and how what is adaptive
/// is routed.
type Bar = (Half, u64, u64, Mode);

const ADAPTIVE: Mode = Mode::FullyAdaptive;
const FAST: Bar = (Half::LowLatency, 0, LOOKUPS, ADAPTIVE);
const FAST_BESIDE: Bar = (Half::LowLatency, BULK, LOOKUPS, ADAPTIVE);
const SLOW: Bar = (Half::Bulk, 0, LOOKUPS, ADAPTIVE);
const SLOW_BESIDE: Bar = (Half::Bulk, BULK, LOOKUPS, ADAPTIVE);
/// Bulk with next to no reads.
const ALONE: Bar = (Half::LowLatency, BULK, 100, ADAPTIVE);
const FAST_MUCH: Bar = (Half::LowLatency, MUCH, LOOKUPS, ADAPTIVE);
const SLOW_MUCH: Bar = (Half::Bulk, MUCH, LOOKUPS, ADAPTIVE);
/// Bursts on shortest ways alone, which queue behind themselves (§6).
const FAST_SHORTEST: Bar = (Half::LowLatency, BULK, LOOKUPS, Mode::MinimalAdaptive);
const SLOW_SHORTEST: Bar = (Half::Bulk, BULK, LOOKUPS, Mode::MinimalAdaptive);
const FAST_SHORTEST_TWICE: Bar = (Half::LowLatency, TWICE, LOOKUPS, Mode::MinimalAdaptive);
const SLOW_SHORTEST_TWICE: Bar = (Half::Bulk, TWICE, LOOKUPS, Mode::MinimalAdaptive);

const BARS: [(Bar, &str); 11] = [
    (FAST, "1RMA in fast channels"),
    (FAST_BESIDE, "1RMA in fast channels, beside bulk"),
    (SLOW, "1RMA in channels of bulk"),
    (SLOW_BESIDE, "1RMA in channels of bulk, beside bulk"),
    (ALONE, "bulk, and a hundredth of the reads"),
    (FAST_MUCH, "1RMA in fast channels, beside four times the bulk"),
    (SLOW_MUCH, "1RMA in channels of bulk, beside four times the bulk"),
    (FAST_SHORTEST, "1RMA in fast channels, beside bulk, all on shortest ways"),
    (SLOW_SHORTEST, "1RMA in channels of bulk, beside bulk, all on shortest ways"),
    (FAST_SHORTEST_TWICE, "1RMA in fast channels, beside twice the bulk, all on shortest ways"),
    (SLOW_SHORTEST_TWICE, "1RMA in channels of bulk, beside twice the bulk, all on shortest ways"),
];

/// Microseconds of a run.
const fn micros(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 160,
        Effort::Full => 1_000,
    }
}

/// Output ports serve the halves by their shares alone, and strict levels not at all.
fn settings(mode: Mode) -> Settings {
    let mut settings = Settings::default();
    for class in &mut settings.classes {
        class.service.level = 0;
        class.service.weight = if class.half == Half::LowLatency { WEIGHT } else { 1 };
        if class.mode == Mode::FullyAdaptive {
            class.mode = mode;
        }
    }
    settings
}

/// What bars gave, with every seed.
struct Runs(Vec<(Bar, Point)>);

impl Runs {
    fn carry(
        clique: &Clique,
        bars: &[Bar],
        effort: Effort,
        watch: &mut Watch<'_>,
    ) -> Result<Self, Failure> {
        let hosts = clique.hosts(INSTANCES);
        let jobs = with_seeds(bars, effort.seeds());
        let found = spread(&jobs, watch, |&((half, bulk, lookups, mode), seed), pulse| {
            let rma = Rma { half, ..Rma::default() };
            let reads = Rate::from_bps(lookups * u64::from(READ) * 8);
            // Four times the bulk is as many cells in a quarter of the time.
            let all = micros(effort) * BULK / bulk.max(BULK);
            let bulk = (bulk > 0).then(|| Rate::from_gbps(bulk));
            let window = (us(all / 10), us(all));
            let case = Case { settings: settings(mode), rma, reads, bulk, window };
            carry(clique, &hosts, &case, seed, pulse)
        })?;
        Ok(Self(jobs.iter().map(|&(bar, _)| bar).zip(found).collect()))
    }

    fn of(&self, wanted: Bar, what: Get) -> Vec<f64> {
        let all = self.0.iter().filter(|(bar, _)| *bar == wanted);
        all.map(|(_, point)| what(point)).collect()
    }
}

/// Fig. 9 at the 99.9th percentile, with what is adaptive on all ways and on shortest ways alone.
pub(super) fn slowest(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    const SLOWEST: [(Bar, &str); 4] = [
        (FAST_BESIDE, "fast"),
        (SLOW_BESIDE, "slow"),
        (FAST_SHORTEST, "fast-shortest"),
        (SLOW_SHORTEST, "slow-shortest"),
    ];
    let mut sheet = Sheet::read(include_str!("../../aquila/fig9-slowest.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let runs = Runs::carry(&clique, &SLOWEST.map(|(bar, _)| bar), effort, watch)?;
    for (bar, word) in SLOWEST {
        let tails = runs.of(bar, |point| point.p999);
        sheet.measure(&format!("fig9-slowest.{word}"), Measured::mean(&tails));
    }
    let text = "The runs of Fig. 9 beside bulk at the 99.9th percentile: the paper does not say which is its tail.";
    Ok(findings("The slowest of a thousand reads beside bulk traffic", text, Vec::new(), sheet))
}

/// Fig. 9.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../aquila/fig9.claims.toml"));
    let clique = Clique::new(&Shape::FULL, Fibres::Grid);
    let runs = Runs::carry(&clique, &BARS.map(|(bar, _)| bar), effort, watch)?;
    let of = |wanted: Bar, what: Get| runs.of(wanted, what);
    judge(&mut sheet, &of);
    let ethernet = Ethernet::measure(effort, watch)?;
    ethernet.judge(&mut sheet);
    compare(&mut sheet, &of, &ethernet);
    let rows = BARS.map(|(bar, name)| {
        let mean = |what: Get| json!(Spread::of(&of(bar, what)).mean);
        let bulk = |bar: Bar| (bar.1 > 0).then(|| mean(|point| point.bulk));
        vec![
            json!(name),
            mean(|point| point.p50),
            mean(|point| point.p99),
            Spread::of(&of(bar, |point| point.p99)).interval(),
            json!(bulk(bar)),
        ]
    });
    let columns = [
        ("bar", "", Unit::Count),
        ("p50", "Total execution latency, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("spread", "99 %, over seeds", Unit::Seconds),
        ("bulk", "Bulk carried, of all hosts", Unit::BitsPerSecond),
    ];
    let blocks = vec![
        drawn(&of, &ethernet),
        table("In the Clique, means over seeds", &columns, rows.to_vec()),
        ethernet.numbers(),
    ];
    let text = "Each of 200 hosts, two at a TiN and as many in each pod, reads 4 KB of others 10,000 times a second; \
                bulk beside it is messages of 64 KB, 10 Gbps a host, to random others. Output ports give the fast half \
                of the channels eight times the share of the other, and no class goes first. Latencies are of reads; \
                those on Ethernet are round trips in the network, another measure, and so it is in the paper (§5.1).";
    let text = format!("{text} {}", Ethernet::TEXT);
    Ok(findings("Remote memory beside bulk traffic", &text, blocks, sheet))
}

/// Reads of memory against round trips on Ethernet: the order of all bars.
fn compare(sheet: &mut Sheet, of: &dyn Fn(Bar, Get) -> Vec<f64>, ethernet: &Ethernet) {
    let shared = of(SLOW_BESIDE, |point| point.p99);
    let base = ethernet.tails(false);
    let ratio: Vec<f64> = shared.iter().zip(&base).map(|(ours, theirs)| ours / theirs).collect();
    sheet.measure("fig9.below-ethernet", Measured::mean(&ratio));
}

/// The figure: its six bars, in the order of its legend.
fn drawn(of: &dyn Fn(Bar, Get) -> Vec<f64>, ethernet: &Ethernet) -> Block {
    let names = [
        "Ethernet",
        "Ethernet, beside bulk",
        "1RMA, fast channels",
        "1RMA, fast channels, beside bulk",
        "1RMA, channels of bulk",
        "1RMA, channels of bulk, beside bulk",
    ];
    let all = |trips: [Vec<f64>; 2], what: Get| -> Vec<Spread> {
        let reads = [FAST, FAST_BESIDE, SLOW, SLOW_BESIDE].map(|bar| of(bar, what));
        trips.iter().chain(&reads).map(|values| Spread::of(values)).collect()
    };
    let tails = all([false, true].map(|bulk| ethernet.tails(bulk)), |point| point.p99);
    let medians = all([false, true].map(|bulk| ethernet.medians(bulk)), |point| point.p50);
    let series = |name: &str, style, values: &[Spread]| PlotSeries {
        intervals: values.iter().map(|spread| (spread.low, spread.high)).collect(),
        ..PlotSeries::new(
            name,
            style,
            (0..6).map(f64::from).zip(values.iter().map(|v| v.mean)).collect(),
        )
    };
    let x = Axis {
        label: "lookups or reads".into(),
        unit: Unit::Count,
        scale: Scale::Named(names.map(String::from).to_vec()),
    };
    let y = Axis::linear("round trip, or total execution latency", Unit::Seconds);
    let note = "Means of five seeds; bars of error from the smallest to the largest. On Ethernet round trips in the \
                network, of 1RMA total execution latency.";
    let all = vec![
        series("99 %", SeriesStyle::Bars, &tails),
        series("median", SeriesStyle::Points, &medians),
    ];
    Block::Plots(vec![plot("Fig. 9", note, x, y, all)])
}

fn judge(sheet: &mut Sheet, of: &dyn Fn(Bar, Get) -> Vec<f64>) {
    let tail = |bar| of(bar, |point| point.p99);
    let ratio = |top: Vec<f64>, bottom: Vec<f64>| -> Vec<f64> {
        top.iter().zip(bottom).map(|(top, bottom)| top / bottom).collect()
    };
    sheet.measure("fig9.fast", Measured::mean(&tail(FAST)));
    sheet.measure("fig9.fast-beside", Measured::mean(&tail(FAST_BESIDE)));
    let median = ratio(of(FAST_BESIDE, |point| point.p50), of(FAST, |point| point.p50));
    sheet.measure("fig9.fast-median", Measured::mean(&median));
    sheet.measure("fig9.fast-change", Measured::mean(&ratio(tail(FAST_BESIDE), tail(FAST))));
    sheet.measure("fig9.slow-beside", Measured::mean(&tail(SLOW_BESIDE)));
    let bars = [FAST, FAST_BESIDE, SLOW_BESIDE];
    let means = bars.map(|bar| Spread::of(&tail(bar)).mean);
    // Within the noise of five seeds.
    let is_so = means[1] > means[0] * 0.98 && means[2] > means[1];
    let words = if is_so { "as published" } else { "another" };
    sheet.measure("fig9.order", Measured::shape(words, Agreement::of(is_so)));
    for (id, bar) in [("fig9.bulk", FAST_BESIDE), ("fig9.bulk-shared", SLOW_BESIDE)] {
        let carried = ratio(of(bar, |point| point.bulk), of(ALONE, |point| point.bulk));
        sheet.measure(id, Measured::mean(&carried));
    }
    sheet.measure("fig9.fast-much", Measured::mean(&tail(FAST_MUCH)));
    sheet.measure("fig9.slow-much", Measured::mean(&tail(SLOW_MUCH)));
    sheet.measure("fig9.fast-shortest", Measured::mean(&tail(FAST_SHORTEST)));
    sheet.measure("fig9.slow-shortest", Measured::mean(&tail(SLOW_SHORTEST)));
    sheet.measure("fig9.fast-shortest-twice", Measured::mean(&tail(FAST_SHORTEST_TWICE)));
    sheet.measure("fig9.slow-shortest-twice", Measured::mean(&tail(SLOW_SHORTEST_TWICE)));
}
