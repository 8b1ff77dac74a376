//! What a run that keeps a record sees of chosen cells, switch by switch: when they came, what they waited for, beside
//! what, and when they went on.
//!
//! A cell is recorded that says so ([`Cell::watch`]); its packet's first TiN has marked it. What other cells do is kept
//! as long as a recorded one waits at the same switch: then it is known what the line carried meanwhile. Nothing here
//! changes what switches do, and switches that keep no record are compiled without ([`Switches::run`]).
//!
//! [`Switches::run`]: super::Switches::run

mod key;
mod lines;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use ::rack::trace::{HOPS_MAX, LineRecorder, Outcome};
use kernel::Time;

use super::calendar::{Place, split};
use super::cell::{BLOCK, Cell, Watch};
use super::settings::{HOP, RECEIVE, TICK_PS};
use super::tin::LANES;
use crate::cells::rma::{Request, Response};
use crate::link::classes::CellKind;
use crate::rma::{self, Access};
pub(crate) use key::Key;
pub(crate) use lines::{Beside, Sent};
use lines::{Log, Watched, busy};

/// No tick.
const NEVER: u64 = u64::MAX;
/// A packet of which nothing was heard for so long has no cells to send any more (our choice: longer than any time-out of
/// IP or remote memory). Unit: ps.
const OVER: u64 = 100_000_000_000;

/// The numbers that a record gives to lines: of what leaves a port, and of what comes from an endpoint into a terminal
/// port.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// By TiN and port.
    pub(crate) outputs: Vec<u32>,
    pub(crate) feeds: Vec<u32>,
    /// How many there are.
    pub(crate) count: u32,
}

impl Numbers {
    /// Place of a TiN's port in the lists.
    pub(crate) const fn at(tin: u16, port: u8) -> usize {
        tin as usize * LANES + port as usize
    }
}

/// Why a cell that was at a switch left it when it did. Unit: ps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Waits {
    /// Behind others in its FIFO.
    pub(crate) fifo: u64,
    /// At its head, for room in the queue of its channel at the output.
    pub(crate) room: u64,
    /// At its head, for its turn at the crossbar: the output or the input was busy.
    pub(crate) matching: u64,
    /// In the queue of the output, whose line was busy.
    pub(crate) line: u64,
    /// There, with an idle line: for credit; or an endpoint did not take it.
    pub(crate) credit: u64,
}

/// A cell at a switch. Unit of instants: ps.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) tin: u16,
    /// The port and channel that it leaves by, or was to leave by.
    pub(crate) port: u8,
    pub(crate) channel: u8,
    /// As it leaves.
    pub(crate) cell: Cell,
    /// What it carries beyond a word.
    pub(crate) content: Vec<u8>,
    /// When its first bit came.
    pub(crate) head: u64,
    /// Since when nothing but others keeps it from leaving.
    pub(crate) joined: u64,
    pub(crate) started: u64,
    pub(crate) sent: u64,
    /// When its first bit is at the next switch, or its last at an endpoint.
    pub(crate) arrived: u64,
    /// How much of that the link takes.
    pub(crate) propagation: u64,
    pub(crate) waits: Waits,
    /// Bytes and cells that waited for its output when it came to the head of its FIFO.
    pub(crate) found: [u32; 2],
    pub(crate) beside: Vec<Beside>,
    pub(crate) outcome: Outcome,
}

/// A cell that comes from an endpoint. Unit of instants: ps.
#[derive(Clone, Debug)]
pub(crate) struct Fed {
    pub(crate) tin: u16,
    pub(crate) port: u8,
    pub(crate) cell: Cell,
    pub(crate) content: Vec<u8>,
    /// Since when its packet waited for that, if the endpoint has said so.
    pub(crate) since: Option<u64>,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) beside: Vec<Beside>,
}

/// Who has the place of a key from an instant on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) key: Key,
    /// Unit: ps.
    pub(crate) at: u64,
    pub(crate) who: Who,
}

