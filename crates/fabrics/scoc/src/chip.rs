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
use switching::{Departure, Egress, Packet, Switch, Wheel, ones};

use crate::chip_config::{ACCEPT, ChipPlan, EARLY, InputChoice, Transfers};
use crate::entry::Entry;
use crate::grants::{Asked, Grant, GrantUnits, ROW_WORDS};
use crate::inputs::{Idle, Inputs};
use crate::ledger::{Crossing, Ledger};
use crate::toggles::Toggles;

/// What happens in a later cycle, before that cycle's accepts.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A packet in an input's memory may ask.
    Ready { port: u16, address: u16 },
    /// A route of an input group, an output and the route of its group are free.
    Release { group: u16, output: u16, colour: u8 },
    /// An input may start its next transfer.
    InputIdle(u16),
    /// An address of an input's memory is free.
    Freed { port: u16, address: u16 },
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
    /// Of the grants that arrive in this cycle the last one for this group.
    last_offer: u16,
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
    /// Outputs that grant the group at work.
    offers: Vec<u16>,
    /// For each grant that arrives the one before it for the same group.
    offer_before: Vec<u16>,
    entry: Entry,
    egress: Egress,
    events: Wheel<Event>,
    due: Vec<Event>,
    /// Grants of requests one and two cycles old.
    granted: [Vec<Grant>; 2],
    /// The first request that each input may honour, if it sends one packet at a time.
    idle_from: Vec<u64>,
    /// When the last packet that entered each input may ask.
    ready_last: Vec<u64>,
    ledger: Option<Ledger>,
    counts: Counts,
}

/// How often the chip looks for packets that have waited too long: our choice, a small part of any
/// sensible limit.
const AGING_EVERY: u64 = 64;
/// No grant.
const NO_OFFER: u16 = u16::MAX;

