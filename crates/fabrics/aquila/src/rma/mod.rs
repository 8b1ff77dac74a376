//! Remote memory (1RMA): hosts read, write and change each other's memory.
//!
//! Models: Aquila §3.4 (M501 to M515): a read is a request, which is all the solicitation there is, and responses, one for
//! each completion on the target's bus: two crossings, where a question and an answer over IP take six. Hardware
//! knows commands in slots (`initiator`), requests of others (`target`) and regions of memory ([`memory`]); software
//! holds back and tries again (`control`).
//!
//! An [`Engine`] is that of any set of TiNs: it knows of others what cells tell. It acts at the first cycle at which
//! what it acts upon has happened. What memory holds is kept where somebody looks ([`Memory::fill`]), and what atomic
//! operations have made of it; else lengths alone count. The tag of a response is not computed: whether its cell was
//! damaged is known.

mod control;
mod gather;
mod initiator;
pub mod memory;
pub mod open_loop;
mod pcie;
mod pieces;
mod power;
mod reset;
mod settings;
mod target;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use kernel::{Histogram, Time};

use crate::address::{Address, Endpoint};
use crate::cells::rma::{Operation, Request, Response, Status};
use crate::config;
use crate::link::classes::{CellKind, Half};
use crate::switch::cell::{BLOCKS_MAX, Cell, Watch};
use crate::switch::record::Key;
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Room, Switches, Wishes};
use crate::topology::Shape;
use control::Software;
use initiator::{Heard, Initiator};
pub use memory::{Grant, Memory, Permissions};
use pcie::Pipe;
use pieces::Pieces;
pub use pieces::piece;
use power::Sleeper;
use settings::Settings;
use target::{Answer, Asked, Bench, Completion, FETCH_FIRST, Target};

/// The first terminal port of a host, and how many it has (M102).
const TERMINALS: [(u8, u8); 2] = [(8, 4), (12, 4)];
/// The host of a TiN that a terminal port belongs to, if it is one of remote memory's (M102).
#[must_use]
pub fn host_of(terminal: u8) -> Option<usize> {
    TERMINALS.iter().position(|(first, count)| (*first..first + count).contains(&terminal))
}

/// The endpoints of the hosts of a TiN.
pub const HOSTS: [Endpoint; 2] = [Endpoint::RMA_HOST_0, Endpoint::RMA_HOST_1];
/// Both halves, the one first that goes first.
const HALVES: [Half; 2] = [Half::LowLatency, Half::Bulk];
/// Blocks of a request, and of one with operands (§3.4).
const REQUEST_BLOCKS: u8 = 6;
const ATOMIC_BLOCKS: u8 = 8;
/// No instant, no TiN.
const NEVER: u64 = u64::MAX;
const NONE: u32 = u32::MAX;

/// What to do with another host's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// To read it into the own memory.
    Read,
    /// To write it from the own memory.
    Write,
    /// To replace a word by `new`, if it is `expected`.
    CompareAndSwap {
        /// What it should be.
        expected: u64,
        /// What it is then.
        new: u64,
    },
    /// To add to a word.
    FetchAndAdd(u64),
}

/// An operation on another host's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The owner's name for it.
    pub handle: u32,
    /// GNet address of the other host's memory.
    pub to: u16,
    /// What to do.
    pub kind: Kind,
    /// At least 1, at most 256 segments; 8 of an atomic operation. Unit: bytes.
    pub length: u32,
    /// By what it may.
    pub grant: Grant,
    /// Where in the region.
    pub offset: u64,
    /// Where in the own memory.
    pub local: u64,
    /// The half of the channels that it takes, if not the one configured.
    pub half: Option<Half>,
    /// Who looks at its cells, here and at its target.
    pub watch: Watch,
}

/// Why an operation has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// Its target refuses it.
    Refused(Status),
    /// Not all of it had come by its deadline, nor in any retry.
    Late,
}

