//! Runs of the rack of PL2 §5, and what is read off them.

use rack::results::RunResult;
use serde_json::Value;

use super::SEEDS;
use crate::runs::{ScenarioFile, number, run_nth};
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

/// Carries out every case with every seed: a group of seeds for each case.
pub(super) fn carry_all(
    cases: &[Case],
    watch: &mut Watch<'_>,
) -> Result<Vec<Vec<RunResult>>, Failure> {
    let jobs = with_seeds(cases, SEEDS);
    let mut runs = spread(&jobs, watch, |(case, seed), pulse| {
        let scenario = case.file.with(&case.settings, *seed)?;
        run_nth(&scenario, case.fabric, &mut (), pulse)
    })?
    .into_iter();
    Ok(cases.iter().map(|_| runs.by_ref().take(SEEDS as usize).collect()).collect())
}

/// A number of each run's summary, keys parted by dots.
pub(super) fn numbers(runs: &[RunResult], path: &str) -> Vec<f64> {
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
pub(super) fn goodput(run: &RunResult, from: f64) -> f64 {
    let [bytes, seconds] = within(run, "delivered_bytes", from, f64::INFINITY);
    bytes * 8.0 / seconds
}

/// What a gauge counted after `from` seconds and up to `to`, and in how many seconds that was.
fn within(run: &RunResult, gauge: &str, from: f64, to: f64) -> [f64; 2] {
    let series = &run.series;
    let column = column(run, gauge);
    let [first, last] =
        [from, to].map(|instant| series.seconds.partition_point(|&end| end <= instant));
    let at = |row: usize| if row == 0 { 0.0 } else { series.seconds[row - 1] };
    let counted = series.values[first..last.max(first)].iter().map(|row| row[column]);
    [counted.sum(), at(last) - at(first)]
}

/// Share of the time that two runs have in common, at its beginning, of which nothing is compared (our choice: the
/// scenarios' warm-up).
const WARM_UP: f64 = 0.1;

/// The quotient of what arrived, seed by seed, until the earlier of both runs ends. Each run goes on until all of the
/// messages that are measured have ended, and with it the arrivals: later ones only one of the two was offered.
pub(super) fn carried_alike(above: &[RunResult], below: &[RunResult]) -> Vec<f64> {
    let end = |run: &RunResult| run.series.seconds.last().copied().unwrap_or_default();
    let quotient = |(above, below): (&RunResult, &RunResult)| {
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
pub(super) fn gauge(run: &RunResult, gauge: &str) -> Vec<(f64, f64)> {
    let column = column(run, gauge);
    let rows = run.series.seconds.iter().zip(&run.series.values);
    rows.map(|(&end, row)| (end, row[column])).collect()
}

fn column(run: &RunResult, gauge: &str) -> usize {
    let found = run.series.gauges.iter().position(|known| known.name == gauge);
    found.unwrap_or_else(|| panic!("no gauge {gauge}"))
}

/// The same quotient seed by seed.
pub(super) fn quotients(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}

/// Seconds that so many bytes take on a line.
pub(super) fn on_the_line(bytes: f64) -> f64 {
    bytes * 8.0 / LINE
}

#[cfg(test)]
mod tests {
    use rack::results::SeriesTable;
    use rack::{Gauge, GaugeKind};

    use super::*;

    /// A run that delivered so much by each of these instants since the one before.
    fn run(delivered: &[(f64, f64)]) -> RunResult {
        let gauge = |name| Gauge { name, meaning: "", kind: GaugeKind::Count };
        let series = SeriesTable {
            gauges: vec![gauge("hops"), gauge("delivered_bytes")],
            seconds: delivered.iter().map(|row| row.0).collect(),
            values: delivered.iter().map(|row| vec![0.0, row.1]).collect(),
        };
        RunResult {
            label: String::new(),
            scenario: String::new(),
            summary: Value::Null,
            stages: Vec::new(),
            bins: Vec::new(),
            cdfs: Vec::new(),
            series,
            tables: Vec::new(),
        }
    }

    #[test]
    fn goodput_counts_what_came_after_an_instant() {
        let run = run(&[(1.0, 100.0), (2.0, 10.0), (4.0, 40.0)]);
        assert_eq!(goodput(&run, 0.0), 150.0 * 8.0 / 4.0);
        assert_eq!(goodput(&run, 1.0), 50.0 * 8.0 / 3.0);
    }

    #[test]
    fn what_one_run_carried_after_the_other_had_ended_counts_for_nothing() {
        let short = [run(&[(0.1, 999.0), (0.5, 20.0), (1.0, 30.0)])];
        let long = [run(&[(0.1, 1.0), (1.0, 25.0), (2.0, 1e6)])];
        assert_eq!(carried_alike(&short, &long), [2.0]);
        assert_eq!(carried_alike(&long, &short), [0.5]);
    }
}
