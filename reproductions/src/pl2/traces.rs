//! Messages of W1 to W5, three hosts to one (§6.3, Fig. 8).

use rack::results::Figure;
use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries, SeriesStyle};
use serde_json::{Value, json};

use super::racks::{Bin, Case, LINE, LOST, NODES, Ran, carried_alike, carry_all, numbers};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{findings, plot, table};
use crate::runs::{ScenarioFile, number};
use crate::{Effort, Failure, Findings, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/pl2/traces.toml",
    text: include_str!("../../pl2/traces.toml"),
};

/// Workloads: name, payload offered in Gbps, messages of a quick run (our choice: some seconds). W3 has
/// what TCP over PL2 carried, and [`LOW`] over raw Ethernet; W4 what raw Ethernet did (§6.3, §6.3.1); of W5 the paper
/// says that loads are 40 to 90 Gbps; W1 and W2 made 5.
pub(super) const WORKLOADS: [(&str, f64, u64); 5] = [
    ("W1", 5.0, 40_000),
    ("W2", 5.0, 40_000),
    ("W3", 81.0, 50_000),
    ("W4", 89.0, 10_000),
    ("W5", 80.0, 1_000),
];
/// Those of the figure.
pub(super) const DRAWN: [usize; 3] = [2, 3, 4];

/// How messages are carried. In the order of the scenario's `[[fabric]]` entries.
const NAMES: [&str; 4] = ["PL2, raw Ethernet", "Raw Ethernet, one sender", "PL2, TCP", "TCP CUBIC"];
pub(super) const PL2: usize = 0;
pub(super) const OPTIMUM: usize = 1;
pub(super) const PL2_TCP: usize = 2;
pub(super) const CUBIC: usize = 3;

/// Fewest messages of a range of sizes whose 99th percentile is compared (our choice: with fewer it is
/// nearly the slowest of all).
const ENOUGH: u64 = 100;
/// PL2 is as good as optimal up to this (our choice).
const CLOSE: f64 = 1.5;

/// Latest end of a run of W3 (our choice): its messages arrive within 16 ms in a quick one, in 80 ms with `--full`. Some
/// end after a time-out of 600 ms, in which the rate stays what it is; and messages go on to come meanwhile, of which those
/// that wait where CUBIC collapses grow beyond what a run keeps.
const fn w3_time(effort: Effort) -> &'static str {
    match effort {
        Effort::Quick => "100 ms",
        Effort::Full => "400 ms",
    }
}

/// Lowest load of raw Ethernet in Gbps (§6.3: "40-90Gbps"): that of W3. Its messages take 2.74 slots each, which at
/// 123.04 ns a slot (Alg. 1, §4.1) leaves 69.6 Gbps of payload, and the paper has as much with PL2 as without.
pub(super) const LOW: f64 = 40.0;
/// The one of the workloads that has it.
const LOW_AT: usize = 2;

/// W4's place among the workloads.
pub(super) const W4_AT: usize = 3;
/// Segments of 1,460 B that a receiver's 87,380 B hold: the largest window of VMA's TCP.
pub(super) const WINDOW_MOST: u32 = 59;

