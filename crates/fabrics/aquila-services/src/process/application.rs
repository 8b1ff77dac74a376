//! One instance of an application, and of the front end the session manager beside it while it leads.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use aquila::pipeline::Interface;
use aquila_control::apps::Clique;
use aquila_control::apps::election::Application;
use aquila_control::apps::front_end::upgrade::{FirmwareRow, PlanRow, Progress};
use aquila_control::apps::front_end::{Settings, image_rate};
use aquila_control::apps::instance::{Instance, Job, Name, Output};
use aquila_control::apps::operator::Wish;
use aquila_control::apps::rows::{BatchRow, ETHERNET_PORT, SessionRow};
use aquila_control::bootstrap::{self, Manager, Stage};
use aquila_control::flash::{FACTORY, GENERATION, Header, Image};
use aquila_control::nib::{LAYOUT, Nib, Table, Write};
use aquila_control::rpc::Restart;
use aquila_control::session::ip;
use aquila_control::sim::path;
use kernel::{Span, Time};
use tokio::sync::mpsc;

use super::datacenter::controller;
use super::{Event, Part, add, life};
use crate::base::{Answer, Base, Writing};
use crate::cluster::{Cluster, Role};
use crate::convert;
use crate::links::Links;
use crate::proto::control as proto;
use crate::proto::control::message::What;
use crate::proto::control::{
    Batch, Dhcp, Lease, Looked, NotUpgraded, Packet, Session, Tell, Upgrade, UpgradeReply,
    UpgradeRequest, WantReply, Wanted,
};

/// From one try to reach the base to the next (our choice).
const AGAIN: Duration = Duration::from_millis(200);

/// What has happened.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    take_overs: u64,
    reloads: u64,
    refused: u64,
    silent: u64,
    malformed: u64,
    reports: u64,
}

/// An instance, with its copy of the base.
pub struct Instances {
    cluster: Arc<Cluster>,
    clique: Arc<Clique>,
    instance: Instance,
    copy: Nib,
    base: Arc<dyn Base>,
    events: mpsc::Sender<Event>,
    /// Of the front end, while it leads.
    manager: Option<Manager>,
    /// By TiN: the ports that were written last.
    ports: BTreeMap<u16, u64>,
    ticks: Time,
    counts: Counts,
}

impl Instances {
    pub fn new(
        cluster: Arc<Cluster>,
        name: Name,
        base: Arc<dyn Base>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        let clique = cluster.configuration();
        let (tcp_rate, pmos_rate) = (cluster.times.tcp_rate, cluster.times.pmos_rate);
        let image_rate = image_rate(cluster.times.block);
        let settings = Settings { tcp_rate, pmos_rate, image_rate, ..Settings::default() };
        // Numbers of writes go on behind those of a former life: a million a millisecond are not written.
        let instance = Instance::new(Time::ZERO, name, clique.clone(), settings, life() << 20);
        tokio::spawn(follow(base.clone(), events.clone()));
        Self {
            cluster,
            clique,
            instance,
            copy: Nib::new(),
            base,
            events,
            manager: None,
            ports: BTreeMap::new(),
            ticks: Time::ZERO,
            counts: Counts::default(),
        }
    }

    /// The instance that has an application's lease, as far as is known.
    fn holder(&self, application: Application) -> Option<(u64, u8)> {
        let (_, row) = self.copy.get(Table::Lease, &application.key())?;
        let (term, rest) = row.split_first_chunk()?;
        Some((u64::from_be_bytes(*term), *rest.first()?))
    }

