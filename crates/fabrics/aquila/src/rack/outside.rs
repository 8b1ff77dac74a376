//! What is outside of the Clique: the ways there and back.
//!
//! Models: Aquila §2, §3.3, App. A (M015, M404, M428, M731, U61): TiNs have a prefix installed that leads to a weighted group
//! of Ethernet ports; in the other direction the datacenter's switch sends to any TiN that is attached, which looks
//! destinations up as for any other source. A flow goes by one port each way. When routes have converged, ports that do
//! not work are in neither group; until then what is sent there is lost.

use ::rack::NodeId;
use ::rack::topology::{PortId, Topology as Graph, Vertex};
use ipnet::IpNet;
use packets::{Live, Packet};

use super::blueprint::Blueprint;
use crate::config::Plan;
use crate::pipeline::compute::{add_outside, connected};
use crate::pipeline::plan::Plan as AddressPlan;
use crate::pipeline::routes::{Found, Routes, SLOTS_MAX, at_place};

/// The place of the Ethernet port among the engine's ports of a TiN to hosts.
pub(super) const ETHERNET: usize = 2;

/// A TiN that is attached.
#[derive(Clone, Copy, Debug)]
struct Attached {
    tin: u16,
    weight: u32,
    vertex: Vertex,
    /// Its Ethernet port, and the port of the switch outside that leads to it.
    out: PortId,
    back: PortId,
}

/// The ways there and back, as they are installed.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    /// The first node that is outside.
    first: u32,
    prefix: IpNet,
    plan: AddressPlan,
    attached: Vec<Attached>,
    routes: Routes,
    /// Ports of the switch outside that lead into the Clique.
    back: Vec<PortId>,
}

/// The TiNs of a plan that are attached: none, if nothing is outside.
pub(super) fn attached(plan: &Plan) -> Vec<u16> {
    let (outside, tins) = (&plan.config.outside, plan.topology.shape().tins());
    if outside.hosts == 0 { Vec::new() } else { connected(tins, outside.attached(tins)) }
}

impl Outside {
    /// That of a plan, while all works; `None`, if nothing is outside.
    pub(super) fn new(plan: &Plan, blueprint: &Blueprint, graph: &Graph) -> Option<Self> {
        let config = &plan.config.outside;
        let tins = attached(plan);
        if tins.is_empty() {
            return None;
        }
        let weights = config.weights.iter().copied().cycle();
        let of = |(tin, weight): (u16, u32)| {
            let out = blueprint.host_ports[usize::from(tin)][ETHERNET];
            let back = graph.port(out).reverse;
            Attached { tin, weight, vertex: blueprint.vertex(tin), out, back }
        };
        let mut outside = Self {
            first: plan.config.nodes,
            prefix: config.prefix().expect("it was checked"),
            plan: AddressPlan::new(plan.topology.shape(), plan.config.hosts_per_tin),
            attached: tins.into_iter().zip(weights).map(of).collect(),
            routes: Routes::default(),
            back: Vec::new(),
        };
        outside.install(&|_| true);
        Some(outside)
    }

    /// Installs what works.
    pub(super) fn converge(&mut self, live: &Live) {
        self.install(&|of: &Attached| {
            live.vertices[of.vertex.index()] && live.ports[of.out.index()]
        });
    }

    fn install(&mut self, works: &dyn Fn(&Attached) -> bool) {
        let there = || self.attached.iter().filter(|of| works(of));
        let members: Vec<_> = there().map(|of| (of.tin, of.weight)).collect();
        self.back = there().map(|of| of.back).collect();
        self.routes = Routes::default();
        // Without a member that has a weight there is no way out.
        let _ = add_outside(&mut self.routes, &self.plan, &[self.prefix], &members);
    }

    /// Whether a node is there.
    pub(super) fn has(&self, node: NodeId) -> bool {
        node.get() >= self.first
    }

    /// The GNet address by which a packet goes out: of an Ethernet port.
    pub(super) fn way_out(&self, packet: &Packet) -> Option<u16> {
        let ip = at_place(self.prefix.network(), packet.dst.get() - self.first);
        match self.routes.look_up(ip, hash(packet)) {
            Found::Group(address) => Some(address.bits()),
            _ => None,
        }
    }

    /// The port of the switch outside by which a packet comes in.
    pub(super) fn way_in(&self, packet: &Packet) -> Option<PortId> {
        let count = self.back.len() as u64;
        let index = hash(packet).checked_rem(count)?;
        Some(self.back[index as usize])
    }
}

/// Of a packet's flow, by what all its packets have alike.
fn hash(packet: &Packet) -> u64 {
    let ends = u64::from(packet.src.get()) << 32 | u64::from(packet.dst.get());
    let mut word = ends ^ u64::from(packet.entropy).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

const _: () = assert!(SLOTS_MAX == 512, "the documentation of fabric.outside says so");
