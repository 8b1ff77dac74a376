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

pub mod journal;
mod links;
pub mod path;
pub mod programmer;
pub mod results;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr};

use aquila::address::Endpoint;
use aquila::pipeline::Interface;
use aquila::pipeline::plan::{Plan, Version};
use aquila::topology::{Shape, Topology};
use ipnet::{IpNet, Ipv4Net};
use kernel::{Calendar, Span, Stream, Time};

use crate::apps::session::Session;
use crate::bootstrap::{self, Manager, Stage};
use crate::dhcp;
use crate::firmware::chip::Chip;
use crate::firmware::{self, Firmware};
use crate::memory::Memory;
use crate::pmos;
use journal::{Journal, What};
use links::Links;
use path::Lost;
use programmer::{Enough, Programmer, Said};
use results::Results;

/// The controller's address, and that of the DHCP server and of the spine's switches (our choice).
pub const CONTROLLER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const SPINE: Ipv4Addr = Ipv4Addr::new(172, 16, 1, 1);

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
    /// The session manager is another one, which knows what is in the base, and no session.
    Controller,
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
    /// For so long changes are gathered before tables are worked out.
    pub batch: Span,
    /// What is programmed by PMOS.
    pub enough: Enough,
    /// The controller's patience.
    pub manager: bootstrap::Settings,
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
            power_on: ms(1_000),
            start_time: ms(5_000),
            lock_time: ms(50),
            up_time: ms(1_000),
            network: Span::from_us(100),
            hop: Span::from_us(1),
            batch: ms(2_000),
            enough: Enough::Tables,
            manager: bootstrap::Settings::default(),
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
    /// Tables are to be worked out.
    Solve,
    /// Something happens.
    Fault { at: u32 },
}

