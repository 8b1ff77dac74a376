//! The record of chosen flows' cells, as a rack keeps it that is asked to ([`rack::trace`]).
//!
//! Whether there is one is asked once a slot and channel, of all cells that leave and of all that come to relays
//! together; so a run without it pays nothing for a cell. Each shard notes what its nodes send; [`book`] puts together
//! what all have noted.
//!
//! **What a cell waits for.** At its source, for a slot of a channel: whom the source meets makes no difference, as
//! every node is a relay. So the port of a first hop is a channel of the source, which carries one cell a slot. At the
//! relay, for its turn in the queue for its destination, which the schedule serves once an epoch: the port of a second
//! hop is that queue. Of the time in it, what passes until the cells in front have left counts as behind those, and
//! the rest, until the slot in which the two nodes meet, as held.

mod book;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use kernel::{Span, Time};
use rack::trace::{Followed, HOPS_MAX, LineRecorder, Outcome, Tally};
use rack::{Flow, FlowId};

use crate::cell::{Cell, Frame};
use crate::config::Plan;
use crate::messages::Messages;
use crate::nic::{Bank, Now};
use crate::shard::Shard;
use crate::stages::SlotTimes;

/// The link-layer header type of captures for Shoal's cells: LINKTYPE_USER0, for private use (our choice).
const LINK_TYPE: u16 = 147;

/// A flow at its source that waits for its next cell to go on a channel.
#[derive(Clone, Debug)]
struct Turn {
    flow: FlowId,
    /// When it ends, by what the run before has shown.
    until: Time,
    /// By channel.
    waits: Vec<Wait>,
}

/// A wait that has not ended.
#[derive(Clone, Debug)]
struct Wait {
    since: Time,
    /// Up to when it is accounted for.
    counted: Time,
    tally: Tally<FlowId>,
    /// Cells that were found waiting.
    found: u32,
}

impl Wait {
    fn new(since: Time, found: u32) -> Self {
        Self { since, counted: since, tally: Tally::default(), found }
    }

    fn passage(self) -> Passage {
        let Self { since, tally, found, .. } = self;
        let (own, others) = (tally.own, tally.others);
        Passage { joined: since, own, others, found, beside: tally.most() }
    }
}

/// A cell of a recorded flow in the queue of a relay.
#[derive(Clone, Debug)]
struct Waiter {
    cell: Cell,
    flow: FlowId,
    wait: Wait,
}

/// How a cell waited.
#[derive(Clone, Debug)]
struct Passage {
    joined: Time,
    own: Span,
    others: Span,
    found: u32,
    beside: Vec<(Option<FlowId>, u64)>,
}

/// A frame with a cell of a recorded flow, as it was seen.
#[derive(Clone, Debug)]
struct Sight {
    /// The slot in which it was sent.
    slot: u64,
    channel: u32,
    frame: Frame,
    what: What,
}

/// What was seen of a frame.
#[derive(Clone, Debug)]
enum What {
    /// The source sent it: with this wait, and these bytes of the flow: from which on, how many.
    First(FlowId, Passage, [u64; 2]),
    /// A relay sent it; `None`: once more, as it had got lost.
    Second(FlowId, Option<Passage>),
    /// It was lost on its way.
    Gone(FlowId, Outcome),
}

/// The record of a shard.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    times: SlotTimes,
    channels: u32,
    delay: u64,
    cell_bytes: u64,
    /// By flow: when it ends.
    ends: Arc<BTreeMap<FlowId, Time>>,
    /// By handle: the flows that cells are of.
    flows: BTreeMap<u32, FlowId>,
    /// By node: its open flows that are recorded.
    turns: BTreeMap<u32, Vec<Turn>>,
    /// By relay and destination: cells of recorded flows in that queue.
    queues: BTreeMap<[u32; 2], Vec<Waiter>>,
    sights: Vec<Sight>,
    is_full: bool,
    lines: LineRecorder,
}

impl Recorder {
    /// Of the flows that end so, in a shard of this plan.
    fn new(plan: &Plan, ends: &Arc<BTreeMap<FlowId, Time>>) -> Self {
        let (nodes, channels) = (plan.config.nodes, plan.config.channels);
        Self {
            times: plan.times(),
            channels,
            delay: u64::from(plan.delay_slots),
            cell_bytes: plan.config.cell.get(),
            ends: Arc::clone(ends),
            flows: BTreeMap::new(),
            turns: BTreeMap::new(),
            queues: BTreeMap::new(),
            sights: Vec::new(),
            is_full: false,
            lines: LineRecorder::new((nodes * channels) as usize),
        }
    }

