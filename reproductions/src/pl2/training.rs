//! The network of a training run of VGG16 under PL2 and RDS (§6.2.3, Fig. 7).

use kernel::Time;
use rack::results::{FlowEnd, FlowRecord, FlowSink};
use report::Unit;
use report::page::{Axis, Block};
use scenario::Sink;
use serde_json::json;

use super::SEEDS;
use super::incast;
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
const ITERATIONS: f64 = 100.0;
/// Flows of an iteration: 16 layers, four workers, two servers.
const FLOWS: u64 = 16 * 4 * 2;
/// What a server receives in an iteration: half of what each worker has, in bits.
const SERVER_BITS: f64 = 4.0 * 250.0 * 1_048_576.0 * 8.0;

/// A run but for its seed: the paper's two schemes, and what tests why they differ.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Case {
    Pl2,
    Rds,
    /// RDS whose receivers grant four round trips, not one.
    RdsOvercommitted,
    /// PL2 whose bursts are as much work to their threads as would hold Fig. 9's at 80 Gbps.
    Pl2Worked,
}

const CASES: [Case; 4] = [Case::Pl2, Case::Rds, Case::RdsOvercommitted, Case::Pl2Worked];

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Pl2 => "PL2",
            Self::Rds => "RDS",
            Self::RdsOvercommitted => "RDS, four round trips granted",
            Self::Pl2Worked => "PL2, with work for each burst",
        }
    }

    fn run(self, iterations: u64, seed: u64, pulse: &mut Pulse<'_>) -> Result<Carried, Failure> {
        let mut settings = vec![("workload.iterations", json!(iterations))];
        if self == Self::RdsOvercommitted {
            settings.push(("fabric.1.transport.overcommitment", json!(4)));
        }
        if self == Self::Pl2Worked {
            settings.push(("fabric.0.host.burst_cost", json!(incast::BURST_COST)));
        }
        let mut ends = Ends::default();
        let fabric = usize::from(matches!(self, Self::Rds | Self::RdsOvercommitted));
        let result = run_nth(&FILE.with(&settings, seed)?, fabric, &mut ends, pulse)?;
        let drops = find_number(&result, LOST).unwrap_or_else(|| number(&result, "drops"));
        Ok(Carried { seconds: ends.iterations(), drops })
    }
}

/// When the last flow of each iteration was there.
#[derive(Clone, Debug, Default)]
struct Ends(Vec<Time>);

impl FlowSink for Ends {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        let FlowEnd::Completed { at, .. } = record.end else { return Ok(()) };
        let iteration = (record.flow.id.get() / FLOWS) as usize;
        if self.0.len() <= iteration {
            self.0.resize(iteration + 1, Time::ZERO);
        }
        self.0[iteration] = self.0[iteration].max(at);
        Ok(())
    }
}

impl Sink for Ends {}

impl Ends {
    /// How long each iteration took, in seconds.
    fn iterations(&self) -> Vec<f64> {
        let starts = std::iter::once(Time::ZERO).chain(self.0.iter().copied());
        starts.zip(&self.0).map(|(start, &end)| (end - start).as_seconds()).collect()
    }
}

/// What came of a run.
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
    let iterations = if effort == Effort::Full { 100 } else { 2 };
    let jobs = with_seeds(&CASES, SEEDS);
    let runs = spread(&jobs, watch, |&(case, seed), pulse| case.run(iterations, seed, pulse))?;
    let groups: Vec<&[Carried]> = runs.chunks(SEEDS as usize).collect();
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
    let worked = over(Case::Pl2Worked, &|run| run.mean() * ITERATIONS);
    put("total-pl2-work", Measured::mean(&worked));
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
        let seconds: Vec<f64> = runs.iter().flat_map(|run| run.seconds.clone()).collect();
        distribution(case.name(), &seconds)
    });
    let x = Axis::linear("Time of an iteration", Unit::Seconds);
    let y = Axis::linear("Part of iterations", Unit::Share);
    let blocks = vec![
        Block::Plots(vec![plot("Fig. 7", "All seeds together.", x, y, lines.collect())]),
        table("Means over seeds", &columns, CASES.iter().map(row).collect()),
    ];
    let text = format!(
        "Four workers send 500 MiB of gradients each to two servers, layer by layer; {iterations} \
         iterations a run. Totals are {ITERATIONS} times the mean."
    );
    Ok(findings("The shuffle of VGG16's training", &text, blocks, sheet))
}