/// Who has a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who {
    /// A packet of IP, by its handle.
    Packet(u32),
    /// An operation on memory, by its owner's name for it, that begins at an address and is so long.
    Operation { handle: u32, offset: u64, length: u32 },
    /// Whoever has another place, of which this is about what is so many bytes behind its beginning.
    Of(Key, u64),
}

/// A packet was asked for, and the line of its destination will be busy with it. Unit of instants: ps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) tin: u16,
    pub(crate) group: u8,
    /// When.
    pub(crate) at: u64,
    pub(crate) sent: Sent,
}

/// What has been seen.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) steps: Vec<Step>,
    pub(crate) fed: Vec<Fed>,
    /// Cells that were on a link which is down when they come; when, and why they are lost.
    pub(crate) fates: Vec<(Cell, u64, Outcome)>,
    pub(crate) granted: Vec<Granted>,
    pub(crate) lines: LineRecorder,
    /// There was more to record than is kept.
    pub(crate) is_full: bool,
}

/// A cell that is at a switch.
#[derive(Clone, Debug)]
struct Live {
    place: Place,
    head: u64,
    /// Ticks: it came to the head of its FIFO, crossed.
    first: u64,
    crossed: u64,
    /// Its way: output and channel there; and for how long that had no room when it was chosen, in ticks.
    way: Option<(u8, u8)>,
    closed: u64,
    /// Ticks for which its way had no room.
    room: u64,
    /// The earliest instant of its first bit on the line, once it has crossed.
    ready: u64,
    found: [u32; 2],
    /// On the line.
    step: Option<Step>,
}

/// A channel of an output: for how long it had no room, and since when it has none. Unit: ticks.
#[derive(Clone, Copy, Debug, Default)]
struct Closed {
    sum: u64,
    since: Option<u64>,
}

impl Closed {
    fn by(self, tick: u64) -> u64 {
        self.sum + self.since.map_or(0, |since| tick.saturating_sub(since))
    }
}

/// Who waits at a switch.
#[derive(Clone, Debug, Default)]
struct AtSwitch {
    cells: BTreeSet<(u64, u32)>,
    epoch: u32,
    /// At its endpoints: packets that have cells to send, and since when.
    packets: BTreeMap<Key, u64>,
    packets_epoch: u32,
}

impl AtSwitch {
    fn cells_watched(&self) -> Option<Watched> {
        let &(oldest, _) = self.cells.first()?;
        Some(Watched { epoch: self.epoch, oldest })
    }

    fn packets_watched(&self) -> Option<Watched> {
        let oldest = *self.packets.values().min()?;
        Some(Watched { epoch: self.packets_epoch, oldest })
    }
}

/// The record of the switches of some TiNs, in the making.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    numbers: Arc<Numbers>,
    /// By switch here: its TiN; and the other way round.
    tins: Vec<u16>,
    slots: HashMap<u16, usize>,
    /// By TiN: whether recorded flows end there.
    is_end: Arc<Vec<bool>>,
    at: Vec<AtSwitch>,
    /// By place: lines out of a port, and from an endpoint into it.
    outputs: Vec<Log>,
    feeds: Vec<Log>,
    /// By their places among all cells here.
    live: HashMap<u32, Live>,
    closed: HashMap<(Place, u8), Closed>,
    /// Packets that wait at an endpoint, by TiN and handle.
    waiting: HashMap<(u16, u32), Key>,
    /// Operations of recorded flows: since when their hosts want them, by handle, and by command.
    operations: HashMap<u32, u64>,
    commands: HashMap<Key, u64>,
    /// Segments that hosts are asked for: bytes that have not gone.
    asked: HashMap<Key, u32>,
    /// Who has which place, as far as that was not asked for.
    known: Vec<Known>,
    seen: Seen,
}

