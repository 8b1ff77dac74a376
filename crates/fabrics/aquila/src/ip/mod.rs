//! IP over GNet: how packets cross the fabric, asked for by where they go.
//!
//! Models: Aquila §3.3 (M401, M406 to M422): a packet waits in the ingress buffer of its TiN (`ingress`); a request to
//! send (RTS) goes to the TiN of its destination and waits there for its turn (`clearing`); a clearance (CTS) comes back
//! once bandwidth and a place are free; the data goes in cells by any way, is put together and leaves in order
//! (`egress`). Where too many wait, the answer is: drop it (CTD), which costs no bandwidth.
//!
//! An [`Engine`] is that of any set of TiNs: it knows of others what cells tell. What packets are is its owner's: they
//! have a handle, and their content is passed on when they are cleared ([`Outcome::Cleared`], [`Engine::attach`]),
//! which stands for the bytes that data cells carry.

pub(crate) mod ages;
mod clearing;
mod counts;
mod egress;
mod ingress;
pub mod open_loop;
mod reset;
mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod turn;
mod unsolicited;

use std::collections::VecDeque;

use kernel::{Rate, Time};

use crate::address::{Address, Endpoint};
use crate::cells::ip::{Clear, Data, Pointer, Rts};
use crate::config;
use crate::link::classes::{CellKind, Half, SCAVENGER, half_of};
use crate::switch::cell::{Cell, Watch};
use crate::switch::record::{Key, Sent};
use crate::switch::settings::TICK;
use crate::switch::{Endpoints, Room, Switches, Wishes};
use clearing::{Budget, Queues, Request, Wait};
pub use counts::Counts;
use egress::{Came, Egress, NONE};
use ingress::{Ingress, Next, Outgoing};
use settings::Settings;
use turn::Turn;
use unsolicited::Unsolicited;

/// Terminal ports that IP uses: four of the NIC, four of the Ethernet port, one of the control processor (M102).
const LANES: usize = 9;
/// Groups of ports that share a line: the NIC's, Ethernet's, the control processor's.
const GROUPS: usize = 3;
/// Ports of a TiN: Ethernet, host 0, host 1, control processor (M411).
const PORTS: usize = 4;
/// What the line of each port belongs to.
const GROUP_OF: [usize; PORTS] = [1, 0, 0, 2];
/// The ports of each group.
const PORTS_OF: [&[usize]; GROUPS] = [&[1, 2], &[0], &[3]];
/// Lanes of each group: the first, and how many.
const LANES_OF: [(usize, usize); GROUPS] = [(0, 4), (4, 4), (8, 1)];
/// No instant.
const NEVER: u64 = u64::MAX;

/// A packet whose header has come and been understood, at a port of a TiN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// Its handle.
    pub packet: u32,
    /// Unit: bytes; at most `ip.mtu`.
    pub length: u16,
    /// 0 to 7; 7 is the most urgent.
    pub class_of_service: u8,
    /// GNet address of the port that it came by.
    pub from: u16,
    /// GNet address that input processing has found for it.
    pub to: u16,
    /// Of its flow, below 2^12.
    pub flow_hash: u16,
    /// Whether it may be marked (ECN).
    pub may_be_marked: bool,
    /// Whether it is no IP packet, and goes encapsulated (M403).
    pub is_encapsulated: bool,
    /// Who looks at its cells (M901).
    pub watch: Watch,
    /// Whether it will be found to be bad when its last byte is here (M421).
    pub is_bad: bool,
    /// When its last byte is here: the request goes out before (M407).
    pub whole_at: Time,
}

/// Why a packet was lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Loss {
    /// No room in the ingress buffer (M424).
    NoRoom,
    /// Its destination said: drop it (M415); or had no room for it, where nobody asks for packets.
    Dropped,
    /// Nobody asked for it in time (M421).
    NotAskedFor,
    /// Not all of it came in time (M421).
    NotWhole,
    /// It was found to be bad (M421).
    Bad,
    /// The TiN that had it, or was putting it together, has died (M922).
    Died,
}

