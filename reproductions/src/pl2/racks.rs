//! Runs of the rack of PL2 §5, and what is read off them.

use rack::results::{Figure, RunResult};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::runs::{ScenarioFile, Summarised, number, run_nth};
use crate::spread::{spread, with_seeds};
use crate::{Failure, Watch};

/// PL2 §5: rate of a host's line, in bit/s.
pub(super) const LINE: f64 = 100e9;
/// Nodes of the scenarios: six servers (PL2 §5).
pub(super) const NODES: f64 = 6.0;

/// A run but for its seed.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// What it varies.
    pub(super) file: ScenarioFile,
    /// Which of the scenario's `[[fabric]]` entries.
    pub(super) fabric: usize,
    /// How.
    pub(super) settings: Vec<(&'static str, Value)>,
}

/// What is read off a run.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(super) struct Ran {
    summary: Value,
    /// Completion times in seconds, and the share of all flows at or below each.
    pub(super) fct: Vec<(f64, f64)>,
    /// Messages by size, smallest first.
    pub(super) bins: Vec<Bin>,
    /// Names of the gauges.
    gauges: Vec<String>,
    /// End of each interval over which they count, in seconds.
    seconds: Vec<f64>,
    /// A row for each interval, a column for each gauge.
    values: Vec<Vec<f64>>,
}

/// The messages of one range of sizes, in bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Bin {
    pub(super) from: u64,
    pub(super) to: u64,
    /// How many were measured, unfinished ones too.
    pub(super) count: u64,
    /// Median of their completion times, in seconds.
    #[serde(with = "Known")]
    pub(super) p50: Figure,
    /// 99th percentile.
    #[serde(with = "Known")]
    pub(super) p99: Figure,
}

/// How a [`Figure`] is kept.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Figure")]
enum Known {
    Missing,
    Exact(f64),
    AtLeast(f64),
    AtMost(f64),
}

impl Ran {
    pub(super) fn of(result: RunResult) -> Self {
        let bin = |bin: &rack::results::SizeBin| Bin {
            from: bin.from.get(),
            to: bin.to.get(),
            count: bin.count,
            p50: bin.fct.p50,
            p99: bin.fct.p99,
        };
        let mut cdfs = result.cdfs.into_iter();
        let fct = cdfs.find(|cdf| (cdf.quantity, cdf.class) == ("fct", "all"));
        Self {
            summary: result.summary,
            fct: fct.map(|cdf| cdf.points).unwrap_or_default(),
            bins: result.bins.iter().map(bin).collect(),
            gauges: result.series.gauges.iter().map(|gauge| gauge.name.into()).collect(),
            seconds: result.series.seconds,
            values: result.series.values,
        }
    }
}

impl Summarised for Ran {
    fn summary(&self) -> &Value {
        &self.summary
    }
}

/// Carries out every case with so many seeds: a group of seeds for each case.
pub(super) fn carry_all(
    cases: &[Case],
    seeds: u64,
    watch: &mut Watch<'_>,
) -> Result<Vec<Vec<Ran>>, Failure> {
    let jobs = with_seeds(cases, seeds);
    let mut runs = spread(&jobs, watch, |(case, seed), pulse| {
        let scenario = case.file.with(&case.settings, *seed)?;
        Ok(Ran::of(run_nth(&scenario, case.fabric, &mut (), pulse)?))
    })?
    .into_iter();
    Ok(cases.iter().map(|_| runs.by_ref().take(seeds as usize).collect()).collect())
}

/// A number of each run's summary, keys parted by dots.
pub(super) fn numbers(runs: &[Ran], path: &str) -> Vec<f64> {
    runs.iter().map(|run| number(run, path)).collect()
}

/// Packets that found a port of PL2's switch full. Those that it drops because too much is reserved, as it
/// should, come again and do not count (PL2 §4.4).
pub(super) const LOST: &str = "pl2.dropped_full";

/// The switch takes packets off its counters when they come, not when they leave.
pub(super) fn at_ingress(fabric: &'static str) -> (&'static str, Value) {
    (fabric, Value::from("ingress"))
}

