//! A rack in which things go wrong: faults, corruption, and what recovers from them (§3.5, App. D).

use kernel::{Bitmap, Slot, Span, Time};
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
    /// Pairs of nodes given up and taken up again so far, both directions of a pair as two.
    pub(crate) given_up: u64,
    pub(crate) taken_up: u64,
    /// Whose clock all follow.
    pub(crate) clock: Clock,
    /// Nodes that had died, until their peers hear them again.
    returning: Bitmap,
    /// Slot of the last [`Event::Noticed`] that counted.
    last_notice: u64,
    /// The slot of an update that is agreed on.
    update_at: Option<u64>,
    /// Times that the rack went over to another schedule.
    pub(crate) schedule_updates: u64,
    /// Frames that a broken part swallowed.
    pub(crate) swallowed: u64,
}

impl Losses {
    /// Those of the nodes `own`.
    pub(crate) fn new(plan: &Plan, own: std::ops::Range<u32>, seed: u64) -> Self {
        let slot = plan.config.slot;
        let (rate, links) = (plan.config.bit_error_rate, (own, plan.config.channels));
        let bits = plan.config.cell.bits();
        let slot_of = |time: Time| (time - Time::ZERO).div_ceil(slot);
        Self {
            faults: Faults::new(plan.switches(), &plan.faults, slot_of),
            corruption: (rate > 0.0).then(|| Corruption::new(rate, seed, links, bits)),
            given_up: 0,
            taken_up: 0,
            clock: Clock::new(plan),
            returning: Bitmap::new(plan.config.nodes as usize),
            last_notice: 0,
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
        self.messages.senders.open == 0 && self.is_recovered() && self.bank.is_drained()
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
            let since = self.bank.pathless_since(from, to, now)?;
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
        if let Some(since) = self.bank.pathless_since(work.source, work.destination, now) {
            let until = (since + self.patience()).max(now.slot + 1);
            self.losses().faults.give_up_at(until);
        }
    }

    /// What there is to do at the start of a slot: faults, what nodes notice, timers.
    pub(crate) fn before_slot(&mut self, now: Now) {
        while let Some(event) = self.losses().faults.pop_due(now.slot) {
            self.handle(event, now);
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
            Event::Noticed { from, to } => self.notice(u32::from(from), u32::from(to), now),
            Event::Trusted(a, b) => self.trust(u32::from(a), u32::from(b), now),
            Event::GiveUp => self.give_up(now),
            Event::Review => self.review(now),
            Event::Reschedule => self.reschedule(now),
        }
    }

    /// Lets the members of the schedule be reviewed once a change has lasted.
    fn review_later(&mut self, now: Now) {
        let wait = self.plan.config.schedule_update_after;
        if wait > Span::ZERO {
            let slot = now.slot.saturating_add(wait.div_ceil(self.plan.config.slot));
            self.losses().faults.at(slot, Event::Review);
        }
    }

    /// If nodes have been gone or back for long, everyone is told, and falls quiet, to go over to
    /// another schedule at an epoch's boundary.
    fn review(&mut self, now: Now) {
        let Some(present) = self.losses().faults.members_to_be() else { return };
        if !self.is_agreed(&present) {
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

    /// Whether those that are present have given up all others of the schedule.
    fn is_agreed(&self, present: &[bool]) -> bool {
        let members = (0..self.plan.config.nodes).filter(|&n| self.bank.schedule.contains(n));
        let (stay, go): (Vec<_>, Vec<_>) = members.partition(|&node| present[node as usize]);
        go.iter().all(|&gone| stay.iter().all(|&node| self.bank.down_since(node, gone).is_some()))
    }

    fn reschedule(&mut self, now: Now) {
        self.losses().update_at = None;
        // A fault of the last moment calls it off; the next review takes it up.
        let Some(present) = self.losses().faults.members_to_be() else { return };
        for node in (0..self.plan.config.nodes).filter(|&node| !present[node as usize]) {
            let lost = |from, to| (from == node || to == node).then_some(Failure::DestinationDied);
            self.fail(self.start_of(now.slot), lost);
            self.losses().returning.clear(node as usize);
        }
        let config = &self.plan.config;
        let slot = Slot::new(now.slot);
        let schedule = Schedule::of_members(&present, config.channels, config.schedule, slot);
        self.flight.clear();
        self.bank.reschedule(schedule, now);
        let losses = self.losses();
        losses.faults.set_members(&present);
        losses.schedule_updates += 1;
    }

    /// A fault begins. What dies with a node ends; all else has to be noticed.
    fn begin(&mut self, index: u32, now: Now) {
        self.review_later(now);
        let schedule = self.bank.schedule.clone();
        let change = self.losses().faults.begin(index, now.slot, &schedule);
        for node in change.died {
            self.bank.kill(node, now);
            self.losses().returning.set(node as usize);
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
        // News that is still on its way may leave others without a path.
        let mut next = Some(self.losses().last_notice + patience).filter(|&slot| slot > now.slot);
        let mut cut = Vec::new();
        for (from, to) in self.messages.open_pairs() {
            let Some(since) = self.bank.pathless_since(from, to, now) else { continue };
            match since + patience {
                until if until <= now.slot => cut.push((from, to)),
                until => next = Some(next.map_or(until, |next| next.min(until))),
            }
        }
        if let Some(slot) = next {
            self.losses().faults.give_up_at(slot);
        }
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

    fn trust_later(&mut self, a: u32, b: u32, now: Now) {
        let slot = now.slot + self.hold_down();
        self.losses().faults.at(slot, Event::Trusted(a.min(b) as u16, a.max(b) as u16));
    }

    fn end(&mut self, index: u32, now: Now) {
        self.review_later(now);
        for (a, b) in self.losses().faults.end(index, now.slot) {
            self.trust_later(a, b, now);
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
        let patience = self.patience();
        let losses = self.losses();
        losses.given_up += 1;
        losses.last_notice = now.slot;
        losses.faults.give_up_at(now.slot + patience);
        for cell in self.bank.declare_down(to, from, now) {
            if let Some(work) = self.messages.give_back(cell) {
                self.set_to_work(work, now);
            }
        }
        // If the path works again it is used again: both sides see each other's probes.
        self.trust_later(from, to, now);
        let silence = self.bank.schedule.next_slot(to, from, Slot::new(now.slot)).get();
        self.losses().faults.at(silence, Event::Silence { from: to as u16, to: from as u16 });
    }

    /// A pair that has worked again for the hold-down, for all that either side sees, is used again.
    fn trust(&mut self, a: u32, b: u32, now: Now) {
        if !self.meet(a, b) {
            return;
        }
        let hold_down = self.hold_down();
        let parted = [(a, b), (b, a)].map(|(node, peer)| self.bank.down_since(node, peer));
        let faults = &self.losses().faults;
        let since = parted.iter().flatten().fold(faults.whole_since((a, b)), |x, &y| x.max(y));
        // What came since then has its own turn.
        let is_early = now.slot < since + hold_down;
        if is_early || faults.is_broken(a, b) || faults.is_broken(b, a) {
            return;
        }
        for ((node, peer), _) in [(a, b), (b, a)].into_iter().zip(parted).filter(|x| x.1.is_some())
        {
            self.bank.declare_up(node, peer, now);
            self.losses().taken_up += 1;
        }
        for node in [a, b] {
            if self.losses().returning.replace(node as usize, false) {
                self.return_to(node, now);
            }
        }
    }

    /// A node that had died is back: it knows of none of the flows to it that were open then.
    fn return_to(&mut self, node: u32, now: Now) {
        let at = self.start_of(now.slot).as_ps();
        let returned = self.messages.receiver_returned(node, at);
        for (source, class) in returned.ended {
            self.bank.abandon(source, node, class);
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
        cut
    }

    /// Whether a frame that arrives finds its receiver dead.
    pub(crate) fn is_lost(&mut self, frame: Frame) -> bool {
        self.losses().faults.is_dead(u32::from(frame.to))
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
        let is_silent = self.bank.is_down(position, from);
        (!is_silent && !self.losses().faults.is_broken(from, to)).then_some(to)
    }

    /// An acknowledgment reached the sender it is for.
    pub(crate) fn acknowledged(&mut self, cargo: Cargo, now: Now) {
        if let Some(work) = self.messages.acknowledged(cargo) {
            self.set_to_work(work, now);
        }
    }
}
