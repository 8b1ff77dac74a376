//! Turns the ends of flows into distributions, as they happen.

use std::io;
use std::ops::ControlFlow;

use kernel::{Bytes, PS_PER_SECOND, Rate, Span, Time};

use super::figure::{Censored, Goodput, Quantiles};
use super::steady::{Order, Settled};
use super::{Cdf, FlowEnd, FlowRecord, FlowSink, SizeBin};
use crate::run::{Backlog, Books, MeasuredSet};
use crate::{Completion, Failure, Flow, FlowId, Probe, Unfinished};

/// Short flows have at most this size (Shoal §7.3, R2C2 §5.2).
pub const SHORT_MAX: Bytes = Bytes::new(100_000);
/// Long flows have at least this size (Shoal §7.3, R2C2 §5.2).
pub const LONG_MIN: Bytes = Bytes::new(1_000_000);
/// Slowdowns are kept as multiples of this (our choice: finer than the histogram's own error).
const SLOWDOWN_SCALE: f64 = 10_000.0;
/// What the ideal that is common to all fabrics allows for everything but a flow's bytes (our choice:
/// about what the networks of a rack take for one packet).
pub const COMMON_LATENCY: Span = Span::from_us(1);
/// Points of a distribution in the report (our choice).
const CDF_POINTS: usize = 400;

/// Completion times and slowdowns of one class of flows.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// In picoseconds.
    fct: Censored,
    /// In units of 1 / [`SLOWDOWN_SCALE`].
    slowdown: Censored,
    /// The same, against [`common_ideal`].
    common: Censored,
}

impl Distribution {
    fn record(&mut self, fct: Span, ideals: Ideals) {
        self.fct.record(fct.as_ps());
        self.slowdown.record(scaled(slowdown(fct, ideals.own)));
        self.common.record(scaled(slowdown(fct, ideals.common)));
    }

    fn record_at_least(&mut self, fct: Span, ideals: Ideals) {
        self.fct.record_at_least(fct.as_ps());
        self.slowdown.record_at_least(scaled(slowdown(fct, ideals.own)));
        self.common.record_at_least(scaled(slowdown(fct, ideals.common)));
    }

    /// Completion times in seconds.
    #[must_use]
    pub fn fct(&self) -> Quantiles {
        self.fct.quantiles(PS_PER_SECOND as f64)
    }

    /// Completion time over ideal completion time.
    #[must_use]
    pub fn slowdown(&self) -> Quantiles {
        self.slowdown.quantiles(SLOWDOWN_SCALE)
    }

    /// Completion time over an ideal that is the same for every fabric: [`COMMON_LATENCY`] and the time
    /// of the flow's bytes at the rate that load refers to.
    #[must_use]
    pub fn common(&self) -> Quantiles {
        self.common.quantiles(SLOWDOWN_SCALE)
    }
}

/// What a flow takes at least: alone in its own network, and by the measure common to all.
#[derive(Clone, Copy, Debug)]
struct Ideals {
    own: Span,
    common: Span,
}

/// [`COMMON_LATENCY`] and the time of `size` at `rate`.
fn common_ideal(size: Bytes, rate: Rate) -> Span {
    let work = u128::from(size.get()) * 8 * u128::from(PS_PER_SECOND);
    let ps = work / u128::from(rate.as_bps().max(1)) + u128::from(COMMON_LATENCY.as_ps());
    Span::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

fn slowdown(fct: Span, ideal: Span) -> f64 {
    fct.as_ps() as f64 / ideal.as_ps().max(1) as f64
}

fn scaled(slowdown: f64) -> u64 {
    (slowdown * SLOWDOWN_SCALE).round() as u64
}

/// Flows of sizes from `2^k + 1` to `2^(k + 1)` bytes.
#[derive(Clone, Debug, Default)]
struct Bin {
    flows: Distribution,
    /// Sums over the flows that completed.
    stages: Vec<u128>,
    completed: u64,
}

/// A measured flow whose packets were lost and are not retransmitted: it never completes.
#[derive(Clone, Copy, Debug)]
struct Lost {
    flow: Flow,
    ideal: Span,
}

/// Watches a run and keeps what the summary and the report need: a fixed amount, however many
/// flows there are.
pub struct Recorder<'a> {
    sink: &'a mut dyn FlowSink,
    set: MeasuredSet,
    /// The node rate that load refers to.
    rate: Rate,
    pub(crate) books: Books,
    pub(crate) backlog: Backlog,
    pub(super) short: Distribution,
    pub(super) medium: Distribution,
    pub(super) long: Distribution,
    pub(super) all: Distribution,
    /// Of each long flow.
    pub(super) goodput: Goodput,
    bins: Vec<Bin>,
    /// Slowdowns of the measured flows in the order of their numbers.
    order: Order,
    /// Measured flows: offered, completed, given up because an end of theirs died, and lost.
    pub(crate) measured: Measured,
    lost: Vec<Lost>,
    /// Flows whose ideal completion time the driver is to ask for: those lost since it last did.
    newly_lost: Vec<Flow>,
    /// Ends since the last call of [`Recorder::take_ended`]; kept only for reactive workloads.
    ended: Option<Vec<(FlowId, Time)>>,
    pub(crate) last_end: Time,
    /// Whether the fabric has asked since the last call of [`Recorder::take_polled`].
    polled: bool,
    /// Whether it makes no difference when the recorder is told of ends.
    pub(crate) is_patient: bool,
    error: Option<io::Error>,
}

