//! Some TiNs: chips, the firmware of their control processors, and what leaves them by cables.
//!
//! A packet of the control plane crosses the Clique as it would in hardware: each chip on the way looks up its own
//! registers, which say by which port it goes on; the agent of the TiN there has the next look. Nothing else knows a way.
//! **Our choice**: an agent that ends takes its TiNs' power with it, and one that starts switches them on. What is in their
//! flash stays, in files.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use aquila::address::{Address, Endpoint};
use aquila::pipeline::Interface;
use aquila::topology::Far;
use aquila_control::apps::Clique;
use aquila_control::apps::front_end::order::owned;
use aquila_control::dhcp;
use aquila_control::firmware::chip::{Chip, LinkState};
use aquila_control::firmware::{self, Firmware, Input};
use aquila_control::memory::Memory;
use aquila_control::pmos::{self, End, Frame};
use aquila_control::registers::map::SIDEBAND_ALLOWED;
use aquila_control::rpc::Restart;
use aquila_control::session::ip;
use aquila_control::sim::path::{self, HOPS_MAX, Lost, Travel};
use kernel::{Span, Stream, Time};

use super::cables::{Cables, LIT, ports_to};
use super::datacenter::instance_of;
use super::flash::Kept;
use super::{Event, Part, add, life};
use crate::cluster::{Cluster, Role};
use crate::links::Links;
use crate::proto::control::message::What;
use crate::proto::control::{Cable, Crossing, Dhcp, Lit, Looked, Packet, Registers, Session};

/// A TiN.
struct Tin {
    number: u16,
    chip: Chip,
    memory: Memory,
    /// `None`: it starts again, or its memory did not suffice (I74: never).
    firmware: Option<Firmware>,
    /// When it starts again.
    starts: Option<Time>,
    /// Starts so far, of which each draws from a stream of its own.
    lives: u64,
    /// What its flash holds when this process has ended.
    kept: Kept,
    is_connected: bool,
}

/// What has happened.
#[derive(Debug, Default)]
struct Counts {
    crossed: u64,
    lost: [u64; Lost::ALL.len()],
    frames: u64,
    malformed: u64,
    out_of_memory: u64,
    restarts: u64,
}

/// An agent.
pub struct Agent {
    cluster: Arc<Cluster>,
    clique: Arc<Clique>,
    own: u8,
    agents: u8,
    life: u64,
    says: Time,
    first: u16,
    tins: Vec<Tin>,
    cables: Cables,
    /// For TiNs of this agent, from others of it.
    local: VecDeque<(u16, Input)>,
    counts: Counts,
}

impl Agent {
    pub fn new(cluster: Arc<Cluster>, own: u8, folder: &Path) -> Self {
        let (clique, life) = (cluster.configuration(), life());
        let agents = cluster.count(Role::Agent);
        let all = 0..clique.topology.shape().tins();
        let numbers: Vec<u16> = all.filter(|&tin| cluster.agent_of(tin) == own).collect();
        let tin = |&number: &u16| {
            let ethernet = clique.plan.ethernet(number, Interface::Control);
            // Another number at each cold start, and of each chip.
            let start = ((life / 100) as u32) << 16 | u32::from(number);
            let (kept, flash) = Kept::open(folder, number, cluster.times.block);
            let chip = Chip { flash, ..Chip::new(ethernet, start) };
            let is_connected = cluster.connected.contains(&number);
            let (memory, starts) = (Memory::default(), Some(Time::ZERO));
            Tin { number, chip, memory, firmware: None, starts, lives: 0, kept, is_connected }
        };
        let tins: Vec<Tin> = numbers.iter().map(tin).collect();
        let cables = Cables::new(&cluster, own, agents);
        let first = numbers.first().copied().unwrap_or(0);
        let (local, counts, says) = (VecDeque::new(), Counts::default(), Time::ZERO);
        Self { cluster, clique, own, agents, life, says, first, tins, cables, local, counts }
    }

    fn tin(&mut self, number: u16) -> Option<&mut Tin> {
        self.tins.get_mut(usize::from(number.checked_sub(self.first)?))
    }

