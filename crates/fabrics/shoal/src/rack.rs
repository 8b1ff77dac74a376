//! A rack of Shoal nodes: its shards, and the driver that gives them time, flows and each other's cells.
//!
//! Slots in which nothing can happen are skipped. Only differences of time matter: a workload that starts
//! an epoch, or a month, later sees the same.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use kernel::{Rate, Span, Time};
use rack::equipment::Bill;
use rack::node::Nodes;
use rack::results::Table;
use rack::shards::{Shards, Stop, Windows, usable_threads};
use rack::trace::{Followed, Trace};
use rack::{
    Advance, Completion, Fabric, Failure, Flow, Gauge, Probe, Problem, Stage, Totals, Unfinished,
};
use serde_json::{Map, Value};

use crate::config::Plan;
use crate::counts::Incast;
use crate::flows::{Open, OpenFlows};
use crate::gauges::{self, Gauges};
use crate::messages::{Report, What};
use crate::shard::{Shard, ending, range_of};
use crate::stages::{STAGES, SlotTimes};

/// Slots between two questions to the probe: some 10 ms with 512 nodes (our choice).
const SLOTS_PER_POLL: u64 = 1 << 10;

/// A rack under simulation.
#[derive(Clone, Debug)]
pub struct Rack {
    pub(crate) plan: Arc<Plan>,
    pub(crate) shards: Shards<Shard>,
    seed: u64,
    /// Cells go through their bytes.
    is_wire: bool,
    desk: Desk,
    /// Next slot to simulate.
    slot: u64,
    /// Everything before has happened.
    reached: Time,
    /// Cell slots so far.
    cell_slots: u64,
    gauges: Gauges,
    pub(crate) incast: Incast,
    /// Flows refused when they were offered, of which the probe was not told yet.
    refused: Vec<(Flow, Failure)>,
    /// Without a transport: flows all of whose cells have left the relays' queues, by the slot in which they
    /// have failed if they are not whole.
    deadlines: VecDeque<(u64, u32)>,
    /// Payload hops when last looked at, and in which slot there was one more.
    progress: (u64, u64),
}

/// Where what shards report becomes what the probe is told.
#[derive(Clone, Debug)]
struct Desk {
    plan: Arc<Plan>,
    times: SlotTimes,
    open: OpenFlows,
    /// Delivered and lost application bytes, and a sum of one word for each completion.
    totals: Totals,
    /// Reports of ends, by time and flow.
    ended: Vec<(Time, Open, What)>,
    /// Flows that have failed, by their handles: what has come of them counts as delivered, and more may come.
    failed: BTreeMap<u32, Open>,
    /// Flows that were reported as drained.
    drained: Vec<u32>,
    /// What the driver itself has to report.
    waiting: Vec<Report>,
}

