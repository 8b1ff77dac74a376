//! Puts the ways of traced cells together, and names what is broken (M904).
//!
//! **How a fault is told from chance** (our choice). What cells *do* is held against what the controller has installed:
//! a step that the tables do not allow names the entry, a cell that comes out of another link than it went into names
//! the wiring. What cells do *not* do is counted: of those that left by a link, how many were seen no more. Some are lost
//! without a fault: bits flip, and records are lost, of which their numbers tell. A suspect is a link, or all links into a
//! TiN, or all out of one. Of it D is the logarithm of how many times likelier what was seen is if it loses the share that
//! was lost than if it loses what others do, p: for one link n KL(k/n || p), where k of n are lost. By chance D is above x
//! with a probability of at most exp(-x): Chernoff's bound for a link; for several Markov's inequality on that ratio, with
//! ln(n + 1) taken off for the choice of the share. What has a D that one in a million sound Cliques has is named, the
//! largest first, and what it explains counts no more for others. What comes out elsewhere is held against chance in the same
//! way: where the record behind a link is lost, the next cell with the same pointers may be taken for the one that went in.
//! Only the first wrong step of a cell counts, and only if the step before is known: what comes behind it follows from it.
//! Records carry no proof of who made them: who forges them can put the blame on anyone.
//!
//! **How a cell is told from the next** (our choice). Pointers are used again once a cell is there, soon after in a flow, and
//! records come in no order, as each TiN sends them by the datagram. What has the same pointers is held for half a window at
//! least, and put in order of time: a cell ends where the next step is none that can follow.
//!
//! **What is lost when nobody listens on** (our choice). A cell that left a TiN just before the end may be under way. It
//! counts for nothing unless the end is twice as long after as the longest way over a link that any cell has taken.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use super::intent::Intent;
use super::journey::{Journey, Key, Step};
use crate::cells::trace::{RECORD_BYTES, Record};
use crate::link::classes::{CellKind, class_of};
use crate::switch::traced::NOWHERE;
use crate::tables::journal::Journal;
use crate::tables::{Component, Tables};
use crate::topology::{PortKind, Topology};

/// Share of cells that are lost without a fault, at most (our choice: far above any bit error rate in use).
const BACKGROUND: f64 = 1e-5;
/// Probability that something sound is named, at most.
const FALSE_ALARM: f64 = 1e-6;
/// How often an entry or a link must be seen to be wrong: a record may be wrong itself (our choice).
const SIGHTINGS: u64 = 2;
/// For how long records of a cell are waited for (our choice: longer than cells are under way). Unit: ticks of 2.5 ns.
const WINDOW: u64 = 400_000;
/// Records of cells that are waited for at a time, at most: beyond, the oldest are taken as they are (our choice).
const HELD_MAX: usize = 1 << 20;
/// Record numbers that are looked back on for copies.
const LOOK_BACK: u32 = 4_096;
/// Cells that go to a TiN that tells nothing, until it counts as one that swallows them (our choice: four datagrams full).
const SILENT: u64 = 4 * super::RECORDS_PER_DATAGRAM as u64;
/// Bits of a record's time.
const TIME_BITS: u32 = 48;

/// What is broken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Culprit {
    /// The link out of a port of a TiN, in that direction.
    Link {
        /// The TiN whose cells are lost on it.
        tin: u16,
        /// Its port.
        port: u8,
    },
    /// A TiN: it swallows what comes.
    Inputs(u16),
    /// A TiN: what leaves it is lost, by whatever port.
    Outputs(u16),
    /// An entry of a TiN's tables: cells do what it should not let them.
    Entry {
        /// The TiN.
        tin: u16,
        /// The input port whose table it is in.
        port: u8,
        /// The routing channel; 255: the escape channels' ways.
        rvc: u8,
        /// The pod or the place in the pod (see [`crate::tables::component`]); 65535: the TiN itself, or nothing.
        component: u16,
    },
    /// The link out of a port: it leads elsewhere than it should.
    Wiring {
        /// The TiN.
        tin: u16,
        /// Its port.
        port: u8,
    },
}

