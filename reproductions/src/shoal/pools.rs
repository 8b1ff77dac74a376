//! Disaggregated applications (§7.4, Fig. 18).

use report::Unit;
use report::page::{Axis, Block, Plot, PlotSeries, SeriesStyle};
use serde_json::{Value, json};

use super::beside::mean;
use super::datacentre::{self, Figures, LONG_SEEDS, of};
use super::racks::{BASELINES, Carried, RACKS, Rack, goodput_quotients, quotients};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, level, plot, table};
use crate::runs::{Collected, Delivered, ScenarioFile};
use crate::spread::{spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FIG18: ScenarioFile = ScenarioFile {
    path: "reproductions/shoal/fig18.toml",
    text: include_str!("../../shoal/fig18.toml"),
};

/// What stands in for an application: its sizes (our choice; the paper's traces are not public). The
/// largest mean is 10.2 KB, for beyond 14 KB the busy nodes of a packet-switched rack could not send
/// all that they are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    /// Remote memory, page by page.
    Pages,
    /// Interactive queries: remote procedure calls of a large operator.
    Calls,
    /// The paper's heavy tail with a tenth of its mean.
    Analytics,
    /// Batch processing: pages, and large blocks from storage.
    Batch,
    /// Graph processing: vertices and pages, and a few large blocks.
    Graph,
    /// Relational queries: pages of a database, and runs of them.
    Relational,
}

const APPLICATIONS: [Application; 6] = [
    Application::Pages,
    Application::Calls,
    Application::Analytics,
    Application::Batch,
    Application::Graph,
    Application::Relational,
];

impl Application {
    fn name(self) -> &'static str {
        match self {
            Self::Pages => "pages of 4 KB",
            Self::Calls => "calls (Homa W3)",
            Self::Analytics => "heavy tail, mean 10 KB",
            Self::Batch => "4 KB, each 200th 1 MB",
            Self::Graph => "256 B, 4 KB, each 1,000th 1 MB",
            Self::Relational => "8 KB, 128 KB, each 1,000th 1 MB",
        }
    }

    fn name_with_blocks(self) -> &'static str {
        match self {
            Self::Pages => "pages of 4 KiB",
            Self::Calls => "256 B, 1.5 KB",
            Self::Analytics => "512 B, 8 KiB",
            Self::Batch => "4 KiB, more blocks",
            Self::Graph => "256 B, 4 KiB",
            Self::Relational => "8 KiB",
        }
    }

    fn sizes(self) -> Value {
        let steps =
            |points: Value| json!({ "kind": "points", "points": points, "reading": "upper_step" });
        match self {
            Self::Pages => json!({ "kind": "fixed", "size": "4 KB" }),
            Self::Calls => json!({ "kind": "table", "name": "W3" }),
            Self::Analytics => json!({ "kind": "pareto", "mean": "10 KB" }),
            Self::Batch => steps(json!([[4_000, 0.995], [1_000_000, 1.0]])),
            Self::Graph => steps(json!([[256, 0.5], [4_000, 0.999], [1_000_000, 1.0]])),
            Self::Relational => steps(json!([[8_000, 0.989], [128_000, 0.999], [1_000_000, 1.0]])),
        }
    }

    /// Sizes with what Fig. 18 shows of all six: short flows and long ones. Among the short are blocks of 64 KiB, as
    /// file systems and sorted runs have them (our choice, as is how many).
    fn sizes_with_blocks(self) -> Value {
        let points = match self {
            Self::Pages => json!([[4_096, 0.95], [65_536, 0.997], [1_000_000, 1.0]]),
            Self::Calls => json!([[256, 0.5], [1_500, 0.9], [65_536, 0.997], [1_000_000, 1.0]]),
            Self::Analytics => {
                json!([[512, 0.5], [8_192, 0.93], [65_536, 0.998], [1_000_000, 1.0]])
            }
            Self::Batch => json!([[4_096, 0.93], [65_536, 0.9985], [1_000_000, 1.0]]),
            Self::Graph => json!([[256, 0.5], [4_096, 0.92], [65_536, 0.998], [1_000_000, 1.0]]),
            Self::Relational => json!([[8_192, 0.98], [65_536, 0.9995], [1_000_000, 1.0]]),
        };
        json!({ "kind": "points", "points": points, "reading": "upper_step" })
    }
}

