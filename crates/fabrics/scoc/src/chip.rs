//! The chip, cycle by cycle: request, grant, accept, memory read, words.
//!
//! Models: SCOC §2.B to §2.D (M19 to M21). A request of cycle k has the colour k mod m, which is the
//! route that it asks for. Its grant is issued in cycle k+1, accepted in k+2, the packet's memory
//! is read in k+3 and its first word crosses in k+4. Three requests are in the pipeline at a time.
//!
//! One step is one cycle. What a grant unit does in cycle k+1 depends on the requests of cycle k,
//! on accepts up to cycle k and on nothing later, so both are worked out in step k, after that
//! step's accepts; the grant then waits for step k+2. Requests need no wires that way: each output
//! that can grant looks at its own.
//!
//! Leaves out: payload; the serial links and the logic around the crossbar, a constant time
//! (`hardware.rs`).

use kernel::Stream;
use switching::arbiters::{OldestLink, RoundRobin, at_random};
use switching::{Departure, Egress, Packet, Switch, Ticks, Wheel, iter_ones};

use crate::config::{ACCEPT, ChipPlan, CutThrough, EARLY, InputChoice, Transfers};
use crate::grants::{Grant, GrantUnits, ones};
use crate::inputs::{Idle, Inputs, ROW_WORDS};
use crate::ledger::{Crossing, Ledger};
use crate::toggles::Toggles;

/// What happens in a later cycle, before that cycle's accepts.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A packet may ask.
    Ready(Packet),
    /// A route of an input group, an output and the route of its group are free.
    Release { group: u16, output: u16, colour: u8 },
    /// An input may start its next transfer.
    InputIdle(u16),
    /// A packet's memory at an input is free.
    Freed(u16),
}

/// What the scheduler did since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Grants issued.
    pub grants: u64,
    /// Grants accepted.
    pub accepts: u64,
    /// Grants refused because the input group's route was busy: mostly of fake requests.
    pub refused_busy: u64,
    /// Grants refused because no idle input had a packet for the output any more.
    pub refused_empty: u64,
    /// Grants refused because the input group accepted another.
    pub refused_other: u64,
    /// Packets that aging put before others.
    pub aged: u64,
}

/// An input group's way of picking a port.
#[derive(Clone, Debug)]
struct InputGroup {
    stream: Stream,
    turn: RoundRobin,
    link: OldestLink,
    /// Outputs whose grants arrive in this cycle.
    offers: Vec<u16>,
}

/// The switch chip.
#[derive(Clone, Debug)]
pub struct Chip {
    plan: ChipPlan,
    cycle: u64,
    inputs: Inputs,
    units: GrantUnits,
    toggles: Toggles,
    groups: Vec<InputGroup>,
    egress: Egress,
    events: Wheel<Event>,
    due: Vec<Event>,
    /// Grants of requests one and two cycles old.
    granted: [Vec<Grant>; 2],
    /// Packets whose memory at each input is taken.
    taken: Vec<u32>,
    /// The first request that each input may honour, if it sends one packet at a time.
    idle_from: Vec<u64>,
    /// When the last packet that entered each input may ask.
    ready_last: Vec<u64>,
    /// Packets that have entered and may not ask yet.
    arriving: usize,
    ledger: Option<Ledger>,
    counts: Counts,
}

/// How often the chip looks for packets that have waited too long: our choice, a small part of any
/// sensible limit.
const AGING_EVERY: u64 = 64;