/// Something that is suspected, and why.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Suspect {
    /// What.
    pub culprit: Culprit,
    /// Cells that went by it.
    pub cells: u64,
    /// Those of them that did what they should not.
    pub wrong: u64,
    /// How unlikely that is by chance: a probability of at most exp of minus this.
    pub surprise: f64,
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cells, wrong, .. } = self;
        match self.culprit {
            Culprit::Link { tin, port } => {
                write!(f, "link out of TiN {tin}, port {port}: {wrong} of {cells} cells are lost")
            }
            Culprit::Inputs(tin) => {
                write!(f, "TiN {tin}: {wrong} of {cells} cells that came are lost")
            }
            Culprit::Outputs(tin) => {
                write!(f, "TiN {tin}: {wrong} of {cells} cells that left are lost")
            }
            Culprit::Entry { tin, port, rvc, component } => write!(
                f,
                "TiN {tin}, table of port {port}, channel {rvc}, entry {component}: {wrong} cells went where it \
                 should not lead"
            ),
            Culprit::Wiring { tin, port } => {
                write!(f, "link out of TiN {tin}, port {port}: {wrong} cells came out elsewhere")
            }
        }
    }
}

/// What a collector has heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Heard {
    /// Records that it used.
    pub records: u64,
    /// Records that came twice.
    pub copies: u64,
    /// Records that came when their cells were given up.
    pub late: u64,
    /// Bytes that are no record, or tell of what is not there: how many records' worth, begun ones whole.
    pub refused: u64,
    /// Records that TiNs made and that never came.
    pub lost: u64,
    /// Cells.
    pub journeys: u64,
    /// Cells that came to their ends.
    pub arrived: u64,
}

/// The records of a TiN.
#[derive(Clone, Debug)]
struct Told {
    /// The number behind the highest, and how many came.
    next: u32,
    came: u64,
    /// How many there must have been.
    made: u64,
    /// The latest time among them. Unit: ticks, modulo 2^48.
    last: u64,
    /// By number, modulo [`LOOK_BACK`]: whether it came.
    seen: Vec<u64>,
}

impl Told {
    fn new() -> Self {
        Self { next: 0, came: 0, made: 0, last: 0, seen: vec![0; LOOK_BACK as usize / 64] }
    }

    /// A record of this number has come. False if it had come before, or is too old to say.
    fn take(&mut self, number: u32) -> bool {
        let ahead = number.wrapping_sub(self.next);
        let place = |number: u32| ((number % LOOK_BACK / 64) as usize, number % 64);
        if ahead < u32::MAX / 2 {
            for skipped in 0..=ahead.min(LOOK_BACK - 1) {
                let (word, bit) = place(number.wrapping_sub(skipped));
                self.seen[word] &= !(1 << bit);
            }
            self.made += u64::from(ahead) + 1;
            self.next = number.wrapping_add(1);
        } else if self.next.wrapping_sub(number) > LOOK_BACK {
            return false;
        }
        let (word, bit) = place(number);
        let is_new = self.seen[word] >> bit & 1 == 0;
        self.seen[word] |= 1 << bit;
        self.came += u64::from(is_new);
        is_new
    }

    /// The share of its records that never came.
    fn lost_share(&self) -> f64 {
        if self.made == 0 { 0.0 } else { (self.made - self.came) as f64 / self.made as f64 }
    }
}

/// Cells that left by a link, and those of them that were seen no more.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    left: u64,
    vanished: u64,
    /// Cells that were seen at the very next TiN, and those of them at another than the link leads to.
    came_out: u64,
    elsewhere: u64,
    /// Cells of which nobody knows yet: the TiN at the other end has told nothing since they left. And how many records of
    /// it had come when that was so.
    unsaid: u64,
    since: u64,
}