    /// Tells firmware what has come, and what they say of it to each other, until nothing is left.
    fn settle(&mut self, now: Time, links: &mut Links) {
        while let Some((number, input)) = self.local.pop_front() {
            let Some(tin) = self.tin(number) else { continue };
            let Some(firmware) = &mut tin.firmware else { continue };
            let mut out = Vec::new();
            firmware.step(now, &mut tin.chip, input, &mut out);
            tin.kept.keep(&mut tin.chip.flash);
            let is_connected = tin.is_connected;
            for output in out {
                match output {
                    firmware::Output::Frame { by: Interface::Ethernet, frame } => {
                        if let Some(bytes) = dhcp::from_frame(&frame).filter(|_| is_connected) {
                            let asked = Dhcp { tin: Some(number.into()), instance: 0, bytes };
                            links.send((Role::Datacenter, 0), What::Dhcp(asked));
                        }
                    }
                    // There are no hosts, nor who manages them.
                    firmware::Output::Frame { .. } | firmware::Output::Sideband { .. } => {}
                    firmware::Output::Packet { by, packet } => {
                        self.leave(number, by, packet, links)
                    }
                    firmware::Output::Restart(restart) => self.restart(now, number, restart),
                }
            }
            self.pump(now, number);
        }
    }

    /// A processor does nothing any more, and starts in a while; the chip goes on, or starts cold.
    fn restart(&mut self, now: Time, number: u16, restart: Restart) {
        self.counts.restarts += 1;
        let starts = now + self.cluster.times.start;
        let Some(tin) = self.tin(number) else { return };
        (tin.firmware, tin.starts) = (None, Some(starts));
        if restart == Restart::Chip {
            let chip = std::mem::replace(&mut tin.chip, Chip::new([0; 6], 0));
            let start = chip.start.wrapping_add(1 << 16);
            tin.chip = chip.cold(start);
        }
        for port in 0..self.clique.topology.shape().external_ports() {
            self.cables.clear(number, port);
        }
        tracing::info!(tin = number, ?restart, "its control processor starts again");
    }

    /// Starts processors whose time has come; they are told what their links are like.
    fn start(&mut self, now: Time) {
        let settings = firmware::Settings {
            entry_time: Span::ZERO,
            // There and back for two words, and what may be before them; and the machine's own delays.
            pmos_timeout: Span::from_us(50_000).max(self.cluster.times.mos_interval * 16),
        };
        for tin in &mut self.tins {
            if tin.starts.take_if(|at| *at <= now).is_none() {
                continue;
            }
            let number = tin.number;
            let stream = Stream::new(self.life ^ tin.lives << 48, "firmware", number.into());
            (tin.memory, tin.lives) = (Memory::default(), tin.lives + 1);
            match Firmware::new(now, &mut tin.chip, settings, &tin.memory, stream) {
                Ok(firmware) => {
                    tin.firmware = Some(firmware);
                    // That it has started, if it is on trial (M617).
                    tin.kept.keep(&mut tin.chip.flash);
                }
                Err(why) => {
                    tracing::error!(tin = number, %why, "it does not start");
                    self.counts.out_of_memory += 1;
                    continue;
                }
            }
            self.local.push_back((number, Input::Ethernet { is_up: tin.is_connected }));
            for port in 0..self.clique.topology.shape().external_ports() {
                let Some(far) = self.clique.topology.far(number, port) else { continue };
                let neighbour = self.clique.plan.ethernet(far.tin, Interface::Control);
                let state = self.cables.state(far.tin);
                self.local.push_back((number, Input::Link { port, state, neighbour }));
            }
        }
    }

    /// Puts on cables what a firmware has for them.
    fn pump(&mut self, now: Time, number: u16) {
        let at = usize::from(number - self.first);
        let Some(firmware) = &mut self.tins[at].firmware else { return };
        let mut wanting = firmware.wanting();
        while wanting != 0 {
            let port = wanting.trailing_zeros() as u8;
            wanting &= wanting - 1;
            while let Some(frame) = firmware.next_frame(port, self.cables.is_free(number, port)) {
                let words = End::words(&frame).len();
                self.cables.put(now, number, port, frame, words);
            }
        }
    }