    /// Does what the instance wants, and what follows from that.
    fn carry_out(&mut self, now: Time, out: Vec<Output>, links: &mut Links) {
        let mut left = VecDeque::from(out);
        while let Some(output) = left.pop_front() {
            let mut more = Vec::new();
            match output {
                Output::Write { id, fence, job } => {
                    let from = self.instance.name();
                    self.write(Writing { from, id, fence, job });
                }
                Output::Program(program) => {
                    if let Some((_, to)) = self.holder(Application::FrontEnd) {
                        let program = convert::program(program);
                        links.send((Role::FrontEnd, to), What::Program(program));
                    }
                }
                Output::Results(results) => {
                    if let Some((_, to)) = self.holder(Application::FlowManager) {
                        let results = convert::results(results);
                        links.send((Role::FlowManager, to), What::Results(results));
                    }
                }
                Output::Tell(shard, bytes) => {
                    let tell = Tell { shard: shard.into(), bytes };
                    links.send((Role::Datacenter, 0), What::Tell(tell));
                }
                Output::Leads => {
                    self.manager = Some(self.new_manager(now));
                    self.tell_manager(now, bootstrap::Input::Nothing, &mut more, links);
                }
                Output::Request(request) => {
                    let input = bootstrap::Input::Request(request);
                    self.tell_manager(now, input, &mut more, links);
                }
                Output::Progress(progress) => {
                    let input = bootstrap::Input::Progress(progress);
                    self.tell_manager(now, input, &mut more, links);
                }
            }
            left.extend(more);
        }
        if self.instance.leads().is_none() && self.manager.take().is_some() {
            tracing::info!("another front end leads: its sessions are left alone");
        }
    }

    /// Has the base written to, and waits for nothing.
    fn write(&self, writing: Writing) {
        let (base, events) = (self.base.clone(), self.events.clone());
        tokio::spawn(async move {
            let event = match base.write(&writing).await {
                // The next look at the base shows who has the lease.
                Ok(_) if matches!(writing.job, Job::Lease(_)) => return,
                Ok(Answer::Done(result)) => Event::Written(writing.id, result),
                Ok(Answer::Old) => return,
                Err(away) => Event::Silent(away),
            };
            let _ = events.send(event).await;
        });
    }

    /// A session manager that knows what the base says of TiNs.
    fn new_manager(&mut self, now: Time) -> Manager {
        let settings = bootstrap::Settings {
            call: self.cluster.times.call,
            restart: bootstrap::Settings::default().restart + self.cluster.times.start,
            reconnect: self.cluster.times.reconnect,
            asks: self.cluster.times.asks,
            versions: self.cluster.versions,
            ..bootstrap::Settings::default()
        };
        let (_, number) = self.instance.name();
        let (topology, connected) = (&self.clique.topology, &self.cluster.connected);
        let own = controller(number);
        let mut manager = Manager::new(now, topology, connected, own, settings, life());
        manager.take_over(now, SessionRow::all(&self.copy));
        self.ports.clear();
        tracing::info!(term = self.instance.leads(), "it leads, and opens sessions");
        manager
    }

    /// Tells the session manager something, and does what it wants.
    fn tell_manager(
        &mut self,
        now: Time,
        input: bootstrap::Input,
        more: &mut Vec<Output>,
        links: &mut Links,
    ) {
        let Some(manager) = &mut self.manager else { return };
        let mut out = Vec::new();
        manager.step(now, input, &mut out);
        for output in out {
            match output {
                bootstrap::Output::Packet(packet) => self.send(packet, links),
                bootstrap::Output::Dhcp(bytes) => {
                    let instance = self.instance.name().1.into();
                    let asked = Dhcp { tin: None, instance, bytes };
                    links.send((Role::Datacenter, 0), What::Dhcp(asked));
                }
                bootstrap::Output::Session(session) => self.instance.session(now, session, more),
                bootstrap::Output::Links { tin, up } => {
                    let is_connected = self.cluster.connected.contains(&tin);
                    let up = up | u64::from(is_connected) << ETHERNET_PORT;
                    if self.ports.insert(tin, up) != Some(up) {
                        let row = Write::set(Table::Port, &tin.to_be_bytes(), &up.to_be_bytes());
                        self.instance.write(now, vec![row], more);
                    }
                }
                bootstrap::Output::Report { .. } => self.counts.reports += 1,
                bootstrap::Output::Stage { tin, stage, via } => {
                    tracing::info!(tin, ?stage, ?via, "a TiN has come further");
                }
            }
        }
    }

