//! Chips, wires and a clock around a constellation: messages are delivered in any order, and some are lost.

use std::sync::Arc;

use aquila::pipeline::plan::Plan;
use aquila::tables::Condition;
use aquila::tables::condition::State;
use aquila::topology::{Fibres, Shape, Topology};
use aquila::turns::TurnTable;
use kernel::{Span, Stream, Time};

use crate::apps::Clique;
use crate::apps::constellation::{Constellation, Outside};
use crate::apps::election::Application;
use crate::apps::front_end::Settings;
use crate::apps::rows::Admin;
use crate::apps::session::{Over, Progress, Session};
use crate::memory::Memory;
use crate::nib::{Nib, Table, Write};
use crate::registers::file::RegisterFile;
use crate::rpc::{Agent, Item, MESSAGE_BYTES_MAX, Outcome};

/// A chip and its firmware.
pub struct Chip {
    pub file: RegisterFile,
    pub agent: Agent,
    pub boot: u32,
    /// Whose session it has, and which session that is.
    pub session: Option<(u8, u32)>,
    /// Whether sessions can be had at all.
    pub can_connect: bool,
    sessions: u32,
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
    /// Called after each item that a chip has written.
    pub watch: Option<fn(&World, u16)>,
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
        let settings = Settings::default();
        let constellation = Constellation::around(Time::ZERO, clique.clone(), settings, base);
        let chip = |file| Chip {
            file,
            agent: Agent::new(&Memory::default()).unwrap(),
            boot: 1,
            session: None,
            can_connect: true,
            sessions: 0,
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
            watch: None,
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
            match (at.checked_sub(messages), is_lost) {
                (None, true) => self.constellation.lose(at),
                (None, false) => self.constellation.deliver(self.now, at),
                (Some(at), _) => self.wire(at),
            }
        }
        self.now += Span::from_us(20_000);
        self.constellation.tick(self.now);
        self.connect();
    }

    /// Sessions for the front end that leads, with all chips that can.
    fn connect(&mut self) {
        let Some((leader, _)) = self.constellation.leader(Application::FrontEnd) else { return };
        for tin in 0..self.chips.len() as u16 {
            let chip = &mut self.chips[usize::from(tin)];
            if !chip.can_connect || chip.session.is_some_and(|(of, _)| of == leader) {
                continue;
            }
            chip.sessions += 1;
            chip.session = Some((leader, chip.sessions));
            chip.agent.begin();
            let up = Session::Up { tin, over: Over::Tcp, boot: chip.boot };
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
        if let Some(watch) = self.watch {
            for item in crate::rpc::Request::decode(&wire.bytes).unwrap().items {
                let file = &mut self.chips[usize::from(wire.tin)].file;
                let is_written = match item {
                    Item::Write { address, entry } => file.write(address, &entry).is_ok(),
                    Item::WriteBlock { address, size, bytes } => {
                        file.write_block(address, size.into(), &bytes).is_ok()
                    }
                    _ => false,
                };
                if is_written {
                    watch(self, wire.tin);
                }
            }
        }
        let chip = &mut self.chips[usize::from(wire.tin)];
        let bytes = chip.agent.receive(&mut chip.file, &wire.bytes).expect("a request").to_vec();
        let answer = crate::rpc::Answer::decode(&bytes).unwrap();
        let written = answer.outcomes.iter().filter(|o| **o == Outcome::Written).count();
        self.written += written as u64;
        self.wires.push(Wire { is_to_chip: false, bytes, ..wire });
    }

    /// Until nothing has to be done any more.
    #[track_caller]
    pub fn settle(&mut self) {
        let until = self.now + Span::from_us(200_000_000);
        let mut quiet = 0;
        while quiet < 20 {
            self.step();
            let is_settled =
                self.constellation.routing_engine().is_some_and(|app| app.is_settled())
                    && self.all_complete();
            quiet = if is_settled { quiet + 1 } else { 0 };
            assert!(
                self.now < until,
                "not settled: {:?} {:?}",
                self.constellation.routing_engine().map(|app| app.counts()),
                self.constellation.flow_manager().map(|app| app.counts()),
            );
        }
    }

    fn all_complete(&self) -> bool {
        let Some(front_end) = self.constellation.front_end() else { return false };
        (0..).zip(&self.chips).all(|(tin, chip)| !chip.can_connect || front_end.is_complete(tin))
    }

    pub fn set_node(&mut self, tin: u16, admin: Admin) {
        self.constellation.write(&[Write::set(Table::Node, &tin.to_be_bytes(), &[admin as u8])]);
    }

    pub fn set_link(&mut self, link: u32, admin: Admin) {
        self.constellation.write(&[Write::set(Table::Link, &link.to_be_bytes(), &[admin as u8])]);
    }

    /// Whether the operator has been told that a TiN may be taken out.
    pub fn is_drained(&self, tin: u16) -> bool {
        let key = [&tin.to_be_bytes()[..], &[1]].concat();
        self.constellation.base().unwrap().get(Table::Node, &key).is_some()
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