/// What becomes of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was asked for, and goes out from here. Its content is to be with its destination before its first cell is
    /// ([`Engine::attach`]): there are 40 ns.
    Cleared {
        /// Its handle here.
        packet: u32,
        /// The GNet address that it goes to.
        to: u16,
        /// The place there.
        egress: Pointer,
    },
    /// Its first bit leaves to where it goes, from the line's end on.
    Leaves {
        /// Its handle here.
        packet: u32,
        /// The GNet address that it goes to.
        to: u16,
        /// When.
        at: Time,
        /// Whether it met congestion (ECN).
        is_marked: bool,
        /// Whether bits of it were flipped on the way.
        is_damaged: bool,
    },
    /// It is lost.
    Lost {
        /// Its handle here.
        packet: u32,
        /// Why.
        why: Loss,
    },
}

/// The port of a TiN that an address is; `None` if it takes no IP.
const fn port_of(address: u16) -> Option<u8> {
    match Address::from_bits(address).endpoint() {
        Endpoint::ETHERNET => Some(0),
        Endpoint::HOST_0 => Some(1),
        Endpoint::HOST_1 => Some(2),
        Endpoint::CONTROL_IP => Some(3),
        _ => None,
    }
}

/// The group of the port that an address is; the hosts', if it takes no IP.
pub(crate) fn group_of(address: u16) -> usize {
    GROUP_OF[port_of(address).map_or(1, usize::from)]
}

/// How long a line of this rate takes for a packet, which may be that of an Ethernet port. Unit: ps.
pub(crate) fn line_time(rate: Rate, length: u16, is_ethernet: bool) -> u64 {
    settings::line_time(rate, usize::from(is_ethernet), length.into())
}

/// The lane of a terminal port; `None` if IP does not use it.
pub(crate) const fn lane_of(terminal: u8) -> Option<usize> {
    match terminal {
        0..8 => Some(terminal as usize),
        16 => Some(8),
        _ => None,
    }
}

/// The terminal port of a lane.
const fn terminal_of(lane: usize) -> u8 {
    if lane < 8 { lane as u8 } else { 16 }
}

/// The group of a lane.
const fn group_of_lane(lane: usize) -> usize {
    if lane < 4 {
        0
    } else if lane < 8 {
        1
    } else {
        2
    }
}

/// Classes of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part(u8);

impl Part {
    const COUNT: usize = 3;

    /// That of a class of service.
    const fn of(class_of_service: u8) -> Self {
        match (class_of_service, half_of(class_of_service)) {
            (0, _) => Self(2),
            (_, Half::LowLatency) => Self(0),
            (_, Half::Bulk) => Self(1),
        }
    }

    /// Its traffic class.
    const fn class(self) -> u8 {
        match self.0 {
            0 => CellKind::Data.class(Half::LowLatency),
            1 => CellKind::Data.class(Half::Bulk),
            _ => SCAVENGER,
        }
    }
}

/// What of a group's line is under way.
#[derive(Clone, Debug)]
struct Group {
    budget: Budget,
    /// When the line is free. Unit: ps.
    line_free: u64,
    /// Packets that leave: when their last bits have left, in ps, and their bytes.
    leaving: VecDeque<(u64, u32)>,
    /// Which of its ports is served next.
    turn: Turn,
    /// Halves whose requests are not taken: a queue is full (M411).
    stalled: [bool; 2],
}

/// The state of a TiN.
#[derive(Clone, Debug)]
struct Tin {
    id: u16,
    ingress: Ingress,
    outgoing: Outgoing,
    queues: [Queues; PORTS],
    groups: [Group; GROUPS],
    egress: Egress,
    unsolicited: Unsolicited,
    /// The earliest wake that was asked for and has not come. Unit: ps.
    armed: u64,
    /// When bytes of a packet that goes out are here, for which a terminal port waits. Unit: ps.
    bytes_at: u64,
}

/// IP over GNet at a set of TiNs.
#[derive(Clone, Debug)]
pub struct Engine {
    settings: Settings,
    tins: Vec<Tin>,
    /// By TiN of the Clique: its place here, or none.
    places: Vec<u32>,
    /// By TiN, and what has become of packets there.
    outcomes: VecDeque<(u16, Outcome)>,
    counts: Counts,
}

impl Engine {
    /// The engines of `own` TiNs, of a Clique of `tins`, idle. `hops` is what cells start with.
    #[must_use]
    pub fn new(ip: &config::Ip, tins: u16, own: &[u16], hops: u8) -> Self {
        let settings = Settings::new(ip, hops);
        let mut places = vec![NONE; usize::from(tins)];
        own.iter().enumerate().for_each(|(place, &id)| places[usize::from(id)] = place as u32);
        let tins = own.iter().map(|&id| Tin::new(id, &settings)).collect();
        Self { settings, tins, places, outcomes: VecDeque::new(), counts: Counts::default() }
    }