impl Chip {
    /// An empty chip at cycle 0.
    #[must_use]
    pub fn new(plan: ChipPlan, seed: u64) -> Self {
        let config = &plan.config;
        let group = |group| InputGroup {
            stream: Stream::new(seed, "scoc/input-group", group as u64),
            turn: RoundRobin::default(),
            link: OldestLink::new(config.ports_per_group),
            last_offer: NO_OFFER,
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
            offers: Vec::with_capacity(plan.groups),
            offer_before: vec![NO_OFFER; plan.groups],
            entry: Entry::new(&plan),
            egress: Egress::new(plan.line, config.ports, config.output_packets),
            events: Wheel::new(horizon),
            due: Vec::new(),
            granted: [Vec::with_capacity(plan.groups), Vec::with_capacity(plan.groups)],
            idle_from: vec![0; config.ports],
            ready_last: vec![0; config.ports],
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

    /// Packets for which an input has room.
    pub(crate) fn places_free(&self, input: usize) -> usize {
        self.inputs.arrays.places_free(input)
    }

    /// The grants that the last step issued: output and input group of each.
    pub fn issued(&self) -> impl Iterator<Item = [u16; 2]> + '_ {
        self.granted[0].iter().map(|grant| [grant.output, grant.group])
    }

    /// The weightage register of an output for a group, and what it would be if read now.
    #[cfg(test)]
    pub(crate) fn weightage(&self, output: usize, group: usize) -> (u8, u8) {
        (self.units.weightage(output, group), self.inputs.weightage(output, group))
    }

    /// The colour of the requests of this cycle.
    fn colour(&self, cycle: u64) -> usize {
        (cycle % self.plan.config.routes as u64) as usize
    }

    fn happen(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        self.events.turn(&mut due);
        for &event in &due {
            match event {
                Event::Ready { port, address } => self.inputs.enlist(usize::from(port), address),
                Event::Release { group, output, colour } => {
                    self.toggles.free_input(usize::from(group), usize::from(colour));
                    self.toggles.free_output(usize::from(output), usize::from(colour));
                }
                Event::InputIdle(port) => self.inputs.set_idle(usize::from(port), Idle::Yes),
                Event::Freed { port, address } => {
                    self.inputs.arrays.free(usize::from(port), address);
                }
            }
        }
        self.due = due;
    }

    /// Accept units: the grants of the requests two cycles ago.
    fn accept(&mut self, departures: &mut Vec<Departure>) {
        if self.granted[1].is_empty() {
            return;
        }
        let granted = std::mem::take(&mut self.granted[1]);
        let mut offers = std::mem::take(&mut self.offers);
        let mut offered = [0u64; ROW_WORDS];
        for (index, grant) in granted.iter().enumerate() {
            let group = usize::from(grant.group);
            let last = std::mem::replace(&mut self.groups[group].last_offer, index as u16);
            self.offer_before[index] = last;
            offered[group / 64] |= 1 << (group % 64);
        }
        let asked = self.cycle - ACCEPT;
        let colour = self.colour(asked);
        for (at, &word) in offered[..self.plan.groups.div_ceil(64)].iter().enumerate() {
            for bit in ones(word) {
                let group = at * 64 + bit;
                offers.clear();
                let mut offer = std::mem::replace(&mut self.groups[group].last_offer, NO_OFFER);
                while offer != NO_OFFER {
                    offers.push(granted[usize::from(offer)].output);
                    offer = self.offer_before[usize::from(offer)];
                }
                self.accept_one(group, (asked, colour), &offers, departures);
            }
        }
        self.offers = offers;
        self.granted[1] = granted;
        self.granted[1].clear();
    }

    /// An input group takes at most one of the grants that it is offered, for requests of this
    /// cycle and colour.
    fn accept_one(
        &mut self,
        group: usize,
        (asked, colour): (u64, usize),
        offers: &[u16],
        departures: &mut Vec<Departure>,
    ) {
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
        let candidates = self.ready_in_time(group, candidates, offers, asked);
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
        let grant = Grant { output, group: group as u16 };
        self.start(port, grant, (asked, colour), departures);
    }

    /// Of the candidates of a group, those that were free for a request of cycle `asked`: an input
    /// that has become idle since may still be sending its last words.
    fn in_time(&self, group: usize, candidates: u16, asked: u64) -> u16 {
        if self.plan.config.transfers == Transfers::Multiple {
            return candidates;
        }
        let first = group * self.plan.config.ports_per_group;
        ones(u64::from(candidates))
            .filter(|place| self.idle_from[first + place] <= asked)
            .fold(0, |all, place| all | 1 << place)
    }

    /// Of the candidates of a group, those whose packet was ready for a request of cycle `asked`. A group
    /// asks for all of its inputs together: a packet that has become ready since would start too soon for
    /// its last words, which its line has not brought yet.
    fn ready_in_time(&self, group: usize, candidates: u16, offers: &[u16], asked: u64) -> u16 {
        let (arrays, first) = (&self.inputs.arrays, group * self.plan.config.ports_per_group);
        let is_ready = |place: &usize| {
            let (port, listed) = (first + place, arrays.of(first + place));
            // Packets become ready in order: nearly always all of them have been for long.
            let all = listed.last().is_none_or(|&last| arrays.since(port, last) <= asked);
            let goes_there = |entry: &crate::arrays::Entry| offers.contains(&entry.destination);
            let mut waiting = listed.iter().filter(|entry| goes_there(entry));
            all || waiting.any(|&entry| arrays.since(port, entry) <= asked)
        };
        ones(u64::from(candidates)).filter(is_ready).fold(0, |all, place| all | 1 << place)
    }

    fn choose_input(&mut self, group: usize, candidates: u64) -> Option<usize> {
        let unit = &mut self.groups[group];
        let place = match self.plan.config.input_choice {
            InputChoice::Random => at_random(candidates, &mut unit.stream),
            InputChoice::RoundRobin => unit.turn.choose(&[candidates]),
            InputChoice::OldestLink => unit.link.choose(candidates),
        }?;
        match self.plan.config.input_choice {
            InputChoice::Random => {}
            InputChoice::RoundRobin => {
                unit.turn.point_beyond(place, self.plan.config.ports_per_group);
            }
            InputChoice::OldestLink => unit.link.chosen(place),
        }
        Some(place)
    }

    /// Nothing came of a grant: its output and route may be granted in the next cycle.
    fn refuse(&mut self, output: u16, colour: usize) {
        self.toggles.free_output(usize::from(output), colour);
        self.egress.withdraw(usize::from(output));
    }

    /// The accepted packet leaves its array; its words are on their way.
    fn start(
        &mut self,
        port: usize,
        grant: Grant,
        (asked, colour): (u64, usize),
        departures: &mut Vec<Departure>,
    ) {
        let (output, group) = (usize::from(grant.output), usize::from(grant.group));
        self.counts.accepts += 1;
        let (packet, address) = self.inputs.remove(port, output);
        self.units.accepted(grant);
        let words = self.entry.words(&packet);
        let first = asked + self.plan.first_word();
        let last = first + (words - 1) * self.plan.stride();
        if let Some(ledger) = &mut self.ledger {
            let crossing = Crossing { input: port, output, route: colour, first, words };
            ledger.book(&self.plan, crossing);
        }
        let free = last - EARLY;
        if free > self.cycle {
            self.toggles.take_input(group, colour, free);
            self.toggles.take_output_route(self.plan.group(output), colour);
            let release =
                Event::Release { group: grant.group, output: grant.output, colour: colour as u8 };
            self.events.put(free, release);
        } else {
            self.toggles.free_output(output, colour);
        }
        if self.plan.config.transfers == Transfers::Single {
            self.hold_input(port, first, last, words);
        }
        self.events.put(last + 1, Event::Freed { port: packet.source, address });
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
        let reserves = self.plan.reserves_routes();
        for at in 0..self.plan.groups.div_ceil(64) {
            for bit in ones(self.toggles.open(colour, at) & self.inputs.any_wanted(at)) {
                let group = at * 64 + bit;
                let idle = self.toggles.idle(group) & self.inputs.wanted(group);
                if idle == 0 {
                    continue;
                }
                let free = self.toggles.free_inputs(colour);
                // E03: no grant without a place at the output.
                let egress = &mut self.egress;
                let has_room = |output| egress.has_room(output, now);
                let asked = Asked { group, idle, free, inputs: &self.inputs };
                let Some(grant) = self.units.grant(&asked, has_room) else { continue };
                let output = usize::from(grant.output);
                self.toggles.take_output(output);
                if reserves {
                    self.toggles.take_output_route(group, colour);
                }
                self.egress.promise(output);
                self.granted[0].push(grant);
            }
        }
        self.counts.grants += self.granted[0].len() as u64;
    }
}

impl Switch for Chip {
    fn ports(&self) -> usize {
        self.plan.config.ports
    }