    /// A packet of the controller's, for a TiN: by its own link to the datacenter's network, or by that of one that is ready,
    /// as the routers there were told.
    fn send(&self, packet: Vec<u8>, links: &mut Links) {
        let Some(manager) = &self.manager else { return };
        let Some((_, to)) = ip::addresses(&packet) else { return };
        let Some((tin, Interface::Control)) = self.clique.plan.of_ip(to) else { return };
        let connected = &self.cluster.connected;
        let is_open =
            |&&tin: &&u16| matches!(manager.stage(tin), Stage::Ready | Stage::Reconnecting);
        let entrance = connected.iter().find(|&&own| own == tin).copied().or_else(|| {
            let open: Vec<u16> = connected.iter().filter(is_open).copied().collect();
            // By flow, as routers choose among equals: a call that finds no way there tries another the next time.
            let at = path::hash(&packet).checked_rem(open.len() as u64)?;
            open.get(at as usize).copied()
        });
        // Without an entrance it is lost, and called again.
        if let Some(entrance) = entrance {
            let to = (Role::Agent, self.cluster.agent_of(entrance));
            links.send(to, What::Packet(Packet { tin: entrance.into(), packet }));
        }
    }

    fn on_message(&mut self, now: Time, what: What, out: &mut Vec<Output>, links: &mut Links) {
        match what {
            What::Program(program) => match convert::from_program(program) {
                Some(program) => self.instance.program(now, program, out),
                None => self.counts.malformed += 1,
            },
            What::Results(results) => match convert::from_results(results) {
                Some(results) => self.instance.results(now, results, out),
                None => self.counts.malformed += 1,
            },
            What::Hear(bytes) => self.instance.hear(now, &bytes, out),
            What::Packet(Packet { packet, .. }) => {
                self.tell_manager(now, bootstrap::Input::Packet(packet), out, links);
            }
            What::Dhcp(Dhcp { bytes, .. }) => {
                self.tell_manager(now, bootstrap::Input::Dhcp(bytes), out, links);
            }
            _ => self.counts.malformed += 1,
        }
    }

    /// Somebody wants another version of the firmware on all TiNs.
    fn upgrade(&mut self, now: Time, ask: UpgradeRequest, out: &mut Vec<Output>) -> UpgradeReply {
        let refused = |why: String| UpgradeReply { refused: why, number: 0 };
        if self.instance.front_end().is_none() {
            return refused("this is not the front end that leads; ask that one".to_owned());
        }
        let header: Result<[u8; Header::BYTES], _> = ask.header[..].try_into();
        let Ok(header) = header.map(|bytes| Header::decode(&bytes)) else {
            return refused("the header of the image is none".to_owned());
        };
        let image = Image::of(header.version, header.generation, ask.image.into());
        if image.header != header || !header.fits() {
            return refused("the image is not what its header says".to_owned());
        }
        if header.generation != GENERATION {
            let found = header.generation;
            return refused(format!(
                "it is for chips of generation {found}; expected {GENERATION}"
            ));
        }
        let at_once = u8::try_from(ask.at_once).unwrap_or(u8::MAX);
        let writes = PlanRow::writes(&self.copy, &image, Restart::Processor, at_once);
        let number = PlanRow::of(&self.copy).map_or(1, |plan| plan.number.wrapping_add(1));
        self.instance.write(now, writes, out);
        tracing::info!(version = header.version, number, at_once, "an upgrade is asked for");
        UpgradeReply { refused: String::new(), number }
    }

    /// An operator wants something.
    fn want(&mut self, now: Time, wish: proto::Wish, out: &mut Vec<Output>) -> WantReply {
        let refused = |why: String| WantReply { refused: why };
        if self.instance.front_end().is_none() {
            return refused("this is not the front end that leads; ask that one".to_owned());
        }
        let Some(wish) = convert::from_wish(wish) else {
            return refused("there is no such wish".to_owned());
        };
        if let Err(why) = wish.check(&self.clique) {
            return refused(why.to_string());
        }
        self.instance.write(now, vec![wish.write()], out);
        tracing::info!(?wish, "an operator wants it");
        WantReply::default()
    }

