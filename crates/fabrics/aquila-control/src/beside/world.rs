//! A booted Clique's control plane in simulated time: the constellation, the chips' registers, and messages between them.
//!
//! Models: Aquila §4.1 to §4.4 (M606, M609, M610, M703 to M707, M729, M730). Applications are those of [`crate::apps`],
//! every one of them; messages between them take [`STEP`]. A request finds its way through the Clique by what registers
//! hold when it is sent, and is sent again if that is nowhere.
//!
//! **Our choice**: all times. Of a control processor there is its agent and how long it takes for an entry; of TCP there
//! is that what is lost comes later, and that an answer comes back by as long a way as its request went.
//! [`crate::sim`] has both in full, and traffic of the control plane alone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use aquila::address::Endpoint;
use aquila::config::Sdn;
use aquila::pipeline::Interface;
use aquila::pipeline::plan::{Plan, Version};
use aquila::topology::Topology;
use aquila::turns::TurnTable;
use kernel::{Span, Time};

use crate::apps::Clique;
use crate::apps::constellation::{Constellation, Message, Outside};
use crate::apps::election::Application;
use crate::apps::front_end::Settings;
use crate::apps::instance::Job;
use crate::apps::rows::Admin;
use crate::apps::session::{Over, Progress, Session};
use crate::firmware::chip::Chip;
use crate::memory::Memory;
use crate::nib::{Table, Write};
use crate::rpc::{Agent, Answer, Item, Outcome, Request};
use crate::sim::path::follow;

/// From one application to another, or to the base.
const STEP: Span = Span::from_us(50);
/// How often applications look at their clocks, where nothing is under way.
const TICK: Span = Span::from_us(100_000);
/// After how long what is lost is sent again: the least time-out of a usual TCP; then twice as long, and so on.
const AGAIN: Span = Span::from_us(200_000);
/// A session is lost that has been silent for so long.
const SILENCE: Span = Span::from_us(10_000_000);

/// Something happens to the Clique.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A link goes down, or works again.
    Link(u32, bool),
    /// A TiN does.
    Tin(u16, bool),
    /// A control processor starts again.
    Restart(u16),
    /// A TiN is to be passed by nobody, or is in service again.
    Node(u16, Admin),
    /// The same of a link.
    Drain(u32, Admin),
}

/// An entry of a register that has been written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// When.
    pub at: Time,
    /// Whose register.
    pub tin: u16,
    /// What; `None`: all are as after a cold start.
    pub entry: Option<(u32, Vec<u8>)>,
}

#[derive(Clone, Debug)]
enum Event {
    /// Messages between applications arrive.
    Round,
    /// Something happens.
    Fault(Fault),
    /// A firmware sees how a port is.
    Seen { tin: u16, life: u32 },
    /// The controller hears which ports are up.
    Heard { tin: u16, up: u64 },
    /// A firmware tries to tell it, for the so manieth time.
    Tell { tin: u16, life: u32, tries: u32 },
    /// A request is sent, for the so manieth time.
    Send { tin: u16, session: u32, bytes: Vec<u8>, tries: u32 },
    /// It arrives after so long.
    Arrive { tin: u16, session: u32, bytes: Vec<u8>, after: Span },
    /// An answer arrives.
    Answer { tin: u16, session: u32, bytes: Vec<u8> },
    /// The controller gives a session up.
    Lose { tin: u16, session: u32 },
    /// A session can be had again.
    Connect { tin: u16, life: u32 },
}

struct Node {
    agent: Agent,
    /// Another number at each start of the processor.
    life: u32,
    is_on: bool,
    runs: bool,
    /// Cold starts.
    boot: u32,
    /// By PMOS, until enough is written.
    over: Over,
    session: Option<u32>,
    sessions: u32,
    /// Since when nothing gets to it.
    silent: Option<Time>,
    /// The last request: one that comes again is not done again.
    last: Vec<u8>,
}

/// All of it.
pub struct World {
    clique: Arc<Clique>,
    sdn: Sdn,
    connected: Vec<u16>,
    pub now: Time,
    constellation: Constellation,
    pub chips: Vec<Chip>,
    nodes: Vec<Node>,
    /// By link: it carries nothing.
    dead: Vec<bool>,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    /// The next look at all clocks.
    round: Option<Time>,
    /// News to the routing engine are held back until then.
    held: Option<Time>,
    /// What has been written since this was last asked, and batches that the base was told.
    pub written: Vec<Written>,
    pub batches: Vec<Time>,
    is_booted: bool,
}

