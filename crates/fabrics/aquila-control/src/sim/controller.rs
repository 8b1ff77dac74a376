//! The controller of a simulated Clique: the applications around their base, the session manager of the front end that
//! leads, and what lies between them.
//!
//! Messages between instances, base and session manager take [`Config::message`] and arrive in order; of a million,
//! [`Config::messages_lost`] are lost of those between instances and base. The session manager lives with an instance of
//! the front end: another one that leads opens sessions of its own, and knows from the base who was ready.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use aquila::pipeline::plan::{Plan, Version};
use aquila::topology::Topology;
use aquila::turns::TurnTable;
use ipnet::IpNet;
use kernel::{Span, Stream, Time};

use super::journal::What;
use super::{CONTROLLER, Config, Event, Parcel, Sim};
use crate::apps::Clique;
use crate::apps::constellation::{Constellation, INSTANCES, Name, Outside};
use crate::apps::election::Application;
use crate::apps::front_end::intent::Intent;
use crate::apps::inter_block::Message;
use crate::apps::routing::{Output, RoutingEngine};
use crate::apps::rows::{
    BatchRow, PROGRAMMED, SessionRow, encode_members, encode_prefix, split_key,
};
use crate::bootstrap::{self, Counts, Manager, Stage};
use crate::nib::{Nib, Table, Write};
use crate::registers::file::RegisterFile;

/// How often everybody is told that time goes on (our choice): leases are renewed each second.
const TICK: Span = Span::from_us(250_000);
/// How often a shard of the inter-block controllers says what it reaches (our choice).
const SHARD: Span = Span::from_us(10_000_000);

/// What a session manager and its instance of the front end tell each other.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// Of a session.
    Session(crate::apps::session::Session),
    /// Which of a TiN's ports are up: for the base.
    Links(u16, u64),
}

/// The controller.
#[derive(Debug)]
pub(super) struct Controller {
    pub constellation: Constellation,
    /// When messages between its parts arrive, in order.
    due: VecDeque<Time>,
    lost: Stream,
    /// The instance of the front end that leads, and its session manager.
    pub manager: Option<(u8, Manager)>,
    /// Of session managers: what is meant for one before this one is lost.
    life: u32,
    manager_scheduled: Option<Time>,
    ticked: Time,
    tick_scheduled: Option<Time>,
    /// By TiN: by whom it is reached, as the routers of the datacenter's network were told.
    exits: Vec<Vec<u16>>,
    computed: u64,
    /// Versions of the base, and the batch, that have been looked at.
    version: u64,
    batch: BatchRow,
    /// Of session managers and instances before.
    counts: Counts,
    entries: (u64, u64),
}

impl Controller {
    pub fn new(config: &Config, topology: &Topology, base: Nib) -> Self {
        let clique = clique(topology);
        let tins = usize::from(topology.shape().tins());
        let constellation = Constellation::around(Time::ZERO, clique, config.front_end, base);
        Self {
            constellation,
            due: VecDeque::new(),
            lost: Stream::new(config.seed, "messages that are lost", 0),
            manager: None,
            life: 0,
            manager_scheduled: None,
            ticked: Time::ZERO,
            tick_scheduled: None,
            exits: vec![config.connected.clone(); tins],
            computed: 0,
            version: 0,
            batch: BatchRow { is_done: true, ..BatchRow::default() },
            counts: Counts::default(),
            entries: (0, 0),
        }
    }

    /// How far a TiN is.
    pub fn stage(&self, tin: u16) -> Stage {
        self.manager.as_ref().map_or(Stage::Waiting, |(_, manager)| manager.stage(tin))
    }

    /// What session managers have counted so far.
    pub fn counts(&self) -> Counts {
        let now = self.manager.as_ref().map(|(_, manager)| manager.counts()).unwrap_or_default();
        self.counts + now
    }

    /// Entries of registers that front ends have written so far.
    pub fn entries(&self) -> u64 {
        let now = self.constellation.front_end().map_or(0, |app| app.counts().entries);
        let (before, last) = self.entries;
        before + if now < last { last + now } else { now }
    }

    /// Whether all is written that is wanted.
    pub fn is_settled(&self) -> bool {
        let all = &self.constellation;
        let (Some(engine), Some(base)) = (all.routing_engine(), all.base()) else { return false };
        all.is_quiet()
            && engine.is_settled()
            && base.since(engine.seen(), &RoutingEngine::TABLES).changes.is_empty()
    }

