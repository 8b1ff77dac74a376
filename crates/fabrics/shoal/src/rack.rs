//! A rack of Shoal nodes, advanced slot by slot.
//!
//! One slot: every node acts on the frames that reach it, then meets the peers of the slot. Slots in
//! which nothing can happen are skipped; nodes with nothing to say in a slot are not visited, as the
//! empty cells they send change nothing.

use kernel::{Span, Time};
use rack::results::Table;
use rack::{Advance, Completion, Fabric, Flow, Gauge, Probe, Stage, Totals};
use serde_json::{Map, Value};

use crate::cell::{Cell, Frame};
use crate::config::Plan;
use crate::gauges::{self, Gauges};
use crate::losses::Losses;
use crate::messages::{Messages, STAGES, SlotTimes};
use crate::nic::{BATCH, Bank, Now};

/// Odd constant of the event hash (the golden ratio in 64 bits).
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A rack under simulation.
#[derive(Clone, Debug)]
pub struct Rack {
    pub(crate) plan: Plan,
    pub(crate) bank: Bank,
    pub(crate) messages: Messages,
    /// Frames under way, by slot of arrival modulo its length.
    pub(crate) wire: Vec<Vec<Frame>>,
    in_flight: u64,
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
        let mut messages = Messages::new(plan.config.nodes, plan.config.classes, plan.cells);
        if plan.is_reliable {
            // Two hops there and two back.
            let round_trip = (4 * plan.delay_slots).div_ceil(plan.schedule.slots());
            messages = messages.with_transport(round_trip);
        }
        Self {
            bank: Bank::new(&plan),
            messages,
            wire: vec![Vec::new(); plan.delay_slots as usize + 1],
            in_flight: 0,
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

    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.bank.is_idle() && self.is_recovered()
    }

    /// Drops what is under way.
    pub(crate) fn clear_wire(&mut self) {
        self.wire.iter_mut().for_each(Vec::clear);
        self.in_flight = 0;
    }

    pub(crate) fn now_of(&self, slot: u64) -> Now {
        self.bank.now(slot)
    }

    /// Simulates one slot. True if the probe asked to pause.
    fn step<const LOSSY: bool, P: Probe>(&mut self, probe: &mut P) -> bool {
        let now = self.now_of(self.slot);
        let mut paused = false;
        if now.phase == 0 {
            self.settle(now);
        }
        if LOSSY {
            paused |= self.before_slot(now, probe);
        }
        paused |= self.arrivals::<LOSSY, P>(now, probe);
        self.transmissions::<LOSSY>(now);
        self.slot += 1;
        let schedule = &self.bank.schedule;
        self.totals.events += u64::from(schedule.nodes()) * u64::from(schedule.channels());
        paused
    }

    fn settle(&mut self, now: Now) {
        let Self { bank, messages, .. } = self;
        bank.settle(now, |tag| messages.retire(tag));
    }

    fn arrivals<const LOSSY: bool, P: Probe>(&mut self, now: Now, probe: &mut P) -> bool {
        let bucket = (now.slot % self.wire.len() as u64) as usize;
        let mut frames = std::mem::take(&mut self.wire[bucket]);
        self.in_flight -= frames.len() as u64;
        let mut paused = false;
        for batch in frames.chunks(BATCH) {
            self.bank.warm_receivers(batch);
            for &frame in batch {
                if LOSSY && self.is_lost(frame) {
                    continue;
                }
                if let Some(cell) = self.bank.receive::<LOSSY>(frame, now) {
                    paused |= self.deliver::<LOSSY, P>(cell, frame, now, probe);
                }
            }
        }
        frames.clear();
        self.wire[bucket] = frames;
        paused
    }

    /// Hands a cell to its destination's applications.
    #[inline]
    fn deliver<const LOSSY: bool, P: Probe>(
        &mut self,
        cell: Cell,
        frame: Frame,
        now: Now,
        probe: &mut P,
    ) -> bool {
        if LOSSY && cell.is_datagram() {
            self.acknowledged(cell, now);
            return false;
        }
        let sent = now.slot - u64::from(self.plan.delay_slots);
        let direct = u32::from(frame.from) == cell.source();
        let delivery = self.messages.cell_arrived(cell, sent, direct);
        if LOSSY {
            self.messages.note_arrival(cell, now.epoch, delivery.duplicate);
        }
        if !delivery.completes {
            return false;
        }
        let end = self.start_of(sent) + self.times.hop;
        let mut paused = false;
        while let Some(message) = self.messages.complete(cell) {
            self.totals.delivered += message.size();
            let words = [message.flow.id.get(), end.as_ps()];
            for word in words {
                self.totals.event_hash = fold(self.totals.event_hash, word);
            }
            let completion = Completion {
                flow: &message.flow,
                end,
                ideal: self.ideal_fct(&message.flow),
                stages: &message.stages(end, self.times),
            };
            paused |= probe.completed(&completion).is_break();
        }
        paused
    }