impl Passed {
    /// A cell left at `ticks` and was seen no more. Where the other end has told nothing since, it may yet.
    fn vanish(&mut self, ticks: u64, there: Option<&Told>) {
        let is_heard = there.is_none_or(|told| told.came > 0 && behind(told.last, ticks) >= 0);
        if is_heard {
            (self.left, self.vanished) = (self.left + 1, self.vanished + 1);
            return;
        }
        let came = there.map_or(0, |told| told.came);
        let before = if self.since == came { self.unsaid } else { 0 };
        (self.unsaid, self.since) = (before + 1, came);
    }
}

/// What was told of cells with the same key, which go one after the other: the last may still be under way.
#[derive(Clone, Debug)]
struct Open {
    number: u64,
    kind: CellKind,
    /// By time.
    steps: Vec<Step>,
}

impl Open {
    fn take(&mut self, step: Step) {
        let later = |other: &&Step| behind(other.ticks, step.ticks) > 0;
        let place = self.steps.len() - self.steps.iter().rev().take_while(later).count();
        self.steps.insert(place, step);
    }

    /// When the first of its cells began. Unit: ticks, modulo 2^48.
    fn first(&self) -> u64 {
        self.steps[0].ticks
    }

    /// How many of its first `known` steps are the first cell's, which are put in order.
    fn one(&mut self, known: usize) -> usize {
        let (first, steps) = (self.first(), &mut self.steps[..known]);
        if may_be_one(steps) {
            // By time they may be in another order, as far as clocks of TiNs differ.
            steps.sort_by_key(|step| Reverse(step.rank()));
            return known;
        }
        // A key is used again once the cell before is there: the next begins anew.
        let pairs = steps.iter().zip(&steps[1..]);
        let goes_on = |(step, next): &(&Step, &Step)| {
            next.rank() < step.rank() && behind(next.ticks, first) <= WINDOW as i64
        };
        1 + pairs.take_while(goes_on).count()
    }
}

/// Whether all steps may be one cell's: none in the place of another, none too late.
fn may_be_one(steps: &[Step]) -> bool {
    let mut ranks = 0u64;
    steps.iter().all(|step| {
        let rank = 1 << step.rank();
        let is_new = ranks & rank == 0;
        ranks |= rank;
        is_new && behind(step.ticks, steps[0].ticks) <= WINDOW as i64
    })
}

/// Hears what TiNs tell. Knows the Clique as it is meant to be.
#[derive(Clone, Debug)]
pub struct Collector {
    intent: Intent,
    told: Vec<Told>,
    open: BTreeMap<Key, Open>,
    /// Steps of all of these.
    held: usize,
    /// Numbers and keys of what is open, the oldest first; some were closed before.
    ages: VecDeque<(u64, Key)>,
    begun: u64,
    /// The latest time that a record had. Unit: ticks, modulo 2^48.
    newest: Option<u64>,
    /// By TiN and external port.
    links: Vec<Passed>,
    /// Entries, and how many cells they misled.
    wrong: BTreeMap<Culprit, u64>,
    /// The longest that a cell took from one TiN to the next. Unit: ticks.
    longest: i64,
    heard: Heard,
}

impl Collector {
    /// One that has heard nothing, of a Clique that is wired so and has these tables.
    #[must_use]
    pub fn new(topology: &Topology, tables: Arc<Tables>) -> Self {
        let shape = topology.shape();
        let (tins, ports) = (usize::from(shape.tins()), usize::from(shape.external_ports()));
        Self {
            intent: Intent::new(topology, tables),
            told: vec![Told::new(); tins],
            open: BTreeMap::new(),
            held: 0,
            ages: VecDeque::new(),
            begun: 0,
            newest: None,
            links: vec![Passed::default(); tins * ports],
            wrong: BTreeMap::new(),
            longest: 0,
            heard: Heard::default(),
        }
    }

    /// The controller has installed other tables. What the last three before them allowed stays allowed: cells may have been
    /// under way meanwhile.
    pub fn install(&mut self, tables: Arc<Tables>) {
        self.intent.install(tables);
    }

    /// The controller writes entry after entry in a run: what stands in one at any time of it is allowed.
    pub fn allow(&mut self, journal: &Journal) {
        journal.writes().iter().for_each(|write| self.intent.write(write));
    }

