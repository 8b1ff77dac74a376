//! The program of the engine's switches: a Clique of TiNs, or the part of one.
//!
//! Models: Aquila §2, §3.1, §3.3: packets come in by the NIC of their TiN ([`super::nic`]); from there they are IP's
//! ([`crate::ip`]), and go out to a host when that lets them. The packet itself is kept here while its cells are under
//! way, and goes over to where its cells go when it is cleared: it stands for the bytes that they carry. What fails in
//! the engine's graph fails here (M922); routes follow when the engine's have converged.
//!
//! Where remote memory carries the flows, packets are commands of hosts, and what they are told ([`super::jobs`]); cells
//! are those of memory ([`crate::rma`]).

use std::collections::VecDeque;
use std::sync::Arc;

use ::rack::Problem;
use ::rack::node::{Payload, Unit};
use ::rack::topology::{PortId, Topology as Graph, Vertex};
use kernel::{Bytes, Rate, Slab, Span, Time};
use packets::{
    Chosen, Hop, Inside, Live, Marks, NOTE_WORDS, Orders, PRIORITIES, Packet, Post, Program,
    Verdict,
};
use serde_json::{Map, Value};

use super::blueprint::{Blueprint, HOST_PORT};
use super::jobs::Jobs;
use super::nic::Cores;
use super::outside::Outside;
use super::record::{self, Ended, Record};
use super::tracing::Tracing;
use crate::address::{Address, Endpoint};
use crate::cells::ip::Pointer;
use crate::config::{Carrier, Plan};
use crate::ip::{self, Arrival, Outcome};
use crate::rma;
use crate::switch::cell::Watch;
use crate::switch::settings::TICK;
use crate::switch::{self, Body, Posted, Switches, blocks, post};
use crate::tables::journal::Journal;

/// No instant.
const NEVER: u64 = u64::MAX;

/// A request for memory (§3.4).
const REQUEST: Bytes = Bytes::new(48);

/// Commands, if remote memory is to carry the flows.
fn jobs(plan: &Plan, blueprint: &Blueprint) -> Option<Jobs> {
    let kind = match plan.config.carrier {
        Carrier::Ip => return None,
        Carrier::RmaRead => rma::Kind::Read,
        Carrier::RmaWrite => rma::Kind::Write,
    };
    Some(Jobs::new(kind, plan.config.rma.operation.get(), blueprint.memories()))
}

/// What the summary says of remote memory.
fn memory_details(jobs: &Jobs, cells: &switch::Counts, memory: &rma::Counts) -> Map<String, Value> {
    let mut details = super::details_of(cells);
    let mut say = |key: &str, value: Value| details.insert(key.into(), value);
    say("carrier", if jobs.reads() { "1rma-read" } else { "1rma-write" }.into());
    say("operations", memory.operations.into());
    say("operations_late", memory.late.into());
    say("operations_failed", memory.failed.into());
    say("requests", memory.requests.into());
    say("requests_waiting_max", memory.queue_max.into());
    say("asked_max_bytes", memory.asked_max.into());
    say("stale_responses", memory.stale.into());
    say("unreadable_cells", memory.unreadable.into());
    say("cells_lost_at_dead_links", cells.lost_at_dead_links.into());
    details
}

/// A packet that is to leave a TiN.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    at: Time,
    packet: u32,
    host: usize,
    is_marked: bool,
    is_damaged: bool,
}

/// What has been counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cells: switch::Counts,
    ip: ip::Counts,
    memory: rma::Counts,
    /// Packets whose bits were flipped inside: their checksums are wrong.
    damaged: u64,
    /// What other parts sent and makes no sense.
    unexpected: u64,
}

