//! How the controller comes to reach TiNs: over the very network that it is about to make.
//!
//! Models: Aquila §4.4 (M801, M802, M804, M809 to M813): the controller calls the addresses that its records have for
//! control processors, again and again. Whom it reaches is a proxy for its neighbours: what these ask of DHCP is relayed,
//! and their first programming goes through the proxy by PMOS. When enough is programmed the controller reaches them
//! through the Clique, and they are proxies in turn; a proxy boots one target, and then another. Several such waves go on
//! at once.
//!
//! **Our choice** (M804, M812, M813): a call of 5 s, at most 64 at once; targets nearest to the datacenter's network come
//! first, and there is no barrier between waves; 10 s to reconnect before a TiN is taken for one that has to be booted again.
//!
//! Leaves out: that the controller is one of several ([`crate::apps`]).

mod schedule;
mod target;

use std::collections::BTreeSet;

use aquila::pipeline::Interface;
use aquila::pipeline::plan::{EthernetAddress, Plan, Version};
use aquila::topology::Topology;
use kernel::{Span, Stream, Time};

use crate::apps::front_end::order;
use crate::apps::rows::SessionRow;
use crate::apps::session::{Over, Progress, Request, Session};
use crate::dhcp::{self, Kind, Message};
use crate::flash::GENERATION;
use crate::pmos;
use crate::rpc::Restart;
use crate::session::{
    Addresses, Client, Hello, PIECE_BYTES, Pieces, Progress as Call, Said, Versions, ip,
};
use target::Target;

/// What the controller's patience is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How long a call is tried (M804).
    pub call: Span,
    /// Calls at once (M804).
    pub calls_max: usize,
    /// Targets of a proxy at once (M812).
    pub targets_max: usize,
    /// For how long a lost session is only called for (M813).
    pub reconnect: Span,
    /// For how long a TiN is only called for that said it would restart (M617: its processor takes 5 s, and its image may
    /// have to give way to the one before it).
    pub restart: Span,
    /// The same of one whose chip restarts: it has to be booted again.
    pub restart_cold: Span,
    /// For how long a target may be silent by PMOS: longer than a window of largest frames takes, and the largest request
    /// ([`Settings::with_times`]).
    pub silence: Span,
    /// Who has not asked a proxy for an address for so long has one, of a controller before this one (our choice: whoever
    /// asks does so within 64 s and a tenth, M803, there and on the wire).
    pub asks: Span,
    /// Over which versions of IP TiNs are called (M615).
    pub versions: Versions,
}

impl Default for Settings {
    fn default() -> Self {
        let seconds = |seconds: u64| Span::from_us(seconds * 1_000_000);
        Self {
            call: seconds(5),
            calls_max: 64,
            targets_max: 1,
            reconnect: seconds(10),
            restart: seconds(300),
            restart_cold: seconds(60),
            silence: seconds(60),
            asks: seconds(150),
            versions: Versions::default(),
        }
    }
}

impl Settings {
    /// The same, with as much patience as it takes where words of PMOS follow each other in such a time, and a control
    /// processor takes so long for an entry of a register: four largest frames, there and back, with room to spare, and the
    /// request with most entries.
    #[must_use]
    pub fn with_times(mut self, mos_interval: Span, entry_time: Span) -> Self {
        let window = mos_interval * (2 * pmos::WINDOW as u64 * 260);
        let request = entry_time * order::entries_max();
        self.silence = self.silence.max(window + request);
        self
    }
}

/// How far a TiN is, as the controller has it (M813).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// Nothing is known of it.
    Waiting,
    /// It has an address.
    Addressed,
    /// It is programmed by PMOS.
    Pmos,
    /// There is a session over TCP, and it is programmed.
    Tcp,
    /// Its registers have been what is wanted of it: it carries others' traffic (M815).
    Ready,
    /// It was, and its session is lost.
    Reconnecting,
}

/// What the session manager is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input {
    /// Time has passed, and nothing else.
    Nothing,
    /// A packet to the controller's address.
    Packet(Vec<u8>),
    /// What the DHCP server says to the controller as a relay.
    Dhcp(Vec<u8>),
    /// The front end has a request.
    Request(Request),
    /// The front end says how far it is.
    Progress(Progress),
}