    /// A flow of the rack begins whose cells carry `handle`; at a source here it finds so many cells waiting.
    pub(crate) fn begins(&mut self, flow: &Flow, handle: u32, found: Option<u32>) {
        self.flows.insert(handle, flow.id);
        if let (Some(found), Some(&until)) = (found, self.ends.get(&flow.id)) {
            let waits = vec![Wait::new(flow.start, found); self.channels as usize];
            let turns = self.turns.entry(flow.src.get()).or_default();
            turns.push(Turn { flow: flow.id, until, waits });
        }
    }

    /// The flow of a cell; `None`: it is of none.
    fn flow_of(&self, frame: &Frame) -> Option<FlowId> {
        if frame.cell.is_empty() || frame.cell.is_datagram() {
            return None;
        }
        self.flows.get(&Messages::handle_of(frame.cargo())).copied()
    }

    /// The flow of a cell, if it is recorded now.
    fn wanted(&self, frame: &Frame, now: Time) -> Option<FlowId> {
        let flow = self.flow_of(frame)?;
        self.ends.get(&flow).is_some_and(|&end| now <= end).then_some(flow)
    }

    fn see(&mut self, sight: Sight) {
        self.is_full |= self.sights.len() >= HOPS_MAX;
        if !self.is_full {
            self.sights.push(sight);
        }
    }

    /// Nodes here send these frames on a channel.
    pub(crate) fn leave<'a>(
        &mut self,
        (now, channel): (Now, u32),
        frames: impl Iterator<Item = &'a Frame>,
        bank: &Bank,
        messages: &Messages,
    ) {
        let start = self.times.start_of(now.slot);
        let bytes = u16::try_from(self.cell_bytes).unwrap_or(u16::MAX);
        for frame in frames.filter(|frame| !frame.cell.is_empty()) {
            let node = u32::from(frame.from);
            let waiting = bank.queued_in(node);
            let line = node * self.channels + channel;
            let all = u64::from(waiting) * self.cell_bytes;
            self.lines.sends(line, start, bytes, u32::try_from(all).unwrap_or(u32::MAX));
            let whose = self.flow_of(frame);
            self.goes_on_line((now.slot, channel, start), frame, whose, waiting, messages);
            self.leaves_queue((now.slot, channel, start), frame, whose);
        }
    }

    /// A frame goes on a channel of its node, for which flows of that node wait.
    fn goes_on_line(
        &mut self,
        (slot, channel, start): (u64, u32, Time),
        frame: &Frame,
        whose: Option<FlowId>,
        waiting: u32,
        messages: &Messages,
    ) {
        let Some(turns) = self.turns.get_mut(&u32::from(frame.from)) else { return };
        turns.retain(|turn| start <= turn.until);
        let is_own = frame.cell.source() == u32::from(frame.from);
        let mut gone = None;
        for turn in turns {
            let wait = &mut turn.waits[channel as usize];
            if is_own && whose == Some(turn.flow) {
                let next = Wait::new(start + self.times.slot, waiting);
                gone = Some((turn.flow, std::mem::replace(wait, next).passage()));
            } else if wait.since <= start {
                wait.tally.add(turn.flow, whose, self.times.slot, self.cell_bytes);
            }
        }
        let Some((flow, passage)) = gone else { return };
        let payload = messages.payload(frame.cell);
        let bytes = payload.map_or([0; 2], |(_, offset, length)| [offset.get(), length.get()]);
        let what = What::First(flow, passage, bytes);
        self.see(Sight { slot, channel, frame: *frame, what });
    }

    /// A frame leaves the queue of its node for its receiver, in which cells of recorded flows may wait.
    fn leaves_queue(
        &mut self,
        (slot, channel, start): (u64, u32, Time),
        frame: &Frame,
        whose: Option<FlowId>,
    ) {
        let is_relayed = frame.cell.source() != u32::from(frame.from);
        let mut passage = None;
        let ends = [frame.from, frame.to].map(u32::from);
        if let Some(waiters) = self.queues.get_mut(&ends) {
            let at = waiters.iter().position(|waiter| is_relayed && waiter.cell == frame.cell);
            passage = at.map(|at| waiters.remove(at).wait.passage());
            for Waiter { flow, wait, .. } in waiters.iter_mut() {
                let end = start + self.times.slot;
                wait.tally.add(*flow, whose, end - wait.counted.min(end), self.cell_bytes);
                wait.counted = end;
            }
            if waiters.is_empty() {
                self.queues.remove(&ends);
            }
        }
        let Some(flow) = self.wanted(frame, start).filter(|_| is_relayed) else { return };
        self.see(Sight { slot, channel, frame: *frame, what: What::Second(flow, passage) });
    }

    /// These frames come to relays here on one channel: a node gets one of them at most.
    pub(crate) fn join(&mut self, now: Now, frames: &[Frame], bank: &Bank) {
        let Some(sent) = now.slot.checked_sub(self.delay) else { return };
        let arrived = self.times.start_of(sent) + self.times.hop;
        for frame in frames {
            let (node, destination) = (u32::from(frame.to), frame.cell.destination());
            let Some(flow) = self.wanted(frame, arrived) else { continue };
            if !bank.schedule.contains(destination) {
                continue;
            }
            let wait = Wait::new(arrived, bank.queued_for(node, destination));
            let waiters = self.queues.entry([node, destination]).or_default();
            waiters.retain(|waiter| waiter.cell != frame.cell);
            waiters.push(Waiter { cell: frame.cell, flow, wait });
        }
    }

    /// A frame that was sent in `slot` is lost on its way, or not kept where it comes to.
    pub(crate) fn gone(&mut self, slot: u64, frame: &Frame, why: Outcome) {
        let Some(flow) = self.wanted(frame, self.times.start_of(slot)) else { return };
        if let Some(waiters) = self.queues.get_mut(&[u32::from(frame.to), frame.cell.destination()])
        {
            waiters.retain(|waiter| waiter.cell != frame.cell);
        }
        let what = What::Gone(flow, why);
        self.see(Sight { slot, channel: 0, frame: *frame, what });
    }
}

