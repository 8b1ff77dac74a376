//! A Clique's control plane from power-on, in simulated time.
//!
//! Models: Aquila §4.4, fig. 6 (M801 to M815): the firmware of every TiN, the controller's session manager, switches of the
//! spine that relay DHCP, and the way of every packet of the control plane: hop by hop, by what the registers of the chips
//! say at that moment. Nothing is skipped but time in which nothing happens.
//!
//! **Our choice**: all times of [`Config`]; a packet takes the time of its hops and is not queued, as control packets
//! are few; what links and chips do when they fail.
//!
//! Leaves out: cells (a packet is looked up as a whole), and the traffic of hosts.

mod controller;
pub mod journal;
mod links;
mod packets;
pub mod path;
pub mod results;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

use aquila::pipeline::Interface;
use aquila::pipeline::plan::Plan;
use aquila::topology::{Shape, Topology};
use kernel::{Calendar, Span, Stream, Time};

use crate::apps::constellation::{Constellation, Name};
use crate::apps::front_end;
use crate::apps::front_end::upgrade::PlanRow;
use crate::apps::operator::Wish;
use crate::apps::rows::Admin;
use crate::bootstrap::{self, Stage};
use crate::dhcp;
use crate::firmware::chip::Chip;
use crate::firmware::{self, Firmware, NotStarted};
use crate::flash::{BLOCK_TIME, Code, Flash, GENERATION, Image};
use crate::memory::Memory;
use crate::nib::{Nib, Table};
use crate::pmos;
use crate::rpc::Restart;
use crate::session::Addresses;
use controller::{Controller, Told};
use journal::{Journal, What};
use links::Links;
use results::Results;

/// The controller's addresses, and that of the DHCP server and of the spine's switches (our choice).
pub const CONTROLLER: Addresses = Addresses {
    v4: Ipv4Addr::new(172, 16, 0, 1),
    v6: Some(Ipv6Addr::new(0xfd48, 0, 0, 0, 0, 0, 0, 1)),
};
const SERVER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const SPINE: Ipv4Addr = Ipv4Addr::new(172, 16, 1, 1);

/// How often it is looked at whether all is done (our choice).
const LOOK: Span = Span::from_us(250_000);

const fn ms(ms: u64) -> Span {
    Span::from_us(1_000 * ms)
}

/// What happens to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A link carries nothing any more, or does again.
    Link {
        /// By its index.
        link: u32,
        /// Which of it.
        is_up: bool,
    },
    /// A TiN's link to the datacenter's network, the same.
    Ethernet {
        /// The TiN.
        tin: u16,
        /// Which of it.
        is_up: bool,
    },
    /// A control processor restarts; its chip goes on (M609).
    Restart {
        /// The TiN.
        tin: u16,
    },
    /// A TiN loses its power, or gets it back: a cold start (M611).
    Power {
        /// The TiN.
        tin: u16,
        /// Which of it.
        is_on: bool,
    },
    /// Operators want something else of a TiN (M730).
    AdminTin {
        /// The TiN.
        tin: u16,
        /// What.
        admin: Admin,
    },
    /// The same of a link.
    AdminLink {
        /// By its index.
        link: u32,
        /// What.
        admin: Admin,
    },
    /// Operators want another version of the firmware on all TiNs, a few at a time (M617).
    Upgrade {
        /// Which.
        version: u16,
        /// What restarts for it.
        restart: Restart,
        /// On how many TiNs at once.
        at_once: u8,
        /// What its image does.
        code: Code,
    },
    /// All instances of all applications are others, which know what is in the base, and no session.
    Controller,
    /// An instance of an application stops, or starts anew.
    Instance {
        /// Which.
        name: Name,
        /// Which of it.
        runs: bool,
    },
    /// A copy of the base stops, unless it is the last, or starts with what the other one holds.
    Base {
        /// Which.
        copy: u8,
        /// Which of it.
        runs: bool,
    },
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many of everything the Clique has.
    pub shape: Shape,
    /// TiNs that are connected to the datacenter's network.
    pub connected: Vec<u16>,
    /// Of all that is drawn.
    pub seed: u64,
    /// From one management ordered set to the next on a link (M614).
    pub mos_interval: Span,
    /// Of a million ordered sets, so many are lost.
    pub mos_lost: u32,
    /// How long a control processor takes for an entry of a register.
    pub entry_time: Span,
    /// How long a control processor's flash takes for a block; images go as fast as that allows.
    pub block_time: Span,
    /// All TiNs are switched on within this time.
    pub power_on: Span,
    /// From the power, or from the start of a restart, until the firmware runs (M609: 5 s).
    pub start_time: Span,
    /// Until words are told apart on a link, and until cells cross it.
    pub lock_time: Span,
    /// The same.
    pub up_time: Span,
    /// From the controller, or the DHCP server, to a TiN's Ethernet port.
    pub network: Span,
    /// From a TiN to the next.
    pub hop: Span,
    /// From one part of the controller to another: they are on servers of their own (M701).
    pub message: Span,
    /// Of a million messages between instances and base, so many are lost.
    pub messages_lost: u32,
    /// The controller's patience.
    pub manager: bootstrap::Settings,
    /// How fast it writes (M727).
    pub front_end: front_end::Settings,
    /// What happens, and when.
    pub faults: Vec<(Time, Fault)>,
    /// Nothing later than this is looked at.
    pub limit: Time,
}

