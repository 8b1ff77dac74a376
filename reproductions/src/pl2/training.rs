//! The network of a training run of VGG16 under PL2 and RDS (§6.2.3, Fig. 7).

use kernel::Time;
use rack::results::{FlowEnd, FlowRecord, FlowSink};
use report::Unit;
use report::page::{Axis, Block};
use scenario::Sink;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::racks::{LOST, quotients};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{distribution, findings, plot, table};
use crate::runs::{ScenarioFile, find_number, number, quantile, run_nth};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/pl2/vgg16.toml",
    text: include_str!("../../pl2/vgg16.toml"),
};

/// Iterations that the paper ran.
pub(super) const ITERATIONS: f64 = 100.0;
/// Flows of an iteration: 16 layers, four workers, two servers.
pub(super) const FLOWS: u64 = 16 * 4 * 2;
/// What a worker has in an iteration, in bytes (§6.2.3: 500 MiB).
const WORKER_BYTES: u64 = 500 * 1_048_576;
/// Threads that share what a worker sends to a server (fitted, with the bytes, to the 9.5 s and the 89 Gbps; §6.1 has
/// "multiple threads pinned to different cores", and with the work of a burst it takes four to keep that pace).
const PARTS: u64 = 5;
/// What a server receives in an iteration: half of what each worker has, in bits (fitted to the same figures).
pub(super) const SERVER_BITS: f64 = 4.0 * 250.0 * 1_048_576.0 * 8.0;

/// A run but for its seed: the paper's two schemes, and what tests why they differ.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Case {
    Pl2,
    Rds,
    /// RDS whose receivers grant four round trips, not one.
    RdsOvercommitted,
    /// RDS whose hosts have no threads to wait for: round trips of 4 µs.
    RdsHasty,
    /// RDS with round trips of 6.6 µs from thread to thread.
    RdsFar,
    /// PL2 with one thread for all that a worker sends to a server.
    Pl2Single,
}

/// Those of the figure.
const CASES: [Case; 5] =
    [Case::Pl2, Case::Rds, Case::RdsOvercommitted, Case::RdsHasty, Case::Pl2Single];
/// Iterations of a quick run: each takes as long as the others.
const FEW: u64 = 2;

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Pl2 => "PL2",
            Self::Rds => "RDS",
            Self::RdsOvercommitted => "RDS, four round trips granted",
            Self::RdsHasty => "RDS, round trips of 4 µs",
            Self::RdsFar => "RDS, round trips of 6.6 µs",
            Self::Pl2Single => "PL2, one thread to each server",
        }
    }

    fn run(self, iterations: u64, seed: u64, pulse: &mut Pulse<'_>) -> Result<Carried, Failure> {
        let parts = if self == Self::Pl2Single { 1 } else { PARTS };
        let size = format!("{} B", WORKER_BYTES / parts);
        let part = json!({ "kind": "parameter_server", "size": size, "iterations": iterations });
        let mut settings = vec![("workload.parts", json!(vec![part; parts as usize]))];
        match self {
            Self::RdsOvercommitted => {
                settings.push(("fabric.1.transport.overcommitment", json!(4)));
            }
            Self::RdsHasty => settings.push(("fabric.1.host.latency", json!("980 ns"))),
            Self::RdsFar => settings.push(("fabric.1.host.latency", json!("2260 ns"))),
            Self::Pl2 | Self::Rds | Self::Pl2Single => {}
        }
        let mut ends = Ends { iterations, ends: Vec::new() };
        let fabric = usize::from(!matches!(self, Self::Pl2 | Self::Pl2Single));
        let result = run_nth(&FILE.with(&settings, seed)?, fabric, &mut ends, pulse)?;
        let drops = find_number(&result, LOST).unwrap_or_else(|| number(&result, "drops"));
        Ok(Carried { seconds: ends.seconds(), drops })
    }
}

/// When the last flow of each iteration was there. The flows of a part are numbered in a row.
#[derive(Clone, Debug)]
struct Ends {
    iterations: u64,
    ends: Vec<Time>,
}

impl FlowSink for Ends {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        let FlowEnd::Completed { at, .. } = record.end else { return Ok(()) };
        let iteration = (record.flow.id.get() / FLOWS % self.iterations) as usize;
        if self.ends.len() <= iteration {
            self.ends.resize(iteration + 1, Time::ZERO);
        }
        self.ends[iteration] = self.ends[iteration].max(at);
        Ok(())
    }
}

impl Sink for Ends {}

impl Ends {
    /// How long each iteration took, in seconds.
    fn seconds(&self) -> Vec<f64> {
        let starts = std::iter::once(Time::ZERO).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| (end - start).as_seconds()).collect()
    }
}

/// What came of a run.
#[derive(Serialize, Deserialize)]
struct Carried {
    seconds: Vec<f64>,
    drops: f64,
}