/// The Clique, or a part.
#[derive(Clone, Debug)]
pub(crate) struct Clique {
    blueprint: Arc<Blueprint>,
    switches: Switches<Cores>,
    packets: Slab<Packet>,
    /// By priority of packets.
    classes_of_service: [u8; PRIORITIES as usize],
    /// Commands, where remote memory carries the flows.
    jobs: Option<Jobs>,
    has_data_header: bool,
    rate: Rate,
    /// By TiN: packets that leave it, first to last.
    leaving: Vec<VecDeque<Leaving>>,
    /// By TiN: it is here.
    owns: Vec<bool>,
    /// The first that is.
    home: u16,
    /// What another part hears takes so long at the least.
    lookahead: Span,
    /// The earliest alarm that was asked for and has not come. Unit: ps.
    armed: u64,
    /// Cells that had passed a switch when that was last told.
    told: u64,
    is_wire: bool,
    damaged: u64,
    unexpected: u64,
    tracing: Tracing,
    /// The record of chosen packets, where one is kept.
    record: Option<Box<Record>>,
    outside: Option<Outside>,
    /// What a controller writes to tables, where there is one.
    journal: Option<Arc<Journal>>,
    /// Of other parts.
    others: Counts,
}

impl Clique {
    /// An idle Clique. `seed` is that of all chance in it.
    pub(crate) fn new(plan: &Plan, graph: &Graph, seed: u64) -> Self {
        let blueprint = Arc::new(Blueprint::new(plan, graph, seed));
        let tins = blueprint.shape().tins();
        let tables = blueprint.tables();
        let mut tracing = Tracing::new(&plan.config.trace, tins, Arc::clone(&tables), seed);
        tracing.follow(plan.journal.clone());
        Self {
            outside: Outside::new(plan, &blueprint, graph),
            tracing,
            record: None,
            // Those that are here are built when that is known.
            switches: blueprint.switches(&[], tables),
            packets: Slab::default(),
            classes_of_service: plan.config.ip.by_priority(),
            jobs: jobs(plan, &blueprint),
            has_data_header: plan.config.ip.data_header > Bytes::ZERO,
            rate: plan.config.ip.port_rate,
            leaving: vec![VecDeque::new(); tins.into()],
            owns: vec![false; tins.into()],
            home: 0,
            lookahead: Span::ZERO,
            armed: NEVER,
            told: 0,
            is_wire: false,
            damaged: 0,
            unexpected: 0,
            journal: plan.journal.clone(),
            others: Counts::default(),
            blueprint,
        }
    }

    /// The GNet address of a node: what input processing finds for its IP address.
    fn address(&self, node: ::rack::NodeId) -> Option<u16> {
        self.blueprint.addresses.get(node.index()).copied()
    }

    /// The GNet address that a packet comes in by at a TiN, and the one that it goes to.
    fn ends(&self, packet: &Packet, tin: u16) -> Option<(u16, u16)> {
        let outside = self.outside.as_ref();
        let (pod, place) = self.blueprint.shape().split(tin);
        let ethernet = || Address::new(pod, place, Endpoint::ETHERNET).bits();
        let from = match outside.is_some_and(|outside| outside.has(packet.src)) {
            true => ethernet(),
            false => self.address(packet.src)?,
        };
        let to = match outside.filter(|outside| outside.has(packet.dst)) {
            Some(outside) => outside.way_out(packet)?,
            None => self.address(packet.dst)?,
        };
        Some((from, to))
    }

    /// A packet is at the switch outside.
    fn pass_outside(&self, hop: &Hop, packet: &Packet, orders: &mut Orders) -> Verdict {
        match &self.outside {
            Some(outside) if outside.has(packet.dst) => Verdict::Forward,
            Some(outside) => match outside.way_in(packet) {
                Some(port) => {
                    orders.emit(hop.handle, port);
                    Verdict::Keep
                }
                None => Verdict::Drop,
            },
            None => Verdict::Drop,
        }
    }

    /// The TiN of a GNet address, and which of its hosts it is, or its Ethernet port.
    fn place_of(&self, address: u16) -> (u16, usize) {
        self.blueprint.place_of(address)
    }

