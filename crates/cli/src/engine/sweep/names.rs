//! The numbers that a sweep is to draw are checked before its first point.

use std::collections::BTreeSet;
use std::path::Path;

use kernel::Bytes;
use scenario::Registry;

use super::super::Failure;
use super::super::keys::{self, Wanted};
use super::drawn::FABRIC;
use super::{Drawing, Grid, record};

/// Refuses keys that no summary of the grid has, nor that of a point which an earlier sweep left in the directory.
///
/// # Errors
/// Each of them, with what is like it.
pub(super) fn check(
    grid: &Grid,
    drawing: &Drawing,
    directory: &Path,
    registry: &Registry,
    memory: Bytes,
) -> Result<(), Failure> {
    let axes: Vec<String> = grid.axes.iter().map(|axis| axis.key.clone()).collect();
    let wanted = |flag: &str, key: &String, others: &[String]| Wanted {
        place: format!("{flag} {key}"),
        key: key.clone(),
        others: others.to_vec(),
    };
    let mut all: Vec<_> = drawing.keys.iter().map(|key| wanted("--plot", key, &[])).collect();
    let is_axis = |key: &String| key == FABRIC || axes.contains(key);
    let over = drawing.over.iter().filter(|key| !is_axis(key));
    all.extend(over.map(|key| wanted("--over", key, &axes)));
    if all.is_empty() {
        return Ok(());
    }
    let older = record::load(directory).ok();
    let older = older.iter().flat_map(|swept| &swept.points);
    let summaries = older.filter_map(|point| point.outcome.summary());
    let known: BTreeSet<String> = summaries.flat_map(keys::of).collect();
    // What cannot be read has no summary.
    let first = grid.axes.iter().map(|axis| axis.values[0].clone()).collect();
    let points = keys::one_replaced(first, |axis| grid.axes[axis].values.clone());
    let scenarios = points.into_iter().filter_map(|point| grid.scenario(&point, registry).ok());
    Ok(keys::check(&all, known, scenarios, memory)?)
}
