//! One run: a workload through a fabric, watched.
//!
//! What is measured is a fixed set of flows ([`MeasuredSet`]). Flows go on arriving until all of the set
//! have ended, so that the last of them meet the same load as the first; what has not ended at the limit
//! of time is counted and bounds the figures ([`crate::results::figure`]). The books are kept beside the
//! fabric (`books`), and a run whose books do not balance ends with an error.

mod backlog;
mod books;
mod measured;

use std::io;
use std::ops::ControlFlow;

use kernel::{Bytes, Combine, Rate, Series, Span, Time};

use crate::results::recorder::Recorder;
use crate::results::{self, FlowSink, RunResult};
use crate::trace::Followed;
use crate::{Advance, Fabric, GaugeKind, Problem, Workload};

pub(crate) use backlog::Backlog;
pub(crate) use books::Books;
pub use measured::{MeasuredSet, warm_up_flows};

/// How a run is driven and described.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which flows are measured. Those of a lower number or an earlier start are the warm-up.
    pub measured: MeasuredSet,
    /// How the warm-up was found, for the summary.
    pub warm_up: &'static str,
    /// End at this time at the latest. `None`: at the default of [`limit_of`] while flows arrive.
    pub time: Option<Time>,
    /// First sampling interval of the time series; it doubles in long runs.
    pub sample: Span,
    /// The node rate that load refers to.
    pub load_rate: Rate,
    /// The load that the workload was asked for, if it was.
    pub nominal_load: Option<f64>,
    /// Sizes of flows of the workload, drawn ahead, for [`Fabric::hint_sizes`].
    pub sizes: Vec<Bytes>,
    /// When the faults of the run begin, for what it never came to.
    pub faults: Vec<Time>,
    /// Whether every message goes through its bytes ([`Fabric::set_wire`]).
    pub wire: bool,
    /// On how many threads the fabric may run ([`Fabric::set_threads`]).
    pub threads: usize,
    /// Into how many shards the fabric is cut whatever there is to do, for tests ([`Fabric::set_shards`]); one:
    /// as threads need.
    pub shards: usize,
    /// Flows whose packets are recorded ([`Fabric::set_trace`]); `None`: nothing is.
    pub trace: Option<Vec<Followed>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            measured: MeasuredSet::default(),
            warm_up: "none",
            time: None,
            sample: Span::from_us(1),
            load_rate: Rate::from_gbps(1),
            nominal_load: None,
            sizes: Vec::new(),
            faults: Vec::new(),
            wire: false,
            threads: 1,
            shards: 1,
            trace: None,
        }
    }
}

/// The latest end of a run that states none, of a workload that never ends by itself: ten times as long
/// as it took until the last measured flow started, and a millisecond at least (our choice: a network
/// that is not saturated ends nearly all of them by then).
#[must_use]
pub fn limit_of(last_start: Time) -> Time {
    const TIMES: u64 = 10;
    const LEAST: Time = Time::from_ps(1_000_000_000);
    Time::from_ps(last_start.as_ps().saturating_mul(TIMES)).max(LEAST).min(TIME_MAX)
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Measured flows that have ended.
    pub ended: u64,
    /// Measured flows in all, where known.
    pub total: Option<u64>,
    /// Simulated time.
    pub now: Time,
}

/// Why a run ended before all measured flows had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The limit of simulated time came first.
    Time,
    /// Nothing was delivered, ended or offered any more.
    NoProgress,
    /// Somebody asked for it.
    Interrupted,
}