    /// It reads what is new.
    fn news(&mut self, now: Time, out: &mut Vec<Output>) {
        if self.instance.wants_news(self.copy.version()) && self.instance.news(now, &self.copy, out)
        {
            self.counts.take_overs += 1;
            tracing::info!(term = self.instance.leads(), "it takes over");
        }
    }

    fn layout(&self) -> u32 {
        self.copy.since(self.copy.version(), &[]).layout
    }
}

/// What can be seen of a base.
pub fn look_at(base: &Nib, looked: &mut Looked) {
    let sizes = base.sizes();
    (looked.version, looked.layout) = (base.version(), base.since(base.version(), &[]).layout);
    (looked.rows, looked.raw_bytes, looked.stored_bytes) = (sizes.rows, sizes.raw, sizes.stored);
    let batch = base.get(Table::Batch, &[]).and_then(|(_, row)| BatchRow::decode(&row));
    looked.batch = batch.map(|row| Batch {
        number: row.number,
        is_done: row.is_done,
        failed: row.failed[0],
        held_back: row.failed[1],
        unreachable: row.failed[2],
    });
    let firmware = FirmwareRow::all(base);
    looked.upgrade = Progress::of(base).map(|upgrade| Upgrade {
        number: upgrade.plan.number,
        version: upgrade.plan.header.version.into(),
        at_once: upgrade.plan.at_once.into(),
        sending: upgrade.sending.into_iter().map(u32::from).collect(),
        restarting: upgrade.restarting.into_iter().map(u32::from).collect(),
        done: upgrade.done.into(),
        failed: { upgrade.failed.into_iter() }
            .map(|(tin, why)| NotUpgraded { tin: tin.into(), why: why.to_string() })
            .collect(),
    });
    looked.wanted = { Wish::all(base).into_iter() }
        .map(|wish| Wanted { wish: Some(convert::wish(wish)), is_drained: wish.is_drained(base) })
        .collect();
    looked.sessions = SessionRow::all(base)
        .into_iter()
        .map(|(tin, row)| Session {
            tin: tin.into(),
            is_up: row.is_up,
            is_ready: row.is_ready,
            is_over_pmos: row.is_over_pmos,
            boot: row.boot,
            firmware: firmware.get(&tin).map_or(FACTORY, |row| row.runs).into(),
        })
        .collect();
    let lease = |application: Application| {
        let (_, row) = base.get(Table::Lease, &application.key())?;
        let (term, rest) = row.split_first_chunk()?;
        let (term, holder) = (u64::from_be_bytes(*term), u32::from(*rest.first()?));
        Some(Lease { application: application as u32, term, holder })
    };
    looked.leases = Application::ALL.into_iter().filter_map(lease).collect();
}

