//! One run: a workload through a fabric, watched.

use std::io;
use std::ops::ControlFlow;

use kernel::{Bytes, Combine, Rate, Series, Span, Time};

use crate::results::recorder::Recorder;
use crate::results::{self, FlowSink, RunResult};
use crate::{Advance, Fabric, Flow, FlowId, GaugeKind, Workload};

/// How a run is driven and described.
#[derive(Clone, Debug)]
pub struct Options {
    /// End when this many flows have ended; `None`: when all have.
    pub flows: Option<u64>,
    /// End at this time at the latest.
    pub time: Option<Time>,
    /// The first so many flows are carried but not measured.
    pub warm_up_flows: u64,
    /// First sampling interval of the time series; it doubles in long runs.
    pub sample: Span,
    /// The node rate that load refers to.
    pub load_rate: Rate,
    /// The load that the workload was asked for, if it was.
    pub nominal_load: Option<f64>,
    /// Sizes of flows of the workload, drawn ahead, for [`Fabric::foresee`].
    pub sizes: Vec<Bytes>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flows: None,
            time: None,
            warm_up_flows: 0,
            sample: Span::from_us(1),
            load_rate: Rate::from_gbps(1),
            nominal_load: None,
            sizes: Vec::new(),
        }
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Flows that have ended.
    pub ended: u64,
    /// Flows in all, where known.
    pub total: Option<u64>,
    /// Simulated time.
    pub now: Time,
}

/// Why a run broke.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Flows are left and nothing moves them.
    #[error("the run makes no progress at {now}: {count} flows unfinished, among them {examples}")]
    Stuck {
        /// Simulated time.
        now: Time,
        /// Flows not ended.
        count: u64,
        /// Some of them.
        examples: String,
    },
    /// Flows arrive much faster than they end.
    #[error(
        "at {now} {count} flows are open, more than a run keeps: they arrive faster than the fabric \
         carries them. Lower workload.load, or end the run early with run.time"
    )]
    Overrun {
        /// Simulated time.
        now: Time,
        /// Flows not ended.
        count: u64,
    },
    /// Simulated time goes on and on.
    #[error(
        "the run has come to {now} and hardly anything arrives; flows still open: {count}, among them \
         {examples}. Make lines faster or errors fewer, or end the run early with run.time"
    )]
    Endless {
        /// Simulated time.
        now: Time,
        /// Flows not ended.
        count: u64,
        /// Some of them.
        examples: String,
    },
    /// A self-check of the model failed.
    #[error("a check failed at the end of the run: {0}")]
    Check(String),
    /// The flow table could not be written.
    #[error("writing the flow table: {0}")]
    Write(#[from] io::Error),
}

/// What a run counted beside its distributions.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) offered: u64,
    pub(crate) offered_bytes: Bytes,
    pub(crate) last_start: Time,
    pub(crate) end: Time,
    pub(crate) saturated: bool,
    pub(crate) interrupted: bool,
}

/// Drives `workload` through `fabric` to the end. `progress` is called now and then; if it breaks,
/// the run ends there and its result says so.
///
/// # Errors
/// When the run stands still with flows left, flows pile up without end, a check of the model fails or
/// `sink` cannot write.
pub fn drive<F: Fabric, S: FlowSink>(
    fabric: &mut F,
    workload: &mut dyn Workload,
    options: &Options,
    sink: &mut S,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunResult, RunError> {
    fabric.foresee(&options.sizes);
    let reactive = workload.is_reactive().then(Vec::new);
    let recorder = Recorder::new(sink, FlowId::new(options.warm_up_flows), reactive);
    let mut run = Run::new(fabric, workload, options, recorder);
    run.carry(progress)?;
    run.fabric.check().map_err(RunError::Check)?;
    for open in run.fabric.unfinished(usize::MAX) {
        run.recorder.unfinished(&open.flow)?;
    }
    run.tally.end = run.end();
    run.tally.saturated = run.is_saturated();
    Ok(results::summary::result(run.fabric, &run.recorder, &run.series, &run.tally, options))
}

struct Run<'a, F, S> {
    fabric: &'a mut F,
    workload: &'a mut dyn Workload,
    options: &'a Options,
    recorder: Recorder<'a, S>,
    series: Series,
    row: Vec<f64>,
    tally: Tally,
    /// Open flows at the sampling points while flows still arrive.
    open: Series,
}

/// Most flows that may be open at a time, lest a run that never ends takes all memory (our choice: some
/// GB, and far more than any that can be carried).
const OPEN_MAX: u64 = 1 << 22;
/// The longest time that is simulated: 30 days, a seventh of what [`Time`] holds, so that no timer of a
/// transport is set beyond that (our choice; nothing in a rack takes as long that ends).
const TIME_MAX: Time = Time::from_ps(30 * 24 * 3_600 * 1_000_000_000_000);
/// Simulated samples between two reports of progress; also each [`FLOWS_PER_REPORT`] flows.
const SAMPLES_PER_REPORT: u64 = 16;
const FLOWS_PER_REPORT: u64 = 256;

