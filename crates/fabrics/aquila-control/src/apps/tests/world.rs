//! Chips, wires and a clock around a constellation: messages are delivered in any order, and some are lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use aquila::pipeline::plan::Plan;
use aquila::tables::Condition;
use aquila::tables::condition::State;
use aquila::topology::{Fibres, Shape, Topology};
use aquila::turns::TurnTable;
use kernel::{Span, Stream, Time};

use crate::apps::Clique;
use crate::apps::constellation::{Constellation, Outside};
use crate::apps::election::{Application, LEASE};
use crate::apps::front_end::Settings;
use crate::apps::front_end::upgrade::{self, PlanRow, Trials};
use crate::apps::operator::Wish;
use crate::apps::rows::{Admin, BatchRow};
use crate::apps::session::{Over, Progress, Session};
use crate::flash::{Code, FACTORY, Flash, GENERATION, Image, Trial};
use crate::memory::Memory;
use crate::nib::{Key, Nib, Table, Write};
use crate::registers::file::RegisterFile;
use crate::rpc::{Agent, Item, MESSAGE_BYTES_MAX, Outcome, Restart};

/// What passes between two looks at the clock.
const STEP: Span = Span::from_us(20_000);
/// For how long images are on trial.
const TRIAL: Span = Span::from_us(2_000_000);

/// A chip and its firmware.
pub struct Chip {
    pub file: RegisterFile,
    pub flash: Flash,
    pub agent: Agent,
    pub boot: u32,
    /// The version that runs: what the flash held when it last started.
    pub firmware: u16,
    /// While it is on trial: when its watchdog restarts it.
    watchdog: Option<Time>,
    /// Whose session it has, and which session that is.
    pub session: Option<(u8, u32)>,
    /// Whether sessions can be had at all.
    pub can_connect: bool,
    sessions: u32,
    /// The last request of its session: it may come once more.
    last: Vec<u8>,
}

/// A message between a chip and an instance of the front end.
struct Wire {
    tin: u16,
    instance: u8,
    session: u32,
    bytes: Vec<u8>,
    is_to_chip: bool,
}

pub struct World {
    pub clique: Arc<Clique>,
    pub now: Time,
    pub constellation: Constellation,
    pub chips: Vec<Chip>,
    pub progress: Vec<Progress>,
    pub told: Vec<(u8, Vec<u8>)>,
    wires: Vec<Wire>,
    pub stream: Stream,
    /// Of a hundred messages, how many are lost.
    pub loss: u64,
    /// Entries that were written to chips.
    pub written: u64,
    /// Messages, requests and answers that were lost.
    pub lost: u64,
    /// Restarts for another version of the firmware, and those by which it gave way to the one before.
    pub restarts: u64,
    pub rolled_back: u64,
    /// Called after each item that a chip has written.
    pub watch: Option<fn(&World, u16, &Item)>,
    /// Called when nothing is on its way.
    pub watch_step: Option<fn(&World)>,
    /// The base, as a subscriber knows it that is there all the time: by row, version and value.
    pub rows: BTreeMap<Key, (u64, Vec<u8>)>,
    seen: u64,
    /// Steps, and how many of them there have been since the base has changed.
    pub steps: u64,
    pub quiet: usize,
}

pub fn clique(shape: &Shape) -> Arc<Clique> {
    let topology = Topology::new(shape, Fibres::Grid).unwrap();
    Arc::new(Clique::new(topology, TurnTable::P1, Plan::new(shape, 2)))
}

impl World {
    /// Chips that have just got power, and an empty base.
    pub fn new(shape: &Shape, seed: u64) -> Self {
        let fresh = vec![RegisterFile::new(); usize::from(shape.tins())];
        Self::around(clique(shape), seed, Nib::new(), fresh)
    }

