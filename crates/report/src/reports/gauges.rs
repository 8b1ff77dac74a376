//! Gauges over time, sorted into topics by their names; those whose names tell no topic are drawn,
//! too.

use rack::results::RunResult;
use rack::{Gauge, GaugeKind};
use serde_json::Value;

use crate::Unit;
use crate::page::{Axis, Plot, PlotSeries, SeriesStyle};
use crate::summary::{details, number};
use crate::units::{label_of_key, sentence};

/// What a gauge is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Topic {
    Queues,
    Links,
    Reordering,
    Other,
}

impl Topic {
    /// The topic that the words of a gauge's name point to.
    pub(super) fn of(name: &str) -> Topic {
        const WORDS: &[(&str, Topic)] = &[
            ("reorder", Topic::Reordering),
            ("reassembly", Topic::Reordering),
            ("out_of_order", Topic::Reordering),
            ("queue", Topic::Queues),
            ("backlog", Topic::Queues),
            ("link", Topic::Links),
            ("hops", Topic::Links),
            ("slot", Topic::Links),
            ("use", Topic::Links),
            ("utilisation", Topic::Links),
            ("throughput", Topic::Links),
            ("delivered", Topic::Links),
        ];
        let matching = WORDS.iter().find(|(word, _)| {
            name.contains(word) && (*word != "use" || name.split('_').any(|part| part == "use"))
        });
        matching.map_or(Topic::Other, |&(_, topic)| topic)
    }
}

/// A gauge as it is drawn.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    /// The gauge's name in summary and files.
    name: &'static str,
    /// For legends.
    pub label: String,
    /// One sentence.
    pub meaning: String,
    /// Of the values.
    pub unit: Unit,
    /// Seconds and values.
    pub points: Vec<(f64, f64)>,
}

/// Gauges whose quotient is drawn as well, where a fabric has both: the part, the whole, and what
/// the quotient is. They are the names that slotted fabrics share.
const SHARES: &[(&str, &str, &str, &str)] =
    &[("hops", "cell_slots", "Slots in use", "Part of the schedule's cells that carry payload.")];

/// All gauges of a run. Counts are drawn as rates: how many there are in an interval depends on how
/// long the run happens to be.
pub(super) fn curves(run: &RunResult) -> Vec<Curve> {
    let gauges = &run.series.gauges;
    let mut curves: Vec<_> =
        gauges.iter().enumerate().map(|(column, gauge)| curve(run, column, gauge)).collect();
    for &(part, whole, label, meaning) in SHARES {
        let column = |name| gauges.iter().position(|gauge| gauge.name == name);
        let (Some(part_column), Some(whole)) = (column(part), column(whole)) else { continue };
        let rows = run.series.seconds.iter().zip(&run.series.values);
        let filled = rows.filter(|(_, row)| row[whole] > 0.0);
        curves.push(Curve {
            name: "slots_in_use_share",
            label: label.into(),
            meaning: meaning.into(),
            unit: Unit::Share,
            points: filled.map(|(&at, row)| (at, row[part_column] / row[whole])).collect(),
        });
    }
    curves
}

fn curve(run: &RunResult, column: usize, gauge: &Gauge) -> Curve {
    let unit = Unit::of_key(gauge.name);
    let values = run.series.values.iter().map(|row| row[column]);
    let seconds = &run.series.seconds;
    let (unit, values): (Unit, Vec<f64>) = if gauge.kind == GaugeKind::Count {
        // The first interval begins with the run.
        let starts = std::iter::once(&0.0).chain(seconds);
        let lengths = starts.zip(seconds).map(|(start, end)| end - start);
        let (unit, scale) = match unit {
            Unit::Bytes => (Unit::BitsPerSecond, 8.0),
            _ => (Unit::PerSecond, 1.0),
        };
        (unit, values.zip(lengths).map(|(value, length)| value * scale / length).collect())
    } else {
        (unit, values.collect())
    };
    Curve {
        name: gauge.name,
        label: label_of_key(gauge.name),
        meaning: sentence(gauge.meaning),
        unit,
        points: seconds.iter().copied().zip(values).collect(),
    }
}

