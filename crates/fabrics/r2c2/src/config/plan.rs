//! What follows from a configuration: the network, its routes, shares and broadcast trees.

use std::collections::BTreeSet;

use kernel::{Bytes, Rate, Time};
use packets::config::Queues;
use packets::{Framing, Routing};
use rack::equipment::Bill;
use rack::topology::PortId;
use rack::{Fault, NodeId, Problem};

use super::{Batch, Config};
use crate::broadcast::Fib;
use crate::endpoint::frames::CARRIED_MAX;
use crate::rates::{DemandPlan, Routed, Waterfill, capacities_for};
use crate::routing::{Network, Protocol, Routes};
use crate::selection::Utility;
use crate::view::INDICES;
use crate::wire;

/// Tenants that announcements tell apart where a search goes by them, if there are no more classes (**our
/// choice**: it leaves each 16 open flows between two nodes).
const TENANTS: u32 = 16;

/// A checked configuration with what follows from it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The configuration with nothing left open.
    pub config: Config,
    /// The links and queues.
    pub network: packets::Plan,
    /// What it is made of.
    pub bill: Bill,
    /// The network as routing sees it, and routes on it, while everything works.
    pub(crate) routing: Network,
    pub(crate) routes: Routes,
}

/// How packets, broadcasts and rates go in a rack of which some parts may have failed.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// Routes of packets.
    pub(crate) routes: Routes,
    /// Shares of links.
    pub(crate) filling: Waterfill<Routed>,
    /// Trees of broadcasts.
    pub(crate) trees: Fib,
}

impl Config {
    /// Checks the configuration and derives the plan.
    ///
    /// # Errors
    /// Every problem found, each with its key and a remedy.
    pub fn plan(&self) -> Result<Plan, Vec<Problem>> {
        let mut problems = self.check();
        let network = self.network().plan().map_err(|wrong| {
            let own = wrong.into_iter().map(rename);
            ::rack::ranges::check(self, problems.drain(..).chain(own).collect())
        })?;
        let routing = Network::new(&self.topology).map_err(|wrong| vec![wrong[0].clone()])?;
        let topology = routing.topology();
        if topology.vertices() > topology.hosts() {
            let message = "a network with switches; expected a torus, a mesh or a graph of hosts \
                           alone: under R2C2 nodes pass packets on themselves";
            problems.push(Problem::new("topology", message));
        }
        if self.nodes > 0 && self.nodes != topology.hosts() {
            let (wanted, found) = (self.nodes, topology.hosts());
            let message =
                format!("{wanted}, but the topology makes {found}; remove one of the two");
            problems.push(Problem::new("nodes", message));
        }
        let hosts = topology.hosts();
        if let Some(controller) = self.controller.filter(|&node| node >= hosts) {
            let last = hosts.saturating_sub(1);
            let message = format!("{controller}; expected a node of the rack, 0 to {last}");
            problems.push(Problem::new("controller", message));
        }
        problems.extend(self.check_links(topology));
        if !problems.is_empty() {
            return Err(problems);
        }
        let routes = Routes::new(&routing).map_err(|problem| vec![problem])?;
        for (index, class) in self.classes.iter().enumerate() {
            let wrong = routes.hops_max(class.protocol).err();
            problems.extend(wrong.map(|problem| problem.below(&format!("classes[{index}]"))));
        }
        let chosen = self.selection.iter().flat_map(|search| &search.protocols);
        let wrong = chosen.filter_map(|&protocol| routes.hops_max(protocol).err());
        problems.extend(wrong.map(|problem| problem.below("selection")));
        if !problems.is_empty() {
            return Err(problems);
        }
        let (nodes, load_rate) = (topology.hosts(), network.load_rate());
        let config = Self { nodes, load_rate, ..self.clone() };
        let bill = config.equipment.bill(&network.topology);
        Ok(Plan { config, network, bill, routing, routes })
    }

    /// The protocols of all classes, and those that a search chooses from.
    pub(super) fn protocols(&self) -> impl Iterator<Item = Protocol> + '_ {
        let chosen = self.selection.iter().flat_map(|search| &search.protocols);
        self.classes.iter().map(|class| &class.protocol).chain(chosen).copied()
    }

    /// The links and queues.
    pub(super) fn network(&self) -> packets::Config {
        let endless = Bytes::new(u64::from(u32::MAX));
        let port_buffer = if self.port_buffer == Bytes::ZERO { endless } else { self.port_buffer };
        packets::Config {
            topology: self.topology.clone(),
            load_rate: self.load_rate,
            routing: Routing::SourceRoute,
            takes_detours: self.protocols().any(|protocol| !protocol.is_minimal()),
            switch_latency: self.node_latency,
            mtu: self.mtu,
            queues: Queues { port_buffer, ..Queues::default() },
            convergence: self.discovery.duration(),
            failures: self.failures,
            loss_rate: self.loss_rate,
            bit_error_rate: self.bit_error_rate,
            clock_tolerance: 0,
            ..packets::Config::default()
        }
    }
}

/// Where a key of the network stands in this table.
fn rename(problem: Problem) -> Problem {
    match problem.key.strip_prefix("queues.") {
        Some(rest) => Problem { key: rest.into(), ..problem },
        None => problem,
    }
}

impl Plan {
    /// The same plan with faults.
    ///
    /// # Errors
    /// For each component that the rack does not have: the problem's key is its index.
    pub fn with_faults(self, faults: &[Fault]) -> Result<Self, Vec<Problem>> {
        let mut network = self.network.with_faults(faults)?;
        // Round a dead link there may be several ways as short as each other, where it was the only one.
        network.config.takes_detours |= !faults.is_empty();
        Ok(Self { network, ..self })
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.routing.nodes()
    }

