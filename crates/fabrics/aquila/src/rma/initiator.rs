//! Commands: what a host asks others for, in hardware.
//!
//! Models: Aquila §3.4 (M505, M508 to M511): a command takes a slot; it asks for each of its segments by itself, as far
//! as the window allows, since what is asked for must always find room; responses land as they come. **Our choice**:
//! a command that has not ended by its deadline has failed, and its slot's next use has another generation, by which
//! what comes late is known.

use std::collections::VecDeque;

use super::gather::{Gather, Part};
use super::memory::{self, Grant};
use super::settings::Settings;
use super::{Landing, Outgoing};
use crate::cells::rma::{Operation, Request, Response, Status, TAG_BYTES};
use crate::ip::ages::Ages;
use crate::link::classes::Half;
use crate::switch::cell::Watch;

/// Slots that are used in turn before one is used again, as far as there are so many (our choice: 2^13 uses until a
/// generation comes back).
const TURN: usize = 32;

/// What a slot is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Command {
    /// The operation that it is for, by its place in software.
    pub(super) operation: u32,
    /// GNet address of the host whose memory it is about.
    pub(super) to: u16,
    pub(super) kind: Operation,
    pub(super) operands: [u64; 2],
    /// Unit: bytes.
    pub(super) length: u32,
    pub(super) grant: Grant,
    /// Where in the region.
    pub(super) offset: u64,
    /// Where in the own memory.
    pub(super) local: u64,
    pub(super) half: Half,
    pub(super) watch: Watch,
}

impl Command {
    fn segments(&self, settings: &Settings) -> u16 {
        self.length.div_ceil(settings.segment) as u16
    }

    /// Bytes of a segment.
    fn bytes(&self, segment: u16, settings: &Settings) -> u32 {
        (self.length - u32::from(segment) * settings.segment).min(settings.segment)
    }
}

/// One segment.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    gather: Gather,
    /// When it was asked for. Unit: ps.
    issued: u64,
}

/// A slot.
#[derive(Clone, Debug, Default)]
struct Slot {
    command: Option<Command>,
    generation: u8,
    /// When software handed it to the hardware, and when that has it. Unit: ps.
    handed: u64,
    began: u64,
    /// Segments that were asked for, and that have landed.
    sent: u16,
    done: u16,
    /// Bytes that are under way.
    open: u32,
    segments: Vec<Segment>,
    value: u64,
    is_damaged: bool,
}

/// A command that has ended well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Done {
    pub(super) operation: u32,
    pub(super) handed: u64,
    pub(super) value: u64,
    pub(super) is_damaged: bool,
}

/// What a segment that has landed was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Landed {
    /// The operation, by its place in software.
    pub(super) operation: u32,
    /// From its request's way out. Unit: ps.
    pub(super) delay: u64,
    /// Its command, if that was all of it.
    pub(super) done: Option<Done>,
}

/// What has come of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Heard {
    /// It is for a use of the slot that is over.
    Stale,
    /// It was there before, or was not asked for.
    Stray,
    /// These bytes go there in the own memory; and the segment, if that was the last of it.
    Bytes(u64, u32, Option<Landing>),
}

/// The commands of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Initiator {
    slots: Vec<Slot>,
    free: VecDeque<u16>,
    /// Commands on their way to the hardware: when they are there, in ps.
    starting: VecDeque<(u64, u16, u8)>,
    /// By whether they are solicitations or offers, and half: commands that have segments to ask for.
    waiting: [[VecDeque<(u16, u8)>; 2]; 2],
    ages: Ages,
    /// Bytes that were asked for and that were offered, and are not there.
    pub(super) asked: u32,
    offered: u32,
}

impl Initiator {
    /// Whether a command can be taken.
    pub(super) fn has_slot(&self, settings: &Settings) -> bool {
        !self.free.is_empty() || self.slots.len() < settings.slots.into()
    }

    /// Takes a command, for which there is a slot.
    pub(super) fn start(&mut self, command: Command, now: u64, settings: &Settings) {
        let most = usize::from(settings.slots);
        if self.free.is_empty() || self.slots.len() < most.min(TURN) {
            self.free.push_front(self.slots.len() as u16);
            self.slots.push(Slot::default());
        }
        let Some(slot) = self.free.pop_front() else { return };
        let state = &mut self.slots[usize::from(slot)];
        debug_assert!(state.command.is_none(), "slot {slot} is taken twice");
        state.segments.clear();
        state.segments.resize(command.segments(settings).into(), Segment::default());
        let began = now + settings.doorbell;
        state.command = Some(command);
        (state.handed, state.began, state.value, state.is_damaged) = (now, began, 0, false);
        (state.sent, state.done, state.open) = (0, 0, 0);
        self.starting.push_back((began, slot, state.generation));
        self.ages.push(slot.into());
    }