/// The plots of one topic: curves of one unit and of like height share a plot.
pub(super) fn plots(run: &RunResult, topic: Topic) -> Vec<Plot> {
    let mut groups: Vec<(f64, Vec<Curve>)> = Vec::new();
    for curve in curves(run).into_iter().filter(|curve| Topic::of(curve.name) == topic) {
        let peak = curve.points.iter().map(|&(_, value)| value).fold(0.0, f64::max);
        let like = groups.iter_mut().find(|(other, group)| {
            let (low, high) = (peak.min(*other), peak.max(*other));
            // Curves of very different height hide one another: each gets its own plot.
            group[0].unit == curve.unit && (low == 0.0 || high / low <= HEIGHTS_APART)
        });
        match like {
            Some((other, group)) => {
                *other = other.max(peak);
                group.push(curve);
            }
            None => groups.push((peak, vec![curve])),
        }
    }
    groups.into_iter().map(|(_, group)| plot(&group, &run.summary)).collect()
}

/// When something broke and when it worked again, as far as the run came.
pub(super) fn faults(summary: &Value) -> Vec<PlotSeries> {
    let of = |key: &str| -> Vec<(f64, f64)> {
        let faults = summary.get("faults").and_then(Value::as_array).into_iter().flatten();
        let end = number(summary, "simulated_seconds").unwrap_or(f64::INFINITY);
        let times = faults.filter_map(|fault| fault.get(key)?.as_f64());
        times.filter(|&at| at <= end).map(|at| (at, 0.0)).collect()
    };
    [("Fault", of("at_seconds")), ("Mended", of("until_seconds"))]
        .into_iter()
        .filter(|(_, points)| !points.is_empty())
        .map(|(name, points)| PlotSeries::new(name, SeriesStyle::Event, points))
        .collect()
}

/// Curves whose peaks differ by more than this factor are drawn apart. Our choice.
const HEIGHTS_APART: f64 = 30.0;

fn plot(curves: &[Curve], summary: &Value) -> Plot {
    let first = &curves[0];
    let bound = curves.iter().find_map(|curve| bound_of(curve.name, summary));
    let drawn =
        |curve: &Curve| PlotSeries::new(&curve.label, SeriesStyle::Line, curve.points.clone());
    let mut series: Vec<_> = curves.iter().map(drawn).collect();
    series.extend(
        bound.map(|bound| PlotSeries::new("Bound", SeriesStyle::Bound, vec![(0.0, bound)])),
    );
    series.extend(faults(summary));
    let title = match curves {
        [one] => format!("{} over time", one.label),
        [one, two] => format!("{} and {} over time", one.label, two.label.to_lowercase()),
        _ => format!("{} and {} others over time", first.label, curves.len() - 1),
    };
    let meanings: Vec<_> = curves.iter().map(|curve| curve.meaning.as_str()).collect();
    let label = if curves.len() == 1 { &first.label } else { measured(first.unit) };
    Plot {
        title,
        note: meanings.join(" "),
        x: Axis::linear("Simulated time", Unit::Seconds),
        y: Axis::linear(label, first.unit),
        series,
    }
}

/// What several curves of one unit have in common.
fn measured(unit: Unit) -> &'static str {
    match unit {
        Unit::Share => "Share",
        Unit::Seconds => "Time",
        Unit::Bytes => "Size",
        Unit::Cells => "Length",
        Unit::BitsPerSecond | Unit::PerSecond => "Rate",
        Unit::Watts => "Power",
        Unit::Joules => "Energy",
        Unit::Dollars => "Cost",
        Unit::Ratio => "Ratio",
        Unit::Count => "Number",
    }
}