impl Stop {
    /// The word in the summary.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::NoProgress => "no progress",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Why a run broke.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Messages were to go through their bytes, and have none.
    #[error("run.{0}; leave the key out for this fabric")]
    Wire(Problem),
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
    /// The books do not balance: a mistake of the model.
    #[error("the books of the run do not balance at {now}: {what}")]
    Books {
        /// Simulated time.
        now: Time,
        /// Which, with their numbers.
        what: String,
    },
    /// A run that was recorded went another way than the same run before: a mistake of the model.
    #[error(
        "recording packets has changed the run: its event hash is {found}, and was {expected} before"
    )]
    Recorded {
        /// The event hash of the run before.
        expected: String,
        /// That of the one that was recorded.
        found: String,
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
    pub(crate) last_start: Time,
    /// When the last measured flow started.
    pub(crate) last_measured: Time,
    pub(crate) first_measured: Option<Time>,
    pub(crate) end: Time,
    /// When the run would have ended at the latest.
    pub(crate) limit: Option<Time>,
    pub(crate) saturated: bool,
    pub(crate) stop: Option<Stop>,
}

/// Drives `workload` through `fabric` to the end. `progress` is called now and then, several times a
/// second; if it breaks, the run ends there and its result says so.
///
/// The fabric is `dyn`: it is called once a flow or sample, and this driver is compiled once, here.
///
/// # Errors
/// When flows pile up without end, the books do not balance, a check of the model fails or `sink` cannot
/// write.
pub fn drive(
    fabric: &mut dyn Fabric,
    workload: &mut dyn Workload,
    options: &Options,
    sink: &mut dyn FlowSink,
    progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RunResult, RunError> {
    // First of all: a network may be built anew for them.
    fabric.hint_sizes(&options.sizes);
    if options.wire {
        fabric.set_wire(true).map_err(RunError::Wire)?;
    }
    if options.shards > 1 {
        fabric.set_shards(options.shards);
    } else if options.threads > 1 {
        fabric.set_threads(options.threads);
    }
    if let Some(followed) = &options.trace {
        fabric.set_trace(followed);
    }
    let reactive = workload.is_reactive().then(Vec::new);
    let recorder = Recorder::new(sink, options.measured, options.load_rate, reactive);
    let mut run = Run::new(fabric, workload, options, recorder);
    run.carry(progress)?;
    run.catch_up();
    run.fabric.check().map_err(RunError::Check)?;
    let open = run.fabric.unfinished(usize::MAX);
    let what = run.recorder.books.balance(&open, &run.fabric.totals());
    what.map_err(|what| RunError::Books { now: run.fabric.now(), what })?;
    run.tally.end = run.end();
    let Run { fabric, mut recorder, series, mut tally, follows, workload, .. } = run;
    recorder.close(tally.end, &open, |flow| fabric.ideal_fct(flow))?;
    // Of flows that start when others end none can pile up.
    let rate = options.load_rate.max(fabric.node_rate());
    tally.saturated = !follows && recorder.backlog.is_saturated(fabric.nodes(), rate);
    let mut result = results::summary::result(fabric, &recorder, &series, &tally, options);
    if let Some(jobs) = results::jobs::summary(&workload.jobs(), tally.end) {
        result.put("job", jobs);
    }
    Ok(result)
}

struct Run<'a> {
    fabric: &'a mut dyn Fabric,
    workload: &'a mut dyn Workload,
    options: &'a Options,
    /// Whether flows may start when others end.
    follows: bool,
    recorder: Recorder<'a>,
    series: Series,
    row: Vec<f64>,
    tally: Tally,
    stall: Stall,
    /// Most flows that may be open.
    open_max: u64,
    /// Whether a sample was taken since that was last looked at.
    is_sampled: bool,
}

/// When something last came of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Stall {
    /// Flows offered and ended and bytes delivered by then.
    seen: (u64, u64, u64),
    events: u64,
}

