//! A rack in which things go wrong: faults, corruption, and what recovers from them (§3.5, App. D). What nodes
//! know of each other is in [`crate::nic`], under `reach`.

use std::ops::Range;

use kernel::{Slot, Span, Time};
use rack::{Failure, Flow};

use crate::cell::{Cargo, Frame};
use crate::config::Plan;
use crate::corruption::{Corruption, Hit};
use crate::faults::{Event, Faults};
use crate::messages::Work;
use crate::nic::Now;
use crate::schedule::Schedule;
use crate::shard::Shard;
use crate::sync::Clock;

/// What a rack needs only where cells can be lost.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    pub(crate) faults: Faults,
    pub(crate) corruption: Option<Corruption>,
    own: Range<u32>,
    /// Times that nodes here gave a peer up, and took one up again.
    pub(crate) given_up: u64,
    pub(crate) taken_up: u64,
    /// Whose clock all follow.
    pub(crate) clock: Clock,
    /// The slot of an update that is agreed on.
    update_at: Option<u64>,
    /// Times that the rack went over to another schedule.
    pub(crate) schedule_updates: u64,
    /// Frames that a broken part swallowed.
    pub(crate) swallowed: u64,
}

impl Losses {
    /// Those of the nodes `own`.
    pub(crate) fn new(plan: &Plan, own: Range<u32>, seed: u64) -> Self {
        let slot = plan.config.slot;
        let (rate, links) = (plan.config.bit_error_rate, (own.clone(), plan.config.channels));
        let bits = plan.config.cell.bits();
        let slot_of = |time: Time| (time - Time::ZERO).div_ceil(slot);
        Self {
            faults: Faults::new(plan.switches(), &plan.faults, slot_of),
            own,
            corruption: (rate > 0.0).then(|| Corruption::new(rate, seed, links, bits)),
            given_up: 0,
            taken_up: 0,
            clock: Clock::new(plan),
            update_at: None,
            schedule_updates: 0,
            swallowed: 0,
        }
    }
}

/// Epochs for which a source keeps a flow to which it knows no path, in case one comes back; and, without
/// a transport, for each round trip, those for which a destination waits for cells that do not come (our
/// choice).
const PATIENCE_EPOCHS: u64 = 64;
/// Epochs without any payload on any link, beyond those that a timer may take, after which none will come:
/// what nodes wait for got lost. Queues drain in far fewer (our choice).
const STALL_EPOCHS: u64 = 1 << 14;

const LOSSES: &str = "the lossy path runs only on a rack with losses";

impl Shard {
    pub(crate) fn losses(&mut self) -> &mut Losses {
        self.losses.as_deref_mut().expect(LOSSES)
    }

    /// Whether no recovery is under way.
    pub(crate) fn is_recovered(&self) -> bool {
        self.messages.is_transport_idle() && self.messages.is_nothing_missing()
    }

    /// Slots without any payload on any link after which none will come before a flow or a fault does, though
    /// some node may wait. A rack with bit errors is never quite silent.
    pub(crate) fn stall_slots(&self) -> u64 {
        let epochs = STALL_EPOCHS + 2 * self.messages.longest_wait();
        let epochs = epochs + u64::from(self.missing_patience());
        epochs.saturating_mul(u64::from(self.bank.schedule.slots()))
    }

    /// Without a transport, ends the flows of a rack that has stalled: what they wait for is lost.
    pub(crate) fn give_up_stalled(&mut self, slot: u64) {
        self.fail(self.start_of(slot), |_, _| Some(Failure::PacketsLost));
    }

    /// Epochs for which a destination waits for a missing cell without a transport: those that it may take
    /// through the longest queues, and some more.
    fn missing_patience(&self) -> u32 {
        self.plan.config.nodes + self.settling()
    }

    /// Epochs in which what has left all queues arrives at the latest, sent again where the link layer does.
    fn settling(&self) -> u32 {
        let round_trip = (2 * self.plan.delay_slots).div_ceil(self.bank.schedule.slots());
        PATIENCE_EPOCHS as u32 * (1 + round_trip)
    }

    /// The same in slots.
    pub(crate) fn settling_slots(&self) -> u64 {
        u64::from(self.settling()) * u64::from(self.bank.schedule.slots())
    }