impl Recorder {
    /// Of the switches of these TiNs.
    pub(super) fn new(numbers: Arc<Numbers>, tins: Vec<u16>, is_end: Arc<Vec<bool>>) -> Self {
        let places = tins.len() * LANES;
        let seen = Seen {
            steps: Vec::new(),
            fed: Vec::new(),
            fates: Vec::new(),
            granted: Vec::new(),
            lines: LineRecorder::new(numbers.count as usize),
            is_full: false,
        };
        Self {
            numbers,
            at: vec![AtSwitch::default(); tins.len()],
            slots: (0..).zip(&tins).map(|(slot, &tin)| (tin, slot)).collect(),
            tins,
            is_end,
            outputs: vec![Log::default(); places],
            feeds: vec![Log::default(); places],
            live: HashMap::new(),
            closed: HashMap::new(),
            waiting: HashMap::new(),
            operations: HashMap::new(),
            commands: HashMap::new(),
            asked: HashMap::new(),
            known: Vec::new(),
            seen,
        }
    }

    /// Who has come to have which place since this was last asked.
    pub(crate) fn known(&mut self) -> Vec<Known> {
        std::mem::take(&mut self.known)
    }

    /// All that was seen.
    pub(crate) fn into_seen(self) -> Seen {
        self.seen
    }

    fn tin(&self, place: Place) -> (u16, u8) {
        let (slot, port) = split(place);
        (self.tins[slot], port as u8)
    }

    /// A cell goes from an endpoint on the line into a terminal port, and what it carries with it.
    pub(super) fn feeds(
        &mut self,
        place: Place,
        cell: &Cell,
        content: &[u8],
        [start, end]: [u64; 2],
    ) {
        let (slot, _) = split(place);
        let (tin, port) = self.tin(place);
        let (key, bytes) = (Key::of(cell), bytes(cell));
        let number = self.numbers.feeds[Numbers::at(tin, port)];
        self.seen.lines.sends(number, Time::from_ps(start), bytes, 0);
        let at = &self.at[slot];
        let since = match CellKind::from_number(cell.kind) {
            Some(CellKind::WriteReq) => self.commands.get(&key),
            Some(CellKind::Req) => match offered(cell, content) {
                Some(offer) => at.packets.get(&offer),
                None => self.commands.get(&key),
            },
            Some(CellKind::Resp | CellKind::RespError) => at.packets.get(&Key::segment_of(cell)),
            _ => at.packets.get(&key),
        };
        let since = since.copied();
        let log = &mut self.feeds[place as usize];
        if cell.watch().is_recorded() {
            let waited = since.map(|since| log.between([since, start], at.packets_epoch));
            let beside = waited.unwrap_or_default();
            let (cell, content) = (*cell, content.to_vec());
            self.seen.is_full |= self.seen.fed.len() >= HOPS_MAX;
            if !self.seen.is_full {
                self.seen.fed.push(Fed { tin, port, cell, content, since, start, end, beside });
            }
        }
        log.push(Sent { start, end, key, bytes }, at.packets_watched());
        if cell.watch().is_recorded() {
            self.has_answered(tin, cell, content);
        }
    }

    /// A cell of remote memory has gone, which may be the last that an endpoint was asked for.
    fn has_answered(&mut self, tin: u16, cell: &Cell, content: &[u8]) {
        let segment = Key::segment_of(cell);
        match CellKind::from_number(cell.kind) {
            Some(CellKind::Req) => {
                if let Some(offer) = offered(cell, content) {
                    self.expects_no_more(tin, offer);
                }
            }
            Some(CellKind::Resp) => {
                let bytes =
                    Response::of_word(cell.payload).map_or(0, |of| 8 * u32::from(of.length));
                let Some(rest) = self.asked.get_mut(&segment) else { return };
                *rest = rest.saturating_sub(bytes);
                if *rest == 0 {
                    self.asked.remove(&segment);
                    self.expects_no_more(tin, segment);
                }
            }
            Some(CellKind::RespError) => {
                self.asked.remove(&segment);
                self.expects_no_more(tin, segment);
            }
            _ => {}
        }
    }

    /// A host has told its TiN what to do for a recorded flow.
    pub(crate) fn begins(&mut self, tin: u16, job: u32, since: u64) {
        self.expects(tin, Key::job(job), since);
    }