/// What becomes of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is done.
    Done {
        /// The owner's name for it.
        handle: u32,
        /// When its owner asked for it.
        since: Time,
        /// When software handed it to the hardware, the last time.
        handed: Time,
        /// When software knows.
        at: Time,
        /// How often it was tried again.
        retries: u8,
        /// What an atomic operation found.
        value: u64,
        /// Whether bits of it were flipped, and there was no tag to tell.
        is_damaged: bool,
    },
    /// It has failed.
    Failed {
        /// The owner's name for it.
        handle: u32,
        /// Why.
        why: Failure,
        /// When.
        at: Time,
    },
}

impl Outcome {
    /// The owner's name for the operation.
    #[must_use]
    pub const fn handle(&self) -> u32 {
        let (Self::Done { handle, .. } | Self::Failed { handle, .. }) = self;
        *handle
    }
}

/// What has happened so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Operations that were asked for.
    pub operations: u64,
    /// Those that are done, and their bytes.
    pub done: u64,
    /// Bytes of operations that are done.
    pub done_bytes: u64,
    /// Those that have failed for good.
    pub failed: u64,
    /// Commands that had not ended by their deadlines, and those that were tried again.
    pub late: u64,
    /// Operations that were tried again.
    pub retries: u64,
    /// Requests that came to their targets.
    pub requests: u64,
    /// Those of them that were refused, by status.
    pub refused: [u64; 6],
    /// Responses that came.
    pub responses: u64,
    /// Those of them for uses of slots that are over (I64).
    pub stale: u64,
    /// Those of them that had come before, or that nobody had asked for.
    pub strays: u64,
    /// Cells that bit errors made unreadable, or that make no sense here.
    pub unreadable: u64,
    /// Most requests that waited at a host.
    pub queue_max: u32,
    /// Most bytes that a host had asked for and were not there.
    pub asked_max: u32,
}

impl Counts {
    /// Adds those of other TiNs.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.done += other.done;
        self.done_bytes += other.done_bytes;
        self.failed += other.failed;
        self.late += other.late;
        self.retries += other.retries;
        self.requests += other.requests;
        self.refused.iter_mut().zip(other.refused).for_each(|(own, other)| *own += other);
        self.responses += other.responses;
        self.stale += other.stale;
        self.strays += other.strays;
        self.unreadable += other.unreadable;
        self.queue_max = self.queue_max.max(other.queue_max);
        self.asked_max = self.asked_max.max(other.asked_max);
    }
}

/// What is in memory at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Landing {
    /// A segment of a command.
    Segment { slot: u16, segment: u8, generation: u8 },
    /// What was fetched for a write.
    Fetch { place: u16, generation: u8 },
}

/// A host.
#[derive(Clone, Debug)]
struct Host {
    address: u16,
    memory: Memory,
    software: Software,
    initiator: Initiator,
    target: Target,
    /// The bus from memory and that to it.
    from_memory: Pipe,
    to_memory: Pipe,
    sleeper: Sleeper,
    landings: VecDeque<(u64, Landing)>,
    /// Whether the next request is for a write of others, if there is one.
    fetches_next: bool,
    /// Channels that are not taken now.
    stalled: u32,
}

/// A request that goes out.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    /// GNet address of the host that is asked.
    to: u16,
    request: Request,
    watch: Watch,
    /// The operation that it is the first request of, by its place in software.
    begins: Option<u32>,
}

/// Slot, generation and segment of a writer's command, if a request is for what is to be written.
pub(crate) fn offer(request: &Request) -> Option<(u16, u8, u8)> {
    let [.., generation, segment] = request.address.to_be_bytes();
    (request.slot >= FETCH_FIRST).then_some(((request.address >> 16) as u16, generation, segment))
}

/// A TiN.
#[derive(Clone, Debug)]
struct Tin {
    id: u16,
    hosts: [Host; 2],
    /// The earliest wake that was asked for and has not come. Unit: ps.
    armed: u64,
}