/// The bound that the fabric states for a gauge: among its details, `queue_max_cells_bound` (or
/// `bounds.queue_max_cells`) for the gauge `queue_max_cells`.
pub(super) fn bound_of(gauge: &str, summary: &Value) -> Option<f64> {
    let details = details(summary);
    let keys = [format!("{gauge}_bound"), format!("bounds.{gauge}")];
    keys.iter().find_map(|key| number(&details, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rack::results::SeriesTable;
    use serde_json::json;

    fn run(gauges: &[&'static str], row: &[f64]) -> RunResult {
        let gauge = |name| Gauge { name, meaning: "What it is.", kind: GaugeKind::Level };
        RunResult {
            label: "A".into(),
            scenario: String::new(),
            summary: json!({ "fabric": "f", "f": { "queue_max_cells_bound": 11 } }),
            stages: vec![],
            bins: vec![],
            cdfs: vec![],
            series: SeriesTable {
                gauges: gauges.iter().map(|&name| gauge(name)).collect(),
                seconds: vec![1e-6, 2e-6],
                values: vec![row.to_vec(), row.to_vec()],
            },
            tables: vec![],
        }
    }

    #[test]
    fn names_tell_the_topic() {
        for (name, topic) in [
            ("queue_max_cells", Topic::Queues),
            ("reorder_queue_bytes", Topic::Reordering),
            ("link_use_share", Topic::Links),
            ("slots_idle_share", Topic::Links),
            ("paused_flows", Topic::Other),
        ] {
            assert_eq!(Topic::of(name), topic, "{name}");
        }
    }

    #[test]
    fn every_gauge_is_drawn_once() {
        let names =
            ["queue_max_cells", "odd", "queue_max_bytes", "queue_mean_cells", "link_use_share"];
        let run = run(&names, &[9.0, 1.0, 640.0, 2.0, 0.5]);
        let topics = [Topic::Queues, Topic::Links, Topic::Reordering, Topic::Other];
        let plots: Vec<_> = topics.into_iter().flat_map(|topic| plots(&run, topic)).collect();
        let mut drawn: Vec<_> = plots
            .iter()
            .flat_map(|plot| &plot.series)
            .filter(|series| series.style != SeriesStyle::Bound)
            .map(|series| series.name.clone())
            .collect();
        drawn.sort();
        assert_eq!(drawn, ["Link use", "Odd", "Queue max", "Queue max", "Queue mean"]);
        // Cells and bytes never share an axis.
        assert_eq!(plots.len(), 4);
    }

    #[test]
    fn counts_become_rates_and_shares() {
        let mut run = run(&["hops", "cell_slots", "delivered_bytes"], &[30.0, 60.0, 125.0]);
        for gauge in &mut run.series.gauges {
            gauge.kind = GaugeKind::Count;
        }
        run.series.seconds = vec![1e-6, 3e-6];
        let curves = curves(&run);
        let near = |index: usize, expected: [f64; 2]| {
            for (&(_, value), expected) in curves[index].points.iter().zip(expected) {
                assert!((value / expected - 1.0).abs() < 1e-9, "{value} for {expected}");
            }
        };
        near(0, [3e7, 1.5e7]);
        near(1, [6e7, 3e7]);
        near(2, [1e9, 5e8]);
        near(3, [0.5, 0.5]);
        let units: Vec<_> = curves.iter().map(|curve| curve.unit).collect();
        let per_second = Unit::PerSecond;
        assert_eq!(units, [per_second, per_second, Unit::BitsPerSecond, Unit::Share]);
    }

    #[test]
    fn curves_of_unlike_height_are_drawn_apart_and_bounds_with_theirs() {
        let run = run(&["queue_max_cells", "queue_total_cells"], &[9.0, 90_000.0]);
        let plots = plots(&run, Topic::Queues);
        assert_eq!(plots.len(), 2);
        let bounds = |plot: &Plot| {
            plot.series.iter().filter(|series| series.style == SeriesStyle::Bound).count()
        };
        assert_eq!((bounds(&plots[0]), bounds(&plots[1])), (1, 0));
    }
}