    /// That is done.
    pub(crate) fn ends(&mut self, tin: u16, job: u32) {
        self.expects_no_more(tin, Key::job(job));
    }

    /// An operation is begun, which its flow's host wanted at an instant, if it is recorded.
    pub(crate) fn submits(&mut self, handle: u32, since: Option<u64>) {
        match since {
            Some(since) => self.operations.insert(handle, since),
            None => self.operations.remove(&handle),
        };
    }

    /// An operation is a command of the hardware now, whose first request goes.
    pub(crate) fn commands(&mut self, key: Key, access: &Access, now: u64) {
        let Access { handle, offset, length, .. } = *access;
        let who = Who::Operation { handle, offset, length };
        self.known.push(Known { key, at: now, who });
        match self.operations.get(&handle) {
            Some(&since) => self.commands.insert(key, since),
            None => self.commands.remove(&key),
        };
    }

    /// What is to be written at a host is asked for: it is so many bytes behind the beginning of its writer's command.
    pub(crate) fn fetches(&mut self, key: Key, (of, after): (Key, u64), now: u64) {
        self.known.push(Known { key, at: now, who: Who::Of(of, after) });
    }

    /// A host is asked by a cell for so many bytes, and may answer from an instant on.
    pub(crate) fn is_asked(&mut self, tin: u16, cell: &Cell, bytes: u16, since: u64) {
        if cell.watch().is_recorded() {
            let segment = Key::segment_of(cell);
            self.asked.insert(segment, bytes.into());
            self.expects(tin, segment, since);
        }
    }

    /// A packet has cells to send from an endpoint of a switch.
    fn expects(&mut self, tin: u16, key: Key, since: u64) {
        let Some(&slot) = self.slots.get(&tin) else { return };
        let at = &mut self.at[slot];
        at.packets.retain(|_, begun| *begun + OVER > since);
        at.packets_epoch += u32::from(at.packets.is_empty());
        at.packets.insert(key, since);
    }

    /// It has none any more.
    fn expects_no_more(&mut self, tin: u16, key: Key) {
        if let Some(&slot) = self.slots.get(&tin) {
            self.at[slot].packets.remove(&key);
        }
    }

    /// A packet of IP has a place in the ingress buffer of a TiN, at the port of an address.
    pub(crate) fn takes(&mut self, tin: u16, key: Key, packet: u32, (now, watch): (u64, Watch)) {
        // Its request may go at the beginning of the cycle in which it comes.
        let at = now / TICK_PS * TICK_PS;
        self.known.push(Known { key, at, who: Who::Packet(packet) });
        if watch.is_recorded() {
            self.expects(tin, key, now);
            self.waiting.insert((tin, packet), key);
        }
    }

    /// It is asked for, and will be put together at another place.
    pub(crate) fn clears(&mut self, tin: u16, packet: u32, there: Key, now: u64) {
        self.known.push(Known { key: there, at: now, who: Who::Packet(packet) });
        if let Some(before) = self.waiting.remove(&(tin, packet)) {
            self.expects_no_more(tin, before);
            self.expects(tin, there, now);
        }
    }

    /// All of its cells have gone.
    pub(crate) fn has_sent(&mut self, tin: u16, there: Key) {
        self.expects_no_more(tin, there);
    }

    /// A packet is lost at a TiN.
    pub(crate) fn loses(&mut self, tin: u16, packet: u32) {
        if let Some(key) = self.waiting.remove(&(tin, packet)) {
            self.expects_no_more(tin, key);
        }
    }

    /// A packet is asked for at its destination, whose line of a group of ports has work with it then.
    pub(crate) fn grants(&mut self, (tin, group): (u16, u8), at: u64, sent: Sent) {
        if self.is_end[usize::from(tin)] {
            self.seen.granted.push(Granted { tin, group, at, sent });
        }
    }