    /// What has become of a packet, and the TiN where it has: the first thing that was not asked for yet.
    pub fn next_outcome(&mut self) -> Option<(u16, Outcome)> {
        self.outcomes.pop_front()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Packets that wait or are under way here: in ingress buffers and in egress buffers.
    #[must_use]
    pub fn packets(&self) -> (usize, usize) {
        let of = |tin: &Tin| (tin.ingress.packets(), tin.egress.packets());
        self.tins.iter().map(of).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }

    /// The header of a packet has come.
    ///
    /// # Panics
    /// If the TiN is not here.
    pub fn arrive(&mut self, tin: u16, arrival: &Arrival, wishes: &mut Wishes) {
        let (settings, now) = (&self.settings, wishes.now().as_ps());
        let state = &mut self.tins[self.places[usize::from(tin)] as usize];
        self.counts.packets += 1;
        let is_known = port_of(arrival.to).is_some() && port_of(arrival.from).is_some();
        debug_assert!(is_known && u32::from(arrival.length) <= settings.mtu, "{arrival:?}");
        let Some(pointer) = state.ingress.take(arrival, now, settings) else {
            self.lose(tin, arrival.packet, Loss::NoRoom);
            return;
        };
        self.counts.ingress_max = self.counts.ingress_max.max(state.ingress.used());
        wishes.record(|recorder| {
            let key = Key::ingress(arrival.from, pointer);
            recorder.takes(tin, key, arrival.packet, (now, arrival.watch));
        });
        if !settings.is_solicited {
            let deadline = state.ingress.deadline(settings).unwrap_or(NEVER);
            state.arm(deadline, wishes);
            return self.send_at_once(tin, arrival.from, pointer, wishes);
        }
        let group = port_of(arrival.from).map_or(0, |port| GROUP_OF[usize::from(port)]);
        let lane = request_lane(group, arrival.to, arrival.class_of_service);
        let half = half_of(arrival.class_of_service) as usize;
        state.outgoing.requests[lane][half].push_back(pointer);
        wishes.inject(terminal_of(lane));
        let deadline = state.ingress.deadline(settings).unwrap_or(NEVER);
        state.arm(deadline, wishes);
    }

    /// What the packet is that is put together at a place. False if that is another's by now: it is lost.
    ///
    /// # Panics
    /// If the TiN is not here.
    pub fn attach(&mut self, tin: u16, egress: Pointer, packet: u32) -> bool {
        let state = &mut self.tins[self.places[usize::from(tin)] as usize];
        if !self.settings.is_solicited {
            state.unsolicited.announce(egress, packet);
            return true;
        }
        let is_known = state.egress.attach(egress, packet);
        if !is_known {
            self.lose(tin, packet, Loss::NotWhole);
        }
        is_known
    }

    fn lose(&mut self, tin: u16, packet: u32, why: Loss) {
        self.counts.lost[why as usize] += 1;
        self.outcomes.push_back((tin, Outcome::Lost { packet, why }));
    }

    fn hear_request(&mut self, tin: u16, cell: &Cell, wishes: &mut Wishes) {
        let place = self.places[usize::from(tin)] as usize;
        let (Ok(rts), Some(port)) = (Rts::of_word(cell.payload), port_of(cell.to)) else {
            self.counts.unreadable += 1;
            return;
        };
        let (state, settings) = (&mut self.tins[place], &self.settings);
        if u32::from(rts.length) > settings.mtu || rts.egress_port != port {
            self.counts.unreadable += 1;
            return;
        }
        self.counts.requests += 1;
        let (port, group) = (usize::from(port), GROUP_OF[usize::from(port)]);
        let queues = &mut state.queues[port];
        let half = half_of(rts.class_of_service);
        let depth = queues.depth(rts.class_of_service);
        if settings.is_deeper(queues.depths(rts.class_of_service), settings.drop_above) {
            let clear = Clear { ingress: rts.ingress, egress: Pointer::default() };
            let class = CellKind::Ctd.class(half);
            let answer =
                Cell::new(cell.to, cell.from, class, CellKind::Ctd as u8, 2, settings.hops);
            let answer = answer.with_payload(clear.word()).watched(cell.watch());
            state.outgoing.answers[group][half as usize].push_back(answer);
            wish_all(group, wishes);
            return;
        }
        queues.push(Request { from: cell.from, to: cell.to, watch: cell.watch(), rts });
        self.counts.queue_max = self.counts.queue_max.max(depth + 1);
        if depth + 1 >= settings.queue_limit {
            state.stall(group, half, true, wishes);
        }
        self.clear(place, group, wishes);
    }

    fn hear_clearance(&mut self, tin: u16, cell: &Cell, wishes: &mut Wishes) {
        let (Ok(clear), Some(_)) = (Clear::of_word(cell.payload), port_of(cell.to)) else {
            self.counts.unreadable += 1;
            return;
        };
        self.start_draining(tin, &clear, cell.to, wishes);
    }

    /// Lets the packet of a place go, which came by the port of an address.
    fn start_draining(&mut self, tin: u16, clear: &Clear, from: u16, wishes: &mut Wishes) {
        let state = &mut self.tins[self.places[usize::from(tin)] as usize];
        let Some((part, outcome)) = state.ingress.clear(clear) else {
            self.counts.stale_clearances += 1;
            return;
        };
        match outcome {
            Outcome::Lost { why, .. } => self.counts.lost[why as usize] += 1,
            Outcome::Cleared { packet, to, egress } => {
                let now = wishes.now().as_ps();
                wishes.record(|recorder| {
                    recorder.clears(tin, packet, Key::egress(to, egress), now);
                });
            }
            Outcome::Leaves { .. } => {}
        }
        self.outcomes.push_back((tin, outcome));
        let group = GROUP_OF[port_of(from).map_or(0, usize::from)];
        state.outgoing.cleared[group][usize::from(part.0)].push_back(clear.ingress);
        wish_all(group, wishes);
    }

    fn hear_drop(&mut self, tin: u16, cell: &Cell) {
        let place = self.places[usize::from(tin)] as usize;
        let clear = Clear::of_word(cell.payload).ok();
        match clear.and_then(|clear| self.tins[place].ingress.drop(clear.ingress)) {
            Some(packet) => self.lose(tin, packet, Loss::Dropped),
            None => self.counts.stale_clearances += 1,
        }
    }

    fn hear_data(&mut self, tin: u16, cell: &Cell, at: u64, wishes: &mut Wishes) {
        let place = self.places[usize::from(tin)] as usize;
        let mut data = Data::of_word(cell.payload);
        let said = data.egress;
        if !self.settings.is_solicited {
            let Some(egress) = self.place_of(tin, cell, at, wishes) else {
                self.counts.stray_cells += 1;
                return;
            };
            data.egress = egress;
        }
        match self.tins[place].egress.come(data, cell.is_damaged()) {
            Came::Stray => self.counts.stray_cells += 1,
            Came::Part => {}
            Came::Ended { length, to, list } => {
                if !self.settings.is_solicited {
                    self.forget(tin, said);
                }
                self.end(place, (length, to, list), at, wishes);
            }
        }
    }

    /// Nothing more comes of a packet, of which so much was outstanding.
    fn end(
        &mut self,
        place: usize,
        (length, to, list): (u16, u16, usize),
        at: u64,
        wishes: &mut Wishes,
    ) {
        let group = port_of(to).map_or(0, |port| GROUP_OF[usize::from(port)]);
        self.tins[place].groups[group].budget.outstanding -= u32::from(length);
        self.leave(place, list, at, wishes);
        self.clear(place, group, wishes);
    }

    /// Lets packets leave that may.
    fn leave(&mut self, place: usize, list: usize, now: u64, wishes: &mut Wishes) {
        let state = &mut self.tins[place];
        while let Some(left) = state.egress.leave(list, self.settings.order) {
            let port = port_of(left.to).map_or(0, usize::from);
            let group = &mut state.groups[GROUP_OF[port]];
            if !left.is_whole || left.packet == NONE {
                group.budget.free += u32::from(left.length);
                if left.packet != NONE {
                    self.counts.lost[Loss::NotWhole as usize] += 1;
                    let lost = Outcome::Lost { packet: left.packet, why: Loss::NotWhole };
                    self.outcomes.push_back((state.id, lost));
                }
                continue;
            }
            let depths = state.queues[port].depths(left.class_of_service);
            let is_deep = self.settings.is_deeper(depths, self.settings.mark_above);
            let is_marked = left.may_be_marked && is_deep;
            let start = now.max(group.line_free);
            group.line_free = start + self.settings.line_time(GROUP_OF[port], left.length.into());
            group.leaving.push_back((group.line_free, left.length.into()));
            let end = group.line_free;
            state.arm(end, wishes);
            self.counts.delivered += 1;
            self.counts.delivered_bytes += u64::from(left.length);
            self.counts.marked += u64::from(is_marked);
            let at = Time::from_ps(start);
            let is_damaged = left.is_damaged;
            let outcome =
                Outcome::Leaves { packet: left.packet, to: left.to, at, is_marked, is_damaged };
            self.outcomes.push_back((state.id, outcome));
        }
    }

    /// Asks for packets that a group has room and time for.
    fn clear(&mut self, place: usize, group: usize, wishes: &mut Wishes) {
        let (now, wishes_now) = (end_of_tick(wishes), wishes.now().as_ps());
        let settings = &self.settings;
        let (state, mut is_sent) = (&mut self.tins[place], false);
        while let Some((port, request)) = state.pick(group, settings) {
            let length = request.rts.length;
            let times = (settings.line_time(group, length.into()), settings.bursts[group]);
            let budget = &mut state.groups[group].budget;
            match budget.take(length, times, now, settings) {
                Ok(()) => {}
                Err(Wait::Room) => break,
                Err(Wait::Until(at)) => {
                    state.arm(at, wishes);
                    break;
                }
            }
            let (outstanding, used) = (budget.outstanding, settings.egress_buffer - budget.free);
            self.counts.outstanding_max = self.counts.outstanding_max.max(outstanding);
            self.counts.egress_max = self.counts.egress_max.max(used);
            self.counts.cleared += 1;
            let end = budget.paid();
            wishes.record(|recorder| {
                let key = Key::ingress(request.from, request.rts.ingress);
                let sent = Sent { start: end - times.0, end, key, bytes: length };
                recorder.grants((state.id, group as u8), wishes_now, sent);
            });
            state.grant(port, &request, settings, wishes);
            is_sent = true;
        }
        if is_sent {
            wish_all(group, wishes);
        }
    }

    /// Checks that nothing is left: every place is free, all room and bandwidth is home (I49).
    ///
    /// # Errors
    /// What is left, where.
    pub fn check_home(&self) -> Result<(), String> {
        for tin in &self.tins {
            let (ingress, egress) = (tin.ingress.packets(), tin.egress.packets());
            let is_home = |group: &Group| {
                let Budget { free, outstanding, .. } = &group.budget;
                *free == self.settings.egress_buffer && *outstanding == 0
            };
            let waiting: u32 = tin.queues.iter().map(Queues::waiting).sum();
            let is_empty = ingress + egress == 0 && waiting == 0 && tin.unsolicited.is_empty();
            if !is_empty || !tin.groups.iter().all(is_home) {
                return Err(format!(
                    "TiN {}: {ingress} packets wait, {waiting} requests, {egress} are put together; budgets {:?}",
                    tin.id,
                    tin.groups.iter().map(|group| &group.budget).collect::<Vec<_>>()
                ));
            }
        }
        Ok(())
    }
}

impl Endpoints for Engine {
    fn deliver(&mut self, tin: u16, _: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        let kind = CellKind::from_number(cell.kind);
        let is_control = matches!(kind, Some(CellKind::Rts | CellKind::Cts | CellKind::Ctd));
        if is_control && cell.is_damaged() {
            self.counts.unreadable += 1;
            return;
        }
        match kind {
            Some(CellKind::Rts) => self.hear_request(tin, cell, wishes),
            Some(CellKind::Cts) => self.hear_clearance(tin, cell, wishes),
            Some(CellKind::Ctd) => self.hear_drop(tin, cell),
            Some(CellKind::Data) => self.hear_data(tin, cell, at.as_ps(), wishes),
            _ => {
                debug_assert!(false, "{cell:?} is none of IP's");
                self.counts.unreadable += 1;
            }
        }
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        let lane = lane_of(terminal)?;
        let state = &mut self.tins[self.places[usize::from(tin)] as usize];
        let settings = &self.settings;
        [Half::LowLatency, Half::Bulk].into_iter().find_map(|half| {
            let may_ask = room.fits(CellKind::Rts.class(half), 2);
            if let Some(cell) =
                may_ask.then(|| state.next_request(lane, half, settings, wishes)).flatten()
            {
                return Some(cell);
            }
            let answers = &mut state.outgoing.answers[group_of_lane(lane)][half as usize];
            if !answers.is_empty() && room.fits(CellKind::Cts.class(half), 2) {
                return answers.pop_front();
            }
            let parts: &[u8] = if half == Half::LowLatency { &[0] } else { &[1, 2] };
            parts.iter().find_map(|&part| state.next_data(lane, Part(part), room, settings, wishes))
        })
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        let place = self.places[usize::from(tin)] as usize;
        let due = end_of_tick(wishes);
        if self.tins[place].armed <= due {
            self.tins[place].armed = NEVER;
        }
        for group in 0..GROUPS {
            let Group { leaving, budget, .. } = &mut self.tins[place].groups[group];
            while leaving.front().is_some_and(|&(end, _)| end <= due) {
                budget.free += leaving.pop_front().map_or(0, |(_, bytes)| bytes);
            }
        }
        while self.tins[place].ingress.deadline(&self.settings).is_some_and(|at| at <= due) {
            if let Some(packet) = self.tins[place].ingress.expire() {
                self.lose(tin, packet, Loss::NotAskedFor);
            }
        }
        while self.tins[place].egress.deadline(&self.settings).is_some_and(|at| at <= due) {
            let Some(over) = self.tins[place].egress.expire() else { break };
            self.end(place, over, due, wishes);
        }
        for group in 0..GROUPS {
            self.clear(place, group, wishes);
        }
        let state = &mut self.tins[place];
        if state.bytes_at <= due {
            state.bytes_at = NEVER;
            (0..GROUPS).for_each(|group| wish_all(group, wishes));
        }
        let next = state.next(&self.settings);
        state.arm(next, wishes);
    }

