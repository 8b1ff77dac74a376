//! Several runs that differ in their seed alone, as one: means, and how far chance may have moved them.
//!
//! The interval of a figure is Student's at 95 %: its mean over the seeds, give or take the standard error
//! times the quantile of t. It holds for means over runs that are independent, which seeds are.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::figure::{Figure, Quantiles};
use super::{Cdf, RunResult, SizeBin};

/// How sure an interval is.
pub const CONFIDENCE: f64 = 0.95;
/// Points of a pooled distribution (our choice).
const CDF_POINTS: usize = 400;
/// Keys of counts, alone or in tables: they add up over the seeds, where all else is a mean.
const SUMMED: [&str; 5] = ["count", "unfinished", "flows", "bytes", "warm_up_flows"];
/// Parts of a summary that say how fast the engine was, not what came of the run.
const ENGINE: &str = "engine";

/// The interval in which the mean of what `values` are drawn from lies; none of fewer than two.
#[must_use]
pub fn interval(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let t = StudentsT::new(0.0, 1.0, count - 1.0).expect("there is a degree of freedom");
    let half = t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)) * (variance / count).sqrt();
    Some((mean - half, mean + half))
}

/// The mean of a figure over seeds, with its interval. Of bounds it is a bound, without one.
fn mean(figures: &[Figure]) -> (Figure, Option<(f64, f64)>) {
    let numbers: Vec<f64> = figures.iter().filter_map(|figure| figure.number()).collect();
    if numbers.is_empty() {
        return (Figure::Missing, None);
    }
    let value = numbers.iter().sum::<f64>() / numbers.len() as f64;
    if figures.iter().any(|figure| matches!(figure, Figure::AtLeast(_))) {
        return (Figure::AtLeast(value), None);
    }
    if figures.iter().any(|figure| matches!(figure, Figure::AtMost(_))) {
        return (Figure::AtMost(value), None);
    }
    (Figure::Exact(value), interval(&numbers))
}

/// `runs` as one: figures are means over them, in `intervals` of the summary is how far each may be off,
/// in `seeds` of whom. What happened over time is shown of the first.
///
/// # Panics
/// If there is no run.
#[must_use]
pub fn together(runs: Vec<RunResult>) -> RunResult {
    let summaries: Vec<&Value> = runs.iter().map(|run| &run.summary).collect();
    let mut intervals = json!({});
    let mut summary = merged(&summaries, &mut intervals);
    summary["seed"] = summaries[0]["seed"].clone();
    // A seed is a name; nothing is known about it within an interval.
    if let Value::Object(table) = &mut intervals {
        table.shift_remove("seed");
    }
    summary["seeds"] = summaries.iter().map(|summary| summary["seed"].clone()).collect();
    summary["event_hash"] = hashes(&summaries).into();
    summary["intervals"] = intervals;
    // The engine's speed stands last, as in the summary of one run.
    if let Value::Object(table) = &mut summary
        && table.shift_remove(ENGINE).is_some()
    {
        table.insert(ENGINE.into(), engine(&summaries));
    }
    let (bins, cdfs) = (bins(&runs), cdfs(&runs));
    let first = runs.into_iter().next().expect("at least one run");
    RunResult { summary, bins, cdfs, ..first }
}

