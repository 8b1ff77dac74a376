//! Slowdown against message size on W1 to W5 at 80 % load (§5.2, Figs 12 and 13).

use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::messages::{BySize, Messages, Slowdown, TENTHS};
use crate::claims::{Measured, Shape, Sheet, Spread};
use crate::drawing::{curve, findings, plot, table};
use crate::runs::{ScenarioFile, number, run_nth};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

pub(super) const FIG12: ScenarioFile = ScenarioFile {
    path: "reproductions/homa/fig12.toml",
    text: include_str!("../../homa/fig12.toml"),
};

/// In the order of the scenario's `[[fabric]]` entries.
pub(super) const TRANSPORTS: [&str; 3] = ["Homa", "NDP", "DCTCP"];

/// Load of the hosts' lines, headers and grants included (Figs 12 and 13).
const LOAD: f64 = 0.8;

/// One of the paper's workloads, with what the authors' simulator sets for it
/// (HomaSimulation, homaTransportConfig.ini).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// Payload as a share of all that the lines carry (`loadFactor` by `realLoadFactor`).
    payload: f64,
    /// Priorities for unscheduled packets (`prioLevels` less `adaptiveSchedPrioLevels`).
    unscheduled: u8,
    /// Messages of a quick run (our choice: some seconds).
    messages: u64,
    /// When a quick run ends at the latest, in microseconds: three times as long as its messages go on
    /// arriving (our choice; the longest of a hundred thousand would take ten times as long).
    limit_us: u64,
}

const fn workload(
    name: &'static str,
    payload: f64,
    unscheduled: u8,
    messages: u64,
    limit_us: u64,
) -> Workload {
    Workload { name, payload, unscheduled, messages, limit_us }
}

/// W1 to W5.
pub(super) const WORKLOADS: [Workload; 5] = [
    workload("W1", 0.657, 7, 40_000, 296),
    workload("W2", 0.796, 5, 40_000, 572),
    workload("W3", 0.887, 4, 40_000, 3_412),
    workload("W4", 0.898, 1, 10_000, 36_450),
    workload("W5", 0.898, 1, 2_000, 145_000),
];

/// How many times as many messages a full run has (our choice: hours).
const FULL: u64 = 10;

/// What a transport made of a workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Carried {
    pub(super) by_size: BySize,
    pub(super) realised: f64,
    pub(super) unfinished: f64,
    pub(super) queue: f64,
    pub(super) resent: f64,
}

/// Carries `messages` messages of a workload by the transport of this index.
pub(super) fn carry(
    workload: Workload,
    transport: usize,
    messages: u64,
    seed: u64,
    pulse: &mut Pulse<'_>,
) -> Result<Carried, Failure> {
    let limit = workload.limit_us * messages / workload.messages;
    let settings = [
        ("workload.sizes.name", json!(workload.name)),
        ("workload.load", json!(LOAD * workload.payload)),
        ("run.flows", json!(messages)),
        ("run.time", json!(format!("{limit} us"))),
        ("fabric[0].transport.unscheduled_priorities", json!(workload.unscheduled)),
    ];
    let mut sink = Messages::default();
    let result = run_nth(&FIG12.with(&settings, seed)?, transport, &mut sink, pulse)?;
    Ok(Carried {
        by_size: sink.by_size(),
        realised: number(&result, "load.realised"),
        unfinished: number(&result, "flows.unfinished"),
        queue: number(&result, "queue.max_bytes"),
        resent: number(&result, "retransmissions"),
    })
}

/// All runs: by workload, by transport, over seeds.
struct Swept {
    runs: Vec<Carried>,
    seeds: usize,
}

impl Swept {
    fn at(&self, workload: usize, transport: usize) -> &[Carried] {
        let first = (workload * TRANSPORTS.len() + transport) * self.seeds;
        &self.runs[first..first + self.seeds]
    }

    /// The 99th percentile of the shortest half, seed by seed.
    fn half(&self, workload: usize, transport: usize) -> Vec<f64> {
        self.at(workload, transport).iter().map(|run| run.by_size.half.p99).collect()
    }

    /// That of a transport by Homa's.
    fn quotients(&self, workload: usize, transport: usize) -> Vec<f64> {
        let pairs = self.half(workload, transport).into_iter().zip(self.half(workload, 0));
        pairs.map(|(theirs, homa)| theirs / homa).collect()
    }
}

