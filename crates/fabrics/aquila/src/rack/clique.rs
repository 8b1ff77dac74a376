//! The program of the engine's switches: a Clique of TiNs.
//!
//! Models: Aquila §2, §3.1, §3.3 (M005, U32): packets of the hosts of a TiN share its NIC, one after the other by turns;
//! from there they are IP's ([`crate::ip`]), and go out to a host when that lets them. The packet itself is kept here
//! while its cells are under way.

use std::collections::VecDeque;
use std::sync::Arc;

use ::rack::Problem;
use ::rack::topology::{PortId, Topology as Graph, Vertex};
use kernel::{Bytes, Rate, Slab, Time};
use packets::{Hop, Marks, Orders, Packet, Program, Verdict};
use serde_json::{Map, Value};

use crate::address::{Address, Endpoint};
use crate::config::Plan;
use crate::ip::{Arrival, Engine, Outcome};
use crate::switch::cell::Cell;
use crate::switch::settings::{Settings, TICK};
use crate::switch::{Endpoints, Room, Switches, Wishes};
use crate::tables::{Condition, compute::compute};
use crate::topology::Shape;

/// No instant.
const NEVER: u64 = u64::MAX;
/// Endpoints of the hosts of a TiN.
const HOSTS: [Endpoint; 2] = [Endpoint::HOST_0, Endpoint::HOST_1];

/// A packet on its way from a host into the ingress buffer.
#[derive(Clone, Copy, Debug)]
struct Incoming {
    arrival: Arrival,
    /// When its last byte has come over the host's line. Unit: ps.
    whole_at: u64,
}

/// The NIC of a TiN, which its hosts share.
#[derive(Clone, Debug, Default)]
struct Nic {
    /// By host: packets whose headers have come.
    waiting: [VecDeque<Incoming>; 2],
    /// Until when it takes the packet at hand. Unit: ps.
    busy_until: u64,
    /// The host that is asked first.
    turn: usize,
}

/// What is at the TiNs.
#[derive(Clone, Debug)]
struct Cores {
    ip: Engine,
    nics: Vec<Nic>,
    rate: Rate,
}

impl Cores {
    /// Lets packets into the ingress buffer, one after the other.
    fn take_in(&mut self, tin: u16, wishes: &mut Wishes) {
        let end = wishes.now().as_ps() + TICK.as_ps() - 1;
        let nic = &mut self.nics[usize::from(tin)];
        while nic.busy_until <= end {
            let turns = [nic.turn, 1 - nic.turn];
            let Some(host) = turns.into_iter().find(|&host| !nic.waiting[host].is_empty()) else {
                return;
            };
            let Some(incoming) = nic.waiting[host].pop_front() else { return };
            nic.turn = 1 - host;
            let begun = nic.busy_until.max(wishes.now().as_ps());
            let bytes = Bytes::new(incoming.arrival.length.into());
            let whole = incoming.whole_at.max(begun + self.rate.send_time(bytes).as_ps());
            nic.busy_until = whole;
            let arrival = Arrival { whole_at: Time::from_ps(whole), ..incoming.arrival };
            self.ip.arrive(tin, &arrival, wishes);
        }
        wishes.wake_at(Time::from_ps(nic.busy_until));
    }
}

impl Endpoints for Cores {
    fn deliver(&mut self, tin: u16, _: u8, cell: &Cell, at: Time, wishes: &mut Wishes) {
        let is_known = self.ip.deliver(tin, cell, at, wishes);
        debug_assert!(is_known, "{cell:?}");
    }

    fn inject(
        &mut self,
        tin: u16,
        terminal: u8,
        room: Room<'_>,
        wishes: &mut Wishes,
    ) -> Option<Cell> {
        self.ip.inject(tin, terminal, room, wishes)
    }

