//! A rack of Shoal nodes, advanced slot by slot.
//!
//! One slot: every node meets the peers of the slot, then acts on the frames whose last bit is there by
//! the start of the next. Slots in which nothing can happen are skipped; nodes with nothing to say in a
//! slot are not visited, as the empty cells they send change nothing.
//!
//! Only differences of time matter: a workload that starts an epoch, or a month, later sees the same.

use kernel::{Rate, Span, Time};
use rack::equipment::Bill;
use rack::results::Table;
use rack::{Advance, Completion, Fabric, Failure, Flow, Gauge, Probe, Stage, Totals, Unfinished};
use serde_json::{Map, Value};

use crate::cell::Frame;
use crate::config::Plan;
use crate::flight::{Flight, Kind};
use crate::gauges::{self, Gauges};
use crate::losses::Losses;
use crate::messages::{Message, Messages, STAGES, SlotTimes};
use crate::mode::{Lean, Lossless, Lossy, Mode};
use crate::nic::{Bank, Meetings, Now};

/// Odd constants of the event hash (the golden ratio in 64 bits, and a multiplier of SplitMix64).
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const HASH_MIX: u64 = 0xbf58_476d_1ce4_e5b9;

/// What counts as a hop.
const CARRYING: [Kind; 2] = [Kind::Relay, Kind::Deliver];
/// Slots between two questions to the probe: some 10 ms with 512 nodes (our choice).
const SLOTS_PER_POLL: u64 = 1 << 10;