    /// What it has heard so far.
    #[must_use]
    pub fn heard(&self) -> Heard {
        let lost = self.told.iter().map(|told| told.made - told.came).sum();
        Heard { lost, ..self.heard }
    }

    /// A datagram has come. Cells of which nothing more is expected go to `closed`.
    pub fn hear(&mut self, datagram: &[u8], closed: &mut Vec<Journey>) {
        for bytes in datagram.chunks(RECORD_BYTES) {
            match Record::decode(bytes) {
                Ok(record) => self.take(&record, closed),
                Err(_) => self.heard.refused += 1,
            }
        }
    }

    /// Nothing more will come: all cells go to `closed`. `end`: TiNs told what was until then, and what may have been under
    /// way does not count as lost; `None`: until nothing was. Unit: ticks of 2.5 ns, modulo 2^48.
    pub fn finish(&mut self, end: Option<u64>, closed: &mut Vec<Journey>) {
        let begun = closed.len();
        while let Some((number, key)) = self.ages.pop_front() {
            self.close(number, &key, None, closed);
        }
        let last = end.map(|end| end.wrapping_sub(2 * self.longest as u64));
        closed[begun..].iter().for_each(|journey| self.judge(journey, last));
    }

    fn take(&mut self, record: &Record, closed: &mut Vec<Journey>) {
        let read = Journey::read(record).filter(|(.., step)| self.intent.has(step));
        let Some((key, header, step)) = read else {
            self.heard.refused += 1;
            return;
        };
        if !self.told[usize::from(step.tin)].take(record.number) {
            self.heard.copies += 1;
            return;
        }
        let newest = *self.newest.get_or_insert(step.ticks);
        let age = behind(newest, step.ticks);
        if age > WINDOW as i64 {
            self.heard.late += 1;
            return;
        }
        let told = &mut self.told[usize::from(step.tin)];
        if told.came == 1 || behind(step.ticks, told.last) > 0 {
            told.last = step.ticks;
        }
        if age < 0 {
            self.newest = Some(step.ticks);
        }
        self.heard.records += 1;
        self.give_up(closed);
        self.held += 1;
        if let Some(open) = self.open.get_mut(&key) {
            return open.take(step);
        }
        self.wait_for(key, header.kind, vec![step]);
    }

    fn wait_for(&mut self, key: Key, kind: CellKind, steps: Vec<Step>) {
        self.begun += 1;
        self.open.insert(key, Open { number: self.begun, kind, steps });
        self.ages.push_back((self.begun, key));
    }

    /// Closes what is older than the window.
    fn give_up(&mut self, closed: &mut Vec<Journey>) {
        let (newest, begun) = (self.newest.unwrap_or(0), closed.len());
        while let Some(&(number, key)) = self.ages.front() {
            let open = self.open.get(&key).filter(|open| open.number == number);
            let is_young = open.is_some_and(|open| behind(newest, open.first()) <= WINDOW as i64);
            let is_full = self.held > HELD_MAX;
            if is_young && !is_full {
                break;
            }
            self.ages.pop_front();
            self.close(number, &key, Some(newest).filter(|_| !is_full), closed);
        }
        closed[begun..].iter().for_each(|journey| self.judge(journey, None));
    }

    /// Closes the cells of a key: all of them, or at a time those of which nothing more will come.
    fn close(&mut self, number: u64, key: &Key, now: Option<u64>, closed: &mut Vec<Journey>) {
        if self.open.get(key).is_none_or(|open| open.number != number) {
            return;
        }
        let Some(mut open) = self.open.remove(key) else { return };
        // Closed are cells that began half a window ago, and told apart are steps of a quarter: of the next cell some may have
        // come before those that begin it. A key in use is looked at once in a window.
        let is_over =
            |ticks, parts| now.is_none_or(|newest| behind(newest, ticks) > (WINDOW / parts) as i64);
        let mut known = open.steps.iter().take_while(|step| is_over(step.ticks, 4)).count();
        while known > 0 && is_over(open.first(), 2) {
            let count = open.one(known);
            let journey = Journey::new(key, open.kind, &open.steps[..count]);
            open.steps.drain(..count);
            known -= count;
            self.held -= count;
            self.heard.journeys += 1;
            self.time(&journey);
            closed.push(journey);
        }
        if !open.steps.is_empty() {
            self.wait_for(*key, open.kind, open.steps);
        }
    }