/// Remote memory at a set of TiNs.
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
    shape: Shape,
    tins: Vec<Tin>,
    /// By TiN of the Clique: its place here, or none.
    places: Vec<u32>,
    outcomes: VecDeque<(u16, Outcome)>,
    counts: Counts,
    /// Requests that a request found waiting.
    found: Histogram,
    /// Which bytes are in cells that are on their way out of here, where somebody asks.
    pieces: Option<Pieces>,
}

impl Engine {
    /// The engines of `own` TiNs, idle. `hops` is what cells start with, `seed` what secrets are made from.
    #[must_use]
    pub fn new(rma: &config::Rma, shape: &Shape, own: &[u16], hops: u8, seed: u64) -> Self {
        let settings = Settings::new(rma, hops);
        let mut places = vec![NONE; usize::from(shape.tins())];
        own.iter().enumerate().for_each(|(place, &id)| places[usize::from(id)] = place as u32);
        let host = |id: u16, endpoint: Endpoint| {
            let (pod, place) = shape.split(id);
            let address = Address::new(pod, place, endpoint).bits();
            Host {
                address,
                memory: memory_of(address, rma.regions, seed),
                software: Software::default(),
                initiator: Initiator::default(),
                target: Target::default(),
                from_memory: Pipe::default(),
                to_memory: Pipe::default(),
                sleeper: Sleeper::new(seed, address.into()),
                landings: VecDeque::new(),
                fetches_next: false,
                stalled: 0,
            }
        };
        let tin = |&id: &u16| Tin { id, hosts: HOSTS.map(|end| host(id, end)), armed: NEVER };
        let tins = own.iter().map(tin).collect();
        let (outcomes, counts, found) = (VecDeque::new(), Counts::default(), Histogram::new());
        Self { settings, shape: *shape, tins, places, outcomes, counts, found, pieces: None }
    }