impl World {
    /// A Clique that has just been booted, at some time.
    pub fn new(topology: &Topology, sdn: &Sdn) -> Self {
        let shape = *topology.shape();
        let plan = Plan::new(&shape, 2);
        let ethernet = |tin| plan.ethernet(tin, Interface::Control);
        let clique = Arc::new(Clique::new(topology.clone(), TurnTable::P1, plan));
        let tins = 0..shape.tins();
        let node = |_| Node {
            agent: Agent::new(&Memory::default()).expect("nothing else is in it"),
            life: 0,
            is_on: true,
            runs: true,
            boot: 1,
            over: Over::Tcp,
            session: None,
            sessions: 0,
            silent: None,
            last: Vec::new(),
        };
        let start = Time::ZERO;
        let mut world = Self {
            constellation: Constellation::new(start, clique.clone(), Settings::default()),
            clique,
            connected: sdn.connected(&shape),
            sdn: sdn.clone(),
            now: start,
            chips: tins.clone().map(|tin| Chip::new(ethernet(tin), 1)).collect(),
            nodes: tins.map(node).collect(),
            dead: vec![false; topology.links().len()],
            events: BTreeMap::new(),
            order: 0,
            round: None,
            held: None,
            written: Vec::new(),
            batches: Vec::new(),
            is_booted: false,
        };
        world.boot();
        world
    }

    /// Applications elect leaders, and write all registers, before time counts: messages take none.
    fn boot(&mut self) {
        let mut quiet = 0;
        while quiet < 5 {
            while !self.constellation.messages().is_empty() || self.carry_all() {
                if !self.constellation.messages().is_empty() {
                    self.constellation.deliver(self.now, 0);
                }
            }
            self.now += Span::from_us(20_000);
            self.constellation.tick(self.now);
            self.connect_all();
            quiet = if self.is_settled() { quiet + 1 } else { 0 };
        }
        self.written.clear();
        self.batches.clear();
        self.is_booted = true;
        self.round_at(self.now);
    }

    /// What has left the constellation is carried at once; whether there was anything.
    fn carry_all(&mut self) -> bool {
        let outside = self.constellation.outside();
        let is_any = !outside.is_empty();
        for output in outside {
            match output {
                Outside::Request(_, request) => {
                    let Some(session) = self.nodes[usize::from(request.tin)].session else {
                        continue;
                    };
                    self.arrive(request.tin, session, &request.bytes, Span::ZERO);
                }
                Outside::Leads(_) => self.nodes.iter_mut().for_each(|node| node.session = None),
                Outside::Progress(_) | Outside::Tell(..) => {}
            }
        }
        let answers = std::mem::take(&mut self.events);
        let is_more = !answers.is_empty();
        for event in answers.into_values() {
            self.on(event);
        }
        is_any || is_more
    }

    fn connect_all(&mut self) {
        for tin in 0..self.nodes.len() as u16 {
            if self.nodes[usize::from(tin)].session.is_none() {
                self.connect(tin);
            }
        }
    }

    /// Whether all that is wanted is written, and nobody waits for anything.
    pub fn is_settled(&self) -> bool {
        let Some(front_end) = self.constellation.front_end() else { return false };
        let is_complete = |(tin, node): (u16, &Node)| {
            !node.is_on || (node.session.is_some() && front_end.is_complete(tin))
        };
        self.constellation.routing_engine().is_some_and(|engine| engine.is_settled())
            && (0..).zip(&self.nodes).all(is_complete)
    }

    /// Something is to happen.
    pub fn plan(&mut self, at: Time, fault: Fault) {
        self.at(at, Event::Fault(fault));
    }

    /// Goes on until a time.
    pub fn run_to(&mut self, time: Time) {
        while let Some((&key, _)) = self.events.first_key_value().filter(|((at, _), _)| *at <= time)
        {
            let event = self.events.remove(&key).expect("it is the first");
            self.now = self.now.max(key.0);
            self.on(event);
        }
        self.now = self.now.max(time);
    }