    /// The words of a frame arrive.
    fn carry(&mut self, (number, port): (u16, u8), frame: Frame, links: &mut Links) {
        let Some(far) = self.clique.topology.far(number, port) else { return };
        if self.cables.state(far.tin) < LinkState::Locked {
            return;
        }
        self.counts.frames += 1;
        let agent = self.cables.agent_of(far.tin);
        if agent == self.own {
            self.local.push_back((far.tin, Input::Pmos { port: far.port, frame }));
        } else {
            let (tin, port) = (far.tin.into(), far.port.into());
            let cable = Cable { tin, port, frame: frame.encode() };
            links.send((Role::Agent, agent), What::Cable(cable));
        }
    }

    fn lose(&mut self, lost: Lost) {
        self.counts.lost[lost as usize] += 1;
    }

    /// A control processor sends a packet.
    fn leave(&mut self, number: u16, by: Interface, packet: Vec<u8>, links: &mut Links) {
        match by {
            Interface::Ethernet => self.come_out(number, packet, links),
            Interface::Control => self.enter(number, Endpoint::CONTROL_IP, packet, links),
            Interface::Host0 | Interface::Host1 => self.lose(Lost::Nobody),
        }
    }

    /// A packet comes out of a TiN's Ethernet port, for a controller.
    fn come_out(&mut self, number: u16, packet: Vec<u8>, links: &mut Links) {
        let is_connected = self.tin(number).is_some_and(|tin| tin.is_connected);
        let count = self.cluster.count(Role::FrontEnd);
        let to = ip::addresses(&packet).filter(|_| is_connected);
        let to = to.and_then(|(_, to)| instance_of(to, count));
        match to {
            Some(to) => {
                let packet = Packet { tin: number.into(), packet };
                links.send((Role::FrontEnd, to), What::Packet(packet));
            }
            None => self.lose(Lost::Nobody),
        }
    }

    /// A packet comes in at a TiN's Ethernet port.
    fn come_in(&mut self, number: u16, packet: Vec<u8>, links: &mut Links) {
        let Some(tin) = self.tin(number).filter(|tin| tin.is_connected) else {
            self.lose(Lost::NoEntrance);
            return;
        };
        if ip::addresses(&packet).is_some_and(|(_, to)| tin.chip.traps(to)) {
            self.local.push_back((number, Input::Trapped { by: Interface::Ethernet, packet }));
        } else {
            self.enter(number, Endpoint::ETHERNET, packet, links);
        }
    }

    /// A packet enters the Clique, at an endpoint of a TiN.
    fn enter(&mut self, number: u16, from: Endpoint, packet: Vec<u8>, links: &mut Links) {
        let hash = path::hash(&packet);
        let Some((_, to)) = ip::addresses(&packet) else { return };
        let Some(tin) = self.tin(number) else { return };
        let Some(address) = path::flow(&tin.chip, to, hash) else {
            self.lose(Lost::NoFlow);
            return;
        };
        let Some((terminal, _)) = from.terminals() else { return };
        let port = self.clique.topology.shape().external_ports() + terminal;
        self.cross((number, port), Travel::new(address, hash), 0, packet, links);
    }

    /// A packet goes on from a port at which it has come in, as far as it is among TiNs of this agent.
    fn cross(
        &mut self,
        (mut number, mut port): (u16, u8),
        mut travel: Travel,
        mut hops: usize,
        packet: Vec<u8>,
        links: &mut Links,
    ) {
        loop {
            let clique = self.clique.clone();
            let Some(tin) = self.tin(number) else { return };
            let output = match travel.hop(clique.topology.shape(), &tin.chip.registers, port) {
                Ok(Some(output)) => output,
                Ok(None) => return self.arrive(number, travel.to, packet, links),
                Err(lost) => return self.lose(lost),
            };
            let far = clique.topology.far(number, output);
            let Some(far) = far.filter(|far| self.cables.state(far.tin) == LinkState::Up) else {
                return self.lose(Lost::Dead);
            };
            hops += 1;
            if hops >= HOPS_MAX {
                return self.lose(Lost::Circle);
            }
            self.counts.crossed += 1;
            let agent = self.cables.agent_of(far.tin);
            if agent != self.own {
                let crossing = Crossing {
                    tin: far.tin.into(),
                    port: far.port.into(),
                    to: travel.to.bits().into(),
                    hash: travel.hash,
                    rvc: travel.rvc.into(),
                    escapes: travel.escapes.map_or(0, |has_come_down| 1 + u32::from(has_come_down)),
                    hops: hops as u32,
                    packet,
                };
                return links.send((Role::Agent, agent), What::Crossing(crossing));
            }
            (number, port) = (far.tin, far.port);
        }
    }