/// Something on its way.
#[derive(Clone, Debug)]
enum Parcel {
    /// To a TiN's firmware.
    Firmware { tin: u16, life: u32, input: firmware::Input },
    /// To the controller.
    Manager(bootstrap::Input),
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
    manager: Manager,
    manager_scheduled: Option<Time>,
    programmer: Programmer,
    is_solve_due: bool,
    is_batch_open: bool,
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
        let mut sim = Self::without_power(config);
        let mut stream = Stream::new(sim.config.seed, "power", 0);
        for tin in 0..sim.nodes.len() as u16 {
            let wait = stream.below(sim.config.power_on.as_ps() / 1_000_000 + 1);
            sim.power_on(tin, Span::from_us(wait));
        }
        sim.tell_manager(bootstrap::Input::Nothing);
        sim
    }

    /// A Clique whose chips hold what they are to hold, whose links are up, and whose controller has just started.
    pub(in crate::sim) fn up(config: Config) -> Self {
        let mut sim = Self::without_power(Config { start_time: Span::ZERO, ..config.clone() });
        let images = sim.programmer.presume(|tin| first_start(tin));
        for (tin, image) in (0..).zip(images) {
            sim.power_on(tin, Span::ZERO);
            let ethernet = sim.plan.ethernet(tin, Interface::Control);
            let mut chip = Chip::holding(ethernet, first_start(tin), image);
            chip.trap = match sim.plan.ip(tin, Interface::Control, Version::V4) {
                IpAddr::V4(address) => Some(address),
                IpAddr::V6(_) => None,
            };
            sim.chips[usize::from(tin)] = chip;
            sim.ready[usize::from(tin)] = true;
            sim.manager.resume(sim.now, tin, first_start(tin));
        }
        sim.links_are_up();
        sim.config.start_time = config.start_time;
        sim.tell_manager(bootstrap::Input::Nothing);
        sim
    }

    fn without_power(config: Config) -> Self {
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
                .map(|tin| Chip::new(plan.ethernet(tin, Interface::Control), 0))
                .collect(),
            links: Links::new(&topology, config.seed),
            server: dhcp::Server::for_ever(&plan, SERVER),
            manager: manager(&config, &topology, Time::ZERO),
            manager_scheduled: None,
            programmer: programmer(&config, &topology),
            is_solve_due: false,
            is_batch_open: false,
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
        self.run_until(|sim| sim.is_done())
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
        self.programmer.is_done()
            && (0..self.nodes.len() as u16).all(|tin| {
                !self.nodes[usize::from(tin)].is_on || self.manager.stage(tin) == Stage::Ready
            })
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// How far a TiN is.
    #[must_use]
    pub fn stage(&self, tin: u16) -> Stage {
        self.manager.stage(tin)
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

    /// The programmer.
    #[must_use]
    pub fn programmer(&self) -> &Programmer {
        &self.programmer
    }

    /// A TiN's firmware, while it runs.
    #[must_use]
    pub fn firmware(&self, tin: u16) -> Option<&Firmware> {
        self.nodes[usize::from(tin)].firmware.as_ref()
    }

    /// What has been found so far.
    #[must_use]
    pub fn results(&self) -> Results {
        let mut results = self.results.clone();
        results.end = self.now;
        results.sessions = self.manager.counts();
        results.leases = self.server.counts;
        results.solutions = self.programmer.solutions;
        results.entries = self.programmer.entries;
        for (tin, node) in results.tins.iter_mut().zip(&self.nodes) {
            tin.memory_peak = node.memory.peak().max(tin.memory_peak);
            if let Some(firmware) = &node.firmware {
                let counts = firmware.pmos_counts();
                results.frames += counts.delivered;
                results.frames_again += counts.sent_again;
            }
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
                self.nodes[usize::from(tin)].is_on = false;
                self.ready[usize::from(tin)] = false;
                self.relink_all(tin);
            }
            Fault::Power { tin, is_on: true } => {
                if !self.nodes[usize::from(tin)].is_on {
                    self.power_on(tin, Span::ZERO);
                }
            }
            Fault::Controller => {
                self.manager = manager(&self.config, &self.topology, self.now);
                self.manager_scheduled = None;
                let mut said = Said::default();
                for tin in 0..self.nodes.len() as u16 {
                    match self.programmer.ready_boot(tin) {
                        Some(boot) => self.manager.resume(self.now, tin, boot),
                        None => self.programmer.set_ready(tin, false),
                    }
                    self.programmer.hear(Session::Down { tin }, &mut said);
                }
                self.pass_on(said);
                self.tell_manager(bootstrap::Input::Nothing);
            }
        }
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
            Event::Manager => {
                if self.manager_scheduled == Some(self.now) {
                    self.manager_scheduled = None;
                    self.tell_manager(bootstrap::Input::Nothing);
                }
            }
            Event::Parcel { place } => {
                let parcel = self.parcels[place as usize].take().expect("it is on its way");
                self.free.push(place);
                self.on_parcel(parcel);
            }
            Event::Solve => {
                self.is_solve_due = false;
                let mut said = Said::default();
                self.programmer.solve(&mut said);
                self.note(What::BatchWritten { number: self.programmer.solutions });
                self.is_batch_open = true;
                self.pass_on(said);
            }
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
            Parcel::Manager(input) => self.tell_manager(input),
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
                    None => self
                        .send(self.config.network, Parcel::Manager(bootstrap::Input::Dhcp(answer))),
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
        self.chips[usize::from(tin)] = Chip::new(ethernet, start);
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
        (node.firmware, node.scheduled) = (None, None);
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
            Err(_) => {
                self.results.out_of_memory += 1;
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
        let mut out = Vec::new();
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
                // Hosts are not simulated.
                firmware::Output::Frame { .. } => {}
                firmware::Output::Packet { by, packet } => self.send_from_tin(tin, by, packet),
            }
        }
        self.pump(tin);
        self.schedule(tin);
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

    /// Tells the session manager something, and does what it wants.
    fn tell_manager(&mut self, input: bootstrap::Input) {
        let mut out = Vec::new();
        self.manager.step(self.now, input, &mut out);
        for output in out {
            let mut said = Said::default();
            match output {
                bootstrap::Output::Packet(packet) => self.send_from_controller(packet),
                bootstrap::Output::Dhcp(message) => {
                    self.send(self.config.network, Parcel::Server { from: None, message });
                }
                bootstrap::Output::Session(session) => self.programmer.hear(session, &mut said),
                bootstrap::Output::Links { tin, up } => {
                    self.note(What::RowWritten { tin, up });
                    self.programmer.set_links(tin, up);
                }
                bootstrap::Output::Report { .. } => self.results.reports += 1,
                bootstrap::Output::Stage { tin, stage, via } => {
                    let is_ready = matches!(stage, Stage::Ready | Stage::Reconnecting);
                    self.programmer.set_ready(tin, is_ready);
                    self.ready[usize::from(tin)] |= stage == Stage::Ready;
                    self.note(What::Stage { tin, stage });
                    self.results.on_stage(self.now, tin, stage, via);
                }
            }
            self.pass_on(said);
        }
        let deadline = self.manager.deadline().map(|deadline| deadline.max(self.now));
        if let Some(deadline) = deadline
            && self.manager_scheduled.is_none_or(|scheduled| deadline < scheduled)
        {
            self.manager_scheduled = Some(deadline);
            self.calendar.push(deadline, Event::Manager);
        }
    }

    /// What the programmer says goes to the session manager, at once: they are on one machine.
    fn pass_on(&mut self, said: Said) {
        for request in said.requests {
            self.send(Span::ZERO, Parcel::Manager(bootstrap::Input::Request(request)));
        }
        for progress in said.progress {
            self.send(Span::ZERO, Parcel::Manager(bootstrap::Input::Progress(progress)));
        }
        if self.is_batch_open && self.programmer.is_done() {
            self.is_batch_open = false;
            self.note(What::BatchComplete { number: self.programmer.solutions });
        }
        if self.programmer.is_stale && !self.is_solve_due {
            self.is_solve_due = true;
            self.calendar.push(self.now + self.config.batch, Event::Solve);
        }
    }

    /// A packet of the controller's: by the TiN's own link to the datacenter's network, or over one that is ready.
    fn send_from_controller(&mut self, packet: Vec<u8>) {
        let Some(to) = address_at(&packet, 16) else { return };
        let known = self.plan.of_ip(IpAddr::V4(to));
        let Some((tin, Interface::Control)) = known else { return };
        let is_open = |&tin: &u16| {
            let node = &self.nodes[usize::from(tin)];
            node.is_on && node.is_ethernet_up
        };
        let own = Some(tin).filter(is_open);
        let entrance = own.or_else(|| {
            // As the routers of the datacenter's network were told: by those that have a way to it.
            let ready: Vec<u16> =
                self.programmer.exits(tin).iter().copied().filter(is_open).collect();
            ready.get(usize::from(tin) % ready.len().max(1)).copied()
        });
        let Some(entrance) = entrance else {
            self.lose(Lost::NoEntrance);
            return;
        };
        let chip = &self.chips[usize::from(entrance)];
        if chip.trap == Some(to) {
            let input = firmware::Input::Trapped { by: Interface::Ethernet, packet };
            self.send_to(entrance, self.config.network, input);
            return;
        }
        match self.cross((entrance, Endpoint::ETHERNET), to, &packet) {
            Ok((end, after)) => {
                if self.chips[usize::from(end.0)].trap != Some(to) {
                    self.lose(Lost::Nobody);
                    return;
                }
                let input = firmware::Input::Trapped { by: Interface::Control, packet };
                self.send_to(end.0, self.config.network + after, input);
            }
            Err(lost) => self.lose(lost),
        }
    }

    /// A packet of a control processor's.
    fn send_from_tin(&mut self, tin: u16, by: Interface, packet: Vec<u8>) {
        let Some(to) = address_at(&packet, 16).filter(|&to| to == CONTROLLER) else { return };
        let has_way = |sim: &Self, tin: u16| sim.nodes[usize::from(tin)].is_ethernet_up;
        let after = match by {
            Interface::Ethernet if has_way(self, tin) => Ok(Span::ZERO),
            Interface::Control => match self.cross((tin, Endpoint::CONTROL_IP), to, &packet) {
                Ok(((end, Endpoint::ETHERNET), after)) if has_way(self, end) => Ok(after),
                Ok(_) => Err(Lost::Nobody),
                Err(lost) => Err(lost),
            },
            _ => Err(Lost::Nobody),
        };
        match after {
            Ok(after) => {
                let parcel = Parcel::Manager(bootstrap::Input::Packet(packet));
                self.send(self.config.network + after, parcel);
            }
            Err(lost) => self.lose(lost),
        }
    }

    /// Where a packet comes out of the Clique, and after how long.
    fn cross(
        &mut self,
        from: (u16, Endpoint),
        to: Ipv4Addr,
        packet: &[u8],
    ) -> Result<((u16, Endpoint), Span), Lost> {
        let chip = &self.chips[usize::from(from.0)];
        let hash = path::hash(packet);
        let address = path::flow(chip, to, hash).ok_or(Lost::NoFlow)?;
        let crosses = |tin: u16, port: u8| self.links.is_up(&self.topology, tin, port);
        let passed = path::follow(&self.topology, &self.chips, from, (address, hash), crosses)?;
        let last = passed.len() - 1;
        // I82.
        let between = passed.get(1..last).unwrap_or(&[]);
        let wrong = between.iter().filter(|&&tin| !self.ready[usize::from(tin)]).count();
        self.results.passed_unready += wrong as u64;
        self.results.crossed += 1;
        let after = self.config.hop * passed.len() as u64;
        Ok(((passed[last], address.endpoint()), after))
    }

    fn lose(&mut self, lost: Lost) {
        self.results.lost[lost as usize] += 1;
    }
}

/// The number of a chip's first start.
fn first_start(tin: u16) -> u32 {
    1 << 16 | u32::from(tin)
}

fn manager(config: &Config, topology: &Topology, now: Time) -> Manager {
    let (connected, settings) = (&config.connected[..], config.manager);
    Manager::new(now, topology, connected, CONTROLLER, settings, config.seed)
}

fn programmer(config: &Config, topology: &Topology) -> Programmer {
    let outside = IpNet::V4(Ipv4Net::from(CONTROLLER));
    Programmer::new(topology, &config.connected, outside, config.enough)
}

/// The address at a place of a packet of IPv4.
fn address_at(packet: &[u8], at: usize) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
    Some(bytes.into())
}
