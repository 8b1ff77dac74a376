//! Remote procedure calls: a request and its response, as a client sees them.

use std::collections::BTreeMap;

use kernel::Time;
use rack::results::{FlowEnd, FlowRecord, FlowSink};
use scenario::Sink;
use serde::{Deserialize, Serialize};

use crate::runs::quantile;

/// One call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Call {
    /// When it began, in seconds.
    pub(super) start: f64,
    /// When its response was there; none: the run ended first.
    pub(super) end: Option<f64>,
}

/// Keeps the calls of a workload whose flows are numbered below a limit: requests even, responses odd.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    limit: u64,
    starts: BTreeMap<u64, Time>,
    calls: Vec<Call>,
}

impl Calls {
    /// None so far.
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, starts: BTreeMap::new(), calls: Vec::new() }
    }

    /// The calls that began after `from` seconds, as a run that ends after `to` has them.
    pub(super) fn between(&self, from: f64, to: f64) -> Latencies {
        let calls = self.calls.iter().filter(|call| (from..=to).contains(&call.start));
        let end = |call: &Call| call.end.filter(|&end| end <= to);
        let seconds: Vec<f64> =
            calls.clone().map(|call| end(call).unwrap_or(to) - call.start).collect();
        let ended = calls.filter(|call| end(call).is_some()).count();
        Latencies { cut_off: seconds.len() - ended, seconds, rate: ended as f64 / (to - from) }
    }
}

impl FlowSink for Calls {
    fn record(&mut self, record: &FlowRecord<'_>) -> std::io::Result<()> {
        let (id, start) = (record.flow.id.get(), record.flow.start);
        if id >= self.limit {
            return Ok(());
        }
        let end = match record.end {
            FlowEnd::Completed { at, .. } => Some(at.as_seconds()),
            FlowEnd::Failed { .. } | FlowEnd::Unfinished { .. } => None,
        };
        let is_request = id % 2 == 0;
        let began = match is_request {
            true => start,
            false => self.starts.remove(&(id / 2)).unwrap_or(start),
        };
        if is_request && end.is_some() {
            self.starts.insert(id / 2, start);
        } else {
            self.calls.push(Call { start: began.as_seconds(), end });
        }
        Ok(())
    }
}

impl Sink for Calls {}

/// What calls took. One that the run's end cut off counts with its age: it takes longer than that.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Latencies {
    seconds: Vec<f64>,
    /// How many the end cut off.
    cut_off: usize,
    /// Calls that ended, a second.
    pub(super) rate: f64,
}

impl Latencies {
    pub(super) fn quantile(&self, share: f64) -> f64 {
        quantile(&self.seconds, share)
    }

    /// The latencies at so many shares of the calls, evenly spaced up to all: seconds and share.
    pub(super) fn steps(&self, count: usize) -> Vec<(f64, f64)> {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        let step = |place: usize| {
            let rank = (place * sorted.len()).div_ceil(count);
            (sorted[rank.max(1) - 1], place as f64 / count as f64)
        };
        (1..=count).map(step).collect()
    }

    /// Whether so many calls were cut off that the quantile is a lower bound: how long they would have taken is not known.
    pub(super) fn is_bound(&self, share: f64) -> bool {
        self.cut_off as f64 > (1.0 - share) * self.seconds.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Bytes, Span};
    use rack::{Class, Flow, FlowId, NodeId};

    use super::*;

    #[test]
    fn a_call_lasts_from_its_request_to_the_end_of_its_response() {
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut calls = Calls::new(6);
        let mut put = |id, start, end: Option<u64>| {
            let flow = Flow {
                id: FlowId::new(id),
                src: NodeId::new(0),
                dst: NodeId::new(1),
                size: Bytes::new(1),
                start: at(start),
                class: Class::new(0),
            };
            let unfinished = FlowEnd::Unfinished { delivered: Bytes::ZERO, ideal: Span::ZERO };
            let end = end.map_or(unfinished, |end| FlowEnd::Completed {
                at: at(end),
                ideal: Span::ZERO,
                stages: &[],
            });
            calls.record(&FlowRecord { flow: &flow, measured: true, end }).unwrap();
        };
        put(0, 0, Some(2));
        put(1, 5, Some(10));
        put(6, 1, Some(2));
        put(2, 10, Some(11));
        put(3, 12, Some(14));
        put(4, 14, Some(15));
        put(5, 16, None);
        let all = calls.between(0.0, 20e-6);
        let expected = [10e-6, 4e-6, 6e-6];
        assert!(all.seconds.iter().zip(expected).all(|(found, us)| (found - us).abs() < 1e-12));
        assert!((all.rate - 2.0 / 20e-6).abs() < 1e-3);
        assert!(all.is_bound(0.99) && !all.is_bound(0.5), "one of three was cut off");
        for (seconds, share) in all.steps(2) {
            assert_eq!(seconds, all.quantile(share));
        }
        let late = calls.between(10e-6, 20e-6);
        assert_eq!((late.seconds.len(), late.rate.round()), (2, 100_000.0));
        let early = calls.between(0.0, 12e-6);
        assert_eq!((early.seconds.len(), early.cut_off, early.rate.round()), (2, 1, 83_333.0));
        assert!(
            (early.quantile(0.1) - 2e-6).abs() < 1e-12,
            "the second has been under way for 2 us"
        );
    }
}