/// A rack under simulation.
#[derive(Clone, Debug)]
pub struct Rack {
    pub(crate) plan: Plan,
    pub(crate) bank: Bank,
    pub(crate) messages: Messages,
    pub(crate) flight: Flight,
    /// Those of the position at hand; kept for their memory.
    meetings: Meetings,
    times: SlotTimes,
    /// Next slot to simulate.
    slot: u64,
    /// Everything before has happened.
    reached: Time,
    pub(crate) totals: Totals,
    gauges: Gauges,
    /// What can be lost; absent where nothing can.
    pub(crate) losses: Option<Box<Losses>>,
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let hop = plan.config.guard + plan.cell_time + plan.latency;
        let slot = plan.config.slot;
        let mut messages = Messages::new(&plan.config, plan.cells);
        if plan.is_reliable {
            // Two hops there and two back.
            let round_trip = (4 * plan.delay_slots).div_ceil(plan.schedule.slots());
            messages = messages.with_transport(round_trip);
        }
        Self {
            bank: Bank::new(&plan),
            messages,
            flight: Flight::new(plan.delay_slots),
            meetings: Meetings::new(plan.config.nodes),
            times: SlotTimes { slot, hop },
            slot: 0,
            reached: Time::ZERO,
            totals: Totals::default(),
            gauges: Gauges::default(),
            losses: plan.is_lossy.then(|| Box::new(Losses::new(&plan, seed))),
            plan,
        }
    }

    /// Start of a slot.
    pub(crate) fn start_of(&self, slot: u64) -> Time {
        Time::ZERO + self.times.slot * slot
    }

    /// First slot that starts at `time` or later.
    pub(crate) fn slot_from(&self, time: Time) -> u64 {
        (time - Time::ZERO).div_ceil(self.times.slot)
    }

    /// Next slot to simulate.
    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    fn is_idle(&self) -> bool {
        self.flight.is_empty() && self.bank.is_idle() && self.is_recovered()
    }

    pub(crate) fn now_of(&self, slot: u64) -> Now {
        self.bank.now(slot)
    }

    /// Goes on with a later slot; nothing happens in between.
    fn skip_to(&mut self, slot: u64) {
        self.slot = self.slot.max(slot);
        self.keep_epochs_small();
    }

    /// Counts epochs from a later one, before their numbers become too large for what keeps them.
    fn keep_epochs_small(&mut self) {
        if let Some(epochs) = self.bank.surplus_epochs(self.slot) {
            self.bank.forget_epochs(epochs);
            self.messages.forget_epochs(epochs);
        }
    }

    /// Simulates one slot. True if the probe asked to pause.
    fn step<M: Mode>(&mut self, probe: &mut dyn Probe) -> bool {
        let now = self.now_of(self.slot);
        let mut paused = false;
        if now.phase == 0 {
            self.settle(now);
        }
        if M::LOSSY {
            paused |= self.before_slot(now, probe);
        }
        self.transmissions::<M>(now);
        self.slot += 1;
        let next = self.now_of(self.slot);
        if next.phase == 0 {
            self.keep_epochs_small();
        }
        paused |= self.arrivals::<M>(self.now_of(self.slot), probe);
        let schedule = &self.bank.schedule;
        self.totals.events += u64::from(schedule.nodes()) * u64::from(schedule.channels());
        paused
    }

    fn settle(&mut self, now: Now) {
        let Self { bank, messages, .. } = self;
        bank.settle(now, |tag| messages.retire(tag));
    }

    fn arrivals<M: Mode>(&mut self, now: Now, probe: &mut dyn Probe) -> bool {
        let arrivals = self.flight.take(now.slot);
        let mut paused = false;
        for kind in Kind::ALL {
            let frames = arrivals.of(kind);
            for (index, frame) in frames.iter().enumerate() {
                if kind == Kind::Relay {
                    self.bank.prefetch_relays::<M>(&frames[index..]);
                }
                if M::LOSSY && self.is_lost(*frame) {
                    continue;
                }
                let Some(back) = self.bank.hear::<M>(frame, now) else { continue };
                match kind {
                    Kind::Report => {}
                    Kind::Relay => self.bank.relay::<M>(frame, back),
                    Kind::Deliver => {
                        self.bank.keep::<M>(frame, back);
                        paused |= self.deliver::<M>(frame, now, probe);
                    }
                }
            }
        }
        if self.bank.is_dense(self.flight.count_at(now.slot + 1)) {
            let sent = self.now_of(now.slot + 1 - u64::from(self.plan.delay_slots));
            for position in sent.position..sent.position + self.bank.schedule.channels() {
                self.bank.prefetch_hearing::<M>(position);
            }
        }
        self.flight.reuse(now.slot, arrivals);
        paused
    }

    /// Hands a cell to its destination's applications.
    #[inline]
    fn deliver<M: Mode>(&mut self, frame: &Frame, now: Now, probe: &mut dyn Probe) -> bool {
        let cell = frame.cell;
        if M::LOSSY && cell.is_datagram() {
            self.acknowledged(cell, now);
            return false;
        }
        let sent = now.slot - u64::from(self.plan.delay_slots);
        let direct = u32::from(frame.from) == cell.source();
        let delivery = self.messages.cell_arrived(cell, sent, direct);
        if M::LOSSY {
            self.messages.note_arrival(cell, now.epoch, delivery.duplicate);
        }
        if !delivery.completes {
            return false;
        }
        let end = self.start_of(sent) + self.times.hop;
        let mut paused = false;
        while let Some(message) = self.messages.complete(cell) {
            paused |= self.conclude(&message, end, probe);
        }
        paused
    }

    /// Tells that a message has ended: delivered, or without all of its cells.
    pub(crate) fn conclude(&mut self, message: &Message, end: Time, probe: &mut dyn Probe) -> bool {
        if let Some(missing) = self.messages.conclude(message) {
            self.totals.lost += missing;
            return probe.failed(&message.flow, end, Failure::PacketsLost).is_break();
        }
        self.totals.delivered += message.size();
        let word = mixed(message.flow.id.get(), end.as_ps());
        self.totals.event_hash = self.totals.event_hash.wrapping_add(word);
        let completion = Completion {
            flow: &message.flow,
            end,
            ideal: self.ideal_fct(&message.flow),
            stages: &message.stages(end, self.times),
        };
        probe.completed(&completion).is_break()
    }

    fn transmissions<M: Mode>(&mut self, now: Now) {
        let arrival = now.slot + u64::from(self.plan.delay_slots);
        let mut arrivals = self.flight.take(arrival);
        for position in now.position..now.position + self.bank.schedule.channels() {
            self.bank.meet::<M>(position, now, &mut self.messages, &mut self.meetings);
            let before = CARRYING.map(|kind| arrivals.count(kind));
            let channel = u64::from(position - now.position);
            let salt = now.slot.wrapping_mul(HASH_FACTOR).wrapping_add(channel << 60);
            for index in 0..self.meetings.count() {
                let (frame, matters) = self.meetings.frame(index);
                if !(M::LOSSY && matters && self.is_cut(frame)) {
                    arrivals.push(frame, matters);
                }
            }
            arrivals.forget_silent();
            for (kind, before) in CARRYING.into_iter().zip(before) {
                let sent = &arrivals.of(kind)[before..];
                self.totals.hops += sent.len() as u64;
                let hash = self.totals.event_hash;
                self.totals.event_hash = sent.iter().fold(hash, |hash, frame| {
                    hash.wrapping_add(mixed(frame.cell.word() ^ salt, u64::from(frame.from)))
                });
            }
        }
        if M::LOSSY {
            self.corrupt(&mut arrivals, now);
        }
        self.flight.put(arrival, arrivals);
    }
}