    fn run(switches: &mut Switches<Self>, end: Time) {
        switches.advance(end);
    }
}

/// The lane of a group by which requests for a destination and class go: always the same, so that they keep their
/// order (U08).
fn request_lane(group: usize, to: u16, class_of_service: u8) -> usize {
    let word = u64::from(to) << 3 | u64::from(class_of_service);
    let hash = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    let (first, count) = LANES_OF[group];
    first + hash % count
}

/// The last instant of the tick at hand: wakes come at the beginning of the tick in which their instant lies, and what
/// is due in it is done then. Unit: ps.
fn end_of_tick(wishes: &Wishes) -> u64 {
    wishes.now().as_ps() + TICK.as_ps() - 1
}

/// Lets all terminal ports of a group ask for a cell.
fn wish_all(group: usize, wishes: &mut Wishes) {
    let (first, count) = LANES_OF[group];
    (first..first + count).for_each(|lane| wishes.inject(terminal_of(lane)));
}

impl Tin {
    /// Asks to be woken at an instant, if that is sooner than what was asked for.
    fn arm(&mut self, at: u64, wishes: &mut Wishes) {
        if at < self.armed {
            self.armed = at;
            wishes.wake_at(Time::from_ps(at));
        }
    }

    /// When something is to be done next. Unit: ps.
    fn next(&self, settings: &Settings) -> u64 {
        let leaving = self.groups.iter().filter_map(|group| group.leaving.front());
        let timeouts = [self.ingress.deadline(settings), self.egress.deadline(settings)];
        let ends = leaving.map(|&(end, _)| end).chain(timeouts.into_iter().flatten());
        ends.chain([self.bytes_at]).min().unwrap_or(NEVER)
    }