    /// A cell joins a FIFO.
    pub(super) fn enters(&mut self, place: Place, index: u32, cell: &Cell) {
        if !cell.watch().is_recorded() {
            return;
        }
        let (slot, _) = split(place);
        let head = cell.ready - HOP.as_ps();
        let at = &mut self.at[slot];
        at.epoch += u32::from(at.cells.is_empty());
        at.cells.insert((head, index));
        let live = Live {
            place,
            head,
            first: NEVER,
            crossed: NEVER,
            way: None,
            closed: 0,
            room: 0,
            ready: 0,
            found: [0; 2],
            step: None,
        };
        self.live.insert(index, live);
    }

    /// Whether a cell is recorded that is here.
    pub(super) fn has(&self, index: u32) -> bool {
        self.live.contains_key(&index)
    }

    /// A cell at the head of its FIFO asks for an output's channel, for which so much waits.
    pub(super) fn asks(&mut self, index: u32, way: (u8, u8), found: [u32; 2], tick: u64) {
        let Some(live) = self.live.get_mut(&index) else { return };
        let closed = |way: (u8, u8)| {
            let place = live.place & !(LANES as Place - 1) | Place::from(way.0);
            self.closed.get(&(place, way.1)).map_or(0, |closed| closed.by(tick))
        };
        if let Some(before) = live.way {
            let so_far = closed(before) - live.closed;
            live.room += so_far;
        }
        live.closed = closed(way);
        live.way = Some(way);
        if live.first == NEVER {
            (live.first, live.found) = (tick, found);
        }
    }

    /// The queue of an output's channel has no room for a largest cell, or has it again.
    pub(super) fn room(&mut self, place: Place, channel: u8, has_room: bool, tick: u64) {
        let closed = self.closed.entry((place, channel)).or_default();
        match (has_room, closed.since) {
            (true, Some(_)) => (closed.sum, closed.since) = (closed.by(tick), None),
            (false, None) => closed.since = Some(tick),
            _ => {}
        }
    }

    /// A cell crosses.
    pub(super) fn crosses(&mut self, index: u32, ready: u64, tick: u64) {
        let Some(live) = self.live.get_mut(&index) else { return };
        if let Some((output, channel)) = live.way {
            let place = live.place & !(LANES as Place - 1) | Place::from(output);
            let closed = self.closed.get(&(place, channel)).map_or(0, |closed| closed.by(tick));
            live.room += closed - live.closed;
        }
        (live.crossed, live.ready) = (tick, ready);
    }

    /// A cell goes on the line of a port, for whose queues so many bytes still wait.
    pub(super) fn sends(&mut self, going: &Going<'_>, waiting: u32) {
        let &Going { place, index, cell, .. } = going;
        let (slot, _) = split(place);
        let (tin, port) = self.tin(place);
        let (key, bytes) = (Key::of(cell), bytes(cell));
        let number = self.numbers.outputs[Numbers::at(tin, port)];
        let [start, free] = going.line;
        self.seen.lines.sends(number, Time::from_ps(start), bytes, waiting);
        if cell.watch().is_recorded() {
            let (log, epoch) = (&self.outputs[place as usize], self.at[slot].epoch);
            if let Some(live) = self.live.get_mut(&index) {
                live.step = Some(live.goes(going, (tin, port), (log, epoch)));
            }
        }
        let sent = Sent { start, end: free, key, bytes };
        self.outputs[place as usize].push(sent, self.at[slot].cells_watched());
    }

    /// An ordered set goes on the line of a port.
    pub(super) fn sends_set(&mut self, place: Place, [start, end]: [u64; 2]) {
        let (slot, _) = split(place);
        let sent = Sent { start, end, key: Key::NONE, bytes: BLOCK };
        self.outputs[place as usize].push(sent, self.at[slot].cells_watched());
    }

    /// A cell has left a switch.
    pub(super) fn leaves(&mut self, index: u32) {
        let Some(live) = self.live.remove(&index) else { return };
        let (slot, _) = split(live.place);
        self.at[slot].cells.remove(&(live.head, index));
        if let Some(step) = live.step {
            self.see(step);
        }
    }