    fn transmissions<const LOSSY: bool>(&mut self, now: Now) {
        let channels = self.bank.schedule.channels();
        let bucket =
            ((now.slot + u64::from(self.plan.delay_slots)) % self.wire.len() as u64) as usize;
        let mut frames = std::mem::take(&mut self.wire[bucket]);
        let first = now.phase * channels;
        for position in first..first + channels {
            let is_whole = self.bank.schedule.is_whole();
            let (shift, senders) = self.bank.schedule.column(position);
            for word in 0..self.bank.words() {
                let mut bits = self.bank.active(position, word);
                self.bank.warm_senders(position, word as u32 * u64::BITS, bits);
                while bits != 0 {
                    let node = word as u32 * u64::BITS + bits.trailing_zeros();
                    bits &= bits - 1;
                    let peer = if LOSSY && !is_whole {
                        self.bank.schedule.peer(node, position)
                    } else {
                        senders.contains(&node).then(|| self.bank.schedule.wrap(node + shift))
                    };
                    let Some(peer) = peer else { continue };
                    let sent =
                        self.bank.transmit::<LOSSY>(position, node, peer, now, &mut self.messages);
                    if !sent.matters {
                        continue;
                    }
                    if !sent.frame.cell.is_empty() {
                        self.totals.hops += 1;
                        self.totals.event_hash =
                            fold(self.totals.event_hash, sent.frame.cell.word());
                        if sent.local && !(LOSSY && sent.frame.cell.is_datagram()) {
                            self.messages.cell_sent(sent.frame.cell, now.slot);
                        }
                    }
                    if !(LOSSY && self.is_cut(sent.frame)) {
                        frames.push(sent.frame);
                    }
                }
            }
        }
        if LOSSY {
            self.corrupt(&mut frames, now);
        }
        self.in_flight += frames.len() as u64;
        self.wire[bucket] = frames;
    }
}

#[inline]
fn fold(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(5) ^ word).wrapping_mul(HASH_FACTOR)
}

impl Fabric for Rack {
    fn name(&self) -> &'static str {
        "shoal"
    }

    fn nodes(&self) -> u32 {
        self.plan.config.nodes
    }

    fn now(&self) -> Time {
        self.reached
    }

    fn offer(&mut self, flow: &Flow) {
        self.slot = self.slot.max(self.slot_from(flow.start));
        let now = self.now_of(self.slot);
        if self.refuses(flow) {
            return;
        }
        let work = self.messages.offer(flow, now.slot);
        self.bank.offer(work, now);
    }

    fn advance<P: Probe>(&mut self, until: Time, probe: &mut P) -> Advance {
        let end = if until == Time::NEVER { u64::MAX } else { self.slot_from(until) };
        while self.slot < end {
            if self.losses.is_some() {
                self.quiesce();
            }
            if self.is_idle() {
                // Nothing can happen before the next flow or fault: skip to it.
                let next = self.next_event().unwrap_or(u64::MAX);
                if next >= end {
                    if until != Time::NEVER {
                        self.settle(self.now_of(end));
                        (self.slot, self.reached) = (end, until);
                    }
                    return if next == u64::MAX { Advance::Idle } else { Advance::Reached };
                }
                self.settle(self.now_of(next));
                self.slot = self.slot.max(next);
            }
            let paused = match self.losses {
                None => self.step::<false, P>(probe),
                Some(_) => self.step::<true, P>(probe),
            };
            if paused {
                self.reached = self.start_of(self.slot);
                return Advance::Paused;
            }
        }
        self.reached = until;
        Advance::Reached
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        if !self.knows(flow) {
            return self.times.hop;
        }
        let origin = self.slot_from(flow.start);
        let last = crate::ideal::last_slot(
            &self.bank.schedule,
            flow.src.get(),
            flow.dst.get(),
            self.messages.plan().cells(flow.size),
            origin,
            self.plan.delay_slots,
        );
        self.start_of(last) + self.times.hop - flow.start
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
        let Self { gauges, bank, totals, messages, .. } = self;
        gauges.sample(row, bank, totals, messages.open);
    }

    fn unfinished(&self, limit: usize) -> Vec<Flow> {
        self.messages.unfinished(limit)
    }

    fn tables(&self) -> Vec<Table> {
        crate::details::tables(self)
    }

    fn details(&self) -> Map<String, Value> {
        crate::details::details(self)
    }
}
