//! The training of Fig. 7 with the generator of §6.3, whose threads take a message each (§6.2.3).

use kernel::Time;
use rack::results::{FlowEnd, FlowRecord, FlowSink};
use report::Unit;
use scenario::Sink;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::racks::quotients;
use super::training::{FLOWS, ITERATIONS, SERVER_BITS, times};
use crate::claims::{Measured, Sheet, Spread};
use crate::drawing::{findings, table};
use crate::runs::{ScenarioFile, quantile, run_nth};
use crate::spread::{Pulse, spread, with_seeds};
use crate::{Effort, Failure, Findings, Watch};

const FILE: ScenarioFile = ScenarioFile {
    path: "reproductions/pl2/vgg16-threads.toml",
    text: include_str!("../../pl2/vgg16-threads.toml"),
};

/// A run but for its seed: the scenario's two schemes, and each of what the paper does not give at another value.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Case {
    Pl2,
    Rds,
    Pl2Four,
    RdsFour,
    Pl2Six,
    RdsSix,
    /// PL2 whose threads have the work of the other experiments: 0.85 ns a byte.
    Pl2Work,
    /// RDS with round trips of 5 µs (§2).
    RdsNear,
    /// RDS whose receivers have one message of each sender at a time.
    RdsSenders,
}

/// All of them.
const CASES: [Case; 9] = [
    Case::Pl2,
    Case::Rds,
    Case::Pl2Four,
    Case::RdsFour,
    Case::Pl2Six,
    Case::RdsSix,
    Case::Pl2Work,
    Case::RdsNear,
    Case::RdsSenders,
];
/// So many of them are drawn, those that differ in threads alone: nine lines in one plot nobody tells apart.
const DRAWN: usize = 6;
/// What a byte is to PL2's threads: five of them then make the 89 Gbps (fitted; the scenario has what other experiments have).
const BYTE_COST: &str = "250 ps";
/// Workers of the scenario.
const WORKERS: usize = 4;
/// Iterations of a quick run, and of what only varies a setting.
const FEW: u64 = 12;

impl Case {
    fn name(self) -> &'static str {
        match self {
            Self::Pl2 => "PL2",
            Self::Rds => "RDS",
            Self::Pl2Four => "PL2, four threads",
            Self::RdsFour => "RDS, four threads",
            Self::Pl2Six => "PL2, six threads",
            Self::RdsSix => "RDS, six threads",
            Self::Pl2Work => "PL2, the other experiments' work",
            Self::RdsNear => "RDS, round trips of 5 µs",
            Self::RdsSenders => "RDS, senders take turns",
        }
    }

    fn fabric(self) -> usize {
        usize::from(!matches!(self, Self::Pl2 | Self::Pl2Four | Self::Pl2Six | Self::Pl2Work))
    }

    /// What it varies.
    fn setting(self) -> Option<(&'static str, Value)> {
        match self {
            Self::Pl2 | Self::Pl2Work | Self::Rds => None,
            Self::Pl2Four | Self::RdsFour => Some(("workload.threads", json!(4))),
            Self::Pl2Six | Self::RdsSix => Some(("workload.threads", json!(6))),
            Self::RdsNear => Some(("fabric.1.host.latency", json!("1460 ns"))),
            Self::RdsSenders => Some(("fabric.1.transport.turns", json!("senders"))),
        }
    }

    fn run(self, iterations: u64, seed: u64, pulse: &mut Pulse<'_>) -> Result<Carried, Failure> {
        let is_main = matches!(self, Self::Pl2 | Self::Rds);
        let iterations = if is_main { iterations } else { FEW };
        let mut settings = vec![("workload.iterations", json!(iterations))];
        settings.extend(self.setting());
        if self != Self::Pl2Work {
            settings.push(("fabric.0.host.byte_cost", json!(BYTE_COST)));
        }
        let none = (Time::NEVER, Time::ZERO);
        let mut sets = Sets { spans: vec![[none; WORKERS]; iterations as usize] };
        run_nth(&FILE.with(&settings, seed)?, self.fabric(), &mut sets, pulse)?;
        Ok(sets.carried())
    }
}

/// When the first flow of each set of gradients began, and when the last was there.
struct Sets {
    /// Iteration by iteration, by worker.
    spans: Vec<[(Time, Time); WORKERS]>,
}

impl FlowSink for Sets {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        let FlowEnd::Completed { at, .. } = record.end else { return Ok(()) };
        let sets = &mut self.spans[(record.flow.id.get() / FLOWS) as usize];
        let (start, end) = &mut sets[record.flow.src.index()];
        (*start, *end) = ((*start).min(record.flow.start), (*end).max(at));
        Ok(())
    }
}

impl Sink for Sets {}

