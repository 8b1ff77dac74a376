//! A part of a rack: the state of a range of nodes, advanced slot by slot.
//!
//! One slot: every node meets the peers of the slot, then acts on the frames whose last bit is there by
//! the start of the next. Nodes with nothing to say in a slot are not visited, as the empty cells they send
//! change nothing. What other shards know stays with them: cells on links are all that passes between two.
//!
//! The instants of [`rack::shards`] are half slots: in the first half of a slot frames arrive, in the second
//! nodes send. A frame sent in slot `s` is acted on at the beginning of slot `s + delay`.

use std::ops::Range;
use std::sync::Arc;

use kernel::Time;
use rack::shards::{NEVER, Outbox};
use rack::trace::Outcome;
use rack::{Flow, Problem};

use crate::cell::Frame;
use crate::config::Plan;
use crate::corruption::Hit;
use crate::flight::{Arrivals, Flight, Kind, Lists};
use crate::losses::Losses;
use crate::messages::{Messages, Report};
use crate::mode::{Lean, LeanPart, Lossless, Lossy, Mode};
use crate::nic::{Bank, CellSource as _, Meetings, Now};
use crate::stages::SlotTimes;
use crate::trace::Recorder;
use crate::wire::{Codec, Said};

/// Odd constants of the event hash (the golden ratio in 64 bits, and a multiplier of SplitMix64).
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const HASH_MIX: u64 = 0xbf58_476d_1ce4_e5b9;

/// What counts as a hop.
const CARRYING: [Kind; 2] = [Kind::Relay, Kind::Deliver];

/// A frame on its way to a node of another shard.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    pub(crate) frame: Frame,
    /// What it says beyond that.
    pub(crate) said: Option<Box<Said>>,
    /// The slot in which it arrives, modulo 2^32.
    pub(crate) slot: u32,
    pub(crate) channel: u32,
}

/// The nodes of a shard: the rack's, divided as evenly as can be.
pub(crate) fn range_of(shard: usize, shards: usize, nodes: u32) -> Range<u32> {
    let edge = |shard: usize| (shard as u64 * u64::from(nodes)).div_ceil(shards as u64) as u32;
    edge(shard)..edge(shard + 1)
}

/// The state of a range of nodes.
#[derive(Clone, Debug)]
pub(crate) struct Shard {
    pub(crate) plan: Arc<Plan>,
    own: Range<u32>,
    shards: usize,
    pub(crate) bank: Bank,
    pub(crate) messages: Messages,
    pub(crate) flight: Flight,
    /// Those of the position at hand; kept for their memory.
    meetings: Meetings,
    pub(crate) times: SlotTimes,
    /// The slot at hand, and whether its frames have arrived.
    slot: u64,
    has_arrived: bool,
    /// Epochs that began before this slot are settled.
    settled: u64,
    /// Slot from which on nothing is on its way from or to these nodes, as far as they know.
    busy_until: u64,
    /// Every frame goes through its bytes.
    wire: Option<Codec>,
    /// Every cell is sent, those that say nothing too, and those that do not come are missed.
    pub(crate) sends_all: bool,
    /// Who was not heard in the slot at hand, and by whom.
    pub(crate) missed: Vec<(u32, u32)>,
    /// Frames that could not be decoded, or were not expected: dropped.
    pub(crate) unexpected: u64,
    /// Payload hops, and a sum of one word for each.
    pub(crate) hops: u64,
    pub(crate) hash: u64,
    /// What can be lost; absent where nothing can.
    pub(crate) losses: Option<Box<Losses>>,
    /// The record of cells, if there is one.
    pub(crate) recorder: Option<Box<Recorder>>,
}

