//! What a Clique is built from, by whoever holds a part of it: configuration, and which port of the engine is which of
//! a TiN.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use ::rack::topology::{PortId, Topology as Graph, Vertex};
use kernel::{Bytes, Span};
use packets::Live;
use serde_json::{Map, Value};

use super::jobs::Place;
use super::nic::Cores;
use super::outside::{ETHERNET, attached};
use crate::address::{Address, Endpoint};
use crate::config::{self, Carrier, Plan};
use crate::ip::Engine;
use crate::pipeline::Interface;
use crate::pipeline::compute::indexed;
use crate::pipeline::plan::{Plan as AddressPlan, Version};
use crate::pipeline::routes::Found;
use crate::rma::{self, Permissions};
use crate::switch::Switches;
use crate::switch::record::Numbers;
use crate::switch::settings::Settings;
use crate::tables::condition::State;
use crate::tables::{Condition, Tables, compute::compute};
use crate::timesync::{self, measure::accuracy};
use crate::topology::placement::HostPlace;
use crate::topology::{Shape, Topology};
use crate::turns::TurnTable;

/// No port of a TiN that a link leads to: a host's.
pub(super) const HOST_PORT: u8 = u8::MAX;

/// Memory that each host has registered: all that addresses tell apart. Unit: bytes.
const MEMORY: u64 = u64::MAX;
/// The process that asks.
const KEY: u32 = 1;

/// Everything that does not change, but for routes.
#[derive(Debug)]
pub(super) struct Blueprint {
    pub(super) topology: Topology,
    turns: TurnTable,
    settings: Arc<Settings>,
    ip: config::Ip,
    seed: u64,
    /// By node: the GNet address that input processing finds for its IP address. It is the same for all flows, so it is
    /// looked up once.
    pub(super) addresses: Vec<u16>,
    /// By TiN and host: the engine's port to it; and its Ethernet port, if it is attached.
    pub(super) host_ports: Vec<[PortId; 3]>,
    /// By port of the engine at either end of a host's line: TiN and host.
    lines: BTreeMap<PortId, (u16, usize)>,
    /// By TiN and port: the engine's, where a link is.
    link_ports: Vec<Option<PortId>>,
    /// By port of the engine that is a TiN's: the TiN, and its port.
    tin_ports: Vec<Option<(u16, u8)>>,
    /// The engine's number of the first TiN.
    pub(super) first: u32,
    /// Remote memory's settings, and the hosts that have some, where it carries the flows.
    memory: Option<(config::Rma, Vec<(u16, usize)>)>,
    /// Links and the settings of clocks, where these are to be measured.
    clocks: Option<(config::Link, timesync::Settings)>,
    /// The tables that were computed last, and for what.
    last: Mutex<Option<(Condition, Arc<Tables>)>>,
}

/// The GNet addresses of nodes, by their IP addresses (M405): those of hosts that are there alone.
fn addresses(plan: &Plan) -> Vec<u16> {
    let hosts = AddressPlan::new(plan.topology.shape(), plan.config.hosts_per_tin);
    let interface =
        |place: &HostPlace| [Interface::Host0, Interface::Host1][usize::from(place.slot)];
    let there: BTreeSet<_> = plan.hosts.iter().map(|place| (place.tin, interface(place))).collect();
    let is_there = |tin, of| of == Interface::Control || there.contains(&(tin, of));
    let routes = indexed(&hosts, &is_there);
    let address = |place: &HostPlace| match routes
        .look_up(hosts.ip(place.tin, interface(place), Version::V4), 0)
    {
        Found::Indexed(address) => address.bits(),
        other => panic!("{place:?} is found as {other:?}"),
    };
    plan.hosts.iter().map(address).collect()
}