    /// A controller that has just started, with a base and chips that there are.
    pub fn around(clique: Arc<Clique>, seed: u64, base: Nib, files: Vec<RegisterFile>) -> Self {
        let trials = Trials { processor: TRIAL, chip: TRIAL };
        let settings = Settings { trials, ..Settings::default() };
        let constellation = Constellation::around(Time::ZERO, clique.clone(), settings, base);
        let chip = |file| Chip {
            file,
            flash: Flash::default(),
            agent: Agent::new(&Memory::default()).unwrap(),
            boot: 1,
            firmware: FACTORY,
            watchdog: None,
            session: None,
            can_connect: true,
            sessions: 0,
            last: Vec::new(),
        };
        Self {
            chips: files.into_iter().map(chip).collect(),
            clique,
            now: Time::ZERO,
            constellation,
            progress: Vec::new(),
            told: Vec::new(),
            wires: Vec::new(),
            stream: Stream::new(seed, "order and losses", 0),
            loss: 0,
            written: 0,
            lost: 0,
            restarts: 0,
            rolled_back: 0,
            watch: None,
            watch_step: None,
            rows: BTreeMap::new(),
            seen: 0,
            steps: 0,
            quiet: 0,
        }
    }

    /// Messages and wires, until nothing is on its way; then time goes on by some milliseconds.
    pub fn step(&mut self) {
        loop {
            self.collect();
            let (messages, wires) = (self.constellation.messages().len(), self.wires.len());
            if messages + wires == 0 {
                break;
            }
            let at = self.stream.below((messages + wires) as u64) as usize;
            let is_lost = self.stream.below(100) < self.loss;
            self.lost += u64::from(is_lost);
            match (at.checked_sub(messages), is_lost) {
                (None, true) => self.constellation.lose(at),
                (None, false) => self.deliver(at),
                (Some(at), true) => drop(self.wires.remove(at)),
                (Some(at), false) => self.wire(at),
            }
        }
        self.subscribe();
        if let Some(watch) = self.watch_step {
            watch(self);
        }
        self.steps += 1;
        self.now += STEP;
        self.constellation.tick(self.now);
        self.look_at_trials();
        self.connect();
    }

    /// A message arrives. No batch is in the base before all results of the last one are (I72).
    fn deliver(&mut self, at: usize) {
        let before = self.batch();
        self.constellation.deliver(self.now, at);
        let after = self.batch();
        let (Some((number, is_done)), Some((next, _))) = (before, after) else { return };
        let is_next = next == number || next == number + 1 && is_done;
        assert!(
            is_next,
            "I72: batch {next} after {number}, of which all results are in: {is_done}"
        );
    }

    /// The last batch, and whether all its results are in; `None`: no copy of the base runs.
    fn batch(&self) -> Option<(u64, bool)> {
        let base = self.constellation.base()?;
        let row = base.get(Table::Batch, &[]).and_then(|(_, row)| BatchRow::decode(&row));
        Some((base.batch(), row.is_none_or(|row| row.is_done)))
    }

    /// Takes over what is new in the base.
    fn subscribe(&mut self) {
        let Some(base) = self.constellation.base() else { return };
        let changes = base.since(self.seen, &Table::ALL);
        if changes.is_everything {
            self.rows.clear();
        }
        self.seen = changes.version;
        let is_news = changes.changes.iter().any(|change| change.key.0 != Table::Lease);
        self.quiet = if is_news { 0 } else { self.quiet + 1 };
        for change in changes.changes {
            match change.value {
                Some(value) => self.rows.insert(change.key, (change.version, value)),
                None => self.rows.remove(&change.key),
            };
        }
    }

    /// Sessions for the front end that leads, with all chips that can.
    fn connect(&mut self) {
        let Some((leader, _)) = self.constellation.leader(Application::FrontEnd) else { return };
        for tin in 0..self.chips.len() as u16 {
            let chip = &mut self.chips[usize::from(tin)];
            let is_silent = !chip.can_connect || chip.flash.is_silent();
            if is_silent || chip.session.is_some_and(|(of, _)| of == leader) {
                continue;
            }
            chip.sessions += 1;
            chip.session = Some((leader, chip.sessions));
            chip.agent.begin();
            chip.last.clear();
            let (boot, firmware) = (chip.boot, chip.firmware);
            let up = Session::Up { tin, over: Over::Tcp, boot, firmware };
            self.constellation.session(self.now, leader, up);
        }
    }

    /// A chip's session is lost, and messages with it.
    pub fn disconnect(&mut self, tin: u16, can_connect: bool) {
        let chip = &mut self.chips[usize::from(tin)];
        chip.can_connect = can_connect;
        if let Some((instance, _)) = chip.session.take() {
            self.constellation.session(self.now, instance, Session::Down { tin });
        }
    }