/// The share of flows both of whose ends are among the first `busy` nodes.
fn share_among(flows: &Collected, busy: u32) -> f64 {
    let among = |f: &&Delivered| f.flow.src.get().max(f.flow.dst.get()) < busy;
    flows.flows.iter().filter(among).count() as f64 / flows.flows.len() as f64
}

/// Flows of a run: 20,000 would be over before flows of 1 MB are (our choice).
fn flows(effort: Effort) -> u64 {
    datacentre::flows(effort).max(60_000)
}

/// Most flows of a run with blocks (our choice: in as many, baselines' tails have long been those of blocks).
const BLOCKS_FLOWS: u64 = 200_000;

/// All runs: for each application each rack's, a run for each seed.
struct Runs {
    carried: Vec<Carried>,
    seeds: usize,
}

impl Runs {
    fn at(&self, application: Application, rack: Rack) -> &[Carried] {
        let places = APPLICATIONS.iter().flat_map(|&one| RACKS.map(|rack| (one, rack)));
        let index = places.into_iter().position(|place| place == (application, rack));
        let index = index.expect("every application runs on every rack");
        &self.carried[index * self.seeds..][..self.seeds]
    }

    fn figures(&self, application: Application, rack: Rack) -> Vec<Figures> {
        self.at(application, rack).iter().map(|run| run.figures).collect()
    }

    /// By application: this rack's runs, and Shoal's.
    fn pairs(&self, rack: Rack) -> impl Iterator<Item = (&[Carried], &[Carried])> {
        APPLICATIONS.iter().map(move |&one| (self.at(one, rack), self.at(one, Rack::Shoal)))
    }

    /// By application and seed: the tail of a rack's short flows by that of Shoal's.
    fn tails(&self, rack: Rack) -> Vec<Vec<f64>> {
        self.pairs(rack).map(|(other, shoal)| quotients(other, shoal, |f| f.fct_p999)).collect()
    }
}

/// Runs of all applications on all racks; and the share of the flows among a third of the nodes, a run each.
fn carry(
    flows: u64,
    sizes: fn(Application) -> Value,
    watch: &mut Watch<'_>,
) -> Result<(Runs, Vec<f64>), Failure> {
    let places: Vec<(Application, Rack)> =
        APPLICATIONS.iter().flat_map(|&one| RACKS.map(|rack| (one, rack))).collect();
    let jobs = with_seeds(&places, LONG_SEEDS);
    let runs = spread(&jobs, watch, |&((application, rack), seed), pulse| {
        let settings = [("workload.sizes", sizes(application)), ("workload.flows", json!(flows))];
        let scenario = FIG18.with(&settings, seed)?;
        let (result, delivered) = rack.carry(&scenario, pulse)?;
        // Compute and memory nodes come first: a third of the rack.
        let busy = scenario.nodes().div_ceil(3);
        Ok((Carried::new(&result, &delivered), share_among(&delivered, busy)))
    })?;
    let (carried, skews): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
    Ok((Runs { carried, seeds: LONG_SEEDS as usize }, skews))
}

/// E18.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig18.claims.toml"));
    let (runs, skews) = carry(flows(effort), Application::sizes, watch)?;
    sheet.measure("fig18.skew", Measured::mean(&skews));
    measure(&mut sheet, &runs, "fig18");
    for rack in BASELINES {
        let tails = runs.tails(rack).concat();
        sheet.measure(&format!("fig18.tail-mean-{}", rack.word()), Measured::mean(&tails));
    }
    let blocks = vec![
        Block::Plots(plots(sheet.number("fig18.queue"), &runs)),
        numbers(&runs, Application::name),
    ];
    let text = "Compute and memory nodes, a third of the rack, exchange most of the flows; one \
                arrives each 12.65 ns. At that pace flows must be small: at a mean of 14 KB the \
                busy nodes of a packet-switched rack would send all they can. The sizes are \
                stand-ins, as the traces are not public.";
    Ok(findings("Disaggregated applications", text, blocks, sheet))
}

/// E18 with blocks of 64 KiB among the short flows of each application.
pub(super) fn run_with_blocks(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../shoal/fig18-blocks.claims.toml"));
    let (runs, _) = carry(flows(effort).min(BLOCKS_FLOWS), Application::sizes_with_blocks, watch)?;
    measure(&mut sheet, &runs, "fig18-blocks");
    let blocks = vec![numbers(&runs, Application::name_with_blocks)];
    let text = "Fig. 18 with short flows and long ones in each application, and blocks of 64 KiB \
                among the short.";
    Ok(findings("Disaggregated applications that move blocks", text, blocks, sheet))
}

