//! The firmware of a TiN's control processor.
//!
//! Models: Aquila §3.5, §4.3, §4.4, §6, App. A (M601, M603, M605, M608 to M613, M615 to M617, M803, M808 to M810, M813). It
//! brings up links, asks for addresses on all of them, traps packets to these, and answers by the interface at which they
//! came (I83); it does what requests ask of the chip's registers, reports some of them, passes packets on between the
//! controller and neighbours that have no other way, and answers hosts that ask who has an address, and management
//! controllers that bring up their sideband ([`crate::nc_si`], M616). All else is the controller's.
//!
//! It keeps nothing that outlives it: after a restart ([`Firmware::new`] on the same [`Chip`]) it finds its address in
//! the chip's own rule, and the controller connects anew (M609). All that it keeps is charged to its memory (I74). Another
//! version of it is written to the flash ([`crate::flash`]) as it arrives, and runs after a restart (M617): on trial, under
//! a watchdog that starts what ran before when its time is over. The chip goes on meanwhile.
//!
//! **Our choice**: how long an entry of a register takes, and that a new session takes the place of the one before it.

pub mod chip;
mod ports;
mod reports;
mod requests;
pub mod responder;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;

use aquila::link::ordered_sets::OrderedSet;
use aquila::pipeline::Interface;
use aquila::pipeline::plan::EthernetAddress;
use kernel::{Span, Stream, Time};

use thiserror::Error;

use crate::dhcp;
use crate::flash::Trial;
use crate::memory::{Charge, Memory, OutOfMemory, Purpose};
use crate::nc_si;
use crate::pmos;
use crate::registers::map::{LINK_CONTROL, LINK_NEIGHBOUR, LINK_STATE};
use crate::rpc::Restart;
use crate::session::{Hello, Point, Said, Server, ip};
use chip::{Chip, ETHERNET_PORT, LinkState};
use ports::Ports;
use reports::Reports;
use requests::{Requests, Source};

/// Peers whose interface is remembered (our choice): as many as sessions.
const WAYS_MAX: usize = 4;
/// From the answer that another image was chosen until the restart (our choice): the answer has gone by then.
const GRACE: Span = Span::from_us(100_000);
/// Hosts of a TiN.
const HOSTS: u8 = 2;
/// What the firmware keeps beside what its parts charge: its own state, with room to spare. Unit: bytes.
const STATE_BYTES: usize = 8 << 10;

/// What its processor and its wires are like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How long an entry takes that a request reads or writes.
    pub entry_time: Span,
    /// How long PMOS waits for an acknowledgement at first.
    pub pmos_timeout: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self { entry_time: Span::ZERO, pmos_timeout: pmos::TIMEOUT_MIN }
    }
}

/// What the firmware is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Time has passed, and nothing else.
    Nothing,
    /// A GNet port's link has got so far; from [`LinkState::Locked`] on with the neighbour's Ethernet address.
    Link {
        /// Which port.
        port: u8,
        /// How far.
        state: LinkState,
        /// What the neighbour says of itself.
        neighbour: EthernetAddress,
    },
    /// The link to the datacenter's network has come up or gone down.
    Ethernet {
        /// Which of it.
        is_up: bool,
    },
    /// A frame for the control processor has come at the Ethernet port: an answer of DHCP.
    Frame(Vec<u8>),
    /// A packet was trapped; [`Interface::Control`]: it came over the Clique.
    Trapped {
        /// Where it came in.
        by: Interface,
        /// From the header of IP on.
        packet: Vec<u8>,
    },
    /// Somebody asks who has an address.
    WhoHas {
        /// Where it came in.
        by: Interface,
        /// The question.
        frame: Vec<u8>,
    },
    /// An ordered set has come.
    Word {
        /// At which port.
        port: u8,
        /// What.
        set: OrderedSet,
    },
    /// All words of a frame have come at a port, unharmed.
    Pmos {
        /// At which.
        port: u8,
        /// The frame.
        frame: pmos::Frame,
    },
    /// The last word of a port's frame has gone.
    Gone {
        /// Of which port.
        port: u8,
    },
    /// A control packet of NC-SI has come by the sideband of a host (M616).
    Sideband {
        /// Which host.
        host: u8,
        /// The frame.
        frame: Vec<u8>,
    },
}