    /// Looks how long a cell took over its links.
    fn time(&mut self, journey: &Journey) {
        for (step, next) in journey.steps.iter().zip(journey.steps.iter().skip(1)) {
            if next.hops_before() == step.hops && self.is_right(step, next) {
                self.longest = self.longest.max(behind(next.ticks, step.ticks));
            }
        }
    }

    /// Whether a step is where the link leads that the step before went into.
    fn is_right(&self, step: &Step, next: &Step) -> bool {
        let far = self.intent.far(step.tin, step.output);
        far.is_some_and(|far| (far.tin, far.port) == (next.tin, next.input))
    }

    /// Counts what a cell did, up to its first wrong step. What left after `last`, if anything, may be under way.
    fn judge(&mut self, journey: &Journey, last: Option<u64>) {
        let (shape, steps) = (*self.intent.topology().shape(), &journey.steps);
        // Whether it is known to have come to this step by no fault.
        let mut is_led =
            steps.first().is_some_and(|step| shape.kind(step.input) == PortKind::Terminal);
        for (step, next) in steps.iter().zip(steps.iter().skip(1).map(Some).chain([None])) {
            if step.output == NOWHERE && step.hops == 0 {
                return;
            }
            if !self.intent.allows(step, journey.to, journey.kind) {
                *self.wrong.entry(self.entry(step, journey)).or_default() += u64::from(is_led);
                return;
            }
            if step.output == NOWHERE || shape.kind(step.output) == PortKind::Terminal {
                self.heard.arrived += u64::from(step.output != NOWHERE);
                return;
            }
            let (tin, port) = (step.tin, step.output);
            let place = self.place(tin, port);
            let Some(next) = next else {
                if last.is_none_or(|last| behind(last, step.ticks) >= 0) {
                    let far = self.intent.far(tin, port);
                    let told = far.map(|far| &self.told[usize::from(far.tin)]);
                    self.links[place].vanish(step.ticks, told);
                }
                return;
            };
            let is_right = self.is_right(step, next);
            let passed = &mut self.links[place];
            passed.left += 1;
            is_led = next.hops_before() == step.hops;
            passed.came_out += u64::from(is_led);
            if is_led && !is_right {
                passed.elsewhere += 1;
                return;
            }
        }
    }

    fn entry(&self, step: &Step, journey: &Journey) -> Culprit {
        let component = match self.intent.component(step.tin, journey.to) {
            Component::Far(component) => component,
            Component::Own(_) | Component::Unknown => u16::MAX,
        };
        let rvc = class_of(step.input_vc).map_or(u8::MAX, |(_, rvc)| rvc);
        Culprit::Entry { tin: step.tin, port: step.input, rvc, component }
    }

    fn place(&self, tin: u16, port: u8) -> usize {
        let ports = self.intent.topology().shape().external_ports();
        usize::from(tin) * usize::from(ports) + usize::from(port)
    }

    /// What is suspected by now, the surest first. Cells that are still open do not count.
    #[must_use]
    pub fn suspects(&self) -> Vec<Suspect> {
        let wrong = self.wrong.iter().filter(|&(_, &count)| count >= SIGHTINGS);
        let wrong = wrong.map(|(&culprit, &count)| Suspect {
            culprit,
            cells: count,
            wrong: count,
            surprise: f64::INFINITY,
        });
        let mut suspects: Vec<_> = wrong.chain(self.miswired()).collect();
        suspects.sort_by_key(|suspect| Reverse(suspect.wrong));
        suspects.extend(self.losses());
        suspects
    }

