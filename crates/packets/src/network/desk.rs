//! The driver's part in the ends of flows: it joins its list with what hosts report and with what it knows
//! of faults, and tells the probe.

use kernel::{Bytes, Digest, Span, Time};
use rack::{Completion, Failure, Flow, FlowId, Probe};

use super::ideal;
use super::judge::Judge;
use super::ledger::{Entry, Ledger, Life};
use super::part::just_after;
use super::reports::{Report, What};
use crate::net::{Journey, Name, Net};
use crate::transport::{Framings, Transport};

/// How a flow has ended.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Whole(Journey),
    Failed(Failure),
}

/// The list of flows, and what became of those that are no longer in it.
#[derive(Clone, Debug)]
pub(super) struct Desk {
    pub(super) ledger: Ledger,
    judge: Judge,
    framings: Framings,
    /// Flows that have started, as their hosts name them, if that is to be known.
    pub(super) names: Option<Vec<(Name, FlowId)>>,
    /// Reports that were not looked at, in order.
    pub(super) reports: Vec<Report>,
    /// Ends that the probe was not told of.
    ended: Vec<(Time, Flow, Fate)>,
    /// Of every end of a flow.
    pub(super) digest: Digest,
    /// Application bytes of flows that completed and that failed.
    pub(super) completed: Bytes,
    pub(super) failed: Bytes,
}

impl Desk {
    pub(super) fn new(net: &Net, transport: &impl Transport) -> Self {
        Self {
            ledger: Ledger::default(),
            judge: Judge::new(net),
            framings: Framings::new(transport),
            names: None,
            reports: Vec::new(),
            ended: Vec::new(),
            digest: Digest::default(),
            completed: Bytes::ZERO,
            failed: Bytes::ZERO,
        }
    }

    /// When faults may next end a flow.
    pub(super) fn next_fault(&self) -> Time {
        self.judge.next()
    }

    /// Takes in what was reported, and what faults do, before `end`.
    #[inline]
    pub(super) fn settle(&mut self, end: Time, net: &Net) {
        if !self.reports.is_empty() || self.judge.next() < end {
            self.settle_all(end, net);
        }
    }

    fn settle_all(&mut self, end: Time, net: &Net) {
        let mut reports = std::mem::take(&mut self.reports);
        for Report { at, what } in reports.drain(..) {
            // Faults come first in their instant.
            self.judge_before(just_after(at), net);
            self.take(at, what);
        }
        self.reports = reports;
        self.judge_before(end, net);
    }

    /// Tells `probe` of the ends that were taken in, by time and number of the flow. True if it asked to
    /// pause.
    pub(super) fn tell(&mut self, net: &Net, probe: &mut dyn Probe) -> bool {
        if self.ended.is_empty() {
            return false;
        }
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_unstable_by_key(|(at, flow, _)| (*at, flow.id));
        let mut is_paused = false;
        for (at, flow, fate) in ended.drain(..) {
            is_paused |= self.end(at, &flow, fate, net, probe);
        }
        self.ended = ended;
        is_paused
    }

    fn judge_before(&mut self, end: Time, net: &Net) {
        while self.judge.next() < end {
            let at = self.judge.next();
            for (place, why) in self.judge.step(net, &self.ledger) {
                // Both that a host of it died and that none leads there may be said of one.
                if self.ledger.get(place).life == Life::Open {
                    self.strike_out(at, place, Fate::Failed(why));
                }
            }
        }
    }

    fn take(&mut self, at: Time, what: What) {
        match what {
            What::Started { place, name } => {
                if let Some(names) = &mut self.names {
                    names.push((name, self.ledger.get(place).flow.id));
                }
                self.ledger.starts(place, name);
            }
            What::Refused { place, why } => self.strike_out(at, place, Fate::Failed(why)),
            What::Left { name, delivered } => self.ledger.leaves(name, delivered),
            // The first end that is reported holds.
            What::Whole { name, delivered, journey } => {
                let Some(place) = self.ledger.find(name) else { return };
                let Flow { id, size, .. } = self.ledger.get(place).flow;
                assert_eq!(delivered, size, "{id:?} completes with other bytes than it was given");
                self.strike_out(at, place, Fate::Whole(journey));
            }
            What::GaveUp { name } => {
                if let Some(place) = self.ledger.find(name) {
                    let why = self.judge.why_in_vain(&self.ledger.get(place).flow);
                    self.strike_out(at, place, Fate::Failed(why));
                }
            }
        }
    }

    fn strike_out(&mut self, at: Time, place: u32, fate: Fate) {
        let flow = self.ledger.strike_out(place).flow;
        match fate {
            Fate::Whole(_) => {
                self.completed += flow.size;
                self.digest.note(flow.id.get(), at.as_ps());
            }
            Fate::Failed(_) => {
                self.failed += flow.size;
                self.digest.note(!flow.id.get(), at.as_ps());
            }
        }
        self.ended.push((at, flow, fate));
    }

    /// Tells that a flow has ended. True if the probe asked to pause.
    fn end(&self, at: Time, flow: &Flow, fate: Fate, net: &Net, probe: &mut dyn Probe) -> bool {
        match fate {
            Fate::Failed(why) => probe.failed(flow, at, why).is_break(),
            Fate::Whole(journey) => {
                let completion = Completion {
                    flow,
                    end: at,
                    ideal: ideal::completion_time(net, self.framings.of(flow), flow),
                    stages: &stages_of(&journey, flow, at, net),
                };
                probe.completed(&completion).is_break()
            }
        }
    }

    /// Flows that have not ended, by number, with their application bytes that were delivered, as
    /// `delivered_of` knows of those that their destination has not closed.
    pub(super) fn unfinished(
        &self,
        limit: usize,
        delivered_of: impl Fn(&Entry) -> Bytes,
    ) -> Vec<(Flow, Bytes)> {
        let mut open: Vec<_> =
            self.ledger.unfinished().map(|place| self.ledger.get(place)).collect();
        open.sort_unstable_by_key(|entry| -> FlowId { entry.flow.id });
        let delivered = |entry: &Entry| match (entry.life, entry.left) {
            (_, Some(delivered)) => delivered,
            (Life::Open, None) => delivered_of(entry),
            _ => Bytes::ZERO,
        };
        open.into_iter().take(limit).map(|entry| (entry.flow, delivered(entry))).collect()
    }
}

/// Divides a completion time over [`super::STAGES`]. For each packet that arrived, from the flow's start to
/// its end is a sum of three parts; the middle one is divided by what it takes in the idle network.
fn stages_of(journey: &Journey, flow: &Flow, end: Time, net: &Net) -> [Span; 4] {
    let since_start = |sum: u128| {
        mean(sum - u128::from(flow.start.as_ps()) * u128::from(journey.count), journey.count)
    };
    let all = end - flow.start;
    let source = since_start(journey.sent);
    let received = since_start(journey.received);
    let under_way = received - source;
    let idle = ideal::mean_transit(net, flow, journey).min(under_way);
    [source, under_way - idle, idle, all - received.min(all)]
}

/// `total` picoseconds over `count`.
fn mean(total: u128, count: u64) -> Span {
    let mean = total / u128::from(count.max(1));
    Span::from_ps(u64::try_from(mean).expect("a mean is not above its largest value"))
}