/// What the firmware wants sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// A frame.
    Frame {
        /// By which interface.
        by: Interface,
        /// The frame.
        frame: Vec<u8>,
    },
    /// Another image is to run: this is to be started again, with the chip or without it, and does nothing any more.
    Restart(Restart),
    /// A packet, from the header of IP on; [`Interface::Control`]: over the Clique, as the chip's tables have it.
    Packet {
        /// By which interface.
        by: Interface,
        /// The packet.
        packet: Vec<u8>,
    },
    /// A control packet of NC-SI, for the management controller of a host (M616).
    Sideband {
        /// Which host.
        host: u8,
        /// The frame.
        frame: Vec<u8>,
    },
}

/// How far the firmware is (M813, its own part).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It has no address.
    Asking,
    /// It has one, and no session.
    Addressed,
    /// Its session is by PMOS.
    Pmos,
    /// Its session is over TCP.
    Tcp,
}

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that the controller had for neighbours that were not there, or had no room.
    pub not_passed: u64,
    /// Packets of neighbours while there was nobody to pass them to.
    pub not_heard: u64,
    /// Bytes that were nothing: frames, packets, points of sessions, words that a TiN does not hear.
    pub malformed: u64,
    /// Reports that had no room.
    pub reports_refused: u64,
    /// Images for chips of another generation that were refused (M617).
    pub other_generations: u64,
    /// Frames of management controllers that were no control packets, or for nobody here (M616).
    pub sideband_refused: u64,
}

/// Why no firmware runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum NotStarted {
    /// The memory is not there.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The boot loader finds nothing to start.
    #[error("no image in the flash is whole and for chips of generation {0}")]
    NoImage(u8),
}

/// The firmware of one control processor.
#[derive(Debug)]
pub struct Firmware {
    memory: Memory,
    _room: Charge,
    is_ethernet_up: bool,
    client: dhcp::Client,
    server: Server,
    requests: Requests,
    reports: Reports,
    ports: Ports,
    /// By which interface a peer's packets came, the latest last.
    ways: Vec<(SocketAddr, Interface)>,
    /// What the controller is still to be told of itself: the first word, and links that changed.
    is_hello_due: bool,
    are_links_due: bool,
    counts: Counts,
    /// A frame of NC-SI each way, from the first that comes on.
    sideband_room: Option<Charge>,
    /// Which it is (M617).
    version: u16,
    /// What is to restart, and when.
    restart: Option<(Time, Restart)>,
    /// While it is on trial: when the watchdog restarts it.
    watchdog: Option<Time>,
    /// Its code does nothing ([`crate::flash::Code::Silent`]).
    is_silent: bool,
}

impl Firmware {
    /// Starts the firmware: cold, or again on a chip that has gone on without it (M609). `stream` is its own, another one
    /// at each start.
    ///
    /// # Errors
    /// The memory is not there, or no image.
    pub fn new(
        now: Time,
        chip: &mut Chip,
        settings: Settings,
        memory: &Memory,
        mut stream: Stream,
    ) -> Result<Self, NotStarted> {
        let generation = chip.generation();
        let image = chip.flash.start(generation).ok_or(NotStarted::NoImage(generation))?;
        let room = memory.charge(Purpose::Other, STATE_BYTES)?;
        let mut server = Server::new(memory, now, stream.below(1 << 63))?;
        let requests = Requests::new(memory, settings.entry_time)?;
        let session = stream.below(1 << 16) as u16;
        let mut ports = Ports::new(memory, session, settings.pmos_timeout);
        for port in 0..ETHERNET_PORT {
            let at = [u32::from(port)];
            if chip.registers.get(LINK_STATE, at) >= LinkState::Locked as u8 {
                ports.open(port)?;
            } else if chip.registers.get(LINK_CONTROL, at) & 1 == 1 {
                chip.registers.set(LINK_STATE, at, LinkState::Training as u8);
            }
        }
        let ethernet = chip.ethernet();
        let client = match chip.trap {
            Some(own) => dhcp::Client::knowing(now, ethernet, stream, own),
            None => dhcp::Client::new(now, ethernet, stream),
        };
        server.set_addresses(chip.trap);
        Ok(Self {
            memory: memory.clone(),
            _room: room,
            is_ethernet_up: false,
            client,
            server,
            requests,
            reports: Reports::default(),
            ports,
            ways: Vec::new(),
            is_hello_due: false,
            are_links_due: false,
            counts: Counts::default(),
            sideband_room: None,
            version: image.version,
            restart: None,
            watchdog: chip.flash.trial_time().map(|time| now + time),
            is_silent: chip.flash.is_silent(),
        })
    }