    /// Lets commands begin that are with the hardware by now.
    pub(super) fn begin(&mut self, now: u64) {
        while let Some(&(began, slot, generation)) = self.starting.front() {
            if began > now {
                return;
            }
            self.starting.pop_front();
            let Some(command) = self.live(slot, generation).and_then(|state| state.command) else {
                continue;
            };
            let is_offer = usize::from(command.kind != Operation::Read);
            self.waiting[is_offer][command.half as usize].push_back((slot, generation));
        }
    }

    fn live(&mut self, slot: u16, generation: u8) -> Option<&mut Slot> {
        let state = self.slots.get_mut(usize::from(slot))?;
        (state.command.is_some() && state.generation == generation).then_some(state)
    }

    /// The next request of a half, and where it goes: for memory to be read, or else an offer. `None` if there is none
    /// or no room for what it asks for (I60).
    pub(super) fn next(
        &mut self,
        (is_offer, half): (bool, Half),
        (from, now): (u16, u64),
        settings: &Settings,
    ) -> Option<Outgoing> {
        let (slot, generation) = loop {
            let &(slot, generation) = self.waiting[usize::from(is_offer)][half as usize].front()?;
            if self.live(slot, generation).is_some() {
                break (slot, generation);
            }
            self.waiting[usize::from(is_offer)][half as usize].pop_front();
        };
        let state = &mut self.slots[usize::from(slot)];
        let command = state.command?;
        let segment = state.sent;
        let bytes = command.bytes(segment, settings);
        let open = if is_offer { &mut self.offered } else { &mut self.asked };
        if *open + bytes > settings.window {
            return None;
        }
        *open += bytes;
        debug_assert!(*open <= settings.window, "I60: {open} B are under way");
        state.open += bytes;
        state.sent += 1;
        state.segments[usize::from(segment)].issued = now;
        if state.sent == command.segments(settings) {
            self.waiting[usize::from(is_offer)][half as usize].pop_front();
        }
        let mut request = Request {
            operation: command.kind,
            class_of_service: if half == Half::LowLatency { 7 } else { 1 },
            is_low_latency: half == Half::LowLatency,
            is_marked: false,
            length: bytes as u16,
            slot,
            segment: segment as u8,
            generation,
            region: command.grant.region,
            key: command.grant.key,
            address: command.offset + u64::from(segment) * u64::from(settings.segment),
            tag: [0; TAG_BYTES],
            operands: command.operands,
        };
        request.tag = memory::tag(&request, (from, command.to), &command.grant.secret);
        let begins = (segment == 0).then_some(command.operation);
        Some(Outgoing { to: command.to, request, watch: command.watch, begins })
    }

    /// A response has come, with `value` at its beginning.
    pub(super) fn hear(
        &mut self,
        (response, from): (&Response, u16),
        (value, is_damaged): (u64, bool),
        settings: &Settings,
    ) -> Heard {
        let Some(state) = self.live(response.slot, response.generation) else {
            return Heard::Stale;
        };
        let (number, sent) = (u16::from(response.segment), state.sent);
        let Some(command) = state.command.filter(|to| to.to == from && number < sent) else {
            return Heard::Stray;
        };
        let (piece, bytes) = ((response.offset, response.length), command.bytes(number, settings));
        let gather = &mut state.segments[usize::from(number)].gather;
        let part = match command.kind {
            // A write ends with a response that has no bytes: as if it were one of one.
            Operation::Write if piece == (0, 0) => gather.take((0, 1), 1, settings.payload),
            Operation::Write => Part::Stray,
            _ => gather.take(piece, bytes, settings.payload),
        };
        if part == Part::Stray {
            return Heard::Stray;
        }
        state.is_damaged |= is_damaged;
        if command.kind.is_atomic() {
            state.value = value;
        }
        let landing = Landing::Segment {
            slot: response.slot,
            segment: response.segment,
            generation: response.generation,
        };
        let offset = u64::from(response.offset) * 8;
        let at = command.local + u64::from(number) * u64::from(settings.segment) + offset;
        let is_data = command.kind == Operation::Read;
        let count = if is_data { (bytes - offset as u32).min(settings.payload) } else { 0 };
        Heard::Bytes(at, count, (part == Part::Last).then_some(landing))
    }

