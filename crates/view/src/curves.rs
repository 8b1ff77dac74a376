//! Curves of a run that are drawn over those of others: its flows by size, and the distribution of their completion
//! times.
//!
//! As in all figures, measured flows count. A flow that the run left unfinished took longer than any that is known: it
//! counts so, and where that leaves a quantile unknown there is no point.

use std::path::Path;

use kernel::{Bytes, Span};
use report::{FileError, each_flow};
use serde_json::{Value, json};

/// Points of a distribution (our choice: as in reports).
const POINTS: usize = 400;
/// Quantiles by size, with how many flows each takes to mean anything.
const QUANTILES: [(&str, f64, usize); 2] = [("p50", 0.5, 1), ("p99", 0.99, 100)];

/// What is known of the flows of a size: those that have ended, and how many have not.
#[derive(Clone, Default)]
struct Flows {
    fct: Vec<f64>,
    slowdown: Vec<f64>,
    unfinished: usize,
}

/// Bin `k` holds sizes from `2^k + 1` to `2^(k + 1)`; bin 0 also size 1. As in reports.
fn bin_of(size: Bytes) -> usize {
    match size.get() {
        0..=2 => 0,
        size => (u64::BITS - (size - 1).leading_zeros()) as usize - 1,
    }
}

/// The middle of a bin on a logarithmic axis.
fn middle(bin: usize) -> f64 {
    let from = if bin == 0 { 1.0 } else { (2f64).powi(bin as i32) + 1.0 };
    (from * (2f64).powi(bin as i32 + 1)).sqrt()
}

/// The value of this rank, as a share of `sorted` and so many larger ones that are not known; none if it is one of those,
/// or if they could make it another.
fn quantile(sorted: &[f64], unknown: usize, share: f64) -> Option<f64> {
    let rank = |count: usize| ((share * count as f64).ceil() as usize).clamp(1, count.max(1));
    let all = sorted.len() + unknown;
    let value = *sorted.get(rank(all) - 1)?;
    // Of a flow that is not over nothing is said but that it is: it may take no longer than any other.
    let lowest = rank(all).saturating_sub(unknown).max(1);
    (unknown == 0 || sorted[lowest - 1] == value).then_some(value)
}

/// The curves of the run whose flows are at `path`.
///
/// # Errors
/// When the table cannot be read.
pub fn curves(path: &Path) -> Result<Value, FileError> {
    let mut bins: Vec<Flows> = Vec::new();
    each_flow(path, &|_| true, &mut |row| {
        if !row.is_measured || row.status == "failed" {
            return;
        }
        let bin = bin_of(row.size);
        if bins.len() <= bin {
            bins.resize(bin + 1, Flows::default());
        }
        let flows = &mut bins[bin];
        match (row.end, row.slowdown) {
            (Some(end), Some(slowdown)) if row.status == "completed" => {
                flows.fct.push(Span::as_seconds(end - row.start));
                flows.slowdown.push(slowdown);
            }
            _ => flows.unfinished += 1,
        }
    })?;
    for flows in &mut bins {
        flows.fct.sort_by(f64::total_cmp);
        flows.slowdown.sort_by(f64::total_cmp);
    }
    let by_size = |of: fn(&Flows) -> &Vec<f64>| -> Value {
        let line = |&(name, share, least): &(&str, f64, usize)| {
            let filled = bins.iter().enumerate();
            let filled =
                filled.filter(|(_, flows)| of(flows).len() + flows.unfinished >= least.max(1));
            let points = filled.filter_map(|(bin, flows)| {
                Some(json!([middle(bin), quantile(of(flows), flows.unfinished, share)?]))
            });
            (name.to_string(), points.collect::<Value>())
        };
        Value::Object(QUANTILES.iter().map(line).collect())
    };
    Ok(json!({
        "slowdown": by_size(|flows| &flows.slowdown),
        "fct": by_size(|flows| &flows.fct),
        "distribution": distribution(&bins),
    }))
}