/// One event as it goes into the event hash: a sum, so that it makes no difference who counts first.
#[inline]
fn mixed(word: u64, number: u64) -> u64 {
    let word = (word ^ number.wrapping_mul(HASH_FACTOR)).wrapping_mul(HASH_MIX);
    (word ^ word >> 32).wrapping_mul(HASH_FACTOR)
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "shoal"
    }

    fn nodes(&self) -> u32 {
        self.plan.config.nodes
    }

    fn node_rate(&self) -> Rate {
        self.plan.config.node_rate
    }

    fn now(&self) -> Time {
        self.reached
    }

    fn offer(&mut self, flow: &Flow) {
        let is_idle = self.is_idle();
        self.skip_to(self.slot_from(flow.start));
        let now = self.now_of(self.slot);
        if is_idle {
            self.settle(now);
        }
        if self.refuses(flow) {
            return;
        }
        if self.messages.open == 0 {
            self.bank.start_turns(now);
        }
        self.note_progress();
        let work = self.messages.offer(flow, now.slot);
        self.bank.offer(work, now);
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        if self.tell_failed(self.reached, probe) {
            return Advance::Paused;
        }
        let end = if until == Time::NEVER { u64::MAX } else { self.slot_from(until) };
        while self.slot < end {
            if self.losses.is_some() {
                self.quiesce();
            }
            let is_stalled = self.is_stalled();
            if is_stalled && self.give_up_stalled(probe) {
                return Advance::Paused;
            }
            if is_stalled || self.is_idle() {
                // Nothing can happen before the next flow or fault: skip to it.
                let next = self.next_event().unwrap_or(u64::MAX);
                if next >= end {
                    if until != Time::NEVER {
                        self.skip_to(end);
                        self.reached = self.reached.max(until);
                    }
                    return if next == u64::MAX { Advance::Idle } else { Advance::Reached };
                }
                self.skip_to(next);
                self.settle(self.now_of(self.slot));
                self.note_progress();
            }
            let paused = match self.losses {
                Some(_) => self.step::<Lossy>(probe),
                None if self.bank.is_lean() => self.step::<Lean>(probe),
                None => self.step::<Lossless>(probe),
            };
            let asked = self.slot.is_multiple_of(SLOTS_PER_POLL) && probe.poll().is_break();
            if paused || asked {
                self.reached = self.start_of(self.slot);
                return Advance::Paused;
            }
        }
        // Some cells may have arrived since.
        self.reached = self.reached.max(until);
        Advance::Reached
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        let origin = self.slot_from(flow.start);
        let cells = self.messages.plan().cells(flow.size);
        let after = if self.plan.may_reschedule() {
            crate::ideal::slots_in_any_schedule(self.plan.config.channels, cells)
        } else {
            let ends = (flow.src.get(), flow.dst.get());
            crate::ideal::slots(&self.plan.schedule, ends, cells, origin, self.plan.delay_slots)
        };
        let wait = self.start_of(origin) - flow.start;
        let sending = u128::from(after) * u128::from(self.times.slot.as_ps());
        let all = sending + u128::from((wait + self.times.hop).as_ps());
        Span::from_ps(u64::try_from(all).unwrap_or(u64::MAX))
    }

    fn totals(&self) -> Totals {
        let cell = self.plan.config.cell;
        Totals {
            queue_max_cells: u64::from(self.bank.longest_queue()),
            queue_max: cell * u64::from(self.bank.longest_queue()),
            queue_p99: cell * self.bank.length_p99(),
            reorder_max: self.plan.cells.payload() * u64::from(self.messages.held_peak),
            drops: self.bank.loss_counts().0,
            retransmissions: self.bank.loss_counts().1 + self.messages.repeats,
            delivered: self.totals.delivered + self.messages.in_order(),
            ..self.totals
        }
    }

    fn stages(&self) -> &'static [Stage] {
        STAGES
    }

    fn gauges(&self) -> &'static [Gauge] {
        gauges::COLUMNS
    }

    fn sample(&mut self, row: &mut [f64]) {
        let Self { gauges, bank, totals, messages, plan, .. } = self;
        let totals = Totals { delivered: totals.delivered + messages.in_order(), ..*totals };
        gauges.sample(row, bank, plan.config.cell, &totals, messages.open);
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let mut flows = self.messages.unfinished(limit);
        flows.extend(self.untold().take(limit));
        flows.sort_by_key(|open| open.flow.id);
        flows.truncate(limit);
        flows
    }

    fn bill(&self) -> Option<Bill> {
        let config = &self.plan.config;
        // Switches of some numbers of ports cannot build the packet network to compare with.
        config.equipment.bill(config.nodes).ok()
    }

    fn tables(&self) -> Vec<Table> {
        crate::details::tables(self)
    }

    fn details(&self) -> Map<String, Value> {
        crate::details::details(self)
    }
}