/// Hands on what changes in the base, whatever becomes of it meanwhile.
async fn follow(base: Arc<dyn Base>, events: mpsc::Sender<Event>) {
    let mut seen = 0;
    loop {
        match base.watch(seen).await {
            Ok(mut changes) => {
                while let Some(changes) = changes.recv().await {
                    seen = changes.version;
                    if events.send(Event::Changes(changes)).await.is_err() {
                        return;
                    }
                }
            }
            Err(away) => {
                if events.send(Event::Silent(away)).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl Part for Instances {
    fn on_event(&mut self, now: Time, event: Event, links: &mut Links) {
        let mut out = Vec::new();
        match event {
            Event::Message(what) => self.on_message(now, what, &mut out, links),
            Event::Audit(_, answer) => drop(answer.send(None)),
            Event::Upgrade(ask, answer) => {
                let reply = self.upgrade(now, ask, &mut out);
                let _ = answer.send(reply);
            }
            Event::Want(wish, answer) => {
                let reply = self.want(now, wish, &mut out);
                let _ = answer.send(reply);
            }
            Event::Changes(changes) => {
                if changes.layout != LAYOUT && self.layout() == LAYOUT {
                    tracing::error!(found = changes.layout, expected = LAYOUT, "another layout");
                    self.counts.refused += 1;
                }
                self.copy.follow(&changes);
                self.news(now, &mut out);
            }
            Event::Written(id, result) => {
                if let Err(refused) = &result {
                    tracing::warn!(%refused, "a write was refused");
                    self.counts.refused += 1;
                }
                let reloads = self.instance.written(now, id, &result, &mut out);
                self.counts.reloads += u64::from(reloads);
                self.news(now, &mut out);
            }
            Event::Silent(away) => {
                tracing::warn!(%away, "the base is waited for");
                self.counts.silent += 1;
            }
        }
        self.carry_out(now, out, links);
    }

    fn on_time(&mut self, now: Time, links: &mut Links) {
        let mut out = Vec::new();
        if self.ticks <= now {
            self.ticks = now + Span::from_us(10_000);
            let layout = self.layout();
            self.instance.tick(now, layout, &mut out);
            self.news(now, &mut out);
        }
        if self.manager.as_ref().and_then(Manager::deadline).is_some_and(|at| at <= now) {
            self.tell_manager(now, bootstrap::Input::Nothing, &mut out, links);
        }
        self.carry_out(now, out, links);
    }

    fn deadline(&self) -> Option<Time> {
        let manager = self.manager.as_ref().and_then(Manager::deadline);
        manager.into_iter().chain([self.ticks]).min()
    }

    fn look(&self, looked: &mut Looked) {
        look_at(&self.copy, looked);
        looked.term = self.instance.leads().unwrap_or(0);
        let Counts { take_overs, reloads, refused, silent, malformed, reports } = self.counts;
        add(looked, "take_overs", take_overs);
        add(looked, "reloads", reloads);
        add(looked, "writes_refused", refused);
        add(looked, "base_silent", silent);
        add(looked, "reports", reports);
        let mut bad = malformed;
        if let Some(manager) = &self.manager {
            let counts = manager.counts();
            bad += counts.malformed;
            add(looked, "calls", counts.calls);
            add(looked, "dhcp_relayed", counts.relayed);
            add(looked, "pmos_sessions", counts.pmos_sessions);
            add(looked, "pmos_sessions_lost", counts.pmos_lost);
            add(looked, "tcp_sessions", counts.tcp_sessions);
            add(looked, "tcp_sessions_lost", counts.tcp_lost);
            add(looked, "other_generations", counts.other_generations);
        }
        if let Some(engine) = self.instance.routing_engine() {
            let counts = engine.counts();
            bad += counts.malformed;
            add(looked, "batches", counts.batches);
            add(looked, "routes_computed", counts.computed);
            add(looked, "flows_forced", counts.forced);
            add(looked, "prefixes_without_room", counts.no_room);
            add(looked, "settled", u64::from(engine.is_settled()));
        }
        if let Some(manager) = self.instance.flow_manager() {
            let counts = manager.counts();
            add(looked, "batches_done", counts.batches);
            add(looked, "operations_done", counts.done);
            add(looked, "operations_failed", counts.failed);
            add(looked, "operations_held_back", counts.held_back);
            add(looked, "operations_unreachable", counts.unreachable);
        }
        if let Some(front_end) = self.instance.front_end() {
            let counts = front_end.counts();
            add(looked, "requests", counts.requests);
            add(looked, "entries_written", counts.entries);
            add(looked, "entries_read", counts.read);
            add(looked, "answers_stray", counts.stray);
            add(looked, "items_refused", counts.refused);
            add(looked, "operations_deposed", counts.deposed);
            let tins = 0..self.clique.topology.shape().tins();
            let complete = tins.filter(|&tin| front_end.is_complete(tin)).count();
            add(looked, "complete", complete as u64);
        }
        if let Some(app) = self.instance.inter_block() {
            let counts = app.counts();
            bad += counts.malformed;
            add(looked, "reach_used", counts.used);
            add(looked, "reach_old", counts.old);
            add(looked, "reach_too_many", counts.too_many);
            add(looked, "shards_lost", counts.lost);
        }
        add(looked, "malformed", bad);
    }
}