/// Completion times with the share of flows that took no longer: some of them, both ends too. It ends below one where
/// flows are unfinished.
fn distribution(bins: &[Flows]) -> Value {
    let mut all: Vec<f64> = bins.iter().flat_map(|flows| flows.fct.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let count = all.len() + bins.iter().map(|flows| flows.unfinished).sum::<usize>();
    let points = all.len().min(POINTS);
    let place = |point: usize| match points {
        1 => 0,
        _ => point * (all.len() - 1) / (points - 1),
    };
    let point = |point: usize| {
        let at = place(point);
        json!([all[at], (at + 1) as f64 / count as f64])
    };
    (0..points).map(point).collect()
}

#[cfg(test)]
mod tests {
    use kernel::Time;
    use rack::results::{FlowEnd, FlowRecord, FlowSink};
    use rack::{Class, Flow, FlowId, NodeId};
    use report::{FlowWriter, Provenance};

    use super::*;

    /// The curves of flows of 1,000 bytes: one that takes each of these nanoseconds, in a network in which it alone takes
    /// 10, and so many that do not end.
    fn of(nanoseconds: &[u64], unfinished: u64) -> Value {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flows.parquet");
        let origin = Provenance {
            version: String::new(),
            scenario_hash: String::new(),
            seed: 1,
            scenario: String::new(),
        };
        let mut writer = FlowWriter::create(&path, &[], &origin).unwrap();
        let ideal = Span::from_ns(10);
        let mut write = |number: u64, end: FlowEnd<'_>, measured: bool| {
            let flow = Flow {
                id: FlowId::new(number),
                src: NodeId::new(0),
                dst: NodeId::new(1),
                size: Bytes::new(1_000),
                start: Time::ZERO,
                class: Class::default(),
            };
            writer.record(&FlowRecord { flow: &flow, end, measured }).unwrap();
        };
        let ended = |time: u64| FlowEnd::Completed {
            at: Time::ZERO + Span::from_ns(time),
            ideal,
            stages: &[],
        };
        for (number, &time) in (0..).zip(nanoseconds) {
            write(number, ended(time), true);
        }
        for number in 0..unfinished {
            let end = FlowEnd::Unfinished { delivered: Bytes::ZERO, ideal };
            write(1_000 + number, end, true);
        }
        // Those of the warm-up are in no figure.
        write(9_999, ended(1_000_000), false);
        writer.finish().unwrap();
        curves(&path).unwrap()
    }

    /// The one point of a line, which lies in the bin of 513 to 1,024 bytes.
    #[track_caller]
    fn check(line: &Value, expected: Option<f64>) {
        let points = line.as_array().unwrap();
        assert_eq!(points.len(), usize::from(expected.is_some()), "{line}");
        if let Some(expected) = expected {
            let found = [points[0][0].as_f64().unwrap(), points[0][1].as_f64().unwrap()];
            assert!((found[0] - (513.0f64 * 1024.0).sqrt()).abs() < 1e-9, "{line}");
            assert!((found[1] / expected - 1.0).abs() < 1e-9, "{line}, not {expected}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_measured_flows() {
        let times: Vec<u64> = (1..=100).map(|time| 10 * time).collect();
        let found = of(&times, 0);
        check(&found["fct"]["p50"], Some(500e-9));
        check(&found["slowdown"]["p99"], Some(99.0));
        let last = found["distribution"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last, json!([1e-6, 1.0]));
        // Of 99 flows there is no 99th percentile.
        check(&of(&times[..99], 0)["fct"]["p99"], None);
    }

    #[test]
    fn what_unfinished_flows_could_change_is_no_point() {
        let times: Vec<u64> = (1..=100).map(|time| 10 * time).collect();
        let found = of(&times, 2);
        // The 51st of 102 may be the 49th of those that are known, or the 51st.
        check(&found["fct"]["p50"], None);
        check(&found["fct"]["p99"], None);
        let last = found["distribution"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last[1].as_f64().unwrap(), 100.0 / 102.0);
        // If all that are known took as long it makes no difference.
        check(&of(&[30; 100], 2)["fct"]["p50"], Some(30e-9));
    }
}