/// Figs 12 and 13.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../homa/fig12.claims.toml"));
    let points: Vec<(Workload, usize)> = WORKLOADS
        .iter()
        .flat_map(|&workload| (0..TRANSPORTS.len()).map(move |transport| (workload, transport)))
        .collect();
    let times = if effort == Effort::Full { FULL } else { 1 };
    let jobs = with_seeds(&points, effort.seeds_of_longest());
    let runs = spread(&jobs, watch, |&((workload, transport), seed), pulse| {
        carry(workload, transport, workload.messages * times, seed, pulse)
    })?;
    let swept = Swept { runs, seeds: effort.seeds_of_longest() as usize };
    measure(&mut sheet, &swept);
    let text = format!(
        "144 hosts at 10 Gbps in 9 racks, Poisson arrivals, lines at {}: the same messages under \
         Homa, NDP and DCTCP. Messages are cut into tenths of equally many by size, the shortest \
         first, as in the paper's figures; one that was unfinished when the run ended counts as \
         slower than all others. NDP and DCTCP count neither preamble nor gap, so that their load is lower.",
        Unit::Share.format(LOAD)
    );
    let blocks = vec![Block::Plots(plots(&swept)), numbers(&swept)];
    Ok(findings("Slowdown by message size", &text, blocks, sheet))
}

fn measure(sheet: &mut Sheet, swept: &Swept) {
    let mut beside = Vec::new();
    for (index, workload) in WORKLOADS.iter().enumerate() {
        let word = workload.name.to_lowercase();
        sheet.measure(&format!("fig12.{word}"), Measured::mean(&swept.half(index, 0)));
        let quotients = swept.quotients(index, 2);
        sheet.measure(&format!("fig12.dctcp-{word}"), Measured::mean(&quotients));
        beside.push((workload.name, Spread::of(&swept.quotients(index, 1))));
    }
    let words = |(name, spread): &(&str, Spread)| format!("{name} {:.1}", spread.mean);
    let words: Vec<_> = beside.iter().map(words).collect();
    let is_better = beside.iter().all(|(_, spread)| spread.low > 1.0);
    let shape = Measured::shape(format!("times: {}", words.join(", ")), Shape::of(is_better));
    sheet.measure("fig12.ndp", shape);
}

/// A line over tenths for each transport, without those whose value unfinished messages leave unknown.
fn lines(swept: &Swept, workload: usize, get: fn(&Slowdown) -> f64) -> Vec<PlotSeries> {
    let line = |(transport, name): (usize, &&str)| {
        let runs = swept.at(workload, transport);
        let point = |tenth: usize| {
            let over_seeds: Vec<_> =
                runs.iter().map(|run| get(&run.by_size.tenths[tenth])).collect();
            ((tenth as f64 + 0.5) / TENTHS as f64, Spread::of(&over_seeds))
        };
        let points = (0..TENTHS).map(point).filter(|(_, spread)| spread.mean.is_finite());
        curve(*name, &points.collect::<Vec<_>>())
    };
    TRANSPORTS.iter().enumerate().map(line).collect()
}

fn plots(swept: &Swept) -> Vec<Plot> {
    let of_workload = |(index, workload): (usize, &Workload)| {
        let one = |title: &str, label: &str, get: fn(&Slowdown) -> f64| {
            let x = Axis::linear("Messages, the shortest first", Unit::Share);
            let y = Axis::log(label, Unit::Ratio);
            plot(&format!("{title}, {}", workload.name), "", x, y, lines(swept, index, get))
        };
        [
            one("Fig. 12", "Slowdown, 99%", |slowdown| slowdown.p99),
            one("Fig. 13", "Slowdown, median", |slowdown| slowdown.median),
        ]
    };
    WORKLOADS.iter().enumerate().flat_map(of_workload).collect()
}

/// Every figure of every point: means over seeds.
fn numbers(swept: &Swept) -> Block {
    let columns = [
        ("workload", "Workload", Unit::Count),
        ("transport", "Transport", Unit::Count),
        ("realised", "Load of payload, realised", Unit::Share),
        ("half_median", "Shortest half, median", Unit::Ratio),
        ("half_p99", "99%", Unit::Ratio),
        ("last_p99", "Longest tenth, 99%", Unit::Ratio),
        ("unfinished", "Messages unfinished", Unit::Count),
        ("queue", "Longest queue", Unit::Bytes),
        ("resent", "Packets sent again", Unit::Count),
    ];
    let row = |(index, workload): (usize, &Workload)| {
        let of_transport = move |(transport, name): (usize, &&str)| {
            let runs = swept.at(index, transport);
            let mean = |get: fn(&Carried) -> f64| {
                json!(Spread::of(&runs.iter().map(get).collect::<Vec<_>>()).mean)
            };
            vec![
                Value::from(workload.name),
                Value::from(*name),
                mean(|run| run.realised),
                mean(|run| run.by_size.half.median),
                mean(|run| run.by_size.half.p99),
                mean(|run| run.by_size.tenths[TENTHS - 1].p99),
                mean(|run| run.unfinished),
                mean(|run| run.queue),
                mean(|run| run.resent),
            ]
        };
        TRANSPORTS.iter().enumerate().map(of_transport).collect::<Vec<_>>()
    };
    table("Means over seeds", &columns, WORKLOADS.iter().enumerate().flat_map(row).collect())
}
