//! A rack in which things go wrong: faults, corruption, and what recovers from them (§3.5, App. D).

use kernel::{Bytes, Slot, Span, Time};
use rack::{Failure, Flow, Probe, Unfinished};

use crate::cell::{Cell, Frame};
use crate::config::Plan;
use crate::corruption::Corruption;
use crate::faults::{Event, Faults};
use crate::flight::Arrivals;
use crate::nic::Now;
use crate::rack::Rack;
use crate::schedule::Schedule;
use crate::sync::Takeover;

/// What a rack needs only where cells can be lost.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    pub(crate) faults: Faults,
    pub(crate) corruption: Option<Corruption>,
    /// Flows refused when they were offered or given up, to be reported, and what of each is missing.
    refused: Vec<(Flow, Failure, Bytes)>,
    /// Pairs of nodes given up and taken up again so far, both directions of a pair as two.
    pub(crate) given_up: u64,
    pub(crate) taken_up: u64,
    /// Slots in which cells are clipped because the clock master died.
    clipped: std::ops::Range<u64>,
    /// What its death did, if it died.
    pub(crate) takeover: Option<Takeover>,
    /// The slot of an update that is agreed on.
    update_at: Option<u64>,
    /// Times that the rack went over to another schedule.
    pub(crate) schedule_updates: u64,
    /// Frames that a broken part swallowed.
    pub(crate) swallowed: u64,
}

impl Losses {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Self {
        let slot = plan.config.slot;
        let rate = plan.config.bit_error_rate;
        let slot_of = |time: Time| (time - Time::ZERO).div_ceil(slot);
        Self {
            faults: Faults::new(plan.switches(), &plan.faults, slot_of),
            corruption: (rate > 0.0).then(|| Corruption::new(rate, seed, plan.config.cell.bits())),
            refused: Vec::new(),
            given_up: 0,
            taken_up: 0,
            clipped: 0..0,
            takeover: None,
            update_at: None,
            schedule_updates: 0,
            swallowed: 0,
        }
    }
}

/// Epochs for which a flow without a path is kept, in case one comes back (our choice).
const PATIENCE_EPOCHS: u64 = 64;

const LOSSES: &str = "the lossy path runs only on a rack with losses";

impl Rack {
    pub(crate) fn losses(&mut self) -> &mut Losses {
        self.losses.as_deref_mut().expect(LOSSES)
    }

    /// Whether no recovery is under way.
    pub(crate) fn is_recovered(&self) -> bool {
        let refused = self.losses.as_ref().is_some_and(|losses| !losses.refused.is_empty());
        !refused && self.messages.is_transport_idle()
    }

    /// If all that is under way are reports on empty cells (a rack with bit errors never ends those),
    /// forgets them.
    pub(crate) fn quiesce(&mut self) {
        if self.messages.open == 0 && self.is_recovered() && self.bank.is_drained() {
            self.bank.forget_reports();
            self.flight.clear();
        }
    }

    /// The slot of the next event of the fabric's own.
    pub(crate) fn next_event(&self) -> Option<u64> {
        self.losses.as_ref()?.faults.next_slot()
    }

    /// Whether a flow can be given up at once: one of its ends is cut off. It is reported in the
    /// next slot.
    pub(crate) fn refuses(&mut self, flow: &Flow) -> bool {
        let Some(losses) = &mut self.losses else { return false };
        let why = if losses.faults.is_isolated(flow.src.get()) {
            Failure::SourceDied
        } else if losses.faults.is_isolated(flow.dst.get()) {
            Failure::DestinationDied
        } else {
            if !self.bank.has_path(flow.src.get(), flow.dst.get()) {
                self.give_up_later(self.now_of(self.slot_from(flow.start)));
            }
            return false;
        };
        losses.refused.push((*flow, why, flow.size));
        true
    }

    /// What happens at the start of a slot: faults, what nodes notice, timers. True if the probe
    /// asked to pause.
    pub(crate) fn before_slot<P: Probe>(&mut self, now: Now, probe: &mut P) -> bool {
        let mut paused = false;
        while let Some(event) = self.losses().faults.pop_due(now.slot) {
            self.happen(event, now);
        }
        paused |= self.tell_failed(self.start_of(now.slot), probe);
        if now.phase == 0 {
            self.tick(now);
        }
        paused
    }

    /// Tells of the flows that failed up to now. True if the probe asked to pause.
    pub(crate) fn tell_failed<P: Probe>(&mut self, at: Time, probe: &mut P) -> bool {
        let Some(losses) = &mut self.losses else { return false };
        let mut paused = false;
        for (flow, why, missing) in std::mem::take(&mut losses.refused) {
            self.totals.lost += missing;
            paused |= probe.failed(&flow, at.max(flow.start), why).is_break();
        }
        paused
    }

    /// Flows that failed and of which nobody was told yet.
    pub(crate) fn untold(&self) -> impl Iterator<Item = Unfinished> {
        let refused = self.losses.iter().flat_map(|losses| &losses.refused);
        refused.map(|&(flow, _, missing)| Unfinished { flow, delivered: flow.size - missing })
    }