impl Shard {
    /// One of so many idle shards. `seed` is that of all chance in the rack.
    pub(crate) fn new(plan: &Arc<Plan>, (index, shards): (usize, usize), seed: u64) -> Self {
        let own = range_of(index, shards, plan.config.nodes);
        let mut messages = Messages::new(&plan.config, plan.cells, own.clone());
        if plan.is_lossy {
            messages = messages.with_losses();
        }
        if plan.is_reliable {
            // Two hops there and two back.
            let round_trip = (4 * plan.delay_slots).div_ceil(plan.schedule.slots());
            let report = Codec::report_bytes(&plan.config);
            messages = messages.with_transport(round_trip, report);
        }
        Self {
            bank: Bank::new(plan, own.clone()),
            messages,
            flight: Flight::new(plan.delay_slots, plan.config.channels),
            meetings: Meetings::new(own.end - own.start),
            times: plan.times(),
            slot: 0,
            has_arrived: true,
            settled: 0,
            busy_until: 0,
            wire: None,
            sends_all: false,
            missed: Vec::new(),
            unexpected: 0,
            hops: 0,
            hash: 0,
            losses: plan.is_lossy.then(|| Box::new(Losses::new(plan, own.clone(), seed))),
            recorder: None,
            own,
            shards,
            plan: Arc::clone(plan),
        }
    }

    /// Whether a node is one of these.
    pub(crate) fn is_here(&self, node: u32) -> bool {
        self.own.contains(&node)
    }

    /// Start of a slot.
    pub(crate) fn start_of(&self, slot: u64) -> Time {
        self.times.start_of(slot)
    }

    /// The slot at hand.
    pub(crate) fn slot(&self) -> u64 {
        self.slot
    }

    /// Slot from which on these nodes have nothing to do, as far as they know.
    pub(crate) fn busy_until(&self) -> u64 {
        self.busy_until
    }

    pub(crate) fn now_of(&self, slot: u64) -> Now {
        self.bank.now(slot)
    }

    /// Whether no frame is under way to these nodes and none has anything to send.
    pub(crate) fn is_quiet(&self) -> bool {
        self.flight.is_empty() && self.bank.is_idle()
    }

    /// Goes on with a later slot; nothing happens in between in the whole rack.
    pub(crate) fn skip_to(&mut self, slot: u64) {
        self.slot = slot;
        self.has_arrived = true;
        self.settled = slot;
        self.busy_until = self.busy_until.max(slot);
        self.keep_epochs_small();
    }

    /// Waits until this slot: before it and in its first half there is nothing to do here.
    pub(crate) fn reach(&mut self, slot: u64) {
        if self.slot < slot {
            (self.slot, self.has_arrived) = (slot, true);
        }
    }

    /// Counts epochs from a later one, before their numbers become too large for what keeps them.
    fn keep_epochs_small(&mut self) {
        if let Some(epochs) = self.bank.surplus_epochs(self.slot) {
            self.bank.forget_epochs(epochs);
            self.messages.forget_epochs(epochs);
        }
    }

    pub(crate) fn settle(&mut self, now: Now) {
        let Self { bank, messages, .. } = self;
        bank.settle(now, |tag| messages.retire(tag));
    }

    /// Settles the epochs that began while these nodes had nothing to do and others had.
    pub(crate) fn catch_up(&mut self) {
        let slots = u64::from(self.bank.schedule.slots());
        let origin = self.bank.schedule.origin().get();
        let boundary = origin + self.settled.saturating_sub(origin).div_ceil(slots) * slots;
        for slot in (boundary..self.slot).step_by(slots as usize) {
            if self.bank.is_settled() {
                break;
            }
            self.settle(self.now_of(slot));
        }
        self.settled = self.slot;
    }

    /// The rack has had no flow to carry until now.
    pub(crate) fn start_turns(&mut self, slot: u64) {
        let now = self.now_of(slot);
        self.bank.start_turns(now);
    }

    /// Accepts a flow whose cells carry `handle`, in the slot at hand.
    pub(crate) fn offer(&mut self, flow: &Flow, handle: u32) {
        let now = self.now_of(self.slot);
        let work = self.messages.offer(flow, handle);
        self.bank.offer(work, now);
    }