    fn at(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn round_at(&mut self, at: Time) {
        if self.round.is_none_or(|round| at < round) {
            self.round = Some(at);
            self.at(at, Event::Round);
        }
    }

    fn on(&mut self, event: Event) {
        match event {
            Event::Round => {
                if self.round == Some(self.now) {
                    self.on_round();
                }
            }
            Event::Fault(fault) => self.on_fault(fault),
            Event::Seen { tin, life } => self.tell(tin, life, 0),
            Event::Tell { tin, life, tries } => self.tell(tin, life, tries),
            Event::Heard { tin, up } => {
                let write = Write::set(Table::Port, &tin.to_be_bytes(), &up.to_be_bytes());
                self.constellation.write(&[write]);
                self.round_at(self.now);
            }
            Event::Send { tin, session, bytes, tries } => self.send(tin, session, bytes, tries),
            Event::Arrive { tin, session, bytes, after } => {
                self.arrive(tin, session, &bytes, after);
            }
            Event::Answer { tin, session, bytes } => {
                if self.nodes[usize::from(tin)].session == Some(session) {
                    self.say(Session::Answer { tin, bytes });
                }
            }
            Event::Lose { tin, session } => {
                let node = &mut self.nodes[usize::from(tin)];
                let is_silent = node.silent.is_some_and(|since| self.now - since >= SILENCE);
                if node.session == Some(session) && (is_silent || !node.runs) {
                    node.session = None;
                    let life = node.life;
                    self.say(Session::Down { tin });
                    self.at(self.now + AGAIN, Event::Connect { tin, life });
                }
            }
            Event::Connect { tin, life } => {
                let node = &self.nodes[usize::from(tin)];
                if node.life != life || !node.runs || node.session.is_some() {
                    return;
                }
                match self.way(tin) {
                    Some(_) => self.connect(tin),
                    None => self.at(self.now + AGAIN, Event::Connect { tin, life }),
                }
            }
        }
    }

    /// Applications look at their clocks, and get their messages.
    fn on_round(&mut self) {
        self.round = None;
        self.constellation.tick(self.now);
        let is_engine =
            |message: &Message| matches!(message, Message::News((Application::RoutingEngine, _)));
        // The routing engine gathers what belongs together (M729).
        let is_new = self.constellation.messages().iter().any(is_engine);
        let held = self.held.or_else(|| is_new.then(|| self.now + self.sdn.batch));
        let may = held.is_some_and(|held| held <= self.now);
        self.held = if may { None } else { held };
        let (mut kept, count) = (0, self.constellation.messages().len());
        for _ in 0..count {
            let message = &self.constellation.messages()[kept];
            if is_engine(message) && !may {
                kept += 1;
                continue;
            }
            if let Message::Write { job: Job::Batch(..), .. } = message {
                self.batches.push(self.now);
            }
            self.constellation.deliver(self.now, kept);
        }
        for output in self.constellation.outside() {
            match output {
                Outside::Request(_, request) => {
                    let Some(session) = self.nodes[usize::from(request.tin)].session else {
                        continue;
                    };
                    self.send(request.tin, session, request.bytes, 0);
                }
                Outside::Progress(Progress::Enough { tin }) => {
                    if self.nodes[usize::from(tin)].over == Over::Pmos {
                        self.nodes[usize::from(tin)].over = Over::Tcp;
                        self.connect(tin);
                    }
                }
                Outside::Leads(_) => self.nodes.iter_mut().for_each(|node| node.session = None),
                Outside::Progress(_) | Outside::Tell(..) => {}
            }
        }
        self.connect_lost();
        let pending = self.constellation.messages().len() > kept;
        let next = if pending { self.now + STEP } else { self.now + TICK };
        let wakes = self.constellation.front_end().map_or(Time::NEVER, |app| app.wakes_at());
        let wakes = wakes.max(self.now + STEP);
        let next = next.min(wakes).min(self.held.unwrap_or(Time::NEVER).max(self.now + STEP));
        self.round_at(next);
    }

    /// Sessions for a front end that has just begun to lead.
    fn connect_lost(&mut self) {
        for tin in 0..self.nodes.len() as u16 {
            let node = &self.nodes[usize::from(tin)];
            let is_waited_for = self
                .events
                .values()
                .any(|event| matches!(event, Event::Connect { tin: other, .. } if *other == tin));
            if node.session.is_none() && node.runs && !is_waited_for {
                let life = node.life;
                self.at(self.now + STEP, Event::Connect { tin, life });
            }
        }
    }

    fn connect(&mut self, tin: u16) {
        let node = &mut self.nodes[usize::from(tin)];
        node.sessions += 1;
        node.session = Some(node.sessions);
        node.silent = None;
        node.last.clear();
        node.agent.begin();
        let up = Session::Up { tin, over: node.over, boot: node.boot };
        self.say(up);
    }

    fn say(&mut self, session: Session) {
        if let Some((leader, _)) = self.constellation.leader(Application::FrontEnd) {
            self.constellation.session(self.now, leader, session);
        }
        if self.is_booted {
            self.round_at(self.now);
        }
    }

    fn on_fault(&mut self, fault: Fault) {
        match fault {
            Fault::Link(link, is_up) => {
                self.dead[link as usize] = !is_up;
                let ends = self.clique.topology.links()[link as usize];
                for end in [ends.low, ends.high] {
                    self.see(end.tin);
                }
            }
            Fault::Tin(tin, is_on) => {
                let node = &mut self.nodes[usize::from(tin)];
                (node.is_on, node.runs) = (is_on, false);
                node.life += 1;
                if is_on {
                    node.boot += 1;
                    node.over = Over::Pmos;
                    let boot = node.boot;
                    let ethernet = self.clique.plan.ethernet(tin, Interface::Control);
                    self.chips[usize::from(tin)] = Chip::new(ethernet, boot);
                    self.written.push(Written { at: self.now, tin, entry: None });
                    self.start(tin);
                } else if let Some(session) = node.session {
                    self.at(self.now + SILENCE, Event::Lose { tin, session });
                }
                let ports = 0..self.clique.topology.shape().external_ports();
                let fars: BTreeSet<u16> = ports
                    .filter_map(|port| self.clique.topology.far(tin, port))
                    .map(|far| far.tin)
                    .collect();
                fars.into_iter().for_each(|far| self.see(far));
            }
            Fault::Restart(tin) => {
                let node = &mut self.nodes[usize::from(tin)];
                if node.is_on {
                    node.runs = false;
                    node.life += 1;
                    self.start(tin);
                }
            }
            Fault::Node(tin, admin) => {
                let write = Write::set(Table::Node, &tin.to_be_bytes(), &[admin as u8]);
                self.constellation.write(&[write]);
                self.round_at(self.now);
            }
            Fault::Drain(link, admin) => {
                let write = Write::set(Table::Link, &link.to_be_bytes(), &[admin as u8]);
                self.constellation.write(&[write]);
                self.round_at(self.now);
            }
        }
    }

    /// A processor starts: it runs after its start, and is called then.
    fn start(&mut self, tin: u16) {
        let node = &mut self.nodes[usize::from(tin)];
        let life = node.life;
        let at = self.now + self.sdn.start_time;
        if let Some(session) = node.session {
            // What comes for the old session is answered by none: the controller knows it then, or after a silence.
            let silent = (self.now + SILENCE).min(at);
            self.at(silent, Event::Lose { tin, session });
        }
        self.at(at, Event::Seen { tin, life });
    }

    /// A firmware will see how its ports are.
    fn see(&mut self, tin: u16) {
        let life = self.nodes[usize::from(tin)].life;
        self.at(self.now + self.sdn.detection, Event::Seen { tin, life });
    }

    /// Ports of a TiN whose links carry cells; those that are not wired, too.
    fn up(&self, tin: u16) -> u64 {
        let down = (0..self.clique.topology.shape().external_ports()).filter(|&port| {
            self.clique.topology.far(tin, port).is_some() && !self.crosses(tin, port)
        });
        down.fold(u64::MAX, |mask, port| mask & !(1 << port))
    }

    fn crosses(&self, tin: u16, port: u8) -> bool {
        let (link, far) =
            (self.clique.topology.link(tin, port), self.clique.topology.far(tin, port));
        let (Some(link), Some(far)) = (link, far) else { return false };
        let is_on = |tin: u16| self.nodes[usize::from(tin)].is_on;
        !self.dead[link as usize] && is_on(tin) && is_on(far.tin)
    }

    /// A firmware tells the controller which of its ports are up.
    fn tell(&mut self, tin: u16, life: u32, tries: u32) {
        let node = &mut self.nodes[usize::from(tin)];
        if node.life != life || !node.is_on {
            return;
        }
        if !node.runs {
            // It has just started: whoever looks for it finds it.
            node.runs = true;
            self.at(self.now, Event::Connect { tin, life });
        }
        match self.way(tin) {
            Some(after) => {
                let up = self.up(tin);
                self.at(self.now + after, Event::Heard { tin, up });
            }
            None => {
                let again = AGAIN * (1 << tries.min(6));
                self.at(self.now + again, Event::Tell { tin, life, tries: tries + 1 });
            }
        }
    }

    /// How long a packet of the controller's takes to a TiN, by what registers say now; `None`: it does not get there.
    fn way(&self, tin: u16) -> Option<Span> {
        let node = &self.nodes[usize::from(tin)];
        if !node.is_on {
            return None;
        }
        if node.over == Over::Pmos {
            // Over the next neighbour, which the controller reaches.
            let ports = 0..self.clique.topology.shape().external_ports();
            let is_there = { ports }.any(|port| self.crosses(tin, port));
            return is_there.then(|| self.sdn.network + self.sdn.hop * 4);
        }
        let live = |other: &&u16| self.nodes[usize::from(**other)].is_on;
        let pod = |tin: u16| self.clique.topology.shape().split(tin).0;
        let all: Vec<u16> = self.connected.iter().filter(live).copied().collect();
        if all.contains(&tin) {
            return Some(self.sdn.network);
        }
        let mates: Vec<u16> = all.iter().copied().filter(|&other| pod(other) == pod(tin)).collect();
        let among = if mates.is_empty() { &all } else { &mates };
        let entrance = *among.get(usize::from(tin) % among.len().max(1))?;
        let to = self.clique.plan.address(tin, Endpoint::CONTROL_IP);
        let IpAddr::V4(ip) = self.clique.plan.ip(tin, Interface::Control, Version::V4) else {
            return None;
        };
        let hash = u64::from(crc32fast::hash(&ip.octets()));
        let crosses = |tin, port| self.crosses(tin, port);
        let by = (entrance, Endpoint::ETHERNET);
        let passed = follow(&self.clique.topology, &self.chips, by, (to, hash), crosses).ok()?;
        Some(self.sdn.network + self.sdn.hop * passed.len() as u64)
    }

    fn send(&mut self, tin: u16, session: u32, bytes: Vec<u8>, tries: u32) {
        if self.nodes[usize::from(tin)].session != Some(session) {
            return;
        }
        match self.way(tin).filter(|_| self.nodes[usize::from(tin)].runs) {
            Some(after) => {
                self.nodes[usize::from(tin)].silent = None;
                let event = Event::Arrive { tin, session, bytes, after };
                self.at(self.now + after, event);
            }
            None => {
                let again = AGAIN * (1 << tries.min(6));
                self.at(self.now + again, Event::Send { tin, session, bytes, tries: tries + 1 });
                if tries == 0 {
                    self.nodes[usize::from(tin)].silent = Some(self.now);
                    self.at(self.now + SILENCE, Event::Lose { tin, session });
                }
            }
        }
    }

    /// A request is there: the chip does item after item, entry after entry.
    fn arrive(&mut self, tin: u16, session: u32, bytes: &[u8], after: Span) {
        let node = &mut self.nodes[usize::from(tin)];
        if node.session != Some(session) || !node.runs {
            return;
        }
        let registers = &mut self.chips[usize::from(tin)].registers;
        let request = Request::decode(bytes).expect("the front end has made it");
        let answer = node.agent.receive(registers, bytes).expect("it is a request").to_vec();
        let outcomes = Answer::decode(&answer).expect("the agent has made it").outcomes;
        let is_again = std::mem::replace(&mut node.last, bytes.to_vec()) == bytes;
        let mut at = self.now;
        for (item, outcome) in request.items.iter().zip(outcomes) {
            let (entries, size) = match item {
                Item::Read { .. } => (1, 0),
                Item::ReadBlock { count, .. } | Item::Digests { count, .. } => {
                    (u64::from(*count), 0)
                }
                Item::Write { entry, .. } => (1, entry.as_bytes().len()),
                Item::WriteBlock { size, bytes, .. } => {
                    ((bytes.len() / usize::from(*size).max(1)) as u64, usize::from(*size))
                }
            };
            let (first, all) = match item {
                Item::Write { address, entry } => (*address, entry.as_bytes()),
                Item::WriteBlock { address, bytes, .. } => (*address, &bytes[..]),
                _ => (0, &[][..]),
            };
            if outcome != Outcome::Written {
                at += self.sdn.entry_time * entries;
                continue;
            }
            for (place, entry) in (0..).zip(all.chunks_exact(size.max(1))) {
                at += self.sdn.entry_time;
                if self.is_booted && !is_again {
                    let entry = Some((first + place * size as u32, entry.to_vec()));
                    self.written.push(Written { at, tin, entry });
                }
            }
        }
        self.at(at + after, Event::Answer { tin, session, bytes: answer });
    }
}