    /// Advances by one input.
    pub fn step(&mut self, now: Time, chip: &mut Chip, input: Input, out: &mut Vec<Output>) {
        if self.is_given_up(now, chip) {
            out.push(Output::Restart(Restart::Processor));
            return;
        }
        if self.is_silent {
            return;
        }
        match input {
            Input::Nothing => {}
            Input::Link { port, state, neighbour } => {
                let before = link_to_tell(chip);
                self.on_link(now, chip, port, state, neighbour);
                notify(chip, before, out);
            }
            Input::Ethernet { is_up } => {
                self.is_ethernet_up = is_up;
                let state = if is_up { LinkState::Up } else { LinkState::Down };
                let before = link_to_tell(chip);
                chip.registers.set(LINK_STATE, [ETHERNET_PORT.into()], state as u8);
                notify(chip, before, out);
                self.are_links_due = true;
                if is_up {
                    self.client.hurry(now);
                }
            }
            Input::Frame(frame) => match dhcp::from_frame(&frame) {
                Some(message) => self.on_dhcp(now, &message),
                None => self.counts.malformed += 1,
            },
            Input::Trapped { by, packet } => self.on_packet(by, packet),
            Input::WhoHas { by, frame } => {
                let answer = responder::answer(&chip.registers, &frame);
                out.extend(answer.map(|frame| Output::Frame { by, frame }));
            }
            Input::Word { port, set } => self.ports.receive(now, port, set),
            Input::Pmos { port, frame } => self.ports.receive_frame(now, port, frame),
            Input::Gone { port } => self.ports.has_gone(now, port),
            Input::Sideband { host, frame } => self.on_sideband(chip, host, &frame, out),
        }
        self.run(now, chip, out);
    }

    /// Whether the time of its trial is over and it was not confirmed: what ran before it is to start.
    fn is_given_up(&mut self, now: Time, chip: &mut Chip) -> bool {
        let is_over = self.watchdog.take_if(|at| *at <= now).is_some();
        if is_over {
            chip.flash.expire();
        }
        is_over
    }

    /// A frame for the wire of a port, and whether it is an acknowledgement, which goes at once; `is_free`: no other frame
    /// is on it.
    pub fn next_frame(&mut self, port: u8, is_free: bool) -> Option<pmos::Frame> {
        if self.is_silent { None } else { self.ports.next_frame(port, is_free) }
    }

    /// Takes the ports, a bit each, that may have something for their wires since this was last asked.
    pub fn wanting(&mut self) -> u64 {
        self.ports.wanting()
    }