    /// A cell is lost at a switch, or as it goes on the line.
    pub(super) fn is_lost(&mut self, index: u32, cell: &Cell, why: Outcome, now: u64) {
        if !cell.watch().is_recorded() {
            return;
        }
        let Some(live) = self.live.remove(&index) else {
            // It has come over a link, and is let in no more.
            return self.seen.fates.push((*cell, now, why));
        };
        let (slot, from) = split(live.place);
        self.at[slot].cells.remove(&(live.head, index));
        let tin = self.tins[slot];
        let (port, channel) = live.way.unwrap_or((from as u8, 0));
        let step = live.step.unwrap_or_else(|| Step {
            tin,
            port,
            channel,
            cell: *cell,
            content: Vec::new(),
            head: live.head,
            joined: now,
            started: now,
            sent: now,
            arrived: now,
            propagation: 0,
            waits: Waits::default(),
            found: live.found,
            beside: Vec::new(),
            outcome: why,
        });
        self.see(Step { outcome: why, ..step });
    }

    fn see(&mut self, step: Step) {
        self.seen.is_full |= self.seen.steps.len() >= HOPS_MAX;
        if !self.seen.is_full {
            self.seen.steps.push(step);
        }
    }
}

/// A cell that goes on a line. Unit of instants: ps.
pub(super) struct Going<'a> {
    pub(super) place: Place,
    pub(super) channel: u8,
    pub(super) index: u32,
    pub(super) cell: &'a Cell,
    pub(super) content: &'a [u8],
    /// From when until when the line is busy with it.
    pub(super) line: [u64; 2],
    /// How long its link takes; `None`: it goes to an endpoint, where its last bit is at `tail`, and a line as slow as
    /// those between switches would take so long for it.
    pub(super) delay: Option<u64>,
    pub(super) tail: u64,
    pub(super) slow: u64,
}

impl Live {
    /// What is to be told of a cell that leaves.
    fn goes(&self, going: &Going<'_>, (tin, port): (u16, u8), (log, epoch): (&Log, u32)) -> Step {
        let [start, free] = going.line;
        // To an endpoint its last bit comes as fast as it could have come in: that counts as its time on the line.
        let (joined, started, sent, arrived, ready) = match going.delay {
            Some(delay) => {
                let joined = self.head + HOP.as_ps();
                (joined, start, free, start + delay, self.ready.max(joined))
            }
            None => {
                let joined = self.head + RECEIVE.as_ps();
                let started = (going.tail - going.slow).max(joined);
                let ready = (self.crossed * TICK_PS).clamp(joined, started);
                (joined, started, going.tail, going.tail, ready)
            }
        };
        let inside = ready - joined;
        let at_head = inside.min((self.crossed - self.first) * TICK_PS);
        let room = at_head.min(self.room * TICK_PS);
        let line = busy(&log.between([ready, started], epoch)).min(started - ready);
        let waits = Waits {
            fifo: inside - at_head,
            room,
            matching: at_head - room,
            line,
            credit: started - ready - line,
        };
        Step {
            tin,
            port,
            channel: going.channel,
            cell: *going.cell,
            content: going.content.to_vec(),
            head: self.head,
            joined,
            started,
            sent,
            arrived,
            propagation: going.delay.unwrap_or(0),
            waits,
            found: self.found,
            beside: log.between([joined, started], epoch),
            outcome: Outcome::Arrived,
        }
    }
}

/// The segment of a writer's command that a request asks for, if it is for what is to be written.
pub(crate) fn offered(cell: &Cell, content: &[u8]) -> Option<Key> {
    let request = Request::of_parts(cell.payload, content).ok()?;
    let (slot, generation, segment) = rma::offer(&request)?;
    Some(Key::command(cell.to, (slot, generation)).segment(segment))
}

fn bytes(cell: &Cell) -> u16 {
    u16::from(cell.blocks) * BLOCK
}