    /// Links that lead elsewhere.
    fn miswired(&self) -> impl Iterator<Item = Suspect> {
        let ports = usize::from(self.intent.topology().shape().external_ports());
        let enough = self.enough();
        let suspect = move |(place, link): (usize, &Passed)| {
            let (tin, port) = ((place / ports) as u16, (place % ports) as u8);
            let surprise =
                surprise(std::iter::once((link.came_out, link.elsewhere, self.chance(place))));
            let culprit = Culprit::Wiring { tin, port };
            Suspect { culprit, cells: link.came_out, wrong: link.elsewhere, surprise }
        };
        let suspects = self.links.iter().enumerate().map(suspect);
        suspects.filter(move |found| found.wrong >= SIGHTINGS && found.surprise > enough)
    }

    /// The links, with what nobody knows of where a TiN has been silent for so long that it counts as lost.
    fn links(&self) -> Vec<Passed> {
        let mut links = self.links.clone();
        let topology = self.intent.topology();
        for tin in 0..topology.shape().tins() {
            let ports = 0..topology.shape().external_ports();
            let into = ports.filter_map(|port| topology.far(tin, port));
            let into: Vec<_> = into.map(|far| self.place(far.tin, far.port)).collect();
            let came = self.told[usize::from(tin)].came;
            let unsaid = |link: &Passed| if link.since == came { link.unsaid } else { 0 };
            if into.iter().map(|&place| unsaid(&links[place])).sum::<u64>() > SILENT {
                for place in into {
                    let unsaid = unsaid(&links[place]);
                    links[place].left += unsaid;
                    links[place].vanished += unsaid;
                }
            }
        }
        links
    }

    /// D of what is named: of all links in use and all TiNs none has as much by chance.
    fn enough(&self) -> f64 {
        let used = self.links.iter().filter(|link| link.left + link.unsaid > 0).count();
        let tins = usize::from(self.intent.topology().shape().tins());
        libm::log((used + 2 * tins).max(1) as f64 / FALSE_ALARM)
    }

    /// Probability that a cell of a link is lost, or taken for another, without a fault.
    fn chance(&self, place: usize) -> f64 {
        let ports = usize::from(self.intent.topology().shape().external_ports());
        let far = self.intent.far((place / ports) as u16, (place % ports) as u8);
        let lost = far.map_or(0.0, |far| self.told[usize::from(far.tin)].lost_share());
        (BACKGROUND + lost).min(1.0 - BACKGROUND)
    }

    /// What loses cells.
    fn losses(&self) -> Vec<Suspect> {
        let mut links = self.links();
        let groups = self.groups(&links);
        let enough = self.enough();
        let mut suspects = Vec::new();
        loop {
            let mut best: Option<(Suspect, &[usize])> = None;
            for (culprit, places) in &groups {
                let suspect = self.suspect(*culprit, places, &links);
                let least = best.map_or(enough, |(best, _)| best.surprise);
                // Links come first: a TiN is named only if it explains more than any one of its links.
                if suspect.surprise > least {
                    best = Some((suspect, places));
                }
            }
            let Some((suspect, places)) = best else { return suspects };
            suspects.push(suspect);
            places.iter().for_each(|&place| links[place] = Passed::default());
        }
    }

    /// What may lose cells, and the links whose cells would be lost: links, then TiNs.
    fn groups(&self, links: &[Passed]) -> Vec<(Culprit, Vec<usize>)> {
        let topology = self.intent.topology();
        let shape = topology.shape();
        let ports = |tin: u16| {
            (0..shape.external_ports()).filter(move |&port| topology.far(tin, port).is_some())
        };
        let mut groups = Vec::new();
        for tin in 0..shape.tins() {
            let of_link = |port| (Culprit::Link { tin, port }, vec![self.place(tin, port)]);
            groups.extend(ports(tin).map(of_link).filter(|(_, at)| links[at[0]].vanished > 0));
        }
        for tin in 0..shape.tins() {
            let into = ports(tin).filter_map(|port| topology.far(tin, port));
            let into = into.map(|far| self.place(far.tin, far.port)).collect();
            groups.push((Culprit::Inputs(tin), into));
            let out = ports(tin).map(|port| self.place(tin, port)).collect();
            groups.push((Culprit::Outputs(tin), out));
        }
        groups
    }