    fn wake(&mut self, tin: u16, wishes: &mut Wishes) {
        self.take_in(tin, wishes);
        self.ip.wake(tin, wishes);
    }
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

/// The Clique.
#[derive(Clone, Debug)]
pub(crate) struct Clique {
    shape: Shape,
    switches: Switches<Cores>,
    packets: Slab<Packet>,
    class_of_service: u8,
    has_data_header: bool,
    rate: Rate,
    /// By node: its TiN's index, and which of its hosts it is.
    places: Arc<[(u16, u8)]>,
    /// By TiN and host: the engine's port to it.
    ports: Arc<[[PortId; 2]]>,
    /// By TiN: packets that leave it, first to last.
    leaving: Vec<VecDeque<Leaving>>,
    /// The engine's number of the first TiN.
    first: u32,
    /// The earliest alarm that was asked for and has not come. Unit: ps.
    armed: u64,
    /// Packets whose bits were flipped inside: their checksums are wrong.
    damaged: u64,
}

impl Clique {
    /// An idle Clique. `seed` is that of all chance in it.
    pub(crate) fn new(plan: &Plan, graph: &Graph, seed: u64) -> Self {
        let shape = *plan.topology.shape();
        let condition = Condition::healthy(&plan.topology);
        let tables = Arc::new(compute(&plan.topology, &plan.turns, &condition));
        let settings = Settings::from(plan);
        let own: Vec<u16> = (0..shape.tins()).collect();
        let (rate, hops) = (plan.config.ip.port_rate, settings.switch.hops);
        let ip = Engine::new(&plan.config.ip, shape.tins(), &own, hops);
        let cores = Cores { ip, nics: vec![Nic::default(); own.len()], rate };
        let settings = Arc::new(settings);
        let switches = Switches::new(&plan.topology, tables, settings, &own, seed, cores);
        let first = plan.config.nodes;
        let mut ports = vec![[PortId::default(); 2]; own.len()];
        for (index, port) in (0..).zip(graph.ports()) {
            if graph.is_host(port.peer) {
                let place = &plan.hosts[port.peer.index()];
                ports[usize::from(place.tin)][usize::from(place.slot)] = PortId::new(index);
            }
        }
        Self {
            shape,
            switches,
            packets: Slab::default(),
            class_of_service: plan.config.ip.class_of_service,
            has_data_header: plan.config.ip.data_header > Bytes::ZERO,
            rate,
            places: plan.hosts.iter().map(|place| (place.tin, place.slot)).collect(),
            ports: ports.into(),
            leaving: vec![VecDeque::new(); own.len()],
            first,
            armed: NEVER,
            damaged: 0,
        }
    }

    /// The GNet address of a node (M401: what input processing finds for an IP address).
    fn address(&self, node: ::rack::NodeId) -> Option<u16> {
        let &(tin, slot) = self.places.get(node.index())?;
        let (pod, place) = self.shape.split(tin);
        Some(Address::new(pod, place, HOSTS[usize::from(slot)]).bits())
    }

    /// What IP says of packets since it was last asked.
    fn settle(&mut self, orders: &mut Orders) {
        while let Some((tin, outcome)) = self.switches.endpoints_mut().ip.next_outcome() {
            match outcome {
                Outcome::Cleared { packet, to, egress } => {
                    let address = Address::from_bits(to);
                    let there = self.shape.tin(address.pod(), address.tin());
                    self.switches.endpoints_mut().ip.attach(there, egress, packet);
                }
                Outcome::Leaves { packet, to, at, is_marked, is_damaged } => {
                    let host = usize::from(Address::from_bits(to).endpoint() == HOSTS[1]);
                    let leaving = Leaving { at, packet, host, is_marked, is_damaged };
                    self.leaving[usize::from(tin)].push_back(leaving);
                    orders.wake_at(self.vertex(tin), at.max(orders.now()));
                }
                Outcome::Lost { packet, .. } => self.packets.release(packet),
            }
        }
        let next = self.switches.next().map_or(NEVER, Time::as_ps);
        if next < self.armed {
            self.armed = next;
            orders.wake_at(self.vertex(0), Time::from_ps(next).max(orders.now()));
        }
    }