    /// A chip loses its power.
    pub fn reset(&mut self, tin: u16) {
        self.disconnect(tin, true);
        let chip = &mut self.chips[usize::from(tin)];
        chip.file = RegisterFile::new();
        chip.boot += 1;
        chip.flash.cut(self.now);
        self.boot(tin);
    }

    /// The boot loader starts what the flash holds, on trial under a watchdog.
    fn boot(&mut self, tin: u16) {
        let chip = &mut self.chips[usize::from(tin)];
        chip.firmware = chip.flash.start(GENERATION).expect("one is always whole").version;
        chip.watchdog = chip.flash.trial_time().map(|time| self.now + time);
    }

    /// Images whose trial is over and that were not confirmed give way.
    fn look_at_trials(&mut self) {
        for tin in 0..self.chips.len() as u16 {
            let chip = &mut self.chips[usize::from(tin)];
            let Some(at) = chip.watchdog else { continue };
            if chip.flash.trial() != Trial::Runs {
                chip.watchdog = None;
            } else if at <= self.now {
                chip.flash.expire();
                self.restart(tin, Restart::Processor);
                self.rolled_back += 1;
                assert_eq!(self.chips[usize::from(tin)].flash.trial(), Trial::Back);
            }
        }
    }

    fn collect(&mut self) {
        for outside in self.constellation.outside() {
            match outside {
                Outside::Progress(progress) => self.progress.push(progress),
                Outside::Tell(shard, bytes) => self.told.push((shard, bytes)),
                Outside::Leads(instance) => {
                    // Whoever led before loses its sessions.
                    for chip in &mut self.chips {
                        chip.session = chip.session.filter(|&(of, _)| of != instance);
                    }
                }
                Outside::Request(instance, request) => {
                    assert!(request.bytes.len() <= MESSAGE_BYTES_MAX, "I73");
                    let chip = &self.chips[usize::from(request.tin)];
                    let Some((_, session)) = chip.session.filter(|&(of, _)| of == instance) else {
                        continue;
                    };
                    let (tin, bytes) = (request.tin, request.bytes);
                    let other = self.wires.iter().any(|wire| {
                        (wire.tin, wire.session) == (tin, session)
                            && wire.bytes != bytes
                            && wire.is_to_chip
                    });
                    assert!(!other, "I73: a second request");
                    self.wires.push(Wire { tin, instance, session, bytes, is_to_chip: true });
                }
            }
        }
    }

    fn wire(&mut self, at: usize) {
        let wire = self.wires.remove(at);
        let chip = &mut self.chips[usize::from(wire.tin)];
        if chip.session != Some((wire.instance, wire.session)) {
            return;
        }
        if !wire.is_to_chip {
            let answer = Session::Answer { tin: wire.tin, bytes: wire.bytes };
            self.constellation.session(self.now, wire.instance, answer);
            return;
        }
        // One that comes again is not done again.
        if chip.last != wire.bytes {
            chip.last.clone_from(&wire.bytes);
            self.write(wire.tin, &wire.bytes);
        }
        let chip = &mut self.chips[usize::from(wire.tin)];
        let bytes = chip
            .agent
            .receive(self.now, &mut chip.file, &mut chip.flash, &wire.bytes)
            .expect("a request")
            .to_vec();
        let restart = chip.agent.take_restart();
        let answer = crate::rpc::Answer::decode(&bytes).unwrap();
        let written = answer.outcomes.iter().filter(|o| **o == Outcome::Written).count();
        self.written += written as u64;
        if let Some(restart) = restart {
            self.restart(wire.tin, restart);
        } else {
            self.wires.push(Wire { is_to_chip: false, bytes, ..wire });
        }
    }

    /// A processor starts what its flash holds; the chip goes on, or starts cold.
    fn restart(&mut self, tin: u16, restart: Restart) {
        self.restarts += 1;
        match restart {
            Restart::Processor => {
                let can_connect = self.chips[usize::from(tin)].can_connect;
                self.disconnect(tin, can_connect);
            }
            Restart::Chip => self.reset(tin),
        }
        self.chips[usize::from(tin)].agent = Agent::new(&Memory::default()).unwrap();
        if restart == Restart::Processor {
            self.boot(tin);
        }
    }