    /// How flows are cut.
    pub(crate) fn framing(&self) -> Framing {
        Framing::of(self.config.mtu, Bytes::new(wire::data::HEADER_BYTES as u64))
    }

    /// Of how many flows a broadcast can tell that they use other protocols (§3.4): as many as fit a
    /// packet, also one that is retransmitted or goes by trees of a rack in which links are dead. A packet of
    /// the simulated network carries as many bytes as its header has; the paper's had room for 298 flows.
    pub(crate) fn pairs_max(&self) -> usize {
        let again = if self.may_drop() { wire::tail::AGAIN_BYTES } else { 0 };
        let digest = if self.network.faults.is_empty() { 0 } else { wire::tail::DIGEST_BYTES };
        let head = wire::batch::HEADER_BYTES + again + digest;
        let largest = CARRIED_MAX.min(self.config.mtu.get() as usize);
        (largest - head) / wire::batch::PAIR_BYTES
    }

    /// The node that computes all rates; none where each computes its own.
    pub(crate) fn controller(&self) -> Option<NodeId> {
        self.config.controller.map(NodeId::new)
    }

    /// Most rates in a packet of a controller: what a packet of the simulated network carries.
    pub(crate) fn rates_max(&self) -> usize {
        let digest = if self.network.faults.is_empty() { 0 } else { wire::tail::DIGEST_BYTES };
        (CARRIED_MAX - digest - wire::central::HEADER_BYTES) / wire::central::RATE_BYTES
    }

    /// Whether a port may have no room for a packet.
    pub(crate) fn may_drop(&self) -> bool {
        self.config.port_buffer > Bytes::ZERO
    }

    /// Whether anybody asks how long nodes have known of flows.
    pub(crate) fn asks_for_ages(&self) -> bool {
        self.config.batch == Batch::Lasting || self.config.selection.is_some()
    }

    /// How many tenants announcements tell apart: one, where nobody asks.
    pub(crate) fn tenants(&self) -> u32 {
        let search = self.config.selection.as_ref();
        if search.is_none_or(|search| search.utility() != Utility::TenantTail) {
            return 1;
        }
        TENANTS.max(self.config.classes.len() as u32).min(INDICES)
    }

    /// The protocols that flows may be under: those of classes and searches, and what stands for them where
    /// something has failed.
    pub(crate) fn protocols_used(&self) -> BTreeSet<Protocol> {
        self.protocols_on(&self.routes)
    }

    fn protocols_on(&self, routes: &Routes) -> BTreeSet<Protocol> {
        let suits = |protocol: &Protocol| routes.hops_max(*protocol).is_ok();
        let all = self.config.protocols();
        let wanted = all.flat_map(|protocol| [protocol, protocol.on_any_graph()]);
        wanted.filter(suits).chain([Protocol::Rps]).collect()
    }

    /// Whether packets can get lost: at random, by faults, or for lack of room.
    pub(crate) fn can_lose(&self) -> bool {
        let config = &self.config;
        let by_chance = config.loss_rate > 0.0 || config.bit_error_rate > 0.0;
        by_chance || !self.network.faults.is_empty() || config.port_buffer > Bytes::ZERO
    }

    /// How fast a flow of a node goes before its rate has been computed.
    pub(crate) fn initial_rate(&self, node: NodeId) -> Rate {
        if self.config.initial_rate > Rate::default() {
            return self.config.initial_rate;
        }
        let topology = &self.network.topology;
        let links = topology.ports_of(topology.host(node)).map(|port| topology.port(port).link);
        links.map(|link| link.rate).max().unwrap_or_default()
    }

    /// How demands are estimated.
    pub(crate) fn demands(&self) -> DemandPlan {
        let config = &self.config;
        let nodes = (0..self.nodes()).map(NodeId::new);
        let topology = &self.network.topology;
        let ceiling = nodes.map(|node| self.network.host_rate(topology.host(node))).max();
        DemandPlan {
            period: config.interval,
            gain_shift: config.demand.gain_shift,
            margin_percent: config.demand.margin_percent,
            ceiling: ceiling.unwrap_or_default(),
        }
    }

    /// How everything goes where these links are dead, each named by one end.
    pub(crate) fn wiring(&self, dead: &[PortId], seed: u64) -> Wiring {
        if dead.is_empty() {
            return self.wire(&self.routing, self.routes.clone(), seed);
        }
        let routing = self.routing.without(dead, &[]);
        let routes = Routes::new(&routing).expect("what is left has no more links a node");
        self.wire(&routing, routes, seed)
    }

    /// Whether the scenario lets links or nodes fail.
    pub(crate) fn has_faults(&self) -> bool {
        !self.network.faults.is_empty()
    }

    /// Until when nodes that greet may find something out: all changes of the plan, and the time until all
    /// know of the last. None where nothing changes. No node knows it; an oracle does, and so do tests.
    pub(crate) fn changes_until(&self) -> Option<Time> {
        let faults = self.network.faults.iter();
        let last = faults.map(|fault| fault.until.unwrap_or(fault.at)).max()?;
        Some(last + self.config.discovery.duration())
    }

    fn wire(&self, routing: &Network, routes: Routes, seed: u64) -> Wiring {
        // What [`Routes::usable`] may come to, here or in the map of a node that tells of its flows.
        let protocols: Vec<Protocol> = self.protocols_on(&routes).into_iter().collect();
        let shares = Routed::new(routing, &protocols).expect("the protocols suit the network");
        let free = capacities_for(routing.topology(), self.config.headroom, self.config.mtu);
        Wiring {
            filling: Waterfill::new(shares, free),
            trees: Fib::unprepared(routing, seed, self.config.trees),
            routes,
        }
    }
}