    /// A packet is where its address says.
    fn arrive(&mut self, number: u16, to: Address, packet: Vec<u8>, links: &mut Links) {
        if to.endpoint() == Endpoint::ETHERNET {
            return self.come_out(number, packet, links);
        }
        let to = ip::addresses(&packet).map(|(_, to)| to);
        if self.tin(number).zip(to).is_some_and(|(tin, to)| tin.chip.traps(to)) {
            self.local.push_back((number, Input::Trapped { by: Interface::Control, packet }));
        } else {
            self.lose(Lost::Nobody);
        }
    }

    /// What is at the other end of the cable of a TiN that is here.
    fn far(&mut self, number: u16, port: u8) -> Option<Far> {
        self.tin(number)?;
        let topology = &self.clique.topology;
        let port = Some(port).filter(|&port| port < topology.shape().external_ports())?;
        topology.far(number, port)
    }

    /// What another agent has sent over a cable.
    fn on_crossing(&mut self, crossing: Crossing, links: &mut Links) -> Option<()> {
        let number = u16::try_from(crossing.tin).ok()?;
        let port = u8::try_from(crossing.port).ok()?;
        let far = self.far(number, port)?;
        let escapes = match crossing.escapes {
            0 => None,
            1 => Some(false),
            2 => Some(true),
            _ => return None,
        };
        let (to, rvc) = (u16::try_from(crossing.to).ok()?, u8::try_from(crossing.rvc).ok()?);
        let hops = crossing.hops as usize;
        let travel = Travel { to: Address::from_bits(to), hash: crossing.hash, rvc, escapes };
        if self.cables.state(far.tin) == LinkState::Up && hops < HOPS_MAX {
            self.cross((number, port), travel, hops, crossing.packet, links);
        } else {
            self.lose(Lost::Dead);
        }
        Some(())
    }

    fn on_cable(&mut self, cable: Cable) -> Option<()> {
        let number = u16::try_from(cable.tin).ok()?;
        let port = u8::try_from(cable.port).ok()?;
        let far = self.far(number, port)?;
        let frame = Frame::decode(&cable.frame).ok()?;
        if self.cables.state(far.tin) >= LinkState::Locked {
            self.local.push_back((number, Input::Pmos { port, frame }));
        }
        Some(())
    }

    fn on_message(&mut self, now: Time, what: What, links: &mut Links) -> Option<()> {
        match what {
            What::Lit(Lit { agent, life }) => {
                let agent = u8::try_from(agent).ok().filter(|&agent| agent < self.agents)?;
                self.cables.hear(now, agent, life);
            }
            What::Cable(cable) => self.on_cable(cable)?,
            What::Crossing(crossing) => self.on_crossing(crossing, links)?,
            What::Packet(Packet { tin, packet }) => {
                let number = u16::try_from(tin).ok()?;
                self.tin(number)?;
                self.come_in(number, packet, links);
            }
            What::Dhcp(Dhcp { tin, bytes, .. }) => {
                let number = u16::try_from(tin?).ok()?;
                self.tin(number)?;
                self.local.push_back((number, Input::Frame(bytes)));
            }
            _ => return None,
        }
        Some(())
    }

    /// The registers that the controller sets, as they are.
    fn audit(&mut self, number: u16) -> Option<Vec<Registers>> {
        let file = &self.tin(number)?.chip.registers;
        let block = |register: &&aquila_control::registers::Register| {
            let (address, count) = (register.base, register.entries());
            Some(Registers { address, count, entries: file.read_block(address, count).ok()? })
        };
        owned().iter().chain(&[SIDEBAND_ALLOWED.register()]).map(block).collect()
    }
}