impl Carried {
    fn mean(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / self.seconds.len() as f64
    }

    fn p99(&self) -> f64 {
        quantile(&self.seconds, 0.99)
    }
}

/// Fig. 7.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig7.claims.toml"));
    let iterations = if effort == Effort::Full { 100 } else { FEW };
    let jobs = with_seeds(&CASES, effort.seeds());
    let runs = spread(&jobs, watch, |&(case, seed), pulse| case.run(iterations, seed, pulse))?;
    let groups: Vec<&[Carried]> = runs.chunks(effort.seeds() as usize).collect();
    let over = |case: Case, get: &dyn Fn(&Carried) -> f64| -> Vec<f64> {
        let place = CASES.iter().position(|&known| known == case).expect("all are listed");
        groups[place].iter().map(get).collect()
    };
    let mut put = |word: &str, measured| sheet.measure(&format!("fig7.{word}"), measured);
    let means = [Case::Pl2, Case::Rds].map(|case| over(case, &Carried::mean));
    let tails = [Case::Pl2, Case::Rds].map(|case| over(case, &Carried::p99));
    for (word, index) in [("pl2", 0), ("rds", 1)] {
        let total: Vec<f64> = means[index].iter().map(|mean| mean * ITERATIONS).collect();
        let load: Vec<f64> = means[index].iter().map(|mean| SERVER_BITS / mean).collect();
        put(&format!("total-{word}"), Measured::mean(&total));
        put(&format!("load-{word}"), Measured::mean(&load));
        put(&format!("p99-{word}"), Measured::mean(&tails[index]));
    }
    for (word, case) in [("total-pl2-single", Case::Pl2Single), ("total-rds-hasty", Case::RdsHasty)]
    {
        put(word, Measured::mean(&over(case, &|run| run.mean() * ITERATIONS)));
    }
    put("total-ratio", Measured::mean(&quotients(&means[1], &means[0])));
    put("p99-ratio", Measured::mean(&quotients(&tails[1], &tails[0])));
    put("loss", Measured::largest(&over(Case::Pl2, &|run| run.drops)));
    let columns = [
        ("case", "", Unit::Count),
        ("mean", "Iteration, mean", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
        ("load", "Load of a server", Unit::BitsPerSecond),
        ("drops", "Packets dropped", Unit::Count),
    ];
    let row = |&case: &Case| {
        let mean = |get: &dyn Fn(&Carried) -> f64| Spread::of(&over(case, get)).mean;
        let seconds = mean(&Carried::mean);
        vec![
            json!(case.name()),
            json!(seconds),
            json!(mean(&Carried::p99)),
            json!(SERVER_BITS / seconds),
            json!(mean(&|run| run.drops)),
        ]
    };
    let lines = CASES.iter().zip(&groups).map(|(case, runs)| {
        (case.name(), runs.iter().flat_map(|run| run.seconds.clone()).collect())
    });
    let blocks =
        vec![times(lines), table("Means over seeds", &columns, CASES.iter().map(row).collect())];
    let text = format!(
        "Four workers send 500 MiB of gradients each to two servers, layer by layer, in five threads to each; {iterations} \
         iterations a run. Totals are {ITERATIONS} times the mean."
    );
    Ok(findings("The shuffle of VGG16's training", &text, blocks, sheet))
}

/// How long iterations took: the distribution of each case. Unit: seconds.
pub(super) fn times(cases: impl Iterator<Item = (&'static str, Vec<f64>)>) -> Block {
    let lines = cases.map(|(name, seconds)| distribution(name, &seconds)).collect();
    let x = Axis::linear("Time of an iteration", Unit::Seconds);
    let y = Axis::linear("Part of iterations", Unit::Share);
    Block::Plots(vec![plot("Fig. 7", "All seeds together.", x, y, lines)])
}

/// What the rows of Fig. 7 that differ hang on: RDS whose round trips are longer.
pub(super) fn causes(
    sheet: &mut Sheet,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<(), Failure> {
    let jobs = with_seeds(&[Case::Pl2, Case::RdsFar], effort.seeds());
    let runs = spread(&jobs, watch, |&(case, seed), pulse| case.run(FEW, seed, pulse))?;
    let means: Vec<f64> = runs.iter().map(Carried::mean).collect();
    let (pl2, far) = means.split_at(effort.seeds() as usize);
    let over = |get: &dyn Fn(f64) -> f64| far.iter().map(|&mean| get(mean)).collect::<Vec<_>>();
    sheet.measure("causes.total-rds-far", Measured::mean(&over(&|mean| mean * ITERATIONS)));
    sheet.measure("causes.load-rds-far", Measured::mean(&over(&|mean| SERVER_BITS / mean)));
    sheet.measure("causes.total-ratio-far", Measured::mean(&quotients(far, pl2)));
    Ok(())
}