    /// The second half of the slot at hand: nodes send.
    fn depart<M: Mode>(&mut self, out: &mut Outbox<Passing>) {
        let now = self.now_of(self.slot);
        if now.phase == 0 {
            self.settle(now);
        }
        if M::LOSSY {
            self.before_slot(now);
        }
        if !self.bank.is_idle() {
            self.busy_until = self.busy_until.max(now.slot + 1);
        }
        self.transmissions::<M>(now, out);
        self.slot += 1;
        self.settled = self.slot;
        self.has_arrived = false;
        if self.now_of(self.slot).phase == 0 {
            self.keep_epochs_small();
        }
    }

    fn transmissions<M: Mode>(&mut self, now: Now, out: &mut Outbox<Passing>) {
        let arrival = now.slot + u64::from(self.plan.delay_slots);
        let mut arrivals = self.flight.take(arrival);
        let mut has_frames = false;
        let (mut hits, is_clipped) = if M::LOSSY { self.damages(now) } else { (Vec::new(), false) };
        for channel in 0..self.bank.schedule.channels() {
            let position = now.position + channel;
            self.bank.meet::<M>(position, now, &mut self.messages, &mut self.meetings);
            if M::LOSSY && self.sends_all {
                self.bank.fill(now, &mut self.meetings);
            }
            if let Some(recorder) = self.recorder.as_deref_mut() {
                let frames = self.meetings.frames().map(|(frame, _)| frame);
                recorder.leave((now, channel), frames, &self.bank, &self.messages);
            }
            let salt = now.slot.wrapping_mul(HASH_FACTOR).wrapping_add(u64::from(channel) << 60);
            let lists = arrivals.on_mut(channel);
            let before = CARRYING.map(|kind| lists.count(kind));
            if !M::LOSSY && self.shards == 1 && self.wire.is_none() {
                for (frame, matters) in self.meetings.frames() {
                    lists.push(frame, matters);
                }
            } else {
                let damages = (&mut hits, is_clipped);
                has_frames |= self.send::<M>(lists, (arrival, channel, salt), damages, out);
            }
            lists.forget_silent();
            has_frames |= !lists.is_empty();
            for (kind, before) in CARRYING.into_iter().zip(before) {
                let sent = &lists.of(kind)[before..];
                self.hops += sent.len() as u64;
                self.hash =
                    sent.iter().fold(self.hash, |hash, frame| hash.wrapping_add(hop(frame, salt)));
            }
        }
        if has_frames {
            self.busy_until = self.busy_until.max(arrival);
        }
        self.flight.put(arrival, arrivals);
    }

    /// Sends the frames of all meetings, to nodes here or of other shards. Whether there are any of those.
    fn send<M: Mode>(
        &mut self,
        lists: &mut Lists,
        when: (u64, u32, u64),
        (hits, is_clipped): (&mut Vec<Hit>, bool),
        out: &mut Outbox<Passing>,
    ) -> bool {
        let (_, channel, _) = when;
        let mut has_left = false;
        for index in 0..self.meetings.count() {
            let (frame, mut matters) = self.meetings.frame(index);
            matters |= M::LOSSY && self.sends_all;
            let mut flags = 0;
            if M::LOSSY {
                flags = if matters && is_clipped { Frame::CORRUPT } else { 0 };
                let is_hit =
                    |hit: &Hit| hit.channel == channel && hit.from == u32::from(frame.from);
                if let Some(at) = hits.iter().position(is_hit) {
                    flags |= hits.swap_remove(at).damage.flags();
                }
                self.note_told(frame, flags, when.0);
            }
            has_left |=
                self.send_frame::<M>(lists, when, (frame, matters | (flags != 0), flags), out);
        }
        if M::LOSSY {
            // Empty cells, which are not simulated, are damaged too, with the marks that they have.
            let position = self.meetings.position();
            for hit in hits.extract_if(.., |hit| hit.channel == channel).collect::<Vec<_>>() {
                if let Some(to) = self.hears_empty(hit.from, position) {
                    let mut frame = Frame::empty(hit.from, to);
                    self.bank.mark(&mut frame);
                    let damaged = (frame, true, hit.damage.flags());
                    has_left |= self.send_frame::<M>(lists, when, damaged, out);
                }
            }
        }
        has_left
    }