    /// Whether a TiN holds what is wanted of it, and the base knows that it is ready.
    pub fn is_ready(&self, tin: u16, boot: u32) -> bool {
        let row = self.constellation.base().and_then(|base| session_row(base, tin));
        row.is_some_and(|row| row.is_up && row.is_ready && row.boot == boot)
            && self.constellation.front_end().is_some_and(|app| app.is_complete(tin))
    }

    /// Of the session manager that there is.
    pub fn life(&self) -> u32 {
        self.life
    }

    fn end_manager(&mut self) {
        if let Some((_, manager)) = self.manager.take() {
            self.counts = self.counts + manager.counts();
        }
        self.life += 1;
        self.manager_scheduled = None;
    }
}

impl Sim {
    /// The controller starts.
    pub(super) fn start_controller(&mut self) {
        self.tick();
        self.hear_shard();
    }

    /// Something has been done to the constellation: what it has to say is sent.
    pub(super) fn attend(&mut self) {
        let message = self.config.message;
        let controller = &mut self.controller;
        while controller.due.len() < controller.constellation.messages().len() {
            controller.due.push_back(self.now + message);
            self.calendar.push(self.now + message, Event::Message);
        }
        let life = self.controller.life;
        for outside in self.controller.constellation.outside() {
            let leads = self.controller.manager.as_ref().map(|(number, _)| *number);
            match outside {
                Outside::Request(number, request) if leads == Some(number) => {
                    let input = bootstrap::Input::Request(request);
                    self.send(message, Parcel::Manager { life, input });
                }
                Outside::Progress(progress) => {
                    let input = bootstrap::Input::Progress(progress);
                    self.send(message, Parcel::Manager { life, input });
                }
                Outside::Leads(number) => self.start_manager(number),
                Outside::Request(..) | Outside::Tell(..) => {}
            }
        }
        self.schedule_tick();
    }

    /// An instance of the front end leads from now on, and opens its own sessions. Who was ready is in the base.
    fn start_manager(&mut self, number: u8) {
        self.controller.end_manager();
        let (connected, settings) = (&self.config.connected[..], self.config.manager);
        let seed = self.config.seed ^ u64::from(self.controller.life) << 40;
        let mut manager =
            Manager::new(self.now, &self.topology, connected, CONTROLLER, settings, seed);
        if let Some(base) = self.controller.constellation.base() {
            manager.take_over(self.now, SessionRow::all(base));
        }
        self.controller.manager = Some((number, manager));
        let life = self.controller.life;
        self.send(Span::ZERO, Parcel::Manager { life, input: bootstrap::Input::Nothing });
    }

    /// A message between instances and the base arrives.
    pub(super) fn on_message(&mut self) {
        let controller = &mut self.controller;
        if controller.due.pop_front().is_none() {
            return;
        }
        let lost = u64::from(self.config.messages_lost);
        if lost > 0 && controller.lost.below(1_000_000) < lost {
            controller.constellation.lose(0);
        } else {
            controller.constellation.deliver(self.now, 0);
        }
        self.look_at_base();
        self.attend();
    }

    /// Tells subscribers what is new, and the journal how far batches are.
    fn look_at_base(&mut self) {
        let controller = &mut self.controller;
        let Some(base) = controller.constellation.base() else { return };
        if base.version() == controller.version {
            return;
        }
        let before = std::mem::replace(&mut controller.version, base.version());
        if self.results.plan.is_some() {
            let changes = base.since(before, &[Table::Firmware]).changes;
            self.results.on_firmware(self.now, &changes);
        }
        let row = base.get(Table::Batch, &[]).and_then(|(_, value)| BatchRow::decode(&value));
        controller.constellation.publish();
        let (before, row) = (controller.batch, row.unwrap_or(controller.batch));
        controller.batch = row;
        if row.number != before.number {
            self.results.batches += 1;
            self.note(What::BatchWritten { number: row.number });
        }
        if row.is_done && (!before.is_done || row.number != before.number) {
            self.note(What::BatchComplete { number: row.number });
        }
    }

    /// Time goes on for everybody.
    pub(super) fn tick(&mut self) {
        let controller = &mut self.controller;
        controller.tick_scheduled = None;
        if self.now >= controller.ticked + TICK || self.now == Time::ZERO {
            controller.ticked = self.now;
            let entries = controller.constellation.front_end().map(|app| app.counts().entries);
            if let Some(now) = entries {
                let (before, last) = controller.entries;
                controller.entries = (if now < last { before + last } else { before }, now);
            }
            if let Some(engine) = controller.constellation.routing_engine()
                && engine.counts().computed != controller.computed
                && engine.counts().computed > 0
            {
                controller.computed = engine.counts().computed;
                let tins = 0..controller.exits.len() as u16;
                controller.exits = tins.map(|tin| engine.exits(tin).to_vec()).collect();
            }
            controller.constellation.tick(self.now);
        } else {
            controller.constellation.wake(self.now);
        }
        self.attend();
    }