    /// How unlikely it is that so many cells of some links are lost by chance.
    fn suspect(&self, culprit: Culprit, places: &[usize], links: &[Passed]) -> Suspect {
        let (mut cells, mut wrong) = (0, 0);
        for &place in places {
            (cells, wrong) = (cells + links[place].left, wrong + links[place].vanished);
        }
        let counts =
            |&place: &usize| (links[place].left, links[place].vanished, self.chance(place));
        let surprise = surprise(places.iter().map(counts));
        Suspect { culprit, cells, wrong, surprise }
    }
}

/// By how much one time is behind another, both modulo 2^48. Unit: ticks.
fn behind(newest: u64, ticks: u64) -> i64 {
    let spare = u64::BITS - TIME_BITS;
    (newest.wrapping_sub(ticks) << spare) as i64 >> spare
}

/// D of some links, each with its cells, those of them that went wrong, and the probability that one does by chance; zero if
/// no more went wrong than these make one expect.
fn surprise(links: impl Iterator<Item = (u64, u64, f64)> + Clone) -> f64 {
    let (mut cells, mut wrong, mut expected, mut count) = (0, 0, 0.0, 0);
    for (left, failed, chance) in links.clone() {
        (cells, wrong, count) = (cells + left, wrong + failed, count + 1);
        expected += left as f64 * chance;
    }
    if wrong as f64 <= expected {
        return 0.0;
    }
    let share = wrong as f64 / cells as f64;
    let times = |count: u64, of: f64, by: f64| match count {
        0 => 0.0,
        count => count as f64 * libm::log(of / by),
    };
    let each = links.map(|(left, failed, chance)| {
        times(failed, share, chance) + times(left - failed, 1.0 - share, 1.0 - chance)
    });
    let choices = if count > 1 { (cells + 1) as f64 } else { 1.0 };
    each.sum::<f64>() - libm::log(choices)
}

#[cfg(test)]
mod collector_tests {
    use super::*;

    fn one(left: u64, vanished: u64, p: f64) -> f64 {
        surprise(std::iter::once((left, vanished, p)))
    }

    /// The bound holds against the exact tail of the binomial distribution, and is not idle.
    #[test]
    fn m904_what_is_a_surprise_is_as_rare_as_it_says() {
        for (n, p) in [(1u64, 0.01), (10, 0.2), (50, 0.001), (400, 0.03)] {
            // Probability of exactly k, from that of k - 1.
            let mut exact = vec![(1.0f64 - p).powi(n as i32)];
            for k in 1..=n {
                let before = exact[k as usize - 1];
                exact.push(before * (n - k + 1) as f64 / k as f64 * p / (1.0 - p));
            }
            for k in 0..=n {
                let tail: f64 = exact[k as usize..].iter().sum();
                let bound = (-one(n, k, p)).exp();
                assert!(tail <= bound * (1.0 + 1e-9), "{k} of {n} at {p}: {tail} above {bound}");
            }
            // It is the probability itself where all of them are lost.
            let (bound, all) = ((-one(n, n, p)).exp(), exact[n as usize]);
            assert!((bound - all).abs() <= 1e-9 * all, "{n} of {n} at {p}: {all}, not {bound}");
        }
    }

    #[test]
    fn m902_copies_and_gaps_of_record_numbers_are_known() {
        let mut told = Told::new();
        let came: Vec<_> = [0, 1, 3, 3, 2, 2, 9_000, 4, 9_000 - 4_095, 9_001].into_iter().collect();
        let new: Vec<_> = came.into_iter().map(|number| told.take(number)).collect();
        assert_eq!(new, [true, true, true, false, true, false, true, false, true, true]);
        assert_eq!((told.came, told.made), (7, 9_002));
    }

    #[test]
    fn m902_times_go_round() {
        assert_eq!(behind(5, (1 << 48) - 5), 10);
        assert_eq!(behind((1 << 48) - 5, 5), -10);
    }
}