impl Blueprint {
    /// That of a plan in a graph of the engine. `seed` is that of all chance.
    pub(super) fn new(plan: &Plan, graph: &Graph, seed: u64) -> Self {
        let shape = *plan.topology.shape();
        let first = plan.nodes();
        let vertex = |tin: u16| Vertex::new(first + u32::from(tin));
        let mut host_ports = vec![[PortId::default(); 3]; usize::from(shape.tins())];
        let (mut tin_ports, mut lines) = (vec![None; graph.ports().len()], BTreeMap::new());
        for (index, port) in (0..).zip(graph.ports()) {
            if graph.is_host(port.peer) {
                // Those outside have no TiN.
                let Some(place) = plan.hosts.get(port.peer.index()) else { continue };
                host_ports[usize::from(place.tin)][usize::from(place.slot)] = PortId::new(index);
                tin_ports[index as usize] = Some((place.tin, HOST_PORT));
                for end in [PortId::new(index), port.reverse] {
                    lines.insert(end, (place.tin, place.slot.into()));
                }
            }
        }
        // Links stand at a vertex in the order in which they were added.
        let mut next: Vec<_> = (0..shape.tins())
            .map(|tin| {
                let is_link = |port: &PortId| !graph.is_host(graph.port(*port).peer);
                graph.ports_of(vertex(tin)).filter(is_link).collect::<Vec<_>>().into_iter()
            })
            .collect();
        let each = usize::from(shape.external_ports());
        let mut link_ports = vec![None; usize::from(shape.tins()) * each];
        for link in plan.topology.links() {
            for (end, far) in [(link.low, link.high), (link.high, link.low)] {
                let port = next[usize::from(end.tin)].next().expect("each link has two ends");
                assert_eq!(graph.port(port).peer, vertex(far.tin), "links stand in order");
                link_ports[usize::from(end.tin) * each + usize::from(end.port)] = Some(port);
                tin_ports[port.index()] = Some((end.tin, end.port));
            }
        }
        for tin in attached(plan) {
            let port = next[usize::from(tin)].next().expect("its Ethernet port is its last");
            host_ports[usize::from(tin)][ETHERNET] = port;
            tin_ports[port.index()] = Some((tin, HOST_PORT));
        }
        Self {
            topology: plan.topology.clone(),
            turns: plan.turns,
            settings: Arc::new(Settings::from(plan)),
            ip: plan.config.ip.clone(),
            seed,
            addresses: addresses(plan),
            host_ports,
            lines,
            link_ports,
            tin_ports,
            first,
            memory: (plan.config.carrier != Carrier::Ip).then(|| {
                let host = |place: &HostPlace| (place.tin, usize::from(place.slot));
                (plan.config.rma.clone(), plan.hosts.iter().map(host).collect())
            }),
            clocks: (plan.config.timesync.measured > Span::ZERO)
                .then(|| (plan.config.link.clone(), plan.config.timesync)),
            last: Mutex::new(None),
        }
    }

    pub(super) fn shape(&self) -> &Shape {
        self.topology.shape()
    }

    /// The engine's vertex of a TiN.
    pub(super) fn vertex(&self, tin: u16) -> Vertex {
        Vertex::new(self.first + u32::from(tin))
    }

    /// The TiN of a vertex of the engine; `None` for hosts, and the switch outside.
    pub(super) fn tin(&self, vertex: Vertex) -> Option<u16> {
        let tin = vertex.get().checked_sub(self.first).and_then(|tin| u16::try_from(tin).ok());
        tin.filter(|&tin| tin < self.shape().tins())
    }

    /// The engine's port of a link's end.
    pub(super) fn link_port(&self, tin: u16, port: u8) -> Option<PortId> {
        let each = usize::from(self.shape().external_ports());
        self.link_ports[usize::from(tin) * each + usize::from(port)]
    }

    /// The TiN of a port of the engine and its port, which may be [`HOST_PORT`]; `None` for hosts' own.
    pub(super) fn tin_port(&self, port: PortId) -> Option<(u16, u8)> {
        self.tin_ports.get(port.index()).copied().flatten()
    }

    /// Switches of some TiNs with all that is at them, idle.
    pub(super) fn switches(&self, own: &[u16], tables: Arc<Tables>) -> Switches<Cores> {
        let hops = self.settings.switch.hops;
        let ip = Engine::new(&self.ip, self.shape().tins(), own, hops);
        let memory = self.memory.as_ref().map(|(rma, hosts)| {
            let mut memory = rma::Engine::new(rma, self.shape(), own, hops, self.seed);
            for &(tin, host) in hosts.iter().filter(|(tin, _)| own.contains(tin)) {
                let _ = memory.memory(tin, host).register(0, MEMORY, Permissions::ALL);
            }
            Box::new(memory)
        });
        let cores = Cores::new(ip, memory, self.shape().tins(), &self.ip);
        let settings = Arc::clone(&self.settings);
        Switches::new(&self.topology, tables, settings, own, self.seed, cores)
    }

    /// By node: where its memory is, and what it is reached by. Whoever has the seed knows all secrets.
    pub(super) fn memories(&self) -> Vec<Place> {
        let Some((rma, hosts)) = &self.memory else { return Vec::new() };
        let engine = rma::Engine::new(rma, self.shape(), &[], 0, self.seed);
        let place = |&(tin, host): &(u16, usize)| {
            let mut memory = engine.memory_of(tin, host, self.seed);
            let region = memory.register(0, MEMORY, Permissions::ALL).expect("the first region");
            let grant = memory.grant(region, KEY).expect("it is registered");
            Place { at: (tin, host), address: engine.address(tin, host), grant }
        };
        hosts.iter().map(place).collect()
    }

    /// The TiN of a GNet address, and which of its hosts it is, or its Ethernet port.
    pub(super) fn place_of(&self, address: u16) -> (u16, usize) {
        let address = Address::from_bits(address);
        let tin = self.shape().tin(address.pod(), address.tin());
        let host = match address.endpoint() {
            Endpoint::HOST_1 => 1,
            Endpoint::ETHERNET => ETHERNET,
            _ => 0,
        };
        (tin, host)
    }