/// A run of a workload that differs in one thing from those of the figure.
struct Varied {
    workload: usize,
    fabric: usize,
    settings: Vec<(&'static str, Value)>,
}

/// What varies one thing, in the order in which [`measure_varied`] reads it: W3 over raw Ethernet at the load that
/// TCP over PL2 carried, also in slots of about half a packet; CUBIC whose windows are all that receivers allow, with
/// VMA's recovery and with NewReno's; a connection for each message; Nagle.
fn varied() -> Vec<Varied> {
    const STREAMS: [(usize, &str, &str); 2] = [
        (PL2_TCP, "fabric.2.transport.stream.connections", "fabric.2.transport.stream.nagle"),
        (CUBIC, "fabric.3.transport.stream.connections", "fabric.3.transport.stream.nagle"),
    ];
    let [w1, w3, w4] = [0, 2, W4_AT];
    let raw = |fabric, settings| Varied { workload: w3, fabric, settings };
    let full = ("fabric.3.transport.stream.initial_window", json!(WINDOW_MOST));
    let newreno = ("fabric.3.transport.stream.recovery", json!("duplicates"));
    let cubic = |workload, settings| Varied { workload, fabric: CUBIC, settings };
    let mut all = vec![
        raw(PL2, vec![]),
        raw(OPTIMUM, vec![]),
        raw(PL2, vec![("fabric.0.slot", json!("60 ns"))]),
        cubic(w3, vec![full.clone()]),
        cubic(w3, vec![full.clone(), newreno]),
        cubic(w4, vec![full]),
    ];
    let own = STREAMS.map(|(fabric, connections, _)| (fabric, (connections, json!(0))));
    let nagle = STREAMS.map(|(fabric, _, nagle)| (fabric, (nagle, json!(true))));
    for (workload, settings) in [(w3, &own), (w4, &own), (w3, &nagle), (w1, &nagle)] {
        let varied = |(fabric, setting): &(usize, (&'static str, Value))| Varied {
            workload,
            fabric: *fabric,
            settings: vec![setting.clone()],
        };
        all.extend(settings.iter().map(varied));
    }
    all
}

/// The run of a workload by its place in `WORKLOADS`.
pub(super) fn case(workload: usize, fabric: usize, effort: Effort) -> Case {
    let (_, usual, messages) = WORKLOADS[workload];
    let is_low = workload == LOW_AT && [PL2, OPTIMUM].contains(&fabric);
    let gbps = if is_low { LOW } else { usual };
    let mut case = loaded(workload, fabric, gbps, messages * times(effort));
    limit(&mut case, workload, effort);
    case
}

/// How many times the messages of a quick run.
fn times(effort: Effort) -> u64 {
    match effort {
        Effort::Quick => 1,
        Effort::Full => 5,
    }
}

/// A run of W3 ends in time.
fn limit(case: &mut Case, workload: usize, effort: Effort) {
    if workload == DRAWN[0] {
        case.settings.push(("run.time", json!(w3_time(effort))));
    }
}

/// The same with another load, in Gbps, and another number of messages.
pub(super) fn loaded(workload: usize, fabric: usize, gbps: f64, messages: u64) -> Case {
    let (name, ..) = WORKLOADS[workload];
    let senders: &[u32] = if fabric == OPTIMUM { &[1] } else { &[1, 2, 3] };
    let settings = vec![
        ("workload.sizes.name", json!(name)),
        ("workload.load", json!(gbps * 1e9 / (LINE * NODES))),
        ("workload.pattern.senders", json!(senders)),
        ("run.flows", json!(messages)),
    ];
    Case { file: FILE, fabric, settings }
}

/// All runs: by workload, by how they are carried, over seeds.
struct Swept(Vec<Vec<Ran>>);

impl Swept {
    fn at(&self, workload: usize, fabric: usize) -> &[Ran] {
        &self.0[workload * NAMES.len() + fabric]
    }

    fn over(&self, workload: usize, fabric: usize, path: &str) -> Vec<f64> {
        numbers(self.at(workload, fabric), path)
    }

    /// Quotients over ranges of sizes, seed by seed.
    fn by_size(
        &self,
        workload: usize,
        [above, below]: [usize; 2],
        get: fn(&Bin) -> Figure,
    ) -> Vec<Vec<Figure>> {
        by_size([above, below].map(|fabric| self.at(workload, fabric)), get)
    }
}

/// Quotients over ranges of sizes, seed by seed.
pub(super) fn by_size([above, below]: [&[Ran]; 2], get: fn(&Bin) -> Figure) -> Vec<Vec<Figure>> {
    let pairs = above.iter().zip(below);
    pairs.map(|(above, below)| bin_quotients(above, below, get)).collect()
}

/// Quotients over the ranges of sizes in which both runs have messages enough: also of those where
/// unfinished messages leave only a bound, so that no range is left out for being slow.
fn bin_quotients(above: &Ran, below: &Ran, get: fn(&Bin) -> Figure) -> Vec<Figure> {
    let of_size = |size| below.bins.iter().find(|bin| bin.from == size);
    let pairs = above.bins.iter().filter_map(|bin| Some((bin, of_size(bin.from)?)));
    let enough = pairs.filter(|(a, b)| a.count.min(b.count) >= ENOUGH);
    enough.map(|(above, below)| quotient(get(above), get(below))).collect()
}

fn quotient(above: Figure, below: Figure) -> Figure {
    match (above, below) {
        (above, Figure::Exact(below)) => above.map(|above| above / below),
        (Figure::Exact(above), Figure::AtLeast(below)) => Figure::AtMost(above / below),
        _ => Figure::Missing,
    }
}

/// The mean, as far as it is known.
fn mean(values: &[Figure]) -> Figure {
    let sum = values.iter().filter_map(|value| value.number()).sum::<f64>();
    let mean = sum / values.len().max(1) as f64;
    let all = |is: fn(&Figure) -> bool| values.iter().all(is);
    if all(|value| matches!(value, Figure::Exact(_))) {
        Figure::Exact(mean)
    } else if all(|value| matches!(value, Figure::Exact(_) | Figure::AtLeast(_))) {
        Figure::AtLeast(mean)
    } else {
        Figure::Missing
    }
}

/// The mean over seeds of their means over ranges of sizes.
pub(super) fn measured(over_seeds: &[Vec<Figure>]) -> Measured {
    let means: Vec<Figure> = over_seeds.iter().map(|ratios| mean(ratios)).collect();
    let numbers = |figure: &Figure| figure.number().unwrap_or(f64::NAN);
    let numbers: Vec<f64> = means.iter().map(numbers).collect();
    match mean(&means) {
        Figure::AtLeast(_) => Measured::at_least(&numbers),
        _ => Measured::mean(&numbers),
    }
}

pub(super) fn p99(bin: &Bin) -> Figure {
    bin.p99
}

pub(super) fn p50(bin: &Bin) -> Figure {
    bin.p50
}

/// The mean over seeds of the share of ranges of sizes in which the 99th percentile is close to the optimum's.
pub(super) fn close_to_optimum(over_seeds: &[Vec<Figure>]) -> Measured {
    let is_close = |ratio: &&Figure| match ratio {
        Figure::Exact(ratio) | Figure::AtMost(ratio) => *ratio <= CLOSE,
        Figure::AtLeast(_) | Figure::Missing => false,
    };
    let share =
        |ratios: &Vec<Figure>| ratios.iter().filter(is_close).count() as f64 / ratios.len() as f64;
    Measured::mean(&over_seeds.iter().map(share).collect::<Vec<_>>())
}

/// Fig. 8.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig8.claims.toml"));
    let of_workload = |workload| (0..NAMES.len()).map(move |fabric| case(workload, fabric, effort));
    let mut cases: Vec<Case> = (0..WORKLOADS.len()).flat_map(of_workload).collect();
    let usual = cases.len();
    cases.extend(varied().into_iter().map(|varied| varied_case(varied, effort)));
    let mut runs = carry_all(&cases, effort.seeds_of_longest(), watch)?;
    let varied = runs.split_off(usual);
    let swept = Swept(runs);
    for (workload, (name, ..)) in WORKLOADS.iter().enumerate() {
        let word = name.to_lowercase();
        if DRAWN.contains(&workload) {
            measure(&mut sheet, &swept, workload, &word);
        } else {
            for (row, get) in [("", p99 as fn(&Bin) -> Figure), ("-median", p50)] {
                let ratios = swept.by_size(workload, [PL2_TCP, CUBIC], get);
                sheet.measure(&format!("fig8.{word}{row}"), measured(&ratios));
            }
        }
    }
    measure_varied(&mut sheet, &swept, &varied);
    let medians = |workload| {
        let means: Vec<f64> = swept
            .by_size(workload, [PL2, OPTIMUM], p50)
            .iter()
            .map(|ratios| mean(ratios).exact().unwrap_or(f64::NAN))
            .collect();
        Spread::of(&means).mean
    };
    let [w3, w4, w5] = DRAWN.map(medians);
    let words = format!("{w3:.2}, {w4:.2}, {w5:.2}");
    let shape = Shape::of(w4 > w3 && w5 > w3);
    sheet.measure("fig8.medians", Measured::shape(words, shape));
    let losses = DRAWN.iter().flat_map(|&workload| {
        [PL2, PL2_TCP].into_iter().flat_map(move |fabric| [(workload, fabric)])
    });
    let drops: Vec<f64> =
        losses.flat_map(|(workload, fabric)| swept.over(workload, fabric, LOST)).collect();
    sheet.measure("fig8.loss", Measured::largest(&drops));
    let text = "Poisson arrivals from three hosts to a fourth, in 11 threads each; for the optimum all from \
                one host. Ranges of sizes, each twice the one before, count if they have 100 messages.";
    let blocks = vec![Block::Plots(plots(&swept)), numbers_of(&swept)];
    Ok(findings("W1 to W5", text, blocks, sheet))
}

/// The rows of a workload of the figure.
fn measure(sheet: &mut Sheet, swept: &Swept, workload: usize, word: &str) {
    let mut put = |name: &str, measured| sheet.measure(&format!("fig8.{word}-{name}"), measured);
    put("close", close_to_optimum(&swept.by_size(workload, [PL2, OPTIMUM], p99)));
    let alike = |[above, below]: [usize; 2]| {
        let runs = [above, below].map(|fabric| swept.at(workload, fabric));
        Measured::mean(&carried_alike(runs[0], runs[1]))
    };
    put("throughput", alike([PL2, OPTIMUM]));
    let ahead = swept.by_size(workload, [CUBIC, PL2_TCP], p99);
    put("tcp", measured(&ahead));
    if word == "w3" {
        let rate = |fabric| Measured::mean(&swept.over(workload, fabric, "throughput.aggregate"));
        put("cubic-rate", rate(CUBIC));
        put("tcp-rate", rate(PL2_TCP));
    } else {
        put("tcp-median", measured(&swept.by_size(workload, [CUBIC, PL2_TCP], p50)));
        put("tcp-throughput", alike([PL2_TCP, CUBIC]));
    }
}

fn varied_case(varied: Varied, effort: Effort) -> Case {
    let Varied { workload, fabric, settings } = varied;
    let (_, gbps, messages) = WORKLOADS[workload];
    let mut case = loaded(workload, fabric, gbps, messages * times(effort));
    limit(&mut case, workload, effort);
    case.settings.extend(settings);
    case
}

/// The rows of what varies one thing.
fn measure_varied(sheet: &mut Sheet, swept: &Swept, varied: &[Vec<Ran>]) {
    let [high, optimum, slots, full, full_newreno, w4_full, own @ ..] = varied else {
        unreachable!("cases for each row")
    };
    let mut put = |name: &str, measured| sheet.measure(&format!("fig8.{name}"), measured);
    put("w3-throughput-high", Measured::mean(&carried_alike(high, optimum)));
    put("w3-throughput-slots", Measured::mean(&carried_alike(slots, optimum)));
    let rate = |runs| Measured::mean(&numbers(runs, "throughput.aggregate"));
    put("w3-cubic-rate-full", rate(full));
    put("w3-cubic-rate-full-newreno", rate(full_newreno));
    put("w4-tcp-full", measured(&by_size([w4_full, swept.at(W4_AT, PL2_TCP)], p99)));
    let [w3, w3_cubic, w4, w4_cubic, nagle, nagle_cubic, w1, w1_cubic] = own else {
        unreachable!("both kinds of streams in each workload")
    };
    put("w3-tcp-rate-own", rate(w3));
    put("w3-cubic-rate-own", rate(w3_cubic));
    put("w3-tcp-rate-nagle", rate(nagle));
    put("w3-cubic-rate-nagle", rate(nagle_cubic));
    put("w4-tcp-own", measured(&by_size([w4_cubic, w4], p99)));
    put("w1-nagle", measured(&by_size([w1, w1_cubic], p99)));
}

/// Figs 8a to 8f: the first seed.
fn plots(swept: &Swept) -> Vec<Plot> {
    let line = |workload: usize, fabric: usize, word: &str, get: fn(&Bin) -> Figure| {
        let bins = swept.at(workload, fabric)[0].bins.iter().filter(|bin| bin.count >= ENOUGH);
        let point = |bin: &Bin| Some((bin.to as f64, get(bin).exact()?));
        let points = bins.filter_map(point).collect();
        PlotSeries::new(format!("{}, {word}", NAMES[fabric]), SeriesStyle::Line, points)
    };
    let one = |workload: usize, part: &str, fabrics: [usize; 2]| {
        let lines = fabrics.iter().flat_map(|&fabric| {
            [line(workload, fabric, "99 %", p99), line(workload, fabric, "median", p50)]
        });
        plot(
            &format!("Fig. 8{part}, {}", WORKLOADS[workload].0),
            "",
            Axis::log("Size of messages", Unit::Bytes),
            Axis::log("Latency", Unit::Seconds),
            lines.collect(),
        )
    };
    let ethernet = DRAWN.iter().zip(["a", "b", "c"]);
    let ethernet = ethernet.map(|(&workload, part)| one(workload, part, [PL2, OPTIMUM]));
    let tcp = DRAWN.iter().zip(["d", "e", "f"]);
    let tcp = tcp.map(|(&workload, part)| one(workload, part, [PL2_TCP, CUBIC]));
    ethernet.chain(tcp).collect()
}

/// Every figure of every case: means over seeds.
fn numbers_of(swept: &Swept) -> Block {
    let columns = [
        ("workload", "Workload", Unit::Count),
        ("case", "", Unit::Count),
        ("throughput", "Throughput", Unit::BitsPerSecond),
        ("p50", "Latency, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("slowdown", "Slowdown, 99 %", Unit::Ratio),
        ("drops", "Packets dropped", Unit::Count),
        ("queue", "Longest queue", Unit::Bytes),
    ];
    let row = |(workload, fabric): (usize, usize)| {
        let runs = swept.at(workload, fabric);
        let of = |path: &str| {
            json!(Spread::of(&runs.iter().map(|run| number(run, path)).collect::<Vec<_>>()).mean)
        };
        vec![
            json!(WORKLOADS[workload].0),
            json!(NAMES[fabric]),
            of("throughput.aggregate"),
            of("fct.all.p50"),
            of("fct.all.p99"),
            of("slowdown.all.p99"),
            of("drops"),
            of("queue.max_bytes"),
        ]
    };
    let points = (0..WORKLOADS.len())
        .flat_map(|workload| (0..NAMES.len()).map(move |fabric| (workload, fabric)));
    table("Means over seeds", &columns, points.map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_known_as_far_as_both_figures_are() {
        use Figure::{AtLeast, AtMost, Exact, Missing};
        let rows = [
            (Exact(6.0), Exact(2.0), Exact(3.0)),
            (AtLeast(6.0), Exact(2.0), AtLeast(3.0)),
            (Exact(6.0), AtLeast(2.0), AtMost(3.0)),
            (AtLeast(6.0), AtLeast(2.0), Missing),
        ];
        for (above, below, expected) in rows {
            assert_eq!(quotient(above, below), expected, "{above:?} by {below:?}");
        }
        assert_eq!(mean(&[Exact(1.0), Exact(3.0)]), Exact(2.0));
        assert_eq!(mean(&[Exact(1.0), AtLeast(3.0)]), AtLeast(2.0));
        assert_eq!(mean(&[Exact(1.0), AtMost(3.0)]), Missing);
        assert_eq!(
            measured(&[vec![AtLeast(3.0)], vec![Exact(5.0)]]),
            Measured::at_least(&[3.0, 5.0])
        );
        assert_eq!(measured(&[vec![Exact(3.0)], vec![Exact(5.0)]]), Measured::mean(&[3.0, 5.0]));
    }
}