    /// Whether all that is under way are reports on empty cells.
    pub(crate) fn is_all_reports(&self) -> bool {
        self.messages.senders.open == 0
            && self.is_recovered()
            && self.bank.is_drained()
            && !self.bank.is_telling(self.slot())
    }

    /// Forgets reports on empty cells, which a rack with bit errors never ends.
    pub(crate) fn quiesce(&mut self) {
        self.bank.forget_reports();
        self.flight.clear();
    }

    /// The slot of the next event of the fabric's own.
    pub(crate) fn next_event(&self) -> Option<u64> {
        self.losses.as_ref()?.faults.next_slot()
    }

    /// Why a flow is given up at once, if it is: its source is dead, or has long known of no path to the
    /// destination.
    pub(crate) fn refuses(&mut self, flow: &Flow) -> Option<Failure> {
        let (from, to) = (flow.src.get(), flow.dst.get());
        let now = self.now_of(self.slot());
        let losses = self.losses.as_mut()?;
        let why = if losses.faults.is_dead(from) {
            Failure::SourceDied
        } else if losses.faults.is_removed(from) || losses.faults.is_removed(to) {
            Failure::DestinationDied
        } else {
            let since = self.bank.pathless_since(from, to)?;
            let until = since + self.patience();
            if now.slot < until {
                self.losses().faults.give_up_at(until);
                return None;
            }
            Failure::DestinationDied
        };
        Some(why)
    }

    /// Slots for which a source keeps a flow without a path.
    fn patience(&self) -> u64 {
        PATIENCE_EPOCHS * u64::from(self.bank.schedule.slots())
    }

    /// Gives a node work; without a path it is looked at again.
    fn set_to_work(&mut self, work: Work, now: Now) {
        self.bank.offer(work, now);
        if let Some(since) = self.bank.pathless_since(work.source, work.destination) {
            let until = (since + self.patience()).max(now.slot + 1);
            self.losses().faults.give_up_at(until);
        }
    }

    /// What there is to do at the start of a slot: faults, what nodes notice, timers.
    pub(crate) fn before_slot(&mut self, now: Now) {
        while let Some(event) = self.losses().faults.pop_due(now.slot) {
            self.handle(event, now);
        }
        for (from, to) in std::mem::take(&mut self.missed) {
            self.miss(from, to, now);
        }
        for cargo in self.bank.take_resent() {
            self.messages.sent_again(cargo);
        }
        if now.phase == 0 {
            self.tick(now);
            let at = self.start_of(now.slot).as_ps();
            self.messages.stop_waiting(now.epoch, self.missing_patience(), at);
        }
    }

    fn tick(&mut self, now: Now) {
        let mut work = Vec::new();
        let Self { bank, messages, .. } = self;
        messages.tick(now.epoch, |s, d, c| bank.drained(s, d, c), |w| work.push(w));
        for work in work {
            self.set_to_work(work, now);
        }
    }

    fn handle(&mut self, event: Event, now: Now) {
        match event {
            Event::Begin(index) => self.begin(index, now),
            Event::End(index) => self.end(index, now),
            Event::Silence { from, to } => self.listen(from, to, now),
            Event::Missed { from, to } => self.miss(u32::from(from), u32::from(to), now),
            Event::Trust { node, peer } => self.trust(u32::from(node), u32::from(peer), now),
            Event::GiveUp => self.give_up(now),
            Event::Review => self.review(now),
            Event::Reschedule => self.reschedule(now),
        }
    }

    /// Lets the oracle, where there is one, review the members of the schedule once a change has lasted.
    fn review_later(&mut self, now: Now) {
        let wait = self.plan.config.schedule_oracle_after;
        if wait > Span::ZERO {
            let slot = now.slot.saturating_add(wait.div_ceil(self.plan.config.slot));
            self.losses().faults.at(slot, Event::Review);
        }
    }