    fn schedule_tick(&mut self) {
        let controller = &mut self.controller;
        let wakes = controller.constellation.front_end().map_or(Time::NEVER, |app| app.wakes_at());
        let at = (controller.ticked + TICK).min(wakes).max(self.now);
        // Who is woken has something to do; but not twice in a microsecond.
        let at = if at == self.now { at + Span::from_us(1) } else { at };
        if controller.tick_scheduled.is_none_or(|scheduled| at < scheduled) {
            controller.tick_scheduled = Some(at);
            self.calendar.push(at, Event::Tick);
        }
    }

    pub(super) fn on_tick(&mut self) {
        if self.controller.tick_scheduled == Some(self.now) {
            self.tick();
        }
    }

    /// A shard of the inter-block controllers says by whom the controller is reached.
    pub(super) fn hear_shard(&mut self) {
        let members: Vec<_> = self.config.connected.iter().map(|&tin| (tin, 1)).collect();
        for prefix in controller_prefixes(&self.config) {
            let members = members.clone();
            let message = Message::Reach { shard: 0, version: 1, prefix, members };
            self.controller.constellation.hear(self.now, &message.encode());
        }
        self.calendar.push(self.now + SHARD, Event::Shard);
        self.attend();
    }

    /// Tells the session manager something, and does what it wants.
    pub(super) fn tell_manager(&mut self, input: bootstrap::Input) {
        let mut out = Vec::new();
        let Some((_, manager)) = &mut self.controller.manager else { return };
        manager.step(self.now, input, &mut out);
        let deadline = manager.deadline().map(|deadline| deadline.max(self.now));
        let (message, life) = (self.config.message, self.controller.life);
        for output in out {
            match output {
                bootstrap::Output::Packet(packet) => self.send_from_controller(packet),
                bootstrap::Output::Dhcp(message) => {
                    self.send(self.config.network, Parcel::Server { from: None, message });
                }
                bootstrap::Output::Session(session) => {
                    let told = Told::Session(session);
                    self.send(message, Parcel::Controller { life, told });
                }
                bootstrap::Output::Links { tin, up } => {
                    let told = Told::Links(tin, up);
                    self.send(message, Parcel::Controller { life, told });
                }
                bootstrap::Output::Report { .. } => self.results.reports += 1,
                bootstrap::Output::Stage { tin, stage, via } => {
                    self.ready[usize::from(tin)] |= stage == Stage::Ready;
                    self.note(What::Stage { tin, stage });
                    self.results.on_stage(self.now, tin, stage, via);
                }
            }
        }
        let controller = &mut self.controller;
        if let Some(deadline) = deadline
            && controller.manager_scheduled.is_none_or(|scheduled| deadline < scheduled)
        {
            controller.manager_scheduled = Some(deadline);
            self.calendar.push(deadline, Event::Manager);
        }
    }

    pub(super) fn on_manager(&mut self) {
        if self.controller.manager_scheduled == Some(self.now) {
            self.controller.manager_scheduled = None;
            self.tell_manager(bootstrap::Input::Nothing);
        }
    }

    /// For the session manager of this life.
    pub(super) fn on_told_manager(&mut self, life: u32, input: bootstrap::Input) {
        if life == self.controller.life {
            self.tell_manager(input);
        }
    }

    /// From the session manager of this life.
    pub(super) fn on_told(&mut self, life: u32, told: Told) {
        if life != self.controller.life {
            return;
        }
        let Some((number, _)) = self.controller.manager else { return };
        match told {
            Told::Session(session) => {
                self.controller.constellation.session(self.now, number, session);
            }
            Told::Links(tin, up) => {
                let row = Write::set(Table::Port, &tin.to_be_bytes(), &up.to_be_bytes());
                self.note(What::RowWritten { tin, up });
                self.write_row(row);
            }
        }
        self.attend();
    }

    /// The base gets a row that no instance has written.
    pub(super) fn write_row(&mut self, row: Write) {
        self.write_rows(&[row]);
    }

    /// The same of several.
    pub(super) fn write_rows(&mut self, rows: &[Write]) {
        self.controller.constellation.write(rows);
        self.look_at_base();
        self.attend();
    }