impl Rack {
    /// An idle rack. `seed` is that of all chance in it.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        let plan = Arc::new(plan);
        let times = plan.times();
        Self {
            shards: Shards::new([Shard::new(&plan, (0, 1), seed)]),
            seed,
            is_wire: false,
            desk: Desk {
                plan: Arc::clone(&plan),
                times,
                open: OpenFlows::default(),
                totals: Totals::default(),
                ended: Vec::new(),
                failed: BTreeMap::new(),
                drained: Vec::new(),
                waiting: Vec::new(),
            },
            slot: 0,
            reached: Time::ZERO,
            cell_slots: 0,
            gauges: Gauges::default(),
            incast: Incast::default(),
            refused: Vec::new(),
            deadlines: VecDeque::new(),
            progress: (0, 0),
            plan,
        }
    }

    /// Cuts the rack into so many shards, of as many nodes each as can be, before its first flow. Results
    /// do not depend on it.
    ///
    /// # Panics
    /// If a flow was offered before.
    pub fn set_shards(&mut self, shards: usize) {
        assert!(self.slot == 0 && self.desk.open.count() == 0, "the rack is in use");
        let count = shards.clamp(1, self.plan.config.nodes as usize);
        let shard = |index| Shard::new(&self.plan, (index, count), self.seed);
        self.shards = Shards::new((0..count).map(shard));
        self.set_wire(self.is_wire).expect("cells had room for it before");
    }

    /// Uses up to so many threads, the caller's included, but no more than the machine has cores: cuts the
    /// rack into a shard for each, before its first flow. Results do not depend on it.
    ///
    /// # Panics
    /// If a flow was offered before.
    pub fn set_threads(&mut self, threads: usize) {
        let threads = usable_threads(threads);
        self.set_shards(threads);
        self.shards = self.shards.clone().on_threads(threads);
    }

    /// What the windows have come to in which shards ran side by side.
    #[must_use]
    pub fn windows(&self) -> rack::shards::Counts {
        self.shards.counts()
    }

    /// Sends every cell through its bytes from now on, or not. Results do not depend on it.
    ///
    /// # Errors
    /// If cells are too short to hold what receivers need.
    pub fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        self.shards.iter_mut().try_for_each(|shard| shard.use_bytes(is_on))?;
        self.is_wire = is_on;
        Ok(())
    }

    /// So many shards on so many threads, whatever the machine has and however little there is to do.
    #[cfg(test)]
    pub(crate) fn set_shards_on(&mut self, shards: usize, threads: usize) {
        self.set_shards(shards);
        self.shards = self.shards.clone().on_threads(threads).alone_below(0);
    }

    /// First slot that starts at `time` or later.
    pub(crate) fn slot_from(&self, time: Time) -> u64 {
        self.desk.times.slot_from(time)
    }

    /// Next slot to simulate.
    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    /// The shard of a node.
    pub(crate) fn shard_of(&self, node: u32) -> usize {
        let (count, nodes) = (self.shards.count() as u64, u64::from(self.plan.config.nodes));
        let shard = (u64::from(node) * count / nodes) as usize;
        debug_assert!(range_of(shard, count as usize, self.plan.config.nodes).contains(&node));
        shard
    }

    /// The first shard.
    pub(crate) fn whole(&self) -> &Shard {
        self.shards.get(0)
    }

    fn is_idle(&self) -> bool {
        let waits = self.plan.is_lossy && !self.plan.is_reliable && self.desk.open.count() > 0;
        self.refused.is_empty()
            && !waits
            && self.shards.iter().all(|shard| shard.is_quiet() && shard.is_recovered())
    }

    /// Goes on with a later slot; nothing happens in between.
    fn skip_to(&mut self, slot: u64) {
        self.slot = self.slot.max(slot);
        let slot = self.slot;
        self.shards.iter_mut().for_each(|shard| shard.skip_to(slot));
    }

    /// Frees flows whose cells are gone, as at the beginning of an epoch.
    fn settle(&mut self) {
        let slot = self.slot;
        self.shards.iter_mut().for_each(|shard| shard.settle(shard.now_of(slot)));
        self.incast.update(&mut self.shards, self.plan.config.nodes);
    }

    /// Counts the cell slots up to the one at hand, of those in which there was something to do.
    fn count_slots(&mut self, from: u64) {
        let busy = self.shards.iter().map(Shard::busy_until).max().unwrap_or(0);
        let slots = busy.clamp(from, self.slot) - from;
        let schedule = &self.whole().bank.schedule;
        self.cell_slots += slots * u64::from(schedule.nodes()) * u64::from(schedule.channels());
    }

    /// Lets all shards run to the beginning of a slot, in windows of one slot if ends of flows may bring
    /// new ones at once.
    fn run(&mut self, until: u64, is_stepwise: bool, probe: &mut dyn Probe) -> Stop {
        let from = self.slot;
        let whole = 2 * u64::from(self.plan.delay_slots) - 1;
        let lookahead = if is_stepwise { whole.min(2) } else { whole };
        // A window ends when frames have arrived and none was sent since: there flows may be offered.
        let windows = Windows { lookahead, grid: 2, offset: 1 };
        let Self { shards, desk, .. } = self;
        let until = until.saturating_mul(2).saturating_add(1);
        let stop = shards.run(until, windows, &mut |reports, _| {
            let paused = desk.tell(reports, probe);
            if paused && is_stepwise { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match stop {
            Stop::Reached => {
                self.slot = until / 2;
                let slot = self.slot;
                self.shards.iter_mut().for_each(|shard| shard.reach(slot));
            }
            Stop::Paused(end) => self.slot = end / 2,
            Stop::Idle => {
                let busy = self.shards.iter().map(Shard::busy_until).max().unwrap_or(0);
                self.slot = busy.clamp(self.slot, until / 2);
                self.skip_to(self.slot);
            }
        }
        self.count_slots(from);
        self.incast.update(&mut self.shards, self.plan.config.nodes);
        stop
    }

    /// Tells of the flows that were refused up to now. True if the probe asked to pause.
    fn tell_refused(&mut self, at: Time, probe: &mut dyn Probe) -> bool {
        let mut paused = false;
        for (flow, why) in std::mem::take(&mut self.refused) {
            self.desk.totals.lost += flow.size;
            paused |= probe.failed(&flow, at.max(flow.start), why).is_break();
        }
        paused
    }

    /// Runs a rack in which nothing can be lost.
    fn advance_lossless(&mut self, until: Time, end: u64, probe: &mut dyn Probe) -> Advance {
        let is_stepwise = probe.may_pause();
        while self.slot < end {
            if self.is_idle() {
                if until != Time::NEVER {
                    self.skip_to(end);
                    self.reached = self.reached.max(until);
                }
                return Advance::Idle;
            }
            let poll = (self.slot / SLOTS_PER_POLL + 1) * SLOTS_PER_POLL;
            let stop = self.run(end.min(poll), is_stepwise, probe);
            let asked = self.slot.is_multiple_of(SLOTS_PER_POLL) && probe.poll().is_break();
            if asked || matches!(stop, Stop::Paused(_)) {
                self.reached = self.desk.times.start_of(self.slot);
                return Advance::Paused;
            }
        }
        self.reached = self.reached.max(until);
        Advance::Reached
    }

    /// Runs a rack in which cells can be lost. At the beginning of each epoch the driver looks whether all has
    /// come to rest.
    fn advance_lossy(&mut self, until: Time, end: u64, probe: &mut dyn Probe) -> Advance {
        let is_stepwise = probe.may_pause();
        while self.slot < end {
            if self.whole().now_of(self.slot).phase == 0 {
                let is_stalled = self.look_round();
                if self.tell(probe) {
                    self.reached = self.desk.times.start_of(self.slot);
                    return Advance::Paused;
                }
                if is_stalled || self.is_idle() {
                    // Nothing can happen before the next flow or fault: skip to it.
                    let events = self.shards.iter().filter_map(Shard::next_event);
                    let next = events.min().unwrap_or(u64::MAX);
                    if next >= end {
                        if until != Time::NEVER {
                            self.skip_to(end);
                            self.reached = self.reached.max(until);
                        }
                        return if next == u64::MAX { Advance::Idle } else { Advance::Reached };
                    }
                    self.skip_to(next);
                    self.settle();
                    self.progress.1 = self.slot;
                }
            }
            let poll = (self.slot / SLOTS_PER_POLL + 1) * SLOTS_PER_POLL;
            let slots = u64::from(self.whole().bank.schedule.slots());
            let epoch = self.slot + slots - u64::from(self.whole().now_of(self.slot).phase);
            let stop = self.run(end.min(poll).min(epoch), is_stepwise, probe);
            let asked = self.slot.is_multiple_of(SLOTS_PER_POLL) && probe.poll().is_break();
            if asked || matches!(stop, Stop::Paused(_)) {
                self.reached = self.desk.times.start_of(self.slot);
                return Advance::Paused;
            }
        }
        // Some cells may have arrived since.
        self.reached = self.reached.max(until);
        Advance::Reached
    }

    /// Ends flows that will not arrive, and forgets reports that nobody waits for. Whether no payload has
    /// moved for so long that none will before a flow or a fault comes.
    fn look_round(&mut self) -> bool {
        let (slot, at) = (self.slot, self.desk.times.start_of(self.slot).as_ps());
        if self.shards.iter().all(Shard::is_all_reports) {
            self.shards.iter_mut().for_each(Shard::quiesce);
        }
        let deadline = slot + self.whole().settling_slots();
        let drained = self.desk.drained.drain(..);
        self.deadlines.extend(drained.map(|handle| (deadline, handle)));
        let mut lost = Vec::new();
        while let Some(&(_, handle)) = self.deadlines.front().filter(|first| first.0 <= slot) {
            self.deadlines.pop_front();
            lost.push(handle);
        }
        let hops = self.hops();
        if self.progress.0 != hops {
            self.progress = (hops, slot);
        }
        let is_stalled = slot.saturating_sub(self.progress.1) > self.whole().stall_slots();
        if is_stalled && !self.plan.is_reliable {
            self.shards.iter_mut().for_each(|shard| shard.give_up_stalled(slot));
            lost.extend(self.desk.open.iter().map(|(handle, _)| handle));
        }
        let lost = lost.into_iter().map(|handle| Report::failed(handle, at, Failure::PacketsLost));
        self.desk.waiting.extend(lost);
        is_stalled
    }

    /// Tells what shards have to report between two runs. True if the probe asked to pause.
    fn tell(&mut self, probe: &mut dyn Probe) -> bool {
        let mut reports = std::mem::take(&mut self.desk.waiting);
        for shard in self.shards.iter_mut() {
            rack::shards::Shard::report(shard, &mut reports);
        }
        if reports.is_empty() {
            return false;
        }
        reports.sort_unstable();
        self.desk.tell(&mut reports, probe)
    }

    pub(crate) fn hops(&self) -> u64 {
        self.shards.iter().map(|shard| shard.hops).sum()
    }

    /// Cell slots of the schedule so far, empty ones too.
    pub(crate) fn cell_slots(&self) -> u64 {
        self.cell_slots
    }

    /// How many cells have arrived of each flow that is not delivered, in order, up to the first that may be
    /// missing; by handle.
    fn begun(&self) -> BTreeMap<u32, u64> {
        let begun = self.shards.iter().flat_map(|shard| shard.messages.receivers.begun());
        let mut begun: BTreeMap<u32, u64> = begun.collect();
        let kept = |(handle, open): (u32, &Open)| open.kept.map(|cells| (handle, cells));
        let failed = self.desk.failed.iter().map(|(&handle, open)| (handle, open));
        for (handle, cells) in self.desk.open.iter().chain(failed).filter_map(kept) {
            let all = begun.entry(handle).or_default();
            *all = cells.max(*all);
        }
        begun
    }

    /// Application bytes that have arrived in order of flows that are still open, and of those that have
    /// failed.
    fn in_order(&self) -> (kernel::Bytes, kernel::Bytes) {
        if !self.plan.is_lossy {
            let begun = self.shards.iter().flat_map(|shard| shard.messages.receivers.begun());
            let data = |(handle, cells)| Some(self.desk.data(self.desk.open.get(handle)?, cells));
            return (begun.filter_map(data).sum(), kernel::Bytes::ZERO);
        }
        let begun = self.begun();
        let data = |(handle, open): (u32, &Open)| {
            self.desk.data(open, begun.get(&handle).copied().unwrap_or(0))
        };
        let failed = self.desk.failed.iter().map(|(&handle, open)| data((handle, open))).sum();
        (self.desk.open.iter().map(data).sum(), failed)
    }
}

impl Desk {
    /// Application bytes in the first cells of a flow.
    fn data(&self, open: &Open, cells: u64) -> kernel::Bytes {
        self.plan.cells.data_before(open.flow.size, cells.min(open.cells))
    }

    /// Joins what both halves of flows report, and tells the probe of those that have ended, by time and
    /// number. True if it asked to pause.
    fn tell(&mut self, reports: &mut Vec<Report>, probe: &mut dyn Probe) -> bool {
        for Report { at, handle, what } in reports.drain(..) {
            match (self.open.get_mut(handle), what) {
                (Some(open), What::Sent { released, sent, again }) => {
                    (open.released, open.sent, open.again) = (released, sent, again);
                }
                (Some(_), What::Drained) => self.drained.push(handle),
                (Some(open), What::GivenUp { cells }) => open.kept = Some(cells),
                (Some(_), What::Whole { .. }) => {
                    // The first report of an end is the one that counts.
                    let open = self.open.remove(handle).expect("it is open");
                    self.ended.push((Time::from_ps(at), open, what));
                }
                (Some(_), What::Failed { .. }) => {
                    let open = self.open.retire(handle).expect("it is open");
                    self.failed.insert(handle, open.clone());
                    self.ended.push((Time::from_ps(at), open, what));
                }
                (None, What::Whole { sound: cells, .. } | What::GivenUp { cells }) => {
                    if let Some(failed) = self.failed.get_mut(&handle) {
                        failed.kept = Some(cells);
                    }
                }
                (None, _) => {}
            }
        }
        let mut ended = std::mem::take(&mut self.ended);
        ended.sort_by_key(|(at, open, _)| (*at, open.flow.id));
        let mut paused = false;
        for (at, open, what) in ended.drain(..) {
            paused |= self.end(at, &open, what, probe);
        }
        self.ended = ended;
        paused
    }

    /// Tells that a flow has ended: delivered, or without all of its cells.
    fn end(&mut self, at: Time, open: &Open, what: What, probe: &mut dyn Probe) -> bool {
        let flow = &open.flow;
        let why = match what {
            What::Failed { code } => Some(What::reason(code)),
            What::Whole { cells, .. } if cells == open.cells => None,
            What::Whole { sound, .. } => {
                let delivered = self.data(open, sound);
                self.totals.delivered += delivered;
                self.totals.lost += flow.size - delivered;
                Some(Failure::PacketsLost)
            }
            _ => None,
        };
        if let Some(why) = why {
            return probe.failed(flow, at.max(flow.start), why).is_break();
        }
        let What::Whole { last_hop, direct, .. } = what else { return false };
        let sums = (last_hop, direct);
        self.totals.delivered += flow.size;
        let word = ending(flow.id.get(), at.as_ps());
        self.totals.event_hash = self.totals.event_hash.wrapping_add(word);
        let completion = Completion {
            flow,
            end: at,
            ideal: self.ideal_fct(flow),
            stages: &open.stages(at, sums, self.times),
        };
        probe.completed(&completion).is_break()
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        let plan = &self.plan;
        let origin = self.times.slot_from(flow.start);
        let cells = plan.cells.cells(flow.size);
        let after = if plan.may_reschedule() {
            crate::ideal::slots_in_any_schedule(plan.config.channels, cells)
        } else {
            let ends = (flow.src.get(), flow.dst.get());
            crate::ideal::slots(&plan.schedule, ends, cells, origin, plan.delay_slots)
        };
        let wait = self.times.start_of(origin) - flow.start;
        let sending = u128::from(after) * u128::from(self.times.slot.as_ps());
        let all = sending + u128::from((wait + self.times.hop).as_ps());
        Span::from_ps(u64::try_from(all).unwrap_or(u64::MAX))
    }
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
        let start = self.slot_from(flow.start);
        if self.is_idle() {
            self.skip_to(start);
            self.settle();
        } else if start > self.slot {
            // Not before its time.
            self.skip_to(start);
        }
        let shard = self.shard_of(flow.src.get());
        if let Some(why) = self.shards.get_mut(shard).refuses(flow) {
            self.refused.push((*flow, why));
            return;
        }
        if self.desk.open.count() == 0 {
            let slot = self.slot;
            self.shards.iter_mut().for_each(|shard| shard.start_turns(slot));
        }
        let open = Open {
            flow: *flow,
            cells: self.plan.cells.cells(flow.size),
            released: 0,
            sent: 0,
            again: false,
            kept: None,
        };
        let handle = self.desk.open.add(open);
        self.progress.1 = self.slot;
        let shard = self.shards.get_mut(shard);
        shard.catch_up();
        shard.offer(flow, handle);
        if self.whole().recorder.is_some() {
            self.shards.iter_mut().for_each(|shard| shard.note_flow(flow, handle));
        }
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        Self::set_wire(self, is_on)
    }

    fn set_threads(&mut self, threads: usize) {
        Self::set_threads(self, threads);
    }

    fn set_shards(&mut self, shards: usize) -> usize {
        Self::set_shards(self, shards);
        self.shards.count()
    }

    fn can_trace(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn set_trace(&mut self, followed: &[Followed]) {
        self.record(followed);
    }

    fn take_trace(&mut self) -> Trace {
        self.recorded()
    }

    fn apart(&self) -> Option<Nodes> {
        crate::node::apart(&self.plan, self.seed)
    }

    fn advance(&mut self, until: Time, probe: &mut dyn Probe) -> Advance {
        if self.tell_refused(self.reached, probe) {
            return Advance::Paused;
        }
        let end = if until == Time::NEVER { u64::MAX / 4 } else { self.slot_from(until) };
        match self.plan.is_lossy {
            true => self.advance_lossy(until, end, probe),
            false => self.advance_lossless(until, end, probe),
        }
    }

    fn ideal_fct(&self, flow: &Flow) -> Span {
        self.desk.ideal_fct(flow)
    }

    fn totals(&self) -> Totals {
        let cell = self.plan.config.cell;
        let shards = || self.shards.iter();
        let longest = u64::from(shards().map(|s| s.bank.longest_queue()).max().unwrap_or(0));
        let held = shards().map(|s| s.messages.receivers.held_peak).max().unwrap_or(0);
        let (drops, resent) = self.loss_counts();
        let (open, failed) = self.in_order();
        let sizes: kernel::Bytes = self.desk.failed.values().map(|open| open.flow.size).sum();
        let hash = shards().fold(self.desk.totals.event_hash, |sum, s| sum.wrapping_add(s.hash));
        Totals {
            hops: self.hops(),
            events: self.cell_slots,
            event_hash: hash,
            queue_max_cells: longest,
            queue_max: cell * longest,
            queue_p99: cell * self.length_p99(),
            reorder_max: self.plan.cells.payload() * u64::from(held),
            drops,
            retransmissions: resent + self.repeats(),
            delivered: self.desk.totals.delivered + open + failed,
            lost: self.desk.totals.lost + sizes - failed,
        }
    }

    fn stages(&self) -> &'static [Stage] {
        STAGES
    }

    fn gauges(&self) -> &'static [Gauge] {
        gauges::COLUMNS
    }

    fn sample(&mut self, row: &mut [f64]) {
        let (open, failed) = self.in_order();
        let totals = Totals {
            hops: self.hops(),
            events: self.cell_slots,
            delivered: self.desk.totals.delivered + open + failed,
            ..Totals::default()
        };
        let Self { gauges, shards, plan, desk, .. } = self;
        let peaks = shards.iter_mut().map(|shard| shard.bank.take_peaks());
        let peaks = peaks.fold((0, 0), |all, one| (one.0.max(all.0), one.1.max(all.1)));
        let queued = shards.iter().map(|shard| shard.bank.queued_total()).sum();
        gauges.sample(row, peaks, queued, plan.config.cell, &totals, desk.open.count());
    }

    fn unfinished(&self, limit: usize) -> Vec<Unfinished> {
        let begun = self.begun();
        let unfinished = |(handle, open): (u32, &Open)| {
            let cells = begun.get(&handle).copied().unwrap_or(0);
            Unfinished { flow: open.flow, delivered: self.desk.data(open, cells) }
        };
        let mut flows: Vec<_> = self.desk.open.iter().map(unfinished).collect();
        let refused = self.refused.iter();
        flows.extend(refused.map(|&(flow, _)| Unfinished { flow, delivered: kernel::Bytes::ZERO }));
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