    /// The address in the own memory and the length of a segment that its target may fetch.
    pub(super) fn offer(
        &mut self,
        request: &Request,
        ends: (u16, u16),
        settings: &Settings,
    ) -> Result<u64, Status> {
        let [.., generation, segment] = offered(request.address);
        let slot = (request.address >> 16) as u16;
        let Some(state) = self.live(slot, generation) else { return Err(Status::NoRegion) };
        let sent = state.sent;
        let command = state.command.filter(|command| {
            command.kind == Operation::Write && command.to == ends.0 && u16::from(segment) < sent
        });
        let command = command.ok_or(Status::NoRegion)?;
        if memory::tag(request, ends, &command.grant.secret) != request.tag {
            return Err(Status::BadTag);
        }
        if u32::from(request.length) != command.bytes(segment.into(), settings) {
            return Err(Status::OutOfBounds);
        }
        Ok(command.local + u64::from(segment) * u64::from(settings.segment))
    }

    /// A segment of so many bytes is in memory, or has been written.
    pub(super) fn land(
        &mut self,
        (slot, segment, generation): (u16, u8, u8),
        now: u64,
        settings: &Settings,
    ) -> Option<(Landed, u32)> {
        let state = self.live(slot, generation)?;
        let command = state.command?;
        let bytes = command.bytes(segment.into(), settings);
        state.done += 1;
        state.open -= bytes;
        let delay = now - state.segments[usize::from(segment)].issued;
        let is_last = state.done == command.segments(settings);
        let done = Done {
            operation: command.operation,
            handed: state.handed,
            value: state.value,
            is_damaged: state.is_damaged,
        };
        self.give_back(command.kind, bytes);
        if is_last {
            self.end(slot);
        }
        let operation = command.operation;
        Some((Landed { operation, delay, done: is_last.then_some(done) }, bytes))
    }

    fn give_back(&mut self, kind: Operation, bytes: u32) {
        match kind {
            Operation::Read => self.asked -= bytes,
            _ => self.offered -= bytes,
        }
    }

    /// A command is refused. Its operation, if there is such a command.
    pub(super) fn refuse(&mut self, response: &Response, from: u16) -> Option<u32> {
        let state = self.live(response.slot, response.generation)?;
        let sent = state.sent;
        let command = state.command.filter(|to| to.to == from)?;
        (u16::from(response.segment) < sent).then(|| {
            self.end(response.slot);
            command.operation
        })
    }

    fn end(&mut self, slot: u16) {
        let state = &mut self.slots[usize::from(slot)];
        let (command, open) = (state.command.take(), std::mem::take(&mut state.open));
        state.generation = state.generation.wrapping_add(1);
        self.ages.remove(slot.into());
        self.free.push_back(slot);
        if let Some(command) = command {
            self.give_back(command.kind, open);
        }
    }

    /// Nothing is under way any more: each slot's next use is another.
    pub(super) fn clear(&mut self) {
        for slot in 0..self.slots.len() as u16 {
            if self.slots[usize::from(slot)].command.is_some() {
                self.end(slot);
            }
        }
        self.starting.clear();
        self.waiting = Default::default();
        (self.asked, self.offered) = (0, 0);
    }

    /// When the oldest command has failed. Unit: ps.
    fn deadline(&self, settings: &Settings) -> Option<u64> {
        Some(self.slots[self.ages.oldest()? as usize].began + settings.deadline)
    }

    /// The oldest command has failed, if its time is over by now. Its operation.
    pub(super) fn expire(&mut self, now: u64, settings: &Settings) -> Option<u32> {
        let slot = self.ages.oldest().filter(|_| self.deadline(settings) <= Some(now))?;
        let operation = self.slots[slot as usize].command?.operation;
        self.end(slot as u16);
        Some(operation)
    }

    /// When something is to be done next. Unit: ps.
    pub(super) fn next_instant(&self, settings: &Settings) -> Option<u64> {
        let starting = self.starting.front().map(|&(began, ..)| began);
        [starting, self.deadline(settings)].into_iter().flatten().min()
    }

    /// Whether something waits to be asked for.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.iter().flatten().any(|queue| !queue.is_empty())
    }

    /// Commands under way, and bytes that they wait for.
    pub(super) fn open(&self) -> (usize, u32) {
        (self.slots.len() - self.free.len(), self.asked + self.offered)
    }
}

/// The address by which the target of a write asks for a segment of it: the writer's slot, generation and segment.
pub(super) const fn offered_address(slot: u16, generation: u8, segment: u8) -> u64 {
    (slot as u64) << 16 | (generation as u64) << 8 | segment as u64
}

/// The bytes of such an address.
const fn offered(address: u64) -> [u8; 8] {
    address.to_be_bytes()
}