/// What the session manager wants done, and tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output {
    /// A packet to a TiN's address.
    Packet(Vec<u8>),
    /// For the DHCP server.
    Dhcp(Vec<u8>),
    /// For the front end.
    Session(Session),
    /// The ports of a TiN that are up, a bit each.
    Links {
        /// Which TiN's.
        tin: u16,
        /// A bit each.
        up: u64,
    },
    /// A register of a TiN, which it reports by itself (M605).
    Report {
        /// Which TiN's.
        tin: u16,
        /// Of the entry.
        address: u32,
        /// What it holds.
        entry: Vec<u8>,
    },
    /// A TiN has come to another stage; by PMOS with the proxy and its port.
    Stage {
        /// Which.
        tin: u16,
        /// To which.
        stage: Stage,
        /// Through whom.
        via: Option<(u16, u8)>,
    },
}

/// What has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Calls that were tried.
    pub calls: u64,
    /// DHCP messages of targets that were relayed.
    pub relayed: u64,
    /// Those that came by several proxies.
    pub merged: u64,
    /// Sessions by PMOS that were begun.
    pub pmos_sessions: u64,
    /// Those that ended before enough was programmed.
    pub pmos_lost: u64,
    /// Sessions over TCP.
    pub tcp_sessions: u64,
    /// Those that were lost.
    pub tcp_lost: u64,
    /// Words and packets that were none, or of TiNs that are not what they say.
    pub malformed: u64,
    /// Sessions of chips of another generation, whose registers this controller does not know: they are refused (M617).
    pub other_generations: u64,
}

impl std::ops::Add for Counts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            relayed: self.relayed + other.relayed,
            merged: self.merged + other.merged,
            pmos_sessions: self.pmos_sessions + other.pmos_sessions,
            pmos_lost: self.pmos_lost + other.pmos_lost,
            tcp_sessions: self.tcp_sessions + other.tcp_sessions,
            tcp_lost: self.tcp_lost + other.tcp_lost,
            malformed: self.malformed + other.malformed,
            other_generations: self.other_generations + other.other_generations,
        }
    }
}

/// A TiN, as the controller knows it.
#[derive(Debug)]
struct Tin {
    client: Client,
    stage: Stage,
    /// The call under way ends then.
    call_ends: Option<Time>,
    /// It is called then at the earliest.
    call_next: Time,
    /// Over which version of IP.
    version: Version,
    /// There is a session over TCP: it has said who it is.
    is_up: bool,
    /// The number of its chip's cold start, and of that in which it was ready.
    boot: u32,
    ready_boot: Option<u32>,
    /// Enough is programmed for a call through the Clique.
    is_enough: bool,
    /// It is to be taken for lost then.
    gives_up: Option<Time>,
    /// It has said that it would restart: it is called without a pause.
    is_restarting: bool,
    links: u64,
    /// Since when there is a session over TCP, and when the TiN last asked for an address by PMOS.
    up_since: Time,
    asked: Time,
    /// The session by PMOS.
    target: Option<Target>,
    /// Whom it is a proxy for.
    targets: Vec<u16>,
    /// Through whom it was not reached the last time.
    avoid: Option<u16>,
    /// What is still to be said of a request over TCP.
    request: Vec<u8>,
    said: usize,
    pieces: Pieces,
}

/// The session manager of a Clique's controller.
#[derive(Debug)]
pub struct Manager {
    topology: Topology,
    plan: Plan,
    settings: Settings,
    own: Addresses,
    tins: Vec<Tin>,
    /// By TiN: its place in the order in which targets are taken.
    order: Vec<u16>,
    merge: dhcp::Merge<(u16, u8)>,
    /// When clients are to be polled.
    timers: BTreeSet<(Time, u16)>,
    timer_of: Vec<Option<Time>>,
    next_tick: Time,
    numbers: Stream,
    counts: Counts,
}

/// How often calls and silences are looked at (our choice).
const TICK: Span = Span::from_us(1_000_000);