    /// A frame leaves that may say something new of the pair. If the fabric damages its marks the next says them
    /// again. Of a notice the sender hears when it meets the peer, within an epoch, and a propagation later: until
    /// then the rack is not at rest, as it may have to be told again.
    fn note_told(&mut self, frame: Frame, damage: u16, arrival: u64) {
        if frame.flags & (Frame::PARTED | Frame::NOTICE | Frame::SHOWN) == 0 {
            return;
        }
        let answer = u64::from(self.bank.schedule.slots() + self.plan.delay_slots);
        let is_notice = frame.flags & Frame::NOTICE != 0;
        self.bank.note_told(arrival + if is_notice { answer } else { 0 });
        if damage != 0 {
            self.bank.show_marks(u32::from(frame.from), u32::from(frame.to));
        }
    }

    /// Sends a frame, which the fabric damages by these flags. Whether it goes to another shard.
    fn send_frame<M: Mode>(
        &mut self,
        lists: &mut Lists,
        (arrival, channel, salt): (u64, u32, u64),
        (frame, matters, flags): (Frame, bool, u16),
        out: &mut Outbox<Passing>,
    ) -> bool {
        if M::LOSSY && matters && self.is_cut(frame) {
            let sent = arrival - u64::from(self.plan.delay_slots);
            self.note_loss(sent, &frame, Outcome::DeadLink);
            self.messages.discard(frame.cargo());
            return false;
        }
        let is_own = self.own.contains(&u32::from(frame.to));
        // In this shard what it says stays where it is.
        let leaves = M::LOSSY && (!is_own || self.wire.is_some());
        let said = if leaves { self.take_said(&frame) } else { None };
        let Some((mut frame, said)) = self.through_bytes(frame, said, matters) else {
            return false;
        };
        frame.flags |= flags;
        if is_own {
            if let Some(said) = said {
                self.put_said(&mut frame, *said);
            }
            lists.push(&frame, matters);
        } else if matters {
            if !frame.cell.is_empty() {
                self.hops += 1;
                self.hash = self.hash.wrapping_add(hop(&frame, salt));
            }
            self.pass(Passing { frame, said, slot: arrival as u32, channel }, arrival, out);
            return true;
        }
        false
    }

    /// Takes out what a frame says that does not fit it.
    fn take_said(&mut self, frame: &Frame) -> Option<Box<Said>> {
        let said = if frame.flags & Frame::NOTICE != 0 {
            self.bank.take_notice(frame.payload).map(Said::Notice)
        } else if frame.cell.is_datagram() && !frame.cell.is_empty() {
            self.messages.acks.take(frame.payload).map(Said::Ack)
        } else {
            None
        };
        said.map(Box::new)
    }

    /// Keeps what a frame says until it arrives. A notice that makes no sense is none.
    pub(crate) fn put_said(&mut self, frame: &mut Frame, said: Said) {
        match said {
            Said::Ack(ack) => frame.payload = self.messages.acks.put(ack),
            Said::Notice(notice) => match self.bank.put_notice(u32::from(frame.from), notice) {
                Some(handle) => frame.payload = handle,
                None => {
                    frame.flags &= !Frame::NOTICE;
                    self.unexpected += 1;
                }
            },
        }
    }