    /// If nodes have been gone or back for long, all fall quiet and go over to another schedule at an epoch's
    /// boundary. Somebody has to change nodes and switches at the same time, and the paper does not say who
    /// (§7.3). Here an oracle does: who is in the schedule follows from the faults of the scenario.
    fn review(&mut self, now: Now) {
        if self.losses().faults.members_to_be().is_none() {
            return;
        }
        if !self.may_be_agreed(now) {
            let epoch = u64::from(self.bank.schedule.slots());
            self.losses().faults.at(now.slot + epoch, Event::Review);
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

    /// Whether all nodes have had the time to find out what works and what does not: an epoch and the
    /// propagation until a cell is missed, and as much until the other side sees the marks.
    fn may_be_agreed(&mut self, now: Now) -> bool {
        let notice = u64::from(self.bank.schedule.slots() + self.plan.delay_slots);
        now.slot > self.losses().faults.changed + 2 * notice
    }

    fn reschedule(&mut self, now: Now) {
        self.losses().update_at = None;
        // A fault of the last moment calls it off; the next review takes it up.
        let Some(present) = self.losses().faults.members_to_be() else { return };
        for node in (0..self.plan.config.nodes).filter(|&node| !present[node as usize]) {
            let lost = |from, to| (from == node || to == node).then_some(Failure::DestinationDied);
            self.fail(self.start_of(now.slot), lost);
            for own in self.losses().own.clone() {
                self.messages.expect_any(own, node);
            }
        }
        let config = &self.plan.config;
        let slot = Slot::new(now.slot);
        let schedule = Schedule::of_members(&present, config.channels, config.schedule, slot);
        self.bank.reschedule(schedule, now);
        let losses = self.losses();
        losses.faults.set_members(&present);
        losses.schedule_updates += 1;
    }

    /// A fault begins. What dies with a node ends; all else has to be noticed.
    fn begin(&mut self, index: u32, now: Now) {
        self.review_later(now);
        let change = self.losses().faults.begin(index, now.slot);
        let own = self.losses().own.clone();
        // A node that is given every cell sees for itself which are missing.
        let dark = change.broke.into_iter().filter(|(_, to)| own.contains(to) && !self.sends_all);
        for (from, to) in dark.filter(|&(from, to)| self.meet(from, to)).collect::<Vec<_>>() {
            let silence = self.bank.schedule.next_slot(from, to, Slot::new(now.slot)).get();
            let event = Event::Silence { from: from as u16, to: to as u16 };
            self.losses().faults.at(silence, event);
        }
        for node in change.died.into_iter().filter(|node| own.contains(node)) {
            self.bank.kill(node, now);
            let lost = |source, _| (source == node).then_some(Failure::SourceDied);
            self.fail(self.start_of(now.slot), lost);
            self.messages.receiver_died(node);
        }
        if change.cut_off.contains(&self.losses().clock.master()) {
            self.lose_clock(now);
        }
    }

    /// Nobody hears the clock master any more: the next node takes over (§3.5). All have missed the
    /// master's cell within an epoch and its propagation.
    fn lose_clock(&mut self, now: Now) {
        let nodes = self.plan.config.nodes;
        let notice = u64::from(self.bank.schedule.slots() + self.plan.delay_slots);
        let losses = self.losses();
        let master = losses.clock.master();
        let others = (1..nodes).map(|step| (master + step) % nodes);
        let mut heard = others.filter(|&node| !losses.faults.is_isolated(node));
        let next = heard.next();
        losses.clock.lose(now.slot, notice, next);
    }

    /// Gives up the messages of the pairs for which `why` has a reason.
    fn fail(&mut self, at: Time, why: impl Fn(u32, u32) -> Option<Failure>) {
        let mut stopped = Vec::new();
        self.messages.fail_pairs(at.as_ps(), why, |work| stopped.push(work));
        for work in stopped {
            self.bank.abandon(work.source, work.destination, work.class);
        }
    }

    /// Gives up the flows whose sources have known of no path for long.
    fn give_up(&mut self, now: Now) {
        let patience = self.patience();
        let mut cut = self.messages.open_pairs();
        cut.retain(|&(from, to)| {
            let since = self.bank.pathless_since(from, to);
            since.is_some_and(|since| since + patience <= now.slot)
        });
        if !cut.is_empty() {
            let lost = |from, to| cut.contains(&(from, to)).then_some(Failure::DestinationDied);
            self.fail(self.start_of(now.slot), lost);
        }
    }

    /// Slots for which a pair must hear each other before it is used again: longer than one takes to
    /// notice that the other has fallen silent.
    fn hold_down(&self) -> u64 {
        u64::from(self.plan.config.reintegration_epochs) * u64::from(self.bank.schedule.slots())
            + u64::from(self.plan.delay_slots)
            + 1
    }

    /// A node that has heard a peer from this slot on without a break trusts it after the hold-down.
    fn trust_later(&mut self, node: u32, peer: u32, now: Now) {
        let slot = now.slot + self.hold_down();
        let event = Event::Trust { node: node as u16, peer: peer as u16 };
        self.losses().faults.at(slot, event);
    }

    fn end(&mut self, index: u32, now: Now) {
        self.review_later(now);
        let (mended, back) = self.losses().faults.end(index, now.slot);
        let own = self.losses().own.clone();
        for node in back.into_iter().filter(|node| own.contains(node)) {
            self.bank.be_born(node, now.slot);
            self.messages.lives.begin(node, self.bank.life(node));
        }
        // Of a pair that is not in use the first cell to arrive again is of interest.
        for (from, to) in mended.into_iter().filter(|(from, _)| own.contains(from)) {
            if self.meet(from, to) && self.bank.is_down(from, to) {
                self.bank.show_marks(from, to);
            }
        }
        self.note_pathless(now);
    }

    /// The slot of a pair has come: is it dark at the receiver's end?
    fn listen(&mut self, from: u16, to: u16, now: Now) {
        if self.losses().faults.is_broken(from.into(), to.into()) {
            let slot = now.slot + u64::from(self.plan.delay_slots);
            self.losses().faults.at(slot, Event::Missed { from, to });
        }
    }

    /// A node misses a cell: it gives the sender up.
    pub(crate) fn miss(&mut self, from: u32, to: u32, now: Now) {
        if !self.meet(from, to) || self.losses().faults.is_dead(to) {
            return;
        }
        match self.bank.is_down(to, from) {
            true => self.bank.miss(to, from),
            false => self.part(to, from, now),
        }
    }

    /// A node gives a peer up, as it missed a cell, or sees that the peer has.
    fn part(&mut self, node: u32, peer: u32, now: Now) {
        self.losses().given_up += 1;
        for cell in self.bank.declare_down(node, peer, now) {
            if let Some(work) = self.messages.give_back(cell) {
                self.set_to_work(work, now);
            }
        }
        self.note_pathless(now);
    }

    /// Flows to which no path is left are looked at when their sources' patience ends.
    fn note_pathless(&mut self, now: Now) {
        if self.bank.take_pathless() {
            let until = now.slot + self.patience();
            self.losses().faults.give_up_at(until);
        }
    }

    /// A node may have heard a peer for long enough.
    fn trust(&mut self, node: u32, peer: u32, now: Now) {
        let since = now.slot - self.hold_down();
        if self.meet(node, peer) && self.bank.trust(node, peer, since) {
            self.join(node, peer);
        }
    }

    /// A node uses a peer again that it had given up.
    fn join(&mut self, node: u32, peer: u32) {
        self.bank.join(node, peer);
        self.losses().taken_up += 1;
    }

    /// What a frame that arrives says of the pair and of its sender's reach (§3.5). Whether the rest of it is
    /// of use.
    #[inline]
    pub(crate) fn heeds(&mut self, frame: &Frame, now: Now) -> bool {
        let says = frame.flags & (Frame::PARTED | Frame::NOTICE) != 0;
        let (node, peer) = (u32::from(frame.to), u32::from(frame.from));
        if !says && !self.bank.is_down(node, peer) {
            if frame.flags & Frame::CORRUPT == 0 {
                self.bank.see_no_marks(node, peer);
            }
            return true;
        }
        self.heed(frame, now)
    }

    fn heed(&mut self, frame: &Frame, now: Now) -> bool {
        let (node, peer) = (u32::from(frame.to), u32::from(frame.from));
        let is = |flag| frame.flags & flag != 0;
        let was_down = self.bank.is_down(node, peer);
        let is_damaged = is(Frame::CORRUPT);
        if is(Frame::PARTED) && !is_damaged {
            if !was_down && is(Frame::TRUSTS) && self.bank.awaits(node, peer) {
                return false;
            }
            if !was_down {
                self.part(node, peer, now);
            }
            self.see_marks((node, peer), is(Frame::TRUSTS), now);
            if !is(Frame::GARBLED) {
                self.hear_life(node, peer, frame.payload, now);
            }
            return false;
        }
        // An undamaged cell without marks: the peer uses the pair again. If this node does not trust it yet,
        // the peer does not know that they have parted.
        let is_back = was_down && !is_damaged && self.bank.trusts(node, peer);
        if is_back {
            self.join(node, peer);
        }
        let is_used = !was_down || is_back;
        if is_used && !is_damaged {
            self.bank.see_no_marks(node, peer);
        }
        if is(Frame::NOTICE) {
            match is_used && !is_damaged && !is(Frame::GARBLED) {
                true => self.bank.learn(node, peer, frame.payload, now),
                false => self.bank.drop_notice(frame.payload),
            }
            self.note_pathless(now);
        }
        is_used
    }

    /// A node that has given a peer up sees the marks of its cells.
    fn see_marks(&mut self, (node, peer): (u32, u32), is_trusted: bool, now: Now) {
        let (is_first, both) = self.bank.see_marks((node, peer), is_trusted, now.slot);
        if is_first {
            self.trust_later(node, peer, now);
        }
        if both {
            self.join(node, peer);
        }
    }

    /// A node hears how often another has come back: if that is news, the other has forgotten what it had of
    /// the flows to it.
    fn hear_life(&mut self, node: u32, peer: u32, life: u32, now: Now) {
        if !self.messages.lives.hear(node, peer, life) {
            return;
        }
        let since = self.bank.down_since(node, peer).map(|slot| self.start_of(slot));
        let at = self.start_of(now.slot).as_ps();
        let returned = self.messages.receiver_returned((node, peer), since, at);
        for class in returned.classes {
            self.bank.abandon(node, peer, class);
        }
        for (flow, handle) in returned.young {
            let work = self.messages.offer(&flow, handle);
            self.set_to_work(work, now);
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
        if cut && frame.flags & Frame::NOTICE != 0 {
            self.bank.drop_notice(frame.payload);
        }
        cut
    }

    /// Whether a frame that arrives finds its receiver dead.
    pub(crate) fn is_lost(&mut self, frame: Frame) -> bool {
        // Sent before the schedule changed, or to a node that has died since.
        let since = self.slot() - self.bank.schedule.origin().get();
        let is_old = !self.bank.schedule.is_whole() && since < u64::from(self.plan.delay_slots);
        let lost = is_old || self.losses().faults.is_dead(u32::from(frame.to));
        if lost && frame.flags & Frame::NOTICE != 0 {
            self.bank.drop_notice(frame.payload);
        }
        lost
    }

    /// The cells of these nodes that are damaged as they are sent in a slot; and whether all are clipped, as
    /// clocks are apart: every cell, as if each pair were the worst off. A clipped cell is heard, but its CRC
    /// is wrong.
    pub(crate) fn damages(&mut self, now: Now) -> (Vec<Hit>, bool) {
        let losses = self.losses();
        let is_clipped = losses.clock.clips(now.slot);
        (losses.corruption.as_mut().map_or_else(Vec::new, Corruption::pass), is_clipped)
    }

    /// Whether a node that has nothing to say sends an empty cell all the same, and to whom.
    pub(crate) fn hears_empty(&mut self, from: u32, position: u32) -> Option<u32> {
        let to = self.bank.schedule.peer(from, position)?;
        (!self.losses().faults.is_broken(from, to)).then_some(to)
    }

    /// An acknowledgment reached the sender it is for.
    pub(crate) fn acknowledged(&mut self, cargo: Cargo, now: Now) {
        if let Some(life) = self.messages.acks.life(cargo.payload) {
            self.hear_life(cargo.cell.destination(), cargo.cell.source(), life, now);
        }
        if let Some(work) = self.messages.acknowledged(cargo) {
            self.set_to_work(work, now);
        }
    }
}