impl Manager {
    /// A session manager that knows who is wired to whom, and which TiNs are connected to the datacenter's network.
    #[must_use]
    pub fn new(
        now: Time,
        topology: &Topology,
        connected: &[u16],
        own: Addresses,
        settings: Settings,
        seed: u64,
    ) -> Self {
        let shape = *topology.shape();
        let plan = Plan::new(&shape, 2);
        let mut numbers = Stream::new(seed, "session manager", now.as_ps());
        let tins = 0..shape.tins();
        let tin = |tin| Tin {
            client: Client::new(
                now,
                numbers.below(1 << 63),
                own,
                settings.versions.addresses(&plan, tin),
            ),
            version: settings.versions.first(),
            stage: Stage::Waiting,
            call_ends: None,
            call_next: now,
            is_up: false,
            boot: 0,
            ready_boot: None,
            is_enough: false,
            gives_up: None,
            is_restarting: false,
            links: 0,
            up_since: now,
            asked: now,
            target: None,
            targets: Vec::new(),
            avoid: None,
            request: Vec::new(),
            said: 0,
            pieces: Pieces::default(),
        };
        Self {
            tins: tins.map(tin).collect(),
            order: schedule::order(topology, connected),
            topology: topology.clone(),
            plan,
            settings,
            own,
            merge: dhcp::Merge::default(),
            timers: BTreeSet::new(),
            timer_of: vec![None; usize::from(shape.tins())],
            next_tick: now,
            numbers,
            counts: Counts::default(),
        }
    }

    /// Takes over from another controller, which has left these rows of TiNs: who was ready is called, and carries others'
    /// traffic meanwhile; who was not has an address all the same. To be told before anything else.
    pub fn take_over(&mut self, now: Time, rows: impl IntoIterator<Item = (u16, SessionRow)>) {
        // All of them have to be called, so many at once, and this twice.
        let calls = self.tins.len().div_ceil(self.settings.calls_max.max(1)) as u64;
        let gives_up = now + self.settings.reconnect + self.settings.call * 2 * calls;
        for (tin, row) in rows {
            let Some(place) = self.tins.get_mut(usize::from(tin)) else { continue };
            if row.is_ready {
                (place.ready_boot, place.gives_up) = (Some(row.boot), Some(gives_up));
                place.stage = Stage::Reconnecting;
            } else {
                place.stage = Stage::Addressed;
            }
        }
    }