impl Config {
    /// A Clique whose links carry an ordered set each 10 µs, and whose processors take no time: to look at what happens, and
    /// not at how long it takes.
    #[must_use]
    pub fn new(shape: &Shape, connected: Vec<u16>, seed: u64) -> Self {
        Self {
            shape: *shape,
            connected,
            seed,
            mos_interval: Span::from_us(10),
            mos_lost: 0,
            entry_time: Span::ZERO,
            block_time: BLOCK_TIME,
            power_on: ms(1_000),
            start_time: ms(5_000),
            lock_time: ms(50),
            up_time: ms(1_000),
            network: Span::from_us(100),
            hop: Span::from_us(1),
            message: Span::from_us(200),
            messages_lost: 0,
            manager: bootstrap::Settings::default(),
            // Sessions lose nothing, and a request may take a slow processor long.
            front_end: front_end::Settings { again: ms(3_600_000), ..Default::default() },
            faults: Vec::new(),
            limit: Time::ZERO + ms(24 * 3_600_000),
        }
    }
}

/// What comes next. Parcels stand beside, as events are copied.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A firmware is to run.
    Start { tin: u16, life: u32 },
    /// A link gets further.
    Link { link: u32, life: u32, is_up: bool },
    /// The last word of a port's frame has gone.
    Gone { tin: u16, port: u8, life: u32 },
    /// A firmware is to be told that time has passed.
    Firmware { tin: u16 },
    /// The session manager is.
    Manager,
    /// Something arrives.
    Parcel { place: u32 },
    /// A message between parts of the controller arrives.
    Message,
    /// The controller is to be told that time has passed.
    Tick,
    /// A shard of the inter-block controllers says what it reaches.
    Shard,
    /// Something happens.
    Fault { at: u32 },
}

/// Something on its way.
#[derive(Clone, Debug)]
enum Parcel {
    /// To a TiN's firmware.
    Firmware { tin: u16, life: u32, input: firmware::Input },
    /// To the session manager of this life.
    Manager { life: u32, input: bootstrap::Input },
    /// To the session manager, whichever there is.
    Packet(Vec<u8>),
    /// From the session manager of this life to other parts of the controller.
    Controller { life: u32, told: Told },
    /// To the DHCP server: from a TiN's link, or from the controller.
    Server { from: Option<u16>, message: Vec<u8> },
    /// An acknowledgement of PMOS out of a port.
    Ack { tin: u16, port: u8, life: u32, frame: pmos::Frame },
}