    /// A host has told its TiN what to do for a flow, for the record.
    fn note_command(&mut self, tin: u16, packet: &Packet, job: u32, now: Time) {
        let Some(record) = &mut self.record else { return };
        let is_recorded = record.comes(packet, job, now);
        if let Some(recorder) = self.switches.recorder().filter(|_| is_recorded) {
            recorder.begins(tin, job, now.as_ps());
        }
    }

    /// Tells the record who has come to have which place.
    fn note_known(&mut self) {
        let Some(record) = &mut self.record else { return };
        if let Some(recorder) = self.switches.recorder() {
            let (packets, jobs) = (&self.packets, &self.jobs);
            record.learns(
                recorder.known(),
                |handle| packets[handle as usize],
                |handle| jobs.as_ref().map(|jobs| jobs.whose(handle)),
            );
        }
    }

    /// A packet leaves a TiN at an instant, for the record.
    fn note_leaving(&mut self, tin: u16, leaving: &Leaving) {
        if let Some(record) = &mut self.record {
            let packet = &self.packets[leaving.packet as usize];
            record.leaves((tin, leaving.host), packet, leaving.at);
        }
    }

    /// A packet is lost at a TiN, for the record.
    fn note_lost(&mut self, tin: u16, packet: u32) {
        if let Some(recorder) = self.switches.recorder() {
            recorder.loses(tin, packet);
        }
    }

    /// Carries out what has become of packets, and sends what goes to other parts, since this was last done.
    fn settle(&mut self, orders: &mut Orders) {
        self.note_known();
        if self.jobs.is_some() {
            self.settle_memory(orders);
        }
        while let Some((tin, outcome)) = self.switches.endpoints_mut().ip.next_outcome() {
            match outcome {
                Outcome::Cleared { packet, to, egress } => {
                    self.hand_over(packet, to, egress, orders)
                }
                Outcome::Leaves { packet, to, at, is_marked, is_damaged } => {
                    let (_, host) = self.place_of(to);
                    let leaving = Leaving { at, packet, host, is_marked, is_damaged };
                    self.leaving[usize::from(tin)].push_back(leaving);
                    self.note_leaving(tin, &leaving);
                    orders.wake_at(self.blueprint.vertex(tin), at.max(orders.now()));
                }
                Outcome::Lost { packet, .. } => {
                    self.note_lost(tin, packet);
                    self.packets.release(packet);
                }
            }
        }
        self.tracing.hear(&mut self.switches);
        for posted in self.switches.posted() {
            let port = self.blueprint.link_port(posted.tin, posted.port);
            let Some(port) = port else { continue };
            let mut note = [0; NOTE_WORDS];
            note[..post::WORDS].copy_from_slice(&posted.words());
            orders.post(port, Time::from_ps(posted.at_ps()), Post::Note(note));
        }
        let next = self.switches.next().map_or(NEVER, Time::as_ps);
        if next < self.armed {
            self.armed = next;
            orders.wake_at(self.blueprint.vertex(self.home), Time::from_ps(next).max(orders.now()));
        }
    }

    /// A host's command has come to its TiN.
    fn command(&mut self, tin: u16, packet: &Packet, orders: &mut Orders) -> Verdict {
        let Some(jobs) = self.jobs.as_mut().filter(|_| !self.switches.endpoints().is_dead(tin))
        else {
            return Verdict::Drop;
        };
        match jobs.take(packet) {
            Some(Ok(job)) => {
                self.note_command(tin, packet, job, orders.now());
                self.go_on(job, orders.now());
            }
            Some(Err(told)) => self.tell_host(told, orders),
            None => {
                self.unexpected += 1;
                return Verdict::Drop;
            }
        }
        self.settle(orders);
        Verdict::Absorb
    }