/// Most flows that may be open at a time, so that a run that never ends does not take all memory: of a workload that
/// goes on for ever, whose flows pile up, and of one that ends, which may offer all of them at once (our
/// choice: some hundred bytes each, and far more than any that can be carried).
const OPEN_MAX: u64 = 1 << 20;
const OPEN_MAX_FINITE: u64 = 1 << 22;
/// The longest time that is simulated: 30 days, a seventh of what [`Time`] holds, so that no timer of a
/// transport is set beyond that (our choice; nothing in a rack takes as long that ends).
pub const TIME_MAX: Time = Time::from_ps(30 * 24 * 3_600 * 1_000_000_000_000);
/// A run makes no progress if for so many steps of the engine no byte is delivered, no flow ends and none
/// is offered (our choice: far more than a network takes to bring a packet anywhere, half a minute of
/// computing). Simulated time alone says nothing: a packet on a slow line takes what it takes.
const STALL_EVENTS: u64 = 1 << 28;
/// Ends of measured flows, or flows that start at once, between two reports of progress; a report is due,
/// too, when the fabric asks.
const FLOWS_PER_REPORT: u64 = 256;
/// Every so many such times, or samples, the run is asked whether it has come on: to count may take a look
/// at all flows.
const LOOKS_PER_COUNT: u64 = 16;

