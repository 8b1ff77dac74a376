//! Gauges over time, sorted into topics by their names; a name that tells no topic is drawn all the
//! same.

use rack::Gauge;
use rack::results::RunResult;
use serde_json::Value;

use crate::Unit;
use crate::page::{Axis, Plot, PlotSeries, SeriesStyle};
use crate::summary::{details, number};
use crate::units::label_of_key;

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

/// The plots of one topic: gauges of one unit share a plot.
pub(super) fn plots(run: &RunResult, topic: Topic) -> Vec<Plot> {
    let wanted: Vec<_> = run
        .series
        .gauges
        .iter()
        .enumerate()
        .filter(|(_, gauge)| Topic::of(gauge.name) == topic)
        .collect();
    let mut units: Vec<_> = wanted.iter().map(|(_, gauge)| Unit::of_key(gauge.name)).collect();
    units.dedup();
    let mut seen = Vec::new();
    units.retain(|unit| {
        !seen.contains(unit) && {
            seen.push(*unit);
            true
        }
    });
    let mut plots = Vec::new();
    for unit in units {
        let same: Vec<_> =
            wanted.iter().filter(|(_, gauge)| Unit::of_key(gauge.name) == unit).collect();
        // Curves of very different height hide one another: each such gauge gets its own plot.
        for group in by_height(run, &same) {
            plots.push(plot(run, &group, unit));
        }
    }
    plots
}

/// Curves whose peaks differ by more than this factor are drawn apart. Our choice.
const HEIGHTS_APART: f64 = 30.0;

/// Gauges of one unit in groups of like height, in their order.
fn by_height<'a>(run: &RunResult, gauges: &[&(usize, &'a Gauge)]) -> Vec<Vec<(usize, &'a Gauge)>> {
    let mut groups: Vec<(f64, Vec<(usize, &Gauge)>)> = Vec::new();
    for &&(column, gauge) in gauges {
        let peak = curve(run, column).iter().map(|&(_, value)| value).fold(0.0, f64::max);
        let like = groups.iter_mut().find(|(other, _)| {
            let (low, high) = (peak.min(*other), peak.max(*other));
            low == 0.0 || high / low <= HEIGHTS_APART
        });
        match like {
            Some((other, group)) => {
                *other = other.max(peak);
                group.push((column, gauge));
            }
            None => groups.push((peak, vec![(column, gauge)])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

fn plot(run: &RunResult, gauges: &[(usize, &Gauge)], unit: Unit) -> Plot {
    let mut series: Vec<_> = gauges
        .iter()
        .map(|&(column, gauge)| {
            PlotSeries::new(label_of_key(gauge.name), SeriesStyle::Line, curve(run, column))
        })
        .collect();
    for (_, gauge) in gauges {
        if let Some(bound) = bound_of(gauge.name, &run.summary) {
            let points = vec![(0.0, bound)];
            series.push(PlotSeries::new("Bound", SeriesStyle::Bound, points));
            break;
        }
    }
    let meanings: Vec<_> = gauges.iter().map(|(_, gauge)| gauge.meaning).collect();
    let first = label_of_key(gauges[0].1.name);
    let title = match gauges {
        [_] => format!("{first} over time"),
        [_, (_, second)] => {
            format!("{first} and {} over time", label_of_key(second.name).to_lowercase())
        }
        _ => format!("{first} and {} others over time", gauges.len() - 1),
    };
    Plot {
        title,
        note: meanings.join(" "),
        x: Axis::linear("Simulated time", Unit::Seconds),
        y: Axis::linear(axis_label(gauges, &first), unit),
        series,
    }
}

/// One gauge's name, or what several of one unit have in common.
fn axis_label(gauges: &[(usize, &Gauge)], first: &str) -> String {
    if gauges.len() == 1 {
        return first.into();
    }
    let unit = Unit::of_key(gauges[0].1.name);
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
    .into()
}

/// One gauge over time.
pub(super) fn curve(run: &RunResult, column: usize) -> Vec<(f64, f64)> {
    let values = run.series.values.iter().map(|row| row[column]);
    run.series.seconds.iter().copied().zip(values).collect()
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
    use rack::GaugeKind;
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
        assert_eq!(drawn, ["Link use share", "Odd", "Queue max", "Queue max", "Queue mean"]);
        // Cells and bytes never share an axis.
        assert_eq!(plots.len(), 4);
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
