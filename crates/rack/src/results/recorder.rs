//! Turns the ends of flows into distributions, as they happen.

use std::io;
use std::ops::ControlFlow;

use kernel::{Bytes, Histogram, PS_PER_SECOND, Span, Time};

use super::{Cdf, FlowEnd, FlowRecord, FlowSink, Quantiles, SizeBin};
use crate::{Completion, Failure, Flow, FlowId, Probe};

/// Short flows have at most this size (Shoal §7.3, R2C2 §5.2).
pub const SHORT_MAX: Bytes = Bytes::new(100_000);
/// Long flows have at least this size (Shoal §7.3, R2C2 §5.2).
pub const LONG_MIN: Bytes = Bytes::new(1_000_000);
/// Slowdowns are kept as multiples of this (our choice: finer than the histogram's own error).
const SLOWDOWN_SCALE: f64 = 10_000.0;
/// Points of a distribution in the report (our choice).
const CDF_POINTS: usize = 400;

/// Completion times and slowdowns of one class of flows.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// In picoseconds.
    fct: Histogram,
    /// In units of 1 / [`SLOWDOWN_SCALE`].
    slowdown: Histogram,
}

impl Distribution {
    fn record(&mut self, fct: Span, ideal: Span) {
        self.fct.record(fct.as_ps());
        let ratio = fct.as_ps() as f64 / ideal.as_ps().max(1) as f64;
        self.slowdown.record((ratio * SLOWDOWN_SCALE).round() as u64);
    }

    /// Completion times in seconds.
    #[must_use]
    pub fn fct(&self) -> Quantiles {
        quantiles(&self.fct, PS_PER_SECOND as f64)
    }

    /// Completion time over ideal completion time.
    #[must_use]
    pub fn slowdown(&self) -> Quantiles {
        quantiles(&self.slowdown, SLOWDOWN_SCALE)
    }
}

/// A histogram in a few numbers, its values divided by `scale`.
fn quantiles(values: &Histogram, scale: f64) -> Quantiles {
    let at = |q| values.quantile(q).unwrap_or(0) as f64 / scale;
    Quantiles {
        count: values.count(),
        mean: values.mean().unwrap_or(0.0) / scale,
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: values.max().unwrap_or(0) as f64 / scale,
    }
}

/// Flows of sizes from `2^k + 1` to `2^(k + 1)` bytes.
#[derive(Clone, Debug, Default)]
struct Bin {
    flows: Distribution,
    stages: Vec<u128>,
}

/// Watches a run and keeps what the summary and the report need: a fixed amount, however many
/// flows there are.
pub struct Recorder<'a, S> {
    sink: &'a mut S,
    /// Flows numbered below are the warm-up: written, not measured.
    warm_up: FlowId,
    pub(super) short: Distribution,
    pub(super) medium: Distribution,
    pub(super) long: Distribution,
    pub(super) all: Distribution,
    /// Goodput of each long flow, in bit/s.
    goodput: Histogram,
    bins: Vec<Bin>,
    /// Flows completed and given up, warm-up included.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// Ends since the last call of [`Recorder::take_ended`]; kept only for reactive workloads.
    ended: Option<Vec<(FlowId, Time)>>,
    pub(crate) last_end: Time,
    error: Option<io::Error>,
}

impl<'a, S: FlowSink> Recorder<'a, S> {
    /// A recorder that passes each flow on to `sink`. A reactive one remembers ends until they are
    /// taken, and pauses the run at each.
    pub(crate) fn new(
        sink: &'a mut S,
        warm_up: FlowId,
        reactive: Option<Vec<(FlowId, Time)>>,
    ) -> Self {
        Self {
            sink,
            warm_up,
            short: Distribution::default(),
            medium: Distribution::default(),
            long: Distribution::default(),
            all: Distribution::default(),
            goodput: Histogram::new(),
            bins: Vec::new(),
            completed: 0,
            failed: 0,
            ended: reactive,
            last_end: Time::ZERO,
            error: None,
        }
    }

    /// Flows that have ended either way.
    pub(crate) fn ended_count(&self) -> u64 {
        self.completed + self.failed
    }