    fn tick(&mut self, now: Now) {
        let mut work = Vec::new();
        let Self { bank, messages, .. } = self;
        messages.tick(now.epoch, |s, d, c| bank.drained(s, d, c), |w| work.push(w));
        for work in work {
            bank.offer(work, now);
        }
    }

    fn happen(&mut self, event: Event, now: Now) {
        match event {
            Event::Begin(index) => self.begin(index, now),
            Event::End(index) => self.end(index, now),
            Event::Silence { from, to } => self.listen(from, to, now),
            Event::Noticed { from, to } => self.notice(u32::from(from), u32::from(to), now),
            Event::Trusted(a, b) => self.trust(u32::from(a), u32::from(b)),
            Event::GiveUp => self.give_up(now),
            Event::Review => self.review(now),
            Event::Reschedule => self.reschedule(now),
        }
    }

    /// Lets the members of the schedule be reviewed once a change has lasted.
    fn review_later(&mut self, now: Now) {
        let wait = self.plan.config.schedule_update_after;
        if wait > Span::ZERO {
            let slot = now.slot + wait.div_ceil(self.plan.config.slot);
            self.losses().faults.at(slot, Event::Review);
        }
    }

    /// If nodes have been gone or back for long, everyone is told, and falls quiet, to go over to
    /// another schedule at an epoch's boundary.
    fn review(&mut self, now: Now) {
        if self.losses().faults.members_to_be().is_none() {
            return;
        }
        if let Some(slot) = self.losses().update_at {
            // One update at a time.
            self.losses().faults.at(slot + 1, Event::Review);
            return;
        }
        let slots = u64::from(self.bank.schedule.slots());
        let quiet = now.slot + self.bank.quiet_slots();
        let origin = self.bank.schedule.origin().get();
        let boundary = origin + (quiet - origin).div_ceil(slots) * slots;
        self.bank.keep_quiet(boundary);
        self.losses().update_at = Some(boundary);
        self.losses().faults.at(boundary, Event::Reschedule);
    }

    fn reschedule(&mut self, now: Now) {
        self.losses().update_at = None;
        // A fault of the last moment calls it off; the next review takes it up.
        let Some(present) = self.losses().faults.members_to_be() else { return };
        let config = &self.plan.config;
        let slot = Slot::new(now.slot);
        let schedule = Schedule::of_members(&present, config.channels, config.schedule, slot);
        self.flight.clear();
        self.bank.reschedule(schedule, now);
        let losses = self.losses();
        losses.faults.set_members(&present);
        losses.schedule_updates += 1;
    }

    fn begin(&mut self, index: u32, now: Now) {
        self.review_later(now);
        let schedule = self.bank.schedule.clone();
        let change = self.losses().faults.begin(index, now.slot, &schedule);
        for node in change.died {
            self.bank.kill(node, now);
            if node == self.plan.config.sync.master {
                self.lose_clock(now);
            }
        }
        for node in change.cut_off {
            self.fail(|source, destination| match () {
                () if source == node => Some(Failure::SourceDied),
                () if destination == node => Some(Failure::DestinationDied),
                () => None,
            });
        }
    }

    /// The clock master died: another takes over; until then clocks drift (§3.5).
    fn lose_clock(&mut self, now: Now) {
        let config = &self.plan.config;
        let sync = config.sync;
        let margin = sync
            .guard_band()
            .synchronisation_margin(config.guard)
            .expect("the plan checked that the guard band suffices");
        let takeover = sync.clock_loss().effect(margin, config.slot);
        if let Takeover::Clipped { from, slots, .. } = takeover {
            let first = now.slot + from / config.slot;
            self.losses().clipped = first..first + slots;
        }
        self.losses().takeover = Some(takeover);
    }

    /// Gives up the messages of the pairs for which `why` has a reason.
    fn fail(&mut self, why: impl Fn(u32, u32) -> Option<Failure>) {
        let (mut failed, mut stopped) = (Vec::new(), Vec::new());
        self.messages.fail_pairs(
            why,
            |flow, why, missing| failed.push((flow, why, missing)),
            |w| stopped.push(w),
        );
        for work in stopped {
            self.bank.abandon(work.source, work.destination, work.class);
        }
        self.losses().refused.extend(failed);
    }

    fn give_up_later(&mut self, now: Now) {
        let slot = now.slot + PATIENCE_EPOCHS * u64::from(self.bank.schedule.slots());
        self.losses().faults.give_up_at(slot);
    }

    /// Gives up the flows to which no path is left, neither direct nor by way of any one node.
    fn give_up(&mut self, now: Now) {
        let pairs = self.messages.open_pairs();
        if !pairs.is_empty() {
            self.give_up_later(now);
        }
        let cut: Vec<_> =
            pairs.into_iter().filter(|&(from, to)| !self.bank.has_path(from, to)).collect();
        if cut.is_empty() {
            return;
        }
        self.fail(|from, to| cut.contains(&(from, to)).then_some(Failure::DestinationDied));
    }

