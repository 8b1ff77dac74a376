//! Points that differ in their seed alone, as one: means with their intervals.

use rack::results::{RunResult, SeriesTable, seeds};
use serde_json::Value;

use super::{Axis, Outcome, Point, Swept};

/// The key whose values are seeds: points over it are put together.
pub(super) const SEED: &str = "seed";

/// The points of one setting and fabric.
#[derive(Clone, Debug)]
pub struct Mean {
    /// The value of each axis but the seed's, in the order of [`Swept::axes_of_means`].
    pub settings: Vec<String>,
    /// What the fabric is called.
    pub label: String,
    /// The seeds that have run.
    pub seeds: Vec<u64>,
    /// Of how many.
    pub count: usize,
    /// Figures are means, and `intervals` says how far each may be off; `None` if no seed has run.
    pub summary: Option<Value>,
    /// Why a seed failed, if one did.
    pub failed: Option<String>,
}

impl Mean {
    /// One word for tables, as of a point.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match &self.failed {
            Some(_) => "failed",
            None if self.seeds.len() < self.count => "not run",
            None => "done",
        }
    }
}

impl Swept {
    /// The axes but that of seeds.
    #[must_use]
    pub fn axes_of_means(&self) -> Vec<&Axis> {
        self.axes.iter().filter(|axis| axis.key != SEED).collect()
    }

    /// Each setting and fabric once, in the order of the points.
    #[must_use]
    pub fn means(&self) -> Vec<Mean> {
        let mut groups: Vec<(Vec<String>, Vec<&Point>)> = Vec::new();
        for point in &self.points {
            let settings = self.axes.iter().zip(&point.settings);
            let settings = settings.filter(|(axis, _)| axis.key != SEED);
            let settings: Vec<String> = settings.map(|(_, value)| value.clone()).collect();
            let same = |group: &&mut (Vec<String>, Vec<&Point>)| {
                group.0 == settings && group.1[0].label == point.label
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.1.push(point),
                None => groups.push((settings, vec![point])),
            }
        }
        groups.into_iter().map(|(settings, points)| mean(settings, &points)).collect()
    }
}

/// Points of one setting and fabric as one.
pub fn mean(settings: Vec<String>, points: &[&Point]) -> Mean {
    let done: Vec<(u64, &Value)> =
        points.iter().filter_map(|point| Some((point.seed, point.outcome.summary()?))).collect();
    let failed = points.iter().find_map(|point| match &point.outcome {
        Outcome::Failed(why) => Some(why.clone()),
        _ => None,
    });
    let summary = match done.as_slice() {
        [] => None,
        [(_, one)] => Some((*one).clone()),
        _ => {
            Some(seeds::together(done.iter().map(|(_, summary)| alone(summary)).collect()).summary)
        }
    };
    let seeds = done.iter().map(|(seed, _)| *seed).collect();
    let label = points[0].label.clone();
    Mean { settings, label, seeds, count: points.len(), summary, failed }
}

/// A run of which nothing is known but its summary.
fn alone(summary: &Value) -> RunResult {
    RunResult {
        label: String::new(),
        scenario: String::new(),
        summary: summary.clone(),
        stages: Vec::new(),
        bins: Vec::new(),
        cdfs: Vec::new(),
        series: SeriesTable::default(),
        tables: Vec::new(),
    }
}