    /// Operators want another version of the firmware on all TiNs.
    pub fn upgrade(&mut self, version: u16, restart: Restart, at_once: u8, code: Code) {
        // A small one: two blocks and a half.
        let bytes: Vec<u8> = (0..10_000).map(|at: u32| (at * 7) as u8 ^ version as u8).collect();
        let image = Image::of(version, GENERATION, bytes.into()).doing(code);
        let Some(base) = self.constellation.base() else { return };
        let writes = PlanRow::writes(base, &image, restart, at_once);
        self.constellation.write(&writes);
    }

    /// How far the last upgrade is.
    pub fn upgrade_progress(&self) -> Option<upgrade::Progress> {
        self.constellation.base().and_then(upgrade::Progress::of)
    }

    /// A chip writes the items of a request one by one, and is looked at after each. No entry is written that is right
    /// (I76).
    fn write(&mut self, tin: u16, bytes: &[u8]) {
        for item in crate::rpc::Request::decode(bytes).unwrap().items {
            let file = &mut self.chips[usize::from(tin)].file;
            let (address, size, bytes) = match &item {
                Item::Write { address, entry } => {
                    (*address, entry.as_bytes().len(), entry.as_bytes())
                }
                Item::WriteBlock { address, size, bytes } => {
                    (*address, usize::from(*size), &bytes[..])
                }
                _ => continue,
            };
            let held = file.read_block(address, (bytes.len() / size) as u32).unwrap_or_default();
            let right = held.chunks(size).zip(bytes.chunks(size)).position(|(a, b)| a == b);
            assert_eq!(right, None, "I76: from {address:#x} of TiN {tin} on, written as it was");
            if file.write_block(address, size, bytes).is_ok()
                && let Some(watch) = self.watch
            {
                watch(self, tin, &item);
            }
        }
    }

    /// Until nothing has to be done any more: for as long as a lease lasts, within which whoever has missed something
    /// has asked for it again.
    #[track_caller]
    pub fn settle(&mut self) {
        let enough = LEASE.as_ps() / STEP.as_ps() + 20;
        let until = self.now + Span::from_us(200_000_000);
        let mut quiet = 0;
        while quiet < enough {
            self.step();
            let is_settled =
                self.constellation.routing_engine().is_some_and(|app| app.is_settled())
                    && self.all_complete()
                    && self.is_upgraded();
            quiet = if is_settled { quiet + 1 } else { 0 };
            assert!(
                self.now < until,
                "not settled: {:?} {:?}",
                self.constellation.routing_engine().map(|app| app.counts()),
                self.constellation.flow_manager().map(|app| app.counts()),
            );
        }
    }

    fn is_upgraded(&self) -> bool {
        let tins = self.chips.len() as u16;
        self.upgrade_progress().is_none_or(|progress| progress.is_over(tins))
    }

    fn all_complete(&self) -> bool {
        let Some(front_end) = self.constellation.front_end() else { return false };
        (0..).zip(&self.chips).all(|(tin, chip)| !chip.can_connect || front_end.is_complete(tin))
    }

    pub fn set_node(&mut self, tin: u16, admin: Admin) {
        self.constellation.write(&[Wish::Tin(tin, admin).write()]);
    }

    /// A TiN says which of its ports are up.
    pub fn set_ports(&mut self, tin: u16, up: u64) {
        let write = Write::set(Table::Port, &tin.to_be_bytes(), &up.to_be_bytes());
        self.constellation.write(&[write]);
    }

    pub fn set_link(&mut self, link: u32, admin: Admin) {
        self.constellation.write(&[Wish::Link(link, admin).write()]);
    }

    /// Whether the operator has been told that a TiN may be taken out.
    pub fn is_drained(&self, tin: u16) -> bool {
        Wish::Tin(tin, Admin::Drained).is_drained(self.constellation.base().unwrap())
    }

    /// Everything lives but these.
    pub fn condition(&self, tins: &[(u16, State)], links: &[(u32, State)]) -> Condition {
        let mut condition = Condition::healthy(&self.clique.topology);
        tins.iter().for_each(|&(tin, state)| condition.set_tin(tin, state));
        links.iter().for_each(|&(link, state)| condition.set_link(link, state));
        condition
    }

    pub fn files(&self) -> Vec<RegisterFile> {
        self.chips.iter().map(|chip| chip.file.clone()).collect()
    }
}
