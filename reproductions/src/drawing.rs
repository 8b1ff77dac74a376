//! Parts of the report that experiments share.

use report::page::{Axis, Block, Plot, PlotSeries, Section, SeriesStyle, TableBlock};
use report::{Cell, Column, ResultsTable, Unit};

use crate::Findings;
use crate::claims::{Sheet, Spread};

/// An experiment's part of the report: what was done, then its figures.
pub(crate) fn findings(title: &str, text: &str, blocks: Vec<Block>, sheet: Sheet) -> Findings {
    let mut all = vec![Block::Text(text.into())];
    all.extend(blocks);
    let section = Section { title: title.into(), blocks: all };
    Findings { measured: sheet.measured().clone(), claims: sheet.finish(), section }
}

/// A curve with error bars from the smallest to the largest over seeds.
pub(crate) fn curve(name: impl Into<String>, points: &[(f64, Spread)]) -> PlotSeries {
    let means = points.iter().map(|(x, spread)| (*x, spread.mean)).collect();
    let intervals = points.iter().map(|(_, spread)| (spread.low, spread.high)).collect();
    PlotSeries { intervals, ..PlotSeries::new(name, SeriesStyle::Line, means) }
}

/// Somebody else's points.
pub(crate) fn published(name: impl Into<String>, points: Vec<(f64, f64)>) -> PlotSeries {
    PlotSeries::new(name, SeriesStyle::Published, points)
}

/// A level right across a plot, of which `at` is some place on the horizontal axis.
pub(crate) fn level(name: impl Into<String>, at: f64, height: f64) -> PlotSeries {
    PlotSeries::new(name, SeriesStyle::Bound, vec![(at, height)])
}

/// A plot without note.
pub(crate) fn plot(title: &str, note: &str, x: Axis, y: Axis, series: Vec<PlotSeries>) -> Plot {
    Plot { title: title.into(), note: note.into(), x, y, series }
}

/// A table whose columns each measure one thing.
pub(crate) fn table(
    title: &str,
    columns: &[(&str, &str, Unit)],
    rows: Vec<Vec<serde_json::Value>>,
) -> Block {
    let heads = columns.iter().map(|(key, head, _)| Column::new(*key, *head)).collect();
    let mut table = ResultsTable::new(heads);
    for row in rows {
        let cells = row.into_iter().zip(columns);
        table.push(cells.map(|(value, (.., unit))| Cell::new(value, *unit)).collect());
    }
    Block::Table(TableBlock { title: title.into(), note: String::new(), table })
}

/// The cumulative distribution of values as steps.
pub(crate) fn distribution(name: &str, values: &[f64]) -> PlotSeries {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let points = sorted.iter().enumerate().map(|(rank, &value)| (value, (rank + 1) as f64 / count));
    PlotSeries::new(name, SeriesStyle::Steps, points.collect())
}