/// The rows on Shoal's queues, and those on two racks: the least tail of the applications, as "all the six" are
/// told of, and mean goodputs over all applications and seeds.
fn measure(sheet: &mut Sheet, runs: &Runs, experiment: &str) {
    let queues: Vec<f64> = APPLICATIONS
        .iter()
        .flat_map(|&one| of(&runs.figures(one, Rack::Shoal), |f| f.queue))
        .collect();
    sheet.measure(&format!("{experiment}.queue"), Measured::largest(&queues));
    for rack in BASELINES {
        let least: Vec<f64> = runs.tails(rack).iter().map(|seeds| Spread::of(seeds).mean).collect();
        let goodputs = runs.pairs(rack).flat_map(|(other, shoal)| goodput_quotients(other, shoal));
        let mut put = |word: &str, measured: Measured| {
            sheet.measure(&format!("{experiment}.{word}-{}", rack.word()), measured);
        };
        put("tail", Measured::smallest(&least));
        put("goodput", Measured::mean(&goodputs.collect::<Vec<_>>()));
    }
}

/// Fig. 18, and the queues of Shoal.
fn plots(queue: f64, runs: &Runs) -> Vec<Plot> {
    let series = |rack: Rack, get: fn(&Figures) -> f64| {
        let points = APPLICATIONS.iter().enumerate().filter_map(|(place, &one)| {
            let values = of(&runs.figures(one, rack), get);
            (!values.is_empty()).then(|| (place as f64, Spread::of(&values)))
        });
        let points: Vec<_> = points.collect();
        PlotSeries {
            intervals: points.iter().map(|(_, spread)| (spread.low, spread.high)).collect(),
            ..PlotSeries::new(
                rack.name(),
                SeriesStyle::Points,
                points.iter().map(|(place, spread)| (*place, spread.mean)).collect(),
            )
        }
    };
    let all = |get| RACKS.iter().map(|&rack| series(rack, get)).collect::<Vec<_>>();
    let draw = |title: &str, y: Axis, series: Vec<PlotSeries>| {
        let names = APPLICATIONS.map(|application| application.name().to_string()).to_vec();
        plot(title, "", Axis::named("", names), y, series)
    };
    let queues = vec![series(Rack::Shoal, |f| f.queue), level("published", 0.0, queue)];
    let goodput = Axis::linear("Goodput, long flows", Unit::BitsPerSecond);
    vec![
        draw(
            "Fig. 18a",
            Axis::linear("FCT p99.9, short flows", Unit::Seconds),
            all(|f| f.fct_p999),
        ),
        draw("Fig. 18b", goodput, all(|f| f.goodput)),
        draw("Longest queue", Axis::linear("Longest queue", Unit::Cells), queues),
    ]
}

fn numbers(runs: &Runs, name: fn(Application) -> &'static str) -> Block {
    let columns = [
        ("application", "Application", Unit::Count),
        ("rack", "Rack", Unit::Count),
        ("realised", "Load of 50 Gbps, realised", Unit::Ratio),
        ("fct_mean", "FCT short, mean", Unit::Seconds),
        ("fct_p999", "p99.9", Unit::Seconds),
        ("fct_p999_quotient", "of Shoal's", Unit::Ratio),
        ("goodput", "Goodput long, mean", Unit::BitsPerSecond),
        ("goodput_quotient", "Shoal's of it, same flows", Unit::Ratio),
        ("queue", "Longest queue", Unit::Cells),
        ("node", "Most in a node", Unit::Cells),
    ];
    let row = |(application, rack): (Application, Rack)| {
        let (figures, shoal) = (runs.figures(application, rack), runs.at(application, Rack::Shoal));
        let own = runs.at(application, rack);
        let mean_of = |get: fn(&Figures) -> f64| mean(&of(&figures, get));
        vec![
            json!(name(application)),
            json!(rack.name()),
            mean_of(|f| f.realised),
            mean_of(|f| f.fct_mean),
            mean_of(|f| f.fct_p999),
            mean(&quotients(own, shoal, |f| f.fct_p999)),
            mean_of(|f| f.goodput),
            mean(&goodput_quotients(own, shoal)),
            if rack == Rack::Shoal { mean_of(|f| f.queue) } else { Value::Null },
            mean_of(|f| f.node),
        ]
    };
    let places = APPLICATIONS.iter().flat_map(|&one| RACKS.map(|rack| (one, rack)));
    table("Means over seeds", &columns, places.map(row).collect())
}