    /// Bytes that data cells say of themselves, and most bytes of a packet in one.
    pub(super) fn data_header(&self) -> Bytes {
        self.ip.data_header
    }

    /// Most bytes of a packet in a data cell.
    pub(super) fn cell_payload(&self) -> u64 {
        self.ip.cell_payload().into()
    }

    /// Most bytes of memory that a request asks for.
    pub(super) fn segment(&self) -> u64 {
        self.memory.as_ref().map_or(0, |(rma, _)| rma.segment.get())
    }

    /// Terminal ports of a TiN.
    fn terminals(&self) -> u8 {
        self.shape().ports() - self.shape().external_ports()
    }

    /// What a record calls lines of TiNs: by the engine's number where it knows them; behind those the lines into the
    /// terminal ports of each TiN and out of them.
    pub(super) fn numbers(&self) -> Numbers {
        let tins = self.shape().tins();
        let (external, terminals) = (self.shape().external_ports(), self.terminals());
        let size = Numbers::at(tins, 0);
        let (mut outputs, mut feeds) = (vec![u32::MAX; size], vec![u32::MAX; size]);
        let mut count = self.tin_ports.len() as u32;
        for tin in 0..tins {
            for port in 0..external {
                if let Some(known) = self.link_port(tin, port) {
                    outputs[Numbers::at(tin, port)] = known.get();
                }
            }
            for port in external..external + terminals {
                let at = Numbers::at(tin, port);
                (feeds[at], outputs[at]) = (count, count + 1);
                count += 2;
            }
        }
        Numbers { outputs, feeds, count }
    }

    /// By port of the engine whether cells go on its line, and the ends of lines that it does not know, by their numbers.
    pub(super) fn lines(&self) -> (Vec<bool>, Vec<[String; 2]>) {
        let is_link = |of: &Option<(u16, u8)>| of.is_some_and(|(_, port)| port != HOST_PORT);
        let ends = |tin: u16, terminal: u8| {
            let (inside, outside) =
                (format!("leaf {tin}"), format!("leaf {tin} (terminal {terminal})"));
            [[outside.clone(), inside.clone()], [inside, outside]]
        };
        let tins = 0..self.shape().tins();
        let names = tins.flat_map(|tin| (0..self.terminals()).flat_map(move |at| ends(tin, at)));
        (self.tin_ports.iter().map(is_link).collect(), names.collect())
    }

    /// The TiN and the host of a line that has this end; `None` for links of TiNs.
    pub(super) fn line(&self, port: PortId) -> Option<(u16, usize)> {
        self.lines.get(&port).copied()
    }

    /// The tables while everything works.
    pub(super) fn tables(&self) -> Arc<Tables> {
        self.tables_in(&Condition::healthy(&self.topology))
    }

    /// The tables in a condition. All parts of a Clique ask for the same ones at the same instant: they have them in
    /// common, as they follow from the plan.
    pub(super) fn tables_in(&self, condition: &Condition) -> Arc<Tables> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tables)) = last.as_ref().filter(|(known, _)| known == condition) {
            return Arc::clone(tables);
        }
        let tables = Arc::new(compute(&self.topology, &self.turns, condition));
        *last = Some((condition.clone(), Arc::clone(&tables)));
        tables
    }

    /// What the summary says of clocks, which are measured by themselves: nothing that a run carries changes them.
    pub(super) fn say_clocks(&self, details: &mut Map<String, Value>) {
        let Some((link, settings)) = &self.clocks else { return };
        let (topology, how) = (&self.topology, (settings.measured, false));
        let found = accuracy(topology, link, settings, how, self.seed);
        let mut say = |key: &str, value: Value| details.insert(key.into(), value);
        say("clocks_settled", found.is_some().into());
        let Some(found) = found else { return };
        let ns = |span: Span| Value::from(span.as_ps() as f64 / 1_000.0);
        let largest = found.depths.iter().map(|depth| depth.largest).max();
        let bound = found.depths.iter().map(|depth| depth.bound).max();
        say("clocks_settled_after_ns", ns(found.settled));
        say("clock_error_max_ns", ns(largest.unwrap_or_default()));
        say("clock_error_bound_ns", ns(bound.unwrap_or_default()));
        say("clock_tree_height", found.depths.len().saturating_sub(1).into());
    }

    /// What works of the Clique, by what works of the engine's graph.
    pub(super) fn condition(&self, live: &Live) -> Condition {
        let mut condition = Condition::healthy(&self.topology);
        for tin in (0..self.shape().tins()).filter(|&tin| !live.vertices[self.vertex(tin).index()])
        {
            condition.set_tin(tin, State::Dead);
        }
        for (index, link) in (0..).zip(self.topology.links()) {
            let port = self.link_port(link.low.tin, link.low.port);
            if port.is_some_and(|port| !live.ports[port.index()]) {
                condition.set_link(index, State::Dead);
            }
        }
        condition
    }
}