    /// Advances by one input.
    pub fn step(&mut self, now: Time, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Nothing => {}
            Input::Packet(packet) => match self.sender(&packet) {
                Some(tin) => {
                    self.tins[usize::from(tin)].client.receive(now, packet);
                    self.look(now, tin, out);
                }
                None => self.counts.malformed += 1,
            },
            Input::Dhcp(answer) => self.on_answer(now, &answer, out),
            Input::Request(request) => self.on_request(now, request, out),
            Input::Progress(Progress::Enough { tin }) => self.on_enough(now, tin),
            Input::Progress(Progress::Complete { tin }) => self.on_complete(tin, out),
            Input::Progress(Progress::Restarts { tin, restart }) => {
                self.on_restart(now, tin, restart, out);
            }
        }
        self.on_time(now, out);
    }

    /// When [`Input::Nothing`] is to come.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        let is_quiet = self.tins.iter().all(|tin| tin.is_up);
        let tick = (!is_quiet).then_some(self.next_tick);
        self.timers.first().map(|timer| timer.0).into_iter().chain(tick).min()
    }

    /// How far a TiN is.
    ///
    /// # Panics
    /// If there is no such TiN.
    #[must_use]
    pub fn stage(&self, tin: u16) -> Stage {
        self.tins[usize::from(tin)].stage
    }

    /// What has happened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { merged: self.merge.merged, ..self.counts }
    }

    /// Has registers of a TiN reported, each so many seconds; whether there is room to say so, and a session.
    pub fn report(&mut self, now: Time, tin: u16, seconds: u16, addresses: Vec<u32>) -> bool {
        let is_said = self.tin(tin).client.say(&Said::List { seconds, addresses });
        self.tin(tin).client.poll(now);
        is_said
    }

    fn tin(&mut self, tin: u16) -> &mut Tin {
        &mut self.tins[usize::from(tin)]
    }

    /// Whose packet it is.
    fn sender(&self, packet: &[u8]) -> Option<u16> {
        let (from, _) = ip::addresses(packet)?;
        let found = self.plan.of_ip(from)?;
        (found.1 == Interface::Control).then_some(found.0)
    }

    fn is_known_as(&self, tin: u16, ethernet: EthernetAddress) -> bool {
        self.plan.of_ethernet(ethernet) == Some((tin, Interface::Control))
    }

    fn set_stage(&mut self, tin: u16, stage: Stage, out: &mut Vec<Output>) {
        let place = self.tin(tin);
        if place.stage != stage {
            place.stage = stage;
            let via = place.target.as_ref().map(|target| (target.proxy, target.port));
            out.push(Output::Stage { tin, stage, via });
        }
    }

    /// Looks at a TiN's session over TCP after something has come, or time has passed.
    fn look(&mut self, now: Time, tin: u16, out: &mut Vec<Output>) {
        loop {
            match self.tin(tin).client.hear() {
                Ok(Some(said)) => self.on_said(now, tin, said, out),
                Ok(None) => break,
                Err(_) => {
                    self.counts.malformed += 1;
                    self.tin(tin).client.hang_up(now);
                    break;
                }
            }
        }
        if self.tin(tin).is_up && self.tin(tin).client.progress() == Call::Closed {
            self.on_lost(now, tin, out);
        }
        self.say(now, tin);
        self.flush(tin, out);
    }

    /// Says what there is to say over TCP: a request to the TiN itself, and what it is to pass on.
    fn say(&mut self, now: Time, tin: u16) {
        let place = self.tin(tin);
        if !place.is_up {
            return;
        }
        while place.said < place.request.len() {
            let end = place.request.len().min(place.said + PIECE_BYTES);
            if !place.client.say(&Said::Rpc(place.request[place.said..end].to_vec())) {
                break;
            }
            place.said = end;
        }
        for target in place.targets.clone() {
            let mut session = self.tin(target).target.take();
            if let Some(session) = &mut session {
                session.pass(&mut self.tin(tin).client);
            }
            self.tin(target).target = session;
        }
        self.tin(tin).client.poll(now);
    }

    /// Sends what a client has, and sets its timer.
    fn flush(&mut self, tin: u16, out: &mut Vec<Output>) {
        let place = &mut self.tins[usize::from(tin)];
        out.extend(place.client.packets().into_iter().map(Output::Packet));
        let next = place.client.deadline();
        let timer = &mut self.timer_of[usize::from(tin)];
        if *timer != next {
            timer.take().map(|at| self.timers.remove(&(at, tin)));
            next.map(|at| self.timers.insert((at, tin)));
            *timer = next;
        }
    }

    /// A TiN has said something over TCP.
    fn on_said(&mut self, now: Time, tin: u16, said: Said, out: &mut Vec<Output>) {
        match said {
            Said::Hello(hello) if !self.tin(tin).is_up => self.on_hello(now, tin, hello, out),
            _ if !self.tin(tin).is_up => self.counts.malformed += 1,
            Said::Rpc(piece) => {
                self.on_piece(tin, &piece, out);
            }
            Said::Links(up) => {
                self.tin(tin).links = up;
                out.push(Output::Links { tin, up });
                self.look_for_cold(now, tin, out);
                for target in self.tin(tin).targets.clone() {
                    let via = self.tin(target).target.as_ref().map(|target| target.port);
                    if via.is_some_and(|port| up >> port & 1 == 0) {
                        self.end_target(now, target, out);
                    }
                }
            }
            Said::Report { address, entry } => out.push(Output::Report { tin, address, entry }),
            Said::Room { port } => {
                if let Some(target) = self.target_at(tin, port) {
                    target.has_room(now);
                }
            }
            Said::Pmos { port, kind, data } => self.on_target(now, (tin, port), kind, data, out),
            Said::Hello(_) | Said::List { .. } => self.counts.malformed += 1,
        }
    }

    /// All neighbours of a TiN say that their links to it are down: it has no power, and what it holds is gone. It is not
    /// waited for until it has been silent for long enough.
    fn look_for_cold(&mut self, now: Time, tin: u16, out: &mut Vec<Output>) {
        let ports = 0..self.topology.shape().external_ports();
        let fars: BTreeSet<u16> = ports
            .clone()
            .filter_map(|port| self.topology.far(tin, port))
            .map(|far| far.tin)
            .collect();
        for far in fars {
            let has_link =
                ports.clone().filter_map(|port| self.topology.far(far, port)).any(|end| {
                    let place = &self.tins[usize::from(end.tin)];
                    place.is_up && place.links >> end.port & 1 == 1
                });
            if has_link || !matches!(self.tin(far).stage, Stage::Ready | Stage::Reconnecting) {
                continue;
            }
            if self.tin(far).is_up {
                self.tin(far).client.hang_up(now);
                self.on_lost(now, far, out);
                self.flush(far, out);
            }
            self.tin(far).gives_up = None;
            self.set_stage(far, Stage::Addressed, out);
        }
    }

    fn on_hello(&mut self, now: Time, tin: u16, hello: Hello, out: &mut Vec<Output>) {
        if !self.is_known_as(tin, hello.ethernet) {
            self.counts.malformed += 1;
            self.tin(tin).client.hang_up(now);
            return;
        }
        if hello.generation != GENERATION {
            self.counts.other_generations += 1;
            self.tin(tin).client.hang_up(now);
            return;
        }
        self.drop_target(tin, out);
        let place = self.tin(tin);
        // After a cold start it is not.
        let was_ready = place.ready_boot == Some(hello.boot);
        place.boot = hello.boot;
        (place.is_up, place.links, place.call_ends, place.gives_up) =
            (true, hello.links, None, None);
        place.request.clear();
        place.said = 0;
        place.pieces.clear();
        (place.avoid, place.up_since, place.is_restarting) = (None, now, false);
        self.counts.tcp_sessions += 1;
        self.set_stage(tin, if was_ready { Stage::Ready } else { Stage::Tcp }, out);
        out.push(Output::Session(Session::Up {
            tin,
            over: Over::Tcp,
            boot: hello.boot,
            firmware: hello.firmware,
        }));
        out.push(Output::Links { tin, up: hello.links });
    }

    /// A piece of an answer has come, by whatever way; whether it was the last.
    fn on_piece(&mut self, tin: u16, piece: &[u8], out: &mut Vec<Output>) -> bool {
        if self.tin(tin).pieces.add(piece).is_err() {
            self.counts.malformed += 1;
        }
        let whole = self.tin(tin).pieces.take();
        let is_whole = whole.is_some();
        out.extend(whole.map(|bytes| Output::Session(Session::Answer { tin, bytes })));
        is_whole
    }

    /// The session over TCP is lost; so are those of its targets (M813).
    fn on_lost(&mut self, now: Time, tin: u16, out: &mut Vec<Output>) {
        self.counts.tcp_lost += 1;
        let gives_up = now + self.settings.reconnect;
        let place = self.tin(tin);
        place.is_up = false;
        (place.gives_up, place.call_next) = (Some(gives_up), now);
        let stage =
            if place.stage == Stage::Ready { Stage::Reconnecting } else { Stage::Addressed };
        for target in std::mem::take(&mut place.targets) {
            self.end_target(now, target, out);
        }
        self.merge.forget(|(proxy, _)| proxy == tin);
        self.set_stage(tin, stage, out);
        out.push(Output::Session(Session::Down { tin }));
    }

    /// The front end has a request: one at a time, as it knows (I73).
    fn on_request(&mut self, now: Time, request: Request, out: &mut Vec<Output>) {
        let Request { tin, bytes } = request;
        if let Some(target) = &mut self.tin(tin).target {
            target.ask(&bytes);
            let proxy = target.proxy;
            self.say(now, proxy);
            self.flush(proxy, out);
        } else if self.tin(tin).is_up {
            (self.tin(tin).request, self.tin(tin).said) = (bytes, 0);
            self.say(now, tin);
            self.flush(tin, out);
        }
    }

    /// Enough is programmed: the TiN is called, before others (M811).
    fn on_enough(&mut self, now: Time, tin: u16) {
        let place = self.tin(tin);
        if !place.is_up && !place.is_enough {
            (place.is_enough, place.call_next) = (true, now);
            self.next_tick = now;
        }
    }

    /// A TiN is about to restart, as another version of its firmware is to run: its session is over, and it is called again
    /// until it is back.
    fn on_restart(&mut self, now: Time, tin: u16, restart: Restart, out: &mut Vec<Output>) {
        if !self.tin(tin).is_up {
            return;
        }
        self.tin(tin).client.hang_up(now);
        self.on_lost(now, tin, out);
        let gives_up = now
            + match restart {
                Restart::Processor => self.settings.restart,
                Restart::Chip => self.settings.restart_cold,
            };
        let place = self.tin(tin);
        (place.is_restarting, place.gives_up) = (true, Some(gives_up));
        self.next_tick = self.next_tick.min(now + TICK);
        self.flush(tin, out);
    }

    fn on_complete(&mut self, tin: u16, out: &mut Vec<Output>) {
        let place = self.tin(tin);
        if place.is_up {
            place.ready_boot = Some(place.boot);
            self.set_stage(tin, Stage::Ready, out);
        }
    }

    /// The DHCP server has answered a target: through the proxy by which it asked (M810).
    fn on_answer(&mut self, now: Time, bytes: &[u8], out: &mut Vec<Output>) {
        let Ok(message) = Message::decode(bytes) else {
            self.counts.malformed += 1;
            return;
        };
        let Some((proxy, port)) = self.merge.way(&message) else { return };
        let said = Said::Pmos { port, kind: pmos::Kind::Dhcp, data: bytes.to_vec() };
        // What has no room is asked for again.
        if self.tin(proxy).client.say(&said) && message.kind == Kind::Ack {
            let far = self.topology.far(proxy, port).expect("it was heard there").tin;
            if self.tin(far).stage == Stage::Waiting {
                self.set_stage(far, Stage::Addressed, out);
                self.next_tick = now;
            }
        }
        self.say(now, proxy);
        self.flush(proxy, out);
    }

    /// Does what is due.
    fn on_time(&mut self, now: Time, out: &mut Vec<Output>) {
        while let Some(&(at, tin)) = self.timers.first()
            && at <= now
        {
            self.tin(tin).client.poll(now);
            self.look(now, tin, out);
        }
        if self.next_tick <= now {
            self.next_tick = now + TICK;
            self.give_up(now, out);
            self.call(now, out);
            self.schedule(now, out);
        }
    }

    /// Ends calls and sessions that have had their time.
    fn give_up(&mut self, now: Time, out: &mut Vec<Output>) {
        for tin in 0..self.tins.len() as u16 {
            let Settings { call, versions, .. } = self.settings;
            let place = self.tin(tin);
            if place.call_ends.take_if(|ends| *ends <= now && !place.is_up).is_some() {
                place.client.hang_up(now);
                place.version = versions.after(place.version);
                // Whoever waits longest is called next; who was told to be within reach, at once.
                let is_expected = place.is_enough || place.is_restarting;
                place.call_next = if is_expected { now } else { now + call };
                self.flush(tin, out);
            }
            let place = self.tin(tin);
            if place.gives_up.take_if(|at| *at <= now).is_some() {
                (place.is_enough, place.is_restarting) = (false, false);
                self.set_stage(tin, Stage::Addressed, out);
            }
            let silent = self.settings.silence;
            let place = self.tin(tin);
            // Who has enough and cannot be called has lost it again.
            let waits = |target: &Target| place.is_enough || target.waits();
            if place.target.as_ref().is_some_and(|t| t.heard + silent <= now && waits(t)) {
                self.end_target(now, tin, out);
            }
        }
    }

    /// Calls those that have waited longest, those first who should be within reach (M804).
    fn call(&mut self, now: Time, out: &mut Vec<Output>) {
        let calling = self.tins.iter().filter(|tin| tin.call_ends.is_some()).count();
        let mut waiting: Vec<(bool, Time, u16)> = (0..)
            .zip(&self.tins)
            .filter(|(_, tin)| !tin.is_up && tin.call_ends.is_none() && tin.call_next <= now)
            .filter(|(_, tin)| tin.target.is_none() || tin.is_enough)
            .map(|(at, tin)| (!tin.is_enough && tin.gives_up.is_none(), tin.call_next, at))
            .collect();
        waiting.sort_unstable();
        for (_, _, tin) in waiting.into_iter().take(self.settings.calls_max.saturating_sub(calling))
        {
            let ends = now + self.settings.call;
            let place = self.tin(tin);
            place.call_ends = Some(ends);
            place.client.call(now, place.version);
            self.counts.calls += 1;
            self.flush(tin, out);
        }
    }
}

impl Manager {
    /// The controller's addresses.
    #[must_use]
    pub fn addresses(&self) -> Addresses {
        self.own
    }
}