    /// An instance stops or starts; with a front end that leads its session manager goes.
    pub(super) fn set_instance(&mut self, name: Name, runs: bool) {
        let controller = &mut self.controller;
        match runs {
            true => controller.constellation.start(self.now, name),
            false => controller.constellation.stop(name),
        }
        if name.0 == Application::FrontEnd
            && controller.manager.as_ref().is_some_and(|(number, _)| *number == name.1)
        {
            controller.end_manager();
        }
        self.attend();
    }

    /// All instances end, and others start: they know what is in the base.
    pub(super) fn restart_controller(&mut self) {
        for application in Application::ALL {
            for instance in 0..INSTANCES {
                self.set_instance((application, instance), false);
                self.set_instance((application, instance), true);
            }
        }
    }

    /// TiNs connected to the datacenter's network by which its routers reach a TiN.
    pub(super) fn exits(&self, tin: u16) -> &[u16] {
        &self.controller.exits[usize::from(tin)]
    }
}

pub(super) fn clique(topology: &Topology) -> Arc<Clique> {
    let plan = Plan::new(topology.shape(), 2);
    Arc::new(Clique::new(topology.clone(), TurnTable::P1, plan))
}

/// By what the controller is known outside the Clique.
fn controller_prefixes(config: &Config) -> impl Iterator<Item = IpNet> + use<> {
    let has_v6 = config.manager.versions.has_v6();
    let versions =
        Plan::VERSIONS.into_iter().filter(move |&version| version == Version::V4 || has_v6);
    versions.filter_map(|version| CONTROLLER.of(version)).map(IpNet::from)
}

fn session_row(base: &Nib, tin: u16) -> Option<SessionRow> {
    let (_, value) = base.get(Table::TinSession, &tin.to_be_bytes())?;
    SessionRow::decode(&value)
}

/// The base of a Clique that is up, and what its chips hold: all batches of a routing engine, each at once.
///
/// # Panics
/// If the routing engine does not come to an end.
pub(super) fn settled(
    config: &Config,
    topology: &Topology,
    boot: impl Fn(u16) -> u32,
) -> (Nib, Vec<RegisterFile>) {
    let clique = clique(topology);
    let mut base = Nib::new();
    let session = |tin: u16| {
        let row = SessionRow { is_up: false, is_ready: true, is_over_pmos: false, boot: boot(tin) };
        Write::set(Table::TinSession, &tin.to_be_bytes(), &row.encode())
    };
    let mut rows: Vec<Write> = (0..topology.shape().tins()).map(session).collect();
    let members: Vec<(u16, u32)> = config.connected.iter().map(|&tin| (tin, 1)).collect();
    for prefix in controller_prefixes(config) {
        let key = [&[0][..], &encode_prefix(prefix)].concat();
        let value = [&1u64.to_be_bytes()[..], &encode_members(&members)].concat();
        rows.push(Write::set(Table::ExternalReachability, &key, &value));
    }
    base.write(&rows).expect("nothing is expected of rows");
    let mut engine = RoutingEngine::new(clique.clone());
    loop {
        let mut out = Vec::new();
        engine.learn(&base.since(engine.seen(), &RoutingEngine::TABLES), &mut out);
        let Some(Output::Batch { number, writes }) = out.pop() else { break };
        base.apply(number, &writes).expect("it is the next");
        engine.written(&mut Vec::new());
        let done = BatchRow { number, is_done: true, failed: [0; 3] };
        let done = Write::set(Table::Batch, &[], &done.encode());
        base.write(&[done]).expect("nothing is expected of rows");
    }
    let images = images(&clique, &base);
    (base, images)
}

/// What the rows of a base make of the registers of TiNs that are ready.
///
/// # Panics
/// If a row is none, or a chip has no room for it.
pub(super) fn images(clique: &Clique, base: &Nib) -> Vec<RegisterFile> {
    let mut intents = vec![Intent::default(); usize::from(clique.topology.shape().tins())];
    for change in base.since(0, &PROGRAMMED).changes {
        let Some((tin, _)) = split_key(&change.key.1) else { continue };
        let intent = &mut intents[usize::from(tin)];
        intent.set(clique, &change.key, change.value.as_deref()).expect("chips have room");
        intent.set_passes(true);
    }
    let image = |(tin, intent): (u16, &Intent)| intent.image(clique, tin, &BTreeSet::new());
    (0..).zip(&intents).map(image).collect()
}