impl Shard {
    /// From now on records what the flows that end so send.
    fn record(&mut self, ends: &Arc<BTreeMap<FlowId, Time>>) {
        self.recorder = Some(Box::new(Recorder::new(&self.plan, ends)));
        self.messages.keep_payloads();
    }

    /// A flow of the rack begins whose cells carry `handle`.
    pub(crate) fn note_flow(&mut self, flow: &Flow, handle: u32) {
        let found = self.is_here(flow.src.get()).then(|| self.bank.queued_in(flow.src.get()));
        if let Some(recorder) = self.recorder.as_deref_mut() {
            recorder.begins(flow, handle, found);
        }
    }

    /// A frame that arrives is not heard.
    pub(crate) fn note_not_heard(&mut self, frame: &Frame, now: Now) {
        let is_damaged = frame.flags & (Frame::CORRUPT | Frame::GARBLED) != 0;
        let why = if is_damaged { Outcome::Lost } else { Outcome::DeadLink };
        self.note_loss(now.slot - u64::from(self.plan.delay_slots), frame, why);
    }

    /// A relay does not take a cell that arrives.
    pub(crate) fn note_not_taken(&mut self, frame: &Frame, now: Now) {
        let (node, destination) = (u32::from(frame.to), frame.cell.destination());
        let leads_there =
            self.bank.schedule.contains(destination) && !self.bank.is_down(node, destination);
        let why = if leads_there { Outcome::NoRoom } else { Outcome::NoRoute };
        self.note_loss(now.slot - u64::from(self.plan.delay_slots), frame, why);
    }

    /// A frame that was sent in `slot` is lost on its way, or not kept where it comes to.
    pub(crate) fn note_loss(&mut self, slot: u64, frame: &Frame, why: Outcome) {
        if let Some(recorder) = self.recorder.as_deref_mut() {
            recorder.gone(slot, frame, why);
        }
    }
}

impl crate::rack::Rack {
    /// From now on records the cells of these flows.
    pub(crate) fn record(&mut self, followed: &[Followed]) {
        let ends = Arc::new(followed.iter().map(|flow| (flow.flow, flow.end)).collect());
        self.shards.iter_mut().for_each(|shard| shard.record(&ends));
    }
}