impl Chip {
    /// An empty chip at cycle 0.
    #[must_use]
    pub fn new(plan: ChipPlan, seed: u64) -> Self {
        let config = &plan.config;
        let group = |group| InputGroup {
            stream: Stream::new(seed, "scoc/input-group", group as u64),
            turn: RoundRobin::default(),
            link: OldestLink::new(config.ports_per_group),
            offers: Vec::new(),
        };
        let on_line = plan.line.cycle_from(plan.line.send_time(config.packet_max));
        let crossing = plan.first_word() + (plan.words_max + 1) * plan.config.routes as u64;
        let horizon = crossing.max(on_line) + 2;
        Self {
            cycle: 0,
            inputs: Inputs::new(&plan),
            units: GrantUnits::new(&plan, seed),
            toggles: Toggles::new(&plan),
            groups: (0..plan.groups).map(group).collect(),
            egress: Egress::new(plan.line, config.ports, config.output_packets),
            events: Wheel::new(horizon),
            due: Vec::new(),
            granted: [Vec::new(), Vec::new()],
            taken: vec![0; config.ports],
            idle_from: vec![0; config.ports],
            ready_last: vec![0; config.ports],
            arriving: 0,
            ledger: cfg!(debug_assertions).then(|| Ledger::new(&plan, horizon)),
            counts: Counts::default(),
            plan,
        }
    }

    /// What it is built from.
    #[must_use]
    pub fn plan(&self) -> &ChipPlan {
        &self.plan
    }

    /// What the scheduler did.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The weightage register of an output for a group, and what it would be if read now.
    #[cfg(test)]
    pub(crate) fn weightage(&self, output: usize, group: usize) -> (u8, u8) {
        (self.units.weightage(output, group), self.inputs.weightage(output, group))
    }

    fn colour(&self, cycle: u64) -> usize {
        (cycle % self.plan.config.routes as u64) as usize
    }

    /// The first cycle in which a packet may ask (§4.E; E23).
    fn ready(&self, packet: &Packet) -> u64 {
        let line = &self.plan.line;
        let next = line.cycle_from(packet.entered).max(self.cycle);
        let whole = packet.entered + line.send_time(packet.size());
        match self.plan.config.cut_through {
            CutThrough::FirstBit => next,
            CutThrough::StoreAndForward => line.cycle_from(whole).max(next),
            CutThrough::NoUnderrun => {
                // The line delivers evenly and so does the crossbar: if the first word and the
                // last two are in time, all are.
                let words = self.plan.words(packet.size());
                let in_time = |word: u64| {
                    let bytes = (self.plan.word * (word + 1)).min(packet.size());
                    let there = line.cycle_from(packet.entered + line.send_time(bytes));
                    there.saturating_sub(self.plan.first_word() + word * self.plan.stride())
                };
                let ends = [0, words.saturating_sub(2), words - 1];
                ends.into_iter().map(in_time).max().unwrap_or(0).max(next)
            }
        }
    }

    fn happen(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.events.turn(&mut due);
        for &event in &due {
            match event {
                Event::Ready(packet) => {
                    self.arriving -= 1;
                    self.inputs.enqueue(packet, self.cycle);
                }
                Event::Release { group, output, colour } => {
                    self.toggles.free_input(usize::from(group), usize::from(colour));
                    self.toggles.free_output(usize::from(output), usize::from(colour));
                }
                Event::InputIdle(port) => self.inputs.set_idle(usize::from(port), Idle::Yes),
                Event::Freed(port) => self.taken[usize::from(port)] -= 1,
            }
        }
        self.due = due;
    }

    /// Accept units: the grants of the requests two cycles ago.
    fn accept(&mut self, departures: &mut Vec<Departure>) {
        let mut granted = std::mem::take(&mut self.granted[1]);
        let mut offered = [0u64; ROW_WORDS];
        for grant in granted.drain(..) {
            self.groups[usize::from(grant.group)].offers.push(grant.output);
            offered[usize::from(grant.group) / 64] |= 1 << (grant.group % 64);
        }
        self.granted[1] = granted;
        for group in iter_ones(&offered[..self.plan.groups.div_ceil(64)]) {
            let mut offers = std::mem::take(&mut self.groups[group].offers);
            self.accept_one(group, &offers, departures);
            offers.clear();
            self.groups[group].offers = offers;
        }
    }