impl Sets {
    fn carried(&self) -> Carried {
        let seconds = |&(start, end): &(Time, Time)| (end - start).as_seconds();
        let whole = |sets: &[(Time, Time); WORKERS]| {
            sets.iter().copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).expect("a worker")
        };
        let all: Vec<_> = self.spans.iter().map(whole).collect();
        let end = all.iter().map(|&(_, end)| end).max().unwrap_or(Time::ZERO);
        Carried {
            own: self.spans.iter().flatten().map(seconds).collect(),
            all: all.iter().map(seconds).collect(),
            mean: (end - Time::ZERO).as_seconds() / all.len() as f64,
        }
    }
}

/// What came of a run. Unit of all: seconds.
#[derive(Serialize, Deserialize)]
struct Carried {
    /// From the first byte of a worker's gradients of an iteration to the last.
    own: Vec<f64>,
    /// From the first byte of an iteration to the last, of whatever worker.
    all: Vec<f64>,
    /// The time of the run by its iterations.
    mean: f64,
}

impl Carried {
    fn p99(&self) -> f64 {
        quantile(&self.own, 0.99)
    }

    fn p99_of_all(&self) -> f64 {
        quantile(&self.all, 0.99)
    }
}

/// Fig. 7 with threads that take a message each.
pub(super) fn run(effort: Effort, watch: &mut Watch<'_>) -> Result<Findings, Failure> {
    let mut sheet = Sheet::read(include_str!("../../pl2/fig7-threads.claims.toml"));
    let iterations = if effort == Effort::Full { ITERATIONS as u64 } else { FEW };
    let seeds = effort.seeds_of_longest();
    let jobs = with_seeds(&CASES, seeds);
    let runs = spread(&jobs, watch, |&(case, seed), pulse| case.run(iterations, seed, pulse))?;
    let groups: Vec<&[Carried]> = runs.chunks(seeds as usize).collect();
    let over = |case: Case, get: &dyn Fn(&Carried) -> f64| -> Vec<f64> {
        let place = CASES.iter().position(|&known| known == case).expect("all are listed");
        groups[place].iter().map(get).collect()
    };
    let total = |case| over(case, &|run| run.mean * ITERATIONS);
    let load = |case| over(case, &|run| SERVER_BITS / run.mean);
    let tail = |case| over(case, &Carried::p99);
    let measures = [
        ("total-pl2", total(Case::Pl2)),
        ("load-pl2", load(Case::Pl2)),
        ("p99-pl2", tail(Case::Pl2)),
        ("total-rds", total(Case::Rds)),
        ("load-rds", load(Case::Rds)),
        ("p99-rds", tail(Case::Rds)),
        ("total-ratio", quotients(&total(Case::Rds), &total(Case::Pl2))),
        ("p99-ratio", quotients(&tail(Case::Rds), &tail(Case::Pl2))),
        ("p99-pl2-all", over(Case::Pl2, &Carried::p99_of_all)),
        ("p99-rds-all", over(Case::Rds, &Carried::p99_of_all)),
        ("p99-pl2-four", tail(Case::Pl2Four)),
        ("p99-rds-four", tail(Case::RdsFour)),
        ("p99-pl2-six", tail(Case::Pl2Six)),
        ("p99-rds-six", tail(Case::RdsSix)),
        ("p99-pl2-work", tail(Case::Pl2Work)),
        ("total-pl2-work", total(Case::Pl2Work)),
        ("p99-rds-near", tail(Case::RdsNear)),
        ("p99-rds-senders", tail(Case::RdsSenders)),
    ];
    for (word, values) in measures {
        sheet.measure(&format!("fig7-threads.{word}"), Measured::mean(&values));
    }
    let columns = [
        ("case", "", Unit::Count),
        ("total", "100 iterations", Unit::Seconds),
        ("load", "Load of a server", Unit::BitsPerSecond),
        ("p50", "Iteration of a worker, median", Unit::Seconds),
        ("p99", "99 %", Unit::Seconds),
    ];
    let row = |&case: &Case| {
        let mean = |values: &[f64]| json!(Spread::of(values).mean);
        let median = over(case, &|run| quantile(&run.own, 0.5));
        let [total, load, tail] = [total(case), load(case), tail(case)].map(|values| mean(&values));
        vec![json!(case.name()), total, load, mean(&median), tail]
    };
    let lines = CASES[..DRAWN]
        .iter()
        .zip(&groups)
        .map(|(case, runs)| (case.name(), runs.iter().flat_map(|run| run.own.clone()).collect()));
    let blocks =
        vec![times(lines), table("Means over seeds", &columns, CASES.iter().map(row).collect())];
    let text = format!(
        "Four workers send 500 MiB of gradients each to two servers; each has five threads, which take a layer's part for a \
         server each, whatever iteration it is of. {iterations} iterations a run, {FEW} where a setting varies. Times are those of \
         a worker's gradients of an iteration, from the first byte to the last; those that are under way together overlap."
    );
    Ok(findings("VGG16's training, a thread for each message", &text, blocks, sheet))
}