    /// Takes no more requests of a half at a group, or takes them again (M411).
    fn stall(&mut self, group: usize, half: Half, is_stalled: bool, wishes: &mut Wishes) {
        let stalled = &mut self.groups[group].stalled[half as usize];
        if *stalled == is_stalled {
            return;
        }
        *stalled = is_stalled;
        let channels = CellKind::Rts.channels(half);
        let (first, count) = LANES_OF[group];
        for lane in first..first + count {
            match is_stalled {
                true => wishes.stall(terminal_of(lane), channels),
                false => wishes.resume(terminal_of(lane), channels),
            }
        }
    }

    /// The request of a group whose turn it is, and its port: ports take turns.
    fn pick(&mut self, group: usize, settings: &Settings) -> Option<(usize, Request)> {
        let ports = PORTS_OF[group];
        let [first, second] = self.groups[group].turn.order(settings.sharing);
        let mut pick = |at: usize| {
            let &port = ports.get(at)?;
            self.queues[port].pick(settings.weights).map(|request| (port, request))
        };
        pick(first).or_else(|| pick(second))
    }

    /// Asks for the packet of the request that was picked.
    fn grant(&mut self, port: usize, request: &Request, settings: &Settings, wishes: &mut Wishes) {
        let (group, now) = (GROUP_OF[port], wishes.now().as_ps());
        let rts = &request.rts;
        self.queues[port].pop(rts.class_of_service);
        let ports = PORTS_OF[group];
        let at = ports.iter().position(|&other| other == port).unwrap_or(0);
        if let [_, _] = ports {
            let other = self.queues[ports[1 - at]].waiting() > 0;
            self.groups[group].turn.took(at, rts.length.into(), other);
        }
        let half = half_of(rts.class_of_service);
        if self.groups[group].stalled[half as usize] && !self.is_full(group, half, settings) {
            self.stall(group, half, false, wishes);
        }
        let (egress, is_first) = self.egress.reserve(request, now, settings);
        if is_first {
            self.arm(now + settings.reassembly_timeout, wishes);
        }
        let clear = Clear { ingress: rts.ingress, egress };
        let class = CellKind::Cts.class(half);
        let cell =
            Cell::new(request.to, request.from, class, CellKind::Cts as u8, 2, settings.hops);
        let cell = cell.with_payload(clear.word()).watched(request.watch);
        self.outgoing.answers[group][half as usize].push_back(cell);
    }