/// A TiN.
#[derive(Debug)]
struct Node {
    chip_start: u32,
    memory: Memory,
    /// `None`: it has no power, or starts.
    firmware: Option<Firmware>,
    /// Starts of its processor so far.
    life: u32,
    is_on: bool,
    is_ethernet_up: bool,
    /// Its event is there.
    scheduled: Option<Time>,
}

/// A Clique from power-on.
#[derive(Debug)]
pub struct Sim {
    config: Config,
    topology: Topology,
    plan: Plan,
    now: Time,
    calendar: Calendar<Event>,
    parcels: Vec<Option<Parcel>>,
    free: Vec<u32>,
    nodes: Vec<Node>,
    chips: Vec<Chip>,
    links: Links,
    server: dhcp::Server,
    controller: Controller,
    /// TiNs that the controller has had ready since their cold start (I82).
    ready: Vec<bool>,
    results: Results,
    journal: Journal,
}

impl Sim {
    /// A Clique that is about to be switched on.
    ///
    /// # Panics
    /// If there is no such Clique, or its connected TiNs are not in it.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut sim = Self::without_power(config, Nib::new());
        let mut stream = Stream::new(sim.config.seed, "power", 0);
        for tin in 0..sim.nodes.len() as u16 {
            let wait = stream.below(sim.config.power_on.as_ps() / 1_000_000 + 1);
            sim.power_on(tin, Span::from_us(wait));
        }
        sim.start_controller();
        sim
    }

    /// A Clique whose chips hold what they are to hold, whose links are up, and whose controller has just started.
    pub(in crate::sim) fn up(config: Config) -> Self {
        let topology = Topology::new(&config.shape, aquila::topology::Fibres::Grid)
            .unwrap_or_else(|problem| panic!("{problem:?}"));
        let (base, images) = controller::settled(&config, &topology, first_start);
        let start_time = config.start_time;
        let mut sim = Self::without_power(Config { start_time: Span::ZERO, ..config }, base);
        for (tin, image) in (0..).zip(images) {
            sim.power_on(tin, Span::ZERO);
            let ethernet = sim.plan.ethernet(tin, Interface::Control);
            let place = &mut sim.chips[usize::from(tin)];
            let mut chip = Chip::holding(ethernet, first_start(tin), image);
            chip.flash = place.flash.clone();
            chip.trap = Some(sim.config.manager.versions.addresses(&sim.plan, tin));
            *place = chip;
            sim.ready[usize::from(tin)] = true;
        }
        sim.links_are_up();
        sim.config.start_time = start_time;
        sim.start_controller();
        sim
    }

    fn without_power(config: Config, base: Nib) -> Self {
        let topology = Topology::new(&config.shape, aquila::topology::Fibres::Grid)
            .unwrap_or_else(|problem| panic!("{problem:?}"));
        let plan = Plan::new(&config.shape, 2);
        let tins = config.shape.tins();
        let last = config.connected.iter().max();
        assert!(last.is_none_or(|&tin| tin < tins), "TiN {last:?} of {tins}");
        let node = |tin: u16| Node {
            chip_start: 0,
            memory: Memory::default(),
            firmware: None,
            life: 0,
            is_on: false,
            is_ethernet_up: config.connected.contains(&tin),
            scheduled: None,
        };
        let mut calendar = Calendar::new();
        let faults = (0..).zip(&config.faults);
        faults.for_each(|(at, &(time, _))| calendar.push(time, Event::Fault { at }));
        Self {
            nodes: (0..tins).map(node).collect(),
            chips: (0..tins)
                .map(|tin| Chip {
                    flash: Flash::default().taking(config.block_time),
                    ..Chip::new(plan.ethernet(tin, Interface::Control), 0)
                })
                .collect(),
            links: Links::new(&topology, config.seed),
            server: dhcp::Server::for_ever(&plan, SERVER)
                .telling_v6(config.manager.versions.has_v6()),
            controller: Controller::new(&config, &topology, base),
            ready: vec![false; usize::from(tins)],
            results: Results::new(tins, &config.connected),
            journal: Journal::default(),
            now: Time::ZERO,
            calendar,
            parcels: Vec::new(),
            free: Vec::new(),
            topology,
            plan,
            config,
        }
    }

    fn set_limit(&mut self, limit: Time) {
        self.config.limit = limit;
    }

    fn add_faults(&mut self, faults: impl Iterator<Item = (Time, Fault)>) {
        for (time, fault) in faults {
            let at = self.config.faults.len() as u32;
            self.config.faults.push((time, fault));
            self.calendar.push(time, Event::Fault { at });
        }
    }

    /// Goes on until all TiNs that have power are ready and hold what they are to hold, or until the limit; whether it came
    /// to that.
    pub fn run(&mut self) -> bool {
        while !self.is_done() {
            if !self.run_for(LOOK) {
                return self.is_done();
            }
        }
        true
    }

    /// Goes on for some time; false: to the limit, or nothing is left to happen.
    pub fn run_for(&mut self, span: Span) -> bool {
        let until = self.now + span;
        self.run_to(until);
        self.now == until && until < self.config.limit
    }

    /// Goes on until a time.
    pub fn run_to(&mut self, time: Time) {
        while let Some((now, event)) = self.calendar.pop_before(time.min(self.config.limit)) {
            self.now = now;
            self.on_event(event);
        }
        self.now = self.now.max(time.min(self.config.limit));
    }

    /// Goes on until this is true, or until the limit; whether it came to that.
    pub fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) -> bool {
        while !is_done(self) {
            let Some((now, event)) = self.calendar.pop_before(self.config.limit) else {
                return false;
            };
            self.now = now;
            self.on_event(event);
        }
        true
    }

    /// Whether all TiNs that have power are ready, and hold what they are to hold.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let tins = || (0..).zip(&self.nodes).filter(|(_, node)| node.is_on);
        tins().all(|(tin, _)| self.stage(tin) == Stage::Ready)
            && self.controller.is_settled()
            && self.is_upgraded()
            && tins()
                .all(|(tin, _)| self.controller.is_ready(tin, self.chips[usize::from(tin)].start))
    }

    /// Whether nothing more comes of the upgrade that was asked for last, if one was.
    pub(in crate::sim) fn is_upgraded(&self) -> bool {
        let on = self.nodes.iter().filter(|node| node.is_on).count();
        self.results.is_upgraded(on)
    }

    /// Whether links are up that can be, and the base knows of every port of TiNs that run whether it is.
    pub(in crate::sim) fn is_seen(&self) -> bool {
        let Some(base) = self.controller.constellation.base() else { return false };
        let is_seen = |tin: u16| {
            let row = base.get(Table::Port, &tin.to_be_bytes());
            let up: Option<[u8; 8]> = row.and_then(|(_, up)| up[..].try_into().ok());
            let Some(up) = up.map(u64::from_be_bytes) else { return false };
            let mut wired = (0..self.topology.shape().external_ports())
                .filter(|&port| self.topology.link(tin, port).is_some());
            wired.all(|port| self.links.is_up(&self.topology, tin, port) == (up >> port & 1 == 1))
        };
        let tins = (0..).zip(&self.nodes).filter(|(_, node)| node.is_on);
        let is_on = |tin: u16| self.nodes[usize::from(tin)].is_on;
        self.links.are_settled(&self.topology, is_on) && { tins }.all(|(tin, _)| is_seen(tin))
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// How far a TiN is.
    #[must_use]
    pub fn stage(&self, tin: u16) -> Stage {
        self.controller.stage(tin)
    }

    /// The chips.
    #[must_use]
    pub fn chips(&self) -> &[Chip] {
        &self.chips
    }

    /// Who is wired to whom.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The controller's applications.
    #[must_use]
    pub fn constellation(&self) -> &Constellation {
        &self.controller.constellation
    }

    /// A TiN's firmware, while it runs.
    #[must_use]
    pub fn firmware(&self, tin: u16) -> Option<&Firmware> {
        self.nodes[usize::from(tin)].firmware.as_ref()
    }

    /// TiNs that have been ready.
    #[must_use]
    pub fn ready_count(&self) -> usize {
        self.results.ready_count
    }

    /// What has been found so far.
    #[must_use]
    pub fn results(&self) -> Results {
        let mut results = self.results.clone();
        results.end = self.now;
        results.sessions = self.controller.counts();
        results.leases = self.server.counts;
        results.entries = self.controller.entries();
        if let Some(base) = self.controller.constellation.base() {
            results.base = base.sizes();
        }
        for (tin, node) in results.tins.iter_mut().zip(&self.nodes) {
            tin.memory_peak = node.memory.peak().max(tin.memory_peak);
        }
        for firmware in self.nodes.iter().filter_map(|node| node.firmware.as_ref()) {
            results.add_frames(firmware.pmos_counts());
        }
        results
    }

    /// Something happens, now.
    pub fn fault(&mut self, fault: Fault) {
        self.note(What::Fault(fault));
        match fault {
            Fault::Link { link, is_up } => {
                self.links.set_broken(link, !is_up);
                self.relink(link);
            }
            Fault::Ethernet { tin, is_up } => {
                self.nodes[usize::from(tin)].is_ethernet_up = is_up;
                self.tell(tin, firmware::Input::Ethernet { is_up });
            }
            Fault::Restart { tin } => {
                if self.nodes[usize::from(tin)].is_on {
                    self.stop(tin);
                    self.start(tin, Span::ZERO);
                }
            }
            Fault::Power { tin, is_on: false } => {
                self.stop(tin);
                self.chips[usize::from(tin)].flash.cut(self.now);
                self.nodes[usize::from(tin)].is_on = false;
                self.ready[usize::from(tin)] = false;
                self.relink_all(tin);
            }
            Fault::Power { tin, is_on: true } => {
                if !self.nodes[usize::from(tin)].is_on {
                    self.power_on(tin, Span::ZERO);
                }
            }
            Fault::AdminTin { tin, admin } => {
                self.write_row(Wish::Tin(tin, admin).write());
            }
            Fault::AdminLink { link, admin } => {
                self.write_row(Wish::Link(link, admin).write());
            }
            Fault::Upgrade { version, restart, at_once, code } => {
                self.upgrade(&Image::new(version, GENERATION).doing(code), restart, at_once);
            }
            Fault::Controller => self.restart_controller(),
            Fault::Instance { name, runs } => self.set_instance(name, runs),
            Fault::Base { copy, runs } => {
                let constellation = &mut self.controller.constellation;
                match runs {
                    true => constellation.start_base(copy.into()),
                    false => constellation.stop_base(copy.into()),
                }
                self.attend();
            }
        }
    }

    /// All TiNs are to run an image. Nothing happens if no copy of the base runs.
    pub fn upgrade(&mut self, image: &Image, restart: Restart, at_once: u8) {
        let Some(base) = self.controller.constellation.base() else { return };
        let writes = PlanRow::writes(base, image, restart, at_once);
        self.results.upgraded.clear();
        self.write_rows(&writes);
        self.results.plan = self.controller.constellation.base().and_then(PlanRow::of);
    }

    fn on_event(&mut self, event: Event) {
        self.results.events += 1;
        match event {
            Event::Start { tin, life } => self.on_start(tin, life),
            Event::Link { link, life, is_up } => self.on_link(link, life, is_up),
            Event::Gone { tin, port, life } => self.on_gone(tin, port, life),
            Event::Firmware { tin } => {
                let node = &mut self.nodes[usize::from(tin)];
                if node.scheduled == Some(self.now) {
                    node.scheduled = None;
                    let deadline = node.firmware.as_ref().and_then(Firmware::deadline);
                    match deadline {
                        Some(deadline) if deadline <= self.now => {
                            self.tell(tin, firmware::Input::Nothing);
                        }
                        _ => self.schedule(tin),
                    }
                }
            }
            Event::Manager => self.on_manager(),
            Event::Parcel { place } => {
                let parcel = self.parcels[place as usize].take().expect("it is on its way");
                self.free.push(place);
                self.on_parcel(parcel);
            }
            Event::Message => self.on_message(),
            Event::Tick => self.on_tick(),
            Event::Shard => self.hear_shard(),
            Event::Fault { at } => self.fault(self.config.faults[at as usize].1),
        }
    }

    fn on_parcel(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Firmware { tin, life, input } => {
                if self.nodes[usize::from(tin)].life == life {
                    self.tell(tin, input);
                }
            }
            Parcel::Manager { life, input } => self.on_told_manager(life, input),
            Parcel::Packet(packet) => self.tell_manager(bootstrap::Input::Packet(packet)),
            Parcel::Controller { life, told } => self.on_told(life, told),
            Parcel::Server { from, message } => {
                // M803: a switch of the spine relays what comes from a TiN.
                let message = match from {
                    Some(_) => dhcp::relay(SPINE, &message).ok(),
                    None => Some(message),
                };
                let answer = message.and_then(|message| self.server.receive(&message));
                let Some(answer) = answer else { return };
                match from {
                    Some(tin) => {
                        let ethernet = self.plan.ethernet(tin, Interface::Control);
                        let frame = dhcp::to_client(SPINE, ethernet, &answer);
                        self.send_to(tin, self.config.network, firmware::Input::Frame(frame));
                    }
                    None => {
                        let (life, input) =
                            (self.controller.life(), bootstrap::Input::Dhcp(answer));
                        self.send(self.config.network, Parcel::Manager { life, input });
                    }
                }
            }
            Parcel::Ack { tin, port, life, frame } => self.carry(tin, port, life, frame),
        }
    }

    fn send(&mut self, after: Span, parcel: Parcel) {
        let place = self.free.pop().unwrap_or(self.parcels.len() as u32);
        if place as usize == self.parcels.len() {
            self.parcels.push(None);
        }
        self.parcels[place as usize] = Some(parcel);
        self.calendar.push(self.now + after, Event::Parcel { place });
    }

    fn send_to(&mut self, tin: u16, after: Span, input: firmware::Input) {
        let life = self.nodes[usize::from(tin)].life;
        self.send(after, Parcel::Firmware { tin, life, input });
    }

    fn power_on(&mut self, tin: u16, after: Span) {
        let node = &mut self.nodes[usize::from(tin)];
        node.is_on = true;
        node.chip_start += 1;
        let ethernet = self.plan.ethernet(tin, Interface::Control);
        // Another number at each start, and of each chip.
        let start = node.chip_start << 16 | u32::from(tin);
        let place = &mut self.chips[usize::from(tin)];
        *place = std::mem::replace(place, Chip::new(ethernet, start)).cold(start);
        self.note_cold(tin);
        self.results.tins[usize::from(tin)].powered = self.now + after;
        self.start(tin, after);
        self.relink_all(tin);
    }

    /// The firmware runs after its start.
    fn start(&mut self, tin: u16, after: Span) {
        let node = &mut self.nodes[usize::from(tin)];
        node.life += 1;
        let life = node.life;
        let at = self.now + after + self.config.start_time;
        self.calendar.push(at, Event::Start { tin, life });
    }

    /// The processor does nothing any more.
    fn stop(&mut self, tin: u16) {
        let node = &mut self.nodes[usize::from(tin)];
        let peak = &mut self.results.tins[usize::from(tin)].memory_peak;
        *peak = (*peak).max(node.memory.peak());
        if let Some(firmware) = node.firmware.take() {
            self.results.add_frames(firmware.pmos_counts());
        }
        node.scheduled = None;
        node.life += 1;
        self.links.clear(tin);
    }

    fn on_start(&mut self, tin: u16, life: u32) {
        let settings = firmware::Settings {
            entry_time: self.config.entry_time,
            // There and back for two words, and what may be before them.
            pmos_timeout: pmos::TIMEOUT_MIN.max(self.config.mos_interval * 16),
        };
        let node = &mut self.nodes[usize::from(tin)];
        if node.life != life {
            return;
        }
        node.memory = Memory::default();
        let stream = Stream::new(self.config.seed ^ u64::from(life) << 32, "firmware", tin.into());
        let chip = &mut self.chips[usize::from(tin)];
        match Firmware::new(self.now, chip, settings, &node.memory, stream) {
            Ok(firmware) => node.firmware = Some(firmware),
            Err(NotStarted::Memory(_)) => {
                self.results.out_of_memory += 1;
                return;
            }
            Err(NotStarted::NoImage(_)) => {
                self.results.without_image += 1;
                return;
            }
        }
        // What links have come up meanwhile is told by the chip; the datacenter's network, too.
        let is_up = self.nodes[usize::from(tin)].is_ethernet_up;
        self.tell(tin, firmware::Input::Ethernet { is_up });
        self.tell_links(tin);
    }

    /// Tells a firmware something, and does what it wants.
    fn tell(&mut self, tin: u16, input: firmware::Input) {
        let at = usize::from(tin);
        let Some(firmware) = &mut self.nodes[at].firmware else { return };
        let (mut out, mut restarts) = (Vec::new(), None);
        firmware.step(self.now, &mut self.chips[at], input, &mut out);
        self.note_written(tin);
        for output in out {
            match output {
                firmware::Output::Frame { by: Interface::Ethernet, frame } => {
                    let is_up = self.nodes[at].is_ethernet_up;
                    if let Some(message) = dhcp::from_frame(&frame).filter(|_| is_up) {
                        let parcel = Parcel::Server { from: Some(tin), message };
                        self.send(self.config.network, parcel);
                    }
                }
                // Hosts are not simulated, nor who manages them.
                firmware::Output::Frame { .. } | firmware::Output::Sideband { .. } => {}
                firmware::Output::Packet { by, packet } => self.send_from_tin(tin, by, packet),
                firmware::Output::Restart(restart) => restarts = Some(restart),
            }
        }
        if let Some(restart) = restarts {
            return self.restart(tin, restart);
        }
        self.pump(tin);
        self.schedule(tin);
    }

    /// Another image is to run, or the same once more: the processor starts again, or the chip with it (M609, M611).
    fn restart(&mut self, tin: u16, restart: Restart) {
        match restart {
            Restart::Processor => self.fault(Fault::Restart { tin }),
            Restart::Chip => {
                self.fault(Fault::Power { tin, is_on: false });
                self.fault(Fault::Power { tin, is_on: true });
            }
        }
    }

    /// Sets the event of a firmware, if it is not there.
    fn schedule(&mut self, tin: u16) {
        let node = &mut self.nodes[usize::from(tin)];
        let Some(deadline) = node.firmware.as_ref().and_then(Firmware::deadline) else { return };
        let deadline = deadline.max(self.now);
        if node.scheduled.is_none_or(|scheduled| deadline < scheduled) {
            node.scheduled = Some(deadline);
            self.calendar.push(deadline, Event::Firmware { tin });
        }
    }
}

/// The number of a chip's first start.
fn first_start(tin: u16) -> u32 {
    1 << 16 | u32::from(tin)
}