impl<'a> Run<'a> {
    fn new(
        fabric: &'a mut dyn Fabric,
        workload: &'a mut dyn Workload,
        options: &'a Options,
        recorder: Recorder<'a>,
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
            follows: workload.is_reactive(),
            open_max: if workload.is_finite() { OPEN_MAX_FINITE } else { OPEN_MAX },
            fabric,
            workload,
            options,
            recorder,
            tally: Tally {
                last_start: Time::ZERO,
                last_measured: Time::ZERO,
                first_measured: None,
                end: Time::ZERO,
                limit: options.time,
                saturated: false,
                stop: None,
            },
            stall: Stall::default(),
            is_sampled: false,
        }
    }

    fn carry(
        &mut self,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        let (mut reported, mut looks) = (0, 0u64);
        while !self.is_done() {
            let advance = self.advance()?;
            let offered = self.offer_due(progress)?;
            if self.tally.stop.is_some() {
                break;
            }
            let open = self.recorder.books.open();
            // A flow offered just now is work that the fabric, idle until then, did not know of.
            let is_stuck = advance == Advance::Idle
                && open > 0
                && offered == 0
                && self.workload.next_start().is_none();
            if is_stuck {
                self.tally.stop = Some(Stop::NoProgress);
                break;
            }
            let (ended, is_polled) = (self.recorder.measured.ended, self.recorder.take_polled());
            let is_look = is_polled || std::mem::take(&mut self.is_sampled);
            looks += u64::from(is_look);
            let is_count = is_look && looks.is_multiple_of(LOOKS_PER_COUNT);
            if is_count && self.stalls() {
                self.tally.stop = Some(Stop::NoProgress);
                break;
            }
            if !is_polled && !is_count && ended < reported + FLOWS_PER_REPORT {
                continue;
            }
            reported = ended;
            if progress(self.progress()).is_break() {
                self.tally.stop = Some(Stop::Interrupted);
                break;
            }
        }
        if self.fabric.now() > self.series.end() {
            self.sample();
        }
        Ok(())
    }

    /// Lets the fabric run until the next flow, sample or limit, or until it returns by itself.
    fn advance(&mut self) -> Result<Advance, RunError> {
        let next = self.workload.next_start();
        let sample_at = self.series.next_sample_at();
        let mut until = next.map_or(sample_at, |start| start.min(sample_at));
        until = until.min(self.limit());
        let before = self.fabric.now();
        self.recorder.is_patient = self.may_wait(next);
        let advance = self.fabric.advance(until.max(before), &mut self.recorder);
        self.recorder.take_error()?;
        let Self { fabric, recorder, .. } = self;
        recorder.books.pass(before, fabric.now());
        recorder.settle_lost(|flow| fabric.ideal_fct(flow));
        if let Some(what) = recorder.books.take_wrong() {
            return Err(RunError::Books { now: fabric.now(), what });
        }
        for (flow, at) in self.recorder.take_ended() {
            self.workload.ended(flow, at);
        }
        if self.fabric.now() >= sample_at {
            self.sample();
        }
        Ok(advance)
    }

    /// Whether it makes no difference when a fabric on several threads tells of ends: while more measured
    /// flows are to come the run goes on anyway.
    fn may_wait(&self, next: Option<Time>) -> bool {
        let offered = self.recorder.measured.offered;
        let is_complete = self.options.measured.is_complete(offered, next, self.follows);
        self.options.threads > 1 && !self.follows && !is_complete
    }

    /// Lets a fabric that was allowed to wait tell of all ends up to now.
    fn catch_up(&mut self) {
        if std::mem::take(&mut self.recorder.is_patient) {
            let now = self.fabric.now();
            self.fabric.advance(now, &mut self.recorder);
        }
    }

    /// When the run ends at the latest.
    fn limit(&self) -> Time {
        self.tally.limit.unwrap_or(TIME_MAX)
    }

    /// How far the run has come.
    fn progress(&self) -> Progress {
        let ended = self.recorder.measured.ended;
        Progress { ended, total: self.total(), now: self.fabric.now() }
    }

    /// Measured flows in all, where known.
    fn total(&self) -> Option<u64> {
        let set = &self.options.measured;
        let all = self.workload.total().map(|total| total.saturating_sub(set.first));
        match (set.count, all) {
            (Some(count), Some(all)) => Some(count.min(all)),
            (count, all) => count.or(all.filter(|_| set.until == Time::NEVER)),
        }
    }

    /// Whether all measured flows have ended, or the time is over.
    fn is_done(&mut self) -> bool {
        let next = self.workload.next_start();
        let open = self.recorder.books.open();
        let measured = self.recorder.measured;
        let follows = self.follows && (open > 0 || next.is_some());
        let set = &self.options.measured;
        let is_complete = set.is_complete(measured.offered, next, follows);
        if is_complete && measured.ended == measured.offered {
            // A run that measures nothing carries everything that comes.
            if measured.offered > 0 || (open == 0 && next.is_none()) {
                return true;
            }
        }
        if is_complete && self.tally.limit.is_none() && next.is_some() {
            self.tally.limit = Some(limit_of(self.tally.last_measured));
        }
        if self.fabric.now() >= self.limit() {
            self.tally.stop = Some(Stop::Time);
            return true;
        }
        false
    }

    /// When the last flow ended or started; of a run that was cut short, when that was.
    fn end(&self) -> Time {
        let end = self.recorder.last_end.max(self.tally.last_start);
        if self.tally.stop.is_some() { end.max(self.fabric.now()) } else { end }
    }

    /// Offers all flows whose time has come: how many.
    fn offer_due(
        &mut self,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<u64, RunError> {
        let mut count = 0;
        while self.workload.next_start().is_some_and(|start| start <= self.fabric.now()) {
            if self.fabric.now() >= self.limit() {
                break;
            }
            let Some(flow) = self.workload.next_flow() else { break };
            self.recorder.offer(&flow);
            self.tally.last_start = self.tally.last_start.max(flow.start);
            if self.options.measured.contains(&flow) {
                self.tally.last_measured = self.tally.last_measured.max(flow.start);
                self.tally.first_measured.get_or_insert(flow.start);
            }
            self.fabric.offer(&flow);
            count += 1;
            let open = self.recorder.books.open();
            if open > self.open_max {
                return Err(RunError::Overrun { now: self.fabric.now(), count: open });
            }
            if count % FLOWS_PER_REPORT == 0 && progress(self.progress()).is_break() {
                self.tally.stop = Some(Stop::Interrupted);
                break;
            }
        }
        Ok(count)
    }

    fn sample(&mut self) {
        let now = self.fabric.now();
        self.fabric.sample(&mut self.row);
        self.series.push(now, &self.row);
        self.is_sampled = true;
    }

    /// Whether nothing has come of the run for long.
    fn stalls(&mut self) -> bool {
        let books = &self.recorder.books;
        let totals = self.fabric.totals();
        let seen = (books.offered().0, books.ended(), totals.delivered.get());
        if seen != self.stall.seen || books.open() == 0 {
            self.stall = Stall { seen, events: totals.events };
            return false;
        }
        totals.events - self.stall.events > STALL_EVENTS
    }
}