    /// An input group takes at most one of the grants that it is offered.
    fn accept_one(&mut self, group: usize, offers: &[u16], departures: &mut Vec<Departure>) {
        let asked = self.cycle - ACCEPT;
        let colour = self.colour(asked);
        let refused = offers.len() as u64;
        if !self.toggles.honours(group, colour, asked) {
            self.counts.refused_busy += refused;
            offers.iter().for_each(|&output| self.refuse(output, colour));
            return;
        }
        let candidates = offers
            .iter()
            .fold(0, |all, &output| all | self.inputs.candidates(usize::from(output), group));
        let candidates = self.in_time(group, candidates, asked);
        let Some(place) = self.choose_input(group, u64::from(candidates)) else {
            self.counts.refused_empty += refused;
            offers.iter().for_each(|&output| self.refuse(output, colour));
            return;
        };
        self.counts.refused_other += refused - 1;
        let port = group * self.plan.config.ports_per_group + place;
        let output = match offers {
            [only] => *only,
            _ => self.inputs.oldest_of(port, offers).expect("the port holds one of them"),
        };
        for &other in offers.iter().filter(|&&other| other != output) {
            self.refuse(other, colour);
        }
        self.start(port, Grant { output, group: group as u16 }, departures);
    }

    /// Of the candidates of a group, those that were free for a request of cycle `asked`: an input
    /// that has become idle since may still be sending its last words.
    fn in_time(&self, group: usize, candidates: u16, asked: u64) -> u16 {
        if self.plan.config.transfers == Transfers::Multiple {
            return candidates;
        }
        let first = group * self.plan.config.ports_per_group;
        ones(candidates)
            .filter(|place| self.idle_from[first + place] <= asked)
            .fold(0, |all, place| all | 1 << place)
    }

    fn choose_input(&mut self, group: usize, candidates: u64) -> Option<usize> {
        let unit = &mut self.groups[group];
        let place = match self.plan.config.input_choice {
            InputChoice::Random => at_random(candidates, &mut unit.stream),
            InputChoice::RoundRobin => unit.turn.choose(&[candidates]),
            InputChoice::OldestLink => unit.link.choose(candidates),
        }?;
        unit.turn.point_beyond(place, self.plan.config.ports_per_group);
        unit.link.chosen(place);
        Some(place)
    }

    /// Nothing came of a grant: its output and route may be granted in the next cycle.
    fn refuse(&mut self, output: u16, colour: usize) {
        self.toggles.free_output(usize::from(output), colour);
        self.egress.withdraw(usize::from(output));
    }

    /// The accepted packet leaves its array; its words are on their way.
    fn start(&mut self, port: usize, grant: Grant, departures: &mut Vec<Departure>) {
        let (output, group) = (usize::from(grant.output), usize::from(grant.group));
        let asked = self.cycle - ACCEPT;
        let colour = self.colour(asked);
        self.counts.accepts += 1;
        let packet = self.inputs.remove(port, output);
        self.units.accepted(grant);
        let words = self.plan.words(packet.size());
        let first = asked + self.plan.first_word();
        let last = first + (words - 1) * self.plan.stride();
        if let Some(ledger) = &mut self.ledger {
            let crossing = Crossing { input: port, output, route: colour, first, words };
            ledger.book(&self.plan, crossing);
        }
        let free = last - EARLY;
        if free > self.cycle {
            self.toggles.take_input(group, colour, free);
            self.toggles.take_output_route(output, colour);
            let release =
                Event::Release { group: grant.group, output: grant.output, colour: colour as u8 };
            self.events.put(free, release);
        } else {
            self.toggles.free_output(output, colour);
        }
        if self.plan.config.transfers == Transfers::Single {
            self.hold_input(port, first, last, words);
        }
        self.events.put(last + 1, Event::Freed(packet.source));
        departures.push(self.egress.take(packet, self.plan.line.start_of(first + 1)));
    }

