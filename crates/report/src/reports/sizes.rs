//! Flows by size and their distributions: the plots that all fabrics share.

use rack::results::{Figure, Quantiles, RunResult, SizeBin};

use crate::page::{Axis, Plot, PlotSeries, SeriesStyle};
use crate::{Cell, Column, ResultsTable, Unit};

/// What is measured of a flow.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    CompletionTime,
    Slowdown,
}

impl Quantity {
    /// As in [`rack::results::Cdf::quantity`].
    fn key(self) -> &'static str {
        match self {
            Self::CompletionTime => "fct",
            Self::Slowdown => "slowdown",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::CompletionTime => "Flow completion time",
            Self::Slowdown => "Slowdown",
        }
    }

    pub(super) fn axis(self) -> Axis {
        match self {
            Self::CompletionTime => Axis::log("Flow completion time", Unit::Seconds),
            Self::Slowdown => Axis::log("Slowdown", Unit::Ratio),
        }
    }

    fn of(self, bin: &SizeBin) -> &Quantiles {
        match self {
            Self::CompletionTime => &bin.fct,
            Self::Slowdown => &bin.slowdown,
        }
    }
}

/// A quantile that is drawn: its name for people and in the summary, and of how many flows at least it means
/// anything.
pub(super) type Drawn = (&'static str, &'static str, u64);

pub(super) const MEDIAN: Drawn = ("Median", "p50", 1);
pub(super) const P99: Drawn = ("99%", "p99", 100);
pub(super) const P999: Drawn = ("99.9%", "p999", 1000);

/// The middle of a bin on a logarithmic axis.
fn middle(bin: &SizeBin) -> f64 {
    (bin.from.get() as f64 * bin.to.get() as f64).sqrt()
}

/// One quantile over flow size as a line of a plot, with its intervals where there are several seeds. A bin
/// with too few flows for the quantile has no point: the largest of 50 is not their 99th percentile. Nor
/// has one whose quantile is only bounded.
pub(super) fn line(
    run: &RunResult,
    quantity: Quantity,
    drawn: Drawn,
    name: impl Into<String>,
    style: SeriesStyle,
) -> PlotSeries {
    let (_, quantile, least) = drawn;
    let mut line = PlotSeries::new(name, style, Vec::new());
    for bin in run.bins.iter().filter(|bin| bin.count >= least) {
        let quantiles = quantity.of(bin);
        let named = quantiles.named().into_iter().zip(quantiles.intervals);
        let found = named.into_iter().find(|((known, _), _)| *known == quantile);
        let Some(((_, Figure::Exact(value)), interval)) = found else { continue };
        line.points.push((middle(bin), value));
        line.intervals.extend(interval);
    }
    // Of a bin that one seed alone has there is no interval: then none is drawn.
    if line.intervals.len() != line.points.len() {
        line.intervals.clear();
    }
    line
}

/// Median and tails over flow size.
pub(super) fn by_size(run: &RunResult, quantity: Quantity) -> Plot {
    let drawn = [MEDIAN, P99, P999];
    let series = drawn.map(|drawn| line(run, quantity, drawn, drawn.0, SeriesStyle::Line));
    Plot {
        title: format!("{} by flow size", quantity.title()),
        note: "A point stands in the middle of its range of sizes. A tail is drawn only for sizes \
               with enough flows to have one: 100 for 99%, 1,000 for 99.9%; nothing is drawn where \
               unfinished flows leave only a bound."
            .into(),
        x: Axis::log("Flow size", Unit::Bytes),
        y: quantity.axis(),
        series: series.to_vec(),
    }
}

/// An empty plot of a distribution.
pub(super) fn cdf_plot(quantity: Quantity, flows: &str) -> Plot {
    Plot {
        title: format!("{} of {flows}", quantity.title()),
        note: String::new(),
        x: quantity.axis(),
        y: Axis::linear("Share of flows", Unit::Share),
        series: Vec::new(),
    }
}

/// The distribution over one class of flows.
pub(super) fn cdf(run: &RunResult, quantity: Quantity, class: &str) -> Option<Vec<(f64, f64)>> {
    let found = run.cdfs.iter().find(|cdf| cdf.quantity == quantity.key() && cdf.class == class)?;
    (!found.points.is_empty()).then(|| found.points.clone())
}

/// The figures behind the plots by size.
pub(super) fn table(run: &RunResult) -> ResultsTable {
    let mut table = ResultsTable::new(vec![
        Column::new("from_bytes", "From"),
        Column::new("to_bytes", "To"),
        Column::new("count", "Flows"),
        Column::new("unfinished", "Unfinished"),
        Column::new("fct_p50_seconds", "FCT, median"),
        Column::new("fct_p99_seconds", "FCT, 99%"),
        Column::new("fct_max_seconds", "FCT, largest"),
        Column::new("slowdown_p50", "Slowdown, median"),
        Column::new("slowdown_p99", "Slowdown, 99%"),
        Column::new("slowdown_max", "Slowdown, largest"),
    ]);
    for bin in &run.bins {
        table.push(vec![
            Cell::new(bin.from.get(), Unit::Bytes),
            Cell::new(bin.to.get(), Unit::Bytes),
            Cell::new(bin.count, Unit::Count),
            Cell::new(bin.fct.unfinished, Unit::Count),
            Cell::figure(bin.fct.p50, None, Unit::Seconds),
            Cell::figure(bin.fct.p99, None, Unit::Seconds),
            Cell::figure(bin.fct.max, None, Unit::Seconds),
            Cell::figure(bin.slowdown.p50, None, Unit::Ratio),
            Cell::figure(bin.slowdown.p99, None, Unit::Ratio),
            Cell::figure(bin.slowdown.max, None, Unit::Ratio),
        ]);
    }
    table
}

/// Where the time goes: of each size's completion time, the share of every stage. `None` where the
/// run has no stages.
pub(super) fn stages(run: &RunResult) -> Option<Plot> {
    if run.stages.is_empty() || run.bins.is_empty() {
        return None;
    }
    let names = run.bins.iter().map(|bin| Unit::Bytes.format(bin.to.get() as f64)).collect();
    let series = run.stages.iter().enumerate().map(|(index, stage)| {
        let share = |bin: &SizeBin| {
            let total: f64 = bin.stages.iter().sum();
            if total > 0.0 { bin.stages[index] / total } else { 0.0 }
        };
        let points = run.bins.iter().enumerate().map(|(place, bin)| (place as f64, share(bin)));
        let name = crate::units::label_of_key(stage.name);
        PlotSeries::new(name, SeriesStyle::Bars, points.collect())
    });
    Some(Plot {
        title: "Share of completion time by stage".into(),
        note: "Mean over the flows of each size, and over the cells or packets of each flow."
            .into(),
        x: Axis::named("Flow size, up to", names),
        y: Axis::linear("Share of completion time", Unit::Share),
        series: series.collect(),
    })
}