    fn has_room(&self, packet: &Packet) -> bool {
        self.inputs.arrays.has_room(usize::from(packet.source))
    }

    fn admit(&mut self, packet: Packet) {
        debug_assert_eq!(self.plan.check_packet(packet.size()), Ok(()));
        let port = usize::from(packet.source);
        // In order, whatever the sizes.
        let ready = self.entry.ready(&packet, self.cycle).max(self.ready_last[port]);
        self.ready_last[port] = ready;
        let address = self.inputs.arrays.store(packet, ready);
        self.events.put(ready, Event::Ready { port: packet.source, address });
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
        self.inputs.arrays.held()
    }

    fn is_idle(&self) -> bool {
        self.held() == 0 && self.events.is_empty() && self.granted.iter().all(Vec::is_empty)
    }

    fn skip_to(&mut self, cycle: u64) {
        self.events.skip_to(cycle);
        // A debug build's ledger has room for a bounded number of cycles: all of them are past.
        self.ledger = self.ledger.take().map(|ledger| ledger.emptied());
        // The weightage wires are read by all outputs within a supercycle.
        let wide = self.plan.config.ports_per_group as u64;
        let missed = (cycle - self.cycle).min(wide);
        for past in cycle - missed..cycle {
            self.units.read_weightage((past % wide) as usize, &mut self.inputs);
        }
        self.cycle = cycle;
    }

    fn check(&self) -> Result<(), String> {
        let counts = &self.counts;
        let ends =
            counts.accepts + counts.refused_busy + counts.refused_empty + counts.refused_other;
        let open = self.granted.iter().map(Vec::len).sum::<usize>() as u64;
        if counts.grants != ends + open {
            return Err(format!("{open} grants are open: {counts:?}"));
        }
        self.inputs.check()
    }
}