    /// The ends since the last call, in order.
    pub(crate) fn take_ended(&mut self) -> Vec<(FlowId, Time)> {
        self.ended.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The error that stopped the sink, once.
    pub(crate) fn take_error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Writes a flow that the run left unfinished.
    pub(crate) fn unfinished(&mut self, flow: &Flow) -> io::Result<()> {
        self.sink.record(&FlowRecord { flow, end: FlowEnd::Unfinished })
    }

    fn write(&mut self, flow: &Flow, end: FlowEnd<'_>) {
        if self.error.is_none() {
            self.error = self.sink.record(&FlowRecord { flow, end }).err();
        }
    }

    fn end(&mut self, flow: FlowId, at: Time) -> ControlFlow<()> {
        self.last_end = self.last_end.max(at);
        if let Some(ended) = &mut self.ended {
            ended.push((flow, at));
            return ControlFlow::Break(());
        }
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn measure(&mut self, completion: &Completion<'_>) {
        let (flow, ideal) = (completion.flow, completion.ideal);
        let fct = completion.end - flow.start;
        let class = match flow.size {
            size if size <= SHORT_MAX => &mut self.short,
            size if size < LONG_MIN => &mut self.medium,
            _ => &mut self.long,
        };
        class.record(fct, ideal);
        self.all.record(fct, ideal);
        if flow.size >= LONG_MIN {
            let bits = u128::from(flow.size.bits()) * u128::from(PS_PER_SECOND);
            self.goodput.record((bits / u128::from(fct.as_ps().max(1))) as u64);
        }
        let bin = bin_of(flow.size);
        if self.bins.len() <= bin {
            self.bins.resize_with(bin + 1, Bin::default);
        }
        let bin = &mut self.bins[bin];
        bin.flows.record(fct, ideal);
        bin.stages.resize(completion.stages.len(), 0);
        for (sum, span) in bin.stages.iter_mut().zip(completion.stages) {
            *sum += u128::from(span.as_ps());
        }
    }

    /// Goodput of long flows: mean, median and first percentile, in bit/s.
    pub(super) fn goodput(&self) -> (f64, f64, f64) {
        let at = |q| self.goodput.quantile(q).unwrap_or(0) as f64;
        (self.goodput.mean().unwrap_or(0.0), at(0.5), at(0.01))
    }

    /// The measured flows by size.
    pub(super) fn size_bins(&self) -> Vec<SizeBin> {
        let filled = self.bins.iter().enumerate().filter(|(_, bin)| !bin.flows.fct.is_empty());
        filled
            .map(|(index, bin)| {
                let count = bin.flows.fct.count();
                let mean = |sum: &u128| *sum as f64 / count as f64 / PS_PER_SECOND as f64;
                SizeBin {
                    from: Bytes::new(if index == 0 { 1 } else { (1 << index) + 1 }),
                    to: Bytes::new(1 << (index + 1)),
                    count,
                    fct: bin.flows.fct(),
                    slowdown: bin.flows.slowdown(),
                    stages: bin.stages.iter().map(mean).collect(),
                }
            })
            .collect()
    }

    /// Distributions by class.
    pub(super) fn cdfs(&self) -> Vec<Cdf> {
        let classes = [
            ("short", &self.short),
            ("medium", &self.medium),
            ("long", &self.long),
            ("all", &self.all),
        ];
        let mut cdfs = Vec::new();
        for (class, flows) in classes {
            if flows.fct.is_empty() {
                continue;
            }
            for (quantity, values, scale) in [
                ("fct", &flows.fct, PS_PER_SECOND as f64),
                ("slowdown", &flows.slowdown, SLOWDOWN_SCALE),
            ] {
                let points = values.cdf(CDF_POINTS);
                let points =
                    points.into_iter().map(|(v, share)| (v as f64 / scale, share)).collect();
                cdfs.push(Cdf { quantity, class, points });
            }
        }
        cdfs
    }
}

/// Bin `k` holds sizes from `2^k + 1` to `2^(k + 1)`; bin 0 also size 1.
fn bin_of(size: Bytes) -> usize {
    match size.get() {
        0..=2 => 0,
        size => (u64::BITS - (size - 1).leading_zeros()) as usize - 1,
    }
}

impl<S: FlowSink> Probe for Recorder<'_, S> {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.completed += 1;
        let Completion { flow, end, ideal, stages } = *completion;
        self.write(flow, FlowEnd::Completed { at: end, ideal, stages });
        if flow.id >= self.warm_up {
            self.measure(completion);
        }
        self.end(flow.id, end)
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.failed += 1;
        self.write(flow, FlowEnd::Failed { at, why });
        self.end(flow.id, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_and_each_size_has_one() {
        for (size, bin) in [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3), (1 << 20, 19)] {
            assert_eq!(bin_of(Bytes::new(size)), bin, "{size} B");
        }
        for size in 1..5000 {
            let bin = bin_of(Bytes::new(size));
            assert!(size <= 2 << bin && (bin == 0 || size > 1 << bin), "{size} B in bin {bin}");
        }
    }
}