    /// Asks for more of a command.
    fn go_on(&mut self, job: u32, now: Time) {
        let (Some(jobs), tracing) = (&mut self.jobs, &mut self.tracing) else { return };
        let since = self.record.as_ref().and_then(|record| record.commanded(job));
        let watch = |tracing: &mut Tracing, tin| Watch::new(tracing.takes(tin), since.is_some());
        while let Some(((tin, host), access)) = jobs.next(job, |tin| watch(tracing, tin)) {
            self.switches.act(tin, now, |cores, wishes| {
                wishes.record(|recorder| recorder.submits(access.handle, since));
                if let Some(memory) = &mut cores.memory {
                    memory.submit(tin, host, &access, wishes);
                }
            });
        }
    }

    /// Tells hosts what has become of operations, and asks for more.
    fn settle_memory(&mut self, orders: &mut Orders) {
        loop {
            let memory = self.switches.endpoints_mut().memory.as_mut();
            let Some((tin, outcome)) = memory.and_then(|memory| memory.next_outcome()) else {
                return;
            };
            let Some(jobs) = &mut self.jobs else { return };
            let (ended, _) = jobs.whose(outcome.handle());
            let (told, job) = jobs.end(&outcome);
            if let Some(recorder) = self.switches.recorder().filter(|_| job.is_none()) {
                recorder.ends(tin, ended);
            }
            told.into_iter().for_each(|told| self.tell_host(told, orders));
            if let Some(job) = job {
                self.go_on(job, orders.now());
            }
        }
    }

    /// What a host is told by its TiN.
    fn tell_host(&self, told: Option<Packet>, orders: &mut Orders) {
        let place = |packet: &Packet| self.jobs.as_ref()?.place(packet.dst).map(|place| place.at);
        if let Some((packet, (tin, host))) = told.and_then(|packet| Some((packet, place(&packet)?)))
        {
            orders.send(self.blueprint.host_ports[usize::from(tin)][host], packet);
        }
    }

    /// A host, or its line, is dead, or works again.
    fn change_line(&mut self, (tin, host): (u16, usize), works: bool, now: Time) {
        self.switches.endpoints_mut().set_line((tin, host), works);
        if !works && let Some(jobs) = &mut self.jobs {
            jobs.forget((tin, host));
            self.switches.act(tin, now, |cores, wishes| cores.reset_memory((tin, host), wishes));
        }
    }

    /// A packet goes over to where its cells go, before the first of them is there.
    fn hand_over(&mut self, packet: u32, to: u16, egress: Pointer, orders: &mut Orders) {
        let (there, host) = self.place_of(to);
        if self.owns[usize::from(there)] {
            self.switches.endpoints_mut().ip.attach(there, egress, packet);
            return;
        }
        let port = self.blueprint.host_ports[usize::from(there)][host];
        let place = u64::from(egress.slot) << 8 | u64::from(egress.generation);
        let content = Post::Packet(self.packets[packet as usize], place);
        orders.post(port, orders.now() + self.lookahead, content);
        self.packets.release(packet);
    }

    /// Lets go what is to leave a TiN by now.
    fn let_go(&mut self, tin: u16, orders: &mut Orders) {
        let index = usize::from(tin);
        while let Some(leaving) = self.leaving[index].front().copied() {
            if leaving.at > orders.now() {
                return;
            }
            self.leaving[index].pop_front();
            let mut packet = self.packets[leaving.packet as usize];
            self.packets.release(leaving.packet);
            if leaving.is_damaged {
                self.damaged += 1;
                continue;
            }
            if leaving.is_marked {
                packet.marks |= Marks::CE;
            }
            orders.send(self.blueprint.host_ports[index][leaving.host], packet);
        }
    }

    /// Cells of this part that crossed a switch, that were injected, and that were delivered or are inside.
    pub(super) fn cells(&self) -> [u64; 3] {
        let counts = self.switches.counts();
        [counts.hops, counts.injected, counts.delivered + u64::from(self.switches.cells())]
    }