impl Part for Agent {
    fn on_event(&mut self, now: Time, event: Event, links: &mut Links) {
        match event {
            Event::Message(what) => {
                let is_known = self.on_message(now, what, links).is_some();
                self.counts.malformed += u64::from(!is_known);
                self.settle(now, links);
            }
            Event::Audit(tin, answer) => {
                let _ = answer.send(self.audit(tin));
            }
            _ => {}
        }
    }

    fn on_time(&mut self, now: Time, links: &mut Links) {
        if self.says <= now {
            self.says = now + LIT;
            let lit = Lit { agent: self.own.into(), life: self.life };
            for agent in (0..self.agents).filter(|&agent| agent != self.own) {
                links.send((Role::Agent, agent), What::Lit(lit));
            }
        }
        self.start(now);
        let clique = self.clique.clone();
        for agent in self.cables.on_time(now, self.own) {
            for at in 0..self.tins.len() {
                let number = self.tins[at].number;
                for (port, far) in ports_to(&self.cables, &clique.topology, number, agent) {
                    let state = self.cables.state(far);
                    if state < LinkState::Locked {
                        self.cables.clear(number, port);
                    }
                    let neighbour = clique.plan.ethernet(far, Interface::Control);
                    self.local.push_back((number, Input::Link { port, state, neighbour }));
                }
            }
        }
        while let Some((number, port, frame, is_free)) = self.cables.gone(now) {
            self.carry((number, port), frame, links);
            if is_free {
                self.local.push_back((number, Input::Gone { port }));
            }
        }
        let is_due = |tin: &&Tin| {
            tin.firmware.as_ref().and_then(Firmware::deadline).is_some_and(|at| at <= now)
        };
        let due = self.tins.iter().filter(is_due).map(|tin| (tin.number, Input::Nothing));
        self.local.extend(due.collect::<Vec<_>>());
        self.settle(now, links);
    }

    fn deadline(&self) -> Option<Time> {
        let starts = self.tins.iter().filter_map(|tin| tin.starts);
        let firmware = self.tins.iter().filter_map(|tin| tin.firmware.as_ref()?.deadline());
        firmware.chain(starts).chain(self.cables.deadline()).min()
    }

    fn look(&self, looked: &mut Looked) {
        let Counts { crossed, lost, frames, malformed, out_of_memory, restarts } = &self.counts;
        for tin in &self.tins {
            let state = tin.firmware.as_ref().map(Firmware::state);
            looked.sessions.push(Session {
                tin: tin.number.into(),
                is_up: matches!(state, Some(firmware::State::Tcp | firmware::State::Pmos)),
                is_ready: false,
                is_over_pmos: state == Some(firmware::State::Pmos),
                boot: tin.chip.start,
                firmware: tin.firmware.as_ref().map_or(0, Firmware::version).into(),
            });
        }
        let peak = self.tins.iter().map(|tin| tin.memory.peak()).max().unwrap_or(0);
        add(looked, "tins", self.tins.len() as u64);
        add(looked, "hops", *crossed);
        for (lost, &count) in Lost::ALL.iter().zip(lost) {
            add(looked, &format!("packets_lost_{}", snake(&format!("{lost:?}"))), count);
        }
        add(looked, "pmos_frames", *frames);
        let counts = |tin: &Tin| {
            Some((tin.firmware.as_ref()?.counts(), tin.firmware.as_ref()?.pmos_counts()))
        };
        let all: Vec<(firmware::Counts, pmos::Counts)> =
            self.tins.iter().filter_map(counts).collect();
        add(looked, "pmos_frames_again", all.iter().map(|(_, pmos)| pmos.sent_again).sum());
        let own: u64 = all.iter().map(|(counts, _)| counts.malformed).sum();
        add(looked, "malformed", malformed + own);
        add(looked, "out_of_memory", *out_of_memory);
        add(looked, "restarts", *restarts);
        add(looked, "firmware_peak_bytes", peak.into());
    }
}

fn snake(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}