/// Payload that arrived after `from` seconds, in bit/s.
pub(super) fn goodput(run: &Ran, from: f64) -> f64 {
    goodput_between(run, from, f64::INFINITY)
}

/// Payload that arrived after `from` seconds and up to `to`, in bit/s.
pub(super) fn goodput_between(run: &Ran, from: f64, to: f64) -> f64 {
    let [bytes, seconds] = within(run, "delivered_bytes", from, to);
    bytes * 8.0 / seconds
}

/// What a gauge counted after `from` seconds and up to `to`, and in how many seconds that was.
fn within(run: &Ran, gauge: &str, from: f64, to: f64) -> [f64; 2] {
    let column = column(run, gauge);
    let [first, last] =
        [from, to].map(|instant| run.seconds.partition_point(|&end| end <= instant));
    let at = |row: usize| if row == 0 { 0.0 } else { run.seconds[row - 1] };
    let counted = run.values[first..last.max(first)].iter().map(|row| row[column]);
    [counted.sum(), at(last) - at(first)]
}

/// Share of the time that two runs have in common, at its beginning, of which nothing is compared (our choice: the
/// scenarios' warm-up).
const WARM_UP: f64 = 0.1;

/// The quotient of what arrived, seed by seed, until the earlier of both runs ends. Each run goes on until all of the
/// messages that are measured have ended, and with it the arrivals: later ones only one of the two was offered.
pub(super) fn carried_alike(above: &[Ran], below: &[Ran]) -> Vec<f64> {
    let end = |run: &Ran| run.seconds.last().copied().unwrap_or_default();
    let quotient = |(above, below): (&Ran, &Ran)| {
        let to = end(above).min(end(below));
        let [above, below] = [above, below].map(|run| {
            let [bytes, seconds] = within(run, "delivered_bytes", WARM_UP * to, to);
            bytes / seconds
        });
        above / below
    };
    above.iter().zip(below).map(quotient).collect()
}

/// A gauge over time: seconds and values.
pub(super) fn gauge(run: &Ran, gauge: &str) -> Vec<(f64, f64)> {
    let column = column(run, gauge);
    let rows = run.seconds.iter().zip(&run.values);
    rows.map(|(&end, row)| (end, row[column])).collect()
}

fn column(run: &Ran, gauge: &str) -> usize {
    let found = run.gauges.iter().position(|known| known == gauge);
    found.unwrap_or_else(|| panic!("no gauge {gauge}"))
}

/// The same quotient seed by seed, as far as both have seeds.
pub(super) fn quotients(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}

/// Seconds that so many bytes take on a line.
pub(super) fn on_the_line(bytes: f64) -> f64 {
    bytes * 8.0 / LINE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that delivered so much by each of these instants since the one before.
    fn run(delivered: &[(f64, f64)]) -> Ran {
        Ran {
            gauges: vec!["hops".into(), "delivered_bytes".into()],
            seconds: delivered.iter().map(|row| row.0).collect(),
            values: delivered.iter().map(|row| vec![0.0, row.1]).collect(),
            ..Ran::default()
        }
    }

    #[test]
    fn goodput_counts_what_came_after_an_instant() {
        let run = run(&[(1.0, 100.0), (2.0, 10.0), (4.0, 40.0)]);
        assert_eq!(goodput(&run, 0.0), 150.0 * 8.0 / 4.0);
        assert_eq!(goodput(&run, 1.0), 50.0 * 8.0 / 3.0);
        assert_eq!(goodput_between(&run, 0.0, 2.0), 110.0 * 8.0 / 2.0);
    }

    #[test]
    fn what_one_run_carried_after_the_other_had_ended_counts_for_nothing() {
        let short = [run(&[(0.1, 999.0), (0.5, 20.0), (1.0, 30.0)])];
        let long = [run(&[(0.1, 1.0), (1.0, 25.0), (2.0, 1e6)])];
        assert_eq!(carried_alike(&short, &long), [2.0]);
        assert_eq!(carried_alike(&long, &short), [0.5]);
    }
}