/// Tables of one shape as one; intervals go to the same places of `intervals`.
fn merged(values: &[&Value], intervals: &mut Value) -> Value {
    let first = values[0];
    if let Value::Object(table) = first {
        return Value::Object(merged_tables(values, table, intervals));
    }
    if values.iter().all(|value| *value == first) {
        return first.clone();
    }
    if values.iter().all(|value| value.is_boolean()) {
        return values.iter().any(|value| **value == Value::Bool(true)).into();
    }
    let numbers: Vec<f64> = values.iter().filter_map(|value| value.as_f64()).collect();
    if numbers.is_empty() {
        return values.iter().find(|value| !value.is_null()).map_or(Value::Null, |v| (*v).clone());
    }
    if let Some((low, high)) = interval(&numbers) {
        *intervals = json!([low, high]);
    }
    json!(numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn merged_tables(
    values: &[&Value],
    first: &Map<String, Value>,
    intervals: &mut Value,
) -> Map<String, Value> {
    let mut table = Map::new();
    let has_bounds = |value: &&Value| value.get("at_least").or(value.get("at_most")).is_some();
    let bounded = values.iter().any(has_bounds);
    for key in first.keys().filter(|key| *key != "at_least" && *key != "at_most") {
        if SUMMED.contains(&key.as_str()) {
            let members: Vec<&Value> = values.iter().map(|value| &value[key]).collect();
            table.insert(key.clone(), summed(&members));
            continue;
        }
        if !bounded {
            let members: Vec<&Value> = values.iter().map(|value| &value[key]).collect();
            let mut below = json!({});
            table.insert(key.clone(), merged(&members, &mut below));
            if below != json!({}) {
                intervals[key] = below;
            }
            continue;
        }
        let figures: Vec<Figure> = values.iter().map(|value| Figure::get(key, value)).collect();
        let (figure, found) = mean(&figures);
        figure.put(key, &mut table);
        if let Some((low, high)) = found {
            intervals[key] = json!([low, high]);
        }
    }
    table
}

/// Counts of all runs together, member by member.
fn summed(values: &[&Value]) -> Value {
    if let Value::Object(table) = values[0] {
        let member = |key: &String| {
            let members: Vec<&Value> = values.iter().map(|value| &value[key]).collect();
            (key.clone(), summed(&members))
        };
        return Value::Object(table.keys().map(member).collect());
    }
    json!(values.iter().filter_map(|value| value.as_u64()).sum::<u64>())
}

/// Equal seeds give equal hashes; the hash of several folds them in, in order.
fn hashes(summaries: &[&Value]) -> String {
    let hash = |summary: &&Value| {
        u64::from_str_radix(summary["event_hash"].as_str().unwrap_or_default(), 16).unwrap_or(0)
    };
    let fold =
        |sum: u64, hash: u64| (sum.rotate_left(5) ^ hash).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{:016x}", summaries.iter().map(hash).fold(0, fold))
}

/// Work and time of all runs together.
fn engine(summaries: &[&Value]) -> Value {
    let of = |key: &str| -> Vec<f64> {
        summaries.iter().filter_map(|summary| summary[ENGINE][key].as_f64()).collect()
    };
    let sum = |key: &str| of(key).iter().sum::<f64>();
    let most = |key: &str| of(key).iter().copied().fold(0.0, f64::max);
    let seconds = sum("wall_seconds");
    json!({
        "hops": sum("hops"),
        "events": sum("events"),
        "wall_seconds": seconds,
        "hops_per_second": sum("hops") / seconds.max(1e-9),
        "events_per_second": sum("events") / seconds.max(1e-9),
        "peak_rss_bytes": most("peak_rss_bytes"),
    })
}

/// The ranges of sizes that any run has, each a mean over those that have it.
fn bins(runs: &[RunResult]) -> Vec<SizeBin> {
    let sizes: BTreeSet<_> =
        runs.iter().flat_map(|run| &run.bins).map(|bin| (bin.from.get(), bin.to.get())).collect();
    let bin = |(from, _)| {
        let of = |run: &'_ RunResult| run.bins.iter().find(|bin| bin.from.get() == from).cloned();
        let same: Vec<SizeBin> = runs.iter().filter_map(of).collect();
        let stages = (0..same[0].stages.len()).map(|stage| {
            let parts = same.iter().map(|bin| bin.stages.get(stage).copied().unwrap_or(0.0));
            parts.sum::<f64>() / same.len() as f64
        });
        SizeBin {
            from: same[0].from,
            to: same[0].to,
            count: same.iter().map(|bin| bin.count).sum(),
            fct: quantiles(&same.iter().map(|bin| bin.fct).collect::<Vec<_>>()),
            slowdown: quantiles(&same.iter().map(|bin| bin.slowdown).collect::<Vec<_>>()),
            stages: stages.collect(),
        }
    };
    sizes.into_iter().map(bin).collect()
}

fn quantiles(all: &[Quantiles]) -> Quantiles {
    let mut intervals = [None; 6];
    let mut figures = [Figure::Missing; 6];
    for (place, (figure, interval)) in figures.iter_mut().zip(&mut intervals).enumerate() {
        let over: Vec<Figure> = all.iter().map(|one| one.named()[place].1).collect();
        (*figure, *interval) = mean(&over);
    }
    let [mean, p50, p95, p99, p999, max] = figures;
    Quantiles {
        count: all.iter().map(|one| one.count).sum(),
        unfinished: all.iter().map(|one| one.unfinished).sum(),
        mean,
        p50,
        p95,
        p99,
        p999,
        max,
        intervals,
    }
}

/// Distributions whose share at each value is the mean over the runs that have any.
fn cdfs(runs: &[RunResult]) -> Vec<Cdf> {
    let all = || runs.iter().flat_map(|run| &run.cdfs);
    let mut kinds = Vec::new();
    for kind in all().map(|cdf| (cdf.quantity, cdf.class)) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let pooled = |(quantity, class)| {
        let same: Vec<&Cdf> =
            all().filter(|cdf| (cdf.quantity, cdf.class) == (quantity, class)).collect();
        let mut values: Vec<f64> =
            same.iter().flat_map(|cdf| cdf.points.iter().map(|point| point.0)).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let step = values.len().div_ceil(CDF_POINTS).max(1);
        let kept = values
            .iter()
            .enumerate()
            .filter(|(place, _)| place % step == 0 || place + 1 == values.len());
        let share = |cdf: &&Cdf, value: f64| {
            let below = cdf.points.partition_point(|point| point.0 <= value);
            below.checked_sub(1).map_or(0.0, |place| cdf.points[place].1)
        };
        let point = |(_, &value): (usize, &f64)| {
            let sum: f64 = same.iter().map(|cdf| share(cdf, value)).sum();
            (value, sum / same.len() as f64)
        };
        Cdf { quantity, class, points: kept.map(point).collect() }
    };
    kinds.into_iter().map(pooled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        // t of 95 % with 4 degrees of freedom is 2.776; the standard error of 1..5 is sqrt(2.5 / 5).
        let (low, high) = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let half = 2.776_445 * 0.5f64.sqrt();
        assert!((low - (3.0 - half)).abs() < 1e-5 && (high - (3.0 + half)).abs() < 1e-5);
        assert_eq!(interval(&[1.0]), None);
        assert_eq!(interval(&[2.0; 9]), Some((2.0, 2.0)));
    }

    /// Of a normal variable, 95 % of the intervals hold the mean.
    #[test]
    fn intervals_hold_the_mean_as_often_as_they_say() {
        let mut stream = kernel::Stream::new(1, "test", 0);
        let mut normal =
            || (0..12).map(|_| stream.below(1 << 30) as f64 / (1 << 30) as f64).sum::<f64>();
        let holds = (0..2_000).filter(|_| {
            let values: Vec<f64> = (0..5).map(|_| normal()).collect();
            let (low, high) = interval(&values).unwrap();
            (low..=high).contains(&6.0)
        });
        let share = holds.count() as f64 / 2_000.0;
        assert!((share - 0.95).abs() < 0.02, "{share}");
    }

    #[test]
    fn a_class_of_flows_that_the_first_seed_lacks_has_its_distribution() {
        let cdf = |class, points| Cdf { quantity: "fct", class, points };
        let run = |cdfs| RunResult {
            label: String::new(),
            scenario: String::new(),
            summary: json!({}),
            stages: vec![],
            bins: vec![],
            cdfs,
            series: super::super::SeriesTable::default(),
            tables: vec![],
        };
        let short = |value| cdf("short", vec![(value, 1.0)]);
        let runs = [run(vec![short(1.0)]), run(vec![short(3.0), cdf("long", vec![(5.0, 1.0)])])];
        let found: Vec<_> = cdfs(&runs).into_iter().map(|cdf| (cdf.class, cdf.points)).collect();
        let expected = [("short", vec![(1.0, 0.5), (3.0, 1.0)]), ("long", vec![(5.0, 1.0)])];
        assert_eq!(found, expected);
    }

    #[test]
    fn tables_become_means_with_intervals_and_bounds_stay_bounds() {
        let run = |seed: u64, p50: f64, p99: Value, bound: Option<f64>| {
            let mut fct = json!({ "count": 100, "unfinished": 0, "p50": p50, "p99": p99 });
            if let Some(bound) = bound {
                fct["at_least"] = json!({ "p99": bound });
            }
            json!({ "seed": seed, "fabric": "x", "saturated": seed == 2, "nodes": 8,
                    "event_hash": format!("{seed:016x}"), "fct": { "all": fct },
                    "drops": seed * 10, "engine": { "hops": 5, "wall_seconds": 1.0 } })
        };
        let all = [run(1, 1.0, json!(4.0), None), run(2, 3.0, Value::Null, Some(6.0))];
        let result = |summary: &Value| RunResult {
            label: String::new(),
            scenario: String::new(),
            summary: summary.clone(),
            stages: vec![],
            bins: vec![],
            cdfs: vec![],
            series: super::super::SeriesTable::default(),
            tables: vec![],
        };
        let one = together(all.iter().map(result).collect()).summary;
        assert_eq!(one["fct"]["all"]["p50"], json!(2.0));
        assert_eq!(one["fct"]["all"]["p99"], Value::Null);
        assert_eq!(one["fct"]["all"]["at_least"]["p99"], json!(5.0));
        assert_eq!((&one["saturated"], &one["nodes"]), (&json!(true), &json!(8)));
        assert_eq!((&one["seed"], &one["seeds"]), (&json!(1), &json!([1, 2])));
        assert_eq!(one["intervals"].get("seed"), None);
        assert_eq!(one["drops"], json!(15.0));
        assert_eq!(one["fct"]["all"]["count"], json!(200));
        let (low, high) = interval(&[1.0, 3.0]).unwrap();
        assert_eq!(one["intervals"]["fct"]["all"]["p50"], json!([low, high]));
        assert_eq!(one["intervals"]["fct"]["all"].get("p99"), None);
        assert_eq!(one["engine"]["hops"], json!(10.0));
        assert_eq!(one.as_object().unwrap().keys().next_back().unwrap(), "engine");
    }
}