    fn end(&mut self, index: u32, now: Now) {
        self.review_later(now);
        let hold = u64::from(self.plan.config.reintegration_epochs)
            * u64::from(self.bank.schedule.slots())
            + u64::from(self.plan.delay_slots);
        for (a, b) in self.losses().faults.end(index) {
            self.losses().faults.at(now.slot + hold, Event::Trusted(a as u16, b as u16));
        }
    }

    /// The slot of a pair has come: does the receiver miss a cell?
    fn listen(&mut self, from: u16, to: u16, now: Now) {
        let (sender, receiver) = (u32::from(from), u32::from(to));
        if !self.meet(sender, receiver) {
            return;
        }
        let silent = self.bank.is_down(self.bank.schedule.position(sender, receiver), sender);
        let missing = self.losses().faults.is_broken(sender, receiver) || silent;
        if missing && !self.losses().faults.is_dead(receiver) {
            let slot = now.slot + u64::from(self.plan.delay_slots);
            self.losses().faults.at(slot, Event::Noticed { from, to });
        }
    }

    /// A node has missed a cell: it gives the sender up and falls silent to it.
    fn notice(&mut self, from: u32, to: u32, now: Now) {
        if !self.meet(from, to) {
            return;
        }
        let position = self.bank.schedule.position(to, from);
        if self.losses().faults.is_dead(to) || self.bank.is_down(position, to) {
            return;
        }
        self.losses().given_up += 1;
        self.give_up_later(now);
        for cell in self.bank.declare_down(to, from, now) {
            if let Some(work) = self.messages.give_back(cell) {
                self.bank.offer(work, now);
            }
        }
        let silence = self.bank.schedule.next_slot(to, from, Slot::new(now.slot)).get();
        self.losses().faults.at(silence, Event::Silence { from: to as u16, to: from as u16 });
    }

    /// A repaired pair is used again, unless it broke anew.
    fn trust(&mut self, a: u32, b: u32) {
        let meet = self.meet(a, b);
        let faults = &self.losses().faults;
        if !meet || faults.is_broken(a, b) || faults.is_broken(b, a) {
            return;
        }
        for (node, peer) in [(a, b), (b, a)] {
            if self.bank.is_down(self.bank.schedule.position(node, peer), node) {
                self.bank.declare_up(node, peer);
                self.losses().taken_up += 1;
            }
        }
    }

    /// Whether both nodes are in the schedule.
    fn meet(&self, a: u32, b: u32) -> bool {
        self.bank.schedule.contains(a) && self.bank.schedule.contains(b)
    }

    /// Whether a frame that is being sent goes nowhere.
    pub(crate) fn is_cut(&mut self, frame: Frame) -> bool {
        let losses = self.losses();
        let cut = losses.faults.is_broken(u32::from(frame.from), u32::from(frame.to));
        losses.swallowed += u64::from(cut && !frame.cell.is_empty());
        cut
    }

    /// Whether a frame that arrives finds nobody.
    pub(crate) fn is_lost(&mut self, frame: Frame) -> bool {
        self.losses().faults.is_dead(u32::from(frame.to))
    }

    /// Clips what was sent in a slot while clocks are apart: every cell, as if each pair were the
    /// worst off. A clipped cell is heard, but its CRC is wrong.
    fn clip(&mut self, frames: &mut Arrivals, now: Now) {
        if self.losses().clipped.contains(&now.slot) {
            frames.iter_mut().for_each(|frame| frame.flags |= Frame::CORRUPT);
        }
    }

    /// Flips bits in what was sent in a slot: of cells that carry something and of empty ones.
    pub(crate) fn corrupt(&mut self, frames: &mut Arrivals, now: Now) {
        self.clip(frames, now);
        let Some(mut corruption) = self.losses().corruption.take() else { return };
        let nodes = u64::from(self.plan.config.nodes);
        let channels = self.bank.schedule.channels();
        corruption.pass(nodes * u64::from(channels), |index, damage| {
            let position = now.phase * channels + (index / nodes) as u32;
            let from = (index % nodes) as u32;
            let Some(to) = self.bank.schedule.peer(from, position) else { return };
            let silent = self.bank.is_down(position, from);
            if silent || self.losses().faults.is_broken(from, to) {
                return;
            }
            let (from, to) = (from as u16, to as u16);
            let known = frames.iter_mut().find(|frame| frame.from == from && frame.to == to);
            match known {
                Some(frame) => damage.apply(frame),
                None => {
                    let mut frame = Frame::empty(u32::from(from), u32::from(to));
                    damage.apply(&mut frame);
                    frames.push(frame, true);
                }
            }
        });
        self.losses().corruption = Some(corruption);
    }

    /// An acknowledgment reached the sender it is for.
    pub(crate) fn acknowledged(&mut self, cell: Cell, now: Now) {
        if let Some(work) = self.messages.acknowledged(cell) {
            self.bank.offer(work, now);
        }
    }
}