impl<'a, F: Fabric, S: FlowSink> Run<'a, F, S> {
    fn new(
        fabric: &'a mut F,
        workload: &'a mut dyn Workload,
        options: &'a Options,
        recorder: Recorder<'a, S>,
    ) -> Self {
        let rules = fabric.gauges().iter().map(|gauge| match gauge.kind {
            GaugeKind::Level => Combine::Mean,
            GaugeKind::Peak => Combine::Max,
            GaugeKind::Count => Combine::Sum,
        });
        let rules: Vec<_> = rules.collect();
        Self {
            row: vec![0.0; rules.len()],
            series: Series::new(rules, options.sample),
            open: Series::with_rows(vec![Combine::Mean], options.sample, 256),
            fabric,
            workload,
            options,
            recorder,
            tally: Tally {
                offered: 0,
                offered_bytes: Bytes::ZERO,
                last_start: Time::ZERO,
                end: Time::ZERO,
                saturated: false,
                interrupted: false,
            },
        }
    }

    fn carry(
        &mut self,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        let total = self.options.flows.or(self.workload.total());
        let (mut reported, mut samples) = (0, 0);
        while !self.is_done() {
            let next = self.workload.next_start();
            let sample_at = self.series.next_sample_at();
            let mut until = next.map_or(sample_at, |start| start.min(sample_at));
            if let Some(limit) = self.options.time {
                until = until.min(limit);
            }
            let advance = self.fabric.advance(until.max(self.fabric.now()), &mut self.recorder);
            self.recorder.take_error()?;
            for (flow, at) in self.recorder.take_ended() {
                self.workload.ended(flow, at);
            }
            if self.fabric.now() >= sample_at {
                self.sample();
                samples += 1;
            }
            let offered = self.tally.offered;
            self.offer_due();
            let open = self.tally.offered - self.recorder.ended_count();
            if open > OPEN_MAX {
                return Err(RunError::Overrun { now: self.fabric.now(), count: open });
            }
            if self.fabric.now() > TIME_MAX {
                let (now, examples) = (self.fabric.now(), self.examples());
                return Err(RunError::Endless { now, count: open, examples });
            }
            // A flow offered just now is work that the fabric, idle until then, did not know of.
            let nothing_new = self.tally.offered == offered && self.workload.next_start().is_none();
            if advance == Advance::Idle && open > 0 && nothing_new {
                return Err(self.stuck(open));
            }
            let ended = self.recorder.ended_count();
            if samples >= SAMPLES_PER_REPORT || ended >= reported + FLOWS_PER_REPORT {
                (reported, samples) = (ended, 0);
                let report = Progress { ended, total, now: self.fabric.now() };
                if progress(report).is_break() {
                    self.tally.interrupted = true;
                    break;
                }
            }
        }
        if self.fabric.now() > self.series.end() {
            self.sample();
        }
        Ok(())
    }

    fn is_done(&mut self) -> bool {
        let ended = self.recorder.ended_count();
        if self.options.flows.is_some_and(|limit| ended >= limit) {
            return true;
        }
        if self.options.time.is_some_and(|limit| self.fabric.now() >= limit) {
            return true;
        }
        ended == self.tally.offered && self.workload.next_start().is_none()
    }

    /// When the last flow ended or started; of a run that was cut short, when that was.
    fn end(&self) -> Time {
        let now = self.fabric.now();
        let is_cut_short =
            self.tally.interrupted || self.options.time.is_some_and(|limit| now >= limit);
        let end = self.recorder.last_end.max(self.tally.last_start);
        if is_cut_short { end.max(now) } else { end }
    }

    /// Offers all flows whose time has come.
    fn offer_due(&mut self) {
        while self.workload.next_start().is_some_and(|start| start <= self.fabric.now()) {
            if self.options.time.is_some_and(|limit| self.fabric.now() >= limit) {
                return;
            }
            let Some(flow) = self.workload.next_flow() else { return };
            self.tally.offered += 1;
            self.tally.offered_bytes += flow.size;
            self.tally.last_start = self.tally.last_start.max(flow.start);
            self.fabric.offer(&flow);
        }
    }

    fn sample(&mut self) {
        let now = self.fabric.now();
        self.fabric.sample(&mut self.row);
        self.series.push(now, &self.row);
        if self.workload.next_start().is_some() && now >= self.open.next_sample_at() {
            self.open.push(now, &[(self.tally.offered - self.recorder.ended_count()) as f64]);
        }
    }

    /// Whether flows pile up: in the last quarter of the arrivals at least half as many again are
    /// open as in the second quarter, and more than one a node. Says nothing of short runs.
    fn is_saturated(&self) -> bool {
        let rows: Vec<_> = self.open.rows().map(|(_, row)| row[0]).collect();
        let quarter = rows.len() / 4;
        if quarter < 4 || self.workload.is_reactive() {
            return false;
        }
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (early, late) =
            (mean(&rows[quarter..2 * quarter]), mean(&rows[rows.len() - quarter..]));
        late > 1.5 * early && late > f64::from(self.fabric.nodes())
    }

    fn stuck(&self, count: u64) -> RunError {
        RunError::Stuck { now: self.fabric.now(), count, examples: self.examples() }
    }

    /// Some flows that have not ended.
    fn examples(&self) -> String {
        let show =
            |f: &Flow| format!("flow {} from {} to {}, {}", f.id.get(), f.src, f.dst, f.size);
        let examples: Vec<_> =
            self.fabric.unfinished(5).iter().map(|open| show(&open.flow)).collect();
        examples.join("; ")
    }
}