    /// Whether a queue of a half at a group is full.
    fn is_full(&self, group: usize, half: Half, settings: &Settings) -> bool {
        let classes = (0..8).filter(|&class| half_of(class) == half);
        PORTS_OF[group].iter().any(|&port| {
            classes.clone().any(|class| self.queues[port].depth(class) >= settings.queue_limit)
        })
    }

    /// The next request of a lane.
    fn next_request(
        &mut self,
        lane: usize,
        half: Half,
        settings: &Settings,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        let Self { ingress, outgoing, .. } = self;
        let requests = &mut outgoing.requests[lane][half as usize];
        loop {
            let at = ingress.asks_at(*requests.front()?, settings);
            if at > end_of_tick(wishes) {
                if at < self.bytes_at {
                    self.bytes_at = at;
                    self.arm(at, wishes);
                }
                return None;
            }
            // The time of a place may have been over before its request could go.
            let request =
                requests.pop_front().and_then(|pointer| ingress.request(pointer, settings));
            if request.is_some() {
                return request;
            }
        }
    }

    /// The next data cell of a group's class, if there is room for it: of the first packet whose bytes are here.
    fn next_data(
        &mut self,
        lane: usize,
        part: Part,
        room: Room<'_>,
        settings: &Settings,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        let now = end_of_tick(wishes);
        let Self { id, ingress, outgoing, .. } = self;
        let id = *id;
        let cleared = &mut outgoing.cleared[group_of_lane(lane)][usize::from(part.0)];
        if cleared.is_empty() || !room.fits(part.class(), crate::switch::cell::BLOCKS_MAX) {
            return None;
        }
        let mut first_at = NEVER;
        for _ in 0..cleared.len() {
            let pointer = *cleared.front()?;
            match ingress.cell(pointer, now, settings) {
                Next::Cell(cell, header, is_last) => {
                    if is_last {
                        cleared.pop_front();
                        wishes.record(|recorder| recorder.has_sent(id, Key::of(&cell)));
                    }
                    return Some(match header {
                        Some(header) => wishes.enclose(cell, &header.to_be_bytes()),
                        None => cell,
                    });
                }
                Next::NotBefore(at) => {
                    first_at = first_at.min(at);
                    cleared.rotate_left(1);
                }
                Next::Gone => {
                    cleared.pop_front();
                }
            }
        }
        if first_at < self.bytes_at {
            self.bytes_at = first_at;
            self.arm(first_at, wishes);
        }
        None
    }
}
