//! A paper's scenarios with parameters varied, carried out and measured.

use kernel::{Span, Time};
use rack::results::{Figure, FlowEnd, FlowRecord, FlowSink, RunResult};
use rack::{Flow, NodeId};
use scenario::{Argument, Document, Format, Registry, Scenario, Sink};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Failure;
use crate::spread::Pulse;

/// A scenario file that is part of this crate.
#[derive(Clone, Copy, Debug)]
pub struct ScenarioFile {
    /// Where it stands in the project, for messages.
    pub path: &'static str,
    /// What it says.
    pub text: &'static str,
}

impl ScenarioFile {
    /// The scenario with `settings` (key and value, as for `--set`) and this seed.
    ///
    /// # Errors
    /// If something is wrong with file or settings: a mistake of ours.
    pub fn with(&self, settings: &[(&str, Value)], seed: u64) -> Result<Scenario, Failure> {
        let document = Document::parse(self.path, self.text, Format::Toml)?;
        let set = |(key, value): &(&str, Value)| Argument::value(key, value, self.path);
        let mut arguments: Vec<_> = settings.iter().map(set).collect();
        arguments.push(Argument::value("seed", &Value::from(seed), self.path));
        Ok(Scenario::read(document, &arguments, &Registry::standard())?)
    }
}

/// The configuration of a scenario's first fabric.
///
/// # Panics
/// If the fabric is of another kind than `C` configures.
#[must_use]
pub fn config_of<C: DeserializeOwned>(scenario: &Scenario) -> C {
    let config = scenario.fabrics[0].plan.config().clone();
    serde_json::from_value(config).expect("a configuration reads back")
}

/// Runs the first fabric of a scenario; nothing is kept but its result.
///
/// # Errors
/// When the run breaks or is stopped.
pub fn run(scenario: &Scenario, pulse: &mut Pulse<'_>) -> Result<RunResult, Failure> {
    run_into(scenario, &mut (), pulse)
}

/// The same with the flows to `sink`.
///
/// # Errors
/// When the run breaks or is stopped.
pub fn run_into(
    scenario: &Scenario,
    sink: &mut dyn Sink,
    pulse: &mut Pulse<'_>,
) -> Result<RunResult, Failure> {
    run_nth(scenario, 0, sink, pulse)
}

/// The same with the scenario's fabric of this index.
///
/// # Errors
/// When the run breaks or is stopped.
///
/// # Panics
/// If there is no such fabric.
pub fn run_nth(
    scenario: &Scenario,
    index: usize,
    sink: &mut dyn Sink,
    pulse: &mut Pulse<'_>,
) -> Result<RunResult, Failure> {
    let result = scenario.execute(index, sink, &mut |progress| pulse.report(progress))?;
    if result.summary["interrupted"] == Value::Bool(true) {
        return Err(Failure::Interrupted);
    }
    Ok(result)
}

/// What has a summary.
pub trait Summarised {
    /// As in `summary.json`.
    fn summary(&self) -> &Value;
}

impl Summarised for RunResult {
    fn summary(&self) -> &Value {
        &self.summary
    }
}

/// The number at `path` of a summary, keys parted by dots. Not a number where flows that the run left
/// unfinished leave only a bound: it agrees with nothing that was published.
///
/// # Panics
/// If there is no number: a mistake of ours.
#[must_use]
pub fn number(result: &impl Summarised, path: &str) -> f64 {
    find_number(result, path).unwrap_or_else(|| {
        let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
        let table = table.split('.').fold(result.summary(), |value, key| &value[key]);
        let is_bounded = Figure::get(name, table).number().is_some();
        assert!(is_bounded, "the summary has no number {path}");
        f64::NAN
    })
}

/// The same where only some fabrics have one.
#[must_use]
pub fn find_number(result: &impl Summarised, path: &str) -> Option<f64> {
    path.split('.').fold(result.summary(), |value, key| &value[key]).as_f64()
}

/// A flow that was delivered.
#[derive(Clone, Copy, Debug)]
pub struct Delivered {
    /// As it was offered.
    pub flow: Flow,
    /// When its last byte arrived.
    pub end: Time,
}

impl Delivered {
    /// Its completion time.
    #[must_use]
    pub fn fct(&self) -> Span {
        self.end - self.flow.start
    }
}

/// Keeps the flows that were delivered, in order of their end.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// All of them.
    pub flows: Vec<Delivered>,
}

impl Collected {
    /// Completion times in seconds.
    #[must_use]
    pub fn seconds(&self) -> Vec<f64> {
        self.flows.iter().map(|flow| flow.fct().as_seconds()).collect()
    }

    /// Those from one node to another.
    #[must_use]
    pub fn between(&self, src: NodeId, dst: NodeId) -> Self {
        let flows = self.flows.iter().filter(|d| d.flow.src == src && d.flow.dst == dst);
        Self { flows: flows.copied().collect() }
    }
}

impl FlowSink for Collected {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        if let FlowEnd::Completed { at, .. } = record.end {
            self.flows.push(Delivered { flow: *record.flow, end: at });
        }
        Ok(())
    }
}

impl Sink for Collected {}

/// The value at share `q` of sorted `values`, by the nearest rank.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// The slope of the line with the least squared distance to the points.
///
/// # Panics
/// If there are fewer than two points.
#[must_use]
pub fn slope(points: &[(f64, f64)]) -> f64 {
    assert!(points.len() >= 2, "a line through {} points", points.len());
    let count = points.len() as f64;
    let mean = |get: fn(&(f64, f64)) -> f64| points.iter().map(get).sum::<f64>() / count;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    covariance / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_the_nearest_rank() {
        let values = [3.0, 1.0, 2.0, 4.0];
        let rows = [(0.0, 1.0), (0.25, 1.0), (0.5, 2.0), (0.51, 3.0), (1.0, 4.0)];
        for (q, expected) in rows {
            assert_eq!(quantile(&values, q), expected, "{q}");
        }
    }

    #[test]
    fn a_line_has_its_slope() {
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), 2.0);
        assert_eq!(slope(&[(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)]), 0.0);
    }
}