    /// A frame as its receiver decodes it, if frames go through their bytes.
    #[inline]
    fn through_bytes(
        &mut self,
        frame: Frame,
        said: Option<Box<Said>>,
        matters: bool,
    ) -> Option<(Frame, Option<Box<Said>>)> {
        let Some(codec) = self.wire.as_mut().filter(|_| matters) else {
            return Some((frame, said));
        };
        let there = codec.carry(&frame, said.as_deref()).ok();
        self.unexpected += u64::from(there.is_none());
        there
    }

    /// Sends every frame through its bytes from now on, or not.
    ///
    /// # Errors
    /// If cells are too short for that.
    pub(crate) fn use_bytes(&mut self, is_on: bool) -> Result<(), Problem> {
        self.wire = is_on.then(|| Codec::of(&self.plan)).transpose()?;
        Ok(())
    }

    /// Sends a frame to a node of another shard.
    #[inline]
    fn pass(&self, passing: Passing, arrival: u64, out: &mut Outbox<Passing>) {
        let nodes = u64::from(self.plan.config.nodes);
        let to = (u64::from(passing.frame.to) * self.shards as u64 / nodes) as usize;
        out.send(to, 2 * arrival, passing);
    }

    /// The first half of the slot at hand: frames arrive.
    fn arrive<M: Mode>(&mut self) {
        self.has_arrived = true;
        let now = self.now_of(self.slot);
        let arrivals = self.flight.take(now.slot);
        if M::LOSSY && self.sends_all {
            self.look_for_missing(&arrivals, now);
        }
        for kind in Kind::ALL {
            for channel in 0..self.bank.schedule.channels() {
                let frames = arrivals.on(channel).of(kind);
                if let Some(recorder) = self.recorder.as_deref_mut().filter(|_| kind == Kind::Relay)
                {
                    recorder.join(now, frames, &self.bank);
                }
                self.arrive_on::<M>(kind, frames, now);
            }
        }
        let sent = (now.slot + 1).saturating_sub(u64::from(self.plan.delay_slots));
        let is_dense = self.bank.is_dense(self.flight.count_at(now.slot + 1));
        if is_dense && sent >= self.bank.schedule.origin().get() {
            let sent = self.now_of(sent);
            for position in sent.position..sent.position + self.bank.schedule.channels() {
                self.bank.prefetch_hearing::<M>(position);
            }
        }
        self.flight.reuse(now.slot, arrivals);
    }

    fn arrive_on<M: Mode>(&mut self, kind: Kind, frames: &[Frame], now: Now) {
        for (index, frame) in frames.iter().enumerate() {
            if kind == Kind::Relay {
                self.bank.prefetch_relays::<M>(&frames[index..]);
            }
            let is_lost = M::LOSSY && (self.is_lost(*frame) || !self.heeds(frame, now));
            let back = if is_lost { None } else { self.bank.hear::<M>(frame, now) };
            let Some(back) = back else {
                if M::LOSSY {
                    self.note_not_heard(frame, now);
                }
                self.messages.discard(frame.cargo());
                continue;
            };
            match kind {
                Kind::Report => {}
                Kind::Relay => {
                    let is_taken = self.bank.relay::<M>(frame, back);
                    if M::LOSSY && !is_taken {
                        self.note_not_taken(frame, now);
                        self.messages.discard(frame.cargo());
                    }
                }
                Kind::Deliver => {
                    self.bank.keep::<M>(frame, back);
                    self.deliver::<M>(frame, now);
                }
            }
        }
    }

    /// Notes whom nodes here should have heard in a slot and did not.
    fn look_for_missing(&mut self, arrivals: &Arrivals, now: Now) {
        let schedule = &self.bank.schedule;
        let delay = u64::from(self.plan.delay_slots);
        let Some(sent) = now.slot.checked_sub(delay).filter(|&s| s >= schedule.origin().get())
        else {
            return;
        };
        let position = self.now_of(sent).position;
        for channel in 0..schedule.channels() {
            let frames = arrivals.on(channel);
            let froms = (0..self.plan.config.nodes).filter(|&from| schedule.contains(from));
            for from in froms {
                let to = schedule.peer(from, position + channel);
                let Some(to) = to.filter(|to| self.own.contains(to)) else { continue };
                if !frames.all().any(|frame| u32::from(frame.from) == from) {
                    self.missed.push((from, to));
                }
            }
        }
    }