/// What became of the measured flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Measured {
    /// Offered so far.
    pub(crate) offered: u64,
    /// Flows offered before the first of them.
    pub(crate) before: u64,
    /// Ended in any way.
    pub(crate) ended: u64,
    /// Given up since their source or destination died.
    pub(crate) failed: u64,
    /// Left unfinished, or given up since packets were lost for good.
    pub(crate) unfinished: u64,
}

impl<'a> Recorder<'a> {
    /// A recorder that passes each flow on to `sink` and measures those of `set`. A reactive one
    /// remembers ends until they are taken, and pauses the run at each.
    pub(crate) fn new(
        sink: &'a mut dyn FlowSink,
        set: MeasuredSet,
        rate: Rate,
        reactive: Option<Vec<(FlowId, Time)>>,
    ) -> Self {
        Self {
            sink,
            set,
            rate,
            books: Books::default(),
            backlog: Backlog::default(),
            short: Distribution::default(),
            medium: Distribution::default(),
            long: Distribution::default(),
            all: Distribution::default(),
            goodput: Goodput::default(),
            bins: Vec::new(),
            order: Order::default(),
            measured: Measured::default(),
            lost: Vec::new(),
            newly_lost: Vec::new(),
            ended: reactive,
            last_end: Time::ZERO,
            polled: false,
            is_patient: false,
            error: None,
        }
    }

    /// A flow is offered.
    pub(crate) fn offer(&mut self, flow: &Flow) {
        self.books.offer(flow);
        self.backlog.offer(flow);
        let measured = self.set.contains(flow);
        self.measured.offered += u64::from(measured);
        self.measured.before += u64::from(!measured && self.measured.offered == 0);
    }

