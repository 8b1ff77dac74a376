//! Faults under fluids: what is broken carries nothing, and everything else is shared anew at once.
//!
//! An ideal network knows of a fault when it happens: flows take their shortest paths of what works
//! from that instant on. A flow without any path waits, without a rate, as long as something may be
//! repaired, and fails when nothing will be.

use kernel::Time;
use rack::topology::{Parts, PortId, Topology, Vertex};
use rack::{Failure, Flow};

use super::classes::Classes;
use super::waterfill::Waterfill;
use super::{Oracle, State};
use crate::config::Plan;
use crate::route::{Live, Tables};

/// What is broken.
#[derive(Clone, Debug)]
pub(super) struct Faults {
    /// By fault of the plan: what it means.
    parts: Vec<Parts>,
    /// By port, and by vertex: how many faults keep it from working.
    down: Vec<u32>,
    dead: Vec<u32>,
    /// Faults that will end.
    repairs_left: u32,
}

impl Faults {
    pub(super) fn new(plan: &Plan) -> Self {
        let topology = &plan.topology;
        let parts = plan.faults.iter().filter_map(|fault| topology.parts(fault.component).ok());
        let ends = plan.faults.iter().filter(|fault| fault.until.is_some());
        Self {
            parts: parts.collect(),
            down: vec![0; topology.ports().len()],
            dead: vec![0; topology.vertices() as usize],
            repairs_left: ends.count() as u32,
        }
    }

    /// Whether a vertex is dead.
    fn is_dead(&self, vertex: u32) -> bool {
        self.dead[vertex as usize] > 0
    }

    /// Both ends of each link that a fault takes down.
    fn ends_of(&self, topology: &Topology, fault: u32) -> Vec<PortId> {
        let links: Vec<PortId> = match &self.parts[fault as usize] {
            Parts::Vertex(vertex) => topology.ports_of(*vertex).collect(),
            Parts::Links(links) => links.clone(),
        };
        links.into_iter().flat_map(|port| [port, topology.port(port).reverse]).collect()
    }

    fn live(&self) -> Live {
        Live {
            ports: self.down.iter().map(|&faults| faults == 0).collect(),
            vertices: self.dead.iter().map(|&faults| faults == 0).collect(),
        }
    }
}

impl Oracle {
    /// A fault begins.
    pub(super) fn broken(&mut self, fault: u32) {
        for end in self.faults.ends_of(&self.net.plan.topology, fault) {
            self.faults.down[end.index()] += 1;
        }
        if let Parts::Vertex(vertex) = self.faults.parts[fault as usize] {
            self.faults.dead[vertex.index()] += 1;
        }
        self.share_anew();
    }

    /// A fault ends.
    pub(super) fn mended(&mut self, fault: u32) {
        self.faults.repairs_left -= 1;
        for end in self.faults.ends_of(&self.net.plan.topology, fault) {
            self.faults.down[end.index()] -= 1;
        }
        if let Parts::Vertex(vertex) = self.faults.parts[fault as usize] {
            self.faults.dead[vertex.index()] -= 1;
        }
        self.share_anew();
    }

    /// Why a flow can never complete, as things stand.
    pub(super) fn hopeless(&self, flow: &Flow) -> Option<Failure> {
        if self.faults.is_dead(flow.src.get()) {
            return Some(Failure::SourceDied);
        }
        let is_cut_off = self.faults.repairs_left == 0 && !self.has_path(flow);
        (self.faults.is_dead(flow.dst.get()) || is_cut_off).then_some(Failure::DestinationDied)
    }

    /// Whether any path leads to the destination of a flow.
    pub(super) fn has_path(&self, flow: &Flow) -> bool {
        self.net.tables.paths(Vertex::new(flow.src.get()), flow.dst.get()) > 0
    }

    /// Gives every open flow its share of what works now.
    fn share_anew(&mut self) {
        self.net.live = self.faults.live();
        self.net.tables = Tables::new(&self.net.plan.topology, &self.net.live).into();
        self.classes = Classes::new(&self.net);
        self.rates = Waterfill::new(&self.classes.capacity);
        for place in 0..self.flows.len() as u32 {
            let fluid = &mut self.flows[place as usize];
            if !matches!(fluid.state, State::Flowing | State::Stalled) {
                continue;
            }
            fluid.left -= fluid.rate * (self.now - fluid.since).as_seconds();
            (fluid.rate, fluid.since) = (0.0, self.now);
            self.dry[place as usize] = Time::NEVER;
            let flow = fluid.flow;
            if self.has_path(&flow) {
                self.flows[place as usize].state = State::Flowing;
                let uses = self.classes.uses(&self.net, flow.src.get(), flow.dst.get());
                self.rates.add(place, uses);
            } else {
                self.flows[place as usize].state = State::Stalled;
            }
            if let Some(why) = self.hopeless(&flow) {
                self.failures.push((place, why));
            }
        }
        self.find_first_dry();
    }
}