    /// With one transfer at a time an input of a shared crossbar is held for whole supercycles
    /// (§5: 4 t cycles; E08).
    fn hold_input(&mut self, port: usize, first: u64, last: u64, words: u64) {
        let held = (first + words * self.plan.stride() - 1).max(last);
        let free = held - EARLY;
        if free > self.cycle {
            self.inputs.set_idle(port, Idle::No);
            self.idle_from[port] = free;
            self.events.put(free, Event::InputIdle(port as u16));
        }
    }

    /// Request and grant units: the requests of this cycle and the grants that follow from them in
    /// the next.
    fn request_and_grant(&mut self) {
        let per_group = self.plan.config.ports_per_group;
        self.units.read_weightage((self.cycle % per_group as u64) as usize, &mut self.inputs);
        let colour = self.colour(self.cycle);
        let now = self.plan.line.start_of(self.cycle + 1);
        let words = self.plan.groups.div_ceil(64);
        let mut open = [0u64; ROW_WORDS];
        open[..words].copy_from_slice(self.toggles.free_outputs(colour));
        for group in iter_ones(&open[..words]) {
            let idle = self.with_room(group, now);
            if idle == 0 {
                continue;
            }
            let free = self.toggles.free_inputs(colour);
            let Some(grant) = self.units.grant(group, idle, free, &self.inputs) else { continue };
            let output = usize::from(grant.output);
            self.toggles.take_output(output);
            if self.plan.reserves_routes() {
                self.toggles.take_output_route(output, colour);
            }
            self.egress.promise(output);
            self.granted[0].push(grant);
            self.counts.grants += 1;
        }
    }

    /// Idle outputs of a group whose buffers have room for one packet more (E03).
    #[inline]
    fn with_room(&mut self, group: usize, now: Ticks) -> u16 {
        let idle = self.toggles.idle(group);
        let first = group * self.plan.config.ports_per_group;
        ones(idle)
            .filter(|place| self.egress.has_room(first + place, now))
            .fold(0, |room, place| room | 1 << place)
    }
}

impl Switch for Chip {
    fn ports(&self) -> usize {
        self.plan.config.ports
    }

    fn has_room(&self, packet: &Packet) -> bool {
        (self.taken[usize::from(packet.source)] as usize) < self.plan.config.input_packets
    }

    fn admit(&mut self, packet: Packet) {
        debug_assert!(self.has_room(&packet), "no room at input {}", packet.source);
        debug_assert_eq!(self.plan.check_packet(packet.size()), Ok(()));
        let port = usize::from(packet.source);
        self.taken[port] += 1;
        self.arriving += 1;
        // In order, whatever the sizes.
        let ready = self.ready(&packet).max(self.ready_last[port]);
        self.ready_last[port] = ready;
        self.events.put(ready, Event::Ready(packet));
    }

    fn step(&mut self, departures: &mut Vec<Departure>) {
        self.happen();
        self.accept(departures);
        if let Some(limit) = self.plan.config.aging_cycles
            && self.cycle.is_multiple_of(AGING_EVERY)
        {
            self.counts.aged += self.inputs.age(self.cycle, limit);
        }
        // What was granted last cycle is accepted in the next.
        self.granted.swap(0, 1);
        self.request_and_grant();
        if let Some(ledger) = &mut self.ledger {
            ledger.forget(self.cycle);
        }
        self.cycle += 1;
    }

    fn held(&self) -> usize {
        self.arriving + self.inputs.waiting()
    }

    fn check(&self) -> Result<(), String> {
        let counts = &self.counts;
        let ends =
            counts.accepts + counts.refused_busy + counts.refused_empty + counts.refused_other;
        let open = self.granted.iter().map(Vec::len).sum::<usize>() as u64;
        if counts.grants != ends + open {
            return Err(format!("{open} grants are open: {counts:?}"));
        }
        for (port, &taken) in self.taken.iter().enumerate() {
            let places = self.plan.config.input_packets;
            if taken as usize > places {
                return Err(format!("input {port} holds {taken} packets in {places} places"));
            }
        }
        self.inputs.check()
    }
}