    /// When [`Input::Nothing`] is to come.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let asks = self.client.deadline().filter(|_| self.can_ask());
        let restart = self.restart.map(|(at, _)| at);
        let (requests, reports) = (self.requests.deadline(), self.reports.deadline());
        if self.is_silent {
            return self.watchdog;
        }
        let own = [asks, self.server.deadline(), requests, reports, restart, self.watchdog];
        own.into_iter().flatten().chain(self.ports.deadline()).min()
    }

    /// How far it is.
    #[must_use]
    pub fn state(&self) -> State {
        match (self.client.addresses(), self.requests.source) {
            (None, _) => State::Asking,
            (_, None) => State::Addressed,
            (_, Some(Source::Pmos(_))) => State::Pmos,
            (_, Some(Source::Tcp)) => State::Tcp,
        }
    }

    /// Which version it is.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.version
    }

    /// Its memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What has happened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        counts.malformed += self.requests.malformed + self.server.counts().malformed;
        counts.reports_refused = self.reports.refused;
        counts.other_generations = self.requests.other_generations();
        counts
    }

    /// What has happened on the links, by PMOS.
    #[must_use]
    pub fn pmos_counts(&self) -> pmos::Counts {
        self.ports.counts()
    }

    /// Whether there is a link on which an address could be asked for.
    fn can_ask(&self) -> bool {
        self.is_ethernet_up || self.ports.open_ports() != 0
    }

    fn hello(&self, chip: &Chip) -> Hello {
        let (ethernet, links) = (chip.ethernet(), chip.links());
        let (generation, firmware) = (chip.generation(), self.version);
        Hello { boot: chip.start, ethernet, links, generation, firmware }
    }

    fn on_link(
        &mut self,
        now: Time,
        chip: &mut Chip,
        port: u8,
        state: LinkState,
        neighbour: EthernetAddress,
    ) {
        if port >= ETHERNET_PORT {
            self.counts.malformed += 1;
            return;
        }
        let at = [u32::from(port)];
        let is_allowed = chip.registers.get(LINK_CONTROL, at) & 1 == 1;
        let state = if is_allowed { state } else { LinkState::Down };
        let [a, b, c, d, e, f] = neighbour;
        let mut heard = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        if state < LinkState::Locked {
            heard = 0;
            self.ports.close(port);
            if self.requests.source == Some(Source::Pmos(port)) {
                self.requests.begin(None);
            }
        } else if self.ports.open(port).is_ok_and(|is_new| is_new) {
            self.client.hurry(now);
        }
        chip.registers.set(LINK_STATE, at, state as u8);
        chip.registers.set(LINK_NEIGHBOUR, at, heard);
        self.are_links_due = true;
    }

    /// A management controller's control packet: what cannot be answered is counted (M616).
    fn on_sideband(&mut self, chip: &mut Chip, host: u8, frame: &[u8], out: &mut Vec<Output>) {
        let is_on = host < HOSTS && nc_si::settings(&chip.registers, host).is_on;
        if is_on && self.sideband_room.is_none() {
            let room = self.memory.charge(Purpose::Sideband, 2 * nc_si::FRAME_BYTES_MAX);
            self.sideband_room = room.ok();
        }
        let can = is_on && self.sideband_room.is_some();
        let command = nc_si::Packet::decode(frame).ok().filter(|_| can);
        let link = nc_si::Link::of(chip);
        let answer = command.and_then(|command| {
            nc_si::respond(&mut chip.registers, host, &command, link, self.version)
        });
        match answer {
            Some(answer) => out.push(Output::Sideband { host, frame: answer.encode() }),
            None => self.counts.sideband_refused += 1,
        }
    }

    fn on_dhcp(&mut self, now: Time, message: &[u8]) {
        match dhcp::Message::decode(message) {
            Ok(message) => {
                self.client.receive(now, &message);
            }
            Err(_) => self.counts.malformed += 1,
        }
    }

    fn on_packet(&mut self, by: Interface, packet: Vec<u8>) {
        let Some((peer, _)) = ip::ends(&packet) else {
            self.counts.malformed += 1;
            return;
        };
        self.ways.retain(|way| way.0 != peer);
        if self.ways.len() == WAYS_MAX {
            self.ways.remove(0);
        }
        self.ways.push((peer, by));
        self.server.receive(packet);
    }

    /// Does all that there is to do now.
    fn run(&mut self, now: Time, chip: &mut Chip, out: &mut Vec<Output>) {
        self.ports.on_time(now);
        if self.server.poll(now) {
            self.requests.begin(Some(Source::Tcp));
            self.reports.clear();
            self.is_hello_due = true;
        } else if self.requests.source == Some(Source::Tcp) && !self.server.has_session() {
            self.requests.begin(None);
            self.reports.clear();
        }
        while let Some(said) = self.server.hear() {
            self.on_said(now, said);
        }
        self.hear_neighbours(now, chip);
        // What neighbours said may have been an address.
        self.keep_address(now, chip, out);
        self.requests.run(now, chip);
        // It may have been confirmed.
        self.watchdog = self.watchdog.filter(|_| chip.flash.trial() == Trial::Runs);
        let (server, ports) = (&mut self.server, &mut self.ports);
        self.requests.answer(|source, piece| match source {
            Source::Tcp => server.say(&Said::Rpc(piece.to_vec())),
            Source::Pmos(port) => ports.send(port, pmos::Kind::Rpc, piece),
        });
        // What has been said for the last request makes room for the next.
        self.requests.run(now, chip);
        if let Some(restart) = self.requests.take_restart() {
            self.restart = Some((now + GRACE, restart));
        }
        self.tell(now, chip);
        self.server.poll(now);
        for packet in self.server.packets() {
            let peer = ip::ends(&packet).map(|(_, to)| to);
            let way = self.ways.iter().find(|way| Some(way.0) == peer);
            out.extend(way.map(|&(_, by)| Output::Packet { by, packet }));
        }
        if let Some((_, restart)) = self.restart.take_if(|(at, _)| *at <= now) {
            out.push(Output::Restart(restart));
        }
    }

    /// Asks for an address, and has packets to it trapped (M808).
    fn keep_address(&mut self, now: Time, chip: &mut Chip, out: &mut Vec<Output>) {
        if self.can_ask()
            && let Some(message) = self.client.on_time(now)
        {
            let bytes = message.encode();
            if self.is_ethernet_up {
                let frame = dhcp::to_server(chip.ethernet(), &bytes);
                out.push(Output::Frame { by: Interface::Ethernet, frame });
            }
            // M810: on all GNet links; not where the last time has not gone yet.
            self.ports.send_to_idle(pmos::Kind::Dhcp, &bytes);
        }
        let own = self.client.addresses();
        if chip.trap != own {
            chip.trap = own;
            self.server.set_addresses(own);
        }
    }

    /// The controller has said something.
    fn on_said(&mut self, now: Time, said: Said) {
        match said {
            Said::Rpc(piece) => self.requests.add(Source::Tcp, &piece),
            Said::Pmos { port, kind, data } => {
                if !self.ports.pass(port, kind, &data) {
                    self.counts.not_passed += 1;
                }
            }
            Said::List { seconds, addresses } => {
                self.reports.set(&self.memory, now, seconds, addresses);
            }
            _ => self.counts.malformed += 1,
        }
    }

    /// Neighbours have said something by PMOS.
    fn hear_neighbours(&mut self, now: Time, chip: &Chip) {
        let mut heard = self.ports.heard();
        while heard != 0 {
            let port = heard.trailing_zeros() as u8;
            heard &= heard - 1;
            // What is to be passed on stays where it is until there is room; its sender waits then.
            while !self.server.has_session() || self.server.can_say() {
                let Some((kind, data)) = self.ports.take(port) else { break };
                self.on_neighbour(now, chip, port, kind, data);
            }
        }
    }

    fn on_neighbour(&mut self, now: Time, chip: &Chip, port: u8, kind: pmos::Kind, data: Vec<u8>) {
        if kind == pmos::Kind::Dhcp {
            match dhcp::Message::decode(&data) {
                Ok(message) if !message.kind.is_of_client() => {
                    self.client.receive(now, &message);
                    return;
                }
                Ok(_) => {}
                Err(_) => {
                    self.counts.malformed += 1;
                    return;
                }
            }
        }
        let point = if kind == pmos::Kind::Debug { Point::decode(&data) } else { None };
        if let Some(Point::Begin(number)) = point {
            self.server.end();
            self.requests.begin(Some(Source::Pmos(port)));
            let hello = Point::Hello(number, self.hello(chip));
            if !self.ports.send(port, pmos::Kind::Debug, &hello.encode()) {
                self.counts.not_passed += 1;
            }
        } else if kind == pmos::Kind::Rpc && self.requests.source == Some(Source::Pmos(port)) {
            self.requests.add(Source::Pmos(port), &data);
        } else if !self.server.say(&Said::Pmos { port, kind, data }) {
            self.counts.not_heard += 1;
        }
    }

    /// Tells the controller what it is to know without asking.
    fn tell(&mut self, now: Time, chip: &Chip) {
        if !self.server.has_session() {
            return;
        }
        if self.is_hello_due {
            self.is_hello_due = !self.server.say(&Said::Hello(self.hello(chip)));
            self.are_links_due &= self.is_hello_due;
        }
        if self.are_links_due {
            self.are_links_due = !self.server.say(&Said::Links(chip.links()));
        }
        while self.server.can_say()
            && let Some(port) = self.ports.take_room()
        {
            self.server.say(&Said::Room { port });
        }
        for address in self.reports.due(now) {
            let Ok(entry) = chip.registers.read(address) else { continue };
            let report = Said::Report { address, entry: entry.as_bytes().to_vec() };
            self.reports.refused += u64::from(!self.server.say(&report));
        }
    }
}

/// The link, if a sideband is on.
fn link_to_tell(chip: &Chip) -> Option<nc_si::Link> {
    let is_on = |host| nc_si::settings(&chip.registers, host).is_on;
    (0..HOSTS).any(is_on).then(|| nc_si::Link::of(chip))
}

/// Tells management controllers that want to know that the TiN has its first link, or has lost its last (M616).
fn notify(chip: &Chip, before: Option<nc_si::Link>, out: &mut Vec<Output>) {
    let Some(link) = link_to_tell(chip).filter(|link| Some(*link) != before) else { return };
    for host in 0..HOSTS {
        let notice = nc_si::notify(&chip.registers, host, link);
        out.extend(notice.map(|notice| Output::Sideband { host, frame: notice.encode() }));
    }
}