    /// What all parts have counted, as far as they were added.
    fn counts(&self) -> Counts {
        let Counts { mut cells, mut ip, mut memory, damaged, unexpected } = self.others;
        cells.add(&self.switches.counts());
        let cores = self.switches.endpoints();
        ip.add(&cores.ip.counts());
        if let Some(own) = &cores.memory {
            memory.add(&own.counts());
        }
        let (damaged, unexpected) = (damaged + self.damaged, unexpected + self.unexpected);
        Counts { cells, ip, memory, damaged, unexpected }
    }
}

impl Program for Clique {
    const HAS_LINKS: bool = true;

    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        let Some(tin) = self.blueprint.tin(hop.switch) else {
            return self.pass_outside(hop, packet, orders);
        };
        if self.jobs.is_some() {
            return self.command(tin, packet, orders);
        }
        let Some((from, to)) = self.ends(packet, tin) else { return Verdict::Drop };
        // Its header is here; the rest comes as fast as the host's line is.
        let rest = u64::from(packet.wire).saturating_sub(packets::config::CUT_THROUGH_HEADER.get());
        let handle = self.packets.insert(*packet);
        let now = orders.now();
        let is_recorded =
            self.record.as_mut().is_some_and(|record| record.comes(packet, handle, now));
        let arrival = Arrival {
            packet: handle,
            length: packet.wire,
            class_of_service: self.classes_of_service[usize::from(packet.priority)],
            from,
            to,
            flow_hash: packet.entropy & 0xFFF,
            may_be_marked: packet.marks.contains(Marks::ECT),
            is_encapsulated: false,
            watch: Watch::new(self.tracing.takes(tin), is_recorded),
            is_bad: false,
            whole_at: orders.now() + self.rate.send_time(Bytes::new(rest)),
        };
        let (_, host) = self.place_of(from);
        let is_taken = self
            .switches
            .act(tin, orders.now(), |cores, wishes| cores.arrive((tin, host), arrival, wishes));
        if !is_taken {
            self.packets.release(arrival.packet);
            return Verdict::Drop;
        }
        self.settle(orders);
        Verdict::Absorb
    }

    fn wake(&mut self, switch: Vertex, orders: &mut Orders) {
        let now = orders.now().as_ps();
        if self.armed <= now {
            self.armed = NEVER;
            self.switches.run(Time::from_ps(now + 1));
        }
        self.settle(orders);
        if let Some(tin) = self.blueprint.tin(switch) {
            self.let_go(tin, orders);
        }
    }

    fn died(&mut self, switch: Vertex, orders: &mut Orders) {
        let Some(tin) = self.blueprint.tin(switch) else { return };
        let waiting = self.switches.act(tin, orders.now(), |cores, wishes| cores.die(tin, wishes));
        waiting.into_iter().for_each(|packet| self.packets.release(packet));
        if let Some(jobs) = &mut self.jobs {
            (0..2).for_each(|host| jobs.forget((tin, host)));
        }
        for leaving in std::mem::take(&mut self.leaving[usize::from(tin)]) {
            self.packets.release(leaving.packet);
        }
        self.settle(orders);
    }

    fn link_changed(&mut self, port: PortId, works: bool, orders: &mut Orders) {
        if let Some(line) =
            self.blueprint.line(port).filter(|&(tin, _)| self.owns[usize::from(tin)])
        {
            self.change_line(line, works, orders.now());
        }
        let Some((tin, number)) = self.blueprint.tin_port(port) else { return self.settle(orders) };
        let mut ends = vec![(tin, number)];
        if number != HOST_PORT {
            let far = self.blueprint.topology.far(tin, number);
            ends.extend(far.map(|far| (far.tin, far.port)));
        }
        for (tin, number) in ends.into_iter().filter(|&(tin, _)| self.owns[usize::from(tin)]) {
            if works {
                self.switches.endpoints_mut().revive(tin);
            }
            match (number, works) {
                (HOST_PORT, _) => {}
                (number, true) => self.switches.mend_link(tin, number, orders.now()),
                (number, false) => self.switches.break_link(tin, number, orders.now()),
            }
        }
        self.settle(orders);
    }

    fn converged(&mut self, live: &Live, orders: &mut Orders) {
        if let Some(outside) = &mut self.outside {
            outside.converge(live);
        }
        if self.journal.is_some() {
            // Somebody else sees to tables.
            return self.settle(orders);
        }
        let tables = self.blueprint.tables_in(&self.blueprint.condition(live));
        self.tracing.install(Arc::clone(&tables));
        self.switches.install(tables, orders.now());
        self.settle(orders);
    }

    fn takes(&mut self, port: PortId, at: Time, post: &Post, orders: &mut Orders) {
        let place = self.blueprint.tin_port(port).filter(|&(tin, _)| self.owns[usize::from(tin)]);
        match (place, post) {
            (Some((tin, HOST_PORT)), Post::Packet(packet, place)) => {
                let (slot, generation) = ((place >> 8) as u32, *place as u8);
                let packet = self.packets.insert(*packet);
                let egress = Pointer { slot, generation };
                self.switches.endpoints_mut().ip.attach(tin, egress, packet);
            }
            (Some((tin, number)), Post::Note(note)) if number != HOST_PORT => {
                let tick = at.as_ps().div_ceil(TICK.as_ps()).max(self.switches.tick_at_hand());
                let mut words = [0; post::WORDS];
                words.copy_from_slice(&note[..post::WORDS]);
                match Posted::read(words, (tin, number), tick) {
                    Some(posted) => self.switches.take(&posted),
                    None => self.unexpected += 1,
                }
            }
            _ => self.unexpected += 1,
        }
        self.settle(orders);
    }

    fn can_be_cut(&self) -> bool {
        true
    }

    fn become_part(&mut self, owns: &dyn Fn(Vertex) -> bool, lookahead: Span) {
        let tins = self.blueprint.shape().tins();
        self.owns = (0..tins).map(|tin| owns(self.blueprint.vertex(tin))).collect();
        let own: Vec<_> = (0..tins).filter(|&tin| self.owns[usize::from(tin)]).collect();
        self.home = own.first().copied().unwrap_or(0);
        self.lookahead = lookahead;
        self.switches = self.blueprint.switches(&own, self.switches.tables());
        self.switches.set_wire(self.is_wire);
        if let Some(journal) = &self.journal {
            self.switches.follow(Arc::clone(journal));
        }
        if let Some(record) = &self.record {
            record.begin(&mut self.switches);
        }
    }

    fn begin(&mut self, orders: &mut Orders) {
        // Tables that are written before the first packet comes are in place when it does.
        if self.journal.is_some() {
            self.settle(orders);
        }
    }

    fn home(&self, switch: Vertex) -> Vertex {
        // Links inside a pod are short: it stays together.
        let Some(tin) = self.blueprint.tin(switch) else { return switch };
        let shape = self.blueprint.shape();
        self.blueprint.vertex(shape.tin(shape.split(tin).0, 0))
    }

    fn blocks(&self) -> usize {
        blocks::best(self.blueprint.shape().tins())
    }

    fn record(&mut self, chosen: &Arc<Chosen>) {
        self.record = Some(Box::new(Record::new(chosen, &self.blueprint, self.rate)));
    }

    fn recorded<'a>(parts: impl Iterator<Item = &'a mut Self>) -> Option<Inside> {
        let (mut ended, mut blueprint) = (Vec::new(), None);
        for part in parts {
            part.note_known();
            let seen = part.switches.take_record().map(|recorder| recorder.into_seen());
            let record = part.record.take();
            ended.extend(record.zip(seen).map(|(record, seen)| Ended { record: *record, seen }));
            blueprint = Some(Arc::clone(&part.blueprint));
        }
        record::close(&*blueprint?, ended)
    }

    fn add_counts(&mut self, other: &Self) {
        let Counts { cells, ip, memory, damaged, unexpected } = other.counts();
        self.tracing.add(&other.tracing);
        self.others.cells.add(&cells);
        self.others.ip.add(&ip);
        self.others.memory.add(&memory);
        self.others.damaged += damaged;
        self.others.unexpected += unexpected;
    }

    fn events(&mut self) -> u64 {
        let hops = self.switches.counts().hops;
        hops - std::mem::replace(&mut self.told, hops)
    }

    fn longest_queue(&self) -> (u64, Bytes) {
        if let Some(memory) = &self.switches.endpoints().memory {
            let waiting = u64::from(memory.counts().queue_max);
            return (waiting, REQUEST * waiting);
        }
        // Packets wait at their sources until they are asked for, in queues of their destinations.
        let ip = self.switches.endpoints().ip.counts();
        (ip.queue_max.into(), Bytes::new(u64::from(ip.ingress_max) * 256))
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        if is_on && !self.has_data_header && self.jobs.is_none() {
            let message =
                "0 B: data cells do not say which packet they are of; expected 4 B with run.wire";
            return Err(Problem::new("ip.data_header", message));
        }
        self.is_wire = is_on;
        self.switches.set_wire(is_on);
        Ok(())
    }

    fn stand_alone(&mut self) {
        if let Some(memory) = &mut self.switches.endpoints_mut().memory {
            memory.keep_pieces();
        }
    }

    fn load(&mut self, note: &[u64; NOTE_WORDS]) -> Option<(Unit, Option<Payload>)> {
        let jobs = self.jobs.as_ref()?;
        let memory = self.switches.endpoints_mut().memory.as_mut()?;
        let Body::Cell(cell, _) = Posted::read(*note, (0, 0), 0)?.body else { return None };
        let unit = rma::piece(&cell)?;
        let piece = memory.take_piece(unit);
        let payload = piece.and_then(|piece| jobs.payload((cell.from, cell.to), piece));
        Some((Unit(unit), payload))
    }

    fn recovers(&self) -> bool {
        // A packet is some ninety cells and hops, none of which is sent again: of links that lose one message in
        // ten it does not arrive. Bit errors as they are on real links it stands.
        false
    }

    fn check(&self) -> Result<(), String> {
        self.switches.check()?;
        let is_idle = self.jobs.as_ref().is_none_or(Jobs::is_idle);
        match &self.switches.endpoints().memory {
            Some(memory) if is_idle && self.switches.next().is_none() => memory.check_home(),
            _ => Ok(()),
        }
    }

    fn details(&self, now: Time) -> Map<String, Value> {
        let Counts { cells, ip, memory, damaged, .. } = self.counts();
        let say_control = |details: &mut Map<String, Value>| {
            if let Some(journal) = &self.journal {
                super::say_control(journal, now, details);
            }
        };
        if let Some(jobs) = &self.jobs {
            let mut details = memory_details(jobs, &cells, &memory);
            say_control(&mut details);
            self.tracing.say("traced_operations", (&self.blueprint.topology, now), &mut details);
            self.blueprint.say_clocks(&mut details);
            return details;
        }
        let [no_room, dropped, not_asked_for, not_whole, bad, died] = ip.lost;
        let mut details = super::details_of(&cells);
        let mut say = |key: &str, value: Value| details.insert(key.into(), value);
        say("ip_packets", ip.packets.into());
        say("ip_marked", ip.marked.into());
        say("ip_no_ingress_room", no_room.into());
        say("ip_dropped_by_destination", dropped.into());
        say("ip_timed_out", (not_asked_for + not_whole).into());
        say("ip_damaged", (bad + damaged).into());
        say("ip_died_with_switch", died.into());
        say("cells_lost_at_dead_links", cells.lost_at_dead_links.into());
        say("rts_queue_max", ip.queue_max.into());
        say("ingress_buffer_max_bytes", (u64::from(ip.ingress_max) * 256).into());
        say("egress_buffer_max_bytes", ip.egress_max.into());
        say_control(&mut details);
        self.tracing.say("traced_packets", (&self.blueprint.topology, now), &mut details);
        self.blueprint.say_clocks(&mut details);
        details
    }
}