    fn vertex(&self, tin: u16) -> Vertex {
        Vertex::new(self.first + u32::from(tin))
    }

    /// Lets go what is to leave a TiN by now.
    fn let_go(&mut self, tin: usize, orders: &mut Orders) {
        while let Some(leaving) = self.leaving[tin].front().copied() {
            if leaving.at > orders.now() {
                return;
            }
            self.leaving[tin].pop_front();
            let mut packet = self.packets[leaving.packet as usize];
            self.packets.release(leaving.packet);
            if leaving.is_damaged {
                self.damaged += 1;
                continue;
            }
            if leaving.is_marked {
                packet.marks |= Marks::CE;
            }
            orders.send(self.ports[tin][leaving.host], packet);
        }
    }
}

impl Program for Clique {
    fn arrives(&mut self, hop: &Hop, packet: &mut Packet, orders: &mut Orders) -> Verdict {
        let tin = (hop.switch.get() - self.first) as u16;
        let (Some(from), Some(to)) = (self.address(packet.src), self.address(packet.dst)) else {
            return Verdict::Drop;
        };
        // Its header is here; the rest comes as fast as the host's line is.
        let rest = u64::from(packet.wire).saturating_sub(packets::config::CUT_THROUGH_HEADER.get());
        let whole_at = (orders.now() + self.rate.send_time(Bytes::new(rest))).as_ps();
        let arrival = Arrival {
            packet: self.packets.insert(*packet),
            length: packet.wire,
            class_of_service: self.class_of_service,
            from,
            to,
            flow_hash: packet.entropy & 0xFFF,
            may_be_marked: packet.marks.contains(Marks::ECT),
            is_encapsulated: false,
            is_traced: false,
            is_bad: false,
            whole_at: Time::from_ps(whole_at),
        };
        let host = usize::from(Address::from_bits(from).endpoint() == HOSTS[1]);
        self.switches.act(tin, orders.now(), |cores, wishes| {
            cores.nics[usize::from(tin)].waiting[host].push_back(Incoming { arrival, whole_at });
            cores.take_in(tin, wishes);
        });
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
        self.let_go((switch.get() - self.first) as usize, orders);
    }

    fn set_wire(&mut self, is_on: bool) -> Result<(), Problem> {
        if is_on && !self.has_data_header {
            let message =
                "0 B: data cells do not say which packet they are of; expected 4 B with run.wire";
            return Err(Problem::new("ip.data_header", message));
        }
        self.switches.set_wire(is_on);
        Ok(())
    }

    fn recovers(&self) -> bool {
        false
    }

    fn check(&self) -> Result<(), String> {
        self.switches.check()
    }

    fn details(&self, _: Time) -> Map<String, Value> {
        let (cells, ip) = (self.switches.counts(), self.switches.endpoints().ip.counts());
        let [no_room, dropped, not_asked_for, not_whole, bad] = ip.lost;
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        let mut details = Map::new();
        let mut say = |key: &str, value: Value| details.insert(key.into(), value);
        say("cell_hops", cells.hops.into());
        say("cells", cells.delivered.into());
        say("hops_per_cell", share(cells.hops, cells.delivered).into());
        say("detour_share", share(cells.detours, cells.decisions).into());
        say("credit_stalls", cells.credit_stalls.into());
        say("escape_cells", cells.escapes.into());
        say("ip_packets", ip.packets.into());
        say("ip_marked", ip.marked.into());
        say("ip_no_ingress_room", no_room.into());
        say("ip_dropped_by_destination", dropped.into());
        say("ip_timed_out", (not_asked_for + not_whole).into());
        say("ip_damaged", (bad + self.damaged).into());
        say("rts_queue_max", ip.queue_max.into());
        say("ingress_buffer_max_bytes", (u64::from(ip.ingress_max) * 256).into());
        say("egress_buffer_max_bytes", ip.egress_max.into());
        details
    }
}