    /// The ends since the last call, in order.
    pub(crate) fn take_ended(&mut self) -> Vec<(FlowId, Time)> {
        self.ended.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether the fabric has asked if it is to go on, since the last call.
    pub(crate) fn take_polled(&mut self) -> bool {
        std::mem::take(&mut self.polled)
    }

    /// The error that stopped the sink, once.
    pub(crate) fn take_error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Learns how long lost flows would take alone, from the network that lost them.
    pub(crate) fn settle_lost(&mut self, ideal: impl Fn(&Flow) -> Span) {
        let lost = self.newly_lost.drain(..).map(|flow| Lost { ideal: ideal(&flow), flow });
        self.lost.extend(lost);
    }

    /// Ends the records of a run that ended at `end`: flows that are open, with the time that each takes
    /// alone, are written as unfinished and bound the figures.
    pub(crate) fn close(
        &mut self,
        end: Time,
        open: &[Unfinished],
        ideal: impl Fn(&Flow) -> Span,
    ) -> io::Result<()> {
        self.settle_lost(&ideal);
        for &Lost { flow, ideal } in &std::mem::take(&mut self.lost) {
            self.bound(&flow, end, ideal);
        }
        for &Unfinished { flow, delivered } in open {
            let alone = ideal(&flow);
            self.backlog.close(&flow, alone, None);
            let end_of_it = FlowEnd::Unfinished { delivered, ideal: alone };
            let measured = self.set.contains(&flow);
            self.sink.record(&FlowRecord { flow: &flow, measured, end: end_of_it })?;
            if measured {
                self.bound(&flow, end, alone);
            }
        }
        Ok(())
    }

    fn write(&mut self, flow: &Flow, measured: bool, end: FlowEnd<'_>) {
        if self.error.is_none() {
            self.error = self.sink.record(&FlowRecord { flow, measured, end }).err();
        }
    }

    fn end(&mut self, flow: &Flow, at: Time) -> ControlFlow<()> {
        self.last_end = self.last_end.max(at);
        if let Some(ended) = &mut self.ended {
            ended.push((flow.id, at));
            return ControlFlow::Break(());
        }
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn class_of(&mut self, size: Bytes) -> &mut Distribution {
        match size {
            size if size <= SHORT_MAX => &mut self.short,
            size if size < LONG_MIN => &mut self.medium,
            _ => &mut self.long,
        }
    }

    fn bin(&mut self, size: Bytes) -> &mut Bin {
        let bin = bin_of(size);
        if self.bins.len() <= bin {
            self.bins.resize_with(bin + 1, Bin::default);
        }
        &mut self.bins[bin]
    }

    fn measure(&mut self, completion: &Completion<'_>) {
        let (flow, ideal) = (completion.flow, completion.ideal);
        let fct = completion.end - flow.start;
        let ideals = Ideals { own: ideal, common: common_ideal(flow.size, self.rate) };
        self.class_of(flow.size).record(fct, ideals);
        self.all.record(fct, ideals);
        if flow.size >= LONG_MIN {
            self.goodput.record(flow.size.bits(), fct.as_ps());
        }
        self.order.record(flow.id.get() - self.set.first, slowdown(fct, ideal));
        let bin = self.bin(flow.size);
        bin.flows.record(fct, ideals);
        bin.completed += 1;
        bin.stages.resize(completion.stages.len(), 0);
        for (sum, span) in bin.stages.iter_mut().zip(completion.stages) {
            *sum += u128::from(span.as_ps());
        }
    }

    /// A measured flow has not completed by `end`: it takes at least as long as it has been there.
    fn bound(&mut self, flow: &Flow, end: Time, ideal: Span) {
        self.measured.unfinished += 1;
        let been = if end > flow.start { end - flow.start } else { Span::ZERO };
        // It takes no less than alone, even if the run ended sooner.
        let fct = been.max(ideal);
        let ideals = Ideals { own: ideal, common: common_ideal(flow.size, self.rate) };
        self.class_of(flow.size).record_at_least(fct, ideals);
        self.all.record_at_least(fct, ideals);
        if flow.size >= LONG_MIN {
            self.goodput.record_at_most(flow.size.bits(), fct.as_ps());
        }
        self.order.record(flow.id.get() - self.set.first, slowdown(fct, ideal));
        self.bin(flow.size).flows.record_at_least(fct, ideals);
    }

    /// When the slowdowns of the measured flows settle, in their order.
    pub(super) fn settling(&self) -> Settled {
        self.order.settling()
    }

    /// The measured flows by size.
    pub(super) fn size_bins(&self) -> Vec<SizeBin> {
        let filled = self.bins.iter().enumerate().filter(|(_, bin)| bin.flows.fct.count() > 0);
        filled
            .map(|(index, bin)| {
                let completed = bin.completed.max(1) as f64;
                let mean = |sum: &u128| *sum as f64 / completed / PS_PER_SECOND as f64;
                SizeBin {
                    from: Bytes::new(if index == 0 { 1 } else { (1 << index) + 1 }),
                    to: Bytes::new(1 << (index + 1)),
                    count: bin.flows.fct.count(),
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
            for (quantity, values, scale) in [
                ("fct", &flows.fct, PS_PER_SECOND as f64),
                ("slowdown", &flows.slowdown, SLOWDOWN_SCALE),
            ] {
                let points = values.cdf(CDF_POINTS);
                if points.is_empty() {
                    continue;
                }
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

impl Probe for Recorder<'_> {
    fn completed(&mut self, completion: &Completion<'_>) -> ControlFlow<()> {
        self.books.complete(completion);
        let Completion { flow, end, ideal, stages } = *completion;
        self.backlog.close(flow, ideal, Some(end));
        let measured = self.set.contains(flow);
        self.write(flow, measured, FlowEnd::Completed { at: end, ideal, stages });
        if measured && end >= flow.start {
            self.measured.ended += 1;
            self.measure(completion);
        }
        self.end(flow, end)
    }

    fn failed(&mut self, flow: &Flow, at: Time, why: Failure) -> ControlFlow<()> {
        self.books.fail(flow, at);
        let measured = self.set.contains(flow);
        self.write(flow, measured, FlowEnd::Failed { at, why });
        if measured {
            self.measured.ended += 1;
            match why {
                Failure::SourceDied | Failure::DestinationDied => self.measured.failed += 1,
                // Both ends live, and another network would have carried it: no survivor's figure.
                Failure::PacketsLost => self.newly_lost.push(*flow),
            }
        }
        self.end(flow, at)
    }

    /// Only ends that bring new flows are looked at at once.
    fn may_pause(&self) -> bool {
        self.ended.is_some()
    }

    /// The driver says so: while more measured flows are to come.
    fn may_wait(&self) -> bool {
        self.is_patient
    }

    /// The driver looks at what piles up, and whether somebody wants the run to end.
    fn poll(&mut self) -> ControlFlow<()> {
        self.polled = true;
        ControlFlow::Break(())
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