    /// Hands a cell to its destination's applications.
    #[inline]
    fn deliver<M: Mode>(&mut self, frame: &Frame, now: Now) {
        let cell = frame.cell;
        if M::LOSSY && cell.is_datagram() {
            self.acknowledged(frame.cargo(), now);
            return;
        }
        let sent = now.slot - u64::from(self.plan.delay_slots);
        let direct = u32::from(frame.from) == cell.source();
        let end = (self.start_of(sent) + self.times.hop).as_ps();
        let is_new = self.messages.cell_arrived(frame.cargo(), sent, direct, end);
        if M::LOSSY {
            self.messages.note_arrival(cell, now.epoch, !is_new);
        }
    }

    fn run_as<M: Mode>(&mut self, end: u64, out: &mut Outbox<Passing>) {
        while 2 * self.slot < end {
            if !M::LOSSY && self.is_quiet() {
                // Others may have something to do meanwhile, so that epochs begin; or no shard has.
                (self.slot, self.has_arrived) = (end / 2, end % 2 == 1);
                return;
            }
            if !self.has_arrived {
                self.arrive::<M>();
            }
            if 2 * self.slot + 1 >= end {
                break;
            }
            self.depart::<M>(out);
        }
    }
}

/// A hop as it goes into the event hash: a sum, so that it makes no difference who counts first. `salt` is
/// of the slot and the channel: with the ends of the cell they tell who sends it to whom.
#[inline]
fn hop(frame: &Frame, salt: u64) -> u64 {
    let word = (frame.cell.word() ^ salt).wrapping_mul(HASH_MIX);
    word ^ word >> 32
}

/// The end of a flow as it goes into the event hash.
pub(crate) fn ending(flow: u64, end: u64) -> u64 {
    let word = (flow ^ end.wrapping_mul(HASH_FACTOR)).wrapping_mul(HASH_MIX);
    (word ^ word >> 32).wrapping_mul(HASH_FACTOR)
}

impl rack::shards::Shard for Shard {
    type Message = Passing;
    type Report = Report;

    fn next(&self) -> u64 {
        let now = 2 * self.slot + u64::from(self.has_arrived);
        if self.losses.is_some() {
            return now;
        }
        // What comes next, exactly, so that windows do not depend on who is here.
        let from = self.slot + u64::from(self.has_arrived);
        let arrival = self.flight.first_from(from).map_or(NEVER, |slot| 2 * slot);
        if self.bank.is_idle() { arrival } else { arrival.min(2 * self.slot + 1) }
    }

    fn take(&mut self, messages: &mut Vec<Passing>) {
        for Passing { mut frame, said, slot, channel } in messages.drain(..) {
            if let Some(said) = said {
                self.put_said(&mut frame, *said);
            }
            let ahead = slot.wrapping_sub(self.slot as u32);
            self.flight.add(self.slot + u64::from(ahead), channel, frame);
        }
    }

    fn run(&mut self, end: u64, out: &mut Outbox<Passing>) -> u64 {
        self.catch_up();
        self.keep_epochs_small();
        let before = self.hops;
        match self.losses {
            Some(_) => self.run_as::<Lossy>(end, out),
            None if self.bank.is_lean() && self.shards == 1 => self.run_as::<Lean>(end, out),
            None if self.bank.is_lean() => self.run_as::<LeanPart>(end, out),
            None => self.run_as::<Lossless>(end, out),
        }
        self.hops - before
    }

    fn report(&mut self, reports: &mut Vec<Report>) {
        reports.append(&mut self.messages.reports);
    }
}