    /// What has become of an operation, and the TiN of its host: the first thing that was not asked for yet.
    pub fn next_outcome(&mut self) -> Option<(u16, Outcome)> {
        self.outcomes.pop_front()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many requests a request finds waiting: the 99th percentile.
    #[must_use]
    pub fn found_p99(&self) -> u64 {
        self.found.quantile(0.99).unwrap_or(0)
    }

    /// The GNet address of a host's memory.
    #[must_use]
    pub fn address(&self, tin: u16, host: usize) -> u16 {
        let (pod, place) = self.shape.split(tin);
        Address::new(pod, place, HOSTS[host]).bits()
    }

    /// A host's memory.
    ///
    /// # Panics
    /// If the TiN is not here.
    pub fn memory(&mut self, tin: u16, host: usize) -> &mut Memory {
        &mut self.tins[self.places[usize::from(tin)] as usize].hosts[host].memory
    }

    /// The memory of a host that may be another engine's, with nothing registered: its secrets are the same there.
    #[must_use]
    pub fn memory_of(&self, tin: u16, host: usize, seed: u64) -> Memory {
        memory_of(self.address(tin, host), 1, seed)
    }

    /// A host asks for something.
    ///
    /// # Panics
    /// If the TiN is not here, or the length is none of an operation.
    pub fn submit(&mut self, tin: u16, host: usize, access: &Access, wishes: &mut Wishes) {
        let most = config::SEGMENTS_MAX * self.settings.segment;
        let length = access.length;
        assert!((1..=most).contains(&length), "{length} B; an operation has 1 to {most}");
        let line = self.line(access.to).expect("an operation is for a host of the Clique");
        self.counts.operations += 1;
        let (place, now) = (self.places[usize::from(tin)] as usize, wishes.now().as_ps());
        let software = &mut self.tins[place].hosts[host].software;
        software.take(access, line, now, &self.settings);
        self.run(place, host, wishes);
        self.arm(place, wishes);
    }

    /// The number of the host whose memory an address is; `None` if it is no memory's.
    fn line(&self, address: u16) -> Option<u32> {
        let address = Address::from_bits(address);
        let host = HOSTS.iter().position(|&host| host == address.endpoint())?;
        let is_here = address.pod() < self.shape.pods && address.tin() < self.shape.tins_per_pod;
        let tin = is_here.then(|| self.shape.tin(address.pod(), address.tin()))?;
        Some(2 * u32::from(tin) + host as u32)
    }

    /// A cell has come that is none of memory's.
    fn refuse(&mut self, cell: &Cell) {
        debug_assert!(false, "{cell:?} is none of remote memory's");
        self.counts.unreadable += 1;
    }

    fn hear_request(
        &mut self,
        (place, host): (usize, usize),
        (cell, kind): (&Cell, CellKind),
        at: u64,
        wishes: &mut Wishes,
    ) {
        let request = Request::of_parts(cell.payload, wishes.enclosed(cell)).ok();
        let is_known = |request: &Request| {
            let is_read = request.operation == Operation::Read;
            is_read == (kind == CellKind::Req) && self.line(cell.from).is_some()
        };
        // Where bits are wrong nobody knows which: it is not even known whom to tell.
        let Some(request) = request.filter(|request| !cell.is_damaged() && is_known(request))
        else {
            self.counts.unreadable += 1;
            return;
        };
        self.counts.requests += 1;
        let asked = Asked { request, from: cell.from, at, watch: cell.watch() };
        let id = self.tins[place].id;
        wishes.record(|recorder| {
            // Memory needs its time; what is to be written can be asked for at once.
            let is_offer = request.operation == Operation::Write;
            let since = if is_offer { at } else { at + self.settings.request_time };
            recorder.is_asked(id, cell, request.length, since);
        });
        let waiting = self.tins[place].hosts[host].target.take(asked) as u32;
        self.counts.queue_max = self.counts.queue_max.max(waiting);
        self.found.record(u64::from(waiting) - 1);
        self.serve(place, host, wishes);
    }

    fn hear_response(
        &mut self,
        (place, host): (usize, usize),
        cell: &Cell,
        at: u64,
        wishes: &Wishes,
    ) {
        let settings = &self.settings;
        let response = Response::of_word(cell.payload).ok();
        let is_fine =
            |of: &Response| of.status == Status::Done && !(cell.is_damaged() && settings.tag > 0);
        let Some(response) = response.filter(is_fine) else {
            self.counts.unreadable += 1;
            return;
        };
        self.counts.responses += 1;
        let host = &mut self.tins[place].hosts[host];
        let bytes = wishes.enclosed(cell);
        let heard = if response.slot >= FETCH_FIRST {
            host.target.hear(&response, cell.from, settings)
        } else {
            let value = bytes.first_chunk().map_or(0, |&word| u64::from_be_bytes(word));
            host.initiator.hear((&response, cell.from), (value, cell.is_damaged()), settings)
        };
        match heard {
            Heard::Stale => self.counts.stale += 1,
            Heard::Stray => self.counts.strays += 1,
            Heard::Bytes(address, count, last) => {
                host.memory.write(address, bytes.get(..count as usize).unwrap_or(&[]));
                let from = at + settings.landing_time;
                let landed = host.to_memory.carry(from, (count, count), settings.rate);
                if let Some(landing) = last {
                    host.landings.push_back((landed, landing));
                }
            }
        }
    }

    fn hear_refusal(&mut self, (place, host): (usize, usize), cell: &Cell, wishes: &mut Wishes) {
        let response = Response::of_word(cell.payload).ok();
        let is_fine = |of: &Response| of.status != Status::Done && !cell.is_damaged();
        let Some(response) = response.filter(is_fine) else {
            self.counts.unreadable += 1;
            return;
        };
        self.counts.responses += 1;
        let Host { target, initiator, .. } = &mut self.tins[place].hosts[host];
        if response.slot >= FETCH_FIRST {
            initiator.asked -= target.refuse(&response, cell.from);
        } else if let Some(operation) = initiator.refuse(&response, cell.from) {
            let why = control::failure(response.status);
            self.fail((place, host), (operation, why), wishes);
        } else {
            self.counts.stale += 1;
        }
        self.run(place, host, wishes);
    }

    /// A command has failed.
    fn fail(
        &mut self,
        (place, host): (usize, usize),
        (operation, why): (u32, Failure),
        wishes: &Wishes,
    ) {
        let tin = &mut self.tins[place];
        let now = wishes.now().as_ps();
        let software = &mut tin.hosts[host].software;
        self.counts.late += u64::from(why == Failure::Late);
        if let Some(outcome) = software.fail((operation, why), now, &self.settings) {
            self.counts.failed += 1;
            self.outcomes.push_back((tin.id, outcome));
        }
    }

    /// Does what is due at a host by now.
    fn run(&mut self, place: usize, host: usize, wishes: &mut Wishes) {
        let now = wishes.now().as_ps();
        self.land((place, host), now);
        while let Some(late) = self.tins[place].hosts[host].initiator.expire(now, &self.settings) {
            self.fail((place, host), (late, Failure::Late), wishes);
        }
        let (tin, settings) = (&mut self.tins[place], &self.settings);
        let Host { software, initiator, target, .. } = &mut tin.hosts[host];
        while let Some(bytes) = target.expire(now, settings) {
            initiator.asked -= bytes;
        }
        self.counts.retries += software.fire(now);
        while let Some(outcome) = software.next_end(now) {
            self.counts.done += 1;
            self.outcomes.push_back((tin.id, outcome));
        }
        software.hand(initiator, now, settings);
        initiator.begin(now);
        self.serve(place, host, wishes);
        let host_state = &self.tins[place].hosts[host];
        let has_cells = host_state.target.has_cells(now, &self.settings);
        if has_cells || host_state.initiator.is_waiting() {
            let (first, count) = TERMINALS[host];
            (first..first + count).for_each(|terminal| wishes.inject(terminal));
        }
    }

    /// Takes note of what is in memory by now.
    fn land(&mut self, (place, host): (usize, usize), now: u64) {
        let (host, settings) = (&mut self.tins[place].hosts[host], &self.settings);
        while let Some(&(at, landing)) = host.landings.front().filter(|(at, _)| *at <= now) {
            host.landings.pop_front();
            match landing {
                Landing::Segment { slot, segment, generation } => {
                    let landed = host.initiator.land((slot, segment, generation), at, settings);
                    if let Some((landed, bytes)) = landed {
                        self.counts.done_bytes += u64::from(bytes);
                        host.software.land(&landed, bytes, at, settings);
                    }
                }
                Landing::Fetch { place, generation } => {
                    host.initiator.asked -= host.target.land(place, generation);
                }
            }
        }
    }

    /// Begins requests for which there is time and room, and takes more or less of them.
    fn serve(&mut self, place: usize, host: usize, wishes: &mut Wishes) {
        let settings = &self.settings;
        let state = &mut self.tins[place].hosts[host];
        let Host { target, memory, initiator: offers, from_memory: pipe, sleeper, .. } = state;
        let (own, now) = (state.address, wishes.now().as_ps());
        let mut bench = Bench { memory, offers, pipe, sleeper, own, now, settings };
        target.serve(&mut bench, &mut self.counts.refused);
        // What waits in a full queue's stead waits in the fabric (M506, M111).
        let is_full = [0, 1].map(|kind| state.target.waiting(kind) >= settings.queue);
        let mut stalled = 0;
        for (kind, _) in
            [CellKind::Req, CellKind::WriteReq].into_iter().zip(is_full).filter(|&(_, full)| full)
        {
            stalled |= HALVES.iter().fold(0, |of, &half| of | kind.channels(half));
        }
        let before = std::mem::replace(&mut state.stalled, stalled);
        if before != stalled {
            let (first, count) = TERMINALS[host];
            for terminal in first..first + count {
                wishes.stall(terminal, stalled & !before);
                wishes.resume(terminal, before & !stalled);
            }
        }
    }

    fn next_cell(
        &mut self,
        (place, host): (usize, usize),
        half: Half,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        let (settings, now) = (&self.settings, wishes.now().as_ps());
        let state = &mut self.tins[place].hosts[host];
        if room.fits(CellKind::Req.class(half), REQUEST_BLOCKS) {
            let request = state.solicit(half, now, settings);
            self.counts.asked_max = self.counts.asked_max.max(state.initiator.asked);
            if let Some(request) = request {
                return Some(state.request(&request, half, settings, wishes));
            }
        }
        if room.fits(CellKind::Resp.class(half), BLOCKS_MAX) {
            if let Some(answer) = state.target.answer(half, now) {
                return Some(state.answer(&answer, half, settings));
            }
            if let Some(completion) = state.target.complete(half, now, settings) {
                let cell = state.complete(&completion, half, settings, wishes);
                if let Some(pieces) = &mut self.pieces {
                    pieces.keep(&cell, &completion);
                }
                self.serve(place, host, wishes);
                return Some(cell);
            }
        }
        let state = &mut self.tins[place].hosts[host];
        if room.fits(CellKind::WriteReq.class(half), ATOMIC_BLOCKS) {
            let request =
                state.initiator.next((true, half), (state.address, now), &self.settings)?;
            return Some(state.request(&request, half, &self.settings, wishes));
        }
        None
    }

    /// Asks to be woken at the first cycle at which there is something to do.
    fn arm(&mut self, place: usize, wishes: &mut Wishes) {
        let (settings, now) = (&self.settings, wishes.now().as_ps());
        let tin = &mut self.tins[place];
        let next = tin.hosts.iter().filter_map(|host| host.next_instant(now, settings)).min();
        let Some(at) = next else { return };
        let at = at.next_multiple_of(TICK.as_ps());
        if at < tin.armed {
            tin.armed = at;
            wishes.wake_at(Time::from_ps(at));
        }
    }

    /// Checks that nothing is left: every slot and place is free, no byte is asked for or being read (I60, I61).
    ///
    /// # Errors
    /// What is left, where.
    pub fn check_home(&self) -> Result<(), String> {
        for (tin, host) in self.tins.iter().flat_map(|tin| tin.hosts.iter().map(move |h| (tin, h)))
        {
            let (open, landings) = (host.software.open(), host.landings.len());
            let (commands, bytes) = host.initiator.open();
            let (requests, fetches) = host.target.open();
            let sum = open + landings + commands + bytes as usize + requests + fetches;
            if sum > 0 || host.stalled != 0 {
                return Err(format!(
                    "TiN {}, endpoint {}: {open} operations, {commands} commands with {bytes} B, {landings} segments \
                     that land, {requests} requests, {fetches} writes that are fetched; stalled {:#x}",
                    tin.id,
                    Address::from_bits(host.address).endpoint().number(),
                    host.stalled
                ));
            }
        }
        Ok(())
    }
}

impl Endpoints for Engine {
    fn deliver(&mut self, tin: u16, _: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        let kind = CellKind::from_number(cell.kind);
        let Some(own) = self.line(cell.to) else { return self.refuse(cell) };
        let (place, host) = (self.places[usize::from(tin)] as usize, own as usize % 2);
        match kind {
            Some(kind @ (CellKind::Req | CellKind::WriteReq)) => {
                self.hear_request((place, host), (cell, kind), at.as_ps(), wishes);
            }
            Some(CellKind::Resp) => self.hear_response((place, host), cell, at.as_ps(), wishes),
            Some(CellKind::RespError) => self.hear_refusal((place, host), cell, wishes),
            _ => return self.refuse(cell),
        }
        self.arm(place, wishes);
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        let host = host_of(terminal)?;
        let place = self.places[usize::from(tin)] as usize;
        let cell =
            HALVES.into_iter().find_map(|half| self.next_cell((place, host), half, room, wishes));
        // After a cell the port asks again, until there is none.
        if cell.is_none() {
            self.arm(place, wishes);
        }
        cell
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        let place = self.places[usize::from(tin)] as usize;
        if self.tins[place].armed <= wishes.now().as_ps() {
            self.tins[place].armed = NEVER;
        }
        (0..2).for_each(|host| self.run(place, host, wishes));
        self.arm(place, wishes);
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

fn memory_of(address: u16, regions: u16, seed: u64) -> Memory {
    Memory::new(seed << 16 | u64::from(address), regions)
}

impl Host {
    /// The next request for bytes: of writes of others and of own reads by turns.
    fn solicit(&mut self, half: Half, now: u64, settings: &Settings) -> Option<Outgoing> {
        let Self { target, initiator, memory, address, fetches_next, .. } = self;
        for is_fetch in [*fetches_next, !*fetches_next] {
            let request = match is_fetch {
                true => target.fetch(half, (*address, memory, now), &mut initiator.asked, settings),
                false => initiator.next((false, half), (*address, now), settings),
            };
            if request.is_some() {
                *fetches_next = !is_fetch;
                return request;
            }
        }
        None
    }

    /// A request as a cell.
    fn request(
        &self,
        &Outgoing { to, ref request, watch, begins }: &Outgoing,
        half: Half,
        settings: &Settings,
        wishes: &mut Wishes,
    ) -> Cell {
        let is_read = request.operation == Operation::Read;
        let kind = if is_read { CellKind::Req } else { CellKind::WriteReq };
        let blocks = if request.operation.is_atomic() { ATOMIC_BLOCKS } else { REQUEST_BLOCKS };
        let key = Key::command(self.address, (request.slot, request.generation));
        let now = wishes.now().as_ps();
        wishes.record(|recorder| match (begins, offer(request)) {
            (Some(operation), _) => recorder.commands(key, self.software.access(operation), now),
            (None, Some((slot, generation, segment))) => {
                let of = Key::command(to, (slot, generation));
                recorder.fetches(key, (of, u64::from(segment) * u64::from(settings.segment)), now);
            }
            _ => {}
        });
        let (word, rest) = request.parts();
        let class = kind.class(half);
        let cell = Cell::new(self.address, to, class, kind as u8, blocks, settings.hops);
        wishes.enclose(cell.with_payload(word).watched(watch), &rest)
    }

    /// A response without bytes as a cell.
    fn answer(&self, answer: &Answer, half: Half, settings: &Settings) -> Cell {
        let is_done = answer.response.status == Status::Done;
        let kind = if is_done { CellKind::Resp } else { CellKind::RespError };
        let class = kind.class(half);
        let cell = Cell::new(self.address, answer.to, class, kind as u8, 2, settings.hops);
        cell.with_payload(answer.response.word()).watched(answer.watch)
    }

    /// A response with bytes as a cell.
    fn complete(
        &self,
        of: &Completion,
        half: Half,
        settings: &Settings,
        wishes: &mut Wishes,
    ) -> Cell {
        let (kind, blocks) = (CellKind::Resp, settings.response_blocks(of.length));
        let class = kind.class(half);
        let cell = Cell::new(self.address, of.answer.to, class, kind as u8, blocks, settings.hops);
        let cell = cell.with_payload(of.answer.response.word()).watched(of.answer.watch);
        match of.value {
            Some(value) => wishes.enclose(cell, &value.to_be_bytes()),
            None => match self.memory.read(of.address, of.length as usize) {
                [] => cell,
                bytes => wishes.enclose(cell, bytes),
            },
        }
    }

    /// When something is to be done next, after now. Unit: ps.
    fn next_instant(&self, now: u64, settings: &Settings) -> Option<u64> {
        let landing = self.landings.front().map(|&(at, _)| at);
        let hardware = [landing, self.initiator.next_instant(settings)];
        let others = [self.software.next_instant(), self.target.next_instant(now, settings)];
        hardware.into_iter().chain(others).flatten().filter(|&at| at > now).min()
    }
}
